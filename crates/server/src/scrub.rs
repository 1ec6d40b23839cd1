//! Verifies the store while it runs: slowly in the background, each block once per interval, and at full speed when an
//! administrator asks (VERIFY). One thread; the engine knows nothing of either.
//!
//! Where the background pass is and when it began is kept in the file `scrub` beside STORE. It is only a hint: without it a
//! pass begins again from the start. The clock decides only when a pass is due and how fast it goes.

mod place;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use store::engine::Engine;
use store::verify::{self, Finding, Place, Watch};

use crate::metrics::Metrics;
use crate::service::Service;
use crate::settings::{Layout, Settings};
use place::Progress;

/// A pass takes at most half of its interval, so that stops do not make it late.
const SHARE_OF_INTERVAL: u32 = 2;
/// The slowest pass, in bytes a second: a small store is done in minutes.
const RATE_MIN: u64 = 256 << 10;
/// How often the place is written down.
const SAVE_INTERVAL: Duration = Duration::from_secs(60);
/// Bytes read between two pauses: a record of the log has often less than a hundred.
const UNPAUSED_BYTES: u64 = 64 << 10;
/// After a pass that failed, such as on a full machine.
const RETRY: Duration = Duration::from_secs(3600);
/// How often it is looked whether a restore is complete.
const RESTORE_LOOK: Duration = Duration::from_secs(1);
/// The most findings of a pass that are kept; the log has them all.
const FINDINGS_MAX: usize = 10_000;

/// What an administrator asks for, and the answer so far.
#[derive(Debug, Default)]
struct State {
    is_started: bool,
    stop: bool,
    requested: bool,
    report: Report,
}

/// A pass that was asked for.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// It has not ended.
    pub is_running: bool,
    /// It could not be completed: why.
    pub failure: Option<String>,
    /// Bytes read.
    pub checked: u64,
    /// Bytes to read, about.
    pub total: u64,
    /// What was found, as lines of [`Finding::to_line`].
    pub findings: Vec<String>,
}

/// Asks for passes and follows them.
#[derive(Debug, Default)]
pub struct Scrub {
    state: Mutex<State>,
    changed: Condvar,
}

impl Scrub {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a pass, unless one that was asked for is running; false when the daemon cannot do it.
    pub fn request(&self) -> bool {
        let mut state = self.lock();
        if state.is_started && !state.report.is_running {
            state.report = Report { is_running: true, ..Report::default() };
            state.requested = true;
            self.changed.notify_all();
        }
        state.is_started
    }

    /// How far the pass is that was asked for last, with its findings from number `from` on.
    pub fn report(&self, from: usize) -> Report {
        let state = self.lock();
        let report = &state.report;
        let findings = report.findings.get(from..).unwrap_or_default().to_vec();
        Report { findings, failure: report.failure.clone(), ..*report }
    }

    /// Waits, at most so long; false when the thread is to stop.
    fn wait(&self, pause: Duration) -> bool {
        let state = self.lock();
        let waited = self.changed.wait_timeout_while(state, pause, |state| !state.stop && !state.requested);
        !waited.unwrap_or_else(PoisonError::into_inner).0.stop
    }
}

/// The thread. Dropping it ends the pass in progress.
#[derive(Debug)]
pub struct Scrubber {
    scrub: Arc<Scrub>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Scrubber {
    fn drop(&mut self) {
        self.scrub.lock().stop = true;
        self.scrub.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It reads only; a bug in it has ended nothing else.
            let _ = thread.join();
        }
    }
}

/// Starts the thread that verifies the store of `service`.
///
/// # Errors
/// When the thread cannot be started.
pub fn start(service: &Arc<Service>, settings: &Settings) -> std::io::Result<Scrubber> {
    let scrub = Arc::clone(&service.scrub);
    scrub.lock().is_started = true;
    let target = match &settings.layout {
        Layout::Stripes(stripes) => {
            let interval = stripes.scrub;
            let file = stripes.store.join("scrub");
            Target::Engine { interval, file }
        }
        Layout::Files(files) => Target::Tree {
            interval: files.scrub,
            base: settings.base.clone(),
            journals: files.journal.clone(),
        },
    };
    let work = Work { service: Arc::clone(service), target, logged: HashSet::new() };
    let thread = std::thread::Builder::new().name("scrub".into()).spawn(move || work.run())?;
    Ok(Scrubber { scrub, thread: Some(thread) })
}

/// What is verified.
enum Target {
    /// A striped store.
    Engine { interval: Option<Duration>, file: PathBuf },
    /// The files layout: `.rrd` files have no checksums, but headers, lengths, and a disk that cannot read them. Where a pass is
    /// is kept in memory only, because the tree is not ours.
    Tree { interval: Option<Duration>, base: PathBuf, journals: Option<PathBuf> },
}

struct Work {
    service: Arc<Service>,
    target: Target,
    /// What has been logged.
    logged: HashSet<(PathBuf, u64)>,
}

impl Work {
    fn run(mut self) {
        // Of this thread only. The kernel derives the priority of reads from it, too.
        if let Err(error) = rustix::process::setpriority_process(None, 19) {
            tracing::debug!(%error, "the store is verified at normal priority");
        }
        let (interval, mut progress) = match &self.target {
            Target::Engine { interval, file } => (*interval, Progress::load(file)),
            Target::Tree { interval, .. } => (*interval, Progress::default()),
        };
        let metrics = &self.service.metrics;
        metrics.scrub_last_pass.set(progress.ended as i64);
        while self.wait_for_restore() {
            let pause = interval.map_or(Duration::MAX, |interval| progress.due_in(interval, seconds()));
            if !self.service.scrub.wait(pause.min(Duration::from_secs(86_400))) {
                return;
            }
            let is_requested = std::mem::take(&mut self.service.scrub.lock().requested);
            if is_requested {
                let began = seconds();
                if self.pass_now() {
                    progress = Progress { began, ended: seconds(), place: Place::default() };
                    self.note(&progress);
                }
            } else if let Some(interval) = interval.filter(|_| pause.is_zero()) {
                self.pass_slowly(interval, &mut progress);
            }
        }
    }

    /// Waits until no part of the store is still to come: a read would have it fetched, and would take it for damaged while its
    /// server fails. False when the thread is to stop.
    fn wait_for_restore(&self) -> bool {
        while self.service.metrics.is_restoring() {
            if !self.service.scrub.wait(RESTORE_LOOK) {
                return false;
            }
            let mut state = self.service.scrub.lock();
            if std::mem::take(&mut state.requested) {
                state.report.is_running = false;
                state.report.failure = Some("the restore of the store is not complete".to_string());
            }
        }
        true
    }

    fn note(&self, progress: &Progress) {
        self.service.metrics.scrub_last_pass.set(progress.ended as i64);
        if let Target::Engine { file, .. } = &self.target {
            progress.save(file);
        }
    }

    /// A pass that was asked for; true when it was completed.
    fn pass_now(&mut self) -> bool {
        let total = match &self.target {
            Target::Engine { .. } => bytes_of(&*self.service.engine),
            Target::Tree { base, .. } => verify::bytes(base),
        };
        let scrub = Arc::clone(&self.service.scrub);
        scrub.lock().report.total = total;
        let mut pass = Requested { scrub: &scrub, metrics: &self.service.metrics, logged: &mut self.logged };
        let done = match &self.target {
            Target::Engine { .. } => self.service.engine.verify(&mut pass).map_err(|error| error.to_string()),
            Target::Tree { base, journals, .. } => {
                verify::files(base, journals.as_deref(), &mut pass);
                Ok(())
            }
        };
        let mut state = scrub.lock();
        let stopped = state.stop.then(|| "the daemon is stopping".to_string());
        state.report.failure = done.err().or(stopped);
        state.report.is_running = false;
        state.report.failure.is_none()
    }

    /// Begins or continues the background pass.
    fn pass_slowly(&mut self, interval: Duration, progress: &mut Progress) {
        if progress.place == Place::default() {
            progress.began = seconds();
        }
        let seconds_left = (interval / SHARE_OF_INTERVAL).as_secs().max(1);
        let service = Arc::clone(&self.service);
        let (file, bytes) = match &self.target {
            Target::Engine { file, .. } => (Some(file.as_path()), bytes_of(&*service.engine)),
            Target::Tree { base, .. } => (None, verify::bytes(base)),
        };
        let mut pass = Slow {
            scrub: &service.scrub,
            metrics: &service.metrics,
            logged: &mut self.logged,
            rate: (bytes / seconds_left).max(RATE_MIN),
            unpaused: 0,
            from: progress.place,
            progress,
            file,
            saved: None,
            is_interrupted: false,
        };
        let done = match &self.target {
            Target::Engine { .. } => service.engine.verify(&mut pass),
            Target::Tree { base, journals, .. } => {
                verify::files(base, journals.as_deref(), &mut pass);
                Ok(())
            }
        };
        if pass.is_interrupted {
            if let Some(file) = file {
                progress.save(file);
            }
            return;
        }
        match done {
            Ok(()) => {
                progress.ended = seconds();
                progress.place = Place::default();
                self.note(progress);
                tracing::info!("every block of the store was verified");
            }
            Err(error) => {
                tracing::warn!(%error, "the store could not be verified; it is tried again");
                service.scrub.wait(RETRY);
            }
        }
    }
}

/// About what a pass reads.
fn bytes_of(engine: &dyn Engine) -> u64 {
    let stats = engine.stats();
    stats.segment_bytes + stats.log_bytes_live
}

/// Seconds since the epoch.
fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Logs a finding once, and counts it.
fn log(logged: &mut HashSet<(PathBuf, u64)>, metrics: &Metrics, finding: &Finding) {
    if !logged.insert((finding.file.clone(), finding.byte)) {
        return;
    }
    metrics.scrub_findings.inc();
    let lost = finding.lost.as_ref();
    let rrds = lost.map_or(0, |lost| lost.count);
    let some: Vec<&str> =
        lost.iter().flat_map(|lost| lost.rrds.iter().take(20).map(String::as_str)).collect();
    tracing::error!(
        file = %finding.file.display(),
        byte = finding.byte,
        rrds,
        names = some.join(" "),
        "the store is damaged: {}; `roundel verify` shows all, `roundel repair` what can be done",
        finding.what
    );
}

/// A pass that was asked for: at full speed.
struct Requested<'a> {
    scrub: &'a Scrub,
    metrics: &'a Metrics,
    logged: &'a mut HashSet<(PathBuf, u64)>,
}

impl Watch for Requested<'_> {
    fn checked(&mut self, bytes: u64) -> bool {
        self.metrics.scrub_bytes.inc_by(bytes);
        let mut state = self.scrub.lock();
        state.report.checked += bytes;
        !state.stop
    }

    fn found(&mut self, finding: Finding) {
        log(self.logged, self.metrics, &finding);
        let mut state = self.scrub.lock();
        if state.report.findings.len() < FINDINGS_MAX {
            state.report.findings.push(finding.to_line());
        }
    }
}

/// The background pass.
struct Slow<'a> {
    scrub: &'a Scrub,
    metrics: &'a Metrics,
    logged: &'a mut HashSet<(PathBuf, u64)>,
    /// Bytes a second.
    rate: u64,
    /// Bytes read since the last pause.
    unpaused: u64,
    from: Place,
    progress: &'a mut Progress,
    file: Option<&'a Path>,
    saved: Option<Instant>,
    is_interrupted: bool,
}

impl Watch for Slow<'_> {
    fn begin(&mut self, place: Place) -> bool {
        if place < self.from {
            return false;
        }
        self.progress.place = place;
        if self.saved.is_none_or(|saved| saved.elapsed() >= SAVE_INTERVAL) {
            if let Some(file) = self.file {
                self.progress.save(file);
            }
            self.saved = Some(Instant::now());
        }
        true
    }

    fn checked(&mut self, bytes: u64) -> bool {
        self.metrics.scrub_bytes.inc_by(bytes);
        self.unpaused += bytes;
        if self.unpaused < UNPAUSED_BYTES {
            return true;
        }
        let pause = Duration::from_secs_f64(std::mem::take(&mut self.unpaused) as f64 / self.rate as f64);
        self.is_interrupted = !self.scrub.wait(pause) || self.scrub.lock().requested;
        !self.is_interrupted
    }

    fn found(&mut self, finding: Finding) {
        log(self.logged, self.metrics, &finding);
    }
}

#[cfg(test)]
mod tests;
