//! What becomes of a `.rrd` file whose RRD the store has taken in: programs must not read it any more.
//!
//! It goes into an archive of the store, `adopted-DAY.tar.zst`, and a placeholder takes its place, once the RRD is durable and was read back equal.
//! Or it stays, if the operator wants that; then it is reported once.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rrd::codec::file::{FileHead, decode_head, head_bytes};
use rrd::content::Rrd;
use rrd::live::HeadShape;
use rrd::time::Timestamp;
use rrd_file::tree::Tree;
use rustix::fs::Stat;

use crate::disk::{Disk, DiskFile, Mode};
use crate::engine::StoreError;
use crate::filenames;
use crate::lock::lock;
use crate::log::catalogue::encode_rrd;
use crate::name::RrdName;
use crate::placeholder::{Placeholders, RrdNumber};
use crate::stripes::adopt::FILE_BYTES_MAX;

/// What becomes of a file that was taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adopted {
    /// It stays, and is not read any more.
    Stays,
    /// It goes into the store's archive, and is deleted there after this time.
    Archived(Duration),
}

/// The most files that stay and are reported one by one.
const KEPT_REPORTED: usize = 1000;
/// Bytes of a `.rrd` file that say how long its header is.
const HEAD_PREFIX_BYTES: usize = 128;
const ZSTD_LEVEL: i32 = 3;
const DAY_SECONDS: i64 = 86_400;

/// A file as it was when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    device: u64,
    inode: u64,
    bytes: i64,
    modified: (i64, u64),
}

impl Version {
    /// A file as it is now.
    pub(super) fn of_file(file: &File) -> Option<Self> {
        Some(Version::of(&rustix::fs::fstat(file).ok()?))
    }

    fn of(about: &Stat) -> Self {
        Version {
            device: about.st_dev,
            inode: about.st_ino,
            bytes: about.st_size,
            modified: (about.st_mtime, about.st_mtime_nsec),
        }
    }
}

/// A file that was taken in, ready for the archive.
pub(in super::super) struct Taken {
    pub(in super::super) name: RrdName,
    about: Stat,
    /// A compressed entry of a tar archive.
    entry: Vec<u8>,
}

/// The files whose RRDs the store has.
pub(in super::super) struct Originals {
    disk: Arc<dyn Disk>,
    placeholders: Option<Arc<Placeholders>>,
    policy: Adopted,
    /// Files that the store has taken in, and that are there yet.
    known: Mutex<HashMap<RrdName, Version>>,
    /// Those that an earlier process has taken in, and that are to go.
    old: Mutex<Vec<RrdName>>,
}

impl Originals {
    pub(in super::super) fn new(
        disk: Arc<dyn Disk>,
        placeholders: Option<Arc<Placeholders>>,
        policy: Adopted,
    ) -> Self {
        Originals { disk, placeholders, policy, known: Mutex::default(), old: Mutex::default() }
    }

    /// Whether files go.
    pub(in super::super) fn go(&self) -> bool {
        self.placeholders.is_some() && self.policy != Adopted::Stays
    }

    /// Whether this is the file of an RRD that was taken in, and not another one that was put there since. `last_update` is the RRD's, in units of
    /// its own; to be given as long as files may be found that an earlier process has taken in: they have no newer data.
    pub(in super::super) fn is_known(
        &self,
        name: &RrdName,
        file: &File,
        last_update: Option<Timestamp>,
    ) -> bool {
        let Ok(about) = rustix::fs::fstat(file) else { return true };
        let version = Version::of(&about);
        if lock(&self.known).get(name) == Some(&version) {
            return true;
        }
        let Some(last_update) = last_update else { return false };
        if last_update_of(file, about.st_size as u64).is_none_or(|of_file| of_file > last_update) {
            return false;
        }
        match self.go() {
            true => {
                tracing::warn!(rrd = %name, "a .rrd file without newer data stands in the place of an RRD of the store: it is archived; to use it nevertheless, import it");
                lock(&self.known).insert(name.clone(), version);
                lock(&self.old).push(name.clone());
            }
            false => self.keep(name, file, "adopt = \"keep\""),
        }
        true
    }

    /// Whether a file stands at this name that was taken in, or is about to be.
    pub(in super::super) fn has(&self, name: &RrdName) -> bool {
        lock(&self.known).contains_key(name)
    }

    /// Notes that a file is about to be taken in.
    pub(super) fn begin(&self, name: &RrdName, file: &File) {
        if let Ok(about) = rustix::fs::fstat(file) {
            lock(&self.known).insert(name.clone(), Version::of(&about));
        }
    }

    /// Some of the files that an earlier process has taken in.
    pub(in super::super) fn take_old(&self, count: usize) -> Vec<RrdName> {
        let mut old = lock(&self.old);
        let rest = old.len().saturating_sub(count);
        old.split_off(rest)
    }

    /// Notes that a file stays although the store has its RRD, and says so.
    pub(in super::super) fn keep(&self, name: &RrdName, file: &File, why: &str) {
        let Ok(about) = rustix::fs::fstat(file) else { return };
        let version = Version::of(&about);
        let mut known = lock(&self.known);
        known.insert(name.clone(), version);
        if known.len() <= KEPT_REPORTED {
            tracing::warn!(rrd = %name, "took in a .rrd file, which stays and grows old ({why}): programs that read it do not see new data");
        }
    }

    /// Prepares a file with this content for the archive.
    pub(in super::super) fn take(
        &self,
        name: &RrdName,
        file: &File,
        content: &[u8],
    ) -> Result<Taken, StoreError> {
        let failed = |error| StoreError::io(format!("cannot archive the file of \"{name}\""), error);
        let about = rustix::fs::fstat(file).map_err(|error| failed(error.into()))?;
        let entry = tar_entry(name, &about, content).map_err(failed)?;
        Ok(Taken { name: name.clone(), about, entry })
    }

    /// Puts files in the archive of the day and placeholders in their places. Their RRDs are durable.
    pub(in super::super) fn put_away(
        &self,
        tree: &Tree,
        taken: Vec<(Taken, (RrdNumber, u64))>,
        now: i64,
    ) -> Result<(), StoreError> {
        let Some(placeholders) = self.placeholders.as_ref().filter(|_| !taken.is_empty()) else {
            return Ok(());
        };
        let entries: Vec<&[u8]> = taken.iter().map(|(taken, _)| &taken.entry[..]).collect();
        self.append(&entries.concat(), now.div_euclid(DAY_SECONDS))
            .map_err(|error| StoreError::io("cannot write the archive of files that were taken in", error))?;
        for (Taken { name, about, .. }, of_rrd) in &taken {
            let is_unchanged = || {
                let now = tree.open_afresh(name).and_then(|file| file.stat());
                matches!(now, Ok(Some(now)) if Version::of(&now) == Version::of(about))
            };
            match placeholders.replace_file(name, *of_rrd, about, is_unchanged) {
                Ok(true) => {
                    lock(&self.known).remove(name);
                    // There may be a million.
                    tracing::debug!(rrd = %name, bytes = about.st_size, "took in a .rrd file; a placeholder has its place");
                }
                // Another program has written another one, which is seen to next.
                Ok(false) => {}
                Err(error) => {
                    if let Ok(rrd_file::handle::Handle::System(file)) = tree.open_afresh(name) {
                        self.keep(name, &File::from(file), &error.to_string());
                    }
                }
            }
        }
        Ok(())
    }

    fn append(&self, bytes: &[u8], day: i64) -> io::Result<()> {
        let path = filenames::adopted(Path::new(""), day);
        let (file, is_new): (Arc<dyn DiskFile>, bool) = match self.disk.open(&path, Mode::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => (self.disk.create(&path)?, true),
            opened => (opened?, false),
        };
        file.write_at(bytes, file.length()?)?;
        file.sync()?;
        if is_new { self.disk.sync_dir(Path::new("")) } else { Ok(()) }
    }

    /// Deletes the archives that are older than they are kept.
    pub(in super::super) fn expire(&self, now: i64) {
        let Adopted::Archived(keep) = self.policy else { return };
        let oldest = (now - keep.as_secs() as i64).div_euclid(DAY_SECONDS);
        for name in self.disk.list(Path::new("")).unwrap_or_default() {
            if filenames::adopted_day(&name).is_some_and(|day| day < oldest) {
                match self.disk.remove(Path::new(&name)) {
                    Ok(()) => {
                        tracing::info!(file = %name.display(), "deleted an old archive of files that were taken in")
                    }
                    Err(error) => {
                        tracing::warn!(%error, file = %name.display(), "cannot delete an old archive")
                    }
                }
            }
        }
    }
}

/// The last update of a `.rrd` file of so many bytes, from its header; `None` when it has none.
fn last_update_of(file: &File, bytes: u64) -> Option<Timestamp> {
    let mut prefix = [0; HEAD_PREFIX_BYTES];
    let count = file.read_at(&mut prefix, 0).ok()?;
    let mut head = vec![0; head_bytes(&prefix[..count], bytes).ok()?];
    file.read_exact_at(&mut head, 0).ok()?;
    let FileHead { definition, words, .. } = decode_head(&head, bytes).ok()?;
    Some(HeadShape::of(&definition).split(&words).last_update)
}

/// All of a file.
pub(in super::super) fn read(file: &File) -> io::Result<Vec<u8>> {
    let bytes = file.metadata()?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("it has {bytes} bytes, {FILE_BYTES_MAX} are the limit")));
    }
    let mut content = Vec::with_capacity(bytes as usize);
    // It may be growing.
    file.take(FILE_BYTES_MAX).read_to_end(&mut content)?;
    Ok(content)
}

/// Whether what was read back is what the file held, bit for bit.
pub(super) fn is_equal(file: &Rrd, stored: &Rrd) -> bool {
    encode_rrd(file) == encode_rrd(stored)
}

/// A file as an entry of a tar archive, compressed by itself: such entries can be written one after the other.
fn tar_entry(name: &RrdName, about: &Stat, content: &[u8]) -> io::Result<Vec<u8>> {
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(about.st_mode & 0o7777);
    header.set_uid(u64::from(about.st_uid));
    header.set_gid(u64::from(about.st_gid));
    header.set_mtime(about.st_mtime as u64);
    let mut archive = tar::Builder::new(Vec::new());
    let path = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name.as_bytes());
    archive.append_data(&mut header, path, content)?;
    let mut bytes = archive.into_inner()?;
    // Without the end of the archive, which follows the last entry.
    bytes.truncate(bytes.len() - 1024);
    zstd::bulk::compress(&bytes, ZSTD_LEVEL)
}
