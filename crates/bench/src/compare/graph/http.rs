//! Graphs over HTTP, without load and while W1 arrives at full speed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::super::Bench;
use super::super::subject::Subject;
use crate::Outcome;
use crate::builds::Program;
use crate::daemon::{Daemon, Kind};
use crate::figures::{Goal, Runs, Unit};
use crate::report::Row;
use crate::workload::{Shape, hash, rrd_name};

/// How long graphs are counted without load.
const AT_REST: Duration = Duration::from_secs(3);

/// Measures both rates of each build.
pub fn run(bench: &mut Bench) -> Outcome<()> {
    let mut rates = Vec::new();
    for program in bench.builds(Kind::Roundel) {
        rates.push(measure(bench, &program)?);
    }
    let Some((rest, busy)) = rates.pop() else { return Ok(()) };
    let mut row = |figure: &str, peer: Runs, ours: Runs, goal| {
        let (figure, unit) = (format!("Graphs/s over HTTP {figure}"), Unit::PerSecond);
        bench.report.row(Row { figure, peer, ours, unit, goal, aim: Goal::None });
    };
    if let Some((rest_before, busy_before)) = rates.pop() {
        row("at rest", rest_before, rest, Goal::None);
        row("while W1 arrives at full speed", busy_before, busy, Goal::None);
    } else {
        row("while W1 arrives at full speed, beside those at rest", rest, busy, Goal::Times(0.5));
    }
    Ok(())
}

/// Graphs/s without and under load.
fn measure(bench: &mut Bench, program: &Program) -> Outcome<(Runs, Runs)> {
    let (workload, count) = bench.workload(Shape::W1);
    bench.say(&format!("Graph: HTTP, creates {count} RRDs"));
    let place = bench.place("graph-http");
    let mut daemon = Daemon::new(program, &place)?;
    let address = daemon.set_http()?;
    let mut subject = Subject::on(daemon, workload, count)?;
    subject.create(&bench.progress_of(count))?;
    subject.fill(400, 40)?;
    let now = subject.now_seconds();
    let mut rest = Runs::default();
    let mut graphs = 0;
    let start = Instant::now();
    while start.elapsed() < AT_REST {
        graph(&address, hash(graphs, 7) as usize % count, now)?;
        graphs += 1;
    }
    rest.push(graphs as f64 / start.elapsed().as_secs_f64());
    bench.say("Graph: HTTP under load");
    let (busy, rate) = beside(&mut subject, &address, bench.pick(150, 600), now)?;
    subject.daemon.stop()?;
    std::fs::remove_dir_all(place).ok();
    let rate = Unit::PerSecond.text(rate);
    bench.report.note(
        "Graphs",
        format!("Over HTTP under load: W1 arrived at {rate} meanwhile (both sides are Roundel)."),
    );
    Ok((rest, Runs::one(busy)))
}

/// Draws an hour of an RRD until the load is done. Returns graphs/s, and values/s of the load.
fn beside(subject: &mut Subject, address: &str, rounds: u64, now: i64) -> Outcome<(f64, f64)> {
    let done = AtomicBool::new(false);
    let count = subject.count();
    thread::scope(|scope| {
        let reader = scope.spawn(|| -> Outcome<f64> {
            let start = Instant::now();
            let mut graphs = 0;
            while !done.load(Ordering::Relaxed) {
                graph(address, hash(graphs, 7) as usize % count, now)?;
                graphs += 1;
            }
            Ok(graphs as f64 / start.elapsed().as_secs_f64())
        });
        let measured = subject.run(rounds);
        done.store(true, Ordering::Relaxed);
        let graphs = reader.join().unwrap_or_else(|_| Err("the reader panicked".into()))?;
        Ok((graphs, measured?.drained_rate()))
    })
}

/// One graph of an hour.
fn graph(address: &str, rrd: usize, now: i64) -> Outcome<()> {
    let name = rrd_name(rrd);
    let target = format!(
        "/graph?arg=--start&arg={}&arg=--end&arg={now}&arg=DEF:v={name}:ds0:AVERAGE&arg=AREA:v%2300cc00:v\
         &arg=GPRINT:v:MAX:%256.2lf",
        now - 3_600
    );
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {target} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    if answer.starts_with(b"HTTP/1.1 200 ") && answer.windows(4).any(|part| part == b"\x89PNG") {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&answer[..answer.len().min(500)]).into_owned();
    Err(format!("no graph of {name}: {text}").into())
}
