//! Files that are opened without their bytes, because the kernel has them: the bytes of those that stay open are asked for soon.
//!
//! Most are closed within a millisecond, and nothing is asked for. One that stays open must not depend on what the kernel keeps:
//! once its RRD has changed, no daemon has its bytes any more.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use crate::inodes::{Inodes, lock};
use crate::open::OpenFile;
use crate::store::Store;

/// How long a file may be open without its bytes: ten times as long as `tar` has one open.
const DELAY: Duration = Duration::from_millis(20);
/// Files that were opened within the delay.
const QUEUE: usize = 4096;

/// A file that was opened without its bytes.
struct Opened {
    at: Instant,
    number: u64,
    file: Weak<OpenFile>,
}

/// Sees to it that files that stay open get their bytes.
#[derive(Debug)]
pub struct Latecomers {
    opened: SyncSender<Opened>,
}

impl Latecomers {
    /// Starts the thread, which ends with the result.
    ///
    /// # Errors
    /// When the system has no thread.
    pub fn start(store: Store, inodes: Arc<Mutex<Inodes>>) -> io::Result<Self> {
        let (opened, queue) = sync_channel(QUEUE);
        std::thread::Builder::new()
            .name("latecomers".to_string())
            .spawn(move || serve(&store, &inodes, &queue))?;
        Ok(Latecomers { opened })
    }

    /// A file is opened without its bytes. False when too many are: then its bytes are to be asked for at once.
    pub fn watch(&self, number: u64, file: &Arc<OpenFile>) -> bool {
        let opened = Opened { at: Instant::now(), number, file: Arc::downgrade(file) };
        self.opened.try_send(opened).is_ok()
    }
}

fn serve(store: &Store, inodes: &Mutex<Inodes>, queue: &Receiver<Opened>) {
    while let Ok(opened) = queue.recv() {
        if opened.at.elapsed() < DELAY {
            // Not the rest of it: those that come after it are due then, too.
            std::thread::sleep(DELAY);
        }
        let Some(file) = opened.file.upgrade().filter(|file| file.is_lacking()) else { continue };
        let path = lock(inodes).path(opened.number);
        if let Some(path) = path {
            // Should it have changed by now, only what the kernel has can be read of it.
            file.load(store, &path, None).ok();
        }
    }
}
