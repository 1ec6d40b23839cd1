//! Which rows of an RRD leave: those that are complete and known, of all archives or of the finest for each time.

use rrd::content::Rrd;
use rrd::definition::{Cf, Definition};
use rrd::grid;

/// Milliseconds in a second: times leave in milliseconds.
pub const MS: i64 = 1000;
/// The last time that leaves: the end of the year 9999, the last that all readers know.
const TIME_LEAVES_MAX: i64 = 253_402_300_799_999;

/// Which archives' rows leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Archives {
    /// For each function and data source, a row only where no known row of a finer archive lies within its interval.
    Finest,
    /// The rows of every archive.
    All,
}

/// What leaves of every RRD.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Of which archives.
    pub archives: Archives,
    /// Only these functions; empty = AVERAGE, MIN, MAX and LAST, and with [`Archives::All`] the Holt-Winters
    /// functions whose rows belong to times.
    pub functions: Vec<Cf>,
    /// Only rows after this time, in milliseconds since the epoch.
    pub after: Option<i64>,
    /// Only rows up to this time, in milliseconds since the epoch.
    pub until: Option<i64>,
}

impl Default for Selection {
    fn default() -> Self {
        Selection { archives: Archives::Finest, functions: Vec::new(), after: None, until: None }
    }
}

/// Known rows of one data source and function with one length, in the order of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The data source.
    pub ds: String,
    /// The consolidation function.
    pub cf: Cf,
    /// The length of a row in milliseconds.
    pub step: i64,
    /// The end of each row, in milliseconds since the epoch.
    pub times: Vec<i64>,
    /// A value for each time; none is unknown.
    pub values: Vec<f64>,
    /// The end of the newest complete row that may leave, known or not.
    pub newest: i64,
}

impl Selection {
    /// The rows of an RRD that leave, ordered by the name of the data source, the function's name and the step. Runs
    /// without rows are among them: their newest time tells how far the RRD is.
    pub fn runs(&self, rrd: &Rrd) -> Vec<Run> {
        let last_update = rrd.shape().split(&rrd.live.words).last_update.whole;
        self.runs_of(&rrd.definition, last_update, &rrd.archives)
    }

    /// The same of an RRD that was updated last at `last_update`, in its units, and of whose archives there are the newest rows,
    /// or fewer: the oldest first, a value for each data source.
    pub fn runs_of(&self, definition: &Definition, last_update: i64, archives: &[Vec<f64>]) -> Vec<Run> {
        let parts = archives;
        let mut archives: Vec<usize> =
            (0..definition.rra.len()).filter(|&rra| self.takes(definition, rra)).collect();
        archives.sort_by_key(|&rra| {
            let archive = &definition.rra[rra];
            (archive.cf.cf().name(), archive.pdp_per_row, std::cmp::Reverse(archive.row_count))
        });
        // Of two archives alike, the longer one has the shorter one's rows.
        archives.dedup_by_key(|rra| (definition.rra[*rra].cf.cf(), definition.rra[*rra].pdp_per_row));
        let mut sources: Vec<usize> = (0..definition.ds.len()).collect();
        sources.sort_by(|&a, &b| definition.ds[a].name.cmp(&definition.ds[b].name));
        let mut runs: Vec<Run> = Vec::with_capacity(sources.len() * archives.len());
        for &ds in &sources {
            for group in archives.chunk_by(|&a, &b| definition.rra[a].cf.cf() == definition.rra[b].cf.cf()) {
                let first = runs.len();
                for &rra in group {
                    let mut run = self.run(definition, last_update, (ds, rra), &parts[rra]);
                    if self.archives == Archives::Finest {
                        runs[first..].iter().for_each(|finer| leave_out(&mut run, finer));
                    }
                    runs.push(run);
                }
            }
        }
        for run in &mut runs {
            self.cut(run);
        }
        runs
    }

    /// Whether rows of this archive leave.
    pub fn takes(&self, definition: &Definition, rra: usize) -> bool {
        let consolidation = &definition.rra[rra].cf;
        let wanted = match self.functions.is_empty() {
            true => !consolidation.is_holt_winters() || self.archives == Archives::All,
            false => self.functions.contains(&consolidation.cf()),
        };
        // Rows of seasons belong to no time.
        wanted && !consolidation.is_season()
    }

    fn run(
        &self,
        definition: &Definition,
        last_update: i64,
        (ds, rra): (usize, usize),
        values: &[f64],
    ) -> Run {
        let newest = definition.newest_row(rra, last_update);
        let span = definition.rra[rra].span(definition.step);
        let ms = |row: i64| {
            grid::row_time(row, span).saturating_mul(MS) / i64::from(definition.units_per_second.max(1))
        };
        let ds_count = definition.ds.len();
        let oldest = newest - (values.len() / ds_count) as i64 + 1;
        let (mut times, mut known) = (Vec::new(), Vec::new());
        for (index, &value) in values.iter().skip(ds).step_by(ds_count).enumerate() {
            if !value.is_nan() {
                times.push(ms(oldest + index as i64));
                known.push(value);
            }
        }
        let (ds, cf) = (definition.ds[ds].name.clone(), definition.rra[rra].cf.cf());
        Run { ds, cf, step: ms(1), times, values: known, newest: ms(newest) }
    }

    fn cut(&self, run: &mut Run) {
        let from = self.after.map_or(0, |after| run.times.partition_point(|&time| time <= after));
        let to = self.until.map_or(run.times.len(), |until| run.times.partition_point(|&time| time <= until));
        run.times.truncate(to);
        run.values.truncate(to);
        run.times.drain(..from.min(to));
        run.values.drain(..from.min(to));
        run.newest = self.until.map_or(run.newest, |until| until.min(run.newest));
    }
}

/// Refuses rows of no date that others know: one update in another unit than seconds makes such.
///
/// # Errors
/// What is wrong.
pub fn check_times(runs: &[Run]) -> Result<(), String> {
    match runs.iter().any(|run| run.newest > TIME_LEAVES_MAX) {
        true => {
            Err("its newest rows are after the year 9999; was it updated in another unit than seconds?"
                .into())
        }
        false => Ok(()),
    }
}

/// Removes the rows in whose interval a row of the finer run lies.
pub fn leave_out(run: &mut Run, finer: &Run) {
    let mut at = 0;
    let mut kept = 0;
    for index in 0..run.times.len() {
        let time = run.times[index];
        while finer.times.get(at).is_some_and(|&fine| fine <= time - run.step) {
            at += 1;
        }
        if finer.times.get(at).is_some_and(|&fine| fine <= time) {
            continue;
        }
        run.times[kept] = time;
        run.values[kept] = run.values[index];
        kept += 1;
    }
    run.times.truncate(kept);
    run.values.truncate(kept);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(step: i64, times: &[i64]) -> Run {
        let values = times.iter().map(|&time| time as f64).collect();
        Run { ds: "a".into(), cf: Cf::Average, step, times: times.to_vec(), values, newest: 0 }
    }

    #[test]
    fn a_coarse_row_stays_where_no_finer_one_lies_within_it() {
        let mut coarse = run(300, &[300, 600, 900, 1200]);
        leave_out(&mut coarse, &run(60, &[420, 900]));
        assert_eq!(coarse.times, [300, 1200]);
        assert_eq!(coarse.values, [300.0, 1200.0]);
        let mut coarse = run(300, &[300, 600]);
        leave_out(&mut coarse, &run(60, &[]));
        assert_eq!(coarse.times, [300, 600]);
    }

    #[test]
    fn what_is_cut_off_at_the_end_still_has_to_leave() {
        let cut = |after, until| {
            let mut cut = Run { newest: 900, ..run(300, &[300, 600, 900]) };
            Selection { after, until, ..Selection::default() }.cut(&mut cut);
            (cut.times, cut.values.len(), cut.newest)
        };
        assert_eq!(cut(None, None), (vec![300, 600, 900], 3, 900));
        assert_eq!(cut(Some(300), Some(600)), (vec![600], 1, 600));
        assert_eq!(cut(Some(600), Some(2000)), (vec![900], 1, 900));
        assert_eq!(cut(Some(600), Some(500)), (vec![], 0, 500));
    }
}
