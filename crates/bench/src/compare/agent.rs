//! An agent on its own, beside a store: what it takes to poll ten thousand targets for it.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::Bench;
use super::collector::Collector;
use super::farm::{AGENTS, Farm, INTERFACES, index};
use crate::Outcome;
use crate::builds::Program;
use crate::client::Client;
use crate::daemon::Daemon;
use crate::figures::Runs;
use crate::usage::ProcessUsage;

/// What is polled.
pub const TARGETS: usize = 10_000;
/// Seconds between rounds.
const INTERVAL: u64 = 10;
/// Rounds before memory is looked at: RRDs are made and sizes learnt.
const FIRST_ROUNDS: u32 = 3;
/// The longest wait for readings in the store.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Who polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poller {
    /// `roundel agent`, which sends to a store.
    Agent,
    /// The store's daemon itself.
    Daemon,
}

/// An agent's process; killed when it is dropped.
struct AgentProcess(Child);

impl Drop for AgentProcess {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The resident memory of the poller after some rounds, in bytes, once a round.
pub fn measure(bench: &Bench, program: &Program, farm: &Farm, poller: Poller) -> Outcome<Runs> {
    let title = program.title();
    let place = bench.place(&format!("agent-{title}-{poller:?}"));
    let mut daemon = Daemon::new(program, &place)?;
    let config = place.join("mrtg.cfg");
    let base = daemon.directory().join("rrd").display().to_string();
    fs::write(&config, mrtg_config(farm, &base)?)?;
    let mrtg = format!("[[mrtg]]\nconfig = \"{}\"\n", config.display());
    let mut agent = None;
    let collector = match poller {
        Poller::Daemon => Collector::start_ours(daemon, &mrtg)?,
        Poller::Agent => {
            let store = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
            daemon.configure(&format!("[agents]\nlisten = [\"{store}\"]\n"));
            daemon.start()?;
            let settings = place.join("agent.toml");
            let spool = place.join("spool");
            fs::write(
                &settings,
                format!(
                    "base = \"{base}\"\n[agent]\nname = \"bench\"\nstore = \"{store}\"\nspool = \"{}\"\n{mrtg}",
                    spool.display()
                ),
            )?;
            let log = File::create(place.join("agent.log"))?;
            let mut command = Command::new(&program.roundel);
            command.args(["agent", "--config"]).arg(settings).stdin(Stdio::null());
            command.stdout(log.try_clone()?).stderr(log);
            agent = Some(AgentProcess(command.spawn()?));
            Collector::Ours(daemon)
        }
    };
    let Collector::Ours(daemon) = &collector else { return Err("our daemon is not running".into()) };
    wait_for_last(daemon)?;
    thread::sleep(Duration::from_secs(INTERVAL) * FIRST_ROUNDS);
    let pid = match &agent {
        Some(agent) => agent.0.id(),
        None => daemon.pid()?,
    };
    let mut memory = Runs::default();
    for round in 1..=bench.pick(3, 5) {
        bench.say(&format!("Mrtg: {title}, memory of {poller:?}, round {round}"));
        thread::sleep(Duration::from_secs(INTERVAL));
        memory.push(ProcessUsage::of(pid)?.rss_bytes as f64);
    }
    drop(agent);
    drop(collector);
    fs::remove_dir_all(place).ok();
    Ok(memory)
}

/// Targets with titles and heads of pages, as cfgmaker writes them: first each interface of the farm, then other objects of theirs.
fn mrtg_config(farm: &Farm, directory: &str) -> Outcome<String> {
    let mut text = format!(
        "LogFormat: rrdtool\nWorkDir: {directory}\nInterval: 0:{INTERVAL}\nMaxBytes[_]: 1250000000\n"
    );
    let ports: Vec<u16> = farm.ports().collect();
    for number in 0..TARGETS {
        let (round, rest) = (number / (AGENTS * INTERFACES), number % (AGENTS * INTERFACES));
        let (agent, index) = (rest / INTERFACES, index(rest % INTERFACES));
        let [input, output] = [6, 10].map(|column| format!("1.3.6.1.2.1.31.1.1.1.{column}.{index}"));
        let objects = match round {
            0 => index.to_string(),
            1 => format!("-{index}"),
            2 => format!("{input}&{input}"),
            _ => format!("{output}&{output}"),
        };
        let name = name(number);
        writeln!(text, "Target[{name}]: {objects}:public@127.0.0.1:{}::::2", ports[agent])?;
        writeln!(text, "SetEnv[{name}]: MRTG_INT_IP=\"\" MRTG_INT_DESCR=\"port {index}\"")?;
        writeln!(text, "Title[{name}]: Traffic Analysis for {index} -- router{agent}")?;
        writeln!(
            text,
            "PageTop[{name}]: <h1>Traffic Analysis for {index} -- router{agent}</h1>\n  <table><tr><td>System:</td><td>router{agent}</td>\
             </tr>\n  <tr><td>Description:</td><td>port {index}</td></tr></table>"
        )?;
    }
    Ok(text)
}

fn name(number: usize) -> String {
    format!("router{}_{}", number / INTERFACES, index(number % INTERFACES))
}

/// Waits until the first and the last target have readings in the store.
fn wait_for_last(daemon: &Daemon) -> Outcome<()> {
    let mut client = Client::connect(&daemon.address())?;
    let start = Instant::now();
    for number in [0, TARGETS - 1] {
        while client.ask(&format!("LAST {}.rrd", name(number))).is_err() {
            if start.elapsed() > START_LIMIT {
                return Err(format!("{} has no readings after {START_LIMIT:?}", name(number)).into());
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
    Ok(())
}
