//! Times among the words of a verb beside [`words::times`]: those of updates; and how dumps show them.

use std::ffi::OsStr;

use rrd::when::at::AtError;
use rrd::when::calendar::{Calendar, Utc};
use store::direct::Locking;
use words::times::spec;

use crate::failure::{Done, Failure, text};
use crate::surroundings::Surroundings;

pub use words::times::Range;

fn failed(what: &str, why: &AtError) -> Failure {
    Failure::new(format!("{what} time: {why}"))
}

/// The argument of `--start` where there is no end.
///
/// # Errors
/// RRDtool's text.
pub fn start(word: &[u8], surroundings: &Surroundings) -> Done<i64> {
    let spec = spec(word, surroundings).map_err(|why| failed("start", &why))?;
    spec.alone(&*surroundings.calendar).map_err(|error| Failure::new(error.to_string()))
}

/// The time of an update in AT syntax, in seconds.
///
/// # Errors
/// RRDtool's text.
pub fn at(word: &[u8], surroundings: &Surroundings) -> Result<i64, String> {
    let spec = spec(word, surroundings).map_err(|error| error.to_string())?;
    spec.alone(&*surroundings.calendar).map_err(|error| error.to_string())
}

/// The argument of `--locking`.
///
/// # Errors
/// A word that is none of the three.
pub fn locking(word: &[u8]) -> Done<Locking> {
    Locking::from_word(text(word)?)
        .ok_or_else(|| Failure::of_name("unsupported locking mode '", word, "': give try, block or none"))
}

/// Seconds that are asked about at once: where its two ends agree on zone and offset, all between do. (No
/// zone has changed its clocks twice in so few days.)
const SPAN: i64 = 4 * 24 * 3600;

/// Seconds in a day.
const DAY: i64 = 24 * 3600;
/// Where the time of day stands in a text.
const TIME_AT: usize = 11;

/// The text of a time in the comments of a dump, `%Y-%m-%d %H:%M:%S %Z` in local time. Times of one day only
/// have their time of day reckoned.
#[derive(Debug, Default)]
pub struct Comments {
    from: i64,
    to: i64,
    offset: i64,
    zone: String,
    /// The local day that `text` is of, in days since the epoch's.
    day: i64,
    /// Empty = of no day.
    text: Vec<u8>,
}

impl Comments {
    /// Appends the text of `time`, in seconds since the epoch.
    pub fn push(&mut self, time: i64, out: &mut Vec<u8>) {
        let known = !self.zone.is_empty() && (self.from..=self.to).contains(&time);
        if !known && !self.look_up(time) {
            return out.extend_from_slice(library(FORMAT, time).as_bytes());
        }
        let local = time + self.offset;
        if (self.day != local.div_euclid(DAY) || self.text.is_empty()) && !self.begin_day(local) {
            return out.extend_from_slice(library(FORMAT, time).as_bytes());
        }
        let seconds = local.rem_euclid(DAY) as i32;
        let start = out.len() + TIME_AT;
        out.extend_from_slice(&self.text);
        let ([a, b], [c, d], [e, f]) = (two(seconds / 3600), two(seconds / 60 % 60), two(seconds % 60));
        out[start..start + 8].copy_from_slice(&[a, b, b':', c, d, b':', e, f]);
    }

    /// Writes down the date of a local time; false when its year has not four digits.
    fn begin_day(&mut self, local: i64) -> bool {
        let civil = Utc.local(local);
        self.text.clear();
        if !(1000..10_000).contains(&civil.year) {
            return false;
        }
        self.day = local.div_euclid(DAY);
        self.text.extend_from_slice(b"0000-00-00 00:00:00 ");
        for (at, number) in
            [(0, civil.year / 100), (2, civil.year % 100), (5, civil.month + 1), (8, civil.day)]
        {
            self.text[at..at + 2].copy_from_slice(&two(number));
        }
        self.text.extend_from_slice(self.zone.as_bytes());
        true
    }

    /// Finds what holds from `time` on; false when that changes soon.
    fn look_up(&mut self, time: i64) -> bool {
        let Some(to) = time.checked_add(SPAN) else { return false };
        let (first, last) = (localtime::Local.local(time), localtime::Local.local(to));
        let zone = library("%Z", time);
        if first.utc_offset_seconds != last.utc_offset_seconds || zone != library("%Z", to) {
            return false;
        }
        let offset = i64::from(first.utc_offset_seconds);
        // What is known is made longer when what follows is the same, and so is the time between.
        if offset == self.offset
            && zone == self.zone
            && (self.to..=self.to.saturating_add(SPAN)).contains(&time)
        {
            self.to = to;
        } else {
            *self = Comments { from: time, to, offset, zone, ..Comments::default() };
        }
        true
    }
}

/// Two digits.
fn two(number: i32) -> [u8; 2] {
    [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8]
}

/// What RRDtool asks C for.
const FORMAT: &str = "%Y-%m-%d %H:%M:%S %Z";

fn library(format: &str, time: i64) -> String {
    let text = localtime::strftime(OsStr::new(format), time).unwrap_or_default();
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_the_c_librarys_texts() {
        let mut comments = Comments::default();
        let check = |comments: &mut Comments, time: i64| {
            let mut out = Vec::new();
            comments.push(time, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), library(FORMAT, time), "{time}");
        };
        check(&mut comments, 0);
        for time in
            (-3_000_000_000..4_000_000_000_i64).step_by(86_413 * 5 + 7).chain((0..86_400 * 30).step_by(611))
        {
            check(&mut comments, time);
        }
        for time in [i64::MAX, i64::MIN, 300_000_000_000, -62_135_596_800] {
            check(&mut comments, time);
        }
    }
}
