//! Polls SNMP devices: the sockets, the clock and the names of hosts around what `collect` decides.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use collect::snmp::collector::SnmpCollector;
use collect::snmp::engine::DeviceId;
use collect::snmp::source::SnmpSource;
use tokio::sync::{Semaphore, mpsc, watch};

use super::recorder::Recorder;
use super::udp::{Clocks, DATAGRAM_MAX, DATAGRAMS_AT_ONCE, UdpSockets, random_seed, resolve};
use crate::service::{Service, stopped};

/// Readings wait for others at most so long, and for so many.
const RECORD_AFTER: Duration = Duration::from_millis(200);
const READINGS_AT_ONCE: usize = 4_096;
/// How often a host's address is looked up, how many at once, and how long to wait for one.
const LOOKUP_EVERY: Duration = Duration::from_secs(300);
const LOOKUPS_AT_ONCE: usize = 16;
/// The longest sleep.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// A host's address, or why there is none.
type Lookup = (DeviceId, Result<SocketAddr, String>);

/// Polls these devices until `stop` becomes true.
///
/// # Errors
/// When there is no socket.
pub async fn run(
    service: Arc<Service>,
    sources: Vec<SnmpSource>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let sockets = UdpSockets::open()?;
    let clocks = Clocks::default();
    let mut collector = SnmpCollector::new(clocks.now(), sockets.window(), random_seed());
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
                    resolve(&host, port, |_| true).await
                };
                if sender.send((id, found)).await.is_err() || host.parse::<std::net::IpAddr>().is_ok() {
                    return;
                }
                tokio::time::sleep(LOOKUP_EVERY).await;
            }
        });
    }
    receiver
}
