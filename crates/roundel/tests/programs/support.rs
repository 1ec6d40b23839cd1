//! Directories in which programs run with one of the libraries, and the final content of their RRDs.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use testkit::{Client, Daemon, Kind};

/// The library of a program, and where its RRDs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Debian's library and `.rrd` files.
    Debian,
    /// Debian's library, with its rrdcached before `.rrd` files.
    DebianRrdcached,
    /// Ours and `.rrd` files.
    Files,
    /// Ours, with Debian's rrdcached before `.rrd` files.
    Rrdcached,
    /// Ours, and a store whose daemon is in RRDCACHED_ADDRESS.
    Daemon,
    /// Ours, and a store with placeholders instead of files; no address is given.
    Placeholders,
}

impl Way {
    /// The ways for programs that know no daemon; they are compared with [`Way::Debian`].
    pub const OURS: [Way; 3] = [Way::Files, Way::Daemon, Way::Placeholders];

    /// Whether RRDs are in a store.
    pub fn has_store(self) -> bool {
        self.daemon() == Some(Kind::Stripes)
    }

    fn daemon(self) -> Option<Kind> {
        match self {
            Way::Debian | Way::Files => None,
            Way::DebianRrdcached | Way::Rrdcached => Some(Kind::Rrdcached),
            Way::Daemon | Way::Placeholders => Some(Kind::Stripes),
        }
    }
}

/// A directory with RRDs, and a daemon if there is one.
pub struct Place {
    pub way: Way,
    daemon: Option<(Daemon, Client)>,
    directory: tempfile::TempDir,
}

impl Place {
    pub fn new(way: Way) -> Self {
        // collectd refuses directories that begin with a dot.
        let directory = tempfile::Builder::new().prefix("programs-").tempdir().unwrap();
        let daemon = way.daemon().map(|kind| {
            let mut daemon = testkit::daemon!(kind, &directory.path().join("daemon"));
            let client = daemon.start();
            (daemon, client)
        });
        fs::create_dir(directory.path().join("rrds")).unwrap();
        Place { way, daemon, directory }
    }

    /// Where RRDs are.
    pub fn rrds(&self) -> PathBuf {
        self.daemon.as_ref().map_or_else(|| self.directory.path().join("rrds"), |(daemon, _)| daemon.base())
    }

    /// For other files.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Writes another file; returns its path.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// The daemon's address; empty without one.
    pub fn address(&self) -> String {
        let socket = |(daemon, _): &(Daemon, Client)| format!("unix:{}", daemon.socket().display());
        self.daemon.as_ref().map(socket).unwrap_or_default()
    }

    /// Imports all RRDs of another place into the store, so that this one has placeholders.
    pub fn import(&self, from: &Place) {
        let mut import = Command::new(env!("CARGO_BIN_EXE_roundel"));
        succeeded(
            import.arg("import").arg(from.rrds()).args(["--to", self.address().trim_start_matches("unix:")]),
        );
    }

    /// Sends a request to the daemon, which must succeed.
    pub fn ask(&mut self, line: &str) -> Vec<String> {
        let answer = self.daemon.as_mut().expect("a way with a daemon").1.ask(line).unwrap();
        assert!(answer.status >= 0, "{:?} {line}: {}", self.way, answer.message);
        answer.lines
    }

    /// A command that runs in the directory of the RRDs, with its library.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.rrds()).env("TZ", "UTC").env("LC_ALL", "C").env_remove("RRDCACHED_ADDRESS");
        // Perl's hashes then have the same order every time.
        command.env("PERL_HASH_SEED", "0").env("PERL_PERTURB_KEYS", "0");
        if !matches!(self.way, Way::Debian | Way::DebianRrdcached) {
            command.env("LD_LIBRARY_PATH", library());
        }
        if self.way == Way::Daemon {
            command.env("RRDCACHED_ADDRESS", self.address());
        }
        command
    }

    /// As `command`, for a program that always sees the time `time`, such as `2001-09-09 01:50:00`.
    pub fn command_at(&self, time: &str, program: &str) -> Command {
        // Cleans up after earlier ones.
        assert!(testkit::faketime().exists());
        let mut command = self.command("/usr/bin/faketime");
        command.args(["-f", time, program]);
        command
    }

    /// An RRD as XML, from Debian's rrdtool or the store's daemon.
    pub fn dump(&mut self, name: &str) -> String {
        if self.way.has_store() {
            return self.ask(&format!("DUMP {name}")).join("\n") + "\n";
        }
        if self.daemon.is_some() {
            self.ask(&format!("FLUSH {name}"));
        }
        let mut dump = Command::new("/usr/bin/rrdtool");
        dump.arg("dump").arg(self.rrds().join(name)).env("TZ", "UTC").env_remove("RRDCACHED_ADDRESS");
        // A program that runs may be writing it.
        let is_locked =
            |output: &Output| String::from_utf8_lossy(&output.stderr).contains("could not lock RRD");
        let output = testkit::wait_for("the lock of an RRD", || {
            Some(dump.output().unwrap()).filter(|output| !is_locked(output))
        });
        String::from_utf8(output_of(&dump, output)).unwrap()
    }

    /// The sorted names that end in `.rrd`.
    pub fn names(&self) -> Vec<String> {
        let (mut open, mut names) = (vec![self.rrds()], Vec::new());
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rrd") {
                    names.push(path.strip_prefix(self.rrds()).unwrap().display().to_string());
                }
            }
        }
        names.sort();
        names
    }
}

/// Writes a script that can be run. By another process: a child that another test forks while this one writes would keep
/// the file open for writing, and what is open for writing does not start ("Text file busy").
pub fn write_program(path: &Path, text: &str) {
    let mut source = tempfile::NamedTempFile::new().unwrap();
    source.write_all(text.as_bytes()).unwrap();
    succeeded(Command::new("install").args(["-m", "755"]).arg(source.path()).arg(path));
}

/// The output of a command, which must succeed.
pub fn succeeded(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    output_of(command, output)
}

fn output_of(command: &Command, output: Output) -> Vec<u8> {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    output.stdout
}

/// A directory with our library under its real name.
pub fn library() -> PathBuf {
    testkit::librrd_directory(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap()
}

/// The RRDs of both places must be equal, to the last bit.
pub fn same_rrds(theirs: &mut Place, ours: &mut Place, names: &[String]) {
    for name in names {
        let (want, got) = (theirs.dump(name), ours.dump(name));
        // RRDtool chooses the start of an archive at random, and counts how often a season has passed that
        // position. The time of smoothing depends on the file's name, which differs with a daemon.
        let by_chance =
            |line: &str| ["init_flag", "seasonal_smooth_idx"].iter().any(|word| line.contains(word));
        let differs = |(want, got): &(&str, &str)| want != got && !by_chance(want);
        let differing = want.lines().zip(got.lines()).find(differs);
        if differing.is_some() || got.lines().count() != want.lines().count() {
            panic!("{:?}: {name} differs: {differing:?}\n{got}", ours.way);
        }
    }
}

/// Runs the stages of a program with Debian's library and in each of our ways, and compares all RRDs. With
/// placeholders, the first stage is Debian's, whose RRDs are imported. Returns the places, Debian's first.
pub fn alike(ways: &[Way], stages: &[&dyn Fn(&Place)]) -> Vec<Place> {
    let mut theirs = Place::new(Way::Debian);
    let mut ours: Vec<Place> = ways.iter().map(|way| Place::new(*way)).collect();
    for (number, stage) in stages.iter().enumerate() {
        stage(&theirs);
        for place in &ours {
            if number == 0 && place.way == Way::Placeholders { place.import(&theirs) } else { stage(place) }
        }
    }
    let names = theirs.names();
    assert!(!names.is_empty());
    for place in &mut ours {
        assert_eq!(place.names(), names, "{:?}", place.way);
        same_rrds(&mut theirs, place, &names);
    }
    std::iter::once(theirs).chain(ours).collect()
}
