//! Files of the tree that no program names: they are taken in beside everything else, so that moving to stripes needs neither an import nor a pause.
//!
//! One thread goes through the tree, a directory at a time, and gives the adopter a few files at once. Then it rests as long as that took, so that it has at
//! most half of the time, and requests for names that are not taken in yet wait for a few files at most. A file that was changed lately may
//! be in the making, or belong to a program that writes it itself: it is left for a later look. One that cannot be taken in is
//! reported, and not tried again before it changes. What was taken in, the store knows: after a restart, only the rest is left.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use crate::engine::{Adoption, StoreError};
use crate::error::OpenError;
use crate::lock::lock;
use crate::name::RrdName;
use crate::stripes::adopt::Adopter;
use crate::stripes::adopt::original::Version;

/// Files and bytes that are taken in at once. A request for one of them waits for all: 57 ms, measured on two busy cores with a debug build; with a
/// release build on two cores with eight other programs, requests for names at random took 1.5 ms in the median and 122 ms in the slowest of a hundred.
const FILES_AT_ONCE: usize = 32;
const BYTES_AT_ONCE: u64 = 4 << 20;
/// The shortest rest.
const REST_MIN: Duration = Duration::from_millis(1);
/// When files have come meanwhile, they are found after this time.
const AGAIN: Duration = Duration::from_hours(1);
/// How often it looks which files were named meanwhile.
const RECOUNT_MIN: Duration = Duration::from_millis(500);
/// Names of files that are remembered because they were changed too lately.
const YOUNG_KNOWN: usize = 100_000;
/// The time between two reports of the progress.
const REPORT_INTERVAL: Duration = Duration::from_secs(30);
/// Failures that are listed; others are only counted.
const FAILURES_LISTED: usize = 1000;
/// With so many files that cannot be taken in, something is wrong with all of them: it gives up until the next start.
const FAILURES_MAX: usize = 100_000;

/// The thread.
pub(in super::super) struct Unused {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    adopter: Arc<Adopter>,
    /// How long a file must be unchanged.
    quiet: Duration,
    left: AtomicU64,
    taken: AtomicU64,
    failed: AtomicU64,
    failures: Mutex<VecDeque<(RrdName, String)>>,
    is_stopping: AtomicBool,
    stopping: (Mutex<()>, Condvar),
}

/// What a look at the tree has found.
#[derive(Default)]
struct Look {
    /// Files that failed, as they were then.
    failed: HashMap<RrdName, Version>,
    /// Files that were changed too lately: some of them.
    young: Vec<RrdName>,
    /// All others.
    more_young: u64,
    reported: Option<Instant>,
}

impl Look {
    fn count_young(&self) -> u64 {
        self.young.len() as u64 + self.more_young
    }
}

impl Unused {
    /// Starts taking in what has been unchanged for so long.
    pub(in super::super) fn start(adopter: Arc<Adopter>, quiet: Duration) -> Result<Self, OpenError> {
        let shared = Arc::new(Shared {
            adopter,
            quiet,
            left: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            failures: Mutex::default(),
            is_stopping: AtomicBool::new(false),
            stopping: Default::default(),
        });
        let for_thread = Arc::clone(&shared);
        let thread =
            std::thread::Builder::new().name("adopt-unused".into()).spawn(move || for_thread.run()).map_err(
                |error| OpenError::caused("cannot start the thread that takes in unused files", error),
            )?;
        Ok(Unused { shared, thread: Mutex::new(Some(thread)) })
    }

    /// How far it is.
    pub(in super::super) fn progress(&self) -> Adoption {
        let failures = lock(&self.shared.failures).iter().cloned().collect();
        Adoption { failures, ..self.shared.counts() }
    }

    /// The same without the list of failures.
    pub(in super::super) fn counts(&self) -> Adoption {
        self.shared.counts()
    }

    /// Ends it. Idempotent.
    pub(in super::super) fn stop(&self) {
        {
            let _asleep = lock(&self.shared.stopping.0);
            self.shared.is_stopping.store(true, Ordering::Relaxed);
        }
        self.shared.stopping.1.notify_all();
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Unused {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn run(&self) {
        let mut look = Look::default();
        loop {
            self.pass(&mut look);
            if look.failed.len() >= FAILURES_MAX {
                tracing::error!(
                    "{FAILURES_MAX} .rrd files of the tree cannot be taken in: no others are tried until the next start"
                );
                return;
            }
            if self.wait_for_next(&mut look) {
                return;
            }
        }
    }

    /// Waits until it is time to look again, and says meanwhile how many files are left; whether the thread is to end.
    fn wait_for_next(&self, look: &mut Look) -> bool {
        let pause = if look.count_young() > 0 { self.quiet.clamp(REST_MIN, AGAIN) } else { AGAIN };
        let until = Instant::now() + pause;
        loop {
            let begin = Instant::now();
            look.young.retain(|name| !self.adopter.is_in_store(name));
            self.left.store(look.count_young(), Ordering::Relaxed);
            let Some(left) = until.checked_duration_since(Instant::now()) else { return false };
            if self.rest(left.min(RECOUNT_MIN.max(begin.elapsed() * 20))) {
                return true;
            }
        }
    }

    /// Goes through the tree once.
    fn pass(&self, look: &mut Look) {
        let (before, failed_before) = (self.taken.load(Ordering::Relaxed), look.failed.len());
        (look.young, look.more_young) = (Vec::new(), 0);
        // First only counted: an operator wants to know how long it takes.
        let mut count = 0;
        self.walk(&mut |names| {
            count += names.len() as u64;
            self.left.store(count, Ordering::Relaxed);
        });
        look.reported = None;
        self.walk(&mut |names| self.take_in(names, look));
        let taken = self.taken.load(Ordering::Relaxed) - before;
        let failed = look.failed.len() - failed_before;
        if taken + failed as u64 > 0 {
            tracing::info!(
                "took in {taken} .rrd files of the tree that no program has named; {failed} failed, {} were changed too lately",
                look.count_young()
            );
        }
    }

    /// Calls `visit` with the `.rrd` files of each directory that the store does not have.
    fn walk(&self, visit: &mut dyn FnMut(Vec<RrdName>)) {
        let mut directories = vec![Vec::new()];
        while let Some(directory) = directories.pop() {
            let names = match self.adopter.list(&directory, false, &mut |_| true) {
                Ok(names) => names,
                Err(error) => {
                    tracing::warn!(%error, "cannot look for .rrd files");
                    continue;
                }
            };
            let mut files = Vec::new();
            for name in names {
                if self.is_stopping.load(Ordering::Relaxed) {
                    return;
                }
                if name.ends_with(b"/") {
                    directories.push(name);
                } else if name.ends_with(b".rrd")
                    && let Ok(name) = RrdName::new(&name)
                    && !self.adopter.is_in_store(&name)
                {
                    files.push(name);
                }
            }
            visit(files);
        }
    }

    fn take_in(&self, names: Vec<RrdName>, look: &mut Look) {
        let (mut chunk, mut bytes) = (Vec::new(), 0);
        let mut last = names.len();
        for name in names {
            last -= 1;
            if self.is_stopping.load(Ordering::Relaxed) {
                return;
            }
            match self.version_if_due(&name, look) {
                Some((version, length)) => {
                    chunk.push((name, version));
                    bytes += length;
                }
                None => self.one_less(),
            }
            if chunk.len() >= FILES_AT_ONCE || bytes >= BYTES_AT_ONCE || last == 0 {
                self.take_chunk(&mut chunk, look);
                bytes = 0;
            }
        }
    }

    fn one_less(&self) {
        // Files may have come since they were counted.
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    }

    /// A file as it is and its length, if it is to be taken in now.
    fn version_if_due(&self, name: &RrdName, look: &mut Look) -> Option<(Version, u64)> {
        let file: File = self.adopter.source.open(name).ok()??;
        let about = file.metadata().ok()?;
        let version = Version::of_file(&file)?;
        if look.failed.get(name) == Some(&version) {
            return None;
        }
        // A time in the future tells nothing: it is not waited for.
        let changed = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        if SystemTime::now().duration_since(changed).is_ok_and(|age| age < self.quiet) {
            match look.young.len() < YOUNG_KNOWN {
                true => look.young.push(name.clone()),
                false => look.more_young += 1,
            }
            return None;
        }
        Some((version, about.size()))
    }

    fn take_chunk(&self, chunk: &mut Vec<(RrdName, Version)>, look: &mut Look) {
        if chunk.is_empty() {
            return;
        }
        let begin = Instant::now();
        let results = self.adopter.adopt_all(chunk.iter().map(|(name, _)| name));
        for ((name, version), result) in chunk.drain(..).zip(results) {
            self.one_less();
            match result {
                Ok(()) => drop(self.taken.fetch_add(1, Ordering::Relaxed)),
                // Removed or replaced meanwhile; or it is not the file's fault.
                Err(StoreError::NoSuchRrd(_) | StoreError::Stopping) => {}
                Err(error) => self.note_failure(name, version, &error, look),
            }
        }
        let now = Instant::now();
        if now - *look.reported.get_or_insert(begin) >= REPORT_INTERVAL {
            look.reported = Some(now);
            let Adoption { left, taken, failed, .. } = self.counts();
            tracing::info!("taking in .rrd files: {taken} done, {failed} failed, {left} left");
        }
        self.rest((now - begin).max(REST_MIN));
    }

    fn counts(&self) -> Adoption {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Adoption {
            left: get(&self.left),
            taken: get(&self.taken),
            failed: get(&self.failed),
            failures: Vec::new(),
        }
    }

    fn note_failure(&self, name: RrdName, version: Version, error: &StoreError, look: &mut Look) {
        let count = self.failed.fetch_add(1, Ordering::Relaxed);
        if count < FAILURES_LISTED as u64 {
            tracing::warn!(%error, rrd = %name, "cannot take in a .rrd file; it is tried again when it has changed, or its name is used");
        }
        let mut failures = lock(&self.failures);
        failures.retain(|(other, _)| *other != name);
        if failures.len() == FAILURES_LISTED {
            failures.pop_front();
        }
        failures.push_back((name.clone(), error.to_string()));
        drop(failures);
        look.failed.insert(name, version);
    }

    /// Waits; whether the thread is to end.
    fn rest(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        let mut asleep = lock(&self.stopping.0);
        while !self.is_stopping.load(Ordering::Relaxed) {
            let Some(left) = until.checked_duration_since(Instant::now()) else { return false };
            asleep = self
                .stopping
                .1
                .wait_timeout(asleep, left)
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .0;
        }
        true
    }
}
