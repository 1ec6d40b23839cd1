//! The state of a shard: a deterministic state machine driven by the log, live and during replay.
//!
//! It does no I/O and reads no clock. Every change is validated before anything is modified: a method that
//! returns an error has changed nothing. Rows completed by an update go to the open rows; flushing them is
//! decided elsewhere.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::live::{CdpPrep, Live, Season};
use rrd::reading::{self, Reading};
use rrd::time::Timestamp;
use rrd::update::{RowSink, Scratch, UpdateError, Updater};

use crate::catalogue::{Catalogue, ChainRef, DefinitionIndex, Entry, RrdId};
use crate::engine::StoreError;
use crate::group::{Geometry, Group};
use crate::heads::Heads;
use crate::log::catalogue::encode_definition;
use crate::open_rows::{ChainIndex, OpenRows, SOURCES_MAX};
use crate::streams::Streams;
use rrd::updatev::RowRecorder;
use rrd::updatev::WrittenRow;
use xxhash_rust::xxh3::Xxh3;

/// Updates whose heads are prefetched before the first of them is applied. With a million RRDs every name and
/// head is a cache miss; the misses of sixteen overlap.
pub const RESOLVED_AHEAD: usize = 16;

/// A group with the heads of its RRDs.
#[derive(Debug)]
pub struct GroupState {
    /// What its RRDs have in common.
    pub group: Arc<Group>,
    /// Their heads.
    pub heads: Heads,
}

/// What an RRD shares with others.
#[derive(Clone, Copy, Debug)]
pub struct RrdKind {
    /// Its definition in the catalogue.
    pub definition: DefinitionIndex,
    /// The index of its group.
    pub group: u32,
}

/// A shard's whole state in memory.
#[derive(Debug)]
pub struct State {
    /// Names, definitions and locations.
    pub catalogue: Catalogue,
    /// How far streams have been applied whose home is this shard.
    pub streams: Streams,
    groups: Vec<GroupState>,
    group_of: HashMap<Geometry, u32>,
    seasons: HashMap<RrdId, Vec<Season>>,
    /// Bytes of the groups with their heads, and of the seasons.
    group_bytes: usize,
    season_bytes: usize,
    open: OpenRows,
    /// Counts arenas: the generation of the open one. Starts at 1, because 0 means "none" in [`ChainRef`].
    generation: u32,
    frozen: Option<Arc<OpenRows>>,
    scratch: Scratch,
    /// Reused memory for the texts of a reading; empty between updates.
    texts: Vec<&'static [u8]>,
}

/// What became of a word that was applied.
#[derive(Clone, Copy, Debug)]
pub struct Applied<'w> {
    /// The time that the log records, in seconds.
    pub time: Timestamp,
    /// The text that the log records: everything after the time's colon.
    pub values: &'w [u8],
    /// The arguments after it.
    pub rest: Option<&'w [u8]>,
}

/// Bytes of a group, and of an archive in one: geometry, shape, sources and tables.
const GROUP_BYTES: usize = 512;
const ARCHIVE_BYTES: usize = 192;

fn bytes_of(seasons: &[Season]) -> usize {
    seasons.iter().map(|season| size_of::<Season>() + 8 * season.values.len()).sum()
}

/// Sources whose texts need no memory but the stack's.
const TEXTS_INLINE: usize = 4;

/// Reuses an allocation for texts of another lifetime.
fn recycle<'a>(mut texts: Vec<&[u8]>) -> Vec<&'a [u8]> {
    texts.clear();
    texts.into_iter().map(|_| -> &'a [u8] { &[] }).collect()
}

/// AT times are for the command line only; a daemon takes numbers and `N`.
fn no_at_time(_: &[u8]) -> Result<i64, String> {
    Err("AT times are not known to the daemon".into())
}

/// Collects the rows of the RRD being updated.
struct Sink<'a> {
    open: &'a mut OpenRows,
    group: &'a Group,
    id: RrdId,
    group_index: u32,
    chain: Option<ChainIndex>,
}

impl RowSink for Sink<'_> {
    #[inline]
    fn rows(&mut self, rra: usize, first_row: i64, count: u64, cells: &[CdpPrep]) {
        if !self.group.stores[rra] {
            return;
        }
        let Some(source) = self.group.source_of_archive[rra] else { return };
        let chain = match self.chain {
            Some(chain) => chain,
            None => *self.chain.insert(self.open.start_chain(self.id, self.group_index)),
        };
        self.open.push_cells(chain, self.group, source, first_row, count, cells);
    }
}

impl State {
    /// An empty shard. `base_seconds` is roughly the time of the first rows; `open_words` words are reserved
    /// for open rows.
    pub fn new(base_seconds: i64, open_words: usize) -> Self {
        State {
            catalogue: Catalogue::default(),
            streams: Streams::default(),
            groups: Vec::new(),
            group_of: HashMap::new(),
            seasons: HashMap::new(),
            group_bytes: 0,
            season_bytes: 0,
            open: OpenRows::new(base_seconds, open_words),
            generation: 1,
            frozen: None,
            scratch: Scratch::default(),
            texts: Vec::new(),
        }
    }

    /// Applies the first of some `time:value...` arguments as it arrived, and appends the rows written to `listed`.
    ///
    /// # Errors
    /// When the update is refused; nothing has changed then.
    #[inline]
    pub fn update<'w>(
        &mut self,
        id: RrdId,
        words: &'w [u8],
        now: Timestamp,
        listed: Option<&mut Vec<WrittenRow>>,
    ) -> Result<Applied<'w>, UpdateError> {
        let Some(&entry) = self.catalogue.get(id) else { unreachable!("ids come from the catalogue") };
        let definition = self.catalogue.definition(entry.definition);
        let mut texts = [&[][..]; TEXTS_INLINE];
        if let Some(texts) = texts.get_mut(..definition.fed_count())
            && let Some(usual) = reading::parse_usual(words, definition, texts)
        {
            self.step(id, &entry, &Reading { time: usual.time, values: texts }, listed)?;
            let values = &words[usual.values_at..usual.end];
            return Ok(Applied {
                time: Timestamp::whole(usual.seconds),
                values,
                rest: words.get(usual.end + 1..),
            });
        }
        self.update_unusual(id, &entry, words, now, listed)
    }

    #[cold]
    fn update_unusual<'w>(
        &mut self,
        id: RrdId,
        entry: &Entry,
        words: &'w [u8],
        now: Timestamp,
        listed: Option<&mut Vec<WrittenRow>>,
    ) -> Result<Applied<'w>, UpdateError> {
        let end = memchr::memchr(b' ', words);
        let (word, rest) = end.map_or((words, None), |end| (&words[..end], Some(&words[end + 1..])));
        let mut texts = recycle(std::mem::take(&mut self.texts));
        let definition = self.catalogue.definition(entry.definition);
        let units_per_second = definition.units_per_second;
        let read = reading::parse_argument(word, now, definition, None, &no_at_time, &mut texts);
        let done = read.and_then(|reading| {
            self.step(id, entry, &reading, listed)?;
            Ok(reading.time.in_seconds(units_per_second))
        });
        self.texts = recycle(texts);
        let values = memchr::memchr(b':', word).map_or(&[][..], |colon| &word[colon + 1..]);
        done.map(|time| Applied { time, values, rest })
    }

    /// Prefetches an RRD's head into the cache. The loads are independent, so those of several RRDs overlap.
    #[inline]
    pub fn touch(&self, id: RrdId) {
        let Some(entry) = self.catalogue.get(id) else { return };
        let words = self.groups[entry.group as usize].heads.get(entry.head);
        let lines = words.iter().step_by(8);
        std::hint::black_box(lines.fold(0u64, |sum, word| sum.wrapping_add(*word)));
    }

    /// Applies an update from the log.
    ///
    /// # Errors
    /// When it is refused, which only damage can cause.
    pub fn replay_update(&mut self, id: RrdId, time: Timestamp, values: &[u8]) -> Result<(), UpdateError> {
        let Some(&entry) = self.catalogue.get(id) else { unreachable!("ids come from the catalogue") };
        let mut texts = recycle(std::mem::take(&mut self.texts));
        let definition = self.catalogue.definition(entry.definition);
        let time = time.in_units(definition.units_per_second);
        let done = reading::split_values(values, definition, &mut texts)
            .and_then(|()| self.step(id, &entry, &Reading { time, values: &texts }, None));
        self.texts = recycle(texts);
        done
    }

    #[inline]
    fn step(
        &mut self,
        id: RrdId,
        entry: &Entry,
        reading: &Reading<'_>,
        listed: Option<&mut Vec<WrittenRow>>,
    ) -> Result<(), UpdateError> {
        let chain = self.open_chain(entry);
        let GroupState { group, heads } = &mut self.groups[entry.group as usize];
        let definition = self.catalogue.definition(entry.definition);
        let mut sink = Sink { open: &mut self.open, group, id, group_index: entry.group, chain };
        let seasons = match self.seasons.is_empty() {
            true => &mut [][..],
            false => self.seasons.get_mut(&id).map_or(&mut [][..], |seasons| &mut seasons[..]),
        };
        let head = group.shape.split_mut(heads.get_mut(entry.head));
        let (shape, scratch) = (&group.shape, &mut self.scratch);
        match listed {
            None => {
                let sink = &mut sink;
                Updater { definition, shape, head, seasons, scratch, sink }.apply(reading)?;
            }
            Some(_) => {
                let sink = RowRecorder::new(&mut sink, definition, listed);
                let mut updater = Updater { definition, shape, head, seasons, scratch, sink };
                updater.apply(reading)?;
                updater.sink.end_span();
            }
        }
        if let Some(started) = sink.chain
            && chain.is_none()
        {
            self.keep_chain(id, started);
        }
        Ok(())
    }

    fn open_chain(&self, entry: &Entry) -> Option<ChainIndex> {
        (entry.chains[0].generation == self.generation).then_some(entry.chains[0].chain)
    }

    fn keep_chain(&mut self, id: RrdId, chain: ChainIndex) {
        let generation = self.generation;
        if let Some(entry) = self.catalogue.get_mut(id) {
            entry.chains = [ChainRef { generation, chain }, entry.chains[0]];
        }
    }

    /// Creates an RRD under `id`, which is the catalogue's next, with an empty history from `start` seconds
    /// on.
    pub fn create(&mut self, id: RrdId, name: &[u8], definition: Definition, start: i64) {
        let start = Timestamp::whole(start).in_units(definition.units_per_second).whole;
        let live = rrd::create::new_live(&definition, start);
        let geometry = Geometry::of(&definition);
        self.insert(id, name, definition, geometry, live);
    }

    /// Checks that this store can hold a definition.
    ///
    /// # Errors
    /// When it has too many archives.
    pub fn check_definition(definition: &Definition) -> Result<(), StoreError> {
        if definition.rra.len() > SOURCES_MAX {
            return Err(StoreError::TooLarge(format!(
                "cannot store {} archives in one RRD; the limit is {SOURCES_MAX}",
                definition.rra.len()
            )));
        }
        Ok(())
    }

    /// Adds an RRD with its head, for create and import.
    fn insert(&mut self, id: RrdId, name: &[u8], definition: Definition, geometry: Geometry, live: Live) {
        let key = encode_definition(&definition);
        let kind = self.intern(definition, key, geometry);
        self.insert_head(id, name, kind, bytemuck::cast_slice(&live.words), live.seasons);
    }

    /// Counts one more user of a definition and finds or creates its group. `key` is the definition's
    /// encoding.
    pub fn intern(&mut self, definition: Definition, key: Vec<u8>, geometry: Geometry) -> RrdKind {
        let group = self.group_index(geometry);
        RrdKind { definition: self.catalogue.intern(definition, key), group }
    }

    /// Adds an RRD whose definition already counts it as a user; `head` is its head as bytes.
    pub fn insert_head(&mut self, id: RrdId, name: &[u8], kind: RrdKind, head: &[u8], seasons: Vec<Season>) {
        let RrdKind { definition, group } = kind;
        let heads = &mut self.groups[group as usize].heads;
        let before = heads.bytes();
        let head = heads.insert(head);
        self.group_bytes += heads.bytes() - before;
        self.catalogue.insert(id, name, definition, group, head);
        if !seasons.is_empty() {
            self.season_bytes += bytes_of(&seasons);
            self.seasons.insert(id, seasons);
        }
    }

    /// The index of a geometry's group, which is created when there is none.
    pub fn group_index(&mut self, geometry: Geometry) -> u32 {
        if let Some(&index) = self.group_of.get(&geometry) {
            return index;
        }
        let index = self.groups.len() as u32;
        let group = Arc::new(Group::of(geometry.clone()));
        let heads = Heads::new(group.shape.word_count());
        self.group_bytes += GROUP_BYTES + ARCHIVE_BYTES * group.geometry.archives.len();
        self.groups.push(GroupState { group, heads });
        self.group_of.insert(geometry, index);
        index
    }

    /// All groups, by index.
    pub fn groups(&self) -> &[GroupState] {
        &self.groups
    }

    /// Imports a whole RRD under `id`; its rows become open rows.
    pub fn import(&mut self, id: RrdId, name: &[u8], rrd: Rrd) {
        let last_update = rrd.shape().split(&rrd.live.words).last_update;
        let geometry = Geometry::of_rows(&rrd.definition, &rrd.archives);
        self.insert(id, name, rrd.definition, geometry, rrd.live);
        let Some(&entry) = self.catalogue.get(id) else { return };
        let group = Arc::clone(&self.groups[entry.group as usize].group);
        for (archive, values) in rrd.archives.iter().enumerate() {
            let Some(source) = group.source_of_archive[archive].filter(|_| group.stores[archive]) else {
                continue;
            };
            let newest = rrd::grid::row_number(last_update.whole, group.sources[usize::from(source)].span);
            let rows = (values.len() / group.geometry.ds_count) as i64;
            self.push_open_block(id, source, newest - rows + 1, values);
        }
    }

    /// Adds `count` equal rows to the open rows of an RRD.
    pub fn push_open_repeat(&mut self, id: RrdId, source: u16, first_row: i64, count: u64, row: &[f64]) {
        let Some((group, chain)) = self.chain_for_rows(id) else { return };
        self.open.push_repeat(chain, &group, source, first_row, count, row);
    }

    /// Adds rows to the open rows of an RRD.
    pub fn push_open_block(&mut self, id: RrdId, source: u16, first_row: i64, values: &[f64]) {
        let Some((group, chain)) = self.chain_for_rows(id) else { return };
        self.open.push_block(chain, &group, source, first_row, values);
    }

    fn chain_for_rows(&mut self, id: RrdId) -> Option<(Arc<Group>, ChainIndex)> {
        let entry = *self.catalogue.get(id)?;
        let group = Arc::clone(&self.groups[entry.group as usize].group);
        let chain = self.open_chain(&entry).unwrap_or_else(|| {
            let chain = self.open.start_chain(id, entry.group);
            self.keep_chain(id, chain);
            chain
        });
        Some((group, chain))
    }

    /// Removes an RRD. Its rows stay on disk until a merge drops them; nothing can find them any more.
    pub fn delete(&mut self, id: RrdId) {
        if let Some(entry) = self.catalogue.remove(id) {
            let heads = &mut self.groups[entry.group as usize].heads;
            let before = heads.bytes();
            heads.remove(entry.head);
            self.group_bytes -= before - heads.bytes();
            self.season_bytes -= self.seasons.remove(&id).map_or(0, |seasons| bytes_of(&seasons));
        }
    }

    /// Changes definition and head by the arguments of `tune`, which must not change the geometry.
    ///
    /// # Errors
    /// When `tune` refuses; nothing has changed then.
    pub fn tune(&mut self, id: RrdId, words: &[String]) -> Result<(), StoreError> {
        let Some(&entry) = self.catalogue.get(id) else { unreachable!("ids come from the catalogue") };
        let mut definition = Definition::clone(self.catalogue.definition(entry.definition));
        let mut live = self.live(id, &entry);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        rrd::tune::tune(&mut definition, &mut live, &words).map_err(StoreError::Tune)?;
        debug_assert!(self.groups[entry.group as usize].group.geometry.is_of(&definition));
        let key = encode_definition(&definition);
        let index = self.catalogue.intern(definition, key);
        self.catalogue.release_definition(entry.definition);
        if let Some(entry) = self.catalogue.get_mut(id) {
            entry.definition = index;
        }
        self.groups[entry.group as usize].heads.get_mut(entry.head).copy_from_slice(&live.words);
        if !live.seasons.is_empty() {
            self.seasons.insert(id, live.seasons);
        }
        Ok(())
    }

    /// A copy of the live head.
    pub fn live(&self, id: RrdId, entry: &Entry) -> Live {
        Live {
            words: self.groups[entry.group as usize].heads.get(entry.head).to_vec(),
            seasons: self.seasons.get(&id).cloned().unwrap_or_default(),
        }
    }

    /// The seasons of an RRD; most have none.
    pub fn seasons(&self, id: RrdId) -> &[Season] {
        self.seasons.get(&id).map_or(&[], Vec::as_slice)
    }

    /// A hash of what the RRDs of these ids are: names, definitions and live heads, the same in all copies of a shard at one position of the log.
    pub fn hash_of(&self, ids: Range<RrdId>) -> u64 {
        let mut hash = Xxh3::new();
        for id in ids {
            let Some(entry) = self.catalogue.get(id) else { continue };
            hash.update(&id.to_le_bytes());
            hash.update(self.catalogue.name(id));
            hash.update(self.catalogue.definition_key(entry.definition));
            hash.update(bytemuck::cast_slice(self.groups[entry.group as usize].heads.get(entry.head)));
            for season in self.seasons(id) {
                hash.update(&season.current_row.to_le_bytes());
                hash.update(bytemuck::cast_slice(&season.values));
            }
        }
        hash.digest()
    }

    /// The time of an RRD's last update.
    #[inline]
    pub fn last_update(&self, entry: &Entry) -> Timestamp {
        let GroupState { group, heads } = &self.groups[entry.group as usize];
        group.shape.split(heads.get(entry.head)).last_update
    }

    /// The open rows.
    pub fn open(&self) -> &OpenRows {
        &self.open
    }

    /// The open arena and the RRD's chain in it, when it has rows there.
    pub fn open_chain_of(&self, id: RrdId) -> Option<(&OpenRows, ChainIndex)> {
        let chain = self.open_chain(self.catalogue.get(id)?)?;
        Some((&self.open, chain))
    }

    /// The arenas that hold rows of an RRD, oldest first, with its chain in each.
    pub fn arenas_of(&self, entry: &Entry) -> impl Iterator<Item = (&OpenRows, ChainIndex)> {
        let chain_in = |generation: u32| {
            entry.chains.iter().find(|chain| chain.generation == generation).map(|found| found.chain)
        };
        let frozen = self
            .frozen
            .as_deref()
            .and_then(|rows| chain_in(self.generation.wrapping_sub(1)).map(|chain| (rows, chain)));
        let open = chain_in(self.generation).map(|chain| (&self.open, chain));
        frozen.into_iter().chain(open)
    }

    /// Freezes the open rows and starts an empty arena. The frozen one stays readable until
    /// [`State::take_frozen`]; there must not be one already.
    pub fn freeze(&mut self, base_seconds: i64, open_words: usize) -> Arc<OpenRows> {
        debug_assert!(self.frozen.is_none(), "one flush at a time");
        let full = std::mem::replace(&mut self.open, OpenRows::new(base_seconds, open_words));
        let frozen = Arc::new(full);
        self.frozen = Some(Arc::clone(&frozen));
        self.generation += 1;
        frozen
    }

    /// Releases the frozen rows, which a segment now holds.
    pub fn take_frozen(&mut self) -> Option<Arc<OpenRows>> {
        self.frozen.take()
    }

    /// Bytes in memory by part: heads, catalogue, open rows.
    pub fn bytes(&self) -> (usize, usize, usize) {
        let frozen = self.frozen.as_ref().map_or(0, |rows| rows.bytes());
        (self.group_bytes + self.season_bytes, self.catalogue.bytes(), self.open.bytes() + frozen)
    }

    /// Bytes that the RRDs take in memory as long as they exist; open rows have a limit of their own.
    pub fn live_bytes(&self) -> u64 {
        (self.group_bytes + self.season_bytes + self.catalogue.bytes()) as u64
    }

    /// Bytes of head and seasons of an RRD.
    pub fn rrd_bytes(&self, id: RrdId) -> u64 {
        let Some(entry) = self.catalogue.get(id) else { return 0 };
        let words = self.groups[entry.group as usize].group.shape.word_count();
        (8 * words + self.seasons.get(&id).map_or(0, |seasons| bytes_of(seasons))) as u64
    }
}
