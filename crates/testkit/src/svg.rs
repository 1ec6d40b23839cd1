//! Reads the SVG that cairo writes for RRDtool: what is painted, back to front, as data.
//!
//! Understands only what RRDtool paints; anything else panics, so that no test misses it. Texts are outlines of
//! glyphs: [`Letters`] learns which outline is which letter from known texts.

use std::collections::HashMap;
use std::rc::Rc;

/// A point in pixels of the image, from its upper left corner.
pub type Point = (f64, f64);

/// A painted item.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// An area.
    Fill {
        /// The parts of its outline.
        pieces: Vec<Piece>,
        /// Its colour.
        paint: Paint,
    },
    /// A line.
    Stroke {
        /// Its parts.
        pieces: Vec<Piece>,
        /// Red, green, blue and opacity, 0 to 1.
        colour: [f64; 4],
        /// Its width in pixels.
        width: f64,
        /// Lengths of dashes and gaps in pixels; empty = none.
        dashes: Vec<f64>,
        /// The offset in the dashes where it begins.
        dash_offset: f64,
        /// SVG's name for the shape of its ends.
        cap: String,
        /// SVG's name for the shape of its corners.
        join: String,
    },
    /// A text, or the part of it that has one font and colour.
    Text(Text),
    /// Restricts what follows to this rectangle.
    Clip {
        /// Upper left corner.
        from: Point,
        /// Lower right corner.
        to: Point,
    },
    /// Ends the clip.
    Unclip,
}

/// Points connected by lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Piece {
    /// The points.
    pub points: Vec<Point>,
    /// Whether it returns to the first.
    pub closed: bool,
}

/// How an area is filled.
#[derive(Clone, Debug, PartialEq)]
pub enum Paint {
    /// Red, green, blue and opacity, 0 to 1.
    Solid([f64; 4]),
    /// A gradient between two points, with the colours at its stops.
    Gradient {
        /// Where offset 0 is.
        from: Point,
        /// Where offset 1 is.
        to: Point,
        /// Offset and colour.
        stops: Vec<(f64, [f64; 4])>,
    },
}

/// A text as glyphs.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// Its glyphs.
    pub glyphs: Vec<Glyph>,
    /// Red, green, blue and opacity, 0 to 1.
    pub colour: [f64; 4],
}

/// One glyph.
#[derive(Clone, Debug, PartialEq)]
pub struct Glyph {
    /// Its outline as an SVG path; empty for a space.
    pub outline: Rc<str>,
    /// Its position on the baseline.
    pub at: Point,
}

/// A painted picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Svg {
    /// Width in pixels.
    pub width: f64,
    /// Height in pixels.
    pub height: f64,
    /// Its items, back to front.
    pub items: Vec<Item>,
}

/// The content of `<defs>`.
#[derive(Default)]
struct Definitions {
    outlines: HashMap<String, Rc<str>>,
    clips: HashMap<String, (Point, Point)>,
    gradients: HashMap<String, Paint>,
}

impl Svg {
    /// Reads cairo's SVG.
    ///
    /// # Panics
    /// When it contains something that RRDtool does not paint.
    pub fn read(text: &str) -> Svg {
        let (head, body) = text.split_once("<g id=\"surface").expect("a surface");
        let definitions = Definitions::read(head);
        let size = |name| number(attribute(head, name).expect("a size").trim_end_matches("pt"));
        let mut svg = Svg { width: size("width"), height: size("height"), items: Vec::new() };
        // The meaning of each open <g>: a text, a clipped part, or the surface, whose tag has been cut off.
        let mut open = vec![Group::Surface];
        for line in body.lines().skip(1) {
            let line = line.trim_start();
            if let Some(rest) = line.strip_prefix("<g ") {
                open.push(svg.open(rest, &definitions));
            } else if line.starts_with("</g>") {
                match open.pop() {
                    Some(Group::Text(text)) => svg.items.push(Item::Text(text)),
                    Some(Group::Clip) => svg.items.push(Item::Unclip),
                    _ => {}
                }
            } else if line.starts_with("<use ") {
                let Some(Group::Text(text)) = open.last_mut() else {
                    panic!("a glyph outside a text: {line}")
                };
                let id = attribute(line, "xlink:href").expect("a glyph").trim_start_matches('#');
                let coordinate = |name| number(attribute(line, name).expect("a coordinate"));
                text.glyphs.push(Glyph {
                    outline: definitions.outlines[id].clone(),
                    at: (coordinate("x"), coordinate("y")),
                });
            } else if line.starts_with("<path ") {
                svg.items.push(path(line, &definitions));
            } else if line.starts_with("<rect ") {
                svg.items.push(rectangle(line));
            } else {
                assert!(line.starts_with("</svg>"), "unknown: {line}");
            }
        }
        svg
    }

    fn open(&mut self, tag: &str, definitions: &Definitions) -> Group {
        if let Some(style) = attribute(tag, "style") {
            return Group::Text(Text { glyphs: Vec::new(), colour: colour(style, "fill") });
        }
        let clip = attribute(tag, "clip-path").expect("a text or a clip");
        let (from, to) = definitions.clips[clip.trim_start_matches("url(#").trim_end_matches(')')];
        self.items.push(Item::Clip { from, to });
        Group::Clip
    }

    /// The texts with their glyphs, in order.
    pub fn texts(&self) -> impl Iterator<Item = &Text> {
        self.items.iter().filter_map(|item| match item {
            Item::Text(text) => Some(text),
            _ => None,
        })
    }
}

enum Group {
    Surface,
    Text(Text),
    Clip,
}

impl Definitions {
    fn read(head: &str) -> Definitions {
        let mut definitions = Definitions::default();
        let mut inside = String::new();
        for line in head.lines().map(str::trim_start) {
            if line.starts_with("<symbol ") || line.starts_with("<clipPath ") {
                inside = attribute(line, "id").expect("an id").to_string();
            } else if line.starts_with("<linearGradient ") {
                inside = attribute(line, "id").expect("an id").to_string();
                let end = |name| number(attribute(line, name).expect("an end"));
                let gradient = Paint::Gradient {
                    from: (end("x1"), end("y1")),
                    to: (end("x2"), end("y2")),
                    stops: Vec::new(),
                };
                definitions.gradients.insert(inside.clone(), gradient);
            } else if line.starts_with("<stop ") {
                let Some(Paint::Gradient { stops, .. }) = definitions.gradients.get_mut(&inside) else {
                    panic!("a stop outside a gradient: {line}")
                };
                let style = attribute(line, "style").expect("a style");
                stops.push((number(attribute(line, "offset").expect("an offset")), colour(style, "stop")));
            } else if line.starts_with("<path ") {
                let outline = attribute(line, "d").expect("an outline");
                if inside.starts_with("glyph") {
                    definitions.outlines.insert(inside.clone(), outline.into());
                } else {
                    let pieces = pieces(outline, 1.0);
                    definitions.clips.insert(inside.clone(), bounds(&pieces[0].points));
                }
            }
        }
        definitions
    }
}

/// The value of an attribute.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let start = tag.find(&format!("{name}=\"")).filter(|at| *at == 0 || tag.as_bytes()[at - 1] == b' ')?;
    let value = &tag[start + name.len() + 2..];
    Some(&value[..value.find('"')?])
}

/// The value of a style property.
fn property<'a>(style: &'a str, name: &str) -> Option<&'a str> {
    style
        .split(';')
        .filter_map(|part| part.trim().split_once(':'))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("no number: {text:?}"))
}

/// The colour of `kind`: `fill`, `stroke` or `stop`.
fn colour(style: &str, kind: &str) -> [f64; 4] {
    let name = if kind == "stop" { "stop-color" } else { kind };
    let rgb = property(style, name).expect("a colour");
    let rgb =
        rgb.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')')).expect("a colour of three parts");
    let parts: Vec<f64> = rgb.split(',').map(|part| number(part.trim_end_matches('%')) / 100.0).collect();
    let opacity = property(style, &format!("{kind}-opacity")).map_or(1.0, number);
    [parts[0], parts[1], parts[2], opacity]
}

fn path(line: &str, definitions: &Definitions) -> Item {
    let style = attribute(line, "style").expect("a style");
    // With --zoom a line is painted in pixels of 1:1 and scaled up.
    let scale = attribute(line, "transform").map_or(1.0, |matrix| {
        let parts: Vec<f64> = matrix["matrix(".len()..matrix.len() - 1].split(',').map(number).collect();
        assert_eq!(parts[1..], [0.0, 0.0, parts[0], 0.0, 0.0], "a transform that is none of size");
        parts[0]
    });
    let pieces = pieces(attribute(line, "d").expect("points"), scale);
    if property(style, "stroke") == Some("none") {
        let fill = property(style, "fill").expect("a paint");
        let paint = match fill.strip_prefix("url(#") {
            Some(id) => definitions.gradients[id.trim_end_matches(')')].clone(),
            None => Paint::Solid(colour(style, "fill")),
        };
        return Item::Fill { pieces, paint };
    }
    let name_of = |name| property(style, name).expect("a property").to_string();
    let dashes = property(style, "stroke-dasharray").unwrap_or("none");
    Item::Stroke {
        pieces,
        colour: colour(style, "stroke"),
        width: number(&name_of("stroke-width")) * scale,
        dashes: dashes.split(',').filter(|dash| *dash != "none").map(|dash| number(dash) * scale).collect(),
        dash_offset: property(style, "stroke-dashoffset").map_or(0.0, number) * scale,
        cap: name_of("stroke-linecap"),
        join: name_of("stroke-linejoin"),
    }
}

fn rectangle(line: &str) -> Item {
    let part = |name| number(attribute(line, name).expect("a side"));
    let (x, y, right, low) = (part("x"), part("y"), part("x") + part("width"), part("y") + part("height"));
    let points = vec![(x, y), (right, y), (right, low), (x, low)];
    let paint = Paint::Solid(colour(attribute(line, "style").expect("a style"), "fill"));
    Item::Fill { pieces: vec![Piece { points, closed: true }], paint }
}

/// The subpaths of a path of straight lines. After a closed one, cairo repeats its start: that is not a subpath.
fn pieces(path: &str, scale: f64) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut tokens = path.split_ascii_whitespace();
    while let Some(token) = tokens.next() {
        let mut point = || {
            let mut part = || number(tokens.next().expect("a coordinate")) * scale;
            (part(), part())
        };
        match token {
            "M" => pieces.push(Piece { points: vec![point()], closed: false }),
            "L" => pieces.last_mut().expect("a start").points.push(point()),
            "Z" => pieces.last_mut().expect("a start").closed = true,
            _ => panic!("not a straight line: {token}"),
        }
    }
    let after_closed = |at: usize| at > 0 && pieces[at - 1].closed && pieces[at].points.len() == 1;
    let keep: Vec<bool> = (0..pieces.len()).map(|at| !after_closed(at)).collect();
    pieces.into_iter().zip(keep).filter_map(|(piece, keep)| keep.then_some(piece)).collect()
}

fn bounds(points: &[Point]) -> (Point, Point) {
    let side = |of: fn(&Point) -> f64, better: fn(f64, f64) -> f64| {
        points.iter().map(of).reduce(better).expect("points")
    };
    ((side(|p| p.0, f64::min), side(|p| p.1, f64::min)), (side(|p| p.0, f64::max), side(|p| p.1, f64::max)))
}

/// Which outline is which letter. Outlines of one letter differ by font, size and rotation.
#[derive(Default)]
pub struct Letters(HashMap<Rc<str>, char>);

impl Letters {
    /// Learns from a picture in which `text` is one text, assuming that every text of this length is that one. The
    /// picture must be wide enough: cairo omits glyphs beyond its edge.
    ///
    /// # Panics
    /// When there is no such text.
    pub fn learn(&mut self, svg: &Svg, text: &str) {
        let count = text.chars().count();
        let mut found = false;
        for known in svg.texts().filter(|known| known.glyphs.len() == count) {
            self.0.extend(
                known.glyphs.iter().zip(text.chars()).map(|(glyph, letter)| (glyph.outline.clone(), letter)),
            );
            found = true;
        }
        assert!(found, "no text of {count} glyphs");
    }

    /// The letters of a text; U+FFFD for those never learned.
    pub fn read(&self, text: &Text) -> String {
        text.glyphs
            .iter()
            .map(|glyph| match &*glyph.outline {
                "" => ' ',
                outline => self.0.get(outline).copied().unwrap_or('\u{fffd}'),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RrdTool;

    /// Every letter of ASCII but the colon, which ends a COMMENT.
    const LETTERS: &str =
        "!#$%&()*+,-./0123456789;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}~";

    #[test]
    fn a_picture_is_read_as_it_was_asked_for() {
        let mut tool = RrdTool::start().expect("rrdtool");
        let mut draw = |elements: &str| {
            tool.run(&format!(
                "graph x.svg -a SVG -w 900 --start 1700000000 --end 1700086400 -u 10 HRULE:1#000000 {elements}"
            ))
            .expect("a picture");
            Svg::read(&std::fs::read_to_string(tool.path("x.svg")).expect("its file"))
        };
        let mut letters = Letters::default();
        letters.learn(&draw(&format!("\"COMMENT:{LETTERS}\"")), LETTERS);

        let svg = draw("--zoom 2 HRULE:5#102030:dashes=4,2:dash-offset=3 \"COMMENT:It is (so)\"");
        assert_eq!(svg.texts().map(|text| letters.read(text)).filter(|text| text == "It is (so)").count(), 0);
        assert!(svg.items.iter().any(|item| matches!(item, Item::Stroke { dashes, dash_offset, colour, width, .. }
            if *dashes == [8.0, 4.0] && *dash_offset == 6.0 && *width == 2.0 && (colour[2] - 48.0 / 255.0).abs() < 1e-6)));

        let svg = draw("--only-graph -h 50 -w 60 \"COMMENT:It is (so)\"");
        assert_eq!((svg.width, svg.height), (60.0, 50.0));
        let svg = draw("\"COMMENT:It is (so)\"");
        assert_eq!(svg.texts().map(|text| letters.read(text)).filter(|text| text == "It is (so)").count(), 1);
    }
}
