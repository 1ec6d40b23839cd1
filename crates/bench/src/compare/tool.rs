//! The command line on `.rrd` files without a daemon, beside Debian's rrdtool and librrd: in process, one
//! process per command, and through the pipe. Both sides alternate, on files that librrd created.

mod library;
pub(super) mod pipe;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::Bench;
use crate::Outcome;
use crate::builds::Build;
use crate::figures::{Goal, Runs, Unit};
use crate::report::Row;
use crate::volume::Volume;
use crate::workload::{Shape, Workload};
use pipe::Pipe;

/// Room for the files that are created and updated.
const VOLUME_BYTES: u64 = 4 << 30;
/// Files of the pipe's and the processes' commands.
const FILES: usize = 10;
/// Values in each: more than the rows of the finest archive.
const VALUES: i64 = 1_300;
/// Last update of the files when they are made; a multiple of the step.
const START: i64 = 1_700_000_000;
/// Debian's program.
pub(super) const DEBIAN: &str = "/usr/bin/rrdtool";

/// One program called rrdtool, in a directory with its own copies of the files.
pub(super) struct Side {
    /// The program.
    pub program: PathBuf,
    /// Where it runs.
    pub directory: PathBuf,
}

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Outcome<()> {
    let volume = Volume::isolated(&bench.place("tool"), VOLUME_BYTES)?;
    library::run(bench, volume.path())?;
    let place = volume.path();
    let [theirs, ours] = sides(bench, place)?;
    fill(&theirs.directory)?;
    fs::create_dir(&ours.directory)?;
    for entry in fs::read_dir(&theirs.directory)? {
        let entry = entry?;
        fs::copy(entry.path(), ours.directory.join(entry.file_name()))?;
    }
    processes(bench, &theirs, &ours)?;
    texts(bench, &theirs, &ours)?;
    pipe_updates(bench, &theirs, &ours)?;
    let text = format!(
        "{}W1 files of librrd, page cache warm, both sides in turn. One process: wall time of starting it until it \
         has ended, 20 a run. Pipe: one `rrdtool -` session, wall time from writing the commands until the last OK. \
         Outputs of both are compared before they are timed.",
        if volume.is_isolated() { "On an ext4 file system of its own. " } else { "" }
    );
    bench.report.note("Command line", text);
    Ok(())
}

/// Debian's program or the other build's, and ours, each with a directory below `place`.
pub(super) fn sides(bench: &Bench, place: &Path) -> Outcome<[Side; 2]> {
    let linked = |name: &str, build: &Build| -> Outcome<PathBuf> {
        let directory = place.join(format!("{name}-program"));
        fs::create_dir_all(&directory)?;
        let program = directory.join("rrdtool");
        symlink(build.rrdtool(), &program)?;
        Ok(program)
    };
    let theirs = match &bench.before {
        Some(before) => linked("theirs", before)?,
        None => PathBuf::from(DEBIAN),
    };
    let programs = [("theirs", theirs), ("ours", linked("ours", &bench.ours)?)];
    Ok(programs.map(|(name, program)| Side { program, directory: place.join(name) }))
}

/// The middle of the finest archive, as `--start` and `--end` give 1,200 rows of it.
fn range() -> String {
    let end = START + VALUES * 10;
    format!("--start {} --end {}", end - 12_000, end - 1)
}

/// Makes the files with Debian's rrdtool, with a dump of the first.
fn fill(directory: &Path) -> Outcome<()> {
    fs::create_dir_all(directory)?;
    let words = Workload::usual(Shape::W1).create_words();
    let mut pipe = Pipe::start(Path::new(DEBIAN), directory)?;
    for file in 0..FILES {
        let mut commands = format!("create {file}.rrd --start {START} {words}\n");
        for piece in 0..VALUES / 100 {
            commands.push_str(&format!("update {file}.rrd"));
            for value in piece * 100 + 1..=piece * 100 + 100 {
                let reading = (value * 37 + file as i64) % 1_000;
                commands.push_str(&format!(" {}:{reading}.{:02}", START + value * 10, value % 100));
            }
            commands.push('\n');
        }
        pipe.run(commands.as_bytes(), VALUES as usize / 100 + 1)?;
    }
    let dump = pipe.run(b"dump 0.rrd 0.xml\n", 1);
    dump.map(|_| ())
}

/// `rrdtool VERB` as one process.
fn processes(bench: &mut Bench, theirs: &Side, ours: &Side) -> Outcome<()> {
    bench.say("Tool: processes");
    let fetch = format!("fetch 0.rrd AVERAGE {}", range());
    let mut time = START + VALUES * 10;
    for verb in ["update", "fetch", "info"] {
        let (mut peer, mut our) = (Runs::default(), Runs::default());
        for run in 0..bench.pick(12, 40) {
            let commands: Vec<String> = (0..20)
                .map(|call| match verb {
                    "update" => format!("update 0.rrd {}:{call}", time + 10 * (call + 1)),
                    "fetch" => fetch.clone(),
                    _ => "info 0.rrd".to_string(),
                })
                .collect();
            time += 10 * 20;
            let (theirs, ours) = (theirs.calls(&commands)?, ours.calls(&commands)?);
            // The first brings programs and files into the page cache.
            if run > 0 {
                peer.push(theirs);
                our.push(ours);
            }
        }
        row(bench, &format!("`rrdtool {verb}` as one process"), peer, our, 3.0);
    }
    Ok(())
}

/// Commands that make or read much text, through the pipe.
fn texts(bench: &mut Bench, theirs: &Side, ours: &Side) -> Outcome<()> {
    let xport: String = (0..FILES)
        .map(|file| format!(" DEF:a{file}={file}.rrd:ds0:AVERAGE XPORT:a{file}:file{file}"))
        .collect();
    let cases = [
        ("`fetch` of 1,200 rows to text, in a pipe", format!("fetch 1.rrd AVERAGE {}", range()), 5.0),
        ("`xport` of 10 DEFs of 1,200 rows, in a pipe", format!("xport {} -m 2000{xport}", range()), 5.0),
        ("`dump` of a 149 kB RRD, in a pipe", "dump 1.rrd".to_string(), 5.0),
        ("`restore` of a 149 kB RRD, in a pipe", "restore 0.xml restored.rrd -f".to_string(), 3.0),
    ];
    for (figure, command, goal) in cases {
        bench.say(&format!("Tool: {figure}"));
        let mut pipes = [theirs.pipe()?, ours.pipe()?];
        let line = format!("{command}\n");
        let texts = pipes.each_mut().map(|pipe| pipe.text(line.as_bytes()));
        let [theirs, ours] = texts;
        if theirs? != ours? {
            bench.report.omit("Command line", format!("{figure}: the outputs differ, so it was not timed."));
            continue;
        }
        let commands = line.repeat(20);
        let (mut peer, mut our) = (Runs::default(), Runs::default());
        let [their_pipe, our_pipe] = &mut pipes;
        for _ in 0..bench.pick(9, 25) {
            peer.push(their_pipe.run(commands.as_bytes(), 20)?.as_secs_f64() / 20.0);
            our.push(our_pipe.run(commands.as_bytes(), 20)?.as_secs_f64() / 20.0);
        }
        row(bench, figure, peer, our, goal);
    }
    Ok(())
}

/// Updates of one value each through the pipe.
fn pipe_updates(bench: &mut Bench, theirs: &Side, ours: &Side) -> Outcome<()> {
    bench.say("Tool: updates in a pipe");
    let mut pipes = [theirs.pipe()?, ours.pipe()?];
    let (mut peer, mut our) = (Runs::default(), Runs::default());
    let mut time = START + VALUES * 10 + 1_000_000;
    for _ in 0..bench.pick(9, 25) {
        let mut commands = String::new();
        for _ in 0..200 {
            time += 10;
            (0..FILES)
                .for_each(|file| commands.push_str(&format!("update {file}.rrd {time}:{}.5\n", time % 977)));
        }
        let count = 200 * FILES;
        let [theirs, ours] = &mut pipes;
        peer.push(count as f64 / theirs.run(commands.as_bytes(), count)?.as_secs_f64());
        our.push(count as f64 / ours.run(commands.as_bytes(), count)?.as_secs_f64());
    }
    let figure = "`rrdtool -`, updates/s of one value each".to_string();
    let (unit, goal) = (Unit::PerSecond, Goal::Times(2.5));
    bench.report.row(Row { figure, peer, ours: our, unit, goal, aim: Goal::None });
    Ok(())
}

/// A row of times, with the goal that ours is one n-th of the peer's.
fn row(bench: &mut Bench, figure: &str, peer: Runs, ours: Runs, goal: f64) {
    let figure = figure.to_string();
    bench.report.row(Row {
        figure,
        peer,
        ours,
        unit: Unit::Seconds,
        goal: Goal::Part(goal),
        aim: Goal::None,
    });
}

impl Side {
    /// Seconds of one process, the mean of these commands.
    pub fn calls(&self, commands: &[String]) -> Outcome<f64> {
        let start = Instant::now();
        for command in commands {
            let status = Command::new(&self.program)
                .args(command.split(' '))
                .current_dir(&self.directory)
                .env("LC_ALL", "C")
                .env_remove("RRDCACHED_ADDRESS")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .status()?;
            if !status.success() {
                return Err(format!("{:?} {command}: {status}", self.program).into());
            }
        }
        Ok(start.elapsed().as_secs_f64() / commands.len() as f64)
    }

    /// A session.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn pipe(&self) -> Outcome<Pipe> {
        Pipe::start(&self.program, &self.directory)
    }
}
