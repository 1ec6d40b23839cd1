//! The output formats: a table for people, CSV, JSON, Arrow IPC, Parquet.
//!
//! Numbers are written so that they read back as the same double. Unknown is `-` in a table, empty in CSV and null
//! elsewhere.

use std::io::Write;
use std::iter::once;

use crate::error::QueryError;

/// What the first column of RRDs is called.
pub(crate) const RRD: &str = "rrd";
/// Least width of a column of the table in characters.
const COLUMN_WIDTH: usize = 12;

/// The output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// Comma-separated values with a heading.
    Csv,
    /// An array of objects.
    Json,
    /// Arrow IPC, streaming format.
    Arrow,
    /// Parquet.
    Parquet,
}

impl Format {
    /// Checks that this build can write the format, before anything is read or written.
    ///
    /// # Errors
    /// [`QueryError::NotBuilt`].
    pub fn check(self) -> Result<(), QueryError> {
        match self {
            Format::Arrow if cfg!(not(feature = "arrow")) => Err(QueryError::NotBuilt("Arrow")),
            Format::Parquet if cfg!(not(feature = "arrow")) => Err(QueryError::NotBuilt("Parquet")),
            _ => Ok(()),
        }
    }
}

/// The columns of the answer.
#[derive(Clone, Debug)]
pub(crate) struct Heading {
    /// What the first column is called, which has the names.
    pub(crate) key: &'static str,
    /// Names of the labels, which follow it everywhere but in the table: there, the names say them.
    pub(crate) labels: Vec<String>,
    /// Whether each line has a time.
    pub(crate) times: bool,
    /// Names of the value columns, which follow name and time.
    pub(crate) columns: Vec<String>,
    /// Names of the text columns, which come last; only if lines have no time.
    pub(crate) texts: Vec<String>,
    /// Bytes of the longest name.
    pub(crate) name_bytes_max: usize,
}

/// The lines of one RRD.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    /// The RRD's name.
    pub(crate) name: String,
    /// The values of the heading's labels; empty: it has not that label.
    pub(crate) labels: Vec<String>,
    /// The row times; without any, there is one line.
    pub(crate) times: Vec<i64>,
    /// The values, by column.
    pub(crate) columns: Vec<Vec<f64>>,
    /// The texts of the one line.
    pub(crate) texts: Vec<String>,
}

impl Block {
    pub(crate) fn lines(&self) -> usize {
        self.columns.first().map_or(usize::from(!self.texts.is_empty()), Vec::len)
    }
}

/// Writes blocks in order.
pub(crate) trait Sink {
    fn add(&mut self, block: &Block) -> Result<(), QueryError>;
    fn finish(&mut self) -> Result<(), QueryError>;
}

/// A sink for this format.
pub(crate) fn sink<'w>(
    format: Format,
    heading: Heading,
    out: &'w mut (dyn Write + Send),
) -> Result<Box<dyn Sink + 'w>, QueryError> {
    format.check()?;
    match format {
        Format::Table => Ok(Box::new(Table::new(heading, out)?)),
        Format::Csv => Ok(Box::new(Csv::new(&heading, out)?)),
        Format::Json => Ok(Box::new(Json { heading, out, lines: 0 })),
        #[cfg(feature = "arrow")]
        Format::Arrow | Format::Parquet => crate::columnar::sink(format, &heading, out),
        #[cfg(not(feature = "arrow"))]
        Format::Arrow | Format::Parquet => unreachable!("`check` refuses what is not built"),
    }
}

/// The shortest text that reads back as the same double.
fn number(value: f64) -> String {
    let text = format!("{value:?}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}

struct Table<'w> {
    heading: Heading,
    widths: Vec<usize>,
    out: &'w mut (dyn Write + Send),
}

impl<'w> Table<'w> {
    fn new(heading: Heading, out: &'w mut (dyn Write + Send)) -> Result<Self, QueryError> {
        let names = || heading.columns.iter().chain(&heading.texts);
        let widths: Vec<usize> = names().map(|name| name.len().max(COLUMN_WIDTH)).collect();
        let key = if heading.key == RRD { "RRD" } else { heading.key };
        write!(out, "{key:name$}", name = heading.name_bytes_max.max(key.len()))?;
        if heading.times {
            write!(out, "  {:>10}", "time")?;
        }
        for (name, width) in names().zip(&widths) {
            write!(out, "  {name:>width$}")?;
        }
        writeln!(out)?;
        Ok(Table { heading, widths, out })
    }
}

impl Sink for Table<'_> {
    fn add(&mut self, block: &Block) -> Result<(), QueryError> {
        for line in 0..block.lines() {
            let width = self.heading.name_bytes_max.max(self.heading.key.len());
            write!(self.out, "{:width$}", block.name)?;
            if let Some(time) = block.times.get(line) {
                write!(self.out, "  {time:>10}")?;
            }
            for (column, width) in block.columns.iter().zip(&self.widths) {
                let value = column[line];
                let text = if value.is_nan() { "-".to_string() } else { number(value) };
                write!(self.out, "  {text:>width$}")?;
            }
            for (text, width) in block.texts.iter().zip(&self.widths[block.columns.len()..]) {
                write!(self.out, "  {text:>width$}")?;
            }
            writeln!(self.out)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), QueryError> {
        Ok(self.out.flush()?)
    }
}

struct Csv<'w> {
    out: &'w mut (dyn Write + Send),
}

impl<'w> Csv<'w> {
    fn new(heading: &Heading, out: &'w mut (dyn Write + Send)) -> Result<Self, QueryError> {
        write!(out, "{}", heading.key)?;
        for label in &heading.labels {
            write!(out, ",{}", quoted(label))?;
        }
        write!(out, "{}", if heading.times { ",time" } else { "" })?;
        for name in heading.columns.iter().chain(&heading.texts) {
            write!(out, ",{}", quoted(name))?;
        }
        writeln!(out)?;
        Ok(Csv { out })
    }
}

impl Sink for Csv<'_> {
    fn add(&mut self, block: &Block) -> Result<(), QueryError> {
        let name = once(&block.name).chain(&block.labels).map(|text| quoted(text));
        let name = name.collect::<Vec<_>>().join(",");
        for line in 0..block.lines() {
            write!(self.out, "{name}")?;
            if let Some(time) = block.times.get(line) {
                write!(self.out, ",{time}")?;
            }
            for column in &block.columns {
                let value = column[line];
                write!(self.out, ",{}", if value.is_nan() { String::new() } else { number(value) })?;
            }
            for text in &block.texts {
                write!(self.out, ",{}", quoted(text))?;
            }
            writeln!(self.out)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), QueryError> {
        Ok(self.out.flush()?)
    }
}

/// A field of CSV (RFC 4180).
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

struct Json<'w> {
    heading: Heading,
    out: &'w mut (dyn Write + Send),
    lines: u64,
}

impl Sink for Json<'_> {
    fn add(&mut self, block: &Block) -> Result<(), QueryError> {
        for line in 0..block.lines() {
            write!(
                self.out,
                "{}{{\"{}\":{}",
                if self.lines == 0 { "[\n" } else { ",\n" },
                self.heading.key,
                json(&block.name)
            )?;
            self.lines += 1;
            let labels = self.heading.labels.iter().zip(&block.labels);
            for (label, value) in labels.filter(|(_, value)| !value.is_empty()) {
                write!(self.out, ",{}:{}", json(label), json(value))?;
            }
            if let Some(time) = block.times.get(line) {
                write!(self.out, ",\"time\":{time}")?;
            }
            for (name, column) in self.heading.columns.iter().zip(&block.columns) {
                let value = column[line];
                let text = if value.is_finite() { number(value) } else { "null".to_string() };
                write!(self.out, ",{}:{text}", json(name))?;
            }
            for (name, text) in self.heading.texts.iter().zip(&block.texts) {
                write!(self.out, ",{}:{}", json(name), json(text))?;
            }
            write!(self.out, "}}")?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), QueryError> {
        writeln!(self.out, "{}", if self.lines == 0 { "[]" } else { "\n]" })?;
        Ok(self.out.flush()?)
    }
}

fn json(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\0'..' ' => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
            _ => out.push(letter),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: Format, want: &str) {
        let columns = vec!["in".into(), "a,\"b".into()];
        let heading = Heading {
            key: RRD,
            labels: Vec::new(),
            times: true,
            columns,
            texts: Vec::new(),
            name_bytes_max: 5,
        };
        let block = Block {
            name: "x\"y.z".to_string(),
            labels: Vec::new(),
            times: vec![1_000_000_010, 1_000_000_020],
            columns: vec![vec![1.5, f64::NAN], vec![1e300, 0.1 + 0.2]],
            texts: Vec::new(),
        };
        let mut out: Vec<u8> = Vec::new();
        let mut sink = sink(format, heading, &mut out).expect("a sink");
        sink.add(&block).expect("written");
        sink.finish().expect("finished");
        drop(sink);
        assert_eq!(String::from_utf8_lossy(&out), want);
    }

    #[test]
    fn every_text_form_has_every_value() {
        check(
            Format::Table,
            "RRD          time            in          a,\"b\n\
             x\"y.z  1000000010           1.5         1e300\n\
             x\"y.z  1000000020             -  0.30000000000000004\n",
        );
        check(
            Format::Csv,
            "rrd,time,in,\"a,\"\"b\"\n\"x\"\"y.z\",1000000010,1.5,1e300\n\"x\"\"y.z\",1000000020,,0.30000000000000004\n",
        );
        check(
            Format::Json,
            "[\n{\"rrd\":\"x\\\"y.z\",\"time\":1000000010,\"in\":1.5,\"a,\\\"b\":1e300},\n\
             {\"rrd\":\"x\\\"y.z\",\"time\":1000000020,\"in\":null,\"a,\\\"b\":0.30000000000000004}\n]\n",
        );
    }
}
