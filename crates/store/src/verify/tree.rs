//! The files layout: journals, and `.rrd` files as far as they can be judged.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rrd::codec::file::{self as codec, FileError};

use super::{Finding, Watch};
use crate::files::journal::{self, Noted};
use crate::placeholder;

/// Verifies the `.rrd` files below `base`, and the journals there or in `journals`. Links are not followed. `.rrd` files have no
/// checksums: only a header that cannot be, a file shorter than its header says, and what the disk cannot read is found. False when there was nothing.
pub fn files(base: &Path, journals: Option<&Path>, watch: &mut dyn Watch) -> bool {
    let mut tree = Tree { watch, any: false, go_on: true };
    tree.walk(base);
    if let Some(directory) = journals.filter(|directory| !directory.starts_with(base)) {
        tree.journals(directory);
    }
    tree.any
}

/// Bytes of a file that are read at once.
const PIECE_BYTES: usize = 1 << 20;

struct Tree<'a> {
    watch: &'a mut dyn Watch,
    any: bool,
    go_on: bool,
}

impl Tree<'_> {
    fn found(&mut self, file: &Path, byte: u64, what: String) {
        self.watch.found(Finding { file: file.to_owned(), byte, what, lost: None });
    }

    fn walk(&mut self, directory: &Path) {
        let entries = match std::fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) => return self.found(directory, 0, error.to_string()),
        };
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        self.journals(directory);
        for path in paths {
            let Ok(found) = std::fs::symlink_metadata(&path) else { continue };
            if !self.go_on {
                return;
            }
            if found.is_dir() {
                self.walk(&path);
            } else if found.is_file() && path.extension().is_some_and(|extension| extension == "rrd") {
                self.rrd(&path);
            }
        }
    }

    fn rrd(&mut self, path: &Path) {
        self.any = true;
        let file = match std::fs::File::open(path) {
            Ok(file) => file,
            // Removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return self.found(path, 0, error.to_string()),
        };
        // Another program may replace a file meanwhile.
        let state = |found: io::Result<Metadata>| found.map(|found| (found.ino(), found.len())).ok();
        let before = state(file.metadata());
        if let Err((byte, what)) = self.read(&file, path)
            && before == state(std::fs::metadata(path))
        {
            self.found(path, byte, what);
        }
    }

    /// Reads a whole file in pieces, because the disk may fail at any byte, and judges its header.
    fn read(&mut self, file: &File, path: &Path) -> Result<(), (u64, String)> {
        let length = file.metadata().map_err(|error| (0, error.to_string()))?.len();
        let bad = |error: FileError| (0, error.named(&path.display().to_string()).to_string());
        let (mut head, mut piece) = (Vec::new(), vec![0; PIECE_BYTES.min(length as usize)]);
        let (mut at, mut wanted) = (0, None);
        while at < length || at == 0 {
            let count = PIECE_BYTES.min((length - at) as usize);
            file.read_exact_at(&mut piece[..count], at).map_err(|error| (at, error.to_string()))?;
            at += count as u64;
            if piece[..count].starts_with(&placeholder::MAGIC) && at == count as u64 {
                return Ok(());
            }
            let needed = match wanted {
                Some(needed) => needed,
                None => *wanted.insert(codec::head_bytes(&piece[..count], length).map_err(bad)?),
            };
            if head.len() < needed {
                head.extend_from_slice(&piece[..count.min(needed - head.len())]);
                if head.len() == needed {
                    codec::decode_head(&head, length).map_err(bad)?;
                }
            }
            self.go_on &= self.watch.checked(count as u64);
            if !self.go_on {
                break;
            }
        }
        Ok(())
    }

    /// A daemon may be using them: what it has replaced or removed meanwhile is no finding.
    fn journals(&mut self, directory: &Path) {
        let Ok(journals) = journal::Directory::open(directory) else { return };
        let (Ok(files), Ok(ends)) = (journals.files(), journals.ends()) else { return };
        let ends = match ends {
            None => None,
            Some(Ok(ends)) => Some(ends),
            Some(Err(what)) => {
                self.any = true;
                self.found(&directory.join("JOURNAL"), 0, what);
                None
            }
        };
        // How far a file was synced by what the journal says of it, then and now.
        let noted = |key| ends.as_ref().and_then(|ends| ends.files.get(&key).copied());
        let is_same = |key| match journals.ends() {
            Ok(Some(Ok(now))) => noted(key) == now.files.get(&key).copied(),
            Ok(None) => ends.is_none(),
            _ => true,
        };
        for &(generation, shard) in ends.iter().flat_map(|ends| ends.files.keys()) {
            let name = journal::file_name(generation, shard);
            let is_there = |files: &[(u64, OsString)]| files.iter().any(|(_, file)| *file == *name);
            let is_gone = !is_there(&files) && journals.files().is_ok_and(|files| !is_there(&files));
            if is_gone && is_same((generation, shard)) {
                self.found(&directory.join(&name), 0, "the file is missing".to_string());
            }
        }
        for (_, name) in files {
            self.any = true;
            let path = directory.join(&name);
            let key = name.to_str().and_then(journal::key_of);
            let known = Noted {
                id: ends.as_ref().map(|ends| ends.id),
                durable: key.and_then(noted).unwrap_or_default(),
            };
            match journal::scan(&journals, &name, &known, |_| {}) {
                // What a crash leaves, or what is being written.
                Ok(scan) => {
                    let damages = scan.damages.into_iter().filter(|damage| !damage.is_tear);
                    for damage in damages.filter(|_| key.is_none_or(is_same)) {
                        self.found(&path, damage.offset, damage.what);
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => self.found(&path, 0, error.to_string()),
            }
            let length = std::fs::metadata(&path).map_or(0, |found| found.len());
            self.go_on &= self.watch.checked(length);
        }
    }
}
