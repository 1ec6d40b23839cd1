//! `xport`: the rows of chosen variables, as XML or JSON.
//!
//! Owns which rows come out and the bytes of both forms, which are Debian's.
//! Where 1.9 differs it is followed: legends in JSON are escaped.

mod number;
mod separated;
mod write;

pub use write::Form;

use std::io::{self, Write};

use rrd::rpn::Series;

use crate::eval::Data;
use crate::language::drawn::{Drawn, Plotted, Shape, ShapeKind};
use crate::language::{Element, Script};
use crate::plan::Frame;
use crate::print::{Printer, TimeFormat};

/// Bytes of a time's text that RRDtool keeps.
const STAMP_BYTES_MAX: usize = 253;

/// A table of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Table<'a> {
    /// Where the first row begins: seconds since the epoch.
    pub start: i64,
    /// Where the last row ends.
    pub end: i64,
    /// Seconds in a row.
    pub step: u64,
    /// What stands above the columns.
    pub legends: Vec<&'a [u8]>,
    columns: Vec<&'a Series>,
}

impl<'a> Table<'a> {
    /// The table of the XPORTs of `script`; `None` when there is none.
    pub fn new(script: &'a Script, frame: Frame, data: &'a Data) -> Option<Table<'a>> {
        Table::of_elements(script, frame, data, |element| match element {
            Element::Xport(xport) => Some((xport.series, &xport.legend)),
            _ => None,
        })
    }

    /// The table of a graph: its lines and areas are columns too. RRDtool crashes where one is of a single value;
    /// here it is left out.
    pub fn of_graph(script: &'a Script, frame: Frame, data: &'a Data) -> Option<Table<'a>> {
        Table::of_elements(script, frame, data, |element| match element {
            Element::Xport(xport) => Some((xport.series, &xport.legend)),
            Element::Drawn(Drawn::Shape(Shape { value: Plotted::Series(series), legend, .. })) => {
                Some((*series, legend))
            }
            _ => None,
        })
    }

    fn of_elements(
        script: &'a Script,
        frame: Frame,
        data: &'a Data,
        column: impl Fn(&'a Element) -> Option<(usize, &'a Vec<u8>)>,
    ) -> Option<Table<'a>> {
        let chosen: Vec<_> = script.elements.iter().filter_map(column).collect();
        let columns: Vec<&Series> = chosen.iter().map(|(series, _)| &data.series[*series]).collect();
        let mut table = Table::of(frame, &columns)?;
        table.legends = chosen.into_iter().map(|(_, legend)| legend.as_slice()).collect();
        Some(table)
    }

    /// The table of `columns`, without legends; `None` when there is none.
    ///
    /// Its step is the greatest common divisor of theirs, its range the frame's, widened to that step.
    pub fn of(frame: Frame, columns: &[&'a Series]) -> Option<Table<'a>> {
        let step = columns.iter().map(|series| series.step.max(1)).reduce(gcd)?;
        let signed = i64::try_from(step).ok()?;
        let start = frame.start - frame.start.rem_euclid(signed);
        let end = frame.end + (signed - frame.end.rem_euclid(signed)) % signed;
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

    /// The values of each column, row by row.
    pub fn cells(&self) -> Vec<Cells<'a>> {
        self.columns.iter().map(|series| Cells::new(series, self.time(0), self.step)).collect()
    }

    /// The values of the row that ends at `time`.
    pub fn row(&self, time: i64) -> impl Iterator<Item = f64> + '_ {
        self.columns.iter().map(move |series| value_at(series, time))
    }
}

/// The values of one column, a row of the table after the other; NaN outside of its series. Costs no division.
#[derive(Clone, Debug)]
pub struct Cells<'a> {
    values: &'a [f64],
    /// Of the value of the next row; outside, it is past all of them.
    index: usize,
    /// Rows of the table with that value that are left.
    left: u64,
    /// Rows of the table in one of the series.
    ratio: u64,
}

impl<'a> Cells<'a> {
    /// From the row of the table that ends at `time` on; `table_step` is a divisor of the series' step.
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

    /// Goes on for ever.
    #[inline]
    fn next(&mut self) -> Option<f64> {
        let value = self.values.get(self.index).copied().unwrap_or(f64::NAN);
        self.left -= 1;
        if self.left == 0 {
            // From -1 to 0, too.
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

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// What became of an xport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// All of it is written.
    All,
    /// There is no XPORT, and nothing is written.
    Nothing,
    /// It is written up to a text that cannot be printed; its message.
    UpTo(String),
}

/// Writes the XPORTs of `script`, in pieces.
///
/// # Errors
/// What the sink says.
pub fn xport(
    script: &Script,
    frame: Frame,
    data: &Data,
    form: Form,
    times: &dyn TimeFormat,
    sink: &mut dyn Write,
) -> io::Result<Written> {
    let Some(table) = Table::new(script, frame, data) else { return Ok(Written::Nothing) };
    write::write(sink, &table, form, None, Texts::print(script, data, times, 1000.0))
}

/// How a graph is written as a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphForm {
    /// As `xport` does.
    Marked(Form),
    /// A line for each row, with this byte between its values.
    Separated(u8),
}

/// What the table of a graph is written with.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// How it is written.
    pub form: GraphForm,
    /// The format of every time (that of `--x-grid`); seconds since the epoch where there is none.
    pub time_format: Option<&'a [u8]>,
    /// Writes dates.
    pub times: &'a dyn TimeFormat,
    /// `--base`
    pub base: f64,
}

/// Writes the table of a graph, in pieces.
///
/// # Errors
/// What the sink says.
pub fn of_graph(
    script: &Script,
    table: &Table<'_>,
    data: &Data,
    setting: Setting<'_>,
    sink: &mut dyn Write,
) -> io::Result<Written> {
    let stamp = setting.time_format.map(|format| Stamp { format, times: setting.times });
    match setting.form {
        GraphForm::Marked(form) => {
            let texts = Texts::print(script, data, setting.times, setting.base);
            write::write(sink, table, form, stamp, texts)
        }
        GraphForm::Separated(separator) => {
            separated::write(sink, table, separator, stamp).map(|()| Written::All)
        }
    }
}

/// How times are written that are no seconds.
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
    /// All of them, in the order of the arguments: `%S` goes by what was printed before it.
    fn print(script: &Script, data: &Data, times: &dyn TimeFormat, base: f64) -> Result<Texts, String> {
        let mut printer = Printer::of_xport(times, base);
        let mut texts = Texts::default();
        for element in &script.elements {
            match element {
                Element::Print(print) => {
                    let text = printer.print(print, data).map_err(|_| {
                        // Compat: the quotes do not match.
                        format!("bad format for PRINT in \"{}'", String::from_utf8_lossy(&print.format))
                    })?;
                    if print.inside {
                        texts.inside.push(("gprint", text));
                    } else {
                        texts.prints.push(("print", text));
                    }
                }
                Element::Note(note) => texts.inside.push((note.kind.word(), note.text.clone())),
                Element::Drawn(Drawn::Shape(shape)) => texts.inside.push(legend(shape)),
                // Compat: where a rule stands is not reckoned.
                Element::Drawn(Drawn::Rule(rule)) if rule.vertical => {
                    texts.rules.push(("vrule", b"0".to_vec()))
                }
                Element::Drawn(Drawn::Rule(_)) => texts.rules.push(("hrule", b"0.0000000000e+00".to_vec())),
                _ => {}
            }
        }
        Ok(texts)
    }
}

/// The legend of a line or an area. Compat: a graph has two blanks in front of it; for a line blanks are
/// taken off again.
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
        let frame = Frame { start: 5, end: 23, step: 1 };
        let table = Table::of(frame, &[&a, &b]).unwrap();
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
        // Of a series that begins where no row does.
        let odd = Series { start: 3, step: 4, values: vec![6.0, 7.0] };
        let values: Vec<f64> = Cells::new(&odd, 2, 2).take(6).collect();
        assert!(values[0].is_nan() && values[5].is_nan());
        assert_eq!(values[1..5], [6.0, 6.0, 7.0, 7.0]);
        assert_eq!(Table::of(frame, &[]), None);
    }
}
