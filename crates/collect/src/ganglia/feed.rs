//! What a gmond or gmetad answers: its XML as a tree.
//!
//! The texts stay as they are in the XML, escapes included, because gmond does not escape what it passes on; only the names of
//! RRDs are unescaped. They are ISO-8859-1: each byte is a character.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// Deepest nesting of grids that is followed.
const GRIDS_DEPTH_MAX: usize = 32;

/// A metric of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metric {
    /// Its name.
    pub name: Box<str>,
    /// Its value as text.
    pub value: Box<str>,
    /// Its type, such as `uint32`.
    pub kind: Box<str>,
    /// Its unit.
    pub units: Box<str>,
    /// Seconds since it was reported.
    pub tn: u32,
    /// Seconds between reports, at most.
    pub tmax: u32,
    /// Seconds without a report after which it is gone; 0 = never.
    pub dmax: u32,
    /// How it changes: `zero`, `positive`, `negative`, `both`, `unspecified`, `derivative`.
    pub slope: Box<str>,
    /// Names and values of its extra elements.
    pub extra: Vec<(Box<str>, Box<str>)>,
}

/// A host of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Its name.
    pub name: Box<str>,
    /// Its address.
    pub ip: Box<str>,
    /// Its tags.
    pub tags: Box<str>,
    /// Its place.
    pub location: Box<str>,
    /// When it reported last, by the sender's clock.
    pub reported: i64,
    /// Seconds since then.
    pub tn: u32,
    /// Seconds between reports, at most.
    pub tmax: u32,
    /// Seconds without a report after which it is gone; 0 = never.
    pub dmax: u32,
    /// When its gmond started.
    pub started: i64,
    /// Its metrics.
    pub metrics: Vec<Metric>,
}

impl Host {
    /// True while it reports: its last report is not older than four of its intervals.
    pub fn is_alive(&self) -> bool {
        self.tn < self.tmax.saturating_mul(4)
    }
}

/// A sum over hosts that a gmetad has computed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeedSum {
    /// The metric, with the sum as its value.
    pub metric: Metric,
    /// How many hosts it is the sum of.
    pub num: u64,
}

/// A cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cluster {
    /// Its name.
    pub name: Box<str>,
    /// Who has it.
    pub owner: Box<str>,
    /// Where it is.
    pub latlong: Box<str>,
    /// Its page.
    pub url: Box<str>,
    /// The time of its sender.
    pub localtime: i64,
    /// Its hosts.
    pub hosts: Vec<Host>,
    /// Hosts that are up and down, of a summary.
    pub counted: (u64, u64),
    /// Sums, of a summary.
    pub sums: Vec<FeedSum>,
}

/// A grid: what a gmetad answers. Grids inside it are flattened into its clusters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    /// Its name.
    pub name: Box<str>,
    /// The address of its page.
    pub authority: Box<str>,
    /// The time of its sender.
    pub localtime: i64,
    /// Its clusters; those of grids inside it, too.
    pub clusters: Vec<Cluster>,
}

/// One answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Feed {
    /// Clusters that no grid contains: gmond's.
    pub clusters: Vec<Cluster>,
    /// Grids: gmetad's.
    pub grids: Vec<Grid>,
}

/// Why an answer is not a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedError(String);

impl std::fmt::Display for FeedError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FeedError {}

/// ISO-8859-1 as text.
pub fn decode_latin1(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.is_ascii() => Cow::Borrowed(text),
        _ => Cow::Owned(bytes.iter().map(|&byte| char::from(byte)).collect()),
    }
}

/// Appends text as ISO-8859-1; what is not in it becomes `?`.
pub fn push_latin1(out: &mut Vec<u8>, text: &str) {
    if text.is_ascii() {
        out.extend_from_slice(text.as_bytes());
    } else {
        out.extend(text.chars().map(|c| u8::try_from(c).unwrap_or(b'?')));
    }
}

impl Feed {
    /// Reads an answer, decompressed if need be.
    ///
    /// # Errors
    /// When it is no XML, ends early, or is no answer of a gmond or gmetad.
    pub fn parse(bytes: &[u8]) -> Result<Self, FeedError> {
        let text = decode_latin1(bytes);
        let mut reader = Reader::from_str(&text);
        let config = reader.config_mut();
        config.check_end_names = true;
        let mut parser = Parser::default();
        loop {
            match reader.read_event() {
                Ok(Event::Start(start)) => parser.start(&start)?,
                Ok(Event::Empty(start)) => {
                    parser.start(&start)?;
                    parser.end(start.name().0);
                }
                Ok(Event::End(end)) => parser.end(end.name().0),
                Ok(Event::Eof) => break,
                Ok(_) => {}
                Err(error) => {
                    return Err(FeedError(format!("no XML at byte {}: {error}", reader.error_position())));
                }
            }
        }
        if !parser.has_ended {
            return Err(FeedError("the answer ends early, or is no answer of a gmond or gmetad".to_string()));
        }
        Ok(parser.feed)
    }
}

/// What is open while reading.
#[derive(Default)]
struct Parser {
    feed: Feed,
    has_ended: bool,
    /// For each open grid: its own sums, which stand outside its clusters, and how many clusters there were before it.
    open: Vec<(Cluster, usize)>,
    grid: Option<Grid>,
    cluster: Option<Cluster>,
    host: Option<Host>,
    metric: Option<Metric>,
    num: u64,
}

impl Parser {
    fn start(&mut self, start: &BytesStart<'_>) -> Result<(), FeedError> {
        match start.name().0 {
            "METRIC" => self.metric = Some(metric(start, "VAL")),
            "METRICS" => {
                self.metric = Some(metric(start, "SUM"));
                self.num = attribute(start, "NUM");
            }
            "EXTRA_ELEMENT" => {
                if let Some(metric) = &mut self.metric {
                    metric.extra.push((text(start, "NAME"), text(start, "VAL")));
                }
            }
            "HOST" => self.host = Some(host(start)),
            "HOSTS" => {
                let (up, down): (u64, u64) = (attribute(start, "UP"), attribute(start, "DOWN"));
                if let Some(cluster) = self.summarized() {
                    cluster.counted = (up, down);
                }
            }
            "CLUSTER" => {
                self.cluster = Some(Cluster {
                    name: text(start, "NAME"),
                    owner: text(start, "OWNER"),
                    latlong: text(start, "LATLONG"),
                    url: text(start, "URL"),
                    localtime: attribute(start, "LOCALTIME"),
                    ..Cluster::default()
                });
            }
            "GRID" => {
                let before = self.grid.as_ref().map_or(0, |grid| grid.clusters.len());
                self.open.push((Cluster::default(), before));
                if self.open.len() > GRIDS_DEPTH_MAX {
                    return Err(FeedError(format!("more than {GRIDS_DEPTH_MAX} grids inside each other")));
                }
                if self.open.len() == 1 {
                    self.grid = Some(Grid {
                        name: text(start, "NAME"),
                        authority: text(start, "AUTHORITY"),
                        localtime: attribute(start, "LOCALTIME"),
                        clusters: Vec::new(),
                    });
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What sums belong to: the open cluster, or the open grid.
    fn summarized(&mut self) -> Option<&mut Cluster> {
        let grid = self.open.last_mut().map(|open| &mut open.0);
        self.cluster.as_mut().or(grid)
    }

    fn end(&mut self, name: &str) {
        match name {
            "METRIC" => {
                if let (Some(host), Some(metric)) = (&mut self.host, self.metric.take()) {
                    host.metrics.push(metric);
                }
            }
            "METRICS" => {
                let num = self.num;
                if let (Some(metric), Some(cluster)) = (self.metric.take(), self.summarized()) {
                    cluster.sums.push(FeedSum { metric, num });
                }
            }
            "HOST" => {
                if let (Some(cluster), Some(host)) = (&mut self.cluster, self.host.take()) {
                    cluster.hosts.push(host);
                }
            }
            "CLUSTER" => {
                if let Some(cluster) = self.cluster.take() {
                    self.grid
                        .as_mut()
                        .map_or(&mut self.feed.clusters, |grid| &mut grid.clusters)
                        .push(cluster);
                }
            }
            "GRID" => {
                // Where a grid's clusters are given, too, its own sums are theirs.
                if let (Some((own, before)), Some(grid)) = (self.open.pop(), &mut self.grid)
                    && grid.clusters.len() == before
                {
                    grid.clusters.push(own);
                }
                if self.open.is_empty() {
                    self.feed.grids.extend(self.grid.take());
                }
            }
            "GANGLIA_XML" => self.has_ended = true,
            _ => {}
        }
    }
}

fn metric(start: &BytesStart<'_>, value: &str) -> Metric {
    let mut metric = Metric::default();
    for (key, text) in attributes(start) {
        match key {
            "NAME" => metric.name = text.into(),
            "TYPE" => metric.kind = text.into(),
            "UNITS" => metric.units = text.into(),
            "TN" => metric.tn = number(&text),
            "TMAX" => metric.tmax = number(&text),
            "DMAX" => metric.dmax = number(&text),
            "SLOPE" => metric.slope = text.into(),
            key if key == value => metric.value = text.into(),
            _ => {}
        }
    }
    metric
}

fn host(start: &BytesStart<'_>) -> Host {
    let mut host = Host::default();
    for (key, text) in attributes(start) {
        match key {
            "NAME" => host.name = text.into(),
            "IP" => host.ip = text.into(),
            "TAGS" => host.tags = text.into(),
            "LOCATION" => host.location = text.into(),
            "REPORTED" => host.reported = number(&text),
            "TN" => host.tn = number(&text),
            "TMAX" => host.tmax = number(&text),
            "DMAX" => host.dmax = number(&text),
            "GMOND_STARTED" => host.started = number(&text),
            _ => {}
        }
    }
    host
}

/// The attributes as they stand; what cannot be read ends them.
fn attributes<'a>(start: &'a BytesStart<'_>) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> {
    let mut attributes = start.attributes();
    attributes.with_checks(false);
    attributes.map_while(Result::ok).map(|attribute| (attribute.key.0, attribute.value))
}

fn text(start: &BytesStart<'_>, name: &str) -> Box<str> {
    attributes(start).find(|(key, _)| *key == name).map_or_else(Box::default, |(_, value)| value.into())
}

fn attribute<T: std::str::FromStr + Default>(start: &BytesStart<'_>, name: &str) -> T {
    attributes(start).find(|(key, _)| *key == name).map_or_else(T::default, |(_, value)| number(&value))
}

/// A number; 0 if it is none.
fn number<T: std::str::FromStr + Default>(text: &str) -> T {
    text.trim().parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gmond_s_answer_has_clusters_hosts_and_metrics() {
        let xml = b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\" standalone=\"yes\"?>\n<!DOCTYPE GANGLIA_XML [\n\
            <!ELEMENT GANGLIA_XML (GRID|CLUSTER|HOST)*>\n]>\n<GANGLIA_XML VERSION=\"3.7.2\" SOURCE=\"gmond\">\n\
            <CLUSTER NAME=\"c & d\" LOCALTIME=\"17\" OWNER=\"o\xe9\" LATLONG=\"\" URL=\"\">\n\
            <HOST NAME=\"h\" IP=\"1.2.3.4\" TAGS=\"\" REPORTED=\"15\" TN=\"79\" TMAX=\"20\" DMAX=\"0\" LOCATION=\"x\" GMOND_STARTED=\"3\">\n\
            <METRIC NAME=\"load&amp;x\" VAL=\"0.7\" TYPE=\"float\" UNITS=\" \" TN=\"5\" TMAX=\"60\" DMAX=\"9\" SLOPE=\"both\">\n\
            <EXTRA_DATA>\n<EXTRA_ELEMENT NAME=\"G\" VAL=\"l\"/>\n</EXTRA_DATA>\n</METRIC>\n</HOST>\n</CLUSTER>\n</GANGLIA_XML>\n";
        let feed = Feed::parse(xml).unwrap();
        let cluster = &feed.clusters[0];
        assert_eq!((&*cluster.name, &*cluster.owner, cluster.localtime), ("c & d", "o\u{e9}", 17));
        let host = &cluster.hosts[0];
        assert!(host.is_alive() && !Host { tn: 80, ..host.clone() }.is_alive());
        let metric = &host.metrics[0];
        assert_eq!((&*metric.name, &*metric.value, metric.tn, metric.dmax), ("load&amp;x", "0.7", 5, 9));
        assert_eq!(metric.extra, [("G".into(), "l".into())]);
        for cut in [1, xml.len() / 2, xml.len() - 16] {
            assert!(Feed::parse(&xml[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn gmetad_s_answer_is_flattened() {
        let grid = |inside: &str| {
            let xml = format!(
                "<GANGLIA_XML VERSION=\"3\" SOURCE=\"gmetad\"><GRID NAME=\"g\" AUTHORITY=\"a\" LOCALTIME=\"5\">{inside}\
                 </GRID></GANGLIA_XML>"
            );
            Feed::parse(xml.as_bytes()).unwrap().grids.remove(0)
        };
        let sums = "<HOSTS UP=\"3\" DOWN=\"1\"/><METRICS NAME=\"m\" SUM=\"1.5\" NUM=\"3\" TYPE=\"double\"></METRICS>";
        let own = grid(sums);
        assert_eq!((own.clusters.len(), own.clusters[0].counted, own.clusters[0].sums.len()), (1, (3, 1), 1));
        let both = grid(&format!("{sums}<CLUSTER NAME=\"c\">{sums}</CLUSTER><GRID NAME=\"i\">{sums}</GRID>"));
        assert_eq!((&*both.name, both.localtime), ("g", 5));
        let counted: Vec<_> = both.clusters.iter().map(|cluster| cluster.counted).collect();
        assert_eq!(counted, [(3, 1), (3, 1)], "not the sums of the whole besides those of its parts");
    }
}
