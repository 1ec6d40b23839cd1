//! From a device of one line to readings of RRDs.

use std::net::SocketAddr;

use ::snmp::value::Value as SnmpValue;

use super::*;
use crate::snmp::tests::agent::Agent;

pub(super) struct Bench {
    pub(super) collector: SnmpCollector,
    pub(super) agent: Agent,
    pub(super) now: u64,
    pub(super) readings: Vec<String>,
}

impl Bench {
    pub(super) fn new(source: &str, agent: Agent) -> Self {
        let now = Now { wall: 1_700_000_000_000_000, mono: 1_000_000 };
        let mut collector = SnmpCollector::new(now, 64, 7, Profiles::default());
        let id = collector.add(toml::from_str(source).unwrap()).unwrap();
        assert_eq!(collector.host(id), Some(("router1", 161)));
        collector.set_address(now, id, "192.0.2.1:161".parse().unwrap());
        Bench { collector, agent, now: now.mono, readings: Vec::new() }
    }

    pub(super) fn time(&self) -> Now {
        Now { wall: 1_699_999_999_000_000 + self.now as i64, mono: self.now }
    }

    pub(super) fn run(&mut self, seconds: u64) {
        let end = self.now + seconds * 1_000_000;
        let address: SocketAddr = "192.0.2.1:161".parse().unwrap();
        while self.now < end {
            let now = self.time();
            self.collector.tick(now);
            loop {
                let mut sent = Vec::new();
                self.collector.send_all(|_, datagram| sent.push(datagram.to_vec()));
                let answers: Vec<_> =
                    sent.iter().filter_map(|request| self.agent.answer(self.now, request)).collect();
                if answers.is_empty() {
                    break;
                }
                answers.iter().for_each(|answer| self.collector.receive(now, address, answer));
            }
            let (inventory, readings) = self.collector.readings();
            self.readings.extend(readings.lines(inventory));
            self.collector.clear_readings();
            self.now += 50_000;
        }
    }

    pub(super) fn of(&self, name: &str) -> Vec<&str> {
        let name = format!("{name} ");
        self.readings.iter().filter_map(|text| text.strip_prefix(&name)).collect()
    }
}

pub(super) fn agent() -> Agent {
    let mut agent = Agent::default();
    agent.interface(1, "lo", (1, 1));
    agent.interface(2, "eth0", (2000, 200));
    agent.interface(3, "Gi0/1", (3000, 300));
    agent
}

#[test]
fn a_device_of_one_line_gives_readings_of_its_interfaces() {
    let mut bench = Bench::new("device = 'router1'\nexcept = ['lo']", agent());
    bench.run(180);
    let eth0 = bench.of("net/router1/eth0.rrd");
    assert!((2..=3).contains(&eth0.len()), "{:?}", bench.readings);
    assert!(eth0.iter().all(|text| text.ends_with(":2000:200:U:U:U:U:U:U")), "{eth0:?}");
    assert_eq!(bench.of("net/router1/Gi0%2F1.rrd").len(), eth0.len());
    assert_eq!(bench.of("snmp/router1.rrd").len(), eth0.len());
    assert!(!bench.readings.iter().any(|text| text.contains("/lo")));
    let (inventory, _) = bench.collector.readings();
    let rrd = bench.collector.state.fed.iter().flatten().next().unwrap().rrd;
    let spec = inventory.spec(rrd);
    assert_eq!(spec.args[0], "DS:in:DERIVE:120:0:U");
    assert_eq!(spec.args[8], "RRA:AVERAGE:0.5:1:2880");
    assert!(bench.collector.take_notices().is_empty());
}

#[test]
fn what_interfaces_are_for_is_told_once() {
    let mut agent = agent();
    agent.set("1.3.6.1.2.1.31.1.1.1.18.2", SnmpValue::Bytes(b"to the ISP"));
    agent.set("1.3.6.1.2.1.31.1.1.1.18.3", SnmpValue::Bytes(b""));
    let mut bench = Bench::new("device = 'router1'", agent);
    bench.run(130);
    let wanted = vec![(b"net/router1/eth0.rrd".to_vec(), "to the ISP".to_string())];
    assert_eq!(bench.collector.take_titles(), wanted);
    assert_eq!(bench.collector.take_titles(), []);
}

#[test]
fn what_a_device_does_not_have_is_not_asked_for() {
    let mut bench = Bench::new("device = 'router1'\nversion = '1'\nbulk = false", agent());
    bench.run(130);
    let eth0 = bench.of("net/router1/eth0.rrd");
    assert!(eth0[0].ends_with(":2000:200:U:U:U:U:U:U"), "{eth0:?}");
    // Version 1 refuses a request for the sake of one object: each of them would cost a request.
    let requests: Vec<&str> =
        bench.of("snmp/router1.rrd").iter().map(|text| text.split(':').nth(3).unwrap()).collect();
    assert!(requests.iter().all(|count| *count == "1"), "{requests:?}");
}

#[test]
fn an_interface_that_moves_is_followed_and_its_rrd_gets_no_other_s_values() {
    let mut bench = Bench::new("device = 'router1'", agent());
    bench.run(180);
    bench.agent.remove(2);
    bench.agent.interface(3, "eth0", (2500, 250));
    bench.agent.interface(4, "Gi0/1", (3500, 350));
    bench.readings.clear();
    bench.run(240);
    let values: Vec<String> = ["eth0", "Gi0%2F1"]
        .iter()
        .flat_map(|name| bench.of(&format!("net/router1/{name}.rrd")))
        .map(|text| text.split(':').skip(1).take(2).collect::<Vec<_>>().join(":"))
        .collect();
    assert!(values.len() >= 6, "{values:?}");
    let (unknown, known): (Vec<_>, Vec<_>) = values.iter().partition(|values| *values == "U:U");
    assert_eq!(unknown.len(), 2, "{values:?}");
    assert!(known.iter().all(|values| ["2500:250", "3500:350"].contains(&values.as_str())), "{known:?}");
}

#[test]
fn a_restart_is_a_gap_and_no_spike() {
    let mut bench = Bench::new("device = 'router1'", agent());
    bench.run(180);
    bench.readings.clear();
    bench.agent.booted = bench.now;
    bench.run(60);
    let readings = bench.of("net/router1/eth0.rrd");
    assert_eq!(readings.len(), 2, "{readings:?}");
    assert!(readings[0].ends_with(":U:U:U:U:U:U:U:U") && readings[1].contains(":2000:200:"), "{readings:?}");
}

impl Bench {
    pub(super) fn number(&self, name: &str) -> u64 {
        let numbers = self.collector.statistics();
        numbers.iter().find(|number| number.name == name).unwrap().value
    }
}

#[test]
fn what_a_collector_does_is_counted() {
    let mut bench = Bench::new("device = 'router1'", agent());
    bench.run(180);
    let passes = bench.of("snmp/router1.rrd").len() as u64;
    assert_eq!(
        ["passes", "late_passes", "timeouts", "retries"].map(|name| bench.number(name)),
        [passes, 0, 0, 0]
    );
    assert_eq!(bench.number("targets_answered"), 3 * passes);
    assert_eq!(["devices", "silent_devices", "rrds"].map(|name| bench.number(name)), [1, 0, 4]);
    assert_eq!(bench.number("requests"), bench.number("answers"));
    bench.agent.faults.wrong_id = true;
    bench.run(60);
    // Twice again, and then the pass is over.
    assert_eq!(["timeouts", "retries", "silent_devices"].map(|name| bench.number(name)), [3, 2, 1]);
    assert_eq!((bench.number("unexpected"), bench.number("targets_missing")), (3, 3));
    bench.agent.faults.wrong_id = false;
    bench.agent.booted = bench.now;
    bench.run(60);
    assert_eq!((bench.number("restarts"), bench.number("silent_devices")), (1, 0));
    // Names of data sources have 19 characters at most.
    assert!(bench.collector.statistics().iter().all(|number| number.name.len() <= 19));
}

#[test]
fn a_slow_device_is_named_once() {
    let mut bench = Bench::new("device = 'router1'\nstep = '1s'", agent());
    let slow = PassReport { is_late: true, is_alive: true, micros: 1_500_000, ..PassReport::default() };
    for report in [slow, slow, PassReport { is_late: false, ..slow }] {
        bench.collector.state.note_pace(DeviceId::new(0), &report);
    }
    let notices = bench.collector.take_notices();
    let said: Vec<bool> = notices.iter().map(|notice| notice.is_over).collect();
    assert_eq!(said, [false, true], "{notices:?}");
    assert!(notices[0].text.contains("1.5 s") && notices[0].subject.contains("router1"), "{notices:?}");
}

#[test]
fn a_silent_device_is_said_once() {
    let mut dead = agent();
    dead.faults.is_dead = true;
    let mut bench = Bench::new("device = 'router1'", dead);
    bench.run(300);
    assert!(bench.readings.is_empty());
    let notices = bench.collector.take_notices();
    assert_eq!(notices.len(), 1, "{notices:?}");
    // One request each half a minute.
    let before = bench.number("requests");
    bench.run(180);
    let requests = bench.number("requests") - before;
    assert!((5..=6).contains(&requests), "{requests}");
    bench.agent.faults.is_dead = false;
    bench.run(180);
    assert!(!bench.of("net/router1/eth0.rrd").is_empty());
    assert!(bench.collector.take_notices().iter().all(|notice| notice.is_over));
}

#[test]
fn the_time_before_a_reading_is_earlier_for_rrdtool_too() {
    let args = ["DS:x:GAUGE:20:U:U", "RRA:AVERAGE:0.5:1:5"].map(String::from);
    let options = rrd::definition::text::CreateOptions {
        step: rrd::when::Step { units: 10, units_per_second: 1 },
        limits: rrd::definition::text::Limits::FILE,
        file_name: b"x",
    };
    let definition = rrd::definition::text::parse_create(&options, &args).unwrap();
    let read = |time: rrd::time::Timestamp| {
        let text = format!("{}.{:06}:1", time.whole, time.micros);
        let (now, never) = (rrd::time::Timestamp::whole(0), |_: &[u8]| Err(String::new()));
        let mut values = Vec::new();
        let reading =
            rrd::reading::parse_argument(text.as_bytes(), now, &definition, None, &never, &mut values);
        reading.map(|reading| (reading.time.whole, reading.time.micros)).unwrap()
    };
    for micros in (0..1_000_000).step_by(37) {
        let time = rrd::time::Timestamp::new(1_795_411_248, micros);
        assert!(read(crate::snmp::pass::just_before(time)) < read(time), "{micros}");
    }
}
