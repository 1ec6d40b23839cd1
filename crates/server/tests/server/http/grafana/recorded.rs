//! A daemon with the RRDs that our collectors make, filled up to now.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use collect::collectd::encode::{push_identity, push_interval, push_samples, push_time};
use collect::collectd::packet::{FineTime, Sample};
use collect::collectd::rrd::Identity;
use collect::collectd::security::AuthFile;
use collect::collectd::types::TypesDb;
use collect::collectd::{CollectdCollector, CollectdOptions};
use collect::host::{HostCollector, HostSample};
use collect::inventory::Inventory;
use collect::reading::Readings;
use collect::snmp::profile::Profiles;
use collect::statistics::OwnRrd;
use protocol::prometheus::{Samples, compress, write_request};
use protocol::rrdcached::command::Permissions;
use roundel_server::service::CreatePolicy;
use roundel_server::status::StatusWatch;
use rrd::time::Timestamp;
use testkit::Client;

use crate::common::Roundel;
use crate::common::http::{get, send};

/// Seconds of what is recorded.
pub const SECONDS: i64 = 900;
/// The step of everything but the interfaces of devices.
const STEP: i64 = 10;

thread_local! {
    /// One for each test, however long it takes.
    static END: i64 = {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        since.as_secs() as i64 / 60 * 60
    };
}

/// The end of what is recorded: now, on the grid of a minute.
pub fn end() -> i64 {
    END.with(|end| *end)
}

/// A daemon in which all collectors have recorded, and that a Prometheus scrapes.
pub fn filled() -> Roundel {
    let roundel =
        Roundel::stripes(CreatePolicy { make_directories: true, ..Default::default() }, Permissions::ALL);
    let mut client = Client::open(&roundel.socket());
    let times = || (end() - SECONDS..=end()).step_by(STEP as usize);
    host(&mut client, times());
    collectd(&mut client, times());
    interfaces(&mut client, (end() - SECONDS..=end()).step_by(60));
    own(&roundel, &mut client, times());
    scraped(&roundel, &mut client);
    // The list of names is made again a moment after they have changed.
    testkit::wait_until("all hosts", || {
        get(&roundel, "/api/v1/label/instance/values").json()["data"]
            .as_array()
            .is_some_and(|all| all.len() == 5)
    });
    roundel
}

/// Makes RRDs as the collectors' inventory says, and updates them.
fn store(client: &mut Client, made: &mut usize, inventory: &Inventory, readings: &Readings) {
    for reading in readings.iter() {
        let name = String::from_utf8(inventory.name(reading.rrd).to_vec()).unwrap();
        let spec = inventory.spec(reading.rrd);
        if reading.rrd.index() >= *made {
            *made = reading.rrd.index() + 1;
            let begin = reading.time.whole - spec.starts_before as i64;
            say(
                client,
                &format!("CREATE {name} -s {} -b {begin} {}", spec.step, spec.create_args().join(" ")),
            );
        }
        let mut update = Vec::new();
        readings.push_text(reading, &mut update);
        say(client, &format!("UPDATE {name} {}", String::from_utf8(update).unwrap()));
    }
}

fn say(client: &mut Client, line: &str) {
    let said = client.say(line);
    assert!(said.starts_with('0'), "{line}: {said}");
}

/// This host, from files such as the kernel's in which everything grows.
fn host(client: &mut Client, times: impl Iterator<Item = i64>) {
    let proc = tempfile::tempdir().unwrap();
    std::fs::create_dir(proc.path().join("net")).unwrap();
    let (mut collector, mut made) = (HostCollector::new("localhost"), 0);
    for (n, time) in times.enumerate() {
        write_proc(proc.path(), n as u64 + 1);
        let sample = HostSample::read_from(proc.path()).unwrap();
        let readings = collector.readings(Timestamp::whole(time), &sample);
        store(client, &mut made, collector.inventory(), &readings);
    }
}

fn write_proc(proc: &Path, n: u64) {
    let cpu = format!("{} 20 {} {} 7 1 2 3 0 0", 300 * n, 100 * n, 500 * n);
    let stat = format!(
        "cpu  {cpu}\ncpu0 {cpu}\ncpu1 {cpu}\nintr 1 2 3\nctxt 99\nbtime 1700000000\nprocesses 5\nprocs_running 1\nprocs_blocked 0\n"
    );
    let memory = "MemTotal: 1000 kB\nMemFree: 400 kB\nMemAvailable: 600 kB\nBuffers: 10 kB\nCached: 200 kB\nSwapCached: 1 kB\n\
                  Active: 50 kB\nInactive: 60 kB\nSwapTotal: 500 kB\nSwapFree: 499 kB\nDirty: 3 kB\nWriteback: 2 kB\nMapped: 9 kB\n\
                  Slab: 70 kB\nCommitted_AS: 90 kB\nVmallocTotal: 100 kB\nVmallocUsed: 5 kB\nVmallocChunk: 0 kB\n";
    let mut network = "Inter-|   Receive    |  Transmit\n face |bytes packets|bytes packets\n".to_owned();
    for name in ["eth0", "lo"] {
        let _ =
            writeln!(network, "{name}: {} {n} {n} {n} 0 0 0 0 {} {n} {n} {n} 0 0 0 0", 1000 * n, 2000 * n);
    }
    let disk = format!("   8       0 sda {n} 1 {} 9 {n} 2 {} 8 0 {} 20\n", 80 * n, 96 * n, 77 * n);
    for (name, text) in [
        ("stat", &*stat),
        ("loadavg", "0.05 1.10 12.34 1/234 999\n"),
        ("meminfo", memory),
        ("diskstats", &*disk),
        ("net/dev", &*network),
        ("uptime", "1234.56 999.00\n"),
    ] {
        std::fs::write(proc.join(name), text).unwrap();
    }
}

/// The types of collectd's that the dashboard needs, as its types.db has them.
const TYPES: &str = "cpu value:DERIVE:0:U\nload shortterm:GAUGE:0:5000, midterm:GAUGE:0:5000, longterm:GAUGE:0:5000\n\
    memory value:GAUGE:0:281474976710656\nswap value:GAUGE:0:1099511627776\nuptime value:GAUGE:0:4294967295\n\
    df_complex value:GAUGE:0:U\ndisk_octets read:DERIVE:0:U, write:DERIVE:0:U\ndisk_ops read:DERIVE:0:U, write:DERIVE:0:U\n\
    if_octets rx:DERIVE:0:U, tx:DERIVE:0:U\nif_packets rx:DERIVE:0:U, tx:DERIVE:0:U\nif_errors rx:DERIVE:0:U, tx:DERIVE:0:U\n";

/// Packets of a collectd.
fn collectd(client: &mut Client, times: impl Iterator<Item = i64>) {
    let mut types = TypesDb::default();
    assert!(types.add(TYPES).is_empty());
    let (mut collector, mut made) =
        (CollectdCollector::new(CollectdOptions::default(), types, AuthFile::default()), 0);
    for (n, time) in times.enumerate() {
        let (mut packet, mut before, n) = (Vec::new(), Identity::default(), n as i64);
        let mut readings = Readings::default();
        let mut push = |texts: [&'static str; 4], samples: &[Sample]| {
            let [plugin, plugin_instance, type_name, type_instance] = texts.map(str::as_bytes);
            let identity = Identity { host: b"web1", plugin, plugin_instance, type_name, type_instance };
            push_identity(&mut packet, before, identity);
            push_time(&mut packet, FineTime::of_seconds(time as u64).unwrap());
            push_interval(&mut packet, FineTime::of_seconds(STEP as u64).unwrap());
            push_samples(&mut packet, samples);
            before = identity;
        };
        let two = |factor: i64| [Sample::Derive(factor * n), Sample::Derive(2 * factor * n)];
        for state in ["idle", "user", "system"] {
            push(["cpu", "0", "cpu", state], &[Sample::Derive(300 * n)]);
        }
        push(["load", "", "load", ""], &[0.5, 0.4, 0.3].map(Sample::Gauge));
        for state in ["used", "free", "cached"] {
            push(["memory", "", "memory", state], &[Sample::Gauge(1e9)]);
            push(["swap", "", "swap", state], &[Sample::Gauge(1e6)]);
        }
        for state in ["used", "free", "reserved"] {
            push(["df", "root", "df_complex", state], &[Sample::Gauge(1e10)]);
        }
        push(["disk", "sda", "disk_octets", ""], &two(512));
        push(["disk", "sda", "disk_ops", ""], &two(1));
        push(["interface", "eth0", "if_octets", ""], &two(1000));
        push(["interface", "eth0", "if_packets", ""], &two(10));
        push(["interface", "eth0", "if_errors", ""], &two(0));
        push(["uptime", "", "uptime", ""], &[Sample::Gauge(n as f64)]);
        collector.receive(time, IpAddr::V4(Ipv4Addr::LOCALHOST), &packet, &mut readings);
        assert_eq!(readings.len(), 19, "{:?}", collector.counts());
        store(client, &mut made, collector.inventory(), &readings);
    }
}

/// Two ports of a switch, with the data sources and archives that `[[snmp]]` makes.
fn interfaces(client: &mut Client, times: impl Iterator<Item = i64> + Clone) {
    let profiles = Profiles::default();
    let table = &profiles.find("if-mib").unwrap().tables[0];
    for port in ["Gi0%2F1", "Gi0%2F2"] {
        let name = format!("net/sw1/{port}.rrd");
        let sources = table.sources.iter().map(|source| format!("DS:{}:DERIVE:120:0:U", source.name));
        let begin = times.clone().next().unwrap() - 60;
        let sources = sources.collect::<Vec<_>>().join(" ");
        say(
            client,
            &format!(
                "CREATE {name} -s 60 -b {begin} {sources} RRA:AVERAGE:0.5:1:2880 RRA:MAX:0.5:5:4032 RRA:AVERAGE:0.5:5:4032"
            ),
        );
        for (n, time) in times.clone().enumerate() {
            let values: Vec<String> =
                (1..=table.sources.len()).map(|source| (source * n * 1000).to_string()).collect();
            say(client, &format!("UPDATE {name} {time}:{}", values.join(":")));
        }
    }
}

/// The daemon, as it records itself.
fn own(roundel: &Roundel, client: &mut Client, times: impl Iterator<Item = i64>) {
    let runtime = roundel_server::daemon::runtime().unwrap();
    let _guard = runtime.enter();
    let watch = StatusWatch::new(roundel.service().clone(), Some(roundel.base()));
    let (mut rrd, mut made) = (OwnRrd::new("daemon"), 0);
    for time in times {
        let mut readings = Readings::default();
        rrd.read(time, &watch.numbers().unwrap(), &mut readings);
        store(client, &mut made, rrd.inventory(), &readings);
    }
}

/// `/metrics`, as a Prometheus writes it back after scraping.
fn scraped(roundel: &Roundel, client: &mut Client) {
    let push = |series: &[Samples]| {
        let headers = "Content-Encoding: snappy\r\nContent-Type: application/x-protobuf\r\n";
        let answer = send(roundel, "POST", "/api/v1/write", headers, &compress(&write_request(series)));
        assert_eq!(answer.status, 204, "{}", answer.text());
    };
    // So that there is something to count, by protocol and by reason.
    let up =
        [("__name__", "up"), ("instance", "a:1")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    push(&[Samples { labels: up.to_vec(), samples: vec![(end() * 1000, 1.0)] }]);
    assert!(client.say("NONSENSE").starts_with('-'));
    let text = get(roundel, "/metrics").text();
    let series: Vec<Samples> = text.lines().filter(|line| !line.starts_with('#')).map(samples).collect();
    assert!(series.len() > 30, "{text}");
    push(&series);
}

/// A line of the exposition as a quarter of an hour of scrapes.
fn samples(line: &str) -> Samples {
    let (name, value) = line.rsplit_once(' ').unwrap();
    let (name, labels) = name.split_once('{').unwrap_or((name, "}"));
    let mut all = vec![("__name__".to_owned(), name.to_owned())];
    for pair in labels.trim_end_matches('}').split(',').filter(|pair| !pair.is_empty()) {
        let (label, value) = pair.split_once('=').unwrap();
        all.push((label.to_owned(), value.trim_matches('"').to_owned()));
    }
    for (label, value) in [("instance", "roundel:8080"), ("job", "roundel")] {
        all.push((label.to_owned(), value.to_owned()));
    }
    all.sort();
    let value: f64 = value.parse().unwrap();
    let times = (end() - SECONDS..=end()).step_by(15);
    Samples { labels: all, samples: times.map(|time| (time * 1000, value)).collect() }
}
