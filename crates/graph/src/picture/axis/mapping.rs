//! Maps times and values to pixels.

/// The canvas: where the data is drawn, in pixels of the image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CanvasRect {
    /// Its left edge.
    pub left: f64,
    /// Its upper edge.
    pub top: f64,
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
}

/// Maps times and values to positions on the canvas.
#[derive(Clone, Copy, Debug)]
pub struct Mapping {
    rect: CanvasRect,
    start: i64,
    /// Pixels in a second.
    across: f64,
    /// The lowest value, or its logarithm.
    low: f64,
    /// Pixels in a unit of the value, or of its logarithm.
    upwards: f64,
    logarithmic: bool,
}

impl Mapping {
    /// Maps the times of `span` (seconds since the epoch) and the values of `limits` to the canvas; the first of each
    /// is the lesser one. The limits of a logarithmic axis are positive.
    pub fn new(rect: CanvasRect, span: (i64, i64), limits: (f64, f64), logarithmic: bool) -> Mapping {
        let (low, high) = if logarithmic { (limits.0.log10(), limits.1.log10()) } else { limits };
        Mapping {
            rect,
            start: span.0,
            across: rect.width / (span.1 - span.0) as f64,
            low,
            upwards: rect.height / (high - low),
            logarithmic,
        }
    }

    /// The canvas.
    pub fn rect(&self) -> CanvasRect {
        self.rect
    }

    /// Pixels of `time` from the left edge of the image. Compat: truncated to whole pixels.
    pub fn to_x(&self, time: i64) -> f64 {
        (self.rect.left + self.across * (time - self.start) as f64).trunc()
    }

    /// Pixels of `value` from the upper edge of the image; outside of the canvas if the value is outside of the limits.
    /// Compat: on a logarithmic axis values below the lower limit are at the limit.
    pub fn to_y(&self, value: f64) -> f64 {
        let value = match self.logarithmic {
            true => value.log10().max(self.low),
            false => value,
        };
        self.rect.top + self.rect.height - self.upwards * (value - self.low)
    }
}
