//! Which RRDs damage of the log has cost updates, as far as what remains tells.
//!
//! The lost bytes cannot say whose updates they held. But an RRD whose updates before and after them are further apart than
//! its step lacks some; an RRD without any update after them may lack some; and records of an id that no RRD has
//! prove that its creation was lost.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rrd::time::Timestamp;

use super::Covered;
use crate::catalogue::RrdId;
use crate::codec::DecodeError;
use crate::disk::Disk;
use crate::log::{self, Damage, Kind, Known, Position, Record, ReplayError};
use crate::shard::state::State;

/// What damage of a log has cost.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Affected {
    /// RRDs that lack updates, with their last update before and their first one after the lost bytes.
    pub lacking: BTreeMap<RrdId, (Timestamp, Timestamp)>,
    /// RRDs without an update after the lost bytes, which may lack some, with their last one.
    pub silent: BTreeMap<RrdId, Timestamp>,
    /// Ids of RRDs whose creation is lost, and with it all of their updates.
    pub lost: BTreeSet<RrdId>,
    /// No record has this id or a later one.
    pub next_id: RrdId,
}

/// Reads the log once more, after `damage` was found in it and `state` has every RRD of which a record remains.
///
/// # Errors
/// When the log cannot be read.
pub fn affected(
    disk: &dyn Disk,
    dir: &Path,
    (from, known): (Position, Known),
    damage: &[Damage],
    covered: &Covered,
    state: &State,
) -> Result<Affected, ReplayError<DecodeError>> {
    let mut found = Affected::default();
    // For each RRD its last update so far, and how many damaged ranges lay before it.
    let mut last: BTreeMap<RrdId, (Timestamp, usize)> = BTreeMap::new();
    log::replay(disk, dir, from, known, &mut |record: Record<'_>| {
        let passed = damage.iter().filter(|range| range.from < record.position).count();
        if record.kind != Kind::Updates {
            return Ok(());
        }
        log::updates::decode(record.body, &mut |id, time, _: &[u8]| {
            found.next_id = found.next_id.max(id.saturating_add(1));
            let Some(entry) = state.catalogue.get(id) else {
                found.lost.insert(id);
                return;
            };
            if covered.has(id, record.position) {
                return;
            }
            let (before, passed_before) = last.get(&id).copied().unwrap_or((state.last_update(entry), 0));
            let definition = state.catalogue.definition(entry.definition);
            let seconds = definition.step.div_ceil(u64::from(definition.units_per_second.max(1)));
            let gap = time.whole.saturating_sub(before.whole);
            // One update a step, and some jitter.
            if passed > passed_before && gap.saturating_mul(2) > 3 * seconds as i64 {
                found.lacking.insert(id, (before, time));
            }
            last.insert(id, (time, passed));
        })
    })?;
    for id in state.catalogue.ids() {
        let Some(entry) = state.catalogue.get(id) else { continue };
        let (time, passed) = last.get(&id).copied().unwrap_or((state.last_update(entry), 0));
        if passed < damage.len() {
            found.silent.insert(id, time);
        }
    }
    Ok(found)
}

impl Affected {
    /// The report for an operator, one line per RRD.
    pub fn report(&self, state: &State) -> String {
        let mut text = String::new();
        for (&id, (before, after)) in &self.lacking {
            let name = state.catalogue.name(id).escape_ascii();
            text.push_str(&format!("{name} lacks updates between {} and {}\n", before.whole, after.whole));
        }
        for (&id, last) in &self.silent {
            let name = state.catalogue.name(id).escape_ascii();
            text.push_str(&format!("{name} may lack updates after {}\n", last.whole));
        }
        for id in &self.lost {
            text.push_str(&format!(
                "an RRD with the id {id} is lost: its creation was in the damaged part\n"
            ));
        }
        text
    }

    /// Names of RRDs that lack updates, and of those that may, at most `most` each, for a line of the log.
    pub fn names(&self, state: &State, most: usize) -> [String; 2] {
        [names(state, self.lacking.keys(), most), names(state, self.silent.keys(), most)]
    }
}

fn names<'a>(state: &State, ids: impl ExactSizeIterator<Item = &'a RrdId>, most: usize) -> String {
    let count = ids.len();
    let names = ids.take(most).map(|&id| state.catalogue.name(id).escape_ascii().to_string());
    let mut text = names.collect::<Vec<_>>().join(", ");
    if count > most {
        text.push_str(&format!(" and {} more", count - most));
    }
    text
}
