//! Unmodified programs with our socket: Debian's rrdtool, librrds-perl, collectd, gmetad.
//!
//! Where a program can also answer without a daemon, both answers must be the same.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "peers/forward.rs"]
mod forward;
#[path = "peers/graphite.rs"]
mod graphite;
#[path = "peers/pushed.rs"]
mod pushed;
#[path = "wire/signer.rs"]
mod signer;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use testkit::{Client, Daemon, Kind, Running};

/// Longest wait for a program's first values.
const PATIENCE: Duration = Duration::from_secs(40);

/// A directory with a daemon, and one without.
struct Pair {
    daemon: Daemon,
    client: Client,
    plain: PathBuf,
    _directory: tempfile::TempDir,
}

impl Pair {
    fn start(kind: Kind) -> Self {
        // collectd refuses directories that begin with a dot.
        let directory = tempfile::Builder::new().prefix("peers-").tempdir().unwrap();
        let mut daemon = testkit::daemon!(kind, &directory.path().join("daemon"));
        let client = daemon.start();
        let plain = directory.path().join("plain");
        fs::create_dir_all(&plain).unwrap();
        Pair { daemon, client, plain, _directory: directory }
    }

    /// Runs a program in the base directory with our address, and in the other directory without one.
    fn both(&self, program: &str, words: &[&str]) -> (Output, Output) {
        let run = |directory: &Path, address: Option<String>| {
            let mut command = Command::new(program);
            command.args(words).current_dir(directory).env("TZ", "UTC").env("LC_ALL", "C");
            match address {
                Some(address) => command.env("RRDCACHED_ADDRESS", address),
                None => command.env_remove("RRDCACHED_ADDRESS"),
            };
            command.output().unwrap()
        };
        let address = format!("unix:{}", self.daemon.socket().display());
        (run(&self.daemon.base(), Some(address)), run(&self.plain, None))
    }

    /// Both must succeed and print the same, apart from file names and ring positions.
    fn check(&self, program: &str, words: &[&str]) {
        let (ours, theirs) = self.both(program, words);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(theirs.status.success(), "{words:?} without a daemon: {}", text(&theirs.stderr));
        assert!(ours.status.success(), "{words:?}: {}{}", text(&ours.stderr), text(&ours.stdout));
        let comparable = |bytes: &[u8]| -> Vec<String> {
            let of_the_file =
                |line: &&str| !line.starts_with("filename = ") && !line.contains("].cur_row = ");
            text(bytes).lines().filter(of_the_file).map(str::to_string).collect()
        };
        assert_eq!(comparable(&ours.stdout), comparable(&theirs.stdout), "{words:?}");
    }
}

/// `standard_files`: some of stock rrdtool's commands read the file themselves, even with a daemon, so a
/// placeholder is not enough (`docs/compatibility.md`).
fn rrdtool_commands(pair: &Pair, standard_files: bool) {
    let run = |line: &str| pair.check("/usr/bin/rrdtool", &line.split_whitespace().collect::<Vec<_>>());
    run("create t.rrd -b 1700000000 -s 10 DS:in:COUNTER:30:0:U DS:out:GAUGE:30:U:U \
         RRA:AVERAGE:0.5:1:100 RRA:MAX:0.5:6:50 RRA:LAST:0.5:6:50");
    for round in 1..120u64 {
        let time = 1_700_000_000 + round * 10;
        run(&format!("update t.rrd {time}:{}:{}.5", round * round * 100, round % 17));
    }
    if standard_files {
        run("update t.rrd -t out:in 1700001200:3.25:1500000 1700001210:U:1500100");
    } else {
        run("update t.rrd 1700001200:1500000:3.25 1700001210:1500100:U");
    }
    run("fetch t.rrd AVERAGE -s 1700000000 -e 1700001200");
    run("fetch t.rrd AVERAGE -s 1700000900 -e 1700001250");
    run("fetch t.rrd MAX -s 1700000000 -e 1700001200 -r 60");
    run("info t.rrd");
    run("last t.rrd");
    run("first t.rrd --rraindex 1");
    if standard_files {
        run("lastupdate t.rrd");
        run("dump t.rrd");
    }
    run("graph t.png -s 1700000000 -e 1700001200 DEF:i=t.rrd:in:AVERAGE DEF:o=t.rrd:out:AVERAGE \
         VDEF:m=i,MAXIMUM VDEF:p=o,95,PERCENT LINE1:i#336699 AREA:o#99cc99 PRINT:m:%le PRINT:p:%le");
    run("xport -s 1700000000 -e 1700001200 DEF:i=t.rrd:in:AVERAGE XPORT:i:octets");
    let (flushed, _) = pair.both("/usr/bin/rrdtool", &["flushcached", "t.rrd"]);
    assert!(flushed.status.success(), "{}", String::from_utf8_lossy(&flushed.stderr));
}

#[test]
fn rrdtool_works_through_stripes() {
    let pair = Pair::start(Kind::Stripes);
    rrdtool_commands(&pair, false);
}

#[test]
fn rrdtool_works_through_files() {
    let pair = Pair::start(Kind::Files);
    rrdtool_commands(&pair, true);
}

#[test]
fn perl_works_through_the_daemon() {
    let pair = Pair::start(Kind::Stripes);
    let script = r#"
        use strict; use RRDs;
        sub checked { my $error = RRDs::error(); die "$_[0]: $error\n" if $error; }
        RRDs::create('p.rrd', '--start', 1700000000, '--step', 5, 'DS:x:DERIVE:60:U:U',
                     'RRA:AVERAGE:0.5:1:60', 'RRA:MIN:0.5:4:30'); checked('create');
        for my $i (1..50) { RRDs::update('p.rrd', (1700000000 + 5 * $i) . ':' . ($i * $i)); checked('update'); }
        print 'last ', RRDs::last('p.rrd'), "\n"; checked('last');
        my ($start, $step, $names, $rows) = RRDs::fetch('p.rrd', 'AVERAGE', '--start', 1700000000,
                                                        '--end', 1700000250); checked('fetch');
        print "$start $step @$names\n";
        # The client of librrd loses the last digit of what it reads from a socket.
        print join(',', map { defined $_ ? sprintf('%.13g', $_) : 'U' } @$_), "\n" for @$rows;
        my $info = RRDs::info('p.rrd'); checked('info');
        print "$_ = ", $info->{$_} // 'undef', "\n" for grep { !/cur_row|filename/ } sort keys %$info;
    "#;
    pair.check("/usr/bin/perl", &["-e", script]);
}

/// The programs below use real time.
fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// True when the newest rows of an RRD hold a known value.
fn has_values(client: &mut Client, name: &str, seconds_back: u64) -> bool {
    let now = unix_seconds();
    let Ok(answer) = client.ask(&format!("FETCH {name} AVERAGE {} {now}", now - seconds_back)) else {
        return false;
    };
    let rows = answer
        .lines
        .iter()
        .filter(|line| line.split(':').next().is_some_and(|time| time.parse::<u64>().is_ok()));
    rows.filter_map(|row| row.split_once(": "))
        .any(|(_, values)| !values.contains("nan") && !values.is_empty())
}

/// Waits until each of `names` has values; shows the log if that takes too long.
fn wait_for_values(client: &mut Client, names: &[&str], logs: &[&Path]) {
    let start = Instant::now();
    while !names.iter().all(|name| has_values(client, name, 600)) {
        if start.elapsed() > PATIENCE {
            let logs: String = logs.iter().map(|log| fs::read_to_string(log).unwrap_or_default()).collect();
            let list = client.ask("LIST RECURSIVE /").map(|answer| answer.lines);
            panic!("no values in {names:?} after {PATIENCE:?}; {list:?}\n{logs}");
        }
        thread::sleep(Duration::from_millis(250));
    }
}

#[test]
fn collectd_stores_through_the_daemon() {
    let mut pair = Pair::start(Kind::Stripes);
    let base = pair.daemon.base();
    let config = pair.plain.join("collectd.conf");
    // With several threads it sends values out of order on a busy machine, which rrdcached refuses, too.
    let text = format!(
        "Hostname \"peer\"\nFQDNLookup false\nInterval 1\nWriteThreads 1\nBaseDir \"{plain}\"\nPIDFile \"{plain}/pid\"\n\
         PluginDir \"/usr/lib/collectd\"\nTypesDB \"/usr/share/collectd/types.db\"\n\
         LoadPlugin logfile\n<Plugin logfile>\n LogLevel info\n File stdout\n</Plugin>\n\
         LoadPlugin cpu\nLoadPlugin load\nLoadPlugin rrdcached\n\
         <Plugin rrdcached>\n DaemonAddress \"unix:{socket}\"\n DataDir \"{base}\"\n CreateFiles true\n\
         CreateFilesAsync false\n CollectStatistics true\n RRARows 100\n RRATimespan 100\n</Plugin>\n",
        plain = pair.plain.display(),
        socket = pair.daemon.socket().display(),
        base = base.display(),
    );
    fs::write(&config, text).unwrap();
    let log = pair.plain.join("collectd.log");
    let collectd = Running::program(&log, "/usr/sbin/collectd", &["-f", "-C", config.to_str().unwrap()]);
    wait_for_values(&mut pair.client, &["peer/load/load.rrd", "peer/cpu-0/cpu-user.rrd"], &[&log]);
    drop(collectd);
    let text = fs::read_to_string(&log).unwrap();
    assert!(!text.contains("rrdc_update") && !text.contains("failed with status"), "{text}");
}

/// A gmond's answer to every connection: one host with two metrics.
fn gmond_answer(now: u64) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"ISO-8859-1\" standalone=\"yes\"?>\n\
         <GANGLIA_XML VERSION=\"3.7.2\" SOURCE=\"gmond\">\n\
         <CLUSTER NAME=\"peer\" LOCALTIME=\"{now}\" OWNER=\"o\" LATLONG=\"\" URL=\"\">\n\
         <HOST NAME=\"host-1\" IP=\"127.0.0.1\" TAGS=\"\" REPORTED=\"{now}\" TN=\"1\" TMAX=\"20\" DMAX=\"0\" \
         LOCATION=\"\" GMOND_STARTED=\"1700000000\">\n\
         <METRIC NAME=\"load_one\" VAL=\"0.75\" TYPE=\"float\" UNITS=\"\" TN=\"1\" TMAX=\"70\" DMAX=\"0\" \
         SLOPE=\"both\" SOURCE=\"gmond\"></METRIC>\n\
         <METRIC NAME=\"bytes_in\" VAL=\"12345.6\" TYPE=\"float\" UNITS=\"\" TN=\"1\" TMAX=\"70\" DMAX=\"0\" \
         SLOPE=\"both\" SOURCE=\"gmond\"></METRIC>\n</HOST>\n</CLUSTER>\n</GANGLIA_XML>\n"
    )
}

#[test]
fn gmetad_stores_through_the_daemon() {
    let mut pair = Pair::start(Kind::Stripes);
    let gmond = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = gmond.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in gmond.incoming() {
            let Ok(mut stream) = stream else { continue };
            stream.write_all(gmond_answer(unix_seconds()).as_bytes()).ok();
        }
    });
    let config = pair.plain.join("gmetad.conf");
    let text = format!(
        "data_source \"peer\" 1 127.0.0.1:{port}\nsetuid off\nrrd_rootdir \"{base}\"\nxml_port {xml}\n\
         interactive_port {interactive}\nrrdcached_address 127.0.0.1:{tcp}\n\
         RRAs \"RRA:AVERAGE:0.5:1:100\"\n",
        base = pair.daemon.base().display(),
        xml = testkit::free_port(),
        interactive = testkit::free_port(),
        tcp = pair.daemon.tcp_port(),
    );
    fs::write(&config, text).unwrap();
    let log = pair.plain.join("gmetad.log");
    let gmetad = Running::program(&log, "/usr/sbin/gmetad", &["-d", "1", "-c", config.to_str().unwrap()]);
    let names = ["peer/host-1/load_one.rrd", "peer/host-1/bytes_in.rrd", "peer/__SummaryInfo__/load_one.rrd"];
    wait_for_values(&mut pair.client, &names, &[&log]);
    drop(gmetad);
    let mut text = String::new();
    fs::File::open(&log).unwrap().read_to_string(&mut text).unwrap();
    assert!(!text.contains("rrdcached"), "{text}");
}
