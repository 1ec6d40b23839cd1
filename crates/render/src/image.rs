//! Renders a scene in the requested format.

use std::fmt;

use graph::picture::options::ImageFormat;
use graph::picture::scene::Scene;

use crate::pdf_error::PdfError;
use crate::png::PngEncoder;
use crate::raster::{Glyphs, TooBig};
use crate::{eps, pdf, raster, svg};

/// Why a scene cannot be rendered.
#[derive(Clone, Debug, PartialEq)]
pub enum ImageError {
    /// The image has too many pixels.
    TooBig(TooBig),
    /// The PDF cannot be made.
    Pdf(PdfError),
    /// The format is one for tables.
    NoImage,
}

impl ImageError {
    /// True when this build lacks the format.
    pub fn is_missing(&self) -> bool {
        *self == ImageError::Pdf(PdfError::Missing)
    }
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

/// Kept from picture to picture: rasterised glyphs and the compressor's memory.
#[derive(Default)]
pub struct RenderCache {
    glyphs: Glyphs,
    encoder: PngEncoder,
}

/// Renders `scene` as a file of `format`.
///
/// # Errors
/// [`ImageError`].
pub fn image(scene: &Scene, format: ImageFormat, cache: &mut RenderCache) -> Result<Vec<u8>, ImageError> {
    match format {
        ImageFormat::Png => {
            let image = raster::paint(scene, &mut cache.glyphs).map_err(ImageError::TooBig)?;
            Ok(cache.encoder.encode(&image))
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
