//! The content of a simulated disk: what is durable, what was written since, and what a crash makes of both.
//!
//! Files are reached by inode only, names through one map; the same seed and calls give the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Bytes that a disk writes atomically.
const SECTOR_BYTES: u64 = 512;

/// One file.
#[derive(Clone, Default)]
pub(super) struct File {
    /// The content as readers see it.
    current: Bytes,
    /// The content at the last sync.
    durable: Bytes,
    /// The changes since then, in order.
    pending: Vec<Change>,
    locked: bool,
}

/// The bytes of a file: what was written, and zeros up to the length. Reserved space takes no memory.
#[derive(Clone, Default)]
pub(super) struct Bytes {
    written: Vec<u8>,
    length: u64,
}

impl Bytes {
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Copies bytes from `offset` on and returns how many.
    pub(super) fn read(&self, into: &mut [u8], offset: u64) -> usize {
        let count = into.len().min(self.length.saturating_sub(offset) as usize);
        let written = self.written.get(offset as usize..).unwrap_or(&[]);
        let copied = count.min(written.len());
        into[..copied].copy_from_slice(&written[..copied]);
        into[copied..count].fill(0);
        count
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        if self.written.len() < end {
            self.written.resize(end, 0);
        }
        self.written[start..end].copy_from_slice(bytes);
        self.length = self.length.max(end as u64);
    }

    fn set_length(&mut self, length: u64) {
        self.written.truncate(length as usize);
        self.length = length;
    }

    fn flip(&mut self, bit: u64) -> Option<()> {
        let mut byte = [0];
        (self.read(&mut byte, bit / 8) == 1).then(|| self.write(bit / 8, &[byte[0] ^ 1 << (bit % 8)]))
    }
}

#[derive(Clone)]
enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    SetLength(u64),
}

/// A change of the names.
#[derive(Clone)]
pub(super) enum NameChange {
    /// A new name for an inode.
    Link(PathBuf, u64),
    /// A removed name.
    Unlink(PathBuf),
    /// From, to, inode.
    Rename(PathBuf, PathBuf, u64),
}

impl NameChange {
    fn is_in(&self, dir: &Path) -> bool {
        match self {
            NameChange::Link(path, _) | NameChange::Unlink(path) => super::parent(path) == dir,
            NameChange::Rename(from, to, _) => super::parent(from) == dir || super::parent(to) == dir,
        }
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, u64>) {
        match self {
            NameChange::Link(path, inode) => {
                names.insert(path.clone(), *inode);
            }
            NameChange::Unlink(path) => {
                names.remove(path);
            }
            NameChange::Rename(from, to, inode) => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
        }
    }
}

/// Files, names and directories.
#[derive(Clone)]
pub(super) struct Medium {
    random: u64,
    files: BTreeMap<u64, File>,
    next_inode: u64,
    dirs: BTreeSet<PathBuf>,
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    pending_names: Vec<NameChange>,
}

impl Medium {
    pub(super) fn new(seed: u64) -> Self {
        Medium {
            random: seed,
            files: BTreeMap::new(),
            next_inode: 1,
            dirs: BTreeSet::from([PathBuf::new()]),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            pending_names: Vec::new(),
        }
    }

    /// The next random number below `limit`.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.random) % limit
    }

    pub(super) fn find(&self, path: &Path) -> Option<u64> {
        self.names.get(path).copied()
    }

    pub(super) fn has_dir(&self, path: &Path) -> bool {
        self.dirs.contains(path)
    }

    /// The file of an inode. Removed files are kept as long as the disk, for those that have them open.
    pub(super) fn file(&self, inode: u64) -> &File {
        &self.files[&inode]
    }

    fn file_mut(&mut self, inode: u64) -> &mut File {
        self.files.entry(inode).or_default()
    }

    pub(super) fn create(&mut self, path: &Path) -> u64 {
        let inode = self.next_inode;
        self.next_inode += 1;
        self.files.insert(inode, File::default());
        self.change_name(NameChange::Link(path.to_owned(), inode));
        inode
    }

    pub(super) fn change_name(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.pending_names.push(change);
    }

    pub(super) fn create_dir_all(&mut self, dir: &Path) {
        self.dirs.extend(dir.ancestors().map(Path::to_owned));
    }

    pub(super) fn sync_dir(&mut self, dir: &Path) {
        let Medium { pending_names, durable_names, .. } = self;
        pending_names.retain(|change| {
            let here = change.is_in(dir);
            if here {
                change.apply(durable_names);
            }
            !here
        });
    }

    pub(super) fn sync_all(&mut self) {
        std::mem::take(&mut self.pending_names)
            .iter()
            .for_each(|change| change.apply(&mut self.durable_names));
        let inodes: Vec<u64> = self.files.keys().copied().collect();
        inodes.into_iter().for_each(|inode| self.sync(inode));
    }

    pub(super) fn list(&self, dir: &Path) -> Vec<OsString> {
        let inside = |path: &&PathBuf| path.parent() == Some(dir);
        let names: BTreeSet<OsString> = (self.names.keys().filter(inside))
            .chain(self.dirs.iter().filter(inside))
            .filter_map(|path| path.file_name().map(OsString::from))
            .collect();
        names.into_iter().collect()
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.names.values().map(|inode| self.files[inode].current.length).sum()
    }

    pub(super) fn write(&mut self, inode: u64, offset: u64, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.file_mut(inode).change(Change::Write { offset, bytes: bytes.to_vec() });
        }
    }

    pub(super) fn set_length(&mut self, inode: u64, length: u64) {
        self.file_mut(inode).change(Change::SetLength(length));
    }

    pub(super) fn sync(&mut self, inode: u64) {
        let file = self.file_mut(inode);
        let pending = std::mem::take(&mut file.pending);
        pending.iter().for_each(|change| change.apply(&mut file.durable));
    }

    /// Makes some pending changes durable and drops the rest, while readers still see them.
    pub(super) fn fail_to_sync(&mut self, inode: u64) {
        let mut file = std::mem::take(self.file_mut(inode));
        file.durable = self.after_power_loss(&file);
        file.pending.clear();
        *self.file_mut(inode) = file;
    }

    pub(super) fn flip_bit(&mut self, path: &Path, bit: u64) -> Option<()> {
        let inode = self.find(path)?;
        self.sync(inode);
        let file = self.file_mut(inode);
        file.current.flip(bit).and_then(|()| file.durable.flip(bit))
    }

    pub(super) fn replace(&mut self, path: &Path, bytes: &[u8]) -> Option<()> {
        let inode = self.find(path)?;
        self.set_length(inode, 0);
        self.write(inode, 0, bytes);
        self.sync(inode);
        Some(())
    }

    pub(super) fn lock(&mut self, inode: u64) -> bool {
        !std::mem::replace(&mut self.file_mut(inode).locked, true)
    }

    pub(super) fn unlock(&mut self, inode: u64) {
        self.file_mut(inode).locked = false;
    }

    /// The disk as the next process finds it.
    pub(super) fn after_kill(&self) -> Medium {
        let mut next = self.clone();
        next.files.values_mut().for_each(|file| file.locked = false);
        next
    }

    /// The disk as the next boot finds it.
    pub(super) fn after_crash(&mut self) -> Medium {
        let mut names = self.durable_names.clone();
        let changes = std::mem::take(&mut self.pending_names);
        let (way, count) = (self.below(4), changes.len() as u64);
        let upto = if way == 2 { self.below(count + 1) } else { 0 };
        for (index, change) in changes.iter().enumerate() {
            let kept = match way {
                0 => true,
                1 => false,
                2 => (index as u64) < upto,
                _ => self.below(2) == 0,
            };
            if kept {
                change.apply(&mut names);
            }
        }
        let mut next = Medium { random: mix(self.random), next_inode: self.next_inode, ..Medium::new(0) };
        next.dirs = self.dirs.clone();
        for inode in names.values().copied().collect::<BTreeSet<u64>>() {
            let file = self.files[&inode].clone();
            let bytes = self.after_power_loss(&file);
            let found = File { current: bytes.clone(), durable: bytes, ..File::default() };
            next.files.insert(inode, found);
        }
        next.durable_names = names.clone();
        next.names = names;
        next
    }

    /// The content of a file after a loss of power.
    fn after_power_loss(&mut self, file: &File) -> Bytes {
        let mut bytes = file.durable.clone();
        match self.below(4) {
            0 => file.pending.iter().for_each(|change| change.apply(&mut bytes)),
            1 => {}
            2 => {
                let upto = self.below(file.pending.len() as u64 + 1) as usize;
                file.pending[..upto].iter().for_each(|change| change.apply(&mut bytes));
                if let Some(Change::Write { offset, bytes: written }) = file.pending.get(upto) {
                    let count = self.below(written.len() as u64 + 1) as usize;
                    bytes.write(*offset, &written[..count]);
                }
            }
            _ => {
                let (salt, length_moment) = (self.below(u64::MAX), self.below(file.pending.len() as u64 + 1));
                bytes = mixture(bytes, &file.pending, salt, length_moment as usize);
            }
        }
        bytes
    }
}

/// Each sector after some number of the changes, and the length as of `length_moment`.
fn mixture(durable: Bytes, pending: &[Change], salt: u64, length_moment: usize) -> Bytes {
    let mut bytes = durable;
    let mut length = bytes.length;
    let mut length_then = length;
    let reached =
        |sector: u64, index: usize| index < (mix(salt ^ mix(sector)) % (pending.len() as u64 + 1)) as usize;
    for (index, change) in pending.iter().enumerate() {
        let first_byte = match change {
            Change::Write { offset, bytes: written } => {
                length = length.max(offset + written.len() as u64);
                *offset
            }
            Change::SetLength(to) => {
                length = *to;
                *to
            }
        };
        if index < length_moment {
            length_then = length;
        }
        let end = match change {
            Change::Write { bytes: written, .. } => first_byte + written.len() as u64,
            Change::SetLength(_) => bytes.written.len() as u64,
        };
        let mut at = first_byte;
        while at < end {
            let sector_end = ((at / SECTOR_BYTES + 1) * SECTOR_BYTES).min(end);
            if reached(at / SECTOR_BYTES, index) {
                match change {
                    Change::Write { bytes: written, .. } => {
                        let part = (at - first_byte) as usize..(sector_end - first_byte) as usize;
                        bytes.write(at, &written[part]);
                    }
                    Change::SetLength(_) => bytes.written[at as usize..sector_end as usize].fill(0),
                }
            }
            at = sector_end;
        }
    }
    bytes.set_length(length_then);
    bytes
}

impl File {
    pub(super) fn bytes(&self) -> &Bytes {
        &self.current
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.current);
        self.pending.push(change);
    }
}

impl Change {
    fn apply(&self, file: &mut Bytes) {
        match self {
            Change::Write { offset, bytes } => file.write(*offset, bytes),
            Change::SetLength(length) => file.set_length(*length),
        }
    }
}

/// One step of SplitMix64, which spreads every bit over all others.
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
