//! Many agents and one engine in simulated time, with a network that delays, loses and doubles datagrams by seed.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use ::snmp::message::Version;

use super::agent::Agent;
use crate::snmp::answer::{Outcome, PassReport, Polled, Trouble, WalkedRow};
use crate::snmp::device::{Credentials, DeviceOptions};
use crate::snmp::engine::{DeviceId, Engine, Handler, Now};
use crate::snmp::plan::Plan;

/// An outcome with its own memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub key: u32,
    pub time: rrd::time::Timestamp,
    pub values: Vec<Polled>,
    pub is_reset: bool,
    pub is_moved: bool,
}

#[derive(Default)]
pub struct Log {
    pub sent: Vec<(SocketAddr, Vec<u8>)>,
    pub outcomes: Vec<Vec<Seen>>,
    pub reports: Vec<Vec<PassReport>>,
    pub walked: Vec<(usize, u32, Option<Vec<WalkedRow>>)>,
    pub troubles: Vec<(usize, Trouble)>,
    pub wells: Vec<usize>,
    /// Whether outcomes are kept.
    pub keeps: bool,
}

impl Handler for Log {
    fn send(&mut self, _: DeviceId, to: SocketAddr, datagram: &[u8]) {
        self.sent.push((to, datagram.to_vec()));
    }

    fn outcome(&mut self, outcome: Outcome<'_>) {
        if self.keeps {
            self.outcomes[outcome.device.index()].push(Seen {
                key: outcome.key,
                time: outcome.time,
                values: outcome.values.to_vec(),
                is_reset: outcome.is_reset,
                is_moved: outcome.is_moved,
            });
        }
    }

    fn pass_ended(&mut self, device: DeviceId, report: &PassReport) {
        self.reports[device.index()].push(*report);
    }

    fn walked(&mut self, device: DeviceId, token: u32, rows: Option<Vec<WalkedRow>>) {
        self.walked.push((device.index(), token, rows));
    }

    fn trouble(&mut self, device: DeviceId, trouble: Trouble) {
        self.troubles.push((device.index(), trouble));
    }

    fn is_well(&mut self, device: DeviceId) {
        self.wells.push(device.index());
    }
}

/// How the network treats datagrams.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// Of a thousand datagrams, how many are lost.
    pub lost: u64,
    /// Of a thousand, how many come twice.
    pub doubled: u64,
    /// Microseconds of a way, at least and at most.
    pub delay: (u64, u64),
}

pub struct World {
    pub engine: Engine,
    pub agents: Vec<Agent>,
    ids: Vec<DeviceId>,
    pub log: Log,
    pub network: Network,
    pub now: u64,
    /// Datagrams on their way: to an agent, or from one.
    on_way: BTreeMap<(u64, u64), (usize, bool, Vec<u8>)>,
    sequence: u64,
    random: u64,
    /// Where answers come from, if not from whom was asked.
    pub answers_from: Option<SocketAddr>,
}

/// The clock when the simulation begins.
pub const START: i64 = 1_700_000_000_000_000;

impl std::ops::Deref for World {
    type Target = Log;

    fn deref(&self) -> &Log {
        &self.log
    }
}

impl World {
    pub fn new(seed: u64) -> Self {
        Self::with_window(seed, 512)
    }

    pub fn with_window(seed: u64, window: usize) -> Self {
        let now = 1_000_000_000;
        let engine = Engine::new(Now { wall: START + now as i64, mono: now }, window, seed);
        World {
            engine,
            agents: Vec::new(),
            ids: Vec::new(),
            log: Log { keeps: true, ..Log::default() },
            network: Network { lost: 0, doubled: 0, delay: (500, 2_000) },
            now,
            on_way: BTreeMap::new(),
            sequence: 0,
            random: seed * 2 + 1,
            answers_from: None,
        }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % below.max(1)
    }

    fn clock(&self) -> Now {
        Now { wall: START + self.now as i64, mono: self.now }
    }

    fn address(device: usize) -> SocketAddr {
        (Ipv4Addr::from_bits(0x0a00_0000 + device as u32), 161).into()
    }

    pub fn add(&mut self, agent: Agent, version: Version, step: u64) -> usize {
        let credentials = Credentials::Community { version, community: b"public".to_vec() };
        let device = self.agents.len();
        let options = DeviceOptions::new(step, &format!("router{device}"));
        let id = self.engine.add(Some(Self::address(device)), credentials, options);
        assert_eq!(id.index(), device);
        self.ids.push(id);
        self.agents.push(agent);
        self.log.outcomes.push(Vec::new());
        self.log.reports.push(Vec::new());
        device
    }

    pub fn set_plan(&mut self, device: usize, plan: Plan) {
        self.engine.set_plan(self.clock(), self.ids[device], plan);
    }

    pub fn walk(&mut self, device: usize, columns: &[&str]) {
        let columns = columns.iter().map(|text| super::oid(text)).collect();
        self.engine.walk(self.ids[device], 7, columns);
    }

    /// Forgets what has been seen.
    pub fn clear(&mut self) {
        self.log.outcomes.iter_mut().for_each(Vec::clear);
        self.log.reports.iter_mut().for_each(Vec::clear);
        self.log.troubles.clear();
    }

    fn post(&mut self) {
        for (to, datagram) in std::mem::take(&mut self.log.sent) {
            let SocketAddr::V4(to) = to else { panic!("{to}") };
            self.put((to.ip().to_bits() - 0x0a00_0000) as usize, true, datagram);
        }
    }

    fn put(&mut self, device: usize, is_request: bool, datagram: Vec<u8>) {
        if self.random(1000) < self.network.lost {
            return;
        }
        let copies = 1 + u64::from(self.random(1000) < self.network.doubled);
        for _ in 0..copies {
            let (least, most) = self.network.delay;
            let at = self.now + least + self.random(most - least);
            self.sequence += 1;
            self.on_way.insert((at, self.sequence), (device, is_request, datagram.clone()));
        }
    }

    /// Lets so many seconds pass.
    pub fn run(&mut self, seconds: u64) {
        let end = self.now + seconds * 1_000_000;
        loop {
            let tick = self.engine.next_tick().unwrap_or(u64::MAX).max(self.now);
            let arrival = self.on_way.keys().next().map_or(u64::MAX, |key| key.0);
            let next = tick.min(arrival);
            if next > end {
                break;
            }
            self.now = next;
            if arrival <= tick {
                let (_, (device, is_request, datagram)) = self.on_way.pop_first().unwrap();
                if is_request {
                    let answer = self.agents[device].answer(self.now, &datagram);
                    answer.into_iter().for_each(|answer| self.put(device, false, answer));
                } else {
                    let from = self.answers_from.unwrap_or(Self::address(device));
                    let now = self.clock();
                    self.engine.receive(now, from, &datagram, &mut self.log);
                }
            } else {
                let now = self.clock();
                self.engine.tick(now, &mut self.log);
            }
            self.post();
        }
        self.now = end;
    }
}
