//! Random scenarios: lists of commands, given to both programs, one process each. A difference is reduced to
//! the shortest list that still shows it, printed in the form of a case.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use testkit::Share;
use testkit::random::seeds;

use crate::bytes::canonical;
use crate::harness::{Answer, Draw, Pair, Program};
use crate::listed::Call;
use crate::pair;
use crate::scenarios::shrink;
pub use crate::scenarios::{Command, words};

/// Scenarios of one normal run.
const SCENARIOS: u64 = 40;

/// The largest file that a command may write.
const FILE_BYTES_MAX: u64 = 20 << 20;

/// Whole life cycles of RRDs.
pub fn check() {
    run(crate::scenarios::scenario);
}

/// Command lines in any spelling.
pub fn check_spellings() {
    run(crate::spellings::scenario);
}

/// Any words after any verb.
pub fn check_anything() {
    run(crate::anything::scenario);
}

/// Counts comparisons with Debian's rrdtool, which crashes on some commands.
#[derive(Default)]
struct Compared {
    /// Commands that both answered equally.
    answers: Share,
    /// Dumps of the files that a scenario leaves.
    dumps: Share,
}

/// Runs scenarios, and requires that enough answers and dumps were compared.
fn run(scenario: impl Fn(&mut Draw) -> Vec<Command>) {
    if pair().theirs.is_none() {
        return;
    }
    limit_files();
    let mut differences = 0;
    let mut compared = Compared::default();
    for seed in seeds(SCENARIOS) {
        let scenario = scenario(&mut Draw::new(seed));
        if lasting_difference(&scenario, &mut compared).is_some() {
            let is_bad =
                |shorter: &[Command]| lasting_difference(shorter, &mut Compared::default()).is_some();
            let shortest = shrink(scenario, is_bad);
            let text = lasting_difference(&shortest, &mut Compared::default());
            println!("seed {seed}:\n{}", text.unwrap_or_default());
            differences += 1;
        }
    }
    assert_eq!(differences, 0, "{differences} scenarios were answered differently");
    compared.answers.require("answers", 80);
    compared.dumps.require("dumps", 15);
}

/// Ends programs that write larger files: Debian's rrdtool fills the disk when it resizes to billions of rows.
fn limit_files() {
    let limit = format!("--fsize={FILE_BYTES_MAX}");
    let done = std::process::Command::new("prlimit")
        .args(["--pid", &std::process::id().to_string(), &limit])
        .status();
    assert!(done.expect("prlimit of util-linux").success());
}

/// A difference that is not due to the random numbers by which Debian's rrdtool smooths the seasons of Holt-Winters archives: one that
/// uses them must be found each time.
fn lasting_difference(scenario: &[Command], compared: &mut Compared) -> Option<String> {
    let is_random = scenario.iter().flatten().any(|word| word.contains("HWPREDICT"));
    let mut found = None;
    for _ in 0..if is_random { 8 } else { 1 } {
        found = Some(difference(scenario, compared)?);
    }
    found
}

/// The commands up to the first difference, with both answers. After a difference that is listed, or a crash, the
/// scenario continues with our files on both sides.
fn difference(scenario: &[Command], compared: &mut Compared) -> Option<String> {
    let mut pair = pair();
    let mut theirs = pair.theirs.take()?;
    for directory in [&pair.ours.directory, &theirs.directory] {
        std::fs::create_dir(directory.join("sub")).expect("a directory");
        std::fs::write(directory.join("bad.rrd"), "x\n").expect("a file");
        std::fs::write(directory.join("empty.rrd"), "").expect("a file");
    }
    let mut text = String::new();
    for words in scenario {
        text.push_str(&format!("$ {}\n", quoted(words)));
        if words[0] == "set" {
            let (name, value) = words.get(1)?.split_once('=')?;
            for program in [&mut pair.ours, &mut theirs] {
                program.environment.push((name.to_string(), value.to_string()));
            }
            continue;
        }
        let directories = [&*pair.ours.directory, &*theirs.directory];
        let before = directories.map(files);
        let answer = |program: &Program| normal(&pair, program.run(words, b""));
        let ours = answer(&pair.ours);
        // Listed: Debian's rrdtool prints gigabytes.
        if ours.error.contains("more than 16777216 values") {
            continue;
        }
        let want = answer(&theirs);
        let undone = ["tune", "dump", "resize", "graph", "graphv"].contains(&words[0].as_str());
        // Without its daemon, a command is done by a file all the same, and then the daemon's error is reported.
        let is_done = |answer: &Answer| answer.error.starts_with("ERROR: Unable to connect to rrdcached");
        let failed = |answer: &Answer| answer.status == Some(1) && !is_done(answer);
        let undone = undone && failed(&want) && failed(&ours);
        if undone && let Some(changed) = undo(directories, &before) {
            return Some(format!("{text}theirs: {}\nours:   {}\n{changed}", show(&want), show(&ours)));
        }
        let after = directories.map(files);
        let differing = differing_files(&after);
        let is_equal = want.status.is_some() && ours == want && differing.is_empty();
        compared.answers.add(is_equal);
        if is_equal {
            continue;
        }
        let call = Call {
            words,
            ours: &ours,
            theirs: &want,
            program: pair.ours.path(),
            before: &before[0],
            after: &after,
        };
        let crashed = want.status.is_none() && matches!(ours.status, Some(0 | 1));
        if !crashed && !call.is_listed() {
            text.push_str(&format!("theirs: {}\nours:   {}\n{differing}", show(&want), show(&ours)));
            return Some(text);
        }
        copy(directories);
    }
    pair.theirs = Some(theirs);
    let (differing, dumps) = compare_files(&pair);
    compared.dumps.add_all(dumps);
    (!differing.is_empty()).then(|| text + &differing)
}

fn quoted(words: &[String]) -> String {
    let quoted = words.iter().map(|word| match word.is_empty() || word.contains([' ', '\t', '"']) {
        true => format!("'{word}'"),
        false => word.clone(),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// The content of all files, by path within the directory.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

/// The files of a directory and all below it.
pub fn files(directory: &Path) -> Files {
    let mut found = BTreeMap::new();
    let mut open = vec![directory.to_path_buf()];
    while let Some(next) = open.pop() {
        for path in std::fs::read_dir(next).expect("a directory").flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                open.push(path);
            } else if path.symlink_metadata().is_ok_and(|found| found.is_file()) {
                let name = path.strip_prefix(directory).expect("inside").to_path_buf();
                found.insert(name, std::fs::read(&path).expect("it is there"));
            }
        }
    }
    found
}

/// Makes the files of a directory these.
fn restore(directory: &Path, wanted: &Files) {
    let found = files(directory);
    for name in found.keys().filter(|name| !wanted.contains_key(*name)) {
        std::fs::remove_file(directory.join(name)).expect("it is there");
    }
    for (name, bytes) in wanted.iter().filter(|(name, bytes)| found.get(*name) != Some(*bytes)) {
        std::fs::write(directory.join(name), bytes).expect("a file");
    }
}

/// Copies our files to the other side.
fn copy([ours, theirs]: [&Path; 2]) {
    restore(theirs, &files(ours));
}

/// What our program changed although the command failed. Debian's rrdtool may leave half of a tune or of a
/// picture, remove an older output, or leave a broken copy (`docs/compatibility.md`); that is restored, so that the scenario can
/// continue.
fn undo([ours, theirs]: [&Path; 2], before: &[Files; 2]) -> Option<String> {
    restore(theirs, &before[1]);
    let after = files(ours);
    let changed =
        before[0].keys().chain(after.keys()).find(|name| before[0].get(*name) != after.get(*name))?;
    Some(format!("{} was changed by a command that failed\n", changed.display()))
}

/// Differences between files that must be equal: RRDs without what is drawn at random, and texts.
pub fn differing_files([ours, theirs]: &[Files; 2]) -> String {
    let mut text = String::new();
    for name in ours.keys().filter(|name| !theirs.contains_key(*name)) {
        text.push_str(&format!("{}: only ours\n", name.display()));
    }
    for (name, theirs) in theirs {
        let Some(ours) = ours.get(name) else {
            text.push_str(&format!("{}: only theirs\n", name.display()));
            continue;
        };
        let [ours, theirs] = [ours, theirs].map(|bytes| comparable(bytes));
        if ours != theirs {
            let at = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
            text.push_str(&format!("{}: byte {at:?} differs\n", name.display()));
        }
    }
    text
}

/// The bytes of a file that must be equal.
pub fn comparable(bytes: &[u8]) -> Vec<u8> {
    if let Some(canonical) = canonical(bytes) {
        return canonical;
    }
    let text = String::from_utf8_lossy(bytes);
    let image = ["\u{fffd}PNG", "%PDF", "%!PS"].iter().any(|magic| text.starts_with(magic));
    if image || text.contains("<svg") {
        return Vec::new();
    }
    // The number of season cycles starts at a row that Debian's rrdtool chooses at random.
    text.lines().filter(|line| !line.contains("<init_flag>")).flat_map(|line| line.bytes()).collect()
}

/// Differences between the remaining files, and how many were compared: those that Debian's rrdtool can read itself.
pub fn compare_files(pair: &Pair) -> (String, Share) {
    let dumps = pair.dumps();
    let mut text = String::new();
    let mut share = Share::default();
    for (name, want) in &dumps[1] {
        share.add(want.status == Some(0));
        if want.status != Some(0) {
            continue;
        }
        let ours = dumps[0].get(name);
        if ours != Some(want) {
            let ours = ours.map_or(String::from("missing"), |answer| first_difference(answer, want));
            text.push_str(&format!("{name}: {ours}\n"));
        }
    }
    for name in dumps[0].keys().filter(|name| !dumps[1].contains_key(*name)) {
        text.push_str(&format!("{name}: only ours\n"));
    }
    (text, share)
}

/// The first line that differs, from both texts.
pub fn first_difference(ours: &Answer, theirs: &Answer) -> String {
    let lines = ours.output.lines().zip(theirs.output.lines());
    match lines.enumerate().find(|(_, (ours, theirs))| ours != theirs) {
        Some((line, (ours, theirs))) => format!("line {line}: theirs {theirs:?}, ours {ours:?}"),
        None => format!("theirs {}, ours {}", show(theirs), show(ours)),
    }
}

/// An answer without what is meant to differ.
pub fn normal(pair: &Pair, answer: Answer) -> Answer {
    // The usage page has our own text, and libxml2's remarks are its own.
    let usage = answer.output.starts_with("RRDtool 1.");
    // An image is its own, and so is its size.
    let image = answer.output.find("image = BLOB_SIZE:").unwrap_or(answer.output.len());
    // Only `list` prints remarks without an error.
    let error = answer.error.lines().rfind(|line| line.starts_with("ERROR: "));
    let remark = if answer.status == Some(0) { answer.error.as_str() } else { "" };
    // Pango's are not an interface.
    let remark = if remark.trim_start().starts_with("(process:") { "" } else { remark };
    // For an empty directory, Debian's rrdtool prints the error text for success.
    let error = error.unwrap_or(if ["Success", "Erfolg"].contains(&remark) { "" } else { remark });
    Answer {
        output: if usage { "usage".to_string() } else { pair.normal(&answer.output[..image]) },
        error: pair.normal(error),
        status: answer.status,
    }
}

fn show(answer: &Answer) -> String {
    let mut output = answer.output.clone();
    output.truncate(output.floor_char_boundary(600));
    format!("{:?} {:?} {output:?}", answer.status, answer.error)
}
