//! Grid fit: moves points so that edges fall between pixels.
//!
//! `--no-gridfit` and vector formats turn it off. An area's points move to the corners of pixels, a line's so that its
//! edges do. Pixels are those of the image, after zoom.
//!
//! Compat: halves round differently in x and y, and for lines and areas. The rules were found by drawing lines and
//! areas with Debian's rrdtool at every fraction of a pixel, at zooms of 1, 1.1, 1.25, 1.5 and 2; the tests hold what
//! its PNGs showed.

use super::scene::Point;

/// Moves points to the pixel grid, or leaves them where they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridFit {
    /// Pixels of the image for a pixel of the scene; `None` = points stay.
    zoom: Option<f64>,
}

impl GridFit {
    /// Moves points if `on`.
    pub fn new(on: bool, zoom: f64) -> GridFit {
        GridFit { zoom: on.then_some(zoom) }
    }

    /// Fits a point of a line that is `width` pixels wide.
    pub fn line(self, at: Point, width: f64) -> Point {
        let Some(zoom) = self.zoom else { return at };
        let half = width * zoom / 2.0;
        // Above 0 and at most 1, so that one edge of the line lies between pixels.
        let beyond = half - half.ceil() + 1.0;
        Point {
            x: ((at.x * zoom + 0.5).floor() - beyond) / zoom,
            y: ((at.y * zoom - 0.5).ceil() + beyond) / zoom,
        }
    }

    /// The corner of a pixel nearest to a point.
    pub fn whole(self, at: Point) -> Point {
        let Some(zoom) = self.zoom else { return at };
        Point { x: (at.x * zoom + 0.5).floor() / zoom, y: (at.y * zoom - 0.5).ceil() / zoom }
    }

    /// Fits a point of an area's outline.
    pub fn area(self, at: Point) -> Point {
        let Some(zoom) = self.zoom else { return at };
        Point { x: (at.x * zoom).floor() / zoom, y: (at.y * zoom).ceil() / zoom }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(x: f64, y: f64) -> Point {
        Point { x, y }
    }

    #[test]
    fn edges_fall_between_pixels() {
        let fit = GridFit::new(true, 1.0);
        assert_eq!(fit.line(at(15.0, 20.0), 1.0), at(14.5, 20.5));
        assert_eq!(fit.line(at(15.0, 19.5), 1.0), at(14.5, 19.5));
        assert_eq!(fit.line(at(15.0, 19.55), 2.0), at(14.0, 21.0));
        assert_eq!(fit.line(at(15.0, 19.5), 2.5), at(14.75, 19.25));
        assert_eq!(fit.area(at(15.0, 19.1)), at(15.0, 20.0));
        assert_eq!(fit.area(at(15.0, 19.0)), at(15.0, 19.0));
    }

    #[test]
    fn pixels_are_those_of_the_image() {
        let fit = GridFit::new(true, 2.0);
        assert_eq!(fit.line(at(17.0, 19.8), 1.0), at(16.5, 20.5));
        assert_eq!(fit.line(at(17.0, 19.7), 1.0), at(16.5, 20.0));
        assert_eq!(fit.area(at(17.0, 19.6)), at(17.0, 20.0));
        assert_eq!(fit.area(at(17.0, 19.5)), at(17.0, 19.5));
    }

    #[test]
    fn without_it_points_stay() {
        let fit = GridFit::new(false, 2.0);
        assert_eq!(fit.line(at(17.3, 19.8), 1.0), at(17.3, 19.8));
        assert_eq!(fit.area(at(17.3, 19.8)), at(17.3, 19.8));
    }
}
