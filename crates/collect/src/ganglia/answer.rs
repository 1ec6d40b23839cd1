//! What gmetad's ports answer: 8651 everything, 8652 what a path asks for.

use std::io::Write as _;

use super::feed::{Cluster, Grid, Host, Metric, push_latin1};
use super::{GangliaCollector, Source, Sum, Summary, is_current};

/// Longest request of the interactive port.
pub const QUERY_BYTES_MAX: usize = 2_048;

/// The document type, with which readers know the elements.
const HEAD: &str = include_str!("answer.dtd");

/// A request of the interactive port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GangliaQuery {
    /// Cluster or grid, host, metric; what does not exist or is empty, and what follows it, counts as not given.
    path: Vec<String>,
    /// `?filter=summary`: sums in place of hosts, and a host without its metrics.
    summary: bool,
}

impl GangliaQuery {
    /// Reads `/cluster/host/metric?filter=summary`; none if it does not begin with a slash.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let line = super::wire_text(line.trim_ascii_end());
        let rest = line.strip_prefix('/')?;
        let (path, filter) = rest.split_once('?').unwrap_or((rest, ""));
        let path = path.split('/').take_while(|part| !part.is_empty()).map(str::to_string).collect();
        Some(GangliaQuery { path, summary: filter == "filter=summary" })
    }

    fn part(&self, index: usize) -> Option<&str> {
        self.path.get(index).map(String::as_str)
    }
}

impl GangliaCollector {
    /// The answer to a query, or everything; `now` is in seconds since the epoch.
    pub fn answer(&self, now: i64, query: &GangliaQuery) -> Vec<u8> {
        let mut out = Xml { bytes: Vec::new(), now };
        out.text(HEAD);
        out.text("<GANGLIA_XML VERSION=\"3.7.2\" SOURCE=\"gmetad\">\n");
        out.text(&format!(
            "<GRID NAME=\"{}\" AUTHORITY=\"{}\" LOCALTIME=\"{now}\">\n",
            self.options.grid, self.options.authority
        ));
        let clusters = || {
            self.sources
                .iter()
                .flat_map(|source| source.clusters.iter().map(move |cluster| (source, cluster)))
        };
        let grids = || self.sources.iter().flat_map(|source| &source.grids);
        let wanted = query.part(0).filter(|name| {
            clusters().any(|(_, cluster)| *cluster.0.name == **name)
                || grids().any(|grid| *grid.0.name == **name)
        });
        if wanted.is_none() && query.summary {
            out.summary(&self.root_now());
        }
        let is_wanted = |name: &str| wanted.is_none_or(|wanted| wanted == name);
        for (source, (cluster, summary)) in clusters().filter(|(_, cluster)| is_wanted(&cluster.0.name)) {
            let inner = if wanted.is_some() { query } else { &GangliaQuery { path: Vec::new(), ..*query } };
            out.cluster(source, cluster, summary, inner);
        }
        for (grid, summary) in grids().filter(|grid| is_wanted(&grid.0.name)) {
            out.grid(grid, summary);
        }
        out.text("</GRID>\n</GANGLIA_XML>\n");
        out.bytes
    }

    /// The sums of all sources that answer, with what was known of others as 0.
    fn root_now(&self) -> Summary {
        let mut root = self.root.clone();
        root.reset();
        for source in self.sources.iter().filter(|source| !source.is_dead) {
            source.clusters.iter().for_each(|cluster| root.add_summary(&cluster.1));
            source.grids.iter().for_each(|grid| root.add_summary(&grid.1));
        }
        root
    }
}

struct Xml {
    bytes: Vec<u8>,
    now: i64,
}

impl Xml {
    fn text(&mut self, text: &str) {
        push_latin1(&mut self.bytes, text);
    }

    /// ` NAME="value"`, as it was read.
    fn attribute(&mut self, name: &str, value: &str) {
        self.bytes.push(b' ');
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.extend_from_slice(b"=\"");
        self.text(value);
        self.bytes.push(b'"');
    }

    fn number(&mut self, name: &str, value: impl std::fmt::Display) {
        write!(self.bytes, " {name}=\"{value}\"").expect("writing to memory cannot fail");
    }

    fn cluster(&mut self, source: &Source, cluster: &Cluster, summary: &Summary, query: &GangliaQuery) {
        self.text("<CLUSTER");
        self.attribute("NAME", &cluster.name);
        self.number("LOCALTIME", cluster.localtime);
        self.attribute("OWNER", &cluster.owner);
        self.attribute("LATLONG", &cluster.latlong);
        self.attribute("URL", &cluster.url);
        self.text(">\n");
        let wanted = query.part(1).filter(|name| cluster.hosts.iter().any(|host| *host.name == **name));
        if query.summary && wanted.is_none() {
            self.summary(summary);
        } else {
            let age = self.now.saturating_sub(source.read_at).clamp(0, i64::from(u32::MAX)) as u32;
            for host in cluster.hosts.iter().filter(|host| wanted.is_none_or(|name| *host.name == *name)) {
                self.host(host, age, wanted.and_then(|_| query.part(2)), query.summary);
            }
        }
        self.text("</CLUSTER>\n");
    }

    fn grid(&mut self, grid: &Grid, summary: &Summary) {
        self.text("<GRID");
        self.attribute("NAME", &grid.name);
        self.attribute("AUTHORITY", &grid.authority);
        self.number("LOCALTIME", grid.localtime);
        self.text(">\n");
        self.summary(summary);
        self.text("</GRID>\n");
    }

    /// A host with its metrics, or the one of them; where sums are asked for, which a host has not, without all of them.
    fn host(&mut self, host: &Host, age: u32, metric: Option<&str>, summary: bool) {
        self.text("<HOST");
        self.attribute("NAME", &host.name);
        self.attribute("IP", &host.ip);
        self.number("REPORTED", host.reported);
        self.number("TN", host.tn.saturating_add(age));
        self.number("TMAX", host.tmax);
        self.number("DMAX", host.dmax);
        self.attribute("LOCATION", &host.location);
        self.number("GMOND_STARTED", host.started);
        self.attribute("TAGS", &host.tags);
        self.text(">\n");
        if host.is_alive() {
            let current = || host.metrics.iter().filter(|metric| is_current(metric));
            let wanted = metric.filter(|name| current().any(|metric| *metric.name == **name));
            let is_wanted = |name: &str| wanted.map_or(!summary, |wanted| wanted == name);
            for metric in current().filter(|metric| is_wanted(&metric.name)) {
                self.metric(metric, age);
            }
        }
        self.text("</HOST>\n");
    }

    fn metric(&mut self, metric: &Metric, age: u32) {
        self.text("<METRIC");
        self.attribute("NAME", &metric.name);
        self.attribute("VAL", &metric.value);
        self.attribute("TYPE", &metric.kind);
        self.attribute("UNITS", &metric.units);
        self.number("TN", metric.tn.saturating_add(age));
        self.number("TMAX", metric.tmax);
        self.number("DMAX", metric.dmax);
        self.attribute("SLOPE", &metric.slope);
        self.text(" SOURCE=\"gmond\">\n");
        self.extra(metric);
        self.text("</METRIC>\n");
    }

    fn summary(&mut self, summary: &Summary) {
        self.text("<HOSTS");
        self.number("UP", summary.up);
        self.number("DOWN", summary.down);
        self.text(" SOURCE=\"gmetad\"/>\n");
        summary.sums.iter().for_each(|sum| self.sum(sum));
    }

    fn sum(&mut self, sum: &Sum) {
        self.text("<METRICS");
        self.attribute("NAME", &sum.metric.name);
        self.attribute("SUM", &sum.text());
        self.number("NUM", sum.num);
        self.text(" TYPE=\"double\"");
        self.attribute("UNITS", &sum.metric.units);
        self.attribute("SLOPE", &sum.metric.slope);
        self.text(" SOURCE=\"gmond\">\n");
        self.extra(&sum.metric);
        self.text("</METRICS>\n");
    }

    fn extra(&mut self, metric: &Metric) {
        self.text("<EXTRA_DATA>\n");
        for (name, value) in &metric.extra {
            self.text("<EXTRA_ELEMENT");
            self.attribute("NAME", name);
            self.attribute("VAL", value);
            self.text("/>\n");
        }
        self.text("</EXTRA_DATA>\n");
    }
}
