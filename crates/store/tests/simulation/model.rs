//! A simple model of the store's expected content: each RRD separately, every row in a map.

use std::collections::BTreeMap;

use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::definition::{Consolidation, Definition, Ds, DsKind, DsType, PlainCf, Rra};
use rrd::live::{CdpPrep, Live, UNKNOWN};
use rrd::reading::Reading;
use rrd::time::Timestamp;
use rrd::update::{RowSink, Scratch, Updater};
use rrd::when::Step;

/// An acknowledged change.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "the files layout has no trash")]
pub enum Op {
    Create {
        name: String,
        definition: Definition,
        start: i64,
    },
    Update {
        name: String,
        time: Timestamp,
        values: String,
    },
    /// For good: another one is created in its place.
    Replace {
        name: String,
    },
    /// Into the trash, where the store has one, at this time in seconds.
    Delete {
        name: String,
        at: i64,
    },
    Rename {
        name: String,
        to: String,
    },
    Copy {
        name: String,
        to: String,
    },
    /// What was deleted last of a name comes back.
    Restore {
        name: String,
        to: String,
    },
}

impl Op {
    /// The RRD it concerns.
    pub fn name(&self) -> &str {
        match self {
            Op::Create { name, .. }
            | Op::Update { name, .. }
            | Op::Replace { name }
            | Op::Delete { name, .. }
            | Op::Rename { name, .. }
            | Op::Copy { name, .. }
            | Op::Restore { name, .. } => name,
        }
    }
}

/// Rows by archive and number.
#[derive(Clone, Debug, Default)]
pub struct Rows(Vec<BTreeMap<i64, Vec<u64>>>);

impl RowSink for Rows {
    fn rows(&mut self, rra: usize, first_row: i64, count: u64, cells: &[CdpPrep]) {
        for index in 0..count as i64 {
            let row = cells.iter().map(|cell| if index == 0 { cell.primary } else { cell.secondary });
            self.0[rra].insert(first_row + index, row.map(f64::to_bits).collect());
        }
    }
}

#[derive(Clone, Debug)]
pub struct ModelRrd {
    pub definition: Definition,
    pub live: Live,
    rows: Rows,
}

/// The RRDs by name, and the deleted ones with the time of that, oldest first, for ever.
#[derive(Clone, Debug, Default)]
pub struct Model(pub BTreeMap<String, ModelRrd>, pub BTreeMap<String, Vec<(i64, ModelRrd)>>);

impl Model {
    pub fn apply(&mut self, op: &Op) {
        match op {
            Op::Create { name, definition, start } => {
                let rows = Rows(vec![BTreeMap::new(); definition.rra.len()]);
                let live = rrd::create::new_live(definition, *start);
                self.0.insert(name.clone(), ModelRrd { definition: definition.clone(), live, rows });
            }
            Op::Update { name, time, values } => {
                let model = self.0.get_mut(name).expect("acknowledged updates are of RRDs that exist");
                let texts: Vec<&[u8]> = values.split(':').map(str::as_bytes).collect();
                let shape = rrd::live::HeadShape::of(&model.definition);
                let Live { words, seasons } = &mut model.live;
                Updater {
                    definition: &model.definition,
                    shape: &shape,
                    head: shape.split_mut(words),
                    seasons,
                    scratch: &mut Scratch::default(),
                    sink: &mut model.rows,
                }
                .apply(&Reading { time: *time, values: &texts })
                .expect("acknowledged updates are good");
            }
            Op::Replace { name } => {
                self.0.remove(name);
            }
            Op::Delete { name, at } => {
                let deleted = self.0.remove(name).map(|rrd| (*at, rrd));
                self.1.entry(name.clone()).or_default().extend(deleted);
            }
            Op::Rename { name, to } => {
                let moved = self.0.remove(name).expect("acknowledged renames are of RRDs that exist");
                self.0.insert(to.clone(), moved);
            }
            Op::Copy { name, to } => {
                self.0.insert(to.clone(), self.0[name].clone());
            }
            Op::Restore { name, to } => {
                let deleted = self.1.get_mut(name).and_then(Vec::pop);
                let (_, rrd) = deleted.expect("acknowledged restores are of RRDs that were deleted");
                self.0.insert(to.clone(), rrd);
            }
        }
    }
}

impl ModelRrd {
    /// All rows, as [`rrd::content::Rrd::archives`] has them, as bits.
    pub fn archives(&self) -> Vec<Vec<u64>> {
        let shape = rrd::live::HeadShape::of(&self.definition);
        let last_update = shape.split(&self.live.words).last_update.whole;
        let ds_count = self.definition.ds.len();
        let archive = |rra: usize| {
            if self.definition.rra[rra].cf.is_season() {
                return Vec::new();
            }
            let newest = self.definition.newest_row(rra, last_update);
            let count = self.definition.rra[rra].row_count as i64;
            let unknown = vec![UNKNOWN.to_bits(); ds_count];
            (newest - count + 1..=newest)
                .flat_map(|row| self.rows.0[rra].get(&row).unwrap_or(&unknown).clone())
                .collect()
        };
        (0..self.definition.rra.len()).map(archive).collect()
    }
}

/// One of a few geometries.
pub fn definition(which: u64) -> Definition {
    if which % 7 == 6 {
        let words = [
            "DS:a:GAUGE:25:U:U",
            "RRA:AVERAGE:0.5:1:30",
            "RRA:HWPREDICT:40:0.1:0.0035:6:3",
            "RRA:SEASONAL:6:0.1:2",
            "RRA:DEVSEASONAL:6:0.1:2",
            "RRA:DEVPREDICT:30:4",
            "RRA:FAILURES:30:2:5:4",
        ];
        let step = Step { units: 10, units_per_second: 1 };
        let options = CreateOptions { step, limits: Limits::STORE, file_name: b"a" };
        return parse_create(&options, &words).expect("good words");
    }
    let fed = |name: &str, ds_type| Ds {
        name: name.into(),
        kind: DsKind::Fed { ds_type, heartbeat: 25, min: f64::NAN, max: f64::NAN },
    };
    let rra = |cf, pdp_per_row, row_count| Rra {
        cf: Consolidation::Plain { cf, xff: 0.5 },
        pdp_per_row,
        row_count,
    };
    let ds = match which % 3 {
        0 => vec![fed("a", DsType::Gauge)],
        1 => vec![fed("a", DsType::Gauge), fed("b", DsType::Counter)],
        _ => vec![fed("a", DsType::Derive), fed("b", DsType::Absolute), fed("c", DsType::Gauge)],
    };
    let rra = vec![
        rra(PlainCf::Average, 1, 20 + which % 2 * 30),
        rra(PlainCf::Max, 1, 30),
        rra(PlainCf::Average, 3, 25),
        rra(PlainCf::Max, 3, 25),
        rra(PlainCf::Last, 7 + which % 4, 40),
    ];
    Definition { version: 3, units_per_second: 1, step: 10, ds, rra }
}
