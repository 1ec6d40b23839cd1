//! The page in a real browser, and the API that it asks: at rest, and while W1 arrives at full speed. `bench/page.mjs` measures.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use super::Bench;
use crate::Outcome;
use crate::client::Client;
use crate::daemon::{Daemon, Kind};
use crate::figures::{Goal, Runs, Unit};
use crate::load::{Load, LoadPlan};
use crate::report::Row;
use crate::workload::Shape;

/// RRDs with a day of rows of 10 s; a directory has links to the first eight.
const DAYS: usize = 100;
/// A chart with so many lines of so many points.
const LINES: usize = 30;
const POINTS: i64 = 1_500;
/// RRDs of one directory.
const BIG: usize = 100_000;
/// RRDs of a directory of all others.
const HOST: usize = 100;
/// CREATE lines sent before their answers are read.
const IN_FLIGHT: usize = 256;
/// Rounds of W1 sent before it is looked whether the measurement has ended.
const LOAD_ROUNDS: u64 = 10;

/// Values by the names that the script gives them.
type Measured = HashMap<String, Runs>;

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Outcome<()> {
    let Some(program) = bench.builds(Kind::RoundelBare).pop() else { return Ok(()) };
    let place = bench.place("page");
    let mut daemon = Daemon::new(&program, &place)?;
    let address = daemon.set_http()?;
    daemon.configure("[collect]\nhost = true\n");
    daemon.start()?;
    let (workload, count) = bench.workload(Shape::W1);
    let mut load = Load::connect(&daemon.address(), workload, count, 1)?;
    bench.say(&format!("Page: creates {count} RRDs of W1 and {} others", bench.million));
    load.create(&bench.progress_of(count))?;
    fill(bench, &mut Client::connect(&daemon.address())?)?;
    bench.say("Page: at rest");
    let runs = bench.pick(5, 11);
    let rest = measure(&address, runs, true)?;
    bench.say("Page: while W1 arrives");
    let (busy, rate) = measure_beside(&mut load, || measure(&address, runs, false))?;
    daemon.stop()?;
    rows(bench, &rest, &busy);
    bench.report.note(
        "Page",
        format!(
            "Debian's Chromium without its cache, on this machine; {count} RRDs of W1, {} others ({BIG} in one directory), this host's own. \
             First page: until its load event, with all pictures, bytes over the wire. Click: from the tree to eight live charts of a day of \
             rows of 10 s. Pointer: 600 moves in 10 s over {LINES} lines of {POINTS} points. Search: each key of four searches, one request \
             a key, the slowest in twenty. While W1 arrives at {} on the same two cores, which Chromium needs, too.",
            bench.million,
            Unit::PerSecond.text(rate)
        ),
    );
    std::fs::remove_dir_all(place).ok();
    Ok(())
}

fn rows(bench: &mut Bench, rest: &Measured, busy: &Measured) {
    let of = |measured: &Measured, name: &str| measured.get(name).cloned().unwrap_or_default();
    let at_most = |bound: f64, unit| Goal::AtMost(bound, unit);
    let names = bench.million;
    let bounds = [
        ("first-page", "first page with its pictures".to_string(), Unit::Seconds, 0.3, 0.15),
        ("first-page-bytes", "first page, over the wire".to_string(), Unit::Bytes, 100e3, 60e3),
        ("click-to-live", "from click to eight live charts of a day".to_string(), Unit::Seconds, 0.5, 0.2),
        (
            "pointer-frame",
            format!("pointer over {LINES} x {POINTS} points, frame, p95 (60 Hz: 16.7 ms)"),
            Unit::Seconds,
            0.017,
            0.017,
        ),
        (
            "pointer-script",
            format!("pointer over {LINES} x {POINTS} points, script in 10 s"),
            Unit::Seconds,
            1.154,
            0.218,
        ),
        ("big-directory", format!("directory of {BIG} RRDs, first paint"), Unit::Seconds, 0.3, 0.1),
    ];
    for (name, figure, unit, must, aim) in bounds {
        let (ours, peer) = (of(rest, name), Runs::default());
        let (goal, aim) = (at_most(must, unit), at_most(aim, unit));
        bench.report.row(Row { figure: format!("Page: {figure}"), peer, ours, unit, goal, aim });
    }
    bench.report.row(Row {
        figure: format!("Search among {names} names, a key, p95"),
        peer: Runs::default(),
        ours: Runs::one(of(rest, "search-key").quantile(0.95)),
        unit: Unit::Seconds,
        goal: at_most(0.1, Unit::Seconds),
        aim: at_most(0.03, Unit::Seconds),
    });
    bench.report.row(Row {
        figure: format!("Rows for {DAYS} graphs of a day in one request, against {DAYS} requests"),
        peer: of(rest, "charts-single"),
        ours: of(rest, "charts-together"),
        unit: Unit::Seconds,
        goal: Goal::Part(5.0),
        aim: Goal::Part(10.0),
    });
    let beside = [
        ("first-page", "first page"),
        ("click-to-live", "click to live charts"),
        ("charts-together", "rows for 100 graphs"),
    ];
    for (name, title) in beside {
        let ratio = of(busy, name).median() / of(rest, name).median();
        bench.report.row(Row {
            figure: format!("Page while W1 arrives, times at rest: {title}"),
            peer: Runs::default(),
            ours: Runs::one(ratio),
            unit: Unit::Number,
            goal: at_most(2.0, Unit::Number),
            aim: at_most(1.3, Unit::Number),
        });
    }
}

/// Creates and fills what the script opens.
fn fill(bench: &Bench, client: &mut Client) -> Outcome<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() as i64;
    let day = |number: usize| format!("day/RRD{number:02}.rrd");
    let eight = |number: usize| format!("eight/port{number}.rrd");
    for name in (0..DAYS).map(day).chain((0..8).map(eight)) {
        series(client, &name, now / 10 * 10, 10, 8_640)?;
    }
    for line in 0..LINES {
        series(client, &format!("lines/line{line:02}.rrd"), now / 60 * 60, 60, POINTS)?;
    }
    let name = |index: usize| match index.checked_sub(BIG) {
        None => format!("big/rrd{index:06}.rrd"),
        Some(other) => format!("names/host{:04}/rrd{other:06}.rrd", other / HOST),
    };
    let progress = bench.progress_of(bench.million);
    let mut text = String::new();
    let mut in_flight = 0;
    for index in 0..bench.million {
        writeln!(text, "CREATE {} -s 300 DS:v:GAUGE:600:U:U RRA:AVERAGE:0.5:1:12", name(index))?;
        in_flight += 1;
        if in_flight == IN_FLIGHT || index + 1 == bench.million {
            client.send(text.as_bytes())?;
            text.clear();
            for _ in 0..in_flight {
                let answer = client.answer()?;
                if answer.status < 0 {
                    return Err(format!("CREATE: {}", answer.message).into());
                }
            }
            progress.inc(in_flight as u64);
            in_flight = 0;
        }
    }
    Ok(())
}

/// An RRD with `rows` rows of `step` seconds up to `end`.
fn series(client: &mut Client, name: &str, end: i64, step: i64, rows: i64) -> Outcome<()> {
    let begin = end - (rows + 1) * step;
    let create = format!(
        "CREATE {name} -b {begin} -s {step} DS:v:GAUGE:{}:U:U RRA:AVERAGE:0.5:1:{rows} RRA:MIN:0.5:1:{rows} RRA:MAX:0.5:1:{rows}",
        2 * step
    );
    let mut said = vec![create];
    for first in (0..rows).step_by(100) {
        let value = |row: i64| 1e6 * (2.0 + (row as f64 / 300.0).sin() + (row * 7_919 % 1_000) as f64 / 3e3);
        let readings = (first..rows.min(first + 100))
            .map(|row| format!("{}:{:.1}", end - (rows - 1 - row) * step, value(row)));
        said.push(format!("UPDATE {name} {}", readings.collect::<Vec<_>>().join(" ")));
    }
    for line in said {
        let answer = client.ask(&line)?;
        if answer.status < 0 {
            return Err(format!("{name}: {}", answer.message).into());
        }
    }
    Ok(())
}

/// Runs the script.
fn measure(address: &str, runs: usize, pointer: bool) -> Outcome<Measured> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = std::env::current_exe()?.parent().and_then(Path::parent).map(PathBuf::from);
    let modules = target.ok_or("no target directory")?.join("page");
    let mut command = Command::new("node");
    command.arg(source.join("bench/page.mjs")).arg(runs.to_string());
    command.env("ROUNDEL_PAGE_URL", format!("http://{address}")).env("ROUNDEL_PAGE_MODULES", modules);
    if pointer {
        command.env("ROUNDEL_PAGE_POINTER", "1");
    }
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8(output.stdout)?;
    if !output.status.success() {
        return Err(format!("page.mjs: {}: {text}", output.status).into());
    }
    let mut measured = Measured::new();
    for line in text.lines() {
        let (name, value) = line.split_once(' ').ok_or(line)?;
        measured.entry(name.to_string()).or_default().push(value.parse()?);
    }
    Ok(measured)
}

/// What `measure` gives while the load arrives at full speed, and the load's values a second.
fn measure_beside(load: &mut Load, measure: impl FnOnce() -> Outcome<Measured>) -> Outcome<(Measured, f64)> {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let feeder = scope.spawn(|| -> Outcome<f64> {
            let (mut round, mut values, mut wall) = (0, 0, 0.0);
            while !is_done.load(Ordering::Relaxed) {
                let plan = LoadPlan { first_round: round, rounds: LOAD_ROUNDS, ..LoadPlan::default() };
                let sent = load.send(plan)?;
                round += LOAD_ROUNDS;
                values += sent.values;
                wall += sent.wall.as_secs_f64();
            }
            Ok(values as f64 / wall)
        });
        let measured = measure();
        is_done.store(true, Ordering::Relaxed);
        let rate = feeder.join().unwrap_or_else(|_| Err("the load panicked".into()))?;
        Ok((measured?, rate))
    })
}
