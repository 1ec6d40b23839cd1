//! An agent: the collectors of this machine, whose readings go to a store on another one (`docs/collect/agents.md`).

pub mod feed;
pub mod sender;
pub mod spool;
pub mod wire;
pub mod work;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use collect::statistics::Statistic;
use protocol::frames::agent::LIVE_STREAM;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::feed::{Lane, SpoolFeed};
use self::sender::{Sender, SenderCounts, WorkTaker};
use self::spool::SpoolOptions;
use self::wire::AgentIdentity;
use self::work::AgentWork;
use crate::collectors::collectd::CollectdReceiver;
use crate::collectors::context::{CollectorContext, ReadingSink};
use crate::collectors::ganglia::GangliaSockets;
use crate::collectors::labels::Labels;
use crate::collectors::own::Own;
use crate::collectors::snmp::devices::DeviceReceiver;
use crate::collectors::{host, mrtg, snmp};
use crate::reload::{Program, Reloading};
use crate::settings::Settings;
use crate::{idle_memory, logging};

/// The name of its own numbers.
const NAME: &str = "agent";
/// How often blocks are written and made durable.
const FLUSH_EVERY: Duration = Duration::from_secs(1);
/// How long a stop waits until the store has everything.
const STOP_WAIT: Duration = Duration::from_secs(3);

/// The checked section `[agent]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSettings {
    /// What the agent is called.
    pub name: String,
    /// By which the store may choose it, beside its name.
    pub tags: Vec<String>,
    /// Where the store listens for agents, as HOST:PORT or tls:HOST:PORT.
    pub store: String,
    /// How it shows who it is.
    pub identity: AgentIdentity,
    /// Where blocks are kept.
    pub spool: SpoolOptions,
}

/// A spool and its sender, without collectors: for tests and measurements.
pub struct AgentLink {
    /// Takes readings.
    pub feed: Arc<SpoolFeed>,
    /// The numbers of the first lane's sender.
    pub counts: Arc<SenderCounts>,
    _runtime: Runtime,
    _stop: watch::Sender<bool>,
}

impl AgentLink {
    /// Opens the spool and begins to send.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn open(settings: AgentSettings) -> Result<Self, String> {
        let feed = Arc::new(SpoolFeed::open(settings.spool)?);
        let senders = senders(&settings.name, (&settings.store, &settings.identity), &feed, None, None);
        let counts = Arc::clone(&senders[0].counts);
        let runtime = Runtime::new().map_err(|error| format!("cannot start: {error}"))?;
        let stop = watch::Sender::new(false);
        for sender in senders {
            runtime.spawn(sender.run(stop.subscribe()));
        }
        Ok(AgentLink { feed, counts, _runtime: runtime, _stop: stop })
    }
}

/// The senders of an agent's lanes; the first one takes work, and tells labels.
fn senders(
    name: &str,
    (store, identity): (&str, &AgentIdentity),
    feed: &Arc<SpoolFeed>,
    mut work: Option<WorkTaker>,
    mut labels: Option<Arc<Labels>>,
) -> [Sender; 2] {
    Lane::BOTH.map(|lane| Sender {
        name: match lane {
            Lane::Bulk => name.to_string(),
            Lane::Live => format!("{name}{LIVE_STREAM}"),
        },
        store: store.to_string(),
        identity: identity.clone(),
        work: work.take(),
        labels: labels.take(),
        feed: feed.lane(lane),
        counts: Arc::default(),
    })
}

/// A running agent.
struct Agent {
    settings: Settings,
    context: Arc<CollectorContext>,
    feed: Arc<SpoolFeed>,
    /// By lane.
    counts: [Arc<SenderCounts>; 2],
    work: Arc<AgentWork>,
    reloading: Reloading,
    stop: watch::Sender<bool>,
}

/// What its collectors read from, beside files.
struct Inputs {
    devices: DeviceReceiver,
    collectd: Option<CollectdReceiver>,
    ganglia: Option<GangliaSockets>,
}

/// Collects and sends until a signal arrives.
///
/// # Errors
/// A text for the operator.
pub fn run(mut settings: Settings) -> Result<(), String> {
    idle_memory::use_small_pages();
    let (log, started) = (logging::start(&settings)?, settings.clone());
    let reloading = Reloading { program: Program::Agent, started, permissions: Vec::new(), log };
    let agent =
        settings.agent.take().ok_or("the configuration has no section [agent]: name, store and spool")?;
    let collectd = settings.collectd.as_ref().map(CollectdReceiver::bind).transpose()?;
    let ganglia = settings.ganglia.as_ref().map(GangliaSockets::bind).transpose()?;
    let own = settings.snmp.take().unwrap_or_default();
    let directory = agent.spool.directory.clone();
    let feed = Arc::new(SpoolFeed::open(agent.spool)?);
    let (work, devices) = AgentWork::open(&directory, own)?;
    let work = Arc::new(work);
    let sink = ReadingSink::Spool(Arc::clone(&feed));
    let own_directory = format!("{}/", agent.name);
    let labels = Arc::<Labels>::default();
    let context =
        CollectorContext { sink, statistics: Default::default(), labels: Arc::clone(&labels), own_directory };
    let taker = WorkTaker { work: Arc::clone(&work), tags: agent.tags };
    let senders = senders(&agent.name, (&agent.store, &agent.identity), &feed, Some(taker), Some(labels));
    let counts = [0, 1].map(|lane| Arc::clone(&senders[lane].counts));
    let runtime = Runtime::new().map_err(|error| format!("cannot start: {error}"))?;
    let (context, stop) = (Arc::new(context), watch::Sender::new(false));
    let agent = Agent { settings, context, feed, counts, work, reloading, stop };
    let inputs = Inputs { devices, collectd, ganglia };
    runtime.block_on(agent.serve(senders, inputs)).map_err(|error| format!("cannot go on: {error}"))
}

impl Agent {
    async fn serve(mut self, senders: [Sender; 2], inputs: Inputs) -> io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        let stop_sending = watch::Sender::new(false);
        let sending = senders.map(|sender| tokio::spawn(sender.run(stop_sending.subscribe())));
        let mut collecting = self.start(inputs);
        let flusher = {
            let (feed, stop) = (Arc::clone(&self.feed), self.stop.subscribe());
            tokio::task::spawn_blocking(move || {
                while !*stop.borrow() {
                    std::thread::sleep(FLUSH_EVERY);
                    feed.flush();
                }
            })
        };
        tracing::info!("collecting for a store elsewhere");
        let mut own = Own::new(&self.context, NAME);
        loop {
            tokio::select! {
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                _ = hang_up.recv() => self.reloading.reload(async |own| self.work.replace_own(own)).await,
                () = tokio::time::sleep(FLUSH_EVERY) => {}
            }
            own.publish(&self.context, |_| self.numbers()).await;
        }
        tracing::info!("stopping");
        self.stop.send_replace(true);
        while let Some(ended) = collecting.join_next().await {
            if let Ok(Err(error)) = ended {
                tracing::error!(%error, "a collector failed");
            }
        }
        flusher.await.ok();
        let feed = Arc::clone(&self.feed);
        tokio::task::spawn_blocking(move || feed.flush()).await.ok();
        let until = Instant::now() + STOP_WAIT;
        let is_connected = || self.counts.iter().all(|counts| counts.connected.load(Ordering::Relaxed));
        while is_connected() && self.feed.waits() && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        stop_sending.send_replace(true);
        for sending in sending {
            sending.await.ok();
        }
        Ok(())
    }

    /// Starts the collectors.
    fn start(&mut self, inputs: Inputs) -> JoinSet<io::Result<()>> {
        let Inputs { devices, collectd, ganglia } = inputs;
        let mut tasks = JoinSet::new();
        let (context, stop) = (&self.context, &self.stop);
        if let Some(directory) = self.settings.collect_host.take() {
            tasks.spawn(host::run(Arc::clone(context), directory, stop.subscribe()));
        }
        for mrtg in std::mem::take(&mut self.settings.mrtg) {
            let base = self.settings.base.clone();
            tasks.spawn(mrtg::run(Arc::clone(context), None, mrtg, base, stop.subscribe()));
        }
        tasks.spawn(snmp::run(Arc::clone(context), None, devices, stop.subscribe()));
        if let Some(receiver) = collectd {
            let (context, stop) = (Arc::clone(context), stop.subscribe());
            tasks.spawn_blocking(move || receiver.run(&context, &stop));
        }
        if let Some(sockets) = ganglia {
            tasks.spawn(sockets.run(Arc::clone(context), stop.subscribe()));
        }
        tasks
    }

    fn numbers(&self) -> Vec<Statistic> {
        let spool = self.feed.counts();
        let [bulk, _] = &self.counts;
        let sum = |count: fn(&SenderCounts) -> &AtomicU64| {
            self.counts.iter().map(|counts| count(counts).load(Ordering::Relaxed)).sum()
        };
        let connected = u64::from(bulk.connected.load(Ordering::Relaxed));
        vec![
            Statistic::level("connected", "Connected to the store", connected),
            Statistic::level("spool_bytes", "Bytes of the spool", spool.bytes),
            Statistic::level("waiting_bytes", "Of these, bytes that the store does not have", spool.waiting),
            Statistic::count("blocks", "Blocks made", spool.last),
            Statistic::count("dropped", "Readings dropped because the spool was full", spool.dropped),
            Statistic::count("lost", "Readings lost because the spool could not be written", spool.lost),
            Statistic::count("sessions", "Sessions with the store", sum(|counts| &counts.sessions)),
            Statistic::count("bytes", "Bytes sent", sum(|counts| &counts.bytes)),
            Statistic::count("refused", "Readings that the store refused", sum(|counts| &counts.refused)),
            Statistic::count(
                "gone",
                "Blocks that a restored store lacks and the spool, too",
                sum(|counts| &counts.gone),
            ),
            Statistic::level(
                "clock_skew_ms",
                "Milliseconds between the clocks of agent and store when the session began",
                bulk.skew_ms.load(Ordering::Relaxed).unsigned_abs(),
            ),
        ]
    }
}
