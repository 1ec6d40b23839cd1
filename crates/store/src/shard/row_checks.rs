//! Checks of whole RRDs: a hash of each RRD of a range of ids, with all of its rows, as they are at one position of the log.
//!
//! What an RRD *is* is hashed, as a dump would show it: name, definition, head, seasons, and the rows of all archives. Which of them memory
//! has and which a segment, and how segments were merged, does not matter; so copies of a shard find the same at the same position.
//! The worker only copies what memory has, for ranges that are small ([`RANGE_IDS`], [`RANGE_BYTES`]), which holds it up as long as a round of
//! updates; a thread of its own, which lives while there is something to do, reads segments and hashes. What it found is kept for a while.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use rrd::definition::Definition;
use rrd::live::Live;
use xxhash_rust::xxh3::Xxh3;

use crate::catalogue::RrdId;
use crate::engine::StoreError;
use crate::group::Group;
use crate::lock::lock;
use crate::log::catalogue::encode_definition;
use crate::segment::{KeptBlocks, Key};
use crate::segments::SegmentSet;
use crate::shard::read::{CopiedRun, RowMatrix};
use crate::shard::view::View;

/// The most ids of a range.
pub const RANGE_IDS: u32 = 256;
/// No further RRD is taken into a range once so many bytes were copied from memory: about 0.2 ms of a memory's bandwidth.
const RANGE_BYTES: usize = 1 << 20;
/// No further RRD is taken into a range once its rows have so many values: some tenths of a second to read and hash.
const RANGE_VALUES: u64 = 16 << 20;
/// Values that are read at once: what hashing an RRD takes in memory, 8 MiB, however long its archives are.
const WINDOW_VALUES: usize = 1 << 20;
/// Ranges that wait to be hashed. A replica that reads much of a log at once finds more checks in it than it needs; those beyond are left out.
const WAITING_MAX: usize = 4;
/// Ranges whose hashes are kept, about 20 KiB each: who asks for them does so within seconds.
const FOUND_MAX: usize = 64;
/// How nice the thread is: below whatever answers clients, but not so low that a busy machine never ends a comparison.
const NICE: i32 = 10;
/// Stands for an id that no RRD has.
pub const NO_RRD: u64 = 0;

/// What the RRDs of a range of ids are at a position of the log.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RangeHashes {
    /// The first id.
    pub first: RrdId,
    /// The hash of the RRD of each id; [`NO_RRD`] if there is none. Of one that could not be read, it says nothing.
    pub hashes: Vec<u64>,
    /// Their names.
    pub names: Vec<Box<[u8]>>,
    /// Rows that were hashed.
    pub rows: u64,
    /// What could not be read, and why; and whether that is damage, which will not pass.
    pub unreadable: Vec<(RrdId, String, bool)>,
}

/// What has become of a check.
#[derive(Clone, Debug)]
pub enum RowCheckState {
    /// It has not come to this copy, or is not kept.
    None,
    /// It will be there soon.
    Waits,
    /// Here it is.
    Done(Arc<RangeHashes>),
}

/// What memory has of an RRD.
struct RrdCopy {
    name: Box<[u8]>,
    group_index: u32,
    definition: Arc<Definition>,
    group: Arc<Group>,
    live: Live,
    /// When it was updated last, in units of its definition.
    last_update: i64,
    /// Of all archives.
    runs: Vec<(u16, CopiedRun)>,
}

/// A range as it was at one position.
pub struct RangeCopy {
    number: u64,
    first: RrdId,
    rrds: Vec<Option<RrdCopy>>,
    segments: Arc<SegmentSet>,
}

impl RangeCopy {
    /// Copies what memory has of the RRDs of these ids; of fewer, without `whole`, when they are long. At least one is taken, if there is one.
    pub fn take(view: &View<'_>, number: u64, ids: Range<RrdId>, whole: bool) -> RangeCopy {
        let mut copy = RangeCopy {
            number,
            first: ids.start,
            rrds: Vec::with_capacity(ids.len().min(RANGE_IDS as usize)),
            segments: Arc::clone(view.segments),
        };
        let (mut bytes, mut values) = (0, 0);
        for id in ids {
            if !whole && (bytes >= RANGE_BYTES || values >= RANGE_VALUES) {
                break;
            }
            let rrd = RrdCopy::take(view, id);
            if let Some(rrd) = &rrd {
                bytes += rrd.bytes();
                values += rrd.row_count() * rrd.definition.ds.len() as u64;
            }
            copy.rrds.push(rrd);
        }
        copy
    }

    /// How many ids it has.
    pub fn count(&self) -> u32 {
        self.rrds.len() as u32
    }

    /// Reads what memory had not, and hashes; `None` when it is to stop.
    fn hash(self, stopping: &AtomicBool) -> Option<RangeHashes> {
        // Blocks of segments have the rows of one archive and several RRDs.
        let _blocks = KeptBlocks::begin();
        let mut hashers: Vec<Xxh3> = self.rrds.iter().map(|rrd| Self::begin(rrd.as_ref())).collect();
        let mut found = RangeHashes { first: self.first, ..RangeHashes::default() };
        let archives = self.rrds.iter().flatten().map(|rrd| rrd.definition.rra.len()).max().unwrap_or(0);
        for rra in 0..archives {
            for (index, rrd) in self.rrds.iter().enumerate() {
                if stopping.load(Ordering::Relaxed) {
                    return None;
                }
                let Some(rrd) = rrd.as_ref().filter(|rrd| rra < rrd.definition.rra.len()) else { continue };
                let id = self.first + index as RrdId;
                let hasher = &mut hashers[index];
                match rrd.hash_archive(id, rra, &self.segments, hasher) {
                    Ok(()) => found.rows += rrd.definition.rra[rra].row_count,
                    Err(error) => {
                        if found.unreadable.iter().all(|(other, ..)| *other != id) {
                            let is_damage = error.is_damage();
                            found.unreadable.push((id, error.to_string(), is_damage));
                        }
                    }
                }
            }
        }
        let digest = |(rrd, hasher): (&Option<RrdCopy>, Xxh3)| match rrd {
            Some(_) => hasher.digest().max(NO_RRD + 1),
            None => NO_RRD,
        };
        found.hashes = self.rrds.iter().zip(hashers).map(digest).collect();
        found.names =
            self.rrds.into_iter().map(|rrd| rrd.map_or_else(Box::default, |rrd| rrd.name)).collect();
        Some(found)
    }

    /// What of an RRD is no row.
    fn begin(rrd: Option<&RrdCopy>) -> Xxh3 {
        let mut hasher = Xxh3::new();
        if let Some(RrdCopy { name, definition, live, .. }) = rrd {
            let definition = encode_definition(definition);
            for part in [&**name, &definition] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
            live.words.iter().for_each(|word| hasher.update(&word.to_le_bytes()));
            for season in &live.seasons {
                hasher.update(&season.current_row.to_le_bytes());
                season.values.iter().for_each(|value| hasher.update(&value.to_bits().to_le_bytes()));
            }
        }
        hasher
    }
}

impl RrdCopy {
    fn take(view: &View<'_>, id: RrdId) -> Option<RrdCopy> {
        let state = view.state;
        let entry = state.catalogue.get(id)?;
        let definition = Arc::clone(state.catalogue.definition(entry.definition));
        let group = Arc::clone(&state.groups()[entry.group as usize].group);
        let last_update = state.last_update(entry).whole;
        let mut runs = Vec::new();
        for (rra, source) in group.source_of_archive.iter().enumerate() {
            let Some(source) = *source else { continue };
            let rows = rows_of(&definition, rra, last_update);
            CopiedRun::copy(state, entry, (&group, source), rows, &mut |run| runs.push((rra as u16, run)));
        }
        Some(RrdCopy {
            name: state.catalogue.name(id).into(),
            group_index: entry.group,
            live: state.live(id, entry),
            definition,
            group,
            last_update,
            runs,
        })
    }

    fn bytes(&self) -> usize {
        let seasons: usize = self.live.seasons.iter().map(|season| season.values.len() * 8).sum();
        let runs: usize = self.runs.iter().map(|(_, run)| run.bytes()).sum();
        self.name.len() + self.live.words.len() * 8 + seasons + runs
    }

    fn row_count(&self) -> u64 {
        self.definition.rra.iter().map(|rra| rra.row_count).sum()
    }

    /// Hashes the rows of an archive; those of a seasonal one are in the head.
    fn hash_archive(
        &self,
        id: RrdId,
        rra: usize,
        segments: &SegmentSet,
        hasher: &mut Xxh3,
    ) -> Result<(), StoreError> {
        let Some(source) = self.group.source_of_archive[rra] else { return Ok(()) };
        let key = Key { group: self.group_index, source, slot: id };
        let rows = rows_of(&self.definition, rra, self.last_update);
        let ds_count = self.definition.ds.len();
        let window = (WINDOW_VALUES / ds_count.max(1)).max(1) as i64;
        let mut from = rows.start;
        while from < rows.end {
            let to = rows.end.min(from.saturating_add(window));
            let mut matrix = RowMatrix::new(from, (to - from) as usize, from..to, ds_count);
            for (_, run) in self.runs.iter().filter(|(of, _)| usize::from(*of) == rra) {
                matrix.fill_copied(run);
            }
            matrix.fill_segments(segments, key)?;
            hasher.update(bytemuck::cast_slice(matrix.values()));
            from = to;
        }
        Ok(())
    }
}

/// The rows that an archive has.
fn rows_of(definition: &Definition, rra: usize, last_update: i64) -> Range<i64> {
    let newest = definition.newest_row(rra, last_update);
    newest - definition.rra[rra].row_count as i64 + 1..newest + 1
}

#[derive(Default)]
struct Checks {
    waiting: VecDeque<RangeCopy>,
    /// The number of the one that is hashed, while the thread runs.
    hashing: Option<u64>,
    found: VecDeque<(u64, Arc<RangeHashes>)>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Board {
    checks: Mutex<Checks>,
    stopping: AtomicBool,
}

impl Board {
    fn checks(&self) -> MutexGuard<'_, Checks> {
        lock(&self.checks)
    }

    /// The thread: hashes what waits, and ends.
    fn run(&self) {
        loop {
            let copy = {
                let mut checks = self.checks();
                let next = checks.waiting.pop_front();
                checks.hashing = next.as_ref().map(|copy| copy.number);
                next
            };
            let Some(copy) = copy else { return };
            let number = copy.number;
            let Some(found) = copy.hash(&self.stopping) else { return };
            let mut checks = self.checks();
            if checks.found.len() >= FOUND_MAX {
                checks.found.pop_front();
            }
            checks.found.push_back((number, Arc::new(found)));
        }
    }
}

fn be_nice() {
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "RRDs are compared with other nodes' at the usual priority");
    }
}

/// The checks of a shard.
#[derive(Default)]
pub struct RowChecks(Arc<Board>);

impl RowChecks {
    /// Whether another range may wait; if not, it need not be copied.
    pub fn has_room(&self) -> bool {
        self.0.checks().waiting.len() < WAITING_MAX
    }

    /// Has a range hashed.
    pub fn add(&self, copy: RangeCopy) {
        let mut checks = self.0.checks();
        if self.0.stopping.load(Ordering::Relaxed) {
            return;
        }
        checks.waiting.push_back(copy);
        let has_thread = checks.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        if has_thread && checks.hashing.is_some() {
            return;
        }
        checks.hashing = checks.waiting.front().map(|copy| copy.number);
        // The one before has nothing left to do.
        drop(checks.thread.take());
        let board = Arc::clone(&self.0);
        let run = move || {
            be_nice();
            board.run();
        };
        match std::thread::Builder::new().name("row check".into()).spawn(run) {
            Ok(thread) => checks.thread = Some(thread),
            Err(error) => {
                tracing::warn!(%error, "no thread to compare RRDs with other nodes'; they are left out");
                (checks.hashing, checks.waiting) = (None, VecDeque::new());
            }
        }
    }

    /// What has become of the check of a number.
    pub fn state(&self, number: u64) -> RowCheckState {
        let checks = self.0.checks();
        if let Some((_, found)) = checks.found.iter().rev().find(|(of, _)| *of == number) {
            return RowCheckState::Done(Arc::clone(found));
        }
        let waits = checks.hashing == Some(number) || checks.waiting.iter().any(|copy| copy.number == number);
        if waits { RowCheckState::Waits } else { RowCheckState::None }
    }

    /// Ends the thread.
    pub fn stop(&self) {
        self.0.stopping.store(true, Ordering::Relaxed);
        let thread = {
            let mut checks = self.0.checks();
            checks.waiting.clear();
            checks.thread.take()
        };
        if let Some(thread) = thread {
            // It reads only; a bug in it has ended nothing else.
            let _ = thread.join();
        }
    }
}
