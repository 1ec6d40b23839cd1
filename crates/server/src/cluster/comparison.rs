//! The last comparison of all replicas that was begun at a node (`roundel cluster verify`), for `/api/v1/cluster` and the page.

use cluster::check::{Compared, Finding, ReplicaFinding, VerifyReport};
use cluster::node::Node;
use serde::Serialize;

/// A comparison; `openapi.json` says what each member is.
#[derive(Debug, Default, Serialize)]
pub struct ComparisonView {
    /// `none`, `running` or `done`.
    pub state: &'static str,
    /// RRDs compared, and about how many there are.
    pub done: u64,
    /// See `done`.
    pub total: u64,
    /// What was found, by partition, so far.
    pub partitions: Vec<ComparedView>,
}

/// See [`ComparisonView::partitions`].
#[derive(Debug, Serialize)]
pub struct ComparedView {
    /// The partition.
    pub number: u32,
    /// RRDs that were compared.
    pub rrds: u64,
    /// Their rows.
    pub rows: u64,
    /// All replicas were compared, and are the same.
    pub well: bool,
    /// Why it could not be compared; empty if it was.
    pub failure: String,
    /// What became of its replicas.
    pub replicas: Vec<ComparedReplica>,
    /// RRDs that differ, at most a thousand.
    pub differing: Vec<DifferingView>,
}

/// See [`ComparedView::replicas`].
#[derive(Debug, Serialize)]
pub struct ComparedReplica {
    /// The node that has it.
    pub node: String,
    /// In words.
    pub verdict: String,
}

/// See [`ComparedView::differing`].
#[derive(Debug, Serialize)]
pub struct DifferingView {
    /// The RRD.
    pub name: String,
    /// Who has another one than most.
    pub nodes: Vec<String>,
}

impl ComparisonView {
    /// The last one of a node.
    pub fn of(node: &Node) -> ComparisonView {
        node.verify_report(0).map_or_else(ComparisonView::none, ComparisonView::of_report)
    }

    /// There was none.
    pub(super) fn none() -> ComparisonView {
        ComparisonView { state: "none", ..ComparisonView::default() }
    }

    pub(super) fn of_report(report: VerifyReport) -> ComparisonView {
        ComparisonView {
            state: if report.is_running { "running" } else { "done" },
            done: report.done,
            total: report.total,
            partitions: report.findings.iter().map(ComparedView::of).collect(),
        }
    }

    /// It in a line, for the page.
    pub fn summary(&self) -> String {
        let ill = self.partitions.iter().filter(|partition| !partition.well).count();
        match (self.state, ill) {
            ("none", _) => "Nothing was compared since this node was started.".to_string(),
            ("running", _) => format!("{} of about {} RRDs are compared.", self.done, self.total),
            (_, 0) => format!("{} RRDs were compared, and are the same on all nodes.", self.done),
            (_, ill) => format!(
                "{ill} of {} partitions are not the same on all nodes, or could not be compared.",
                self.partitions.len()
            ),
        }
    }

    /// What is not well.
    pub fn ill(&self) -> impl Iterator<Item = &ComparedView> {
        self.partitions.iter().filter(|partition| !partition.well)
    }
}

impl ComparedView {
    fn of(finding: &Finding) -> ComparedView {
        let name = |(name, nodes): (&Vec<u8>, &Vec<String>)| DifferingView {
            name: String::from_utf8_lossy(name).into_owned(),
            nodes: nodes.clone(),
        };
        ComparedView {
            number: finding.partition,
            rrds: finding.rrds,
            rows: finding.rows,
            well: finding.is_well(),
            failure: finding.failure.clone().unwrap_or_default(),
            replicas: finding.replicas.iter().map(ComparedReplica::of).collect(),
            differing: finding.differing.iter().map(name).collect(),
        }
    }

    /// What is wrong, in a line.
    pub fn text(&self) -> String {
        let replicas = self.replicas.iter().map(|one| format!("{} {}", one.node, one.verdict));
        let failure = Some(self.failure.clone()).filter(|failure| !failure.is_empty());
        let names = self.differing.iter().map(|one| format!("{} on {}", one.name, one.nodes.join(" and ")));
        replicas.chain(failure).chain(names).collect::<Vec<_>>().join("; ")
    }
}

impl ComparedReplica {
    fn of(finding: &ReplicaFinding) -> ComparedReplica {
        let verdict = match &finding.verdict {
            Compared::Equal => "is equal".to_string(),
            Compared::Differs { rrds, put_aside: Ok(()) } => {
                format!("differs in {rrds} RRDs, was put aside and is made again")
            }
            Compared::Differs { rrds, put_aside: Err(why) } => {
                format!("differs in {rrds} RRDs, and is kept: {why}")
            }
            Compared::NotCompared(why) => format!("was not compared: {why}"),
        };
        ComparedReplica { node: finding.node.clone(), verdict }
    }
}
