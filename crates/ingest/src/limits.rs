//! How many RRDs may be made, and the list of series that got none.

use std::collections::HashMap;

/// Series of the list. Of others, only the number is known.
const LISTED_MAX: usize = 1000;
/// Bytes of a series' text in the list.
const TEXT_BYTES_MAX: usize = 300;

/// Why no RRD is made now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewLimit {
    /// So many a minute are allowed.
    PerMinute(u32),
    /// So many in all are allowed.
    InAll(u64),
}

impl std::fmt::Display for NewLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NewLimit::PerMinute(limit) => {
                write!(f, "more than {limit} new RRDs a minute ([ingest] new_per_minute)")
            }
            NewLimit::InAll(limit) => write!(f, "the store has {limit} RRDs already ([ingest] rrds_max)"),
        }
    }
}

/// Counts RRDs that are made.
#[derive(Clone, Copy, Debug)]
pub struct NewRrds {
    per_minute: u32,
    in_all: u64,
    /// The minute of `made`.
    minute: i64,
    made: u32,
}

impl NewRrds {
    /// At most so many in a minute, and while the store has fewer than `in_all`.
    pub fn new(per_minute: u32, in_all: u64) -> Self {
        NewRrds { per_minute, in_all, minute: i64::MIN, made: 0 }
    }

    /// Whether one more may be made, at a time in seconds, of a store that has `there`.
    ///
    /// # Errors
    /// The limit that is reached.
    pub fn admit(&mut self, now: i64, there: u64) -> Result<(), NewLimit> {
        if there >= self.in_all {
            return Err(NewLimit::InAll(self.in_all));
        }
        let minute = now.div_euclid(60);
        if minute != self.minute {
            (self.minute, self.made) = (minute, 0);
        }
        if self.made >= self.per_minute {
            return Err(NewLimit::PerMinute(self.per_minute));
        }
        self.made += 1;
        Ok(())
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

    #[test]
    fn new_rrds_are_limited() {
        let mut new = NewRrds::new(2, 10);
        assert_eq!(new.admit(0, 0), Ok(()));
        assert_eq!(new.admit(59, 1), Ok(()));
        assert_eq!(new.admit(59, 2), Err(NewLimit::PerMinute(2)));
        assert_eq!(new.admit(60, 2), Ok(()));
        assert_eq!(new.admit(120, 10), Err(NewLimit::InAll(10)));
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
