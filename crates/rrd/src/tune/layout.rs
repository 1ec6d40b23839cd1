//! Layout changes: adding and removing sources and archives, growing and shrinking archives.
//!
//! Indexes in the arguments are those before the tune. A reference to an archive or source by index follows it to
//! its new position; RRDtool leaves the index unchanged.

use super::TuneLimits;
use super::error::TuneError;
use super::source::leading_integer;
use crate::content::Rrd;
use crate::create::new_live;
use crate::definition::text::{self, CreateOptions, DefinitionError, Limits};
use crate::definition::{Consolidation, Definition, DsKind};
use crate::footprint;
use crate::live::{HeadShape, Live, Season, UNKNOWN};
use crate::prefill::{Forecasts, Origin, prefill};
use crate::rpn::Operator;
use crate::when::Step;

/// Most values (rows times data sources, over all archives) of an RRD after a tune: 512 MiB of doubles.
/// Guessed: a hundred times what is in use, and still fits in memory.
const VALUES_MAX: u64 = 64 << 20;

/// The arguments of a tune that change the layout.
#[derive(Debug, Default)]
pub(super) struct Changes<'w> {
    delete_ds: Vec<&'w str>,
    add_ds: Vec<&'w str>,
    add_rra: Vec<&'w str>,
    /// By archive; the first argument for an archive counts.
    rows: Vec<(i64, RowChange)>,
}

#[derive(Clone, Copy, Debug)]
enum RowChange {
    Add(i64),
    Set(i64),
}

impl<'w> Changes<'w> {
    /// Sorts the arguments by kind; `DS:` and `RRA:` arguments are parsed later.
    pub(super) fn parse(args: &[&'w str]) -> Result<Self, TuneError> {
        let mut changes = Changes::default();
        for &arg in args {
            let after = |prefix: &str| arg.strip_prefix(prefix).filter(|rest| !rest.is_empty());
            if let Some(name) = after("DEL:") {
                changes.delete_ds.push(name);
            } else if after("DS:").is_some() {
                changes.add_ds.push(arg);
            } else if after("RRA:").is_some() {
                changes.add_rra.push(arg);
            } else if let Some(index) = after("DELRRA:") {
                let index = leading_integer(index).unwrap_or(0);
                if index < 0 {
                    return Err(TuneError::DeleteIndex);
                }
                changes.rows.push((index, RowChange::Set(0)));
            } else if let Some(change) = after("RRA#") {
                changes.rows.push(row_change(change)?);
            } else {
                return Err(TuneError::Unparseable(arg.to_string()));
            }
        }
        Ok(changes)
    }

    /// The RRD after the changes.
    pub(super) fn apply(
        &self,
        old: &Definition,
        live: &Live,
        archives: &[Vec<f64>],
        limits: TuneLimits,
    ) -> Result<Rrd, TuneError> {
        let mut definition = old.clone();
        let sources = self.keep_sources(&mut definition)?;
        let kept_archives = self.keep_archives(&mut definition)?;
        let options = CreateOptions {
            step: Step { units: old.step, units_per_second: old.units_per_second },
            limits: Limits { sub_second: old.units_per_second > 1, ..limits.definition },
            file_name: b"",
        };
        self.add(&mut definition, &options).map_err(TuneError::Definition)?;
        // Compat: the version stays the same, whatever is added.
        definition.version = old.version;

        footprint::check(&definition, limits.live_bytes).map_err(TuneError::Memory)?;
        let values = footprint::value_count(&definition);
        if values > VALUES_MAX {
            return Err(TuneError::TooMany { values, max: VALUES_MAX });
        }
        let mut mover = Mover { old, new: &definition, sources, archives: kept_archives, made: None };
        mover.made = mover.needs_rows().then(|| mover.make(live, archives));
        let live_after = mover.live(live);
        let archives = (0..definition.rra.len()).map(|rra| mover.rows(rra, archives)).collect();
        Ok(Rrd { definition, live: live_after, archives })
    }

    /// Adds the new sources, then the new archives.
    ///
    /// Compat: of several bad sources the last is reported, unless a name is there twice or an archive has an unknown
    /// function. A source whose words are not those of its type counts under the name that was read before.
    fn add(&self, definition: &mut Definition, options: &CreateOptions<'_>) -> Result<(), DefinitionError> {
        let (mut bad, mut bad_names, mut name) = (None, Vec::new(), "");
        for arg in &self.add_ds {
            let added = text::add(definition, options, arg);
            let is_unread = matches!(added, Err(DefinitionError::DsFormat));
            if !is_unread {
                name = arg.split([':', '=']).nth(1).unwrap_or_default();
            }
            if bad_names.contains(&name) || (is_unread && !name.is_empty()) {
                return Err(DefinitionError::DuplicateDs(name.to_string()));
            }
            match added {
                Ok(()) => {}
                Err(error @ DefinitionError::DuplicateDs(_)) => return Err(error),
                Err(error) => {
                    bad = Some(error);
                    bad_names.push(name);
                }
            }
        }
        for arg in &self.add_rra {
            match (text::add(definition, options, arg), bad.take()) {
                (Err(error @ DefinitionError::Cf(_)), _) | (Err(error), None) | (_, Some(error)) => {
                    return Err(error);
                }
                (Ok(()), None) => {}
            }
        }
        bad.map_or_else(|| text::check(definition), Err)
    }

    /// Removes the deleted sources. Returns the old index of each remaining one. Unknown names are ignored.
    fn keep_sources(&self, definition: &mut Definition) -> Result<Vec<usize>, TuneError> {
        let stays = |index: &usize| !self.delete_ds.contains(&definition.ds[*index].name.as_str());
        let remaining: Vec<usize> = (0..definition.ds.len()).filter(stays).collect();
        let old = std::mem::take(&mut definition.ds);
        for &index in &remaining {
            let mut ds = old[index].clone();
            if let DsKind::Compute(program) = &mut ds.kind {
                for node in program.nodes.iter_mut().filter(|node| node.op == Operator::Variable as u8) {
                    let read = usize::try_from(node.operand).unwrap_or(usize::MAX);
                    let new = remaining.iter().position(|&index| index == read);
                    let needed = || TuneError::Needed {
                        ds: old.get(read).map(|ds| ds.name.clone()).unwrap_or_default(),
                        by: ds.name.clone(),
                    };
                    // An index only gets smaller, so it fits.
                    node.operand = new.ok_or_else(needed)? as i16;
                }
            }
            definition.ds.push(ds);
        }
        Ok(remaining)
    }

    /// Removes the deleted archives and resizes others. Returns the old index of each remaining one.
    fn keep_archives(&self, definition: &mut Definition) -> Result<Vec<usize>, TuneError> {
        let mut remaining = Vec::new();
        for (index, rra) in definition.rra.iter_mut().enumerate() {
            let change = self.rows.iter().find(|(rra, _)| usize::try_from(*rra) == Ok(index));
            let count = match change {
                None => rra.row_count as i64,
                Some((_, RowChange::Add(rows))) => (rra.row_count as i64).saturating_add(*rows),
                Some((_, RowChange::Set(rows))) => *rows,
            };
            if count <= 0 {
                continue;
            }
            if rra.cf.is_season() && count as u64 != rra.row_count {
                return Err(TuneError::ResizeSeason(index));
            }
            rra.row_count = count as u64;
            remaining.push(index);
        }
        let old = std::mem::take(&mut definition.rra);
        for &index in &remaining {
            let mut rra = old[index].clone();
            let mate = match &mut rra.cf {
                Consolidation::Plain { .. } => None,
                Consolidation::Predict { seasonal, .. } => Some(seasonal),
                Consolidation::Seasonal { predict, .. } => Some(predict),
                Consolidation::DevPredict { devseasonal } | Consolidation::Failures { devseasonal, .. } => {
                    Some(devseasonal)
                }
            };
            if let Some(mate) = mate {
                let needed = TuneError::ArchiveNeeded { rra: *mate, by: index };
                *mate = remaining.iter().position(|&old| old == *mate).ok_or(needed)?;
            }
            definition.rra.push(rra);
        }
        Ok(remaining)
    }
}

/// `index:+rows`, `index:-rows`, `index:=rows`: 32-bit integers, anything after the last is ignored. Compat: the upper
/// half of larger ones is cut off, as in C.
fn row_change(text: &str) -> Result<(i64, RowChange), TuneError> {
    let (index, change) = text.split_once(':').ok_or(TuneError::Resize)?;
    if index.trim_start().trim_start_matches(['+', '-']) != crate::number::leading_integer(index).1 {
        return Err(TuneError::Resize);
    }
    let index = i64::from(leading_integer(index).ok_or(TuneError::Resize)? as i32);
    let operation = change.chars().next().ok_or(TuneError::Resize)?;
    let rows = leading_integer(&change[operation.len_utf8()..]).ok_or(TuneError::Resize)?;
    let rows = i64::from(rows as i32);
    match operation {
        '+' => Ok((index, RowChange::Add(rows))),
        '-' => Ok((index, RowChange::Add(-rows))),
        '=' => Ok((index, RowChange::Set(rows))),
        _ => Err(TuneError::ResizeOperation(operation)),
    }
}

/// Carries state and rows over. Remaining sources and archives come first, in their order; new ones follow.
struct Mover<'a> {
    old: &'a Definition,
    new: &'a Definition,
    /// Old index of each remaining source.
    sources: Vec<usize>,
    /// Old index of each remaining archive.
    archives: Vec<usize>,
    /// The new RRD with all rows made from the old ones.
    made: Option<Rrd>,
}

impl Mover<'_> {
    /// Whether there are rows that no archive had before.
    fn needs_rows(&self) -> bool {
        let grows = |(rra, &old): (usize, &usize)| self.new.rra[rra].row_count > self.old.rra[old].row_count;
        self.archives.len() < self.new.rra.len() || self.archives.iter().enumerate().any(grows)
    }

    fn make(&self, live: &Live, archives: &[Vec<f64>]) -> Rrd {
        let old = Rrd { definition: self.old.clone(), live: live.clone(), archives: archives.to_vec() };
        let remaining =
            self.sources.iter().map(|&ds| Origin { name: self.old.ds[ds].name.clone(), source: None });
        // An added source has no past, whatever its name.
        let none = Origin { name: String::new(), source: Some(0) };
        let added = std::iter::repeat_n(none, self.new.ds.len() - self.sources.len());
        let origins: Vec<Origin> = remaining.chain(added).collect();
        let start = HeadShape::of(self.old).split(&live.words).last_update.whole;
        prefill(self.new.clone(), start, &origins, &[&old], Forecasts::Fresh)
    }

    fn live(&self, live: &Live) -> Live {
        let old_shape = HeadShape::of(self.old);
        let from = old_shape.split(&live.words);
        let mut after = new_live(self.new, from.last_update.whole);
        let shape = HeadShape::of(self.new);
        let head = shape.split_mut(&mut after.words);
        *head.last_update = from.last_update;
        // Compat: an added source has an open PDP of 0, not of NaN as `create` makes it; the seconds so far are
        // unknown all the same.
        head.pdp.iter_mut().for_each(|pdp| pdp.value = 0.0);
        for (ds, &old) in self.sources.iter().enumerate() {
            head.pdp[ds] = from.pdp[old];
        }
        let (ds_count, old_ds_count) = (self.new.ds.len(), self.old.ds.len());
        for (rra, &old_rra) in self.archives.iter().enumerate() {
            for (ds, &old) in self.sources.iter().enumerate() {
                head.cdp[rra * ds_count + ds] = from.cdp[old_rra * old_ds_count + old];
                if let (Some(hw), Some(old_hw)) = (shape.hw_index(rra), old_shape.hw_index(old_rra)) {
                    head.hw[hw * ds_count + ds] = from.hw[old_hw * old_ds_count + old];
                }
            }
        }
        if let Some(made) = &self.made {
            let from = self.archives.len() * ds_count;
            head.cdp[from..].copy_from_slice(&shape.split(&made.live.words).cdp[from..]);
        }
        for season in &mut after.seasons {
            self.season(season, &live.seasons);
        }
        after
    }

    /// A remaining season has as many rows as before, at the same positions of its ring.
    fn season(&self, season: &mut Season, old: &[Season]) {
        let Some(&old_rra) = self.archives.get(season.rra) else { return };
        if let Some(old) = old.iter().find(|season| season.rra == old_rra) {
            season.current_row = old.current_row;
            season.values = self.columns(&old.values);
        }
    }

    /// The rows of an archive, oldest first: the newest existing ones, preceded by rows made from other archives.
    fn rows(&self, rra: usize, archives: &[Vec<f64>]) -> Vec<f64> {
        if self.new.rra[rra].cf.is_season() {
            return Vec::new();
        }
        let length = self.new.rra[rra].row_count as usize * self.new.ds.len();
        let existing = match self.archives.get(rra) {
            Some(&old) => self.columns(&archives[old]),
            None => Vec::new(),
        };
        let older = length.saturating_sub(existing.len());
        let mut rows = match &self.made {
            Some(made) => made.archives[rra][..older].to_vec(),
            None => vec![UNKNOWN; older],
        };
        rows.extend_from_slice(&existing[existing.len().saturating_sub(length)..]);
        rows
    }

    /// Rows extended by the columns of the new sources.
    fn columns(&self, rows: &[f64]) -> Vec<f64> {
        let added = self.new.ds.len() - self.sources.len();
        let mut columns = Vec::with_capacity(rows.len() / self.old.ds.len() * self.new.ds.len());
        for row in rows.chunks_exact(self.old.ds.len()) {
            columns.extend(self.sources.iter().map(|&source| row[source]));
            columns.extend(std::iter::repeat_n(UNKNOWN, added));
        }
        columns
    }
}
