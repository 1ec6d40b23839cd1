//! Random scenarios: lists of commands, given to both programs, one process each. A difference is reduced to
//! the shortest list that still shows it, printed in the form of a case.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use oracle::random::seeds;

use crate::bytes::canonical;
use crate::harness::{Answer, Draw, Pair};
use crate::pair;
use crate::scenarios::shrink;
pub use crate::scenarios::{Command, words};

/// Scenarios of one normal run.
const SCENARIOS: u64 = 40;

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

fn run(scenario: impl Fn(&mut Draw) -> Vec<Command>) {
    if pair().theirs.is_none() {
        return;
    }
    let mut differences = 0;
    for seed in seeds(SCENARIOS) {
        let scenario = scenario(&mut Draw::new(seed));
        if lasting_difference(&scenario).is_some() {
            let shortest = shrink(scenario, |shorter| lasting_difference(shorter).is_some());
            let text = difference(&shortest).unwrap_or_default();
            println!("seed {seed}:\n{text}");
            differences += 1;
        }
    }
    assert_eq!(differences, 0, "{differences} scenarios were answered differently");
}

/// A difference that occurs every time. Times relative to now may fall into another second for the second
/// program, and Debian's rrdtool uses random numbers to smooth the seasons of Holt-Winters archives.
fn lasting_difference(scenario: &[Command]) -> Option<String> {
    let random = scenario.iter().flatten().any(|word| word.starts_with("RRA:HWPREDICT"));
    let mut found = None;
    for _ in 0..if random { 8 } else { 2 } {
        found = Some(difference(scenario)?);
    }
    found
}

/// The commands up to the first difference, with both answers.
fn difference(scenario: &[Command]) -> Option<String> {
    let mut pair = pair();
    let mut theirs = pair.theirs.take()?;
    for directory in [&pair.ours.directory, &theirs.directory] {
        std::fs::create_dir(directory.join("sub")).expect("a directory");
        std::fs::write(directory.join("bad.rrd"), "x\n").expect("a file");
        std::fs::write(directory.join("empty.rrd"), "").expect("a file");
    }
    let mut text = String::new();
    let mut tries = 5;
    for words in scenario {
        let quoted: Vec<String> = words
            .iter()
            .map(
                |word| if word.is_empty() || word.contains(' ') { format!("'{word}'") } else { word.clone() },
            )
            .collect();
        text.push_str(&format!("$ {}\n", quoted.join(" ")));
        if words[0] == "set" {
            let (name, value) = words.get(1)?.split_once('=')?;
            for program in [&mut pair.ours, &mut theirs] {
                program.environment.push((name.to_string(), value.to_string()));
            }
            continue;
        }
        let directories = [&*pair.ours.directory, &*theirs.directory];
        let before = matches!(words[0].as_str(), "tune" | "dump" | "resize").then(|| directories.map(files));
        let answer = |program: &crate::harness::Program| normal(&pair, program.run(words, b""));
        let (mut ours, mut want) = (answer(&pair.ours), answer(&theirs));
        if words[0] == "restore" && want.error.starts_with("ERROR: error reading/parsing XML") {
            // libxml2's text for input that is not XML: ours only has to refuse it too.
            want.error.clone_from(&ours.error);
        }
        // A fetch up to now: the clock may have advanced between the two.
        while ours != want && tries > 0 && words[0] == "fetch" {
            tries -= 1;
            (ours, want) = (answer(&pair.ours), answer(&theirs));
        }
        // Commands on which Debian's rrdtool crashes are not compared.
        want.status?;
        // Without a source or an archive, or one that another needs, Debian's rrdtool leaves a file on which
        // it crashes later.
        let ruins = ["ERROR: you must define at least one", "ERROR: cannot delete "];
        if words[0] == "tune" && ruins.iter().any(|text| ours.error.starts_with(text)) {
            return None;
        }
        if is_listed([&ours, &want], words, directories[0]) {
            return None;
        }
        if ours != want {
            text.push_str(&format!("theirs: {}\nours:   {}\n", show(&want), show(&ours)));
            return Some(text);
        }
        if let Some(before) = before.filter(|_| want.status == Some(1))
            && let Some(damage) = undo(directories, &before)
        {
            return Some(format!("{text}{damage}"));
        }
    }
    pair.theirs = Some(theirs);
    let differing = compare_files(&pair);
    (!differing.is_empty()).then(|| text + &differing)
}

/// Whether an answer differs, or a file, for a reason in `docs/compatibility.md`.
fn is_listed([ours, theirs]: [&Answer; 2], words: &[String], directory: &Path) -> bool {
    let refused = [
        "step size: out of range; use one of",
        "malloc data_proc",
        "failed to resolve address",
        "which it is not; correct its last argument",
        "cannot set heartbeat, minimum or maximum of the COMPUTE data source",
    ];
    let done = theirs.status == Some(0);
    let option = |short: &str| words.iter().skip_while(|word| *word != short).nth(1);
    let listed = match words[0].as_str() {
        // A file made after a template of version 0004 or 0005.
        "create" => {
            let template = option("-t").and_then(|name| std::fs::read(directory.join(name)).ok());
            template.is_some_and(|bytes| bytes.starts_with(b"RRD\0") && !bytes[4..].starts_with(b"0003"))
        }
        // The library tells its caller when a dump cannot be written.
        "dump" => done && ours.error.starts_with("ERROR: opening '"),
        // Without an archive that is not the last, rows are mixed up.
        "tune" if words.iter().any(|word| word.starts_with("DELRRA:")) => done,
        // What a COMPUTE source was makes numbers.
        "tune" => done && option("-d").is_some_and(|source| source.starts_with("c:")),
        // Limits of COMPUTE sources.
        "restore" => {
            done && words.iter().any(|word| word == "-r")
                && std::fs::read_to_string(directory.join("out.xml"))
                    .is_ok_and(|text| text.contains("COMPUTE"))
        }
        "graph" => option("-h").is_some() && ours.error.ends_with("height below 10 pixels\n"),
        _ => false,
    };
    let itself = |word: &String| {
        let (name, expression) = word.strip_prefix("CDEF:").and_then(|word| word.split_once('='))?;
        Some(name.is_empty() || expression.split(',').any(|token| token == name))
    };
    listed
        || refused.iter().any(|text| ours.error.contains(text))
        // An address with a slash.
        || theirs.error.contains("failed to resolve address")
        || words.iter().filter_map(itself).any(|itself| itself)
}

/// The content of all files, by path within the directory.
type Files = BTreeMap<PathBuf, Vec<u8>>;

fn files(directory: &Path) -> Files {
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

/// What our program changed although the command failed. Debian's rrdtool may leave half of a tune, remove an
/// older output, or leave a broken copy (`docs/compatibility.md`); that is restored, so that the scenario can
/// continue.
fn undo([ours, theirs]: [&Path; 2], before: &[Files; 2]) -> Option<String> {
    let after = files(theirs);
    for name in after.keys().filter(|name| !before[1].contains_key(*name)) {
        std::fs::remove_file(theirs.join(name)).expect("it is there");
    }
    for (name, bytes) in before[1].iter().filter(|(name, bytes)| after.get(*name) != Some(*bytes)) {
        std::fs::write(theirs.join(name), bytes).expect("a file");
    }
    let after = files(ours);
    let changed =
        before[0].keys().chain(after.keys()).find(|name| before[0].get(*name) != after.get(*name))?;
    Some(format!("{} was changed by a command that failed\n", changed.display()))
}

/// Differences between the remaining files. A file that Debian's rrdtool cannot read itself is not compared.
pub fn compare_files(pair: &Pair) -> String {
    let dumps = pair.dumps();
    let mut text = String::new();
    for (name, want) in dumps[1].iter().filter(|(_, want)| want.status == Some(0)) {
        let ours = dumps[0].get(name);
        if ours != Some(want) {
            let ours = ours.map_or(String::from("missing"), |answer| first_difference(answer, want));
            text.push_str(&format!("{name}: {ours}\n"));
        }
    }
    let directories = pair.directories();
    for name in dumps[0].keys().filter(|name| dumps[1].contains_key(*name)) {
        let [ours, theirs] =
            [0, 1].map(|side| std::fs::read(directories[side].join(name)).unwrap_or_default());
        let (Some(ours), Some(theirs)) = (canonical(&ours), canonical(&theirs)) else { continue };
        if ours != theirs {
            let at = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
            text.push_str(&format!("{name}: byte {at:?} differs\n"));
        }
    }
    for name in dumps[0].keys().filter(|name| !dumps[1].contains_key(*name)) {
        text.push_str(&format!("{name}: only ours\n"));
    }
    text
}

/// The first line that differs, from both texts.
pub fn first_difference(ours: &Answer, theirs: &Answer) -> String {
    let lines = ours.output.lines().zip(theirs.output.lines());
    match lines.enumerate().find(|(_, (ours, theirs))| ours != theirs) {
        Some((line, (ours, theirs))) => format!("line {line}: theirs {theirs:?}, ours {ours:?}"),
        None => format!("theirs {}, ours {}", show(theirs), show(ours)),
    }
}

fn normal(pair: &Pair, answer: Answer) -> Answer {
    // The usage page has our own text, and libxml2's remarks are its own.
    let usage = answer.output.starts_with("RRDtool 1.");
    // Only `list` prints remarks without an error.
    let error = answer.error.lines().rfind(|line| line.starts_with("ERROR: "));
    let remark = if answer.status == Some(0) { answer.error.as_str() } else { "" };
    // For an empty directory, Debian's rrdtool prints the error text for success.
    let error = error.unwrap_or(if ["Success", "Erfolg"].contains(&remark) { "" } else { remark });
    Answer {
        output: if usage { "usage".to_string() } else { pair.normal(&answer.output) },
        error: pair.normal(error),
        status: answer.status,
    }
}

fn show(answer: &Answer) -> String {
    let mut output = answer.output.clone();
    output.truncate(output.floor_char_boundary(600));
    format!("{:?} {:?} {output:?}", answer.status, answer.error)
}
