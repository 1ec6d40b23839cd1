//! How a dump shows the times of its rows.

use std::ffi::OsStr;

use rrd::portable::two_digits;
use rrd::when::calendar::{Calendar, Utc};

use crate::{Local, strftime};

/// Seconds that one look-up covers: where both ends agree on zone and offset, everything between does. (No
/// zone has changed its clocks twice in so few days.)
const SPAN: i64 = 4 * 24 * 3600;

/// Seconds in a day.
const DAY: i64 = 24 * 3600;
/// Where the day of the month stands in a text.
const DAY_AT: usize = 8;
/// Where the time of day stands in a text.
const TIME_AT: usize = 11;
/// Room for a text; the names of zones have up to six letters.
const TEXT_BYTES: usize = 32;

/// Writes times as the comments of a dump show them: `%Y-%m-%d %H:%M:%S %Z` in local time. It remembers the day and
/// the zone of the last one, so that the C library is asked once in four days of rows.
#[derive(Debug)]
pub struct DumpTimes {
    from: i64,
    to: i64,
    offset: i64,
    /// Empty = nothing is known yet.
    zone: String,
    /// When the day began that `text` is of, in seconds of local time.
    midnight: i64,
    /// 0 = `text` is of no day.
    day: i32,
    text: [u8; TEXT_BYTES],
}

impl Default for DumpTimes {
    fn default() -> Self {
        let text = *b"0000-00-00 00:00:00             ";
        DumpTimes { from: 0, to: 0, offset: 0, zone: String::new(), midnight: 0, day: 0, text }
    }
}

impl DumpTimes {
    /// Appends the text of `time`, in seconds since the epoch.
    pub fn push(&mut self, time: i64, out: &mut Vec<u8>) {
        if !self.is_within(time) && !self.turn(time) {
            return out.extend_from_slice(library(FORMAT, time).as_bytes());
        }
        let (start, length) = (out.len(), TIME_AT + 9 + self.zone.len());
        out.extend_from_slice(&self.text);
        let seconds = (time + self.offset - self.midnight) as u32;
        out[start + TIME_AT..][..8].copy_from_slice(&clock(seconds));
        out.truncate(start + length);
    }

    /// Whether `text` is of the day of `time`.
    fn is_within(&self, time: i64) -> bool {
        (self.from..=self.to).contains(&time)
            && self.day > 0
            && (0..DAY).contains(&(time + self.offset - self.midnight))
    }

    /// Turns to the day of `time`; false when its texts are the library's.
    #[cold]
    fn turn(&mut self, time: i64) -> bool {
        let known = !self.zone.is_empty() && (self.from..=self.to).contains(&time);
        (known || self.look_up(time)) && self.begin_day(time + self.offset)
    }

    /// Writes down the date of a local time; false when its year has not four digits.
    fn begin_day(&mut self, local: i64) -> bool {
        let midnight = local.saturating_sub(local.rem_euclid(DAY));
        // Every month has so many days.
        if (1..28).contains(&self.day) && midnight == self.midnight + DAY {
            self.day += 1;
        } else {
            let civil = Utc.local(local);
            if !(1000..10_000).contains(&civil.year) {
                self.day = 0;
                return false;
            }
            for (at, number) in [(0, civil.year / 100), (2, civil.year % 100), (5, civil.month + 1)] {
                self.text[at..at + 2].copy_from_slice(&two_digits(number as u32));
            }
            self.day = civil.day;
        }
        self.midnight = midnight;
        self.text[DAY_AT..DAY_AT + 2].copy_from_slice(&two_digits(self.day as u32));
        true
    }

    /// Finds what holds from `time` on; false when that changes soon.
    fn look_up(&mut self, time: i64) -> bool {
        let Some(to) = time.checked_add(SPAN) else { return false };
        let (first, last) = (Local.local(time), Local.local(to));
        let zone = library("%Z", time);
        let fits = TIME_AT + 9 + zone.len() <= TEXT_BYTES;
        if !fits || first.utc_offset_seconds != last.utc_offset_seconds || zone != library("%Z", to) {
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
            *self = DumpTimes { from: time, to, offset, ..DumpTimes::default() };
            self.text[TIME_AT + 9..][..zone.len()].copy_from_slice(zone.as_bytes());
            self.zone = zone;
        }
        true
    }
}

/// `hh:mm:ss` of a second of a day, put together in a register.
fn clock(second: u32) -> [u8; 8] {
    let minute = second / 60;
    let [hour, minute, second] = [minute / 60, minute % 60, second % 60]
        .map(|number| u64::from(u16::from_le_bytes(two_digits(number))));
    let colon = u64::from(b':');
    (hour | colon << 16 | minute << 24 | colon << 40 | second << 48).to_le_bytes()
}

/// What RRDtool asks C for.
const FORMAT: &str = "%Y-%m-%d %H:%M:%S %Z";

fn library(format: &str, time: i64) -> String {
    let text = strftime(OsStr::new(format), time).unwrap_or_default();
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_the_c_librarys_texts() {
        let mut times = DumpTimes::default();
        let check = |times: &mut DumpTimes, time: i64| {
            let mut out = Vec::new();
            times.push(time, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), library(FORMAT, time), "{time}");
        };
        check(&mut times, 0);
        for time in
            (-3_000_000_000..4_000_000_000_i64).step_by(86_413 * 5 + 7).chain((0..86_400 * 30).step_by(611))
        {
            check(&mut times, time);
        }
        for time in [i64::MAX, i64::MIN, 300_000_000_000, -62_135_596_800] {
            check(&mut times, time);
        }
    }
}
