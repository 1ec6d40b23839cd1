//! Reads, by one consumer for all partitions, whose readers each have a queue.
//!
//! A reader says where it wants to read from by taking the partition off the consumer's assignment and putting it on again; librdkafka then throws away what
//! it had fetched before. After each error it does that, too, from the first message that it has not given, so that an error never costs one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rdkafka::admin::AdminClient;
use rdkafka::consumer::base_consumer::PartitionQueue;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{Message, Offset, TopicPartitionList};

use super::errors::Blame;
use super::talk::Talk;
use super::{KafkaOptions, OVERHEAD_BYTES, ask_bounds};
use crate::lock::lock;
use crate::log::{LogError, LogReader, MESSAGE_BYTES_MAX, Stored};

/// The group that librdkafka must have a name for. Nothing joins it, and nothing is committed to it.
const GROUP: &str = "roundel";
/// How long the thread waits for what librdkafka has to say; it also ends within that time.
const POLL: Duration = Duration::from_millis(100);
/// How long a reader waits in one go.
const READ: Duration = Duration::from_millis(250);
/// Time to ask whether brokers answer again.
const ASK: Duration = Duration::from_secs(1);

/// All readers of a process.
pub(super) struct Readers {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    options: KafkaOptions,
    blame: Blame,
    consumer: Arc<BaseConsumer<Talk>>,
    asker: Arc<AdminClient<Talk>>,
    /// Who reads a partition: set when another one has taken its place.
    replaced: Mutex<HashMap<i32, Arc<AtomicBool>>>,
    /// Whether the consumer has heard of the topic.
    knows_topic: AtomicBool,
    ended: AtomicBool,
}

impl Readers {
    pub(super) fn new(
        options: &KafkaOptions,
        blame: &Blame,
        asker: &Arc<AdminClient<Talk>>,
    ) -> Result<Readers, LogError> {
        let mut config = options.client();
        let bytes = (MESSAGE_BYTES_MAX + OVERHEAD_BYTES).to_string();
        for (name, value) in [
            ("group.id", GROUP),
            ("enable.auto.commit", "false"),
            ("enable.auto.offset.store", "false"),
            ("auto.offset.reset", "error"),
            ("check.crcs", "true"),
            // Nothing is written by transactions, so that one that hangs must not stop readers.
            ("isolation.level", "read_uncommitted"),
            // A partition that is added waits for the fetch that runs, of up to this time when there is nothing new.
            ("fetch.wait.max.ms", "100"),
            ("fetch.error.backoff.ms", "100"),
            // A reader that catches up empties its queue in a few milliseconds; by default the next fetch comes after a second.
            ("fetch.queue.backoff.ms", "10"),
            ("fetch.message.max.bytes", &bytes),
            // Per partition: two of the longest messages.
            ("queued.max.messages.kbytes", "8192"),
        ] {
            config.set(name, value);
        }
        let consumer = options
            .finish(config)?
            .create_with_context(Talk::new("reads", blame))
            .map_err(|error| blame.settings(&error))?;
        let shared = Arc::new(Shared {
            options: options.clone(),
            blame: blame.clone(),
            consumer: Arc::new(consumer),
            asker: Arc::clone(asker),
            replaced: Mutex::default(),
            knows_topic: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        });
        let thread = {
            let shared = Arc::clone(&shared);
            let named = std::thread::Builder::new().name("kafka-reads".to_owned());
            named.spawn(move || shared.serve()).map_err(|error| LogError::Refused(error.to_string()))?
        };
        Ok(Readers { shared, thread: Some(thread) })
    }

    pub(super) fn reader(&self, partition: i32, from: u64) -> Result<KafkaReader, LogError> {
        let shared = Arc::clone(&self.shared);
        shared.learn_topic()?;
        let replaced = Arc::new(AtomicBool::new(false));
        let queue = shared.assign(partition, from, &replaced)?;
        Ok(KafkaReader { shared, partition, next: from, queue: Some(queue), replaced, gaps: 0 })
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<i32, Arc<AtomicBool>>> {
        lock(&self.replaced)
    }

    /// librdkafka wants to be polled for what concerns no partition.
    fn serve(&self) {
        let down = &self.consumer.client().context().all_down;
        while !self.ended.load(Ordering::Relaxed) {
            match self.consumer.poll(POLL) {
                // Fetched before its queue was split off; the reader asks for it again.
                Some(Ok(message)) => {
                    tracing::debug!("Kafka's client: offset {} in no queue", message.offset())
                }
                Some(Err(error)) => tracing::debug!("Kafka's client (reads): {error}"),
                None => {}
            }
            if down.load(Ordering::Relaxed)
                && self.consumer.fetch_metadata(Some(&self.options.topic), ASK).is_ok()
            {
                down.store(false, Ordering::Relaxed);
            }
        }
    }

    /// The consumer has queues only for partitions that it knows.
    fn learn_topic(&self) -> Result<(), LogError> {
        if !self.knows_topic.load(Ordering::Relaxed) {
            let (topic, patience) = (self.options.topic.as_str(), self.options.request_timeout);
            let known = self.consumer.fetch_metadata(Some(topic), patience);
            known.map_err(|error| self.blame.question("read", &error))?;
            self.knows_topic.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn only(&self, partition: i32, offset: Offset) -> Result<TopicPartitionList, LogError> {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.options.topic, partition, offset)
            .map_err(|error| self.blame.error("read", &error))?;
        Ok(list)
    }

    /// Puts a reader in the place of the one that reads a partition, or puts the same one elsewhere.
    fn assign(
        &self,
        partition: i32,
        from: u64,
        reader: &Arc<AtomicBool>,
    ) -> Result<PartitionQueue<Talk>, LogError> {
        let offset = i64::try_from(from).map_err(|_| self.blame.beyond_the_end(partition, 0, from))?;
        let mut replaced = self.lock();
        if let Some(other) = replaced.remove(&partition) {
            if !Arc::ptr_eq(&other, reader) {
                other.store(true, Ordering::Relaxed);
            }
            self.consumer
                .incremental_unassign(&self.only(partition, Offset::Invalid)?)
                .map_err(|error| self.blame.error("read", &error))?;
        }
        // Before the assignment, so that nothing goes to the queue of all partitions.
        let queue = self
            .consumer
            .split_partition_queue(&self.options.topic, partition)
            .ok_or_else(|| self.blame.no_partition(partition as u32, 0))?;
        self.consumer
            .incremental_assign(&self.only(partition, Offset::Offset(offset))?)
            .map_err(|error| self.blame.error("read", &error))?;
        replaced.insert(partition, Arc::clone(reader));
        Ok(queue)
    }

    fn leave(&self, partition: i32, reader: &Arc<AtomicBool>) {
        let mut replaced = self.lock();
        if replaced.get(&partition).is_some_and(|current| Arc::ptr_eq(current, reader)) {
            replaced.remove(&partition);
            if let Ok(list) = self.only(partition, Offset::Invalid) {
                let _ = self.consumer.incremental_unassign(&list);
            }
        }
    }
}

/// Reads one partition.
pub(super) struct KafkaReader {
    shared: Arc<Shared>,
    partition: i32,
    /// The offset of the next message.
    next: u64,
    /// None after an error, until the next try.
    queue: Option<PartitionQueue<Talk>>,
    replaced: Arc<AtomicBool>,
    /// How often in a row a message was missing.
    gaps: u32,
}

impl Drop for KafkaReader {
    fn drop(&mut self) {
        self.shared.leave(self.partition, &self.replaced);
    }
}

impl LogReader for KafkaReader {
    fn next(&mut self, patience: Duration) -> Result<Option<Stored>, LogError> {
        let end = Instant::now() + patience;
        loop {
            if self.replaced.load(Ordering::Relaxed) {
                return Err(self.shared.blame.replaced(self.partition));
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.poll(left.min(READ))? {
                Some(Ok((offset, _))) if offset < self.next => {}
                Some(Ok((offset, bytes))) if offset == self.next => {
                    (self.next, self.gaps) = (offset + 1, 0);
                    return Ok(Some(Stored { offset, bytes }));
                }
                Some(Ok((offset, _))) => self.missed(offset)?,
                Some(Err(error)) => return Err(self.failed(&error)),
                None if left.is_zero() => return self.nothing(),
                None => {}
            }
        }
    }
}

impl KafkaReader {
    /// What comes next in the queue: offset and bytes, or an error.
    #[expect(
        clippy::type_complexity,
        reason = "an answer of librdkafka, within the answer of whether it could be asked"
    )]
    fn poll(&mut self, patience: Duration) -> Result<Option<Result<(u64, Vec<u8>), KafkaError>>, LogError> {
        if self.queue.is_none() {
            self.queue = Some(self.shared.assign(self.partition, self.next, &self.replaced)?);
        }
        let queue = self.queue.as_ref().expect("it was made just now");
        Ok(queue.poll(patience).map(|found| {
            found.map(|message| {
                (message.offset().max(0) as u64, message.payload().unwrap_or_default().to_vec())
            })
        }))
    }

    fn nothing(&self) -> Result<Option<Stored>, LogError> {
        match self.shared.consumer.client().context().all_down.load(Ordering::Relaxed) {
            true => Err(self.shared.blame.no_answer("read")),
            false => Ok(None),
        }
    }

    /// A message came too early: it is fetched again from the missing one on. What is missing twice is missing.
    fn missed(&mut self, offset: u64) -> Result<(), LogError> {
        self.queue = None;
        self.gaps += 1;
        let first = self.bounds()?.start;
        if first > self.next {
            return Err(LogError::Gone { first });
        }
        match self.gaps {
            1 => Ok(()),
            _ => Err(self.shared.blame.gap(self.partition, self.next, offset)),
        }
    }

    fn bounds(&self) -> Result<std::ops::Range<u64>, LogError> {
        ask_bounds(&self.shared.asker, &self.shared.options, &self.shared.blame, self.partition)
    }

    fn failed(&mut self, error: &KafkaError) -> LogError {
        self.queue = None;
        let out_of_range = [
            RDKafkaErrorCode::AutoOffsetReset,
            RDKafkaErrorCode::OffsetOutOfRange,
            RDKafkaErrorCode::LogTruncation,
            RDKafkaErrorCode::NoOffset,
        ];
        if !error.rdkafka_error_code().is_some_and(|code| out_of_range.contains(&code)) {
            return self.shared.blame.error("read", error);
        }
        match self.bounds() {
            Err(error) => error,
            Ok(bounds) if self.next < bounds.start => LogError::Gone { first: bounds.start },
            Ok(bounds) if self.next > bounds.end => {
                self.shared.blame.beyond_the_end(self.partition, bounds.end, self.next)
            }
            // A broker that had fallen back said so; the next try asks another one.
            Ok(_) => self.shared.blame.error("read", error),
        }
    }
}
