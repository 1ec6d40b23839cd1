//! Definitions of `.rrd` files, shared by all files whose definition part has the same bytes.
//!
//! A tree of a hundred thousand files usually has a handful of definitions. For a known one, opening a file
//! takes a comparison of bytes instead of parsing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use rrd::codec::file::{FileError, FileLayout, decode_head, decode_live, definition_bytes};
use rrd::definition::Definition;
use rrd::live::HeadShape;

/// Everything derived from the definition part of a file.
#[derive(Debug)]
pub struct Geometry {
    /// The file's bytes before its live part.
    fixed: Box<[u8]>,
    /// The definition they encode.
    pub definition: Arc<Definition>,
    /// The layout of a live head in memory.
    pub shape: HeadShape,
    /// The layout of the file.
    pub layout: FileLayout,
}

/// The header of one file: its geometry and what updates change.
#[derive(Debug)]
pub struct FileHeader {
    /// Its geometry.
    pub geometry: Arc<Geometry>,
    /// The words of its live head.
    pub words: Vec<u64>,
    /// For each archive, the ring position of its newest row.
    pub current_rows: Vec<u64>,
}

impl FileHeader {
    fn read(geometry: Arc<Geometry>, bytes: &[u8], file_bytes: u64) -> Result<Self, FileError> {
        let should_be = geometry.layout.file_bytes;
        if should_be > file_bytes {
            return Err(FileError::TooSmall { should_be });
        }
        let (words, current_rows) =
            decode_live(bytes, &geometry.definition, &geometry.shape, &geometry.layout)?;
        Ok(FileHeader { geometry, words, current_rows })
    }
}

type Known = HashMap<Box<[u8]>, Arc<Geometry>>;

/// The geometries in use.
#[derive(Debug)]
pub struct Geometries {
    known: Mutex<Known>,
    /// Beyond this number, unused ones are dropped before another is added.
    known_max: usize,
}

impl Default for Geometries {
    fn default() -> Self {
        Geometries::new(usize::MAX)
    }
}

impl Geometries {
    /// An empty collection that keeps at most `known_max` unused geometries.
    pub fn new(known_max: usize) -> Self {
        Geometries { known: Mutex::default(), known_max }
    }

    /// Parses the header of a file of `file_bytes` bytes; `hint` is the geometry it had last time.
    ///
    /// # Errors
    /// When the header is invalid.
    pub fn read(
        &self,
        bytes: &[u8],
        file_bytes: u64,
        hint: Option<&Arc<Geometry>>,
    ) -> Result<FileHeader, FileError> {
        if let Some(geometry) = hint.filter(|geometry| bytes.starts_with(&geometry.fixed)) {
            return FileHeader::read(Arc::clone(geometry), bytes, file_bytes);
        }
        let fixed = bytes.get(..definition_bytes(bytes, file_bytes)?).unwrap_or(bytes);
        let known = self.lock().get(fixed).cloned();
        if let Some(geometry) = known {
            return FileHeader::read(geometry, bytes, file_bytes);
        }
        let head = decode_head(bytes, file_bytes)?;
        let geometry = Arc::new(Geometry {
            fixed: fixed.into(),
            shape: HeadShape::of(&head.definition),
            definition: Arc::new(head.definition),
            layout: head.layout,
        });
        let mut known = self.lock();
        if known.len() >= self.known_max {
            known.retain(|_, geometry| Arc::strong_count(geometry) > 1);
        }
        let geometry = Arc::clone(known.entry(fixed.into()).or_insert(geometry));
        Ok(FileHeader { geometry, words: head.words, current_rows: head.current_rows })
    }

    /// Drops the geometries that no RRD uses any more.
    pub fn shrink(&self) {
        self.lock().retain(|_, geometry| Arc::strong_count(geometry) > 1);
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // The map is valid even after a panic: entries are added whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
