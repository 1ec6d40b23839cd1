//! Polls SNMP devices: the sockets, the clock and the names of hosts around what `collect` decides.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use collect::snmp::collector::SnmpCollector;
use collect::snmp::engine::{DeviceId, Now};
use collect::snmp::source::SnmpSource;
use tokio::net::UdpSocket;
use tokio::sync::{Semaphore, mpsc, watch};

use super::recorder::Recorder;
use crate::service::{Service, stopped};

/// What a socket's buffer should hold.
const RECEIVE_BYTES: usize = 4 << 20;
/// What the kernel counts for a datagram of 1,400 bytes.
const DATAGRAM_COST: usize = 2_315;
/// Bytes of a datagram at most.
const DATAGRAM_MAX: usize = 65_536;
/// Datagrams taken before something else gets its turn.
const DATAGRAMS_AT_ONCE: usize = 256;
/// Readings wait for others at most so long, and for so many.
const RECORD_AFTER: Duration = Duration::from_millis(200);
const READINGS_AT_ONCE: usize = 4_096;
/// How often a host's address is looked up, how many at once, and how long to wait for one.
const LOOKUP_EVERY: Duration = Duration::from_secs(300);
const LOOKUPS_AT_ONCE: usize = 16;
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest sleep.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// A host's address, or why there is none.
type Lookup = (DeviceId, Result<SocketAddr, String>);

/// The clocks.
struct Clocks(Instant);

impl Clocks {
    fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64);
        // Beyond zero, so that a time before the start can be told.
        Now { wall, mono: self.0.elapsed().as_micros() as u64 + 1_000_000 }
    }
}

/// One socket for each family of addresses; that of IPv6 may be missing.
struct Sockets {
    v4: UdpSocket,
    v6: Option<UdpSocket>,
}

impl Sockets {
    fn open() -> io::Result<Self> {
        let v4 = bind((Ipv4Addr::UNSPECIFIED, 0).into())?;
        let v6 = bind((Ipv6Addr::UNSPECIFIED, 0).into()).ok();
        Ok(Sockets { v4, v6 })
    }

    /// How many large answers the buffers hold.
    fn window(&self) -> usize {
        rustix::net::sockopt::socket_recv_buffer_size(&self.v4).map_or(64, |bytes| bytes / DATAGRAM_COST)
    }

    fn send(&self, to: SocketAddr, datagram: &[u8]) {
        let socket = if to.is_ipv4() { Some(&self.v4) } else { self.v6.as_ref() };
        // A datagram that is not sent is one that is not answered: it is repeated.
        if let Some(error) = socket.and_then(|socket| socket.try_send_to(datagram, to).err()) {
            tracing::debug!(%to, %error, "cannot send to an SNMP device");
        }
    }

    async fn readable(&self) {
        let v6 = async {
            match &self.v6 {
                Some(socket) => drop(socket.readable().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.v4.readable() => {}
            () = v6 => {}
        }
    }

    fn receive(&self, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        let sockets = [Some(&self.v4), self.v6.as_ref()];
        sockets.into_iter().flatten().find_map(|socket| socket.try_recv_from(buffer).ok())
    }
}

fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = std::net::UdpSocket::bind(address)?;
    // More than the system's limit needs a capability.
    if rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BYTES).is_err() {
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BYTES).ok();
    }
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket)
}

/// Polls these devices until `stop` becomes true.
///
/// # Errors
/// When there is no socket.
pub async fn run(
    service: Arc<Service>,
    sources: Vec<SnmpSource>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let sockets = Sockets::open()?;
    let clocks = Clocks(Instant::now());
    let mut seed = [0; 8];
    // Without random numbers the ids can be guessed, but addresses are still compared.
    rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty()).ok();
    let mut collector = SnmpCollector::new(clocks.now(), sockets.window(), u64::from_ne_bytes(seed));
    let mut lookups = look_up(&mut collector, sources);
    let mut recorder = Recorder::new(service, "snmp");
    let mut buffer = vec![0; DATAGRAM_MAX];
    let mut recorded = Instant::now();
    loop {
        let now = clocks.now();
        let next =
            collector.next_tick().map_or(SLEEP_MAX, |at| Duration::from_micros(at.saturating_sub(now.mono)));
        let waiting = if collector.readings().1.is_empty() { SLEEP_MAX } else { RECORD_AFTER };
        tokio::select! {
            biased;
            () = stopped(&mut stop) => {
                record(&mut collector, &mut recorder).await;
                return Ok(());
            }
            Some((id, found)) = lookups.recv() => match found {
                Ok(address) => collector.set_address(clocks.now(), id, address),
                Err(error) => collector.cannot_resolve(id, &error),
            },
            () = sockets.readable() => {
                for _ in 0..DATAGRAMS_AT_ONCE {
                    let Some((length, from)) = sockets.receive(&mut buffer) else { break };
                    collector.receive(clocks.now(), from, &buffer[..length]);
                    collector.send_all(|to, datagram| sockets.send(to, datagram));
                }
            }
            () = tokio::time::sleep(next.min(waiting)) => {}
        }
        if collector.next_tick().is_some_and(|at| at <= clocks.now().mono) {
            collector.tick(clocks.now());
        }
        collector.send_all(|to, datagram| sockets.send(to, datagram));
        for notice in collector.take_notices() {
            match notice.is_over {
                true => tracing::info!(device = notice.subject, "is well again; it was: {}", notice.text),
                false => tracing::warn!(device = notice.subject, "{}", notice.text),
            }
        }
        let readings = collector.readings().1.len();
        if readings >= READINGS_AT_ONCE || (readings > 0 && recorded.elapsed() >= RECORD_AFTER) {
            record(&mut collector, &mut recorder).await;
            recorded = Instant::now();
        }
    }
}

async fn record(collector: &mut SnmpCollector, recorder: &mut Recorder) {
    let (inventory, readings) = collector.readings();
    recorder.record(inventory, readings).await;
    collector.clear_readings();
}

/// Adds the devices, and looks up their addresses now and then: a resolver that hangs delays no poll.
fn look_up(collector: &mut SnmpCollector, sources: Vec<SnmpSource>) -> mpsc::Receiver<Lookup> {
    let (sender, receiver) = mpsc::channel(LOOKUPS_AT_ONCE);
    let permits = Arc::new(Semaphore::new(LOOKUPS_AT_ONCE));
    for source in sources {
        let device = source.device.clone();
        let id = match collector.add(source) {
            Ok(id) => id,
            Err(error) => {
                tracing::error!(device, error, "cannot poll an SNMP device");
                continue;
            }
        };
        let Some((host, port)) = collector.host(id).map(|(host, port)| (host.to_string(), port)) else {
            continue;
        };
        let (sender, permits) = (sender.clone(), Arc::clone(&permits));
        tokio::spawn(async move {
            loop {
                let found = {
                    let _permit = permits.acquire().await;
                    tokio::time::timeout(LOOKUP_TIMEOUT, resolve(&host, port)).await
                };
                let found = found.unwrap_or_else(|_| Err("the resolver does not answer".to_string()));
                if sender.send((id, found)).await.is_err() || host.parse::<std::net::IpAddr>().is_ok() {
                    return;
                }
                tokio::time::sleep(LOOKUP_EVERY).await;
            }
        });
    }
    receiver
}

async fn resolve(host: &str, port: u16) -> Result<SocketAddr, String> {
    let mut found = tokio::net::lookup_host((host, port)).await.map_err(|error| error.to_string())?;
    found.next().ok_or_else(|| "it has no address".to_string())
}
