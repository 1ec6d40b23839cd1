//! collectd's rrdtool plugin, as Debian has it, on either library: W1 at real-time pace for some minutes.
//!
//! The values come by its unixsock plugin, 20,500 every ten seconds. Debian's library writes files; ours finds
//! placeholders and hands everything to Roundel, whose CPU and bytes count with collectd's.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{Library, row};
use crate::Outcome;
use crate::client::Client;
use crate::compare::Bench;
use crate::daemon::{Daemon, Kind};
use crate::figures::{Goal, Runs, Unit};
use crate::usage::ProcessUsage;
use crate::workload::Shape;

/// Values of one host, each a file of its own; the last host has the rest.
const TYPES: usize = 70;
/// Seconds between two values of one RRD.
const INTERVAL: Duration = Duration::from_secs(10);
/// Longest wait until collectd listens.
const START_LIMIT: Duration = Duration::from_secs(30);
const COLLECTD: &str = "/usr/sbin/collectd";

/// The cost, all processes together.
struct Used {
    cpu: f64,
    bytes: f64,
}

/// A process that ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Measures both sides, one after the other.
pub fn run(bench: &mut Bench, place: &Path, theirs: &Library, ours: &Library) -> Outcome<()> {
    if !Path::new(COLLECTD).exists() {
        bench.report.omit("librrd", "collectd was not measured: it is not installed.".to_string());
        return Ok(());
    }
    let (workload, count) = bench.workload(Shape::W1);
    let rounds = bench.pick(6, 30);
    let mut measured = Vec::new();
    let pair = bench.pair(Kind::Roundel);
    for (program, library, name) in [(&pair[0], theirs, "theirs"), (&pair[1], ours, "ours")] {
        bench.say(&format!("librrd: collectd, {name}"));
        let place = place.join(format!("collectd-{name}"));
        let mut daemon = None;
        if program.kind == Kind::Roundel {
            let daemon = daemon.insert(Daemon::new(program, &place)?);
            daemon.start()?;
            create(daemon, &workload.create_words(), count)?;
        }
        measured.push(side(bench, &place, library, daemon.as_ref(), rounds, count)?);
    }
    let [peer, our] = &measured[..] else { return Err("two sides expected".into()) };
    let seconds = rounds as u64 * INTERVAL.as_secs();
    let figure =
        |what: &str| format!("collectd, rrdtool plugin, {count} values every 10 s for {seconds} s, {what}");
    let pair = |peer: f64, our: f64| (Runs::one(peer), Runs::one(our));
    row(bench, &figure("CPU of all"), pair(peer.cpu, our.cpu), Unit::Seconds, Goal::Part(3.0), Goal::None);
    row(
        bench,
        &figure("bytes written"),
        pair(peer.bytes, our.bytes),
        Unit::Bytes,
        Goal::Part(30.0),
        Goal::None,
    );
    Ok(())
}

/// Runs collectd for this many rounds. With a daemon the RRDs exist already, with placeholders in the tree; without
/// one the plugin creates the files itself, in a round that does not count.
fn side(
    bench: &Bench,
    place: &Path,
    library: &Library,
    daemon: Option<&Daemon>,
    rounds: usize,
    count: usize,
) -> Outcome<Used> {
    let tree = place.join("rrd");
    fs::create_dir_all(&tree)?;
    let socket = place.join("collectd.sock");
    let configuration = place.join("collectd.conf");
    fs::write(&configuration, configure(place, &tree, &socket))?;
    let mut command = Command::new(COLLECTD);
    library.dress(&mut command).arg("-f").arg("-C").arg(&configuration);
    let log = File::create(place.join("collectd.log"))?;
    let collectd = Running(command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?);
    let mut feed = connect(&socket)?;
    let progress = bench.progress_of(rounds + 1);
    // The first round creates files or finds them.
    round(&mut feed, count)?;
    progress.inc(1);
    settle(&tree, count)?;
    let processes: Vec<u32> = std::iter::once(Ok(collectd.0.id()))
        .chain(daemon.iter().map(|daemon| daemon.pid()))
        .collect::<Outcome<_>>()?;
    let used = || -> Outcome<Used> {
        rustix::fs::syncfs(File::open(&tree)?)?;
        let mut used = Used { cpu: 0.0, bytes: 0.0 };
        for &process in &processes {
            let usage = ProcessUsage::of(process)?;
            used.cpu += usage.cpu.as_secs_f64();
            used.bytes += usage.write_bytes as f64;
        }
        Ok(used)
    };
    let before = used()?;
    for _ in 0..rounds {
        let start = Instant::now();
        round(&mut feed, count)?;
        progress.inc(1);
        thread::sleep(INTERVAL.saturating_sub(start.elapsed()));
    }
    let after = used()?;
    Ok(Used { cpu: after.cpu - before.cpu, bytes: after.bytes - before.bytes })
}

/// Waits until the plugin has got to the last RRD.
fn settle(tree: &Path, count: usize) -> Outcome<()> {
    let last = tree.join(file(count - 1));
    let start = Instant::now();
    while !last.exists() {
        if start.elapsed() > 10 * START_LIMIT {
            return Err(format!("collectd does not make {last:?}").into());
        }
        thread::sleep(Duration::from_millis(100));
    }
    // The queue after it.
    thread::sleep(INTERVAL);
    Ok(())
}

/// A value list as collectd calls it: host, plugin, type and instance.
fn identifier(index: usize) -> String {
    format!("host-{:05}/bench/gauge-{:02}", index / TYPES, index % TYPES)
}

fn file(index: usize) -> PathBuf {
    PathBuf::from(format!("{}.rrd", identifier(index)))
}

/// Creates the RRDs in the store as the plugin would.
fn create(daemon: &Daemon, words: &str, count: usize) -> Outcome<()> {
    let mut client = Client::connect(&daemon.address())?;
    let words = words.replace("DS:ds0", "DS:value");
    for index in 0..count {
        let answer = client.ask(&format!("CREATE {} {words}", file(index).display()))?;
        if answer.status < 0 {
            return Err(format!("CREATE: {}", answer.message).into());
        }
    }
    Ok(())
}

fn configure(place: &Path, tree: &Path, socket: &Path) -> String {
    // The plugin's own archives are W1's: 1200 rows of each of five time spans.
    format!(
        "BaseDir \"{base}\"\nPIDFile \"{base}/collectd.pid\"\nTypesDB \"/usr/share/collectd/types.db\"\nInterval 10\n\
         FQDNLookup false\nHostname \"bench\"\nReadThreads 1\nWriteThreads 2\n\
         LoadPlugin unixsock\nLoadPlugin rrdtool\n\
         <Plugin unixsock>\n  SocketFile \"{socket}\"\n  DeleteSocket true\n</Plugin>\n\
         <Plugin rrdtool>\n  DataDir \"{tree}\"\n  StepSize 10\n  HeartBeat 20\n  RRARows 1200\n  XFF 0.1\n</Plugin>\n",
        base = place.display(),
        socket = socket.display(),
        tree = tree.display(),
    )
}

fn connect(socket: &Path) -> Outcome<BufReader<UnixStream>> {
    let start = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return Ok(BufReader::new(stream)),
            Err(error) if start.elapsed() > START_LIMIT => return Err(format!("collectd: {error}").into()),
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// One value of every RRD, by lines of PUTVAL that are all written before the answers are read.
fn round(feed: &mut BufReader<UnixStream>, count: usize) -> Outcome<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let mut line = String::new();
    for from in (0..count).step_by(100) {
        let to = (from + 100).min(count);
        let lines: String = (from..to)
            .map(|index| {
                format!("PUTVAL {} interval=10 {now}:{}.{:02}\n", identifier(index), now % 1000, index % 100)
            })
            .collect();
        feed.get_mut().write_all(lines.as_bytes())?;
        for _ in from..to {
            line.clear();
            feed.read_line(&mut line)?;
            if !line.starts_with("0 ") {
                return Err(format!("PUTVAL: {line}").into());
            }
        }
    }
    Ok(())
}
