//! `--use-nan-for-all-missing-data`: missing data counts as unknown.

use std::error::Error;

use rrd::fetch::{FetchRequest, FetchRows};

use crate::language::{Element, Script};
use crate::plan::{ComputeLimit, Request, Rows};

/// Most rows that stand for a failed fetch, give or take; a picture has fewer columns.
const ROWS_MAX: i64 = 1 << 16;

/// Passes on the rows of another source. Where a fetch fails or a data source of a DEF is missing, they are unknown.
pub struct MissingAsUnknown<'a> {
    rows: &'a mut dyn Rows,
    script: &'a Script,
}

impl<'a> MissingAsUnknown<'a> {
    /// Wraps `rows`, which `script` asks for.
    pub fn new(rows: &'a mut dyn Rows, script: &'a Script) -> MissingAsUnknown<'a> {
        MissingAsUnknown { rows, script }
    }
}

impl Rows for MissingAsUnknown<'_> {
    fn fetch(&mut self, request: &Request) -> Result<FetchRows, Box<dyn Error + Send + Sync>> {
        let mut fetched = match self.rows.fetch(request) {
            Ok(rows) => rows,
            Err(error) if self.rows.is_limit(&*error) => return Err(error),
            Err(_) => {
                let rows = unknown(&request.fetch);
                self.rows.reserve(rows.values.len() as u64)?;
                rows
            }
        };
        let mut missing: Vec<String> = Vec::new();
        for element in &self.script.elements {
            if let Element::Def(def) = element
                && def.file == request.file
            {
                let ds = String::from_utf8_lossy(&def.ds);
                if !fetched.ds_names.iter().chain(&missing).any(|name| *name == ds) {
                    missing.push(ds.into_owned());
                }
            }
        }
        if !missing.is_empty() {
            self.rows.reserve(fetched.row_count().saturating_mul(missing.len()) as u64)?;
            add(&mut fetched, missing);
        }
        Ok(fetched)
    }

    fn reserve(&mut self, values: u64) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.rows.reserve(values)
    }

    fn compute(&mut self, rows: usize, words: usize) -> Result<ComputeLimit, Box<dyn Error + Send + Sync>> {
        self.rows.compute(rows, words)
    }

    fn is_limit(&self, error: &(dyn Error + Send + Sync + 'static)) -> bool {
        self.rows.is_limit(error)
    }
}

/// Unknown rows over the requested range, of one data source without a name.
fn unknown(request: &FetchRequest) -> FetchRows {
    let span = request.end.saturating_sub(request.start).max(0);
    let step_min = i64::try_from(request.step).unwrap_or(i64::MAX).max(1);
    let step = step_min.max(span / ROWS_MAX + 1).min(span.max(1));
    let start = request.start.div_euclid(step) * step;
    let rows = (request.end.saturating_sub(start) / step + 1).clamp(1, 2 * ROWS_MAX) as usize;
    FetchRows {
        start,
        end: start.saturating_add(step.saturating_mul(rows as i64)),
        step: step as u64,
        units_per_second: 1,
        ds_names: vec![String::new()],
        values: vec![f64::NAN; rows],
    }
}

/// Adds unknown data sources with the names `missing`.
fn add(fetched: &mut FetchRows, missing: Vec<String>) {
    let width = fetched.ds_names.len();
    let mut values = Vec::with_capacity(fetched.values.len() / width.max(1) * (width + missing.len()));
    for row in fetched.values.chunks(width.max(1)) {
        values.extend_from_slice(row);
        values.resize(values.len() + missing.len(), f64::NAN);
    }
    fetched.values = values;
    fetched.ds_names.extend(missing);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::ScriptContext;
    use rrd::definition::Cf;
    use rrd::when::calendar::Utc;

    struct One;

    impl Rows for One {
        fn fetch(&mut self, request: &Request) -> Result<FetchRows, Box<dyn Error + Send + Sync>> {
            if request.file != b"here.rrd" {
                return Err(if request.file == b"large.rrd" { "too much" } else { "nothing" }.into());
            }
            let ds_names = vec!["in".to_string()];
            Ok(FetchRows {
                start: 0,
                end: 20,
                step: 10,
                units_per_second: 1,
                ds_names,
                values: vec![1.0, 2.0],
            })
        }

        fn is_limit(&self, error: &(dyn Error + Send + Sync + 'static)) -> bool {
            error.to_string() == "too much"
        }
    }

    #[test]
    fn what_is_missing_is_unknown() {
        let arguments = ["DEF:a=here.rrd:in:LAST", "DEF:b=here.rrd:out:LAST", "DEF:c=gone.rrd:x:LAST"];
        let context = ScriptContext { start: 400_000_005, end: 400_000_035, now: 0, calendar: &Utc };
        let script = Script::parse(&arguments, context).unwrap();
        let request = |file: &str, step| Request {
            file: file.as_bytes().to_vec(),
            fetch: FetchRequest::new(Cf::Last, context.start, context.end, step),
            daemon: None,
        };
        let mut one = One;
        let mut rows = MissingAsUnknown::new(&mut one, &script);
        let here = rows.fetch(&request("here.rrd", 1)).unwrap();
        assert_eq!(here.ds_names, ["in", "out"]);
        assert_eq!((here.column(0), here.row_count()), (vec![1.0, 2.0], 2));
        assert!(here.column(1).iter().all(|value| value.is_nan()));
        let gone = rows.fetch(&request("gone.rrd", 10)).unwrap();
        assert_eq!((gone.start, gone.step, gone.row_count()), (400_000_000, 10, 4));
        assert!(gone.ds_names.contains(&"x".to_string()));
        assert!(gone.column(1).iter().all(|value| value.is_nan()));
        assert_eq!(rows.fetch(&request("large.rrd", 1)).unwrap_err().to_string(), "too much");
        let mut long = request("gone.rrd", 1);
        long.fetch.end = i64::MAX;
        assert!(rows.fetch(&long).unwrap().row_count() as i64 <= 2 * ROWS_MAX);
    }
}
