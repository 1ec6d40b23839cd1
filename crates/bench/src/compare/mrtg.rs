//! An mrtg.cfg of many targets at agents that are Debian's snmpd: rounds of Debian's MRTG, which writes files, and ours.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use procfs::process::Process;

use super::Bench;
use super::agent::{self, Poller};
use super::collector::{self, Collector};
use super::farm::{self, AGENTS, Farm, INTERFACES, index};
use super::gosnmp::{Gosnmp, Request};
use crate::Outcome;
use crate::builds::Program;
use crate::client::Client;
use crate::daemon::Daemon;
use crate::figures::{Goal, Runs, Unit};
use crate::report::Row;
use crate::usage::{busy_time, busy_time_of_threads, wait_until_idle};

/// One an interface.
const TARGETS: usize = farm::ALL_INTERFACES;
/// Seconds between our rounds, which begin at its multiples by the clock.
const INTERVAL: u64 = 10;
/// The processes that MRTG asks agents with.
const FORKS: usize = 4;
/// The threads of a daemon that poll, by the first bytes of their names.
const POLLING_THREADS: &str = "tokio";

/// What one poller gave.
#[derive(Default)]
struct Measured {
    rate: Runs,
    cpu: Runs,
    /// Of that, CPU of the threads that poll; those that store are others.
    polling_cpu: Runs,
    /// CPU of all agents per target.
    agents_cpu: Runs,
    /// How many targets a second the agents answered to [`Farm::answer_all`], in the same minute.
    limit: Runs,
}

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Outcome<()> {
    let place = bench.place("mrtg");
    fs::create_dir_all(&place)?;
    bench.say(&format!("Mrtg: starting {AGENTS} snmpd"));
    let farm = Farm::start(&place)?;
    let [peer, ours] = collector::sides(bench);
    let peer = match peer {
        None => measure_mrtg(bench, &place, &farm)?,
        Some(program) => measure_ours(bench, &program, &farm)?,
    };
    let ours = match ours {
        None => Measured::default(),
        Some(program) => measure_ours(bench, &program, &farm)?,
    };
    let figure = |of: &str| format!("mrtg.cfg of {TARGETS} targets, {AGENTS} snmpd: {of}");
    let mut row = |of: &str, peer: Runs, ours: &Runs, unit, [goal, aim]: [Goal; 2]| {
        bench.report.row(Row { figure: figure(of), peer, ours: ours.clone(), unit, goal, aim });
    };
    row("targets/s in a round", peer.rate, &ours.rate, Unit::PerSecond, [Goal::Times(50.0), Goal::None]);
    let limit = ours.limit.clone();
    row("beside what the agents answer at most", limit, &ours.rate, Unit::PerSecond, [Goal::None; 2]);
    row("CPU of the poller per target", peer.cpu, &ours.cpu, Unit::Seconds, [Goal::Part(150.0), Goal::None]);
    bench.report.note(
        "Collectors",
        format!(
            "mrtg.cfg: ifHCInOctets and ifHCOutOctets, {INTERFACES} interfaces an agent, all on this machine. MRTG runs once a round, with \
             Forks: {FORKS}, and writes files (to the page cache); ours polls every {INTERVAL} s, and a round is from the clock's multiple \
             until the daemon rests, its values in the log. The agents' most: a sender that does nothing else keeps one or two packed \
             requests at each, whichever is faster, between our rounds. CPU of all snmpd per target: {} while MRTG asks, {} while we do.",
            peer.agents_cpu.text(Unit::Seconds),
            ours.agents_cpu.text(Unit::Seconds)
        ),
    );
    if !bench.is_against() {
        compare_with_gosnmp(bench, &place, &farm, &ours)?;
    }
    measure_memory(bench, &farm)?;
    drop(farm);
    fs::remove_dir_all(place).ok();
    Ok(())
}

/// Our rounds, which store what they read, beside passes of gosnmp, which does not.
fn compare_with_gosnmp(bench: &mut Bench, place: &Path, farm: &Farm, ours: &Measured) -> Outcome<()> {
    let gosnmp = match Gosnmp::build(place) {
        Ok(gosnmp) => gosnmp,
        Err(error) => {
            bench.report.note("Collectors", format!("gosnmp was not measured: {error}"));
            return Ok(());
        }
    };
    for (request, title) in [(Request::Bulk, "GETBULK"), (Request::Get, "packed GETs")] {
        bench.say(&format!("Mrtg: gosnmp, {title}"));
        let peer = gosnmp.measure(farm, request, bench.pick(5, 9))?;
        let figure =
            |of: &str| format!("{TARGETS} interfaces, {AGENTS} snmpd: {of}, gosnmp's {title} not stored");
        let mut row = |of: &str, peer, ours: &Runs, unit, [goal, aim]: [Goal; 2]| {
            bench.report.row(Row { figure: figure(of), peer, ours: ours.clone(), unit, goal, aim });
        };
        row("interfaces/s", peer.rate, &ours.rate, Unit::PerSecond, [Goal::Times(1.0), Goal::None]);
        let goals = [Goal::Part(3.0), Goal::Part(10.0)];
        row("CPU per interface, ours without storing", peer.cpu, &ours.polling_cpu, Unit::Seconds, goals);
    }
    Ok(())
}

/// What an agent takes in memory for a file of many targets, and what the store's daemon takes that polls them itself.
fn measure_memory(bench: &mut Bench, farm: &Farm) -> Outcome<()> {
    let [peer, ours] = collector::sides(bench);
    let bounds = [Goal::AtMost(50e6, Unit::Bytes), Goal::AtMost(20e6, Unit::Bytes)];
    let who = [("an agent", Poller::Agent, bounds), ("the daemon", Poller::Daemon, [Goal::None; 2])];
    for (title, poller, [goal, aim]) in who {
        let of = |program: &Option<Program>| match program {
            Some(program) => agent::measure(bench, program, farm, poller),
            None => Ok(Runs::default()),
        };
        let (peer, ours) = (of(&peer)?, of(&ours)?);
        let figure =
            format!("mrtg.cfg of {} targets: resident memory of {title} that polls it", agent::TARGETS);
        bench.report.row(Row { figure, peer, ours, unit: Unit::Bytes, goal, aim });
    }
    Ok(())
}

/// The file, with `head` in front.
fn mrtg_config(farm: &Farm, head: &str) -> Outcome<String> {
    let mut text = format!("LogFormat: rrdtool\n{head}\nMaxBytes[_]: 1250000000\nTitle[_]: t\n");
    for (number, port) in farm.ports().enumerate() {
        for interface in 0..INTERFACES {
            let index = index(interface);
            writeln!(text, "Target[a{number}_{interface}]: {index}:public@127.0.0.1:{port}::::2")?;
        }
    }
    Ok(text)
}

fn measure_mrtg(bench: &Bench, place: &Path, farm: &Farm) -> Outcome<Measured> {
    let files = place.join("files");
    fs::create_dir_all(&files)?;
    let config = place.join("mrtg.cfg");
    let head = format!("WorkDir: {}\nInterval: 5\nForks: {FORKS}", files.display());
    fs::write(&config, mrtg_config(farm, &head)?)?;
    let log = File::create(place.join("mrtg.log"))?;
    let text_of_log = || fs::read_to_string(place.join("mrtg.log")).unwrap_or_default();
    let mut measured = Measured::default();
    let count = bench.pick(3, 5);
    // The first run makes the files.
    for run in 0..=count {
        bench.say(&format!("Mrtg: MRTG, run {run} of {count}"));
        let (before, agents_before, start) = (cpu_of_ended_children()?, farm.busy_time()?, Instant::now());
        let mut command = Command::new("/usr/bin/mrtg");
        command.arg(&config).env("LANG", "C").env("LC_ALL", "C");
        let status =
            command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?).status()?;
        let took = start.elapsed();
        if !status.success() {
            return Err(format!("mrtg ended with {status}: {}", text_of_log()).into());
        }
        if run > 0 {
            measured.rate.push(TARGETS as f64 / took.as_secs_f64());
            measured.cpu.push((cpu_of_ended_children()? - before).as_secs_f64() / TARGETS as f64);
            measured.agents_cpu.push((farm.busy_time()? - agents_before).as_secs_f64() / TARGETS as f64);
        }
        // RRDtool refuses a second reading in the same second.
        thread::sleep(Duration::from_secs(1));
    }
    let made = fs::read_dir(&files)?
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "rrd"));
    match made.count() {
        TARGETS => Ok(measured),
        other => Err(format!(
            "MRTG has {other} RRDs of {TARGETS}: {}",
            fs::read_to_string(place.join("mrtg.log"))?
        )
        .into()),
    }
}

/// CPU time of this process's children that have ended, and theirs.
fn cpu_of_ended_children() -> Outcome<Duration> {
    let stat = Process::myself()?.stat()?;
    Ok(Duration::from_secs_f64((stat.cutime + stat.cstime) as f64 / procfs::ticks_per_second() as f64))
}

fn measure_ours(bench: &Bench, program: &Program, farm: &Farm) -> Outcome<Measured> {
    let title = program.title();
    let place = bench.place(&format!("mrtg-{title}"));
    let daemon = Daemon::new(program, &place)?;
    let config = place.join("mrtg.cfg");
    let head = format!("WorkDir: {}\nInterval: 0:{INTERVAL}", daemon.directory().join("rrd").display());
    fs::write(&config, mrtg_config(farm, &head)?)?;
    let collector = Collector::start_ours(daemon, &format!("[[mrtg]]\nconfig = \"{}\"\n", config.display()))?;
    let pid = collector.pid()?;
    // The first rounds make the RRDs and learn sizes.
    for round in 0..3 {
        bench.say(&format!("Mrtg: {title}, first round {}", round + 1));
        wait_for_round();
        wait_until_idle(pid)?;
    }
    let mut measured = Measured::default();
    let count = bench.pick(5, 9);
    for round in 1..=count {
        bench.say(&format!("Mrtg: {title}, round {round} of {count}"));
        let fastest = farm.answer_all(1)?.min(farm.answer_all(2)?);
        measured.limit.push(TARGETS as f64 / fastest.as_secs_f64());
        let (before, agents_before) = (busy_time(pid)?, farm.busy_time()?);
        let polling_before = busy_time_of_threads(pid, POLLING_THREADS)?;
        let start = wait_for_round();
        let took = wait_until_idle(pid)?.duration_since(start);
        measured.rate.push(TARGETS as f64 / took.as_secs_f64());
        measured.cpu.push((busy_time(pid)? - before).as_secs_f64() / TARGETS as f64);
        let polling = busy_time_of_threads(pid, POLLING_THREADS)? - polling_before;
        measured.polling_cpu.push(polling.as_secs_f64() / TARGETS as f64);
        measured.agents_cpu.push((farm.busy_time()? - agents_before).as_secs_f64() / TARGETS as f64);
    }
    if let Collector::Ours(daemon) = &collector {
        check_stored(daemon)?;
    }
    drop(collector);
    fs::remove_dir_all(place).ok();
    Ok(measured)
}

/// Sleeps until the next multiple of the interval, and returns it.
fn wait_for_round() -> Instant {
    let interval = Duration::from_secs(INTERVAL);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let past = Duration::from_nanos((since.as_nanos() % interval.as_nanos()) as u64);
    let start = Instant::now() + (interval - past);
    thread::sleep(interval - past);
    start
}

/// Whether the last round's readings are in the store.
fn check_stored(daemon: &Daemon) -> Outcome<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let mut client = Client::connect(&daemon.address())?;
    for (agent, interface) in [(0, 0), (AGENTS / 2, INTERFACES / 2), (AGENTS - 1, INTERFACES - 1)] {
        let name = format!("a{agent}_{interface}.rrd");
        let last: u64 = client.ask(&format!("LAST {name}"))?.message.trim().parse()?;
        if last + 2 * INTERVAL < now {
            return Err(format!("{name} has nothing since {last}; it is {now}").into());
        }
    }
    Ok(())
}
