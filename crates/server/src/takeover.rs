//! Takes over the journal of an rrdcached that was stopped or killed, so that nothing has to be flushed before Roundel takes its place.
//!
//! The files are read twice, as streams: first for what was forgotten, because that is said after the updates it concerns; then each value is
//! applied by itself. A value that is not newer than the last update of its RRD is in the RRD already: rrdcached wrote it, or an earlier
//! takeover that a crash ended applied it. Values that are newer are applied although the journal says `wrote` after them: rrdcached says that of values, too, which
//! arrived while it wrote those before. Once all are durable, the files are renamed, the oldest first, and not read again.

mod in_use;
mod lines;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use protocol::rrdcached::update::time_of;
use protocol::rrdcached::words::Words;
use rrd::update::UpdateError;
use store::engine::{Engine, StoreError, UpdateBatch, UpdateFailure};
use store::name::RrdName;

pub use in_use::check_unused;

use crate::names::Names;
use lines::{Line, Lines};

/// What the names of rrdcached's files begin with; two numbers follow: seconds since the epoch, and microseconds.
const FILE_PREFIX: &str = "rrd.journal.";
/// What is put before the name of a file that was taken over.
const APPLIED_PREFIX: &str = "applied.";
/// Refusals that are logged one by one; others are only counted.
const REPORTED: u64 = 100;
/// Bytes and values that are given to the store at once.
const BATCH_BYTES: usize = 1 << 20;
const BATCH_LINES: usize = 8192;

/// A file of the journal, and the time in its name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct JournalFile {
    time: (u64, u64),
    path: PathBuf,
}

/// The files of a journal, the oldest first; none when there is no such directory.
fn journal_files(directory: &Path) -> io::Result<Vec<JournalFile>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let Some((seconds, micros)) = name.strip_prefix(FILE_PREFIX).and_then(|time| time.split_once('.'))
        else {
            continue;
        };
        if let (Ok(seconds), Ok(micros)) = (seconds.parse(), micros.parse()) {
            files.push(JournalFile { time: (seconds, micros), path: entry.path() });
        }
    }
    files.sort();
    Ok(files)
}

/// Applies the journal that an rrdcached left in a directory, if there is one, and renames its files.
///
/// # Errors
/// A text for the operator: the files cannot be read or renamed, or the store fails. The journal is unchanged then.
pub fn take_over(engine: &dyn Engine, names: &Names, directory: &Path) -> Result<(), String> {
    let cannot =
        |error| format!("cannot take over rrdcached's journal in \"{}\": {error}", directory.display());
    let files = match journal_files(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            tracing::warn!(
                "there is no directory \"{}\": no journal of rrdcached is taken over",
                directory.display()
            );
            return Ok(());
        }
        found => found.map_err(|error| cannot(error.to_string()))?,
    };
    if files.is_empty() {
        return Ok(());
    }
    rustix::fs::access(directory, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)
        .map_err(|error| cannot(format!("its files are renamed once they are applied, but: {error}; give the directory to the user that runs this daemon")))?;
    tracing::info!("taking over rrdcached's journal in \"{}\": {} files", directory.display(), files.len());
    let mut takeover = Takeover::new(engine, names);
    takeover.run(&files).map_err(cannot)?;
    engine.sync().map_err(|error| cannot(error.to_string()))?;
    if takeover.is_of_another_tree() {
        tracing::error!(
            "no update of rrdcached's journal in \"{}\" is for an RRD of \"{}\": start with the base directory that rrdcached had (-b), or move the journal away; its files are left as they are",
            directory.display(),
            String::from_utf8_lossy(names.base())
        );
        return Ok(());
    }
    rename_all(&files, directory).map_err(|error| cannot(error.to_string()))?;
    takeover.report(directory);
    Ok(())
}

/// Renames the files of a journal whose values are durable. The oldest first: what is forgotten, a later file says.
fn rename_all(files: &[JournalFile], directory: &Path) -> io::Result<()> {
    for file in files {
        let name = file.path.file_name().unwrap_or_default().to_string_lossy();
        std::fs::rename(&file.path, directory.join(format!("{APPLIED_PREFIX}{name}")))?;
    }
    File::open(directory)?.sync_all()
}

/// Where a value stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    file: usize,
    /// From 1.
    line: u64,
}

/// What became of the values.
#[derive(Debug, Default)]
struct Counts {
    applied: u64,
    /// In their RRDs already.
    present: u64,
    forgotten: u64,
    refused: u64,
    /// Of the refused, those of names without an RRD.
    unknown: u64,
    /// Lines that are none.
    bad_lines: u64,
}

struct Takeover<'a> {
    engine: &'a dyn Engine,
    names: &'a Names,
    /// The place of the last line that says that an RRD was forgotten.
    forgotten: HashMap<RrdName, (usize, u64)>,
    batch: UpdateBatch,
    places: Vec<Place>,
    counts: Counts,
    reported: u64,
}

impl<'a> Takeover<'a> {
    fn new(engine: &'a dyn Engine, names: &'a Names) -> Self {
        Takeover {
            engine,
            names,
            forgotten: HashMap::new(),
            batch: UpdateBatch::default(),
            places: Vec::new(),
            counts: Counts::default(),
            reported: 0,
        }
    }

    fn run(&mut self, files: &[JournalFile]) -> Result<(), String> {
        let failed = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
        for (number, file) in files.iter().enumerate() {
            self.read_forgotten(number, &file.path).map_err(|error| failed(&file.path, error))?;
        }
        for (number, file) in files.iter().enumerate() {
            let mut lines = open(&file.path).map_err(|error| failed(&file.path, error))?;
            while let Some((line_number, line)) =
                lines.next_line().map_err(|error| failed(&file.path, error))?
            {
                match line {
                    Line::Whole(line) => {
                        self.take_line(files, Place { file: number, line: line_number }, line)?
                    }
                    Line::TooLong(bytes) => {
                        let place = Place { file: number, line: line_number };
                        self.refuse_line(
                            files,
                            place,
                            &format!("a line of {bytes} bytes is none of rrdcached's"),
                        );
                    }
                    // What stands there may be a part of a number.
                    Line::CutOff => tracing::warn!(
                        "{}, line {line_number}: the last line is cut off, as rrdcached leaves it when it is killed; it is left out",
                        file.path.display()
                    ),
                }
            }
            self.apply(files)?;
        }
        Ok(())
    }

    /// Finds where names were forgotten.
    fn read_forgotten(&mut self, file: usize, path: &Path) -> io::Result<()> {
        let mut lines = open(path)?;
        while let Some((number, line)) = lines.next_line()? {
            let Line::Whole(line) = line else { continue };
            if let Some(name) = line.strip_prefix(b"forget ")
                && let Ok(named) = self.names.resolve(name)
            {
                self.forgotten.insert(named.name, (file, number));
            }
        }
        Ok(())
    }

    fn take_line(&mut self, files: &[JournalFile], place: Place, line: &[u8]) -> Result<(), String> {
        let (command, rest) = match memchr::memchr(b' ', line) {
            Some(space) => (&line[..space], &line[space + 1..]),
            None => (line, &[][..]),
        };
        match command {
            b"update" => {}
            // These are for the first reading, and for what is known better from the RRD.
            b"wrote" | b"forget" => return Ok(()),
            _ => {
                self.refuse_line(files, place, "this is no line of rrdcached's journal");
                return Ok(());
            }
        }
        let mut words = Words::new(rest);
        let Some(word) = words.next() else {
            self.refuse_line(files, place, "there is no name");
            return Ok(());
        };
        let name = match self.names.resolve(&word) {
            Ok(named) => named.name,
            Err(failure) => {
                let count = words.count() as u64;
                let shown = String::from_utf8_lossy(failure.path()).into_owned();
                let why = "no RRD of the base directory can have this name";
                self.refuse(files, place, &shown, count, why);
                self.counts.unknown += count;
                return Ok(());
            }
        };
        let is_forgotten =
            self.forgotten.get(&name).is_some_and(|&forgotten| forgotten > (place.file, place.line));
        for value in words {
            if is_forgotten {
                self.counts.forgotten += 1;
            } else if let Err(bad) = time_of(&value) {
                // As rrdcached refused it when it came.
                let why = String::from_utf8_lossy(&bad.text(0.0)).into_owned();
                self.refuse(files, place, &name.to_string(), 1, &why);
            } else {
                self.batch.push(name.as_bytes(), &value);
                self.places.push(place);
            }
        }
        match self.batch.text.len() >= BATCH_BYTES || self.places.len() >= BATCH_LINES {
            true => self.apply(files),
            false => Ok(()),
        }
    }

    /// Gives the store what was gathered, and waits for its answer.
    fn apply(&mut self, files: &[JournalFile]) -> Result<(), String> {
        if self.places.is_empty() {
            return Ok(());
        }
        let (reply, answer) = mpsc::sync_channel(1);
        let batch = std::mem::take(&mut self.batch);
        let names: Vec<_> = batch.lines.iter().map(|line| line.name.clone()).collect();
        let text = batch.text.clone();
        self.engine.update(batch, Box::new(move |failures| drop(reply.send(failures))));
        let failures = answer.recv().map_err(|_| StoreError::Stopping.to_string())?;
        let places = std::mem::take(&mut self.places);
        self.counts.applied += (places.len() - failures.len()) as u64;
        for UpdateFailure { line, error, .. } in failures {
            let (place, name) = (places[line as usize], &names[line as usize]);
            let name = String::from_utf8_lossy(&text[name.start as usize..name.end as usize]);
            match &error {
                StoreError::Update(UpdateError::NotLater { .. }) => self.counts.present += 1,
                // Not for this RRD alone: what is in the journal can be applied once that has passed.
                StoreError::Short(_)
                | StoreError::Poisoned(_)
                | StoreError::Backlog(_)
                | StoreError::NotPrimary(_)
                | StoreError::NotReplicated(_)
                | StoreError::Unavailable(_)
                | StoreError::Stopping => {
                    return Err(format!(
                        "{}, line {}, \"{name}\": {error}",
                        files[place.file].path.display(),
                        place.line
                    ));
                }
                _ => {
                    self.counts.unknown += u64::from(matches!(error, StoreError::NoSuchRrd(_)));
                    self.refuse(files, place, &name, 1, &error.to_string());
                }
            }
        }
        Ok(())
    }

    fn refuse(&mut self, files: &[JournalFile], place: Place, name: &str, count: u64, why: &str) {
        self.counts.refused += count;
        self.complain(files, place, &format!("\"{name}\": {why}"));
    }

    fn refuse_line(&mut self, files: &[JournalFile], place: Place, why: &str) {
        self.counts.bad_lines += 1;
        self.complain(files, place, why);
    }

    fn complain(&mut self, files: &[JournalFile], place: Place, what: &str) {
        self.reported += 1;
        if self.reported <= REPORTED {
            tracing::error!("{}, line {}: {what}", files[place.file].path.display(), place.line);
        }
    }

    /// Whether there were values, and all of them for RRDs that are not here.
    fn is_of_another_tree(&self) -> bool {
        let Counts { applied, present, forgotten, refused, unknown, .. } = self.counts;
        applied + present + forgotten == 0 && unknown > 0 && unknown == refused
    }

    fn report(&self, directory: &Path) {
        let Counts { applied, present, forgotten, refused, bad_lines, .. } = self.counts;
        tracing::info!(
            "took over rrdcached's journal: {applied} values applied, {present} were in their RRDs, {forgotten} were forgotten, {refused} refused"
        );
        if refused + bad_lines > 0 {
            tracing::error!(
                "{refused} values and {bad_lines} lines of rrdcached's journal were refused; the first {REPORTED} are named above, and the journal is kept: \"{}/{APPLIED_PREFIX}{FILE_PREFIX}*\"",
                directory.display()
            );
        }
    }
}

fn open(path: &Path) -> io::Result<Lines<BufReader<File>>> {
    Ok(Lines::new(BufReader::with_capacity(1 << 16, File::open(path)?)))
}
