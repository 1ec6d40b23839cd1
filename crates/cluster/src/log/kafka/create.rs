//! Makes a topic with the settings that the log needs.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, TopicReplication};
use rdkafka::error::RDKafkaErrorCode;

use super::errors::Blame;
use super::talk::Talk;
use super::{ASK_AGAIN, KafkaOptions, OVERHEAD_BYTES, ask_bounds, asker};
use crate::log::{LogError, MESSAGE_BYTES_MAX};

/// What a topic is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewTopic {
    /// Its partitions, whose number stays.
    pub partitions: u32,
    /// On how many brokers each message is stored. From three on, one of them may be missing without that appends stop.
    pub replication: u32,
    /// How long messages are kept, at least.
    pub retention: Duration,
}

/// Makes the topic, and waits until each of its partitions has a leader.
///
/// # Errors
/// [`LogError::Refused`] when it exists, or there are fewer brokers than copies.
pub fn create_topic(options: &KafkaOptions, new: NewTopic) -> Result<(), LogError> {
    let blame = Blame::new(options)?;
    let asker = asker(options, &blame)?;
    // With fewer than three copies, two of which must be there, no broker could be missing.
    let in_sync = if new.replication >= 3 { "2" } else { "1" };
    let retention = new.retention.as_millis().to_string();
    let bytes = (MESSAGE_BYTES_MAX + OVERHEAD_BYTES).to_string();
    let replication = TopicReplication::Fixed(new.replication as i32);
    let topic = rdkafka::admin::NewTopic::new(&options.topic, new.partitions as i32, replication)
        .set("cleanup.policy", "delete")
        .set("retention.ms", &retention)
        .set("retention.bytes", "-1")
        .set("min.insync.replicas", in_sync)
        .set("unclean.leader.election.enable", "false")
        .set("max.message.bytes", &bytes)
        .set("compression.type", "producer")
        // What is old is decided by the brokers' clocks, not by that of who wrote it.
        .set("message.timestamp.type", "LogAppendTime");
    let timeout = Some(options.request_timeout);
    let admin = AdminOptions::new().operation_timeout(timeout).request_timeout(timeout);
    let results =
        block_on(asker.create_topics([&topic], &admin)).map_err(|error| blame.question("make", &error))?;
    for result in results {
        match result {
            Ok(_) => {}
            Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {
                return Err(LogError::Refused(format!("the topic \"{}\" exists", options.topic)));
            }
            Err((_, code)) => return Err(blame.code("make", code)),
        }
    }
    wait_for_leaders(&asker, options, &blame, new.partitions)
}

/// A broker that was not asked may not know the topic for a moment.
fn wait_for_leaders(
    asker: &AdminClient<Talk>,
    options: &KafkaOptions,
    blame: &Blame,
    partitions: u32,
) -> Result<(), LogError> {
    let end = Instant::now() + options.request_timeout;
    for partition in 0..partitions as i32 {
        while let Err(error) = ask_bounds(asker, options, blame, partition) {
            if Instant::now() >= end {
                return Err(error);
            }
            thread::sleep(ASK_AGAIN);
        }
    }
    Ok(())
}

/// Waits for one of librdkafka's answers, which a thread of its own brings.
fn block_on<T>(answer: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut answer = pin!(answer);
    loop {
        match answer.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}
