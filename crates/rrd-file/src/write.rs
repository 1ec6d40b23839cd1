//! A file opened for changes other than updates: `tune`.

use std::path::Path;
use std::sync::Arc;

use rrd::codec::file::encode_head;
use rrd::tune::{is_structural, tune, tune_content};

use crate::create::{Existing, create_filled_on};
use crate::file::{Access, Medium};
use crate::rows::write_seasons;
use crate::{Error, Locking, ReadFile, Volume};

/// An open file under an exclusive lock, with its header read. Unlocked when dropped.
#[derive(Debug)]
pub struct WriteFile {
    file: ReadFile,
}

impl WriteFile {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// As [`ReadFile::open`].
    pub fn open(path: &Path, locking: Locking) -> Result<WriteFile, Error> {
        Self::open_on(&Volume::System, path, locking)
    }

    /// As [`WriteFile::open`], on any volume.
    ///
    /// # Errors
    /// As [`ReadFile::open`].
    pub fn open_on(volume: &Volume, path: &Path, locking: Locking) -> Result<WriteFile, Error> {
        Ok(WriteFile { file: ReadFile::open_as(volume, path, Access::Write, locking)? })
    }

    /// Its content.
    pub fn content(&self) -> &ReadFile {
        &self.file
    }

    /// Changes the RRD by the arguments that `rrdtune(1)` takes after the file name: settings in place; data
    /// sources and archives by writing a new file.
    ///
    /// # Errors
    /// [`Error::Tune`] (nothing has changed), and those of reading and writing.
    pub fn tune(mut self, words: &[&str]) -> Result<(), Error> {
        let (volume, path) = (self.file.opened.volume.clone(), self.file.opened.path.clone());
        let geometry = Arc::clone(&self.file.header.geometry);
        if is_structural(words) {
            let mut rrd = self.file.content()?.rrd;
            tune_content(&mut rrd, words).map_err(Error::Tune)?;
            return create_filled_on(&volume, &path, &rrd, Existing::Replace);
        }
        let before = self.file.live()?;
        let (mut definition, mut live) = ((*geometry.definition).clone(), before.clone());
        tune(&mut definition, &mut live, words).map_err(Error::Tune)?;
        let mut front = Vec::new();
        let head = geometry.shape.split(&live.words);
        encode_head(&definition, &geometry.shape, head, self.file.current_rows(), &mut front)
            .map_err(|error| Error::File { path: path.clone(), error })?;
        if front.len() != geometry.layout.header_bytes {
            // A version 1 or 2 file that becomes version 4: the header grows, so everything moves.
            let mut rrd = self.file.content()?.rrd;
            (rrd.definition, rrd.live) = (definition, live);
            return create_filled_on(&volume, &path, &rrd, Existing::Replace);
        }
        let io = |error| Error::io(&path, error);
        let file = self.file.opened.file();
        write_seasons(&before.seasons, &live.seasons, &geometry.layout, file, &mut Vec::new()).map_err(io)?;
        file.write_at(&front, 0).map_err(io)
    }
}
