//! `--use-nan-for-all-missing-data`: what is not there is unknown.

use std::error::Error;

use crate::language::{Element, Script};
use crate::plan::{Computation, Fetched, Request, Rows};

/// Most rows of a fetch that found nothing; a picture has fewer columns.
const ROWS_MAX: i64 = 1 << 16;

/// Rows of another source; where it has none, or lacks a data source that a DEF names, these are unknown.
pub struct MissingAsUnknown<'a> {
    rows: &'a mut dyn Rows,
    script: &'a Script,
}

impl<'a> MissingAsUnknown<'a> {
    /// The rows that `script` asks for.
    pub fn new(rows: &'a mut dyn Rows, script: &'a Script) -> MissingAsUnknown<'a> {
        MissingAsUnknown { rows, script }
    }
}

impl Rows for MissingAsUnknown<'_> {
    fn fetch(&mut self, request: &Request) -> Result<Fetched, Box<dyn Error + Send + Sync>> {
        let mut fetched = self.rows.fetch(request).unwrap_or_else(|_| unknown(request));
        let mut missing: Vec<Vec<u8>> = Vec::new();
        for element in &self.script.elements {
            if let Element::Def(def) = element
                && def.file == request.file
                && !fetched.names.contains(&def.ds)
                && !missing.contains(&def.ds)
            {
                missing.push(def.ds.clone());
            }
        }
        if !missing.is_empty() {
            add(&mut fetched, missing);
        }
        Ok(fetched)
    }

    fn compute(&mut self, rows: usize, words: usize) -> Result<Computation, Box<dyn Error + Send + Sync>> {
        self.rows.compute(rows, words)
    }
}

/// Rows without a data source, over the range that was asked for: one value a row that [`add`] takes away.
fn unknown(request: &Request) -> Fetched {
    let span = request.end.saturating_sub(request.start).max(0);
    let wished = i64::try_from(request.step).unwrap_or(i64::MAX).max(1);
    let step = wished.max(span / ROWS_MAX + 1).min(span.max(1));
    let start = request.start.div_euclid(step) * step;
    let rows = (request.end.saturating_sub(start) / step + 1).clamp(1, 2 * ROWS_MAX) as usize;
    Fetched { start, step: step as u64, names: vec![Vec::new()], values: vec![f64::NAN; rows] }
}

/// Adds unknown columns.
fn add(fetched: &mut Fetched, missing: Vec<Vec<u8>>) {
    let width = fetched.names.len();
    let mut values = Vec::with_capacity(fetched.values.len() / width.max(1) * (width + missing.len()));
    for row in fetched.values.chunks(width.max(1)) {
        values.extend_from_slice(row);
        values.resize(values.len() + missing.len(), f64::NAN);
    }
    fetched.values = values;
    fetched.names.extend(missing);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Setting;
    use rrd::definition::Cf;
    use rrd::when::calendar::Utc;

    struct One;

    impl Rows for One {
        fn fetch(&mut self, request: &Request) -> Result<Fetched, Box<dyn Error + Send + Sync>> {
            if request.file != b"here.rrd" {
                return Err("nothing".into());
            }
            Ok(Fetched { start: 0, step: 10, names: vec![b"in".to_vec()], values: vec![1.0, 2.0] })
        }
    }

    #[test]
    fn what_is_missing_is_unknown() {
        let arguments = ["DEF:a=here.rrd:in:LAST", "DEF:b=here.rrd:out:LAST", "DEF:c=gone.rrd:x:LAST"];
        let setting = Setting { start: 400_000_005, end: 400_000_035, now: 0, calendar: &Utc };
        let script = Script::parse(&arguments, setting).unwrap();
        let request = |file: &str, step| Request {
            file: file.as_bytes().to_vec(),
            cf: Cf::Last,
            start: setting.start,
            end: setting.end,
            step,
            daemon: None,
        };
        let mut one = One;
        let mut rows = MissingAsUnknown::new(&mut one, &script);
        let here = rows.fetch(&request("here.rrd", 1)).unwrap();
        assert_eq!(here.names, [b"in".to_vec(), b"out".to_vec()]);
        assert_eq!((here.column(0), here.rows()), (vec![1.0, 2.0], 2));
        assert!(here.column(1).iter().all(|value| value.is_nan()));
        let gone = rows.fetch(&request("gone.rrd", 10)).unwrap();
        assert_eq!((gone.start, gone.step, gone.rows()), (400_000_000, 10, 4));
        assert!(gone.names.contains(&b"x".to_vec()));
        assert!(gone.column(1).iter().all(|value| value.is_nan()));
        let long = Request { end: i64::MAX, ..request("gone.rrd", 1) };
        assert!(rows.fetch(&long).unwrap().rows() as i64 <= 2 * ROWS_MAX);
    }
}
