//! Which RRDs have had a placeholder: only for those does a missing one mean that the RRD is to go.
//!
//! RRDs that were imported while no daemon ran, and those whose placeholders a loss of power has taken, get theirs at the next start. A small file of the
//! store says, for each shard, which ids these are; ids only grow. It is replaced without a sync: should it be lost or older than the
//! tree, placeholders are written again that were removed in its last second.

use std::io;
use std::ops::Range;
use std::path::Path;

use crate::disk::{Disk, Mode};
use crate::filenames;
use crate::placeholder::RrdNumber;

/// The first line.
const FIRST_LINE: &str = "roundel-tree 1";
/// Longest file that is read: a path, and a line for each shard.
const BYTES_MAX: usize = 256 * 1024;

/// What is known of the placeholders of a tree, by shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Noted {
    shards: Vec<NotedShard>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct NotedShard {
    /// The id that the next RRD gets.
    next: u32,
    /// RRDs that may never have had a placeholder.
    lacking: Vec<Range<u32>>,
}

impl Noted {
    /// What the store says about the tree at `path`; nothing when that is another one.
    pub(super) fn read(disk: &dyn Disk, path: &Path) -> Self {
        let text = match read(disk) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Noted::default(),
            Err(error) => {
                tracing::warn!(%error, "cannot read which placeholders were written: those that are missing are written again");
                return Noted::default();
            }
        };
        let mut lines = text.lines();
        if lines.next() != Some(FIRST_LINE) || lines.next() != Some(&line_of(path)) {
            return Noted::default();
        }
        Noted { shards: lines.map_while(NotedShard::parse).collect() }
    }

    /// The same in a process that begins: RRDs that were made since may have no placeholders.
    pub(super) fn continued(mut self, next_ids: &[u32]) -> Self {
        self.shards.resize(next_ids.len(), NotedShard::default());
        for (shard, &next) in self.shards.iter_mut().zip(next_ids) {
            if shard.next < next {
                shard.lacking.push(shard.next..next);
                shard.next = next;
            }
        }
        self
    }

    /// Notes RRDs that were made with their placeholders.
    pub(super) fn extend(&mut self, next_ids: &[u32]) {
        for (shard, &next) in self.shards.iter_mut().zip(next_ids) {
            shard.next = shard.next.max(next);
        }
    }

    /// Notes that all RRDs have had placeholders.
    pub(super) fn complete(&mut self) {
        self.shards.iter_mut().for_each(|shard| shard.lacking.clear());
    }

    /// Whether the RRD may never have had a placeholder.
    pub(super) fn lacks(&self, rrd: RrdNumber) -> bool {
        let shard = self.shards.get(rrd.shard as usize);
        shard.is_some_and(|shard| shard.lacking.iter().any(|ids| ids.contains(&rrd.id)))
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn write(&self, disk: &dyn Disk, path: &Path) -> io::Result<()> {
        let shards: String = self.shards.iter().map(NotedShard::line).collect();
        let text = format!("{FIRST_LINE}\n{}\n{shards}", line_of(path));
        let new = filenames::tree_new(Path::new(""));
        match disk.remove(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        disk.create(&new)?.write_at(text.as_bytes(), 0)?;
        disk.rename(&new, &filenames::tree(Path::new("")))
    }
}

impl NotedShard {
    /// `next N`, and `A-B` for those that lack a placeholder: from A to before B.
    fn line(&self) -> String {
        let lacking: String = self.lacking.iter().map(|ids| format!(" {}-{}", ids.start, ids.end)).collect();
        format!("next {}{lacking}\n", self.next)
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("next ")?.split(' ');
        let next = words.next()?.parse().ok()?;
        let range = |word: &str| {
            let (start, end) = word.split_once('-')?;
            Some(start.parse().ok()?..end.parse().ok()?)
        };
        Some(NotedShard { next, lacking: words.map(range).collect::<Option<_>>()? })
    }
}

fn line_of(path: &Path) -> String {
    format!("path {}", path.as_os_str().as_encoded_bytes().escape_ascii())
}

fn read(disk: &dyn Disk) -> io::Result<String> {
    let file = disk.open(&filenames::tree(Path::new("")), Mode::Read)?;
    let mut bytes = vec![0; BYTES_MAX];
    let count = file.read_at(&mut bytes, 0)?;
    bytes.truncate(count);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::sim::SimDisk;

    #[test]
    fn a_note_is_about_one_tree() {
        let disk = SimDisk::new(1).handle();
        let tree = Path::new("/srv/rrd \n");
        let again = || Noted::read(&*disk, tree);
        assert_eq!(again(), Noted::default());
        // All that were there before lack one, until the tree was looked at.
        let mut noted = again().continued(&[5, 7]);
        noted.extend(&[6, 7]);
        noted.write(&*disk, tree).unwrap();
        assert_eq!(again(), noted);
        let lacks = |noted: &Noted| {
            [(0, 4), (0, 5), (0, 6), (1, 6)].map(|(shard, id)| noted.lacks(RrdNumber { shard, id }))
        };
        assert_eq!(lacks(&noted), [true, false, false, true]);
        let mut noted = again().continued(&[8, 7]);
        assert_eq!(lacks(&noted), [true, false, true, true]);
        noted.write(&*disk, tree).unwrap();
        assert_eq!(again(), noted);
        noted.complete();
        noted.write(&*disk, tree).unwrap();
        assert_eq!(lacks(&again().continued(&[8, 7])), [false; 4]);
        assert_eq!(Noted::read(&*disk, Path::new("/srv/other")), Noted::default());
    }
}
