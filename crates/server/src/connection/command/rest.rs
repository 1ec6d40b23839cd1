//! Answers that are written as their client reads: however long one is, little of it is in memory at a time.
//!
//! The rows come from the store in parts. They do not change once they are written, so an answer is that of the moment
//! when it began; only where an archive is full and its client is slow, the oldest rows of later parts may have left it.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use protocol::frames::ANSWER_BYTES_MAX;
use rrd::definition::Definition;
use rrd::footprint;
use rrd::live::{HeadShape, Live};
use store::engine::{Engine, StoreError};
use store::memory;
use store::name::RrdName;

use super::{Kept, find};
use crate::budget::Share;
use crate::connection::refusal::Refusal;
use crate::limits::{ANSWER_BYTES_HELD, ANSWER_VALUES_PER_PART, ANSWER_VALUES_PER_PIECE};
use crate::metrics::DropReason;
use crate::names::ResolvedName;
use crate::service::Service;

/// What has not been made yet of an answer.
pub trait Rest: Debug + Send {
    /// Appends a piece of it; false when that was the last one.
    ///
    /// # Errors
    /// When rows cannot be read. The answer cannot be completed then.
    fn push_piece(&mut self, engine: &dyn Engine, out: &mut Vec<u8>) -> Result<bool, StoreError>;
    /// Begins again with the first piece.
    fn restart(&mut self);
    /// What precedes the store's error when the answer cannot even begin.
    fn error_prefix(&self) -> &'static str {
        "RRD Error: "
    }
}

/// Begins an answer whose rest, if it has one, is in `kept`: `out` holds what precedes it from `start` on.
///
/// # Errors
/// When rows cannot be read; for an answer in a frame, when that would be too long.
pub fn begin(service: &Service, kept: &mut Kept, out: &mut Vec<u8>, start: usize) -> Result<(), Refusal> {
    if !kept.is_framed {
        return start_now(service, kept, out);
    }
    let prefix = kept.rest.as_ref().map_or("", |rest| rest.error_prefix());
    measure(service, kept, out, start)?.map_err(|error| Refusal::of_store(prefix, &error))
}

/// Makes the first pieces of the rest in `kept`, if there is one.
///
/// # Errors
/// When rows cannot be read.
pub fn start_now(service: &Service, kept: &mut Kept, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let prefix = kept.rest.as_ref().map_or("", |rest| rest.error_prefix());
    push_more(service, kept, out).map_err(|error| Refusal::of_store(prefix, &error))
}

/// Appends pieces until there is enough to write; leaves `kept` without a rest after the last one.
///
/// # Errors
/// When the answer cannot be completed.
pub fn push_more(service: &Service, kept: &mut Kept, out: &mut Vec<u8>) -> Result<(), StoreError> {
    while let Some(rest) = &mut kept.rest
        && out.len() <= kept.answer_bytes_max
    {
        let before = out.len();
        let goes_on = rest.push_piece(&*service.engine, out)?;
        if let Some(left) = &mut kept.frame_bytes_left {
            // Rows that have left the archive since the answer was measured may have other texts.
            let changed = || StoreError::Unsupported("rows left the archive while they were sent");
            *left = left.checked_sub(out.len() - before).ok_or_else(changed)?;
            if !goes_on && *left > 0 {
                return Err(changed());
            }
        }
        if !goes_on {
            kept.rest = None;
            kept.frame_bytes_left = None;
        }
    }
    Ok(())
}

/// Makes an answer for a frame, which says at its beginning how long it is: a short one at once; of a long one it finds
/// out the length, and leaves all of it to be written piece by piece.
fn measure(
    service: &Service,
    kept: &mut Kept,
    out: &mut Vec<u8>,
    start: usize,
) -> Result<Result<(), StoreError>, Refusal> {
    let Some(rest) = &mut kept.rest else { return Ok(Ok(())) };
    let (mut piece, mut dropped) = (Vec::new(), 0);
    loop {
        let is_short = dropped == 0 && out.len() - start <= kept.answer_bytes_max;
        let goes_on = match rest.push_piece(&*service.engine, if is_short { out } else { &mut piece }) {
            Ok(goes_on) => goes_on,
            Err(error) => return Ok(Err(error)),
        };
        dropped += piece.len();
        piece.clear();
        let bytes = out.len() - start + dropped;
        if bytes > ANSWER_BYTES_MAX {
            let text = format!("the answer has more than {ANSWER_BYTES_MAX} bytes, too many for a frame");
            return Err(Refusal::new(DropReason::Usage, text));
        }
        if !goes_on {
            match dropped {
                0 => kept.rest = None,
                _ => {
                    out.truncate(start);
                    rest.restart();
                    kept.frame_bytes_left = Some(bytes);
                }
            }
            return Ok(Ok(()));
        }
    }
}

/// Rows of an RRD, read from the store in parts.
#[derive(Debug)]
pub struct StoredRows {
    name: RrdName,
    definition: Arc<Definition>,
    /// The most values of a part.
    values_max: usize,
    /// The part at hand: its archive, its first row, and its values.
    rra: usize,
    first: i64,
    values: Vec<f64>,
    /// What the values take of the memory for clients.
    share: Share,
}

impl StoredRows {
    /// The rows of the RRD that has this name and definition now.
    pub fn new(name: RrdName, definition: Arc<Definition>, share: Share) -> Self {
        let values_max = ANSWER_VALUES_PER_PART;
        StoredRows { name, definition, values_max, rra: 0, first: 0, values: Vec::new(), share }
    }

    /// Reads larger parts: for an answer that needs the same rows several times.
    pub fn enlarge_parts(&mut self, values_max: usize) {
        self.values_max = self.values_max.max(values_max);
    }

    /// Rows of the archive `rra`: those of `rows` from its start on that make a piece, at least one.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub fn piece(&mut self, engine: &dyn Engine, rra: usize, rows: Range<i64>) -> Result<&[f64], StoreError> {
        let width = self.definition.ds.len().max(1);
        let end = self.first + (self.values.len() / width) as i64;
        if self.rra != rra || !(self.first..end).contains(&rows.start) {
            self.read(engine, rra, &rows)?;
        }
        let from = (rows.start - self.first) as usize * width;
        let most = (ANSWER_VALUES_PER_PIECE / width).max(1).min((rows.end - rows.start) as usize);
        let values = &self.values[from..];
        Ok(&values[..values.len().min(most * width)])
    }

    fn read(&mut self, engine: &dyn Engine, rra: usize, rows: &Range<i64>) -> Result<(), StoreError> {
        let width = self.definition.ds.len().max(1);
        let all = (rows.end - rows.start) as usize;
        // A segment is decoded in runs, which have several rows even where a row is wide.
        let fit = |values: usize| (values / width).max(8).min(all);
        let mut count = fit(self.values_max);
        self.values = Vec::new();
        self.share.resize(0);
        let bytes = (count * width * 8) as u64;
        // Leaves room for the answer itself, and for those of others.
        let room = 2 * (bytes + ANSWER_BYTES_HELD as u64);
        if !self.share.has_room(room) || !self.share.try_resize(bytes) {
            count = fit(8 * ANSWER_VALUES_PER_PIECE);
            self.share.resize((count * width * 8) as u64);
        }
        self.values =
            engine.rows(&self.name, &self.definition, rra, rows.start..rows.start + count as i64)?;
        (self.rra, self.first) = (rra, rows.start);
        Ok(())
    }
}

/// A whole RRD as it is at one moment; the rows of a large one are read as they are needed.
#[derive(Debug)]
pub struct WholeRrd {
    /// Its definition.
    pub definition: Arc<Definition>,
    /// Its state.
    pub live: Live,
    /// Its rows.
    pub rows: WholeRows,
    /// What definition, state and rows take of the memory for clients.
    _share: Share,
}

/// The rows of a whole RRD.
#[derive(Debug)]
pub enum WholeRows {
    /// Those of each archive, oldest first; none for a season.
    Held(Vec<Vec<f64>>),
    /// Read in parts.
    Stored(StoredRows),
}

impl WholeRrd {
    /// The RRD that `word` names.
    ///
    /// # Errors
    /// When there is no such RRD, it cannot be read, or there is not enough memory for its state.
    pub fn read(service: &Service, word: &[u8]) -> Result<(ResolvedName, Self), Refusal> {
        let refuse = |error| Refusal::of_store("RRD Error: ", &error);
        let (named, status) = find(service, word, |engine, name| engine.status(name))?;
        memory::check_whole(&status.definition).map_err(refuse)?;
        let mut share = service.memory.share();
        let live_bytes = footprint::live_bytes(&status.definition);
        let values = footprint::value_count(&status.definition);
        if values <= ANSWER_VALUES_PER_PART as u64 && share.try_resize(live_bytes + 8 * values) {
            let rrd = service.engine.read(&named.name).map_err(refuse)?;
            let (definition, rows) = (Arc::new(rrd.definition), WholeRows::Held(rrd.archives));
            return Ok((named, WholeRrd { definition, live: rrd.live, rows, _share: share }));
        }
        if !share.try_resize(live_bytes) {
            return Err(Refusal::no_memory("this RRD", live_bytes, &share));
        }
        let snapshot = service.engine.snapshot(&named.name).map_err(refuse)?;
        let (definition, live) = (snapshot.definition, snapshot.live);
        let rows = StoredRows::new(named.name.clone(), Arc::clone(&definition), service.memory.share());
        Ok((named, WholeRrd { definition, live, rows: WholeRows::Stored(rows), _share: share }))
    }

    /// The number of the oldest row of an archive.
    pub fn oldest_row(&self, rra: usize) -> i64 {
        let last_update = HeadShape::of(&self.definition).split(&self.live.words).last_update.whole;
        let row_count = self.definition.rra[rra].row_count as i64;
        self.definition.newest_row(rra, last_update) - row_count + 1
    }
}

impl WholeRows {
    /// A piece of an archive, which begins `from` rows after its oldest, `oldest`, and ends before `to`.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub fn piece<'a>(
        &'a mut self,
        engine: &dyn Engine,
        (definition, live): (&Definition, &'a Live),
        rra: usize,
        oldest: i64,
        Range { start: from, end: to }: Range<u64>,
    ) -> Result<&'a [f64], StoreError> {
        let width = definition.ds.len().max(1);
        let most = ((ANSWER_VALUES_PER_PIECE / width).max(1)).min((to - from) as usize) * width;
        if let Some(season) = live.seasons.iter().find(|season| season.rra == rra) {
            let row = (season.current_row + 1 + from) % definition.rra[rra].row_count;
            let values = &season.values[row as usize * width..];
            return Ok(&values[..values.len().min(most)]);
        }
        match self {
            WholeRows::Held(archives) => {
                let from = from as usize * width;
                Ok(&archives[rra][from..from + most])
            }
            WholeRows::Stored(rows) => rows.piece(engine, rra, oldest + from as i64..oldest + to as i64),
        }
    }
}
