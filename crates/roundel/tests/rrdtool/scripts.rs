//! RRDtool's own test scripts, unmodified, on a daemon that keeps RRDs in stripes, with Debian's programs as control.
//!
//! The same in a mounted store with Debian's rrdtool alone.
//!
//! `make peers` fetches them (`fetch-scripts.sh`). They create, copy, overwrite and remove `.rrd` files, and compare what `rrdtool` prints with files of theirs.

use std::collections::BTreeMap;
use std::sync::Mutex;

use testkit::Running;

use super::*;

/// The scripts that run at the same time.
const SIDE_BY_SIDE: usize = 4;

/// As many as version 1.7.2 has.
const COUNT: usize = 25;

/// These fail with Debian's own programs, too.
const BROKEN: &[&str] = &[
    // It lacks a backslash.
    "create-with-source-5",
];

/// With what the scripts run.
struct Setup<'a> {
    /// The `rrdtool` that they call.
    tool: &'a Path,
    /// Where they run, and their files are: the directory that a daemon has, or one of files.
    directory: &'a Path,
    /// The daemon that they are to use, if there is one.
    address: Option<String>,
}

/// What the scripts have said, by name: nothing when they were content.
type Outcome = BTreeMap<String, Option<String>>;

impl Setup<'_> {
    /// Copies the scripts and runs them.
    fn run(&self, scripts: &Path) -> Outcome {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(scripts).unwrap() {
            let path = entry.unwrap().path();
            let content = std::fs::read(&path).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap().to_string();
            let copy = self.directory.join(&name);
            std::fs::write(&copy, &content).unwrap();
            if content.starts_with(b"#!") {
                std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).unwrap();
                names.push(name);
            }
        }
        let (queue, outcome) = (Mutex::new(names), Mutex::new(Outcome::new()));
        let work = || {
            while let Some(name) = { queue.lock().unwrap().pop() } {
                let said = self.run_one(&name);
                outcome.lock().unwrap().insert(name, said);
            }
        };
        std::thread::scope(|scope| (0..SIDE_BY_SIDE).for_each(|_| drop(scope.spawn(work))));
        outcome.into_inner().unwrap()
    }

    fn run_one(&self, name: &str) -> Option<String> {
        let output = tempfile::NamedTempFile::new().unwrap();
        let mut command = Command::new("bash");
        command.arg(self.directory.join(name)).current_dir(self.directory);
        command.env("RRDTOOL", self.tool).env("RRDCACHED", "/usr/bin/rrdcached").env("LC_ALL", "C");
        // Daemons on other machines take no absolute names, and the scripts use no others.
        command.env("RRDCACHED_STRIPPATH", self.directory);
        for variable in
            ["RRDCACHED_ADDRESS", "BASEDIR", "BUILDDIR", "TOP_BUILDDIR", "TESTS_STYLE", "CONTINUE"]
        {
            command.env_remove(variable);
        }
        if let Some(address) = &self.address {
            command.env("RRDCACHED_ADDRESS", address);
        }
        let mut script = Running::start(&mut command, output.path());
        let start = std::time::Instant::now();
        let ended = loop {
            match script.ended() {
                Some(status) => break Some(status),
                None if start.elapsed() > testkit::DEADLINE => break None,
                None => std::thread::sleep(std::time::Duration::from_millis(5)),
            }
        };
        let said = script.log();
        // A stuck script ends with the programs that it has started.
        drop(script);
        (!ended.is_some_and(|status| status.success())).then(|| format!("{ended:?}\n{said}"))
    }
}

/// Runs the scripts on a daemon of its own.
fn run_on(kind: Kind, is_tcp: bool, tool: &Path, scripts: &Path) -> Outcome {
    let directory = tempfile::Builder::new().prefix("scripts-").tempdir().unwrap();
    let mut daemon = testkit::daemon!(kind, directory.path());
    daemon.start();
    let address = match is_tcp {
        true => format!("127.0.0.1:{}", daemon.tcp_port()),
        false => format!("unix:{}", daemon.socket().display()),
    };
    Setup { tool, directory: &daemon.base(), address: Some(address) }.run(scripts)
}

/// All scripts are content with ours and with Debian's, except for those that are broken themselves.
fn check(way: &str, ours: &Outcome, theirs: &Outcome) {
    for (whose, outcome) in [("Debian's own", theirs), ("ours", ours)] {
        assert_eq!(outcome.len(), COUNT, "{way}: scripts that ran with {whose}");
        for (name, said) in outcome {
            let is_broken = BROKEN.contains(&name.as_str());
            match said {
                Some(said) => assert!(is_broken, "{way}: {name} fails with {whose}: {said}"),
                None => assert!(!is_broken, "{way}: {name} is content with {whose}: it is not broken"),
            }
        }
    }
}

#[test]
fn rrdtools_own_test_scripts_run_as_on_files() {
    let Some(scripts) = testkit::peer::rrdtool_scripts() else { return };
    let (theirs, directory) = (Path::new("/usr/bin/rrdtool"), tempfile::tempdir().unwrap());
    let ours = Tool::new(directory.path());
    for (way, is_tcp) in [("over a UNIX socket", false), ("over TCP", true)] {
        let control = run_on(Kind::Rrdcached, is_tcp, theirs, &scripts);
        check(way, &run_on(Kind::Stripes, is_tcp, &ours.link, &scripts), &control);
    }
}

/// Stock rrdtool on the files of a mounted store; what is no RRD lives in the extra directory.
#[test]
fn rrdtools_own_test_scripts_run_in_a_mount() {
    let Some(scripts) = testkit::peer::rrdtool_scripts() else { return };
    let extra = tempfile::tempdir().unwrap();
    let options = format!("extra={}", extra.path().display());
    let Some((_directory, _daemon, mount, plain)) = mount::mounted(Kind::Stripes, &options) else { return };
    let run = |directory: &Path| {
        Setup { tool: Path::new("/usr/bin/rrdtool"), directory, address: None }.run(&scripts)
    };
    check("in a mount", &run(&mount.directory), &run(&plain));
}
