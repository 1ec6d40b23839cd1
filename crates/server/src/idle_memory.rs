//! Gives memory that clients have freed back to the system.
//!
//! An allocator keeps what a thread has freed for the next allocation of that thread, and only the thread itself can give it
//! back. So once a second, as long as clients free anything and a little longer, each thread does so before it sleeps, and
//! those that sleep already are woken for it.

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
/// How often all threads were asked to.
static ROUND: AtomicU64 = AtomicU64::new(0);
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
    let round = ROUND.load(Ordering::Relaxed);
    if DONE.replace(round) != round {
        give_back();
    }
}

/// Asks the `threads` of the runtime to give back what they have freed, whenever clients have freed something, until the
/// daemon stops.
pub async fn run(service: Arc<Service>, threads: usize, mut stop: watch::Receiver<bool>) {
    let mut ticks = interval(GIVE_BACK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut seen, mut rounds) = (0, 0);
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stop) => return,
            _ = ticks.tick() => {}
        }
        let released = service.memory.released();
        if released - seen >= GIVE_BACK_MIN {
            (seen, rounds) = (released, GIVE_BACK_ROUNDS);
        } else if rounds > 0 {
            // The allocator gives 4 MB back when all that it has allocated from them is free, and a buffer takes 256 kB of them. After
            // 3,000 half frames, the buffers that were kept held 30 MB.
            service.buffers.clear();
        }
        let Some(left) = u32::checked_sub(rounds, 1) else { continue };
        rounds = left;
        ROUND.fetch_add(1, Ordering::Relaxed);
        let mut tasks = JoinSet::new();
        for _ in 0..threads {
            tasks.spawn(async {
                before_sleep();
                std::thread::sleep(BUSY);
            });
        }
        tasks.join_all().await;
    }
}
