//! What a node does about what it reads of the others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Inner;
use crate::lock::lock;
use crate::log::{LogError, LogReader};
use crate::members::{Beat, Members, Note};
use crate::message::WriterId;
use crate::partition::Place;
use crate::succession::{NOTES_AT_START, note_of};

/// Own beats between two looks at whether the plan is good: those that start at the same time are planned for together.
const PLAN_BEATS: u32 = 10;
/// Own beats between two times that a plan is written again, so that a node that starts finds it among the last notes.
const REPEAT_BEATS: u32 = 120;
/// Own beats that a node has to live before it takes a partition from another one that leads it.
const SETTLED_BEATS: u32 = 10;
/// How long a read waits.
const PATIENCE: Duration = Duration::from_millis(200);
/// The pause after the log did not answer.
const PAUSE: Duration = Duration::from_millis(500);

/// Reads the notes until the node stops.
pub(super) fn run(inner: &Arc<Inner>) {
    let mut reader: Option<Box<dyn LogReader>> = None;
    let mut govern = Govern { inner, beats: 0 };
    while !inner.is_stopping() {
        let read = match &mut reader {
            None => open(inner).map(|opened| {
                reader = Some(opened);
                None
            }),
            Some(reader) => reader.next(PATIENCE),
        };
        match read {
            Ok(Some(stored)) => govern.take(stored.offset, &stored.bytes),
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(%error, "cannot read what the other nodes say");
                if matches!(error, LogError::Gone { .. }) {
                    reader = None;
                }
                std::thread::sleep(PAUSE);
            }
        }
    }
}

fn open(inner: &Inner) -> Result<Box<dyn LogReader>, LogError> {
    let bounds = inner.log.bounds(inner.partitions)?;
    let from = bounds.end.saturating_sub(NOTES_AT_START).max(bounds.start);
    inner.log.reader(inner.partitions, from)
}

struct Govern<'i> {
    inner: &'i Arc<Inner>,
    /// Own beats since the start.
    beats: u32,
}

impl Govern<'_> {
    fn take(&mut self, offset: u64, bytes: &[u8]) {
        let inner = self.inner;
        let note = note_of(bytes).and_then(|note| note.ok_or_else(|| "it is no note".into()));
        let (writer, note) = match note {
            Ok(note) => note,
            Err(error) => {
                return tracing::error!(offset, %error, "cannot read a note in the last partition; it is left out");
            }
        };
        if let Note::Beat(beat) = &note
            && beat.name == inner.options.name
            && writer != inner.writer
            && self.beats > SETTLED_BEATS
        {
            tracing::error!(name = %beat.name, address = %beat.address, "another node has the name of this one: give each its own");
        }
        if let Note::Beat(beat) = &note {
            self.measure(offset, writer, beat);
        }
        let is_own = lock(&inner.members).take(writer, note);
        inner.heard.store(offset + 1, Ordering::Release);
        if is_own {
            self.beats = self.beats.saturating_add(1);
            self.govern();
        }
    }

    /// Notes what a beat says of how late this node's replicas are.
    fn measure(&self, offset: u64, writer: WriterId, beat: &Beat) {
        let inner = self.inner;
        let led = beat.replicas.iter().filter(|replica| replica.leads).map(|replica| replica.partition);
        let places: BTreeMap<u32, Place> = {
            let replicas = lock(&inner.replicas);
            let place = |partition| Some((partition, replicas.get(&partition)?.place()));
            led.filter_map(place).collect()
        };
        let place = |partition| places.get(&partition).copied();
        match writer == inner.writer {
            true => lock(&inner.ages).returned(offset, beat, place),
            false => lock(&inner.ages).heard(beat, place),
        }
    }

    /// With each own beat: all that may have to be done.
    fn govern(&self) {
        let members = lock(&self.inner.members).clone();
        self.plan(&members);
        self.have_what_is_planned(&members);
        self.claim(&members);
        if let Some(succession) = members.succession() {
            self.inner.succeed(succession);
        }
    }

    /// Makes a new plan, if that is this node's business, and repeats what a node that starts has to know.
    fn plan(&self, members: &Members) {
        let inner = self.inner;
        if members.planner() != Some(&*inner.options.name) {
            return;
        }
        if let Some(succession) = members.succession().filter(|_| self.beats.is_multiple_of(REPEAT_BEATS))
            && let Err(error) = inner.write_note(&Note::Succession(succession.clone()))
        {
            tracing::warn!(%error, "which log follows cannot be written again");
        }
        // In a log that ends nothing moves any more: what would be copied could come too late to be divided.
        let plans = self.beats.is_multiple_of(PLAN_BEATS) && members.succession().is_none();
        let next = match plans {
            true => members.plan().next(&members.eligible(), inner.partitions, inner.options.replication),
            false => None,
        };
        if let Some(plan) = &next {
            tracing::info!(
                version = plan.version,
                nodes = plan.members.len(),
                "a new plan of which nodes have which partitions"
            );
        }
        let repeated = || {
            Some(members.plan().clone())
                .filter(|plan| plan.version > 0 && self.beats.is_multiple_of(REPEAT_BEATS))
        };
        if let Some(plan) = next.or_else(repeated)
            && let Err(error) = inner.write_note(&Note::Plan(plan))
        {
            tracing::warn!(%error, "the plan of which nodes have which partitions cannot be written");
        }
    }

    /// Opens replicas that the plan wants here, and gives up others once they may go.
    fn have_what_is_planned(&self, members: &Members) {
        let inner = self.inner;
        let name = &*inner.options.name;
        if members.plan().version == 0 || members.succession().is_some() {
            return;
        }
        for partition in 0..inner.partitions {
            let is_planned = members.plan().nodes(partition).any(|node| node == name);
            let replica = lock(&inner.replicas).get(&partition).cloned();
            match replica {
                None if is_planned => {
                    if let Err(error) = inner.open_replica(partition) {
                        tracing::error!(partition, %error, "cannot open a replica");
                    }
                }
                Some(replica) if !is_planned && !replica.leads() && members.may_go(partition, name) => {
                    inner.give_up(partition);
                }
                _ => {}
            }
        }
    }

    /// Has replicas claim what they should lead and no node does, or another one who should not.
    fn claim(&self, members: &Members) {
        let name = &*self.inner.options.name;
        for (partition, replica) in lock(&self.inner.replicas).iter() {
            let leader = members.leader(*partition).map(|known| &*known.beat.name);
            let may_take_over = self.beats > SETTLED_BEATS;
            let wants = members.candidate(*partition) == Some(name)
                && leader.is_none_or(|leader| leader == name || may_take_over);
            replica.want_lead(wants.then(|| members.newest_epoch(*partition)));
        }
    }
}
