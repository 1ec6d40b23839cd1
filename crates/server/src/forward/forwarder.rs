//! The thread of one target: reads, sends, and keeps the positions.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::ingest::Ingest;
use store::engine::Engine;
use store::position::Position;
use store::tail::{LogTail, TailError};

use super::batch::ForwardBatch;
use super::complaints::ForwardComplaints;
use super::positions::ForwardPositions;
use super::source::{ForwardSource, LeftOut};
use super::status::ForwardStatus;
use super::target::{Away, ForwardTarget, RefusalReason};
use super::{ForwardError, ForwardSettings, carbon, daemons, destination::Destination, prometheus};

/// How nice the thread is: below whatever answers clients. What it does not get to under full load, it sends afterwards.
const NICE: i32 = 10;
/// How long it waits for more at most; the log wakes it earlier.
const IDLE: Duration = Duration::from_secs(1);
/// The wait before a target that is away is tried again: first, and at most.
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(10);
/// How often a wait looks whether it is to end.
const STOP_LOOK: Duration = Duration::from_millis(50);
/// How often the positions are written while much is sent: what was sent since is sent again after a crash.
const SAVE_EVERY: Duration = Duration::from_millis(500);
/// Of what may wait, how much is left after the oldest was dropped: the rest is dropped at once, not reading by reading.
const LEFT_OF_FULL: [u64; 2] = [7, 8];

/// Forwards to one target.
pub struct Forwarder {
    name: String,
    spool_bytes: u64,
    source: ForwardSource,
    positions: ForwardPositions,
    target: Box<dyn ForwardTarget>,
    status: Arc<ForwardStatus>,
    stop: Arc<AtomicBool>,
    complaints: ForwardComplaints,
    batch: ForwardBatch,
    /// Up to here the target has everything.
    confirmed: Vec<Position>,
    saved: (Instant, Vec<Position>),
    /// What was sent and does not count as arrived yet: when, and up to where.
    unsettled: VecDeque<(Instant, Vec<Position>)>,
}

/// Why a round did not succeed.
enum Trouble {
    /// The target is away.
    Away(String),
    /// The log cannot be read.
    Log(TailError),
}

impl From<Away> for Trouble {
    fn from(Away(why): Away) -> Self {
        Trouble::Away(why)
    }
}

impl From<TailError> for Trouble {
    fn from(error: TailError) -> Self {
        Trouble::Log(error)
    }
}

impl Forwarder {
    /// Begins at `begin`, else where the last one ended, or with what comes from now on.
    ///
    /// # Errors
    /// When the positions cannot be read or written, or the target's settings cannot be used.
    pub fn open(
        (settings, engine, ingest): (ForwardSettings, Arc<dyn Engine>, Arc<Ingest>),
        mut source: ForwardSource,
        (positions, begin): (ForwardPositions, Option<&[Position]>),
        (status, stop): (Arc<ForwardStatus>, Arc<AtomicBool>),
    ) -> Result<Self, ForwardError> {
        let fail = |error: &dyn std::fmt::Display| ForwardError(error.to_string());
        let from = match begin {
            Some(begin) => Some(begin.to_vec()),
            None => positions.load(source.identity()).map_err(|error| fail(&error))?,
        };
        let kept = match from {
            Some(from) if source.seek(&from).is_ok() => true,
            Some(_) => {
                tracing::warn!(
                    name = settings.name,
                    "the store is older than what was forwarded: forwarding begins with what comes from now on"
                );
                false
            }
            None => false,
        };
        if !kept {
            let end = source.ends();
            source.seek(&end).map_err(|error| fail(&error))?;
        }
        let confirmed = source.positions();
        positions.save(source.identity(), &confirmed).map_err(|error| fail(&error))?;
        source.keep_from(&confirmed);
        let ForwardSettings { name, to, identity, spool_bytes, .. } = settings;
        let target: Box<dyn ForwardTarget> = match &to {
            Destination::Roundel(_) | Destination::Rrdcached(_) => {
                Box::new(daemons::DaemonTarget::new(&to, identity, engine, Arc::clone(&stop)))
            }
            Destination::Graphite { host, port } => {
                Box::new(carbon::CarbonTarget::new(host.clone(), *port, engine))
            }
            Destination::Prometheus(url) => Box::new(
                prometheus::PrometheusTarget::new(url, &identity, (engine, ingest), Arc::clone(&stop))
                    .map_err(|text| fail(&text))?,
            ),
        };
        tracing::info!(%to, name, waiting_bytes = source.bytes_left(), "forwarding");
        Ok(Forwarder {
            complaints: ForwardComplaints::new(&name),
            name,
            spool_bytes,
            source,
            positions,
            target,
            status,
            stop,
            batch: ForwardBatch::default(),
            saved: (Instant::now(), confirmed.clone()),
            confirmed,
            unsettled: VecDeque::new(),
        })
    }

    /// Forwards until it is told to stop; returns the log, so that what was not sent is kept.
    pub fn run(mut self) -> LogTail {
        if let Err(error) = rustix::process::setpriority_process(None, NICE) {
            tracing::debug!(%error, "forwarding runs at normal priority");
        }
        let mut wait = RETRY_FIRST;
        while !self.is_stopping() {
            match self.limit().map_err(Trouble::from).and_then(|()| self.round()) {
                Ok(()) => wait = RETRY_FIRST,
                Err(_) if self.is_stopping() => break,
                Err(trouble) => {
                    self.step_back(&trouble);
                    self.pause(wait);
                    wait = (wait * 2).min(RETRY_MAX);
                }
            }
        }
        self.save(true);
        self.source.into_tail()
    }

    fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sends one batch, or waits until there is something to send.
    fn round(&mut self) -> Result<(), Trouble> {
        self.target.reach()?;
        self.batch.clear();
        let (first_ms, left_out) = self.source.read(&mut self.batch)?;
        if left_out.lost_bytes > 0 {
            self.target.forget();
        }
        self.status.waiting_bytes.store(self.source.bytes_left(), Ordering::Relaxed);
        self.status.waiting_since_ms.store(first_ms.unwrap_or(0), Ordering::Relaxed);
        if !self.batch.is_empty() {
            self.send()?;
        }
        // Only now: after a failure it is read again.
        self.count_left_out(left_out);
        self.status.set_away("");
        self.complaints.reached(self.source.bytes_left());
        self.confirm();
        self.save(false);
        if first_ms.is_none() {
            self.source.wait(IDLE);
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), Trouble> {
        let mut refused = [0; RefusalReason::ALL.len()];
        let complaints = &mut self.complaints;
        let created = self.target.send(&self.batch, &mut |refusal| {
            refused[refusal.reason as usize] += refusal.count;
            complaints.refused(&refusal);
        })?;
        // After a failure all of it comes again.
        for (reason, count) in RefusalReason::ALL.into_iter().zip(refused) {
            self.status.refuse(reason, count);
        }
        self.status.created.fetch_add(created, Ordering::Relaxed);
        let sent = (self.batch.len() as u64).saturating_sub(refused.iter().sum());
        self.status.sent.fetch_add(sent, Ordering::Relaxed);
        Ok(())
    }

    /// Records that all that was read was sent.
    fn confirm(&mut self) {
        let settles = self.target.settles_after();
        let now = Instant::now();
        let read = self.source.positions();
        if settles.is_zero() {
            self.confirmed = read;
            return;
        }
        if self.unsettled.back().is_none_or(|(_, sent)| *sent != read) {
            self.unsettled.push_back((now, read));
        }
        while let Some((sent_at, _)) = self.unsettled.front()
            && now.duration_since(*sent_at) >= settles
            && let Some((_, sent)) = self.unsettled.pop_front()
        {
            self.confirmed = sent;
        }
    }

    /// After a failure: what the target may not have is read again.
    fn step_back(&mut self, trouble: &Trouble) {
        let confirmed = self.confirmed.clone();
        self.unsettled.clear();
        if let Err(error) = self.source.seek(&confirmed) {
            tracing::error!(to = %self.name, %error, "cannot go back in the log");
        }
        let waiting = self.source.bytes_left();
        self.status.waiting_bytes.store(waiting, Ordering::Relaxed);
        self.status.note_waiting(waiting > 0);
        let why = match trouble {
            Trouble::Away(why) => why.clone(),
            Trouble::Log(error) => error.to_string(),
        };
        self.status.set_away(&why);
        self.complaints.away(&why, waiting);
        self.save(false);
    }

    /// Drops the oldest of what waits when it is too much.
    fn limit(&mut self) -> Result<(), TailError> {
        if self.source.bytes_left() <= self.spool_bytes {
            return Ok(());
        }
        let [part, whole] = LEFT_OF_FULL;
        let left_out = self.source.drop_oldest(self.spool_bytes / whole * part)?;
        self.count_left_out(left_out);
        self.target.forget();
        tracing::warn!(
            to = %self.name,
            dropped = left_out.readings,
            "more waited to be forwarded than may (spool_bytes): the oldest readings were dropped"
        );
        self.unsettled.clear();
        self.confirmed = self.source.positions();
        Ok(())
    }

    fn count_left_out(&self, LeftOut { readings, lost_bytes }: LeftOut) {
        self.status.dropped.fetch_add(readings, Ordering::Relaxed);
        self.status.lost_bytes.fetch_add(lost_bytes, Ordering::Relaxed);
    }

    /// Writes the positions when they have changed, and not too often unless it has to be `now`.
    fn save(&mut self, now: bool) {
        let (saved_at, saved) = &self.saved;
        if *saved == self.confirmed || !now && saved_at.elapsed() < SAVE_EVERY {
            return;
        }
        match self.positions.save(self.source.identity(), &self.confirmed) {
            Ok(()) => self.source.keep_from(&self.confirmed),
            // More is sent again after a crash.
            Err(error) => tracing::warn!(to = %self.name, %error, "cannot write up to where was forwarded"),
        }
        self.saved = (Instant::now(), self.confirmed.clone());
    }

    fn pause(&self, wait: Duration) {
        let until = Instant::now() + wait;
        while Instant::now() < until && !self.is_stopping() {
            std::thread::sleep(STOP_LOOK.min(wait));
        }
    }
}
