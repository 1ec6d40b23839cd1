//! A file opened to be read: its header, some of its rows, or all of it.

use std::path::Path;
use std::sync::Arc;

use rrd::codec::file::{FileParts, decode};
use rrd::definition::Definition;
use rrd::live::{Live, UNKNOWN};
use rrd::plan::Plan;
use rrd::time::Timestamp;

use crate::direct::open::Opened;
use crate::direct::{DirectError, Locking};
use crate::files::geometry::FileHeader;
use crate::files::medium::Access;

/// Largest file that is read whole. Guessed; RRDtool maps what there is.
const READ_BYTES_MAX: u64 = 16 << 30;

/// An open file under a shared lock, with its header read. Unlocked when dropped.
#[derive(Debug)]
pub struct ReadFile {
    pub(super) opened: Opened,
    pub(super) header: FileHeader,
}

impl ReadFile {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// [`DirectError::Open`], [`DirectError::Map`], [`DirectError::Locked`], [`DirectError::File`],
    /// [`DirectError::Placeholder`], [`DirectError::Io`].
    pub fn open(path: &Path, locking: Locking) -> Result<ReadFile, DirectError> {
        Self::open_as(path, Access::Read, locking)
    }

    pub(super) fn open_as(path: &Path, access: Access, locking: Locking) -> Result<ReadFile, DirectError> {
        let opened = Opened::open(path, access, locking)?;
        let header = opened.header(None, &mut Vec::new())?;
        Ok(ReadFile { opened, header })
    }

    /// What the RRD is.
    pub fn definition(&self) -> &Arc<Definition> {
        &self.header.geometry.definition
    }

    /// When it was last updated.
    pub fn last_update(&self) -> Timestamp {
        self.header.geometry.shape.split(&self.header.words).last_update
    }

    /// For each archive the ring position of its newest row (`rra[n].cur_row` of `info`).
    pub fn current_rows(&self) -> &[u64] {
        &self.header.current_rows
    }

    /// Its live state; reads the seasons when there are some.
    ///
    /// # Errors
    /// [`DirectError::Io`], also for a season of more bytes than any real one has.
    pub fn live(&self) -> Result<Live, DirectError> {
        let seasons = self.opened.seasons(&self.header)?;
        Ok(Live { words: self.header.words.clone(), seasons })
    }

    /// The rows of a plan, row-major, one value a data source; unknown where the archive has none.
    /// `plan` is one of this file's definition and last update ([`rrd::plan::plan`]).
    ///
    /// # Errors
    /// [`DirectError::Io`].
    pub fn fetch(&self, plan: &Plan) -> Result<Vec<f64>, DirectError> {
        let definition = self.definition();
        let ds_count = definition.ds.len();
        let mut values = vec![UNKNOWN; (plan.rows.end - plan.rows.start) as usize * ds_count];
        let newest = definition.newest_row(plan.rra, self.last_update().whole);
        let oldest = newest - definition.rra[plan.rra].row_count as i64 + 1;
        let (from, to) = (plan.rows.start.max(oldest), plan.rows.end.min(newest + 1));
        if from < to {
            let at = (from - plan.rows.start) as usize * ds_count;
            let window = &mut values[at..at + (to - from) as usize * ds_count];
            self.opened.window(&self.header, plan.rra, (newest - from) as u64, window)?;
        }
        Ok(values)
    }

    /// Everything there is in the file.
    ///
    /// # Errors
    /// [`DirectError::Io`], [`DirectError::File`], [`DirectError::TooLarge`].
    pub fn content(&self) -> Result<FileParts, DirectError> {
        let bytes = self.header.geometry.layout.file_bytes;
        if bytes > READ_BYTES_MAX {
            return Err(DirectError::TooLarge { path: self.opened.path.clone(), bytes });
        }
        let mut whole = vec![0; bytes as usize];
        self.opened.expect_whole();
        self.opened
            .reader()
            .read_at(&mut whole, 0)
            .map_err(|error| DirectError::io(&self.opened.path, error))?;
        decode(&whole).map_err(|error| DirectError::File { path: self.opened.path.clone(), error })
    }
}
