//! How many RRDs may be made, and by whom; and the list of series that got none.
//!
//! The RRDs of a minute are divided, so that a sender of ever new names does not keep all others from getting theirs: a port of UDP,
//! say, to which anyone can send, and a Prometheus that has just got a hundred new machines to look at.

use std::collections::HashMap;

/// Series of the list. Of others, only the number is known.
const LISTED_MAX: usize = 1000;
/// Bytes of a series' text in the list.
const TEXT_BYTES_MAX: usize = 300;
/// Of a minute's RRDs, one in so many is not promised to those that asked in the minute before.
const UNPROMISED: u32 = 4;

/// Why no RRD is made now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewLimit {
    /// So many a minute are allowed, and who asks has had its share of them.
    PerMinute(u32),
    /// So many in all are allowed.
    InAll(u64),
}

impl std::fmt::Display for NewLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NewLimit::PerMinute(limit) => {
                write!(f, "more than its share of {limit} new RRDs a minute ([ingest] new_per_minute)")
            }
            NewLimit::InAll(limit) => write!(f, "the store has {limit} RRDs already ([ingest] rrds_max)"),
        }
    }
}

/// What one has asked for and got in a minute.
#[derive(Clone, Copy, Debug, Default)]
struct Asker {
    /// Asked for, refused ones and repeated ones, too.
    asked: u32,
    /// Still promised.
    promised: u32,
    /// Got of what was not promised.
    unpromised: u32,
}

/// Divides the RRDs that are made in a minute among those that ask.
///
/// * Who asked in the minute before is promised as many as it asked for then, but no more than leaves the others theirs, of three
///   quarters of all.
/// * Of the rest each may take half of what the others leave of it: so one that comes for the first time finds some, whatever was
///   taken before.
///
/// One that is alone gets half of all in its first minute, and seven eighths in each one after it.
#[derive(Clone, Debug)]
pub struct NewRrds {
    per_minute: u32,
    in_all: u64,
    /// The minute of what follows.
    minute: i64,
    askers: HashMap<Box<str>, Asker>,
    /// Not promised, and not made yet.
    unpromised: u32,
}

impl NewRrds {
    /// At most so many in a minute, and while the store has fewer than `in_all`.
    pub fn new(per_minute: u32, in_all: u64) -> Self {
        NewRrds { per_minute, in_all, minute: i64::MIN, askers: HashMap::new(), unpromised: 0 }
    }

    /// Whether one more may be made for `who`, at a time in seconds, of a store that has `there`.
    ///
    /// # Errors
    /// The limit that is reached.
    pub fn admit(&mut self, who: &str, now: i64, there: u64) -> Result<(), NewLimit> {
        if there >= self.in_all {
            return Err(NewLimit::InAll(self.in_all));
        }
        let minute = now.div_euclid(60);
        if minute != self.minute {
            self.begin(minute);
        }
        if !self.askers.contains_key(who) {
            self.askers.insert(who.into(), Asker::default());
        }
        let refused = Err(NewLimit::PerMinute(self.per_minute));
        let Some(asker) = self.askers.get_mut(who) else { return refused };
        asker.asked = asker.asked.saturating_add(1);
        if asker.promised > 0 {
            asker.promised -= 1;
            return Ok(());
        }
        if asker.unpromised >= (self.unpromised + asker.unpromised).div_ceil(2) {
            return refused;
        }
        asker.unpromised += 1;
        self.unpromised -= 1;
        Ok(())
    }

    /// Begins a minute: promises what was asked for in the one before.
    fn begin(&mut self, minute: i64) {
        let mut before: Vec<(Box<str>, u32)> =
            self.askers.drain().map(|(who, asker)| (who, asker.asked)).collect();
        if self.minute.checked_add(1) != Some(minute) {
            before.clear();
        }
        (self.minute, self.unpromised) = (minute, self.per_minute);
        // Those that want little first: what they leave of equal shares is for those that want more. Among equals by name: the order
        // of the table is another one in each process.
        before.sort_unstable_by(|one, other| (one.1, &one.0).cmp(&(other.1, &other.0)));
        let mut left = self.per_minute - self.per_minute / UNPROMISED;
        let count = before.len();
        for (place, (who, asked)) in before.into_iter().enumerate() {
            let promised = asked.min(left / (count - place) as u32);
            left -= promised;
            self.unpromised -= promised;
            self.askers.insert(who, Asker { promised, ..Asker::default() });
        }
    }
}

/// A series that got no RRD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The series, as a text; cut if it is long.
    pub series: String,
    /// Why.
    pub cause: String,
    /// Samples of it that were lost.
    pub samples: u64,
}

/// The series that got no RRD, up to a number.
#[derive(Debug, Default)]
pub struct LeftOut {
    listed: HashMap<String, (String, u64)>,
    others: u64,
}

impl LeftOut {
    /// Counts a sample of a series that has no place.
    pub fn count(&mut self, series: &str, cause: &str) {
        let mut end = series.len().min(TEXT_BYTES_MAX);
        while !series.is_char_boundary(end) {
            end -= 1;
        }
        let series = &series[..end];
        if let Some((_, samples)) = self.listed.get_mut(series) {
            *samples += 1;
        } else if self.listed.len() < LISTED_MAX {
            self.listed.insert(series.to_owned(), (cause.to_owned(), 1));
        } else {
            self.others += 1;
        }
    }

    /// How many series are listed.
    pub fn len(&self) -> usize {
        self.listed.len()
    }

    /// True when none is.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// Samples of series that are not listed, because the list is full.
    pub fn others(&self) -> u64 {
        self.others
    }

    /// The series, the one with the most samples first.
    pub fn list(&self) -> Vec<Left> {
        let mut all: Vec<Left> = self
            .listed
            .iter()
            .map(|(series, (cause, samples))| Left {
                series: series.clone(),
                cause: cause.clone(),
                samples: *samples,
            })
            .collect();
        all.sort_by(|one, other| other.samples.cmp(&one.samples).then_with(|| one.series.cmp(&other.series)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of `count` that it asks for one gets at a time in seconds.
    fn ask(new: &mut NewRrds, who: &str, now: i64, count: u32) -> u32 {
        (0..count).map(|_| u32::from(new.admit(who, now, 0).is_ok())).sum()
    }

    #[test]
    fn new_rrds_are_limited() {
        let mut new = NewRrds::new(2, 10);
        assert_eq!(new.admit("a", 0, 0), Ok(()));
        assert_eq!(new.admit("a", 59, 1), Err(NewLimit::PerMinute(2)));
        assert_eq!(new.admit("b", 59, 1), Ok(()));
        assert_eq!(new.admit("c", 59, 2), Err(NewLimit::PerMinute(2)));
        // One of two is promised to each of "c" and "a": of equals the first by name is served first, so "b" goes without.
        assert_eq!(new.admit("b", 60, 2), Err(NewLimit::PerMinute(2)));
        assert_eq!(new.admit("c", 60, 2), Ok(()));
        assert_eq!(new.admit("a", 180, 10), Err(NewLimit::InAll(10)));
        assert_eq!(NewRrds::new(0, 10).admit("a", 0, 0), Err(NewLimit::PerMinute(0)));
        assert_eq!(NewRrds::new(1, 10).admit("a", i64::MAX, 0), Ok(()));
        assert_eq!(ask(&mut NewRrds::new(u32::MAX, 10), "a", i64::MIN, 1000), 1000);
    }

    #[test]
    fn one_that_floods_leaves_others_theirs() {
        let mut new = NewRrds::new(1000, u64::MAX);
        assert_eq!(ask(&mut new, "flood", 0, 100_000), 500);
        // Who comes later finds some, and in the next minute what it wants.
        assert_eq!((ask(&mut new, "late", 30, 600), ask(&mut new, "later", 59, 600)), (250, 125));
        assert_eq!(ask(&mut new, "flood", 59, 100_000), 0);
        assert_eq!(ask(&mut new, "flood", 60, 100_000), 250 + 125);
        // A third of three quarters, and half of half of the rest; and so on.
        assert_eq!((ask(&mut new, "late", 61, 600), ask(&mut new, "later", 61, 200)), (250 + 63, 200));
        assert_eq!(ask(&mut new, "newest", 119, 600), 31);
    }

    #[test]
    fn what_one_does_not_want_others_get() {
        let mut new = NewRrds::new(1000, u64::MAX);
        assert_eq!((ask(&mut new, "big", 0, 2000), ask(&mut new, "small", 0, 10)), (500, 10));
        assert_eq!(ask(&mut new, "big", 60, 2000), 740 + 125);
        assert_eq!(ask(&mut new, "small", 60, 10), 10);
        // After a minute in which it did not ask, nothing is kept for it.
        assert_eq!(ask(&mut new, "big", 120, 2000), 740 + 125);
        assert_eq!(ask(&mut new, "big", 180, 2000), 750 + 125);
        // Alone after a pause; and after the clock was set back.
        assert_eq!((ask(&mut new, "big", 600, 2000), ask(&mut new, "big", 0, 2000)), (500, 500));
    }

    /// Whatever is asked for, no more than the limit is made, and each gets what it asked for before or an equal share.
    #[test]
    fn any_crowd_gets_equal_shares() {
        for limit in [0_u32, 1, 2, 3, 7, 100, 1001] {
            for crowd in [1_u32, 2, 3, 5, 50] {
                let mut new = NewRrds::new(limit, u64::MAX);
                let wanted = |one: u32| if one.is_multiple_of(3) { 5000 } else { one * 7 % 40 };
                for minute in 0..4 {
                    // The other way round each time.
                    let order = |place: u32| if minute % 2 == 0 { place } else { crowd - 1 - place };
                    let mut made = 0;
                    for one in (0..crowd).map(order) {
                        let got = ask(&mut new, &one.to_string(), 60 * minute, wanted(one));
                        let fair = wanted(one).min((limit - limit / 4) / crowd);
                        assert!(minute == 0 || got >= fair, "{limit} for {crowd}: {one} got {got}");
                        made += got;
                    }
                    assert!(made <= limit, "{limit} for {crowd}: {made} made");
                }
            }
        }
    }

    #[test]
    fn the_list_is_bounded() {
        let mut left = LeftOut::default();
        for number in 0..2000 {
            left.count(&format!("s{number}"), "no rule");
        }
        left.count("s5", "no rule");
        left.count(&"é".repeat(400), "no rule");
        assert_eq!((left.len(), left.others()), (LISTED_MAX, 1001));
        assert_eq!(left.list()[0], Left { series: "s5".into(), cause: "no rule".into(), samples: 2 });
    }
}
