//! MRTG's `.log` files: what a target read before its RRD was made.
//!
//! By `mrtg-logfile(1)`, and by what Debian's MRTG 2.17.10 writes when its clock is known: the first line has the time and the
//! counters of the last round; every other one a time, two mean rates and the two largest, over the time since the line
//! *after* it. (The manual says: until the line before it.) Lines go back in time: 600 of 5 minutes, 600 of 30, 600 of
//! 2 hours, 732 of a day. MRTG writes 0 for what it does not know; as in its own conversion, a rate of 0 is unknown.

use std::fmt;

use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::live::{LastDs, UNKNOWN};
use rrd::prefill::rates::{Stretch, prefill_rates};

/// Lines in a file. MRTG writes 2,535.
const LINES_MAX: usize = 100_000;

/// The largest rate. MRTG's counters have 64 bits.
const RATE_MAX: f64 = 1e20;

/// The latest time, in seconds since the epoch: the engine's limit.
const TIME_MAX: i64 = 1 << 53;

/// A target's past.
#[derive(Clone, Debug, PartialEq)]
pub struct MrtgLog {
    /// From the oldest to the newest, without gaps.
    stretches: Vec<Stretch<2>>,
    /// The counters of the last round.
    counters: [LastDs; 2],
}

/// Why a file is none of MRTG's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogError {
    /// From 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: &'static str,
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for LogError {}

impl MrtgLog {
    /// Reads a file.
    ///
    /// # Errors
    /// With the first line that MRTG does not write.
    pub fn parse(text: &str) -> Result<Self, LogError> {
        let error = |line, what| Err(LogError { line, what });
        let mut lines = text.lines().zip(1..);
        let Some((head, _)) = lines.next() else { return error(1, "the file is empty") };
        let mut words = head.split_ascii_whitespace();
        let now = time(words.next()).ok_or(LogError { line: 1, what: "it does not begin with a time" })?;
        let counters = [words.next(), words.next()].map(counter);
        let mut stretches: Vec<Stretch<2>> = Vec::new();
        for (text, line) in lines {
            let mut words = text.split_ascii_whitespace().peekable();
            if words.peek().is_none() {
                continue;
            }
            let Some(at) = time(words.next()) else { return error(line, "it does not begin with a time") };
            let rates: Option<Vec<f64>> = words.map(rate).collect();
            let Some(&[mean_in, mean_out, max_in, max_out]) = rates.as_deref() else {
                return error(line, "a time, two mean and two largest rates are expected");
            };
            if line > LINES_MAX {
                return error(line, "the file is too long");
            }
            match stretches.last_mut() {
                None if at > now => return error(line, "its time is after that of line 1"),
                Some(newer) if at > newer.to => {
                    return error(line, "its time is after that of the line before");
                }
                // What there is twice counts once.
                Some(newer) if at == newer.to => continue,
                Some(newer) => newer.from = at,
                None => {}
            }
            stretches.push(Stretch { from: at, to: at, mean: [mean_in, mean_out], max: [max_in, max_out] });
        }
        // The oldest line begins where nothing says; as long as the one before it, which is of the same section.
        if let [.., newer, oldest] = &mut stretches[..] {
            oldest.from = oldest.to - (newer.to - newer.from);
        }
        if stretches.first().is_none_or(|newest| newest.to < now) {
            let from = stretches.first().map_or(now, |newest| newest.to);
            stretches.insert(0, Stretch { from, to: now, mean: [UNKNOWN; 2], max: [UNKNOWN; 2] });
        }
        stretches.reverse();
        Ok(MrtgLog { stretches, counters })
    }

    /// When MRTG last read, in seconds since the epoch.
    pub fn last_round(&self) -> i64 {
        self.stretches.last().map_or(0, |stretch| stretch.to)
    }

    /// The RRD of a target with this past. `definition` is that which MRTG makes: two data sources, whole seconds.
    pub fn rrd(&self, definition: Definition) -> Rrd {
        prefill_rates(definition, &self.stretches, self.counters)
    }
}

fn time(word: Option<&str>) -> Option<i64> {
    word?.parse().ok().filter(|time| (0..=TIME_MAX).contains(time))
}

/// A rate; 0 is unknown.
fn rate(word: &str) -> Option<f64> {
    let rate: f64 = word.parse().ok().filter(|rate: &f64| rate.abs() <= RATE_MAX)?;
    Some(if rate == 0.0 { UNKNOWN } else { rate })
}

/// A counter as the RRD keeps it.
fn counter(word: Option<&str>) -> LastDs {
    let digits = word.filter(|word| word.len() <= 20 && word.bytes().all(|byte| byte.is_ascii_digit()));
    LastDs::new(digits.filter(|digits| !digits.is_empty()).unwrap_or("U").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hold_for_the_time_since_the_line_after_them() {
        let text = "1040 77 -1\n1040 5 6 7 8\n1010 1 2 3 4\n1010 9 9 9 9\n\n900 0 3 3 0\n600 2 2 2 2\n";
        let log = MrtgLog::parse(text).unwrap();
        let seen: Vec<(i64, i64, f64)> =
            log.stretches.iter().map(|stretch| (stretch.from, stretch.to, stretch.max[0])).collect();
        assert_eq!(seen, [(300, 600, 2.0), (600, 900, 3.0), (900, 1010, 3.0), (1010, 1040, 7.0)]);
        assert!(log.stretches[1].mean[0].is_nan() && log.stretches[1].max[1].is_nan());
        assert_eq!(log.last_round(), 1040);
        assert_eq!(log.counters.map(|counter| counter.as_bytes().to_vec()), [b"77".to_vec(), b"U".to_vec()]);
    }

    #[test]
    fn the_time_since_the_newest_line_is_unknown() {
        let log = MrtgLog::parse("1040 1 2\n900 5 6 7 8\n").unwrap();
        let [_, last] = &log.stretches[..] else { panic!("{log:?}") };
        assert_eq!((last.from, last.to), (900, 1040));
        assert!(last.mean[0].is_nan());
        assert_eq!(MrtgLog::parse("1040 1 2").unwrap().stretches.len(), 1);
    }

    #[test]
    fn what_mrtg_does_not_write_is_named() {
        let error = |text: &str| MrtgLog::parse(text).unwrap_err().to_string();
        assert_eq!(error(""), "line 1: the file is empty");
        assert_eq!(error("x 1 2"), "line 1: it does not begin with a time");
        assert_eq!(error("-5 1 2"), "line 1: it does not begin with a time");
        assert_eq!(error("5 1 2\n6 1 1 1 1"), "line 2: its time is after that of line 1");
        assert_eq!(error("9 1 2\n6 1 1 1 1\n7 1 1 1 1"), "line 3: its time is after that of the line before");
        assert_eq!(error("9 1 2\n6 1 1 1"), "line 2: a time, two mean and two largest rates are expected");
        assert_eq!(
            error("9 1 2\n6 1 1 1 1e21"),
            "line 2: a time, two mean and two largest rates are expected"
        );
    }
}
