//! Debian's collectd sends to us and to itself; its rrdtool plugin and we must make the same files.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use collect::collectd::encode::{push_identity, push_interval, push_samples, push_time};
use collect::collectd::packet::{FineTime, Sample};
use collect::collectd::rrd::Identity;
use testkit::{Client, DEADLINE, Daemon, Kind, RrdTool, Running, rrd_files, wait_for, wait_until};

const SECRET: &str = "user: secret\n";

/// Starts Debian's collectd.
fn start_collectd(directory: &Path, plugins: &str) -> Running {
    fs::create_dir_all(directory).unwrap();
    let config = directory.join("collectd.conf");
    let directory_text = directory.display();
    // With several threads it takes values out of order, and drops those that come late.
    let text = format!(
        "Hostname \"peer\"\nFQDNLookup false\nInterval 1\nWriteThreads 1\nBaseDir \"{directory_text}\"\n\
         PIDFile \"{directory_text}/pid\"\nPluginDir \"/usr/lib/collectd\"\n\
         TypesDB \"/usr/share/collectd/types.db\"\nLoadPlugin logfile\n\
         <Plugin logfile>\n LogLevel info\n File \"{directory_text}/log\"\n</Plugin>\n{plugins}"
    );
    fs::write(&config, text).unwrap();
    let words = ["-f", "-C", config.to_str().unwrap()];
    Running::program(&directory.join("output"), "/usr/sbin/collectd", &words)
}

/// Starts a collectd that receives at `port` and writes RRDs; `listen` and `rrd` are options of the plugins.
fn start_receiver(directory: &Path, port: u16, listen: &str, rrd: &str) -> Running {
    let plugins = format!(
        "LoadPlugin network\n<Plugin network>\n <Listen \"127.0.0.1\" \"{port}\">\n{listen}\n </Listen>\n</Plugin>\n\
         LoadPlugin rrdtool\n<Plugin rrdtool>\n DataDir \"{}\"\n{rrd}\n</Plugin>\n",
        directory.join("rrd").display()
    );
    start_collectd(directory, &plugins)
}

/// A daemon with standard files that receives at a port, and collectd doing the same.
struct Pair {
    ours: Daemon,
    client: Client,
    theirs: Running,
    their_files: PathBuf,
    ports: [u16; 2],
    /// Reads the files of both.
    tool: RrdTool,
}

impl Pair {
    fn start(directory: &Path, ours: &str, listen: &str, rrd: &str) -> Self {
        let ports = [testkit::free_port(), testkit::free_port()];
        let mut daemon = testkit::daemon!(Kind::Files, &directory.join("ours"));
        daemon.configure(&format!("[collectd]\nlisten = [\"udp://127.0.0.1:{}\"]\n{ours}\n", ports[0]));
        let client = daemon.start();
        let theirs = start_receiver(&directory.join("theirs"), ports[1], listen, rrd);
        let their_files = directory.join("theirs/rrd");
        // Its socket is open before all of its plugins take values.
        let log = directory.join("theirs/log");
        let is_ready = || fs::read_to_string(&log).is_ok_and(|log| log.contains("Initialization complete"));
        wait_until("collectd is ready", is_ready);
        Pair { ours: daemon, client, theirs, their_files, ports, tool: RrdTool::start().unwrap() }
    }

    /// Once both have received everything: waits until all files are the same, stops collectd, and compares them; returns their number.
    fn compare(mut self, at_least: usize) -> usize {
        testkit::wait_until_received(&self.ports);
        wait_until("collectd's files", || rrd_files(&self.their_files).len() >= at_least);
        // At its end, collectd drops what it has received and not yet written.
        self.wait_until_same();
        let output = std::mem::replace(&mut self.theirs, Running::quiet(&mut Command::new("true")));
        output.terminate();
        self.wait_until_same();
        let (base, theirs) = (self.ours.base(), rrd_files(&self.their_files));
        let mut names = rrd_files(&base);
        names.retain(|name| !name.starts_with("roundel"));
        assert_eq!(names, theirs);
        theirs.len()
    }

    /// Waits until each file of collectd is ours, too: a slow disk may still have to make files.
    fn wait_until_same(&mut self) {
        let start = Instant::now();
        let theirs = rrd_files(&self.their_files);
        for name in theirs {
            let name = name.display().to_string();
            let flush = format!("FLUSH {}", name.replace(' ', "\\ "));
            loop {
                if let Err(error) = self.client.ask(&flush) {
                    panic!("{name}: {error:?}; {}", self.ours.log());
                }
                let [ours, theirs] = [&self.ours.base(), &self.their_files]
                    .map(|base| dump(&mut self.tool, &base.join(&name)));
                if ours.is_some() && ours == theirs {
                    break;
                }
                if start.elapsed() > DEADLINE {
                    let [ours, theirs] = [ours, theirs].map(Option::unwrap_or_default);
                    let lines = ours.lines().zip(theirs.lines());
                    let differing: Vec<_> = lines.filter(|(ours, theirs)| ours != theirs).take(20).collect();
                    let log = fs::read_to_string(self.their_files.with_file_name("log"));
                    panic!(
                        "{name}: ours has {} lines, theirs {}; the first that differ: {differing:#?}\n{}\n{}",
                        ours.lines().count(),
                        theirs.lines().count(),
                        self.ours.log(),
                        log.unwrap_or_default()
                    );
                }
                thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

/// The answers of Debian's rrdtool about a copy of a file. `None` if one fails: the file may not be there yet, or not be whole.
/// rrdtool locks each file that it reads, and collectd loses an update of a locked file.
fn rrdtool(tool: &mut RrdTool, verbs: &[&str], path: &Path) -> Option<String> {
    fs::copy(path, tool.path("copy.rrd")).ok()?;
    verbs.iter().map(|verb| tool.run(&format!("{verb} copy.rrd")).ok()).collect()
}

/// Header and rows of a file.
fn dump(tool: &mut RrdTool, path: &Path) -> Option<String> {
    // The position in the ring is random at creation.
    let is_compared = |line: &&str| !line.starts_with("filename = ") && !line.contains("].cur_row = ");
    let answers = rrdtool(tool, &["info", "dump"], path)?;
    Some(answers.lines().filter(is_compared).collect::<Vec<_>>().join("\n"))
}

fn directory() -> tempfile::TempDir {
    // collectd refuses directories that begin with a dot.
    tempfile::Builder::new().prefix("collectd-").tempdir().unwrap()
}

/// A packet of one reading.
fn packet(identity: Identity<'_>, time: FineTime, interval: FineTime, samples: &[Sample]) -> Vec<u8> {
    let mut packet = Vec::new();
    push_time(&mut packet, time);
    push_interval(&mut packet, interval);
    push_identity(&mut packet, Identity::default(), identity);
    push_samples(&mut packet, samples);
    packet
}

#[test]
fn debian_s_collectd_sends_at_every_security_level() {
    let directory = directory();
    let auth = directory.path().join("auth");
    fs::write(&auth, SECRET).unwrap();
    let auth = auth.display();
    let mut servers = String::new();
    let mut pairs = Vec::new();
    for (level, sender) in [("none", ""), ("sign", "Sign"), ("encrypt", "Encrypt")] {
        let ours = format!("security = \"{level}\"\nauth_file = \"{auth}\"");
        let listen = format!("  SecurityLevel \"{level}\"\n  AuthFile \"{auth}\"");
        let pair = Pair::start(&directory.path().join(level), &ours, &listen, "");
        for port in pair.ports {
            let security = match sender {
                "" => String::new(),
                sender => {
                    format!("  SecurityLevel \"{sender}\"\n  Username \"user\"\n  Password \"secret\"\n")
                }
            };
            servers.push_str(&format!(" <Server \"127.0.0.1\" \"{port}\">\n{security} </Server>\n"));
        }
        pairs.push(pair);
    }
    let plugins = format!(
        "LoadPlugin load\nLoadPlugin memory\nLoadPlugin interface\nLoadPlugin cpu\nLoadPlugin df\nLoadPlugin uptime\n\
         LoadPlugin network\n<Plugin network>\n{servers}</Plugin>\n"
    );
    let sender = start_collectd(&directory.path().join("sender"), &plugins);
    let first = pairs[2].their_files.join("peer/load/load.rrd");
    let tool = &mut pairs[2].tool;
    let mut last = || rrdtool(tool, &["last"], &first)?.trim().parse::<u64>().ok();
    let begun = wait_for("collectd to receive", &mut last);
    wait_until("readings of five seconds", || last().is_some_and(|last| last >= begun + 5));
    sender.terminate();
    for pair in pairs {
        assert!(pair.compare(10) >= 10);
    }
}

#[test]
fn files_are_those_of_the_rrdtool_plugin() {
    let cases = [
        ("", ""),
        (
            "step = 7\nrra_rows = 50\nrra_timespans = [100, 5000, 70000]\nxff = 0.35",
            "  StepSize 7\n  RRARows 50\n  RRATimespan 100\n  RRATimespan 5000\n  RRATimespan 70000\n  XFF 0.35",
        ),
        ("heartbeat = 33\nrra_rows = 300", "  HeartBeat 33\n  RRARows 300"),
    ];
    for (ours, rrd) in cases {
        let directory = directory();
        let pair = Pair::start(directory.path(), ours, "", rrd);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let intervals = [1.0, 1.5, 2.4, 2.5, 10.0, 59.7, 60.0, 300.0, 4000.0];
        for (nth, interval) in intervals.into_iter().enumerate() {
            let fine = FineTime((interval * f64::from(1 << 30)) as u64);
            let instance = format!("{interval}/x");
            let identity = |type_name| Identity {
                host: b"h",
                plugin: b"/",
                plugin_instance: instance.as_bytes(),
                type_name,
                type_instance: b"/a/b c",
            };
            for round in 0..6u64 {
                let step = (interval * f64::from(1 << 30)) as u64 * round;
                let time = FineTime(((now - 30_000) << 30) + step + (nth as u64 * 123_456_789));
                let gauges = [0.1, 1e-7, f64::NAN, -3.25e200, 123_456_789.123_456_78, 2.0 / 3.0];
                let readings: [(&[u8], Vec<Sample>); 4] = [
                    (b"gauge", vec![Sample::Gauge(gauges[round as usize])]),
                    (
                        b"if_octets",
                        vec![Sample::Derive(1000 * round as i64), Sample::Derive((1 << 62) + round as i64)],
                    ),
                    (b"absolute", vec![Sample::Absolute(round << 40)]),
                    (b"load", [1.0, 2.0, 3.0].map(|load| Sample::Gauge(load / (round + 1) as f64)).to_vec()),
                ];
                for (name, samples) in readings {
                    for port in pair.ports {
                        let packet = packet(identity(name), time, fine, &samples);
                        socket.send_to(&packet, ("127.0.0.1", port)).unwrap();
                    }
                }
                testkit::wait_until_received(&pair.ports);
            }
        }
        assert_eq!(pair.compare(36), 36);
    }
}

#[test]
fn a_collectd_conf_is_converted() {
    let directory = directory();
    let conf = directory.path().join("collectd.conf");
    let text = "<Plugin network>\n  <Listen \"127.0.0.1\" \"25999\">\n  </Listen>\n  Server \"x\"\n</Plugin>\n\
                <Plugin rrdtool>\n  DataDir \"/var/lib/collectd/rrd\"\n  RRARows 600\n</Plugin>\n";
    fs::write(&conf, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_roundel"));
    let output = command.args(["collectd", "--convert"]).arg(&conf).output().unwrap();
    assert!(output.status.success());
    let toml = String::from_utf8(output.stdout).unwrap();
    assert!(toml.ends_with("[collectd]\nlisten = [\"udp://127.0.0.1:25999\"]\nrra_rows = 600\n"), "{toml}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("collectd.conf:4: forwarding"));
    let config = directory.path().join("roundel.toml");
    fs::write(&config, toml).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_roundel"));
    let output = command.arg("validate").arg(&config).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
