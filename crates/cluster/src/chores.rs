//! A few threads for what is to be done later, or on no caller's thread: retries, and reads of several partitions side by side.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::lock::lock;

type Work = Box<dyn FnOnce() + Send>;

/// Something to do, at some time.
struct Chore {
    due: Instant,
    number: u64,
    work: Work,
}

impl PartialEq for Chore {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Chore {}

impl PartialOrd for Chore {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Chore {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

#[derive(Default)]
struct List {
    chores: BinaryHeap<Reverse<Chore>>,
    next_number: u64,
    is_stopping: bool,
}

#[derive(Default)]
struct Board {
    list: Mutex<List>,
    changed: Condvar,
}

impl Board {
    fn list(&self) -> MutexGuard<'_, List> {
        lock(&self.list)
    }

    /// The next chore, once it is due; `None` at the end, when all are done.
    fn next(&self) -> Option<Work> {
        let mut list = self.list();
        loop {
            let now = Instant::now();
            let wait = match list.chores.peek() {
                // What is left when the process stops is done at once: each chore ends in an answer to somewhere.
                Some(Reverse(chore)) if chore.due <= now || list.is_stopping => {
                    return list.chores.pop().map(|Reverse(chore)| chore.work);
                }
                Some(Reverse(chore)) => Some(chore.due - now),
                None if list.is_stopping => return None,
                None => None,
            };
            list = match wait {
                Some(wait) => self.changed.wait_timeout(list, wait).unwrap_or_else(PoisonError::into_inner).0,
                None => self.changed.wait(list).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

/// The threads. They end, with everything done, when this is dropped.
pub(crate) struct Chores {
    board: Arc<Board>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Chores {
    /// Starts threads.
    ///
    /// # Errors
    /// The system's, when there can be no more threads.
    pub(crate) fn start(name: &str, thread_count: usize) -> std::io::Result<Self> {
        let chores = Chores { board: Arc::default(), threads: Mutex::default() };
        for number in 0..thread_count {
            let board = Arc::clone(&chores.board);
            let thread = std::thread::Builder::new().name(format!("{name} {number}")).spawn(move || {
                while let Some(work) = board.next() {
                    work();
                }
            })?;
            lock(&chores.threads).push(thread);
        }
        Ok(chores)
    }

    /// Does something as soon as a thread is free.
    pub(crate) fn now(&self, work: impl FnOnce() + Send + 'static) {
        self.at(Instant::now(), work);
    }

    /// Does something at a time, or at the end if that comes first; after it, at once, on the caller's thread.
    pub(crate) fn at(&self, due: Instant, work: impl FnOnce() + Send + 'static) {
        let mut list = self.board.list();
        if list.is_stopping {
            drop(list);
            return work();
        }
        let number = list.next_number;
        list.next_number += 1;
        list.chores.push(Reverse(Chore { due, number, work: Box::new(work) }));
        drop(list);
        self.board.changed.notify_one();
    }

    /// Does what is left, and ends the threads.
    pub(crate) fn stop(&self) {
        self.board.list().is_stopping = true;
        self.board.changed.notify_all();
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            // A chore may drop the last reference to the chores.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl Drop for Chores {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_due_first_is_done_first_and_all_at_the_end() {
        let chores = Chores::start("test", 1).unwrap();
        let (sender, done) = mpsc::channel();
        let far = Instant::now() + Duration::from_secs(3600);
        for (name, due) in [("last", far + Duration::from_secs(1)), ("later", far), ("now", Instant::now())] {
            let sender = sender.clone();
            chores.at(due, move || sender.send(name).unwrap());
        }
        assert_eq!(done.recv(), Ok("now"));
        assert_eq!(chores.board.list().chores.len(), 2);
        drop(chores);
        drop(sender);
        assert_eq!(done.iter().collect::<Vec<_>>(), ["later", "last"]);
    }
}
