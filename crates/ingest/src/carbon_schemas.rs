//! Carbon's `storage-schemas.conf` and `storage-aggregation.conf`, read as they are.
//!
//! Both are lists of sections with a regular expression each; the first whose expression is found in a name counts. From the one
//! follow steps and rows, from the other the consolidation function and how much may be unknown. Whisper says which part of a
//! row must be known, RRDtool which part may be unknown: the one is the complement of the other.

mod ini;

use std::fmt;

use regex::{Regex, RegexBuilder};
use rrd::definition::Cf;

use self::ini::Section;
use crate::table::{Archives, CreateRule};

/// What carbon does when no section of `storage-schemas.conf` fits: a week of minutes.
const RETENTION_DEFAULT: Retention = Retention { seconds: 60, rows: 60 * 24 * 7 };
/// `xFilesFactor` where no section says it.
const KNOWN_DEFAULT: f64 = 0.5;
/// RRDtool's xff is below 1: any known part of a row of fewer than 100,000 suffices.
const XFF_MAX: f64 = 0.999_99;
/// Archives of a name at most.
const RETENTIONS_MAX: usize = 32;
/// Rows of an archive at most: a century of seconds.
const ROWS_MAX: u64 = 3_200_000_000;
/// Rules that both files stand for at most.
const RULES_MAX: usize = 10_000;
/// Bytes that one compiled expression may take.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// An archive: so many rows of so many seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Seconds of a row.
    pub seconds: u64,
    /// Rows.
    pub rows: u64,
}

/// A section of `storage-schemas.conf`.
#[derive(Clone, Debug)]
struct Schema {
    section: String,
    pattern: Regex,
    retentions: Vec<Retention>,
}

/// A section of `storage-aggregation.conf`.
#[derive(Clone, Debug)]
struct Aggregation {
    pattern: Regex,
    cf: Option<Cf>,
    known: Option<f64>,
}

/// What carbon's files say of a name.
#[derive(Clone, Debug, PartialEq)]
pub struct CarbonLayout<'a> {
    /// The section of `storage-schemas.conf`; empty when none fits.
    pub section: &'a str,
    /// Archives, the finest first.
    pub retentions: &'a [Retention],
    /// How rows are made of finer ones.
    pub cf: Cf,
    /// The part of a row that may be unknown.
    pub xff: f64,
}

/// Both files.
#[derive(Clone, Debug, Default)]
pub struct CarbonSchemas {
    schemas: Vec<Schema>,
    aggregations: Vec<Aggregation>,
}

/// What is wrong in one of the files: the line, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarbonFault {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub text: String,
}

impl fmt::Display for CarbonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.text)
    }
}

impl std::error::Error for CarbonFault {}

impl CarbonSchemas {
    /// Reads both files; without the second, means are made.
    ///
    /// Sections with a fault are left out, as carbon leaves them out, and told to `fault` with the file's name.
    pub fn parse(
        schemas: &str,
        aggregation: Option<&str>,
        fault: &mut dyn FnMut(&'static str, CarbonFault),
    ) -> CarbonSchemas {
        let mut read = CarbonSchemas::default();
        for section in ini::sections(schemas, &mut |found| fault("storage-schemas.conf", found)) {
            match schema(&section) {
                Ok(schema) => read.schemas.push(schema),
                Err(found) => fault("storage-schemas.conf", found),
            }
        }
        let text = aggregation.unwrap_or_default();
        for section in ini::sections(text, &mut |found| fault("storage-aggregation.conf", found)) {
            match aggregation_of(&section) {
                Ok((aggregation, note)) => {
                    read.aggregations.push(aggregation);
                    if let Some(note) = note {
                        fault("storage-aggregation.conf", note);
                    }
                }
                Err(found) => fault("storage-aggregation.conf", found),
            }
        }
        read
    }

    /// The archives of a name, which has tags as in a plaintext line.
    pub fn layout(&self, name: &str) -> CarbonLayout<'_> {
        let schema = self.schemas.iter().find(|schema| schema.pattern.is_match(name));
        let (section, retentions) = match schema {
            Some(schema) => (schema.section.as_str(), schema.retentions.as_slice()),
            None => ("", std::slice::from_ref(&RETENTION_DEFAULT)),
        };
        let aggregation = self.aggregations.iter().find(|aggregation| aggregation.pattern.is_match(name));
        let (cf, xff) = consolidation(aggregation);
        CarbonLayout { section, retentions, cf, xff }
    }

    /// The same as rules of `[[create]]`, whose RRDs have the names of this template: one for each section of the first file with each
    /// of the second, then those for names that no section of one of them fits.
    pub fn rules(&self, path: &str) -> Vec<CreateRule> {
        let mut rules = Vec::new();
        let any = Schema::any();
        for schema in self.schemas.iter().chain(std::iter::once(&any)) {
            for aggregation in self.aggregations.iter().map(Some).chain(std::iter::once(None)) {
                if rules.len() == RULES_MAX {
                    return rules;
                }
                let patterns = [Some(&schema.pattern), aggregation.map(|aggregation| &aggregation.pattern)];
                let found = patterns.into_iter().flatten().map(Regex::as_str);
                rules.push(CreateRule {
                    found: found.filter(|pattern| !pattern.is_empty()).map(str::to_owned).collect(),
                    step: schema.retentions.first().map(|finest| finest.seconds.to_string()),
                    archives: Some(Archives::Words(words(&schema.retentions, aggregation))),
                    path: Some(path.to_owned()),
                    ..CreateRule::default()
                });
            }
        }
        rules
    }

    /// True when there is no section in either.
    pub fn is_empty(&self) -> bool {
        self.schemas.is_empty() && self.aggregations.is_empty()
    }
}

impl Schema {
    /// What fits every name.
    fn any() -> Schema {
        let pattern = Regex::new("").unwrap_or_else(|_| unreachable!("an empty expression is one"));
        Schema { section: String::new(), pattern, retentions: vec![RETENTION_DEFAULT] }
    }
}

/// The function of an aggregation, and the part of a row that may be unknown.
fn consolidation(aggregation: Option<&Aggregation>) -> (Cf, f64) {
    let cf = aggregation.and_then(|aggregation| aggregation.cf).unwrap_or(Cf::Average);
    let known = aggregation.and_then(|aggregation| aggregation.known).unwrap_or(KNOWN_DEFAULT);
    (cf, (1.0 - known).min(XFF_MAX))
}

/// The archives as `rrdcreate(1)` has them.
fn words(retentions: &[Retention], aggregation: Option<&Aggregation>) -> Vec<String> {
    let (cf, xff) = consolidation(aggregation);
    let step = retentions.first().map_or(1, |finest| finest.seconds);
    let word =
        |archive: &Retention| format!("RRA:{}:{xff}:{}:{}", cf.name(), archive.seconds / step, archive.rows);
    retentions.iter().map(word).collect()
}

fn schema(section: &Section<'_>) -> Result<Schema, CarbonFault> {
    let pattern = pattern(section)?;
    let (line, text) = section.get("retentions").ok_or_else(|| section.fault("it has no retentions"))?;
    let bad = |text: String| CarbonFault { line, text };
    let mut retentions = Vec::new();
    for part in text.split(',') {
        retentions.push(retention(part.trim()).map_err(bad)?);
        if retentions.len() > RETENTIONS_MAX {
            return Err(bad(format!("more than {RETENTIONS_MAX} retentions")));
        }
    }
    retentions.sort_by_key(|retention| retention.seconds);
    for pair in retentions.windows(2) {
        let [finer, coarser] = pair else { continue };
        if finer.seconds == coarser.seconds || coarser.seconds % finer.seconds != 0 {
            return Err(bad(format!(
                "rows of {} s cannot be made of rows of {} s: give a multiple",
                coarser.seconds, finer.seconds
            )));
        }
    }
    Ok(Schema { section: section.name.to_string(), pattern, retentions })
}

/// `60s:1d`, `60:1440`, `5m:30d`: how long a row is, and how many there are or how far they reach.
fn retention(text: &str) -> Result<Retention, String> {
    let bad = || format!("\"{text}\" is not precision:length, as in 60s:1d or 60:1440");
    let (precision, length) = text.split_once(':').ok_or_else(bad)?;
    let seconds = duration(precision.trim()).ok_or_else(bad)?.0;
    let rows = match duration(length.trim()).ok_or_else(bad)? {
        (rows, false) => rows,
        (length, true) => length.checked_div(seconds).ok_or_else(bad)?,
    };
    if seconds == 0 || rows == 0 || rows > ROWS_MAX || seconds > u64::from(u32::MAX) {
        return Err(format!("\"{text}\" has no rows, or too many"));
    }
    Ok(Retention { seconds, rows })
}

/// A number, and whether it has a unit; with one it is in seconds. A unit is whisper's: any beginning of its name.
fn duration(text: &str) -> Option<(u64, bool)> {
    const UNITS: &[(&str, u64)] = &[
        ("seconds", 1),
        ("minutes", 60),
        ("hours", 3_600),
        ("days", 86_400),
        ("weeks", 604_800),
        ("years", 31_536_000),
    ];
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit = &text[digits..];
    if unit.is_empty() {
        return Some((number, false));
    }
    let (_, seconds) = UNITS.iter().find(|(name, _)| name.starts_with(unit))?;
    Some((number.checked_mul(*seconds)?, true))
}

fn aggregation_of(section: &Section<'_>) -> Result<(Aggregation, Option<CarbonFault>), CarbonFault> {
    let pattern = pattern(section)?;
    let known = match section.get("xfilesfactor") {
        None => None,
        Some((line, text)) => {
            let number = text.parse::<f64>().ok().filter(|number| (0.0..=1.0).contains(number));
            let text = || format!("xFilesFactor is \"{text}\", and not a number from 0 to 1");
            Some(number.ok_or_else(|| CarbonFault { line, text: text() })?)
        }
    };
    let mut note = None;
    let cf = match section.get("aggregationmethod") {
        None => None,
        Some((line, method)) => {
            let (cf, instead) = method_of(method).ok_or_else(|| CarbonFault {
                line,
                text: format!("aggregationMethod \"{method}\" is not known: average, sum, last, max or min"),
            })?;
            note = instead.map(|instead| CarbonFault {
                line,
                text: format!("aggregationMethod \"{method}\" is not an RRD's: {instead}"),
            });
            Some(cf)
        }
    };
    Ok((Aggregation { pattern, cf, known }, note))
}

/// The consolidation function of one of whisper's methods, and what is said when it is not the same.
fn method_of(method: &str) -> Option<(Cf, Option<&'static str>)> {
    Some(match method {
        "average" | "avg" => (Cf::Average, None),
        "last" => (Cf::Last, None),
        "max" => (Cf::Max, None),
        "min" => (Cf::Min, None),
        "sum" => (Cf::Average, Some("the mean is kept, and the sum is the mean times the number of rows")),
        "avg_zero" => (Cf::Average, Some("the mean of what is known is kept")),
        "absmax" => (Cf::Max, Some("the maximum is kept")),
        "absmin" => (Cf::Min, Some("the minimum is kept")),
        _ => return None,
    })
}

fn pattern(section: &Section<'_>) -> Result<Regex, CarbonFault> {
    let (line, text) = section.get("pattern").ok_or_else(|| section.fault("it has no pattern"))?;
    RegexBuilder::new(text).size_limit(REGEX_BYTES_MAX).build().map_err(|error| {
        // Its report has several lines, of which the last says what is wrong.
        let error = error.to_string();
        let cause = error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_string();
        CarbonFault { line, text: format!("the pattern \"{text}\" cannot be used: {cause}") }
    })
}

#[cfg(test)]
mod tests;
