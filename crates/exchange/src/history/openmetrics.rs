//! OpenMetrics and Prometheus' text format, with a time at each sample: what `promtool tsdb dump-openmetrics` and backfilling
//! tools write.

use std::borrow::Cow;
use std::collections::HashMap;

use ingest::sample::Kind;

use super::{History, HistoryError, Refused};

/// Bytes of a line at most.
pub const LINE_BYTES_MAX: usize = 1 << 20;
/// Names of families whose type is remembered.
const TYPES_MAX: usize = 1 << 20;
/// Times from here on are milliseconds, as Prometheus' own format has them: in seconds it is the year 5138.
const MILLISECONDS_FROM: f64 = 1e11;

/// A reader of lines.
#[derive(Debug, Default)]
pub struct OpenMetricsReader {
    types: HashMap<String, FamilyType>,
    line: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FamilyType {
    Counter,
    /// Histograms and summaries: counts and sums of counters.
    Distribution,
    Other,
}

/// A name with the labels after it.
#[derive(Default)]
struct Labelled<'a> {
    name: Cow<'a, str>,
    labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl OpenMetricsReader {
    /// Reads the next line into `history`.
    ///
    /// # Errors
    /// Inside, what is wrong with the line; outside, when there is no room for more.
    pub fn line(&mut self, line: &[u8], history: &mut History) -> Result<Result<(), Refused>, HistoryError> {
        self.line += 1;
        let refused = |why: &str| Ok(Err(Refused { line: self.line, why: why.to_string() }));
        if line.len() > LINE_BYTES_MAX {
            return refused("it is longer than a megabyte");
        }
        let Ok(text) = std::str::from_utf8(line) else { return refused("it is not UTF-8") };
        let text = text.trim();
        if let Some(comment) = text.strip_prefix('#') {
            self.remember(comment);
            return Ok(Ok(()));
        }
        if text.is_empty() {
            return Ok(Ok(()));
        }
        let Some((labelled, rest)) = labelled(text) else {
            return refused("it is no sample: expected NAME{LABEL=\"VALUE\",...} VALUE TIME");
        };
        let mut words = rest.split_ascii_whitespace();
        let Some(value) = words.next().and_then(number) else { return refused("its value is no number") };
        let Some(time) = words.next().filter(|word| *word != "#") else {
            return refused("it has no time; history needs one at each sample");
        };
        let Some(time) = number(time).filter(|time| time.is_finite()) else {
            return refused("its time is no number");
        };
        if words.next().is_some_and(|word| word != "#") {
            return refused("there is more after its time");
        }
        let time = if time.abs() >= MILLISECONDS_FROM { time } else { (time * 1000.0).round() };
        let kind = self.kind(&labelled.name);
        let labels = labelled.labels.iter().map(|(label, value)| (&**label, &**value));
        let added = history.add(&labelled.name, labels, kind, &[(time as i64, value)])?;
        Ok(added.map_err(|error| Refused { line: self.line, why: error.to_string() }))
    }

    /// Remembers ` TYPE name type`.
    fn remember(&mut self, comment: &str) {
        let mut words = comment.split_ascii_whitespace();
        let (Some("TYPE"), Some(name), Some(kind)) = (words.next(), words.next(), words.next()) else {
            return;
        };
        let kind = match kind {
            "counter" => FamilyType::Counter,
            "histogram" | "summary" | "gaugehistogram" => FamilyType::Distribution,
            _ => FamilyType::Other,
        };
        if self.types.len() < TYPES_MAX {
            self.types.insert(name.trim_matches('"').to_string(), kind);
        }
    }

    /// By the type of the family where there is one, else by the ending of the name.
    fn kind(&self, name: &str) -> Kind {
        const ENDINGS: [&str; 4] = ["_total", "_count", "_sum", "_bucket"];
        let family = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending));
        let known = self.types.get(name).or_else(|| self.types.get(family?));
        let counts = match known {
            Some(FamilyType::Counter) => true,
            Some(FamilyType::Distribution) => family.is_some(),
            Some(FamilyType::Other) => false,
            None => family.is_some(),
        };
        if counts { Kind::Counter } else { Kind::Gauge }
    }
}

fn number(text: &str) -> Option<f64> {
    // Rust's spellings of infinity and NaN include all that the formats have.
    text.parse().ok()
}

/// The name and labels at the beginning of a line, and what follows.
fn labelled(text: &str) -> Option<(Labelled<'_>, &str)> {
    let end = text.find(|c: char| c == '{' || c.is_ascii_whitespace())?;
    let mut labelled = Labelled { name: Cow::Borrowed(&text[..end]), labels: Vec::new() };
    let Some(mut rest) = text[end..].trim_start().strip_prefix('{') else {
        return (!labelled.name.is_empty()).then_some((labelled, &text[end..]));
    };
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if let Some(after) = rest.strip_prefix('}') {
            return (!labelled.name.is_empty()).then_some((labelled, after));
        }
        let (label, after) = match rest.strip_prefix('"') {
            Some(after) => quoted(after)?,
            None => {
                let end = rest.find(|c: char| c == '=' || c.is_ascii_whitespace())?;
                (Cow::Borrowed(&rest[..end]), &rest[end..])
            }
        };
        match after.trim_start().strip_prefix('=') {
            Some(after) => {
                let (value, after) = quoted(after.trim_start().strip_prefix('"')?)?;
                labelled.labels.push((label, value));
                rest = after;
            }
            // The name itself, quoted.
            None => {
                labelled.name = label;
                rest = after;
            }
        }
    }
}

/// The text up to the next quotation mark, with its escapes undone, and what follows.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let end = text.find(['"', '\\'])?;
    if text[end..].starts_with('"') {
        return Some((Cow::Borrowed(&text[..end]), &text[end + 1..]));
    }
    let mut plain = text[..end].to_string();
    let mut characters = text[end..].char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((Cow::Owned(plain), &text[end + at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => plain.push('\n'),
                escaped @ ('\\' | '"') => plain.push(escaped),
                other => plain.extend(['\\', other]),
            },
            _ => plain.push(character),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use ingest::sample::Series;

    #[test]
    fn lines_become_series() {
        let text = "# HELP http_requests Requests.\n# TYPE http_requests counter\n\
            http_requests_total{code=\"200\",path=\"a\\\"b\\\\c\\n\"} 7 1700000000.5 # {trace=\"x\"} 1\n\
            http_requests_total{code=\"200\",path=\"a\\\"b\\\\c\\n\",} 9 1700000060\n\
            temp 1e3 1700000000000\n{\"a name\", l=\"v\"} NaN 5\nup 1\nnonsense\nx{a=\"b} 1 2\ny 1 2 3\nz one 2\n# EOF\n";
        let (mut reader, mut history) = (OpenMetricsReader::default(), History::default());
        let mut refused = Vec::new();
        for line in text.lines() {
            let read = reader.line(line.as_bytes(), &mut history).expect("room");
            refused.extend(read.err().map(|refused| refused.to_string()));
        }
        let series = history.into_series();
        let shown: Vec<String> = series
            .iter()
            .map(|(key, of)| format!("{} {:?} {:?}", Series::of_key(key), of.kind, of.points))
            .collect();
        assert_eq!(
            shown,
            [
                "a name{l=\"v\"} Gauge [(5000, NaN)]",
                "http_requests_total{code=\"200\",path=\"a\\\"b\\\\c\\n\"} Counter [(1700000000500, 7.0), (1700000060000, 9.0)]",
                "temp Gauge [(1700000000000, 1000.0)]",
            ]
        );
        let lines: Vec<&str> = refused.iter().map(|text| text.split(':').next().unwrap_or("")).collect();
        assert_eq!(lines, ["line 7", "line 8", "line 9", "line 10", "line 11"]);
        assert!(refused[0].contains("has no time"));
    }
}
