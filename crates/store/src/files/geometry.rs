//! Definitions of `.rrd` files, kept once for all files whose definition part has the same bytes.
//!
//! A tree of a hundred thousand files usually has a handful of definitions. Knowing them, opening a file
//! again is a comparison of bytes instead of a parse.

use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;
use rrd::codec::file::{FileError, FileLayout, decode_head, decode_live};
use rrd::definition::Definition;
use rrd::live::HeadShape;

/// Everything that follows from the definition part of a file.
#[derive(Debug)]
pub struct Geometry {
    /// The file's bytes before its live part.
    fixed: Box<[u8]>,
    /// What they say.
    pub definition: Arc<Definition>,
    /// How a live head is laid out in memory.
    pub shape: HeadShape,
    /// How the file is laid out.
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

/// The geometries in use.
#[derive(Debug, Default)]
pub struct Geometries {
    known: Mutex<HashMap<Box<[u8]>, Arc<Geometry>>>,
}

impl Geometries {
    /// Reads a header of a file of `file_bytes` bytes; `hint` is the geometry it had last time.
    pub fn read(
        &self,
        bytes: &[u8],
        file_bytes: u64,
        hint: Option<&Arc<Geometry>>,
    ) -> Result<FileHeader, FileError> {
        if let Some(geometry) = hint.filter(|geometry| bytes.starts_with(&geometry.fixed)) {
            let should_be = geometry.layout.file_bytes;
            if should_be > file_bytes {
                return Err(FileError::TooSmall { should_be });
            }
            let (words, current_rows) = decode_live(bytes, &geometry.definition, &geometry.layout)?;
            return Ok(FileHeader { geometry: Arc::clone(geometry), words, current_rows });
        }
        let head = decode_head(bytes, file_bytes)?;
        let fixed = &bytes[..head.layout.live_head];
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let geometry = match known.get(fixed) {
            Some(geometry) => Arc::clone(geometry),
            None => {
                let geometry = Arc::new(Geometry {
                    fixed: fixed.into(),
                    shape: HeadShape::of(&head.definition),
                    definition: Arc::new(head.definition),
                    layout: head.layout,
                });
                known.insert(fixed.into(), Arc::clone(&geometry));
                geometry
            }
        };
        Ok(FileHeader { geometry, words: head.words, current_rows: head.current_rows })
    }

    /// Forgets what no RRD uses any more.
    pub fn shrink(&self) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, geometry| Arc::strong_count(geometry) > 1);
    }
}
