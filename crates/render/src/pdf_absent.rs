//! In place of `pdf.rs` in a build without the feature `pdf`.

use graph::picture::scene::Scene;

use crate::pdf_error::PdfError;

/// Refuses: this build has no PDF.
///
/// # Errors
/// [`PdfError::Missing`].
pub fn pdf(_scene: &Scene) -> Result<Vec<u8>, PdfError> {
    Err(PdfError::Missing)
}
