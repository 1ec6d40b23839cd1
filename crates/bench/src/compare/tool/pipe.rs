//! A session with `rrdtool -`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;

/// A running session; ends with the value.
pub struct Pipe {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Pipe {
    /// Starts a program in a directory.
    pub fn start(program: &Path, directory: &Path) -> Outcome<Self> {
        let mut child = Command::new(program)
            .arg("-")
            .current_dir(directory)
            .env("LC_ALL", "C")
            .env_remove("RRDCACHED_ADDRESS")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("no input")?;
        let output = BufReader::with_capacity(1 << 16, child.stdout.take().ok_or("no output")?);
        Ok(Pipe { child, input, output })
    }

    /// Sends `count` commands and waits until the last is answered.
    pub fn run(&mut self, commands: &[u8], count: usize) -> Outcome<Duration> {
        let (input, output) = (&mut self.input, &mut self.output);
        let start = Instant::now();
        thread::scope(|scope| {
            // Beside the reading: neither side may wait for the other with its pipe full.
            let writer = scope.spawn(move || input.write_all(commands).and_then(|()| input.flush()));
            for _ in 0..count {
                answer(output, |_| ())?;
            }
            let elapsed = start.elapsed();
            writer.join().map_err(|_| "the writer panicked")??;
            Ok(elapsed)
        })
    }

    /// Sends one command; what it prints before its OK.
    pub fn text(&mut self, command: &[u8]) -> Outcome<Vec<u8>> {
        self.input.write_all(command)?;
        self.input.flush()?;
        let mut text = Vec::new();
        answer(&mut self.output, |line| text.extend_from_slice(line))?;
        Ok(text)
    }
}

/// Reads the lines of one answer.
fn answer(output: &mut impl BufRead, mut take: impl FnMut(&[u8])) -> Outcome<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if output.read_until(b'\n', &mut line)? == 0 {
            return Err("rrdtool has ended".into());
        }
        if line.starts_with(b"OK u:") {
            return Ok(());
        }
        if line.starts_with(b"ERROR: ") {
            return Err(String::from_utf8_lossy(&line).into_owned().into());
        }
        take(&line);
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
