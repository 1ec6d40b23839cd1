//! What a graph takes from its surroundings.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use args::times::Clock;
use graph::print::TimeFormat;
use rrd::when::calendar::{Calendar, Utc};

/// What a graph takes from its surroundings: the time, the time zone and the locale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphContext {
    /// What `now` means: seconds since the epoch.
    pub now: i64,
    /// Whether dates are in universal time instead of local time (`--utc`).
    pub utc: bool,
    /// The day on which weeks begin, counted from Sunday = 0.
    pub first_weekday: u32,
    /// The decimal point of numbers that the C library would print.
    pub decimal_point: String,
    /// The default font (`RRD_DEFAULT_FONT`); `None` is RRDtool's.
    pub default_font: Option<Vec<u8>>,
}

impl GraphContext {
    /// The C locale at `now` (seconds since the epoch), in this host's local time.
    pub fn at(now: i64) -> GraphContext {
        GraphContext { now, utc: false, first_weekday: 0, decimal_point: ".".to_string(), default_font: None }
    }

    /// The calendar that dates follow.
    pub fn calendar(&self) -> &'static dyn Calendar {
        if self.utc { &Utc } else { &localtime::Local }
    }

    /// What the times among the arguments are relative to.
    pub(crate) fn clock(&self) -> Clock<'static> {
        Clock { now: self.now, calendar: self.calendar() }
    }
}

impl TimeFormat for GraphContext {
    fn strftime(&self, format: &[u8], time: i64) -> Vec<u8> {
        let format = OsStr::from_bytes(format);
        let text =
            if self.utc { localtime::strftime_utc(format, time) } else { localtime::strftime(format, time) };
        text.unwrap_or_default()
    }

    fn strftime_utc(&self, format: &[u8], time: i64) -> Vec<u8> {
        localtime::strftime_utc(OsStr::from_bytes(format), time).unwrap_or_default()
    }

    fn decimal_point(&self) -> String {
        self.decimal_point.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_the_calendar() {
        let utc = GraphContext { utc: true, ..GraphContext::at(0) };
        assert_eq!(utc.strftime(b"%F %T", 1_000_000_000), b"2001-09-09 01:46:40");
        assert_eq!(utc.calendar().local(0).utc_offset_seconds, 0);
        let local = GraphContext::at(0);
        let want = localtime::strftime(OsStr::new("%F %T"), 1_000_000_000);
        assert_eq!(Some(local.strftime(b"%F %T", 1_000_000_000)), want);
        assert_eq!(local.strftime(b"nul\0", 0), b"");
        assert_eq!(local.strftime_utc(b"%F %T", 1_000_000_000), b"2001-09-09 01:46:40");
    }
}
