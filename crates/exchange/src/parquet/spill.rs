//! The rows of a partition that wait to be written: runs one after the other, in memory and then in a file.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use rrd::definition::Cf;
use xxhash_rust::xxh3::Xxh3;

use super::{DatasetError, Group};
use crate::rows::Run;

/// What waits for one partition.
pub(super) struct Spill {
    path: PathBuf,
    /// What is not in the file yet.
    bytes: Vec<u8>,
    /// Whether there is a file.
    has_file: bool,
    hash: Xxh3,
}

impl std::fmt::Debug for Spill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Spill({})", self.path.display())
    }
}

impl Spill {
    /// Nothing yet; the file is made when [`Spill::flush`] first needs it.
    pub fn new(path: PathBuf) -> Self {
        Spill { path, bytes: Vec::new(), has_file: false, hash: Xxh3::new() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A hash of everything pushed, in order.
    pub fn hash(&self) -> u128 {
        self.hash.digest128()
    }

    /// Adds the rows of a run at these indexes; returns the bytes they take.
    pub fn push(&mut self, name: &str, run: &Run, rows: Range<usize>) -> usize {
        let start = self.bytes.len();
        for text in [name, &run.ds, run.cf.name()] {
            self.bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
            self.bytes.extend_from_slice(text.as_bytes());
        }
        self.bytes.extend_from_slice(&run.step.to_le_bytes());
        self.bytes.extend_from_slice(&(rows.len() as u64).to_le_bytes());
        for time in &run.times[rows.clone()] {
            self.bytes.extend_from_slice(&time.to_le_bytes());
        }
        for value in &run.values[rows] {
            self.bytes.extend_from_slice(&value.to_le_bytes());
        }
        self.hash.update(&self.bytes[start..]);
        self.bytes.len() - start
    }

    /// Appends to the file what is in memory.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        file.write_all(&self.bytes)?;
        self.bytes = Vec::new();
        self.has_file = true;
        Ok(())
    }

    /// What was pushed, in order.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(self) -> Result<Groups, DatasetError> {
        let failed = |error| DatasetError::Io(self.path.clone(), error);
        let before: Box<dyn Read> = match self.has_file {
            true => Box::new(BufReader::with_capacity(1 << 20, File::open(&self.path).map_err(failed)?)),
            false => Box::new(io::empty()),
        };
        let input = before.chain(io::Cursor::new(self.bytes));
        Ok(Groups { path: self.path, input: Box::new(input), next: None })
    }
}

/// The groups of a spill.
pub(super) struct Groups {
    path: PathBuf,
    input: Box<dyn Read>,
    /// The beginning of the group after the one given.
    next: Option<Group>,
}

impl Iterator for Groups {
    type Item = Result<Group, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match read_run(&mut self.input) {
                Ok(Some(mut group)) => match &mut self.next {
                    Some(first) if first.key() == group.key() => first.runs.append(&mut group.runs),
                    next => {
                        if let Some(complete) = next.replace(group) {
                            return Some(Ok(complete));
                        }
                    }
                },
                Ok(None) => return self.next.take().map(Ok),
                Err(error) => return Some(Err(DatasetError::Io(self.path.clone(), error))),
            }
        }
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        // A later export removes what stays.
        let _stays = std::fs::remove_file(&self.path);
    }
}

fn read_run(input: &mut impl Read) -> io::Result<Option<Group>> {
    let mut length = [0; 4];
    match input.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let name = text(input, length)?;
    let ds = next_text(input)?;
    let cf = Cf::from_name(&next_text(input)?).ok_or_else(|| io::Error::other("a function is unknown"))?;
    let (step, count) = (number(input)?, number(input)?);
    let mut numbers = |count: i64| (0..count).map(|_| number(input)).collect::<io::Result<Vec<i64>>>();
    let times = numbers(count)?;
    let values = numbers(count)?.into_iter().map(|bits| f64::from_bits(bits as u64)).collect();
    let run = Run { ds: ds.clone(), cf, step, times, values, newest: 0 };
    Ok(Some(Group { name, ds, cf, runs: vec![run] }))
}

fn next_text(input: &mut impl Read) -> io::Result<String> {
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    text(input, length)
}

fn text(input: &mut impl Read, length: [u8; 4]) -> io::Result<String> {
    let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
    input.read_exact(&mut bytes)?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

fn number(input: &mut impl Read) -> io::Result<i64> {
    let mut bytes = [0; 8];
    input.read_exact(&mut bytes)?;
    Ok(i64::from_le_bytes(bytes))
}
