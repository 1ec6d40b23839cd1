//! Batches of updates: split by partition, sent side by side, each part tried until its leader has confirmed it, and the failures put together.
//!
//! A part whose outcome is not known is sent again. RRDtool's own rule makes that safe: an update that is not later than the last
//! one is refused. So in a line that may have been applied already, such a refusal means that it was, and only there.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rrd::update::UpdateError;
use store::engine::{Engine, Reply, StoreError, UpdateBatch, UpdateFailure, UpdateLine};

use super::errand::Trial;
use super::gate::After;
use super::{Hub, is_outcome_unknown, passes, shown};
use crate::key;
use crate::lock::lock;
use crate::peer::{NoAnswer, Received};
use crate::routes::NodeAddress;
use crate::wire::{Answer, Ask, Told};

/// Bytes of a part; a longer one becomes several.
const PART_BYTES_MAX: usize = 4 << 20;
/// The time of what is tried until the process ends: a century.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// A batch of which parts are on their way.
struct Whole {
    left: AtomicUsize,
    failures: Mutex<Vec<UpdateFailure>>,
    reply: Mutex<Option<Reply<Vec<UpdateFailure>>>>,
}

impl Whole {
    fn add(&self, failure: UpdateFailure) {
        lock(&self.failures).push(failure);
    }

    /// A part is done.
    fn end_part(&self) {
        if self.left.fetch_sub(1, Ordering::SeqCst) > 1 {
            return;
        }
        let mut failures = std::mem::take(&mut *lock(&self.failures));
        failures.sort_by_key(|failure| failure.line);
        let reply = lock(&self.reply).take();
        if let Some(reply) = reply {
            reply(failures);
        }
    }
}

/// A line of a part.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartLine {
    /// Its place in the whole batch.
    line: u32,
    /// How many of its arguments were applied by earlier attempts.
    accepted: u32,
    /// Whether an earlier attempt may have applied more.
    is_unknown: bool,
}

/// The lines of one partition, in their order.
pub(super) struct Part {
    hub: Arc<Hub>,
    pub(super) trial: Trial,
    /// Its place among all of its partition.
    pub(super) number: u64,
    /// How often some of its partition were sent again before ([`Ask::round`]).
    pub(super) round: u64,
    batch: UpdateBatch,
    lines: Vec<PartLine>,
    whole: Arc<Whole>,
}

/// Applies a batch, as [`store::engine::Engine::update`].
pub(super) fn update(hub: &Arc<Hub>, batch: UpdateBatch, reply: Reply<Vec<UpdateFailure>>) {
    if batch.lines.is_empty() {
        return reply(Vec::new());
    }
    if hub.is_stopping() {
        let failure = |line| UpdateFailure { line, accepted: 0, error: StoreError::Stopping };
        return reply((0..batch.lines.len() as u32).map(failure).collect());
    }
    let parts = split(with_times(batch, hub), hub.routes.partition_count());
    let whole = Arc::new(Whole {
        left: AtomicUsize::new(parts.len()),
        failures: Mutex::default(),
        reply: Mutex::new(Some(reply)),
    });
    for (partition, batch, lines) in parts {
        let trial = Trial::new(partition, hub.options.patience);
        let (own, whole) = (Arc::clone(hub), Arc::clone(&whole));
        hub.enter(Part { hub: own, trial, number: 0, round: 0, batch, lines, whole });
    }
}

/// Has a batch of one partition applied, whatever time that takes; it fails only for what its leader refuses, and at the end of the process.
pub(super) fn deliver(
    hub: &Arc<Hub>,
    partition: u32,
    batch: UpdateBatch,
    is_unknown: bool,
    reply: Reply<Vec<UpdateFailure>>,
) {
    let line = |line| PartLine { line, accepted: 0, is_unknown };
    let lines = (0..batch.lines.len() as u32).map(line).collect();
    let whole =
        Whole { left: AtomicUsize::new(1), failures: Mutex::default(), reply: Mutex::new(Some(reply)) };
    let trial = Trial::new(partition, FOR_EVER);
    let own = Arc::clone(hub);
    hub.enter(Part { hub: own, trial, number: 0, round: 0, batch, lines, whole: Arc::new(whole) });
}

/// The batch with times instead of `N`: sent again, an update must have the time it had.
pub(super) fn with_times(batch: UpdateBatch, hub: &Hub) -> UpdateBatch {
    let has_now = |line: &UpdateLine| {
        let values = batch.values(line);
        values.contains(&b'N') && values.split(|&byte| byte == b' ').any(is_now)
    };
    if !batch.lines.iter().any(has_now) {
        return batch;
    }
    let now = (hub.options.clock)();
    let now = format!("{}.{:06}", now.whole, now.micros);
    let mut timed = UpdateBatch::default();
    for line in &batch.lines {
        let args = batch.values(line).split(|&byte| byte == b' ').map(|arg| match is_now(arg) {
            true => [now.as_bytes(), &arg[1..]].concat(),
            false => arg.to_vec(),
        });
        timed.push(batch.name(line), &args.collect::<Vec<_>>().join(&b' '));
    }
    timed
}

fn is_now(arg: &[u8]) -> bool {
    arg.starts_with(b"N:")
}

/// The lines by partition. A batch of one partition stays as it is.
pub(super) fn split(batch: UpdateBatch, partition_count: u32) -> Vec<(u32, UpdateBatch, Vec<PartLine>)> {
    let mut last: Option<(&[u8], u32)> = None;
    let partitions: Vec<u32> = batch
        .lines
        .iter()
        .map(|line| {
            let directory = key::directory_of(batch.name(line));
            match last {
                Some((known, partition)) if known == directory => partition,
                _ => {
                    let partition = key::partition_of(batch.name(line), partition_count);
                    last = Some((directory, partition));
                    partition
                }
            }
        })
        .collect();
    let part_line = |index: usize| PartLine { line: index as u32, accepted: 0, is_unknown: false };
    let first = partitions.first().copied().unwrap_or(0);
    if batch.text.len() <= PART_BYTES_MAX && partitions.iter().all(|&partition| partition == first) {
        let lines = (0..batch.lines.len()).map(part_line).collect();
        return vec![(first, batch, lines)];
    }
    let mut parts: Vec<(u32, UpdateBatch, Vec<PartLine>)> = Vec::new();
    let mut open: Vec<Option<usize>> = vec![None; partition_count as usize];
    for (index, (line, partition)) in batch.lines.iter().zip(partitions).enumerate() {
        let part = match open[partition as usize] {
            Some(part) if parts[part].1.text.len() < PART_BYTES_MAX => part,
            _ => {
                parts.push((partition, UpdateBatch::default(), Vec::new()));
                parts.len() - 1
            }
        };
        open[partition as usize] = Some(part);
        let (_, part_batch, lines) = &mut parts[part];
        part_batch.push_copy(&batch, line);
        lines.push(part_line(index));
    }
    parts
}

/// The arguments of a line after the first `count`.
fn after(values: &[u8], count: u32) -> &[u8] {
    let mut rest = values;
    for _ in 0..count {
        match rest.iter().position(|&byte| byte == b' ') {
            Some(space) => rest = &rest[space + 1..],
            None => return &[],
        }
    }
    rest
}

/// What follows from the failure of a line.
enum Next {
    /// The client is told.
    Fail,
    /// It is tried again from the failing argument on; whether that may have been applied.
    Again(bool),
    /// The failing argument was applied by an earlier attempt; the arguments after it are tried.
    GoOn,
}

fn next(error: &StoreError, is_unknown: bool) -> Next {
    match error {
        StoreError::Update(UpdateError::NotLater { time, last_update, .. })
            if is_unknown && time <= last_update =>
        {
            Next::GoOn
        }
        error if passes(error) => Next::Again(is_outcome_unknown(error)),
        _ => Next::Fail,
    }
}

impl Part {
    /// Has a store of this node apply it.
    pub(super) fn apply_here(self, engine: &dyn Engine) {
        // The copy is for a retry, when this node loses its lead meanwhile.
        let batch = self.batch.clone();
        engine.update(batch, Box::new(move |failures| self.applied(failures)));
    }

    /// Has another node apply it.
    pub(super) fn send_to(mut self, node: NodeAddress) {
        match self.hub.peer(&node) {
            Ok(peer) => {
                let (partition, until) = (self.trial.partition, self.trial.attempt_until(&self.hub));
                let letter = Ask::letter_of_update(partition, self.round, &self.batch);
                peer.ask(partition, letter, until, Box::new(move |heard| self.heard(&node, heard)));
            }
            Err(error) => {
                self.trial.note(&node, NoAnswer::Unsent(error.to_string()));
                self.later();
            }
        }
    }

    fn heard(mut self, node: &NodeAddress, heard: Result<Received, NoAnswer>) {
        match heard.map(|received| received.told()) {
            Ok(Ok(Told::Answer(Answer::Failures(failures), _))) => self.applied(failures),
            Ok(Ok(Told::Refused(error))) => self.end(&error),
            Ok(Ok(Told::NotLeader(leader))) => {
                self.trial.note_follower(node, leader);
                self.hub.note_leader(self.trial.partition, self.trial.hint.take());
                self.later();
            }
            Ok(Ok(Told::Absent)) => {
                self.trial.note_follower(node, None);
                self.later();
            }
            Ok(_) => {
                let text = format!(
                    "node {} and this one do not understand each other: upgrade the older one of the two",
                    shown(node)
                );
                self.end(&StoreError::Unavailable(text));
            }
            Err(why) => {
                if self.trial.note(node, why) {
                    self.lines.iter_mut().for_each(|line| line.is_unknown = true);
                }
                self.later();
            }
        }
    }

    /// A store has applied the batch, but for these lines.
    fn applied(mut self, failures: Vec<UpdateFailure>) {
        let (mut rest, mut lines) = (UpdateBatch::default(), Vec::new());
        let mut must_wait = false;
        for UpdateFailure { line, accepted, error } in failures {
            let index = line as usize;
            let (Some(part), Some(text)) = (self.lines.get(index), self.batch.lines.get(index)) else {
                continue;
            };
            let (name, values) = (self.batch.name(text), self.batch.values(text));
            let total = part.accepted + accepted;
            match next(&error, part.is_unknown) {
                Next::Fail => self.whole.add(UpdateFailure { line: part.line, accepted: total, error }),
                Next::Again(is_unknown) => {
                    self.trial.said = format!("partition {}: {error}", self.trial.partition);
                    must_wait = true;
                    rest.push(name, after(values, accepted));
                    lines.push(PartLine {
                        accepted: total,
                        is_unknown: part.is_unknown || is_unknown,
                        ..*part
                    });
                }
                Next::GoOn => {
                    let values = after(values, accepted + 1);
                    if !values.is_empty() {
                        rest.push(name, values);
                        lines.push(PartLine { accepted: total + 1, ..*part });
                    }
                }
            }
        }
        if lines.is_empty() {
            self.hub.leave(self.trial.partition, After::Done);
            return self.whole.end_part();
        }
        (self.batch, self.lines) = (rest, lines);
        match must_wait {
            true => self.later(),
            false => self.again(Instant::now()),
        }
    }

    fn again(self, due: Instant) {
        let (hub, partition) = (Arc::clone(&self.hub), self.trial.partition);
        hub.leave(partition, After::Again(Box::new(self), due));
    }

    fn later(mut self) {
        match self.trial.next() {
            Some(due) => self.again(due),
            None => {
                let error = self.trial.unavailable();
                self.end(&error);
            }
        }
    }

    /// Fails after an attempt.
    fn end(self, error: &StoreError) {
        self.hub.leave(self.trial.partition, After::Done);
        self.fail_all(error);
    }

    /// Fails without one.
    pub(super) fn fail_all(self, error: &StoreError) {
        for part in &self.lines {
            self.whole.add(UpdateFailure { line: part.line, accepted: part.accepted, error: error.clone() });
        }
        self.whole.end_part();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(lines: &[(&str, &str)]) -> UpdateBatch {
        let mut batch = UpdateBatch::default();
        lines.iter().for_each(|(name, values)| batch.push(name.as_bytes(), values.as_bytes()));
        batch
    }

    #[test]
    fn lines_are_split_by_partition_in_their_order() {
        let names: Vec<String> = (0..40).map(|number| format!("d{}/{number}.rrd", number % 7)).collect();
        let lines: Vec<(&str, &str)> = names.iter().map(|name| (&**name, "1:1")).collect();
        let parts = split(batch(&lines), 5);
        let mut seen = [false; 40];
        for (partition, part, lines) in &parts {
            assert!(lines.windows(2).all(|pair| pair[0].line < pair[1].line));
            for (text, line) in part.lines.iter().zip(lines) {
                assert_eq!(part.name(text), names[line.line as usize].as_bytes());
                assert_eq!(key::partition_of(part.name(text), 5), *partition);
                assert!(!std::mem::replace(&mut seen[line.line as usize], true));
            }
        }
        assert!(seen.iter().all(|seen| *seen));
        assert!(parts.len() <= 5);
        // A batch of one partition is not copied: its text keeps the byte that stands between name and values.
        let mut one = UpdateBatch::default();
        one.push_joined(b"d/a 1:1", 3);
        assert_eq!(split(one, 5)[0].1.text, b"d/a 1:1");
    }

    #[test]
    fn a_refusal_counts_as_applied_only_after_an_unknown_outcome() {
        let time = |whole| rrd::time::Timestamp::whole(whole);
        let past = StoreError::Update(UpdateError::NotLater {
            time: time(5),
            last_update: time(5),
            units_per_second: 1,
        });
        assert!(matches!(next(&past, true), Next::GoOn));
        assert!(matches!(next(&past, false), Next::Fail));
        assert!(matches!(next(&StoreError::NotPrimary("x"), false), Next::Again(false)));
        assert!(matches!(next(&StoreError::NotReplicated("x"), false), Next::Again(true)));
        assert!(matches!(next(&StoreError::TooLarge(String::new()), true), Next::Fail));
        assert_eq!(after(b"1:1 2:2 3:3", 2), b"3:3");
        assert_eq!(after(b"1:1 2:2 3:3", 0), b"1:1 2:2 3:3");
        assert_eq!(after(b"1:1", 1), b"");
    }
}
