//! Polls gmonds, receives gmond's datagrams, and answers on gmetad's ports.

pub mod config;
mod datagrams;
mod ports;

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use collect::complaints::Complaints;
use collect::ganglia::feed::Feed;
use collect::ganglia::gmond::{GmondCounts, GmondOptions};
use collect::ganglia::{GangliaCollector, GangliaOptions, decompress};
use collect::reading::Readings;
use collect::statistics::Statistic;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;

use super::context::CollectorContext;
use super::datagrams::DatagramSocket;
use super::notices;
use super::own::Own;
use super::recorder::{Recorded, Recorder};
use crate::service::stopped;
use crate::tls::TlsOptions;
use crate::tls::port::TlsPort;

/// The collector's name in the log, in `/metrics` and of its own RRD.
const NAME: &str = "ganglia";
/// Seconds for one address to answer: gmetad's.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of an answer, plain: 100,000 hosts of 30 metrics.
const ANSWER_BYTES_MAX: usize = 1 << 30;

/// A checked `[[gmond]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct GmondSettings {
    /// What the log calls it.
    pub name: String,
    /// Hosts and ports that know the same.
    pub addresses: Vec<(String, u16)>,
    /// Time between polls.
    pub step: Duration,
}

/// The checked section `[gmond_listen]`.
#[derive(Clone, Debug, PartialEq)]
pub struct GmondListenSettings {
    /// Hosts and ports.
    pub listen: Vec<(String, u16)>,
    /// The interface on which multicast groups are joined.
    pub interface: Option<String>,
    /// Bytes asked for the kernel's buffer.
    pub buffer_bytes: usize,
    /// Time between readings.
    pub step: Duration,
    /// What the receiver does.
    pub options: GmondOptions,
}

/// All of Ganglia's sections, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct GangliaSettings {
    /// Sources to poll.
    pub sources: Vec<GmondSettings>,
    /// Datagrams to receive.
    pub listen: Option<GmondListenSettings>,
    /// What the collector does.
    pub options: GangliaOptions,
    /// Addresses that answer everything: gmetad's `xml_port`.
    pub xml: Vec<String>,
    /// Addresses that answer queries: gmetad's `interactive_port`.
    pub interactive: Vec<String>,
    /// TLS of both.
    pub tls: Option<TlsOptions>,
}

/// Bound sockets: before privileges are dropped.
#[derive(Debug)]
pub struct GangliaSockets {
    settings: GangliaSettings,
    datagrams: Vec<DatagramSocket>,
    xml: Vec<TcpListener>,
    interactive: Vec<TcpListener>,
    tls: Option<Arc<TlsPort>>,
}

impl GangliaSockets {
    /// Binds them.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn bind(settings: &GangliaSettings) -> Result<Self, String> {
        let mut datagrams = Vec::new();
        if let Some(listen) = &settings.listen {
            for (host, port) in &listen.listen {
                let interface = listen.interface.as_deref();
                datagrams.extend(super::datagrams::bind(host, *port, interface, listen.buffer_bytes)?);
            }
        }
        let bind = |address: &String| {
            let cannot = |error| format!("cannot listen on \"{address}\" for Ganglia's XML: {error}");
            let listener = TcpListener::bind(address.as_str()).map_err(cannot)?;
            listener.set_nonblocking(true).map_err(cannot)?;
            Ok(listener)
        };
        let xml = settings.xml.iter().map(bind).collect::<Result<_, String>>()?;
        let interactive = settings.interactive.iter().map(bind).collect::<Result<_, String>>()?;
        let tls = settings.tls.as_ref().map(TlsPort::open).transpose();
        let tls = tls.map_err(|error| format!("[gmetad] tls: {error}"))?;
        Ok(GangliaSockets { settings: settings.clone(), datagrams, xml, interactive, tls })
    }

    /// Polls, receives and answers until `stop` becomes true.
    ///
    /// # Errors
    /// When a socket cannot be used.
    pub async fn run(
        self,
        context: Arc<CollectorContext>,
        mut stop: watch::Receiver<bool>,
    ) -> io::Result<()> {
        let state = Arc::new(Mutex::new(State::new(&context, self.settings.options.clone())));
        let mut tasks = JoinSet::new();
        for source in self.settings.sources.clone() {
            let number = state.lock().await.collector.add_source(source.step.as_secs());
            tasks.spawn(poll_always(Arc::clone(&state), Arc::clone(&context), source, number));
        }
        if let Some(listen) = self.settings.listen.clone() {
            let number = state.lock().await.collector.add_source(listen.step.as_secs());
            let receiver = datagrams::Receiver::new(self.datagrams, listen, number);
            let (state, context, stop) = (Arc::clone(&state), Arc::clone(&context), stop.clone());
            tasks.spawn_blocking(move || receiver.run(&state, &context, &stop));
        }
        let xml = self.xml.into_iter().map(|listener| (listener, false));
        for (listener, is_interactive) in xml.chain(self.interactive.into_iter().map(|port| (port, true))) {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let (state, context, tls) = (Arc::clone(&state), Arc::clone(&context), self.tls.clone());
            tasks.spawn(ports::serve(listener, tls, state, context, is_interactive));
        }
        // gmetad sums every half step of its last source.
        let last = self.settings.sources.last().map(|source| source.step);
        let step = last.or(self.settings.listen.map(|listen| listen.step)).unwrap_or_default();
        tasks.spawn(sum_always(Arc::clone(&state), Arc::clone(&context), step / 2));
        tasks.spawn(publish_always(state, context));
        stopped(&mut stop).await;
        // What blocks ends by itself: it sees `stop`, too.
        tasks.abort_all();
        while tasks.join_next().await.is_some() {}
        Ok(())
    }
}

/// What the tasks share.
pub(super) struct State {
    pub(super) collector: GangliaCollector,
    recorder: Recorder,
    complaints: Complaints,
    own: Own,
    /// Of the datagrams.
    received: (GmondCounts, u64),
}

impl State {
    fn new(context: &Arc<CollectorContext>, options: GangliaOptions) -> Self {
        State {
            collector: GangliaCollector::new(options),
            recorder: Recorder::new(Arc::clone(context), NAME),
            complaints: Complaints::default(),
            own: Own::new(context, NAME),
            received: (GmondCounts::default(), 0),
        }
    }

    async fn record(&mut self, readings: &Readings) {
        let recorded = self.recorder.record(self.collector.inventory(), readings).await;
        self.own.add(recorded);
    }

    /// Takes a source's answer.
    async fn read(&mut self, source: usize, now: i64, feed: Feed) {
        let mut readings = Readings::default();
        tokio::task::block_in_place(|| self.collector.read(source, now, feed, &mut readings));
        self.record(&readings).await;
    }

    /// Logs what has become wrong or well again.
    fn report(&mut self) {
        notices::log(NAME, self.complaints.take_notices());
    }
}

/// Polls a source at every step; a late answer makes no later poll later.
async fn poll_always(
    state: Arc<Mutex<State>>,
    context: Arc<CollectorContext>,
    source: GmondSettings,
    number: usize,
) {
    let mut ticks = tokio::time::interval(source.step);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut good = 0;
    loop {
        ticks.tick().await;
        let answer = poll(&source, &mut good).await;
        let mut state = state.lock().await;
        match answer {
            Ok(feed) => {
                state.complaints.resolve(&source.name);
                state.read(number, context.now(), feed).await;
            }
            Err(error) => {
                state.complaints.raise(&source.name, error);
                state.collector.fail(number);
            }
        }
        state.report();
    }
}

/// The answer of the first address that gives one, beginning with the one that did so last.
async fn poll(source: &GmondSettings, good: &mut usize) -> Result<Feed, String> {
    let count = source.addresses.len();
    let mut errors = Vec::new();
    for index in (0..count).map(|nth| (*good + nth) % count) {
        let (host, port) = &source.addresses[index];
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, fetch(host, *port)).await;
        let answer = answer.unwrap_or_else(|_| Err(format!("no answer within {ANSWER_TIMEOUT:?}")));
        let parsed = answer.and_then(|bytes| {
            tokio::task::block_in_place(|| {
                let plain = decompress(bytes, ANSWER_BYTES_MAX)?;
                Feed::parse(&plain).map_err(|error| error.to_string())
            })
        });
        match parsed {
            Ok(feed) => {
                *good = index;
                return Ok(feed);
            }
            Err(error) => errors.push(format!("{host}:{port}: {error}")),
        }
    }
    Err(errors.join("; "))
}

async fn fetch(host: &str, port: u16) -> Result<Vec<u8>, String> {
    let stream = TcpStream::connect((host, port)).await.map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let mut limited = stream.take(ANSWER_BYTES_MAX as u64 + 1);
    match limited.read_to_end(&mut bytes).await {
        Ok(count) if count <= ANSWER_BYTES_MAX => Ok(bytes),
        Ok(_) => Err(format!("the answer is longer than {ANSWER_BYTES_MAX} bytes")),
        Err(error) => Err(error.to_string()),
    }
}

async fn sum_always(state: Arc<Mutex<State>>, context: Arc<CollectorContext>, every: Duration) {
    let mut ticks = tokio::time::interval(every.max(Duration::from_millis(500)));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut last = 0;
    loop {
        ticks.tick().await;
        let now = context.now();
        // Two sums in one second would be refused.
        if now == last {
            continue;
        }
        last = now;
        let mut state = state.lock().await;
        let mut readings = Readings::default();
        state.collector.summarize(now, &mut readings);
        state.record(&readings).await;
    }
}

async fn publish_always(state: Arc<Mutex<State>>, context: Arc<CollectorContext>) {
    loop {
        let due = {
            let State { own, collector, received, .. } = &mut *state.lock().await;
            own.publish(&context, |stored| numbers(collector, *received, stored)).await;
            own.due()
        };
        tokio::time::sleep_until(due.into()).await;
    }
}

/// The collector's own numbers; `received` is what the datagrams have said, and how many the kernel has dropped.
fn numbers(collector: &GangliaCollector, received: (GmondCounts, u64), stored: Recorded) -> Vec<Statistic> {
    let (counts, (gmond, dropped)) = (collector.counts(), received);
    vec![
        Statistic::count("answers", "Answers read", counts.answers),
        Statistic::count("failures", "Polls without an answer", counts.failures),
        Statistic::count("metrics", "Metrics of hosts read", counts.metrics),
        Statistic::count("readings", "Readings made", counts.readings),
        Statistic::count("stored", "Readings that the store took", stored.accepted),
        Statistic::count("refused", "Readings that the store refused", stored.refused),
        Statistic::count("old", "Clusters whose time was not newer", counts.old),
        Statistic::count("not_numbers", "Values of a number's type that are none", counts.not_numbers),
        Statistic::count(
            "over_limit",
            "Readings and hosts beyond a limit",
            counts.over_limit + gmond.over_limit,
        ),
        Statistic::count("packets", "Datagrams received", gmond.packets),
        Statistic::count("values", "Values in datagrams", gmond.values),
        Statistic::count("malformed", "Datagrams that are not gmond's", gmond.malformed),
        Statistic::count("requests", "Requests for metadata sent", gmond.requests),
        Statistic::count("dropped_packets", "Datagrams that the kernel dropped", dropped),
        Statistic::level("hosts", "Hosts of the last answers", counts.hosts),
        Statistic::level("rrds", "RRDs fed", collector.inventory().len() as u64),
    ]
}
