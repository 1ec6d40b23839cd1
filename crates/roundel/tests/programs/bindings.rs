//! RRDtool's language bindings: the calls of `bindings/calls.txt`, and those that only one language has, with
//! a script for each.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{Place, Way, same_rrds, succeeded};

/// The RRDs that are made, by every language.
const RRDS: [&str; 3] = ["a.rrd", "b.rrd", "h.rrd"];
/// The input of `restore`.
const GIVEN: &str = "given.xml";

/// One call: its line in `calls.txt`, or the script's name for it.
#[derive(Clone, Debug, PartialEq)]
struct Told {
    call: String,
    result: String,
}

/// The output of a script: results, and what the library itself printed to standard output.
struct Output {
    told: Vec<Told>,
    printed: String,
}

fn source(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/bindings").join(name)
}

fn calls() -> String {
    fs::read_to_string(source("calls.txt")).unwrap()
}

/// The mark before a call in `calls.txt`, or a space.
fn mark(call: &str) -> char {
    let marked = |line: &str| line.get(2..) == Some(call) && !line.starts_with("# ");
    calls().lines().find(|line| marked(line)).and_then(|line| line.chars().next()).unwrap_or(' ')
}

/// Runs a script in a directory.
fn run(place: &Place, interpreter: &str, script: &str) -> Output {
    let file = place.rrds().join("calls.txt");
    let skipped = |line: &&str| place.way != Way::Debian || !line.starts_with("* ");
    let lines: Vec<String> = calls().lines().filter(skipped).map(|line| format!("{line}\n")).collect();
    fs::write(&file, lines.concat()).unwrap();
    let output = place.command(interpreter).arg(source(script)).arg(&file).output().unwrap();
    let results = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{:?} {script}: {}\n{results}", place.way, output.status);
    let mut told: Vec<Told> = Vec::new();
    for line in results.lines() {
        // What the library says itself of a directory that cannot be listed, without a line feed, as RRDtool's does.
        let line = line.strip_prefix("No such file or directory").unwrap_or(line);
        match (line.strip_prefix("  "), told.last_mut()) {
            (Some(result), Some(last)) => last.result.push_str(result),
            _ => told.push(Told { call: line.to_string(), result: String::new() }),
        }
    }
    Output { told, printed: String::from_utf8_lossy(&output.stdout).into_owned() }
}

/// What must be equal. Ring positions are left out, because RRDtool chooses the start of an archive at
/// random. Names of directories come in any order. INFO of a store has its own path, and ten digits.
fn comparable(told: &Told, way: Way) -> Vec<String> {
    let info = told.call.starts_with("info") && way.has_store();
    let words = told.result.split(|c: char| "[{=,}] ".contains(c)).filter(|word| !word.is_empty());
    let mut words: Vec<String> =
        words.map(|word| if info { ten_digits(word) } else { word.to_string() }).collect();
    for key in if info { &["cur_row", "filename"][..] } else { &["cur_row"] } {
        while let Some(at) = words.iter().position(|word| word.ends_with(key)) {
            words.drain(at..(at + 2).min(words.len()));
        }
    }
    if told.call.starts_with("list") {
        words.sort_unstable();
    }
    words
}

/// An argument; a number is cut to the digits of INFO.
fn ten_digits(word: &str) -> String {
    word.parse::<f64>().map_or_else(|_| word.to_string(), |number| format!("{number:.9e}"))
}

/// Whether the call failed, or returned what stands for a failure in languages without errors.
fn has_failed(told: &Told) -> bool {
    let result = told.result.as_str();
    result.starts_with("error") || ["{return_value=-1}", "false", "NULL"].contains(&result)
}

/// Checks that equal results are equal, and that calls a store does not support fail.
fn compare(theirs: &Output, ours: &Output, way: Way) {
    let ours: Vec<&Told> = ours.told.iter().filter(|told| mark(&told.call) != '*').collect();
    for (their, our) in theirs.told.iter().zip(&ours) {
        assert_eq!(our.call, their.call, "{way:?}");
        let mark = mark(&their.call);
        let both = format!("{way:?} {}\ntheirs {}\nours   {}", their.call, their.result, our.result);
        if mark == '!' {
            assert!(has_failed(their), "{both}");
        }
        if mark == '~' || way.has_store() && (mark == '-' || has_failed(their)) {
            assert!(has_failed(our), "{both}");
        } else if !(way.has_store() && mark == '?') {
            assert_eq!(comparable(our, way), comparable(their, way), "{both}");
        }
    }
    assert_eq!(ours.len(), theirs.told.len(), "{way:?}");
}

/// A directory with what the calls need: a dump, and with placeholders a store with RRDs of every kind.
fn prepared(way: Way) -> Place {
    let mut place = Place::new(way);
    let rrds = place.rrds();
    let rrdtool = |words: &[&str]| {
        let mut command = Command::new("/usr/bin/rrdtool");
        succeeded(command.args(words).current_dir(&rrds).env_remove("RRDCACHED_ADDRESS"))
    };
    let definition = "-b 1000000000 -s 10 DS:x:GAUGE:30:U:U RRA:LAST:0.5:1:5";
    let mut words = vec!["create", "given.rrd"];
    words.extend(definition.split(' '));
    rrdtool(&words);
    rrdtool(&["update", "given.rrd", "1000000010:1.5", "1000000020:2.5"]);
    fs::write(rrds.join(GIVEN), rrdtool(&["dump", "given.rrd"])).unwrap();
    fs::remove_file(rrds.join("given.rrd")).unwrap();
    if way == Way::Placeholders {
        for name in RRDS.iter().chain(&["l.rrd", "o.rrd"]) {
            place.ask(&format!("CREATE {name} {definition}"));
        }
    }
    place
}

fn check(interpreter: &str, script: &str, more: &[&str], ways: &[Way]) {
    let mut their_place = prepared(Way::Debian);
    let theirs = run(&their_place, interpreter, script);
    assert_eq!(theirs.told.last().map(|told| (&*told.call, &*told.result)), Some(("never called", "")));
    let names: Vec<String> = RRDS.iter().chain(more).map(|name| name.to_string()).collect();
    for &way in ways {
        let mut place = prepared(way);
        let ours = run(&place, interpreter, script);
        compare(&theirs, &ours, way);
        if way == Way::Files {
            assert_eq!(ours.printed, theirs.printed);
        }
        same_rrds(&mut their_place, &mut place, &names);
    }
}

#[test]
fn perl() {
    check("/usr/bin/perl", "perl.pl", &[], &Way::OURS);
}

#[test]
fn python() {
    check("/usr/bin/python3", "python.py", &["l.rrd"], &Way::OURS);
}

#[test]
fn php() {
    check("/usr/bin/php", "php.php", &["o.rrd"], &Way::OURS);
}

#[test]
fn lua() {
    check("/usr/bin/lua5.3", "lua.lua", &[], &Way::OURS);
}

#[test]
fn ruby() {
    check("/usr/bin/ruby", "ruby.rb", &[], &Way::OURS);
}

#[test]
fn tcl() {
    // Most of its functions use no daemon except a placeholder's.
    check("/usr/bin/tclsh", "tcl.tcl", &[], &[Way::Files, Way::Placeholders]);
}
