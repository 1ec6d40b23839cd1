//! Ports and paths to which others push: Graphite's lines and pickles, InfluxDB's lines, statsd, OpenTelemetry, collectd's `write_http`.
//! `docs/push.md`.
//!
//! What arrives is read by `crates/ingest` and written by [`crate::ingest::Ingest`], with the rights of the port or of who asks over
//! HTTP. Ports of TCP are tasks, which read no further while the store works; those of UDP have a thread each, before which the
//! kernel's buffer takes what arrives meanwhile.

mod collectd;
mod encoding;
pub mod http;
mod influx;
mod otlp;
mod port;
mod refusals;
mod statsd;
mod stream;
mod udp;

use std::net::{TcpListener, ToSocketAddrs};
use std::sync::Arc;

use ::ingest::influx::Precision;
use ::ingest::statsd::aggregate::StatsdOptions;

use self::port::Port;
use self::statsd::StatsdFlush;
use crate::accepting;
use crate::access::Anonymous;
use crate::collectors::datagrams::{self, DatagramSocket};
use crate::daemon::Daemon;

/// What a port speaks.
#[derive(Clone, Debug, PartialEq)]
pub enum PushProtocol {
    /// Graphite's plaintext lines.
    Graphite,
    /// Graphite's pickles, over TCP.
    Pickle,
    /// InfluxDB's lines, over UDP.
    Influx {
        /// The unit of their times.
        precision: Precision,
        /// The database that they are of: the label `db`, unless it is empty.
        database: String,
    },
    /// statsd's lines.
    Statsd,
}

impl PushProtocol {
    /// Its name in `/metrics` and the log.
    pub fn name(&self) -> &'static str {
        match self {
            PushProtocol::Graphite => "graphite",
            PushProtocol::Pickle => "pickle",
            PushProtocol::Influx { .. } => "influx",
            PushProtocol::Statsd => "statsd",
        }
    }
}

/// How a port is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Connections.
    Tcp,
    /// Datagrams.
    Udp,
}

/// A port that others push to.
#[derive(Clone, Debug, PartialEq)]
pub struct PushPort {
    /// What it speaks.
    pub protocol: PushProtocol,
    /// How it is reached.
    pub transport: Transport,
    /// The host or address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// What its clients may do.
    pub anonymous: Anonymous,
    /// Bytes asked for the kernel's buffer, over UDP.
    pub buffer_bytes: usize,
}

impl PushPort {
    /// The port as `tcp://host:port`.
    pub fn address(&self) -> String {
        let scheme = match self.transport {
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
        };
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        format!("{scheme}://{host}:{}", self.port)
    }
}

/// How what statsd counts is added up.
#[derive(Clone, Debug, PartialEq)]
pub struct StatsdSettings {
    /// Seconds between two flushes.
    pub flush_seconds: u64,
    /// Names and percentiles.
    pub options: StatsdOptions,
    /// What it may write.
    pub anonymous: Anonymous,
}

/// The sections `[carbon]`, `[statsd]` and `[influx]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PushSettings {
    /// All ports.
    pub ports: Vec<PushPort>,
    /// What statsd counts; `None` without a port of it.
    pub statsd: Option<StatsdSettings>,
}

/// Bound ports.
#[derive(Debug, Default)]
pub struct PushSockets {
    ports: Vec<(PushPort, Bound)>,
    statsd: Option<StatsdSettings>,
}

/// The sockets of a port: one for each address of its host.
#[derive(Debug)]
enum Bound {
    Tcp(Vec<TcpListener>),
    Udp(Vec<DatagramSocket>),
}

impl PushSockets {
    /// Binds them.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn bind(settings: &PushSettings) -> Result<Self, String> {
        let mut ports = Vec::with_capacity(settings.ports.len());
        for port in &settings.ports {
            let bound = match port.transport {
                Transport::Tcp => Bound::Tcp(bind_tcp(port)?),
                Transport::Udp => {
                    Bound::Udp(datagrams::bind(&port.host, port.port, None, port.buffer_bytes)?)
                }
            };
            ports.push((port.clone(), bound));
        }
        Ok(PushSockets { ports, statsd: settings.statsd.clone() })
    }

    /// Receives until the daemon stops.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn run(self, daemon: &mut Daemon) -> Result<(), String> {
        let statsd = self.statsd.map(|settings| StatsdFlush::new(daemon.service(), settings)).transpose()?;
        let aggregator = statsd.as_ref().map(StatsdFlush::aggregator);
        for (settings, bound) in self.ports {
            let who = settings.anonymous.principal()?;
            let port = Arc::new(Port::new(daemon.service().seen_by(&who), settings, aggregator.clone()));
            match bound {
                Bound::Tcp(listeners) => {
                    for listener in listeners {
                        let stop = daemon.stopping();
                        daemon.spawn(accepting::accept(listener, Arc::clone(&port), stop));
                    }
                }
                Bound::Udp(sockets) => {
                    let stop = daemon.stopping();
                    daemon.spawn_blocking(move || udp::run(sockets, &port, &stop));
                }
            }
        }
        if let Some(statsd) = statsd {
            let stop = daemon.stopping();
            daemon.spawn(statsd.run(stop));
        }
        Ok(())
    }
}

fn bind_tcp(port: &PushPort) -> Result<Vec<TcpListener>, String> {
    let cannot = |error: std::io::Error| format!("cannot receive on {}: {error}", port.address());
    let addresses = (port.host.as_str(), port.port).to_socket_addrs().map_err(cannot)?;
    let bind = |address| {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    addresses.map(|address| bind(address).map_err(cannot)).collect()
}
