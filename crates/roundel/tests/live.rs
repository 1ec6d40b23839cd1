//! Random lives of RRDs (those of `crates/cli/tests/oracle`) in the store of a live daemon, found by their
//! placeholders alone, beside the same of files with Debian's rrdtool: the same output, the same errors, the same
//! dumps at the end; and what is read with the daemon named. `ROUNDEL_SEED` and `ROUNDEL_ROUNDS` choose the scenarios.

#![allow(clippy::unwrap_used, reason = "tests")]
// Of the modules that are shared each test program uses a part.
#![allow(dead_code)]

#[path = "../../cli/tests/oracle/harness.rs"]
mod harness;
#[path = "../../cli/tests/oracle/locales.rs"]
mod locales;
#[path = "../../cli/tests/oracle/scenarios.rs"]
mod scenarios;
mod wire;

use std::cell::Cell;
use std::path::Path;

use harness::{Answer, Draw, Program};
use scenarios::{Command, shrink};
use wire::{Daemon, Kind};

/// Scenarios of an ordinary run.
const ROUNDS: u64 = 20;

/// The verbs that answer alike with a daemon and without; `last`, for one, does not.
const READING: [&str; 5] = ["fetch", "xport", "info", "lastupdate", "dump"];

struct Live {
    /// Whether reading verbs name the daemon; then errors are in its words.
    named: bool,
    directory: tempfile::TempDir,
    daemon: Daemon,
    /// Each run has a directory of its own.
    runs: Cell<u64>,
}

impl Live {
    fn start(named: bool) -> Self {
        let directory = tempfile::Builder::new().prefix("live-").tempdir().unwrap();
        let mut daemon = Daemon::new(Kind::Stripes, &directory.path().join("daemon"));
        daemon.start();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_rrdtool"), directory.path().join("rrdtool")).unwrap();
        Live { named, directory, daemon, runs: Cell::new(0) }
    }

    /// Ours in the tree of the store, and Debian's beside it.
    fn programs(&self) -> [Program; 2] {
        let run = self.runs.replace(self.runs.get() + 1);
        let base = self.daemon.base().join(format!("run{run}"));
        let beside = self.directory.path().join(format!("beside{run}"));
        for directory in [&base, &beside] {
            std::fs::create_dir_all(directory.join("sub")).unwrap();
            std::fs::write(directory.join("bad.rrd"), "x\n").unwrap();
            std::fs::write(directory.join("empty.rrd"), "").unwrap();
        }
        let ours = Program::new(&self.directory.path().join("rrdtool"), &base);
        [ours, Program::new(Path::new(harness::THEIRS), &beside)]
    }

    /// The commands up to the first difference, with both answers.
    fn difference(&self, scenario: &[Command]) -> Option<String> {
        let mut programs = self.programs();
        let mut text = String::new();
        for words in scenario {
            text.push_str(&format!("$ {}\n", words.join(" ")));
            if words[0] == "set" {
                let (name, value) = words.get(1)?.split_once('=')?;
                for program in &mut programs {
                    program.environment.push((name.to_string(), value.to_string()));
                }
                continue;
            }
            let [ours, want] = self.answers(&programs, words);
            // What Debian's dies of is no measure; nor is what it has done of a command that it then refuses.
            if want.status.is_none() || is_half_done(words, &want) || is_ruin(words, &ours) {
                return None;
            }
            if ours != want {
                text.push_str(&format!("theirs: {want:?}\nours:   {ours:?}\n"));
                return Some(text);
            }
        }
        let differing = self.different_files(&programs);
        (!differing.is_empty()).then(|| text + &differing)
    }

    /// What both answer, until it is the same: for what counts up to now the clock may have gone on.
    fn answers(&self, programs: &[Program; 2], words: &[String]) -> [Answer; 2] {
        let mut asking = programs[0].clone();
        let named = self.named && READING.contains(&&*words[0]);
        if named {
            let address = format!("unix:{}", self.daemon.socket().display());
            asking.environment.push(("RRDCACHED_ADDRESS".to_string(), address));
        }
        let answers = || [&asking, &programs[1]].map(|program| normal(program, program.run(words, b"")));
        let mut both = answers();
        for _ in 0..5 {
            if both[0] == both[1] || words[0] != "fetch" {
                break;
            }
            both = answers();
        }
        if named {
            both.iter_mut().for_each(as_named);
        }
        if words[0] == "dump" {
            both = both.map(counted_out);
        }
        if words[0] == "restore" && both[1].error.starts_with("ERROR: error reading/parsing XML") {
            // What libxml2 says about what is no XML.
            both[1].error = both[0].error.clone();
        }
        both
    }

    /// What differs in the dumps of all RRDs.
    fn different_files(&self, [ours, theirs]: &[Program; 2]) -> String {
        let names = |program: &Program| {
            let mut found = Vec::new();
            for directory in ["", "sub/"] {
                for entry in std::fs::read_dir(program.directory.join(directory)).unwrap().flatten() {
                    let name = entry.file_name().into_string().unwrap();
                    if name.ends_with(".rrd") {
                        found.push(format!("{directory}{name}"));
                    }
                }
            }
            found.sort();
            found
        };
        let all = names(theirs);
        if all != names(ours) {
            return format!("theirs {all:?}, ours {:?}\n", names(ours));
        }
        let plain = |program: &Program| Program::new(program.path(), &program.directory);
        let mut text = String::new();
        for name in all {
            let dump = |program: &Program| counted_out(plain(program).run(&["dump", &name], b""));
            let (ours, want) = (dump(ours), dump(theirs));
            if want.status == Some(0) && ours.output != want.output {
                let mut lines = ours.output.lines().zip(want.output.lines());
                text.push_str(&format!(
                    "{name}: {:?} {ours:?}\n",
                    lines.find(|(ours, theirs)| ours != theirs)
                ));
            }
        }
        text
    }
}

/// Dumps differ in what Debian's draws at random or counts from there.
fn counted_out(mut answer: Answer) -> Answer {
    let drawn = |line: &&str| !line.contains("<init_flag>") && !line.contains("<seasonal_smooth_idx>");
    answer.output = answer.output.split_inclusive('\n').filter(drawn).collect();
    // The last point of an archive that was filled from others (`docs/compatibility.md`).
    for infinite in ["<primary_value>inf<", "<primary_value>-inf<"] {
        answer.output = answer.output.replace(infinite, "<primary_value>NaN<");
    }
    answer
}

/// Debian's keeps what it has done by the time it finds a bad word: readings of the sources before a bad value, the
/// settings of a tune, an output that it then does not fill. Ours does not (`docs/compatibility.md`).
fn is_half_done(words: &[String], want: &Answer) -> bool {
    let refused = want.status == Some(1);
    match words[0].as_str() {
        "update" | "updatev" => refused && !want.error.contains("illegal attempt to update"),
        "tune" | "dump" | "resize" => refused,
        _ => false,
    }
}

/// Without a source or an archive, or one that a forecast or an expression needs, Debian's leaves a file that it crashes
/// on later.
fn is_ruin(words: &[String], ours: &Answer) -> bool {
    let texts = ["ERROR: you must define at least one", "ERROR: cannot delete "];
    words[0] == "tune" && texts.iter().any(|text| ours.error.starts_with(text))
}

fn normal(program: &Program, answer: Answer) -> Answer {
    // The usage page is in our words.
    let usage = answer.output.starts_with("RRDtool 1.");
    // A remark without an error is list's; of an empty directory Debian's says what went wrong: nothing.
    let error = answer.error.lines().rfind(|line| line.starts_with("ERROR: "));
    let remark = if answer.status == Some(0) { answer.error.as_str() } else { "" };
    let error = error.unwrap_or(if ["Success", "Erfolg"].contains(&remark) { "" } else { remark });
    let directory = program.directory.to_string_lossy().into_owned();
    let mut output = String::new();
    for line in answer.output.split_inclusive('\n') {
        match line.split_once(".cur_row = ") {
            Some((archive, _)) => output.push_str(&format!("{archive}.cur_row\n")),
            None => output.push_str(line),
        }
    }
    Answer {
        output: if usage { "usage".to_string() } else { output.replace(&directory, "/X") },
        error: error.replace(&directory, "/X"),
        status: answer.status,
    }
}

/// Without what a daemon says otherwise: its errors, and the path that it knows.
fn as_named(answer: &mut Answer) {
    answer.error.clear();
    let own = |line: &&str| !line.starts_with("filename = ");
    answer.output = answer.output.split_inclusive('\n').filter(own).collect();
}

/// A difference that is there each time: Debian's draws at random when seasons are smoothed.
fn lasting_difference(live: &Live, scenario: &[Command]) -> Option<String> {
    let random = scenario.iter().flatten().any(|word| word.starts_with("RRA:HWPREDICT"));
    let mut found = None;
    for _ in 0..if random { 8 } else { 2 } {
        found = Some(live.difference(scenario)?);
    }
    found
}

#[test]
fn a_life_in_a_store_is_that_of_a_file() {
    check(false);
}

#[test]
fn what_a_daemon_is_asked_by_name_is_that_of_a_file() {
    check(true);
}

fn check(named: bool) {
    if !Path::new(harness::THEIRS).exists() {
        println!("(Debian's rrdtool is not installed)");
        return;
    }
    let number =
        |name: &str, usual| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual);
    let live = Live::start(named);
    let first = number("ROUNDEL_SEED", 1);
    let mut differences = 0;
    for seed in first..first + number("ROUNDEL_ROUNDS", ROUNDS) {
        let scenario = scenarios::scenario(&mut Draw::new(seed));
        if lasting_difference(&live, &scenario).is_some() {
            let shortest = shrink(scenario, |shorter| lasting_difference(&live, shorter).is_some());
            println!("seed {seed}:\n{}", live.difference(&shortest).unwrap_or_default());
            differences += 1;
        }
    }
    assert_eq!(differences, 0, "{differences} scenarios were answered differently");
}
