//! Applies pending updates to a header in memory, for a write to the file, a fetch or an export.

use std::io;

use rrd::codec::file::{encode_live, season};
use rrd::live::{Live, Season};
use rrd::reading::Reading;
use rrd::time::Timestamp;
use rrd::update::{Scratch, UpdateError, Updater};

use crate::file::{Medium, RrdFile};
use crate::geometry::FileHeader;
use crate::rows::{PendingRows, write_seasons};

/// Largest season kept in memory: 8 million values; a year of 5-minute values is 105,120. Only a malicious
/// file has a larger one; it is refused, and none is made.
pub const SEASON_BYTES_MAX: u64 = 64 << 20;

/// The state of an RRD, loaded from its file.
#[derive(Debug)]
pub struct Loaded {
    /// Its header.
    pub header: FileHeader,
    /// Its seasons, in order of the archives.
    pub seasons: Vec<Season>,
    /// The seasons as stored in the file.
    seasons_in_file: Vec<Season>,
}

/// The outcome of applying updates.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Number of updates applied.
    pub applied: u64,
    /// Updates at or before the file's last one: written before a crash, or overtaken by another program.
    pub past: u64,
    /// Number of updates the file refused, and why the last of them was.
    pub refused: Option<(u64, UpdateError)>,
}

/// Memory that one thread reuses.
#[derive(Debug, Default)]
pub struct Workspace {
    /// For headers.
    pub bytes: Vec<u8>,
    /// Rows completed by the last [`Loaded::apply`].
    pub rows: PendingRows,
    out: Vec<u8>,
    /// For steps.
    pub scratch: Scratch,
}

impl Loaded {
    /// Reads the seasons that belong to `header`.
    ///
    /// # Errors
    /// When the file cannot be read or a season is too large.
    pub fn new(header: FileHeader, file: &RrdFile) -> io::Result<Self> {
        Self::with_seasons(header, |offset, ring| file.read_at(ring, offset))
    }

    /// As [`Loaded::new`], for a file in memory.
    ///
    /// # Errors
    /// When the bytes are too few or a season is too large.
    pub fn from_bytes(header: FileHeader, bytes: &[u8]) -> io::Result<Self> {
        Self::with_seasons(header, |offset, ring| {
            let from = bytes.get(offset as usize..).and_then(|rest| rest.get(..ring.len()));
            ring.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    fn with_seasons(header: FileHeader, read: impl Fn(u64, &mut [u8]) -> io::Result<()>) -> io::Result<Self> {
        let seasons = read_seasons(&header, read)?;
        Ok(Loaded { header, seasons_in_file: seasons.clone(), seasons })
    }

    /// The time of the last update, in seconds.
    pub fn last_update(&self) -> Timestamp {
        self.header.geometry.shape.split(&self.header.words).last_update
    }

    /// Returns the live state.
    pub fn into_live(self) -> Live {
        Live { words: self.header.words, seasons: self.seasons }
    }

    /// Applies updates in order, each given by its time and its colon-separated values; completed rows are
    /// then in [`Workspace::rows`].
    pub fn apply<'w>(
        &mut self,
        pending: impl IntoIterator<Item = (Timestamp, &'w [u8])>,
        work: &mut Workspace,
    ) -> Outcome {
        work.rows.clear();
        let geometry = std::sync::Arc::clone(&self.header.geometry);
        let mut updater = Updater {
            definition: &geometry.definition,
            shape: &geometry.shape,
            head: geometry.shape.split_mut(&mut self.header.words),
            seasons: &mut self.seasons,
            scratch: &mut work.scratch,
            sink: work.rows.sink(&geometry.layout, &mut self.header.current_rows),
        };
        let mut outcome = Outcome::default();
        let mut values = Vec::new();
        for (time, word) in pending {
            if time <= *updater.head.last_update {
                outcome.past += 1;
                continue;
            }
            values.clear();
            values.extend(word.split(|&byte| byte == b':'));
            match updater.apply(&Reading { time, values: &values }) {
                Ok(()) => outcome.applied += 1,
                Err(error) => {
                    let count = outcome.refused.map_or(0, |(count, _)| count);
                    outcome.refused = Some((count + 1, error));
                }
            }
        }
        self.place_seasons();
        outcome
    }

    /// Copies the ring positions of the seasons to the header.
    pub fn place_seasons(&mut self) {
        for season in &self.seasons {
            self.header.current_rows[season.rra] = season.current_row;
        }
    }

    /// Writes the changes made by [`Loaded::apply`]: rows, then seasons, then the live part, which makes them
    /// valid.
    ///
    /// # Errors
    /// When a write fails.
    pub fn write(&self, work: &mut Workspace, medium: &mut impl Medium) -> io::Result<()> {
        let geometry = &self.header.geometry;
        work.out.clear();
        work.rows.write(&geometry.layout, medium, &mut work.out)?;
        write_seasons(&self.seasons_in_file, &self.seasons, &geometry.layout, medium, &mut work.out)?;
        work.out.clear();
        work.out.reserve(geometry.layout.live_bytes());
        let head = geometry.shape.split(&self.header.words);
        encode_live(&geometry.definition, &geometry.shape, head, &self.header.current_rows, &mut work.out);
        medium.write_at(&work.out, geometry.layout.live_head as u64)
    }
}

/// Reads the seasons of a file; `read` fills bytes from an offset.
///
/// # Errors
/// When `read` fails or a season is too large.
pub fn read_seasons(
    header: &FileHeader,
    read: impl Fn(u64, &mut [u8]) -> io::Result<()>,
) -> io::Result<Vec<Season>> {
    let geometry = &header.geometry;
    let mut seasons = Vec::new();
    for (index, rra) in geometry.definition.rra.iter().enumerate() {
        if !rra.cf.is_season() {
            continue;
        }
        let archive = geometry.layout.archives[index];
        if archive.ring_bytes() > SEASON_BYTES_MAX {
            return Err(io::Error::other(format!("its season is larger than {SEASON_BYTES_MAX} bytes")));
        }
        let mut ring = vec![0; archive.ring_bytes() as usize];
        read(archive.offset, &mut ring)?;
        seasons.push(season(index, header.current_rows[index], &ring));
    }
    Ok(seasons)
}
