//! The engine: when which device is asked, and what its answers mean. It owns no socket and no clock.
//!
//! A device has one request in flight, and all devices together have as many as the sockets' buffers hold answers for.

use std::collections::VecDeque;
use std::net::SocketAddr;

use ::snmp::ber::{Malformed, Reader, Writer, tag};
use ::snmp::message::{Pdu, PduKind, Version, version_of};
use ::snmp::oid::Oid;
use ::snmp::usm::{UsmRefusal, message_id};

use super::answer::{Outcome, PassReport, Polled, Trouble, WalkedRow};
use super::device::{Credentials, Device, DeviceOptions, Flight, Opened, Purpose};
use super::pass::bulk::Cell;
use super::pass::{self, Pass};
use super::plan::Plan;
use super::totals::Totals;
use super::walk::{Walk, WalkStep};
use super::wheel::Wheel;

/// The time, twice: by the clock that people set, and by one that only goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Microseconds since 1970.
    pub wall: i64,
    /// Microseconds since some moment.
    pub mono: u64,
}

impl Now {
    /// Seconds since some moment.
    pub(crate) fn seconds(&self) -> i64 {
        (self.mono / 1_000_000) as i64
    }
}

/// A device of an [`Engine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(u32);

impl DeviceId {
    pub(crate) fn new(index: usize) -> Self {
        DeviceId(index as u32)
    }

    /// Its number, from 0, without gaps.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What an engine calls: to send, and to say what came.
pub trait Handler {
    /// Sends a datagram to a device.
    fn send(&mut self, device: DeviceId, to: SocketAddr, datagram: &[u8]);
    /// A target has been answered, or will not be.
    fn outcome(&mut self, outcome: Outcome<'_>);
    /// A pass is over.
    fn pass_ended(&mut self, device: DeviceId, report: &PassReport);
    /// A walk is over; it failed if there are no rows at all, not even none.
    fn walked(&mut self, device: DeviceId, token: u32, rows: Option<Vec<WalkedRow>>);
    /// Something is wrong; it may be said again on each pass.
    fn trouble(&mut self, device: DeviceId, trouble: Trouble);
    /// A device that was silent answers again.
    fn is_well(&mut self, device: DeviceId);
}

/// Memory that is used again for each datagram.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub writer: Writer,
    pub cells: Vec<Cell<'static>>,
    pub samples: Vec<Polled>,
}

/// Polls devices.
#[derive(Debug)]
pub struct Engine {
    devices: Vec<Device>,
    wheel: Wheel,
    ready: VecDeque<u32>,
    /// Requests in flight: the low bits of a request's id are a place here.
    flights: Vec<(i32, u32)>,
    in_flight: usize,
    window: usize,
    random: u64,
    scratch: Scratch,
    /// The decrypted answer.
    plain: Vec<u8>,
    woken: Vec<u32>,
    totals: Totals,
}

/// An engine rests when nothing is due for so long: more than timers are late, so that it does not rest between devices that follow
/// closely on each other.
const REST_MICROS: u64 = 20_000;
/// No device.
const NONE: u32 = u32::MAX;
/// How often a request is sent again at once because a device tells its engine or its time: once each is what a device needs.
const SYNCHRONIZATIONS_MAX: u8 = 3;

impl Engine {
    /// An engine that has at most `window` requests in flight; `seed` makes the ids of requests hard to guess.
    pub fn new(now: Now, window: usize, seed: u64) -> Self {
        let window = window.clamp(1, 1 << 14);
        Engine {
            devices: Vec::new(),
            wheel: Wheel::new(now.mono),
            ready: VecDeque::new(),
            flights: vec![(0, NONE); (window * 4).next_power_of_two()],
            in_flight: 0,
            window,
            random: seed,
            scratch: Scratch::default(),
            plain: Vec::new(),
            woken: Vec::new(),
            totals: Totals::default(),
        }
    }

    /// Adds a device. It is polled once it has an address and a plan.
    pub fn add(
        &mut self,
        address: Option<SocketAddr>,
        credentials: Credentials,
        options: DeviceOptions,
    ) -> DeviceId {
        self.devices.push(Device::new(address, credentials, options));
        DeviceId(self.devices.len() as u32 - 1)
    }

    /// Another device takes the place of this one, of which nothing is remembered, and is not polled before it has an address and a
    /// plan. An answer that is still on its way counts as unexpected.
    pub fn replace(&mut self, id: DeviceId, credentials: Credentials, options: DeviceOptions) {
        self.land(id);
        let device = &mut self.devices[id.index()];
        // It may stand in the queue of those that are ready.
        let is_ready = device.is_ready;
        *device = Device { is_ready, ..Device::new(None, credentials, options) };
    }

    /// Polls a device no more; its place is free for [`Engine::replace`].
    pub fn remove(&mut self, id: DeviceId) {
        let options = self.devices[id.index()].options.clone();
        let nobody = Credentials::Community { version: Version::V1, community: Vec::new() };
        self.replace(id, nobody, options);
    }

    /// How many timers are set: as many as devices, or a few more.
    #[cfg(test)]
    pub(crate) fn timers(&self) -> usize {
        self.wheel.len()
    }

    /// Where the device is, as far as is known.
    pub fn set_address(&mut self, device: DeviceId, address: Option<SocketAddr>) {
        self.devices[device.index()].address = address;
    }

    /// Polls these targets from the next pass on.
    pub fn set_plan(&mut self, now: Now, id: DeviceId, plan: Plan) {
        let device = &mut self.devices[id.index()];
        device.next_plan = Some(plan);
        if device.pass.is_none() {
            device.adopt_plan();
            if device.due == u64::MAX {
                device.schedule(now);
                self.arm(id);
            }
        }
    }

    /// Begins a pass now; the next one is at its time by the clock.
    pub fn poll_now(&mut self, now: Now, id: DeviceId) {
        let device = &mut self.devices[id.index()];
        (device.due, device.due_wall) = (now.mono, now.wall);
        self.arm(id);
    }

    /// Walks columns of one table, once, between passes.
    pub fn walk(&mut self, id: DeviceId, token: u32, columns: Vec<Oid>) {
        self.begin_walk(id, Walk::new(token, columns));
    }

    /// Asks for the object that follows `oid`, once, between passes: a walk of one row without an index.
    pub fn walk_once(&mut self, id: DeviceId, token: u32, oid: Oid) {
        self.begin_walk(id, Walk::once(token, oid));
    }

    /// Asks for the object `oid` itself, once, between passes: a walk of one row without an index.
    pub fn get(&mut self, id: DeviceId, token: u32, oid: Oid) {
        self.begin_walk(id, Walk::object(token, oid));
    }

    /// Asks for the object `oid` itself, without repeating the request, to learn whether the device answers.
    pub fn probe(&mut self, id: DeviceId, token: u32, oid: Oid) {
        self.begin_walk(id, Walk::probe(token, oid));
    }

    fn begin_walk(&mut self, id: DeviceId, walk: Walk) {
        self.devices[id.index()].walks.push_back(walk);
        self.make_ready(id);
    }

    /// True while a pass over a device runs.
    pub fn has_pass(&self, id: DeviceId) -> bool {
        self.devices[id.index()].pass.is_some()
    }

    /// Forgets the walks of a device that have not begun.
    pub fn forget_walks(&mut self, id: DeviceId) {
        let device = &mut self.devices[id.index()];
        let in_flight = device.flight.is_some_and(|flight| flight.purpose == Purpose::Walk);
        device.walks.truncate(usize::from(in_flight));
    }

    /// Counters since the start.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Whether no answer is awaited, and none will be soon: what has been read need not wait for more.
    pub fn is_resting(&self, now: Now) -> bool {
        let is_soon = |tick: u64| tick < now.mono + REST_MICROS;
        self.in_flight == 0 && !self.next_tick().is_some_and(is_soon)
    }

    /// When [`Engine::tick`] is due next, at the latest. Nothing: only when a device is added.
    pub fn next_tick(&self) -> Option<u64> {
        if !self.ready.is_empty() && self.in_flight < self.window { Some(0) } else { self.wheel.next() }
    }

    /// Does what is due: begins passes, repeats requests, gives up on devices.
    pub fn tick<H: Handler>(&mut self, now: Now, handler: &mut H) {
        let mut woken = std::mem::take(&mut self.woken);
        self.wheel.take(now.mono, &mut woken);
        for number in woken.drain(..) {
            self.wake(DeviceId(number), now, handler);
        }
        self.woken = woken;
        self.send_ready(now, handler);
    }

    fn wake<H: Handler>(&mut self, id: DeviceId, now: Now, handler: &mut H) {
        let device = &mut self.devices[id.index()];
        // One that was set before an earlier one was: what it was for has been seen to.
        if !device.timer.is_some_and(|at| Wheel::has_come(at, now.mono)) {
            return;
        }
        device.timer = None;
        if device.flight.is_some_and(|flight| flight.deadline <= now.mono) {
            self.timed_out(id, now, handler);
        }
        let device = &mut self.devices[id.index()];
        if device.due <= now.mono {
            // A pass that is still running has used up its step.
            if let Some(pass) = &mut device.pass {
                pass.report.is_late = true;
                self.end_pass(id, now, handler);
            }
            self.begin_pass(id, now);
        }
        self.arm(id);
    }

    fn begin_pass(&mut self, id: DeviceId, now: Now) {
        let device = &mut self.devices[id.index()];
        device.adopt_plan();
        let is_late = now.mono > device.due + device.options.step / 10;
        let pass = Pass::new(device, &now, is_late);
        device.schedule(now);
        if device.plan.is_empty() {
            return;
        }
        device.pass = Some(pass);
        self.totals.passes += 1;
        self.make_ready(id);
    }

    fn end_pass<H: Handler>(&mut self, id: DeviceId, now: Now, handler: &mut H) {
        let device = &mut self.devices[id.index()];
        if device.flight.is_some_and(|flight| flight.purpose == Purpose::Pass) {
            self.land(id);
        }
        let device = &mut self.devices[id.index()];
        if let Some(report) = pass::finish((&mut *device, id), &now, &mut self.scratch, handler) {
            self.totals.add_pass(&report);
        }
        device.adopt_plan();
    }

    /// The answer to the request in flight is late.
    fn timed_out<H: Handler>(&mut self, id: DeviceId, now: Now, handler: &mut H) {
        self.totals.timeouts += 1;
        let device = &mut self.devices[id.index()];
        let Some(flight) = device.flight else { return };
        let is_pass = flight.purpose == Purpose::Pass;
        let mut end = u64::MAX;
        let mut is_probe = !is_pass && device.walks.front().is_some_and(|walk| walk.is_probe);
        if let (true, Some(pass)) = (is_pass, &mut device.pass) {
            pass.report.timeouts += 1;
            end = pass.end;
            is_probe = device.is_silent && !pass.report.is_alive;
        }
        let retries = if is_probe { 0 } else { device.options.retries };
        let is_smaller = match device.walks.front_mut() {
            _ if is_probe || flight.objects <= device.size.good => false,
            Some(walk) if !is_pass => walk.asks_less(&mut device.size, flight.objects, now.mono),
            _ => pass::was_lost(device, flight.objects, now.mono),
        };
        if (flight.tries < retries || is_smaller) && now.mono < end {
            // The same request again: an answer to the first one counts, too.
            let again = Flight { tries: flight.tries + u8::from(!is_smaller), ..flight };
            self.totals.retries += u64::from(!is_smaller);
            self.land(id);
            self.send(id, now, Some((again, is_smaller)), handler);
            return;
        }
        self.give_up(id, now, None, handler);
    }

    /// The request in flight will not be answered, because the device is silent or refuses us.
    fn give_up<H: Handler>(&mut self, id: DeviceId, now: Now, refusal: Option<UsmRefusal>, handler: &mut H) {
        self.totals.unauthorized += u64::from(refusal.is_some());
        let device = &mut self.devices[id.index()];
        let is_pass = device.flight.is_some_and(|flight| flight.purpose == Purpose::Pass);
        if let (true, Some(pass), Some(refusal)) = (is_pass, &mut device.pass, refusal) {
            pass.is_refused = true;
            handler.trouble(id, Trouble::Unauthorized(refusal));
        }
        self.land(id);
        if is_pass {
            self.end_pass(id, now, handler);
        } else if let Some(walk) = self.devices[id.index()].walks.pop_front() {
            handler.trouble(id, refusal.map_or(Trouble::Silent, Trouble::Unauthorized));
            handler.walked(id, walk.token, None);
        }
        self.make_ready(id);
    }

    /// The device has told its engine or its time: asks again, so that it understands.
    fn ask_again<H: Handler>(&mut self, id: DeviceId, now: Now, has_restarted: bool, handler: &mut H) {
        let device = &mut self.devices[id.index()];
        device.has_restarted |= has_restarted;
        let Some(flight) = device.flight else { return };
        if flight.synchronizations >= SYNCHRONIZATIONS_MAX {
            handler.trouble(id, Trouble::BadAnswer);
            return;
        }
        let again = Flight { synchronizations: flight.synchronizations + 1, sent: now.mono, ..flight };
        self.land(id);
        self.send(id, now, Some((again, true)), handler);
    }

    /// Takes a datagram that arrived from `from`.
    pub fn receive<H: Handler>(&mut self, now: Now, from: SocketAddr, datagram: &[u8], handler: &mut H) {
        self.totals.received += 1;
        let Ok(request_id) = request_id(datagram) else {
            self.totals.malformed += 1;
            return;
        };
        let place = request_id as usize & (self.flights.len() - 1);
        let (in_flight, number) = self.flights[place];
        if number == NONE || in_flight != request_id {
            self.totals.unexpected += 1;
            return;
        }
        let id = DeviceId(number);
        let device = &mut self.devices[id.index()];
        if device.address != Some(from) && !device.options.any_source {
            self.totals.wrong_address += 1;
            handler.trouble(id, Trouble::WrongAddress(from));
            return;
        }
        let mut plain = std::mem::take(&mut self.plain);
        match device.credentials.open(datagram, &mut plain, now.seconds()) {
            Ok(Opened::Pdu(pdu)) if pdu.kind == PduKind::Response && pdu.request_id == request_id => {
                self.take_answer(id, now, &pdu, datagram.len(), handler);
            }
            Ok(Opened::Synchronized { has_restarted }) => self.ask_again(id, now, has_restarted, handler),
            Ok(Opened::Refused(refusal)) => self.give_up(id, now, Some(refusal), handler),
            _ => {
                self.totals.malformed += 1;
                handler.trouble(id, Trouble::BadAnswer);
            }
        }
        self.plain = plain;
        self.send_ready(now, handler);
    }

    /// Takes the answer to the request in flight, of so many bytes.
    fn take_answer<H: Handler>(
        &mut self,
        id: DeviceId,
        now: Now,
        pdu: &Pdu<'_>,
        length: usize,
        handler: &mut H,
    ) {
        let device = &mut self.devices[id.index()];
        let Some(flight) = device.flight else { return };
        device.rtt.measured(now.mono.saturating_sub(flight.sent));
        self.land(id);
        let device = &mut self.devices[id.index()];
        match flight.purpose {
            Purpose::Pass => {
                let asked = (flight.objects, length);
                pass::answer((&mut *device, id), pdu, asked, &now, &mut self.scratch, handler);
            }
            Purpose::Walk => {
                let Some(walk) = device.walks.front_mut() else { return };
                let token = walk.token;
                let over = match walk.take(pdu, &mut self.scratch) {
                    WalkStep::Continue => {
                        device.size.answered(flight.objects, true, length, now.mono);
                        None
                    }
                    WalkStep::TooMany if walk.asks_less(&mut device.size, flight.objects, now.mono) => None,
                    WalkStep::TooMany => Some(None),
                    WalkStep::Done(rows) => Some(Some(rows)),
                    WalkStep::Failed(trouble) => {
                        handler.trouble(id, trouble);
                        Some(None)
                    }
                };
                if let Some(rows) = over {
                    device.walks.pop_front();
                    handler.walked(id, token, rows);
                }
            }
        }
        self.go_on(id, now, handler);
    }

    /// The next request of a device that has none in flight, at once if the window allows it.
    fn go_on<H: Handler>(&mut self, id: DeviceId, now: Now, handler: &mut H) {
        if self.ready.is_empty() && self.in_flight < self.window {
            self.send(id, now, None, handler);
        } else {
            self.make_ready(id);
        }
    }

    fn make_ready(&mut self, id: DeviceId) {
        let device = &mut self.devices[id.index()];
        let has_work = device.pass.is_some() || !device.walks.is_empty();
        if has_work && device.flight.is_none() && !device.is_ready {
            device.is_ready = true;
            self.ready.push_back(id.0);
        }
    }

    fn send_ready<H: Handler>(&mut self, now: Now, handler: &mut H) {
        while self.in_flight < self.window {
            let Some(number) = self.ready.pop_front() else { return };
            self.devices[number as usize].is_ready = false;
            self.send(DeviceId(number), now, None, handler);
        }
    }

    /// Sends the next request of a device, or `again` the one before, smaller if so.
    fn send<H: Handler>(&mut self, id: DeviceId, now: Now, again: Option<(Flight, bool)>, handler: &mut H) {
        let request_id = match again {
            Some((flight, false)) => flight.id,
            _ => self.free_id(self.devices[id.index()].options.has_short_ids),
        };
        let device = &mut self.devices[id.index()];
        if device.flight.is_some() {
            return;
        }
        let purpose = if device.pass.is_some() { Purpose::Pass } else { Purpose::Walk };
        let objects = match (purpose, device.walks.front()) {
            (Purpose::Pass, _) => {
                pass::compose((&mut *device, id), &now, &mut self.scratch, request_id, handler)
            }
            (Purpose::Walk, Some(walk)) => {
                let version = device.credentials.version();
                let (head, objects) =
                    walk.compose(&mut self.scratch.writer, version, device.size.now, request_id);
                device.credentials.seal(&mut self.scratch.writer, &head, now.seconds());
                Some(objects)
            }
            (Purpose::Walk, None) => return,
        };
        let Some(objects) = objects else {
            self.end_pass(id, now, handler);
            self.make_ready(id);
            return;
        };
        let (sent, tries, synchronizations) = again
            .map_or((now.mono, 0, 0), |(flight, _)| (flight.sent, flight.tries, flight.synchronizations));
        let wait = match device.options.patience {
            Some(patience) => patience.wait(tries),
            None => device.rtt.wait(device.options.timeout, tries),
        };
        let deadline = now.mono + wait;
        let flight = Flight { id: request_id, purpose, sent, deadline, tries, synchronizations, objects };
        device.flight = Some(flight);
        if let Some(pass) = &mut device.pass {
            pass.report.requests += 1;
        }
        let size = self.flights.len();
        self.flights[request_id as usize & (size - 1)] = (request_id, id.0);
        self.in_flight += 1;
        self.totals.sent += 1;
        if let Some(address) = device.address {
            handler.send(id, address, self.scratch.writer.bytes());
        }
        self.arm(id);
    }

    /// The device has no request in flight any more.
    fn land(&mut self, id: DeviceId) {
        let size = self.flights.len();
        if let Some(flight) = self.devices[id.index()].flight.take() {
            self.flights[flight.id as usize & (size - 1)] = (0, NONE);
            self.in_flight -= 1;
        }
    }

    /// An id whose place is free: there are four times as many places as the window is wide.
    fn free_id(&mut self, is_short: bool) -> i32 {
        loop {
            // splitmix64
            self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = (self.random ^ self.random >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            let id = ((mixed ^ mixed >> 31) >> if is_short { 48 } else { 33 }) as i32;
            if id != 0 && self.flights[id as usize & (self.flights.len() - 1)].1 == NONE {
                return id;
            }
        }
    }

    /// Sets the device's timer, unless one that comes no later is set: that one sets the next.
    fn arm(&mut self, id: DeviceId) {
        let device = &mut self.devices[id.index()];
        let flight = device.flight.map_or(u64::MAX, |flight| flight.deadline);
        let wanted = flight.min(device.due);
        if wanted != u64::MAX && device.timer.is_none_or(|timer| timer > wanted) {
            device.timer = Some(wanted);
            self.wheel.set(wanted, id.0);
        }
    }
}

impl Device {
    fn adopt_plan(&mut self) {
        if let Some(plan) = self.next_plan.take() {
            self.plan = plan;
            self.absent.clone_from(&self.plan.absent);
            self.no_bulk.clear();
        }
    }

    /// Sets the time of the next pass: the next moment by the clock that is the device's.
    fn schedule(&mut self, now: Now) {
        let (step, offset) = (self.options.step as i64, self.options.offset as i64);
        // A pass that begins a little early must not be followed by another at the moment it was meant for.
        let passed = (now.wall - offset + step / 20).div_euclid(step);
        self.due_wall = (passed + 1) * step + offset;
        self.due = now.mono + (self.due_wall - now.wall).max(0) as u64;
    }
}

/// The request id of an answer, before it is known of which device.
fn request_id(datagram: &[u8]) -> Result<i32, Malformed> {
    if version_of(datagram)? == Version::V3 {
        return message_id(datagram);
    }
    let mut message = Reader::new(Reader::new(datagram).expect(tag::SEQUENCE)?);
    message.integer()?;
    message.expect(tag::OCTET_STRING)?;
    let (_, body) = message.element()?;
    Reader::new(body).integer()
}
