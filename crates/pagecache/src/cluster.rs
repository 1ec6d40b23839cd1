//! What a cluster needs, of each node and of the brokers: `docs/cluster.md` has the measurements, and says what was not measured.

use crate::geometry::Geometry;
use crate::plan::{STRIPES_HEAD_SHARE, STRIPES_OPEN_BYTES};

/// What a value costs, which is a time with the readings of one RRD: with three brokers, and messages compressed by zstd.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueCost {
    /// CPU seconds of the node that leads and answers.
    pub leader_seconds: f64,
    /// CPU seconds of each other replica.
    pub replica_seconds: f64,
    /// Bytes in the log: of large batches, and at a slow pace, with ten batches a second.
    pub log_bytes: (f64, f64),
}

/// Measured of W1, one data source (`docs/cluster.md`, "What a cluster costs", with brokers).
pub const COST_OF_ONE_SOURCE: ValueCost =
    ValueCost { leader_seconds: 2.60e-6, replica_seconds: 0.52e-6, log_bytes: (3.68, 6.96) };
/// Measured of W2, two data sources.
pub const COST_OF_TWO_SOURCES: ValueCost =
    ValueCost { leader_seconds: 2.45e-6, replica_seconds: 0.56e-6, log_bytes: (7.84, 10.0) };
/// CPU seconds of all brokers for a message: 1,280 appends a second were the most that two cores took (`docs/cluster.md`).
pub const APPEND_SECONDS: f64 = 2.0 / 1280.0;
/// CPU seconds of all brokers for a byte (measured with messages of 1 MB: 25 ms a megabyte).
pub const BYTE_SECONDS: f64 = 25e-9;
/// Seconds until a message is reported, besides what the brokers do meanwhile (measured: 24 ms with 16 partitions). A partition has one on its way at a time.
pub const APPEND_LATENCY_SECONDS: f64 = 0.024;

/// The largest node's share of all replicas, next to the mean (simulated with 32 nodes, 64 to 1,024 partitions: `docs/cluster.md`).
const UNEVEN_HELD: f64 = 1.13;
/// The same of what nodes lead, by the partitions for each node.
const UNEVEN_LED: [(u64, f64); 5] = [(2, 1.67), (4, 1.43), (8, 1.25), (16, 1.18), (32, 1.13)];
/// Bytes of full archives, for a byte of the `.rrd` file: on the grid, and counters with jitter (`bench/RESULTS.md`: 1/3.52 to 1/1.43).
const ARCHIVE_SHARE: (f64, f64) = (0.28, 0.70);
/// Bytes of its own log that a replica may keep: the default of `[stripes] log_bytes`.
const REPLICA_LOG_BYTES: f64 = (128 << 20) as f64;
/// Copies that brokers have of a message: what `roundel cluster topic` asks for.
const COPIES: u64 = 3;
/// Partitions for each node that [`Cluster::partitions_for`] has: what nodes lead is even to 1.18 then.
const PARTITIONS_PER_NODE: u64 = 16;

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// The RRDs.
    pub geometry: Geometry,
    /// How many.
    pub rrds: u64,
    /// Nodes, at least one.
    pub nodes: u64,
    /// Zones that they are in, evenly; at least one, and no more than nodes.
    pub zones: u64,
    /// Nodes that have each RRD; at least one, and no more than nodes.
    pub replication: u64,
    /// Partitions for RRDs, at least one.
    pub partitions: u64,
    /// Brokers, at least one.
    pub brokers: u64,
    /// How long the topic keeps messages.
    pub retention_seconds: f64,
}

/// What a node has and does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeNeeds {
    /// RRDs that it has.
    pub held: f64,
    /// RRDs of these that it leads.
    pub led: f64,
    /// Values that it leads or applies, a second.
    pub values: f64,
    /// Cores that are busy.
    pub cores: f64,
    /// Bytes of memory: live heads, and rows that are not written yet.
    pub memory: f64,
    /// Bytes on its disk with all archives full: on the grid, and counters with jitter.
    pub disk: (f64, f64),
    /// Bytes a second that it reads from the brokers: of large batches and small ones.
    pub received: (f64, f64),
}

/// What the log is, and what a broker has of it. Pairs are of large batches and small ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogNeeds {
    /// Bytes a second that nodes append, all together.
    pub appended: (f64, f64),
    /// Messages a second, at most.
    pub messages: f64,
    /// Cores of all brokers that are busy, at most.
    pub cores: f64,
    /// Bytes a second that each broker writes.
    pub written: (f64, f64),
    /// Bytes a second that each broker sends, to others and to nodes.
    pub sent: (f64, f64),
    /// Bytes on the disk of each broker.
    pub disk: (f64, f64),
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClusterNeeds {
    /// Values a second.
    pub values: f64,
    /// The mean of all nodes.
    pub mean: NodeNeeds,
    /// The node that has and leads most.
    pub most: NodeNeeds,
    /// The same while one zone is lost, if others can lead all then.
    pub zone_lost: Option<NodeNeeds>,
    /// The log.
    pub log: LogNeeds,
}

fn times((low, high): (f64, f64), by: f64) -> (f64, f64) {
    (low * by, high * by)
}

impl Cluster {
    /// A number of partitions for so many nodes, with which what they lead is even to a fifth.
    pub fn partitions_for(nodes: u64) -> u64 {
        // The limits of `roundel cluster topic`, and its default.
        nodes.saturating_mul(PARTITIONS_PER_NODE).clamp(32, 4_096).next_power_of_two()
    }

    /// What a value costs; the bytes of more than two sources follow those of two.
    fn cost(&self) -> ValueCost {
        match self.geometry.ds_count {
            0 | 1 => COST_OF_ONE_SOURCE,
            sources => {
                let two = COST_OF_TWO_SOURCES;
                ValueCost { log_bytes: times(two.log_bytes, sources as f64 / 2.0), ..two }
            }
        }
    }

    /// What it needs.
    pub fn needs(&self) -> ClusterNeeds {
        let (rrds, nodes) = (self.rrds as f64, self.nodes as f64);
        let held = rrds * self.replication as f64 / nodes;
        let per_node = self.partitions / self.nodes;
        let uneven = UNEVEN_LED.iter().rev().find(|(from, _)| *from <= per_node).unwrap_or(&UNEVEN_LED[0]).1;
        // One node has everything, and no more.
        let bound = |many: f64| many.min(rrds);
        let most_held = bound(held * UNEVEN_HELD);
        let left = self.nodes - self.nodes.div_ceil(self.zones);
        let after_loss = (self.replication > 1 && left > 0).then(|| {
            let led = (rrds * uneven / left as f64).min(most_held);
            self.node(most_held, led)
        });
        ClusterNeeds {
            values: rrds / self.geometry.step,
            mean: self.node(held, rrds / nodes),
            most: self.node(most_held, (rrds * uneven / nodes).min(most_held)),
            zone_lost: after_loss,
            log: self.log(),
        }
    }

    fn node(&self, held: f64, led: f64) -> NodeNeeds {
        let cost = self.cost();
        let (held_values, led_values) = (held / self.geometry.step, led / self.geometry.step);
        let replicas = (self.partitions as f64 * held / self.rrds.max(1) as f64).ceil();
        let files = self.geometry.file_bytes as f64 * held;
        NodeNeeds {
            held,
            led,
            values: held_values,
            cores: led_values * cost.leader_seconds + (held_values - led_values) * cost.replica_seconds,
            memory: held * STRIPES_HEAD_SHARE * self.geometry.live_bytes() as f64
                + replicas * STRIPES_OPEN_BYTES,
            disk: (
                files * ARCHIVE_SHARE.0 + replicas * REPLICA_LOG_BYTES,
                files * ARCHIVE_SHARE.1 + replicas * REPLICA_LOG_BYTES,
            ),
            received: times(cost.log_bytes, held_values),
        }
    }

    fn log(&self) -> LogNeeds {
        let values = self.rrds as f64 / self.geometry.step;
        let appended = times(self.cost().log_bytes, values);
        let messages = values.min(self.partitions as f64 / APPEND_LATENCY_SECONDS);
        let (brokers, copies) = (self.brokers as f64, COPIES.min(self.brokers) as f64);
        let written = times(appended, copies / brokers);
        LogNeeds {
            appended,
            messages,
            cores: messages * APPEND_SECONDS + appended.1 * BYTE_SECONDS,
            written,
            sent: times(appended, (copies - 1.0 + self.replication as f64) / brokers),
            disk: times(written, self.retention_seconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::Preset;

    /// 100 million data sources every ten seconds: `docs/cluster.md` has a simulation of it.
    fn large() -> Cluster {
        Cluster {
            geometry: Preset::Collectd.geometry(),
            rrds: 100_000_000,
            nodes: 32,
            zones: 2,
            replication: 2,
            partitions: 512,
            brokers: 3,
            retention_seconds: 48.0 * 3_600.0,
        }
    }

    fn is_near(value: f64, want: f64) -> bool {
        (value / want - 1.0).abs() < 0.01
    }

    #[test]
    fn a_large_cluster_needs_what_its_simulation_has() {
        let needs = large().needs();
        assert!(is_near(needs.values, 10e6));
        assert!(is_near(needs.mean.held, 6.25e6) && is_near(needs.mean.led, 3.125e6));
        // A quarter of four cores.
        assert!(is_near(needs.mean.cores, 0.975), "{needs:?}");
        assert!(is_near(needs.log.appended.0, 36.8e6) && is_near(needs.log.appended.1, 69.6e6));
        // Three copies on three brokers: each has everything.
        assert!(is_near(needs.log.disk.0, 36.8e6 * 172_800.0), "{needs:?}");
        // Four times: two other brokers and two replicas.
        assert!(is_near(needs.log.sent.0, 36.8e6 * 4.0 / 3.0));
        // 512 partitions with a message each every 24 ms.
        assert!(is_near(needs.log.messages, 21_333.0));
    }

    #[test]
    fn when_a_zone_is_lost_the_other_one_leads_what_it_has() {
        let needs = large().needs();
        let lost = needs.zone_lost.unwrap();
        assert!(is_near(lost.led, lost.held) && is_near(lost.held, needs.most.held));
        assert!(lost.cores > 1.4 * needs.most.cores && lost.memory == needs.most.memory);
        // Of three zones, half as much again.
        let three = Cluster { nodes: 33, zones: 3, ..large() }.needs();
        assert!(is_near(three.zone_lost.unwrap().led, 1.5 * three.most.led), "{three:?}");
        assert!(Cluster { zones: 1, ..large() }.needs().zone_lost.is_none());
        assert!(Cluster { replication: 1, ..large() }.needs().zone_lost.is_none());
    }

    #[test]
    fn one_node_has_everything_once() {
        let one = Cluster { nodes: 1, zones: 1, replication: 1, partitions: 32, rrds: 1_000, ..large() };
        let needs = one.needs();
        assert_eq!((needs.mean, needs.most.held, needs.most.led), (needs.most, 1_000.0, 1_000.0));
        // All 32 replicas' open rows, and next to nothing for the heads.
        assert!((32.0 * 64e6..32.0 * 65e6).contains(&needs.mean.memory), "{needs:?}");
    }

    #[test]
    fn two_sources_cost_what_was_measured_of_two() {
        let two = Cluster { geometry: Preset::Mrtg.geometry(), rrds: 300_000_000, ..large() };
        let log = two.needs().log;
        // A million values a second.
        assert!(is_near(log.appended.0, 7.84e6) && is_near(log.appended.1, 10e6), "{log:?}");
    }

    #[test]
    fn few_partitions_are_uneven() {
        let led = |partitions| Cluster { partitions, ..large() }.needs().most.led;
        assert!(led(64) > led(128) && led(128) > led(512) && led(512) > led(1_024));
        assert_eq!([1, 2, 4, 32, 1_000].map(Cluster::partitions_for), [32, 32, 64, 512, 4_096]);
    }
}
