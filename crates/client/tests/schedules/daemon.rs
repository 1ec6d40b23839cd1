//! Threads that update through one [`Batches`].

#[path = "../../src/daemon/batch.rs"]
mod batch;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

use crate::connection::{Connection, Fate, Played};
use crate::error::ClientError;
use batch::Batches;

type Result<T = (), E = ClientError> = std::result::Result<T, E>;

/// Fewer than there are threads, so that some connections are closed.
const IDLE_MAX: usize = 2;
const THREADS: usize = 4;
const UPDATES: usize = 3;
/// Two of them fill a frame.
static LARGE: [u8; 100 * 1024] = [b'1'; 100 * 1024];
/// Of all schedules.
static LARGEST_BATCH: AtomicUsize = AtomicUsize::new(0);

/// Runs the threads; half of the updates are refused, and two threads ask for something else now and then.
fn run(mortality: f64, values: &'static [u8]) {
    let played = Arc::new(Played { mortality, ..Played::default() });
    let batches = Arc::new(Batches::default());
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (played, batches) = (Arc::clone(&played), Arc::clone(&batches));
            thread::spawn(move || {
                for number in 0..UPDATES {
                    let kind = if thread_rng().gen_bool(0.5) { "bad" } else { "good" };
                    update(&batches, &played, &format!("{kind}-{thread}-{number}"), values);
                    if thread < 2 {
                        ask(&batches, &played);
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let seen = played.seen.lock().unwrap();
    LARGEST_BATCH.fetch_max(seen.largest_batch, Ordering::Relaxed);
    assert!(seen.open <= IDLE_MAX, "{} connections are kept", seen.open);
    assert_eq!(batches.has_connection(), seen.open > 0);
    assert_eq!((batches.gathered(), seen.order.len()), (0, THREADS * UPDATES));
    for thread in 0..THREADS {
        let of_thread = |name: &&String| name.split('-').nth(1) == Some(&thread.to_string());
        let order: Vec<usize> =
            seen.order.iter().filter(of_thread).map(|name| name[name.len() - 1..].parse().unwrap()).collect();
        assert_eq!(order, [0, 1, 2], "of thread {thread}");
    }
}

/// Each update has the answer to itself.
fn update(batches: &Batches, played: &Arc<Played>, name: &str, values: &[u8]) {
    let result = batches.update(name.as_bytes(), values, || Ok(Connection::open(played)));
    let fate = played.seen.lock().unwrap().fates.get(name).copied();
    match (fate.unwrap_or_else(|| panic!("{name} was never sent")), result) {
        (Fate::Lost, Err(ClientError::Lost)) => {}
        (Fate::Answered, Ok(())) => assert!(name.starts_with("good"), "{name} was refused"),
        (Fate::Answered, Err(ClientError::Refused { text, .. })) => {
            assert_eq!(String::from_utf8_lossy(&text), name, "the refusal of another update");
        }
        (fate, result) => panic!("{name}: {fate:?}, but {result:?}"),
    }
}

fn ask(batches: &Batches, played: &Arc<Played>) {
    let result = batches.exchange(batches.idle(), Connection::ask, || Ok(Connection::open(played)));
    assert!(matches!(result, Ok(()) | Err(ClientError::Lost)), "{result:?}");
}

/// Half of the schedules random, the others with few switches at random places, which find what needs one switch in
/// the wrong place.
fn explore(schedules: usize, run: fn()) {
    shuttle::check_random(run, schedules / 2);
    shuttle::check_pct(run, schedules / 2, 3);
}

/// Broken once each, and seen:
/// - without the `notify_all` in `send`, or with `notify_one` in its place: a deadlock (threads of the answered batch
///   sleep on);
/// - without the `notify_one`: a deadlock (no thread sends what is gathered);
/// - without the second look before `sleep` in `update`: a deadlock;
/// - `sending` cleared before the answers are settled: "the refusal of another update", "Answered, but Err(Lost)";
/// - a ticket taken from `answered` in place of `added`, and answers counted from `added` in `settle`: "was never sent";
/// - without the bound in `give_back`: "3 connections are kept".
#[test]
fn each_update_is_sent_once_in_order_and_gets_its_own_answer() {
    explore(4000, || run(0.0, b"1:2"));
    assert!(LARGEST_BATCH.load(Ordering::Relaxed) > 2, "some go together");
}

/// Broken and seen: a connection that has ended is given back: it "is not used again".
#[test]
fn a_connection_that_ends_fails_its_own_requests_only() {
    explore(4000, || run(0.3, b"1:2"));
}

/// Broken and seen: who waits for room sleeps beside the wrong batch (`batch + 1` in `next`): a deadlock.
#[test]
fn a_full_frame_is_sent_before_more_is_gathered() {
    explore(600, || run(0.0, &LARGE));
}
