//! Two programs, a directory for each, and their answers.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Debian's rrdtool.
pub const THEIRS: &str = "/usr/bin/rrdtool";

/// The answer of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub output: String,
    pub error: String,
    /// The exit status; `None` = terminated by a signal.
    pub status: Option<i32>,
}

/// A program with its own directory.
#[derive(Clone)]
pub struct Program {
    path: PathBuf,
    pub directory: PathBuf,
    pub environment: Vec<(String, String)>,
}

impl Program {
    /// A program in a directory.
    pub fn new(path: &Path, directory: &Path) -> Self {
        Program { path: path.to_path_buf(), directory: directory.to_path_buf(), environment: Vec::new() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs it once.
    pub fn run<W: AsRef<std::ffi::OsStr>>(&self, words: &[W], input: &[u8]) -> Answer {
        let mut command = Command::new(&self.path);
        command
            .args(words)
            .current_dir(&self.directory)
            .env("TZ", "UTC")
            .env("LC_ALL", "C")
            .env_remove("RRDCACHED_ADDRESS")
            .env_remove("RRD_LOCKING")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = input.to_vec();
        let writer = std::thread::spawn(move || {
            // The program may end before it has read everything.
            stdin.write_all(&input).ok();
        });
        let output = child.wait_with_output().expect("the program ends");
        writer.join().expect("the writer ends");
        Answer {
            output: String::from_utf8_lossy(&output.stdout).into_owned(),
            error: String::from_utf8_lossy(&output.stderr).into_owned(),
            status: output.status.code(),
        }
    }
}

/// Our program and, if it is installed, Debian's.
pub struct Pair {
    pub ours: Program,
    pub theirs: Option<Program>,
    root: tempfile::TempDir,
}

impl Pair {
    /// With our program: this executable under the name `rrdtool`.
    pub fn new() -> Self {
        Pair::with(|root| {
            let link = root.join("rrdtool");
            let own = std::env::current_exe().expect("our path");
            std::os::unix::fs::symlink(own, &link).expect("a link");
            (link, Vec::new())
        })
    }

    /// With the program and the environment that `ours` gives for a directory.
    pub fn with(ours: impl FnOnce(&Path) -> (PathBuf, Vec<(String, String)>)) -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let (link, environment) = ours(root.path());
        let program = |path: &Path, name: &str| {
            // Nested deeply: a session that leaves it upwards must not reach the other's.
            let directory = root.path().join(name).join("above/above/above/above/here");
            std::fs::create_dir_all(&directory).expect("a directory");
            Program::new(path, &directory)
        };
        // Without it, nothing is compared.
        let installed = testkit::peer::debian("rrdtool", THEIRS);
        Pair {
            ours: Program { environment, ..program(&link, "ours") },
            theirs: installed.map(|theirs| program(&theirs, "theirs")),
            root,
        }
    }

    /// Both directories.
    pub fn directories(&self) -> Vec<PathBuf> {
        let theirs = self.theirs.iter().map(|program| program.directory.clone());
        std::iter::once(self.ours.directory.clone()).chain(theirs).collect()
    }

    /// Removes what differs only because it is random, or contains the directory.
    pub fn normal(&self, text: &str) -> String {
        let mut lines = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            match line.split_once(".cur_row = ") {
                Some((archive, _)) => lines.push_str(&format!("{archive}.cur_row\n")),
                None if line.starts_with("OK u:") => lines.push_str("OK\n"),
                None => lines.push_str(line),
            }
        }
        let root = self.root.path().to_string_lossy().into_owned();
        lines.replace(&format!("{root}/ours"), "/X").replace(&format!("{root}/theirs"), "/X")
    }

    /// The dumps of all `.rrd` files of each, which must be equal.
    pub fn dumps(&self) -> Vec<BTreeMap<String, Answer>> {
        let read_by = self.theirs.as_ref().unwrap_or(&self.ours);
        let dump = |directory: &PathBuf| {
            let mut found = BTreeMap::new();
            let mut open = vec![directory.clone()];
            while let Some(next) = open.pop() {
                for entry in std::fs::read_dir(next).expect("a directory").flatten() {
                    let path = entry.path();
                    if path.is_dir() {
                        open.push(path);
                    } else if path.extension().is_some_and(|extension| extension == "rrd") {
                        let name = path.strip_prefix(directory).expect("inside").display().to_string();
                        let mut answer = read_by.run(&["dump".as_ref(), path.as_os_str()], b"");
                        answer.error = self.normal(&answer.error);
                        // The number of season cycles starts at a row that Debian's rrdtool chooses at
                        // random.
                        let counted = |line: &&str| !line.contains("<init_flag>");
                        answer.output = answer.output.split_inclusive('\n').filter(counted).collect();
                        // The last point of an archive that was filled from others (`docs/compatibility.md`).
                        for infinite in ["<primary_value>inf<", "<primary_value>-inf<"] {
                            answer.output = answer.output.replace(infinite, "<primary_value>NaN<");
                        }
                        found.insert(name, answer);
                    }
                }
            }
            found
        };
        self.directories().iter().map(dump).collect()
    }
}

/// Numbers that look random and depend only on the seed.
pub struct Draw {
    state: u64,
    /// Only numeric values: for some sources, Debian's rrdtool treats other texts differently.
    pub tame: bool,
}

impl Draw {
    pub fn new(seed: u64) -> Self {
        Draw { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, tame: seed.is_multiple_of(2) }
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        ((self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit.max(1) as u64) as usize
    }

    pub fn of<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    /// True once in `times` calls on average.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}
