//! Gives memory that clients have freed back to the system.
//!
//! An allocator keeps what a thread has freed for the next allocation of that thread, and only the thread itself can give it
//! back. So once a second, as long as clients free anything and a few rounds longer, each thread does so before it sleeps, and
//! those that sleep already are woken for it. The runtime wakes the thread that fell asleep last, so on a busy machine
//! one may sleep on: the round is then repeated until all threads took part.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::limits::{GIVE_BACK_INTERVAL, GIVE_BACK_MIN, GIVE_BACK_ROUNDS};
use crate::service::{Service, stopped};

/// How a thread gives back what it has freed; an executable that has another allocator than the system's says it.
static GIVE_BACK: OnceLock<fn()> = OnceLock::new();
/// How often all threads were asked to, in the upper half; the lower half counts the threads that did since they last were.
static ROUND: AtomicU64 = AtomicU64::new(0);
const NEXT_ROUND: u64 = 1 << 32;
/// How long a thread is kept busy, so that the others have to do the rest of the work.
const BUSY: Duration = Duration::from_micros(500);

thread_local! {
    /// The last round in which this thread has.
    static DONE: Cell<u64> = const { Cell::new(0) };
}

/// Sets how a thread gives back what it has freed. Only the first call counts.
pub fn give_back_with(give_back: fn()) {
    GIVE_BACK.get_or_init(|| give_back);
}

/// Has the system give memory in small pages. The allocator asks for pages of 2 MB; clearing one that the system has not used for a
/// while takes longer than what an update saves by it: W1 needs a tenth less CPU and a fifth less memory with small ones, and an
/// agent of 10,000 targets takes half as much memory.
pub fn use_small_pages() {
    // A kernel without large pages need not be asked.
    rustix::thread::disable_transparent_huge_pages(true).ok();
}

/// Gives back what this thread has freed.
pub fn give_back() {
    if let Some(give_back) = GIVE_BACK.get() {
        give_back();
    }
}

/// Gives back what this thread has freed, if it was asked to since it last did.
pub fn before_sleep() {
    let round = ROUND.load(Ordering::Relaxed) / NEXT_ROUND;
    if DONE.replace(round) != round {
        give_back();
        let one_more = |now: u64| (now / NEXT_ROUND == round).then_some(now + 1);
        ROUND.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok();
    }
}

/// Begins a round of `threads`, and keeps each busy for a moment.
async fn ask(threads: usize) {
    let round = ROUND.load(Ordering::Relaxed) / NEXT_ROUND;
    ROUND.store((round + 1) * NEXT_ROUND, Ordering::Relaxed);
    let mut tasks = JoinSet::new();
    for _ in 0..threads {
        tasks.spawn(async {
            before_sleep();
            std::thread::sleep(BUSY);
        });
    }
    tasks.join_all().await;
}

/// Which rounds are still to come.
#[derive(Default)]
struct Rounds {
    /// Bytes that clients had freed when this was last set.
    seen: u64,
    /// Rounds that all threads have yet to take part in.
    left: u32,
}

impl Rounds {
    /// Whether another round is needed: clients have freed `released` bytes since the daemon's start, and all threads took part
    /// in the last round, or not.
    fn another(&mut self, released: u64, all_took_part: bool) -> bool {
        if all_took_part {
            self.left = self.left.saturating_sub(1);
        }
        if released - self.seen >= GIVE_BACK_MIN {
            (self.seen, self.left) = (released, GIVE_BACK_ROUNDS);
        }
        self.left > 0
    }
}

/// Asks the `threads` of the runtime to give back what they have freed, whenever clients have freed something, until the
/// daemon stops.
pub async fn run(service: Arc<Service>, threads: usize, mut stop: watch::Receiver<bool>) {
    let mut ticks = interval(GIVE_BACK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut rounds = Rounds::default();
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stop) => return,
            _ = ticks.tick() => {}
        }
        let all_took_part = ROUND.load(Ordering::Relaxed) % NEXT_ROUND >= threads as u64;
        if rounds.another(service.memory.released(), all_took_part) {
            ask(threads).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_go_on_until_all_threads_took_part_often_enough() {
        let mut rounds = Rounds::default();
        assert!(!rounds.another(GIVE_BACK_MIN - 1, true), "too little to wake threads");
        assert!(rounds.another(GIVE_BACK_MIN, false));
        for _ in 0..100 {
            assert!(rounds.another(GIVE_BACK_MIN, false), "a thread sleeps on");
        }
        let counted = (0..100).take_while(|_| rounds.another(GIVE_BACK_MIN, true)).count();
        assert_eq!(counted + 1, GIVE_BACK_ROUNDS as usize);
        assert!(!rounds.another(GIVE_BACK_MIN, false), "nothing is left to give back");
        assert!(rounds.another(2 * GIVE_BACK_MIN, false), "clients freed more");
    }

    #[test]
    fn a_round_counts_each_thread_once() {
        static GIVEN: AtomicU64 = AtomicU64::new(0);
        give_back_with(|| _ = GIVEN.fetch_add(1, Ordering::Relaxed));
        const THREADS: usize = 4;
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(THREADS).on_thread_park(before_sleep).build().unwrap();
        let took_part = || ROUND.load(Ordering::Relaxed) % NEXT_ROUND;
        // One of them is busy with something else.
        let (end, busy) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = std::sync::mpsc::channel();
        let other_work = runtime.spawn(async move {
            begin.send(()).unwrap();
            busy.recv().is_err()
        });
        begun.recv().unwrap();
        for round in 1..=20 {
            runtime.block_on(ask(THREADS));
            assert!((1..THREADS as u64).contains(&took_part()), "{} in round {round}", took_part());
            assert_eq!(ROUND.load(Ordering::Relaxed) / NEXT_ROUND, round);
        }
        drop(end);
        assert!(runtime.block_on(other_work).unwrap());
        // All of them do now and then, if asked often enough.
        testkit::wait_until("a round of all threads", || {
            let is_whole = took_part() == THREADS as u64;
            if !is_whole {
                runtime.block_on(ask(THREADS));
            }
            is_whole
        });
        assert!(GIVEN.load(Ordering::Relaxed) >= 20 + THREADS as u64);
    }
}
