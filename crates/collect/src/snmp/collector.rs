//! The collector of `[[snmp]]`: finds out what devices have, plans what is polled of them, and turns outcomes into readings.

mod discovery;
pub mod reload;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use self::discovery::Discovery;
use super::answer::{Outcome, PassReport, Polled, Trouble, WalkedRow};
use super::engine::{DeviceId, Engine, Handler, Now};
use super::outbox::Outbox;
use super::plan::{Column, Shape};
use super::profile::Profiles;
use super::source::SnmpSource;
use super::users::Users;
use crate::complaints::{Complaints, Notice};
use crate::host::safe_component;
use crate::inventory::{Inventory, RrdId, RrdSpec};
use crate::reading::{Readings, Value};
use crate::statistics::Statistic;

/// RRDs at most.
const RRDS_MAX: usize = 4_000_000;
/// How often it is looked which discoveries are due.
const LOOK_MICROS: u64 = 1_000_000;
/// The data sources of a device's own statistics.
const STATISTICS: [&str; 7] = ["rtt", "duration", "requests", "timeouts", "tooBig", "answered", "missing"];

/// An RRD that is fed, and which of its values are counters.
#[derive(Clone, Debug)]
struct Fed {
    rrd: RrdId,
    are_counters: Arc<[bool]>,
}

/// Polls the devices of a configuration.
#[derive(Debug)]
pub struct SnmpCollector {
    engine: Engine,
    users: Users,
    profiles: Profiles,
    /// Places of devices that were removed.
    free: Vec<DeviceId>,
    state: State,
    /// When to look which discoveries are due.
    look_at: u64,
}

/// All but the engine, which calls it.
#[derive(Debug)]
struct State {
    /// By the engine's number, with those that were removed.
    devices: Vec<PolledDevice>,
    inventory: Inventory,
    /// By the number of the RRD.
    fed: Vec<Option<Fed>>,
    shapes: HashMap<Vec<Column>, Arc<Shape>>,
    specs: HashMap<RrdSpec, Arc<RrdSpec>>,
    readings: Readings,
    /// RRDs with what their devices say that they are, since they were taken last.
    titles: Vec<(Vec<u8>, String)>,
    complaints: Complaints,
    outbox: Outbox,
    walked: Vec<(DeviceId, u32, Option<Vec<WalkedRow>>)>,
    /// Targets with values, and without, since the start.
    answered: u64,
    missing: u64,
    now: Now,
}

#[derive(Debug)]
struct PolledDevice {
    /// Its name in messages.
    name: String,
    /// Its name in paths.
    component: String,
    source: SnmpSource,
    discovery: Discovery,
    statistics: Option<RrdId>,
    /// The RRDs of what the last discovery found.
    rrds: Vec<RrdId>,
    last_pass: Option<PassReport>,
    /// Whether its last pass was late.
    is_slow: bool,
    /// Whether the configuration no longer has it: then nothing happens to it, until its place is taken.
    is_removed: bool,
}

impl SnmpCollector {
    /// A collector without devices, with at most `window` requests in flight. See [`Engine::new`] for `seed`.
    pub fn new(now: Now, window: usize, seed: u64, profiles: Profiles) -> Self {
        let state = State {
            devices: Vec::new(),
            inventory: Inventory::new(RRDS_MAX),
            fed: Vec::new(),
            shapes: HashMap::new(),
            specs: HashMap::new(),
            readings: Readings::default(),
            titles: Vec::new(),
            complaints: Complaints::default(),
            outbox: Outbox::default(),
            walked: Vec::new(),
            answered: 0,
            missing: 0,
            now,
        };
        SnmpCollector {
            engine: Engine::new(now, window, seed),
            users: Users::new(seed),
            profiles,
            free: Vec::new(),
            state,
            look_at: 0,
        }
    }

    /// Adds a device; what it has is found out once it has an address.
    ///
    /// # Errors
    /// When the source is not good: see [`SnmpSource::check`].
    pub fn add(&mut self, source: SnmpSource) -> Result<DeviceId, String> {
        source.check(&self.profiles)?;
        let discovery = Discovery::new(source.tables(&self.profiles)?, source.discover * 1_000_000);
        let (credentials, options) = source.engine_options(&mut self.users)?;
        let name = source.name().to_string();
        let component = safe_component(&name);
        let device = PolledDevice {
            name,
            component,
            source,
            discovery,
            statistics: None,
            rrds: Vec::new(),
            last_pass: None,
            is_slow: false,
            is_removed: false,
        };
        Ok(match self.free.pop() {
            Some(id) => {
                self.engine.replace(id, credentials, options);
                self.state.devices[id.index()] = device;
                id
            }
            None => {
                self.state.devices.push(device);
                self.engine.add(None, credentials, options)
            }
        })
    }

    /// The device's host and port, to be resolved.
    pub fn host(&self, id: DeviceId) -> Option<(&str, u16)> {
        self.state.devices[id.index()].source.address()
    }

    /// Where the device is; the first address starts the discovery.
    pub fn set_address(&mut self, now: Now, id: DeviceId, address: SocketAddr) {
        self.state.now = now;
        self.engine.set_address(id, Some(address));
        let device = &mut self.state.devices[id.index()];
        if !device.discovery.has_begun() {
            device.discovery.begin(id, now, &mut self.engine);
        }
        self.engine.tick(now, &mut self.state);
    }

    /// What is wrong with a device's name.
    pub fn cannot_resolve(&mut self, id: DeviceId, error: &str) {
        let device = &self.state.devices[id.index()];
        self.state.complaints.raise(&device.name, format!("its address cannot be found: {error}"));
    }

    /// Takes a datagram.
    pub fn receive(&mut self, now: Now, from: SocketAddr, datagram: &[u8]) {
        self.state.now = now;
        self.engine.receive(now, from, datagram, &mut self.state);
        self.take_walks(now);
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Now) {
        self.state.now = now;
        self.engine.tick(now, &mut self.state);
        if now.mono < self.look_at {
            return self.take_walks(now);
        }
        self.look_at = now.mono + LOOK_MICROS;
        for (number, device) in self.state.devices.iter_mut().enumerate() {
            if device.discovery.is_due(now) {
                device.discovery.begin(DeviceId::new(number), now, &mut self.engine);
            }
        }
        self.take_walks(now);
    }

    fn take_walks(&mut self, now: Now) {
        if self.state.walked.is_empty() {
            return;
        }
        for (id, table, rows) in std::mem::take(&mut self.state.walked) {
            let is_over = self.state.devices[id.index()].discovery.take(table, rows, now);
            if is_over {
                let plan = self.state.plan(id);
                self.engine.set_plan(now, id, plan);
            }
        }
        self.engine.tick(now, &mut self.state);
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> usize {
        self.engine.in_flight()
    }

    /// Whether no answer is awaited, and none will be soon.
    pub fn is_resting(&self, now: Now) -> bool {
        self.engine.is_resting(now)
    }

    /// When [`SnmpCollector::tick`] is due at the latest.
    pub fn next_tick(&self) -> Option<u64> {
        self.engine.next_tick()
    }

    /// Passes each datagram that is to be sent to `send`.
    pub fn send_all(&mut self, mut send: impl FnMut(SocketAddr, &[u8])) {
        self.state.outbox.send_all(|_, to, datagram| send(to, datagram));
    }

    /// The RRDs of which devices have said what they are, with that, since the last call.
    pub fn take_titles(&mut self) -> Vec<(Vec<u8>, String)> {
        std::mem::take(&mut self.state.titles)
    }

    /// The RRDs and their new readings.
    pub fn readings(&self) -> (&Inventory, &Readings) {
        (&self.state.inventory, &self.state.readings)
    }

    /// Forgets the readings.
    pub fn clear_readings(&mut self) {
        self.state.readings.clear();
    }

    /// The RRDs of what was found on a device, in the order of the tables, and how its last pass went.
    pub fn found(&self, id: DeviceId) -> (&[RrdId], Option<&PassReport>) {
        let device = &self.state.devices[id.index()];
        (&device.rrds, device.last_pass.as_ref())
    }

    /// What is wrong since the last call, and what no longer is.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        self.state.complaints.take_notices()
    }

    /// The collector's own numbers, for `/metrics` and for an RRD.
    pub fn statistics(&self) -> Vec<Statistic> {
        let devices = || self.state.devices.iter().filter(|device| !device.is_removed);
        let is_silent = |device: &&PolledDevice| !device.last_pass.is_some_and(|pass| pass.is_alive);
        let rrds = devices().map(|device| device.rrds.len() + usize::from(device.statistics.is_some()));
        let mut numbers = self.engine.totals().statistics();
        numbers.extend([
            Statistic::count("targets_answered", "Rows whose values came", self.state.answered),
            Statistic::count("targets_missing", "Rows without values", self.state.missing),
            Statistic::level("devices", "Devices", devices().count() as u64),
            Statistic::level(
                "silent_devices",
                "Devices without an answer in their last pass, or without a pass so far",
                devices().filter(is_silent).count() as u64,
            ),
            Statistic::level("in_flight", "Requests in flight", self.engine.in_flight() as u64),
            Statistic::level("rrds", "RRDs fed", rrds.sum::<usize>() as u64),
        ]);
        numbers
    }
}

impl State {
    /// Readings of this RRD are of these kinds from now on.
    fn feed(&mut self, rrd: RrdId, are_counters: Arc<[bool]>) {
        if self.fed.len() <= rrd.index() {
            self.fed.resize(rrd.index() + 1, None);
        }
        self.fed[rrd.index()] = Some(Fed { rrd, are_counters });
    }

    fn subject(&self, id: DeviceId, trouble: &Trouble) -> String {
        let name = &self.devices[id.index()].name;
        trouble.object().map_or_else(|| name.clone(), |oid| format!("{name}: {oid}"))
    }

    /// Says once that a device does not answer all in its step, and when it does again.
    fn note_pace(&mut self, id: DeviceId, report: &PassReport) {
        let device = &mut self.devices[id.index()];
        let is_slow = report.is_late && report.is_alive;
        if std::mem::replace(&mut device.is_slow, is_slow) == is_slow {
            return;
        }
        let subject = format!("{}: pace", device.name);
        if is_slow {
            let (seconds, step) = (report.micros as f64 / 1e6, device.source.step);
            let text = format!("its answers took {seconds:.1} s, too long for a step of {step} s");
            self.complaints.raise(&subject, text);
        } else {
            self.complaints.resolve(&subject);
        }
    }

    /// The RRD of a device's own statistics.
    fn statistics(&mut self, id: DeviceId) -> Option<RrdId> {
        let device = &mut self.devices[id.index()];
        if device.statistics.is_none() {
            let name = format!("snmp/{}.rrd", device.component);
            let (source, step) = (&device.source, device.source.step);
            let args = STATISTICS.iter().map(|ds| source.ds_arg(ds, "GAUGE", "0"));
            let args = args.chain(source.rra_args()).collect();
            let spec = Arc::new(RrdSpec { step, starts_before: step, args });
            device.statistics = self.inventory.find_or_define(name.as_bytes(), spec).ok();
            if let Some(rrd) = device.statistics {
                self.inventory.assign(rrd, device.source.assignment);
            }
        }
        device.statistics
    }
}

/// A polled value as a reading has it.
fn reading_of(polled: Polled) -> Value<'static> {
    match polled {
        Polled::Missing | Polled::NoNumber => Value::Unknown,
        Polled::Counter32(number) | Polled::Ticks(number) => Value::Unsigned(number.into()),
        Polled::Unsigned(number) => Value::Unsigned(number),
        Polled::Signed(number) => Value::Signed(number),
        Polled::Float(number) => Value::Float(number),
    }
}

impl Handler for State {
    fn send(&mut self, device: DeviceId, to: SocketAddr, datagram: &[u8]) {
        self.outbox.push(device, to, datagram);
    }

    fn outcome(&mut self, outcome: Outcome<'_>) {
        let Some(Some(fed)) = self.fed.get(outcome.key as usize) else { return };
        let time = outcome.time;
        if outcome.is_reset {
            // Counters begin again: what lies between the last reading and this one is unknown.
            let values = outcome.values.iter().zip(&*fed.are_counters);
            let values = values.map(|(value, is_counter)| match is_counter {
                true => Value::Unknown,
                false => reading_of(*value),
            });
            self.readings.push(fed.rrd, super::pass::just_before(time), values);
        }
        self.readings.push(fed.rrd, time, outcome.values.iter().map(|value| reading_of(*value)));
    }

    fn pass_ended(&mut self, id: DeviceId, report: &PassReport) {
        self.answered += u64::from(report.answered);
        self.missing += u64::from(report.missing);
        self.note_pace(id, report);
        self.devices[id.index()].last_pass = Some(*report);
        if report.moved > 0 || report.is_reset {
            self.devices[id.index()].discovery.want(self.now);
        }
        if let Some(rrd) = self.statistics(id) {
            let micros = |micros: u64| Value::Float(micros as f64 / 1e6);
            let count = |count: u32| Value::Unsigned(count.into());
            let rtt = if report.is_alive { micros(report.rtt_micros.into()) } else { Value::Unknown };
            let values = [
                rtt,
                micros(report.micros),
                count(report.requests),
                count(report.timeouts),
                count(report.too_big),
                count(report.answered),
                count(report.missing),
            ];
            self.readings.push(rrd, report.due, values);
        }
    }

    fn walked(&mut self, device: DeviceId, token: u32, rows: Option<Vec<WalkedRow>>) {
        self.walked.push((device, token, rows));
    }

    fn trouble(&mut self, device: DeviceId, trouble: Trouble) {
        let subject = self.subject(device, &trouble);
        self.complaints.raise(&subject, trouble.to_string());
    }

    fn is_well(&mut self, device: DeviceId) {
        let subject = self.devices[device.index()].name.clone();
        self.complaints.resolve(&subject);
    }
}

#[cfg(test)]
mod tests;
