//! The known past of one data source: columns of archives, in the order they are consulted.

use std::cmp::Ordering;

use crate::content::Rrd;
use crate::definition::Cf;
use crate::live::UNKNOWN;

/// One data source in one archive of an RRD that the past is taken from. Times are in units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column<'a> {
    pub(super) cf: Cf,
    /// Length of a row.
    pub(super) span: i64,
    /// Row time of the newest row.
    newest: i64,
    rows: i64,
    /// All rows of the archive, oldest first except for `oldest`.
    values: &'a [f64],
    /// The index of the oldest row: a season is a ring.
    oldest: i64,
    ds: usize,
    ds_count: usize,
    /// The source RRD, and the archive in it, by index.
    pub(super) origin: (usize, usize),
}

impl<'a> Column<'a> {
    fn new(rrd: &'a Rrd, origin: (usize, usize), ds: usize) -> Column<'a> {
        let rra = &rrd.definition.rra[origin.1];
        let cf = rra.cf.cf();
        let span = rra.span(rrd.definition.step);
        let newest = rrd.definition.newest_row(origin.1, super::last_update(rrd)) * span;
        let ds_count = rrd.definition.ds.len();
        let season = rrd.live.seasons.iter().find(|season| season.rra == origin.1);
        let (values, oldest) = match season {
            Some(season) => (&season.values, season.current_row as i64 + 1),
            None => (&rrd.archives[origin.1], 0),
        };
        let rows = rra.row_count as i64;
        Column { cf, span, newest, rows, values, oldest, ds, ds_count, origin }
    }

    /// Whether it has this function and row length.
    fn is(&self, cf: Cf, span: i64) -> bool {
        (self.cf, self.span) == (cf, span)
    }

    /// The index of the data source in its RRD.
    pub(super) fn ds(&self) -> usize {
        self.ds
    }

    /// The value of the row that ends at `time`.
    fn value(&self, time: i64) -> f64 {
        let age = (self.newest - time) / self.span;
        let index = (self.oldest + self.rows - 1 - age) % self.rows;
        self.values[index as usize * self.ds_count + self.ds]
    }

    /// Whether it holds everything after `start` up to `end`.
    ///
    /// Compat: an archive that would need all its rows counts as not holding them.
    fn covers(&self, start: i64, end: i64) -> bool {
        let needed = -(-end).div_euclid(self.span) - start.div_euclid(self.span);
        self.newest - self.rows * self.span <= start && end <= self.newest && needed < self.rows
    }
}

/// All columns of one data source.
#[derive(Debug, Default)]
pub(super) struct Past<'a> {
    /// One entry per source RRD.
    sources: Vec<Vec<Column<'a>>>,
}

impl<'a> Past<'a> {
    /// The sources, with their data source, that rows of this function could be made from.
    pub(super) fn sources_for(&self, cf: Cf) -> impl Iterator<Item = (usize, usize)> {
        let mut found: Vec<_> =
            self.candidates(cf, 0).iter().map(|column| (column.origin.0, column.ds)).collect();
        found.dedup();
        found.into_iter()
    }

    /// Adds the columns of data source `ds` of source number `source`.
    pub(super) fn add(&mut self, rrd: &'a Rrd, source: usize, ds: usize) {
        let columns = (0..rrd.definition.rra.len()).map(|rra| Column::new(rrd, (source, rra), ds));
        self.sources.push(columns.collect());
    }

    /// Columns of this function and row length, source by source, those with most rows first.
    pub(super) fn same(&self, cf: Cf, span: i64) -> impl Iterator<Item = &Column<'a>> {
        self.sources.iter().flat_map(move |columns| {
            let mut same: Vec<_> = columns.iter().filter(|column| column.is(cf, span)).collect();
            same.sort_by_key(|column| -column.rows);
            same
        })
    }

    /// The columns that a row of this function and length can be made from, in the order they are consulted: source
    /// by source, first those of the same kind, then AVERAGE, then those of the same function; each by growing row
    /// length and falling number of rows.
    ///
    /// Compat: which of archives that are alike in all of that comes first depends on two sorts, a stable one without
    /// regard to the function, and then `quicksort`, for which each of two columns of the same kind precedes the other.
    /// LAST takes the value that was found last.
    pub(super) fn candidates(&self, cf: Cf, length: i64) -> Vec<Column<'a>> {
        let rank = |column: &Column<'a>| (column.cf != Cf::Average, column.span, -column.rows);
        let compare = |one: &Column<'a>, other: &Column<'a>| match (one.is(cf, length), other.is(cf, length))
        {
            (true, _) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => rank(one).cmp(&rank(other)),
        };
        let of_source = |columns: &Vec<Column<'a>>| {
            let usable = |column: &&Column<'a>| column.cf == Cf::Average || column.cf == cf;
            let mut candidates: Vec<_> = columns.iter().filter(usable).copied().collect();
            candidates.sort_by_key(|column| (column.span, -column.rows));
            quicksort(&mut candidates, compare);
            candidates
        };
        self.sources.iter().flat_map(of_source).collect()
    }
}

/// The value of a row of `cf` from `start` to `end`, made from these columns in their order; unknown when too little
/// is known.
///
/// Compat: here *more than* `xff` must be known; elsewhere `xff` is the fraction that may be unknown.
pub(super) fn row(candidates: &[Column<'_>], cf: Cf, xff: f64, start: i64, end: i64) -> f64 {
    let mut merged = Merged::new(cf, start, end);
    for column in candidates.iter().filter(|column| column.covers(start, end)) {
        merged.take(column);
    }
    merged.value(xff)
}

/// Sorts as RRDtool does: not stable, and with this choice of pivots and ends the order of equals is the same.
fn quicksort<T>(list: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut unsorted = Vec::from([(0, list.len())]);
    while let Some((first, end)) = unsorted.pop() {
        if end - first < 2 {
            continue;
        }
        let (mut up, mut down) = (first + 1, end - 1);
        loop {
            while up < end && compare(&list[up], &list[first]).is_le() {
                up += 1;
            }
            while down > first && compare(&list[down], &list[first]).is_ge() {
                down -= 1;
            }
            if up >= down {
                break;
            }
            list.swap(up, down);
        }
        list.swap(first, up - 1);
        let middle = up.min(end - 1);
        unsorted.extend([(first, middle), (middle, end)]);
    }
}

/// A row under construction from parts of others.
struct Merged {
    cf: Cf,
    length: i64,
    /// What is still unknown: from after the first time to the second.
    gaps: Vec<(i64, i64)>,
    /// Units that are known.
    known: i64,
    value: f64,
}

impl Merged {
    fn new(cf: Cf, start: i64, end: i64) -> Merged {
        let value = match cf {
            Cf::Min => f64::INFINITY,
            Cf::Max => f64::NEG_INFINITY,
            _ => 0.0,
        };
        Merged { cf, length: end - start, gaps: vec![(start, end)], known: 0, value }
    }

    /// Fills gaps from `column`, which covers them, row by row; one row may fill several gaps.
    fn take(&mut self, column: &Column<'_>) {
        let (Some(first), Some(last)) = (self.gaps.first(), self.gaps.last()) else { return };
        let (start, end) = (first.0, last.1);
        let mut from = start.div_euclid(column.span) * column.span;
        while from < end {
            let to = from + column.span;
            let value = column.value(to);
            if !value.is_nan() {
                let units = self.cut(from, to);
                if units > 0 {
                    self.add(value, units);
                }
            }
            from = to;
        }
    }

    /// Removes the time between `from` and `to` from the gaps. Returns how many units that was.
    fn cut(&mut self, from: i64, to: i64) -> i64 {
        let mut units = 0;
        let mut left = Vec::with_capacity(self.gaps.len() + 1);
        for &(start, end) in &self.gaps {
            units += (end.min(to) - start.max(from)).max(0);
            left.extend(
                [(start, end.min(from)), (start.max(to), end)].iter().filter(|(start, end)| start < end),
            );
        }
        self.gaps = left;
        units
    }

    fn add(&mut self, value: f64, units: i64) {
        self.known += units;
        self.value = match self.cf {
            Cf::Min => self.value.min(value),
            Cf::Max => self.value.max(value),
            Cf::Last => value,
            // The last bits depend on this order of operations, here and in `value`. Compat: also for Holt-Winters
            // archives, whatever their rows mean.
            _ => self.value + value / self.length as f64 * units as f64,
        };
    }

    fn value(&self, xff: f64) -> f64 {
        if self.known == 0 || self.known as f64 / self.length as f64 <= xff {
            return UNKNOWN;
        }
        match self.cf {
            Cf::Average => self.value / self.known as f64 * self.length as f64,
            // Compat: in a Holt-Winters archive the unknown parts count as 0.
            _ => self.value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::quicksort;

    #[test]
    fn equals_are_sorted_as_by_rrdtool() {
        // As Debian's rrdtool consults archives of these ranks, in this order.
        for (ranks, order) in [
            ("x", "0"),
            ("xx", "10"),
            ("xxx", "120"),
            ("xxxx", "1230"),
            ("xy", "01"),
            ("xxy", "012"),
            ("xxxy", "1023"),
            ("xxyy", "0132"),
            ("xyyy", "0231"),
            ("xxxyyy", "102453"),
            ("yyxx", "3210"),
            ("yxyx", "3120"),
            ("yyxxx", "42310"),
            ("yxxyx", "14230"),
        ] {
            let mut sorted: Vec<(char, usize)> = ranks.chars().zip(0..).collect();
            quicksort(&mut sorted, |(one, _), (other, _)| one.cmp(other));
            let found: String = sorted.iter().map(|(_, index)| index.to_string()).collect();
            assert_eq!(found, order, "{ranks}");
        }
    }
}
