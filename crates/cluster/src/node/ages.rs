//! How old what the replicas of this node answer may be, without comparing the clocks of two machines.
//!
//! Each node notes when it began to write each of its beats. A beat says how far its node had read the others' ([`crate::members::Beat::heard`]). So when a
//! leader's beat says that it had read one of this node's, all that it says was so after that one was begun: it led then, and its log reached a place. A
//! replica of this node that has come to that place has all that was acknowledged before. If beats are late, or come all at once
//! after this node was cut off, they show no more than that.
//!
//! Not covered: a leader that another one has replaced and that has not read so yet. Until a beat of the other one has come, a follower may take
//! what it says for newer than it is.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use crate::members::{Beat, LEFT_BEATS};
use crate::partition::Place;

/// Own beats that are remembered: of ten minutes. A node that has read no later one is no measure.
const BEATS_MAX: usize = LEFT_BEATS as usize;
/// Places that a replica has not reached yet; while it is further away than that, no later ones are noted.
const AHEAD_MAX: usize = 64;

/// What the beats of leaders say of a partition.
#[derive(Debug, Default)]
struct Marks {
    /// Of the newest leader that was heard of.
    epoch: u32,
    /// Places of the leader's log, and moments before which it was not there yet.
    ahead: VecDeque<(u64, Instant)>,
    /// The latest such moment whose place the replica has reached.
    reached: Option<Instant>,
}

impl Marks {
    fn reach(&mut self, place: Place) {
        while let Some((_, moment)) = self.ahead.pop_front_if(|(next, _)| *next <= place.next) {
            self.reached = Some(moment.max(self.reached.unwrap_or(moment)));
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Ages {
    /// Own beats by number, and when they were begun.
    begun: VecDeque<(u64, Instant)>,
    /// Own beats as they were read: where they stand, and when they were begun.
    read: VecDeque<(u64, Instant)>,
    marks: BTreeMap<u32, Marks>,
}

fn push(queue: &mut VecDeque<(u64, Instant)>, number: u64, moment: Instant) {
    if queue.len() >= BEATS_MAX {
        queue.pop_front();
    }
    queue.push_back((number, moment));
}

impl Ages {
    /// An own beat is about to be made; returns its number.
    pub(super) fn begin(&mut self, now: Instant) -> u64 {
        let number = self.begun.back().map_or(1, |(number, _)| number + 1);
        push(&mut self.begun, number, now);
        number
    }

    /// An own beat was read at an offset. What this node leads it has led after the beat was begun.
    pub(super) fn returned(&mut self, offset: u64, beat: &Beat, place: impl Fn(u32) -> Option<Place>) {
        let moment = self.begun.iter().rfind(|(begun, _)| *begun == beat.number).map(|(_, moment)| *moment);
        if let Some(moment) = moment {
            push(&mut self.read, offset, moment);
            self.mark(beat, Some(moment), place);
        }
    }

    /// When the last own beat was begun that has come back: then this node reached the log.
    pub(super) fn last_returned(&self) -> Option<Instant> {
        self.read.iter().map(|(_, moment)| *moment).max()
    }

    /// A beat of another node was read. `place`: of this node's replica of a partition.
    pub(super) fn heard(&mut self, beat: &Beat, place: impl Fn(u32) -> Option<Place>) {
        let before = |heard: u64| {
            let read = self.read.iter().filter(|(offset, _)| *offset < heard);
            read.map(|(_, moment)| *moment).max()
        };
        let moment = beat.heard.and_then(before);
        self.mark(beat, moment, place);
    }

    /// Takes what a beat says of partitions that its node leads, which was so after a moment.
    fn mark(&mut self, beat: &Beat, moment: Option<Instant>, place: impl Fn(u32) -> Option<Place>) {
        for replica in beat.replicas.iter().filter(|replica| replica.leads) {
            let Some(place) = place(replica.partition) else { continue };
            let marks = self.marks.entry(replica.partition).or_default();
            let newest = place.epoch.max(replica.epoch);
            if newest > marks.epoch {
                // What an earlier leader said of places that were not reached may not be true any more.
                marks.ahead.clear();
                marks.epoch = newest;
            }
            if let Some(moment) = moment
                && replica.epoch == marks.epoch
                && marks.ahead.len() < AHEAD_MAX
            {
                marks.ahead.push_back((replica.next, moment));
            }
            marks.reach(place);
        }
    }

    /// How old an answer of this node's replica may be that is at a place and does not lead.
    pub(super) fn of_follower(&mut self, partition: u32, place: Place, now: Instant) -> Option<Duration> {
        let marks = self.marks.get_mut(&partition)?;
        marks.reach(place);
        marks.reached.map(|moment| now.saturating_duration_since(moment))
    }

    /// Whether another node is known to lead the partition in a later epoch.
    pub(super) fn is_superseded(&self, partition: u32, epoch: u32) -> bool {
        self.marks.get(&partition).is_some_and(|marks| marks.epoch > epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::ReplicaBeat;

    const SECOND: Duration = Duration::from_secs(1);

    fn beat(heard: Option<u64>, epoch: u32, next: u64) -> Beat {
        let replica = ReplicaBeat { partition: 7, epoch, leads: true, next, ..ReplicaBeat::default() };
        Beat { heard, replicas: vec![replica], ..Beat::default() }
    }

    fn at(epoch: u32, next: u64) -> Place {
        Place { epoch, next }
    }

    /// Begins an own beat each second, and reads it at offsets 10, 20 and so on.
    fn beating(start: Instant, count: u32) -> Ages {
        let mut ages = Ages::default();
        for second in 0..count {
            let number = ages.begin(start + SECOND * second);
            let own = Beat { number, ..beat(None, 0, 0) };
            ages.returned(u64::from(second + 1) * 10, &own, |_| None);
        }
        ages
    }

    #[test]
    fn an_answer_is_as_old_as_the_last_own_beat_that_the_leader_had_read() {
        let start = Instant::now();
        let mut ages = beating(start, 5);
        let now = start + SECOND * 10;
        assert_eq!(ages.of_follower(7, at(1, 100), now), None);
        // It had read those at 10 and 20, not the one at 30.
        ages.heard(&beat(Some(30), 1, 100), |_| Some(at(1, 100)));
        assert_eq!(ages.of_follower(7, at(1, 100), now), Some(SECOND * 9));
        assert_eq!(ages.of_follower(7, at(1, 100), now + SECOND), Some(SECOND * 10));
        // A place that is not reached yet does not count until it is.
        ages.heard(&beat(Some(31), 1, 105), |_| Some(at(1, 100)));
        assert_eq!(ages.of_follower(7, at(1, 104), now), Some(SECOND * 9));
        assert_eq!(ages.of_follower(7, at(1, 105), now), Some(SECOND * 8));
        // What comes late and is older, or of a node that does not say what it has read, changes nothing.
        ages.heard(&beat(Some(11), 1, 100), |_| Some(at(1, 105)));
        ages.heard(&beat(None, 1, 100), |_| Some(at(1, 105)));
        assert_eq!(ages.of_follower(7, at(1, 105), now), Some(SECOND * 8));
        assert_eq!(
            (ages.of_follower(8, at(1, 105), now), ages.last_returned()),
            (None, Some(start + SECOND * 4))
        );
    }

    #[test]
    fn what_this_node_has_led_is_as_old_as_its_last_beat_that_came_back() {
        let (start, mut ages) = (Instant::now(), Ages::default());
        for second in [0, 1] {
            let number = ages.begin(start + SECOND * second);
            ages.returned(7, &Beat { number, ..beat(None, 4, 90) }, |_| Some(at(4, 90)));
        }
        // It did not come back.
        ages.begin(start + SECOND * 2);
        assert_eq!(ages.of_follower(7, at(4, 90), start + SECOND * 5), Some(SECOND * 4));
        assert!(!ages.is_superseded(7, 4));
    }

    #[test]
    fn a_leader_that_was_replaced_is_believed_no_more() {
        let start = Instant::now();
        let mut ages = beating(start, 5);
        ages.heard(&beat(Some(11), 1, 100), |_| Some(at(1, 99)));
        ages.heard(&beat(Some(21), 2, 110), |_| Some(at(1, 99)));
        ages.heard(&beat(Some(41), 1, 100), |_| Some(at(1, 99)));
        assert!(ages.is_superseded(7, 1) && !ages.is_superseded(7, 2) && !ages.is_superseded(8, 0));
        let now = start + SECOND * 10;
        assert_eq!(ages.of_follower(7, at(2, 110), now), Some(SECOND * 9));
        // Nor when this node's replica has read so first.
        ages.heard(&beat(Some(41), 2, 120), |_| Some(at(3, 111)));
        assert_eq!(ages.of_follower(7, at(3, 200), now), Some(SECOND * 9));
        ages.heard(&beat(Some(41), 3, 150), |_| Some(at(3, 200)));
        assert_eq!(ages.of_follower(7, at(3, 200), now), Some(SECOND * 7));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let start = Instant::now();
        let mut ages = beating(start, 3000);
        for next in 0..1000 {
            ages.heard(&beat(Some(29_999), 1, 100 + next), |_| Some(at(1, 0)));
        }
        assert!(ages.begun.len() <= BEATS_MAX && ages.read.len() <= BEATS_MAX);
        assert_eq!(ages.marks[&7].ahead.len(), AHEAD_MAX);
        // Of what is further away, nothing is known.
        assert_eq!(ages.of_follower(7, at(1, 99), start), None);
    }
}
