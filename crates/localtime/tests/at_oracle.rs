//! Time specifications against Debian's `rrdtool`, whose clock is stopped, in several time zones.
//!
//! A process has one zone, so each zone is a separate run of this program. For a time that occurs twice, the answer
//! of `mktime` depends on what it was last asked; so both sides ask in the same order.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fmt::Debug;

use roundel_localtime::Local;
use rrd::when::at::{AtError, TimeSpec, range, resolve};
use testkit::RrdTool;

#[path = "at_oracle/random.rs"]
mod random;
use random::Random;

const ZONES: &[&str] = &["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"];
/// Earlier times are refused: ten years.
const FIRST: i64 = 3600 * 24 * 365 * 10;

/// A graph of a longer range takes too long: ten years.
const GRAPH_SECONDS_MAX: i64 = FIRST;

/// Comparisons in one zone with the clock at `now`.
struct Bench {
    tool: RrdTool,
    now: i64,
    differences: Vec<String>,
}

impl Bench {
    fn new(zone: &str, now: i64) -> Bench {
        let mut tool = RrdTool::start_at(zone, now).unwrap();
        tool.run("create x.rrd --start 1000000000 DS:a:GAUGE:1:U:U RRA:LAST:0.5:1:1").unwrap();
        tool.run("create wide.rrd --start 1000000000 --step 1000000000 DS:a:GAUGE:1:U:U RRA:LAST:0.5:1:1")
            .unwrap();
        Bench { tool, now, differences: Vec::new() }
    }

    /// Compares one text, as `create --start` takes it.
    fn single(&mut self, text: &str) {
        let quote = if text.contains('\'') { '"' } else { '\'' };
        let created = self
            .tool
            .run(&format!("create y.rrd --start {quote}{text}{quote} DS:a:GAUGE:1:U:U RRA:LAST:0.5:1:1"));
        let theirs = created.and_then(|_| self.tool.run("last y.rrd")).map(|text| text.trim().to_string());
        let ours = match resolve(text, self.now, &Local) {
            Err(error @ AtError::NothingToReferTo) => Err(error.to_string()),
            Err(error) => Err(format!("start time: {error}")),
            Ok(time) if time < FIRST => Err("the first entry to the RRD should be after 1980".to_string()),
            Ok(time) => Ok(time.to_string()),
        };
        self.compare(text, &ours, &theirs);
    }

    fn compare<T: PartialEq + Debug>(&mut self, question: impl Debug, ours: &T, theirs: &T) {
        if ours != theirs {
            self.differences.push(format!("{question:?} at {}: {ours:?}, rrdtool {theirs:?}", self.now));
        }
    }

    /// Compares a range, as `fetch` or `graphv` takes it, whichever reports both ends.
    fn pair(&mut self, start: &str, end: &str) {
        let parse = |text| TimeSpec::parse(text, self.now, &Local);
        // RRDtool parses the defaults of the options first.
        parse("end-24h").unwrap();
        parse("now").unwrap();
        let ours = parse(start).map_err(|error| format!("start time: {error}")).and_then(|start| {
            let end = parse(end).map_err(|error| format!("end time: {error}"))?;
            range(&start, &end, &Local).map_err(|error| error.to_string())
        });
        let theirs = if ours
            .as_ref()
            .is_ok_and(|(start, end)| start < end && *start >= FIRST && end - start < GRAPH_SECONDS_MAX)
        {
            // A small picture without texts is drawn in a tenth of the time.
            let size = "--height 10 --only-graph";
            let line = format!("graphv /dev/null {size} -s '{start}' -e '{end}' DEF:a=x.rrd:a:LAST LINE:a");
            self.tool.run(&line).map(|text| {
                let value = |name| text.split(name).nth(1).unwrap().split_whitespace().next().unwrap();
                (value("graph_start = ").parse().unwrap(), value("graph_end = ").parse().unwrap())
            })
        } else {
            self.tool
                .run(&format!("fetch wide.rrd LAST -s '{start}' -e '{end}'"))
                .map(|_| *ours.as_ref().unwrap_or(&(0, 0)))
        };
        let ours = ours.and_then(|(start, end)| {
            if start < FIRST {
                Err("the first entry to fetch should be after 1980".to_string())
            } else if start > end {
                Err(format!("start ({start}) should be less than end ({end})"))
            } else {
                Ok((start, end))
            }
        });
        self.compare((start, end), &ours, &theirs);
        // Drawing asks C for other times; from here on, both sides have asked the same last.
        self.single("noon 15.06.2020");
        self.single("noon 15.06.2020");
    }
}

/// Every difference ever found, and the examples of the manual.
const SINGLES: &[&str] = &[
    "Oct 12",
    "-1month",
    "-1m",
    "noon yesterday -3hours",
    "9am-1day",
    "23:59 31.12.1999",
    "12/31/99 11:59pm",
    "12am 01/01/01",
    "931200300",
    "19970703 12:45",
    "midnight_Thu",
    "midnight,Thu",
    "8am Monday",
    "20251121",
    "now",
    "n+5",
    "",
    " ",
    "end-2h",
    "start",
    "epoch",
    "epoch+19711205s",
    "epoch+5000000000",
    "epoch+100y",
    "00:00 01/31/26",
    "31.01.2026",
    "31.01.2026+1d",
    "20251121 ++1d",
    "20251121 x:30pm",
    "20251121 am",
    "20251121 24",
    "20251121 x.3",
    "25.10x.26 02:15-",
    "9640/",
    "1792.894456",
    "17/x",
    "32.",
    "020261025 1",
    "0000019991231",
    "1793900000000516990 + 797",
    "99999999999999999999",
    "12.30",
    "12.05",
    "5 oct 5",
    "oct 5 2005 3",
    "oct 5 2005 noon",
    "jan 5 5 5",
    "noon 5",
    "5 12",
    "001:5",
    "12:60",
    "12:x",
    "99:60",
    "13pm",
    "24am",
    "00:30pm",
    "5!",
    "@5",
    "noon feb 30 -1mon",
    "noon jan 5 38",
    "noon jan 5 37",
    "noon jan 5 138",
    "noon jan 5 139",
    "noon jan 5 1970",
    "noon jan 5 1971",
    "19700102",
    "19701301",
    "24000101",
    "315360000",
    "315360001",
    "12:99999999999",
    "noon 01/99999999999/20",
    "noon 01/4294967297/20",
    "noon jan 4294967297 2020",
    "now+4294967297",
    "now+99999999h",
    "now+1000000000w",
    "now+2147483647mon",
    "noon jan 5 4294967396",
    "now+5-3",
    "now+5 5 6",
    "now+5x noon",
    "now+5 noon x",
    "now-1h2x3m",
    "now-1d2x30m",
    "now-10m+2m",
    "now-1y100m",
    "now-1h2m3m",
    "now-",
    "--1d",
    "now 5",
    "900000000x",
    "900000000 noon",
    "noon 900000000",
    "tomorrow",
    "yesterday noon",
    "sun",
    "am",
    "noon sund",
    "now+5#",
    "now foo",
    "5.",
    "5/x",
    "5/5/x",
    "noon 5.12-2020",
    "5.12/2020",
    "0",
    "23",
    "24",
    "1200",
    "jan 1 00:00",
    "1792891800-1d",
    "1792888200",
];

const PAIRS: &[(&str, &str)] = &[
    ("end-24h", "now"),
    ("e-1d", "now-1h"),
    ("now-2d", "s+1d"),
    ("end-5", "start+5"),
    ("end-5", "end+5"),
    ("start-5", "now"),
    ("foo", "bar"),
    ("now", "bar"),
    ("start+5", "end+5"),
    ("end-1mon", "31.05.2025"),
    ("31.01.2025", "start+1mon"),
    ("epoch+5", "start+5"),
    ("now-1h", "start"),
    ("1792891800", "s+1d"),
    ("1792888200", "s+0"),
    ("e-1d", "1792891800"),
    ("e-1d", "1792978200"),
    ("e-0d", "1792891800"),
    ("noon 20260328", "s+1d"),
    ("02:30 20260328", "s+1d"),
    ("e-1d", "02:30 20260330"),
    ("now", "now"),
];

fn ask(zone: &str) {
    let mut random = Random::new(zone.len() as u64);
    // A noon in summer, the hours of the clock changes in each zone, and a leap day.
    for now in [
        1_782_043_200,
        1_795_284_806,
        1_792_888_200,
        1_792_891_800,
        1_774_747_800,
        1_793_511_000,
        1_793_514_600,
        1_775_315_000,
        1_775_312_000,
        1_791_041_400,
        1_709_210_096,
        2_200_000_000,
    ] {
        let mut bench = Bench::new(zone, now);
        SINGLES.iter().for_each(|text| bench.single(text));
        PAIRS.iter().for_each(|(start, end)| bench.pair(start, end));
        for _ in 0..60 {
            bench.single(&random.spec());
            bench.single(&random.mutated());
        }
        for _ in 0..12 {
            bench.pair(&random.sane_spec("end"), &random.sane_spec("start"));
        }
        assert!(bench.differences.is_empty(), "{:#?}", bench.differences);
    }
}

#[test]
fn times_are_read_as_rrdtool_reads_them() {
    if let Some(zone) = testkit::in_zones("times_are_read_as_rrdtool_reads_them", ZONES) {
        ask(&zone);
    }
}
