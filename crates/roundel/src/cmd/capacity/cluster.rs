//! `roundel capacity --nodes`: what each node of a cluster needs, and each broker.

use clap::Args;
use pagecache::cluster::{Cluster, ClusterNeeds, LogNeeds, NodeNeeds};
use pagecache::geometry::Geometry;
use serde_json::{Value, json};

use super::Result;

/// What is about one machine only.
const OF_ONE_MACHINE: [&str; 9] =
    ["memory", "iops", "mbps", "measure", "layout", "batch", "write_interval", "graph", "simulate"];

/// Options that describe a cluster.
#[derive(Debug, Args)]
pub struct ClusterArguments {
    /// Say what a cluster of so many nodes needs, and its brokers: docs/cluster.md says what of that was measured
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1_000), conflicts_with_all = OF_ONE_MACHINE)]
    nodes: Option<u64>,
    /// Nodes that have each RRD (the key of the section `cluster`)
    #[arg(long, value_name = "COUNT", requires = "nodes", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=9))]
    replication: u64,
    /// Zones that the nodes are in, evenly
    #[arg(long, value_name = "COUNT", requires = "nodes", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    zones: u64,
    /// Partitions for RRDs [default: 16 for each node, but at least 32, and a power of two]
    #[arg(long, value_name = "COUNT", requires = "nodes", value_parser = clap::value_parser!(u64).range(1..=4_096))]
    partitions: Option<u64>,
    /// Brokers of the replicated log, which have three copies of it
    #[arg(long, value_name = "COUNT", requires = "nodes", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    brokers: u64,
    /// How long the topic keeps messages
    #[arg(long, value_name = "TIME", requires = "nodes", default_value = "48h", value_parser = super::seconds)]
    retention: u64,
}

impl ClusterArguments {
    /// The cluster that is asked for, if one is.
    pub(super) fn plan(&self, geometry: &Geometry, rrds: u64) -> Result<Option<Cluster>> {
        let Some(nodes) = self.nodes else { return Ok(None) };
        let of_nodes = [("--replication", self.replication), ("--zones", self.zones)];
        if let Some((option, count)) = of_nodes.into_iter().find(|(_, count)| *count > nodes) {
            return Err(format!("{option} {count} needs as many nodes, and --nodes is {nodes}"));
        }
        Ok(Some(Cluster {
            geometry: geometry.clone(),
            rrds,
            nodes,
            zones: self.zones,
            replication: self.replication,
            partitions: self.partitions.unwrap_or_else(|| Cluster::partitions_for(nodes)),
            brokers: self.brokers,
            retention_seconds: self.retention as f64,
        }))
    }
}

/// What a row is called, and what it says of a node.
type Row = (&'static str, fn(&NodeNeeds) -> String);

/// The answer.
pub(super) struct Answer<'a> {
    pub(super) described: String,
    pub(super) cluster: &'a Cluster,
    pub(super) needs: ClusterNeeds,
}

/// From one to the other, or one if both look the same.
fn range((low, high): (f64, f64), words: impl Fn(f64) -> String) -> String {
    let [low, high] = [low, high].map(words);
    if low == high { low } else { format!("{low} to {high}") }
}

fn bytes(bytes: f64) -> String {
    match bytes {
        ..1e9 => format!("{:.0} MB", bytes / 1e6),
        ..1e12 => format!("{:.1} GB", bytes / 1e9),
        _ => format!("{:.1} TB", bytes / 1e12),
    }
}

fn rate(bytes: f64) -> String {
    format!("{:.2} MB/s", bytes / 1e6)
}

impl Answer<'_> {
    /// For people.
    pub(super) fn text(&self) -> String {
        let Cluster { geometry, rrds, nodes, zones, replication, partitions, .. } = self.cluster;
        let ClusterNeeds { mean, most, zone_lost, .. } = &self.needs;
        let mut text = format!(
            "{rrds} RRDs {}: {} data sources, {} archives, an update every {} s: {:.0} values/s\n\
             {nodes} nodes in {zones} zones, {replication} replicas of each RRD, {partitions} partitions\n\n",
            self.described,
            geometry.ds_count,
            geometry.archives.len(),
            geometry.step,
            self.needs.values
        );
        let mut columns = vec![("a node, on average", mean), ("the node with most", most)];
        columns.extend(zone_lost.as_ref().map(|lost| ("and a zone is lost", lost)));
        let rows: [Row; 6] = [
            ("RRDs", |node| format!("{:.0}", node.held)),
            ("RRDs that it leads", |node| format!("{:.0}", node.led)),
            ("cores busy", |node| format!("{:.2}", node.cores)),
            ("memory", |node| bytes(node.memory)),
            ("disk, archives full", |node| range(node.disk, bytes)),
            ("read of the log", |node| range(node.received, rate)),
        ];
        text += &format!("{:<20}", "");
        columns.iter().for_each(|(name, _)| text += &format!("{name:>24}"));
        for (name, word) in rows {
            text += &format!("\n{name:<20}");
            columns.iter().for_each(|(_, node)| text += &format!("{:>24}", word(node)));
        }
        text += "\n\n";
        text + &self.log()
    }

    fn log(&self) -> String {
        let LogNeeds { appended, messages, cores, written, sent, disk } = &self.needs.log;
        let Cluster { brokers, retention_seconds, .. } = self.cluster;
        format!(
            "The log, with large batches or small ones: {}, at most {messages:.0} messages/s\n\
             {brokers} brokers, which keep messages for {:.0} h:\n\
             \x20 written by each     {}\n\
             \x20 sent by each        {}\n\
             \x20 disk of each        {}\n\
             \x20 cores busy          {cores:.1} at most, of all together\n",
            range(*appended, rate),
            retention_seconds / 3_600.0,
            range(*written, rate),
            range(*sent, rate),
            range(*disk, bytes),
        )
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let Cluster { geometry, rrds, nodes, zones, replication, partitions, brokers, retention_seconds } =
            self.cluster;
        let ClusterNeeds { values, mean, most, zone_lost, log } = &self.needs;
        let pair = |(low, high): (f64, f64)| json!([low, high]);
        let node = |node: &NodeNeeds| {
            json!({
                "rrds": node.held, "rrds_led": node.led, "values_per_second": node.values, "cores": node.cores,
                "memory": node.memory, "disk": pair(node.disk), "received_per_second": pair(node.received),
            })
        };
        json!({
            "geometry": {
                "what": self.described, "step": geometry.step, "data_sources": geometry.ds_count,
                "archives": geometry.archives.len(), "file_bytes": geometry.file_bytes,
            },
            "rrds": rrds, "nodes": nodes, "zones": zones, "replication": replication, "partitions": partitions,
            "brokers": brokers, "retention_seconds": retention_seconds, "values_per_second": values,
            "node": node(mean), "node_with_most": node(most),
            "node_with_most_and_a_zone_lost": zone_lost.as_ref().map(node),
            "log": {
                "appended_per_second": pair(log.appended), "messages_per_second_max": log.messages, "cores_max": log.cores,
                "written_per_second": pair(log.written), "sent_per_second": pair(log.sent), "disk": pair(log.disk),
            },
        })
    }
}
