//! From one log to the next, as the operator has it done: for `roundel cluster seal` and `roundel cluster split`.
//!
//! `docs/cluster.md`, "To another log, or to more partitions", is the reference. All of it is told by the logs themselves: the next one begins with
//! what all nodes have to know of the present one, and a note in the present one has the leaders seal their partitions.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use crate::log::{LogError, LogReader, ReplicatedLog};
use crate::members::{Beat, Members, Note, Stage, Succession};
use crate::message::{Content, Message, NO_WRITER, WriterId};
use crate::plan::Plan;

/// Notes that are read of the present log: all nodes' beats of some minutes, with the plan among them.
pub const NOTES_AT_START: u64 = 20_000;
/// How long the nodes are listened to, before it is known who lives.
const ACQUAINTANCE: Duration = Duration::from_secs(2);
/// A node that said nothing for so long does not live.
const SILENCE: Duration = Duration::from_secs(5);
/// How long the notes at the start may take.
const NOTES_PATIENCE: Duration = Duration::from_secs(30);
/// How long a read waits.
const PATIENCE: Duration = Duration::from_millis(200);
/// Messages that a log may have that is empty but for an earlier attempt.
const BEGUN_MAX: u64 = 10_000;

/// Why the cluster cannot go on in another log.
#[derive(Debug)]
pub enum SuccessionError {
    /// A log does not answer, or is not as it should be.
    Log(LogError),
    /// Something in a log cannot be read: where, and why.
    Damaged(u64, String),
    /// What was asked for is not possible: why.
    Refused(String),
}

impl fmt::Display for SuccessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SuccessionError::Log(error) => error.fmt(f),
            SuccessionError::Damaged(offset, why) => {
                write!(f, "the note at offset {offset} of the last partition cannot be read: {why}")
            }
            SuccessionError::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for SuccessionError {}

impl From<LogError> for SuccessionError {
    fn from(error: LogError) -> Self {
        SuccessionError::Log(error)
    }
}

/// The note of a message, and who wrote it; `None` if it is of another kind.
///
/// # Errors
/// Why it cannot be read.
pub fn note_of(bytes: &[u8]) -> Result<Option<(WriterId, Note)>, String> {
    match Message::decode(bytes) {
        Ok(Message { content: Content::Note(body), writer, .. }) => {
            let note = serde_json::from_slice(body).map_err(|error| error.to_string())?;
            Ok(Some((writer, note)))
        }
        Ok(_) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Writes a note in the last partition of a log, which is the one after those with RRDs.
///
/// # Errors
/// The log's.
pub fn write_note(
    log: &dyn ReplicatedLog,
    partition: u32,
    writer: WriterId,
    note: &Note,
) -> Result<(), LogError> {
    let body = serde_json::to_vec(note).map_err(|error| LogError::Refused(error.to_string()))?;
    let message = Message { partition, epoch: 0, writer, content: Content::Note(&body) };
    log.append(partition, &message.encode())
}

/// A cluster on its way to another log.
pub struct Move {
    reader: Box<dyn LogReader>,
    /// What is known of each node, and since when nothing was said.
    nodes: BTreeMap<String, (Beat, Instant)>,
    /// Where the cluster goes.
    pub succession: Succession,
    /// Partitions of the present log.
    pub partitions: u32,
    /// The nodes of the plan.
    expected: Vec<String>,
    began: Instant,
}

/// How far it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MoveStatus {
    /// Partitions of which a replica has everything that was accepted.
    pub sealed: u32,
    /// Partitions of which a replica is ready for the next log.
    pub prepared: u32,
    /// Replicas on nodes that live.
    pub replicas: usize,
    /// Those of them that are ready.
    pub ready: usize,
    /// Nodes that say nothing, and have replicas.
    pub silent: Vec<String>,
    /// Replicas that are not ready: node and partition.
    pub waiting: Vec<(String, u32)>,
    /// What keeps nodes from getting ready.
    pub troubles: Vec<String>,
    /// All that live are ready, and so is each partition.
    pub is_done: bool,
}

impl Move {
    /// Has the cluster of a log go on in another one, which has as many partitions (`splits` is false), or a multiple. A move that was begun is gone on with.
    ///
    /// # Errors
    /// When the logs cannot be reached, or the next one is not fit for it: nothing is sealed then.
    pub fn begin(
        log: &dyn ReplicatedLog,
        next: &dyn ReplicatedLog,
        splits: bool,
    ) -> Result<Move, SuccessionError> {
        let partitions = log.partition_count()?.saturating_sub(1);
        let succession =
            Succession { next: next.identity()?, partitions: next.partition_count()?.saturating_sub(1) };
        check(partitions, &succession, &log.identity()?, splits)?;
        let bounds = log.bounds(partitions)?;
        let from = bounds.end.saturating_sub(NOTES_AT_START).max(bounds.start);
        let mut moved = Move {
            reader: log.reader(partitions, from)?,
            nodes: BTreeMap::new(),
            succession,
            partitions,
            expected: Vec::new(),
            began: Instant::now(),
        };
        let members = moved.read_up_to(bounds.end)?;
        let planned = members.plan().members.iter().map(|member| member.name.clone());
        moved.expected = planned.collect();
        if let Some(begun) = members.succession() {
            // Nodes may run with the next log already.
            return moved.goes_on(begun);
        }
        if members.plan().version == 0 {
            return Err(SuccessionError::Refused(
                "the log has no plan of which nodes have what: no node has run with it lately".into(),
            ));
        }
        open_next(next, &log.identity()?, &members, &moved.succession)?;
        write_note(log, partitions, NO_WRITER, &Note::Succession(moved.succession.clone()))?;
        // Another command may have written one at the same time: the first counts.
        let members = moved.read_up_to(log.bounds(partitions)?.end)?;
        match members.succession().cloned() {
            Some(counts) => moved.goes_on(&counts),
            None => Err(LogError::Unreachable("it does not have what was written to it".into()).into()),
        }
    }

    /// The move, if it is the one that was begun.
    fn goes_on(self, begun: &Succession) -> Result<Move, SuccessionError> {
        match *begun == self.succession {
            true => Ok(self),
            false => Err(SuccessionError::Refused(format!(
                "the cluster is on its way to another log already: \"{}\" with {} partitions. Give the configuration that names that one",
                begun.next, begun.partitions
            ))),
        }
    }

    /// What the notes up to an offset say.
    fn read_up_to(&mut self, end: u64) -> Result<Members, SuccessionError> {
        let mut members = Members::new(NO_WRITER);
        let until = Instant::now() + NOTES_PATIENCE;
        let mut is_read = false;
        while !is_read {
            let Some(stored) = self.reader.next(PATIENCE)? else {
                match Instant::now() < until {
                    true => continue,
                    false => return Err(LogError::Unreachable("it does not give its notes".into()).into()),
                }
            };
            let note = note_of(&stored.bytes).map_err(|why| SuccessionError::Damaged(stored.offset, why))?;
            if let Some((writer, note)) = note {
                members.take(writer, note);
            }
            is_read = stored.offset + 1 >= end;
        }
        Ok(members)
    }

    /// Reads what the nodes say for at most `patience`, and says how far they are.
    ///
    /// # Errors
    /// When the log cannot be reached.
    pub fn look(&mut self, patience: Duration) -> Result<MoveStatus, SuccessionError> {
        let until = Instant::now() + patience;
        while Instant::now() < until {
            let Some(stored) = self.reader.next(PATIENCE)? else { continue };
            if let Ok(Some((_, Note::Beat(beat)))) = note_of(&stored.bytes) {
                self.nodes.insert(beat.name.clone(), (beat, Instant::now()));
            }
        }
        Ok(self.status())
    }

    fn status(&self) -> MoveStatus {
        let is_unheard = |name: &&String| !self.nodes.contains_key(*name);
        let silent: Vec<String> = self.expected.iter().filter(is_unheard).cloned().collect();
        let beats =
            self.nodes.values().map(|(beat, said)| (beat, !beat.is_leaving && said.elapsed() <= SILENCE));
        let mut status = MoveStatus::of(self.partitions, beats);
        status.silent.splice(0..0, silent);
        status.is_done &= self.began.elapsed() > ACQUAINTANCE;
        status
    }
}

impl MoveStatus {
    /// How far nodes are, of which each has said a beat last, and lives or not.
    pub fn of<'b>(partitions: u32, beats: impl Iterator<Item = (&'b Beat, bool)>) -> MoveStatus {
        let mut status = MoveStatus::default();
        let mut stages = vec![Stage::Open; partitions as usize];
        for (beat, is_alive) in beats {
            if !is_alive {
                if !beat.replicas.is_empty() {
                    status.silent.push(beat.name.clone());
                }
                continue;
            }
            status.troubles.extend(beat.trouble.as_ref().map(|why| format!("{}: {why}", beat.name)));
            for replica in &beat.replicas {
                status.replicas += 1;
                match replica.stage {
                    Stage::Prepared => status.ready += 1,
                    Stage::Sealed | Stage::Open => {
                        status.waiting.push((beat.name.clone(), replica.partition));
                    }
                }
                if let Some(stage) = stages.get_mut(replica.partition as usize) {
                    *stage = replica.stage.max(*stage);
                }
            }
        }
        let with = |least: Stage| stages.iter().filter(|stage| **stage >= least).count() as u32;
        (status.sealed, status.prepared) = (with(Stage::Sealed), with(Stage::Prepared));
        status.is_done = status.prepared == partitions && status.ready == status.replicas;
        status
    }
}

fn check(
    partitions: u32,
    succession: &Succession,
    present: &str,
    splits: bool,
) -> Result<(), SuccessionError> {
    let Succession { next, partitions: others } = succession;
    let refused = |why: String| Err(SuccessionError::Refused(why));
    if next == present {
        return refused("the next log is the one that the cluster has now: make another one".into());
    }
    if partitions == 0 || *others == 0 {
        return refused("a log has at least 2 partitions: the last one is for the nodes themselves".into());
    }
    match splits {
        false if *others != partitions => refused(format!(
            "the next log has {others} partitions for RRDs, and the present one {partitions}: they must be as many, or use roundel cluster split"
        )),
        true if *others <= partitions || !others.is_multiple_of(partitions) => refused(format!(
            "the next log has {others} partitions for RRDs, and the present one {partitions}: a split needs a multiple, such as {}",
            partitions * 2
        )),
        _ => Ok(()),
    }
}

/// Writes into the next log what those who begin with it have to know: that there was another one, who is there, and who has what.
fn open_next(
    next: &dyn ReplicatedLog,
    of: &str,
    members: &Members,
    to: &Succession,
) -> Result<(), SuccessionError> {
    for partition in 0..to.partitions {
        let continues =
            Message { partition, epoch: 0, writer: NO_WRITER, content: Content::Continues { of } }.encode();
        if is_begun(next, partition, |bytes| bytes == continues)? {
            continue;
        }
        next.append(partition, &continues)?;
    }
    let last = to.partitions;
    is_begun(next, last, |bytes| matches!(note_of(bytes), Ok(Some((NO_WRITER, _)))))?;
    for known in members
        .nodes()
        .filter(|known| members.plan().members.iter().any(|member| member.name == known.beat.name))
    {
        // What it has read is of the present log.
        let beat = Beat {
            replicas: Vec::new(),
            is_leaving: false,
            number: 0,
            heard: None,
            trouble: None,
            ..known.beat.clone()
        };
        write_note(next, last, NO_WRITER, &Note::Beat(beat))?;
    }
    let plan = Plan { version: 1, ..members.plan().divided(to.partitions) };
    Ok(write_note(next, last, NO_WRITER, &Note::Plan(plan))?)
}

/// Whether a partition of the next log has something, which may only be what an earlier attempt wrote.
fn is_begun(
    next: &dyn ReplicatedLog,
    partition: u32,
    is_own: impl Fn(&[u8]) -> bool,
) -> Result<bool, SuccessionError> {
    let bounds = next.bounds(partition)?;
    let used = || {
        SuccessionError::Refused(format!(
            "partition {partition} of the next log has messages already, of something else: make an empty one for the cluster to go on in"
        ))
    };
    if bounds.start > 0 || bounds.end > BEGUN_MAX {
        return Err(used());
    }
    let mut reader = next.reader(partition, 0)?;
    let mut read = 0;
    while read < bounds.end {
        let silent = || LogError::Unreachable("the next log does not give the messages that it has".into());
        let stored = reader.next(SILENCE)?.ok_or_else(silent)?;
        if !is_own(&stored.bytes) {
            return Err(used());
        }
        read = stored.offset + 1;
    }
    Ok(bounds.end > 0)
}
