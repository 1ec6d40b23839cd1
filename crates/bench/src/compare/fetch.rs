//! FETCH over the socket: an hour, a day, a month; warm, cold, and while W1 arrives at full speed.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::Bench;
use super::subject::Subject;
use crate::Outcome;
use crate::builds::Program;
use crate::client::Client;
use crate::daemon::Kind;
use crate::figures::{Goal, Runs, Unit};
use crate::report::Row;
use crate::usage::drop_page_cache;
use crate::workload::{Shape, Workload, hash, rrd_name};

/// RRDs of the query data set.
const RRDS: usize = 50;
/// A month of steps of 10 s: fills the archives that the three ranges read.
const ROUNDS: u64 = 30 * 8_640;
/// Fetches of one daemon before it is the other's turn.
const TURN: usize = 100;
/// Values per line while it is filled.
const VALUES_PER_LINE: u64 = 60;
/// Pause after filling, before fetches are timed.
const REST_AFTER_LOAD: Duration = Duration::from_secs(5);
/// Between fetches under load: a reader, not a second load, as the cores belong to the daemon and its feeder.
const FETCH_PAUSE: Duration = Duration::from_millis(2);
/// Title and seconds.
const RANGES: [(&str, i64); 3] = [("1 hour", 3_600), ("1 day", 86_400), ("1 month", 2_592_000)];

/// Warm and cold times of one daemon, by range.
struct Times {
    warm: Vec<Runs>,
    cold: Option<Vec<Runs>>,
}

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Outcome<()> {
    let [peer, ours] = bench.pair(Kind::Roundel);
    let filled = [fill(bench, &peer)?, fill(bench, &ours)?];
    let [peer, ours] = measure(bench, filled)?;
    for (index, (title, _)) in RANGES.iter().enumerate() {
        let mut row = |figure: String, peer: f64, ours: f64, goal, aim| {
            let (peer, ours) = (Runs::one(peer), Runs::one(ours));
            bench.report.row(Row { figure, peer, ours, unit: Unit::Seconds, goal, aim });
        };
        let (theirs, our) = (&peer.warm[index], &ours.warm[index]);
        let none = Goal::None;
        row(
            format!("FETCH {title}, warm, p50"),
            theirs.median(),
            our.median(),
            Goal::Part(4.0),
            Goal::Part(10.0),
        );
        row(format!("FETCH {title}, warm, p99"), theirs.quantile(0.99), our.quantile(0.99), none, none);
        if let (Some(theirs), Some(our)) = (&peer.cold, &ours.cold) {
            let (theirs, our) = (&theirs[index], &our[index]);
            row(
                format!("FETCH {title}, cold, p50"),
                theirs.median(),
                our.median(),
                Goal::Part(1.0),
                Goal::Part(2.0),
            );
            row(format!("FETCH {title}, cold, p99"), theirs.quantile(0.99), our.quantile(0.99), none, none);
        }
    }
    bench.report.note(
        "FETCH",
        format!(
            "{RRDS} RRDs of the W1 geometry with a month of values ({ROUNDS} each); `FETCH name AVERAGE start end` over a UNIX \
             socket, times are until the last line of the answer is read. Warm: {} fetches a range of random RRDs, after \
             as many uncounted. Cold: before each range sync and drop_caches=3, then one fetch of each RRD (rrdcached's \
             own files, Roundel's segments); the daemons keep running.",
            bench.pick(1_000, 2_000)
        ),
    );
    under_load(bench)
}

/// A daemon with a month of values.
struct Filled {
    title: String,
    subject: Subject,
    client: Client,
}

fn fill(bench: &mut Bench, program: &Program) -> Outcome<Filled> {
    let workload = Workload::usual(Shape::W1);
    let title = program.title();
    bench.say(&format!("Fetch: {title} is filled with a month of {RRDS} RRDs"));
    let mut subject = Subject::start(program, &bench.place(&format!("fetch-{title}")), workload, RRDS)?;
    subject.create(&bench.progress_of(RRDS))?;
    // In pieces, so that rrdcached does not keep a month of text in memory.
    let piece = ROUNDS / 10;
    for _ in 0..ROUNDS / piece {
        subject.fill(piece, VALUES_PER_LINE)?;
    }
    let client = subject.client()?;
    Ok(Filled { title, subject, client })
}

/// Times of both daemons, in turn.
fn measure(bench: &mut Bench, mut filled: [Filled; 2]) -> Outcome<[Times; 2]> {
    // Lets the background work after a load finish.
    thread::sleep(REST_AFTER_LOAD);
    let now = filled[0].subject.now_seconds();
    let count = bench.pick(1_000, 2_000);
    let mut times = [(); 2].map(|()| Times { warm: Vec::new(), cold: None });
    for (title, seconds) in RANGES {
        bench.say(&format!("Fetch: {title}, warm"));
        let mut runs = [Runs::default(), Runs::default()];
        for filled in &mut filled {
            fetches(&mut filled.client, 0..count, now, seconds, RRDS)?;
        }
        for first in (0..count).step_by(TURN) {
            for (filled, runs) in filled.iter_mut().zip(&mut runs) {
                runs.append(fetches(&mut filled.client, first..first + TURN, now, seconds, RRDS)?);
            }
        }
        for (times, runs) in times.iter_mut().zip(runs) {
            times.warm.push(runs);
        }
    }
    for (filled, times) in filled.iter_mut().zip(&mut times) {
        times.cold = cold(bench, filled, now)?;
    }
    for Filled { mut subject, .. } in filled {
        subject.daemon.stop()?;
        std::fs::remove_dir_all(subject.daemon.directory()).ok();
    }
    Ok(times)
}

/// Cold times by range; `None` where the page cache may not be dropped.
fn cold(bench: &mut Bench, filled: &mut Filled, now: i64) -> Outcome<Option<Vec<Runs>>> {
    let mut cold = Vec::new();
    for (title, seconds) in RANGES {
        bench.say(&format!("Fetch: {}, {title}, cold", filled.title));
        if let Err(error) = drop_page_cache() {
            bench.report.omit("FETCH", format!("Cold fetches were not measured: {error}"));
            return Ok(None);
        }
        let mut runs = Runs::default();
        for index in 0..RRDS {
            runs.push(fetch(&mut filled.client, index, now, seconds)?);
        }
        cold.push(runs);
    }
    Ok(Some(cold))
}

/// Seconds of one FETCH; its row count is checked against the range.
fn fetch(client: &mut Client, rrd: usize, now: i64, seconds: i64) -> Outcome<f64> {
    let start = Instant::now();
    let lines = client.ask_and_count(&format!("FETCH {} AVERAGE {} {now}", rrd_name(rrd), now - seconds))?;
    let wall = start.elapsed().as_secs_f64();
    // Six lines of header, then at least 300 rows for each of the three ranges.
    if lines < 300 {
        return Err(format!("FETCH gave only {lines} lines").into());
    }
    Ok(wall)
}

fn fetches(client: &mut Client, which: Range<usize>, now: i64, seconds: i64, rrds: usize) -> Outcome<Runs> {
    let mut runs = Runs::default();
    for index in which {
        let rrd = hash(index as u64, seconds as u64) as usize % rrds;
        runs.push(fetch(client, rrd, now, seconds)?);
    }
    Ok(runs)
}

/// p99 of FETCH of an hour while W1 arrives as fast as it goes, against the same daemon without load.
fn under_load(bench: &mut Bench) -> Outcome<()> {
    let (workload, count) = bench.workload(Shape::W1);
    let mut results = Vec::new();
    for program in bench.pair(Kind::Roundel) {
        let is_ours = program.kind == Kind::Roundel;
        let rounds = if is_ours { bench.pick(300, 900) } else { bench.pick(60, 120) };
        bench.say(&format!("Fetch: {} under load, creates {count} RRDs", program.title()));
        let place = bench.place(&format!("fetch-load-{}", program.title()));
        let mut subject = Subject::start(&program, &place, workload, count)?;
        subject.create(&bench.progress_of(count))?;
        subject.fill(400, 40)?;
        let now = subject.now_seconds();
        let mut client = subject.client()?;
        fetches(&mut client, 0..500, now, 3_600, count)?;
        let idle = fetches_at_rest(&mut client, 2_000, now, count)?;
        bench.say(&format!("Fetch: {} under load", program.title()));
        let (busy, rate) = fetches_beside(&mut subject, client, rounds, now)?;
        subject.daemon.stop()?;
        results.push((program, idle, busy, rate));
        std::fs::remove_dir_all(place).ok();
    }
    for (program, idle, busy, rate) in &results {
        bench.report.note(
            "FETCH under load",
            format!(
                "{}: p50 {} and p99 {} of an hour at rest; p50 {} and p99 {} ({} fetches) while W1 arrived at {}.",
                program.title(),
                Unit::Seconds.text(idle.median()),
                Unit::Seconds.text(idle.quantile(0.99)),
                Unit::Seconds.text(busy.median()),
                Unit::Seconds.text(busy.quantile(0.99)),
                busy.count(),
                Unit::PerSecond.text(*rate)
            ),
        );
    }
    let ratio = |index: usize| {
        let (_, idle, busy, _): &(Program, Runs, Runs, f64) = &results[index];
        Runs::one(busy.quantile(0.99) / idle.quantile(0.99))
    };
    bench.report.row(Row {
        figure: "FETCH p99 while W1 arrives at full speed, times the idle p99".to_string(),
        peer: ratio(0),
        ours: ratio(1),
        unit: Unit::Number,
        goal: Goal::AtMost(5.0, Unit::Number),
        aim: Goal::None,
    });
    Ok(())
}

/// Fetches an hour with the same pauses as beside a load.
fn fetches_at_rest(client: &mut Client, fetch_count: u64, now: i64, rrds: usize) -> Outcome<Runs> {
    let mut runs = Runs::default();
    for index in 0..fetch_count {
        runs.push(fetch(client, hash(index, 7) as usize % rrds, now, 3_600)?);
        thread::sleep(FETCH_PAUSE);
    }
    Ok(runs)
}

/// Fetches on one connection until the load on another is done. Returns the times, and values/s of the load.
fn fetches_beside(subject: &mut Subject, mut client: Client, rounds: u64, now: i64) -> Outcome<(Runs, f64)> {
    let done = AtomicBool::new(false);
    let count = subject.count();
    thread::scope(|scope| {
        let reader = scope.spawn(|| -> Outcome<Runs> {
            let mut runs = Runs::default();
            let mut index = 0u64;
            while !done.load(Ordering::Relaxed) {
                index += 1;
                let rrd = hash(index, 7) as usize % count;
                runs.push(fetch(&mut client, rrd, now, 3_600)?);
                thread::sleep(FETCH_PAUSE);
            }
            Ok(runs)
        });
        let measured = subject.run(rounds);
        done.store(true, Ordering::Relaxed);
        let runs = reader.join().unwrap_or_else(|_| Err("the reader panicked".into()))?;
        Ok((runs, measured?.drained_rate()))
    })
}
