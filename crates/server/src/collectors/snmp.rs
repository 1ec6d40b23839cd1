//! Polls SNMP devices: the sockets, the clock and the names of hosts around what `collect` decides.

pub mod config;
pub mod devices;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use collect::snmp::collector::SnmpCollector;
use collect::snmp::collector::reload::Reloaded;
use collect::snmp::engine::DeviceId;
use collect::snmp::source::SnmpSource;
use collect::statistics::Statistic;
use suggest::Label;
use tokio::sync::watch;

use self::config::SnmpSettings;
use self::devices::DeviceReceiver;
use super::context::CollectorContext;
use super::fence::{Epochs, Fence};
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
    fence: Option<Arc<Fence>>,
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
    let mut all = first;
    let mut collector =
        SnmpCollector::new(clocks.now(), sockets.window(), random_seed(), all.profiles.clone());
    let mut lookups = Lookups::default();
    let (shared, fence) = (fence.clone(), fence.as_deref());
    reload(&mut collector, &mut lookups, &all, fence);
    devices.confirm();
    let mut recorder = Recorder::of_poller(Arc::clone(&context), NAME, shared);
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
                all = devices.take();
                let reloaded = reload(&mut collector, &mut lookups, &all, fence);
                devices.confirm();
                announce(&reloaded, "polls by the new configuration");
            }
            (id, found) = lookups.next() => match found {
                Ok(address) => collector.set_address(clocks.now(), id, address),
                Err(error) => collector.cannot_resolve(id, &error),
            },
            () = sockets.readable() => {
                wait_for_more(collector.in_flight()).await;
                receive(&mut collector, &sockets, &clocks, &mut buffer);
            }
            () = tokio::time::sleep(next.min(waiting)) => {}
        }
        if let Some((fence, epochs)) = fence.and_then(|fence| Some((fence, fence.news()?))) {
            own.add(record(&mut collector, &mut recorder).await);
            take_leads(&mut collector, &mut lookups, &all, (fence, epochs));
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
        own.publish(&context, |stored| numbers(&collector, stored, fence.is_some())).await;
    }
}

/// Takes the datagrams that have come, but not too many.
fn receive(collector: &mut SnmpCollector, sockets: &UdpSockets, clocks: &Clocks, buffer: &mut [u8]) {
    for _ in 0..DATAGRAMS_AT_ONCE {
        let Some((length, from)) = sockets.receive(buffer) else { break };
        collector.receive(clocks.now(), from, &buffer[..length]);
        collector.send_all(|to, datagram| sockets.send(to, datagram));
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

fn numbers(collector: &SnmpCollector, stored: Recorded, is_fenced: bool) -> Vec<Statistic> {
    let mut numbers = collector.statistics();
    numbers.extend([
        Statistic::count("stored", "Readings that the store took", stored.accepted),
        Statistic::count("refused", "Readings that the store refused", stored.refused),
    ]);
    numbers.extend(is_fenced.then(|| stored.lead_lost_count()));
    numbers
}

/// Polls what this node leads by these epochs. What was asked under leads that are over has been thrown away; what it led before in another
/// epoch is begun again, because what is on its way was asked then.
fn take_leads(
    collector: &mut SnmpCollector,
    lookups: &mut Lookups<DeviceId>,
    all: &SnmpSettings,
    (fence, epochs): (&Fence, Epochs),
) {
    let before = fence.know(epochs);
    let stays = |source: &SnmpSource| match source.directories(&all.profiles) {
        Some(directories) => directories.iter().all(|directory| fence.stays(directory.as_bytes(), &before)),
        None => false,
    };
    let sources = all.sources.iter().filter(|source| stays(source)).cloned().collect();
    let kept = SnmpSettings { sources, profiles: all.profiles.clone() };
    let ended = reload(collector, lookups, &kept, Some(fence)).removed;
    let reloaded = Reloaded { removed: ended, ..reload(collector, lookups, all, Some(fence)) };
    announce(&reloaded, "polls what this node leads now");
}

fn announce(reloaded: &Reloaded, what: &str) {
    let Reloaded { removed, added, unchanged, .. } = reloaded;
    let (removed, added) = (removed.len(), added.len());
    tracing::info!(collector = NAME, removed, added, unchanged, "{what}");
}

/// Polls these devices from now on, as far as this node is to, and looks up the addresses of those that are new.
fn reload(
    collector: &mut SnmpCollector,
    lookups: &mut Lookups<DeviceId>,
    all: &SnmpSettings,
    fence: Option<&Fence>,
) -> Reloaded {
    let share = |source: &SnmpSource| {
        let mut source = source.clone();
        let Some(fence) = fence else { return Some(source) };
        let directories = source.directories(&all.profiles);
        let (statistics, component) = source.statistics_name();
        let home = directories.as_ref().and_then(|all| all.first().cloned()).unwrap_or(component);
        fence.put_beside(statistics.into_bytes(), home.into_bytes());
        // Where its directories depend on what it has, each node asks, and writes its own.
        if let Some(mut led) = directories {
            led.retain(|directory| fence.has(directory.as_bytes()));
            if led.is_empty() {
                return None;
            }
            source.share = Some(led);
        }
        Some(source)
    };
    let sources = all.sources.iter().filter_map(share).collect();
    let reloaded = collector.reload(sources, all.profiles.clone());
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
