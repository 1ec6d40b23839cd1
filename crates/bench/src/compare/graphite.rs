//! Graphite's `/render` of a sum over many series: graphite-web over the files of our files layout, and ours in both layouts.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use super::Bench;
use super::neighbours::Running;
use super::promql::ask;
use crate::Outcome;
use crate::client::Client;
use crate::daemon::{Daemon, Kind};
use crate::figures::{Goal, Runs, Unit};
use crate::report::Row;

/// The script that asks graphite-web, which the tests use too.
const SCRIPT: &str = include_str!("../../../roundel/tests/peers/graphite/reference.py");
/// Series of the sum.
const SERIES: usize = 1_000;
/// Seconds from row to row.
const STEP: i64 = 60;
/// Rows of a series: a day.
const ROWS: i64 = 1_440;
/// The start of the first row.
const START: i64 = 1_700_000_040;

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Outcome<()> {
    let place = bench.place("graphite");
    fs::create_dir_all(&place)?;
    let mut ours = Vec::new();
    for (kind, layout) in [(Kind::RoundelFiles, "files"), (Kind::RoundelBare, "stripes")] {
        let Some(program) = bench.builds(kind).pop() else { return Ok(()) };
        let mut daemon = Daemon::new(&program, &place.join(layout))?;
        let address = daemon.set_http()?;
        daemon.start()?;
        bench.say(&format!("Graphite: fills the {layout} layout"));
        fill(&mut Client::connect(&daemon.address())?)?;
        ours.push((layout, address, daemon));
    }
    let base = ours[0].2.directory().join("rrd");
    let mut theirs = GraphiteWeb::start(&base, &place.join("graphite-web"))?;
    let (mut peer, mut runs) = (Runs::default(), vec![Runs::default(); ours.len()]);
    let target =
        format!("/render?format=json&target=sumSeries(a.*.x.v)&from={START}&until={}", START + ROWS * STEP);
    bench.say("Graphite: sums");
    for run in 0..=bench.pick(5, 15) {
        let (seconds, want) = theirs.ask(&target)?;
        for ((layout, address, _), runs) in ours.iter().zip(&mut runs) {
            let (seconds, answer) = ask(address, &target)?;
            if answer != want {
                return Err(format!("the {layout} layout answers otherwise than graphite-web").into());
            }
            // The first brings what is read into memory.
            if run > 0 {
                runs.push(seconds);
            }
        }
        if run > 0 {
            peer.push(seconds);
        }
    }
    for ((layout, ..), ours) in ours.iter().zip(runs) {
        bench.report.row(Row {
            figure: format!("/render, sumSeries over {SERIES} series x {ROWS} rows, {layout} layout"),
            peer: peer.clone(),
            ours,
            unit: Unit::Seconds,
            goal: Goal::Part(20.0),
            aim: Goal::Part(100.0),
        });
    }
    bench.report.note(
        "Graphite",
        format!(
            "{SERIES} RRDs with a data source and {ROWS} rows of {STEP} s, in turn. The peer is graphite-web 1.1.10 with python3-rrdtool over the \
             .rrd files of the files layout, in a process of its own that is asked without a socket; ours answers over HTTP. The answers are equal, \
             byte for byte."
        ),
    );
    for (_, _, daemon) in &mut ours {
        daemon.stop()?;
    }
    drop(theirs);
    fs::remove_dir_all(place).ok();
    Ok(())
}

fn fill(client: &mut Client) -> Outcome<()> {
    let mut say = |line: &str| {
        let answer = client.ask(line)?;
        match answer.status < 0 {
            true => Err(answer.message.into()),
            false => Outcome::Ok(()),
        }
    };
    for series in 0..SERIES as i64 {
        let name = format!("a/h{series}/x.rrd");
        say(&format!("CREATE {name} -s {STEP} -b {START} DS:v:GAUGE:120:U:U RRA:AVERAGE:0.5:1:1500"))?;
        let mut line = format!("UPDATE {name}");
        for row in 1..=ROWS {
            write!(line, " {}:{}", START + STEP * row, (row * series) % 977)?;
        }
        say(&line)?;
        // FLUSHALL only begins; graphite-web reads the files.
        say(&format!("FLUSH {name}"))?;
    }
    Ok(())
}

/// graphite-web in a process of its own, asked through its standard input.
struct GraphiteWeb {
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    _running: Running,
}

impl GraphiteWeb {
    /// Starts it over a directory of `.rrd` files; its own files are in `own`.
    fn start(base: &Path, own: &Path) -> Outcome<GraphiteWeb> {
        fs::create_dir_all(own)?;
        let script = own.join("reference.py");
        fs::write(&script, SCRIPT)?;
        // What `make peers` installs.
        let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/graphite-web/bin/python");
        let mut child = Command::new(&python)
            .args(["-W", "ignore"])
            .args([&*script, base, own])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(own.join("log"))?)
            .spawn()
            .map_err(|error| format!("cannot start graphite-web by {}: {error}", python.display()))?;
        let (requests, answers) = (child.stdin.take(), child.stdout.take());
        let _running = Running(child);
        let requests = requests.ok_or("graphite-web has no standard input")?;
        let answers = BufReader::new(answers.ok_or("graphite-web has no standard output")?);
        Ok(GraphiteWeb { requests, answers, _running })
    }

    /// The seconds that an answer took there, and its text.
    fn ask(&mut self, target: &str) -> Outcome<(f64, String)> {
        writeln!(self.requests, "{target}")?;
        let mut line = String::new();
        while !line.starts_with("= ") {
            line.clear();
            if self.answers.read_line(&mut line)? == 0 {
                return Err("graphite-web has ended: is it installed (make peers)?".into());
            }
        }
        let [_, "200", length, seconds] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(format!("graphite-web says {}", line.trim_end()).into());
        };
        let mut body = vec![0; length.parse()?];
        self.answers.read_exact(&mut body)?;
        Ok((seconds.parse()?, String::from_utf8(body)?))
    }
}
