//! Polls SNMP devices: the sockets, the clock and the names of hosts around what `collect` decides.

pub mod config;
pub mod devices;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use collect::snmp::collector::SnmpCollector;
use collect::snmp::collector::reload::Reloaded;
use collect::snmp::engine::DeviceId;
use collect::snmp::profile::Profiles;
use collect::snmp::source::SnmpSource;
use collect::statistics::Statistic;
use suggest::Label;
use tokio::sync::watch;

use self::config::SnmpSettings;
use self::devices::DeviceReceiver;
use super::context::CollectorContext;
use super::lookup::Lookups;
use super::notices;
use super::own::Own;
use super::recorder::{Gathering, Recorded, Recorder};
use super::udp::{Clocks, DATAGRAM_MAX, DATAGRAMS_AT_ONCE, UdpSockets, random_seed, wait_for_more};
use crate::service::stopped;

/// The collector's name in the log, in `/metrics` and of its own RRD.
const NAME: &str = "snmp";
/// The longest sleep.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// Polls these devices until `stop` becomes true. When the settings change, devices that they leave as they are notice nothing.
///
/// # Errors
/// When there is no socket.
pub async fn run(
    context: Arc<CollectorContext>,
    mut devices: DeviceReceiver,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let first = tokio::select! {
        biased;
        () = stopped(&mut stop) => return Ok(()),
        first = first(&mut devices) => first,
    };
    let sockets = UdpSockets::open()?;
    let clocks = Clocks::default();
    let SnmpSettings { sources, profiles } = first;
    let mut collector = SnmpCollector::new(clocks.now(), sockets.window(), random_seed(), profiles.clone());
    let mut lookups = Lookups::default();
    reload(&mut collector, &mut lookups, sources, profiles);
    devices.confirm();
    let mut recorder = Recorder::new(Arc::clone(&context), NAME);
    let mut own = Own::new(&context, NAME);
    let mut buffer = vec![0; DATAGRAM_MAX];
    let mut gathering = Gathering::default();
    loop {
        let now = clocks.now();
        let next =
            collector.next_tick().map_or(SLEEP_MAX, |at| Duration::from_micros(at.saturating_sub(now.mono)));
        let waiting = gathering.patience(Instant::now()).unwrap_or(SLEEP_MAX);
        tokio::select! {
            biased;
            () = stopped(&mut stop) => {
                record(&mut collector, &mut recorder).await;
                return Ok(());
            }
            () = devices.changed() => {
                // Of those that go, too.
                own.add(record(&mut collector, &mut recorder).await);
                let SnmpSettings { sources, profiles } = devices.take();
                let Reloaded { removed, added, unchanged, .. } =
                    reload(&mut collector, &mut lookups, sources, profiles);
                devices.confirm();
                let (removed, added) = (removed.len(), added.len());
                tracing::info!(collector = NAME, removed, added, unchanged, "polls by the new configuration");
            }
            (id, found) = lookups.next() => match found {
                Ok(address) => collector.set_address(clocks.now(), id, address),
                Err(error) => collector.cannot_resolve(id, &error),
            },
            () = sockets.readable() => {
                wait_for_more(collector.in_flight()).await;
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
        notices::log(NAME, collector.take_notices());
        tell_titles(&context, &mut collector);
        let readings = collector.readings().1.len();
        if gathering.is_over(Instant::now(), readings, || collector.is_resting(clocks.now())) {
            own.add(record(&mut collector, &mut recorder).await);
        }
        own.publish(&context, |stored| numbers(&collector, stored)).await;
    }
}

/// Waits until there are devices.
async fn first(devices: &mut DeviceReceiver) -> SnmpSettings {
    loop {
        let first = devices.take();
        if !first.sources.is_empty() {
            return first;
        }
        devices.confirm();
        devices.changed().await;
    }
}

/// What devices say that their interfaces are for is kept where the page looks.
fn tell_titles(context: &CollectorContext, collector: &mut SnmpCollector) {
    let titles = collector.take_titles();
    if !titles.is_empty() {
        let labels = titles.into_iter().map(|(name, title)| (name, Label { title, graph: None }));
        context.labels.add(NAME, labels);
    }
}

async fn record(collector: &mut SnmpCollector, recorder: &mut Recorder) -> Recorded {
    let (inventory, readings) = collector.readings();
    let recorded = recorder.record(inventory, readings).await;
    collector.clear_readings();
    recorded
}

fn numbers(collector: &SnmpCollector, stored: Recorded) -> Vec<Statistic> {
    let mut numbers = collector.statistics();
    numbers.extend([
        Statistic::count("stored", "Readings that the store took", stored.accepted),
        Statistic::count("refused", "Readings that the store refused", stored.refused),
    ]);
    numbers
}

/// Polls these devices from now on, and looks up the addresses of those that are new.
fn reload(
    collector: &mut SnmpCollector,
    lookups: &mut Lookups<DeviceId>,
    sources: Vec<SnmpSource>,
    profiles: Profiles,
) -> Reloaded {
    let reloaded = collector.reload(sources, profiles);
    reloaded.removed.iter().for_each(|id| lookups.remove(*id));
    for id in &reloaded.added {
        if let Some((host, port)) = collector.host(*id) {
            lookups.add(*id, host, port, |_| true);
        }
    }
    for (device, error) in &reloaded.refused {
        tracing::error!(device, error, "cannot poll an SNMP device");
    }
    reloaded
}
