//! RRDtool's library through its Perl binding: it returns numbers with all their bits, where every command rounds
//! them.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command};

use crate::running::Running;

/// Reads lines of arguments separated by tabs, runs them, and writes one line for each.
///
/// The library itself sometimes prints to standard output, so an answer begins with a mark.
const SCRIPT: &str = r#"use RRDs; $| = 1;
sub refuse { my ($error) = @_; $error =~ s/\n/\\n/g; print "\n=E$error\n" }
while (my $line = <STDIN>) {
  chomp $line;
  my ($verb, @args) = split /\t/, $line, -1;
  if ($verb eq 'xport') {
    my ($start, $end, $step, $columns, $legend, $rows) = RRDs::xport(@args);
    if (my $error = RRDs::error) { refuse($error); next }
    print "\n=O$start\t$end\t$step", map { "\t" . join ',', map { defined $_ ? unpack 'H16', pack 'd>', $_ : 'U' } @$_ } @$rows;
    print "\n";
  } elsif ($verb eq 'fetch') {
    my ($start, $step, $names, $rows) = RRDs::fetch(@args);
    if (my $error = RRDs::error) { refuse($error); next }
    print "\n=O$start\t0\t$step", map { "\t" . join ',', map { defined $_ ? unpack 'H16', pack 'd>', $_ : 'U' } @$_ } @$rows;
    print "\n";
  } else {
    my ($lines) = RRDs::graph('/dev/null', @args);
    if (my $error = RRDs::error) { refuse($error); next }
    print "\n=O", join("\t", @$lines), "\n";
  }
}"#;

/// The result of `xport`.
#[derive(Clone, Debug, PartialEq)]
pub struct Exported {
    /// The time of the first row, seconds since the epoch.
    pub start: i64,
    /// The time of the last row.
    pub end: i64,
    /// Seconds per row.
    pub step: u64,
    /// One value per XPORT in each row; every unknown value is `f64::NAN`.
    pub rows: Vec<Vec<f64>>,
}

/// `perl` with RRDs, in a temporary directory of its own.
pub struct Bindings {
    _process: Running,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    directory: tempfile::TempDir,
}

impl Bindings {
    /// Starts it with `LC_ALL=C` and the time zone `zone`.
    pub fn start(zone: &str) -> io::Result<Self> {
        let directory = tempfile::tempdir()?;
        let mut command = Command::new("/usr/bin/perl");
        command
            .args(["-e", SCRIPT])
            .current_dir(directory.path())
            .env("TZ", zone)
            .env("LC_ALL", "C")
            .env_remove("RRDCACHED_ADDRESS");
        let (process, input, output) = Running::piped(&mut command);
        Ok(Bindings { _process: process, input, output, directory })
    }

    /// Its working directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A path in that directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// `xport` with these arguments; the error is RRDtool's text.
    pub fn xport(&mut self, args: &[&str]) -> Result<Exported, String> {
        self.table("xport", args)
    }

    /// `fetch` with these arguments: all rows; there is no `end`.
    pub fn fetch(&mut self, args: &[&str]) -> Result<Exported, String> {
        self.table("fetch", args)
    }

    fn table(&mut self, verb: &str, args: &[&str]) -> Result<Exported, String> {
        let answer = self.run(verb, args)?;
        let broken = || format!("{verb} answers {answer:?}");
        let mut fields = answer.split('\t');
        let mut number = || fields.next().and_then(|text| text.parse::<i64>().ok()).ok_or_else(broken);
        let (start, end, step) = (number()?, number()?, number()?);
        let value = |text: &str| match text {
            "U" => Ok(f64::NAN),
            bits => u64::from_str_radix(bits, 16).map(f64::from_bits).map_err(|_| broken()),
        };
        let rows = fields.map(|row| row.split(',').map(value).collect()).collect::<Result<_, String>>()?;
        Ok(Exported { start, end, step: step.unsigned_abs(), rows })
    }

    /// `graph /dev/null` with these arguments: the output of its PRINTs; the error is RRDtool's text.
    pub fn prints(&mut self, args: &[&str]) -> Result<Vec<String>, String> {
        Ok(self.run("graph", args)?.split('\t').map(str::to_string).collect())
    }

    fn run(&mut self, verb: &str, args: &[&str]) -> Result<String, String> {
        let fail = |error: io::Error| format!("perl pipe: {error}");
        let line = format!("{verb}\t{}\n", args.join("\t"));
        self.input.write_all(line.as_bytes()).and_then(|()| self.input.flush()).map_err(fail)?;
        loop {
            let mut bytes = Vec::new();
            if self.output.read_until(b'\n', &mut bytes).map_err(fail)? == 0 {
                return Err("perl ended".to_string());
            }
            let line = String::from_utf8_lossy(&bytes);
            let line = line.trim_end_matches('\n');
            if let Some(text) = line.strip_prefix("=O") {
                return Ok(text.to_string());
            }
            if let Some(error) = line.strip_prefix("=E") {
                return Err(error.to_string());
            }
        }
    }
}
