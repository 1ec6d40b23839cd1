//! The log of production with real brokers, which are killed, stopped and started again.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "kafka/secured.rs"]
mod secured;

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use roundel_cluster::log::kafka::{KafkaLog, KafkaOptions, NewTopic, create_topic};
use roundel_cluster::log::{LogError, LogReader, MESSAGE_BYTES_MAX, ReplicatedLog, Stored};
use testkit::Kafka;

/// Long enough for any machine; what is waited for ends the wait.
const PATIENCE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

/// One cluster for all, because three brokers need more time to start than the tests.
#[test]
fn a_topic_is_a_replicated_log() {
    let Some(mut kafka) = Kafka::start(3, &[]) else { return };
    let mut step = |name: &str, run: fn(&mut Kafka)| {
        let begun = Instant::now();
        run(&mut kafka);
        println!("{name}: {:.1} s", begun.elapsed().as_secs_f64());
    };
    step("made", a_topic_must_be_made);
    step("order", messages_are_read_in_order_from_anywhere);
    step("gone", what_is_not_kept_any_more_is_said);
    step("retention", retention_is_found_out_while_reading);
    step("long", the_longest_message_fits);
    step("killed", nothing_is_missed_while_brokers_die);
    step("down", no_broker_at_all_is_an_error_that_passes);
}

fn options(kafka: &Kafka, topic: &str) -> KafkaOptions {
    KafkaOptions::new(kafka.addresses(), topic)
}

fn make(kafka: &Kafka, topic: &str, partitions: u32, retention: Duration) -> KafkaLog {
    let options = options(kafka, topic);
    create_topic(&options, NewTopic { partitions, replication: 3, retention }).unwrap();
    KafkaLog::new(options).unwrap()
}

/// The next message, whatever errors that pass come before.
fn next(reader: &mut dyn LogReader) -> Stored {
    let begun = Instant::now();
    loop {
        match reader.next(Duration::from_secs(1)) {
            Ok(Some(stored)) => return stored,
            Ok(None) | Err(LogError::Unreachable(_)) if begun.elapsed() < PATIENCE => {}
            other => panic!("{other:?}"),
        }
    }
}

/// The error of a reader that is at a place where the log has nothing.
fn next_error(reader: &mut dyn LogReader) -> LogError {
    let begun = Instant::now();
    loop {
        match reader.next(Duration::from_secs(1)) {
            Ok(None) | Err(LogError::Unreachable(_)) if begun.elapsed() < PATIENCE => {}
            Err(error) => return error,
            other => panic!("{other:?}"),
        }
    }
}

fn a_topic_must_be_made(kafka: &mut Kafka) {
    let absent = KafkaLog::new(options(kafka, "made")).unwrap();
    for error in [
        absent.partition_count().unwrap_err(),
        absent.identity().unwrap_err(),
        absent.append(0, b"x").unwrap_err(),
        absent.bounds(0).unwrap_err(),
        absent.reader(0, 0).err().unwrap(),
    ] {
        assert!(matches!(&error, LogError::Refused(why) if why.contains("--create --topic made")), "{error}");
    }
    let log = make(kafka, "made", 3, DAY);
    assert_eq!(absent.partition_count(), Ok(3));
    assert_eq!(log.bounds(2), Ok(0..0));
    let identity = log.identity().unwrap();
    assert_eq!(absent.identity().as_ref(), Ok(&identity));
    assert!(identity.starts_with("kafka ") && identity.ends_with(" made"), "{identity}");
    let again =
        create_topic(&options(kafka, "made"), NewTopic { partitions: 3, replication: 3, retention: DAY });
    assert!(matches!(&again, Err(LogError::Refused(why)) if why.contains("exists")), "{again:?}");
    let copies =
        create_topic(&options(kafka, "four"), NewTopic { partitions: 1, replication: 4, retention: DAY });
    assert!(matches!(copies, Err(LogError::Refused(_))), "{copies:?}");
    let mut other = options(kafka, "made");
    other.properties = vec![("acks".to_owned(), "1".to_owned())];
    assert!(matches!(KafkaLog::new(other), Err(LogError::Refused(why)) if why.contains("acks")));
    let third = KafkaLog::new(options(kafka, "made")).unwrap().append(3, b"x").unwrap_err();
    assert!(matches!(&third, LogError::Refused(why) if why.contains("no number 3")), "{third}");
}

fn messages_are_read_in_order_from_anywhere(kafka: &mut Kafka) {
    let log = make(kafka, "order", 2, DAY);
    let mut early = log.reader(0, 0).unwrap();
    assert_eq!(early.next(Duration::from_millis(50)), Ok(None));
    let text = |partition, number| format!("{partition} {number}").into_bytes();
    for number in 0..20u64 {
        (0..2).for_each(|partition| log.append(partition, &text(partition, number)).unwrap());
    }
    assert_eq!((log.bounds(0), log.bounds(1)), (Ok(0..20), Ok(0..20)));
    let mut other = log.reader(1, 0).unwrap();
    for offset in 0..20 {
        assert_eq!(next(early.as_mut()), Stored { offset, bytes: text(0, offset) });
        assert_eq!(next(other.as_mut()), Stored { offset, bytes: text(1, offset) });
    }
    assert_eq!(early.next(Duration::ZERO), Ok(None));
    // One after the other, forwards and backwards; the last one stays.
    for from in [19, 7, 12, 0] {
        let mut reader = log.reader(0, from).unwrap();
        (from..20.min(from + 5))
            .for_each(|offset| assert_eq!(next(reader.as_mut()), Stored { offset, bytes: text(0, offset) }));
    }
    let replaced = next_error(early.as_mut());
    assert!(matches!(&replaced, LogError::Refused(why) if why.contains("another reader")), "{replaced}");
    // The other partition did not notice, and a second process has readers of its own.
    let second = KafkaLog::new(options(kafka, "order")).unwrap();
    let mut waiting = second.reader(1, 20).unwrap();
    log.append(1, &text(1, 20)).unwrap();
    assert_eq!((next(other.as_mut()).offset, next(waiting.as_mut()).offset), (20, 20));
    let beyond = next_error(log.reader(0, 100).unwrap().as_mut());
    assert!(matches!(&beyond, LogError::Refused(why) if why.contains("ends at offset 20")), "{beyond}");
}

fn what_is_not_kept_any_more_is_said(kafka: &mut Kafka) {
    let log = make(kafka, "gone", 1, DAY);
    (0..10u8).for_each(|number| log.append(0, &[number]).unwrap());
    let mut reader = log.reader(0, 0).unwrap();
    assert_eq!(next(reader.as_mut()).offset, 0);
    delete_before(kafka, "gone", 6);
    let mut late = KafkaLog::new(options(kafka, "gone")).unwrap().reader(0, 0).unwrap();
    assert_eq!(next_error(late.as_mut()), LogError::Gone { first: 6 });
    // Asked again, it says so again.
    assert_eq!(next_error(late.as_mut()), LogError::Gone { first: 6 });
    assert_eq!(log.bounds(0), Ok(6..10));
    // What this one has fetched already it may give; nothing is left out.
    drop(reader);
    let mut reader = log.reader(0, 6).unwrap();
    (6..10)
        .for_each(|offset| assert_eq!(next(reader.as_mut()), Stored { offset, bytes: vec![offset as u8] }));
}

fn delete_before(kafka: &Kafka, topic: &str, offset: i64) {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", kafka.addresses()).create().unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Offset(offset)).unwrap();
    let mut done = pin!(admin.delete_records(&list, &AdminOptions::new()));
    let deleted = testkit::wait_for("records to be deleted", || {
        match done.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => Some(result.unwrap()),
            Poll::Pending => None,
        }
    });
    assert!(deleted.elements().iter().all(|element| element.error().is_ok()), "{deleted:?}");
}

fn retention_is_found_out_while_reading(kafka: &mut Kafka) {
    let log = make(kafka, "retention", 1, Duration::from_millis(500));
    log.append(0, b"first").unwrap();
    let mut reader = log.reader(0, 0).unwrap();
    assert_eq!(next(reader.as_mut()).offset, 0);
    drop(reader);
    (0..5).for_each(|_| log.append(0, &[7; 1000]).unwrap());
    testkit::wait_until("messages to become too old", || log.bounds(0) == Ok(6..6));
    assert_eq!(next_error(log.reader(0, 1).unwrap().as_mut()), LogError::Gone { first: 6 });
    let mut reader = log.reader(0, 6).unwrap();
    log.append(0, b"later").unwrap();
    assert_eq!(next(reader.as_mut()), Stored { offset: 6, bytes: b"later".to_vec() });
}

fn the_longest_message_fits(kafka: &mut Kafka) {
    let log = make(kafka, "long", 1, DAY);
    let message: Vec<u8> = (0..MESSAGE_BYTES_MAX).map(|at| (at * 31 / 7) as u8).collect();
    (0..4).for_each(|_| log.append(0, &message).unwrap());
    log.append(0, b"").unwrap();
    let mut reader = log.reader(0, 0).unwrap();
    (0..4).for_each(|_| assert!(next(reader.as_mut()).bytes == message));
    assert_eq!(next(reader.as_mut()).bytes, b"");
    let mut long = message;
    long.push(0);
    assert!(matches!(log.append(0, &long), Err(LogError::Refused(why)) if why.contains("are the most")));
}

/// Writers of six partitions, each with its readers, while one broker after the other dies. The last one is not started again.
fn nothing_is_missed_while_brokers_die(kafka: &mut Kafka) {
    const PARTITIONS: u32 = 6;
    make(kafka, "killed", PARTITIONS, DAY);
    let mut quick = options(kafka, "killed");
    quick.request_timeout = Duration::from_secs(2);
    let log = KafkaLog::new(quick).unwrap();
    let other = KafkaLog::new(options(kafka, "killed")).unwrap();
    let end = AtomicBool::new(false);
    let acknowledged: Vec<Mutex<Vec<u64>>> = (0..PARTITIONS).map(|_| Mutex::default()).collect();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..PARTITIONS)
            .map(|partition| {
                let (log, end, done) = (&log, &end, &acknowledged[partition as usize]);
                scope.spawn(move || write_until(end, log, partition, done))
            })
            .collect();
        let readers: Vec<_> = (0..PARTITIONS)
            .map(|partition| {
                let (other, end) = (&other, &end);
                scope.spawn(move || read_until(end, other, partition))
            })
            .collect();
        let progress = |more: usize| {
            let before: Vec<usize> = acknowledged.iter().map(|done| done.lock().unwrap().len()).collect();
            testkit::wait_until("appends to all partitions", || {
                acknowledged
                    .iter()
                    .zip(&before)
                    .all(|(done, before)| done.lock().unwrap().len() >= before + more)
            });
        };
        progress(10);
        kafka.kill(1);
        progress(10);
        // Of the other two one is stopped: nothing goes on before the first is back.
        kafka.start_again(1).unwrap();
        kafka.pause(2);
        progress(10);
        kafka.resume(2);
        progress(10);
        kafka.kill(3);
        progress(10);
        end.store(true, Ordering::Relaxed);
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        for (partition, reader) in (0..PARTITIONS).zip(readers) {
            let read = reader.join().unwrap();
            let seen: BTreeSet<u64> = read.iter().map(number).collect();
            let lost =
                acknowledged[partition as usize].lock().unwrap().iter().find(|n| !seen.contains(n)).copied();
            assert_eq!(lost, None, "partition {partition}: an acknowledged message is not in the log");
            // Who reads later sees the same.
            let mut late = log.reader(partition, 0).unwrap();
            read.iter().for_each(|stored| assert_eq!(next(late.as_mut()), *stored));
        }
    });
}

fn number(stored: &Stored) -> u64 {
    u64::from_le_bytes(stored.bytes[..8].try_into().unwrap())
}

fn write_until(end: &AtomicBool, log: &KafkaLog, partition: u32, done: &Mutex<Vec<u64>>) {
    for number in 0u64.. {
        if end.load(Ordering::Relaxed) {
            return;
        }
        let mut message = number.to_le_bytes().to_vec();
        message.resize(500 + number as usize % 3000, partition as u8);
        match log.append(partition, &message) {
            Ok(()) => done.lock().unwrap().push(number),
            // It may be in the log or not; the reader does not ask for it.
            Err(LogError::Unreachable(_)) => {}
            Err(error) => panic!("{error}"),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Reads, checks that no offset is left out, and goes on after the end until all has been read that was appended.
fn read_until(end: &AtomicBool, log: &KafkaLog, partition: u32) -> Vec<Stored> {
    let mut reader = log.reader(partition, 0).unwrap();
    let mut read: Vec<Stored> = Vec::new();
    loop {
        let ended = end.load(Ordering::Relaxed);
        match reader.next(Duration::from_millis(500)) {
            Ok(Some(stored)) => {
                assert_eq!(stored.offset, read.len() as u64, "partition {partition}");
                read.push(stored);
            }
            Ok(None) if ended && log.bounds(partition) == Ok(0..read.len() as u64) => return read,
            Ok(None) | Err(LogError::Unreachable(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Appends to partition 0, and does so again while no broker takes the message in time: they may still be choosing leaders.
fn append(log: &KafkaLog, message: &[u8]) {
    let begun = Instant::now();
    while let Err(error) = log.append(0, message) {
        let passes = matches!(error, LogError::Unreachable(_));
        assert!(passes && begun.elapsed() < PATIENCE, "{error}");
    }
}

fn no_broker_at_all_is_an_error_that_passes(kafka: &mut Kafka) {
    let usual = make(kafka, "down", 1, DAY);
    append(&usual, b"before");
    let mut quick = options(kafka, "down");
    quick.append_timeout = Duration::from_secs(2);
    quick.request_timeout = Duration::from_secs(2);
    let log = Arc::new(KafkaLog::new(quick).unwrap());
    append(&log, b"0");
    let mut reader = testkit::wait_for("a reader", || match log.reader(0, 0) {
        Ok(reader) => Some(reader),
        Err(LogError::Unreachable(_)) => None,
        Err(error) => panic!("{error}"),
    });
    // A message whose acknowledgement was late is there more than once.
    let mut read = Vec::new();
    while read.last().is_none_or(|bytes| bytes != b"0") {
        let stored = next(reader.as_mut());
        assert_eq!(stored.offset, read.len() as u64);
        read.push(stored.bytes);
    }
    read.dedup();
    assert_eq!(read, [b"before".to_vec(), b"0".to_vec()]);
    (1..=3).for_each(|broker| kafka.kill(broker));
    testkit::wait_until(
        "a reader to say that no broker answers",
        || matches!(reader.next(Duration::from_millis(10)), Err(LogError::Unreachable(why)) if why.contains("no broker answers")),
    );
    assert!(matches!(log.append(0, b"lost or not"), Err(LogError::Unreachable(_))));
    assert!(matches!(log.bounds(0), Err(LogError::Unreachable(_))));
    assert!(matches!(log.identity(), Err(LogError::Unreachable(_))));
    (1..=3).for_each(|broker| kafka.start_again(broker).unwrap());
    let begun = Instant::now();
    while log.append(0, b"after").is_err() {
        assert!(begun.elapsed() < PATIENCE);
    }
    let after = testkit::wait_for("the message", || {
        let found = reader.next(Duration::from_secs(1)).ok().flatten()?;
        (found.bytes == b"after").then_some(found)
    });
    assert!(after.offset >= 2, "{after:?}");
}
