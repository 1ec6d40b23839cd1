//! History into an RRD that is there: rows that it does not know are taken from the history, everything else stays.

use rrd::content::Rrd;
use rrd::prefill::{Forecasts, Origin, prefill, unfit_source};

/// Fills the unknown rows of `rrd` out of `history`, which has one data source: the same name's, or the only one of `rrd`.
/// Returns how many rows it knows now that it did not.
///
/// # Errors
/// When the RRD has another data source or counts other units.
pub fn merge(rrd: &mut Rrd, history: &Rrd) -> Result<u64, String> {
    if let Some((_, why)) = unfit_source(&rrd.definition, &[history]) {
        return Err(format!("the RRD that is there cannot take it: {why}"));
    }
    let name = &history.definition.ds[0].name;
    let ds = match (rrd.definition.ds_index(name), rrd.definition.ds.len()) {
        (Some(ds), _) => ds,
        (None, 1) => 0,
        (None, _) => return Err(format!("the RRD that is there has no data source \"{name}\"")),
    };
    let start = rrd.shape().split(&rrd.live.words).last_update.whole;
    let none = || Origin { name: String::new(), source: None };
    let mut origins: Vec<Origin> = rrd.definition.ds.iter().map(|_| none()).collect();
    origins[ds].name.clone_from(name);
    let mut filled = prefill(rrd.definition.clone(), start, &origins, &[history], Forecasts::Fresh);
    adopt_rows(&mut filled, ds, history);
    let ds_count = rrd.definition.ds.len();
    let mut known = 0;
    for (archive, filled) in rrd.archives.iter_mut().zip(&filled.archives) {
        let values = archive.iter_mut().zip(filled).skip(ds).step_by(ds_count);
        for (value, filled) in values.filter(|(value, filled)| value.is_nan() && !filled.is_nan()) {
            *value = *filled;
            known += 1;
        }
    }
    Ok(known)
}

/// Takes rows of archives that the history has, too, as they are: what is unknown there is not made up of finer ones.
fn adopt_rows(filled: &mut Rrd, ds: usize, history: &Rrd) {
    let last = |rrd: &Rrd| rrd.shape().split(&rrd.live.words).last_update.whole;
    let (last_here, last_there) = (last(filled), last(history));
    let (here, there) = (&filled.definition, &history.definition);
    let ds_count = here.ds.len();
    for (index, rra) in here.rra.iter().enumerate().filter(|(_, rra)| !rra.cf.is_holt_winters()) {
        let is_same = |other: &&usize| {
            let other = &there.rra[**other];
            other.cf.cf() == rra.cf.cf() && other.span(there.step) == rra.span(here.step)
        };
        let all: Vec<usize> = (0..there.rra.len()).collect();
        let Some(&other) = all.iter().find(is_same) else { continue };
        let (rows, theirs) = (&mut filled.archives[index], &history.archives[other]);
        let oldest_here = here.newest_row(index, last_here) - (rows.len() / ds_count) as i64 + 1;
        let oldest_there = there.newest_row(other, last_there) - theirs.len() as i64 + 1;
        for (nth, value) in theirs.iter().enumerate() {
            let row = oldest_there + nth as i64 - oldest_here;
            if let Some(slot) = usize::try_from(row).ok().and_then(|row| rows.get_mut(row * ds_count + ds)) {
                *slot = *value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::fill::Filler;
    use crate::rows::Selection;
    use rrd::definition::text::{CreateOptions, Limits, parse_create};
    use rrd::when::Step;

    fn filled(ds: &str, minutes: std::ops::Range<i64>, value: f64) -> Rrd {
        let args = [&*format!("DS:{ds}:GAUGE:120:U:U"), "RRA:AVERAGE:0.5:1:20", "RRA:AVERAGE:0.5:5:20"];
        let step = Step { units: 60, units_per_second: 1 };
        let options = CreateOptions { step, limits: Limits::STORE, file_name: b"x" };
        let mut filler =
            Filler::new(parse_create(&options, &args).expect("a definition"), minutes.start * 60_000);
        minutes.for_each(|minute| filler.point((minute + 1) * 60_000, value));
        filler.finish().0
    }

    #[test]
    fn what_is_there_stays_and_what_was_before_comes() {
        let mut rrd = filled("v", 40..45, 9.0);
        let live = rrd.live.clone();
        // Twenty minutes before, and some that the RRD has its own rows for.
        let known = merge(&mut rrd, &filled("value", 10..43, 1.0)).expect("merged");
        assert!(known > 0);
        assert_eq!(rrd.live, live);
        let runs = Selection::default().runs(&rrd);
        let fine: Vec<(i64, f64)> =
            runs[0].times.iter().map(|time| time / 60_000).zip(runs[0].values.clone()).collect();
        let want: Vec<(i64, f64)> =
            (26..=45).map(|minute| (minute, if minute > 40 { 9.0 } else { 1.0 })).collect();
        assert_eq!(fine, want);
        // Coarse rows go back further.
        assert_eq!(runs[1].times.first(), Some(&(15 * 60_000)));
        assert_eq!(merge(&mut rrd, &filled("value", 10..43, 1.0)), Ok(0));
    }
}
