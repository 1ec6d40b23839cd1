//! A comparison of all partitions, in a thread of its own, while who began it asks how far it is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::{Finding, Replicas, compare};
use crate::lock::lock;

/// Once nothing was asked for so long, it ends: nothing would read what it finds.
const UNASKED_MAX: Duration = Duration::from_secs(60);

/// What is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyOptions {
    /// Only this partition.
    pub partition: Option<u32>,
    /// Only say what differs, and put nothing aside.
    pub keeps: bool,
}

/// How far it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// It has not ended.
    pub is_running: bool,
    /// RRDs compared.
    pub done: u64,
    /// About how many there are.
    pub total: u64,
    /// What was found, by partition, from the number on that was asked for.
    pub findings: Vec<Finding>,
}

struct Progress {
    report: VerifyReport,
    asked: Instant,
}

struct Running {
    progress: Mutex<Progress>,
    stopping: AtomicBool,
}

/// A comparison of all partitions, or of one. It ends when this is dropped.
pub struct Verification(Arc<Running>);

impl Verification {
    /// Begins one; `number` was drawn at random.
    ///
    /// # Errors
    /// When there is no such partition, or no thread.
    pub fn begin(replicas: Arc<dyn Replicas>, options: VerifyOptions, number: u64) -> Result<Self, String> {
        let count = replicas.partition_count();
        let partitions = match options.partition {
            Some(one) if one >= count => return Err(format!("there are partitions 0 to {}", count - 1)),
            Some(one) => one..one + 1,
            None => 0..count,
        };
        let report = VerifyReport { is_running: true, ..VerifyReport::default() };
        let progress = Mutex::new(Progress { report, asked: Instant::now() });
        let running = Arc::new(Running { progress, stopping: false.into() });
        let inner = Arc::clone(&running);
        let run = move || {
            let total = match options.partition {
                Some(_) => replicas.rrd_count() / u64::from(count.max(1)),
                None => replicas.rrd_count(),
            };
            lock(&inner.progress).report.total = total;
            for (index, partition) in (0u64..).zip(partitions) {
                if !inner.goes_on(0) {
                    break;
                }
                // Each partition has numbers of its own.
                let number = number.wrapping_add(index << 40);
                let finding =
                    compare(&*replicas, partition, number, !options.keeps, &mut |rrds| inner.goes_on(rrds));
                tell(&finding);
                lock(&inner.progress).report.findings.push(finding);
            }
            lock(&inner.progress).report.is_running = false;
        };
        let thread = std::thread::Builder::new().name("verify".into()).spawn(run);
        thread.map_err(|error| format!("no thread to compare with: {error}"))?;
        Ok(Verification(running))
    }

    /// How far it is, with what was found from number `from` on.
    pub fn report(&self, from: usize) -> VerifyReport {
        let mut progress = lock(&self.0.progress);
        progress.asked = Instant::now();
        let report = &progress.report;
        VerifyReport { findings: report.findings.get(from..).unwrap_or_default().to_vec(), ..*report }
    }
}

impl Drop for Verification {
    fn drop(&mut self) {
        // The thread may wait for a node, and ends after that: a program that stops need not wait, too.
        self.0.stopping.store(true, Ordering::Release);
    }
}

impl Running {
    /// Counts, and says whether to go on.
    fn goes_on(&self, rrds: u64) -> bool {
        let mut progress = lock(&self.progress);
        progress.report.done += rrds;
        !self.stopping.load(Ordering::Acquire) && progress.asked.elapsed() < UNASKED_MAX
    }
}

/// Writes to the program's log what is not as it should be.
fn tell(finding: &Finding) {
    let partition = finding.partition;
    if finding.is_well() {
        return tracing::info!(
            partition,
            rrds = finding.rrds,
            rows = finding.rows,
            "all replicas are the same"
        );
    }
    for replica in &finding.replicas {
        tracing::warn!(partition, node = %replica.node, verdict = ?replica.verdict, "a replica was compared");
    }
    for (name, nodes) in finding.differing.iter().take(10) {
        tracing::error!(partition, rrd = %name.escape_ascii(), ?nodes, "an RRD differs on these nodes");
    }
    if let Some(failure) = &finding.failure {
        tracing::warn!(partition, %failure, "a partition was not compared");
    }
}
