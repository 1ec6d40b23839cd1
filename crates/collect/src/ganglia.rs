//! Polls gmond and gmetad as gmetad does, and makes gmetad's RRDs: of every metric that is a number, its value at the time of
//! its cluster; and sums, of each cluster and of all.
//!
//! [`GangliaCollector`] gets what was read; [`answer`] writes what gmetad's ports answer from it. A gmond's own datagrams are
//! another source: [`gmond::GmondReceiver`] turns them into what a gmond would have answered.

pub mod answer;
pub mod feed;
pub mod gmond;
pub mod xdr;

use std::collections::HashMap;
use std::sync::Arc;

use rrd::time::Timestamp;

use crate::inventory::{Inventory, RrdSpec};
use crate::reading::{Readings, Value};
use feed::{Cluster, Feed, Host, Metric, decode_latin1, push_latin1};

/// The directory of sums, in that of a cluster and above all.
const SUMMARY_DIRECTORY: &str = "__SummaryInfo__";
/// The step of the sums of everything.
pub const ROOT_STEP_SECONDS: u64 = 15;
/// Decimals of the sums of everything.
const ROOT_DECIMALS: usize = 5;
/// gmetad's archives.
const ARCHIVES_DEFAULT: [&str; 3] =
    ["RRA:AVERAGE:0.5:1:5856", "RRA:AVERAGE:0.5:4:20160", "RRA:AVERAGE:0.5:40:52704"];

/// How a [`GangliaCollector`] works: gmetad.conf's options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GangliaOptions {
    /// Directory of the store for all RRDs; empty = its root.
    pub directory: String,
    /// `RRAs`
    pub archives: Vec<String>,
    /// `case_sensitive_hostnames`: false makes the directories of hosts lower case.
    pub case_sensitive_hostnames: bool,
    /// `unsummarized_metrics`: metrics without sums.
    pub unsummarized: Vec<String>,
    /// `gridname`: what the ports call the whole.
    pub grid: String,
    /// `authority`: the address of the whole's page.
    pub authority: String,
    /// `scalable`: of a gmetad's grid, only the sums; false takes its clusters as those of gmonds, and no grid inside it.
    pub scalable: bool,
    /// Most RRDs fed.
    pub rrds_max: usize,
}

impl Default for GangliaOptions {
    fn default() -> Self {
        GangliaOptions {
            directory: String::new(),
            archives: ARCHIVES_DEFAULT.map(str::to_string).to_vec(),
            case_sensitive_hostnames: false,
            unsummarized: Vec::new(),
            grid: "unspecified".to_string(),
            authority: String::new(),
            scalable: true,
            rrds_max: 1_000_000,
        }
    }
}

/// What was read and made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GangliaCounts {
    /// Answers read.
    pub answers: u64,
    /// Polls of a source without an answer from any of its addresses.
    pub failures: u64,
    /// Hosts of the last answers.
    pub hosts: u64,
    /// Metrics of hosts read.
    pub metrics: u64,
    /// Readings made, of sums, too.
    pub readings: u64,
    /// Values of a number's type that are none.
    pub not_numbers: u64,
    /// Clusters whose time was not newer than at the last poll.
    pub old: u64,
    /// Readings of RRDs beyond the limit, or whose name cannot be one.
    pub over_limit: u64,
}

/// The sum of a metric.
#[derive(Clone, Debug)]
pub(crate) struct Sum {
    pub(crate) metric: Metric,
    sum: f64,
    pub(crate) num: u64,
    /// Those of the first value seen.
    decimals: usize,
}

impl Sum {
    /// The sum as gmetad writes it.
    pub(crate) fn text(&self) -> String {
        format!("{:.*}", self.decimals, self.sum)
    }
}

/// Sums over hosts. A metric that is gone stays, as the sum 0 of no hosts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    pub(crate) up: u64,
    pub(crate) down: u64,
    pub(crate) sums: Vec<Sum>,
    by_name: HashMap<Box<str>, usize>,
}

impl Summary {
    fn reset(&mut self) {
        (self.up, self.down) = (0, 0);
        for sum in &mut self.sums {
            (sum.sum, sum.num) = (0.0, 0);
        }
    }

    fn add(&mut self, metric: &Metric, value: f64, num: u64) {
        let index = match self.by_name.get(&metric.name) {
            Some(&index) => index,
            None => {
                let is_whole = metric.kind.contains("int");
                let fraction = metric.value.split_once('.').map_or(0, |(_, fraction)| fraction.len());
                let decimals = if is_whole { 0 } else { fraction.min(20) };
                self.sums.push(Sum { metric: metric.clone(), sum: 0.0, num: 0, decimals });
                self.by_name.insert(metric.name.clone(), self.sums.len() - 1);
                self.sums.len() - 1
            }
        };
        self.sums[index].sum += value;
        self.sums[index].num += num;
    }

    fn add_cluster(&mut self, cluster: &Cluster, unsummarized: &[String]) {
        let wanted = |metric: &Metric| !unsummarized.iter().any(|name| **name == *metric.name);
        self.up += cluster.counted.0;
        self.down += cluster.counted.1;
        for sum in cluster.sums.iter().filter(|sum| wanted(&sum.metric)) {
            self.add(&sum.metric, sum.metric.value.trim().parse().unwrap_or(0.0), sum.num);
        }
        for host in &cluster.hosts {
            if !host.is_alive() {
                self.down += 1;
                continue;
            }
            self.up += 1;
            for metric in host.metrics.iter().filter(|metric| is_current(metric) && wanted(metric)) {
                if let Some(value) = number(metric) {
                    self.add(metric, value, 1);
                }
            }
        }
    }

    fn add_summary(&mut self, other: &Summary) {
        self.up += other.up;
        self.down += other.down;
        for sum in &other.sums {
            let count = self.sums.len();
            self.add(&sum.metric, sum.sum, sum.num);
            // As gmetad: extra data belongs to one cluster.
            self.sums[count..].iter_mut().for_each(|new| new.metric.extra.clear());
        }
    }
}

/// What the last answer of a source held; its clusters and grids, each with their sums.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    pub(crate) step: u64,
    pub(crate) is_dead: bool,
    /// When its last answer was read, by our clock.
    pub(crate) read_at: i64,
    pub(crate) clusters: Vec<(Cluster, Summary)>,
    /// Without clusters: only the sums of a grid count.
    pub(crate) grids: Vec<(feed::Grid, Summary)>,
}

/// Turns answers into readings.
#[derive(Debug)]
pub struct GangliaCollector {
    options: GangliaOptions,
    inventory: Inventory,
    sources: Vec<Source>,
    root: Summary,
    counts: GangliaCounts,
    name: Vec<u8>,
}

impl GangliaCollector {
    /// A collector without sources.
    pub fn new(options: GangliaOptions) -> Self {
        GangliaCollector {
            inventory: Inventory::new(options.rrds_max),
            options,
            sources: Vec::new(),
            root: Summary::default(),
            counts: GangliaCounts::default(),
            name: Vec::new(),
        }
    }

    /// Adds a source that is polled every `step` seconds; its number.
    pub fn add_source(&mut self, step: u64) -> usize {
        self.sources.push(Source { step: step.max(1), is_dead: true, ..Source::default() });
        self.sources.len() - 1
    }

    /// The RRDs fed so far.
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// What was read and made since the beginning.
    pub fn counts(&self) -> &GangliaCounts {
        &self.counts
    }

    /// No address of a source answered.
    pub fn fail(&mut self, source: usize) {
        self.counts.failures += 1;
        self.sources[source].is_dead = true;
    }

    /// Appends the readings of an answer; `now` is in seconds since the epoch.
    pub fn read(&mut self, source: usize, now: i64, mut feed: Feed, readings: &mut Readings) {
        self.counts.answers += 1;
        if !self.options.scalable {
            let clusters = feed.grids.drain(..).flat_map(|grid| grid.clusters);
            // Sums of a grid have no name of a cluster.
            feed.clusters.extend(clusters.filter(|cluster| !cluster.name.is_empty()));
        }
        let mut old = std::mem::take(&mut self.sources[source]);
        let mut new = Source { is_dead: false, read_at: now, step: old.step, ..Source::default() };
        for cluster in feed.clusters {
            let before = old.clusters.iter().position(|known| known.0.name == cluster.name);
            let before = before.map(|at| old.clusters.swap_remove(at));
            let (last, mut summary) =
                before.map_or((0, Summary::default()), |(old, sums)| (old.localtime, sums));
            summary.reset();
            summary.add_cluster(&cluster, &self.options.unsummarized);
            if cluster.localtime > last {
                for host in cluster.hosts.iter().filter(|host| host.is_alive()) {
                    self.host(&cluster, host, old.step, readings);
                }
                self.sums(&[&cluster.name], &summary, cluster.localtime, old.step, None, readings);
            } else {
                self.counts.old += 1;
            }
            new.clusters.push((cluster, summary));
        }
        for mut grid in feed.grids {
            let before = old.grids.iter().position(|known| known.0.name == grid.name);
            let before = before.map(|at| old.grids.swap_remove(at));
            let (last, mut summary) =
                before.map_or((0, Summary::default()), |(old, sums)| (old.localtime, sums));
            summary.reset();
            for cluster in grid.clusters.drain(..) {
                summary.add_cluster(&cluster, &self.options.unsummarized);
            }
            // As gmetad: extra data belongs to one cluster.
            summary.sums.iter_mut().for_each(|sum| sum.metric.extra.clear());
            if grid.localtime > last {
                self.sums(&[&grid.name], &summary, grid.localtime, old.step, None, readings);
            }
            new.grids.push((grid, summary));
        }
        self.sources[source] = new;
        let clusters = self.sources.iter().flat_map(|source| &source.clusters);
        self.counts.hosts = clusters.map(|cluster| cluster.0.hosts.len() as u64).sum();
    }

    /// Appends the sums of all sources; every half step of the last source, by gmetad's rule.
    pub fn summarize(&mut self, now: i64, readings: &mut Readings) {
        let mut root = std::mem::take(&mut self.root);
        root.reset();
        for source in self.sources.iter().filter(|source| !source.is_dead) {
            let sums = source.clusters.iter().map(|cluster| &cluster.1);
            sums.chain(source.grids.iter().map(|grid| &grid.1)).for_each(|summary| root.add_summary(summary));
        }
        self.sums(&[], &root, now, ROOT_STEP_SECONDS, Some(ROOT_DECIMALS), readings);
        self.root = root;
    }

    fn host(&mut self, cluster: &Cluster, host: &Host, step: u64, readings: &mut Readings) {
        for metric in &host.metrics {
            self.counts.metrics += 1;
            if !is_number_type(&metric.kind) || !is_current(metric) {
                continue;
            }
            if number(metric).is_none() {
                self.counts.not_numbers += 1;
                continue;
            }
            let directories: [&str; 2] = [&cluster.name, &host.name];
            let value = Value::Text(metric.value.trim().as_bytes());
            self.push(&directories, metric, step, cluster.localtime, &[value], readings);
        }
    }

    fn sums(
        &mut self,
        directories: &[&str],
        summary: &Summary,
        time: i64,
        step: u64,
        decimals: Option<usize>,
        readings: &mut Readings,
    ) {
        let directories = [directories, &[SUMMARY_DIRECTORY]].concat();
        for sum in &summary.sums {
            let text = format!("{:.*}", decimals.unwrap_or(sum.decimals), sum.sum);
            let values = [Value::Text(text.as_bytes()), Value::Unsigned(sum.num)];
            self.push(&directories, &sum.metric, step, time, &values, readings);
        }
    }

    /// Appends a reading of a metric: of its value, or of its sum and the number of hosts.
    fn push(
        &mut self,
        directories: &[&str],
        metric: &Metric,
        step: u64,
        time: i64,
        values: &[Value<'_>],
        readings: &mut Readings,
    ) {
        self.name.clear();
        self.name.extend_from_slice(self.options.directory.as_bytes());
        for (nth, directory) in directories.iter().enumerate() {
            // Of a cluster's two directories, the second is the host's.
            let lower = nth == 1 && *directory != SUMMARY_DIRECTORY && !self.options.case_sensitive_hostnames;
            push_component(&mut self.name, directory, lower);
        }
        push_component(&mut self.name, &metric.name, false);
        self.name.extend_from_slice(b".rrd");
        let archives = &self.options.archives;
        let is_root = directories == [SUMMARY_DIRECTORY];
        let spec = || Arc::new(spec(metric, step, is_root, values.len() == 2, archives));
        match self.inventory.find_or_add(&self.name, spec) {
            Ok(rrd) => {
                self.counts.readings += 1;
                readings.push(rrd, Timestamp::whole(time), values.iter().copied());
            }
            Err(_) => self.counts.over_limit += 1,
        }
    }
}

/// Appends a directory or a file's name. What would lead elsewhere becomes `_`; gmetad itself fails there.
fn push_component(name: &mut Vec<u8>, text: &str, lower: bool) {
    if !name.is_empty() {
        name.push(b'/');
    }
    let start = name.len();
    if text.contains('&') {
        // Unescaped, or as gmond left it.
        let unescaped = quick_xml::escape::unescape(text).unwrap_or_else(|_| text.into());
        push_latin1(name, &unescaped);
    } else {
        push_latin1(name, text);
    }
    for byte in &mut name[start..] {
        if *byte == b'/' || byte.is_ascii_control() {
            *byte = b'_';
        } else if lower {
            byte.make_ascii_lowercase();
        }
    }
    // Room for ".rrd" in a component of a file system.
    name.truncate(start + 251);
    if matches!(&name[start..], b"" | b"." | b"..") {
        name.push(b'_');
    }
}

fn spec(metric: &Metric, step: u64, is_root: bool, is_sum: bool, archives: &[String]) -> RrdSpec {
    let heartbeat = 8 * step;
    let kind = match &*metric.slope {
        // gmetad 3.7.2 makes the sums over all clusters gauges (`crates/roundel/tests/ganglia.rs`).
        _ if is_root => "GAUGE",
        "positive" => "COUNTER",
        "derivative" => "DERIVE",
        _ => "GAUGE",
    };
    let mut args = vec![format!("DS:sum:{kind}:{heartbeat}:U:U")];
    if is_sum {
        args.push(format!("DS:num:{kind}:{heartbeat}:U:U"));
    }
    args.extend(archives.iter().cloned());
    RrdSpec { step, starts_before: 1, args }
}

fn is_number_type(kind: &str) -> bool {
    matches!(kind, "int8" | "uint8" | "int16" | "uint16" | "int32" | "uint32" | "float" | "double")
}

/// True unless it has not been reported for longer than it wants to be remembered.
fn is_current(metric: &Metric) -> bool {
    metric.dmax == 0 || metric.tn <= metric.dmax
}

/// The value of a metric that is a number.
fn number(metric: &Metric) -> Option<f64> {
    if !is_number_type(&metric.kind) {
        return None;
    }
    let text = metric.value.trim();
    // No sign of an update's syntax among them.
    let harmless = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    text.parse().ok().filter(|_| text.bytes().all(harmless))
}

/// A feed's bytes, decompressed if they are compressed by gzip.
///
/// # Errors
/// When they cannot be decompressed, or are more than `limit`.
pub fn decompress(bytes: Vec<u8>, limit: usize) -> Result<Vec<u8>, String> {
    use std::io::Read as _;
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let mut plain = Vec::new();
    let read = flate2::read::GzDecoder::new(bytes.as_slice()).take(limit as u64 + 1).read_to_end(&mut plain);
    match read {
        Ok(count) if count <= limit => Ok(plain),
        Ok(_) => Err(format!("the answer is longer than {limit} bytes")),
        Err(error) => Err(format!("the answer cannot be decompressed: {error}")),
    }
}

/// Text of the wire, which is ISO-8859-1.
pub(crate) fn wire_text(bytes: &[u8]) -> Box<str> {
    decode_latin1(bytes).into()
}

#[cfg(test)]
mod tests;
