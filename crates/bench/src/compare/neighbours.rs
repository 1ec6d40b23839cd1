//! For orientation: librrd without a daemon, and VictoriaMetrics with the same data as text.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::Bench;
use super::subject::Subject;
use crate::Outcome;
use crate::builds::Program;
use crate::daemon::Kind;
use crate::figures::{Goal, Runs, Unit};
use crate::report::Row;
use crate::usage::ProcessUsage;
use crate::workload::{Feed, Shape, Workload};

/// Where VictoriaMetrics listens while it is measured.
pub(super) const VICTORIA_ADDRESS: &str = "127.0.0.1:18428";
/// Longest wait until it, or another peer, does.
const VICTORIA_LIMIT: Duration = Duration::from_secs(30);
/// Rounds of 20,500 samples sent to it in a run.
const VICTORIA_ROUNDS: u64 = 90;
/// RRDs that librrd updates.
const LIBRRD_RRDS: usize = 4_000;

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Outcome<()> {
    let mut series = roundel(bench)?;
    let (rate, cpu) = series.pop().unwrap_or_default();
    if let Some((rate_before, cpu_before)) = series.pop() {
        builds(bench, (rate_before, rate), (cpu_before, cpu));
        return Ok(());
    }
    let (place, rrdcached) = (bench.work.join("neighbours"), bench.rrdcached());
    let mut row = |figure: &str, peer: Runs, ours: &Runs, unit, goal| {
        let (figure, ours) = (figure.to_string(), ours.clone());
        bench.report.row(Row { figure, peer, ours, unit, goal, aim: Goal::None });
    };
    let mut failures = Vec::new();
    match librrd(&place, &rrdcached) {
        Ok((their_rate, their_cpu)) => {
            row(
                "W1, values/s, against librrd without a daemon (1 process, 1 value a call)",
                their_rate,
                &rate,
                Unit::PerSecond,
                Goal::None,
            );
            row(
                "W1, CPU per value, against librrd without a daemon",
                their_cpu,
                &cpu,
                Unit::Seconds,
                Goal::None,
            );
        }
        Err(error) => failures.push(format!("librrd was not measured: {error}")),
    }
    match victoria(&place) {
        Ok((their_rate, their_cpu)) => {
            row(
                "W1, values/s, against VictoriaMetrics (Prometheus text, not consolidated)",
                their_rate,
                &rate,
                Unit::PerSecond,
                Goal::Times(1.0),
            );
            row(
                "W1, CPU per value, against VictoriaMetrics",
                their_cpu,
                &cpu,
                Unit::Seconds,
                Goal::Part(1.0),
            );
        }
        Err(error) => failures.push(format!("VictoriaMetrics was not measured: {error}")),
    }
    let text = format!(
        "librrd: a C program, `rrd_update_r` with one value on {LIBRRD_RRDS} W1 files, 5 rounds a run, page cache warm. \
         VictoriaMetrics: POST /api/v1/import/prometheus on one connection, a round of 20,500 samples a request with \
         two labels each, {VICTORIA_ROUNDS} rounds a run, until the last is answered. Three runs each."
    );
    for text in std::iter::once(text).chain(failures) {
        bench.report.note("Neighbours", text);
    }
    fs::remove_dir_all(place).ok();
    Ok(())
}

/// The rows of two builds of ours, which need no neighbour.
fn builds(bench: &mut Bench, rates: (Runs, Runs), cpus: (Runs, Runs)) {
    let rows = [("values/s", rates, Unit::PerSecond), ("CPU per value", cpus, Unit::Seconds)];
    for (what, (peer, ours), unit) in rows {
        let figure = format!("W1, {what}, without placeholders, 90 rounds");
        bench.report.row(Row { figure, peer, ours, unit, goal: Goal::None, aim: Goal::None });
    }
}

/// Our own figures for the comparison, of each build: W1 accepted, logged and consolidated.
fn roundel(bench: &mut Bench) -> Outcome<Vec<(Runs, Runs)>> {
    let (workload, count) = bench.workload(Shape::W1);
    bench.say("Neighbours: roundel");
    let mut subjects = Vec::new();
    for program in bench.builds(Kind::RoundelBare) {
        let place = bench.place(&format!("neighbours-{}", program.title()));
        let mut subject = Subject::start(&program, &place, workload, count)?;
        subject.create(&bench.progress_of(count))?;
        subject.run(30)?;
        subjects.push(subject);
    }
    let mut series = vec![(Runs::default(), Runs::default()); subjects.len()];
    for _ in 0..3 {
        for (subject, (rate, cpu)) in subjects.iter_mut().zip(&mut series) {
            let measured = subject.run(90)?;
            rate.push(measured.drained_rate());
            cpu.push(measured.cpu_per_value());
        }
    }
    for mut subject in subjects {
        subject.daemon.stop()?;
        fs::remove_dir_all(subject.daemon.directory()).ok();
    }
    Ok(series)
}

/// Values per second and CPU seconds per value of librrd alone.
fn librrd(place: &Path, rrdcached: &Program) -> Outcome<(Runs, Runs)> {
    fs::create_dir_all(place)?;
    let (source, program) = (place.join("librrd.c"), place.join("librrd"));
    fs::write(&source, include_str!("../librrd.c"))?;
    let compiled =
        Command::new("cc").arg("-O2").arg("-o").arg(&program).arg(&source).arg("-lrrd").output()?;
    if !compiled.status.success() {
        return Err(format!("cc: {}", String::from_utf8_lossy(&compiled.stderr)).into());
    }
    let workload = Workload::usual(Shape::W1);
    let mut subject = Subject::start(rrdcached, &place.join("files"), workload, LIBRRD_RRDS)?;
    subject.create(&indicatif::ProgressBar::hidden())?;
    subject.daemon.stop()?;
    let rounds = 5;
    let (mut rate, mut cpu) = (Runs::default(), Runs::default());
    for run in 0..4 {
        let first = workload.round_seconds(run * rounds);
        let output = Command::new(&program)
            .arg(subject.daemon.directory().join("rrd"))
            .args([LIBRRD_RRDS.to_string(), rounds.to_string(), first.to_string(), "10".to_string()])
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let Some((wall, used)) = text.trim().split_once(' ') else {
            return Err(format!("librrd: {}", String::from_utf8_lossy(&output.stderr)).into());
        };
        // The first run brings the files into the page cache.
        if run > 0 {
            let values = (LIBRRD_RRDS as u64 * rounds) as f64;
            rate.push(values / wall.parse::<f64>()?);
            cpu.push(used.parse::<f64>()? / values);
        }
    }
    Ok((rate, cpu))
}

/// A process that ends with this value.
pub(super) struct Running(pub(super) Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// VictoriaMetrics with its data in a directory, once it listens.
pub(super) fn start_victoria(place: &Path, options: &[&str]) -> Outcome<Running> {
    fs::create_dir_all(place)?;
    let log = File::create(place.join("victoria.log"))?;
    let child = Command::new("victoria-metrics")
        .arg(format!("-storageDataPath={}", place.join("victoria").display()))
        .arg(format!("-httpListenAddr={VICTORIA_ADDRESS}"))
        .arg("-retentionPeriod=100y")
        .args(options)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()?;
    let running = Running(child);
    wait_for(VICTORIA_ADDRESS)?;
    Ok(running)
}

/// Waits until a program listens there.
pub(super) fn wait_for(address: &str) -> Outcome<()> {
    let start = Instant::now();
    loop {
        match TcpStream::connect(address) {
            Ok(_) => return Ok(()),
            Err(error) if start.elapsed() > VICTORIA_LIMIT => return Err(error.into()),
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Values per second and CPU seconds per value of VictoriaMetrics.
fn victoria(place: &Path) -> Outcome<(Runs, Runs)> {
    let running = start_victoria(place, &[])?;
    let stream = TcpStream::connect(VICTORIA_ADDRESS)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(VICTORIA_LIMIT))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    let workload = Workload::usual(Shape::W1);
    let mut samples = Samples::new(workload);
    let (mut rate, mut cpu) = (Runs::default(), Runs::default());
    for run in 0..4u64 {
        let before = ProcessUsage::of(running.0.id())?;
        let start = Instant::now();
        for round in 0..VICTORIA_ROUNDS {
            post(&mut writer, &mut reader, samples.round(run * VICTORIA_ROUNDS + round))?;
        }
        let values = (VICTORIA_ROUNDS * workload.rrd_count() as u64) as f64;
        // The first run registers the series.
        if run > 0 {
            rate.push(values / start.elapsed().as_secs_f64());
            cpu.push(ProcessUsage::of(running.0.id())?.since(&before).cpu.as_secs_f64() / values);
        }
    }
    Ok((rate, cpu))
}

/// Rounds of W1 as Prometheus text.
struct Samples {
    feed: Feed,
    series: Vec<String>,
    text: Vec<u8>,
}

impl Samples {
    fn new(workload: Workload) -> Self {
        let count = workload.rrd_count();
        let series = (0..count)
            .map(|rrd| format!("metric{{host=\"host-{:05}\",name=\"metric-{:02}\"}} ", rrd / 70, rrd % 70));
        Samples { feed: Feed::new(workload, 0, count), series: series.collect(), text: Vec::new() }
    }

    fn round(&mut self, round: u64) -> &[u8] {
        self.text.clear();
        let mut word = Vec::new();
        for (rrd, series) in self.series.iter().enumerate() {
            word.clear();
            self.feed.render_word(rrd, round, &mut word);
            // ` SECONDS:VALUE` becomes `VALUE MILLISECONDS`.
            let colon = word.iter().position(|byte| *byte == b':').unwrap_or(0);
            self.text.extend_from_slice(series.as_bytes());
            self.text.extend_from_slice(&word[colon + 1..]);
            self.text.extend_from_slice(&word[..colon]);
            self.text.extend_from_slice(b"000\n");
        }
        &self.text
    }
}

/// One POST on a connection that stays; an answer other than 204 is an error.
fn post(writer: &mut impl Write, reader: &mut BufReader<impl Read>, body: &[u8]) -> Outcome<()> {
    let head = format!(
        "POST /api/v1/import/prometheus HTTP/1.1\r\nHost: bench\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    writer.write_all(head.as_bytes())?;
    writer.write_all(body)?;
    let mut status = String::new();
    reader.read_line(&mut status)?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    if status.contains(" 204 ") { Ok(()) } else { Err(format!("VictoriaMetrics: {status}").into()) }
}
