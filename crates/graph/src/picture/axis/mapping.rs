//! Which pixel a time or a value is drawn at.

/// The canvas: where the data is drawn, in pixels of the image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// Its left edge.
    pub left: f64,
    /// Its upper edge.
    pub top: f64,
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
}

/// Times and values as places on the canvas.
#[derive(Clone, Copy, Debug)]
pub struct Mapping {
    place: Place,
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
    /// The canvas shows the times of `span` (seconds since the epoch) and the values of `limits`; both go from
    /// the less to the greater. The limits of a logarithmic axis are above 0.
    pub fn new(place: Place, span: (i64, i64), limits: (f64, f64), logarithmic: bool) -> Mapping {
        let (low, high) = if logarithmic { (limits.0.log10(), limits.1.log10()) } else { limits };
        Mapping {
            place,
            start: span.0,
            across: place.width / (span.1 - span.0) as f64,
            low,
            upwards: place.height / (high - low),
            logarithmic,
        }
    }

    /// The canvas.
    pub fn place(&self) -> Place {
        self.place
    }

    /// How far `time` is from the left edge of the image. Compat: always a whole pixel, cut off towards 0.
    pub fn to_x(&self, time: i64) -> f64 {
        (self.place.left + self.across * (time - self.start) as f64).trunc()
    }

    /// How far `value` is from the upper edge of the image; beyond the canvas where the value is beyond the
    /// limits. Compat: on a logarithmic axis what is below the lower limit is at the limit.
    pub fn to_y(&self, value: f64) -> f64 {
        let value = match self.logarithmic {
            true => value.log10().max(self.low),
            false => value,
        };
        self.place.top + self.place.height - self.upwards * (value - self.low)
    }
}
