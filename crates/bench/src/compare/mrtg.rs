//! An mrtg.cfg of many targets at agents that are Debian's snmpd: rounds of Debian's MRTG, which writes files, and ours.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use procfs::process::Process;

use super::Bench;
use super::collector::{self, Collector};
use crate::Outcome;
use crate::builds::Program;
use crate::client::Client;
use crate::daemon::Daemon;
use crate::figures::{Goal, Runs, Unit};
use crate::report::Row;
use crate::usage::{busy_time, wait_until_idle};

const AGENTS: usize = 32;
const INTERFACES: usize = 99;
const TARGETS: usize = AGENTS * INTERFACES;
/// Seconds between our rounds, which begin at its multiples by the clock.
const INTERVAL: u64 = 10;
/// The processes that MRTG asks agents with.
const FORKS: usize = 4;
/// The longest wait for an agent's first answer.
const START_LIMIT: Duration = Duration::from_secs(30);
/// A GET of sysUpTime.0 of version 2c, community public.
const GET_UPTIME: &[u8] = b"\x30\x26\x02\x01\x01\x04\x06public\xa0\x19\x02\x01\x01\x02\x01\0\x02\x01\0\x30\x0e\x30\x0c\x06\x08\x2b\x06\x01\x02\x01\x01\x03\0\x05\0";

/// What one poller gave.
#[derive(Default)]
struct Measured {
    rate: Runs,
    cpu: Runs,
}

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Outcome<()> {
    let place = bench.place("mrtg");
    fs::create_dir_all(&place)?;
    bench.say(&format!("Mrtg: starting {AGENTS} snmpd"));
    let agents = (0..AGENTS).map(|number| Agent::start(&place, number)).collect::<Outcome<Vec<_>>>()?;
    let [peer, ours] = collector::sides(bench);
    let peer = match peer {
        None => measure_mrtg(bench, &place, &agents)?,
        Some(program) => measure_ours(bench, &program, &agents)?,
    };
    let ours = match ours {
        None => Measured::default(),
        Some(program) => measure_ours(bench, &program, &agents)?,
    };
    let mut row = |figure: &str, peer, ours, unit, goal| {
        let figure = format!("mrtg.cfg of {TARGETS} targets, {AGENTS} snmpd: {figure}");
        bench.report.row(Row { figure, peer, ours, unit, goal, aim: Goal::None });
    };
    row("targets/s in a round", peer.rate, ours.rate, Unit::PerSecond, Goal::Times(50.0));
    row("CPU of the poller per target", peer.cpu, ours.cpu, Unit::Seconds, Goal::Part(150.0));
    bench.report.note(
        "Collectors",
        format!(
            "mrtg.cfg: ifHCInOctets and ifHCOutOctets, {INTERFACES} interfaces an agent, all on this machine. MRTG runs once a round, with \
             Forks: {FORKS}, and writes files (to the page cache); ours polls every {INTERVAL} s, and a round is from the clock's multiple \
             until the daemon rests, its values in the log."
        ),
    );
    drop(agents);
    fs::remove_dir_all(place).ok();
    Ok(())
}

/// A snmpd, killed when it is dropped.
struct Agent {
    child: Child,
    port: u16,
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Agent {
    fn start(place: &Path, number: usize) -> Outcome<Self> {
        let directory = place.join(format!("agent-{number}"));
        fs::create_dir_all(&directory)?;
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let port = UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port();
        let config = directory.join("snmpd.conf");
        fs::write(&config, agent_config(port, number)?)?;
        let log = File::create(directory.join("log"))?;
        let mut command = Command::new("/usr/sbin/snmpd");
        command.args(["-f", "-r", "-Lo", "-C", "-c"]).arg(&config).arg("-p").arg(directory.join("pid"));
        command.env("SNMP_PERSISTENT_DIR", &directory).env("MIBS", "");
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().map_err(|error| format!("cannot start snmpd: {error}"))?;
        let agent = Agent { child, port };
        socket.set_read_timeout(Some(Duration::from_millis(100)))?;
        let start = Instant::now();
        loop {
            socket.send_to(GET_UPTIME, ("127.0.0.1", port))?;
            if socket.recv(&mut [0; 512]).is_ok() {
                return Ok(agent);
            }
            if start.elapsed() > START_LIMIT {
                return Err(format!("snmpd does not answer on port {port}").into());
            }
        }
    }
}

/// Interfaces whose counters stand still, beside those of this machine.
fn agent_config(port: u16, agent: usize) -> Outcome<String> {
    let mut text = format!("agentaddress udp:127.0.0.1:{port}\nrocommunity public 127.0.0.1\n");
    for interface in 0..INTERFACES {
        let index = index(interface);
        let column = |table: &str, column: usize| format!("override .1.3.6.1.2.1.{table}.{column}.{index}");
        let octets = (agent * INTERFACES + interface) * 1_000_003;
        writeln!(text, "{} integer {index}", column("2.2.1", 1))?;
        writeln!(text, "{} octet_str \"port {interface}\"", column("2.2.1", 2))?;
        writeln!(text, "{} octet_str \"p{interface}\"", column("31.1.1.1", 1))?;
        writeln!(text, "{} counter {octets}", column("31.1.1.1", 6))?;
        writeln!(text, "{} counter {}", column("31.1.1.1", 10), octets / 3)?;
    }
    Ok(text)
}

/// Not those of this machine.
fn index(interface: usize) -> usize {
    1_001 + interface
}

/// The file, with `head` in front.
fn mrtg_config(agents: &[Agent], head: &str) -> Outcome<String> {
    let mut text = format!("LogFormat: rrdtool\n{head}\nMaxBytes[_]: 1250000000\nTitle[_]: t\n");
    for (number, agent) in agents.iter().enumerate() {
        for interface in 0..INTERFACES {
            let (index, port) = (index(interface), agent.port);
            writeln!(text, "Target[a{number}_{interface}]: {index}:public@127.0.0.1:{port}::::2")?;
        }
    }
    Ok(text)
}

fn measure_mrtg(bench: &Bench, place: &Path, agents: &[Agent]) -> Outcome<Measured> {
    let files = place.join("files");
    fs::create_dir_all(&files)?;
    let config = place.join("mrtg.cfg");
    let head = format!("WorkDir: {}\nInterval: 5\nForks: {FORKS}", files.display());
    fs::write(&config, mrtg_config(agents, &head)?)?;
    let log = File::create(place.join("mrtg.log"))?;
    let text_of_log = || fs::read_to_string(place.join("mrtg.log")).unwrap_or_default();
    let mut measured = Measured::default();
    let count = bench.pick(3, 5);
    // The first run makes the files.
    for run in 0..=count {
        bench.say(&format!("Mrtg: MRTG, run {run} of {count}"));
        let (before, start) = (cpu_of_ended_children()?, Instant::now());
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

fn measure_ours(bench: &Bench, program: &Program, agents: &[Agent]) -> Outcome<Measured> {
    let title = program.title();
    let place = bench.place(&format!("mrtg-{title}"));
    let daemon = Daemon::new(program, &place)?;
    let config = place.join("mrtg.cfg");
    let head = format!("WorkDir: {}\nInterval: 0:{INTERVAL}", daemon.directory().join("rrd").display());
    fs::write(&config, mrtg_config(agents, &head)?)?;
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
        let before = busy_time(pid)?;
        let start = wait_for_round();
        let took = wait_until_idle(pid)?.duration_since(start);
        measured.rate.push(TARGETS as f64 / took.as_secs_f64());
        measured.cpu.push((busy_time(pid)? - before).as_secs_f64() / TARGETS as f64);
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
