//! Devices polled once, by the collector of the daemon.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

use collect::inventory::{Inventory, RrdId};
use collect::reading::Readings;
use collect::snmp::answer::{Outcome, PassReport, Trouble, WalkedRow};
use collect::snmp::collector::SnmpCollector;
use collect::snmp::engine::{DeviceId, Engine, Handler, Now};
use collect::snmp::outbox::Outbox;
use collect::snmp::profile::Profiles;
use collect::snmp::source::SnmpSource;
use collect::snmp::users::Users;
use server::collectors::udp::{Clocks, DATAGRAM_MAX, random_seed};
use snmp::oid::Oid;

use crate::cmd::Result;

/// Requests in flight at most: what the default buffer of a socket holds.
const WINDOW: usize = 64;
/// How long is waited for a datagram at most: then it is looked whether time is up.
const WAIT: Duration = Duration::from_millis(100);

/// What a device is said to be that has not answered in time.
pub const LATE: &str = "has not answered all that it was asked in time: check its address, its community or its passwords, and its \
                        access list, or give it more time with --timeout";

/// The socket and the clocks.
struct Socket {
    udp: UdpSocket,
    clocks: Clocks,
    is_v6: bool,
    buffer: Vec<u8>,
}

impl Socket {
    fn open() -> Result<Self> {
        let v6 = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0));
        let is_v6 = v6.is_ok();
        // A machine without IPv6.
        let udp = v6.or_else(|_| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)));
        let udp = udp.map_err(|error| format!("cannot open a socket: {error}"))?;
        Ok(Socket { udp, clocks: Clocks::default(), is_v6, buffer: vec![0; DATAGRAM_MAX] })
    }

    fn now(&self) -> Now {
        self.clocks.now()
    }

    /// Sends; what is not sent is not answered, and repeated.
    fn send(&self, to: SocketAddr, datagram: &[u8]) {
        let to = match to {
            SocketAddr::V4(v4) if self.is_v6 => (v4.ip().to_ipv6_mapped(), v4.port()).into(),
            other => other,
        };
        self.udp.send_to(datagram, to).ok();
    }

    /// Waits for a datagram until `until`, by [`Now::mono`], or for a tenth of a second. Gives when it came, from where, and what.
    fn receive(&mut self, until: Option<u64>) -> Result<Option<(Now, SocketAddr, &[u8])>> {
        let now = self.now().mono;
        let wait = until.map_or(WAIT, |until| Duration::from_micros(until.saturating_sub(now))).min(WAIT);
        let failed = |error: io::Error| format!("cannot receive: {error}");
        self.udp.set_read_timeout(Some(wait.max(Duration::from_micros(1)))).map_err(failed)?;
        match self.udp.recv_from(&mut self.buffer) {
            Ok((length, from)) => {
                let from = SocketAddr::new(from.ip().to_canonical(), from.port());
                Ok(Some((self.now(), from, &self.buffer[..length])))
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => Ok(None),
                // An earlier datagram came to a closed port: the device does not answer.
                io::ErrorKind::ConnectionRefused => Ok(None),
                _ => Err(failed(error)),
            },
        }
    }
}

fn resolve(source: &SnmpSource) -> Result<SocketAddr> {
    let (host, port) = source.address().ok_or_else(|| format!("\"{}\" is no device", source.device))?;
    let failed = |why: String| format!("the address of {host} cannot be found: {why}");
    let mut found = (host, port).to_socket_addrs().map_err(|error| failed(error.to_string()))?;
    found.next().ok_or_else(|| failed("it has none".to_string()))
}

/// What became of a device.
pub enum Polled {
    /// It answered.
    Answered(PassReport),
    /// Why it cannot be polled.
    Failed(String),
    /// Time was up.
    Late,
}

/// Polls devices until each has answered or failed.
pub struct Poller {
    socket: Socket,
    collector: SnmpCollector,
    ids: Vec<Result<DeviceId>>,
    names: Vec<String>,
}

impl Poller {
    /// Looks up the devices' addresses.
    ///
    /// # Errors
    /// When there is no socket.
    pub fn new(sources: &[SnmpSource], profiles: Profiles) -> Result<Self> {
        let socket = Socket::open()?;
        let mut collector = SnmpCollector::new(socket.now(), WINDOW, random_seed(), profiles);
        let mut add = |source: &SnmpSource| {
            let address = resolve(source)?;
            // A pass begins at the next second.
            let id = collector.add(SnmpSource { step: 1, ..source.clone() })?;
            collector.set_address(socket.now(), id, address);
            Ok(id)
        };
        let ids = sources.iter().map(&mut add).collect();
        let names = sources.iter().map(|source| source.name().to_string()).collect();
        Ok(Poller { socket, collector, ids, names })
    }

    /// Polls for so long at most; `progress` is told often how many devices are done.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn poll(&mut self, timeout: Duration, mut progress: impl FnMut(usize)) -> Result<Vec<Polled>> {
        let deadline = Instant::now() + timeout;
        let mut troubles = HashMap::new();
        let mut looked = Instant::now();
        loop {
            self.collector.tick(self.socket.now());
            self.collector.send_all(|to, datagram| self.socket.send(to, datagram));
            let until = self.collector.next_tick();
            let received = self.socket.receive(until)?;
            let is_busy = received.is_some();
            if let Some((now, from, datagram)) = received {
                self.collector.receive(now, from, datagram);
            }
            for notice in self.collector.take_notices().into_iter().filter(|notice| !notice.is_over) {
                troubles.insert(notice.subject, notice.text);
            }
            // With thousands of devices, that costs more than an answer.
            if is_busy && looked.elapsed() < WAIT {
                continue;
            }
            looked = Instant::now();
            let polled: Vec<Polled> = (0..self.ids.len()).map(|nth| self.state(nth, &troubles)).collect();
            let done = polled.iter().filter(|polled| !matches!(polled, Polled::Late)).count();
            progress(done);
            if done == polled.len() || Instant::now() >= deadline {
                return Ok(polled);
            }
        }
    }

    fn state(&self, nth: usize, troubles: &HashMap<String, String>) -> Polled {
        let id = match &self.ids[nth] {
            Ok(id) => *id,
            Err(why) => return Polled::Failed(why.clone()),
        };
        match self.collector.found(id).1 {
            Some(report) if report.is_alive => Polled::Answered(*report),
            _ => troubles.get(&self.names[nth]).map_or(Polled::Late, |why| Polled::Failed(why.clone())),
        }
    }

    /// The RRDs of a device.
    pub fn rrds(&self, nth: usize) -> &[RrdId] {
        self.ids[nth].as_ref().map_or(&[], |id| self.collector.found(*id).0)
    }

    /// All RRDs and what they would be given.
    pub fn readings(&self) -> (&Inventory, &Readings) {
        self.collector.readings()
    }
}

/// What a walk says.
#[derive(Default)]
struct Walking {
    outbox: Outbox,
    rows: Option<Option<Vec<WalkedRow>>>,
    trouble: Option<Trouble>,
}

impl Handler for Walking {
    fn send(&mut self, device: DeviceId, to: SocketAddr, datagram: &[u8]) {
        self.outbox.push(device, to, datagram);
    }

    fn outcome(&mut self, _: Outcome<'_>) {}

    fn pass_ended(&mut self, _: DeviceId, _: &PassReport) {}

    fn walked(&mut self, _: DeviceId, _: u32, rows: Option<Vec<WalkedRow>>) {
        self.rows = Some(rows);
    }

    fn trouble(&mut self, _: DeviceId, trouble: Trouble) {
        self.trouble = Some(trouble);
    }

    fn is_well(&mut self, _: DeviceId) {}
}

/// All objects below `oid`, by index; if there are none, the object itself, as in snmpwalk.
///
/// # Errors
/// When the device is not known, does not answer, or answers nonsense.
pub fn walk(
    source: &SnmpSource,
    oid: &Oid,
    timeout: Duration,
    mut progress: impl FnMut(),
) -> Result<Vec<WalkedRow>> {
    let deadline = Instant::now() + timeout;
    let mut socket = Socket::open()?;
    let mut engine = Engine::new(socket.now(), 1, random_seed());
    let (credentials, options) = source.engine_options(&mut Users::new(random_seed()))?;
    let id = engine.add(Some(resolve(source)?), credentials, options);
    let mut wait = |engine: &mut Engine| {
        let mut walking = Walking::default();
        loop {
            engine.tick(socket.now(), &mut walking);
            walking.outbox.send_all(|_, to, datagram| socket.send(to, datagram));
            let until = engine.next_tick();
            if let Some((now, from, datagram)) = socket.receive(until)? {
                engine.receive(now, from, datagram, &mut walking);
            }
            progress();
            match walking.rows.take() {
                Some(Some(rows)) => return Ok(rows),
                Some(None) => {
                    let why = walking.trouble.map_or_else(String::new, |trouble| trouble.to_string());
                    return Err(format!("{}: {why}", source.device));
                }
                None if Instant::now() >= deadline => return Err(format!("{}: {LATE}", source.device)),
                None => {}
            }
        }
    };
    engine.walk(id, 0, vec![oid.clone()]);
    let mut rows = wait(&mut engine)?;
    if rows.is_empty() {
        engine.get(id, 0, oid.clone());
        rows = wait(&mut engine)?;
        rows.retain(|row| row.values.iter().any(Option::is_some));
    }
    Ok(rows)
}
