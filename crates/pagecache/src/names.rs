//! Which files are meant: those named, and those below directories, one by one.
//!
//! A tree is walked with one open directory per level, so that its size does not matter for memory. Links are not followed
//! below a directory; one that is named is.

use std::fmt;
use std::fs::{self, ReadDir};
use std::io;
use std::path::{Path, PathBuf};

/// Deepest directory below a named one: more is a loop of mounts, or a mistake.
const DEPTH_MAX: usize = 256;

/// A path that could not be looked at.
#[derive(Debug)]
pub struct Unreadable {
    /// Which.
    pub path: PathBuf,
    /// Why.
    pub error: io::Error,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot look at \"{}\": {}", self.path.display(), self.error)
    }
}

/// The regular files that are meant, in no order.
pub struct Files<I> {
    named: I,
    open: Vec<(PathBuf, ReadDir)>,
    only: Option<&'static str>,
}

impl<I: Iterator<Item = PathBuf>> Files<I> {
    /// The files of these names; of directories, those whose name ends so.
    pub fn new(named: I, only: Option<&'static str>) -> Files<I> {
        Files { named, open: Vec::new(), only }
    }

    /// Opens a directory, or reports why not.
    fn enter(&mut self, path: PathBuf) -> Option<Unreadable> {
        if self.open.len() >= DEPTH_MAX {
            let error = io::Error::other(format!("more than {DEPTH_MAX} directories deep"));
            return Some(Unreadable { path, error });
        }
        match fs::read_dir(&path) {
            Ok(entries) => self.open.push((path, entries)),
            Err(error) => return Some(Unreadable { path, error }),
        }
        None
    }

    fn is_wanted(&self, path: &Path) -> bool {
        self.only.is_none_or(|only| path.extension().is_some_and(|extension| extension == only))
    }
}

impl<I: Iterator<Item = PathBuf>> Iterator for Files<I> {
    type Item = Result<PathBuf, Unreadable>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((directory, entries)) = self.open.last_mut() else {
                let path = self.named.next()?;
                match fs::metadata(&path) {
                    Err(error) => return Some(Err(Unreadable { path, error })),
                    Ok(metadata) if metadata.is_dir() => match self.enter(path) {
                        Some(unreadable) => return Some(Err(unreadable)),
                        None => continue,
                    },
                    Ok(metadata) if metadata.is_file() => return Some(Ok(path)),
                    Ok(_) => {
                        let error = io::Error::other("neither a file nor a directory");
                        return Some(Err(Unreadable { path, error }));
                    }
                }
            };
            match entries.next() {
                None => {
                    self.open.pop();
                }
                Some(Err(error)) => {
                    let path = directory.clone();
                    self.open.pop();
                    return Some(Err(Unreadable { path, error }));
                }
                Some(Ok(entry)) => {
                    let path = entry.path();
                    match entry.file_type() {
                        Ok(kind) if kind.is_dir() => {
                            if let Some(unreadable) = self.enter(path) {
                                return Some(Err(unreadable));
                            }
                        }
                        Ok(kind) if kind.is_file() && self.is_wanted(&path) => return Some(Ok(path)),
                        Ok(_) => {}
                        Err(error) => return Some(Err(Unreadable { path, error })),
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_walked_and_faults_named() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        for name in ["x.rrd", "a/y.rrd", "a/b/z.rrd", "a/other"] {
            fs::write(at(name), name).unwrap();
        }
        std::os::unix::fs::symlink(directory.path(), at("a/loop")).unwrap();
        let found = |names: &[PathBuf], only| {
            let mut found = Vec::new();
            for one in Files::new(names.iter().cloned(), only) {
                found.push(match one {
                    Ok(path) => path.strip_prefix(directory.path()).unwrap().display().to_string(),
                    Err(unreadable) => format!("!{}", unreadable.path.file_name().unwrap().display()),
                });
            }
            found.sort();
            found
        };
        assert_eq!(
            found(&[directory.path().to_path_buf()], None),
            ["a/b/z.rrd", "a/other", "a/y.rrd", "x.rrd"]
        );
        assert_eq!(
            found(&[at("a"), at("none"), at("a/other")], Some("rrd")),
            ["!none", "a/b/z.rrd", "a/other", "a/y.rrd"]
        );
    }
}
