//! Written scenarios: plain text, one file each, in `cases/`.
//!
//! ```text
//! # why this is here
//! differs: what Debian's does instead, when it is meant to differ
//! files
//! set TZ=Europe/Berlin
//! write NAME text of a line
//! cut NAME length            | patch NAME offset hex   | directory NAME
//! $ command words, quoted as in a session
//! > expected output, a line each
//! ! expected error text (and status 1)
//! ~ expected remark on standard error (and status 0)
//! ```
//!
//! A case without `differs` is also compared with Debian's rrdtool, if that is installed: what it prints and, with
//! a line `files`, what its files hold in the end.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::harness::{Answer, Pair, Program};
use crate::random::{differing_files, files};

const COMPARE_FILES: &str = "files";

pub fn check_all() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/cases");
    let mut names: Vec<_> = std::fs::read_dir(directory)
        .expect("the cases")
        .map(|entry| entry.expect("a case").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "case"))
        .collect();
    names.sort();
    assert!(names.len() >= 5, "the cases are not where this test looks");
    let mut failed = Vec::new();
    for path in names {
        let text = std::fs::read_to_string(&path).expect("a case is text");
        let pair = Pair::new();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if let Some(difference) = check(&text, &pair, &pair.ours) {
            failed.push(format!("{name}, ours: {difference}"));
        }
        if let Some(theirs) = &pair.theirs {
            let differs = text.lines().any(|line| line.starts_with("differs:"));
            match check(&text, &pair, theirs) {
                Some(difference) if !differs => failed.push(format!("{name}, Debian's: {difference}")),
                None if text.lines().any(|line| line == COMPARE_FILES) => {
                    let files = pair.directories().iter().map(|path| files(path)).collect::<Vec<_>>();
                    let differences =
                        <&[_; 2]>::try_from(&files[..]).map(differing_files).expect("both are there");
                    failed.extend(differences.lines().map(|difference| format!("{name}: {difference}")));
                }
                None if differs => failed.push(format!("{name}: Debian's does not differ")),
                _ => {}
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// The expected result of one command.
#[derive(Default)]
struct Expected {
    command: String,
    output: String,
    error: String,
}

/// The first difference between a case and a program.
fn check(text: &str, pair: &Pair, program: &Program) -> Option<String> {
    let mut program = program.clone();
    let mut expected: Option<Expected> = None;
    for line in text.lines().chain(["end"]) {
        match (line.get(..2), expected.as_mut()) {
            (Some("> "), Some(expected)) => expected.output.push_str(&format!("{}\n", &line[2..])),
            (Some("! "), Some(expected)) => expected.error = format!("ERROR: {}\n", &line[2..]),
            (Some("~ "), Some(expected)) => expected.error = line[2..].to_string(),
            _ if line == ">" => expected.as_mut()?.output.push('\n'),
            _ => {
                if let Some(difference) = expected.take().and_then(|wanted| compare(&wanted, pair, &program))
                {
                    return Some(difference);
                }
                if let Some(command) = line.strip_prefix("$ ") {
                    expected = Some(Expected { command: command.to_string(), ..Expected::default() });
                } else {
                    prepare(line, &mut program);
                }
            }
        }
    }
    None
}

fn compare(wanted: &Expected, pair: &Pair, program: &Program) -> Option<String> {
    let words = roundel_cli::pipe::split(wanted.command.as_bytes()).expect("closed quotes");
    let words: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let mut got = program.run(&words, b"");
    got.output = pair.normal(&got.output);
    let want = Answer {
        output: wanted.output.clone(),
        error: wanted.error.clone(),
        status: Some(i32::from(wanted.error.starts_with("ERROR: "))),
    };
    (got != want).then(|| format!("{}\n  wanted {want:?}\n  got    {got:?}", wanted.command))
}

fn prepare(line: &str, program: &mut Program) {
    let mut parts = line.splitn(3, ' ');
    let (what, name, rest) = (parts.next(), parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    let path = program.directory.join(name);
    match what {
        Some("set") => {
            let (name, value) = line[4..].split_once('=').expect("name=value");
            // `LANGUAGES` stands for the directory of the test's locales.
            let made = crate::locales::path().map(|path| path.display().to_string());
            let value = value.replace("LANGUAGES", &made.unwrap_or_default());
            program.environment.push((name.to_string(), value));
        }
        Some("write") => {
            let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).expect("a file");
            file.write_all(format!("{rest}\n").as_bytes()).expect("written");
        }
        Some("directory") => std::fs::create_dir_all(path).expect("a directory"),
        Some("cut") => {
            let file = std::fs::OpenOptions::new().write(true).open(path).expect("a file");
            file.set_len(rest.parse().expect("a length")).expect("cut");
        }
        Some("patch") => {
            let (offset, hex) = rest.split_once(' ').expect("offset hex");
            let bytes: Vec<u8> = (0..hex.len() / 2)
                .map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).expect("hex"))
                .collect();
            let mut file = std::fs::OpenOptions::new().read(true).write(true).open(path).expect("a file");
            file.seek(SeekFrom::Start(offset.parse().expect("an offset"))).expect("inside");
            let mut before = vec![0; bytes.len()];
            file.read_exact(&mut before).expect("inside");
            file.seek_relative(-(bytes.len() as i64)).expect("inside");
            file.write_all(&bytes).expect("patched");
        }
        _ => {
            let known = ["", "end", COMPARE_FILES].contains(&line)
                || line.starts_with(['#'])
                || line.starts_with("differs:");
            assert!(known, "a case has no line like {line:?}");
        }
    }
}
