//! Files that were open, or are about to be: their bytes are used again while the RRD is unchanged.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::store::Image;

/// Bytes that are kept.
const BYTES_MAX: usize = 16 << 20;

/// Images by path, the ones used last.
#[derive(Debug, Default)]
pub struct Images {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    images: HashMap<Vec<u8>, Image>,
    /// Paths in the order in which they were put; some may be gone.
    order: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Images {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the image of a path, if it is kept.
    pub fn take(&self, path: &[u8]) -> Option<Image> {
        self.lock().take(path)
    }

    /// Keeps the image of a path.
    pub fn put(&self, path: Vec<u8>, image: Image) {
        if image.bytes.len() > BYTES_MAX / 4 {
            return;
        }
        let mut kept = self.lock();
        kept.take(&path);
        kept.bytes += image.bytes.len();
        kept.images.insert(path.clone(), image);
        kept.order.push_back(path);
        while kept.bytes > BYTES_MAX || kept.order.len() > 2 * kept.images.len() + 16 {
            let Some(oldest) = kept.order.pop_front() else { break };
            // A path may have been put again since.
            if !kept.order.contains(&oldest) {
                kept.take(&oldest);
            }
        }
    }
}

impl Kept {
    fn take(&mut self, path: &[u8]) -> Option<Image> {
        let image = self.images.remove(path)?;
        self.bytes -= image.bytes.len();
        Some(image)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use protocol::rrdcached::files::FileStat;

    use super::*;

    fn image(version: u64, bytes: usize) -> Image {
        let stat = FileStat { bytes: bytes as u64, modified: (0, 0), rights: None };
        Image { stat, version, bytes: Arc::new(vec![0; bytes]) }
    }

    #[test]
    fn the_last_ones_are_kept() {
        let images = Images::default();
        for number in 0..100_u64 {
            images.put(number.to_string().into_bytes(), image(number, BYTES_MAX / 10));
        }
        assert!(images.take(b"0").is_none());
        assert!(images.lock().bytes <= BYTES_MAX);
        assert_eq!(images.take(b"99").map(|image| image.version), Some(99));
        assert!(images.take(b"99").is_none());
        // One that is used again and again is not in the list again and again.
        for number in 0..10_000 {
            images.put(b"x".to_vec(), image(number, 10));
            assert!(images.take(b"x").is_some());
        }
        assert!(images.lock().order.len() < 100);
        images.put(b"large".to_vec(), image(1, BYTES_MAX / 2));
        assert!(images.take(b"large").is_none());
    }
}
