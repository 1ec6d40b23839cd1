//! A file opened for reading: its header, some of its rows, or all of it.

use std::path::Path;
use std::sync::Arc;

use rrd::codec::file::{FileParts, decode};
use rrd::definition::Definition;
use rrd::live::{Live, UNKNOWN};
use rrd::plan::Plan;
use rrd::time::Timestamp;

use crate::file::Access;
use crate::geometry::FileHeader;
use crate::open::Opened;
use crate::{Error, Locking, Volume};

/// Largest file that is read whole. Guessed; RRDtool maps files of any size.
const READ_BYTES_MAX: u64 = 16 << 30;

/// An open file under a shared lock, with its header read. Unlocked when dropped.
#[derive(Debug)]
pub struct ReadFile {
    pub(crate) opened: Opened,
    pub(crate) header: FileHeader,
}

impl ReadFile {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// [`Error::Open`], [`Error::Map`], [`Error::Locked`], [`Error::File`],
    /// [`Error::Placeholder`], [`Error::Io`].
    pub fn open(path: &Path, locking: Locking) -> Result<ReadFile, Error> {
        Self::open_on(&Volume::System, path, locking)
    }

    /// As [`ReadFile::open`], on any volume.
    ///
    /// # Errors
    /// As [`ReadFile::open`].
    pub fn open_on(volume: &Volume, path: &Path, locking: Locking) -> Result<ReadFile, Error> {
        Self::open_as(volume, path, Access::Read, locking)
    }

    pub(crate) fn open_as(
        volume: &Volume,
        path: &Path,
        access: Access,
        locking: Locking,
    ) -> Result<ReadFile, Error> {
        let opened = Opened::open(volume, path, access, locking)?;
        let header = opened.header(None, &mut Vec::new())?;
        Ok(ReadFile { opened, header })
    }

    /// Its definition.
    pub fn definition(&self) -> &Arc<Definition> {
        &self.header.geometry.definition
    }

    /// The time of its last update.
    pub fn last_update(&self) -> Timestamp {
        self.header.geometry.shape.split(&self.header.words).last_update
    }

    /// For each archive, the ring position of its newest row (`rra[n].cur_row` of `info`).
    pub fn current_rows(&self) -> &[u64] {
        &self.header.current_rows
    }

    /// Its live state; reads the seasons if there are any.
    ///
    /// # Errors
    /// [`Error::Io`], also for an impossibly large season.
    pub fn live(&self) -> Result<Live, Error> {
        let seasons = self.opened.seasons(&self.header)?;
        Ok(Live { words: self.header.words.clone(), seasons })
    }

    /// The rows of a plan, row-major, one value per data source; unknown where the archive has none. `plan`
    /// must come from this file's definition and last update ([`rrd::plan::plan`]).
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn fetch(&self, plan: &Plan) -> Result<Vec<f64>, Error> {
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

    /// The whole content of the file.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::File`], [`Error::TooLarge`].
    pub fn content(&self) -> Result<FileParts, Error> {
        let bytes = self.header.geometry.layout.file_bytes;
        if bytes > READ_BYTES_MAX {
            return Err(Error::TooLarge { path: self.opened.path.clone(), bytes });
        }
        let mut whole = vec![0; bytes as usize];
        self.opened.expect_whole();
        self.opened.reader().read_at(&mut whole, 0).map_err(|error| Error::io(&self.opened.path, error))?;
        decode(&whole).map_err(|error| Error::File { path: self.opened.path.clone(), error })
    }
}
