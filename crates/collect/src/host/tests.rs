//! The collector on a recorded `/proc` and on the live one.

use super::*;

const STAT: &str = "cpu  300 20 100 5000 7 1 2 3 0 0\n\
    cpu0 100 10 40 2500 3 0 1 1 0 0\n\
    cpu1 200 10 60 2500 4 1 1 2 0 0\n\
    intr 1 2 3\nctxt 99\nbtime 1700000000\nprocesses 5\nprocs_running 1\nprocs_blocked 0\n";
const MEMINFO: &str = "MemTotal:       1000 kB\nMemFree:         400 kB\nMemAvailable:    600 kB\n\
    Buffers:          10 kB\nCached:          200 kB\nSwapCached:        1 kB\nActive:           50 kB\n\
    Inactive:         60 kB\nSwapTotal:       500 kB\nSwapFree:        499 kB\nDirty:             3 kB\n\
    Writeback:         2 kB\nMapped:            9 kB\nSlab:             70 kB\nCommitted_AS:     90 kB\n\
    VmallocTotal:    100 kB\nVmallocUsed:       5 kB\nVmallocChunk:      0 kB\n";
const DISKSTATS: &str = "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0\n\
    \x20254       0 cciss/c0d0 5 1 80 9 6 2 96 8 0 77 20\n";
const NET_DEV: &str = "Inter-|   Receive    |  Transmit\n face |bytes packets|bytes packets\n\
    eth0: 11 12 13 14 0 0 0 0 21 22 23 24 0 0 0 0\n ifb0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

fn recorded() -> (tempfile::TempDir, HostSample) {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    std::fs::create_dir(directory.path().join("net")).unwrap();
    write("stat", STAT);
    write("loadavg", "0.05 1.10 12.34 1/234 999\n");
    write("meminfo", MEMINFO);
    write("diskstats", DISKSTATS);
    write("net/dev", NET_DEV);
    write("uptime", "1234.56 999.00\n");
    let sample = HostSample::read_from(directory.path()).unwrap();
    (directory, sample)
}

/// Each reading of a sample: name, arguments of `create`, argument of `update`.
fn collected(sample: &HostSample) -> Vec<(String, Vec<String>, String)> {
    let mut collector = HostCollector::new("localhost");
    let readings = collector.readings(Timestamp::whole(1_700_000_010), sample);
    texts(&collector, &readings)
}

fn texts(collector: &HostCollector, readings: &Readings) -> Vec<(String, Vec<String>, String)> {
    let inventory = collector.inventory();
    let text = |reading| {
        let mut text = Vec::new();
        readings.push_text(reading, &mut text);
        String::from_utf8(text).unwrap()
    };
    let name = |rrd| String::from_utf8(inventory.name(rrd).to_vec()).unwrap();
    readings
        .iter()
        .map(|reading| (name(reading.rrd), inventory.spec(reading.rrd).args.clone(), text(reading)))
        .collect()
}

#[test]
fn a_recorded_proc_gives_these_readings() {
    let (_directory, sample) = recorded();
    let readings = collected(&sample);
    let check = |name: &str, want: &str| {
        let (_, _, values) = readings.iter().find(|reading| reading.0 == name).expect(name);
        assert_eq!(*values, format!("1700000010:{want}"), "{name}");
    };
    check("localhost/cpu.rrd", "300:20:100:5000:7:1:2:3");
    check("localhost/cpu-1.rrd", "200:10:60:2500:4:1:1:2");
    check("localhost/load.rrd", "0.05:1.10:12.34");
    check("localhost/memory.rrd", "1024000:409600:614400:10240:204800:71680:3072:2048");
    check("localhost/swap.rrd", "512000:510976:1024");
    check("localhost/uptime.rrd", "1234.56");
    check("localhost/disk-cciss%2Fc0d0.rrd", "40960:49152:5:6:77");
    check("localhost/interface-eth0.rrd", "11:21:12:22:13:23:14:24");
    assert_eq!(readings.len(), 9, "idle devices are left out: {readings:?}");
}

#[test]
fn each_reading_has_one_value_a_source_and_names_are_rrdtool_s() {
    let (_directory, sample) = recorded();
    for (name, create_args, values) in collected(&sample) {
        let sources: Vec<&String> = create_args.iter().filter(|arg| arg.starts_with("DS:")).collect();
        assert_eq!(sources.len(), values.split(':').count() - 1, "{name}");
        for source in sources {
            let name = source.split(':').nth(1).unwrap();
            assert!(name.len() <= 19, "{name} does not fit a .rrd file");
        }
    }
}

#[test]
fn debian_s_rrdtool_takes_the_words_and_the_readings() {
    let (_directory, sample) = recorded();
    let mut tool = testkit::RrdTool::start().unwrap();
    for (name, create_args, values) in collected(&sample) {
        let name = name.replace('/', "-");
        tool.run(&format!("create {name} -s 10 -b 1700000000 {}", create_args.join(" "))).unwrap();
        tool.run(&format!("update {name} {values}")).unwrap();
    }
}

#[test]
fn a_component_cannot_leave_its_directory() {
    let check = |text: &str, want: &str| assert_eq!(safe_component(text), want);
    check("eth0.100", "eth0.100");
    check("..", "%2E.");
    check("a/../b c", "a%2F..%2Fb%20c");
    check("veth@if2", "veth%40if2");
}

#[test]
fn the_live_proc_is_understood() {
    let mut collector = HostCollector::new("localhost");
    let readings = collector.collect(Timestamp::whole(1_700_000_010)).unwrap();
    let readings = texts(&collector, &readings);
    for name in ["cpu", "cpu-0", "load", "memory", "swap", "uptime"] {
        let name = format!("localhost/{name}.rrd");
        assert!(readings.iter().any(|reading| reading.0 == name), "{name}");
    }
}

#[test]
fn a_proc_that_makes_no_sense_is_an_error() {
    let (directory, _) = recorded();
    std::fs::write(directory.path().join("stat"), "cpu  x\n").unwrap();
    assert!(HostSample::read_from(directory.path()).is_err());
    std::fs::remove_file(directory.path().join("stat")).unwrap();
    let error = HostSample::read_from(directory.path()).unwrap_err().to_string();
    assert!(error.contains("stat"), "{error}");
}
