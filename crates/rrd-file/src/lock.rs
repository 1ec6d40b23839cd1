//! Who may use a file now: RRDtool's locks between processes, a table between the threads of this one.
//!
//! RRDtool locks whole files by POSIX `fcntl`, shared to read, exclusive to write. Such a lock belongs to
//! the process and ends when *any* of its descriptors of the file is closed; between threads it does
//! nothing. So files in use are listed by inode: threads that would disturb each other wait, and a
//! descriptor is closed only when nobody in this process uses its file any more. One thread may use a file
//! twice, as with RRDtool. Cost: one `fcntl`, two mutexes.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::file::Access;
use crate::handle::Handle;

/// How long a thread that must not block waits for the other threads of its process; RRDtool's threads
/// would not see each other's locks at all, so that an error at once would be new to their programs.
const THREAD_WAIT: Duration = Duration::from_secs(1);

/// What to do about a file that another process has locked (`RRD_LOCKING`, `--locking`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Locking {
    /// Fail at once.
    #[default]
    Try,
    /// Wait until it is free.
    Block,
    /// Neither look for locks nor take one.
    None,
}

impl Locking {
    /// The value that a word stands for: `try`, `block` or `none`.
    pub fn from_word(word: &str) -> Option<Locking> {
        match word {
            "try" => Some(Locking::Try),
            "block" => Some(Locking::Block),
            "none" => Some(Locking::None),
            _ => None,
        }
    }
}

/// What tells one file from another: device and inode.
pub(crate) type Inode = (u64, u64);

/// One file that this process has open.
#[derive(Debug)]
struct InUse {
    inode: Inode,
    /// Who uses it, once for each use.
    users: Vec<(ThreadId, Access)>,
    /// Descriptors that may only be closed when the last user goes.
    parked: Vec<Handle>,
}

/// Files that this process has open.
#[derive(Debug)]
struct Table {
    files: Vec<InUse>,
    /// Threads that wait for one of them.
    waiting: usize,
}

/// Tables, each of some inodes: a descriptor is closed under the mutex, which takes a microsecond, and threads that update
/// different files should not wait for each other's. Guessed: twice the threads that are usual.
const SHARES: usize = 16;

/// The files of some inodes.
struct Share {
    table: Mutex<Table>,
    released: Condvar,
}

static SHARE: [Share; SHARES] = [const {
    Share { table: Mutex::new(Table { files: Vec::new(), waiting: 0 }), released: Condvar::new() }
}; SHARES];

impl Share {
    fn of((_, number): Inode) -> &'static Share {
        &SHARE[number as usize % SHARES]
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lists a use of a file and locks it. On failure the descriptor is closed, now or when that is safe.
pub(crate) fn acquire(file: Handle, inode: Inode, access: Access, locking: Locking) -> Result<Handle, Errno> {
    if locking == Locking::None {
        return Ok(file);
    }
    let Handle::System(descriptor) = &file else { return Ok(file) };
    if !enter(inode, access, locking) {
        let mut table = Share::of(inode).table();
        if let Some(entry) = table.files.iter_mut().find(|entry| entry.inode == inode) {
            entry.parked.push(file);
        }
        return Err(Errno::AGAIN);
    }
    let operation = match (access, locking) {
        (Access::Read, Locking::Block) => FlockOperation::LockShared,
        (Access::Write, Locking::Block) => FlockOperation::LockExclusive,
        (Access::Read, _) => FlockOperation::NonBlockingLockShared,
        (Access::Write, _) => FlockOperation::NonBlockingLockExclusive,
    };
    loop {
        match rustix::fs::fcntl_lock(descriptor, operation) {
            Ok(()) => return Ok(file),
            Err(Errno::INTR) => {}
            Err(error) => {
                release(file, inode, locking);
                return Err(error);
            }
        }
    }
}

/// Ends a use of a file. Its lock ends with the last one.
pub(crate) fn release(file: Handle, inode: Inode, locking: Locking) {
    if locking == Locking::None {
        return;
    }
    let this = std::thread::current().id();
    let share = Share::of(inode);
    let mut table = share.table();
    let Some(at) = table.files.iter().position(|entry| entry.inode == inode) else { return };
    let users = &mut table.files[at].users;
    // A file may be handed to another thread; then any use will do.
    let user = users.iter().rposition(|(thread, _)| *thread == this).or(users.len().checked_sub(1));
    if let Some(user) = user {
        users.swap_remove(user);
    }
    if users.is_empty() {
        // Closed under the mutex: a thread that came in between would lose its lock.
        drop(file);
        drop(table.files.swap_remove(at));
    } else {
        table.files[at].parked.push(file);
    }
    // Waking costs a system call even when nobody sleeps.
    if table.waiting > 0 {
        drop(table);
        share.released.notify_all();
    }
}

/// Waits until no other thread of this process is in the way. False when that takes too long.
fn enter(inode: Inode, access: Access, locking: Locking) -> bool {
    let this = std::thread::current().id();
    let share = Share::of(inode);
    let mut table = share.table();
    let mut begin = None;
    loop {
        let Some(entry) = table.files.iter_mut().find(|entry| entry.inode == inode) else {
            table.files.push(InUse { inode, users: vec![(this, access)], parked: Vec::new() });
            return true;
        };
        let disturbs = |(thread, other): &(ThreadId, Access)| {
            *thread != this && (access == Access::Write || *other == Access::Write)
        };
        if !entry.users.iter().any(disturbs) {
            entry.users.push((this, access));
            return true;
        }
        let waited = begin.get_or_insert_with(Instant::now).elapsed();
        if locking == Locking::Try && waited >= THREAD_WAIT {
            return false;
        }
        table.waiting += 1;
        table = share.released.wait_timeout(table, THREAD_WAIT).unwrap_or_else(PoisonError::into_inner).0;
        table.waiting -= 1;
    }
}
