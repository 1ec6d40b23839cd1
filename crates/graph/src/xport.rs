//! `xport`: the rows of chosen variables as XML or JSON, and a graph's as CSV and its kin.
//!
//! Decides which rows are written, and writes the same bytes as Debian's rrdtool; only legends in JSON are escaped, as
//! in RRDtool 1.9.

mod separated;
mod write;

pub use write::XportOptions;

use std::fmt;
use std::io::{self, Write};

use rrd::rpn::Series;

use crate::eval::Data;
use crate::language::graphic::{Graphic, PlotValue, Shape, ShapeKind};
use crate::language::{Element, Script};
use crate::plan::TimeRange;
use crate::print::{Printer, TimeFormat};

/// Bytes that RRDtool keeps of a formatted time.
const STAMP_BYTES_MAX: usize = 253;

/// A table of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Table<'a> {
    /// Start of the first row: seconds since the epoch.
    pub start: i64,
    /// End of the last row: seconds since the epoch.
    pub end: i64,
    /// Seconds in a row.
    pub step: u64,
    /// The headings of the columns; empty in a table made by [`Table::of`].
    pub legends: Vec<&'a [u8]>,
    columns: Vec<&'a Series>,
}

impl<'a> Table<'a> {
    /// The table of the XPORTs of `script`; `None` when there is none.
    pub fn new(script: &'a Script, range: TimeRange, data: &'a Data) -> Option<Table<'a>> {
        Table::of_elements(script, range, data, |element| match element {
            Element::Xport(xport) => Some((xport.series, &xport.legend)),
            _ => None,
        })
    }

    /// The table of a graph, whose lines and areas are columns too; `None` when it has no column. A line of a single
    /// value is left out: RRDtool crashes there.
    pub fn of_graph(script: &'a Script, range: TimeRange, data: &'a Data) -> Option<Table<'a>> {
        Table::of_elements(script, range, data, |element| match element {
            Element::Xport(xport) => Some((xport.series, &xport.legend)),
            Element::Graphic(Graphic::Shape(Shape { value: PlotValue::Series(series), legend, .. })) => {
                Some((*series, legend))
            }
            _ => None,
        })
    }

    fn of_elements(
        script: &'a Script,
        range: TimeRange,
        data: &'a Data,
        column: impl Fn(&'a Element) -> Option<(usize, &'a Vec<u8>)>,
    ) -> Option<Table<'a>> {
        let chosen: Vec<_> = script.elements.iter().filter_map(column).collect();
        let columns: Vec<&Series> = chosen.iter().map(|(series, _)| &data.series[*series]).collect();
        let mut table = Table::of(range, &columns)?;
        table.legends = chosen.into_iter().map(|(_, legend)| legend.as_slice()).collect();
        Some(table)
    }

    /// The table of `columns`, without legends; `None` when there is none.
    ///
    /// The step is the greatest common divisor of theirs, its range is `range`, widened to that step.
    pub fn of(range: TimeRange, columns: &[&'a Series]) -> Option<Table<'a>> {
        let step = columns.iter().map(|series| series.step.max(1)).reduce(gcd)?;
        let signed = i64::try_from(step).ok()?;
        let start = range.start - range.start.rem_euclid(signed);
        let end = range.end + (signed - range.end.rem_euclid(signed)) % signed;
        Some(Table { start, end, step, legends: Vec::new(), columns: columns.to_vec() })
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        (self.end - self.start).max(0) as u64 / self.step
    }

    /// The row time of row `index`.
    pub fn time(&self, index: u64) -> i64 {
        self.start + (index as i64 + 1) * self.step as i64
    }

    /// The values of each column, an iterator over the rows for each.
    pub fn cells(&self) -> Vec<Cells<'a>> {
        self.columns.iter().map(|series| Cells::new(series, self.time(0), self.step)).collect()
    }

    /// The values of the row that ends at `time`.
    pub fn row(&self, time: i64) -> impl Iterator<Item = f64> + '_ {
        self.columns.iter().map(move |series| value_at(series, time))
    }
}

/// The values of one column, row by row; NaN outside of its series. Needs no division.
#[derive(Clone, Debug)]
pub struct Cells<'a> {
    values: &'a [f64],
    /// Index of the next row's value; out of bounds where there is none.
    index: usize,
    /// How many more rows of the table have that value.
    left: u64,
    /// Rows of the table for one row of the series.
    ratio: u64,
}

impl<'a> Cells<'a> {
    /// Starts at the row of the table that ends at `time`; `table_step` divides the step of the series.
    fn new(series: &'a Series, time: i64, table_step: u64) -> Cells<'a> {
        let step = series.step.max(1);
        let signed = i64::try_from(step).unwrap_or(i64::MAX);
        // The row that covers the moment before `time`.
        let offset = time - series.start - 1;
        let left = (signed - offset.rem_euclid(signed)) as u64;
        Cells {
            values: &series.values,
            index: offset.div_euclid(signed) as usize,
            left: left.div_ceil(table_step),
            ratio: step / table_step,
        }
    }
}

impl Iterator for Cells<'_> {
    type Item = f64;

    /// Never ends.
    #[inline]
    fn next(&mut self) -> Option<f64> {
        let value = self.values.get(self.index).copied().unwrap_or(f64::NAN);
        self.left -= 1;
        if self.left == 0 {
            // Wraps from -1 to 0.
            self.index = self.index.wrapping_add(1);
            self.left = self.ratio;
        }
        Some(value)
    }
}

/// The value of the row that covers the moment before `time`; NaN outside.
fn value_at(series: &Series, time: i64) -> f64 {
    let offset = time - series.start - 1;
    if offset < 0 {
        return f64::NAN;
    }
    series.values.get((offset as u64 / series.step.max(1)) as usize).copied().unwrap_or(f64::NAN)
}

pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Why a table is not written, or not all of it. `Display` is RRDtool's text.
#[derive(Debug)]
pub enum XportError {
    /// There is no XPORT; nothing is written.
    NoXport,
    /// A text cannot be printed, with RRDtool's message; everything before the texts is written.
    Print(String),
    /// The sink failed.
    Io(io::Error),
}

impl fmt::Display for XportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            XportError::NoXport => f.write_str("no XPORT found, nothing to do"),
            XportError::Print(message) => f.write_str(message),
            XportError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for XportError {}

impl From<io::Error> for XportError {
    fn from(error: io::Error) -> XportError {
        XportError::Io(error)
    }
}

/// Writes the XPORTs of `script`, in chunks.
///
/// # Errors
/// [`XportError`].
pub fn xport(
    script: &Script,
    range: TimeRange,
    data: &Data,
    options: XportOptions,
    times: &dyn TimeFormat,
    sink: &mut dyn Write,
) -> Result<(), XportError> {
    let table = Table::new(script, range, data).ok_or(XportError::NoXport)?;
    write::write(sink, &table, options, None, Texts::print(script, data, times, 1000.0))
}

/// The file formats of a graph's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// As `xport` does.
    Xport(XportOptions),
    /// A line for each row, with this byte between its values.
    Separated(u8),
}

/// How the table of a graph is written.
#[derive(Clone, Copy)]
pub struct TableOptions<'a> {
    /// The file format.
    pub format: TableFormat,
    /// Format of all times (that of `--x-grid`); `None` = seconds since the epoch.
    pub time_format: Option<&'a [u8]>,
    /// Formats dates.
    pub times: &'a dyn TimeFormat,
    /// `--base`
    pub base: f64,
}

/// Writes the table of a graph, in chunks.
///
/// # Errors
/// [`XportError`].
pub fn of_graph(
    script: &Script,
    table: &Table<'_>,
    data: &Data,
    options: TableOptions<'_>,
    sink: &mut dyn Write,
) -> Result<(), XportError> {
    let stamp = options.time_format.map(|format| Stamp { format, times: options.times });
    match options.format {
        TableFormat::Xport(format) => {
            let texts = Texts::print(script, data, options.times, options.base);
            write::write(sink, table, format, stamp, texts)
        }
        TableFormat::Separated(separator) => Ok(separated::write(sink, table, separator, stamp)?),
    }
}

/// How times are written, where not as seconds.
#[derive(Clone, Copy)]
struct Stamp<'a> {
    format: &'a [u8],
    times: &'a dyn TimeFormat,
}

impl Stamp<'_> {
    fn push(self, out: &mut Vec<u8>, time: i64) {
        let mut text = self.times.strftime(self.format, time);
        text.truncate(STAMP_BYTES_MAX);
        out.extend(text);
    }
}

/// The texts of a graph as an xport shows them, as (kind, text).
#[derive(Debug, Default)]
struct Texts {
    /// PRINT
    prints: Vec<(&'static str, Vec<u8>)>,
    /// GPRINT, COMMENT and TEXTALIGN; the legends of LINE, AREA and STACK
    inside: Vec<(&'static str, Vec<u8>)>,
    /// HRULE and VRULE
    rules: Vec<(&'static str, Vec<u8>)>,
}

impl Texts {
    /// Prints all of them in the order of the arguments: `%S` depends on what was printed before.
    fn print(script: &Script, data: &Data, times: &dyn TimeFormat, base: f64) -> Result<Texts, String> {
        let mut printer = Printer::of_xport(times, base);
        let mut texts = Texts::default();
        for element in &script.elements {
            match element {
                Element::Print(print) => {
                    let text = printer.print(print, data).map_err(|_| {
                        // Compat: the quotes do not match in RRDtool's text either.
                        format!("bad format for PRINT in \"{}'", String::from_utf8_lossy(&print.format))
                    })?;
                    if print.inside {
                        texts.inside.push(("gprint", text));
                    } else {
                        texts.prints.push(("print", text));
                    }
                }
                Element::Comment(text) => texts.inside.push(("comment", text.clone())),
                Element::TextAlign(align) => texts.inside.push(("align", align.clone())),
                Element::Graphic(Graphic::Shape(shape)) => texts.inside.push(legend(shape)),
                // Compat: the position of a rule is always 0.
                Element::Graphic(Graphic::Rule(rule)) if rule.vertical => {
                    texts.rules.push(("vrule", b"0".to_vec()))
                }
                Element::Graphic(Graphic::Rule(_)) => {
                    texts.rules.push(("hrule", b"0.0000000000e+00".to_vec()))
                }
                _ => {}
            }
        }
        Ok(texts)
    }
}

/// The legend of a line or an area. Compat: an area's has two leading blanks, a line's has none.
fn legend(shape: &Shape) -> (&'static str, Vec<u8>) {
    let text = shape.legend.as_slice();
    match shape.kind {
        ShapeKind::Line { .. } => ("line", text.trim_ascii_start().to_vec()),
        ShapeKind::Area { .. } if text.is_empty() => ("area", Vec::new()),
        ShapeKind::Area { .. } => ("area", [b"  ", text].concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_as_fine_as_its_finest_common_step() {
        let a = Series { start: 0, step: 10, values: vec![1.0, 2.0, 3.0] };
        let b = Series { start: 6, step: 6, values: vec![4.0, 5.0] };
        let range = TimeRange { start: 5, end: 23, step: 1 };
        let table = Table::of(range, &[&a, &b]).unwrap();
        assert_eq!((table.start, table.end, table.step, table.rows()), (4, 24, 2, 10));
        let row = |time| table.row(time).map(|value| value.to_bits()).collect::<Vec<_>>();
        let want = |values: [f64; 2]| values.map(f64::to_bits).to_vec();
        assert_eq!(row(6), want([1.0, f64::NAN]));
        assert_eq!(row(8), want([1.0, 4.0]));
        assert_eq!(row(12), want([2.0, 4.0]));
        assert_eq!(row(14), want([2.0, 5.0]));
        assert_eq!(row(24), want([3.0, f64::NAN]));
        let cells = table.cells();
        for index in 0..table.rows() {
            let next = cells.iter().map(|cells| cells.clone().nth(index as usize).map(f64::to_bits));
            let here: Vec<_> = row(table.time(index)).into_iter().map(Some).collect();
            assert_eq!(next.collect::<Vec<_>>(), here, "{index}");
        }
        // A series that does not begin at a row of the table.
        let odd = Series { start: 3, step: 4, values: vec![6.0, 7.0] };
        let values: Vec<f64> = Cells::new(&odd, 2, 2).take(6).collect();
        assert!(values[0].is_nan() && values[5].is_nan());
        assert_eq!(values[1..5], [6.0, 6.0, 7.0, 7.0]);
        assert_eq!(Table::of(range, &[]), None);
    }
}
