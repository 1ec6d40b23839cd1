//! The files layout under `kill -9`: a daemon is killed at random moments while it accepts and writes
//! updates.
//!
//! Updates follow a fixed sequence. After each kill, every file must contain a prefix of it that is no
//! shorter than what was answered, and must equal rrdtool's file for that prefix byte for byte.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::io::{BufRead, Write};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

use roundel_store::engine::{Engine, UpdateBatch};
use roundel_store::files::{FilesEngine, Options};
use roundel_store::name::RrdName;
use testkit::{RrdTool, Running};

const START: i64 = 1_700_000_000;
const RRDS: usize = 5;
const DIRECTORY: &str = "ROUNDEL_KILL_DIRECTORY";
const FROM: &str = "ROUNDEL_KILL_FROM";

/// Update number `number` (from 1) of every RRD.
fn word(number: i64) -> String {
    let value = number.wrapping_mul(2_654_435_761) % 100_000;
    format!("{}:{}.{:02}", START + 7 * number, value / 100, value % 100)
}

fn file(rrd: usize) -> String {
    format!("r{rrd}.rrd")
}

fn open(directory: &Path, write_interval: Duration) -> FilesEngine {
    let mut options = Options::new(directory.join("tree"), directory.join("journal"));
    options.write_interval = write_interval;
    FilesEngine::open(options).unwrap()
}

/// The number of the last update in a file.
fn last(engine: &FilesEngine, rrd: usize) -> i64 {
    let snapshot = engine.snapshot(&RrdName::new(file(rrd).as_bytes()).unwrap()).unwrap();
    let shape = rrd::live::HeadShape::of(&snapshot.definition);
    (shape.split(&snapshot.live.words).last_update.whole - START) / 7
}

/// Not a test: the process that gets killed. It prints which updates were answered.
#[test]
fn child() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let mut number: i64 = std::env::var(FROM).unwrap().parse().unwrap();
    // Every update makes its file due, so that kills also hit writes of files.
    let engine = open(Path::new(&directory), Duration::ZERO);
    let mut output = std::io::stdout();
    loop {
        number += 1;
        let mut batch = UpdateBatch::default();
        for rrd in 0..RRDS {
            batch.push(file(rrd).as_bytes(), word(number).as_bytes());
        }
        let (sender, receiver) = channel();
        engine.update(batch, Box::new(move |failures| sender.send(failures).unwrap()));
        drop(receiver.recv().unwrap());
        writeln!(output, "answered {number}").unwrap();
        output.flush().unwrap();
    }
}

/// Runs the child until it has answered something and `pause` has passed, then kills it. Returns the number
/// of the last answer.
fn live_and_die(directory: &Path, from: i64, pause: Duration) -> i64 {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["child", "--exact", "--nocapture"]).env(DIRECTORY, directory).env(FROM, from.to_string());
    let (child, _input, output) = Running::piped(&mut command);
    let mut lines = output.lines().map_while(Result::ok);
    // The test harness prints before the first answer.
    let mut answers = lines.by_ref().filter_map(|line| line.rsplit_once("answered ")?.1.parse().ok());
    let first: i64 = answers.next().expect("the child answers");
    std::thread::sleep(pause);
    child.kill();
    answers.last().unwrap_or(first)
}

#[test]
fn answered_updates_survive_kills_at_random_moments() {
    let mut tool = RrdTool::start().unwrap();
    let base = tempfile::tempdir().unwrap();
    std::fs::create_dir(base.path().join("tree")).unwrap();
    let words = "-s 10 DS:v:GAUGE:20:U:U RRA:AVERAGE:0.5:1:50 RRA:MAX:0.5:3:40 RRA:HWPREDICT:60:0.1:0.01:10";
    for rrd in 0..RRDS {
        tool.run(&format!("create {} -b {START} {words}", file(rrd))).unwrap();
        std::fs::copy(tool.path(&file(rrd)), base.path().join("tree").join(file(rrd))).unwrap();
    }
    let (mut answered, mut in_oracle) = (0, [0; RRDS]);
    let mut random = 12_345u64;
    for life in 0..20 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        answered = live_and_die(base.path(), answered, Duration::from_micros((random >> 33) % 40_000));
        // Reading must not change anything: the next run starts where the kill left it.
        let engine = open(base.path(), Duration::from_secs(300));
        let reached: Vec<i64> = (0..RRDS).map(|rrd| last(&engine, rrd)).collect();
        drop(engine);
        for &reached in &reached {
            assert!(reached >= answered, "life {life}: {answered} was answered, {reached} is there");
        }
        // RRDs that got further refuse updates they already have: each contains a prefix.
        answered = reached.into_iter().min().unwrap_or(answered);
        if life % 5 == 4 {
            let engine = open(base.path(), Duration::from_secs(300));
            engine.flush(None).unwrap();
            for (rrd, done) in in_oracle.iter_mut().enumerate() {
                let reached = last(&engine, rrd);
                for number in *done + 1..=reached {
                    tool.run(&format!("update {} {}", file(rrd), word(number))).unwrap();
                }
                *done = reached;
                let ours = std::fs::read(base.path().join("tree").join(file(rrd))).unwrap();
                let theirs = std::fs::read(tool.path(&file(rrd))).unwrap();
                assert!(ours == theirs, "life {life}: {} differs", file(rrd));
            }
        }
    }
}
