//! A fetch: the request and the rows that answer it, from the file or the wire up to a graph.

use crate::definition::{Cf, Definition};
use crate::plan::{FETCH_VALUES_MAX, Plan};

/// What `rrdfetch(1)` asks for, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FetchRequest {
    /// Consolidation function.
    pub cf: Cf,
    /// Start in seconds since the epoch.
    pub start: i64,
    /// End in seconds since the epoch.
    pub end: i64,
    /// Wanted resolution in seconds; 0 or 1 = as fine as there is.
    pub step: u64,
    /// Values (rows times data sources) that the caller takes; a larger answer is refused.
    pub values_max: u64,
}

impl FetchRequest {
    /// A request that takes as many values as any fetch may answer ([`FETCH_VALUES_MAX`]).
    pub fn new(cf: Cf, start: i64, end: i64, step: u64) -> Self {
        FetchRequest { cf, start, end, step, values_max: FETCH_VALUES_MAX }
    }
}

/// The rows that answer a fetch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FetchRows {
    /// Start in units, on the archive's grid; the first row's time is `start + step`.
    pub start: i64,
    /// Time of the last row, in units.
    pub end: i64,
    /// Units between rows.
    pub step: u64,
    /// Units in a second: 1, or 1000 where a row is no whole number of seconds.
    pub units_per_second: u32,
    /// Names of the data sources.
    pub ds_names: Vec<String>,
    /// `ds_names.len()` values per row, row-major.
    pub values: Vec<f64>,
}

impl FetchRows {
    /// The answer to a fetch that was planned for an RRD of this definition.
    pub fn new(definition: &Definition, plan: &Plan, values: Vec<f64>) -> Self {
        // Rows lie on multiples of their step, so if that is whole seconds, so are all times.
        let unit = match u64::from(definition.units_per_second.max(1)) {
            unit if plan.step.is_multiple_of(unit) => unit,
            _ => 1,
        };
        FetchRows {
            start: plan.start.div_euclid(unit as i64),
            end: plan.end.div_euclid(unit as i64),
            step: plan.step / unit,
            units_per_second: definition.units_per_second.max(1) / unit as u32,
            ds_names: definition.ds.iter().map(|ds| ds.name.clone()).collect(),
            values,
        }
    }

    /// True if the rows' times are whole seconds; otherwise they are thousandths.
    pub fn is_in_seconds(&self) -> bool {
        self.units_per_second <= 1
    }

    /// How many rows there are.
    pub fn row_count(&self) -> usize {
        self.values.len().checked_div(self.ds_names.len()).unwrap_or(0)
    }

    /// The rows, oldest first, each with its time in units and one value per data source.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = (i64, &[f64])> {
        let step = i64::try_from(self.step).unwrap_or(i64::MAX);
        let mut time = self.start;
        self.values.chunks_exact(self.ds_names.len().max(1)).map(move |row| {
            time = time.saturating_add(step);
            (time, row)
        })
    }

    /// The values of the data source at index `ds`, oldest first.
    pub fn column(&self, ds: usize) -> Vec<f64> {
        if self.ds_names.len() == 1 && ds == 0 {
            return self.values.clone();
        }
        self.values.iter().skip(ds).step_by(self.ds_names.len().max(1)).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(units_per_second: u32, start: i64, step: u64) -> FetchRows {
        let ds_names = vec!["a".to_string(), "b".to_string()];
        let end = start + 2 * step as i64;
        FetchRows { start, end, step, units_per_second, ds_names, values: vec![1.0, 2.0, 3.0, 4.0] }
    }

    #[test]
    fn rows_and_columns_are_the_same_values() {
        let rows = rows(1, 100, 10);
        assert_eq!(rows.row_count(), 2);
        assert_eq!(rows.rows().collect::<Vec<_>>(), [(110, &[1.0, 2.0][..]), (120, &[3.0, 4.0])]);
        assert_eq!((rows.column(0), rows.column(1)), (vec![1.0, 3.0], vec![2.0, 4.0]));
        let one = FetchRows { ds_names: vec!["a".to_string()], ..rows };
        assert_eq!(one.column(0), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(FetchRows::default().row_count(), 0);
    }
}
