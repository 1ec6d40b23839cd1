//! PromQL over the same rows in Roundel, Prometheus and VictoriaMetrics: many series at many times, and one series over a day, a month and a
//! year.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::Bench;
use super::neighbours::{Running, VICTORIA_ADDRESS, start_victoria, wait_for};
use crate::Outcome;
use crate::client::Client;
use crate::daemon::{Daemon, Kind};
use crate::figures::{Goal, Runs, Unit};
use crate::report::Row;

/// Series of the sums.
const SERIES: i64 = 1_000;
/// Seconds from row to row.
const STEP: i64 = 60;
/// Rows of a series of the sums: a day.
const ROWS: i64 = 1_440;
/// Rows of the long series: a year.
const LONG_ROWS: i64 = 366 * 1_440;
/// The last row.
const END: i64 = 1_700_006_400;
/// What the long series is called.
const LONG: &str = "long";

/// A server that answers Prometheus' API.
struct Server {
    name: &'static str,
    address: String,
    _running: Option<Running>,
}

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Outcome<()> {
    let Some(program) = bench.builds(Kind::RoundelBare).pop() else { return Ok(()) };
    let place = bench.place("promql");
    fs::create_dir_all(&place)?;
    let mut daemon = Daemon::new(&program, &place.join("roundel"))?;
    let address = daemon.set_http()?;
    daemon.start()?;
    bench.say("PromQL: fills roundel");
    fill(&mut Client::connect(&daemon.address())?)?;
    let text = place.join("rows");
    let mut peers = Vec::new();
    bench.say("PromQL: fills Prometheus");
    peers.push(prometheus(&place, &text)?);
    bench.say("PromQL: fills VictoriaMetrics");
    peers.push(victoria(&place, &text)?);
    fs::remove_file(&text)?;
    let ours = Server { name: "roundel", address, _running: None };
    let mut notes = Vec::new();
    for query in queries() {
        bench.say(&format!("PromQL: {}", query.figure));
        notes.push(measure(bench, &query, &ours, &peers)?);
    }
    let version = Command::new(prometheus_program()).arg("--version").output()?;
    let version = String::from_utf8_lossy(&version.stdout).lines().next().unwrap_or_default().to_string();
    bench.report.note(
        "PromQL",
        format!(
            "{SERIES} series with {ROWS} rows of {STEP} s, and one with {LONG_ROWS} and rows of 5 minutes and an hour beside; the peers have each finest \
             row as a point. The peer is the faster of {version} and Debian's VictoriaMetrics, in turn: {}.",
            notes.join("; ")
        ),
    );
    daemon.stop()?;
    drop(peers);
    fs::remove_dir_all(place).ok();
    Ok(())
}

/// One figure.
struct Query {
    figure: &'static str,
    text: String,
    days: i64,
    step: i64,
    goal: Goal,
    aim: Goal,
}

fn queries() -> Vec<Query> {
    let single = |figure, days: i64, step: i64, goal| {
        let text = format!("avg_over_time(rrd_v{{rrd=\"{LONG}\"}}[{step}s])");
        Query { figure, text, days, step, goal: Goal::Part(goal), aim: Goal::None }
    };
    let many = |figure, text: &str| Query {
        figure,
        text: text.to_string(),
        days: 1,
        step: STEP,
        goal: Goal::Part(1.0),
        aim: Goal::Part(3.0),
    };
    vec![
        many(
            "query_range, avg(rate) over 1,000 series x 1,440 steps",
            "avg(rate(rrd_v{rrd=~\"many/.*\"}[5m]))",
        ),
        many("query_range, sum over 1,000 series x 1,440 steps", "sum(rrd_v{rrd=~\"many/.*\"})"),
        single("query_range, one series, a day in steps of a minute", 1, STEP, 2.0),
        single("query_range, one series, a month in steps of half an hour", 30, 1_800, 5.0),
        single("query_range, one series, a year in steps of six hours", 365, 21_600, 20.0),
    ]
}

/// Asks all of them in turn; returns what each peer took.
fn measure(bench: &mut Bench, query: &Query, ours: &Server, peers: &[Server]) -> Outcome<String> {
    let target = format!(
        "/api/v1/query_range?query={}&start={}&end={END}&step={}&nocache=1",
        encoded(&query.text),
        END - query.days * 86_400 + STEP,
        query.step
    );
    let servers: Vec<&Server> = std::iter::once(ours).chain(peers).collect();
    let mut runs = vec![Runs::default(); servers.len()];
    let count = bench.pick(5, 15);
    for run in 0..=count {
        let mut points = Vec::new();
        for (server, runs) in servers.iter().zip(&mut runs) {
            let (seconds, body) = ask(&server.address, &target)?;
            points.push(body.matches("\"]").count());
            // The first brings what is read into memory.
            if run > 0 {
                runs.push(seconds);
            }
        }
        let (least, most) = (points.iter().min(), points.iter().max());
        if least.is_none_or(|least| *least == 0 || most.is_some_and(|most| most - least > 2)) {
            return Err(format!("{}: the answers have {points:?} points", query.text).into());
        }
    }
    let all: Vec<String> = servers
        .iter()
        .zip(&runs)
        .map(|(server, runs)| format!("{} {}", server.name, runs.text(Unit::Seconds)))
        .collect();
    let mut runs = runs.into_iter();
    let ours = runs.next().unwrap_or_default();
    let peer = runs.min_by(|a, b| a.median().total_cmp(&b.median())).unwrap_or_default();
    let (figure, unit) = (query.figure.to_string(), Unit::Seconds);
    bench.report.row(Row { figure, peer, ours, unit, goal: query.goal, aim: query.aim });
    Ok(format!("{}: {}", query.figure, all.join(", ")))
}

/// The value of a row: a counter that never falls.
fn value(series: i64, row: i64) -> f64 {
    (row * (10 + series % 7)) as f64 + (row * 7_919 % 10) as f64 / 4.0
}

/// Calls `each` with the name of each series and its rows.
fn each_series(mut each: impl FnMut(&str, i64, i64) -> Outcome<()>) -> Outcome<()> {
    for series in 0..SERIES {
        each(&format!("many/s{series:04}"), series, ROWS)?;
    }
    each(LONG, SERIES, LONG_ROWS)
}

fn fill(client: &mut Client) -> Outcome<()> {
    each_series(|name, series, rows| {
        let begin = END - rows * STEP;
        let mut line = format!(
            "CREATE {name}.rrd -b {begin} -s {STEP} DS:v:GAUGE:120:U:U RRA:AVERAGE:0.5:1:{rows} RRA:AVERAGE:0.5:5:{} RRA:AVERAGE:0.5:60:{}",
            rows / 5,
            rows / 60
        );
        let mut row = 0;
        loop {
            let answer = client.ask(&line)?;
            if answer.status < 0 {
                return Err(format!("{name}: {}", answer.message).into());
            }
            if row == rows {
                return Ok(());
            }
            line = format!("UPDATE {name}.rrd");
            let end = rows.min(row + 100);
            for row in row..end {
                write!(line, " {}:{}", begin + (row + 1) * STEP, value(series, row))?;
            }
            row = end;
        }
    })
}

/// Writes all rows as text, with times in units of `per_second`.
fn write_rows(path: &Path, per_second: i64, end: &str) -> Outcome<()> {
    let mut out = BufWriter::new(File::create(path)?);
    each_series(|name, series, rows| {
        for row in 0..rows {
            let time = (END - (rows - 1 - row) * STEP) * per_second;
            writeln!(out, "rrd_v{{rrd=\"{name}\",ds=\"v\"}} {} {time}", value(series, row))?;
        }
        Ok(())
    })?;
    out.write_all(end.as_bytes())?;
    Ok(out.flush()?)
}

/// What `make prometheus-peer` builds, or Debian's.
fn prometheus_program() -> String {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/prometheus/prometheus");
    if built.exists() { built.display().to_string() } else { "prometheus".to_string() }
}

fn prometheus(place: &Path, text: &Path) -> Outcome<Server> {
    write_rows(text, 1, "# EOF\n")?;
    let data = place.join("prometheus");
    let made = Command::new("promtool")
        .args(["tsdb", "create-blocks-from", "--max-block-duration=800h", "openmetrics"])
        .args([text, &data])
        .output()?;
    if !made.status.success() {
        return Err(format!("promtool: {}", String::from_utf8_lossy(&made.stderr)).into());
    }
    let config = place.join("prometheus.yml");
    fs::write(&config, "global: {}\n")?;
    let address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    let log = File::create(place.join("prometheus.log"))?;
    let child = Command::new(prometheus_program())
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", data.display()))
        .arg("--storage.tsdb.retention.time=100y")
        .arg(format!("--web.listen-address={address}"))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()?;
    let running = Some(Running(child));
    wait_for(&address)?;
    Ok(Server { name: "Prometheus", address, _running: running })
}

fn victoria(place: &Path, text: &Path) -> Outcome<Server> {
    write_rows(text, 1_000, "")?;
    let running =
        Some(start_victoria(place, &["-search.latencyOffset=0", "-search.maxPointsPerTimeseries=100000"])?);
    let length = fs::metadata(text)?.len();
    let mut stream = TcpStream::connect(VICTORIA_ADDRESS)?;
    write!(
        stream,
        "POST /api/v1/import/prometheus HTTP/1.0\r\nHost: bench\r\nContent-Length: {length}\r\n\r\n"
    )?;
    std::io::copy(&mut File::open(text)?, &mut stream)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if !answer.contains(" 204 ") {
        return Err(format!("VictoriaMetrics: {answer}").into());
    }
    // What was imported is found once it is flushed.
    ask(VICTORIA_ADDRESS, "/internal/force_flush")?;
    Ok(Server { name: "VictoriaMetrics", address: VICTORIA_ADDRESS.to_string(), _running: running })
}

/// Seconds until the whole answer is there, and its text.
pub fn ask(address: &str, target: &str) -> Outcome<(f64, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let start = Instant::now();
    // Answers to version 1.0 come in one piece.
    write!(stream, "GET {target} HTTP/1.0\r\nHost: bench\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let seconds = start.elapsed().as_secs_f64();
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.contains(" 200 ") => Ok((seconds, body.to_string())),
        _ => Err(format!("{target}: {}", answer.lines().next().unwrap_or_default()).into()),
    }
}

fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "%{byte:02X}");
        out
    })
}
