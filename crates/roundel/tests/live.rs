//! Random scenarios (those of `crates/cli/tests/oracle`) on RRDs in a live daemon's store, found only through
//! their placeholders, compared with the same on files with Debian's rrdtool: output, errors and final dumps
//! must be equal. Also reads with the daemon given as an option. `ROUNDEL_SEED` and `ROUNDEL_SEEDS` choose
//! the scenarios.

#![allow(clippy::unwrap_used, reason = "tests")]
// Each test program uses a part of the shared modules.
#![allow(dead_code)]

#[path = "../../cli/tests/oracle/harness.rs"]
mod harness;
#[path = "../../cli/tests/oracle/locales.rs"]
mod locales;
#[path = "../../cli/tests/oracle/scenarios.rs"]
mod scenarios;

use std::cell::Cell;
use std::path::Path;

use harness::{Answer, Draw, Program};
use scenarios::{Command, shrink};
use testkit::{Daemon, Kind, Share};

/// Scenarios of an ordinary run.
const SCENARIOS: u64 = 80;

/// The verbs that give the same answer with a daemon as without; `last`, for example, does not.
const READING: [&str; 5] = ["fetch", "xport", "info", "lastupdate", "dump"];

struct Live {
    /// Whether reading verbs name the daemon; errors then have its words.
    named: bool,
    daemon: Daemon,
    /// Each run has its own directory.
    runs: Cell<u64>,
    /// Commands of scenarios that were compared: not those on which Debian's rrdtool crashes, nor any after them.
    answers: Cell<Share>,
    /// The RRDs that scenarios left in both places, by their dumps: not those that Debian's rrdtool cannot dump.
    dumps: Cell<Share>,
    directory: tempfile::TempDir,
}

impl Live {
    fn start(named: bool) -> Self {
        let directory = tempfile::Builder::new().prefix("live-").tempdir().unwrap();
        let mut daemon = testkit::daemon!(Kind::Stripes, &directory.path().join("daemon"));
        daemon.start();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_rrdtool"), directory.path().join("rrdtool")).unwrap();
        Live {
            named,
            daemon,
            runs: Cell::new(0),
            answers: Cell::default(),
            dumps: Cell::default(),
            directory,
        }
    }

    /// Ours in the tree of the store, and Debian's in another directory.
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
        for (place, words) in scenario.iter().enumerate() {
            text.push_str(&format!("$ {}\n", words.join(" ")));
            if words[0] == "set" {
                let (name, value) = words.get(1)?.split_once('=')?;
                for program in &mut programs {
                    program.environment.push((name.to_string(), value.to_string()));
                }
                continue;
            }
            let [ours, want] = self.answers(&programs, words);
            // Commands on which Debian's rrdtool crashes are not compared, nor is a command that it refuses
            // after executing part of it.
            if want.status.is_none() || is_half_done(words, &want) || is_ruin(words, &ours) {
                scenario[place..].iter().for_each(|_| count(&self.answers, false));
                return None;
            }
            count(&self.answers, true);
            if ours != want {
                text.push_str(&format!("theirs: {want:?}\nours:   {ours:?}\n"));
                return Some(text);
            }
        }
        let differing = self.different_files(&programs);
        (!differing.is_empty()).then(|| text + &differing)
    }

    /// Runs a command with both programs.
    fn answers(&self, programs: &[Program; 2], words: &[String]) -> [Answer; 2] {
        let mut asking = programs[0].clone();
        let named = self.named && READING.contains(&&*words[0]);
        if named {
            let address = format!("unix:{}", self.daemon.socket().display());
            asking.environment.push(("RRDCACHED_ADDRESS".to_string(), address));
        }
        let mut both = [&asking, &programs[1]].map(|program| normal(program, program.run(words, b"")));
        if named {
            both.iter_mut().for_each(as_named);
        }
        if words[0] == "dump" {
            both = both.map(counted_out);
        }
        if words[0] == "restore" && both[1].error.starts_with("ERROR: error reading/parsing XML") {
            // libxml2's text for input that is not XML.
            both[1].error = both[0].error.clone();
        }
        both
    }

    /// The differences between the dumps of all RRDs.
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
            count(&self.dumps, want.status == Some(0));
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

/// Counts a comparison that was tried.
fn count(share: &Cell<Share>, is_made: bool) {
    let mut counted = share.get();
    counted.add(is_made);
    share.set(counted);
}

/// Removes what Debian's rrdtool chooses at random, or derives from that.
fn counted_out(mut answer: Answer) -> Answer {
    let drawn = |line: &&str| !line.contains("<init_flag>") && !line.contains("<seasonal_smooth_idx>");
    answer.output = answer.output.split_inclusive('\n').filter(drawn).collect();
    // The last point of an archive that was filled from others (`docs/compatibility.md`).
    for infinite in ["<primary_value>inf<", "<primary_value>-inf<"] {
        answer.output = answer.output.replace(infinite, "<primary_value>NaN<");
    }
    answer
}

/// Debian's rrdtool keeps what it has done when it finds an invalid argument: readings of sources before an
/// invalid value, settings of a tune, an output file that it then does not fill. Ours does not
/// (`docs/compatibility.md`).
fn is_half_done(words: &[String], want: &Answer) -> bool {
    // Errors before anything is done. A dump removes its older output before them.
    let early = ["ERROR: opening '", "ERROR: mmaping file '", "ERROR: invalid option -- "];
    let is_early = early.iter().any(|text| want.error.starts_with(text));
    let refused = want.status == Some(1);
    match words[0].as_str() {
        "update" | "updatev" => refused && !is_early && !want.error.contains("illegal attempt to update"),
        "tune" => refused && !is_early,
        "dump" | "resize" => refused,
        _ => false,
    }
}

/// Without a source or an archive, or without one that a forecast or an expression needs, Debian's rrdtool
/// leaves a file on which it crashes later.
fn is_ruin(words: &[String], ours: &Answer) -> bool {
    let texts = ["ERROR: you must define at least one", "ERROR: cannot delete "];
    words[0] == "tune" && texts.iter().any(|text| ours.error.starts_with(text))
}

fn normal(program: &Program, answer: Answer) -> Answer {
    // The usage page has our own text.
    let usage = answer.output.starts_with("RRDtool 1.");
    // Only `list` prints remarks without an error; for an empty directory, Debian's prints the error text for
    // success.
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

/// Removes what legitimately differs with a daemon: its errors, and its path.
fn as_named(answer: &mut Answer) {
    answer.error.clear();
    let own = |line: &&str| !line.starts_with("filename = ");
    answer.output = answer.output.split_inclusive('\n').filter(own).collect();
}

/// A difference that is not due to the random numbers by which Debian's rrdtool smooths seasons.
fn lasting_difference(live: &Live, scenario: &[Command]) -> Option<String> {
    let is_random = scenario.iter().flatten().any(|word| word.starts_with("RRA:HWPREDICT"));
    let mut found = None;
    for _ in 0..if is_random { 8 } else { 1 } {
        found = Some(live.difference(scenario)?);
    }
    found
}

#[test]
fn an_rrd_in_a_store_behaves_as_a_file() {
    check(false);
}

#[test]
fn an_rrd_of_a_named_daemon_behaves_as_a_file() {
    check(true);
}

fn check(named: bool) {
    if testkit::peer::debian("rrdtool", harness::THEIRS).is_none() {
        return;
    }
    let live = Live::start(named);
    let mut differences = 0;
    let seeds = testkit::random::seeds(SCENARIOS);
    // Debian's rrdtool crashes in most scenarios before their end, so a few may leave no dump.
    let has_dumps = seeds.end - seeds.start >= SCENARIOS / 2;
    for seed in seeds {
        let scenario = scenarios::scenario(&mut Draw::new(seed));
        if lasting_difference(&live, &scenario).is_some() {
            let shortest = shrink(scenario, |shorter| lasting_difference(&live, shorter).is_some());
            println!("seed {seed}:\n{}", lasting_difference(&live, &shortest).unwrap_or_default());
            differences += 1;
        }
    }
    assert_eq!(differences, 0, "{differences} scenarios were answered differently");
    live.answers.get().require("answers", 25);
    if has_dumps {
        live.dumps.get().require("dumps", 10);
    }
}
