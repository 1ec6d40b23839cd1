//! Records of a primary's log, applied as they come and appended as they are.
//!
//! What they do was decided there. So one that this state refuses proves that the two stores are not the same, and stops the shard.

use std::sync::atomic::Ordering;

use super::Worker;
use crate::codec::DecodeError;
use crate::engine::StoreError;
use crate::log::catalogue::{CopyCheck, Create, Delete, Import, Rename, RowCheck, Stream, Tune};
use crate::log::envelope::{self, ENVELOPE_BYTES, NotRecord};
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
        let mut parts = Parts::default();
        for record in envelope::records(records, from) {
            if let Err(misfit) = self.apply_record(&record, &mut parts) {
                let at = record.position;
                let text = format!(
                    "the record at {at} of the primary's log does not fit: {misfit}; this copy is not the same as the primary, and \
                     takes no more of it. Remove its store, and let it begin again"
                );
                self.shared.differs.store(true, Ordering::Release);
                self.shared.poison(text.clone());
                return Err(StoreError::Poisoned(text));
            }
            let [start, end] = [record.position, record.end].map(|at| (at.offset - from.offset) as usize);
            self.log.append_copy(&records[start..end]);
            self.take_priority();
        }
        Ok(self.log.position())
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
            Kind::Check => {
                let CopyCheck { first, count, hash } = CopyCheck::decode(body)?;
                let here = self.state.hash_of(first..first.saturating_add(count));
                if here != hash {
                    return Err(Misfit::State(format!(
                        "the RRDs of ids {first} to {} have the hash {here:016x} here, and {hash:016x} there",
                        first.saturating_add(count).saturating_sub(1)
                    )));
                }
            }
            Kind::RowCheck => self.follow_row_check(RowCheck::decode(body)?),
            Kind::Named => return Err(Misfit::State("it is a record of a spool".into())),
            Kind::Behaviour => return Err(Misfit::State("a newer program wrote it; use that one".into())),
        }
        Ok(())
    }

    fn apply_updates(&mut self, body: &[u8]) -> Result<(), Misfit> {
        let mut chunk = std::mem::take(&mut self.replicated);
        chunk.clear();
        let mut count = 0;
        log::updates::decode(body, &mut |id, time, values: &[u8]| {
            count += 1;
            chunk.push(id, time, values);
        })?;
        let mut refused = None;
        chunk.each(&mut self.state, |state, id, time, values| {
            let applied = match state.catalogue.get(id) {
                Some(_) => state.replay_update(id, time, values).map_err(|error| error.to_string()),
                None => Err(format!("there is no RRD {id}")),
            };
            if let Err(text) = applied {
                refused.get_or_insert(text);
            }
        });
        self.replicated = chunk;
        let stats = &self.shared.stats;
        stats.data_sets_written.fetch_add(count, Ordering::Relaxed);
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

/// Checks that bytes are whole records of a shard from a position on, and can be applied without more.
fn check_whole(records: &[u8], from: Position, owner: u32) -> Result<(), String> {
    if let Some(stranger) = envelope::records(records, from).find(|record| record.owner != owner) {
        return Err(format!("the primary sent a record at {} of another shard or store", stranger.position));
    }
    if let Some(newer) = newer(records, from) {
        return Err(format!("a newer program wrote the record at {newer}: use that one here, too"));
    }
    match survey(records, from).applicable {
        count if count == records.len() => Ok(()),
        count => Err(format!("the primary sent a part of a record or import at {}", from.plus(count as u64))),
    }
}

/// Where the first record is that only a newer program knows. It says nothing against this copy.
fn newer(records: &[u8], from: Position) -> Option<Position> {
    let mut place = from;
    for record in envelope::records(records, from) {
        if record.kind == Kind::Behaviour {
            return Some(record.position);
        }
        place = record.end;
    }
    let rest = &records[(place.offset - from.offset) as usize..];
    let length = (rest.len() >= ENVELOPE_BYTES).then(|| envelope::peek(rest, place).ok()).flatten()?;
    let decoded = envelope::decode(rest.get(..length)?, place);
    matches!(decoded, Err(NotRecord::Unknown { .. })).then_some(place)
}

/// What some bytes of a log have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// How many of them can be applied: those of whole records, without an import whose last part has not come.
    pub applicable: usize,
    /// One of these says how far a stream has been applied. That is true only once what other shards were sent before is applied, too.
    pub tells_streams: bool,
}

/// Looks through bytes of a log, of which the first record begins at `from`.
pub fn survey(records: &[u8], from: Position) -> Survey {
    let mut found = Survey::default();
    for record in envelope::records(records, from) {
        found.tells_streams |= record.kind == Kind::Stream;
        let goes_on =
            record.kind == Kind::Part && ImportPart::decode(record.body).is_ok_and(|part| part.is_followed());
        if !goes_on {
            found.applicable = (record.end.offset - from.offset) as usize;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Stamp;

    const FROM: Position = Position { generation: 0, offset: 1000 };
    const OWNER: u32 = 7;

    /// Records of these kinds and bodies, one after the other.
    fn log(records: &[(Kind, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (kind, body) in records {
            let start = bytes.len();
            let at = FROM.plus(start as u64);
            envelope::open(&mut bytes, OWNER, *kind, Stamp::default(), at, 0);
            bytes.extend_from_slice(body);
            envelope::close(&mut bytes[start..]);
        }
        bytes
    }

    fn part(offset: u64) -> Vec<u8> {
        let mut body = Vec::new();
        ImportPart { total: 6, offset, bytes: b"abc" }.encode(&mut body);
        body
    }

    #[test]
    fn a_record_of_a_newer_program_is_refused_before_anything_is_applied() {
        let known = log(&[(Kind::Delete, b"1"), (Kind::Behaviour, b""), (Kind::Delete, b"2")]);
        let second = envelope::records(&known, FROM).nth(1).unwrap().position;
        let mut unknown = known.clone();
        let at = (second.offset - FROM.offset) as usize;
        unknown[at + envelope::KIND_AT] = 200;
        envelope::close(&mut unknown[at..at + ENVELOPE_BYTES]);
        for records in [known, unknown] {
            let error = check_whole(&records, FROM, OWNER).unwrap_err();
            assert_eq!(
                error,
                format!("a newer program wrote the record at {second}: use that one here, too")
            );
        }
    }

    #[test]
    fn what_has_not_come_whole_waits() {
        let (first, last) = (part(0), part(3));
        let bytes =
            log(&[(Kind::Delete, b"1"), (Kind::Part, &first), (Kind::Part, &last), (Kind::Stream, b"s")]);
        let ends: Vec<usize> = envelope::records(&bytes, FROM)
            .map(|record| (record.end.offset - FROM.offset) as usize)
            .collect();
        for cut in 0..=bytes.len() {
            let want = match cut {
                _ if cut >= ends[3] => Survey { applicable: ends[3], tells_streams: true },
                _ if cut >= ends[2] => Survey { applicable: ends[2], tells_streams: false },
                // Half of an import is none.
                _ if cut >= ends[0] => Survey { applicable: ends[0], tells_streams: false },
                _ => Survey::default(),
            };
            assert_eq!(survey(&bytes[..cut], FROM), want, "{cut} bytes");
            let is_whole = [0, ends[0], ends[2], ends[3]].contains(&cut);
            assert_eq!(check_whole(&bytes[..cut], FROM, OWNER).is_ok(), is_whole, "{cut} bytes");
        }
        assert!(check_whole(&bytes, FROM, OWNER + 1).is_err_and(|text| text.contains("another shard")));
        assert!(check_whole(&bytes, FROM.plus(1), OWNER).is_err());
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(check_whole(&changed, FROM, OWNER).is_err(), "bit {bit}");
        }
    }
}
