//! The daemon's backup: a thread that sends a round in every interval, whatever happens to the rounds before. A node of a cluster sends one
//! of each replica that leads ([`crate::replicas`]).
//!
//! The thread has a runtime of its own for the client of the object store. It never holds a lock of the store while it waits for
//! the network; what it holds (files and log, so that they stay) is limited by the store.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use store::capture::{Capture, LogHold};
use store::engine::Engine;
use tokio::sync::Notify;

use crate::keep::Keep;
use crate::location::{Access, Location};
use crate::objects::{Limits, Objects};
use crate::own::OwnPaths;
use crate::prune::{GRACE, Pruning, clock_differs, prune};
use crate::replicas::{self, Replicas};
use crate::seal::Keys;
use crate::upload::Uploader;

/// The pause after the first failure; it doubles.
pub(crate) const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause: a backup goes on so soon after a long interruption.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(60);
/// How long the last round may take, when the daemon stops.
const LAST_ROUND: Duration = Duration::from_secs(10);
/// How often what is not kept is removed.
pub(crate) const PRUNE_INTERVAL: Duration = Duration::from_hours(24);

/// What is backed up, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupSettings {
    /// Where to: a URL or a directory.
    pub to: String,
    /// What the place needs.
    pub access: Access,
    /// The file with the key, for encryption.
    pub key: Option<std::path::PathBuf>,
    /// How often the log is sent.
    pub interval: Duration,
    /// What the server may be asked for.
    pub limits: Limits,
    /// What is kept; `None` = everything.
    pub keep: Option<Keep>,
    /// Where the daemon's own files are, which are backed up with the store; `None` = they are not.
    pub own: Option<OwnPaths>,
}

impl BackupSettings {
    /// The objects at the place.
    ///
    /// # Errors
    /// When the place or the key cannot be used.
    pub fn objects(&self, create: bool) -> Result<Objects, String> {
        let keys = self.key.as_deref().map_or_else(|| Ok(Keys::none()), Keys::read)?;
        Ok(Objects::new(Location::open(&self.to, &self.access, create)?, keys, self.limits))
    }
}

/// How a backup is.
#[derive(Debug, Default)]
pub struct BackupStatus {
    /// Of a moment from which on all is sent, in milliseconds since the epoch; 0 = none yet.
    pub complete_ms: AtomicI64,
    /// Rounds completed.
    pub rounds: AtomicU64,
    /// Rounds that failed.
    pub failures: AtomicU64,
    /// Bytes sent.
    pub bytes_sent: AtomicU64,
    /// Requests made.
    pub requests: AtomicU64,
    /// Why the last round failed; empty after one that did not.
    failure: Mutex<String>,
    stop: AtomicBool,
    stopped: Notify,
}

impl BackupStatus {
    /// Why the last round failed, if it did.
    pub fn failure(&self) -> Option<String> {
        let text = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        Some(text.clone()).filter(|text| !text.is_empty())
    }

    fn set_failure(&self, text: String) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    /// How old the newest complete backup is at a time; `None` when there is none.
    pub fn age(&self, now: SystemTime) -> Option<Duration> {
        let ms = u64::try_from(self.complete_ms.load(Ordering::Relaxed)).ok().filter(|ms| *ms > 0)?;
        Some(now.duration_since(UNIX_EPOCH + Duration::from_millis(ms)).unwrap_or_default())
    }

    /// Ends the backup with a last round, for which there are ten seconds, or none if the last one failed; the next start goes on.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.stopped.notify_waiters();
    }

    /// A round was completed, which has all up to this time, in milliseconds since the epoch.
    pub(crate) fn complete(&self, time_ms: i64) {
        self.complete_ms.store(time_ms, Ordering::Relaxed);
        self.rounds.fetch_add(1, Ordering::Relaxed);
        if self.failure().is_some() {
            tracing::info!("the backup goes on");
            self.set_failure(String::new());
        }
    }

    /// A round failed.
    pub(crate) fn fail(&self, text: String) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        if self.failure().as_ref() != Some(&text) {
            tracing::warn!("the backup failed and is tried again: {text}");
        }
        self.set_failure(text);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    async fn wait_for_stop(&self) {
        loop {
            // Before the look, so that no stop comes in between unseen.
            let notified = self.stopped.notified();
            if self.is_stopped() {
                return;
            }
            notified.await;
        }
    }

    /// Waits for so long, or until it is stopped.
    pub(crate) async fn pause(&self, time: Duration) {
        let _ = tokio::time::timeout(time, self.wait_for_stop()).await;
    }
}

/// What is backed up.
#[derive(Clone)]
pub enum Backed {
    /// A store.
    Store(Arc<dyn Engine>),
    /// What a node of a cluster has.
    Replicas(Arc<dyn Replicas>),
}

/// Backs that up until it is told to stop.
///
/// # Errors
/// When the place or the key cannot be used at all, or there is no runtime.
pub fn run(settings: &BackupSettings, backed: &Backed, status: &BackupStatus) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    runtime.block_on(async {
        let mut work = std::pin::pin!(async {
            match backed {
                Backed::Store(engine) => rounds(settings, &**engine, status).await,
                Backed::Replicas(replicas) => replicas::rounds(settings, &**replicas, status).await,
            }
        });
        tokio::select! {
            () = status.wait_for_stop() => {}
            ended = &mut work => return ended,
        }
        if status.failure().is_some() {
            return Ok(());
        }
        tokio::time::timeout(LAST_ROUND, work).await.unwrap_or_else(|_| {
            tracing::info!("the last round of the backup takes too long; the next start goes on with it");
            Ok(())
        })
    })
}

async fn rounds(settings: &BackupSettings, engine: &dyn Engine, status: &BackupStatus) -> Result<(), String> {
    let mut uploader = Uploader::new(settings.objects(true)?);
    if let Some(paths) = &settings.own {
        uploader = uploader.with_own(paths.clone());
    }
    let mut hold: Option<LogHold> = None;
    let mut pause = PAUSE_MIN;
    let mut pruned: Option<Instant> = None;
    loop {
        let begun = Instant::now();
        // Whatever was answered before the stop is in this one.
        let is_last = status.is_stopped();
        let done = round(&mut uploader, engine).await;
        let traffic = &uploader.objects.traffic;
        status.bytes_sent.store(traffic.bytes_sent.load(Ordering::Relaxed), Ordering::Relaxed);
        status.requests.store(traffic.requests.load(Ordering::Relaxed), Ordering::Relaxed);
        match done {
            Ok(capture) => {
                status.complete(capture.time_ms);
                // The new one first, so that nothing goes in between.
                let next = capture.into_log_hold();
                drop(hold.replace(next));
                pause = PAUSE_MIN;
                if is_last {
                    return Ok(());
                }
                if let Some(keep) = &settings.keep
                    && pruned.is_none_or(|at| at.elapsed() >= PRUNE_INTERVAL)
                    // It would take the time of the last round.
                    && !status.is_stopped()
                {
                    pruned = Some(Instant::now());
                    prune_now(&mut uploader, keep).await;
                }
                status.pause(settings.interval.saturating_sub(begun.elapsed())).await;
            }
            Err(text) => {
                status.fail(text);
                status.pause(pause).await;
                if status.is_stopped() {
                    return Ok(());
                }
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

async fn round(uploader: &mut Uploader, engine: &dyn Engine) -> Result<Capture, String> {
    let capture = engine.capture().map_err(|error| error.to_string())?;
    match uploader.round(&capture, None).await {
        Ok(()) => Ok(capture),
        Err(error) => Err(error.to_string()),
    }
}

/// A time in milliseconds since the epoch.
pub(crate) fn milliseconds(time: SystemTime) -> i64 {
    i64::try_from(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

/// Removes what is not kept.
pub(crate) async fn prune_now(uploader: &mut Uploader, keep: &Keep) {
    let now = SystemTime::now();
    match clock_differs(&uploader.objects, now).await {
        Ok(None) => {}
        Ok(Some(differs)) => {
            tracing::warn!(
                seconds = differs.as_secs(),
                "the backup is not pruned: this machine's clock and the server's differ"
            );
            return;
        }
        Err(error) => {
            tracing::warn!("the backup could not be pruned: {error}");
            return;
        }
    }
    let now_ms = milliseconds(now);
    match prune(&uploader.objects, keep, Pruning { grace: GRACE, now_ms, is_forced: false }).await {
        Ok(done) => {
            tracing::info!(
                kept = done.kept,
                manifests = done.manifests,
                objects = done.objects,
                bytes = done.bytes,
                "the backup was pruned"
            );
            // Its list of manifests is shorter now.
            uploader.forget();
        }
        Err(error) => tracing::warn!("the backup could not be pruned: {error}"),
    }
}

/// A backup that runs beside its store. Dropping it stops it.
#[derive(Debug)]
pub struct Running {
    status: Arc<BackupStatus>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Running {
    /// Starts a backup on a thread of its own; `begin` is called there first.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(
        settings: BackupSettings,
        backed: Backed,
        status: Arc<BackupStatus>,
        begin: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Running> {
        let of_thread = Arc::clone(&status);
        let work = move || {
            begin();
            if let Err(text) = run(&settings, &backed, &of_thread) {
                tracing::error!("there is no backup: {text}");
                of_thread.failures.fetch_add(1, Ordering::Relaxed);
                of_thread.set_failure(text);
            }
        };
        let thread = std::thread::Builder::new().name("backup".into()).spawn(work)?;
        Ok(Running { status, thread: Some(thread) })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.status.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
