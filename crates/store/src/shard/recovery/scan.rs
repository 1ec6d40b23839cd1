//! The first pass over the log: finds its end and its damage, and applies what creates, renames and removes
//! RRDs.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use super::Covered;
use super::affected::Affected;
use crate::catalogue::RrdId;
use crate::checkpoint::Loaded;
use crate::codec::DecodeError;
use crate::disk::Disk;
use crate::log::catalogue::{Create, Delete, Import, Rename, Stream};
use crate::log::parts::{ImportPart, Lost, Parts};
use crate::log::{self, Kind, Known, Position, Record, ReplayEnd, ReplayError};
use crate::shard::state::State;

/// The result of the first pass.
#[derive(Debug)]
pub struct Scanned {
    /// How the log ended.
    pub end: ReplayEnd,
    /// RRDs that a record removed, and lost ones.
    pub gone: HashSet<RrdId>,
    /// Changes that could not be applied, which only damage can cause.
    pub refused: u64,
    /// What was known of the log.
    pub known: Known,
    /// What damage has cost, if there is any.
    pub affected: Option<Affected>,
}

/// Reads the log in `dir` from `from` on, of which `known` says what was there once, and applies everything except updates and tunes to `state`, which
/// holds the checkpoint `loaded` except the RRDs that are `lost`.
///
/// # Errors
/// When the log cannot be read, or an intact record cannot be decoded because a newer version wrote it.
pub fn scan(
    disk: &dyn Disk,
    dir: &Path,
    from: Position,
    known: Known,
    (loaded, lost): (&Loaded, &[Range<RrdId>]),
    state: &mut State,
) -> Result<Scanned, ReplayError<DecodeError>> {
    let covered = Covered::by(loaded);
    let mut scanner = Scanner {
        covered: covered.clone(),
        state,
        parts: Parts::default(),
        gone: lost.iter().cloned().flatten().collect(),
        refused: 0,
        expected: from,
        is_damaged: false,
    };
    let end = log::replay(disk, dir, from, known, &mut |record| scanner.take(&record))?;
    let Scanner { gone, refused, .. } = scanner;
    let mut affected = None;
    if !end.damage.is_empty() {
        let mut found = super::affected::affected(disk, dir, (from, known), &end.damage, &covered, state)?;
        found.lost.retain(|id| !gone.contains(id));
        // No new RRD may get an id that lost ones had: replay would give it their updates.
        state.catalogue.skip_ids(found.next_id);
        affected = Some(found);
    }
    Ok(Scanned { end, gone, refused, known, affected })
}

struct Scanner<'a> {
    covered: Covered,
    state: &'a mut State,
    parts: Parts,
    gone: HashSet<RrdId>,
    refused: u64,
    /// Where the next record starts, if nothing is missing.
    expected: Position,
    /// Something was missing.
    is_damaged: bool,
}

impl Scanner<'_> {
    fn take(&mut self, record: &Record<'_>) -> Result<(), DecodeError> {
        self.is_damaged |= record.position != self.expected;
        self.expected = record.end;
        if record.kind == Kind::Part {
            if let Some(import) = self.join_part(record)? {
                self.import(record.position, &import)?;
            }
            return Ok(());
        }
        // The parts of an import are consecutive. Any other record means that a crash cut off the rest before
        // the import was answered, or that damage destroyed it, which is reported separately.
        self.parts.abandon();
        let (position, body) = (record.position, record.body);
        match record.kind {
            // Left for the second pass.
            Kind::Updates | Kind::Tune => {}
            Kind::Create => self.create(position, body)?,
            Kind::Import => self.import(position, body)?,
            Kind::Delete => {
                let Delete { id, .. } = Delete::decode(body)?;
                if !self.covered.has(id, position) {
                    self.state.delete(id);
                    self.gone.insert(id);
                }
            }
            Kind::Rename => self.rename(position, body)?,
            // Only at its own position does it say something, and the second pass applies updates by RRD.
            Kind::Part | Kind::Check | Kind::RowCheck => {}
            Kind::Stream => {
                let Stream { name, position } = Stream::decode(body)?;
                self.state.streams.advance(name, position);
            }
            Kind::Named => {
                return Err(DecodeError {
                    offset: 0,
                    expected: "a record of a shard; this one is of a spool",
                });
            }
            // This version never writes one; continuing would compute other numbers than the program that
            // wrote it.
            Kind::Behaviour => {
                return Err(DecodeError {
                    offset: 0,
                    expected: "a log of this version; use the newer program",
                });
            }
        }
        Ok(())
    }

    /// The body of an import if this is its last part.
    fn join_part(&mut self, record: &Record<'_>) -> Result<Option<Vec<u8>>, DecodeError> {
        self.parts.take(&ImportPart::decode(record.body)?).or_else(|Lost| {
            tracing::error!(position = %record.position, "a part of an import is lost in the log, and the import with it");
            Ok(None)
        })
    }

    fn create(&mut self, position: Position, body: &[u8]) -> Result<(), DecodeError> {
        let Create { id, name, definition, start } = Create::decode(body)?;
        if self.is_due(id, name, position) {
            self.state.create(id, name, definition, start);
        }
        Ok(())
    }

    fn import(&mut self, position: Position, body: &[u8]) -> Result<(), DecodeError> {
        let Import { id, name, rrd } = Import::decode(body)?;
        if self.is_due(id, name, position) {
            self.state.import(id, name, rrd);
        }
        Ok(())
    }

    fn rename(&mut self, position: Position, body: &[u8]) -> Result<(), DecodeError> {
        let Rename { id, name, .. } = Rename::decode(body)?;
        if self.covered.has(id, position) {
            return Ok(());
        }
        if self.state.catalogue.get(id).is_some() && self.is_free(name, position) {
            self.state.catalogue.rename(id, name);
        } else {
            self.refused += u64::from(!self.gone.contains(&id));
        }
        Ok(())
    }

    /// True when a new RRD has yet to be created; counts it as refused when its id or name is taken. After damage, an RRD
    /// that has the name was removed by a record that is lost.
    fn is_due(&mut self, id: RrdId, name: &[u8], position: Position) -> bool {
        if self.covered.has(id, position) {
            return false;
        }
        if self.is_damaged
            && let Some(old) = self.state.catalogue.find(name)
            && old != id
        {
            self.state.delete(old);
            self.gone.insert(old);
        }
        let is_free = self.state.catalogue.get(id).is_none() && self.is_free(name, position);
        self.refused += u64::from(!is_free);
        is_free
    }

    /// Whether no RRD had the name when the record at `position` was written. One that has it now may have got it later: a page
    /// of the checkpoint that is newer than the record says so. Until the records of that time have been read, two
    /// RRDs have the name.
    fn is_free(&self, name: &[u8], position: Position) -> bool {
        self.state.catalogue.find(name).is_none_or(|other| self.covered.has(other, position))
    }
}
