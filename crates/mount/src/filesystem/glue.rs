//! From the kernel's requests to functions and back.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenAccMode, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request,
    TimeOrNow, WriteFlags,
};
use rustix::io::Errno;

use super::{Mounted, NAME_BYTES_MAX, Stands, lock};
use crate::directory::Item;
use crate::extra::errno;
use crate::inodes::ROOT;
use crate::open::Handle;
use crate::store::Result;

/// How long the kernel may believe a name, and what `stat(2)` says.
const TTL: Duration = Duration::from_secs(1);
/// Bytes of a write.
const WRITE_BYTES: u32 = 1 << 20;
/// What `statfs(2)` says. How many RRDs a store has room for depends on what they hold: it says as much as no program will
/// find too little, 1 PiB.
const BLOCKS: u64 = 1 << 38;
const BLOCK_BYTES: u32 = 4096;
const FILES: u64 = 1 << 32;
/// What every directory begins with.
const DOTS: [&[u8]; 2] = [b".", b".."];
/// No number is used for two files.
const GENERATION: Generation = Generation(0);

fn error(error: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(error.raw_os_error())
}

impl Filesystem for Mounted {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // What the kernel does not know, it does without.
        for flag in [
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_PARALLEL_DIROPS,
        ] {
            config.add_capabilities(flag).ok();
        }
        config.set_max_write(WRITE_BYTES).ok();
        Ok(())
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.path_in(parent.0, name.as_bytes()).and_then(|path| self.find(&path)).map(|stands| {
            if !matches!(stands, Stands::Directory) {
                self.listers.looks(request.pid(), parent.0);
            }
            let number = lock(&self.inodes).learn(parent.0, name.as_bytes());
            self.attributes_of(number, &stands)
        });
        entry(found, reply);
    }

    fn forget(&self, _: &Request, number: INodeNo, count: u64) {
        lock(&self.inodes).forget(number.0, count);
    }

    fn getattr(&self, _: &Request, number: INodeNo, handle: Option<FileHandle>, reply: ReplyAttr) {
        let of_handle = handle.and_then(|handle| self.open.get(handle.0).ok());
        let found = match of_handle {
            Some(Handle::Shared { file, .. }) => Ok(self.owner.file(number.0, &file.stat())),
            Some(Handle::Extra(file)) => file
                .metadata()
                .map(|about| self.owner.file(number.0, &crate::extra::stat(&about)))
                .map_err(|error| errno(&error)),
            None => self.attributes(number.0),
        };
        attributes(found, reply);
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _: Option<SystemTime>,
        handle: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let handle = handle.map(|handle| handle.0);
        let resized = size.map_or(Ok(()), |size| self.resize(number.0, handle, size));
        let rights = resized.and_then(|()| self.set_rights(number.0, (mode, user, group), modified));
        attributes(rights.and_then(|()| self.attributes(number.0)), reply);
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let user = (request.uid(), request.gid());
        let made = match rustix::fs::FileType::from_raw_mode(mode) {
            rustix::fs::FileType::Socket => {
                self.make_socket((parent.0, name.as_bytes()), mode & !umask, user)
            }
            _ => Err(Errno::PERM),
        };
        entry(made, reply);
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        entry(self.make_directory((parent.0, name.as_bytes())), reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.remove((parent.0, name.as_bytes())), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.remove_directory((parent.0, name.as_bytes())), reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        to_parent: INodeNo,
        to: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let no_replace = RenameFlags::RENAME_NOREPLACE;
        if !no_replace.contains(flags) {
            return reply.error(fuser::Errno::EINVAL);
        }
        let (from, to) = ((parent.0, name.as_bytes()), (to_parent.0, to.as_bytes()));
        empty(Mounted::rename(self, from, to, flags.contains(no_replace)), reply);
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let writes = flags.acc_mode() != OpenAccMode::O_RDONLY;
        match self.open_file(number.0, writes) {
            Ok((handle, has_pages)) => {
                let mut flags = FopenFlags::empty();
                flags.set(FopenFlags::FOPEN_KEEP_CACHE, has_pages);
                // Who only reads has nothing to say when he closes it.
                flags.set(FopenFlags::FOPEN_NOFLUSH, !writes);
                reply.opened(FileHandle(handle), flags);
            }
            Err(failure) => reply.error(error(failure)),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let user = (request.uid(), request.gid());
        match Mounted::create(self, (parent.0, name.as_bytes()), mode & !umask, user) {
            Ok((attributes, handle)) => {
                reply.created(&TTL, &attributes, GENERATION, FileHandle(handle), FopenFlags::empty());
            }
            Err(failure) => reply.error(error(failure)),
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.open.get(handle.0) {
            Ok(Handle::Shared { number, file, .. }) => {
                if let Err(failure) = self.load(number, &file) {
                    return reply.error(error(failure));
                }
                let bytes = file.content();
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let end = start.saturating_add(size as usize).min(bytes.len());
                if let Some(version) = file.version() {
                    lock(&self.inodes).asked(number, version, (end - start) as u64, bytes.len() as u64);
                }
                reply.data(&bytes[start..end]);
            }
            Ok(Handle::Extra(file)) => {
                let mut bytes = vec![0; size as usize];
                match file.read_at(&mut bytes, offset) {
                    Ok(count) => reply.data(&bytes[..count]),
                    Err(failure) => reply.error(error(errno(&failure))),
                }
            }
            Err(failure) => reply.error(error(failure)),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = match self.open.get(handle.0) {
            Ok(Handle::Shared { number, file, .. }) => {
                // What is refused, too, may be in the kernel's pages.
                lock(&self.inodes).gets_pages_of(number, None);
                file.write(&self.scratch, offset, data)
            }
            Ok(Handle::Extra(file)) => file.write_all_at(data, offset).map_err(|error| errno(&error)),
            Err(failure) => Err(failure),
        };
        match written {
            Ok(()) => reply.written(data.len() as u32),
            Err(failure) => reply.error(error(failure)),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, handle: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        empty(Mounted::flush(self, handle.0), reply);
    }

    fn fsync(&self, _: &Request, _: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        let done = match self.open.get(handle.0) {
            Ok(Handle::Extra(file)) => file.sync_all().map_err(|error| errno(&error)),
            Ok(Handle::Shared { .. }) => Mounted::flush(self, handle.0),
            Err(failure) => Err(failure),
        };
        empty(done, reply);
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        Mounted::release(self, handle.0);
        reply.ok();
    }

    fn fallocate(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let end = offset.saturating_add(length);
        let done = match self.open.get(handle.0) {
            _ if mode != 0 => Err(Errno::OPNOTSUPP),
            Ok(Handle::Shared { file, .. }) if end > file.bytes() => {
                self.resize(number.0, Some(handle.0), end)
            }
            Ok(Handle::Shared { .. }) => Ok(()),
            // The C library does without.
            Ok(Handle::Extra(_)) => Err(Errno::OPNOTSUPP),
            Err(failure) => Err(failure),
        };
        empty(done, reply);
    }

    fn opendir(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.open_directory(number.0) {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            Err(failure) => reply.error(error(failure)),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let done = self.list(number.0, handle.0, offset, false, |inode, next, name, item, _| {
            let kind = match item {
                Item::Directory => FileType::Directory,
                Item::File(_) => FileType::RegularFile,
                Item::Socket(_) => FileType::Socket,
            };
            reply.add(INodeNo(inode), next, kind, OsStr::from_bytes(name))
        });
        match done {
            Ok(()) => reply.ok(),
            Err(failure) => reply.error(error(failure)),
        }
    }

    fn readdirplus(
        &self,
        request: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let is_short = offset == 0 && !self.listers.lists(request.pid(), number.0);
        let mut left = if is_short { DOTS.len() } else { usize::MAX };
        let done = self.list(number.0, handle.0, offset, true, |inode, next, name, item, own| {
            let attributes = self.attributes_in_list(inode, item);
            let is_full =
                reply.add(INodeNo(inode), next, OsStr::from_bytes(name), &TTL, &attributes, GENERATION);
            if !is_full && !own {
                // The kernel has learned it.
                lock(&self.inodes).learn(number.0, name);
            }
            left -= 1;
            // The kernel asks for the rest without sizes.
            is_full || left == 0
        });
        match done {
            Ok(()) => reply.ok(),
            Err(failure) => reply.error(error(failure)),
        }
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        lock(&self.listings).remove(&handle.0);
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        reply.statfs(BLOCKS, BLOCKS, BLOCKS, FILES, FILES, BLOCK_BYTES, NAME_BYTES_MAX, BLOCK_BYTES);
    }
}

impl Mounted {
    /// Passes the entries of a directory from an offset on to `push`, until that says that it is full: number, offset of the
    /// next, name, what it is, and whether it is `.` or `..`.
    fn list(
        &self,
        number: u64,
        handle: u64,
        mut offset: u64,
        stat: bool,
        mut push: impl FnMut(u64, u64, &[u8], Item, bool) -> bool,
    ) -> Result {
        while let Some(dots) = DOTS.get(offset as usize) {
            let inode = if offset == 0 { number } else { ROOT };
            if push(inode, offset + 1, dots, Item::Directory, true) {
                return Ok(());
            }
            offset += 1;
        }
        let (listing, directory) = (self.listing(handle)?, self.path(number)?);
        let mut listing = lock(&listing);
        loop {
            let is_local = listing.is_local(offset);
            let Some((name, mut item)) = listing.entry(&self.store, offset, stat)? else { break };
            if is_local {
                let path =
                    if directory.is_empty() { name.to_vec() } else { [&directory, &b"/"[..], name].concat() };
                match self.find_local(&path) {
                    Some(found) => item = found,
                    // Gone since the listing began.
                    None => {
                        offset += 1;
                        continue;
                    }
                }
            }
            let inode = lock(&self.inodes).number(number, name);
            offset += 1;
            if push(inode, offset, name, item, false) {
                break;
            }
        }
        Ok(())
    }

    /// What stands at a path that is none of the store's.
    fn find_local(&self, path: &[u8]) -> Option<Item> {
        if self.scratch.is_directory(path) {
            return Some(Item::Directory);
        }
        if let Some(file) = self.scratch.file(path) {
            return Some(Item::File(Some(file.stat())));
        }
        self.extra.as_ref()?.find(path).map(Item::of)
    }

    fn attributes_in_list(&self, number: u64, item: Item) -> FileAttr {
        match (item, self.open.file(number)) {
            (Item::Directory, _) => self.directory_attributes(number),
            (Item::Socket(stat), _) => self.owner.socket(number, &stat),
            (_, Some(file)) => self.owner.file(number, &file.stat()),
            (Item::File(Some(stat)), None) => self.owner.file(number, &stat),
            // Only a listing without sizes lacks them.
            (Item::File(None), None) => self.directory_attributes(number),
        }
    }

    fn resize(&self, number: u64, handle: Option<u64>, size: u64) -> Result {
        let file = match handle.map(|handle| self.open.get(handle)) {
            Some(Ok(Handle::Extra(file))) => return file.set_len(size).map_err(|error| errno(&error)),
            Some(Ok(Handle::Shared { file, .. })) => Some(file),
            _ => self.open.file(number),
        };
        if let Some(file) = file {
            self.load(number, &file)?;
            lock(&self.inodes).gets_pages_of(number, None);
            return file.resize(&self.scratch, size);
        }
        // By its name.
        let path = self.path(number)?;
        match self.find(&path)? {
            Stands::Directory => Err(Errno::ISDIR),
            Stands::Scratch(file) => file.resize(&self.scratch, size),
            Stands::Extra(_) => {
                let extra = self.extra_for(&path).ok_or(Errno::NOENT)?;
                extra.open(&path, true, None)?.set_len(size).map_err(|error| errno(&error))
            }
            Stands::Socket(_) => Err(Errno::INVAL),
            Stands::Rrd(stat) if stat.bytes == size => Ok(()),
            Stands::Rrd(_) => Err(Errno::INVAL),
        }
    }

    /// Files that no store has take rights and times. An RRD has those of its placeholder, and the time of its last update.
    fn set_rights(
        &self,
        number: u64,
        (mode, user, group): (Option<u32>, Option<u32>, Option<u32>),
        modified: Option<TimeOrNow>,
    ) -> Result {
        let modified = modified.map(|time| match time {
            TimeOrNow::Now => crate::attributes::now(),
            TimeOrNow::SpecificTime(time) => since(time),
        });
        if (mode, user, group, modified) == (None, None, None, None) {
            return Ok(());
        }
        let path = self.path(number)?;
        let now = match self.find(&path)? {
            Stands::Scratch(file) => {
                let change = |rights: &mut protocol::rrdcached::files::Rights| {
                    rights.mode = mode.map_or(rights.mode, |mode| mode & 0o7777);
                    rights.user = user.unwrap_or(rights.user);
                    rights.group = group.unwrap_or(rights.group);
                };
                file.set_rights(change, modified);
                return Ok(());
            }
            Stands::Extra(_) | Stands::Socket(_) => {
                return self.extra_for(&path).ok_or(Errno::NOENT)?.set_rights(&path, mode, user, group);
            }
            stands => self.attributes_of(number, &stands),
        };
        let same = mode.is_none_or(|mode| mode & 0o7777 == u32::from(now.perm))
            && user.is_none_or(|user| user == now.uid)
            && group.is_none_or(|group| group == now.gid);
        if same { Ok(()) } else { Err(Errno::PERM) }
    }
}

fn since(time: SystemTime) -> (i64, u32) {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => (since.as_secs() as i64, since.subsec_micros()),
        Err(before) => (-(before.duration().as_secs() as i64), 0),
    }
}

fn entry(found: Result<FileAttr>, reply: ReplyEntry) {
    match found {
        Ok(attributes) => reply.entry(&TTL, &attributes, GENERATION),
        Err(failure) => reply.error(error(failure)),
    }
}

fn attributes(found: Result<FileAttr>, reply: ReplyAttr) {
    match found {
        Ok(attributes) => reply.attr(&TTL, &attributes),
        Err(failure) => reply.error(error(failure)),
    }
}

fn empty(done: Result, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(failure) => reply.error(error(failure)),
    }
}

// Shared with the threads of the session.
const _: fn() = || {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Arc<Mounted>>();
};
