//! LTIME, NEWDAY, NEWWEEK, NEWMONTH and NEWYEAR against RRDtool's library in several zones.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

use roundel_rrd::rpn::{EvalContext, Expression, Series, Symbol};
use roundel_rrd::when::calendar::{Calendar, Civil, Utc};
use testkit::{Bindings, RrdTool};

/// A zone with a fixed offset from UTC, and an hour more in the summer of the European Union.
struct Zone {
    ahead: i64,
    summer: bool,
}

impl Zone {
    fn offset(&self, time: i64) -> i64 {
        let year = Utc.local(time).year;
        // The last Sunday of a month of 31 days, at 01:00 UTC.
        let change = |month: i32| {
            let last = Utc.time(&Civil { year, month, day: 31, hour: 1, ..Civil::default() });
            last - i64::from(Utc.local(last).weekday) * 86_400
        };
        let summer = self.summer && time >= change(2) && time < change(9);
        self.ahead + if summer { 3600 } else { 0 }
    }
}

impl Calendar for Zone {
    fn local(&self, time: i64) -> Civil {
        let offset = self.offset(time);
        Civil { utc_offset_seconds: offset as i32, ..Utc.local(time + offset) }
    }

    fn time(&self, _: &Civil) -> i64 {
        panic!("expressions only ask for local time")
    }

    fn time_as(&self, _: &Civil, _: bool) -> i64 {
        panic!("expressions only ask for local time")
    }
}

fn check(tool: &RrdTool, zone: &str, calendar: &Zone) {
    let mut perl = Bindings::start(zone).unwrap();
    let file = tool.path("h.rrd").to_str().unwrap().to_string();
    let mut found = 0;
    for step in [3600, 7200, 43_200, 86_400, 172_800, 604_800] {
        let (start, end) = (1_000_000_000 / step * step, 1_020_000_000 / step * step);
        for operator in ["LTIME", "NEWDAY", "NEWWEEK", "NEWMONTH", "NEWYEAR"] {
            let text = format!("x,POP,{operator}");
            let [start_word, end_word, step_word] = [start, end, step].map(|word| word.to_string());
            let words = [
                "--start",
                &start_word,
                "--end",
                &end_word,
                "--step",
                &step_word,
                "--maxrows",
                "100000",
                &format!("DEF:x={file}:x:AVERAGE:step={step}"),
                &format!("CDEF:r={text}"),
                "XPORT:r",
            ];
            let theirs = perl.xport(&words).unwrap();
            assert_eq!(theirs.step, step as u64);
            let rows = vec![0.0; theirs.rows.len()];
            let series = Series { start: theirs.start - step, step: theirs.step, values: rows };
            let context = EvalContext { now: 0, first_weekday: 0, calendar };
            let expression = Expression::parse(&text, |_| Some(Symbol::Series(0))).unwrap();
            let ours = expression.evaluate(&[&series], &[], &context).unwrap();
            let theirs: Vec<f64> = theirs.rows.iter().map(|row| row[0]).collect();
            for (index, (ours, theirs)) in ours.values.iter().zip(&theirs).enumerate() {
                let time = series.start + (index as i64 + 1) * step;
                assert_eq!(ours, theirs, "{zone} {text} at {time}, step {step}");
            }
            assert_eq!(ours.values.len(), theirs.len());
            found += theirs.iter().filter(|value| **value == 1.0).count();
        }
    }
    assert!(found > 1000, "only {found} new periods in {zone}");
}

#[test]
fn periods_begin_by_local_time() {
    let mut tool = RrdTool::start().unwrap();
    let archives = [1, 2, 12, 24, 48, 168].map(|rows| format!("RRA:AVERAGE:0.5:{rows}:20000")).join(" ");
    tool.run(&format!("create h.rrd --start 1020000000 --step 3600 DS:x:GAUGE:7200:U:U {archives}")).unwrap();
    check(&tool, "UTC", &Zone { ahead: 0, summer: false });
    check(&tool, "Europe/Berlin", &Zone { ahead: 3600, summer: true });
    check(&tool, "Asia/Kolkata", &Zone { ahead: 19_800, summer: false });
    check(&tool, "NST3:30", &Zone { ahead: -12_600, summer: false });
}
