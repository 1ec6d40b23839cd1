//! Which programs want sizes and times of the files they list.
//!
//! The kernel asks for them with the first names of each directory. They cost four times what a name does, and `find -name`
//! needs none; `tar` and `ls -l` would ask for those of each file else.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Threads of programs that are remembered.
const COUNT: usize = 64;

/// The threads that listed a directory last.
#[derive(Debug, Default)]
pub struct Listers {
    last: Mutex<VecDeque<Lister>>,
}

#[derive(Debug)]
struct Lister {
    thread: u32,
    /// The directory that it has listed.
    directory: u64,
    /// It has looked at a file that it had listed.
    looks: bool,
}

impl Listers {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Lister>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread begins to list a directory. True if it wanted sizes and times before.
    pub fn lists(&self, thread: u32, directory: u64) -> bool {
        let mut last = self.lock();
        if let Some(lister) = last.iter_mut().find(|lister| lister.thread == thread) {
            lister.directory = directory;
            return lister.looks;
        }
        last.truncate(COUNT - 1);
        last.push_front(Lister { thread, directory, looks: false });
        false
    }

    /// A thread looks at a file of a directory.
    pub fn looks(&self, thread: u32, directory: u64) {
        for lister in self.lock().iter_mut() {
            if (lister.thread, lister.directory) == (thread, directory) {
                lister.looks = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_looks_at_what_it_lists_gets_sizes_from_then_on() {
        let listers = Listers::default();
        listers.looks(7, 1);
        assert!(!listers.lists(7, 1));
        listers.looks(8, 1);
        listers.looks(7, 2);
        assert!(!listers.lists(7, 3));
        listers.looks(7, 3);
        assert!(listers.lists(7, 4));
        (100..100 + COUNT as u32).for_each(|thread| assert!(!listers.lists(thread, 1)));
        assert!(!listers.lists(7, 4));
        assert_eq!(listers.lock().len(), COUNT);
    }
}
