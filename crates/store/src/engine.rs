//! The door of the store: what the rest of the house may ask of either layout.
//!
//! Two layouts stand behind it, stripes and standard `.rrd` files. Nothing here knows a protocol; names
//! are already relative and checked, times of requests are already numbers.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rrd::content::Rrd;
use rrd::definition::{Cf, Definition};
use rrd::live::Live;

use crate::direct::UpdateReport;
use crate::name::RrdName;

/// Called once, from a thread of the store, with the answer.
pub type Reply<T> = Box<dyn FnOnce(T) + Send>;

/// Many updates in the order they arrived: one buffer of text and where each update stands in it.
#[derive(Debug, Default)]
pub struct UpdateBatch {
    /// Names and values, unescaped.
    pub text: Vec<u8>,
    /// One entry per `UPDATE`.
    pub lines: Vec<UpdateLine>,
}

impl UpdateBatch {
    /// Appends a line, copying its text.
    pub fn push(&mut self, name: &[u8], values: &[u8]) {
        let from = self.text.len() as u32;
        self.text.extend_from_slice(name);
        let middle = self.text.len() as u32;
        self.text.extend_from_slice(values);
        let line = UpdateLine { name: from..middle, values: middle..self.text.len() as u32 };
        self.lines.push(line);
    }

    /// Appends a line of another batch.
    pub fn push_copy(&mut self, other: &UpdateBatch, line: &UpdateLine) {
        self.push(other.name(line), other.values(line));
    }

    /// The name of a line.
    pub fn name(&self, line: &UpdateLine) -> &[u8] {
        &self.text[line.name.start as usize..line.name.end as usize]
    }

    /// The update words of a line.
    pub fn values(&self, line: &UpdateLine) -> &[u8] {
        &self.text[line.values.start as usize..line.values.end as usize]
    }
}

/// One `UPDATE name value...` of a batch.
#[derive(Clone, Debug)]
pub struct UpdateLine {
    /// The name, in the normal form of [`RrdName::is_normal`].
    pub name: Range<u32>,
    /// One or more `time:value:value...` words parted by single spaces (the word's time may be `N`, which
    /// the engine replaces by its own clock before anything is logged).
    pub values: Range<u32>,
}

/// A line of a batch that did not go in whole. Lines not reported went in.
#[derive(Debug)]
pub struct UpdateFailure {
    /// Index into [`UpdateBatch::lines`].
    pub line: u32,
    /// How many of its words had gone in before the one that failed.
    pub accepted: u32,
    /// Why that one failed; the words behind it were not tried.
    pub error: StoreError,
}

/// What `create` needs; parsed by `rrd::definition` from RRDtool's words.
#[derive(Clone, Debug)]
pub struct CreateRequest {
    /// The new RRD, its live head at the start time, no rows.
    pub definition: Definition,
    /// Start time in seconds since the epoch (`--start`).
    pub start: i64,
    /// `--no-overwrite`: an existing RRD of the name is an error instead of being replaced.
    pub no_overwrite: bool,
}

/// Definition and live head of an RRD at one moment: enough for info, last, first and lastupdate.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// What it is.
    pub definition: Arc<Definition>,
    /// Where it stands.
    pub live: Live,
    /// For each archive, the ring position to report as `cur_row`.
    pub current_rows: Vec<u64>,
}

/// A fetch: RRDtool's own arguments, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchRequest {
    /// Consolidation function asked for.
    pub cf: Cf,
    /// First second.
    pub start: i64,
    /// Last second.
    pub end: i64,
    /// Resolution wished for, in seconds; 1 = as fine as there is.
    pub step: u64,
}

/// Rows as `fetch` returns them.
#[derive(Clone, Debug, PartialEq)]
pub struct FetchRows {
    /// Start as aligned by RRDtool's rules; the first row's time is `start + step`.
    pub start: i64,
    /// Time of the last row.
    pub end: i64,
    /// Seconds between rows.
    pub step: u64,
    /// Units per second of `start`, `end` and `step`: 1, or 1000 for a sub-second RRD.
    pub units_per_second: u32,
    /// Names of the data sources.
    pub ds_names: Vec<String>,
    /// `ds_names.len()` values a row, row-major.
    pub values: Vec<f64>,
}

/// Counters with rrdcached's meaning, and our own beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Updates accepted since the start.
    pub updates_received: u64,
    /// RRD writes; in stripes, RRDs touched by a batch.
    pub updates_written: u64,
    /// Values (update words) consolidated.
    pub data_sets_written: u64,
    /// FLUSH requests.
    pub flushes_received: u64,
    /// RRDs with accepted updates that are not yet consolidated. Always 0 in stripes once answered.
    pub queue_length: u64,
    /// RRDs known.
    pub rrd_count: u64,
    /// Update words refused.
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

/// What became of an update whose rows are listed.
#[derive(Debug)]
pub struct Listed {
    /// The rows, also those in front of a refused word; `definition` is there.
    pub report: UpdateReport,
    /// Why the word behind those that went in was refused.
    pub refused: Option<StoreError>,
}

/// Why the store could not do what was asked.
#[derive(Debug, Clone, PartialEq)]
pub enum StoreError {
    /// No RRD of this name.
    NoSuchRrd(RrdName),
    /// `--no-overwrite`, and there is one.
    Exists(RrdName),
    /// The update was refused; the text is RRDtool's.
    Update(rrd::update::UpdateError),
    /// A definition, tune or fetch was refused; the text is RRDtool's.
    Refused(String),
    /// The disk is full; goes on by itself when there is room.
    DiskFull,
    /// A write or sync failed: no more writes until the store is opened again.
    Poisoned(String),
    /// Reading failed; names file and offset.
    Damaged(String),
    /// The operating system said no; names the file.
    Io(String),
    /// This layout cannot do it.
    Unsupported(&'static str),
    /// The store is stopping.
    Stopping,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::NoSuchRrd(_) => f.write_str("No such file or directory"),
            StoreError::Exists(_) => f.write_str("File exists"),
            StoreError::Update(error) => write!(f, "{error}"),
            StoreError::Refused(text)
            | StoreError::Poisoned(text)
            | StoreError::Damaged(text)
            | StoreError::Io(text) => f.write_str(text),
            StoreError::DiskFull => f.write_str("No space left on device"),
            StoreError::Unsupported(what) => f.write_str(what),
            StoreError::Stopping => f.write_str("the daemon is stopping"),
        }
    }
}

impl std::error::Error for StoreError {}

/// What both layouts do. Blocking calls may wait for a shard or the disk; `update` and `create` do not
/// block except for back-pressure, and answer through their reply when the log holds the change.
pub trait Engine: Send + Sync {
    /// Applies a batch in order. The reply lists the failures by line, empty when all went in.
    fn update(&self, batch: UpdateBatch, reply: Reply<Vec<UpdateFailure>>);
    /// Applies the words of one line, as [`UpdateLine::values`], and lists the rows they write.
    fn update_listed(&self, name: &RrdName, values: &[u8]) -> Result<Listed, StoreError>;
    /// Makes an RRD.
    fn create(&self, name: RrdName, request: CreateRequest, reply: Reply<Result<(), StoreError>>);
    /// Takes in a whole RRD, replacing one of the name unless `no_overwrite`.
    fn import(&self, name: RrdName, rrd: Rrd, no_overwrite: bool) -> Result<(), StoreError>;
    /// Changes an RRD by `tune`'s words (`rrdtune(1)`, without the file name).
    fn tune(&self, name: &RrdName, words: &[String]) -> Result<(), StoreError>;
    /// Removes an RRD for good.
    fn delete(&self, name: &RrdName) -> Result<(), StoreError>;
    /// Definition and live head.
    fn snapshot(&self, name: &RrdName) -> Result<Snapshot, StoreError>;
    /// Rows by RRDtool's choice of archive.
    fn fetch(&self, name: &RrdName, request: FetchRequest) -> Result<FetchRows, StoreError>;
    /// Everything there is of one RRD.
    fn read(&self, name: &RrdName) -> Result<Rrd, StoreError>;
    /// Names under a directory (`""` = all), each relative to the store; not recursive: immediate children,
    /// directories with a trailing `/`.
    fn list(&self, directory: &[u8], recursive: bool) -> Result<Vec<Vec<u8>>, StoreError>;
    /// Makes everything accepted so far durable and, in the files layout, written to this RRD (or to all).
    fn flush(&self, name: Option<&RrdName>) -> Result<(), StoreError>;
    /// The updates accepted for an RRD that are not yet in its file, oldest first, as `time:value:value...`.
    /// Nothing waits where what is answered is consolidated.
    fn pending(&self, _name: &RrdName) -> Vec<Vec<u8>> {
        Vec::new()
    }
    /// The RRDs that wait for a writer, first the next, with how many updates wait for each.
    fn queue(&self) -> Vec<(u64, RrdName)> {
        Vec::new()
    }
    /// Counters.
    fn stats(&self) -> Stats;
    /// Finishes what was accepted and closes. Idempotent.
    fn stop(&self) -> Result<(), StoreError>;
}
