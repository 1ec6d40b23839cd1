//! Runs the programs that targets name in back-quotes, and those of thresholds.

use std::io::Read;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

/// Most bytes of output that are read: four lines are wanted.
const OUTPUT_BYTES_MAX: usize = 64 << 10;

/// How often a program that has closed its output is asked whether it has ended.
const END_POLL: Duration = Duration::from_millis(10);

/// How soon a program is killed when the daemon stops.
const CANCEL_POLL: Duration = Duration::from_millis(200);

/// Runs a command line of the shell and returns what it prints.
///
/// It has a process group of its own, all of which is killed when the time is over.
///
/// # Errors
/// When it cannot be started, or does not end in time.
pub fn run(command: &str, limit: Duration, cancelled: &AtomicBool) -> Result<Vec<u8>, String> {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command);
    run_until(shell, limit, cancelled)
}

/// Runs a program of a threshold; its output is not read.
///
/// # Errors
/// When it cannot be started, or does not end in time.
pub fn run_action(
    program: &str,
    arguments: &[String],
    environment: &[(String, String)],
    limit: Duration,
    cancelled: &AtomicBool,
) -> Result<(), String> {
    // MRTG's value may have arguments of its own.
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(format!("{program} \"$@\"")).arg("sh").args(arguments);
    shell.envs(environment.iter().map(|(name, value)| (name, value)));
    run_until(shell, limit, cancelled).map(drop)
}

fn run_until(mut command: Command, limit: Duration, cancelled: &AtomicBool) -> Result<Vec<u8>, String> {
    let deadline = Instant::now() + limit;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
    let output = read_output(&mut child, deadline, cancelled);
    let has_ended = output.is_some() && wait(&mut child, deadline);
    if !has_ended {
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            kill_process_group(group, Signal::KILL).ok();
        }
        child.wait().ok();
        return Err(format!("did not end within {} s and was killed", limit.as_secs_f64()));
    }
    Ok(output.unwrap_or_default())
}

/// What it prints until it closes its output; `None` when the time is over first.
fn read_output(child: &mut Child, deadline: Instant, cancelled: &AtomicBool) -> Option<Vec<u8>> {
    let mut pipe = child.stdout.take()?;
    let mut output = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let left = deadline.checked_duration_since(Instant::now())?.min(CANCEL_POLL);
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let ready = match poll(&mut [PollFd::new(&pipe, PollFlags::IN)], Some(&left)) {
            Ok(ready) => ready,
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return Some(output),
        };
        if cancelled.load(Ordering::Relaxed) {
            return None;
        }
        if ready == 0 {
            continue;
        }
        match pipe.read(&mut buffer) {
            Ok(0) => return Some(output),
            Ok(count) if output.len() < OUTPUT_BYTES_MAX => output.extend_from_slice(&buffer[..count]),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return Some(output),
        }
    }
}

/// True when it has ended in time.
fn wait(child: &mut Child, deadline: Instant) -> bool {
    loop {
        match child.try_wait() {
            Ok(Some(_)) | Err(_) => return true,
            Ok(None) if Instant::now() >= deadline => return false,
            Ok(None) => std::thread::sleep(END_POLL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_read_and_limited() {
        let limit = Duration::from_secs(20);
        let run = |command: &str, limit| run(command, limit, &AtomicBool::new(false));
        assert_eq!(run("echo 1; echo '2 3' | tr 2 4", limit).unwrap(), b"1\n4 3\n");
        assert_eq!(run("exit 3", limit).unwrap(), b"");
        assert_eq!(run("yes | head -c 1000000", limit).unwrap().len(), OUTPUT_BYTES_MAX);
        let began = Instant::now();
        // A background process holds the output open.
        let killed = run("sleep 600 & sleep 600", Duration::from_millis(200)).unwrap_err();
        assert!(killed.contains("did not end") && began.elapsed() < Duration::from_secs(10), "{killed}");
    }

    #[test]
    fn actions_get_arguments_and_environment() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("out");
        let program = format!("printf '%s,' >> {} \"$NAME\"", file.display());
        let arguments = ["a b".to_string(), "5%".to_string(), "7".to_string()];
        let environment = [("NAME".to_string(), "x".to_string())];
        run_action(&program, &arguments, &environment, Duration::from_secs(20), &AtomicBool::new(false))
            .unwrap();
        assert_eq!(std::fs::read_to_string(file).unwrap(), "x,a b,5%,7,");
    }
}
