//! The RRDs that the examples show: days and weeks as a router, a host and a ping have them, the same in every run.

use std::f64::consts::TAU;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Outcome;

/// Where all data ends, in seconds since the epoch: 2023-11-15 00:00 UTC.
const END: u64 = 1_700_006_400;
/// Seconds between two values.
const STEP: u64 = 300;
/// How far the data goes back: the examples show up to two years.
const STEPS: u64 = 730 * 86_400 / STEP;

/// An RRD: name, sources, archives, and the values at a time as `rrdtool update` takes them.
struct Source {
    name: &'static str,
    sources: &'static [&'static str],
    /// Of these values; unknown ones are `U`.
    steps: u64,
    archives: &'static [&'static str],
    values: fn(u64) -> Vec<f64>,
}

/// Archives as a poller of five minutes has them.
const ARCHIVES: &[&str] = &[
    "RRA:AVERAGE:0.5:1:2400",
    "RRA:AVERAGE:0.5:6:800",
    "RRA:AVERAGE:0.5:24:800",
    "RRA:AVERAGE:0.5:288:800",
    "RRA:MAX:0.5:1:2400",
    "RRA:MAX:0.5:6:800",
    "RRA:MAX:0.5:24:800",
    "RRA:MAX:0.5:288:800",
    "RRA:MIN:0.5:1:2400",
];

const SOURCES: &[Source] = &[
    Source { name: "router", sources: &["in", "out"], steps: STEPS, archives: ARCHIVES, values: router },
    Source {
        name: "host",
        sources: &[
            "user", "system", "nice", "iowait", "idle", "load1", "load5", "load15", "apps", "cache", "unused",
        ],
        steps: 4032,
        archives: ARCHIVES,
        values: host,
    },
    Source {
        name: "ping",
        sources: &["median", "loss", "p1", "p2", "p3", "p4", "p5", "p6"],
        steps: 2016,
        archives: ARCHIVES,
        values: ping,
    },
    Source {
        name: "monitor",
        sources: &["out"],
        steps: 4032,
        archives: &["RRA:AVERAGE:0.5:1:2016", "RRA:HWPREDICT:2016:0.1:0.0035:288"],
        values: monitor,
    },
];

/// Creates every RRD in `directory`, replacing old ones.
pub fn make(rrdtool: &Path, directory: &Path) -> Outcome<()> {
    let mut pipe = Command::new(rrdtool)
        .arg("-")
        .current_dir(directory)
        .env("TZ", "UTC")
        .env_remove("RRDCACHED_ADDRESS")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = pipe.stdin.take().ok_or("rrdtool has no standard input")?;
    let answers = std::thread::spawn(move || pipe.wait_with_output());
    for source in SOURCES {
        fs::remove_file(directory.join(format!("{}.rrd", source.name))).ok();
        let start = END - source.steps * STEP;
        write!(input, "create {}.rrd --start {} --step {STEP}", source.name, start - STEP)?;
        for name in source.sources {
            write!(input, " DS:{name}:GAUGE:600:U:U")?;
        }
        writeln!(input, " {}", source.archives.join(" "))?;
        for first in (0..source.steps).step_by(200) {
            write!(input, "update {}.rrd", source.name)?;
            for step in first..(first + 200).min(source.steps) {
                let time = start + step * STEP;
                write!(input, " {time}")?;
                for value in (source.values)(time) {
                    if value.is_nan() { write!(input, ":U")? } else { write!(input, ":{value:.6}")? }
                }
            }
            writeln!(input)?;
        }
    }
    drop(input);
    let output = answers.join().map_err(|_| "the reader of rrdtool's answers ended")??;
    let answers = String::from_utf8_lossy(&output.stdout);
    match answers.lines().find(|line| line.starts_with("ERROR")) {
        Some(error) => Err(error.to_string().into()),
        None => Ok(()),
    }
}

/// A number from 0 to 1 by chance, the same for the same time and salt (splitmix64).
fn chance(time: u64, salt: u64) -> f64 {
    let mut mixed = (time / STEP).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(salt << 32);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}

/// 0 at night, 1 in the afternoon.
fn daylight(time: u64) -> f64 {
    0.5 - 0.5 * (TAU * ((time % 86_400) as f64 / 86_400.0 - 0.1)).cos()
}

/// Less on the two last days of a week.
fn weekday(time: u64) -> f64 {
    if (time / 86_400 + 3) % 7 < 5 { 1.0 } else { 0.45 }
}

/// Bytes a second in and out, with a gap of two hours now and then.
fn router(time: u64) -> Vec<f64> {
    if time % (5 * 86_400) < 7200 {
        return vec![f64::NAN; 2];
    }
    let busy = daylight(time) * weekday(time);
    let growth = 1.0 + (time as f64 - END as f64) / (4.0 * 365.0 * 86_400.0);
    let burst = if chance(time, 1) > 0.97 { 150_000.0 } else { 0.0 };
    let inward = growth * (20_000.0 + 140_000.0 * busy + 30_000.0 * chance(time, 2)) + burst;
    let outward = growth * (8_000.0 + 60_000.0 * busy * (0.8 + 0.4 * chance(time, 3)));
    vec![inward, outward]
}

/// Per cents of four processors, load averages, bytes of memory.
fn host(time: u64) -> Vec<f64> {
    let busy = daylight(time) * weekday(time);
    let user = 20.0 + 120.0 * busy * (0.7 + 0.3 * chance(time, 4));
    let system = 10.0 + 40.0 * busy * chance(time, 5);
    let nice = if time % 86_400 < 7200 { 60.0 } else { 3.0 * chance(time, 6) };
    let iowait = if time % 43_200 < 1800 { 90.0 * chance(time, 7) } else { 4.0 * chance(time, 8) };
    let load = (user + system + nice) / 100.0;
    let apps = 3.0e9 + 1.0e9 * busy + 1.0e8 * chance(time, 9);
    let cache = 2.0e9 + ((time % 604_800) as f64) * 2500.0;
    vec![
        user,
        system,
        nice,
        iowait,
        400.0 - user - system - nice - iowait,
        load * (0.7 + 0.6 * chance(time, 10)),
        load * (0.9 + 0.2 * chance(time, 11)),
        load,
        apps,
        cache,
        8.0e9 - apps - cache,
    ]
}

/// The median, lost packets of twenty, and six of the round trip times in order, in seconds.
fn ping(time: u64) -> Vec<f64> {
    let median = 0.018 + 0.012 * daylight(time) + 0.002 * chance(time, 12);
    let spread = 0.001 + 0.008 * daylight(time) * chance(time, 13);
    let lost = match chance(time, 14) {
        high if high > 0.985 => 1.0 + (chance(time, 15) * 19.0).floor(),
        high if high > 0.93 => 1.0,
        _ => 0.0,
    };
    let mut values = vec![median, lost];
    values.extend([-1.0, -0.6, -0.25, 0.4, 1.0, 2.2].map(|part| median + part * spread));
    values
}

/// A regular day with a breakdown and a flood on the last one.
fn monitor(time: u64) -> Vec<f64> {
    let usual = 50_000.0 * (1.0 + daylight(time)) + 4_000.0 * chance(time, 16);
    let ago = END - time;
    vec![if (30_000..36_000).contains(&ago) {
        usual * 0.2
    } else if (60_000..63_000).contains(&ago) {
        usual * 2.5
    } else {
        usual
    }]
}
