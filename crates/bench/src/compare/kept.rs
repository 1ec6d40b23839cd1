//! Disk kept with full archives, on the grid and with sample times that jitter, against the `.rrd` files.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::Bench;
use super::subject::Subject;
use crate::Outcome;
use crate::builds::Program;
use crate::daemon::Kind;
use crate::figures::{Goal, Runs, Unit};
use crate::report::Row;
use crate::usage::disk_bytes;
use crate::workload::{Jitter, Shape, Sources, Texture, Workload};

/// Values per UPDATE line while the archives are filled: only the result matters here.
const VALUES_PER_LINE: u64 = 60;
/// The files count as settled when they have not changed for this long: a merge with a busy disk's syncs.
const REST: Duration = Duration::from_secs(6);
/// Longest wait for rest.
const REST_LIMIT: Duration = Duration::from_secs(120);

/// One way to fill the archives.
struct Variant {
    title: &'static str,
    workload: Workload,
    goal: f64,
    aim: f64,
    /// RRDs in quick and full mode.
    rrds: (usize, usize),
    /// Also runs in quick mode.
    quick: bool,
}

fn variants() -> Vec<Variant> {
    let w1 = Workload::usual(Shape::W1);
    let w2 = Workload::usual(Shape::W2);
    let counters = |workload: Workload, jitter| Workload { sources: Sources::Counter, jitter, ..workload };
    let smooth = |workload: Workload| Workload { texture: Texture::Smooth, ..workload };
    let variant = |title, workload: Workload, goal, aim, quick| {
        let rrds = if workload.shape == Shape::W1 { (24, 100) } else { (200, 1_000) };
        Variant { title, workload, goal, aim, rrds, quick }
    };
    vec![
        variant("W1 on the grid", w1, 4.0, 6.0, true),
        variant("W2 on the grid", w2, 4.0, 6.0, true),
        variant("W1, counters, microseconds of jitter", counters(w1, Jitter::Micros), 2.0, 3.0, true),
        variant("W2, counters, seconds of jitter", counters(w2, Jitter::Seconds), 2.0, 3.0, true),
        variant(
            "W1, gauges, microseconds of jitter",
            Workload { jitter: Jitter::Micros, ..w1 },
            2.0,
            3.0,
            false,
        ),
        variant("W1 on the grid, smooth values", smooth(w1), 4.0, 6.0, false),
        variant("W2 on the grid, smooth values", smooth(w2), 4.0, 6.0, false),
    ]
}

/// Steps after which every archive is full.
fn rounds_to_fill(shape: Shape) -> u64 {
    match shape {
        Shape::W1 => 2_635 * 1_201,
        Shape::W2 => 288 * 797,
        Shape::Ganglia => 40 * 52_704,
    }
}

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Outcome<()> {
    for variant in variants() {
        if variant.quick || bench.pick(false, true) {
            let mut bytes = Vec::new();
            for program in bench.builds(Kind::RoundelBare) {
                bytes.push(fill(bench, &program, &variant)?);
            }
            let ours = bytes.pop().unwrap_or(f64::NAN);
            bench.report.row(Row {
                figure: format!("Disk kept per RRD, archives full, {}", variant.title),
                peer: Runs::one(bytes.pop().unwrap_or(variant.workload.rrd_file_bytes() as f64)),
                ours: Runs::one(ours),
                unit: Unit::Bytes,
                goal: Goal::Part(variant.goal),
                aim: Goal::Part(variant.aim),
            });
        }
    }
    Ok(())
}

/// Bytes kept of each RRD, the log apart.
fn fill(bench: &mut Bench, program: &Program, variant: &Variant) -> Outcome<f64> {
    let rrds = bench.pick(variant.rrds.0, variant.rrds.1);
    let rounds = rounds_to_fill(variant.workload.shape) + 10;
    let place = bench.place("kept");
    let mut subject = Subject::start(program, &place, variant.workload, rrds)?;
    subject.create(&bench.progress_of(rrds))?;
    let progress = bench.progress_of(rounds as usize);
    bench.say(&format!(
        "Kept: {}, {rrds} RRDs, {} M values",
        variant.title,
        rounds * rrds as u64 / 1_000_000
    ));
    let start = Instant::now();
    let piece = (5_000_000 / rrds as u64).max(VALUES_PER_LINE);
    let mut done = 0;
    while done < rounds {
        let next = piece.min(rounds - done);
        subject.fill(next, VALUES_PER_LINE)?;
        done += next;
        progress.inc(next);
    }
    let filled = start.elapsed();
    let store = subject.daemon.directory().join("store");
    let kept_running = wait_for_rest(&store)?;
    subject.restart()?;
    let kept = wait_for_rest(&store)?;
    // The log is preallocated in large files and does not grow with the number of RRDs.
    let log = bytes_of(&store, &|name| name.starts_with("log-"))?;
    let segments = bytes_of(&store, &|name| name.starts_with("segment-"))?;
    subject.daemon.stop()?;
    drop(progress);
    bench.report.note(
        "Disk kept",
        format!(
            "{}: {rrds} RRDs fed with {rounds} values each ({VALUES_PER_LINE} a line, simulated time) in {}, so that every \
             archive is full; du of the whole store {} when at rest, {} after a restart, of it {} of log, which does not \
             grow with the number of RRDs and is not in the row, and {} of segments. The peer is the size of the \
             standard file.",
            variant.title,
            Unit::Seconds.text(filled.as_secs_f64()),
            Unit::Bytes.text(kept_running as f64),
            Unit::Bytes.text(kept as f64),
            Unit::Bytes.text(log as f64),
            Unit::Bytes.text(segments as f64),
        ),
    );
    std::fs::remove_dir_all(&place).ok();
    Ok((kept - log) as f64 / rrds as f64)
}

fn wait_for_rest(store: &Path) -> Outcome<u64> {
    let start = Instant::now();
    let mut bytes = disk_bytes(store)?;
    let mut since = Instant::now();
    while since.elapsed() < REST && start.elapsed() < REST_LIMIT {
        thread::sleep(Duration::from_millis(250));
        let now = disk_bytes(store)?;
        if now != bytes {
            (bytes, since) = (now, Instant::now());
        }
    }
    Ok(bytes)
}

/// Bytes of the files whose name satisfies `wanted`.
fn bytes_of(directory: &Path, wanted: &dyn Fn(&str) -> bool) -> Outcome<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            bytes += bytes_of(&path, wanted)?;
        } else if path.file_name().is_some_and(|name| wanted(&name.to_string_lossy())) {
            bytes += disk_bytes(&path)?;
        }
    }
    Ok(bytes)
}
