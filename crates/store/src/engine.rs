//! The store's interface, which both layouts implement: stripes and standard `.rrd` files.
//!
//! It knows no protocol: callers have already checked names (relative, normal form) and turned the times of
//! requests into numbers.

use std::ops::Range;
use std::sync::Arc;

use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::fetch::{FetchRequest, FetchRows};
use rrd::live::{HeadShape, Live};
use rrd::time::Timestamp;

use rrd::updatev::UpdateReport;
use rrd_file::name::RrdName;

use crate::capture::Capture;
pub use crate::error::StoreError;
use crate::memory;
use crate::replication::Replica;
pub use crate::segment::KeptBlocks;
pub use crate::streams::StreamPosition;
use crate::tail::{LogTail, Reach};
use crate::verify::Watch;
use crate::version::version;

/// Called exactly once with the answer, on any thread: the caller's, or one of the store's.
pub type Reply<T> = Box<dyn FnOnce(T) + Send>;

/// Asked for so many bytes of memory before an answer of unknown size takes them; refuses with false.
pub type Hold<'a> = &'a mut dyn FnMut(u64) -> bool;

/// Many updates in order of arrival: one text buffer, and the ranges of each update in it.
#[derive(Clone, Debug, Default)]
pub struct UpdateBatch {
    /// Names and values, unescaped.
    pub text: Vec<u8>,
    /// One entry per `UPDATE`.
    pub lines: Vec<UpdateLine>,
}

impl UpdateBatch {
    /// Appends a line; copies its text.
    #[inline]
    pub fn push(&mut self, name: &[u8], values: &[u8]) {
        let from = self.text.len() as u32;
        self.text.extend_from_slice(name);
        let middle = self.text.len() as u32;
        self.text.extend_from_slice(values);
        let line = UpdateLine { name: from..middle, values: middle..self.text.len() as u32 };
        self.lines.push(line);
    }

    /// Appends a line whose name of `name_length` bytes and values stand in one text, with a byte between them.
    #[inline]
    pub fn push_joined(&mut self, text: &[u8], name_length: usize) {
        let from = self.text.len() as u32;
        self.text.extend_from_slice(text);
        let middle = from + name_length as u32;
        self.lines.push(UpdateLine { name: from..middle, values: middle + 1..self.text.len() as u32 });
    }

    /// Appends a line of another batch.
    pub fn push_copy(&mut self, other: &UpdateBatch, line: &UpdateLine) {
        self.push(other.name(line), other.values(line));
    }

    /// The name of a line.
    pub fn name(&self, line: &UpdateLine) -> &[u8] {
        &self.text[line.name.start as usize..line.name.end as usize]
    }

    /// The update arguments of a line.
    pub fn values(&self, line: &UpdateLine) -> &[u8] {
        &self.text[line.values.start as usize..line.values.end as usize]
    }
}

/// One `UPDATE name value...` of a batch.
#[derive(Clone, Debug)]
pub struct UpdateLine {
    /// The name, in the normal form of [`RrdName::is_normal`].
    pub name: Range<u32>,
    /// One or more `time:value:value...` arguments separated by single spaces. A time may be `N`; the engine
    /// replaces it with its clock's time before it logs anything.
    pub values: Range<u32>,
}

/// A line of a batch that failed, entirely or from some argument on. Lines without a report were applied
/// whole.
#[derive(Debug)]
pub struct UpdateFailure {
    /// Index into [`UpdateBatch::lines`].
    pub line: u32,
    /// How many of its arguments were applied before the failing one.
    pub accepted: u32,
    /// Why that one failed; later arguments were not tried.
    pub error: StoreError,
}

/// A request to create an RRD; `rrd::definition` parses RRDtool's arguments into it.
#[derive(Clone, Debug)]
pub struct CreateRequest {
    /// The new RRD, its live head at the start time, no rows.
    pub definition: Definition,
    /// Start time in seconds since the epoch (`--start`).
    pub start: i64,
    /// `--no-overwrite`: an existing RRD of the name is an error instead of being replaced.
    pub no_overwrite: bool,
}

/// Definition and live head of an RRD at one moment: enough for INFO, LAST, FIRST and `lastupdate`.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Its definition.
    pub definition: Arc<Definition>,
    /// Its live head.
    pub live: Live,
    /// For each archive, the position in the ring buffer to report as `cur_row`.
    pub current_rows: Vec<u64>,
    /// Tells it apart from RRDs that had its name before.
    pub identity: u64,
}

impl Snapshot {
    /// The time of its last update, in its units.
    pub fn last_update(&self) -> Timestamp {
        HeadShape::of(&self.definition).split(&self.live.words).last_update
    }

    /// The version of the RRD at that moment ([`crate::version`]).
    pub fn version(&self) -> u64 {
        version(self.identity, &self.definition, &self.live)
    }
}

/// A change that is made only to a certain version of an RRD.
#[derive(Clone, Debug)]
pub enum VersionChange {
    /// Updates: arguments as in [`UpdateLine::values`].
    Update(Vec<u8>),
    /// Another RRD takes its place.
    Replace(Box<Rrd>),
}

/// A small part of an RRD's state, for requests that need neither its values nor its seasons, which are as large as its
/// live head.
#[derive(Clone, Debug)]
pub struct RrdStatus {
    /// Its definition.
    pub definition: Arc<Definition>,
    /// The time of its last update, in its units.
    pub last_update: Timestamp,
    /// Whether it has ever been updated.
    pub is_updated: bool,
}

impl RrdStatus {
    /// The status that follows from a live head's `words`.
    pub fn of(definition: Arc<Definition>, shape: &HeadShape, words: &[u64]) -> Self {
        let head = shape.split(words);
        let is_updated = head.pdp.iter().any(|pdp| pdp.last_ds.as_bytes() != b"U");
        RrdStatus { definition, last_update: head.last_update, is_updated }
    }
}

/// Chooses an archive of an RRD, by its place, and rows of it by their numbers.
pub type Choose<'a> = &'a mut dyn FnMut(&RrdStatus) -> Option<(usize, Range<i64>)>;

/// Whether the rows of two definitions are arranged alike, so that a number means the same row in both.
pub fn are_rows_alike(one: &Definition, other: &Definition) -> bool {
    let rows = |definition: &Definition| {
        definition.rra.iter().map(|rra| (rra.row_count, rra.pdp_per_row)).collect::<Vec<_>>()
    };
    one.ds.len() == other.ds.len()
        && (one.step, one.units_per_second) == (other.step, other.units_per_second)
        && rows(one) == rows(other)
}

/// Counters with the meaning rrdcached gives them, and counters of our own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Updates accepted since the start.
    pub updates_received: u64,
    /// RRD writes; in stripes, the number of RRDs touched, summed over batches.
    pub updates_written: u64,
    /// Update arguments consolidated.
    pub data_sets_written: u64,
    /// FLUSH requests.
    pub flushes_received: u64,
    /// RRDs with accepted updates that are not yet consolidated; in stripes always 0.
    pub queue_length: u64,
    /// RRDs known.
    pub rrd_count: u64,
    /// RRDs that are kept although their placeholders are missing.
    pub missing_count: u64,
    /// Removed RRDs that are kept in the trash.
    pub trash_count: u64,
    /// `.rrd` files of the tree that are still to be taken in.
    pub files_left: u64,
    /// Those that were taken in since the start without being named.
    pub files_taken: u64,
    /// How often one could not be.
    pub files_failed: u64,
    /// How often an RRD was added, removed or renamed since the start; 0 in the files layout, where other programs do that
    /// too.
    pub name_changes: u64,
    /// Update arguments refused.
    pub updates_refused: u64,
    /// Bytes of log written since the start.
    pub log_bytes_written: u64,
    /// Times the journal was rotated since the start; 0 in stripes, which have none.
    pub journal_rotations: u64,
    /// Log bytes not yet covered by a checkpoint.
    pub log_bytes_live: u64,
    /// Bytes of segments written since the start, merges included.
    pub segment_bytes_written: u64,
    /// Bytes of checkpoints written since the start.
    pub checkpoint_bytes_written: u64,
    /// Bytes of all segments now.
    pub segment_bytes: u64,
    /// Segments now.
    pub segment_count: u64,
    /// 1 while the store takes no updates (full or failing disk).
    pub read_only: u64,
}

/// The result of UPDATEV.
#[derive(Debug)]
pub struct UpdatevOutcome {
    /// The rows written, including those before a refused argument; `definition` is set.
    pub report: UpdateReport,
    /// Why the next argument was refused, if one was.
    pub refused: Option<StoreError>,
}

/// How far the files of the tree that no program names are taken in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adoption {
    /// Files that are still to be taken in.
    pub left: u64,
    /// Files taken in since the start.
    pub taken: u64,
    /// How often one could not be.
    pub failed: u64,
    /// The latest of these, with the reason.
    pub failures: Vec<(RrdName, String)>,
}

/// A removed RRD that is kept for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trashed {
    /// The name it had.
    pub name: RrdName,
    /// When it was removed, in milliseconds since the epoch; no two have the same time.
    pub removed_ms: i64,
}

/// Why nothing can be restored.
pub const NO_TRASH: &str = "it keeps no trash: removed files are gone";

/// Why no copy can be made.
pub const NO_CAPTURE: &str = "it has no moments to copy: .rrd files are changed in place";

/// Why changes cannot be followed.
pub const NO_TAIL: &str = "it has no log: .rrd files are changed in place";

/// Why a position cannot be kept.
pub const NO_STREAMS: &str = "it keeps no positions of streams: it has no journal";

/// The requests that both layouts serve. Calls that return a result may block on a shard or the disk. `update` and
/// `create` block only for back-pressure, and call their reply once the log or journal holds the change.
pub trait Engine: Send + Sync {
    /// Applies a batch in order. The reply lists the failures by line, empty when all went in.
    fn update(&self, batch: UpdateBatch, reply: Reply<Vec<UpdateFailure>>);
    /// Applies the arguments of one line, as in [`UpdateLine::values`], and lists the rows they write. A refused
    /// argument is part of the result.
    ///
    /// # Errors
    /// When there is no such RRD, or the change cannot be made durable.
    fn updatev(&self, name: &RrdName, values: &[u8]) -> Result<UpdatevOutcome, StoreError>;
    /// Creates an RRD. The reply gets an error when it exists and must not be overwritten, when the definition does not
    /// fit the layout, or when the change cannot be made durable.
    fn create(&self, name: RrdName, request: CreateRequest, reply: Reply<Result<(), StoreError>>);
    /// Checks, before it is filled, that an RRD of this definition can be imported. [`Engine::create`],
    /// [`Engine::import`] and [`Engine::tune`] check for themselves.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`].
    fn check_filled(&self, definition: &Definition) -> Result<(), StoreError> {
        memory::check_whole(definition)
    }
    /// Imports a whole RRD, replacing any of the same name unless `no_overwrite`.
    ///
    /// # Errors
    /// When it exists and must not be overwritten, is too large, or cannot be made durable.
    fn import(&self, name: RrdName, rrd: Rrd, no_overwrite: bool) -> Result<(), StoreError>;
    /// Changes an RRD by the arguments of `tune` (`rrdtune(1)`, without the file name).
    ///
    /// # Errors
    /// When there is no such RRD, `tune` refuses, or the change cannot be made durable.
    fn tune(&self, name: &RrdName, args: &[String]) -> Result<(), StoreError>;
    /// Makes a change if the RRD is of this version ([`Snapshot::version`]); returns the version that it then has.
    ///
    /// # Errors
    /// [`StoreError::Changed`] when it is of another version; else as [`Engine::updatev`] and [`Engine::import`].
    fn change(&self, _name: &RrdName, _version: u64, _change: VersionChange) -> Result<u64, StoreError> {
        Err(StoreError::Unsupported("it makes no changes on conditions"))
    }
    /// Removes an RRD: into the trash, if there is one.
    ///
    /// # Errors
    /// When there is no such RRD, or the removal cannot be made durable.
    fn delete(&self, name: &RrdName) -> Result<(), StoreError>;
    /// Renames an RRD, with its history. One that has the new name is removed.
    ///
    /// # Errors
    /// When there is no such RRD, or the change cannot be made durable.
    fn rename(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError>;
    /// Makes a copy of an RRD as it is now, independent of it from then on. One that has the new name is removed.
    ///
    /// # Errors
    /// When there is no such RRD, or the change cannot be made durable.
    fn copy(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError>;
    /// What is in the trash, by name and time.
    ///
    /// # Errors
    /// When the layout has none.
    fn trash(&self) -> Result<Vec<Trashed>, StoreError> {
        Err(StoreError::Unsupported(NO_TRASH))
    }
    /// Takes an RRD out of the trash, under its name or another one.
    ///
    /// # Errors
    /// When it is not there, an RRD has the name, or the change cannot be made durable.
    fn restore(&self, _trashed: &Trashed, _to: &RrdName) -> Result<(), StoreError> {
        Err(StoreError::Unsupported(NO_TRASH))
    }
    /// Deletes an RRD of the trash for good.
    ///
    /// # Errors
    /// When the layout has no trash, or the change cannot be made durable.
    fn erase(&self, _trashed: &Trashed) -> Result<(), StoreError> {
        Err(StoreError::Unsupported(NO_TRASH))
    }
    /// Definition and live head.
    ///
    /// # Errors
    /// When there is no such RRD, or it cannot be read.
    fn snapshot(&self, name: &RrdName) -> Result<Snapshot, StoreError>;
    /// Definition and last update; also the cheapest way to check that an RRD exists.
    ///
    /// # Errors
    /// When there is no such RRD, or it cannot be read.
    fn status(&self, name: &RrdName) -> Result<RrdStatus, StoreError> {
        let Snapshot { definition, live, .. } = self.snapshot(name)?;
        let shape = HeadShape::of(&definition);
        Ok(RrdStatus::of(definition, &shape, &live.words))
    }
    /// [`Engine::status`] for who is about to change the RRD, or is told why it was not changed. Who may do that need not be able to read it,
    /// so a client sees nothing of this answer but whether the RRD is there, and the reason.
    ///
    /// # Errors
    /// As [`Engine::status`].
    fn status_for_change(&self, name: &RrdName) -> Result<RrdStatus, StoreError> {
        self.status(name)
    }
    /// Rows from the archive that RRDtool would choose.
    ///
    /// # Errors
    /// When there is no such RRD, no archive can answer, the answer would be too large, or it cannot be read.
    fn fetch(&self, name: &RrdName, request: FetchRequest) -> Result<FetchRows, StoreError>;
    /// A whole RRD.
    ///
    /// # Errors
    /// When there is no such RRD, or it cannot be read.
    fn read(&self, name: &RrdName) -> Result<Rrd, StoreError>;
    /// Rows of the archive `rra` by their numbers ([`rrd::grid`]), for an answer that is made in parts; `of` is the
    /// definition that its first part came with. Rows that were never written are unknown; of those that have left
    /// the archive since, some may be.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRrd`] when there is none of that name whose rows are arranged as `of` says; when the rows
    /// cannot be read.
    fn rows(
        &self,
        _name: &RrdName,
        _of: &Arc<Definition>,
        _rra: usize,
        _rows: Range<i64>,
    ) -> Result<Vec<f64>, StoreError> {
        Err(StoreError::Unsupported("it does not read rows in parts"))
    }
    /// The rows of an archive that `choose` takes once it knows the RRD; of a file that is opened once for both. `None` if it takes none.
    ///
    /// # Errors
    /// As [`Engine::status`] and [`Engine::rows`].
    fn chosen_rows(&self, name: &RrdName, choose: Choose<'_>) -> Result<Option<Vec<f64>>, StoreError> {
        let status = self.status(name)?;
        let Some((rra, rows)) = choose(&status) else { return Ok(None) };
        self.rows(name, &status.definition, rra, rows).map(Some)
    }
    /// Names under a directory (`""` = all), each relative to the store, sorted; not recursive: immediate children,
    /// directories with a trailing `/`. However many there are, `hold` is asked for their memory before it is taken.
    ///
    /// # Errors
    /// When the directory does not exist or cannot be read; [`StoreError::TooLarge`] when `hold` refuses.
    fn list_within(
        &self,
        directory: &[u8],
        recursive: bool,
        hold: Hold<'_>,
    ) -> Result<Vec<Vec<u8>>, StoreError>;
    /// The same, with as much memory as it takes.
    ///
    /// # Errors
    /// When the directory does not exist or cannot be read.
    fn list(&self, directory: &[u8], recursive: bool) -> Result<Vec<Vec<u8>>, StoreError> {
        self.list_within(directory, recursive, &mut |_| true)
    }
    /// Whether there is a directory: one with RRDs in it or, in the files layout, any.
    ///
    /// # Errors
    /// When that cannot be found out.
    fn has_directory(&self, directory: &[u8]) -> Result<bool, StoreError> {
        match self.list(directory, false) {
            Err(StoreError::NoSuchRrd(_)) => Ok(false),
            listed => Ok(!listed?.is_empty()),
        }
    }
    /// Makes everything accepted so far durable; in the files layout, also writes it to this RRD's file (or to all).
    ///
    /// # Errors
    /// When a write or sync fails.
    fn flush(&self, name: Option<&RrdName>) -> Result<(), StoreError>;

    /// The same for these RRDs. One that is gone, or fails, does not keep the others from it.
    ///
    /// # Errors
    /// The first failure.
    fn flush_those(&self, names: &[RrdName]) -> Result<(), StoreError> {
        let flushed = names.iter().map(|name| match self.flush(Some(name)) {
            Err(StoreError::NoSuchRrd(_)) => Ok(()),
            flushed => flushed,
        });
        flushed.fold(Ok(()), Result::and)
    }
    /// Makes everything accepted so far durable, in the log, the journal or the files, whichever is quickest.
    ///
    /// # Errors
    /// When a write or sync fails.
    fn sync(&self) -> Result<(), StoreError> {
        self.flush(None)
    }
    /// The updates accepted for an RRD that are not yet in its file, oldest first, as `time:value:value...`, if `hold` gives
    /// the memory for them. None in a layout that consolidates updates before it answers them.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] when `hold` refuses.
    fn pending(&self, _name: &RrdName, _hold: Hold<'_>) -> Result<Vec<Vec<u8>>, StoreError> {
        Ok(Vec::new())
    }
    /// The RRDs queued for writing, in order, each with its number of buffered updates, if `hold` gives the memory for them.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] when `hold` refuses.
    fn queue(&self, _hold: Hold<'_>) -> Result<Vec<(u64, RrdName)>, StoreError> {
        Ok(Vec::new())
    }
    /// How far a stream of changes ([`crate::streams`]) has been applied; `None` when nothing is known of it.
    ///
    /// # Errors
    /// When the layout keeps no positions, or the store is stopping.
    fn stream_position(&self, _name: &[u8]) -> Result<Option<StreamPosition>, StoreError> {
        Err(StoreError::Unsupported(NO_STREAMS))
    }
    /// Records that a stream has been applied up to `position`. First everything accepted so far is made durable, and at last
    /// the record itself: what is recorded is there after any crash.
    ///
    /// # Errors
    /// When the layout keeps no positions, there are too many streams, or a write or sync fails.
    fn set_stream_position(&self, _name: &[u8], _position: StreamPosition) -> Result<(), StoreError> {
        Err(StoreError::Unsupported(NO_STREAMS))
    }
    /// Takes in the `.rrd` file that stands in the tree under a name that the store does not have: it goes into the archive and a placeholder takes
    /// its place, or it stays, as the store is told to; with `archive`, it goes in any case. False: there is no such file, or the store has
    /// the RRD.
    ///
    /// # Errors
    /// When the file cannot be taken in.
    fn adopt(&self, _name: &RrdName, _archive: bool) -> Result<bool, StoreError> {
        Ok(false)
    }
    /// How far files of the tree that no program names are taken in; `None` when that is not done.
    fn adoption(&self) -> Option<Adoption> {
        None
    }
    /// RRDs that are kept although their placeholders are missing, because too many are missing at once.
    fn missing(&self) -> Vec<RrdName> {
        Vec::new()
    }
    /// Removes these RRDs, or else writes their placeholders again; returns how many there were.
    ///
    /// # Errors
    /// When a placeholder cannot be written.
    fn settle_missing(&self, _remove: bool) -> Result<u64, StoreError> {
        Ok(0)
    }
    /// Counters.
    fn stats(&self) -> Stats;
    /// Reads every checksum of the store, from the beginning, beside everything else that it does. Does nothing in a layout
    /// without checksums.
    ///
    /// # Errors
    /// When the disk fails or the store stops.
    fn verify(&self, _watch: &mut dyn Watch) -> Result<(), StoreError> {
        Ok(())
    }
    /// Holds the store as it is at one moment, for a copy: everything answered before the call is in it.
    ///
    /// # Errors
    /// When the layout cannot do it, or the disk fails.
    fn capture(&self) -> Result<Capture, StoreError> {
        Err(StoreError::Unsupported(NO_CAPTURE))
    }
    /// The store as one whose log others follow, or that follows another; `None` in a layout that has no log.
    fn replica(&self) -> Option<&dyn Replica> {
        None
    }
    /// Follows what the store logs, of which it keeps `bytes_max` bytes in each shard for the reader.
    ///
    /// # Errors
    /// When the layout has no log.
    fn tail(&self, _reach: Reach, _bytes_max: u64) -> Result<LogTail, StoreError> {
        Err(StoreError::Unsupported(NO_TAIL))
    }
    /// Lets go of the log that was held since the start for tails to go on in ([`crate::stripes::ShardOptions::hold_log`]).
    fn release_log(&self) {}
    /// Completes everything accepted and closes the store. Idempotent.
    ///
    /// # Errors
    /// When something accepted could not be made durable.
    fn stop(&self) -> Result<(), StoreError>;
}
