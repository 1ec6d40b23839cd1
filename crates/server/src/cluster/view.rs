//! The nodes and partitions of a cluster as one node knows them: for CLUSTER, `/api/v1/cluster` and the page.

use cluster::members::{Known, Members, Stage};
use cluster::node::Node;
use serde::Serialize;

use super::comparison::ComparisonView;
use crate::status::Problem;

/// A cluster; `openapi.json` says what each member is.
#[derive(Debug, Serialize)]
pub struct ClusterView {
    /// The node that says this.
    pub node: String,
    /// Replicas that each partition is to have.
    pub replication: usize,
    /// In the words of `roundel cluster status`.
    pub summary: String,
    /// What someone should look at.
    pub problems: Vec<Problem>,
    /// By name.
    pub nodes: Vec<NodeView>,
    /// By number.
    pub partitions: Vec<PartitionView>,
    /// The last comparison of all replicas that this node was asked for.
    pub comparison: ComparisonView,
}

/// See [`ClusterView::nodes`].
#[derive(Debug, Serialize)]
pub struct NodeView {
    /// Its name.
    pub name: String,
    /// Its zone.
    pub zone: String,
    /// Where other nodes reach it.
    pub address: String,
    /// `alive`, `draining`, `silent` or `stopped`.
    pub state: &'static str,
    /// Its version of Roundel; empty of those that do not say it.
    pub version: String,
    /// The newest version of the protocol between nodes that it speaks.
    pub protocol: u8,
    /// What keeps it from getting ready for the next log.
    #[serde(skip)]
    pub trouble: Option<String>,
    /// How many partitions it leads, and how many it has.
    pub leads: usize,
    /// See `leads`.
    pub holds: usize,
}

/// See [`ClusterView::partitions`].
#[derive(Debug, Serialize)]
pub struct PartitionView {
    /// Its number.
    pub number: u32,
    /// That of the leader; 0 without one.
    pub epoch: u32,
    /// Who leads it.
    pub leader: Option<String>,
    /// `well`, `no leader`, `short` of replicas that are ready, or `sealed`: it goes on in another log.
    pub state: &'static str,
    /// Who has it.
    pub replicas: Vec<ReplicaView>,
}

/// See [`PartitionView::replicas`].
#[derive(Debug, Serialize)]
pub struct ReplicaView {
    /// The node that has it.
    pub node: String,
    /// `ready`, `catching-up` or `gone`; `sealed` when it has all of this log, and `prepared` when it has what the next one begins with, too.
    pub state: &'static str,
    /// Messages of the log that it has not applied yet, as far as the nodes' beats tell.
    pub lacking: u64,
}

impl ClusterView {
    /// What a node knows now.
    pub fn of(node: &Node) -> ClusterView {
        let members = node.members();
        let nodes: Vec<NodeView> = members.nodes().map(NodeView::of).collect();
        let replication = node.replication();
        let partitions: Vec<PartitionView> = (0..node.partitions())
            .map(|partition| PartitionView::of(&members, partition, replication))
            .collect();
        let advice = "docs/cluster.md says what a cluster does by itself, and what not.";
        let problems = super::problems(node).into_iter().map(|text| Problem { text, advice }).collect();
        let ill = partitions.iter().filter(|partition| partition.state != "well").count();
        let summary = match (members.succession(), ill) {
            (Some(succession), _) => super::move_text(succession, &members, node.partitions()),
            (None, 0) => {
                format!("{} partitions, all led, with {replication} ready replicas each", partitions.len())
            }
            (None, ill) => {
                format!("{ill} of {} partitions lack a leader or ready replicas", partitions.len())
            }
        };
        let (node, comparison) = (node.name().to_string(), ComparisonView::of(node));
        ClusterView { node, replication, summary, problems, nodes, partitions, comparison }
    }

    /// The lines of CLUSTER: `node NAME ZONE ADDRESS STATE leads COUNT of COUNT protocol VERSION` for each node, `partition NUMBER epoch EPOCH leader NAME
    /// replicas NAME:STATE...` for each partition, `trouble NAME WHY` for each node that cannot get ready for the next log.
    pub fn lines(&self) -> Vec<String> {
        let nodes = self.nodes.iter().map(|node| {
            let NodeView { name, zone, address, state, protocol, leads, holds, .. } = node;
            format!("node {name} {zone} {address} {state} leads {leads} of {holds} protocol {protocol}")
        });
        let partitions = self.partitions.iter().map(|partition| {
            let replicas = partition.replicas.iter();
            let replicas: String =
                replicas.map(|replica| format!(" {}:{}", replica.node, replica.state)).collect();
            let leader = partition.leader.as_deref().unwrap_or("-");
            let PartitionView { number, epoch, .. } = partition;
            format!("partition {number} epoch {epoch} leader {leader} replicas{replicas}")
        });
        let troubles = self.nodes.iter().filter_map(|node| {
            let why = node.trouble.as_ref()?.replace(char::is_control, " ");
            Some(format!("trouble {} {why}", node.name))
        });
        nodes.chain(partitions).chain(troubles).collect()
    }

    /// Whether the node that says this gives its replicas to others.
    pub fn drains(&self) -> bool {
        self.nodes.iter().any(|node| node.name == self.node && node.state == "draining")
    }
}

impl NodeView {
    fn of(known: &Known) -> NodeView {
        let beat = &known.beat;
        let state = match (known.is_alive(), beat.is_leaving, beat.is_draining) {
            (_, true, _) => "stopped",
            (false, ..) => "silent",
            (true, _, true) => "draining",
            (true, ..) => "alive",
        };
        let leads = beat.replicas.iter().filter(|replica| known.is_alive() && replica.leads).count();
        NodeView {
            name: beat.name.clone(),
            zone: beat.zone.clone(),
            address: beat.address.clone(),
            state,
            version: beat.version.clone(),
            protocol: beat.protocol,
            trouble: beat.trouble.clone().filter(|_| known.is_alive()),
            leads,
            holds: beat.replicas.len(),
        }
    }
}

impl PartitionView {
    fn of(members: &Members, number: u32, replication: usize) -> PartitionView {
        let leader = members.leader(number);
        let epoch = leader.and_then(|known| known.replica(number)).map_or(0, |replica| replica.epoch);
        let furthest = members.furthest(number);
        let replicas = members.nodes().filter_map(|known| {
            let replica = known.replica(number)?;
            let state = match (known.is_alive(), replica.is_ready, replica.stage) {
                (false, ..) => "gone",
                (true, false, _) => "catching-up",
                (true, true, Stage::Open) => "ready",
                (true, true, Stage::Sealed) => "sealed",
                (true, true, Stage::Prepared) => "prepared",
            };
            let lacking = furthest.saturating_sub(replica.next);
            Some(ReplicaView { node: known.beat.name.clone(), state, lacking })
        });
        let replicas: Vec<ReplicaView> = replicas.collect();
        let ready = replicas.iter().filter(|replica| replica.state == "ready").count();
        let state = match leader {
            None if members.is_sealed(number) => "sealed",
            None => "no leader",
            Some(_) if ready < replication => "short",
            Some(_) => "well",
        };
        let leader = leader.map(|known| known.beat.name.clone());
        PartitionView { number, epoch, leader, state, replicas }
    }

    /// Its replicas in a line.
    pub fn replicas_text(&self) -> String {
        let text = |replica: &ReplicaView| match replica.lacking {
            0 => format!("{} {}", replica.node, replica.state),
            lacking => format!("{} {}, lacks {lacking} messages", replica.node, replica.state),
        };
        self.replicas.iter().map(text).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cluster::check::{Compared, Finding, ReplicaFinding, VerifyReport};
    use serde_json::Value;

    use super::super::comparison::ComparedView;
    use super::*;

    /// Names of members, and of those of their members, of a value or of its description.
    fn members(value: &Value, prefix: &str, found: &mut Vec<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| members(item, prefix, found)),
            Value::Object(all) => all.iter().for_each(|(name, value)| {
                let name = format!("{prefix}.{name}");
                members(value, &name, found);
                found.push(name);
            }),
            _ => {}
        }
    }

    /// An example of what a schema describes.
    fn example(schema: &Value) -> Value {
        match schema["type"].as_str() {
            Some("object") => {
                let all = schema["properties"].as_object().unwrap();
                assert_eq!(schema["required"].as_array().unwrap().len(), all.len());
                all.iter().map(|(name, schema)| (name.clone(), example(schema))).collect()
            }
            Some("array") => Value::Array(vec![example(&schema["items"])]),
            _ => schema["enum"][0].clone(),
        }
    }

    /// A comparison that found one RRD to differ.
    fn compared() -> ComparisonView {
        let replica = |node: &str, verdict| ReplicaFinding { node: node.into(), verdict };
        let differs = Compared::Differs { rrds: 1, put_aside: Ok(()) };
        let finding = Finding {
            partition: 7,
            rrds: 10,
            rows: 30,
            replicas: vec![replica("a", Compared::Equal), replica("b", differs)],
            differing: BTreeMap::from([(b"x.rrd".to_vec(), vec!["b".into()])]),
            failure: None,
        };
        let well = Finding { partition: 8, ..Finding::default() };
        let findings = vec![finding, well];
        ComparisonView::of_report(VerifyReport { is_running: false, done: 12, total: 10, findings })
    }

    #[test]
    fn a_comparison_says_what_differs() {
        assert!(ComparisonView::none().summary().starts_with("Nothing was compared"));
        let view = compared();
        assert!(view.summary().starts_with("1 of 2 partitions are not the same"));
        let ill: Vec<String> = view.ill().map(ComparedView::text).collect();
        let want = "a is equal; b differs in 1 RRDs, was put aside and is made again; x.rrd on b";
        assert_eq!(ill, [want]);
    }

    #[test]
    fn the_description_has_all_members() {
        let replica = ReplicaView { node: "a".into(), state: "ready", lacking: 3 };
        let well = PartitionView {
            number: 7,
            epoch: 2,
            leader: Some("a".into()),
            state: "well",
            replicas: vec![replica],
        };
        assert_eq!(well.replicas_text(), "a ready, lacks 3 messages");
        let node = NodeView {
            name: "a".into(),
            zone: "east".into(),
            address: "a:1".into(),
            state: "draining",
            version: "1".into(),
            protocol: 3,
            trouble: Some("partition 7 cannot\nbe divided".into()),
            leads: 1,
            holds: 2,
        };
        let problems = vec![Problem { text: "x".into(), advice: "y" }];
        // One of each list, as in the example.
        let mut comparison = compared();
        comparison.partitions.truncate(1);
        comparison.partitions[0].replicas.truncate(1);
        let view = ClusterView {
            node: "a".into(),
            replication: 2,
            summary: "x".into(),
            problems,
            nodes: vec![node],
            partitions: vec![well],
            comparison,
        };
        assert!(view.drains());
        assert_eq!(
            view.lines(),
            [
                "node a east a:1 draining leads 1 of 2 protocol 3",
                "partition 7 epoch 2 leader a replicas a:ready",
                "trouble a partition 7 cannot be divided"
            ]
        );
        let description: Value = serde_json::from_str(include_str!("../http/openapi.json")).unwrap();
        let (mut described, mut found) = (Vec::new(), Vec::new());
        members(&example(&description["components"]["schemas"]["Cluster"]), "", &mut described);
        members(&serde_json::to_value(&view).unwrap(), "", &mut found);
        assert_eq!(found, described);
    }
}
