//! Devices that the store hands out to agents: who polls them when agents and the store come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use protocol::frames::agent::AGENT_BODY_BYTES_MAX;
use protocol::frames::agent::block::{BlockReader, BlockSink, BlockValue, BlockWriter, RrdDefinition};
use protocol::frames::agent::session::FromStore;
use protocol::frames::agent::work::push_work_wanted;
use protocol::frames::scan;
use rrd::time::Timestamp;
use testkit::{Client, Daemon, Kind, Running, Signal, free_port, wait_for, wait_until};

use crate::RawSession;
use crate::snmpd::Snmpd;

const DEVICES: usize = 8;

/// The devices' community, and an object that only profiles of the tests' own name.
const SNMPD: &str = "rocommunity s3cret 127.0.0.1\noverride .1.3.6.1.4.1.99999.3.0 integer -17\n";

pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

/// A network between an agent and the store that can be cut.
pub struct Network {
    port: u16,
    open: Arc<Mutex<Option<Vec<TcpStream>>>>,
}

impl Network {
    fn new(store: u16) -> Network {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let open: Arc<Mutex<Option<Vec<TcpStream>>>> = Arc::new(Mutex::new(Some(Vec::new())));
        let connections = Arc::clone(&open);
        std::thread::spawn(move || {
            for agent in listener.incoming().map_while(Result::ok) {
                let mut open = connections.lock().unwrap();
                let (Some(streams), Ok(store)) = (&mut *open, TcpStream::connect(("127.0.0.1", store)))
                else {
                    continue;
                };
                for (from, to) in [(&agent, &store), (&store, &agent)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || {
                        std::io::copy(&mut from, &mut to).ok();
                        to.shutdown(Shutdown::Both).ok();
                        from.shutdown(Shutdown::Both).ok();
                    });
                }
                streams.extend([agent, store]);
            }
        });
        Network { port, open }
    }

    pub fn cut(&self) {
        for stream in self.open.lock().unwrap().take().unwrap() {
            stream.shutdown(Shutdown::Both).ok();
        }
    }

    pub fn mend(&self) {
        *self.open.lock().unwrap() = Some(Vec::new());
    }
}

/// `roundel agent`, killed at the end.
pub struct Agent {
    pub directory: PathBuf,
    name: &'static str,
    lines: String,
    pub network: Network,
    process: Option<Running>,
}

impl Agent {
    pub fn start(root: &Path, name: &'static str, store: u16) -> Agent {
        Agent::start_with(root, name, store, "")
    }

    /// One with these lines before its own in its configuration.
    pub fn start_with(root: &Path, name: &'static str, store: u16, lines: &str) -> Agent {
        let directory = root.join(name);
        fs::create_dir_all(&directory).unwrap();
        let mut agent =
            Agent { directory, name, lines: lines.to_string(), network: Network::new(store), process: None };
        agent.start_again();
        agent
    }

    /// Another configuration: these lines before its own, from the next start or [`Agent::reload`] on.
    pub fn configure(&mut self, lines: &str) {
        self.lines = lines.to_string();
    }

    fn write_config(&self) -> PathBuf {
        let config = self.directory.join("agent.toml");
        let text = format!(
            "{}[agent]\nname = '{}'\nstore = '127.0.0.1:{}'\nspool = '{}/spool'\n",
            self.lines,
            self.name,
            self.network.port,
            self.directory.display()
        );
        fs::write(&config, text).unwrap();
        config
    }

    /// Writes its configuration, and has the process read it.
    pub fn reload(&self) {
        self.write_config();
        self.process.as_ref().unwrap().signal(Signal::HUP);
    }

    pub fn start_again(&mut self) {
        let config = self.write_config();
        let mut command = Command::new(env!("CARGO_BIN_EXE_roundel"));
        command.args(["agent", "--config"]).arg(&config);
        self.process = Some(Running::start(&mut command, self.directory.join("log")));
    }

    pub fn kill(&mut self) {
        self.process = None;
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// The seconds of the readings in the spool, by RRD. No reading leaves the spool while the store is away.
    pub fn spooled(&self) -> BTreeMap<String, BTreeSet<i64>> {
        let mut found = SpooledReadings::default();
        let spool = self.directory.join("spool");
        for lane in [spool.join("live"), spool] {
            for file in fs::read_dir(lane).into_iter().flatten().flatten() {
                if file.file_name().to_string_lossy().starts_with("segment-") {
                    found.add(&fs::read(file.path()).unwrap_or_default());
                }
            }
        }
        found.seconds
    }

    /// Waits until an RRD was read often enough after `time` that it has values for so many seconds on end.
    pub fn wait_for_run(&self, rrd: &str, time: i64, seconds: i64) {
        wait_until(&format!("readings of {rrd} in the spool"), || {
            let spooled = self.spooled();
            let readings = spooled.get(rrd).into_iter().flatten().filter(|second| **second > time);
            runs(readings).iter().any(|(first, last)| last - first >= seconds)
        });
    }
}

/// The first and the last of readings that follow each other within the heartbeat of [`World::device`].
pub fn runs<'s>(readings: impl Iterator<Item = &'s i64>) -> Vec<(i64, i64)> {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for second in readings {
        match runs.last_mut() {
            // Fractions of a second are left out.
            Some((_, last)) if second - *last < 3 => *last = *second,
            _ => runs.push((*second, *second)),
        }
    }
    runs
}

/// The readings of a spool.
#[derive(Default)]
struct SpooledReadings {
    /// The RRDs of the context.
    names: Vec<String>,
    seconds: BTreeMap<String, BTreeSet<i64>>,
}

impl SpooledReadings {
    /// Adds those of a segment, up to its end or to a block that is being written.
    fn add(&mut self, mut segment: &[u8]) {
        let mut reader = BlockReader::default();
        while let Ok(Some((frame, used))) = scan(segment, AGENT_BODY_BYTES_MAX)
            && reader.read(frame.body, self).is_ok()
        {
            segment = &segment[used..];
        }
    }
}

impl BlockSink for SpooledReadings {
    fn begin_context(&mut self) {
        self.names.clear();
    }

    fn definition(&mut self, _: RrdDefinition<'_>) {}

    fn rrd(&mut self, _: u32, _: u64, name: &[u8], _: usize) {
        self.names.push(String::from_utf8_lossy(name).into_owned());
    }

    fn reading(&mut self, rrd: u32, time: Timestamp, _: &[BlockValue<'_>]) {
        let name = self.names[rrd as usize].clone();
        self.seconds.entry(name).or_default().insert(time.whole);
    }
}

/// A store that hands out devices, all of them one snmpd.
pub struct World {
    pub store: Daemon,
    pub port: u16,
    snmpd: Snmpd,
    pub directory: tempfile::TempDir,
}

impl World {
    pub fn new() -> World {
        let directory = tempfile::tempdir().unwrap();
        let snmpd = Snmpd::start(directory.path(), SNMPD, None);
        let store = testkit::daemon!(Kind::Stripes, &directory.path().join("store"));
        let mut world = World { directory, store, port: free_port(), snmpd };
        let devices: String = (0..DEVICES).map(|device| world.handed_out(&format!("d{device}"))).collect();
        world.configure(&devices);
        world
    }

    /// The store's configuration, with these devices.
    pub fn configure(&mut self, devices: &str) {
        let port = self.port;
        self.store.configure(&format!("[agents]\nlisten = ['127.0.0.1:{port}']\nhandover = '2s'\n{devices}"));
    }

    /// The section of a device, which is the world's snmpd.
    pub fn device(&self, name: &str) -> String {
        format!(
            "[[snmp]]\ndevice = '127.0.0.1:{}'\nname = '{name}'\ncommunity = 's3cret'\nstep = '1s'\n\
             heartbeat = '3s'\nrras = ['RRA:LAST:0.5:1s:1h']\nonly = ['lo']\n",
            self.snmpd.port
        )
    }

    /// The same, for the agents of the hall.
    pub fn handed_out(&self, name: &str) -> String {
        self.device(name) + "agents = ['hall-*']\n"
    }

    /// The assignments that hold, by device: number and agent.
    pub fn assignments(&self) -> BTreeMap<String, (u64, String)> {
        let text = fs::read_to_string(self.store.directory().join("store/assignments")).unwrap_or_default();
        let held = text.lines().filter_map(|line| {
            let mut words = line.split(' ');
            let number = words.next()?.parse().ok()?;
            (words.next()? == "-").then_some(())?;
            let agent = words.next()?.to_string();
            Some((words.next()?.to_string(), (number, agent)))
        });
        held.collect()
    }

    /// How many devices an agent has.
    pub fn share(&self, agent: &str) -> usize {
        self.assignments().values().filter(|(_, name)| name == agent).count()
    }

    pub fn last(&self, client: &mut Client, device: impl std::fmt::Display) -> i64 {
        client.ask(&format!("LAST net/{device}/lo.rrd")).unwrap().message.parse().unwrap_or(0)
    }

    /// Waits until a device was polled after `time`.
    pub fn wait_for_reading(&self, client: &mut Client, device: &str, time: i64) {
        wait_until(&format!("readings of {device}"), || self.last(client, device) > time);
    }

    /// Waits until each device was polled after `time`.
    pub fn wait_for_all(&self, client: &mut Client, time: i64) {
        for device in 0..DEVICES {
            self.wait_for_reading(client, &format!("d{device}"), time);
        }
    }

    /// The seconds without a value, of all devices, within each run of readings that were spooled from `first` on.
    fn holes(
        &self,
        client: &mut Client,
        spooled: &BTreeMap<String, BTreeSet<i64>>,
        first: i64,
    ) -> Vec<String> {
        let mut holes = Vec::new();
        for device in 0..DEVICES {
            let rrd = format!("snmp/d{device}.rrd");
            for (first, last) in runs(spooled[&rrd].range(first..)) {
                // A row is known if readings surround its second.
                let answer = client.ask(&format!("FETCH {rrd} LAST {} {last}", first + 1)).unwrap();
                let rows: Vec<_> =
                    answer.lines.iter().filter(|line| line.starts_with(char::is_numeric)).collect();
                let is_wanted = |line: &&&String| {
                    let second = line.split(':').next().and_then(|second| second.parse::<i64>().ok());
                    second.is_some_and(|second| second > first + 1 && second <= last)
                };
                let wanted: Vec<_> = rows.iter().filter(is_wanted).collect();
                assert_eq!(wanted.len() as i64, (last - first - 1).max(0), "{rows:?}");
                let is_hole = |line: &&&&String| line.to_lowercase().contains("nan") && !line.contains("e+");
                holes.extend(wanted.iter().filter(is_hole).map(|line| format!("d{device} {line}")));
            }
        }
        holes
    }
}

#[test]
fn devices_follow_the_agents_that_are_there_and_readings_wait_for_the_store() {
    let mut world = World::new();
    let mut client = world.store.start();
    let root = world.directory.path().to_path_buf();
    let mut first = Agent::start(&root, "hall-1", world.port);
    world.wait_for_all(&mut client, 0);
    assert_eq!(world.share("hall-1"), DEVICES);
    let mut second = Agent::start(&root, "hall-2", world.port);
    wait_until("a share for the second agent", || world.share("hall-2") > 0);
    let shared = world.assignments();
    assert!(world.share("hall-1") > 0, "{shared:?}");
    // What is handed out is a secret.
    let kept = second.directory.join("spool/work");
    wait_until("the community on the agent", || {
        fs::read_to_string(&kept).is_ok_and(|text| text.contains("s3cret"))
    });
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);

    first.kill();
    let killed = now();
    wait_until("the other agent's work", || world.share("hall-2") == DEVICES);
    world.wait_for_all(&mut client, killed + 2);
    let moved = world.assignments();
    for (device, (number, agent)) in &shared {
        assert_eq!(moved[device].0 > *number, agent == "hall-1", "{device}: {shared:?} {moved:?}");
    }

    // The first reading after a gap begins what is known; the next ones go on from there.
    world.wait_for_all(&mut client, now() + 2);
    // Without the store, and after a restart without the store, an agent polls on.
    world.store.kill();
    let down = now();
    // What a killed agent had not yet written may be lost.
    let devices: Vec<String> = (0..DEVICES).map(|device| format!("snmp/d{device}.rrd")).collect();
    devices.iter().for_each(|rrd| second.wait_for_run(rrd, down, 2));
    second.kill();
    second.start_again();
    let again = wait_for("the agent's start", || second.log().matches("collecting").nth(1).map(|_| now()));
    devices.iter().for_each(|rrd| second.wait_for_run(rrd, again, 3));
    let spooled = second.spooled();
    let mut client = world.store.start();
    let up = now();
    world.wait_for_all(&mut client, up + 1);
    for rrd in &devices {
        wait_until(&format!("the backlog of {rrd}"), || {
            client.ask(&format!("LAST {rrd}")).unwrap().message.parse().is_ok_and(|last: i64| last > up)
        });
    }
    assert_eq!(world.assignments(), moved);
    // From the last readings that the store had on.
    assert_eq!(world.holes(&mut client, &spooled, down - 3), [""; 0]);

    // Back with what it had: the same devices as before, and each second once.
    first.start_again();
    wait_until("a share for the first agent", || world.share("hall-1") > 0);
    let back = world.assignments();
    let agents = |all: &BTreeMap<String, (u64, String)>| -> Vec<String> {
        all.values().map(|(_, agent)| agent.clone()).collect()
    };
    assert_eq!(agents(&back), agents(&shared));
    world.wait_for_all(&mut client, now() + 2);
    for log in [first.log(), second.log(), world.store.log()] {
        assert!(!log.contains("s3cret"), "{log}");
    }
}

#[test]
fn an_agent_that_was_cut_off_and_polled_on_writes_nothing_that_is_anothers() {
    let mut world = World::new();
    let mut client = world.store.start();
    let root = world.directory.path().to_path_buf();
    let first = Agent::start(&root, "hall-1", world.port);
    world.wait_for_all(&mut client, 0);
    first.network.cut();
    let mut second = Agent::start(&root, "hall-2", world.port);
    wait_until("the other agent's work", || world.share("hall-2") == DEVICES);
    world.wait_for_all(&mut client, now());
    // From here on only the one that was cut off polls, and its readings are the newest.
    second.kill();
    second.network.cut();
    // The dead agent has made no later readings than these, and the store may not have taken all of them yet.
    let killed = now();
    let last_of = |device: usize| {
        let made = second.spooled().get(&format!("snmp/d{device}.rrd")).and_then(|made| made.last().copied());
        made.unwrap_or_default().max(killed)
    };
    let lasts: Vec<i64> = (0..DEVICES).map(last_of).collect();
    for (device, last) in lasts.iter().enumerate() {
        first.wait_for_run(&format!("snmp/d{device}.rrd"), *last, 5);
    }
    let mended = now();
    first.network.mend();
    wait_until("work for the first agent", || world.share("hall-1") == DEVICES);
    world.wait_for_all(&mut client, mended + 1);
    assert!(first.log().contains("its device was not this agent's to poll by then"), "{}", first.log());
    assert!(world.store.log().contains("were not its own to poll by then"), "{}", world.store.log());
    for (device, last) in lasts.iter().enumerate() {
        let answer =
            client.ask(&format!("FETCH snmp/d{device}.rrd LAST {} {}", last + 1, mended - 1)).unwrap();
        for line in answer.lines.iter().filter(|line| line.starts_with(char::is_numeric)) {
            assert!(line.to_lowercase().contains("nan"), "d{device} after {last}: {line}");
        }
    }
}

/// A block of one RRD with readings at these times.
fn block(sequence: u64, assignment: u64, times: &[i64]) -> Vec<u8> {
    let mut writer = BlockWriter::default();
    let args = ["DS:v:GAUGE:10:U:U", "RRA:LAST:0.5:1:10"].map(str::to_string);
    let definition = writer.add_definition(1, 1, &args).unwrap();
    let rrd = writer.add_rrd(definition, assignment, b"net/r.rrd", 1).unwrap();
    for time in times {
        writer.push(rrd, Timestamp::whole(*time), [BlockValue::Unsigned(5)]);
    }
    let mut frame = Vec::new();
    writer.finish(sequence, &mut frame).unwrap();
    frame
}

/// The assignments that the store gives in its next frame.
pub fn work(session: &mut RawSession) -> Vec<u64> {
    session.next(|frame| match frame {
        FromStore::Work(part) => part.devices.iter().map(|device| device.assignment).collect(),
        other => panic!("{other:?}"),
    })
}

pub fn join(port: u16, name: &[u8]) -> RawSession {
    join_with(port, name, &["lab".to_string()])
}

fn join_with(port: u16, name: &[u8], tags: &[String]) -> RawSession {
    let mut session = RawSession::open_as(port, 7, name);
    let mut out = Vec::new();
    push_work_wanted(&mut out, tags);
    session.write(&out);
    assert!(session.answer().starts_with("welcome"));
    session
}

#[test]
fn readings_count_up_to_the_moment_at_which_their_device_moved() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = testkit::daemon!(Kind::Files, &directory.path().join("store"));
    let port = free_port();
    store.configure(&format!(
        "[agents]\nlisten = ['127.0.0.1:{port}']\nhandover = '1s'\n\
         [[snmp]]\ndevice = '192.0.2.1'\nname = 'r'\nagents = 'tag:l?b'\n"
    ));
    let mut client = store.start();
    let mut last = || client.ask("LAST net/r.rrd").unwrap().message;
    let mut first = join(port, b"raw-1");
    let [one] = work(&mut first)[..] else { panic!("one device") };
    let begun = now();
    first.write(&block(1, one, &[begun - 9]));
    assert!(first.answer().contains("sequence: 1"));
    let mut second = join(port, b"raw-2");
    assert!(work(&mut second).is_empty());
    drop(first);
    let [two] = work(&mut second)[..] else { panic!("one device") };
    assert!(two > one);
    // The first agent has made readings before that moment and after it. It comes back without the tag, so that the device stays with
    // the second one however long this takes.
    let mut first = join_with(port, b"raw-1", &[]);
    assert!(work(&mut first).is_empty());
    first.write(&block(2, one, &[begun, now() + 60]));
    let refused = first.answer();
    assert!(refused.contains("count: 1") && refused.contains("Fenced"), "{refused}");
    assert!(first.answer().contains("sequence: 2"));
    assert_eq!(last(), begun.to_string());
    // Each assignment is one agent's, and one that is not known is none.
    for (sequence, assignment) in [(3, two), (4, two + 1)] {
        first.write(&block(sequence, assignment, &[begun + 1]));
        assert!(first.answer().contains("count: 1"));
        assert!(first.answer().contains("Applied"));
    }
    second.write(&block(1, one, &[begun + 1]));
    assert!(second.answer().contains("count: 1"));
    assert!(second.answer().contains("Applied"));
    assert_eq!(last(), begun.to_string());
    second.write(&block(2, two, &[begun + 1]));
    assert!(second.answer().contains("sequence: 2"));
    assert_eq!(last(), (begun + 1).to_string());
}
