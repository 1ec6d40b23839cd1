//! Records of a primary's log, applied as they come and appended as they are.
//!
//! What they do was decided there. So one that this state refuses proves that the two stores are not the same, and stops the shard.

use super::Worker;
use crate::codec::DecodeError;
use crate::engine::StoreError;
use crate::log::catalogue::{Create, Delete, Import, Rename, Stream, Tune};
use crate::log::envelope::{self, ENVELOPE_BYTES};
use crate::log::parts::{ImportPart, Parts};
use crate::log::{self, Kind, Position, Record};
use crate::name::RrdName;

/// Why a record cannot be applied.
enum Misfit {
    /// Its body is not what its kind says.
    Body(DecodeError),
    /// The state refuses it.
    State(String),
}

impl From<DecodeError> for Misfit {
    fn from(error: DecodeError) -> Self {
        Misfit::Body(error)
    }
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Misfit::Body(error) => write!(f, "it cannot be decoded: {error}"),
            Misfit::State(text) => f.write_str(text),
        }
    }
}

impl Worker {
    /// Applies whole records, of which the first begins at `from`, where this log ends. The parts of an import come together.
    ///
    /// # Errors
    /// When they are not whole, or do not begin where the log ends; nothing has changed then. When this state refuses one, which stops
    /// the shard. Returns where the log ends.
    pub(super) fn replicate(&mut self, from: Position, records: &[u8]) -> Result<Position, StoreError> {
        let here = self.log.position();
        if from != here {
            return Err(StoreError::Replica(format!(
                "the primary sent its log from {from} on, while this one ends at {here}"
            )));
        }
        check_whole(records, from, self.shared.files.owner).map_err(StoreError::Replica)?;
        let mut at = from;
        let mut parts = Parts::default();
        let mut rest = records;
        while !rest.is_empty() {
            let Some(decoded) = whole(rest, at) else { break };
            let (record, after) = rest.split_at((decoded.end.offset - at.offset) as usize);
            if let Err(misfit) = self.apply_record(&decoded, &mut parts) {
                let text = format!(
                    "the record at {at} of the primary's log does not fit: {misfit}; this copy is not the same as the primary, and \
                     takes no more of it. Remove its store, and let it begin again"
                );
                self.shared.poison(text.clone());
                return Err(StoreError::Poisoned(text));
            }
            self.log.append_copy(record);
            (at, rest) = (decoded.end, after);
            self.take_priority();
        }
        Ok(at)
    }

    fn apply_record(&mut self, record: &Record<'_>, parts: &mut Parts) -> Result<(), Misfit> {
        let body = record.body;
        match record.kind {
            Kind::Updates => self.apply_updates(body)?,
            Kind::Tune => {
                let Tune { id, args } = Tune::decode(body)?;
                self.must_exist(id)?;
                self.state.tune(id, &args).map_err(|error| Misfit::State(error.to_string()))?;
            }
            Kind::Create => {
                let Create { id, name, definition, start } = Create::decode(body)?;
                self.must_be_free(id, name)?;
                self.state.create(id, name, definition, start);
                self.place_replica(id, name);
            }
            Kind::Import => self.apply_import(body)?,
            Kind::Part => {
                let joined = parts.take(&ImportPart::decode(body)?);
                let joined = joined.map_err(|_| Misfit::State("a part of an import is missing".into()))?;
                if let Some(import) = joined {
                    self.apply_import(&import)?;
                }
            }
            Kind::Delete => {
                let Delete { id, .. } = Delete::decode(body)?;
                self.must_exist(id)?;
                self.displace_replica(id);
                self.state.delete(id);
            }
            Kind::Rename => {
                let Rename { id, name, .. } = Rename::decode(body)?;
                self.must_exist(id)?;
                if self.state.catalogue.find(name).is_some() {
                    return Err(Misfit::State(format!("the name \"{}\" is taken", name.escape_ascii())));
                }
                self.displace_replica(id);
                self.state.catalogue.rename(id, name);
                self.place_replica(id, name);
            }
            Kind::Stream => {
                let Stream { name, position } = Stream::decode(body)?;
                self.state.streams.advance(name, position);
            }
            Kind::Behaviour => return Err(Misfit::State("a newer program wrote it; use that one".into())),
        }
        Ok(())
    }

    fn apply_updates(&mut self, body: &[u8]) -> Result<(), Misfit> {
        let mut refused = None;
        let mut count = 0;
        let state = &mut self.state;
        log::updates::decode(body, &mut |id, time, values: &[u8]| {
            count += 1;
            let applied = match state.catalogue.get(id) {
                Some(_) => state.replay_update(id, time, values).map_err(|error| error.to_string()),
                None => Err(format!("there is no RRD {id}")),
            };
            if let Err(text) = applied {
                refused.get_or_insert(text);
            }
        })?;
        let stats = &self.shared.stats;
        stats.data_sets_written.fetch_add(count, std::sync::atomic::Ordering::Relaxed);
        refused.map_or(Ok(()), |text| Err(Misfit::State(text)))
    }

    fn apply_import(&mut self, body: &[u8]) -> Result<(), Misfit> {
        let Import { id, name, rrd } = Import::decode(body)?;
        self.must_be_free(id, name)?;
        self.state.import(id, name, rrd);
        self.place_replica(id, name);
        Ok(())
    }

    fn must_exist(&self, id: u32) -> Result<(), Misfit> {
        match self.state.catalogue.get(id) {
            Some(_) => Ok(()),
            None => Err(Misfit::State(format!("there is no RRD {id}"))),
        }
    }

    fn must_be_free(&self, id: u32, name: &[u8]) -> Result<(), Misfit> {
        if self.state.catalogue.get(id).is_some() || self.state.catalogue.find(name).is_some() {
            return Err(Misfit::State(format!(
                "its number {id} or its name \"{}\" is taken",
                name.escape_ascii()
            )));
        }
        Ok(())
    }

    /// Writes the placeholder of an RRD that has got a name, so that the tree is there when this store becomes the primary.
    fn place_replica(&mut self, id: u32, name: &[u8]) {
        let Ok(name) = RrdName::new(name) else { return };
        let Some(entry) = self.state.catalogue.get(id) else { return };
        let bytes = super::catalogue::file_bytes(self.state.catalogue.definition(entry.definition));
        if let Err(error) = self.shared.write_placeholder(&name, Some(id), bytes, true) {
            tracing::warn!(%error, rrd = %name, "cannot write the placeholder of a replicated RRD");
        }
    }

    /// Removes the placeholder of an RRD that loses its name.
    fn displace_replica(&self, id: u32) {
        if let Ok(name) = RrdName::new(self.state.catalogue.name(id)) {
            self.shared.remove_placeholder(&name);
        }
    }
}

/// Checks that bytes are whole records of a shard from a position on, and that none of them is a part of an import that goes on.
fn check_whole(records: &[u8], from: Position, owner: u32) -> Result<(), String> {
    let (mut at, mut rest, mut is_open) = (from, records, false);
    while !rest.is_empty() {
        let record = whole(rest, at).ok_or_else(|| format!("the primary sent no whole record at {at}"))?;
        if record.owner != owner {
            return Err(format!("the primary sent a record at {at} of another shard or store"));
        }
        is_open = goes_on(&record);
        rest = &rest[(record.end.offset - at.offset) as usize..];
        at = record.end;
    }
    if is_open { Err(format!("the primary sent a part of an import before {at}")) } else { Ok(()) }
}

/// How many bytes of `records`, which begin at `from`, can be applied: those of whole records, without an import whose last part has
/// not come.
pub fn applicable(records: &[u8], from: Position) -> usize {
    let (mut at, mut used, mut done) = (from, 0, 0);
    while let Some(record) = whole(&records[used..], at) {
        used += (record.end.offset - at.offset) as usize;
        at = record.end;
        if !goes_on(&record) {
            done = used;
        }
    }
    done
}

/// The record at the start of bytes, if all of it is there.
fn whole(bytes: &[u8], at: Position) -> Option<Record<'_>> {
    let length = (bytes.len() >= ENVELOPE_BYTES).then(|| envelope::peek(bytes, at).ok()).flatten()?;
    envelope::decode(bytes.get(..length)?, at).ok()
}

/// Whether a record is a part of an import that goes on after it.
fn goes_on(record: &Record<'_>) -> bool {
    record.kind == Kind::Part && ImportPart::decode(record.body).is_ok_and(|part| part.is_followed())
}

/// Whether one of the records, which begin at `from`, says how far a stream has been applied: it is true only once what other shards were
/// sent before is applied, too.
pub fn tells_stream_positions(records: &[u8], from: Position) -> bool {
    let (mut at, mut used) = (from, 0);
    while let Some(record) = whole(&records[used..], at) {
        if record.kind == Kind::Stream {
            return true;
        }
        used += (record.end.offset - at.offset) as usize;
        at = record.end;
    }
    false
}
