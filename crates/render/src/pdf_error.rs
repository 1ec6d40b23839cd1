//! Why a PDF cannot be made.

use std::fmt;

/// Why a PDF cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PdfError {
    /// A font of this family cannot be embedded.
    Font(String),
    /// The page would be too large or too small: width and height in points.
    Size(String),
    /// The library's message.
    Document(String),
    /// This build has no PDF.
    Missing,
}

impl fmt::Display for PdfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PdfError::Font(family) => write!(f, "cannot embed the font \"{family}\" in a PDF"),
            PdfError::Size(size) => write!(f, "cannot make a PDF page of {size} points"),
            PdfError::Document(cause) => write!(f, "cannot make a PDF: {cause}"),
            PdfError::Missing => f.write_str(&args::feature::missing("PDF", "pdf")),
        }
    }
}

impl std::error::Error for PdfError {}
