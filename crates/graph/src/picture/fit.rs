//! Points on the grid of pixels.
//!
//! With grid fit (`--no-gridfit` and vector formats turn it off) a point moves so that edges fall between pixels:
//! those of an area as they are, those of a line by its width. Counted in pixels of the image, after `zoom`.
//!
//! Compat: which way a half goes differs between x and y, and between lines and areas; found by drawing lines and
//! areas with Debian's rrdtool at every fraction of a pixel, at zooms of 1, 1.1, 1.25, 1.5 and 2. The tests here
//! have what its PNGs showed.

use super::scene::Point;

/// Moves points, or leaves them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// `None` = points stay; else the pixels of the image in a pixel of the scene.
    zoom: Option<f64>,
}

impl Fit {
    /// Moves points if `on`.
    pub fn new(on: bool, zoom: f64) -> Fit {
        Fit { zoom: on.then_some(zoom) }
    }

    /// Where a point of a line of `width` pixels goes.
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

    /// The corner of pixels next to a point.
    pub fn whole(self, at: Point) -> Point {
        let Some(zoom) = self.zoom else { return at };
        Point { x: (at.x * zoom + 0.5).floor() / zoom, y: (at.y * zoom - 0.5).ceil() / zoom }
    }

    /// Where a point of an area's outline goes.
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
        let fit = Fit::new(true, 1.0);
        assert_eq!(fit.line(at(15.0, 20.0), 1.0), at(14.5, 20.5));
        assert_eq!(fit.line(at(15.0, 19.5), 1.0), at(14.5, 19.5));
        assert_eq!(fit.line(at(15.0, 19.55), 2.0), at(14.0, 21.0));
        assert_eq!(fit.line(at(15.0, 19.5), 2.5), at(14.75, 19.25));
        assert_eq!(fit.area(at(15.0, 19.1)), at(15.0, 20.0));
        assert_eq!(fit.area(at(15.0, 19.0)), at(15.0, 19.0));
    }

    #[test]
    fn pixels_are_those_of_the_image() {
        let fit = Fit::new(true, 2.0);
        assert_eq!(fit.line(at(17.0, 19.8), 1.0), at(16.5, 20.5));
        assert_eq!(fit.line(at(17.0, 19.7), 1.0), at(16.5, 20.0));
        assert_eq!(fit.area(at(17.0, 19.6)), at(17.0, 20.0));
        assert_eq!(fit.area(at(17.0, 19.5)), at(17.0, 19.5));
    }

    #[test]
    fn without_it_points_stay() {
        let fit = Fit::new(false, 2.0);
        assert_eq!(fit.line(at(17.3, 19.8), 1.0), at(17.3, 19.8));
        assert_eq!(fit.area(at(17.3, 19.8)), at(17.3, 19.8));
    }
}
