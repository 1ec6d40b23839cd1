//! What an update did: counts and, when asked for, the rows it wrote, as `updatev` shows them.

use std::sync::Arc;

use rrd::definition::Definition;
use rrd::info::{InfoItem, Value};

/// What became of the arguments of one update.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpdateReport {
    /// Arguments that went into the file.
    pub applied: u64,
    /// Arguments at or before the last update, passed over by [`super::UpdateOptions::skip_past`].
    pub skipped: u64,
    /// The rows written, in the order RRDtool writes them; empty unless asked for.
    pub rows: Vec<WrittenRow>,
    /// What the RRD is; `None` unless rows were asked for.
    pub definition: Option<Arc<Definition>>,
}

/// One row of one archive.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenRow {
    /// The time `updatev` stamps it with, in units (see [`UpdateReport::items`]).
    pub time: i64,
    /// The archive.
    pub rra: usize,
    /// One value a data source.
    pub values: Vec<f64>,
}

impl UpdateReport {
    /// The items that `rrdtool updatev` prints behind `return_value = 0`:
    /// `[1000000010]RRA[AVERAGE][1]DS[a] = 1.0000000000e+00`.
    pub fn items(&self) -> Vec<InfoItem> {
        let Some(definition) = &self.definition else { return Vec::new() };
        let units = i64::from(definition.units_per_second.max(1));
        let mut items = Vec::with_capacity(self.rows.len() * definition.ds.len());
        for row in &self.rows {
            let rra = &definition.rra[row.rra];
            let decimals = match units {
                1 => String::new(),
                units => format!(".{:03}", row.time.rem_euclid(units) * 1000 / units),
            };
            let time = row.time.div_euclid(units);
            for (ds, &value) in definition.ds.iter().zip(&row.values) {
                let (cf, pdp_per_row) = (rra.cf.cf().name(), rra.pdp_per_row);
                let key = format!("[{time}{decimals}]RRA[{cf}][{pdp_per_row}]DS[{}]", ds.name);
                items.push(InfoItem { key, value: Value::Number(value) });
            }
        }
        items
    }
}
