//! File locks: RRDtool's between processes, and a table between the threads of this process.
//!
//! RRDtool locks whole files with POSIX `fcntl`, shared for reading, exclusive for writing. Such a lock
//! belongs to the process and ends when *any* of its descriptors of the file is closed; it has no effect
//! between threads. So files in use are recorded by inode: conflicting threads wait for each other, and a
//! descriptor is closed only when no thread of this process uses its file any more. One thread may use a file
//! twice, as with RRDtool. Cost: one `fcntl`, two mutexes.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::file::Access;
use crate::handle::Handle;

/// How long a non-blocking thread waits for other threads of its process. RRDtool's threads do not see each
/// other's locks at all, so programs do not expect an immediate error.
const THREAD_WAIT: Duration = Duration::from_secs(1);

/// What to do when another process has locked a file (`RRD_LOCKING`, `--locking`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Locking {
    /// Fail at once.
    #[default]
    Try,
    /// Wait until it is free.
    Block,
    /// Neither check nor take locks.
    None,
}

impl Locking {
    /// The value for `try`, `block` or `none`.
    pub fn from_word(word: &str) -> Option<Locking> {
        match word {
            "try" => Some(Locking::Try),
            "block" => Some(Locking::Block),
            "none" => Some(Locking::None),
            _ => None,
        }
    }
}

/// Identifies a file: device and inode.
pub(crate) type Inode = (u64, u64);

/// A file that this process has open.
#[derive(Debug)]
struct InUse {
    inode: Inode,
    /// The users, once per use.
    users: Vec<(ThreadId, Access)>,
    /// Descriptors that may only be closed with the last use.
    parked: Vec<Handle>,
}

/// The files that this process has open.
#[derive(Debug)]
struct Table {
    files: Vec<InUse>,
    /// Number of threads waiting for one of them.
    waiting: usize,
}

/// Number of tables, each for some inodes. A descriptor is closed under the mutex, which takes a microsecond,
/// and threads that update different files should not wait for each other. Guessed: twice the usual number of
/// threads.
const SHARES: usize = 16;

/// The table for some inodes.
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

/// Registers a use of a file and locks it. On failure the descriptor is closed as soon as that is safe.
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

/// Ends a use of a file. Its lock ends with the last use.
pub(crate) fn release(file: Handle, inode: Inode, locking: Locking) {
    if locking == Locking::None {
        return;
    }
    let this = std::thread::current().id();
    let share = Share::of(inode);
    let mut table = share.table();
    let Some(at) = table.files.iter().position(|entry| entry.inode == inode) else { return };
    let users = &mut table.files[at].users;
    // A file may be handed to another thread; then any use is removed.
    let user = users.iter().rposition(|(thread, _)| *thread == this).or(users.len().checked_sub(1));
    if let Some(user) = user {
        users.swap_remove(user);
    }
    if users.is_empty() {
        // Closed under the mutex: otherwise a thread that registers in between would lose its lock.
        drop(file);
        drop(table.files.swap_remove(at));
    } else {
        table.files[at].parked.push(file);
    }
    // A wake-up costs a system call even when no thread sleeps.
    if table.waiting > 0 {
        drop(table);
        share.released.notify_all();
    }
}

/// Waits until no other thread of this process conflicts. False when that takes too long.
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
