//! A process that ends with the test.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};

use crate::wait::{DEADLINE, wait_for, wait_until};

/// The longest wait until a process that is to be killed stands still.
const STOP_DEADLINE: Duration = Duration::from_secs(5);

/// A process that a test has started. It is killed with the processes that it has started, and reaped, when dropped.
///
/// The process stays in the process group of the test: cargo-nextest kills that group when the test takes too long.
#[derive(Debug)]
pub struct Running {
    child: Child,
    log: Option<PathBuf>,
}

impl Running {
    /// Starts a process without input and output.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn quiet(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Running { child: spawn(command), log: None }
    }

    /// Starts a process without input, and with its output at the end of a file.
    ///
    /// # Panics
    /// If the file cannot be written or the process does not start.
    #[must_use]
    pub fn start(command: &mut Command, log: impl Into<PathBuf>) -> Self {
        let log = log.into();
        let file = File::options().create(true).append(true).open(&log).expect("the log can be written");
        let copy = file.try_clone().expect("a descriptor can be copied");
        command.stdin(Stdio::null()).stdout(copy).stderr(file);
        Running { child: spawn(command), log: Some(log) }
    }

    /// Starts a process that the test talks to: returns it with its input and its output.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn piped(command: &mut Command) -> (Self, ChildStdin, BufReader<ChildStdout>) {
        let mut child = spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let input = child.stdin.take().expect("the process has an input");
        let output = child.stdout.take().expect("the process has an output");
        (Running { child, log: None }, input, BufReader::new(output))
    }

    /// Starts a program with these words in the C locale, and with its output at the end of a file.
    ///
    /// # Panics
    /// As [`Running::start`].
    #[must_use]
    pub fn program(log: &Path, program: impl AsRef<std::ffi::OsStr>, words: &[&str]) -> Self {
        Running::start(Command::new(program).args(words).env("LC_ALL", "C"), log)
    }

    /// The number of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns all output so far; nothing if it goes to no file.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.as_ref().and_then(|log| fs::read(log).ok()).map_or_else(String::new, |bytes| {
            String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
        })
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// If the process is not there.
    pub fn signal(&self, signal: Signal) {
        send_signal(self.id(), signal);
    }

    /// Returns the exit status once the process has ended.
    ///
    /// # Panics
    /// If the system cannot say.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be waited for")
    }

    /// Waits for the end of the process.
    ///
    /// # Panics
    /// After [`DEADLINE`], with the output.
    pub fn wait(&mut self) -> ExitStatus {
        let begun = Instant::now();
        wait_for("a process to end", || {
            assert!(begun.elapsed() < DEADLINE, "the process does not end: {}", self.log());
            self.ended()
        })
    }

    /// Asks the process to end by SIGTERM, so that it writes what it holds, and waits.
    ///
    /// # Panics
    /// As [`Running::wait`].
    pub fn terminate(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// As [`Running::terminate`]; returns all output.
    ///
    /// # Panics
    /// As [`Running::wait`].
    pub fn stop(mut self) -> String {
        self.signal(Signal::TERM);
        self.wait();
        self.log()
    }

    /// Kills the process and the processes that it has started (`kill -9`).
    pub fn kill(mut self) {
        self.kill_family();
    }

    /// Looks until `found` gives something.
    ///
    /// # Panics
    /// If the process ends before, or after [`DEADLINE`], with the output.
    pub fn wait_for<T>(&mut self, what: &str, mut found: impl FnMut() -> Option<T>) -> T {
        let begun = Instant::now();
        wait_for(what, || {
            found().or_else(|| {
                let ended = self.ended();
                assert!(
                    ended.is_none() && begun.elapsed() < DEADLINE,
                    "waited for {what}; the process: {ended:?}: {}",
                    self.log()
                );
                None
            })
        })
    }

    fn kill_family(&mut self) {
        // The number of a process that was reaped may be another one's by now.
        if matches!(self.child.try_wait(), Ok(None)) {
            let mut family = Vec::new();
            stop_family(Pid::from_child(&self.child), &mut family);
            for process in family {
                kill_process(process, Signal::KILL).ok();
            }
        }
        self.child.wait().ok();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill_family();
    }
}

fn spawn(command: &mut Command) -> Child {
    command.spawn().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"))
}

/// Kills the daemon whose number is in a file when dropped: a daemon in the background, which has left its test.
#[derive(Debug)]
pub struct PidFile(pub PathBuf);

impl Drop for PidFile {
    fn drop(&mut self) {
        let number = fs::read_to_string(&self.0).unwrap_or_default();
        if let Some(process) = number.trim().parse().ok().and_then(Pid::from_raw) {
            kill_process(process, Signal::KILL).ok();
        }
    }
}

/// Sends a signal to a process. After `STOP`, returns once all threads stand still: on a busy machine they run on for a while.
///
/// # Panics
/// If the process is not there.
pub fn send_signal(process: u32, signal: Signal) {
    let id = Pid::from_raw(process as i32).expect("a process has a number");
    kill_process(id, signal).unwrap_or_else(|error| panic!("{signal:?} to process {process}: {error}"));
    if signal == Signal::STOP {
        wait_until("all threads to stand still", || stands_still(process));
    }
}

/// True if all threads of a process are stopped or have ended.
fn stands_still(process: u32) -> bool {
    thread_states(process).iter().all(|state| "TZX".contains(*state))
}

/// The states of the threads of a process, as proc_pid_stat(5) has them.
fn thread_states(process: u32) -> Vec<char> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let stats = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    // The name before it, in brackets, may be anything.
    stats.filter_map(|stat| stat.rsplit_once(") ")?.1.chars().next()).collect()
}

/// Stops a process, then its children, and adds all of them to `family`. A process that stands still starts no more children.
fn stop_family(process: Pid, family: &mut Vec<Pid>) {
    family.push(process);
    kill_process(process, Signal::STOP).ok();
    let number = process.as_raw_nonzero().get().unsigned_abs();
    let begun = Instant::now();
    // A process that waits for a file system does not stop before its answer, and it may be dead.
    while !stands_still(number) && begun.elapsed() < STOP_DEADLINE {
        std::thread::sleep(Duration::from_millis(2));
    }
    for thread in fs::read_dir(format!("/proc/{number}/task")).into_iter().flatten().flatten() {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
            if let Some(child) = Pid::from_raw(child) {
                stop_family(child, family);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_process_does_nothing_more() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let process = Running::program(&log, "sh", &["-c", "while :; do echo on; done"]);
        wait_until("the first words", || !process.log().is_empty());
        process.signal(Signal::STOP);
        assert_eq!(thread_states(process.id()), ['T']);
    }

    #[test]
    fn a_process_ends_with_its_children() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let script = "sh -c 'sleep 600 & echo $!; wait' & wait";
        let mut shell = Running::start(Command::new("sh").args(["-c", script]), &log);
        let sleep = shell.wait_for("a number", || {
            let text = fs::read_to_string(&log).ok()?;
            text.strip_suffix('\n').map(str::to_string)
        });
        let is_there = || {
            let state = fs::read_to_string(format!("/proc/{sleep}/stat")).unwrap_or_default();
            state.contains("(sleep)") && !state.contains(") Z ")
        };
        // A number is there before the shell has become the program.
        wait_until("the start of sleep", is_there);
        drop(shell);
        wait_until("the end of sleep", || !is_there());
    }

    #[test]
    fn a_process_that_starts_others_all_the_time_ends_with_all_of_them() {
        // A process that has not become `sleep` has this number in its command, too.
        let mark = format!("600.{:09}", std::process::id());
        let script = format!("for i in $(seq 300); do sleep {mark} & done; wait");
        let count = || {
            let all = fs::read_dir("/proc").unwrap().flatten();
            let commands = all.filter_map(|process| fs::read_to_string(process.path().join("cmdline")).ok());
            commands.filter(|command| command.contains(&mark)).count()
        };
        for _ in 0..5 {
            let shell = Running::quiet(Command::new("sh").args(["-c", &script]));
            wait_until("some children", || count() > 5);
            drop(shell);
            // Killed processes need a moment to end.
            wait_until("the end of all", || count() == 0);
        }
    }

    #[test]
    fn a_process_is_asked_to_end() {
        let directory = tempfile::tempdir().unwrap();
        let words = ["-c", "trap 'echo good; exit 3' TERM; echo begun; while :; do sleep 0.01; done"];
        let mut shell = Running::program(&directory.path().join("log"), "sh", &words);
        shell.wait_for("its begin", || {
            fs::read_to_string(directory.path().join("log")).ok().filter(|text| text.contains("begun"))
        });
        assert_eq!(shell.terminate().code(), Some(3));
        assert_eq!(fs::read_to_string(directory.path().join("log")).unwrap(), "begun\ngood\n");
    }
}
