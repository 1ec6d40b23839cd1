//! The rows that updates write, reported as `rrdtool updatev` prints them.

use std::sync::Arc;

use crate::definition::Definition;
use crate::info::{InfoItem, Value};
use crate::live::CdpPrep;
use crate::update::RowSink;

/// What became of the arguments of one update.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpdateReport {
    /// Arguments that went into the file.
    pub applied: u64,
    /// Arguments at or before the last update, passed over by `--skip-past-updates`.
    pub skipped: u64,
    /// The rows written, in the order RRDtool writes them; empty unless requested.
    pub rows: Vec<WrittenRow>,
    /// The RRD's definition; `None` unless rows were requested.
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
    /// The items that `rrdtool updatev` prints after `return_value = 0`:
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

/// A sink that passes rows on to another and, when asked to, records them.
pub struct RowRecorder<'a, S> {
    sink: S,
    definition: &'a Definition,
    /// The end of the current span.
    until: i64,
    /// Rows of the current span.
    span: Vec<WrittenRow>,
    listed: Option<&'a mut Vec<WrittenRow>>,
}

impl<'a, S> RowRecorder<'a, S> {
    /// Records what goes to `sink`, for an RRD of this definition; `None` = only passes rows on.
    pub fn new(sink: S, definition: &'a Definition, listed: Option<&'a mut Vec<WrittenRow>>) -> Self {
        RowRecorder { sink, definition, until: 0, span: Vec::new(), listed }
    }

    /// Lists `count` rows. Compat: the times are RRDtool's, which may be a row off: when a reading was cut in
    /// two at a fraction of a second, and for all rows of one archive but the first.
    fn list(&mut self, rra: usize, count: u64, cells: &[CdpPrep]) {
        let span = self.definition.rra[rra].span(self.definition.step);
        let newest = self.until - self.until.rem_euclid(span);
        let oldest = newest - (count as i64 - 1) * span;
        for index in 0..count as i64 {
            let (row, value): (_, fn(&CdpPrep) -> f64) =
                if index == 0 { (0, |cell| cell.primary) } else { (index + 1, |cell| cell.secondary) };
            let values = cells.iter().map(value).collect();
            self.span.push(WrittenRow { time: oldest + row * span, rra, values });
        }
    }

    /// Puts the rows of a span in RRDtool's order. Call it after the last update, too.
    pub fn end_span(&mut self) {
        // Stable: the rows of one archive stay in order.
        self.span.sort_by_key(|row| row.rra);
        if let Some(listed) = &mut self.listed {
            listed.append(&mut self.span);
        }
    }
}

impl<S: RowSink> RowSink for RowRecorder<'_, S> {
    fn rows(&mut self, rra: usize, first_row: i64, count: u64, cells: &[CdpPrep]) {
        self.sink.rows(rra, first_row, count, cells);
        if self.listed.is_some() {
            self.list(rra, count, cells);
        }
    }

    fn season_row(&mut self, rra: usize, cells: &[CdpPrep]) {
        self.sink.season_row(rra, cells);
        if self.listed.is_some() {
            self.list(rra, 1, cells);
        }
    }

    fn span_begins(&mut self, until_whole: i64) {
        self.sink.span_begins(until_whole);
        self.end_span();
        self.until = until_whole;
    }
}
