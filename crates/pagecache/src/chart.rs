//! A chart of lines and points over two axes, as a scene: drawn light or dark.
//!
//! RRDtool's graphs have time as their x axis; these have numbers, so that they have a drawing of their own.

use graph::picture::scene::{Cap, Colour, Item, Join, Paint, Path, Point, Scene, Stroke};
use graph::picture::text::{Font, TextLayout, TextOptions, Typesetter};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 520.0;
/// Around the plot: left, right, top, bottom.
const MARGINS: (f64, f64, f64, f64) = (76.0, 24.0, 58.0, 54.0);
/// Height of a line of the legend.
const LINE_HEIGHT: f64 = 18.0;
/// Most marks on an axis.
const TICKS_MAX: usize = 9;
/// Most points of a curve; more cannot be told apart.
const POINTS_MAX: usize = 20_000;

/// Light or dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shade {
    /// Dark on white.
    Light,
    /// Light on near black.
    Dark,
}

impl Shade {
    pub(crate) fn back(self) -> Colour {
        Colour::new(if self == Shade::Light { 0xffff_ffff } else { 0x1718_1cff })
    }

    pub(crate) fn ink(self) -> Colour {
        Colour::new(if self == Shade::Light { 0x2223_28ff } else { 0xe4e6_ebff })
    }

    pub(crate) fn grid(self) -> Colour {
        Colour::new(if self == Shade::Light { 0xd9dc_e2ff } else { 0x3436_3dff })
    }

    /// The colour of a series: told apart by people who do not see red and green, on both grounds.
    pub(crate) fn series(self, index: usize) -> Colour {
        const LIGHT: [u32; 6] =
            [0x0061_a8ff, 0xc853_00ff, 0x2879_3dff, 0x8a3f_a8ff, 0x9a6b_00ff, 0x5561_70ff];
        const DARK: [u32; 6] = [0x5fb0_ffff, 0xff9a_4dff, 0x74d0_8aff, 0xd59c_f0ff, 0xf0c6_50ff, 0xb3bc_c8ff];
        Colour::new(if self == Shade::Light { LIGHT } else { DARK }[index % 6])
    }
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// As a line.
    Line,
    /// As a dashed line.
    Dashed,
    /// As points.
    Points,
}

/// One series.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the legend says.
    pub name: String,
    /// How it is drawn.
    pub look: Look,
    /// Its points; those that are not finite, or not positive on a logarithmic axis, are left out.
    pub points: Vec<(f64, f64)>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisLabel {
    /// What it shows.
    pub title: String,
    /// Whether equal steps multiply.
    pub logarithmic: bool,
}

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Its title.
    pub title: String,
    /// The horizontal axis.
    pub x: AxisLabel,
    /// The vertical one.
    pub y: AxisLabel,
    /// What is drawn.
    pub series: Vec<Series>,
}

/// An axis with its range and where it lies.
struct Scale {
    from: f64,
    to: f64,
    logarithmic: bool,
    pixels: (f64, f64),
}

impl Scale {
    fn new(values: impl Iterator<Item = f64>, logarithmic: bool, pixels: (f64, f64)) -> Scale {
        let usable = values.filter(|value| value.is_finite() && (!logarithmic || *value > 0.0));
        let (low, high) =
            usable.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
        let (from, to) = if logarithmic {
            (10f64.powf((low.log10() * 4.0).floor() / 4.0), 10f64.powf((high.log10() * 4.0).ceil() / 4.0))
        } else {
            (low.min(0.0), high)
        };
        let to = if to > from {
            to
        } else if logarithmic {
            from * 10.0
        } else {
            from + 1.0
        };
        Scale { from, to, logarithmic, pixels }
    }

    fn at(&self, value: f64) -> Option<f64> {
        let share = if self.logarithmic {
            (value / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        let is_inside = share.is_finite() && (-1e-9..=1.0 + 1e-9).contains(&share);
        is_inside.then_some(self.pixels.0 + share * (self.pixels.1 - self.pixels.0))
    }

    /// Round numbers on the axis.
    fn ticks(&self) -> Vec<f64> {
        if self.logarithmic {
            let decades = (self.from.log10().floor() as i32)..=(self.to.log10().ceil() as i32);
            let wanted: &[f64] = if decades.clone().count() > 5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
            let all = decades.flat_map(|decade| wanted.iter().map(move |digit| digit * 10f64.powi(decade)));
            return all.filter(|value| self.at(*value).is_some()).collect();
        }
        let rough = (self.to - self.from) / (TICKS_MAX - 1) as f64;
        let decade = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * decade).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.from / step).ceil();
        (0..=TICKS_MAX).map(|index| (first + index as f64) * step).filter(|value| *value <= self.to).collect()
    }
}

/// A number as an axis shows it: 320k, 1.5M, 0.034.
pub fn short_number(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        v if v >= 1e9 => (value / 1e9, "G"),
        v if v >= 1e6 => (value / 1e6, "M"),
        v if v >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = if scaled == 0.0 { 0 } else { (2 - scaled.abs().log10().floor() as i32).clamp(0, 6) };
    let text = format!("{scaled:.*}", digits as usize);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

/// Draws with texts set by one typesetter.
pub(crate) struct Pen<'a> {
    pub(crate) texts: &'a dyn Typesetter,
    pub(crate) items: Vec<Item>,
}

impl Pen<'_> {
    pub(crate) fn set(&self, text: &str, size: f64) -> TextLayout {
        let font = Font { size, description: b"DejaVu Sans Mono".to_vec() };
        self.texts.set(text.as_bytes(), TextOptions { font: &font, tab_width: 40.0, markup: false })
    }

    /// Puts a text at a point: `anchor` 0 begins there, 0.5 is centred, 1 ends.
    pub(crate) fn text(&mut self, text: &str, size: f64, (x, y): (f64, f64), anchor: f64, colour: Colour) {
        let layout = self.set(text, size);
        let at = Point { x: (x - layout.width * anchor).round(), y: y.round() };
        self.items.push(Item::Text { at, turned: 0.0, layout, colour });
    }

    pub(crate) fn line(&mut self, points: Vec<(f64, f64)>, width: f64, dashes: Vec<f64>, colour: Colour) {
        let points: Vec<Point> = points.into_iter().map(|(x, y)| Point { x, y }).collect();
        let path = Path { ends: vec![points.len()], points, closed: false };
        let stroke = Stroke { width, dashes, dash_offset: 0.0, cap: Cap::Butt, join: Join::Round };
        self.items.push(Item::Stroke { path, colour, stroke });
    }

    pub(crate) fn area(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), colour: Colour) {
        let path = Path::rectangle(Point { x, y }, Point { x: x + width, y: y + height });
        self.items.push(Item::Fill { path, paint: Paint::Solid(colour) });
    }
}

/// A scene of these items.
pub(crate) fn scene(title: &str, (width, height): (f64, f64), items: Vec<Item>) -> Scene {
    Scene {
        width,
        height,
        zoom: 1.0,
        smooth_lines: true,
        smooth_texts: true,
        title: title.to_string(),
        description: String::new(),
        items,
    }
}

impl Chart {
    /// Draws it.
    pub fn draw(&self, shade: Shade, texts: &dyn Typesetter) -> Scene {
        let mut pen = Pen { texts, items: Vec::new() };
        let height = HEIGHT + LINE_HEIGHT * self.series.len() as f64;
        pen.area((0.0, 0.0), (WIDTH, height), shade.back());
        let (left, right, top, bottom) = MARGINS;
        let points = || self.series.iter().flat_map(|series| &series.points);
        let x = Scale::new(points().map(|point| point.0), self.x.logarithmic, (left, WIDTH - right));
        let y = Scale::new(points().map(|point| point.1), self.y.logarithmic, (HEIGHT - bottom, top));
        pen.text(&self.title, 10.0, (left, 14.0), 0.0, shade.ink());
        pen.text(&self.y.title, 7.5, (left, 38.0), 0.0, shade.ink());
        pen.text(&self.x.title, 7.5, (WIDTH - right, HEIGHT - 22.0), 1.0, shade.ink());
        for value in x.ticks() {
            let Some(at) = x.at(value).map(|at| at.round() + 0.5) else { continue };
            pen.line(vec![(at, y.pixels.0), (at, y.pixels.1)], 1.0, Vec::new(), shade.grid());
            pen.text(&short_number(value), 7.5, (at, y.pixels.0 + 8.0), 0.5, shade.ink());
        }
        for value in y.ticks() {
            let Some(at) = y.at(value).map(|at| at.round() + 0.5) else { continue };
            pen.line(vec![(x.pixels.0, at), (x.pixels.1, at)], 1.0, Vec::new(), shade.grid());
            pen.text(&short_number(value), 7.5, (x.pixels.0 - 8.0, at - 8.0), 1.0, shade.ink());
        }
        for (index, series) in self.series.iter().enumerate() {
            let colour = shade.series(index);
            series.draw(&mut pen, (&x, &y), colour);
            let at = HEIGHT + LINE_HEIGHT * (index as f64 - 0.5);
            let example = [(left, at + 8.0), (left + 26.0, at + 8.0)];
            series.draw_pixels(&mut pen, example.to_vec(), colour);
            pen.text(&series.name, 7.5, (left + 36.0, at), 0.0, shade.ink());
        }
        scene(&self.title, (WIDTH, height), pen.items)
    }
}

impl Series {
    fn draw(&self, pen: &mut Pen<'_>, (x, y): (&Scale, &Scale), colour: Colour) {
        let place = |point: &(f64, f64)| Some((x.at(point.0)?, y.at(point.1)?));
        self.draw_pixels(pen, self.points.iter().take(POINTS_MAX).filter_map(place).collect(), colour);
    }

    fn draw_pixels(&self, pen: &mut Pen<'_>, pixels: Vec<(f64, f64)>, colour: Colour) {
        match self.look {
            Look::Points => {
                for (x, y) in pixels {
                    pen.area((x - 3.5, y - 3.5), (7.0, 7.0), colour);
                }
            }
            _ if pixels.len() < 2 => {}
            Look::Line => pen.line(pixels, 2.0, Vec::new(), colour),
            Look::Dashed => pen.line(pixels, 2.0, vec![7.0, 5.0], colour),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, want) in [
            (320_000.0, "320k"),
            (1_500_000.0, "1.5M"),
            (0.0341, "0.0341"),
            (0.0, "0"),
            (3.4236, "3.42"),
            (5_000.0, "5000"),
        ] {
            assert_eq!(short_number(value), want);
        }
    }

    #[test]
    fn axes_have_round_marks() {
        let scale = Scale::new([0.012, 3.42].into_iter(), true, (0.0, 100.0));
        let ticks: Vec<String> = scale.ticks().into_iter().map(short_number).collect();
        assert_eq!(ticks, ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5"]);
        let scale = Scale::new([0.0, 26.0].into_iter(), false, (0.0, 100.0));
        assert_eq!(scale.ticks(), [0.0, 5.0, 10.0, 15.0, 20.0, 25.0]);
        assert_eq!((scale.at(13.0), scale.at(27.0)), (Some(50.0), None));
    }

    #[test]
    fn odd_values_do_no_harm() {
        for logarithmic in [false, true] {
            for values in
                [vec![], vec![f64::NAN], vec![0.0], vec![-1.0, f64::INFINITY], vec![5.0], vec![1e-300, 1e300]]
            {
                let scale = Scale::new(values.iter().copied(), logarithmic, (0.0, 100.0));
                assert!(scale.to > scale.from);
                assert!(scale.ticks().len() < 2_000);
            }
        }
    }
}
