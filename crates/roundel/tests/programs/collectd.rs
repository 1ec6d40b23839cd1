//! collectd: values through its unixsock plugin, written by the rrdtool and the rrdcached plugin; then its
//! own values of this host.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use testkit::Running;

use crate::support::{Place, Way, alike, same_rrds};

/// A collectd that writes with one of its plugins.
struct Collectd {
    process: Running,
    socket: PathBuf,
}

impl Collectd {
    /// `rrdtool` or `rrdcached`; `more` is additional configuration.
    fn start(place: &Place, plugin: &str, more: &str) -> Collectd {
        let address = format!("DaemonAddress \"{}\"\nCollectStatistics false\n", place.address());
        let of_daemon = if plugin == "rrdcached" { &address } else { "" };
        let text = format!(
            "Hostname \"peer\"\nFQDNLookup false\nInterval 1\nWriteThreads 1\n\
             BaseDir \"{base}\"\nPIDFile \"{base}/pid\"\n\
             PluginDir \"/usr/lib/collectd\"\nTypesDB \"/usr/share/collectd/types.db\"\n\
             LoadPlugin logfile\n<Plugin logfile>\nLogLevel info\nFile stdout\n</Plugin>\n\
             LoadPlugin unixsock\n<Plugin unixsock>\nSocketFile \"{base}/collectd.sock\"\n</Plugin>\n\
             LoadPlugin {plugin}\n<Plugin {plugin}>\nDataDir \"{rrds}\"\n{of_daemon}CreateFilesAsync false\n\
             RRARows 50\nRRATimespan 500\nRRATimespan 5000\n</Plugin>\n{more}",
            base = place.directory().display(),
            rrds = place.rrds().display(),
        );
        let config = place.write("collectd.conf", &text);
        let mut command = place.command("/usr/sbin/collectd");
        command.arg("-f").arg("-C").arg(config);
        let mut process = Running::start(&mut command, place.directory().join("collectd.log"));
        let socket = place.directory().join("collectd.sock");
        process.wait_for("collectd", || UnixStream::connect(&socket).ok());
        Collectd { process, socket }
    }

    /// Sends it values with given times, makes it write them, and stops it.
    fn feed(mut self, rounds: std::ops::Range<u64>) {
        let mut session = Session::open(&self.socket);
        let last = 1_000_000_000 + rounds.end * 10;
        for round in rounds {
            let time = 1_000_000_000 + round * 10;
            let value = (round * round) as f64 / 7.0;
            session.put("test-a/gauge-x", &format!("{time}:{value}"));
            session.put("test-a/if_octets-y", &format!("{time}:{}:{}", round * 1_000, round * round * 333));
            session.put("load/load", &format!("{time}:{value}:1.25:U"));
        }
        // After this, its single writing thread has written all others.
        session.put("test-a/gauge-z", &format!("{last}:1"));
        self.process.wait_for("a value", || {
            session.ask("GETVAL peer/test-a/gauge-z").starts_with("1 ").then_some(())
        });
        // It writes what it still holds when it stops.
        let said = self.process.stop();
        assert!(!said.contains("failed") && !said.contains("rror"), "{said}");
    }
}

/// A client of the unixsock plugin.
struct Session {
    stream: UnixStream,
    answers: BufReader<UnixStream>,
}

impl Session {
    fn open(socket: &Path) -> Session {
        let stream = UnixStream::connect(socket).unwrap();
        Session { answers: BufReader::new(stream.try_clone().unwrap()), stream }
    }

    /// Sends a request; returns the first line of the answer.
    fn ask(&mut self, line: &str) -> String {
        writeln!(self.stream, "{line}").unwrap();
        let mut lines = std::iter::repeat_with(|| {
            let mut line = String::new();
            self.answers.read_line(&mut line).unwrap();
            line
        });
        let first = lines.next().unwrap();
        let more: usize = first.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
        lines.take(more).for_each(drop);
        first
    }

    fn put(&mut self, name: &str, values: &str) {
        let line = format!("PUTVAL peer/{name} interval=10 {values}");
        let answer = self.ask(&line);
        assert!(answer.starts_with("0 "), "{line}: {answer}");
    }
}

const RRDS: [&str; 4] = [
    "peer/load/load.rrd",
    "peer/test-a/gauge-x.rrd",
    "peer/test-a/gauge-z.rrd",
    "peer/test-a/if_octets-y.rrd",
];

#[test]
fn values_through_the_rrdtool_plugin() {
    let first = |place: &Place| Collectd::start(place, "rrdtool", "").feed(1..40);
    let more = |place: &Place| Collectd::start(place, "rrdtool", "").feed(40..80);
    let places = alike(&[Way::Files, Way::Placeholders], &[&first, &more]);
    assert_eq!(places[0].names(), RRDS);
}

#[test]
fn values_through_the_rrdcached_plugin() {
    let run = |way: Way| {
        let place = Place::new(way);
        Collectd::start(&place, "rrdcached", "").feed(1..80);
        place
    };
    let mut theirs = run(Way::DebianRrdcached);
    assert_eq!(theirs.names(), RRDS);
    for way in [Way::Rrdcached, Way::Daemon] {
        same_rrds(&mut theirs, &mut run(way), &RRDS.map(str::to_string));
    }
}
