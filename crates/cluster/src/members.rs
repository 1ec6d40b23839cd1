//! Who is there: what the nodes tell each other in the last partition of the log.
//!
//! Each node writes a *beat* twice a second. Whether another one lives, a node judges by its own beats: one of which nothing came while several of its own
//! did is gone. So no node is taken for dead while the log is silent for all. All of this is for convenience: who leads is decided
//! by the claims in each partition.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::message::{NO_WRITER, WriterId};
use crate::plan::{Member, Plan};

/// After so many own beats without one of another node, that is taken for dead: three seconds.
pub const DEAD_BEATS: u32 = 6;
/// After so many, it has left: ten minutes. Its partitions then go to others.
pub const LEFT_BEATS: u32 = 1200;

/// What a node says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// Its name, of which there is one in the cluster.
    pub name: String,
    /// Its zone.
    pub zone: String,
    /// Where other nodes reach it.
    pub address: String,
    /// What it has.
    pub replicas: Vec<ReplicaBeat>,
    /// It is to have nothing any more.
    pub is_draining: bool,
    /// It stops now.
    pub is_leaving: bool,
    /// Its version of Roundel; empty of those that do not say it.
    #[serde(default)]
    pub version: String,
    /// The newest version of the protocol between nodes that it speaks.
    #[serde(default = "first_protocol")]
    pub protocol: u8,
    /// Counts the beats of its process, from 1 on; 0 of those that do not count.
    #[serde(default)]
    pub number: u64,
    /// All notes before this offset of the last partition it had read before it made this beat; nothing of those that do not say it.
    #[serde(default)]
    pub heard: Option<u64>,
    /// What keeps it from getting ready for the next log, if anything does.
    #[serde(default)]
    pub trouble: Option<String>,
}

/// What nodes speak that do not say it.
fn first_protocol() -> u8 {
    crate::wire::VERSION_MIN.min(2)
}

/// What a node says of a replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaBeat {
    /// The partition.
    pub partition: u32,
    /// The epoch, as far as it has read.
    pub epoch: u32,
    /// It leads in it.
    pub leads: bool,
    /// It has caught up and could lead.
    pub is_ready: bool,
    /// The offset of the next message.
    pub next: u64,
    /// How far it is on its way to another log.
    #[serde(default)]
    pub stage: Stage,
}

/// How far a replica is on its way to another log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Stage {
    /// The partition is not sealed, as far as it has read.
    #[default]
    Open,
    /// It has everything of the log that it is a copy of.
    Sealed,
    /// And what the next log begins with: if that has more partitions, the replica is divided.
    Prepared,
}

/// The end of a log: all partitions are sealed, and go on in another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Succession {
    /// The identity of the log that follows.
    pub next: String,
    /// Partitions with RRDs that it has: as many as this one, or a multiple.
    pub partitions: u32,
}

/// What stands in the last partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Note {
    /// A node lives.
    Beat(Beat),
    /// Who should have what.
    Plan(Plan),
    /// The cluster goes on in another log.
    Succession(Succession),
}

/// A node as the others know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its last beat.
    pub beat: Beat,
    /// The process that wrote it.
    pub writer: WriterId,
    /// Own beats since.
    pub silent: u32,
}

impl Known {
    /// Whether it is taken for running.
    pub fn is_alive(&self) -> bool {
        self.silent < DEAD_BEATS && !self.beat.is_leaving
    }

    /// What it says of a partition.
    pub fn replica(&self, partition: u32) -> Option<&ReplicaBeat> {
        self.beat.replicas.iter().find(|replica| replica.partition == partition)
    }

    fn leads(&self, partition: u32) -> Option<u32> {
        self.replica(partition).filter(|replica| replica.leads).map(|replica| replica.epoch)
    }
}

/// What a node knows of all others, and of itself.
#[derive(Clone, Debug)]
pub struct Members {
    own: WriterId,
    nodes: BTreeMap<String, Known>,
    plan: Plan,
    succession: Option<Succession>,
}

impl Members {
    /// As a process that has read nothing yet.
    pub fn new(own: WriterId) -> Members {
        Members { own, nodes: BTreeMap::new(), plan: Plan::default(), succession: None }
    }

    /// Takes the next note. True: it was an own beat, so that some time has passed.
    pub fn take(&mut self, writer: WriterId, note: Note) -> bool {
        match note {
            Note::Plan(plan) => {
                if plan.version > self.plan.version {
                    self.plan = plan;
                }
                false
            }
            Note::Succession(succession) => {
                // Partitions may be sealed for the first already.
                self.succession.get_or_insert(succession);
                false
            }
            Note::Beat(beat) => {
                let is_own = writer == self.own;
                if is_own {
                    self.nodes.values_mut().for_each(|known| known.silent = known.silent.saturating_add(1));
                }
                self.nodes.insert(beat.name.clone(), Known { beat, writer, silent: 0 });
                is_own
            }
        }
    }

    /// All nodes by name, also those that have left.
    pub fn nodes(&self) -> impl Iterator<Item = &Known> {
        self.nodes.values()
    }

    /// The node of a name.
    pub fn node(&self, name: &str) -> Option<&Known> {
        self.nodes.get(name)
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The log that follows, if there is to be another one.
    pub fn succession(&self) -> Option<&Succession> {
        self.succession.as_ref()
    }

    /// Whether a partition takes no changes any more in this log: a node that lives has read that.
    pub fn is_sealed(&self, partition: u32) -> bool {
        let is_sealed = |known: &Known| {
            known.is_alive() && known.replica(partition).is_some_and(|replica| replica.stage > Stage::Open)
        };
        // Asked with each FLUSH: hardly ever is there another log.
        self.succession.is_some() && self.nodes.values().any(is_sealed)
    }

    /// Those that may have replicas: all that were there lately and are not to be emptied.
    pub fn eligible(&self) -> BTreeSet<Member> {
        let may = |known: &&Known| known.silent < LEFT_BEATS && !known.beat.is_draining;
        let member = |known: &Known| Member { name: known.beat.name.clone(), zone: known.beat.zone.clone() };
        self.nodes.values().filter(may).map(member).collect()
    }

    /// The node that makes plans: the first by name that lives.
    pub fn planner(&self) -> Option<&str> {
        self.nodes.values().find(|known| known.is_alive()).map(|known| &*known.beat.name)
    }

    /// The node that leads a partition, as far as is known.
    pub fn leader(&self, partition: u32) -> Option<&Known> {
        let alive = self.nodes.values().filter(|known| known.is_alive());
        alive
            .filter_map(|known| Some((known.leads(partition)?, known)))
            .max_by_key(|(epoch, _)| *epoch)
            .map(|(_, known)| known)
    }

    /// The same on a node whose replica has read that a writer leads in an epoch, which may be newer than any beat.
    pub fn leader_since(&self, partition: u32, read: Option<(u32, WriterId)>) -> Option<&Known> {
        let heard = self.leader(partition);
        // What a log begins with names nodes of the former one, which may run with that still.
        let Some((epoch, writer)) = read.filter(|(_, writer)| *writer != NO_WRITER) else { return heard };
        match heard.and_then(|known| known.leads(partition)) >= Some(epoch) {
            true => heard,
            false => self.nodes.values().find(|known| known.writer == writer && known.is_alive()).or(heard),
        }
    }

    /// The node that should lead a partition: the first of the plan that lives and is ready; if there is none, any that is ready.
    pub fn candidate(&self, partition: u32) -> Option<&str> {
        let is_ready = |known: &&Known| {
            known.is_alive()
                && known.replica(partition).is_some_and(|replica| replica.is_ready || replica.leads)
        };
        let planned = self.plan.nodes(partition).filter_map(|name| self.nodes.get(name));
        let ready = planned.chain(self.nodes.values()).find(is_ready);
        ready.map(|known| &*known.beat.name)
    }

    /// How many nodes that live have a replica of a partition ready.
    pub fn ready_count(&self, partition: u32) -> usize {
        let is_ready = |known: &&Known| {
            known.is_alive() && known.replica(partition).is_some_and(|replica| replica.is_ready)
        };
        self.nodes.values().filter(is_ready).count()
    }

    /// The greatest offset of a next message that any node has told of a partition: its log reaches at least so far.
    pub fn furthest(&self, partition: u32) -> u64 {
        let next = |known: &Known| known.replica(partition).map(|replica| replica.next);
        self.nodes.values().filter_map(next).max().unwrap_or(0)
    }

    /// Newest epoch of a partition in the heartbeats of all nodes; 0 if no heartbeat names the partition.
    pub fn newest_epoch(&self, partition: u32) -> u32 {
        let epoch = |known: &Known| known.replica(partition).map(|replica| replica.epoch);
        self.nodes.values().filter_map(epoch).max().unwrap_or(0)
    }

    /// Whether a node that is not in the plan of a partition may give its replica up: all that are in it are ready.
    pub fn may_go(&self, partition: u32, name: &str) -> bool {
        let mut planned = self.plan.nodes(partition).peekable();
        planned.peek().is_some()
            && planned.all(|other| {
                other != name
                    && self.nodes.get(other).is_some_and(|known| {
                        known.is_alive() && known.replica(partition).is_some_and(|replica| replica.is_ready)
                    })
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beat(name: &str, replicas: &[(u32, u32, bool)]) -> Note {
        let replica = |&(partition, epoch, leads): &(u32, u32, bool)| ReplicaBeat {
            partition,
            epoch,
            leads,
            is_ready: true,
            ..ReplicaBeat::default()
        };
        let replicas = replicas.iter().map(replica).collect();
        Note::Beat(Beat { name: name.into(), zone: name.into(), replicas, ..Beat::default() })
    }

    fn plan(version: u64, names: &[&str]) -> Note {
        let members =
            names.iter().map(|name| Member { name: (*name).into(), zone: (*name).into() }).collect();
        let replicas = vec![(0..names.len() as u16).collect()];
        Note::Plan(Plan { version, members, replicas })
    }

    #[test]
    fn a_node_is_dead_once_others_beat_on_without_it() {
        let mut members = Members::new(1);
        members.take(2, beat("b", &[(0, 4, true)]));
        assert!(members.take(1, beat("a", &[(0, 4, false)])));
        members.take(9, plan(1, &["b", "a"]));
        assert_eq!(members.candidate(0), Some("b"));
        for _ in 0..DEAD_BEATS - 1 {
            assert!(members.node("b").unwrap().is_alive());
            members.take(1, beat("a", &[(0, 4, false)]));
        }
        assert!(!members.node("b").unwrap().is_alive());
        assert_eq!((members.candidate(0), members.leader(0)), (Some("a"), None));
        assert_eq!(members.eligible().len(), 2);
        // Another one of that name.
        members.take(3, beat("b", &[]));
        assert_eq!((members.candidate(0), members.planner()), (Some("a"), Some("a")));
    }

    #[test]
    fn what_is_ready_is_counted_on_nodes_that_live() {
        let mut members = Members::new(1);
        members.take(2, beat("b", &[(0, 4, true)]));
        members.take(1, beat("a", &[(0, 4, false)]));
        assert_eq!((members.ready_count(0), members.ready_count(1)), (2, 0));
        for _ in 0..DEAD_BEATS {
            members.take(1, beat("a", &[(0, 4, false)]));
        }
        assert_eq!(members.ready_count(0), 1);
        let replica = ReplicaBeat { partition: 0, next: 7, ..ReplicaBeat::default() };
        members.take(3, Note::Beat(Beat { name: "c".into(), replicas: vec![replica], ..Beat::default() }));
        assert_eq!((members.ready_count(0), members.furthest(0), members.furthest(1)), (1, 7, 0));
        assert_eq!((members.newest_epoch(0), members.newest_epoch(1)), (4, 0));
    }

    #[test]
    fn of_two_that_say_they_lead_the_later_epoch_does() {
        let mut members = Members::new(1);
        members.take(2, beat("b", &[(0, 4, true)]));
        members.take(3, beat("c", &[(0, 5, true)]));
        assert_eq!(members.leader(0).map(|known| known.writer), Some(3));
        assert_eq!(members.leader(1), None);
        // A replica of this node may have read so before any beat says it.
        let since = |read| members.leader_since(0, read).map(|known| known.writer);
        assert_eq!([since(None), since(Some((5, 3))), since(Some((6, 2)))], [Some(3), Some(3), Some(2)]);
        assert_eq!([since(Some((4, 2))), since(Some((6, 9)))], [Some(3), Some(3)]);
        // No node leads that was only named at the beginning of a log.
        members.take(NO_WRITER, beat("d", &[]));
        assert_eq!(members.leader_since(1, Some((0, NO_WRITER))), None);
    }

    #[test]
    fn the_first_plan_of_a_number_counts_and_a_replica_stays_until_others_are_ready() {
        let mut members = Members::new(1);
        members.take(1, beat("a", &[(0, 4, true)]));
        members.take(2, beat("b", &[(0, 4, false)]));
        members.take(1, plan(2, &["b", "c"]));
        members.take(2, plan(2, &["a", "b"]));
        members.take(2, plan(1, &["a"]));
        assert_eq!(members.plan().nodes(0).collect::<Vec<_>>(), ["b", "c"]);
        assert!(!members.may_go(0, "a"));
        members.take(3, beat("c", &[(0, 4, false)]));
        assert!(members.may_go(0, "a") && !members.may_go(0, "b"));
        // One of them dies, comes again, and leaves: then this replica may be the last one.
        for _ in 0..DEAD_BEATS {
            assert!(members.may_go(0, "a"));
            members.take(2, beat("b", &[(0, 4, false)]));
            members.take(1, beat("a", &[(0, 4, true)]));
        }
        assert!(!members.may_go(0, "a"));
        members.take(3, beat("c", &[(0, 4, false)]));
        assert!(members.may_go(0, "a"));
        let Note::Beat(last) = beat("c", &[(0, 4, false)]) else { panic!() };
        members.take(3, Note::Beat(Beat { is_leaving: true, ..last }));
        assert!(!members.may_go(0, "a"));
    }

    #[test]
    fn the_first_log_that_is_to_follow_counts() {
        let mut members = Members::new(1);
        let to = |next: &str| Succession { next: next.into(), partitions: 1 };
        assert_eq!(members.succession(), None);
        members.take(2, Note::Succession(to("b")));
        members.take(2, Note::Succession(to("c")));
        assert_eq!(members.succession(), Some(&to("b")));
        // Of a node of an earlier version.
        let old = r#"{"partition":1,"epoch":2,"leads":true,"is_ready":true,"next":3}"#;
        assert_eq!(serde_json::from_str::<ReplicaBeat>(old).unwrap().stage, Stage::Open);
    }

    #[test]
    fn nodes_of_different_versions_read_each_others_notes() {
        let old = r#"{"Beat":{"name":"a","zone":"z","address":"x:1","replicas":[],"is_draining":false,"is_leaving":false}}"#;
        let Ok(Note::Beat(beat)) = serde_json::from_str(old) else { panic!() };
        assert_eq!((beat.protocol, beat.number, beat.heard, &*beat.version), (2, 0, None, ""));
        // Of a later version, with more members.
        let new = old.replace("\"zone\"", "\"later\":[1],\"zone\"");
        assert_eq!(serde_json::from_str::<Note>(&new).unwrap(), Note::Beat(beat));
        // A kind of note that this version lacks is left out by who reads it.
        assert!(serde_json::from_str::<Note>(r#"{"Later":{}}"#).is_err());
    }

    #[test]
    fn a_note_is_its_json() {
        let succession = Note::Succession(Succession { next: "other".into(), partitions: 16 });
        for note in [beat("a", &[(3, 4, true)]), plan(7, &["a", "b"]), succession] {
            let text = serde_json::to_vec(&note).unwrap();
            assert_eq!(serde_json::from_slice::<Note>(&text).unwrap(), note);
        }
    }
}
