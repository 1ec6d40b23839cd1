//! The C library: the same C program on Debian's librrd and on ours, on real files and through a daemon.

mod collectd;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Bench;
use super::subject::Subject;
use crate::Outcome;
use crate::builds::{Build, Program};
use crate::daemon::{Daemon, Kind};
use crate::figures::{Goal, Runs, Unit};
use crate::report::Row;
use crate::volume::Volume;
use crate::workload::{Shape, Workload};

/// Room for the files of both sides.
const VOLUME_BYTES: u64 = 8 << 30;
/// RRDs of each side, but for collectd's.
const FILES: usize = 1_000;
/// Values of each before fetches are timed: more than the rows of the finest archive.
const VALUES: u64 = 1_300;
/// Ranges of a fetch: title and seconds.
const RANGES: [(&str, i64); 3] = [("1 hour", 3_600), ("1 day", 86_400), ("1 month", 2_592_000)];

/// One of the two libraries, and a program that calls it.
pub struct Library {
    program: PathBuf,
    /// Where `librrd.so.8` is; `None` = Debian's.
    directory: Option<PathBuf>,
}

/// The cost of a run of the program.
#[derive(Clone, Copy)]
struct Took {
    wall: f64,
    calls: f64,
}

/// Arguments of the program in `calls.c`.
struct Calls<'a> {
    call: &'a str,
    directory: &'a Path,
    threads: usize,
    rounds: u64,
    /// First time, or the start of a fetch.
    first: i64,
    /// Step, or the end of a fetch.
    step: i64,
    values: usize,
    /// The daemon, where there is one.
    address: Option<&'a str>,
}

impl Library {
    /// Sets up the environment of a program that uses the library.
    fn dress<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.env_remove("RRDCACHED_ADDRESS").env("LC_ALL", "C").env("TZ", "UTC");
        match &self.directory {
            Some(directory) => command.env("LD_LIBRARY_PATH", directory),
            None => command.env_remove("LD_LIBRARY_PATH"),
        }
    }

    fn run(&self, calls: &Calls<'_>) -> Outcome<Took> {
        let mut command = Command::new(&self.program);
        self.dress(&mut command);
        if let Some(address) = calls.address {
            command.env("RRDCACHED_ADDRESS", address);
        }
        let numbers = [FILES as i64, calls.threads as i64, calls.rounds as i64, calls.first, calls.step];
        command.arg(calls.call).arg(calls.directory).args(numbers.map(|number| number.to_string()));
        let output = command.arg(calls.values.to_string()).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [wall, _, calls] if output.status.success() => Ok(Took { wall, calls }),
            _ => Err(format!("{:?}: {}", self.program, String::from_utf8_lossy(&output.stderr)).into()),
        }
    }
}

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Outcome<()> {
    let built = [bench.before.as_ref(), Some(&bench.ours)].map(|build| build.map(Build::library));
    if let Some(missing) = built.iter().flatten().find(|library| !library.exists()) {
        let text = format!("Nothing was measured: {missing:?} is not there (make bench builds it).");
        bench.report.omit("librrd", text);
        return Ok(());
    }
    let volume = Volume::isolated(&bench.place("librrd"), VOLUME_BYTES)?;
    let [theirs, ours] = libraries(volume.path(), &built)?;
    files(bench, volume.path(), &theirs, &ours)?;
    daemons(bench, volume.path(), &theirs, &ours)?;
    collectd::run(bench, volume.path(), &theirs, &ours)?;
    let text = format!(
        "{}One C program on either library (`LD_LIBRARY_PATH`), in turn, {FILES} W1 RRDs for each side; wall time by \
         the call, from the first call to the last in the process. Files: `rrd_update_r` and `rrd_fetch_r` on real \
         files of librrd, page cache warm. Daemon: RRDCACHED_ADDRESS, UNIX sockets; Debian's library by `rrd_update` (its \
         `rrd_update_r` knows no daemon) on rrdcached with a journal, ours by `rrd_update_r` on Roundel. \
         A stored RRD: `rrdc_fetch` of Debian's library from rrdcached, `rrd_fetch_r` of ours behind a placeholder.",
        if volume.is_isolated() { "On an ext4 file system of its own. " } else { "" }
    );
    bench.report.note("librrd", text);
    Ok(())
}

/// Builds the program, and lays our libraries out under their real name; `None` = Debian's.
fn libraries(place: &Path, built: &[Option<PathBuf>; 2]) -> Outcome<[Library; 2]> {
    let (source, program) = (place.join("calls.c"), place.join("calls"));
    fs::write(&source, include_str!("../calls.c"))?;
    let mut cc = Command::new("cc");
    let output = cc.arg("-O2").arg("-o").arg(&program).arg(&source).args(["-lrrd", "-lpthread"]).output()?;
    if !output.status.success() {
        return Err(format!("cc: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let lay_out = |name: &str, built: &Option<PathBuf>| -> Outcome<Library> {
        let directory = built.as_ref().map(|_| place.join(name));
        if let (Some(built), Some(directory)) = (built, &directory) {
            fs::create_dir(directory)?;
            symlink(built, directory.join("librrd.so.8"))?;
        }
        Ok(Library { program: program.clone(), directory })
    };
    Ok([lay_out("lib-theirs", &built[0])?, lay_out("lib-ours", &built[1])?])
}

/// Runs both sides in turn, `runs` times after a warm-up; each gets the number of its run.
fn in_turn(
    runs: i64,
    theirs: impl Fn(i64) -> Outcome<Took>,
    ours: impl Fn(i64) -> Outcome<Took>,
    figure: impl Fn(Took) -> f64,
) -> Outcome<(Runs, Runs)> {
    let (mut peer, mut our) = (Runs::default(), Runs::default());
    for run in 0..=runs {
        let (theirs, ours) = (theirs(run)?, ours(run)?);
        if run > 0 {
            peer.push(figure(theirs));
            our.push(figure(ours));
        }
    }
    Ok((peer, our))
}

fn rate(took: Took) -> f64 {
    took.calls / took.wall
}

fn seconds(took: Took) -> f64 {
    took.wall / took.calls
}

fn row(bench: &mut Bench, figure: &str, (peer, ours): (Runs, Runs), unit: Unit, goal: Goal, aim: Goal) {
    bench.report.row(Row { figure: figure.to_string(), peer, ours, unit, goal, aim });
}

/// Real files.
fn files(bench: &mut Bench, place: &Path, theirs: &Library, ours: &Library) -> Outcome<()> {
    bench.say("librrd: files");
    let workload = Workload::usual(Shape::W1);
    // Both sides work on files that librrd made.
    for side in ["theirs", "ours"] {
        let mut subject = Subject::start(&bench.rrdcached(), &place.join(side), workload, FILES)?;
        subject.create(&bench.progress_of(FILES))?;
        subject.fill(VALUES, 100)?;
        subject.daemon.stop()?;
    }
    let directories = ["theirs", "ours"].map(|side| place.join(side).join("rrd"));
    let mut next = workload.round_seconds(VALUES + 10);
    let runs = bench.pick(5, 15);
    let cases = [
        ("`rrd_update_r` on files, one thread, calls/s", 1, 1, Goal::Times(2.5)),
        ("`rrd_update_r` on files, two threads, calls/s", 2, 1, Goal::Times(8.0)),
        ("`rrd_update_r` on files, 30 values a call, calls/s", 1, 30, Goal::Times(2.0)),
    ];
    for (figure, threads, values, goal) in cases {
        let rounds = bench.pick(3, 10);
        let span = rounds as i64 * values as i64 * 10;
        let side = |library: &Library, directory: &Path, run: i64| {
            let (call, first) = ("update_r", next + run * span);
            library.run(&Calls { call, directory, threads, rounds, first, step: 10, values, address: None })
        };
        let figures = in_turn(
            runs,
            |run| side(theirs, &directories[0], run),
            |run| side(ours, &directories[1], run),
            rate,
        )?;
        next += (runs + 1) * span;
        row(bench, figure, figures, Unit::PerSecond, goal, Goal::None);
    }
    for (title, range) in RANGES {
        let side = |library: &Library, directory: &Path| {
            let (first, step) = (next - range, next - 1);
            let rounds = bench.pick(2, 5);
            let call = "fetch_r";
            library.run(&Calls { call, directory, threads: 1, rounds, first, step, values: 0, address: None })
        };
        let figures =
            in_turn(runs, |_| side(theirs, &directories[0]), |_| side(ours, &directories[1]), seconds)?;
        let figure = format!("`rrd_fetch_r` of a file, {title}, warm");
        row(bench, &figure, figures, Unit::Seconds, Goal::Part(1.0), Goal::Part(2.0));
    }
    for side in ["theirs", "ours"] {
        fs::remove_dir_all(place.join(side))?;
    }
    Ok(())
}

/// The same calls through a daemon.
fn daemons(bench: &mut Bench, place: &Path, theirs: &Library, ours: &Library) -> Outcome<()> {
    bench.say("librrd: daemons");
    let workload = Workload::usual(Shape::W1);
    let start = |program: &Program, name: &str| -> Outcome<Subject> {
        let daemon = Daemon::new(program, &place.join(name))?;
        let mut subject = Subject::on(daemon, workload, FILES)?;
        subject.create(&bench.progress_of(FILES))?;
        subject.fill(VALUES, 100)?;
        Ok(subject)
    };
    let [peer, our] = bench.pair(Kind::Roundel);
    let (peer, our) = (start(&peer, "theirs")?, start(&our, "ours")?);
    // Debian's library has other calls for a daemon.
    let (their_update, their_fetch, has_address) =
        if bench.is_against() { ("update_r", "fetch_r", false) } else { ("update", "rrdc_fetch", true) };
    // Writes now, so that nothing is written while calls are timed.
    let runs = bench.pick(5, 15);
    let mut next = workload.round_seconds(VALUES + 10);
    let cases = [
        ("Updates by the C library through a daemon, one caller, calls/s", 1, Goal::Times(1.5)),
        ("Updates by the C library through a daemon, eight threads, calls/s", 8, Goal::Times(5.0)),
    ];
    for (figure, threads, goal) in cases {
        let rounds = bench.pick(10, 30);
        let side = |library: &Library, subject: &Subject, call: &str, run: i64| {
            let (directory, address) = (subject.daemon.directory().join("rrd"), subject.daemon.address());
            library.run(&Calls {
                call,
                directory: &directory,
                threads,
                rounds,
                first: next + run * rounds as i64 * 10,
                step: 10,
                values: 1,
                address: Some(&address),
            })
        };
        let figures = in_turn(
            runs,
            |run| side(theirs, &peer, their_update, run),
            |run| side(ours, &our, "update_r", run),
            rate,
        )?;
        next += (runs + 1) * rounds as i64 * 10;
        row(bench, figure, figures, Unit::PerSecond, goal, Goal::None);
    }
    for (title, range) in RANGES {
        let side = |library: &Library, subject: &Subject, call: &str, address: bool| {
            let (directory, there) = (subject.daemon.directory().join("rrd"), subject.daemon.address());
            let (first, step, rounds) = (next - range, next - 1, bench.pick(2, 5));
            let (directory, address) = (&directory, address.then_some(&*there));
            library.run(&Calls { call, directory, threads: 1, rounds, first, step, values: 0, address })
        };
        let figures = in_turn(
            runs,
            |_| side(theirs, &peer, their_fetch, has_address),
            |_| side(ours, &our, "fetch_r", false),
            seconds,
        )?;
        let figure = format!("Rows of a stored RRD by the C library, {title}");
        row(bench, &figure, figures, Unit::Seconds, Goal::Part(5.0), Goal::None);
    }
    Ok(())
}
