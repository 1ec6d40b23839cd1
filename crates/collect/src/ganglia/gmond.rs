//! Receives gmond's datagrams and knows what a gmond would answer: [`GmondReceiver::feed`], which is then read like any other.
//!
//! A host that is not spoofed has the name of its address, which the caller looks up ([`GmondReceiver::nameless`]): never here,
//! and nothing waits for it.

use std::collections::HashMap;
use std::net::IpAddr;

use super::feed::{Cluster, Feed, Host, Metric};
use super::wire_text;
use super::xdr::{GmondMessage, MetricId, MetricMetadata, encode_request, format_value, slope_name};

/// Seconds between reports of a host, at most: gmond's.
const HOST_TMAX: u32 = 20;
/// Metrics of one host: a sender can make up names.
const METRICS_MAX: usize = 5_000;
/// Seconds between two requests for the metadata of one host's metric.
const REQUEST_SECONDS: i64 = 60;
/// What a host sends to say when its gmond started.
const HEARTBEAT: &str = "heartbeat";
/// What a host sends to say where it is.
const LOCATION: &str = "location";

/// How a [`GmondReceiver`] works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GmondOptions {
    /// The cluster that the hosts belong to.
    pub cluster: String,
    /// Who has it.
    pub owner: String,
    /// Seconds without a report after which a host is forgotten; 0 = never.
    pub host_dmax: u32,
    /// Most hosts.
    pub hosts_max: usize,
}

impl Default for GmondOptions {
    fn default() -> Self {
        GmondOptions {
            cluster: "unspecified".into(),
            owner: "unspecified".into(),
            host_dmax: 0,
            hosts_max: 20_000,
        }
    }
}

/// What was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GmondCounts {
    /// Datagrams.
    pub packets: u64,
    /// Values taken.
    pub values: u64,
    /// Datagrams that are not gmond's.
    pub malformed: u64,
    /// Values whose metadata was not known, so that it was asked for.
    pub unknown: u64,
    /// Requests for metadata sent.
    pub requests: u64,
    /// Hosts and metrics beyond a limit.
    pub over_limit: u64,
}

/// Whose metrics they are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum HostKey {
    /// The sender's.
    Address(IpAddr),
    /// `address:name` of a spoofed host.
    Spoofed(Box<[u8]>),
}

#[derive(Clone, Debug, Default)]
struct Known {
    /// None until the metadata has come.
    metadata: Option<Metric>,
    value: Box<str>,
    /// None before the first value.
    received: Option<i64>,
    asked: i64,
}

#[derive(Clone, Debug)]
struct Sender {
    /// None until its address has a name, or has none.
    name: Option<Box<str>>,
    ip: Box<str>,
    reported: i64,
    started: i64,
    location: Box<str>,
    metrics: HashMap<Box<str>, Known>,
    /// In the order of arrival, which is that of the answer.
    order: Vec<Box<str>>,
}

/// The hosts of a cluster, by their datagrams.
#[derive(Debug)]
pub struct GmondReceiver {
    options: GmondOptions,
    hosts: HashMap<HostKey, Sender>,
    order: Vec<HostKey>,
    counts: GmondCounts,
}

impl GmondReceiver {
    /// A receiver that has heard nothing.
    pub fn new(options: GmondOptions) -> Self {
        GmondReceiver { options, hosts: HashMap::new(), order: Vec::new(), counts: GmondCounts::default() }
    }

    /// What was received since the beginning.
    pub fn counts(&self) -> &GmondCounts {
        &self.counts
    }

    /// Takes a datagram; the one to answer it with, if any. `now` is in seconds since the epoch.
    pub fn receive(&mut self, now: i64, sender: IpAddr, datagram: &[u8]) -> Option<Vec<u8>> {
        self.counts.packets += 1;
        let Some(message) = GmondMessage::decode(datagram) else {
            self.counts.malformed += 1;
            return None;
        };
        match message {
            GmondMessage::Request(_) => None,
            GmondMessage::Metadata(id, metadata) => {
                let known = self.metric(now, sender, id)?;
                known.metadata = Some(metric(id, &metadata));
                None
            }
            GmondMessage::Value(id, format, value) => {
                let text = format_value(format, value);
                self.value(now, sender, id, &wire_text(&text))
            }
        }
    }

    fn value(&mut self, now: i64, sender: IpAddr, id: MetricId<'_>, text: &str) -> Option<Vec<u8>> {
        let known = self.metric(now, sender, id)?;
        (known.value, known.received) = (text.into(), Some(now));
        let is_unknown = known.metadata.is_none();
        // Values may come much more often than the answer to a request.
        let ask = is_unknown && now >= known.asked.saturating_add(REQUEST_SECONDS);
        if ask {
            known.asked = now;
        }
        self.counts.values += 1;
        self.counts.unknown += u64::from(is_unknown);
        self.counts.requests += u64::from(ask);
        let host = self.hosts.get_mut(&key(sender, id))?;
        match id.name {
            name if name == HEARTBEAT.as_bytes() => host.started = text.trim().parse().unwrap_or(0),
            name if name == LOCATION.as_bytes() => host.location = text.into(),
            _ => {}
        }
        ask.then(|| encode_request(id))
    }

    /// The metric of a datagram, new if need be; none beyond a limit.
    fn metric(&mut self, now: i64, sender: IpAddr, id: MetricId<'_>) -> Option<&mut Known> {
        let key = key(sender, id);
        if !self.hosts.contains_key(&key) {
            if self.hosts.len() >= self.options.hosts_max {
                self.counts.over_limit += 1;
                return None;
            }
            self.hosts.insert(key.clone(), new_sender(now, &key));
            self.order.push(key.clone());
        }
        let host = self.hosts.get_mut(&key)?;
        host.reported = now;
        let name = metric_name(id);
        if !host.metrics.contains_key(&name) {
            if host.metrics.len() >= METRICS_MAX {
                self.counts.over_limit += 1;
                return None;
            }
            host.order.push(name.clone());
        }
        Some(host.metrics.entry(name).or_insert_with(|| Known { asked: i64::MIN, ..Known::default() }))
    }

    /// Addresses whose names are not known yet, at most `most`.
    pub fn nameless(&self, most: usize) -> Vec<IpAddr> {
        let addresses = self.order.iter().filter_map(|key| match key {
            HostKey::Address(address) if self.hosts.get(key)?.name.is_none() => Some(*address),
            _ => None,
        });
        addresses.take(most).collect()
    }

    /// The name of an address; none if it has none, so that it is its own name.
    pub fn set_name(&mut self, address: IpAddr, name: Option<&str>) {
        if let Some(host) = self.hosts.get_mut(&HostKey::Address(address)) {
            let name = name.map_or_else(|| address.to_string(), str::to_string);
            host.name = Some(name.replace(':', "_").into());
        }
    }

    /// What a gmond would answer now, of the hosts that have names.
    pub fn feed(&mut self, now: i64) -> Feed {
        let dmax = i64::from(self.options.host_dmax);
        if dmax > 0 {
            self.hosts.retain(|_, host| now - host.reported <= dmax);
            self.order.retain(|key| self.hosts.contains_key(key));
        }
        let hosts = self.order.iter().filter_map(|key| self.host(now, self.hosts.get(key)?)).collect();
        let cluster = Cluster {
            name: self.options.cluster.as_str().into(),
            owner: self.options.owner.as_str().into(),
            latlong: "unspecified".into(),
            url: "unspecified".into(),
            localtime: now,
            hosts,
            ..Cluster::default()
        };
        Feed { clusters: vec![cluster], grids: Vec::new() }
    }

    fn host(&self, now: i64, sender: &Sender) -> Option<Host> {
        let age = |then: i64| (now - then).clamp(0, i64::from(u32::MAX)) as u32;
        let metric = |name: &str| {
            let known = sender.metrics.get(name)?;
            let metadata = known.metadata.as_ref()?;
            let special = name == HEARTBEAT || name == LOCATION;
            let tn = age(known.received.filter(|_| !special)?);
            let is_forgotten = metadata.dmax > 0 && tn > metadata.dmax;
            (!is_forgotten).then(|| Metric { value: known.value.clone(), tn, ..metadata.clone() })
        };
        Some(Host {
            name: sender.name.clone()?,
            ip: sender.ip.clone(),
            tags: "".into(),
            location: sender.location.clone(),
            reported: sender.reported,
            tn: age(sender.reported),
            tmax: HOST_TMAX,
            dmax: self.options.host_dmax,
            started: sender.started,
            metrics: sender.order.iter().filter_map(|name| metric(name)).collect(),
        })
    }
}

fn key(sender: IpAddr, id: MetricId<'_>) -> HostKey {
    if id.is_spoofed { HostKey::Spoofed(id.host.into()) } else { HostKey::Address(sender) }
}

fn new_sender(now: i64, key: &HostKey) -> Sender {
    let (name, ip) = match key {
        HostKey::Address(address) => (None, address.to_string().into()),
        HostKey::Spoofed(text) => {
            let text = wire_text(text);
            let (ip, name) = text.split_once(':').unwrap_or((&text, &text));
            (Some(name.replace(':', "_").into()), ip.into())
        }
    };
    Sender {
        name,
        ip,
        reported: now,
        started: 0,
        location: "unspecified".into(),
        metrics: HashMap::new(),
        order: Vec::new(),
    }
}

/// The name of a metric: of a spoofed one, `name:realname` is `name`.
fn metric_name(id: MetricId<'_>) -> Box<str> {
    let text = wire_text(id.name);
    let name = if id.is_spoofed { text.split(':').next().unwrap_or_default() } else { &text };
    name.replace(':', "_").into()
}

fn metric(id: MetricId<'_>, metadata: &MetricMetadata<'_>) -> Metric {
    let extra =
        metadata.extra.iter().filter(|(name, _)| *name != b"SPOOF_HOST" && *name != b"SPOOF_HEARTBEAT");
    Metric {
        name: metric_name(id),
        kind: wire_text(metadata.kind),
        units: wire_text(metadata.units),
        tmax: metadata.tmax,
        dmax: metadata.dmax,
        slope: slope_name(metadata.slope).into(),
        extra: extra.map(|(name, value)| (wire_text(name), wire_text(value))).collect(),
        ..Metric::default()
    }
}
