//! The file that says up to where a target has everything: a position in the log of each shard.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use store::identity::Identity;
use store::position::Position;

/// The first line.
const HEAD: &str = "roundel forward 1";

/// The file of one target.
#[derive(Debug)]
pub struct ForwardPositions {
    directory: PathBuf,
    name: String,
}

impl ForwardPositions {
    /// The file of the target `name` in `directory`.
    pub fn in_directory(directory: &Path, name: &str) -> Self {
        ForwardPositions { directory: directory.to_owned(), name: name.to_owned() }
    }

    /// The positions; `None` when there are none of this store.
    ///
    /// # Errors
    /// When the file cannot be read, or is not one.
    pub fn load(&self, store: Identity) -> io::Result<Option<Vec<Position>>> {
        let path = self.directory.join(&self.name);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let invalid = || {
            let text = format!(
                "\"{}\" holds no positions; remove it to begin with what comes from now on",
                path.display()
            );
            io::Error::new(io::ErrorKind::InvalidData, text)
        };
        let mut lines = text.lines();
        if lines.next() != Some(HEAD) {
            return Err(invalid());
        }
        let of = lines.next().ok_or_else(invalid)?;
        let positions: Option<Vec<Position>> = lines.map(|line| line.parse().ok()).collect();
        let positions = positions.ok_or_else(invalid)?;
        let is_of_store = of == store.id_text() && positions.len() == store.shard_count as usize;
        Ok(is_of_store.then_some(positions))
    }

    /// Writes the positions; they are durable when it returns.
    ///
    /// # Errors
    /// The disk's.
    pub fn save(&self, store: Identity, positions: &[Position]) -> io::Result<()> {
        if !self.directory.is_dir() {
            fs::create_dir_all(&self.directory)?;
            File::open(self.directory.parent().unwrap_or(Path::new(".")))?.sync_all()?;
        }
        let mut text = format!("{HEAD}\n{}\n", store.id_text());
        for position in positions {
            text.push_str(&format!("{position}\n"));
        }
        let new = self.directory.join(format!("{}.new", self.name));
        fs::write(&new, text)?;
        File::open(&new)?.sync_all()?;
        fs::rename(&new, self.directory.join(&self.name))?;
        File::open(&self.directory)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_come_back_for_their_store_alone() {
        let directory = tempfile::tempdir().unwrap();
        let positions = ForwardPositions::in_directory(&directory.path().join("forward"), "second");
        let store = Identity { id: [7; 16], seed: 1, shard_count: 2 };
        assert_eq!(positions.load(store).unwrap(), None);
        let two = [Position { generation: 1, offset: 20 }, Position { generation: 0, offset: 9 }];
        positions.save(store, &two).unwrap();
        assert_eq!(positions.load(store).unwrap(), Some(two.to_vec()));
        assert_eq!(positions.load(Identity { id: [8; 16], ..store }).unwrap(), None);
        assert_eq!(positions.load(Identity { shard_count: 3, ..store }).unwrap(), None);
        let file = directory.path().join("forward/second");
        for text in ["", "else\n", "roundel forward 1\n", "roundel forward 1\n7\n1:x\n"] {
            fs::write(&file, text).unwrap();
            assert!(positions.load(store).unwrap_err().to_string().contains("remove it"), "{text:?}");
        }
    }
}
