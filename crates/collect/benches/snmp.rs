//! The cost of polling by SNMP: requests encoded, answers decoded and matched, outcomes handed out.
//!
//! `cargo bench -p roundel-collect --bench snmp`. Prints nanoseconds per target of two 64-bit counters, the best of several rounds, by
//! packed GETs and by GETBULK, with the name of the interface as a reference and without; the time that the agents take is
//! not counted. Then 20,000 devices in simulated time, a tenth of them dead and a hundredth slow: which passes are late, and what
//! those cost that do not answer.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use roundel_collect::snmp::answer::{Outcome, PassReport, Polled, Trouble, WalkedRow};
use roundel_collect::snmp::device::{Credentials, DeviceOptions};
use roundel_collect::snmp::engine::{DeviceId, Engine, Handler, Now};
use roundel_collect::snmp::plan::{Column, Plan, Row, Shape};
use snmp::ber::{Writer, tag};
use snmp::message::{Message, PduKind, Version};
use snmp::oid::{Oid, OidRef, push_arc};
use snmp::value::Value;

const DEVICES: usize = 1_000;
const INTERFACES: u32 = 100;
const STEP: u64 = 30;

#[derive(Default)]
struct Sink {
    sent: Vec<(SocketAddr, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
    sum: u64,
    targets: u64,
    passes: u64,
    late: u64,
}

impl Handler for Sink {
    fn send(&mut self, _: DeviceId, to: SocketAddr, datagram: &[u8]) {
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(datagram);
        self.sent.push((to, copy));
    }

    fn outcome(&mut self, outcome: Outcome<'_>) {
        if !outcome.is_answered {
            return;
        }
        self.targets += 1;
        for value in outcome.values {
            match value {
                Polled::Unsigned(number) => self.sum = self.sum.wrapping_add(*number),
                other => panic!("{other:?}"),
            }
        }
    }

    fn pass_ended(&mut self, _: DeviceId, report: &PassReport) {
        self.passes += 1;
        self.late += u64::from(report.is_late);
    }

    fn walked(&mut self, _: DeviceId, _: u32, _: Option<Vec<WalkedRow>>) {}

    fn trouble(&mut self, _: DeviceId, trouble: Trouble) {
        assert_eq!(trouble, Trouble::Silent);
    }

    fn is_well(&mut self, _: DeviceId) {}
}

const COLUMNS: [&str; 3] = ["1.3.6.1.2.1.31.1.1.1.6", "1.3.6.1.2.1.31.1.1.1.10", "1.3.6.1.2.1.31.1.1.1.1"];

fn plan(interfaces: u32, has_reference: bool, is_bulk: bool) -> Plan {
    let column = |nth: usize| {
        let prefix = Oid::parse(COLUMNS[nth]).expect("an object");
        if nth == 2 { Column::reference(prefix) } else { Column::value(prefix) }
    };
    let shape = Shape::new((0..2 + usize::from(has_reference)).map(column).collect()).expect("a shape");
    let rows: Vec<(u32, Vec<u8>, String)> = (1..=interfaces)
        .map(|index| {
            let mut encoded = Vec::new();
            push_arc(&mut encoded, index);
            (index, encoded, format!("eth{index}"))
        })
        .collect();
    let rows = rows.iter().map(|(key, index, name)| Row { key: *key, index, expected: name.as_bytes() });
    let mut plan = Plan::default();
    plan.add(&shape, is_bulk.then_some(interfaces as usize), rows);
    plan
}

/// The value of an object.
fn value<'a>(oid: &[u32], name: &'a mut String) -> Value<'a> {
    let index = oid[oid.len() - 1];
    match oid[oid.len() - 2] {
        3 if index == 0 => Value::TimeTicks(0),
        1 => {
            *name = format!("eth{index}");
            Value::Bytes(name.as_bytes())
        }
        _ => Value::Counter64(u64::from(index) << 40),
    }
}

fn answer(request: &[u8], writer: &mut Writer) {
    let message = Message::read(request).expect("a request");
    let pdu = message.pdu;
    let asked: Vec<OidRef<'_>> = pdu.variables().map(|variable| variable.expect("a variable").0).collect();
    let mut found: Vec<Vec<u32>> = Vec::new();
    if pdu.kind == PduKind::Get {
        found.extend(asked.iter().map(|oid| oid.arcs().collect::<Vec<u32>>()));
    } else {
        let once = pdu.error_status as usize;
        found.extend(asked[..once].iter().map(|oid| oid.arcs().chain([0]).collect::<Vec<u32>>()));
        let column = Oid::parse(COLUMNS[0]).expect("an object").as_ref().arcs().count();
        for row in 1..=pdu.error_index as u32 {
            for oid in &asked[once..] {
                let mut arcs: Vec<u32> = oid.arcs().collect();
                let last = arcs.get(column).copied().unwrap_or(0);
                arcs.truncate(column);
                arcs.push(last + row);
                found.push(arcs);
            }
        }
    }
    writer.clear();
    let mut name = String::new();
    for arcs in found.iter().rev() {
        let end = writer.len();
        value(arcs, &mut name).write(writer);
        writer.element(tag::OID, Oid::from_arcs(arcs).expect("an object").as_ref().bytes());
        writer.header(tag::SEQUENCE, end);
    }
    writer.header(tag::SEQUENCE, 0);
    writer.integer(0);
    writer.integer(0);
    writer.integer(pdu.request_id);
    writer.header(PduKind::Response.tag(), 0);
    writer.element(tag::OCTET_STRING, message.community);
    writer.integer(message.version.number());
    writer.header(tag::SEQUENCE, 0);
}

fn measure(name: &str, has_reference: bool, is_bulk: bool) {
    let mut now = Now { wall: 1_700_000_000_000_000, mono: 1_000_000 };
    let mut engine = Engine::new(now, 1 << 12, 1);
    for number in 0..DEVICES {
        let credentials = Credentials::Community { version: Version::V2c, community: b"public".to_vec() };
        let address = SocketAddr::from(([10, 0, (number >> 8) as u8, number as u8], 161));
        let options = DeviceOptions::new(STEP, &format!("router{number}"));
        let device = engine.add(Some(address), credentials, options);
        engine.set_plan(now, device, plan(INTERFACES, has_reference, is_bulk));
    }
    let mut sink = Sink::default();
    let mut writer = Writer::default();
    let mut best = f64::MAX;
    let mut requests = 0.0;
    for round in 0..12 {
        let mut spent = Duration::ZERO;
        (sink.targets, sink.sum) = (0, 0);
        let mut answers = 0u64;
        for _ in 0..STEP * 100 {
            now.wall += 10_000;
            now.mono += 10_000;
            let start = Instant::now();
            engine.tick(now, &mut sink);
            spent += start.elapsed();
            while !sink.sent.is_empty() {
                let sent = std::mem::take(&mut sink.sent);
                let mut ready: Vec<(SocketAddr, Vec<u8>)> = Vec::with_capacity(sent.len());
                for (to, request) in sent {
                    answer(&request, &mut writer);
                    ready.push((to, writer.bytes().to_vec()));
                    sink.spare.push(request);
                }
                answers += ready.len() as u64;
                let start = Instant::now();
                for (from, datagram) in &ready {
                    engine.receive(now, *from, datagram, &mut sink);
                }
                spent += start.elapsed();
            }
        }
        black_box(sink.sum);
        let targets = sink.targets.max(1) as f64;
        // The first rounds learn how much a device answers at once.
        if round >= 5 {
            best = best.min(spent.as_nanos() as f64 / targets);
            requests = answers as f64 / targets;
        }
    }
    println!("{name:32} {best:7.1} ns a target, {:5.1} targets a request", 1.0 / requests);
}

/// Devices of the farm, and interfaces of each.
const FARM_DEVICES: usize = 20_000;
const FARM_INTERFACES: u32 = 10;
/// Requests in flight at most: what a buffer of 4 MiB holds answers for.
const FARM_WINDOW: usize = 1_811;
/// Steps until all is learnt, and steps that are measured.
const FARM_STEPS: (u64, u64) = (4, 10);
/// Microseconds after which answers come, and those of slow devices.
const FARM_DELAYS: (u64, u64) = (1_000, 800_000);

/// What a farm took in the steps that are measured.
struct Farm {
    spent: Duration,
    targets: u64,
    passes: u64,
    late: u64,
}

/// Polls the farm's devices that are `wanted`, of which some are dead, and a hundredth of the others slow.
fn farm(wanted: impl Fn(usize) -> bool, is_dead: impl Fn(usize) -> bool) -> Farm {
    let mut now = Now { wall: 1_700_000_010_000_000, mono: 1_000_000 };
    let mut engine = Engine::new(now, FARM_WINDOW, 1);
    for number in (0..FARM_DEVICES).filter(|number| wanted(*number)) {
        let credentials = Credentials::Community { version: Version::V2c, community: b"public".to_vec() };
        let address = SocketAddr::from(([10, 0, (number >> 8) as u8, number as u8], 161));
        let options = DeviceOptions::new(STEP, &format!("router{number}"));
        let device = engine.add(Some(address), credentials, options);
        engine.set_plan(now, device, plan(FARM_INTERFACES, true, true));
    }
    let (mut sink, mut writer) = (Sink::default(), Writer::default());
    let mut on_way: BinaryHeap<Reverse<(u64, SocketAddr, Vec<u8>)>> = BinaryHeap::new();
    let mut spent = Duration::ZERO;
    let begin = now.mono;
    let (learnt, end) =
        (begin + FARM_STEPS.0 * STEP * 1_000_000, begin + (FARM_STEPS.0 + FARM_STEPS.1) * STEP * 1_000_000);
    while now.mono < end {
        let tick = engine.next_tick().unwrap_or(u64::MAX).max(now.mono);
        let arrival = on_way.peek().map_or(u64::MAX, |Reverse(first)| first.0);
        let was = now.mono;
        now.mono = tick.min(arrival).min(end);
        now.wall += (now.mono - was) as i64;
        if was < learnt && now.mono >= learnt {
            (spent, sink.targets, sink.passes, sink.late) = (Duration::ZERO, 0, 0, 0);
        }
        let datagram = if arrival <= tick { on_way.pop() } else { None };
        let start = Instant::now();
        match &datagram {
            Some(Reverse((_, from, datagram))) => engine.receive(now, *from, datagram, &mut sink),
            None => engine.tick(now, &mut sink),
        }
        spent += start.elapsed();
        for (to, request) in sink.sent.drain(..) {
            let SocketAddr::V4(v4) = to else { continue };
            let number = (v4.ip().to_bits() & 0xffff) as usize;
            if !is_dead(number) {
                answer(&request, &mut writer);
                let delay = if number % 100 == 3 { FARM_DELAYS.1 } else { FARM_DELAYS.0 };
                on_way.push(Reverse((now.mono + delay, to, writer.bytes().to_vec())));
            }
            sink.spare.push(request);
        }
    }
    black_box(sink.sum);
    Farm { spent, targets: sink.targets, passes: sink.passes, late: sink.late }
}

fn measure_farm() {
    let is_tenth = |number: usize| number.is_multiple_of(10);
    let millis = |farm: &Farm| farm.spent.as_secs_f64() * 1e3 / FARM_STEPS.1 as f64;
    let all = farm(|_| true, is_tenth);
    // By themselves, so that what they cost is no small difference of large numbers.
    let dead = farm(is_tenth, |_| true);
    for (name, farm) in [("20,000 devices, 10 % dead", &all), ("the dead by themselves", &dead)] {
        println!(
            "{name:32} {:7.2} ms of CPU a step of {STEP} s, {} passes, {} of them late, {} targets answered",
            millis(farm),
            farm.passes,
            farm.late,
            farm.targets
        );
    }
}

fn main() {
    measure("GET", false, false);
    measure("GET with reference", true, false);
    measure("GETBULK", false, true);
    measure("GETBULK with reference", true, true);
    measure_farm();
}
