//! Why there is no graph.

use std::fmt;

use graph::eval::EvalError;
use graph::language::LanguageError;
use graph::picture::compose::DrawError;
use graph::picture::image_info::ImageInfoError;
use graph::picture::options::parse::OptionsError;
use graph::print::PrintError;
use graph::xport::XportError;
use render::ImageError;

/// Why there is no graph. `Display` is RRDtool's text, where RRDtool has one.
#[derive(Debug)]
pub enum Error {
    /// An option.
    Options(OptionsError),
    /// An element.
    Language(LanguageError),
    /// The picture has too many columns for its shapes ([`Limits::values_max`](crate::Limits::values_max)).
    TooManyValues {
        /// How many lines, areas and ticks there are.
        shapes: usize,
        /// Columns of each.
        width: u32,
    },
    /// The image is too large ([`Limits::pixels_max`](crate::Limits::pixels_max)).
    TooManyPixels {
        /// In pixels before zoom.
        width: i64,
        /// In pixels before zoom.
        height: i64,
        /// The factor for both.
        zoom: f64,
    },
    /// The time is over ([`Limits::deadline`](crate::Limits::deadline)).
    Deadline,
    /// Rows, or a variable.
    Eval(EvalError),
    /// The picture.
    Draw(DrawError),
    /// A text of a table.
    Print(PrintError),
    /// A table.
    Xport(XportError),
    /// The image.
    Image(ImageError),
    /// The format of `--imginfo`.
    ImageInfo(ImageInfoError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Options(error) => error.fmt(f),
            Error::Language(error) => error.fmt(f),
            Error::TooManyValues { .. } => f.write_str("malloc data_proc"),
            Error::TooManyPixels { width, height, zoom } => {
                write!(f, "an image of {width}x{height} pixels times {zoom} is too large")
            }
            Error::Deadline => f.write_str("the time for it is over"),
            Error::Eval(error) => error.fmt(f),
            Error::Draw(error) => error.fmt(f),
            Error::Print(error) => error.fmt(f),
            Error::Xport(error) => error.fmt(f),
            Error::Image(error) => error.fmt(f),
            Error::ImageInfo(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

macro_rules! from {
    ($($variant:ident: $error:ty),* $(,)?) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Error {
                Error::$variant(error)
            }
        })*
    };
}

from! {
    Options: OptionsError,
    Language: LanguageError,
    Eval: EvalError,
    Draw: DrawError,
    Print: PrintError,
    Xport: XportError,
    Image: ImageError,
    ImageInfo: ImageInfoError,
}
