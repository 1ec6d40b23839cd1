//! Agents in memory, in simulated time: what is asked, when, and what the answers are.

use std::net::{Ipv4Addr, SocketAddr};

use ::snmp::message::Version;
use ::snmp::value::Value;

use super::*;
use crate::mrtg::config;
use crate::mrtg::operand::Operand;
use crate::mrtg::plan::PlanContext;
use crate::snmp::tests::agent::Agent as Device;

const START: i64 = 1_700_000_000_000_000;

/// Some devices, and the agents of a configuration that asks them; datagrams take a millisecond.
struct World {
    agents: Agents,
    plan: Arc<MrtgPlan>,
    devices: Vec<Device>,
    now: u64,
    on_way: Vec<(u64, usize, Vec<u8>)>,
}

fn address(device: usize) -> SocketAddr {
    (Ipv4Addr::from_bits(0x0a00_0001 + device as u32), 161).into()
}

impl World {
    /// `text` has targets at 10.0.0.1, 10.0.0.2 and so on.
    fn new(text: &str, devices: Vec<Device>) -> Self {
        Self::with_known(text, devices, "")
    }

    /// With what a file `.ok` says.
    fn with_known(text: &str, devices: Vec<Device>, known: &str) -> Self {
        let text =
            format!("WorkDir: /\nLogFormat: rrdtool\nInterval: 1\nTitle[_]: t\nMaxBytes[_]: 100\n{text}");
        let mut none = |_: &str| Err(String::new());
        let config = config::parse("x", text.as_bytes(), &mut none).unwrap();
        let known = Arc::new(known::KnownInterfaces::parse(known));
        let context = PlanContext { known, ..PlanContext::default() };
        let plan = Arc::new(MrtgPlan::new(&config, &context).unwrap());
        let now = 100_000_000;
        let agents = Agents::new(Now { wall: START + now as i64, mono: now }, &plan, 64, 1);
        let mut world = World { agents, plan, devices, now, on_way: Vec::new() };
        let hosts: Vec<String> = world.agents.addresses().map(|agent| agent.host.clone()).collect();
        for (number, host) in hosts.iter().enumerate() {
            let host: Ipv4Addr = host.parse().unwrap();
            let clock = world.clock();
            world.agents.set_address(clock, number, (host, 161).into());
        }
        world
    }

    fn clock(&self) -> Now {
        Now { wall: START + self.now as i64, mono: self.now }
    }

    fn post(&mut self) {
        let (now, on_way) = (self.now, &mut self.on_way);
        self.agents.send_all(|_, to, datagram| {
            let SocketAddr::V4(to) = to else { panic!("{to}") };
            on_way.push((now + 1_000, (to.ip().to_bits() - 0x0a00_0001) as usize, datagram.to_vec()));
        });
    }

    /// Lets so many seconds pass; the answers in their order, by the text of their term.
    fn run(&mut self, seconds: u64) -> Vec<(String, Answer)> {
        let end = self.now + seconds * 1_000_000;
        loop {
            self.post();
            let tick = self.agents.next_tick().unwrap_or(u64::MAX).max(self.now);
            let arrival = self.on_way.first().map_or(u64::MAX, |first| first.0);
            if tick.min(arrival) > end {
                break;
            }
            self.now = tick.min(arrival);
            let now = self.clock();
            if arrival <= tick {
                let (_, device, datagram) = self.on_way.remove(0);
                if let Some(answer) = self.devices[device].answer(self.now, &datagram) {
                    self.agents.receive(now, address(device), &answer);
                }
            } else {
                self.agents.tick(now);
            }
        }
        self.now = end;
        let mut answers = Vec::new();
        self.agents.swap_answers(&mut answers);
        let answers = answers.into_iter();
        answers.map(|(term, answer)| (self.plan.terms[term].0.clone(), answer)).collect()
    }

    fn notices(&mut self) -> Vec<String> {
        let notices = self.agents.take_notices().into_iter();
        notices
            .map(|notice| {
                format!("{} {}: {}", notice.subject, if notice.is_over { "over" } else { "now" }, notice.text)
            })
            .collect()
    }
}

fn device() -> Device {
    let mut device = Device::default();
    for index in 1..=4 {
        device.interface(index, &format!("eth{index}"), (u64::from(index) * 1000, u64::from(index) * 7));
        device.set(&format!("1.3.6.1.2.1.2.2.1.16.{index}"), Value::Counter32(index * 7));
        device.set(&format!("1.3.6.1.2.1.2.2.1.6.{index}"), Value::Bytes(&[2, 0, 0, 0, 0, index as u8]));
    }
    device.set("1.3.6.1.2.1.2.2.1.3.3", Value::Integer(23));
    device.set("1.3.6.1.2.1.4.20.1.2.192.0.2.9", Value::Integer(4));
    device.set("1.3.6.1.4.1.9.1.0", Value::Bytes(b" 12.50 "));
    device.set("1.3.6.1.4.1.9.2.0", Value::Bytes(b"up"));
    device.set("1.3.6.1.4.1.9.3.0", Value::Bytes(b"18446744073709551615"));
    device.set("1.3.6.1.4.1.9.5.2.8", Value::Gauge32(82));
    device
}

/// The two values of an answer as texts.
fn shown(answer: &Answer) -> String {
    let text = |operand: &Operand| operand.to_decimal().map_or("U".to_string(), |number| number.to_string());
    format!("{} {}", text(&answer.input), text(&answer.output))
}

#[test]
fn all_forms_of_a_target_have_their_values() {
    let cases = [
        ("2:public@10.0.0.1", "2000 14"),
        ("-2:public@10.0.0.1", "14 2000"),
        ("2:public@10.0.0.1:::::2", "2000 14"),
        ("#eth3:public@10.0.0.1", "3000 21"),
        ("\\eth4:public@10.0.0.1:::::2", "4000 28"),
        ("!02-00-00-00-00-01:public@10.0.0.1", "1000 7"),
        ("%23:public@10.0.0.1", "3000 21"),
        ("/192.0.2.9:public@10.0.0.1", "4000 28"),
        ("ifInOctets.1&ifOutOctets.1:public@10.0.0.1", "1000 7"),
        ("ifInOctets#eth1&ifOutOctets\\eth2:public@10.0.0.1", "1000 14"),
        ("1.3.6.1.4.1.9.5.IndexPOS.8#eth2&ifOutOctets.2:public@10.0.0.1", "82 14"),
        ("1.3.6.1.4.1.9.1.0&1.3.6.1.4.1.9.3.0:public@10.0.0.1", "12.5 18446744073709551615"),
        ("1.3.6.1.4.1.9.1.0&1.3.6.1.4.1.9.2.0:public@10.0.0.1", "12.5 U"),
        ("sysUpTime&ifOutOctets.2:public@10.0.0.1", "U 14"),
        ("ifOperHack.1&PseudoOne:public@10.0.0.1", "1 1"),
        ("PseudoZero&PseudoOne:public@10.0.0.1", "0 1"),
        // Version 1 refuses both, version 2 only what is not there.
        ("ifInOctets.1&1.3.6.1.4.1.9.77.0:public@10.0.0.1", "U U"),
        ("ifInOctets.1&1.3.6.1.4.1.9.77.0:public@10.0.0.1:::::2", "1000 U"),
        ("#nothere:public@10.0.0.1", "U U"),
        ("%6:public@10.0.0.1", "U U"),
        ("WaLK2ifInOctets&CnTWaLKifOutOctets:public@10.0.0.1", "3000 4"),
        ("WaLK9ifInOctets&ifInOctets.4:public@10.0.0.1:::::2", "U 4000"),
        ("GeTNEXTifInOctets&GeTNEXT1.3.6.1.4.1.9.1:public@10.0.0.1:::::2", "1000 12.5"),
    ];
    let targets = cases.iter().enumerate().map(|(nth, (target, _))| format!("Target[t{nth}]: {target}\n"));
    let mut world = World::new(&targets.collect::<String>(), vec![device()]);
    // At once, and then once a minute.
    for _ in 0..3 {
        let answers = world.run(60);
        for (target, want) in cases {
            let found: Vec<String> =
                answers.iter().filter(|(text, _)| text == target).map(|(_, answer)| shown(answer)).collect();
            assert!(
                !found.is_empty() && found.len() <= 2 && found.iter().all(|found| found == want),
                "{target}: {found:?}"
            );
        }
    }
    let notices = world.notices();
    let lost = notices.iter().filter(|notice| notice.contains("it does not have the interface")).count();
    // Versions 1 and 2c are two agents; each is said once.
    assert_eq!(lost, 1, "{notices:?}");
    let lost = notices.iter().find(|notice| notice.contains("it does not have the interface")).unwrap();
    assert!(lost.ends_with("(target[t18], target[t19])"), "{lost}");
    assert!(notices.iter().any(|notice| notice.contains(".1.3.6.1.4.1.9.2.0")
        && notice.contains("no number")
        && notice.ends_with("(target[t12])")));
    assert!(notices.iter().all(|notice| notice.contains(" now: ")), "{notices:?}");
    let before = notices.len();
    world.run(600);
    assert!(world.notices().is_empty(), "{before} notices before");
}

#[test]
fn an_interface_that_moves_is_followed_in_the_same_round() {
    let mut world =
        World::new("Target[a]: #eth2:public@10.0.0.1\nTarget[b]: 3:public@10.0.0.1\n", vec![device()]);
    world.run(60);
    world.devices[0].remove(2);
    world.devices[0].interface(9, "eth2", (5_000, 1));
    world.devices[0].set("1.3.6.1.2.1.2.2.1.16.9", Value::Counter32(50));
    let answers = world.run(60);
    let found: Vec<String> =
        answers.iter().map(|(text, answer)| format!("{text} {}", shown(answer))).collect();
    assert_eq!(found, ["3:public@10.0.0.1 3000 21", "#eth2:public@10.0.0.1 5000 50"]);
    // Another takes its place under the same name, and it is gone.
    world.devices[0].remove(9);
    let answers = world.run(60);
    let found: Vec<String> =
        answers.iter().map(|(text, answer)| format!("{text} {}", shown(answer))).collect();
    assert_eq!(found, ["3:public@10.0.0.1 3000 21", "#eth2:public@10.0.0.1 U U"]);
    assert_eq!(world.notices().len(), 1);
}

#[test]
fn interfaces_are_polled_at_once_where_mrtg_knew_them() {
    let targets = "Target[a]: #eth2:public@10.0.0.1\nTarget[b]: %23:public@10.0.0.1\n";
    let places = [
        ("", 4),
        ("public@10.0.0.1\tName\teth2\t2\npublic@10.0.0.1\tType\t23\t3\n", 1),
        ("public@10.0.0.1_161_1\tName\teth2\t2\npublic@10.0.0.1_161_1\tType\t23\t3\n", 1),
        // One of them only, or of another version.
        ("public@10.0.0.1\tName\teth2\t2\n", 4),
        ("public@10.0.0.1__2\tName\teth2\t2\npublic@10.0.0.1__2\tType\t23\t3\n", 4),
        // Where they no longer are: looked up and polled again.
        ("public@10.0.0.1\tName\teth2\t1\npublic@10.0.0.1\tType\t23\t3\n", 5),
    ];
    for (known, least) in places {
        let mut world = World::with_known(targets, vec![device()], known);
        let answers = world.run(20);
        let mut found: Vec<String> =
            answers.iter().map(|(text, answer)| format!("{text} {}", shown(answer))).collect();
        found.sort();
        assert_eq!(found, ["#eth2:public@10.0.0.1 2000 14", "%23:public@10.0.0.1 3000 21"], "{known}");
        let requests = world.devices[0].requests;
        assert!(if least == 1 { requests == 1 } else { requests >= least }, "{known}: {requests}");
    }
}

#[test]
fn an_agent_that_does_not_answer_is_unknown_and_delays_no_other() {
    let mut world = World::new(
        "Target[a]: #eth1:public@10.0.0.1\nTarget[b]: #eth1:public@10.0.0.2\nTarget[c]: 1:public@10.0.0.2\n",
        vec![device(), device()],
    );
    world.devices[1].faults.is_dead = true;
    let answers = world.run(5);
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!((answers[0].0.as_str(), shown(&answers[0].1).as_str()), ("#eth1:public@10.0.0.1", "1000 7"));
    // It is given up after five sends of two seconds for its interfaces, and five for its counters.
    let answers = world.run(55);
    let unknown = answers.iter().filter(|(text, answer)| text.contains("10.0.0.2") && shown(answer) == "U U");
    assert_eq!(unknown.count(), 2, "{answers:?}");
    let requests = world.devices[1].requests;
    let answers = world.run(240);
    assert_eq!(world.devices[1].requests - requests, 4, "one request a round");
    assert_eq!(answers.iter().filter(|(text, _)| text.contains("10.0.0.1")).count(), 4);
    let unknown = answers.iter().filter(|(text, _)| text.contains("10.0.0.2"));
    let times: Vec<i64> = unknown.map(|(_, answer)| answer.time % 60).collect();
    assert_eq!(times.len(), 8);
    // At the time it was due.
    assert!(times.iter().all(|time| *time == times[0]), "{times:?}");
    let notices = world.notices();
    let silent: Vec<&String> = notices.iter().filter(|notice| notice.contains("does not answer")).collect();
    assert!(silent.len() == 1 && silent[0].ends_with("(target[b], target[c])"), "{notices:?}");
    world.devices[1].faults.is_dead = false;
    let answers = world.run(600);
    let last = answers.iter().rfind(|(text, _)| text == "#eth1:public@10.0.0.2").unwrap();
    assert_eq!(shown(&last.1), "1000 7");
    assert!(world.notices().iter().any(|notice| notice.contains("10.0.0.2:161 over: does not answer")));
}

#[test]
fn a_restart_is_told_unless_nomib2_forbids_to_ask() {
    for (text, is_seen) in [("", true), ("NoMib2: yes\n", false)] {
        let mut world = World::new(&format!("{text}Target[a]: 1:public@10.0.0.1\n"), vec![device()]);
        world.run(30);
        let mut resets = Vec::new();
        for round in 0..4 {
            if round == 1 {
                world.devices[0].booted = world.now;
            }
            let answers = world.run(60);
            resets.extend(answers.iter().map(|(_, answer)| answer.is_reset));
        }
        assert_eq!(resets, [false, is_seen, false, false]);
    }
}

#[test]
fn everything_after_the_community_is_honoured() {
    let mut world =
        World::new("SingleRequest: yes\nTarget[a]: 1:st\\ pi\\@d@10.0.0.1:161:0.5:3:2:2\n", vec![device()]);
    world.devices[0].faults.is_dead = true;
    let mut sent = Vec::new();
    let end = world.now + 30_000_000;
    while world.now < end {
        let tick = world.agents.next_tick().unwrap().max(world.now + 1);
        world.now = tick.min(end);
        let now = world.clock();
        world.agents.tick(now);
        let at = world.now;
        world.agents.send_all(|_, _, datagram| sent.push((at, datagram.to_vec())));
    }
    let times: Vec<u64> = sent.iter().map(|(at, _)| (at - sent[0].0) / 1_000).collect();
    // Three sends; each wait twice as long as the one before. The wheel of timers rounds up.
    assert_eq!(times.len(), 3, "{times:?}");
    assert!(times[1].abs_diff(500) <= 20 && times[2].abs_diff(1_500) <= 40, "{times:?}");
    for (_, datagram) in &sent {
        let message = ::snmp::message::Message::read(datagram).unwrap();
        assert_eq!((message.version, message.community), (Version::V2c, &b"st pi@d"[..]));
        assert_eq!(message.pdu.variables().count(), 1);
    }
}

#[test]
fn keys_of_version_3_are_hexadecimal_and_of_their_length() {
    let check = |options: &[(&str, &str)]| {
        let options: Vec<(String, String)> =
            options.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        user(&[options, vec![("username".to_string(), "joe".to_string())]].concat())
    };
    let (md5, sha) = ("ab".repeat(16), "ab".repeat(20));
    let spec = check(&[("authkey", &format!("0x{md5}")), ("contextengineid", "0x80001F88")]).unwrap();
    assert_eq!(spec.auth, Some((AuthProtocol::Md5, Secret::LocalKey(vec![0xab; 16]))));
    assert_eq!(spec.context_engine, [0x80, 0, 0x1f, 0x88]);
    for privacy in [&sha, &md5] {
        let options = [
            ("authkey", sha.as_str()),
            ("authprotocol", "sha"),
            ("privkey", privacy),
            ("privprotocol", "aes"),
        ];
        assert!(check(&options).is_ok(), "{privacy}");
    }
    for (options, want) in [
        (&[("authkey", "0x12")][..], "16"),
        (&[("authkey", "xyz")], "authkey"),
        (&[("authkey", "0x")], "authkey"),
        (&[("authkey", md5.as_str()), ("authpassword", "maplesyrup")], "two secrets"),
        (&[("authkey", md5.as_str()), ("privkey", "0xab")], "key has 1 bytes"),
        (&[("privkey", md5.as_str())], "authentication"),
        (&[("contextengineid", "8")], "contextengineid"),
    ] {
        let error = check(options).unwrap_err();
        assert!(error.contains(want), "{error}");
    }
}
