//! Polls what mrtg.cfg says, in MRTG's place: the sockets, programs, files and the clock around what `collect` decides; thresholds.

mod actions;
pub mod files;
mod history;
mod labels;
mod peers;
mod programs;
mod rates;
mod state;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use collect::complaints::Complaints;
use collect::mrtg::collector::{MrtgCollector, MrtgCollectorOptions, MrtgCounts};
use collect::mrtg::plan::TermId;
use collect::mrtg::report::Report;
use collect::mrtg::threshold::Broken;
use collect::reading::Readings;
use collect::statistics::Statistic;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use self::files::{LoadError, LoadedConfig};
use self::peers::{PeerEvent, Peers};
use self::rates::RateSource;
use self::state::ThreshDir;
use super::context::{CollectorContext, ReadingSink};
use super::fence::Fence;
use super::notices;
use super::own::Own;
use super::recorder::{Gathering, Recorded, Recorder};
use super::udp::{Clocks, DATAGRAM_MAX, DATAGRAMS_AT_ONCE, random_seed, wait_for_more};
use crate::idle_memory;
use crate::service::stopped;

/// The collector's name in the log, in `/metrics` and of its own RRD.
const NAME: &str = "mrtg";

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The longest sleep.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// Programs that run at once. MRTG runs one after the other; a program mostly waits, and a machine has memory for so many.
const PROGRAMS_AT_ONCE: usize = 32;

/// How long a program may take, unless the configuration says otherwise. Guessed: MRTG has no limit.
pub const PROGRAM_TIMEOUT: Duration = Duration::from_secs(30);

/// A `[[mrtg]]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MrtgSettings {
    /// mrtg.cfg.
    pub config: PathBuf,
    /// Whether programs are run: those in back-quotes and those of thresholds.
    pub programs: bool,
    /// How long a program may take.
    pub program_timeout: Duration,
}

/// Polls until `stop` becomes true.
///
/// # Errors
/// When there are no sockets, or SIGHUP cannot be received. A configuration that cannot be used is logged, and read again when it
/// changes.
pub async fn run(
    context: Arc<CollectorContext>,
    fence: Option<Arc<Fence>>,
    settings: MrtgSettings,
    base: PathBuf,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut poller = Poller::new(context, fence, settings, base)?;
    poller.load();
    loop {
        let wait = poller.wait();
        let event = tokio::select! {
            biased;
            () = stopped(&mut stop) => Event::Stop,
            _ = hang_up.recv() => Event::HangUp,
            Some(ended) = poller.running.join_next(), if !poller.running.is_empty() => Event::Ended(ended.ok()),
            event = poller.peers.wait() => Event::Peer(event),
            () = tokio::time::sleep(wait) => Event::Time,
        };
        match event {
            Event::Stop => {
                // Programs are killed, so that the runtime can end.
                poller.cancelled.store(true, Ordering::Relaxed);
                poller.record().await;
                return Ok(());
            }
            Event::HangUp => poller.load(),
            Event::Peer(event @ PeerEvent::Datagrams(_)) => {
                wait_for_more(poller.collector.as_ref().map_or(0, MrtgCollector::in_flight)).await;
                poller.take(Event::Peer(event));
            }
            event => poller.take(event),
        }
        poller.go_on().await;
    }
}

/// What a poller waits for.
enum Event {
    Stop,
    HangUp,
    Peer(PeerEvent),
    /// A program has ended.
    Ended(Option<Ended>),
    Time,
}

/// A program that has ended.
type Ended = (TermId, Result<Vec<u8>, String>);

struct Poller {
    context: Arc<CollectorContext>,
    /// In a node of a cluster: what it polls.
    fence: Option<Arc<Fence>>,
    settings: MrtgSettings,
    base: PathBuf,
    clocks: Clocks,
    loaded: Option<LoadedConfig>,
    collector: Option<MrtgCollector>,
    /// The files as they were when they could not be used.
    failed: Option<LoadError>,
    /// When the files are looked at again.
    look_at: Instant,
    peers: Peers,
    recorder: Recorder,
    readings: Readings,
    gathering: Gathering,
    /// Targets of these readings.
    read: Vec<usize>,
    complaints: Complaints,
    broken: Broken,
    rates: RateSource,
    own: Own,
    /// What was counted before the configuration was read again.
    before: MrtgCounts,
    running: JoinSet<Ended>,
    places: Arc<Semaphore>,
    cancelled: Arc<AtomicBool>,
    buffer: Vec<u8>,
}

impl Poller {
    fn new(
        context: Arc<CollectorContext>,
        fence: Option<Arc<Fence>>,
        settings: MrtgSettings,
        base: PathBuf,
    ) -> io::Result<Self> {
        let recorder = Recorder::of_poller(Arc::clone(&context), NAME, fence.clone());
        let rates = RateSource::new(&context.sink);
        let own = Own::new(&context, NAME);
        Ok(Poller {
            context,
            fence,
            settings,
            base,
            clocks: Clocks::default(),
            loaded: None,
            collector: None,
            failed: None,
            look_at: Instant::now() + LOOK_EVERY,
            peers: Peers::open()?,
            recorder,
            readings: Readings::default(),
            gathering: Gathering::default(),
            read: Vec::new(),
            complaints: Complaints::default(),
            broken: Broken::new(),
            rates,
            own,
            before: MrtgCounts::default(),
            running: JoinSet::new(),
            places: Arc::new(Semaphore::new(PROGRAMS_AT_ONCE)),
            cancelled: Arc::default(),
            buffer: vec![0; DATAGRAM_MAX],
        })
    }

    fn wait(&self) -> Duration {
        let now = self.clocks.now();
        let tick = self.collector.as_ref().map_or(u64::MAX, |collector| collector.next_tick(now));
        let longest = self.gathering.patience(Instant::now()).unwrap_or(SLEEP_MAX);
        Duration::from_micros(tick.saturating_sub(now.mono)).min(longest)
    }

    /// Reads the configuration. One that cannot be used changes nothing.
    fn load(&mut self) {
        self.look_at = Instant::now() + LOOK_EVERY;
        let subject = self.settings.config.display().to_string();
        let wants = |name: &[u8]| self.fence.as_ref().is_none_or(|fence| fence.has_name(name));
        let loaded = tokio::task::block_in_place(|| {
            LoadedConfig::read_those(&self.settings.config, &self.base, &wants)
        });
        let loaded = match &self.context.sink {
            ReadingSink::Store(_) => loaded,
            ReadingSink::Spool(_) => loaded.and_then(|loaded| loaded.for_an_agent(&self.settings.config)),
        };
        match loaded {
            Ok(loaded) => {
                self.failed = None;
                self.complaints.resolve(&subject);
                if let ReadingSink::Store(engine) = &self.context.sink {
                    let (now, complaints) = (self.context.now(), &mut self.complaints);
                    tokio::task::block_in_place(|| history::take_over(&**engine, &loaded, now, complaints));
                }
                self.put_in_force(loaded);
                // Reading takes memory that is free now.
                idle_memory::give_back();
            }
            Err(error) => {
                let consequence =
                    if self.loaded.is_some() { "; what was read before stays in force" } else { "" };
                self.complaints.raise(&subject, format!("{}{consequence}", error.text));
                self.failed = Some(error);
            }
        }
        self.tell();
    }

    /// Puts a configuration in force. RRDs that are there are looked at once more, and tuned if it changes them.
    fn put_in_force(&mut self, mut loaded: LoadedConfig) {
        let plan = &loaded.plan;
        let same_interval = self.loaded.as_ref().is_some_and(|old| old.plan.interval == plan.interval);
        // The first round at once, as in MRTG.
        let due = self.collector.as_ref().filter(|_| same_interval).map_or(0, MrtgCollector::due);
        let without_effect = Report::new(&loaded.config, plan).not_honoured.len();
        tracing::info!(
            config = %self.settings.config.display(),
            targets = plan.targets.len(),
            without_effect,
            "polling in MRTG's place; \"roundel mrtg --check FILE\" lists the lines without effect"
        );
        self.recorder = Recorder::of_poller(Arc::clone(&self.context), NAME, self.fence.clone());
        // Readings and programs that belong to the old plan have numbers of the old plan.
        (self.readings, self.read, self.running) = (Readings::default(), Vec::new(), JoinSet::new());
        let options = MrtgCollectorOptions {
            config: self.settings.config.display().to_string(),
            programs: self.settings.programs,
            window: self.peers.window(),
            seed: random_seed(),
        };
        if let Some(directory) = ThreshDir::of(&loaded.config, &self.settings.config) {
            let all = plan.targets.iter().filter_map(|target| target.thresholds.as_ref());
            all.for_each(|thresholds| directory.recall(thresholds, &mut self.broken));
        }
        if let Some(old) = &self.collector {
            self.before += old.counts();
        }
        self.rates.keep(plan);
        self.context.labels.replace(&options.config, loaded.labels());
        let collector = MrtgCollector::new(self.clocks.now(), Arc::clone(plan), &options, due);
        for (nth, fault) in loaded.mib_faults.iter().enumerate() {
            let subject = format!("{}: LoadMIBs, {}", self.settings.config.display(), nth + 1);
            self.complaints.raise(&subject, fault);
        }
        for (agent, error) in self.peers.look_up(collector.addresses()) {
            self.complaints.raise(&agent, error);
        }
        loaded.keep_globals();
        (self.collector, self.loaded) = (Some(collector), Some(loaded));
    }

    fn take(&mut self, event: Event) {
        let Some(collector) = &mut self.collector else { return };
        let now = self.clocks.now();
        match event {
            Event::Peer(PeerEvent::Found((agent, Ok(address)))) => collector.set_address(now, agent, address),
            Event::Peer(PeerEvent::Found((agent, Err(error)))) => {
                collector.cannot_resolve(now, agent, &error)
            }
            Event::Ended(Some((term, output))) => collector.program_ended(now, term, output),
            Event::Peer(PeerEvent::Datagrams(socket)) => {
                for _ in 0..DATAGRAMS_AT_ONCE {
                    let Some((length, from)) = self.peers.receive(socket, &mut self.buffer) else { break };
                    collector.receive(self.clocks.now(), from, &self.buffer[..length]);
                    collector.send_all(|agent, to, datagram| self.peers.send(agent, to, datagram));
                }
            }
            Event::Ended(None) | Event::Stop | Event::HangUp | Event::Time => {}
        }
    }

    /// Does what follows from the event: asks, records, says what is wrong.
    async fn go_on(&mut self) {
        let fence = self.fence.clone();
        if let Some((fence, epochs)) = fence.as_ref().and_then(|fence| Some((fence, fence.news()?))) {
            // What was asked until now was asked under the leads until now: of those that are over, it is thrown away.
            self.record().await;
            fence.know(epochs);
            self.load();
        }
        if Instant::now() >= self.look_at {
            self.look_at = Instant::now() + LOOK_EVERY;
            let has_changed = match &self.failed {
                Some(error) => error.has_changed(),
                None => self.loaded.as_ref().is_none_or(LoadedConfig::has_changed),
            };
            if has_changed {
                self.load();
            }
        }
        self.ask();
        self.read();
        let is_resting =
            || self.collector.as_ref().is_none_or(|collector| collector.is_resting(self.clocks.now()));
        if self.gathering.is_over(Instant::now(), self.readings.len(), is_resting) {
            self.record().await;
        }
        if let (Some(collector), Some(loaded)) = (&self.collector, &self.loaded) {
            let mut counts = self.before;
            counts += collector.counts();
            let levels = [loaded.plan.targets.len(), collector.addresses().len()];
            let is_fenced = self.fence.is_some();
            let numbers = |stored: Recorded| {
                let mut numbers = numbers(counts, stored, levels);
                numbers.extend(is_fenced.then(|| stored.lead_lost_count()));
                numbers
            };
            self.own.publish(&self.context, numbers).await;
        }
        self.tell();
    }

    /// Begins what is due: programs and requests.
    fn ask(&mut self) {
        let Some(collector) = &mut self.collector else { return };
        let now = self.clocks.now();
        if collector.next_tick(now) <= now.mono {
            collector.tick(now);
        }
        collector.send_all(|agent, to, datagram| self.peers.send(agent, to, datagram));
        let commands = collector.take_commands();
        let interval = self.loaded.as_ref().map_or(1, |loaded| loaded.plan.interval.step().max(1));
        let limit = self.settings.program_timeout.min(Duration::from_secs(interval));
        for (term, command) in commands {
            let (places, cancelled) = (Arc::clone(&self.places), Arc::clone(&self.cancelled));
            self.running.spawn(async move {
                let _place = places.acquire().await;
                let run = move || programs::run(&command, limit, &cancelled);
                let output = tokio::task::spawn_blocking(run).await;
                (term, output.unwrap_or_else(|_| Err("could not be run".to_string())))
            });
        }
    }

    /// Takes the readings of the targets whose terms have all been answered.
    fn read(&mut self) {
        let Some(mut collector) = self.collector.take() else { return };
        for target in collector.take_complete() {
            collector.push_reading(self.clocks.now(), target, &mut self.readings);
            self.read.push(target);
        }
        notices::log(NAME, collector.take_notices());
        self.collector = Some(collector);
    }

    /// Hands the readings to the store.
    async fn record(&mut self) {
        let Some(loaded) = self.loaded.take() else { return };
        let recorded = self.recorder.record(&loaded.plan.inventory, &self.readings).await;
        self.own.add(recorded);
        self.rates.take(&loaded.plan, &self.readings);
        self.readings.clear();
        self.check_thresholds(&loaded);
        self.loaded = Some(loaded);
    }

    /// Compares what is now stored of the targets that were read with their thresholds.
    fn check_thresholds(&mut self, loaded: &LoadedConfig) {
        let now = self.context.now();
        let directory = ThreshDir::of(&loaded.config, &self.settings.config);
        for target in std::mem::take(&mut self.read) {
            let target = &loaded.plan.targets[target];
            let Some(thresholds) = &target.thresholds else { continue };
            let rates = self.rates.of(&loaded.plan, target, now);
            let before: Broken = thresholds.keys().filter(|key| self.broken.contains(key)).collect();
            for action in thresholds.decide(&rates, &mut self.broken) {
                tracing::info!(target_name = target.name, ?action, "a threshold");
                actions::act(action, loaded, &self.settings, &self.cancelled);
            }
            let remember = |directory: &ThreshDir| directory.remember(thresholds, &before, &self.broken);
            if let Some(Err(error)) = directory.as_ref().map(remember) {
                self.complaints
                    .raise("ThreshDir", format!("a threshold's state cannot be kept there: {error}"));
            }
        }
    }

    /// Logs what has become wrong or right since the last call.
    fn tell(&mut self) {
        notices::log(NAME, self.complaints.take_notices());
    }
}

/// The collector's own numbers; `levels` are those of targets and agents.
fn numbers(counts: MrtgCounts, stored: Recorded, levels: [usize; 2]) -> Vec<Statistic> {
    let mut numbers = counts.statistics();
    numbers.extend([
        Statistic::count("stored", "Readings that the store took", stored.accepted),
        Statistic::count("refused", "Readings that the store refused", stored.refused),
        Statistic::level("targets", "Targets", levels[0] as u64),
        Statistic::level("agents", "Agents", levels[1] as u64),
    ]);
    numbers
}
