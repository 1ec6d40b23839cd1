//! The directories of a tree, watched by inotify(7): which names may have changed since they were last looked at.
//!
//! The kernel queues an event before the system call that causes it returns. So a thread that finds the queue empty knows that the tree is as
//! it was when the last event was taken. Events are only hints where to look: what a name is follows from what stands there.
//! Hidden directories and files, whose names begin with a dot, are left out.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::mem::MaybeUninit;
use std::ops::Bound;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use crate::name::RrdName;
use crate::tree::{Directory, Tree, split};

/// What is asked of each directory.
const EVENTS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::EXCL_UNLINK);

/// Bytes of events that are read at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// A watched tree.
pub struct Watch {
    queue: Arc<OwnedFd>,
    tree: Arc<Tree>,
    by_descriptor: HashMap<i32, Box<[u8]>>,
    by_path: BTreeMap<Box<[u8]>, i32>,
    /// Reused memory for events.
    buffer: Vec<MaybeUninit<u8>>,
}

/// What may have changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Names of files.
    pub files: HashSet<RrdName>,
    /// Directories that were moved away, with all that is in them. Of one that was removed, each file was removed before.
    pub gone: HashSet<Vec<u8>>,
    /// Directories that may be new at their paths.
    pub new: HashSet<Vec<u8>>,
    /// Events were lost: anything may have changed.
    pub lost: bool,
    /// The tree itself was removed, moved or unmounted.
    pub root_gone: bool,
}

impl Changes {
    /// Whether directories have changed.
    pub fn has_directories(&self) -> bool {
        !self.gone.is_empty() || !self.new.is_empty()
    }
}

/// Whether the last component is hidden.
pub fn is_hidden(path: &[u8]) -> bool {
    split(path).1.first() == Some(&b'.')
}

fn joined(directory: &[u8], leaf: &[u8]) -> Vec<u8> {
    if directory.is_empty() { leaf.to_vec() } else { [directory, b"/", leaf].concat() }
}

impl Watch {
    /// Watches nothing yet.
    ///
    /// # Errors
    /// The system's: there may be too many users of inotify.
    pub fn new(tree: Arc<Tree>) -> io::Result<Self> {
        let queue = Arc::new(inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?);
        Ok(Watch {
            queue,
            tree,
            by_descriptor: HashMap::new(),
            by_path: BTreeMap::new(),
            buffer: vec![MaybeUninit::uninit(); BUFFER_BYTES],
        })
    }

    /// The queue of events.
    pub fn queue(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.queue)
    }

    /// Watches a directory from now on, and returns what it contains: the names of its files, and the paths of its directories.
    /// Nothing when it is not there any more.
    ///
    /// # Errors
    /// The system's; `ENOSPC` when there are too many watches.
    pub fn add(&mut self, directory: &[u8]) -> io::Result<(Vec<RrdName>, Vec<Vec<u8>>)> {
        let (mut files, mut directories) = (Vec::new(), Vec::new());
        let opened = match self.tree.open_directory(directory) {
            Ok(opened) => opened,
            Err(error) if is_gone(&error) => return Ok((files, directories)),
            Err(error) => return Err(error),
        };
        // By its descriptor: a path from the root may be longer than the system allows.
        let path = format!("/proc/self/fd/{}", opened.as_fd().as_raw_fd());
        let descriptor = inotify::add_watch(&self.queue, path, EVENTS)?;
        self.forget(descriptor);
        self.by_descriptor.insert(descriptor, directory.into());
        if let Some(old) = self.by_path.insert(directory.into(), descriptor) {
            // Another directory had this path before.
            self.by_descriptor.remove(&old);
        }
        read(&opened, directory, &mut files, &mut directories)?;
        Ok((files, directories))
    }

    /// What a directory contains, as [`Watch::add`] returns it, without watching it.
    ///
    /// # Errors
    /// The system's.
    pub fn list(tree: &Tree, directory: &[u8]) -> io::Result<(Vec<RrdName>, Vec<Vec<u8>>)> {
        let (mut files, mut directories) = (Vec::new(), Vec::new());
        match tree.open_directory(directory) {
            Ok(opened) => read(&opened, directory, &mut files, &mut directories)?,
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error),
        }
        Ok((files, directories))
    }

    /// Takes all events that are queued.
    pub fn take(&mut self) -> Changes {
        let mut changes = Changes::default();
        let mut buffer = std::mem::take(&mut self.buffer);
        let queue = Arc::clone(&self.queue);
        let mut reader = Reader::new(&*queue, &mut buffer);
        loop {
            match reader.next() {
                Ok(event) => {
                    let leaf = event.file_name().map_or(&b""[..], |name| name.to_bytes());
                    self.note(event.wd(), event.events(), leaf, &mut changes);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // It was opened by this process, so there is no reason for this; then all of the tree is looked at.
                Err(_) => {
                    changes.lost = true;
                    break;
                }
            }
        }
        self.buffer = buffer;
        changes
    }

    fn note(&mut self, descriptor: i32, events: ReadFlags, leaf: &[u8], changes: &mut Changes) {
        changes.lost |= events.contains(ReadFlags::QUEUE_OVERFLOW);
        // One that is not watched any more.
        let Some(directory) = self.by_descriptor.get(&descriptor) else { return };
        if events.intersects(
            ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT | ReadFlags::IGNORED,
        ) {
            changes.root_gone |= directory.is_empty();
            if events.contains(ReadFlags::IGNORED) {
                self.forget(descriptor);
            }
            return;
        }
        let path = joined(directory, leaf);
        if leaf.is_empty() || is_hidden(&path) {
            return;
        }
        if !events.contains(ReadFlags::ISDIR) {
            changes.files.extend(RrdName::new(&path).ok());
        } else if events.contains(ReadFlags::MOVED_FROM) {
            changes.gone.insert(path);
        } else if events.intersects(ReadFlags::MOVED_TO | ReadFlags::CREATE) {
            changes.new.insert(path);
        }
    }

    fn forget(&mut self, descriptor: i32) {
        if let Some(path) = self.by_descriptor.remove(&descriptor) {
            self.by_path.remove(&path);
        }
    }

    /// Watches a directory and those below it no longer: it has another path now, or none.
    pub fn remove(&mut self, directory: &[u8]) {
        let below = joined(directory, b"");
        let inside: Vec<Box<[u8]>> = self
            .by_path
            .range::<[u8], _>((Bound::Included(below.as_slice()), Bound::Unbounded))
            .take_while(|(path, _)| path.starts_with(&below))
            .map(|(path, _)| path.clone())
            .collect();
        for path in inside.iter().map(|path| &path[..]).chain([directory]) {
            if let Some(&descriptor) = self.by_path.get(path) {
                // It may have gone with its directory.
                let _ = inotify::remove_watch(&self.queue, descriptor);
                self.forget(descriptor);
            }
        }
    }

    /// Watches nothing any more.
    pub fn clear(&mut self) {
        for &descriptor in self.by_descriptor.keys() {
            let _ = inotify::remove_watch(&self.queue, descriptor);
        }
        self.by_descriptor.clear();
        self.by_path.clear();
    }
}

fn read(
    opened: &Directory,
    path: &[u8],
    files: &mut Vec<RrdName>,
    directories: &mut Vec<Vec<u8>>,
) -> io::Result<()> {
    for entry in opened.entries()? {
        let path = joined(path, &entry.leaf);
        match entry.is_directory {
            _ if is_hidden(&path) => {}
            true => directories.push(path),
            false => files.extend(RrdName::new(&path).ok()),
        }
    }
    Ok(())
}

/// Whether a directory is not there, or not a directory.
fn is_gone(error: &io::Error) -> bool {
    let gone = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::XDEV, Errno::NAMETOOLONG];
    gone.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn every_way_to_change_a_tree_is_seen() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join("a/deep")).unwrap();
        fs::create_dir(root.join(".hidden")).unwrap();
        fs::write(root.join("a/x.rrd"), b"").unwrap();
        let mut watch = Watch::new(Arc::new(Tree::open(root).unwrap())).unwrap();
        let name = |text: &str| RrdName::new(text.as_bytes()).unwrap();
        assert_eq!(watch.add(b"").unwrap(), (vec![], vec![b"a".to_vec()]));
        assert_eq!(watch.add(b"a").unwrap(), (vec![name("a/x.rrd")], vec![b"a/deep".to_vec()]));
        watch.add(b"a/deep").unwrap();
        assert_eq!(watch.take(), Changes::default());
        let mut files = |act: &dyn Fn()| {
            act();
            let mut names: Vec<String> = watch.take().files.iter().map(ToString::to_string).collect();
            names.sort();
            names.join(" ")
        };
        assert_eq!(files(&|| fs::rename(root.join("a/x.rrd"), root.join("y.rrd")).unwrap()), "a/x.rrd y.rrd");
        assert_eq!(
            files(&|| fs::copy(root.join("y.rrd"), root.join("a/deep/z.rrd")).map(|_| ()).unwrap()),
            "a/deep/z.rrd"
        );
        assert_eq!(files(&|| fs::hard_link(root.join("y.rrd"), root.join("l.rrd")).unwrap()), "l.rrd");
        assert_eq!(files(&|| fs::remove_file(root.join("l.rrd")).unwrap()), "l.rrd");
        assert_eq!(files(&|| fs::write(root.join("y.rrd"), b"new").unwrap()), "y.rrd");
        assert_eq!(files(&|| fs::write(root.join(".y.rrd.Ab3"), b"rsync").unwrap()), "");
        assert_eq!(files(&|| fs::rename(root.join(".y.rrd.Ab3"), root.join("y.rrd")).unwrap()), "y.rrd");
        // A directory that takes the place of another is watched, whatever of the other is heard of later.
        fs::remove_dir_all(root.join("a/deep")).unwrap();
        fs::create_dir(root.join("a/deep")).unwrap();
        watch.add(b"a/deep").unwrap();
        watch.take();
        fs::write(root.join("a/deep/z.rrd"), b"").unwrap();
        assert_eq!(watch.take().files, [name("a/deep/z.rrd")].into());
        fs::rename(root.join("a"), root.join("b")).unwrap();
        let changes = watch.take();
        assert_eq!((changes.gone, changes.new), ([b"a".to_vec()].into(), [b"b".to_vec()].into()));
        watch.remove(b"a");
        assert_eq!(watch.by_path.keys().map(|path| path.len()).collect::<Vec<_>>(), [0]);
        let away = root.with_extension("away");
        fs::rename(root, &away).unwrap();
        assert!(watch.take().root_gone);
        fs::remove_dir_all(away).unwrap();
    }
}
