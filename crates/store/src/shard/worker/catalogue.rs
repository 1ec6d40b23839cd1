//! Commands that create, change and remove RRDs: each gets its own log record and is applied at once.

use std::ops::Range;
use std::sync::Arc;

use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::definition::text::Limits;
use rrd::tune::{TuneLimits, tune_content_within};

use super::Worker;
use super::answers::Done;
use crate::catalogue::RrdId;
use crate::engine::{CreateRequest, Reply, StoreError, StreamPosition};
use crate::log::catalogue as record;
use crate::log::parts::ImportPart;
use crate::log::{BODY_BYTES_MAX, Kind};
use crate::name::RrdName;
use crate::replication::BegunCheck;
use crate::shard::message::{RenameCommand, Renamed};
use crate::shard::read::ReadTicket;
use crate::shard::row_checks::{RANGE_IDS, RangeCopy};
use crate::shard::state::State;
use crate::shard::syncer::SyncRequest;

/// RRDs in one check of copies: some tenths of a millisecond of hashing.
const CHECK_IDS: RrdId = 1024;

impl Worker {
    /// Creates an RRD.
    pub(super) fn create(&mut self, name: &RrdName, request: CreateRequest) -> Result<New, StoreError> {
        self.check_definition(name, &request.definition)?;
        self.make_room_for(name, request.no_overwrite)?;
        let id = self.state.catalogue.next_id();
        let CreateRequest { definition, start, .. } = request;
        let bytes = file_bytes(&definition);
        self.record(Kind::Create, |body| {
            record::Create::encode(body, id, name.as_bytes(), &definition, start);
        })?;
        self.state.create(id, name.as_bytes(), definition, start);
        Ok(New { id, bytes })
    }

    /// Imports an RRD.
    pub(super) fn import(&mut self, name: &RrdName, rrd: Rrd, no_overwrite: bool) -> Result<New, StoreError> {
        self.check_definition(name, &rrd.definition)?;
        let bytes = file_bytes(&rrd.definition);
        if no_overwrite && self.state.catalogue.find(name.as_bytes()).is_some() {
            return Err(StoreError::Exists(name.clone()));
        }
        let id = self.state.catalogue.next_id();
        // Encoded before an RRD of that name is deleted: what cannot be logged is refused.
        let mut body = Vec::new();
        record::Import::encode(&mut body, id, name.as_bytes(), &rrd)
            .map_err(|bytes| too_large(name, bytes))?;
        self.make_room_for(name, no_overwrite)?;
        if body.len() <= BODY_BYTES_MAX {
            self.record(Kind::Import, |out| out.extend_from_slice(&body))?;
        } else {
            for part in ImportPart::of(&body) {
                self.record(Kind::Part, |out| part.encode(out))?;
            }
        }
        self.state.import(id, name.as_bytes(), rrd);
        Ok(New { id, bytes })
    }

    /// Writes the placeholder of an RRD that is about to replace another: if that is impossible, the other must stay.
    pub(super) fn replace_placeholder(
        &mut self,
        name: &RrdName,
        definition: &Definition,
        no_overwrite: bool,
        beside_file: bool,
    ) -> Result<(), StoreError> {
        self.check_definition(name, definition)?;
        if no_overwrite || self.state.catalogue.find(name.as_bytes()).is_none() {
            return Ok(());
        }
        // Without a number: this one may be given to another RRD after a crash.
        self.shared.write_placeholder(name, None, file_bytes(definition), beside_file)
    }

    /// Checks that this store can hold an RRD of a definition, in place of the one of that name if there is one.
    fn check_definition(&mut self, name: &RrdName, definition: &Definition) -> Result<(), StoreError> {
        State::check_definition(definition)?;
        let old = self.state.catalogue.find(name.as_bytes());
        let replaced = old.map_or(0, |id| self.state.rrd_bytes(id));
        // What this round has added so far counts too.
        self.count_memory();
        self.shared.options.memory.check(definition, replaced)
    }

    /// Deletes an existing RRD of the name that is to be created.
    fn make_room_for(&mut self, name: &RrdName, no_overwrite: bool) -> Result<(), StoreError> {
        match self.state.catalogue.find(name.as_bytes()) {
            Some(_) if no_overwrite => Err(StoreError::Exists(name.clone())),
            Some(_) => self.delete(name),
            None => Ok(()),
        }
    }

    /// Changes an RRD by the arguments of `tune`.
    pub(super) fn tune(&mut self, name: RrdName, args: Vec<String>, reply: Reply<Done>) {
        let texts: Vec<&str> = args.iter().map(String::as_str).collect();
        if rrd::tune::is_structural(&texts) {
            let rebuilt = self.rebuild(&name, &texts);
            return self.answer_rebuilt(name, rebuilt, reply);
        }
        let tuned = self.view().find(&name).and_then(|(id, _)| {
            self.state.tune(id, &args)?;
            self.record(Kind::Tune, |body| record::Tune::encode(body, id, &args))
        });
        self.answer_later(tuned, reply);
    }

    /// A tune that adds or removes data sources or archives: reads the whole RRD and imports it under a new
    /// id. The worker does it in one step, so that no update comes between. It is rare, and delays other
    /// commands by some milliseconds.
    fn rebuild(&mut self, name: &RrdName, args: &[&str]) -> Result<New, StoreError> {
        let mut rrd = ReadTicket::take(&self.view(), name)?.complete()?;
        let live_bytes = self.shared.options.memory.limits().rrd_bytes;
        let limits = TuneLimits { definition: Limits::STORE, live_bytes };
        tune_content_within(&mut rrd, args, limits).map_err(StoreError::Tune)?;
        self.import(name, rrd, false)
    }

    /// Records the hash of the next RRDs, for copies to compare; after the last ones the first ones follow.
    pub(super) fn check_copies(&mut self) -> Result<(), StoreError> {
        let ids = self.state.catalogue.next_id();
        let first = if self.next_check < ids { self.next_check } else { 0 };
        let count = CHECK_IDS.min(ids - first);
        if count == 0 {
            return Ok(());
        }
        let check = record::CopyCheck { first, count, hash: self.state.hash_of(first..first + count) };
        self.next_check = first + count;
        self.record(Kind::Check, |body| check.encode(body))
    }

    /// Has the RRDs of some ids hashed here, and records that all copies do so at this position; of fewer, when they are long.
    pub(super) fn begin_row_check(
        &mut self,
        number: u64,
        ids: Range<RrdId>,
    ) -> Result<BegunCheck, StoreError> {
        if !self.shared.row_checks.has_room() {
            return Err(StoreError::Unavailable(
                "other comparisons of its RRDs are not done yet; try again".into(),
            ));
        }
        // Updates of this round stand before the record.
        self.close_updates();
        let next_id = self.state.catalogue.next_id();
        let ids = ids.start.min(next_id)..ids.end.min(next_id).min(ids.start.saturating_add(RANGE_IDS));
        let copy = RangeCopy::take(&self.view(), number, ids.clone(), false);
        let check = record::RowCheck { number, first: ids.start, count: copy.count() };
        self.record(Kind::RowCheck, |body| check.encode(body))?;
        self.shared.row_checks.add(copy);
        Ok(BegunCheck { count: check.count, next_id, end: self.log.position() })
    }

    /// Does the same at the record of the copy that leads.
    pub(super) fn follow_row_check(&mut self, check: record::RowCheck) {
        let record::RowCheck { number, first, count } = check;
        if self.shared.row_checks.has_room() && count <= RANGE_IDS {
            let copy = RangeCopy::take(&self.view(), number, first..first.saturating_add(count), true);
            self.shared.row_checks.add(copy);
        }
    }

    /// Records how far a stream has been applied; answers once that is durable.
    pub(super) fn advance_stream(&mut self, name: &[u8], position: StreamPosition, reply: Reply<Done>) {
        let recorded = self.state.streams.check(name).and_then(|()| {
            self.record(Kind::Stream, |body| record::Stream::encode(body, name, position))?;
            self.state.streams.advance(name, position);
            Ok(())
        });
        let shared = Arc::clone(&self.shared);
        let synced: Reply<Done> = Box::new(move |logged| match logged {
            Ok(()) => shared.syncer.send(SyncRequest { answers: vec![reply] }),
            Err(error) => reply(Err(error)),
        });
        self.answer_later(recorded, synced);
    }

    /// Renames an RRD, if that is still wanted.
    pub(super) fn rename(
        &mut self,
        RenameCommand { from, to, is_wanted }: RenameCommand,
    ) -> Result<Renamed, StoreError> {
        if let Some(is_wanted) = is_wanted {
            // The placeholders of new RRDs are written with their answers.
            self.commit();
            if !is_wanted() {
                return Ok(Renamed::Unwanted);
            }
        }
        let (id, _) = self.view().find(&from)?;
        if self.state.catalogue.find(to.as_bytes()).is_some() {
            return Err(StoreError::Exists(to));
        }
        self.record(Kind::Rename, |body| {
            record::Rename::encode(body, id, to.as_bytes(), Some(from.as_bytes()));
        })?;
        self.state.catalogue.rename(id, to.as_bytes());
        Ok(Renamed::Done)
    }

    /// Removes an RRD.
    pub(super) fn delete(&mut self, name: &RrdName) -> Result<(), StoreError> {
        let (id, _) = self.view().find(name)?;
        self.record(Kind::Delete, |body| record::Delete::encode(body, id, Some(name.as_bytes())))?;
        self.state.delete(id);
        Ok(())
    }
}

/// An RRD that was just created or imported.
pub(super) struct New {
    pub(super) id: RrdId,
    /// Bytes that its `.rrd` file would have.
    pub(super) bytes: u64,
}

/// Bytes of the `.rrd` file of an RRD, which is the length of its placeholder.
pub(super) fn file_bytes(definition: &Definition) -> u64 {
    rrd::codec::file::FileLayout::of(definition).file_bytes
}

/// The error for an RRD that is too large to import.
fn too_large(name: &RrdName, bytes: usize) -> StoreError {
    StoreError::TooLarge(format!(
        "cannot take in '{name}': its rows have {bytes} bytes, {} are the limit of one RRD; shorten its archives \
         first (rrdtool tune FILE RRA#INDEX:=ROWS)",
        record::RRD_BYTES_MAX
    ))
}
