//! The thread of a replica: it opens the store at the mark, and gives it what the partition says from there on.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use store::disk::Disk;
use store::engine::{Engine, StoreError};
use store::replication::{LogCopy, Mark, Position, Replica, SharedConfirmation};
use store::stripes::{Options, ShardOptions, Stripes};
use store::tail::Reach;

use super::marks::Confirmed;
use super::{ReplicaOptions, Settled, Shared, sender};
use crate::log::{LogError, LogReader, Stored};
use crate::message::{Content, Message, Verdict};

/// How long a read waits for the next message, before the thread looks around.
const READ_PATIENCE: Duration = Duration::from_millis(50);
/// The same, once there was no message for so many times: a node has many partitions, and each look costs CPU.
const IDLE_PATIENCE: Duration = Duration::from_millis(250);
/// Looks in vain after which a partition is idle.
const IDLE_AFTER: u32 = 4;
/// Bytes of records that are given to the store at once.
const BATCH_BYTES: usize = 1 << 20;
/// A new replica is copied from another node rather than made of more messages than that.
const REPLAYED_MAX: u64 = 1000;
/// How long other nodes are waited for before a backup counts.
const ACQUAINTANCE: Duration = Duration::from_secs(5);
/// How often a mark is written: after a crash, so much of the partition is read again.
const MARK_INTERVAL: Duration = Duration::from_secs(10);
/// How often a leader has the other replicas compare some RRDs with its own.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// By how much a log has to grow before the next check, so that no check is made for the last one's record alone.
const CHECK_BYTES_MIN: u64 = 256;
/// How long a claim is waited for before another one.
const CLAIM_PATIENCE: Duration = Duration::from_secs(3);
/// The pauses after a fault, from the first to the longest.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(30),
];
/// How long the last answers of a store that is closed may take.
const CLOSING: Duration = Duration::from_secs(15);
/// How long a leader that stops waits for the log to take what it has answered for.
const DRAINING: Duration = Duration::from_secs(5);
/// Bytes of its log that a leader's store keeps for the sender.
const KEPT_BYTES: u64 = 1 << 30;

/// Why a store was closed.
enum End {
    /// The replica stops.
    Stopped,
    /// Another one leads: what was not accepted has to be cut off.
    Resigned,
}

/// Why a replica cannot go on.
enum Fault {
    /// Something that may pass: it is tried again.
    Passing(String),
    /// This copy is not what the partition says: it is made again.
    Differs(String),
    /// The log has too little, or too much, to begin with this: it is to be fetched from another node.
    Lacks(String),
}

impl From<LogError> for Fault {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Gone { .. } => Fault::Lacks(error.to_string()),
            error => Fault::Passing(error.to_string()),
        }
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Fault::Passing(error.to_string())
    }
}

fn passing(what: &str, error: impl std::fmt::Display) -> Fault {
    Fault::Passing(format!("{what}: {error}"))
}

/// Runs until the replica is stopped.
pub(super) fn run(shared: &Arc<Shared>) {
    let partition = shared.options.partition;
    let (mut faults, mut replays_all) = (0, false);
    while !shared.is_stopping() {
        let began = Instant::now();
        let fault = match Life::begin(shared, replays_all).and_then(Life::run) {
            Ok(End::Stopped) => return,
            Ok(End::Resigned) => continue,
            Err(Fault::Passing(why)) => why,
            Err(Fault::Differs(why)) => put_aside(shared, why),
            Err(Fault::Lacks(why)) => match fetch(shared) {
                Ok(()) => continue,
                Err(error) => {
                    // Slower than a copy, and better than none, as long as the log has everything. A node that has it is asked again.
                    replays_all = !has_source(shared);
                    format!("{why}; and it cannot be copied: {error}")
                }
            },
        };
        tracing::error!(partition, %fault, "this replica of the partition stands still; it is tried again");
        shared.state().fault = Some(fault);
        faults = if began.elapsed() > CLOSING { 0 } else { faults + 1 };
        let until = Instant::now() + PAUSES[faults.min(PAUSES.len() - 1)];
        let mut state = shared.state();
        while !shared.is_stopping() && Instant::now() < until {
            state = shared.wait(state, READ_PATIENCE);
        }
    }
}

/// Whether another node has it ready.
fn has_source(shared: &Shared) -> bool {
    let copier = shared.options.copier.get();
    copier.is_some_and(|copier| copier.has_source(shared.options.partition))
}

/// Fetches the store from another node, or else from a backup.
fn fetch(shared: &Shared) -> io::Result<()> {
    let ReplicaOptions { partition, home, copier, backup, .. } = &shared.options;
    let directory = home.directory().ok_or_else(|| io::Error::other("it is not in a directory"))?;
    let copy = directory.with_extension("copying");
    // Other nodes have the newest state; at the start they are not known at once.
    let until = Instant::now() + if backup.is_some() { ACQUAINTANCE } else { Duration::ZERO };
    while !has_source(shared) && !shared.is_stopping() && Instant::now() < until {
        drop(shared.wait(shared.state(), READ_PATIENCE));
    }
    let copied = match copier.get() {
        Some(nodes) => nodes.copy(*partition, &copy),
        None => Err(io::Error::other("this node is not connected to others yet")),
    };
    copied.or_else(|error| {
        let Some(backup) = backup else { return Err(error) };
        let first = shared.log.bounds(*partition).map_err(io::Error::other)?.start;
        if copy.exists() {
            std::fs::remove_dir_all(&copy)?;
        }
        let log = shared.log.identity().map_err(io::Error::other)?;
        let restored = backup.restore(shared.options.backed(&log), first, &copy);
        restored.map_err(|other| io::Error::other(format!("{error}; of its backup: {other}")))
    })?;
    home.replace_by(&copy)?;
    shared.counters.copied.fetch_add(1, Ordering::Relaxed);
    tracing::info!(partition, "the replica is copied");
    Ok(())
}

fn put_aside(shared: &Shared, why: String) -> String {
    match shared.options.home.put_aside() {
        Ok(place) => {
            shared.counters.put_aside.fetch_add(1, Ordering::Relaxed);
            format!("{why}. This copy is kept as \"{place}\" to be looked at, and is made again")
        }
        Err(error) => format!("{why}. It cannot be put aside: {error}"),
    }
}

/// Records that were accepted and that the store does not have yet.
#[derive(Default)]
struct Pending {
    from: Position,
    bytes: Vec<u8>,
    /// So many of them are whole records.
    whole: usize,
    /// The moment at which the store will be with these.
    moment: Settled,
}

/// The time in which the store is open.
struct Life {
    shared: Arc<Shared>,
    disk: Arc<dyn Disk>,
    /// Of the replicated log.
    identity: String,
    engine: Arc<Stripes>,
    reader: Box<dyn LogReader>,
    /// The end of the partition when the reader was opened.
    caught_up_at: u64,
    pending: Pending,
    /// Its store was made in this life.
    is_new: bool,
    /// When it last wrote a claim or a seal.
    claimed: Option<Instant>,
    /// The epochs that it has claimed. A claim of an earlier life must not be taken for one of these: what that life wrote may follow it.
    claims: Vec<u32>,
    marked: Instant,
    checked: Instant,
    /// The end of the log at the last check.
    checked_at: Position,
}

impl Life {
    /// Opens store and partition. A new store is made of however many messages if it `replays_all`.
    fn begin(shared: &Arc<Shared>, replays_all: bool) -> Result<Life, Fault> {
        let options = &shared.options;
        let identity = shared.log.identity()?;
        let disk = options
            .home
            .open()
            .map_err(|error| passing("cannot open the directory of the replica", error))?;
        let mark = Mark::load(&*disk).map_err(|error| Fault::Passing(error.to_string()))?;
        let settled = match &mark {
            None => Settled::default(),
            Some(mark) if mark.log == identity => Settled::of_mark(mark),
            Some(mark) if mark.sealed_for.as_ref() == Some(&identity) => Settled::in_next_log(mark),
            Some(mark) => return Err(of_another_log(shared, &mark.log, &identity)),
        };
        let bounds = shared.log.bounds(options.partition)?;
        let is_long = bounds.end - bounds.start > REPLAYED_MAX;
        let has_copy = || {
            let backup = options.backup.as_ref();
            has_source(shared) || backup.is_some_and(|backup| backup.has_backup(options.backed(&identity)))
        };
        if mark.is_none() && is_long && !replays_all && has_copy() {
            return Err(Fault::Lacks(format!(
                "{} messages would have to be read",
                bounds.end - bounds.start
            )));
        }
        if settled.next < bounds.start {
            return Err(LogError::Gone { first: bounds.start }.into());
        }
        let end = settled.accepted.whole;
        let life = begin_life(shared, settled);
        let sealed_for =
            mark.as_ref().and_then(|mark| mark.sealed_for.clone()).filter(|_| settled.accepted.is_sealed);
        {
            let mut state = shared.state();
            (state.seal_is_marked, state.sealed_for) = (sealed_for.is_some(), sealed_for);
        }
        let engine = Arc::new(open_store(shared, &disk, &identity, life, end)?);
        let here = engine.moment().first().copied().unwrap_or_default();
        if here != end {
            let _ = engine.stop();
            return Err(Fault::Differs(format!(
                "the store's log ends at {here}, and should end at {end}, up to where it was durable once"
            )));
        }
        let reader = shared.log.reader(options.partition, settled.next)?;
        let mut state = shared.state();
        (state.engine, state.fault) = (Some(Arc::clone(&engine)), None);
        (state.is_caught_up, state.seen_end) = (settled.next >= bounds.end, bounds.end);
        drop(state);
        let pending = Pending { from: end, ..Pending::default() };
        Ok(Life {
            shared: Arc::clone(shared),
            disk,
            identity,
            engine,
            reader,
            caught_up_at: bounds.end,
            pending,
            is_new: mark.is_none(),
            claimed: None,
            claims: Vec::new(),
            marked: Instant::now(),
            checked: Instant::now(),
            checked_at: end,
        })
    }

    /// Reads on until it has to close the store, and closes it.
    fn run(mut self) -> Result<End, Fault> {
        let ended = self.read_on();
        let (shared, disk) = (Arc::clone(&self.shared), Arc::clone(&self.disk));
        if matches!(ended, Ok(End::Stopped)) {
            self.drain();
        }
        let weak = {
            let mut state = shared.state();
            if !matches!(ended, Ok(End::Stopped)) {
                // No checkpoint may wait for what is not accepted any more.
                state.life += 1;
            }
            (state.engine, state.leads, state.is_caught_up) = (None, false, false);
            shared.changed.notify_all();
            Arc::downgrade(&self.engine)
        };
        if let Err(error) = self.engine.stop() {
            tracing::warn!(partition = shared.options.partition, %error, "the store of a replica did not close well");
        }
        let identity = std::mem::take(&mut self.identity);
        drop(self);
        wait_until_closed(&weak);
        if ended.is_ok() {
            shared
                .write_mark(&*disk, &identity, &|| Ok(()))
                .map_err(|error| passing("cannot write the mark of the replica", error))?;
        }
        ended
    }

    /// Waits until what was answered for is accepted, as far as that is to be had.
    fn drain(&mut self) {
        let until = Instant::now() + DRAINING;
        while self.has_unaccepted() && Instant::now() < until {
            match self.reader.next(READ_PATIENCE) {
                Ok(Some(stored)) => {
                    if !matches!(self.take(&stored), Ok(None)) {
                        return;
                    }
                }
                Ok(None) => {}
                Err(_) => return,
            }
        }
    }

    /// Whether it leads, and has decided what is not accepted yet.
    fn has_unaccepted(&self) -> bool {
        let end = self.engine.moment().first().copied().unwrap_or_default();
        let state = self.shared.state();
        state.leads && end > state.accepted.whole
    }

    fn read_on(&mut self) -> Result<End, Fault> {
        let mut in_vain = 0;
        loop {
            if self.shared.is_stopping() {
                self.flush()?;
                return Ok(End::Stopped);
            }
            let patience = match self.pending.bytes.is_empty() {
                true if in_vain < IDLE_AFTER => READ_PATIENCE,
                true => IDLE_PATIENCE,
                false => Duration::ZERO,
            };
            match self.reader.next(patience)? {
                Some(stored) => {
                    in_vain = 0;
                    if let Some(end) = self.take(&stored)? {
                        return Ok(end);
                    }
                    if self.pending.bytes.len() >= BATCH_BYTES {
                        self.flush()?;
                    }
                }
                None => {
                    in_vain = in_vain.saturating_add(1);
                    self.flush()?;
                    self.look_around()?;
                }
            }
            if self.marked.elapsed() > MARK_INTERVAL {
                self.mark()?;
            }
            if self.checked.elapsed() > CHECK_INTERVAL {
                self.check()?;
            }
        }
    }

    /// What is to be done beside reading.
    fn look_around(&mut self) -> Result<(), Fault> {
        let (partition, writer) = (self.shared.options.partition, self.shared.options.writer);
        let (epoch, from) = {
            let mut state = self.shared.state();
            if let Some(why) = state.aside.take() {
                return Err(Fault::Differs(why));
            }
            if let Some(fault) = state.fault.clone() {
                return Err(Fault::Passing(fault));
            }
            state.is_caught_up |= state.next >= self.caught_up_at;
            if state.leads && self.engine.stats().read_only > 0 {
                // On a full or failing disk. Another replica may have a better one.
                return Err(Fault::Passing("its store takes no changes".into()));
            }
            let wants = state.wants_lead.is_some_and(|known| state.accepted.epoch <= known);
            let may_claim = state.is_caught_up && !state.leads && !state.accepted.is_sealed;
            if !wants || !may_claim || self.waits_for_an_epoch() {
                return Ok(());
            }
            (state.accepted.epoch + 1, state.accepted.whole)
        };
        self.claimed = Some(Instant::now());
        self.claims.push(epoch);
        let claim = Message { partition, epoch, writer, content: Content::Claim { from } }.encode();
        if let Err(error) = self.shared.append(&claim) {
            tracing::warn!(partition, %error, "the replicated log did not take a claim");
        }
        Ok(())
    }

    /// Whether it wrote a claim or a seal just now.
    fn waits_for_an_epoch(&self) -> bool {
        self.claimed.is_some_and(|claimed| claimed.elapsed() < CLAIM_PATIENCE)
    }

    /// As the leader, ends the partition in this log, if that is wanted. What was decided and is not accepted by then does not count.
    fn seal(&mut self, epoch: u32) {
        let Some(next) = self.shared.seals_for.get().filter(|_| !self.waits_for_an_epoch()) else { return };
        let (partition, writer) = (self.shared.options.partition, self.shared.options.writer);
        let seal = Message { partition, epoch: epoch + 1, writer, content: Content::Seal { next } }.encode();
        if let Err(error) = self.shared.append(&seal) {
            tracing::warn!(partition, %error, "the replicated log did not take the seal of the partition; it is tried again");
        }
        self.claimed = Some(Instant::now());
    }

    /// Takes the next message.
    fn take(&mut self, stored: &Stored) -> Result<Option<End>, Fault> {
        let partition = self.shared.options.partition;
        self.shared.counters.read(&stored.bytes);
        let at = |what: &dyn std::fmt::Display| {
            format!("the message at offset {} of partition {partition}: {what}", stored.offset)
        };
        let message = Message::decode(&stored.bytes).map_err(|error| Fault::Passing(at(&error)))?;
        if message.partition != partition {
            let other = format!("it was written for partition {}", message.partition);
            return Err(Fault::Passing(at(&other)));
        }
        let (verdict, leads, accepted) = {
            let mut state = self.shared.state();
            let verdict = state.accepted.take(&message);
            state.next = stored.offset + 1;
            (verdict, state.leads, state.accepted)
        };
        match verdict {
            Verdict::Leads => return self.begin_epoch(),
            Verdict::Seals { next } => {
                self.shared.state().sealed_for = Some(next.to_owned());
                return self.begin_epoch();
            }
            Verdict::Append(bytes) if leads => {
                tracing::trace!(partition, bytes = bytes.len(), "read back");
                self.engine.acknowledged(0, accepted.whole);
            }
            Verdict::Append(bytes) => {
                self.pending.bytes.extend_from_slice(bytes);
                if accepted.end == accepted.whole {
                    self.pending.whole = self.pending.bytes.len();
                    self.pending.moment = Settled { accepted, next: stored.offset + 1 };
                }
                return Ok(None);
            }
            Verdict::Gap => {
                let what = format!(
                    "it begins after {}, where what this replica has of the partition ends",
                    accepted.end
                );
                return Err(Fault::Differs(at(&what)));
            }
            Verdict::Nothing if self.is_new && matches!(message.content, Content::Continues { .. }) => {
                let what = "the partition goes on after another log, of which this replica has nothing";
                return Err(Fault::Lacks(at(&what)));
            }
            Verdict::Nothing => {}
        }
        self.settle();
        Ok(None)
    }

    /// Gives the store what is pending, as far as it is whole.
    fn flush(&mut self) -> Result<(), Fault> {
        let Pending { from, bytes, whole, moment } = &mut self.pending;
        if *whole > 0 {
            let rest = bytes.split_off(*whole);
            let records = std::mem::replace(bytes, rest);
            let (sender, done) = mpsc::sync_channel(1);
            let reply = Box::new(move |result| drop(sender.send(result)));
            Replica::replicate(&*self.engine, 0, *from, records, reply);
            *from = done.recv().unwrap_or(Err(StoreError::Stopping)).map_err(|error| {
                // Of a disk that fails, the next attempt may know better.
                match self.engine.differs() {
                    true => Fault::Differs(error.to_string()),
                    false => error.into(),
                }
            })?;
            *whole = 0;
            // Also when more is pending that is not whole: a checkpoint may wait for this.
            self.shared.state().settled = *moment;
            self.shared.changed.notify_all();
        }
        self.settle();
        Ok(())
    }

    /// Notes a moment to go back to, if this is one.
    fn settle(&self) {
        if self.pending.bytes.is_empty() {
            let mut state = self.shared.state();
            if state.accepted.end == state.accepted.whole {
                state.settled = Settled { accepted: state.accepted, next: state.next };
            }
            self.shared.changed.notify_all();
        }
    }

    /// Another epoch has begun: that of this replica, or one in which it follows.
    fn begin_epoch(&mut self) -> Result<Option<End>, Fault> {
        let whole = self.pending.whole;
        self.pending.bytes.truncate(whole);
        self.flush()?;
        let Shared { options, .. } = &*self.shared;
        let (partition, writer) = (options.partition, options.writer);
        let (accepted, led) = {
            let state = self.shared.state();
            (state.accepted, state.leads)
        };
        if accepted.is_sealed {
            tracing::info!(
                partition,
                epoch = accepted.epoch,
                "the partition is sealed: it goes on in another log"
            );
        } else if led {
            tracing::warn!(partition, epoch = accepted.epoch, "another node leads this partition now");
        }
        if led {
            let mut state = self.shared.state();
            state.settled = Settled { accepted, next: state.next };
            return Ok(Some(End::Resigned));
        }
        self.settle();
        if accepted.is_sealed {
            self.mark()?;
        }
        if accepted.leader != writer || !self.claims.contains(&accepted.epoch) {
            return Ok(None);
        }
        let tail = self.engine.tail(Reach::Committed, KEPT_BYTES)?;
        self.engine.lead(accepted.epoch)?;
        // What it has followed up to here waits for nothing.
        self.engine.acknowledged(0, accepted.whole);
        self.shared.state().leads = true;
        tracing::info!(partition, epoch = accepted.epoch, "this node leads the partition");
        let shared = Arc::clone(&self.shared);
        std::thread::Builder::new()
            .name(format!("sender-{partition}"))
            .spawn(move || sender::run(&shared, accepted.epoch, tail, accepted.whole))
            .map_err(|error| passing("cannot start a thread", error))?;
        Ok(None)
    }

    fn check(&mut self) -> Result<(), Fault> {
        self.checked = Instant::now();
        let mut state = self.shared.state();
        let (leads, accepted, aside) = (state.leads, state.accepted, state.aside.take());
        let end = accepted.whole;
        drop(state);
        // Where messages follow each other, nothing else is looked at.
        if let Some(why) = aside {
            return Err(Fault::Differs(why));
        }
        if leads && end.offset > self.checked_at.offset + CHECK_BYTES_MIN {
            self.engine.check_copies()?;
            self.checked_at = end;
        }
        if leads {
            self.seal(accepted.epoch);
        }
        Ok(())
    }

    fn mark(&mut self) -> Result<(), Fault> {
        self.flush()?;
        self.marked = Instant::now();
        let sync = || self.engine.sync_logs().map_err(|error| io::Error::other(error.to_string()));
        self.shared
            .write_mark(&*self.disk, &self.identity, &sync)
            .map_err(|error| passing("cannot write the mark of the replica", error))
    }
}

/// Begins another life at a moment, and returns its number.
fn begin_life(shared: &Shared, settled: Settled) -> u64 {
    let mut state = shared.state();
    state.life += 1;
    (state.accepted, state.next, state.settled) = (settled.accepted, settled.next, settled);
    (state.leads, state.is_caught_up, state.aside) = (false, false, None);
    state.life
}

/// Why a replica of another log cannot go on in this one.
fn of_another_log(shared: &Shared, own: &str, identity: &str) -> Fault {
    let what = format!("this replica is a copy of the log \"{own}\", and the log is now \"{identity}\"");
    match has_source(shared) {
        // Others were sealed for this log, so that it is the right one.
        true => Fault::Differs(format!(
            "{what}, in which other nodes go on: it was not there when that was sealed"
        )),
        false => Fault::Passing(format!(
            "{what}: is another topic meant, or was it made again? After a seal that this node has not read, start it once more with the former log"
        )),
    }
}

fn open_store(
    shared: &Arc<Shared>,
    disk: &Arc<dyn Disk>,
    identity: &str,
    life: u64,
    end: Position,
) -> Result<Stripes, Fault> {
    let options = &shared.options;
    let confirmed =
        Confirmed { shared: Arc::clone(shared), life, disk: Arc::clone(disk), identity: identity.to_owned() };
    let shard = ShardOptions {
        replica_patience: Some(options.patience),
        log_end: Some(end),
        confirmation: Some(SharedConfirmation(Arc::new(confirmed))),
        ..options.store.shard.clone()
    };
    let options = Options {
        shard_count: 1,
        identity: Some(options.identity),
        shard,
        directory: options.home.directory(),
        placeholder_tree: None,
        adopt_tree: None,
        adopt_unused: None,
        follow: true,
        ..options.store.clone()
    };
    Stripes::open(Arc::clone(disk), &options)
        .map_err(|error| passing("cannot open the store of the replica", error))
}

/// Waits until requests that are still answered have let go of the store: until then it cannot be opened again.
fn wait_until_closed(store: &Weak<Stripes>) {
    let until = Instant::now() + CLOSING;
    while store.strong_count() > 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
}
