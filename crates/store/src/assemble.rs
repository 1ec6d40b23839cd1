//! Makes a store of the parts of a copy: the files of a [`crate::capture`] come back, the log as one file.
//!
//! The file STORE is written last, so that what is not complete is not a store. Whether a part is what it should be, its
//! bringer checks; one that is missing leaves a hole, which the store finds by its checksums like any other damage.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, RealDisk};
use crate::filenames;
use crate::identity;
use crate::log::{self, Record, ReplayError};
use crate::manifest::Manifest;
use crate::position::Position;
use crate::replication::History;

/// Where a log is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// With its last record.
    End,
    /// Before the first record after this time, in milliseconds since the epoch.
    Time(i64),
    /// Before the first record that does not end by this position.
    Position(Position),
}

/// A store that is being made in a directory.
#[derive(Debug)]
pub struct Assembly {
    disk: RealDisk,
    root: PathBuf,
}

/// A shard of it.
#[derive(Debug)]
pub struct ShardAssembly<'a> {
    assembly: &'a Assembly,
    dir: PathBuf,
    manifest: Manifest,
}

impl Assembly {
    /// Begins a store in a directory, which is made, or is there and empty.
    ///
    /// # Errors
    /// `AlreadyExists` when something is in it; the system's.
    pub fn begin(root: &Path) -> io::Result<Assembly> {
        std::fs::create_dir_all(root)?;
        if std::fs::read_dir(root)?.next().is_some() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("\"{}\" is not empty", root.display()),
            ));
        }
        Ok(Assembly { disk: RealDisk::open(root)?, root: root.to_owned() })
    }

    /// Begins a shard, of which `manifest` is the text of a captured one.
    ///
    /// # Errors
    /// When the text is none; the system's.
    pub fn shard(&self, index: u32, manifest: &str) -> io::Result<ShardAssembly<'_>> {
        let manifest = Manifest::decode(manifest).map_err(|error| invalid(&error))?;
        let dir = filenames::shard(Path::new(""), index);
        self.disk.create_dir_all(&dir)?;
        Ok(ShardAssembly { assembly: self, dir, manifest })
    }

    fn complete(self, identity: &str) -> io::Result<()> {
        let identity = identity::decode(identity).map_err(|error| invalid(&error))?;
        self.disk.sync_all()?;
        identity.store(&self.disk)
    }

    /// Completes the store with its history: that of a follower, or what [`History::of_copy`] says of a copy.
    ///
    /// # Errors
    /// When the text is none; the system's.
    pub fn complete_as(self, identity: &str, history: &History) -> io::Result<()> {
        history.store(&self.disk)?;
        self.complete(identity)
    }

    /// Writes a file of the daemon's beside the store, which only its owner may read.
    ///
    /// # Errors
    /// The system's; `AlreadyExists` when there is one of that name.
    pub fn own_file(&self, name: &str, content: &[u8]) -> io::Result<()> {
        use std::os::unix::fs::OpenOptionsExt;
        let path = self.root.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let mut file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(path)?;
        io::Write::write_all(&mut file, content)?;
        file.sync_all()
    }

    /// Bytes that can still be written there.
    ///
    /// # Errors
    /// The system's.
    pub fn free_bytes(&self) -> io::Result<u64> {
        self.disk.free_bytes()
    }

    /// Writes the file RESTORING: segments of the store come later ([`crate::awaited`]).
    ///
    /// # Errors
    /// The system's.
    pub fn expect_later(&self, text: &[u8]) -> io::Result<()> {
        let file = self.disk.create(&filenames::restoring(Path::new("")))?;
        file.write_at(text, 0)?;
        file.sync()
    }

    /// Removes what was made: it is not a store.
    pub fn discard(self) {
        for entry in std::fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let _ = if is_directory { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
        }
        let _ = std::fs::remove_dir(&self.root);
    }
}

impl ShardAssembly<'_> {
    /// Where replay starts, and the log's only file therefore.
    pub fn log_from(&self) -> Position {
        self.manifest.position
    }

    /// Where the files go.
    fn path(&self, path: &Path) -> PathBuf {
        self.assembly.root.join(path)
    }

    /// The path for the checkpoint of this number.
    pub fn checkpoint(&self, number: u64) -> PathBuf {
        self.path(&filenames::checkpoint(&self.dir, number))
    }

    /// The path for the segment of this number.
    pub fn segment(&self, number: u64) -> PathBuf {
        self.path(&filenames::segment(&self.dir, number))
    }

    /// The path for the log.
    pub fn log(&self) -> PathBuf {
        self.path(&filenames::log(&self.dir, self.manifest.position))
    }

    /// Completes the shard, whose log is there up to `end`; what comes after `until` is cut off. Segments whose files do not
    /// come are `missing`. Returns where the log ends.
    ///
    /// # Errors
    /// The system's; when the log was written by a newer program.
    pub fn complete(mut self, end: Position, until: Until, missing: &[u64]) -> io::Result<Position> {
        let disk = &self.assembly.disk;
        self.manifest.segments.retain(|segment| !missing.contains(&segment.number));
        let whole = super::capture::with_log(&self.manifest, end);
        let end = match until {
            Until::End => end,
            _ => self.end_of_log(&whole, until)?,
        };
        let log = self.log();
        if log.exists() {
            let bytes = end.offset.saturating_sub(self.manifest.position.offset);
            std::fs::File::options().write(true).open(log)?.set_len(bytes)?;
        }
        super::capture::with_log(&self.manifest, end).store(disk, &self.dir)?;
        Ok(end)
    }

    /// Completes the shard as one without any RRD, for a store of which only other shards are read.
    ///
    /// # Errors
    /// The system's.
    pub fn complete_empty(mut self) -> io::Result<()> {
        (self.manifest.checkpoint, self.manifest.checkpoint_content) = (0, None);
        self.manifest.segments.clear();
        self.manifest.lost.clear();
        let empty = super::capture::with_log(&self.manifest, self.manifest.position);
        empty.store(&self.assembly.disk, &self.dir)
    }

    /// The path of a segment below the store's directory.
    pub fn segment_in_store(&self, number: u64) -> PathBuf {
        filenames::segment(&self.dir, number)
    }

    fn end_of_log(&self, manifest: &Manifest, until: Until) -> io::Result<Position> {
        let mut end = manifest.position;
        let is_in = |record: &Record<'_>| match until {
            Until::End => true,
            Until::Time(ms) => record.stamp.time_ms <= ms,
            Until::Position(position) => record.end <= position,
        };
        let mut visit = |record: Record<'_>| {
            if !is_in(&record) {
                return Err(());
            }
            end = record.end;
            Ok(())
        };
        let (from, known) = (manifest.position, manifest.known());
        match log::replay(&self.assembly.disk, &self.dir, from, known, &mut visit) {
            Ok(_) | Err(ReplayError::Visitor(())) => Ok(end),
            Err(ReplayError::Log(error)) => Err(invalid(&error)),
        }
    }
}

/// The files and directories in `root` that make up a store: what belongs to the operator, such as tokens, does not.
///
/// # Errors
/// When the directory cannot be read.
pub fn parts_of_store(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut parts = Vec::new();
    let none = Path::new("");
    let files = [
        filenames::identity(none),
        filenames::identity_new(none),
        filenames::history(none),
        filenames::history_new(none),
        filenames::tree(none),
        filenames::tree_new(none),
        filenames::restoring(none),
    ];
    for entry in std::fs::read_dir(root)? {
        let name = entry?.file_name();
        if filenames::shard_index(&name).is_some() || files.iter().any(|file| file.as_os_str() == name) {
            parts.push(root.join(name));
        }
    }
    Ok(parts)
}

fn invalid(error: &dyn std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}
