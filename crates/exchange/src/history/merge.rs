//! History into an RRD that is there: rows that it does not know are taken from the history, everything else stays.

use rrd::content::Rrd;
use rrd::definition::Rra;
use rrd::prefill::{Forecasts, Origin, prefill, unfit_source};

/// Fills the unknown rows of `rrd` out of `history`: each data source out of that of its name, and an only one out of an only one
/// whatever their names. Returns how many values it knows now that it did not.
///
/// # Errors
/// When the RRD has none of the history's data sources or counts other units.
pub fn merge(rrd: &mut Rrd, history: &Rrd) -> Result<u64, String> {
    if let Some((_, why)) = unfit_source(&rrd.definition, &[history]) {
        return Err(format!("the RRD that is there cannot take it: {why}"));
    }
    let there = &history.definition;
    // By the number of the data source here, that of the history.
    let pairs: Vec<Option<usize>> = match (&rrd.definition.ds[..], &there.ds[..]) {
        ([_], [_]) => vec![Some(0)],
        (here, _) => here.iter().map(|ds| there.ds_index(&ds.name)).collect(),
    };
    if pairs.iter().all(Option::is_none) {
        let names: Vec<&str> = there.ds.iter().map(|ds| ds.name.as_str()).collect();
        return Err(format!("the RRD that is there has no data source \"{}\"", names.join("\" or \"")));
    }
    let start = rrd.shape().split(&rrd.live.words).last_update.whole;
    let origin = |pair: &Option<usize>| Origin {
        name: pair.map_or(String::new(), |other| there.ds[other].name.clone()),
        source: None,
    };
    let origins: Vec<Origin> = pairs.iter().map(origin).collect();
    let mut filled = prefill(rrd.definition.clone(), start, &origins, &[history], Forecasts::Fresh);
    for (ds, other) in pairs.iter().enumerate().filter_map(|(ds, pair)| Some((ds, (*pair)?))) {
        adopt_rows(&mut filled, ds, history, other);
    }
    let mut known = 0;
    for (archive, filled) in rrd.archives.iter_mut().zip(&filled.archives) {
        let values = archive.iter_mut().zip(filled);
        for (value, filled) in values.filter(|(value, filled)| value.is_nan() && !filled.is_nan()) {
            *value = *filled;
            known += 1;
        }
    }
    Ok(known)
}

/// Takes rows of archives that the history has, too, as they are: what is unknown there is not made up of finer ones. `ds` is the
/// number of the data source here, `other` that of the history's.
fn adopt_rows(filled: &mut Rrd, ds: usize, history: &Rrd, other: usize) {
    let last = |rrd: &Rrd| rrd.shape().split(&rrd.live.words).last_update.whole;
    let (last_here, last_there) = (last(filled), last(history));
    let (here, there) = (&filled.definition, &history.definition);
    let (ds_count, count_there) = (here.ds.len(), there.ds.len());
    for (index, rra) in here.rra.iter().enumerate().filter(|(_, rra)| !rra.cf.is_holt_winters()) {
        let is_same =
            |same: &Rra| same.cf.cf() == rra.cf.cf() && same.span(there.step) == rra.span(here.step);
        let Some(same) = there.rra.iter().position(is_same) else { continue };
        let (rows, theirs) = (&mut filled.archives[index], &history.archives[same]);
        let oldest_here = here.newest_row(index, last_here) - (rows.len() / ds_count) as i64 + 1;
        let oldest_there = there.newest_row(same, last_there) - (theirs.len() / count_there) as i64 + 1;
        for (nth, value) in theirs.iter().skip(other).step_by(count_there).enumerate() {
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
            Filler::new(parse_create(&options, &args).expect("a definition"), minutes.start * 60_000)
                .expect("few rows");
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
