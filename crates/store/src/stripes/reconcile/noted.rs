//! Which RRDs have had a placeholder: only for those does a missing one mean that the RRD is to go.
//!
//! RRDs that were imported while no daemon ran, and those whose placeholders a loss of power has taken, get theirs at the next start. A small file of the
//! store says, for each shard, from which id on that is so; ids only grow. It is replaced without a sync: should it be lost or older than the
//! tree, placeholders are written again that were removed in its last second.

use std::io;
use std::path::Path;

use crate::disk::{Disk, Mode};
use crate::filenames;
use crate::placeholder::RrdNumber;

/// The first line.
const FIRST_LINE: &str = "roundel-tree 1";
/// Longest file that is read: a path, and a line for each shard.
const BYTES_MAX: usize = 64 * 1024;

/// The next id of each shard when every RRD had its placeholder in a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Noted {
    next_ids: Vec<u32>,
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
        Noted { next_ids: lines.map_while(|line| line.strip_prefix("next id ")?.parse().ok()).collect() }
    }

    /// The note that all RRDs below these ids have placeholders.
    pub(super) fn new(next_ids: Vec<u32>) -> Self {
        Noted { next_ids }
    }

    /// Whether the RRD has had a placeholder.
    pub(super) fn has(&self, rrd: RrdNumber) -> bool {
        self.next_ids.get(rrd.shard as usize).is_some_and(|&next| rrd.id < next)
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn write(&self, disk: &dyn Disk, path: &Path) -> io::Result<()> {
        let ids: String = self.next_ids.iter().map(|id| format!("next id {id}\n")).collect();
        let text = format!("{FIRST_LINE}\n{}\n{ids}", line_of(path));
        let new = filenames::tree_new(Path::new(""));
        match disk.remove(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        disk.create(&new)?.write_at(text.as_bytes(), 0)?;
        disk.rename(&new, &filenames::tree(Path::new("")))
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
        assert_eq!(Noted::read(&*disk, tree), Noted::default());
        for next_ids in [vec![5, 7], vec![9, 7]] {
            let noted = Noted::new(next_ids);
            noted.write(&*disk, tree).unwrap();
            assert_eq!(Noted::read(&*disk, tree), noted);
        }
        let noted = Noted::read(&*disk, tree);
        let has = |shard, id| noted.has(RrdNumber { shard, id });
        assert_eq!(
            [has(0, 8), has(0, 9), has(1, 6), has(1, 7), has(2, 0)],
            [true, false, true, false, false]
        );
        assert_eq!(Noted::read(&*disk, Path::new("/srv/other")), Noted::default());
    }
}
