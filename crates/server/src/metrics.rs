//! The daemon's own metrics, declared with their names where they are counted.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;
use protocol::rrdcached::command::Verb;
use store::engine::{Engine, Stats};

use crate::budget::MemoryBudget;
use crate::cluster::{ClusterCollector, SpoolCollector};
use crate::collectors::statistics::CollectorStatistics;
use crate::forward::status::{ForwardCollector, ForwardStatuses};
use crate::ingest::{Ingest, IngestCollector};
use crate::replication::state::{ReplicationCollector, ReplicationState};

/// Why a request line was not executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// Longer than the protocol's limit.
    LineTooLong,
    /// No such command.
    UnknownCommand,
    /// The socket does not allow the command.
    Permission,
    /// Not allowed at this point, or with missing arguments.
    Usage,
    /// The name leads outside the base directory, or no RRD can have it.
    Name,
    /// The store has no RRD of that name.
    NoSuchRrd,
    /// The store refused it.
    Refused,
    /// The store failed to write or read.
    Store,
    /// Clients hold all the memory that they may.
    Memory,
    /// The client disconnected in the middle of a line, or before it had read its answers.
    Unfinished,
    /// Bytes that are not a frame; they ended the connection.
    BadFrame,
}

impl DropReason {
    const ALL: [DropReason; 11] = [
        DropReason::LineTooLong,
        DropReason::UnknownCommand,
        DropReason::Permission,
        DropReason::Usage,
        DropReason::Name,
        DropReason::NoSuchRrd,
        DropReason::Refused,
        DropReason::Store,
        DropReason::Memory,
        DropReason::Unfinished,
        DropReason::BadFrame,
    ];

    fn label(self) -> &'static str {
        match self {
            DropReason::LineTooLong => "line_too_long",
            DropReason::UnknownCommand => "unknown_command",
            DropReason::Permission => "permission",
            DropReason::Usage => "usage",
            DropReason::Name => "name",
            DropReason::NoSuchRrd => "no_such_rrd",
            DropReason::Refused => "refused",
            DropReason::Store => "store",
            DropReason::Memory => "memory",
            DropReason::Unfinished => "unfinished",
            DropReason::BadFrame => "bad_frame",
        }
    }
}

/// The label of dropped lines.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Reason {
    reason: &'static str,
}

/// The label of commands.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CommandName {
    command: &'static str,
}

/// The daemon's counters.
#[derive(Debug, Default)]
pub struct Metrics {
    /// `roundel_connections_total`
    pub connections: Counter,
    /// `roundel_connections_open`
    pub connections_open: Gauge,
    /// `roundel_connections_refused_total`: closed, or answered 503 over HTTP, because too many are open. Those who wait
    /// until they are accepted are not counted.
    pub connections_refused: Counter,
    /// `roundel_authentications_refused_total`: tokens and passwords that are not known.
    pub authentications_refused: Counter,
    /// `roundel_connection_panics_total`
    pub panics: Counter,
    /// `roundel_update_lines_total`: UPDATE commands received, valid or not.
    pub updates_received: Counter,
    /// `roundel_flush_lines_total`: FLUSH commands received.
    pub flushes_received: Counter,
    /// `roundel_received_bytes_total`
    pub received_bytes: Counter,
    /// `roundel_sent_bytes_total`
    pub sent_bytes: Counter,
    /// `roundel_scrub_read_bytes_total`: bytes of the store that were verified.
    pub scrub_bytes: Counter,
    /// `roundel_scrub_damaged_places_total`: damaged places found since the start.
    pub scrub_findings: Counter,
    /// `roundel_scrub_last_pass_seconds`: when the last complete pass ended, since the epoch; 0 = never.
    pub scrub_last_pass: Gauge,
    /// What the collectors say of themselves: `roundel_collectd_packets_total` and others.
    pub collectors: CollectorStatistics,
    /// The backup, if there is one: `roundel_backup_complete_seconds` and others.
    #[cfg(feature = "backup")]
    pub backing: std::sync::OnceLock<Arc<crate::backing::Backing>>,
    /// What replication does.
    pub replication: std::sync::OnceLock<Arc<ReplicationState>>,
    /// The node of a cluster that this server is, if it is one: `roundel_cluster_leads` and others.
    pub node: std::sync::OnceLock<ClusterCollector>,
    /// Its spool, if it has one: `roundel_cluster_spool_bytes` and others.
    pub spool: std::sync::OnceLock<SpoolCollector>,
    /// What is pushed: `roundel_ingest_samples_total` and others.
    pub ingest: Arc<Ingest>,
    /// What is forwarded: `roundel_forward_sent_total` and others.
    pub forwarding: ForwardStatuses,
    /// What sinks do: `roundel_sink_rows_total` and others.
    pub sinks: crate::sink::SinkStatuses,
    /// The restore, if it was not complete at the start: `roundel_restore_left_bytes` and others.
    #[cfg(feature = "backup")]
    pub restoring: std::sync::OnceLock<Arc<store::awaited::Awaited>>,
    commands: Family<CommandName, Counter>,
    drops: Family<Reason, Counter>,
}

impl Metrics {
    /// Counts a line that was not executed.
    pub fn drop_line(&self, reason: DropReason) {
        self.drops.get_or_create(&Reason { reason: reason.label() }).inc();
    }

    /// Lines that were not executed, by reason; those without any are left out.
    pub fn dropped_lines(&self) -> Vec<(&'static str, u64)> {
        let count = |reason: DropReason| {
            let reason = reason.label();
            Some((reason, self.drops.get(&Reason { reason })?.get()))
        };
        DropReason::ALL.into_iter().filter_map(count).filter(|(_, count)| *count > 0).collect()
    }

    /// Counts a command other than an ordinary UPDATE.
    pub fn command(&self, verb: Verb) {
        let command = protocol::rrdcached::command::Command::of(verb).name;
        self.commands.get_or_create(&CommandName { command }).inc();
    }

    /// Whether parts of the store are still to come from its backup.
    pub fn is_restoring(&self) -> bool {
        #[cfg(feature = "backup")]
        return self.restoring.get().is_some_and(|awaited| awaited.coming().left > 0);
        #[cfg(not(feature = "backup"))]
        return false;
    }

    /// All metrics, including the store's, ready for exposition.
    pub fn registry(&self, engine: Arc<dyn Engine>, memory: Arc<MemoryBudget>) -> Registry {
        let mut registry = Registry::with_prefix("roundel");
        registry.register("connections", "Connections accepted", self.connections.clone());
        registry.register("connections_open", "Connections now", self.connections_open.clone());
        registry.register(
            "connections_refused",
            "Connections that could not be taken",
            self.connections_refused.clone(),
        );
        registry.register(
            "authentications_refused",
            "Tokens and passwords that are not known",
            self.authentications_refused.clone(),
        );
        registry.register("connection_panics", "Connections ended by a bug", self.panics.clone());
        registry.register("update_lines", "UPDATE commands received", self.updates_received.clone());
        registry.register("flush_lines", "FLUSH commands received", self.flushes_received.clone());
        registry.register("received_bytes", "Bytes read from clients", self.received_bytes.clone());
        registry.register("sent_bytes", "Bytes written to clients", self.sent_bytes.clone());
        registry.register("commands", "Commands other than UPDATE, by name", self.commands.clone());
        registry.register("dropped_lines", "Lines not done, by reason", self.drops.clone());
        registry.register("scrub_read_bytes", "Bytes of the store verified", self.scrub_bytes.clone());
        registry.register("scrub_damaged_places", "Damaged places found", self.scrub_findings.clone());
        registry.register(
            "scrub_last_pass_seconds",
            "When the whole store was last verified, in seconds since 1970; 0 = never",
            self.scrub_last_pass.clone(),
        );
        registry.register_collector(Box::new(StoreCollector(engine)));
        registry.register_collector(Box::new(MemoryCollector(memory)));
        registry.register_collector(Box::new(self.collectors.clone()));
        #[cfg(feature = "backup")]
        if let Some(backing) = self.backing.get() {
            registry.register_collector(Box::new(crate::backing::BackupCollector(Arc::clone(backing))));
        }
        if let Some(state) = self.replication.get() {
            registry.register_collector(Box::new(ReplicationCollector(Arc::clone(state))));
        }
        if let Some(spool) = self.spool.get() {
            registry.register_collector(Box::new(spool.clone()));
        }
        if let Some(node) = self.node.get() {
            registry.register_collector(Box::new(node.clone()));
        }
        registry.register_collector(Box::new(ForwardCollector(Arc::clone(&self.forwarding))));
        registry.register_collector(Box::new(crate::sink::SinkCollector(Arc::clone(&self.sinks))));
        registry.register_collector(Box::new(IngestCollector(Arc::clone(&self.ingest))));
        #[cfg(feature = "backup")]
        if let Some(restoring) = self.restoring.get() {
            registry.register_collector(Box::new(crate::restoring::RestoreCollector(Arc::clone(restoring))));
        }
        registry
    }
}

struct StoreCollector(Arc<dyn Engine>);

impl std::fmt::Debug for StoreCollector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoreCollector")
    }
}

/// A metric of the store: its name, its help, its value in [`Stats`], and whether it is a counter.
type StoreMetric = (&'static str, &'static str, fn(&Stats) -> u64, bool);

const STORE_METRICS: [StoreMetric; 19] = [
    ("store_updates_received", "Readings accepted", |stats| stats.updates_received, true),
    ("store_updates_written", "RRDs touched by a batch, or file writes", |stats| stats.updates_written, true),
    ("store_data_sets_written", "Readings consolidated", |stats| stats.data_sets_written, true),
    ("store_updates_refused", "Readings refused", |stats| stats.updates_refused, true),
    ("store_flushes", "Flushes done", |stats| stats.flushes_received, true),
    ("store_queue_length", "RRDs waiting to be written", |stats| stats.queue_length, false),
    ("store_rrds", "RRDs known", |stats| stats.rrd_count, false),
    (
        "store_rrds_missing",
        "RRDs kept although their placeholders are missing: too many are (max_removed)",
        |stats| stats.missing_count,
        false,
    ),
    ("store_rrds_in_trash", "Removed RRDs that can be restored", |stats| stats.trash_count, false),
    (
        "store_files_left",
        ".rrd files of the tree that are still to be taken in without being named (adopt_unused)",
        |stats| stats.files_left,
        false,
    ),
    ("store_files_taken", "Those that were", |stats| stats.files_taken, true),
    ("store_files_failed", "Those that could not be", |stats| stats.files_failed, true),
    ("store_log_bytes_written", "Bytes of log written", |stats| stats.log_bytes_written, true),
    ("store_log_bytes_live", "Bytes of log not yet in a checkpoint", |stats| stats.log_bytes_live, false),
    ("store_segment_bytes_written", "Bytes of segments written", |stats| stats.segment_bytes_written, true),
    (
        "store_checkpoint_bytes_written",
        "Bytes of checkpoints written",
        |stats| stats.checkpoint_bytes_written,
        true,
    ),
    ("store_segment_bytes", "Bytes of segments kept", |stats| stats.segment_bytes, false),
    ("store_segments", "Segments kept", |stats| stats.segment_count, false),
    ("store_read_only", "1 while the store takes no updates", |stats| stats.read_only, false),
];

/// Tells how much of `[limits] memory` is taken.
#[derive(Debug)]
struct MemoryCollector(Arc<MemoryBudget>);

impl Collector for MemoryCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let metrics = [
            ("memory_used_bytes", "Bytes held for clients, and of lists that answer them", self.0.taken()),
            ("memory_max_bytes", "Bytes that may be held for clients ([limits] memory)", self.0.max()),
        ];
        for (name, help, value) in metrics {
            encode_gauge(&mut encoder, name, help, value)?;
        }
        Ok(())
    }
}

/// Encodes a gauge without labels. Prometheus' gauges are signed; no value here comes near the sign bit.
pub(crate) fn encode_gauge(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    value: u64,
) -> Result<(), std::fmt::Error> {
    let metric = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
    let one = encoder.encode_descriptor(name, help, None, metric.metric_type())?;
    metric.encode(one)
}

impl Collector for StoreCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let stats = self.0.stats();
        for (name, help, value, grows) in STORE_METRICS {
            let value = value(&stats);
            if grows {
                let metric = ConstCounter::new(value);
                let one = encoder.encode_descriptor(name, help, None, metric.metric_type())?;
                metric.encode(one)?;
            } else {
                encode_gauge(&mut encoder, name, help, value)?;
            }
        }
        Ok(())
    }
}

/// The value of a counter.
pub fn value(counter: &Counter<u64, AtomicU64>) -> u64 {
    counter.get()
}
