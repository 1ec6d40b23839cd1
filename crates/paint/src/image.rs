//! A scene in the format that was asked for.

use std::fmt;

use graph::picture::options::ImageFormat;
use graph::picture::scene::Scene;

use crate::pdf::PdfError;
use crate::png::Press;
use crate::raster::{Glyphs, TooBig};
use crate::{eps, pdf, raster, svg};

/// Why there is no image.
#[derive(Clone, Debug, PartialEq)]
pub enum ImageError {
    /// More pixels than there may be.
    TooBig(TooBig),
    /// A PDF.
    Pdf(PdfError),
    /// The format is a table's.
    NoImage,
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImageError::TooBig(error) => error.fmt(f),
            ImageError::Pdf(error) => error.fmt(f),
            ImageError::NoImage => f.write_str("this format is a table's and not an image's"),
        }
    }
}

impl std::error::Error for ImageError {}

/// What pictures are made with and leave for the next one: what glyphs look like, and memory.
#[derive(Default)]
pub struct Kit {
    glyphs: Glyphs,
    press: Press,
}

/// The file of `scene`.
///
/// # Errors
/// [`ImageError`].
pub fn image(scene: &Scene, format: ImageFormat, kit: &mut Kit) -> Result<Vec<u8>, ImageError> {
    match format {
        ImageFormat::Png => {
            let image = raster::paint(scene, &mut kit.glyphs).map_err(ImageError::TooBig)?;
            Ok(kit.press.encode(&image))
        }
        ImageFormat::Svg => Ok(svg(scene)),
        ImageFormat::Eps => Ok(eps(scene)),
        ImageFormat::Pdf => pdf(scene).map_err(ImageError::Pdf),
        ImageFormat::Xml
        | ImageFormat::XmlEnum
        | ImageFormat::Json
        | ImageFormat::JsonTime
        | ImageFormat::Csv
        | ImageFormat::Tsv
        | ImageFormat::Ssv => Err(ImageError::NoImage),
    }
}
