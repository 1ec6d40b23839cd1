//! A replicated log in memory, with the faults of real ones: what a failed append stored all the same, messages that were stored twice or after
//! later ones, silence, damaged reads, a log that has forgotten its beginning, and nodes that it cannot be reached from.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use roundel_cluster::log::{LogError, LogReader, ReplicatedLog, Stored};

/// How often something goes wrong, of 1000.
#[derive(Clone, Copy, Default)]
pub struct Faults {
    /// An append is stored, and fails.
    pub stored_but_failed: u64,
    /// An append fails, and is not stored.
    pub failed: u64,
    /// An append fails, and is stored after some later ones.
    pub late: u64,
    /// An append is stored once more, after some later ones.
    pub again: u64,
    /// A read gives a message with a flipped bit; the next read of it is good.
    pub damaged_read: u64,
}

impl Faults {
    /// All of them, often.
    pub const MANY: Faults =
        Faults { stored_but_failed: 40, failed: 40, late: 40, again: 40, damaged_read: 10 };
}

struct State {
    random: u64,
    faults: Faults,
    partitions: Vec<Partition>,
    /// No append and no read is answered until then.
    silent_until: Option<Instant>,
}

#[derive(Default)]
struct Partition {
    first: u64,
    stored: VecDeque<Vec<u8>>,
    /// What is stored once so many more messages are.
    delayed: Vec<(u64, Vec<u8>)>,
}

impl Partition {
    fn end(&self) -> u64 {
        self.first + self.stored.len() as u64
    }

    fn store(&mut self, message: &[u8]) {
        self.stored.push_back(message.to_vec());
        let end = self.end();
        let due: Vec<Vec<u8>> =
            self.delayed.extract_if(.., |(at, _)| *at <= end).map(|(_, message)| message).collect();
        self.stored.extend(due);
    }
}

/// The log.
pub struct SimLog {
    identity: String,
    state: Mutex<State>,
    grown: Condvar,
}

impl SimLog {
    pub fn new(seed: u64, partitions: usize) -> Arc<SimLog> {
        let partitions = (0..partitions).map(|_| Partition::default()).collect();
        let state = State { random: seed.max(1), faults: Faults::default(), partitions, silent_until: None };
        let identity = format!("simulated {seed}");
        Arc::new(SimLog { identity, state: Mutex::new(state), grown: Condvar::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// Answers nothing for a while.
    pub fn be_silent(&self, time: Duration) {
        self.state().silent_until = Some(Instant::now() + time);
    }

    /// Forgets all but the last `kept` messages of a partition.
    pub fn forget(&self, partition: u32, kept: usize) {
        let mut state = self.state();
        let partition = &mut state.partitions[partition as usize];
        while partition.stored.len() > kept {
            partition.stored.pop_front();
            partition.first += 1;
        }
    }

    /// The log as one node has it.
    pub fn node(self: &Arc<Self>) -> Arc<NodeLog> {
        Arc::new(NodeLog { log: Arc::clone(self), is_cut_off: Arc::default(), in_vain: Arc::default() })
    }
}

impl State {
    fn draw(&mut self, below: u64) -> u64 {
        // Xorshift: any sequence will do.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    fn happens(&mut self, of_thousand: u64) -> bool {
        self.draw(1000) < of_thousand
    }

    fn is_silent(&self) -> bool {
        self.silent_until.is_some_and(|until| Instant::now() < until)
    }
}

/// What one node has of the log.
#[derive(Clone)]
pub struct NodeLog {
    log: Arc<SimLog>,
    /// Its readers see it, too.
    is_cut_off: Arc<AtomicBool>,
    /// Reads of its readers that found no message.
    in_vain: Arc<AtomicU64>,
}

impl NodeLog {
    /// Cuts the node off, or no longer.
    pub fn cut_off(&self, is_cut_off: bool) {
        self.is_cut_off.store(is_cut_off, Ordering::Release);
    }

    /// Returns the number of reads that found no message.
    pub fn reads_in_vain(&self) -> u64 {
        self.in_vain.load(Ordering::Relaxed)
    }

    fn check(&self) -> Result<MutexGuard<'_, State>, LogError> {
        let state = self.log.state();
        match self.is_cut_off.load(Ordering::Acquire) || state.is_silent() {
            true => Err(LogError::Unreachable("the network is cut".into())),
            false => Ok(state),
        }
    }
}

fn unreachable() -> LogError {
    LogError::Unreachable("no broker answered".into())
}

impl ReplicatedLog for NodeLog {
    fn partition_count(&self) -> Result<u32, LogError> {
        Ok(self.check()?.partitions.len() as u32)
    }

    fn identity(&self) -> Result<String, LogError> {
        Ok(self.log.identity.clone())
    }

    fn append(&self, partition: u32, message: &[u8]) -> Result<(), LogError> {
        let mut state = self.check()?;
        let faults = state.faults;
        let (late, after) = (state.happens(faults.late), 1 + state.draw(4));
        let again = state.happens(faults.again);
        let [failed, stored_but_failed] =
            [faults.failed, faults.stored_but_failed].map(|of| state.happens(of));
        if failed {
            return Err(unreachable());
        }
        let place = &mut state.partitions[partition as usize];
        let due = place.end() + after;
        if late || again {
            place.delayed.push((due, message.to_vec()));
        }
        if late {
            return Err(unreachable());
        }
        place.store(message);
        self.log.grown.notify_all();
        if stored_but_failed { Err(unreachable()) } else { Ok(()) }
    }

    fn bounds(&self, partition: u32) -> Result<Range<u64>, LogError> {
        let state = self.check()?;
        let partition = &state.partitions[partition as usize];
        Ok(partition.first..partition.end())
    }

    fn reader(&self, partition: u32, from: u64) -> Result<Box<dyn LogReader>, LogError> {
        drop(self.check()?);
        Ok(Box::new(SimReader { node: self.clone(), partition, next: from }))
    }
}

struct SimReader {
    node: NodeLog,
    partition: u32,
    next: u64,
}

impl LogReader for SimReader {
    fn next(&mut self, patience: Duration) -> Result<Option<Stored>, LogError> {
        let until = Instant::now() + patience;
        loop {
            let mut state = match self.node.check() {
                Ok(state) => state,
                Err(error) => {
                    std::thread::sleep(patience.min(Duration::from_millis(5)));
                    return Err(error);
                }
            };
            let damaged_read = state.faults.damaged_read;
            let place = &state.partitions[self.partition as usize];
            if self.next < place.first {
                return Err(LogError::Gone { first: place.first });
            }
            let found = place.stored.get((self.next - place.first) as usize).cloned();
            if let Some(mut bytes) = found {
                let bits = bytes.len() as u64 * 8;
                if state.happens(damaged_read) && bits > 0 {
                    let bit = state.draw(bits);
                    bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
                    return Ok(Some(Stored { offset: self.next, bytes }));
                }
                self.next += 1;
                return Ok(Some(Stored { offset: self.next - 1, bytes }));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.node.in_vain.fetch_add(1, Ordering::Relaxed);
                return Ok(None);
            }
            drop(self.node.log.grown.wait_timeout(state, left.min(Duration::from_millis(5))).unwrap());
        }
    }
}
