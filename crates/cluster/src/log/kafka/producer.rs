//! Appends, by producers that wait until a message is stored on all replicas that are in sync.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use super::errors::Blame;
use super::talk::Talk;
use super::{KafkaOptions, OVERHEAD_BYTES};
use crate::lock::lock;
use crate::log::{LogError, MESSAGE_BYTES_MAX};

/// How long after its time a report may come.
const REPORT_PATIENCE: Duration = Duration::from_secs(5);

/// How long a producer's thread waits for its next event. rdkafka's own thread waits for 100 ms, and each wait ends in a loop of up to 1 ms until the
/// whole millisecond is over: with eight producers that was half of the 9 % of a core that an idle node took.
const EVENT_PATIENCE: Duration = Duration::from_millis(500);

/// A producer with the thread that takes its reports.
struct PolledProducer {
    producer: Arc<BaseProducer<Talk>>,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PolledProducer {
    fn start(producer: BaseProducer<Talk>) -> std::io::Result<PolledProducer> {
        let (producer, stopping) = (Arc::new(producer), Arc::new(AtomicBool::new(false)));
        let (polled, is_stopping) = (Arc::clone(&producer), Arc::clone(&stopping));
        let poll = move || {
            while !is_stopping.load(Ordering::Acquire) {
                // Reports are given on as they come, not at the end.
                polled.poll(EVENT_PATIENCE);
            }
        };
        let thread = std::thread::Builder::new().name("reports".into()).spawn(poll)?;
        Ok(PolledProducer { producer, stopping, thread: Some(thread) })
    }
}

impl Drop for PolledProducer {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The producers of a process.
pub(super) struct Producers {
    options: KafkaOptions,
    blame: Blame,
    config: ClientConfig,
    producers: Vec<Mutex<Arc<PolledProducer>>>,
}

impl Producers {
    pub(super) fn new(options: &KafkaOptions, blame: &Blame) -> Result<Producers, LogError> {
        let mut config = options.client();
        let timeout = options.append_timeout.as_millis().max(10).to_string();
        let request = options.request_timeout.as_millis().max(10).to_string();
        let bytes = (MESSAGE_BYTES_MAX + OVERHEAD_BYTES).to_string();
        for (name, value) in [
            ("acks", "all"),
            // Fewer messages are stored twice. Those that are all the same (number 4953 of librdkafka's known defects), `message::Accepted` leaves out.
            ("enable.idempotence", "true"),
            ("max.in.flight.requests.per.connection", "1"),
            ("message.timeout.ms", timeout.as_str()),
            ("request.timeout.ms", &request),
            ("message.max.bytes", &bytes),
            // Who appends waits for it, and gathers what comes meanwhile itself.
            ("linger.ms", "0"),
            // A tenth to a fifth less to be sent, stored and copied by the brokers (`bench cluster`), who leave it as it is.
            ("compression.codec", "zstd"),
        ] {
            config.set(name, value);
        }
        let config = options.finish(config)?;
        let make = || make(&config, blame).map(Mutex::new);
        let producers = (0..options.producers.max(1)).map(|_| make()).collect::<Result<_, _>>()?;
        Ok(Producers { options: options.clone(), blame: blame.clone(), config, producers })
    }

    /// Appends a message and waits for the report.
    pub(super) fn append(&self, partition: i32, message: &[u8]) -> Result<(), LogError> {
        // Always the same one: two could exchange the order of messages.
        let slot = &self.producers[partition as usize % self.producers.len()];
        let producer = lock(slot).clone();
        let (waiting, report) = sync_channel(1);
        let record = BaseRecord::<(), [u8], _>::with_opaque_to(&self.options.topic, Box::new(waiting))
            .partition(partition)
            .payload(message);
        let result = match producer.producer.send(record) {
            Err((error, _)) => Err(error),
            Ok(()) => match report.recv_timeout(self.options.append_timeout + REPORT_PATIENCE) {
                Ok(result) => result,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    Err(KafkaError::MessageProduction(RDKafkaErrorCode::MessageTimedOut))
                }
            },
        };
        result.map_err(|error| {
            self.replace_if_dead(slot, &producer);
            self.blame.error("append to", &error)
        })
    }

    /// An idempotent producer that lost track of what is stored does nothing more. Another one can: of what it repeats, the first counts.
    fn replace_if_dead(&self, slot: &Mutex<Arc<PolledProducer>>, dead: &Arc<PolledProducer>) {
        let Some((code, why)) = dead.producer.client().fatal_error() else { return };
        let mut slot = lock(slot);
        if Arc::ptr_eq(&slot, dead) {
            tracing::warn!("Kafka's client (appends): {code}: {why}; another producer takes its place");
            match make(&self.config, &self.blame) {
                Ok(producer) => *slot = producer,
                Err(error) => tracing::error!("{error}"),
            }
        }
    }
}

impl Drop for Producers {
    fn drop(&mut self) {
        // Each takes up to half a second or more to end.
        std::thread::scope(|scope| {
            for producer in self.producers.drain(..) {
                scope.spawn(move || drop(producer));
            }
        });
    }
}

fn make(config: &ClientConfig, blame: &Blame) -> Result<Arc<PolledProducer>, LogError> {
    let producer =
        config.create_with_context(Talk::new("appends", blame)).map_err(|error| blame.settings(&error))?;
    let started = PolledProducer::start(producer);
    started.map(Arc::new).map_err(|error| LogError::Unreachable(format!("cannot start a thread: {error}")))
}
