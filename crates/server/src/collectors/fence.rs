//! What a poller of a cluster's node polls and writes: nodes may have the same devices in their configuration, and each of these is polled by
//! the node that leads the partition of its RRDs, under an epoch of the replicated log (`cluster::leads`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cluster::key::directory_of;
pub use cluster::leads::Epochs;
use cluster::leads::{Leads, Way};
use cluster::node::Node;
use store::engine::{CreateRequest, Engine, Reply, StoreError, UpdateBatch, UpdateFailure};
use store::name::RrdName;
use tokio::sync::oneshot;

/// How often it is looked who leads.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Why a reading is not written: another node polls it.
const ELSEWHERE: &str = "another node polls this";
/// Why it is not written: it was asked under a lead that is over.
const LOST: &str = "another node has begun to poll this";

/// The leads of this node as one poller knows them, and the way of its readings.
pub struct Fence {
    leads: Leads,
    /// All nodes as one store.
    engine: Arc<dyn Engine>,
    /// RRDs about what is polled, in other directories than what is polled: with the directory of that, by whose lead they are written.
    beside: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
    looked: Mutex<Option<Instant>>,
}

/// The way of one reading.
enum Place {
    Here(usize, Arc<dyn Engine>),
    Beside,
    Not(StoreError),
}

/// The lines of a batch that one store takes.
struct StoreShare {
    engine: Arc<dyn Engine>,
    batch: UpdateBatch,
    /// Their places in the whole batch.
    numbers: Vec<u32>,
}

/// Whether a failure says that another node polls this, so that nothing is lost.
pub fn is_elsewhere(error: &StoreError) -> bool {
    matches!(error, StoreError::NotPrimary(why) if *why == ELSEWHERE)
}

/// Whether a failure says that the lead was lost before the log took it.
pub fn is_lost(error: &StoreError) -> bool {
    matches!(error, StoreError::NotPrimary(_) | StoreError::NotReplicated(_) | StoreError::Stopping)
}

impl Fence {
    /// For a further poller of `node`.
    pub fn of_node(node: Arc<Node>, engine: Arc<dyn Engine>) -> Fence {
        Fence::new(Leads::new(node), engine)
    }

    /// For a poller of a node.
    pub fn new(leads: Leads, engine: Arc<dyn Engine>) -> Fence {
        Fence { leads, engine, beside: Mutex::default(), looked: Mutex::default() }
    }

    /// What this node leads now, if that is something else than the poller knows. It is looked now and then.
    pub fn news(&self) -> Option<Epochs> {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if looked.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return None;
        }
        *looked = Some(Instant::now());
        self.leads.news()
    }

    /// The poller knows these from now on; it has written, or thrown away, what it asked before.
    /// What it knew before is returned.
    pub fn know(&self, epochs: Epochs) -> Epochs {
        self.leads.know(epochs)
    }

    /// Whether this node leads the partition of a directory in the epoch in which it did before, or does not, as before.
    pub fn stays(&self, directory: &[u8], before: &Epochs) -> bool {
        self.leads.stays(directory, before)
    }

    /// Whether this node polls what has its RRDs in a directory.
    pub fn has(&self, directory: &[u8]) -> bool {
        self.leads.has(directory)
    }

    /// Whether this node polls what feeds the RRD of a name.
    pub fn has_name(&self, name: &[u8]) -> bool {
        self.has(directory_of(name))
    }

    /// The RRD of this name is written by who polls what is in that directory.
    pub fn put_beside(&self, name: Vec<u8>, directory: Vec<u8>) {
        self.beside.lock().unwrap_or_else(PoisonError::into_inner).insert(name, directory);
    }

    fn place(&self, name: &[u8]) -> Place {
        let beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        let directory = beside.as_deref().unwrap_or(directory_of(name));
        match self.leads.way(directory) {
            Way::Here(_) if beside.is_some() => Place::Beside,
            Way::Here(engine) => Place::Here(self.leads.partition(directory), engine),
            Way::Elsewhere => Place::Not(StoreError::NotPrimary(ELSEWHERE)),
            Way::Lost => Place::Not(StoreError::NotPrimary(LOST)),
        }
    }

    /// Creates an RRD where it is written.
    pub fn create(&self, name: RrdName, request: CreateRequest) -> oneshot::Receiver<Result<(), StoreError>> {
        let (sender, receiver) = oneshot::channel();
        let reply: Reply<Result<(), StoreError>> = Box::new(move |result| drop(sender.send(result)));
        match self.place(name.as_bytes()) {
            Place::Here(_, engine) => engine.create(name, request, reply),
            Place::Beside => self.engine.create(name, request, reply),
            Place::Not(error) => reply(Err(error)),
        }
        receiver
    }

    /// Writes what this node polls: first what its replicas lead, and then, as far as they still do, what is beside it.
    pub async fn update(&self, batch: &UpdateBatch) -> Vec<UpdateFailure> {
        let is_beside = |index: usize| {
            let beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
            beside.contains_key(batch.name(&batch.lines[index]))
        };
        let (beside, polled): (Vec<usize>, Vec<usize>) =
            (0..batch.lines.len()).partition(|&index| is_beside(index));
        let mut failures = self.update_those(batch, &polled).await;
        failures.extend(self.update_those(batch, &beside).await);
        failures.sort_by_key(|failure| failure.line);
        failures
    }

    async fn update_those(&self, batch: &UpdateBatch, lines: &[usize]) -> Vec<UpdateFailure> {
        let mut failures = Vec::new();
        let mut parts: HashMap<Option<usize>, StoreShare> = HashMap::new();
        for &index in lines {
            let (line, number) = (&batch.lines[index], index as u32);
            let (key, engine) = match self.place(batch.name(line)) {
                Place::Here(partition, engine) => (Some(partition), engine),
                Place::Beside => (None, Arc::clone(&self.engine)),
                Place::Not(error) => {
                    failures.push(UpdateFailure { line: number, accepted: 0, error });
                    continue;
                }
            };
            let share = parts.entry(key).or_insert_with(|| StoreShare {
                engine: Arc::clone(&engine),
                batch: UpdateBatch::default(),
                numbers: Vec::new(),
            });
            // Of a store that was opened again, the later one: the earlier takes nothing any more.
            share.engine = engine;
            share.batch.push_copy(batch, line);
            share.numbers.push(number);
        }
        let mut waiting = Vec::new();
        for StoreShare { engine, batch, numbers } in parts.into_values() {
            let (sender, receiver) = oneshot::channel();
            engine.update(batch, Box::new(move |failures| drop(sender.send(failures))));
            waiting.push((receiver, numbers));
        }
        for (receiver, numbers) in waiting {
            match receiver.await {
                Ok(failed) => failures.extend(
                    failed
                        .into_iter()
                        .map(|failure| UpdateFailure { line: numbers[failure.line as usize], ..failure }),
                ),
                Err(_) => failures.extend(numbers.into_iter().map(|line| UpdateFailure {
                    line,
                    accepted: 0,
                    error: StoreError::Stopping,
                })),
            }
        }
        failures
    }
}

#[cfg(test)]
mod tests;
