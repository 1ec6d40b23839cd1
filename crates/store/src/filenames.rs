//! All file names in a store's directory. `docs/format/store.md` shows the tree.
//!
//! The store never touches a file whose name [`kind_of`] does not recognise.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::position::Position;

/// The kind of a file in a shard's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Part of the log that starts at this position.
    Log(Position),
    /// A checkpoint, with its number.
    Checkpoint(u64),
    /// A segment, with its number.
    Segment(u64),
    /// The manifest.
    Manifest,
    /// A manifest that is being written.
    ManifestNew,
    /// The manifest once more.
    ManifestCopy,
}

/// The directory of a shard.
pub fn shard(root: &Path, index: u32) -> PathBuf {
    root.join(format!("shard-{index:03}"))
}

/// The number of a shard from its directory's name; `None` for any other directory.
pub fn shard_index(name: &OsStr) -> Option<u32> {
    let digits = name.to_str()?.strip_prefix("shard-")?;
    let index = digits.parse().ok()?;
    // Only the canonical spelling counts.
    (shard(Path::new(""), index).as_os_str() == name).then_some(index)
}

/// Says that files of a restore have not come yet, and where they are to come from ([`crate::awaited`]).
pub fn restoring(root: &Path) -> PathBuf {
    root.join("RESTORING")
}

/// What follows the name of a file that has not come whole.
const AWAITED: &str = ".awaited";

/// The name of a file until it has come whole.
pub fn awaited(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(AWAITED);
    name.into()
}

/// The name that a file of such a name will have.
pub fn awaited_of(name: &OsStr) -> Option<OsString> {
    Some(name.to_str()?.strip_suffix(AWAITED)?.into())
}

/// The file whose lock keeps a second daemon off the store.
pub fn lock(root: &Path) -> PathBuf {
    root.join("lock")
}

/// The archive of `.rrd` files that were taken in on a day, given in days since the epoch.
pub fn adopted(root: &Path, day: i64) -> PathBuf {
    root.join(format!("adopted-{day:06}.tar.zst"))
}

/// The day of such an archive, from its name.
pub fn adopted_day(name: &OsStr) -> Option<i64> {
    let day = name.to_str()?.strip_prefix("adopted-")?.strip_suffix(".tar.zst")?.parse().ok()?;
    (adopted(Path::new(""), day).as_os_str() == name).then_some(day)
}

/// Which RRDs have had a placeholder in the tree.
pub fn tree(root: &Path) -> PathBuf {
    root.join("tree")
}

/// The same while it is being written.
pub fn tree_new(root: &Path) -> PathBuf {
    root.join("tree.new")
}

/// The store's identity, written once.
pub fn identity(root: &Path) -> PathBuf {
    root.join("STORE")
}

/// The identity while it is being written.
pub fn identity_new(root: &Path) -> PathBuf {
    root.join("STORE.new")
}

/// What the store was to others that have its RRDs.
pub fn history(root: &Path) -> PathBuf {
    root.join("HISTORY")
}

/// The history while it is being written.
pub fn history_new(root: &Path) -> PathBuf {
    root.join("HISTORY.new")
}

/// How far the store is a copy of what a replicated log says.
pub fn replicated(root: &Path) -> PathBuf {
    root.join("REPLICATED")
}

/// The same while it is being written.
pub fn replicated_new(root: &Path) -> PathBuf {
    root.join("REPLICATED.new")
}

/// A file of the log, named by the position of its first byte.
pub fn log(dir: &Path, start: Position) -> PathBuf {
    dir.join(format!("log-{:08x}-{:016x}", start.generation, start.offset))
}

/// A checkpoint.
pub fn checkpoint(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("checkpoint-{number:016x}"))
}

/// A segment.
pub fn segment(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("segment-{number:016x}"))
}

/// The manifest of a shard.
pub fn manifest(dir: &Path) -> PathBuf {
    dir.join("manifest")
}

/// The manifest while it is being written.
pub fn manifest_new(dir: &Path) -> PathBuf {
    dir.join("manifest.new")
}

/// The manifest once more, in case the first is lost.
pub fn manifest_copy(dir: &Path) -> PathBuf {
    dir.join("manifest.copy")
}

/// The list of RRDs that lack updates after damage, for the operator.
pub fn damaged_rrds(dir: &Path) -> PathBuf {
    dir.join("damaged-rrds.txt")
}

/// The list of files that may be those of RRDs that a damaged checkpoint has cost, for the operator.
pub fn lost_rrds(dir: &Path) -> PathBuf {
    dir.join("damaged-lost-rrds.txt")
}

/// A log file while its records are being put at their places.
pub fn log_new(dir: &Path) -> PathBuf {
    dir.join("log.new")
}

/// The `count`-th name, from 1 on, under which a damaged file is put aside; the store never reads it again.
pub fn damaged(path: &Path, count: u32) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(match count {
        1 => format!("damaged-{name}"),
        count => format!("damaged-{name}.{count}"),
    })
}

/// The kind of a file in a shard's directory, by name; `None` when the store does not own it.
pub fn kind_of(name: &OsStr) -> Option<FileKind> {
    let name = name.to_str()?;
    match name {
        "manifest" => return Some(FileKind::Manifest),
        "manifest.new" => return Some(FileKind::ManifestNew),
        "manifest.copy" => return Some(FileKind::ManifestCopy),
        _ => {}
    }
    let (kind, rest) = name.split_once('-')?;
    match kind {
        "checkpoint" => Some(FileKind::Checkpoint(hexadecimal(rest, 16)?)),
        "segment" => Some(FileKind::Segment(hexadecimal(rest, 16)?)),
        "log" => {
            let (generation, offset) = rest.split_once('-')?;
            let generation = u32::try_from(hexadecimal(generation, 8)?).ok()?;
            Some(FileKind::Log(Position { generation, offset: hexadecimal(offset, 16)? }))
        }
        _ => None,
    }
}

/// Parses exactly `digits` lower-case hexadecimal digits, so that each number has one spelling.
fn hexadecimal(text: &str, digits: usize) -> Option<u64> {
    let good = text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if good { u64::from_str_radix(text, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        let dir = Path::new("shard-000");
        let check = |path: PathBuf, name: &str, kind| {
            assert_eq!(path, dir.join(name));
            assert_eq!(kind_of(OsStr::new(name)), Some(kind));
        };
        let position = Position { generation: 2, offset: 0x1f };
        check(log(dir, position), "log-00000002-000000000000001f", FileKind::Log(position));
        check(checkpoint(dir, 10), "checkpoint-000000000000000a", FileKind::Checkpoint(10));
        check(segment(dir, u64::MAX), "segment-ffffffffffffffff", FileKind::Segment(u64::MAX));
        check(manifest(dir), "manifest", FileKind::Manifest);
        check(manifest_new(dir), "manifest.new", FileKind::ManifestNew);
        check(manifest_copy(dir), "manifest.copy", FileKind::ManifestCopy);
        assert_eq!(shard(Path::new(""), 7), Path::new("shard-007"));
        assert_eq!(shard_index(OsStr::new("shard-007")), Some(7));
        for foreign in ["shard-7", "shard-+07", "shard-", "shards", "shard-0007"] {
            assert_eq!(shard_index(OsStr::new(foreign)), None, "{foreign}");
        }
        for foreign in
            ["", "log", "log-1-2", "segment-00000000000000AA", "segment-+000000000000001", "notes.txt"]
        {
            assert_eq!(kind_of(OsStr::new(foreign)), None, "{foreign}");
        }
    }
}
