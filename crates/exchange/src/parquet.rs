//! A data set of Parquet files, partitioned by day (or month) and tree, as DuckDB, pandas and Spark read it.
//!
//! RRDs are read one after the other, partitions are written one after the other: what was read waits in a file for each
//! partition in between, so that memory is bounded whatever the number of RRDs. A partition is written beside its place
//! and renamed. Rows that are in it already stay, also when the RRD has lost them since: history in a data set outlives
//! the archive that it came from.

mod file;
mod spill;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::rows::{Archives, MS, Run, Selection, leave_out};
use rrd::definition::Cf;
use spill::Spill;

/// The file of a partition.
pub const FILE_NAME: &str = "roundel.parquet";
/// The partition of RRDs in no directory, as Hive calls a missing value.
const NO_TREE: &str = "__HIVE_DEFAULT_PARTITION__";
/// Where rows wait, in the data set's directory; readers pass over what begins with a dot.
const WAITING: &str = ".roundel-export";
/// Memory for rows that wait, in bytes. Guessed: some hundred partitions are appended to in pieces of a megabyte.
const WAITING_BYTES_MAX: usize = 128 << 20;
/// Milliseconds in a day.
const DAY_MS: i64 = 86_400 * MS;

/// What the partitions of a data set are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partitions {
    /// A month each instead of a day.
    pub by_month: bool,
    /// One for each first directory of the names.
    pub by_tree: bool,
}

/// A partition: the first day of its period since the epoch, and its tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Partition {
    day: i64,
    tree: Option<String>,
}

/// Rows of one data source and function.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    name: String,
    ds: String,
    cf: Cf,
    /// By step, the finest first.
    runs: Vec<Run>,
}

impl Group {
    fn key(&self) -> (&str, &str, &str) {
        (&self.name, &self.ds, self.cf.name())
    }
}

/// Why a data set cannot be written.
#[derive(Debug)]
pub enum DatasetError {
    /// A file or directory cannot be used.
    Io(PathBuf, io::Error),
    /// A file of a partition cannot be read or written as Parquet.
    Parquet(PathBuf, String),
    /// Another export writes the same data set.
    InUse(PathBuf),
    /// A name is no text, which columns of names are.
    Name(String),
}

impl fmt::Display for DatasetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatasetError::Io(path, error) => write!(f, "cannot use \"{}\": {error}", path.display()),
            DatasetError::Parquet(path, why) => write!(
                f,
                "cannot use \"{}\": {why}; if it is damaged or not an export's, move it away",
                path.display()
            ),
            DatasetError::InUse(path) => {
                write!(f, "\"{}\" is being written by another export; wait until it ends", path.display())
            }
            DatasetError::Name(name) => {
                write!(f, "the name {name} is not UTF-8, which Parquet's texts are; rename the RRD")
            }
        }
    }
}

impl std::error::Error for DatasetError {}

/// What became of a data set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Partitions written.
    pub written: u64,
    /// Partitions that had it all already.
    pub unchanged: u64,
    /// Rows in the partitions written.
    pub rows: u64,
}

/// A data set while RRDs are added.
#[derive(Debug)]
pub struct Dataset {
    directory: PathBuf,
    partitions: Partitions,
    archives: Archives,
    waiting: BTreeMap<Partition, Spill>,
    /// Bytes of all that wait in memory.
    held: usize,
    /// Locked as long as this lives.
    _lock: File,
}

impl Dataset {
    /// Begins, in a directory that is made if it is not there.
    ///
    /// # Errors
    /// When it cannot be made or another export uses it.
    pub fn open(
        directory: &Path,
        partitions: Partitions,
        selection: &Selection,
    ) -> Result<Self, DatasetError> {
        let waiting = directory.join(WAITING);
        let failed = |error| DatasetError::Io(waiting.clone(), error);
        fs::create_dir_all(&waiting).map_err(failed)?;
        let lock = File::create(waiting.join("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(DatasetError::InUse(directory.to_path_buf())),
            Err(fs::TryLockError::Error(error)) => return Err(failed(error)),
        }
        // What an export that was ended left.
        for entry in fs::read_dir(&waiting).map_err(failed)?.flatten() {
            if entry.file_name() != "lock" {
                fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        Ok(Dataset {
            directory: directory.to_path_buf(),
            partitions,
            archives: selection.archives,
            waiting: BTreeMap::new(),
            held: 0,
            _lock: lock,
        })
    }

    /// Adds the rows of one RRD. RRDs come in the order of their names.
    ///
    /// # Errors
    /// [`DatasetError::Name`], after which others may follow; when the disk fails.
    pub fn add(&mut self, name: &[u8], runs: &[Run]) -> Result<(), DatasetError> {
        let Ok(name) = std::str::from_utf8(name) else {
            return Err(DatasetError::Name(format!("\"{}\"", name.escape_ascii())));
        };
        let tree = name.split_once('/').map(|(tree, _)| tree);
        let tree = if self.partitions.by_tree { tree } else { None };
        for run in runs {
            let mut from = 0;
            while let Some(&time) = run.times.get(from) {
                let (day, end) = self.period(time);
                let to = from + run.times[from..].partition_point(|&time| time < end);
                let partition = Partition { day, tree: tree.map(str::to_string) };
                let number = self.waiting.len();
                let spill = self.waiting.entry(partition).or_insert_with(|| {
                    Spill::new(self.directory.join(WAITING).join(format!("{number}.rows")))
                });
                self.held += spill.push(name, run, from..to);
                from = to;
            }
        }
        if self.held > WAITING_BYTES_MAX {
            for spill in self.waiting.values_mut() {
                spill.flush().map_err(|error| DatasetError::Io(spill.path().to_path_buf(), error))?;
            }
            self.held = 0;
        }
        Ok(())
    }

    /// How many partitions [`Dataset::finish`] looks at.
    pub fn partition_count(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Writes the partitions whose rows are not there yet; calls `step` after each.
    ///
    /// # Errors
    /// When one cannot be written. Those before it are complete.
    pub fn finish(self, mut step: impl FnMut()) -> Result<Written, DatasetError> {
        let mut report = Written::default();
        for (partition, spill) in self.waiting {
            let directory = self.directory.join(directory_of(&partition, self.partitions));
            match write(&directory, spill, self.archives)? {
                Some(rows) => (report.written, report.rows) = (report.written + 1, report.rows + rows),
                None => report.unchanged += 1,
            }
            step();
        }
        // The lock goes last; another export may make the directory again.
        let _left_for_others = fs::remove_dir_all(self.directory.join(WAITING));
        Ok(report)
    }

    /// The period of a time: its first day, and the time at which the next one begins.
    fn period(&self, time: i64) -> (i64, i64) {
        let day = time.div_euclid(DAY_MS);
        if !self.partitions.by_month {
            return (day, (day + 1) * DAY_MS);
        }
        let (year, month, of_month) = civil(day);
        let first = day - i64::from(of_month) + 1;
        (first, (first + days_in(year, month)) * DAY_MS)
    }
}

/// Writes a partition: its rows and those that are there. `None` when there is nothing to change.
fn write(directory: &Path, spill: Spill, archives: Archives) -> Result<Option<u64>, DatasetError> {
    let path = directory.join(FILE_NAME);
    let source = format!("{:032x}-{archives:?}", spill.hash());
    let old = match File::open(&path) {
        Ok(old) => Some(file::Reader::new(old, &path)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(DatasetError::Io(path, error)),
    };
    if old.as_ref().is_some_and(|old| old.source() == Some(&source)) {
        return Ok(None);
    }
    let failed = |error| DatasetError::Io(directory.to_path_buf(), error);
    fs::create_dir_all(directory).map_err(failed)?;
    let beside = directory.join(format!(".{FILE_NAME}.partial"));
    let mut writer = file::Writer::new(&beside, &source)?;
    let mut new = spill.read()?.peekable();
    let mut old = old.into_iter().flatten().peekable();
    loop {
        let order = match (new.peek(), old.peek()) {
            (Some(Ok(new)), Some(Ok(old))) => new.key().cmp(&old.key()),
            (Some(_), None) | (Some(Err(_)), _) => std::cmp::Ordering::Less,
            (None, Some(_)) | (_, Some(Err(_))) => std::cmp::Ordering::Greater,
            (None, None) => break,
        };
        let next = if order.is_gt() { old.next() } else { new.next() };
        let Some(mut group) = next.transpose()? else { break };
        if order.is_eq()
            && let Some(old) = old.next().transpose()?
        {
            merge(&mut group, old, archives);
        }
        writer.add(&group)?;
    }
    let rows = writer.finish()?;
    fs::rename(&beside, &path).map_err(failed)?;
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)?;
    Ok(Some(rows))
}

/// Adds the rows that were there; of two for the same time, the new one counts.
fn merge(group: &mut Group, old: Group, archives: Archives) {
    for before in old.runs {
        match group.runs.iter_mut().find(|run| run.step == before.step) {
            Some(run) => *run = union(run, &before),
            None => group.runs.push(before),
        }
    }
    group.runs.sort_by_key(|run| run.step);
    if archives == Archives::Finest {
        for index in 1..group.runs.len() {
            let (finer, rest) = group.runs.split_at_mut(index);
            finer.iter().for_each(|finer| leave_out(&mut rest[0], finer));
        }
    }
}

fn union(new: &Run, old: &Run) -> Run {
    let count = new.times.len() + old.times.len();
    let (mut times, mut values) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let (mut a, mut b) = (0, 0);
    while a < new.times.len() || b < old.times.len() {
        let (ours, theirs) = (new.times.get(a), old.times.get(b));
        let take_new = ours.is_some_and(|ours| theirs.is_none_or(|theirs| ours <= theirs));
        b += usize::from(!take_new || ours == theirs);
        let (run, at) = if take_new { (new, a) } else { (old, b - 1) };
        a += usize::from(take_new);
        times.push(run.times[at]);
        values.push(run.values[at]);
    }
    Run { times, values, ..new.clone() }
}

/// The directory of a partition, as Hive spells it.
fn directory_of(partition: &Partition, partitions: Partitions) -> PathBuf {
    let (year, month, day) = civil(partition.day);
    let mut path = PathBuf::from(match partitions.by_month {
        true => format!("month={year:04}-{month:02}"),
        false => format!("day={year:04}-{month:02}-{day:02}"),
    });
    if partitions.by_tree {
        let tree = partition.tree.as_deref().map_or_else(|| NO_TREE.to_string(), escaped);
        path.push(format!("tree={tree}"));
    }
    path
}

/// A value in the name of a partition: all but letters, digits and some marks as `%XX`.
fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
        out
    })
}

/// Year, month and day of a day since the epoch, in the Gregorian calendar (Howard Hinnant's algorithm).
fn civil(day: i64) -> (i64, u32, u32) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month as u32, of_month as u32)
}

fn days_in(year: i64, month: u32) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

#[cfg(test)]
mod tests;
