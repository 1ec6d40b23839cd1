//! How much a graph may take.

use std::time::Instant;

use graph::language::graphic::Graphic;
use graph::language::{Element, Script};

use crate::error::Error;

/// Most pixels of a width: a grid with more takes minutes. RRDtool's limit is its memory.
const WIDTH_MAX: u32 = 10_000_000;

/// How much a graph may take. What it may fetch and compute is limited by its [`graph::plan::Rows`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Most values that lines, areas and ticks may have, one for each column of the picture.
    pub values_max: u64,
    /// Most pixels of the image, `--zoom` included.
    pub pixels_max: Option<f64>,
    /// When work on it ends.
    pub deadline: Option<Instant>,
}

impl Default for Limits {
    /// Those of a command: as much as fits into memory, RRDtool's own limit. 2^27 values are a gigabyte.
    fn default() -> Limits {
        Limits { values_max: 1 << 27, pixels_max: None, deadline: None }
    }
}

impl Limits {
    /// Checks that there is a value for each column of each shape.
    ///
    /// # Errors
    /// [`Error::TooManyValues`].
    pub(crate) fn check_values(&self, script: &Script, width: u32) -> Result<(), Error> {
        let shapes = shape_count(script);
        if width > WIDTH_MAX || u64::from(width).saturating_mul(shapes as u64) > self.values_max {
            return Err(Error::TooManyValues { shapes, width });
        }
        Ok(())
    }

    /// Checks the size of an image in pixels before `zoom`.
    ///
    /// # Errors
    /// [`Error::TooManyPixels`].
    pub(crate) fn check_pixels(&self, (width, height): (i64, i64), zoom: f64) -> Result<(), Error> {
        let Some(pixels_max) = self.pixels_max else { return Ok(()) };
        let zoom = if zoom.is_finite() { zoom.max(1.0) } else { 1.0 };
        let pixels = width as f64 * zoom * (height as f64 * zoom);
        if pixels <= pixels_max { Ok(()) } else { Err(Error::TooManyPixels { width, height, zoom }) }
    }

    /// Checks that there is time left.
    ///
    /// # Errors
    /// [`Error::Deadline`].
    pub(crate) fn check_time(&self) -> Result<(), Error> {
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Error::Deadline),
            _ => Ok(()),
        }
    }
}

/// How many elements have a value for each column of the picture.
pub(crate) fn shape_count(script: &Script) -> usize {
    let has_values =
        |element: &&Element| matches!(element, Element::Graphic(Graphic::Shape(_) | Graphic::Tick(_)));
    script.elements.iter().filter(has_values).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_as_large_as_its_zoom_makes_it() {
        let limits = Limits { pixels_max: Some(10_000.0), ..Limits::default() };
        let check = |size: (i64, i64), zoom: f64, good: bool| {
            assert_eq!(limits.check_pixels(size, zoom).is_ok(), good, "{size:?} {zoom}");
        };
        check((100, 100), 1.0, true);
        check((101, 100), 1.0, false);
        check((50, 50), 2.0, true);
        check((50, 51), 2.0, false);
        // A smaller picture is drawn in full before it is made small.
        check((101, 100), 0.5, false);
        check((100, 100), f64::NAN, true);
        check((i64::MAX, i64::MAX), f64::MAX, false);
        assert!(Limits::default().check_pixels((i64::MAX, i64::MAX), 1.0).is_ok());
    }

    #[test]
    fn work_ends_at_the_deadline() {
        let now = Instant::now();
        let at = |deadline| Limits { deadline, ..Limits::default() }.check_time();
        assert!(at(None).is_ok());
        assert!(at(now.checked_add(std::time::Duration::from_secs(3600))).is_ok());
        assert!(matches!(at(Some(now)), Err(Error::Deadline)));
    }
}
