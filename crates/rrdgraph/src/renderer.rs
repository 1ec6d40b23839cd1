//! What images are painted with.

use std::sync::{Mutex, PoisonError};

use graph::picture::options::ImageFormat;
use graph::picture::scene::Scene;
use render::{Fonts, ImageError, RenderCache};

/// Fonts and caches that images are painted with. One is enough for a process; threads share it. Empty until the
/// first picture.
#[derive(Default)]
pub struct Renderer {
    fonts: Fonts,
    /// One for each thread that has painted at the same time.
    caches: Mutex<Vec<RenderCache>>,
}

impl Renderer {
    /// The fonts of this host.
    pub(crate) fn fonts(&self) -> &Fonts {
        &self.fonts
    }

    /// Writes `scene` in `format`.
    ///
    /// # Errors
    /// [`ImageError`].
    pub fn paint(&self, scene: &Scene, format: ImageFormat) -> Result<Vec<u8>, ImageError> {
        let caches = || self.caches.lock().unwrap_or_else(PoisonError::into_inner);
        let mut cache = caches().pop().unwrap_or_default();
        let image = render::image(scene, format, &mut cache);
        caches().push(cache);
        image
    }
}
