//! Times among the words of a verb: `--start`, `--end`, and the times of updates; and how dumps show them.

use std::ffi::OsStr;

use rrd::when::at::{AtError, TimeSpec, range};
use rrd::when::calendar::{Calendar, Utc};
use store::direct::Locking;

use crate::failure::{Done, Failure, text};
use crate::surroundings::Surroundings;

/// Where a range starts when nobody says.
const START_DEFAULT: &str = "end-24h";
/// Where a range ends when nobody says.
const END_DEFAULT: &str = "now";

/// A start and an end as they are given; either may refer to the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Range {
    start: Option<TimeSpec>,
    end: Option<TimeSpec>,
}

impl Range {
    /// Takes the argument of `--start`.
    ///
    /// # Errors
    /// RRDtool's text.
    pub fn start(&mut self, word: &[u8], surroundings: &Surroundings) -> Done {
        self.start = Some(spec(word, surroundings).map_err(|why| failed("start", &why))?);
        Ok(())
    }

    /// Takes the argument of `--end`.
    ///
    /// # Errors
    /// RRDtool's text.
    pub fn end(&mut self, word: &[u8], surroundings: &Surroundings) -> Done {
        self.end = Some(spec(word, surroundings).map_err(|why| failed("end", &why))?);
        Ok(())
    }

    /// Start and end in seconds.
    ///
    /// # Errors
    /// RRDtool's text.
    pub fn resolve(&self, surroundings: &Surroundings) -> Done<(i64, i64)> {
        let or = |given: Option<TimeSpec>, default: &str| {
            given.map_or_else(|| spec(default.as_bytes(), surroundings), Ok)
        };
        let start = or(self.start, START_DEFAULT).map_err(|why| failed("start", &why))?;
        let end = or(self.end, END_DEFAULT).map_err(|why| failed("end", &why))?;
        range(&start, &end, &*surroundings.calendar).map_err(|error| Failure::new(error.to_string()))
    }
}

fn failed(what: &str, why: &AtError) -> Failure {
    Failure::new(format!("{what} time: {why}"))
}

fn spec(word: &[u8], surroundings: &Surroundings) -> Result<TimeSpec, AtError> {
    let now = (surroundings.now)().whole;
    TimeSpec::parse(&String::from_utf8_lossy(word), now, &*surroundings.calendar)
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

/// The text of a time in the comments of a dump, `%Y-%m-%d %H:%M:%S %Z` in local time.
#[derive(Debug, Default)]
pub struct Comments {
    from: i64,
    to: i64,
    offset: i64,
    zone: String,
}

impl Comments {
    /// The text of `time`, in seconds since the epoch.
    pub fn text(&mut self, time: i64) -> String {
        if !(self.from..=self.to).contains(&time) && !self.look_up(time) {
            return library(FORMAT, time);
        }
        let civil = Utc.local(time + self.offset);
        if !(1000..10_000).contains(&civil.year) {
            return library(FORMAT, time);
        }
        let mut text = String::with_capacity(20 + self.zone.len());
        for (number, digits, behind) in [
            (civil.year, 4, "-"),
            (civil.month + 1, 2, "-"),
            (civil.day, 2, " "),
            (civil.hour, 2, ":"),
            (civil.minute, 2, ":"),
            (civil.second, 2, " "),
        ] {
            let mut power = 10i32.pow(digits);
            while power > 1 {
                text.push(char::from(b'0' + (number % power / (power / 10)) as u8));
                power /= 10;
            }
            text.push_str(behind);
        }
        text.push_str(&self.zone);
        text
    }

    /// Finds what holds from `time` on; false when that changes soon.
    fn look_up(&mut self, time: i64) -> bool {
        let Some(to) = time.checked_add(SPAN) else { return false };
        let (first, last) = (localtime::Local.local(time), localtime::Local.local(to));
        let zone = library("%Z", time);
        if first.utc_offset_seconds != last.utc_offset_seconds || zone != library("%Z", to) {
            return false;
        }
        *self = Comments { from: time, to, offset: i64::from(first.utc_offset_seconds), zone };
        true
    }
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
        for time in
            (-3_000_000_000..4_000_000_000_i64).step_by(86_413 * 5 + 7).chain((0..86_400 * 30).step_by(611))
        {
            assert_eq!(comments.text(time), library(FORMAT, time), "{time}");
        }
        for time in [i64::MAX, i64::MIN, 300_000_000_000, -62_135_596_800] {
            assert_eq!(comments.text(time), library(FORMAT, time), "{time}");
        }
    }
}
