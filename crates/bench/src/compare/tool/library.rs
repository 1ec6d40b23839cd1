//! Calls in process: a C program on librrd beside the example `direct` of crate `store`, by the same words.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{START, Side};
use crate::Outcome;
use crate::compare::Bench;
use crate::figures::{Goal, Runs, Unit};
use crate::report::Row;
use crate::workload::{Shape, Workload};

/// Files of a run.
const FILES: &str = "100";
/// Updates of each file in a run.
const ROUNDS: i64 = 20;

impl Side {
    /// CPU seconds of one of `calls` calls.
    fn measure(&self, verb: &str, below: &str, words: &[&str], calls: f64) -> Outcome<f64> {
        let directory = self.directory.join(below);
        fs::create_dir_all(&directory)?;
        let output = Command::new(&self.program).arg(verb).arg(directory).arg(FILES).args(words).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let Some((_, cpu)) = text.trim().split_once(' ').filter(|_| output.status.success()) else {
            return Err(format!("{:?}: {}", self.program, String::from_utf8_lossy(&output.stderr)).into());
        };
        Ok(cpu.parse::<f64>()? / calls)
    }
}

/// Measures create, update and fetch.
pub fn run(bench: &mut Bench, place: &Path) -> Outcome<()> {
    let example = bench.ours.direct();
    let peer = match &bench.before {
        Some(before) => before.direct(),
        None => build(place)?,
    };
    if let Some(missing) = [&example, &peer].into_iter().find(|program| !program.exists()) {
        let text =
            format!("In process nothing was measured: {missing:?} is not there (make bench builds it).");
        bench.report.omit("Command line", text);
        return Ok(());
    }
    let theirs = Side { program: peer, directory: place.join("library-theirs") };
    let ours = Side { program: example, directory: place.join("library-ours") };
    bench.say("Tool: in process");
    let (start, words) = (START.to_string(), Workload::usual(Shape::W1).create_words());
    let mut words: Vec<&str> = words.split(' ').collect();
    // The words begin with `-s STEP`.
    words.splice(..2, [start.as_str(), "10"]);
    let runs = bench.pick(15, 40);
    let pair = |verb: &str, words: &dyn Fn(i64) -> (String, Vec<String>), calls: f64| -> Outcome<_> {
        let (mut peer, mut our) = (Runs::default(), Runs::default());
        for run in 0..=runs {
            let (below, words) = words(run);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let (theirs, ours) =
                (theirs.measure(verb, &below, &words, calls)?, ours.measure(verb, &below, &words, calls)?);
            // The first run warms up.
            if run > 0 {
                peer.push(theirs);
                our.push(ours);
            }
        }
        Ok((peer, our))
    };
    let create = pair(
        "create",
        &|run| (format!("{run}"), words.iter().map(|word| word.to_string()).collect()),
        100.0,
    )?;
    // Updates and fetches go to files of one kind: librrd's.
    let librrd = Side { program: theirs.program.clone(), directory: ours.directory.clone() };
    theirs.measure("create", "same", &words, 1.0)?;
    librrd.measure("create", "same", &words, 1.0)?;
    let update = |run: i64| {
        let first = START + 10 + run * ROUNDS * 10;
        ("same".to_string(), vec![ROUNDS.to_string(), first.to_string(), "10".to_string()])
    };
    let update = pair("update", &update, 100.0 * ROUNDS as f64)?;
    let end = START + (runs + 1) * ROUNDS * 10;
    let range = vec!["5".to_string(), (end - 12_000).to_string(), (end - 1).to_string()];
    let fetch = pair("fetch", &|_| ("same".to_string(), range.clone()), 500.0)?;
    for (figure, (peer, ours), goal) in [
        ("Create of a W1 file in process, CPU", create, Goal::Part(3.0)),
        ("Update of one value in a W1 file in process, warm, CPU", update, Goal::Part(2.5)),
        ("Fetch of 1,200 rows of a W1 file in process, warm, CPU", fetch, Goal::None),
    ] {
        let figure = figure.to_string();
        bench.report.row(Row { figure, peer, ours, unit: Unit::Seconds, goal, aim: Goal::None });
    }
    bench.report.note(
        "Command line",
        format!(
            "In process: {runs} runs of {FILES} files each side in turn, user and system time of the process by the \
             call; create into a new directory each run, {ROUNDS} updates of each file a run, 5 fetches."
        ),
    );
    Ok(())
}

/// Compiles the peer.
fn build(place: &Path) -> Outcome<PathBuf> {
    let (source, program) = (place.join("direct.c"), place.join("direct"));
    fs::write(&source, include_str!("../../direct.c"))?;
    let output = Command::new("cc").arg("-O2").arg("-o").arg(&program).arg(&source).arg("-lrrd").output()?;
    if !output.status.success() {
        return Err(format!("cc: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(program)
}
