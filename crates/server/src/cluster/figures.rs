//! What a node of a cluster does, for `/metrics`.

use std::fmt;
use std::sync::Arc;

use cluster::members::{Members, Succession};
use cluster::node::Node;
use cluster::partition::{ReplicaCounts, ReplicaStatus};
use cluster::routes::Routes;
use cluster::succession::MoveStatus;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::metrics::encode_gauge;

/// `roundel_cluster_*`
#[derive(Clone)]
pub struct ClusterCollector(pub Arc<Node>);

impl fmt::Debug for ClusterCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterCollector({})", self.0.name())
    }
}

/// A replica of this node, when it is asked about.
struct OwnReplica {
    partition: String,
    status: ReplicaStatus,
    counts: ReplicaCounts,
    /// Messages of the partition that it has not applied.
    lacking: u64,
}

/// A figure of each replica: its name, its help, what it is, and its value.
type ReplicaFigure = (&'static str, &'static str, MetricType, fn(&OwnReplica) -> u64);

const REPLICA_FIGURES: [ReplicaFigure; 11] = [
    ("cluster_leads", "1 while this node leads the partition", MetricType::Gauge, |one| {
        u64::from(one.status.leads)
    }),
    ("cluster_epoch", "The partition's epoch, as far as this node has read", MetricType::Gauge, |one| {
        u64::from(one.status.epoch)
    }),
    (
        "cluster_caught_up",
        "1 once this node has read what was there when it opened its replica",
        MetricType::Gauge,
        |one| u64::from(one.status.is_caught_up),
    ),
    (
        "cluster_messages_lacking",
        "Messages of the partition that this node has not applied, as far as any node has told",
        MetricType::Gauge,
        |one| one.lacking,
    ),
    (
        "cluster_fault",
        "1 while this node's replica stands still; its log says why",
        MetricType::Gauge,
        |one| u64::from(one.status.fault.is_some()),
    ),
    ("cluster_read_messages", "Messages read from the replicated log", MetricType::Counter, |one| {
        one.counts.messages_read
    }),
    ("cluster_read_bytes", "Bytes of them", MetricType::Counter, |one| one.counts.bytes_read),
    ("cluster_appended_messages", "Messages that the replicated log took", MetricType::Counter, |one| {
        one.counts.messages_appended
    }),
    ("cluster_appended_bytes", "Bytes of them", MetricType::Counter, |one| one.counts.bytes_appended),
    ("cluster_copied", "Copies of the partition taken from another node", MetricType::Counter, |one| {
        one.counts.copied
    }),
    (
        "cluster_put_aside",
        "Copies of the partition put aside, because they differed",
        MetricType::Counter,
        |one| one.counts.put_aside,
    ),
];

/// How many partitions of a cluster lack something.
struct Lacking {
    /// No node leads them.
    leaderless: usize,
    /// They have fewer replicas ready than they should have.
    short: usize,
}

impl Lacking {
    fn of(node: &Node, members: &Members) -> Lacking {
        let partitions = || 0..node.partitions();
        Lacking {
            leaderless: partitions().filter(|&partition| members.leader(partition).is_none()).count(),
            short: partitions()
                .filter(|&partition| members.ready_count(partition) < node.replication())
                .count(),
        }
    }
}

/// How far a cluster is on its way to another log, as this node knows it.
pub(super) fn move_text(succession: &Succession, members: &Members, partitions: u32) -> String {
    let beats = members.nodes().map(|known| (&known.beat, known.is_alive()));
    let MoveStatus { sealed, replicas, ready, silent, is_done, .. } = MoveStatus::of(partitions, beats);
    let all = silent.join(", ");
    let advice = match (is_done, silent.is_empty()) {
        (true, true) => "Give each node the configuration that names that log, and restart it".to_owned(),
        (true, false) => format!(
            "But start {all} with the present log once more, if not with that one already: what is not sealed, or divided, cannot go on. Then give each node \
             the configuration that names that log, and restart it"
        ),
        (false, false) if ready == replicas => format!(
            "{all} may run with that log already: then give this node, too, the configuration that names it, and restart it"
        ),
        (false, _) => "Once all are, this says so, and the nodes are to be started with that log".to_owned(),
    };
    format!(
        "The cluster goes on in the log \"{}\" with {} partitions: {sealed} of {partitions} are sealed, and {ready} of {replicas} replicas are ready for \
         it. {advice}. Until then changes wait, and are refused after some seconds",
        succession.next, succession.partitions
    )
}

/// What keeps a node from getting ready for the next log.
fn trouble_text(node: &str, why: &str) -> String {
    format!("Node {node}: {why}; it is tried again")
}

/// What is wrong with the cluster, as far as this node knows: for the page.
pub fn problems(node: &Node) -> Vec<String> {
    let members = node.members();
    let Lacking { leaderless, short } = Lacking::of(node, &members);
    let (all, replication) = (node.partitions(), node.replication());
    let mut problems = Vec::new();
    if let Some(succession) = members.succession() {
        problems.push(move_text(succession, &members, all));
    } else if leaderless > 0 {
        problems.push(format!(
            "No node leads {leaderless} of the cluster's {all} partitions: changes of their RRDs wait, and are refused after some seconds"
        ));
    }
    let alive = members.nodes().filter(|known| known.is_alive());
    let trouble =
        |known: &cluster::members::Known| Some(trouble_text(&known.beat.name, known.beat.trouble.as_ref()?));
    problems.extend(alive.filter_map(trouble));
    if short > 0 {
        problems.push(format!(
            "{short} of the cluster's {all} partitions have fewer replicas ready than the {replication} they should have"
        ));
    }
    let faults = node.replicas().into_iter().filter_map(|(partition, replica)| {
        let fault = replica.status().fault?;
        Some(format!("This node's replica of partition {partition} stands still: {fault}"))
    });
    problems.extend(faults);
    problems
}

impl Collector for ClusterCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let node = &self.0;
        let members = node.members();
        let own = |(partition, replica): (u32, Arc<cluster::partition::Replica>)| {
            let status = replica.status();
            let end = members.furthest(partition).max(status.seen_end);
            let lacking = end.saturating_sub(status.next);
            OwnReplica { partition: partition.to_string(), status, counts: replica.counts(), lacking }
        };
        let replicas: Vec<OwnReplica> = node.replicas().into_iter().map(own).collect();
        let help = "How old what this replica answers may be; -1 while that is not known";
        let mut ages = encoder.encode_descriptor("cluster_age_seconds", help, None, MetricType::Gauge)?;
        for partition in node.replicas().into_keys() {
            let age = node.age(partition).map_or(-1.0, |age| age.as_secs_f64());
            let labels = [("partition", partition.to_string())];
            ConstGauge::new(age).encode(ages.encode_family(&labels)?)?;
        }
        for (name, help, kind, of) in REPLICA_FIGURES {
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for replica in &replicas {
                let labels = [("partition", replica.partition.as_str())];
                let one = family.encode_family(&labels)?;
                match kind {
                    MetricType::Counter => ConstCounter::new(of(replica)).encode(one)?,
                    _ => ConstGauge::new(i64::try_from(of(replica)).unwrap_or(i64::MAX)).encode(one)?,
                }
            }
        }
        let Lacking { leaderless, short } = Lacking::of(node, &members);
        let figures = [
            (
                "cluster_nodes_alive",
                "Nodes that this one takes for running, itself among them",
                members.nodes().filter(|known| known.is_alive()).count(),
            ),
            ("cluster_partitions", "Partitions of the cluster", node.partitions() as usize),
            ("cluster_partitions_without_leader", "Those that no node leads", leaderless),
            ("cluster_partitions_short", "Those with fewer replicas ready than `replication` says", short),
        ];
        for (name, help, value) in figures {
            encode_gauge(&mut encoder, name, help, value as u64)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use cluster::members::{Beat, Note, ReplicaBeat, Stage};

    use super::*;

    /// Nodes of one replica each of partition 0, at a stage; those that have left say nothing in this log any more.
    fn text(nodes: &[(&str, Stage, bool)]) -> String {
        let mut members = Members::new(1);
        for (writer, &(name, stage, is_leaving)) in (2..).zip(nodes) {
            let replica = ReplicaBeat { partition: 0, stage, ..ReplicaBeat::default() };
            let beat = Beat { name: name.into(), is_leaving, replicas: vec![replica], ..Beat::default() };
            members.take(writer, Note::Beat(beat));
        }
        move_text(&Succession { next: "next".into(), partitions: 2 }, &members, 1)
    }

    #[test]
    fn a_move_says_what_is_to_be_done_next() {
        let waits = text(&[("a", Stage::Prepared, false), ("b", Stage::Sealed, false)]);
        assert!(
            waits.contains("1 of 1 are sealed, and 1 of 2 replicas are ready")
                && waits.contains("Once all are")
        );
        let all = text(&[("a", Stage::Prepared, false), ("b", Stage::Prepared, false)]);
        assert!(all.contains("2 of 2 replicas are ready for it. Give each node the configuration"), "{all}");
        let away = text(&[("a", Stage::Prepared, false), ("b", Stage::Open, true)]);
        assert!(away.contains("But start b with the present log once more"), "{away}");
        // The others have gone on, and this node is left: waiting for them would be in vain.
        let left = text(&[("b", Stage::Prepared, true)]);
        assert!(left.contains("b may run with that log already: then give this node, too"), "{left}");
    }
}
