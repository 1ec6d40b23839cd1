//! The rows that updates write, listed as `rrdtool updatev` shows them.

use rrd::definition::Definition;
use rrd::live::CdpPrep;
use rrd::update::RowSink;

use crate::direct::WrittenRow;

/// Passes rows on and, where that is wanted, lists them.
pub struct Listing<'a, S> {
    sink: S,
    definition: &'a Definition,
    /// The time until which the span under way lasts.
    until: i64,
    /// Rows of the span under way.
    span: Vec<WrittenRow>,
    listed: Option<&'a mut Vec<WrittenRow>>,
}

impl<'a, S> Listing<'a, S> {
    /// In front of `sink`, for an RRD of this definition.
    pub fn new(sink: S, definition: &'a Definition, listed: Option<&'a mut Vec<WrittenRow>>) -> Self {
        Listing { sink, definition, until: 0, span: Vec::new(), listed }
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

    /// Puts the rows of a span in RRDtool's order. To be called behind the last update, too.
    pub fn end_span(&mut self) {
        // Stable: the rows of one archive stay in order.
        self.span.sort_by_key(|row| row.rra);
        if let Some(listed) = &mut self.listed {
            listed.append(&mut self.span);
        }
    }
}

impl<S: RowSink> RowSink for Listing<'_, S> {
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
