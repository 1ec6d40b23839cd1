//! A pass over a device: its targets, request by request.

pub(crate) mod bulk;
mod get;

use ::snmp::message::{Pdu, PduKind, RequestHead, Version, error_status};
use ::snmp::oid::{Oid, OidRef};
use ::snmp::value::Value;
use rrd::time::Timestamp;

use super::answer::{Outcome, PassReport, Polled, Trouble};
use super::device::{Device, RequestSize};
use super::engine::{DeviceId, Handler, Now, Scratch};
use super::plan::Plan;

/// `sysUpTime.0`, encoded.
const SYS_UP_TIME_0: &[u8] = &[0x2b, 6, 1, 2, 1, 1, 3, 0];

/// The object of a plan at which a request begins or ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    block: usize,
    target: usize,
    column: usize,
}

impl Place {
    fn is_end(self, plan: &Plan) -> bool {
        self.block >= plan.blocks.len()
    }

    fn next(self, plan: &Plan) -> Place {
        let block = &plan.blocks[self.block];
        if self.column + 1 < block.shape.columns().len() {
            return Place { column: self.column + 1, ..self };
        }
        self.next_target(plan)
    }

    fn next_target(self, plan: &Plan) -> Place {
        let is_last = self.target + 1 == plan.blocks[self.block].targets.end;
        Place { block: self.block + usize::from(is_last), target: self.target + 1, column: 0 }
    }

    fn previous(self, plan: &Plan) -> Place {
        if self.column > 0 {
            return Place { column: self.column - 1, ..self };
        }
        let target = self.target - 1;
        let left = self.block < plan.blocks.len() && plan.blocks[self.block].targets.contains(&target);
        let block = if left { self.block } else { self.block - 1 };
        Place { block, target, column: plan.blocks[block].shape.columns().len() - 1 }
    }

    fn object(self, plan: &Plan) -> Oid {
        plan.object(&plan.blocks[self.block].shape.columns()[self.column], self.target)
    }

    fn key(self) -> (u32, u16) {
        (self.target as u32, self.column as u16)
    }
}

/// The state of a pass.
#[derive(Clone, Debug)]
pub(crate) struct Pass {
    pub report: PassReport,
    pub started: u64,
    /// When it must be over.
    pub end: u64,
    /// Up to here all is done.
    place: Place,
    /// Where the request in flight ends.
    until: Place,
    /// Whether the request in flight reads rows by GETBULK.
    is_bulk: bool,
    /// Whether the request in flight asks for as much as its size allows.
    is_full: bool,
    /// How many rows it asks for by GETBULK.
    rows: usize,
    /// The index after which the next rows of a table are read.
    from: Vec<u8>,
    is_from_set: bool,
    needs_uptime: bool,
    /// Whether a device that was silent is asked for no more than `sysUpTime`.
    is_probe: bool,
    /// Whether the device does not accept us, and has said so.
    pub is_refused: bool,
    /// Objects that cause errors: left out for the rest of this pass.
    skipped: Vec<(u32, u16)>,
    /// Whether the target of which a part has been answered is another row.
    is_moved: bool,
    /// Whether nothing more is asked.
    is_over: bool,
}

impl Pass {
    pub(crate) fn new(device: &Device, now: &Now, is_late: bool) -> Self {
        let report = PassReport { due: timestamp(device.due_wall), is_late, ..PassReport::default() };
        let has_uptime = device.options.has_uptime;
        Pass {
            report,
            started: now.mono,
            end: device.due + device.options.step / 10 * 9,
            place: Place::default(),
            until: Place::default(),
            is_bulk: false,
            is_full: false,
            rows: 0,
            from: Vec::new(),
            is_from_set: false,
            needs_uptime: has_uptime,
            is_probe: device.is_silent && has_uptime,
            is_refused: false,
            skipped: Vec::new(),
            is_moved: false,
            is_over: false,
        }
    }
}

/// Microseconds since 1970 as the store counts them.
pub(crate) fn timestamp(micros: i64) -> Timestamp {
    Timestamp::new(micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000) as u32)
}

/// A time shortly before `time`: less than 10 us may be none, because RRDtool reads times as doubles.
pub(crate) fn just_before(time: Timestamp) -> Timestamp {
    timestamp(time.whole * 1_000_000 + i64::from(time.micros) - 10)
}

/// Encodes the next request of the pass; returns how many objects it asks for, or nothing when the pass is over.
pub(crate) fn compose<H: Handler>(
    (device, id): (&mut Device, DeviceId),
    now: &Now,
    scratch: &mut Scratch,
    request_id: i32,
    handler: &mut H,
) -> Option<u16> {
    let may_bulk = device.options.bulk && device.credentials.version() != Version::V1;
    loop {
        let Device { pass: Some(pass), plan, size, credentials, absent, no_bulk, .. } = &mut *device else {
            return None;
        };
        scratch.writer.clear();
        pass.is_bulk = false;
        pass.until = pass.place;
        let is_bulk = |block: usize| {
            may_bulk && plan.blocks.get(block).is_some_and(|block| block.is_bulk) && !no_bulk.contains(&block)
        };
        let head = if is_bulk(pass.place.block) && !pass.is_probe {
            bulk::compose(pass, plan, size.now, scratch, request_id)
        } else {
            if !pass.is_probe {
                get::extend(pass, plan, absent, size.now, is_bulk);
            }
            get::compose(pass, plan, absent, scratch, request_id)
        };
        let (head, objects) = head?;
        if objects > 0 {
            credentials.seal(&mut scratch.writer, &head, now.seconds());
            return Some(objects);
        }
        // Everything up to the end of the request is left out: nothing to wait for.
        let mut pass = device.pass.take()?;
        let taken = get::take((&mut *device, id), &mut pass, std::iter::empty(), now, scratch, handler);
        device.pass = Some(pass);
        if taken.is_err() {
            return None;
        }
    }
}

/// Takes the answer to the request in flight. Afterwards the next one can be composed.
pub(crate) fn answer<H: Handler>(
    (device, id): (&mut Device, DeviceId),
    pdu: &Pdu<'_>,
    (objects, length): (u16, usize),
    now: &Now,
    scratch: &mut Scratch,
    handler: &mut H,
) {
    let Some(mut pass) = device.pass.take() else { return };
    pass.report.is_alive = true;
    pass.is_probe = false;
    let taken = if pdu.error_status != 0 {
        refused(device, id, &mut pass, pdu, handler)
    } else if pass.is_bulk {
        bulk::take((&mut *device, id), &mut pass, pdu, now, scratch, handler)
    } else {
        get::take((&mut *device, id), &mut pass, pdu.variables(), now, scratch, handler)
    };
    match taken {
        Ok(()) => {
            device.size.answered(objects, pass.is_full, length, now.mono);
        }
        Err(Failed::TooMany) if asks_less(device, &pass, objects, now.mono) => {}
        Err(Failed::TooMany | Failed::Nonsense) => {
            if !matches!(taken, Err(Failed::TooMany)) {
                handler.trouble(id, Trouble::BadAnswer);
            }
            give_way(device, &mut pass);
        }
        Err(Failed::Handled) => {}
    }
    device.pass = Some(pass);
}

/// So many objects were too many: asks for less, if that is possible.
fn asks_less(device: &mut Device, pass: &Pass, objects: u16, now: u64) -> bool {
    if pass.is_bulk && pass.rows <= 1 {
        return device.no_bulk.insert(pass.place.block);
    }
    device.size.too_many(objects, now)
}

/// A request was not answered in time: asks for less if so much was never answered.
pub(crate) fn was_lost(device: &mut Device, objects: u16, now: u64) -> bool {
    let Some(pass) = device.pass.take() else { return device.size.too_many(objects, now) };
    let asks_less = asks_less(device, &pass, objects, now);
    device.pass = Some(pass);
    asks_less
}

/// Why an answer was of no use.
enum Failed {
    /// Fewer objects may work.
    TooMany,
    /// It does not fit the request; fewer objects may work, too.
    Nonsense,
    /// What to do has been noted.
    Handled,
}

/// A request that cannot be made smaller failed: asks in another way, or leaves its first object out.
fn give_way(device: &mut Device, pass: &mut Pass) {
    if pass.is_bulk {
        device.no_bulk.insert(pass.place.block);
    } else if pass.needs_uptime {
        pass.needs_uptime = false;
    } else if !pass.place.is_end(&device.plan) {
        pass.skipped.push(pass.place.key());
    }
}

/// The device reports an error.
fn refused<H: Handler>(
    device: &mut Device,
    id: DeviceId,
    pass: &mut Pass,
    pdu: &Pdu<'_>,
    handler: &mut H,
) -> Result<(), Failed> {
    if pdu.error_status == error_status::TOO_BIG {
        pass.report.too_big += 1;
        return Err(Failed::TooMany);
    }
    if pass.is_bulk {
        device.no_bulk.insert(pass.place.block);
        return Err(Failed::Handled);
    }
    let nth = usize::try_from(pdu.error_index).unwrap_or(0);
    if nth == 1 && pass.needs_uptime {
        pass.needs_uptime = false;
        return Err(Failed::Handled);
    }
    let place =
        get::nth(pass, &device.plan, &device.absent, nth.wrapping_sub(1 + usize::from(pass.needs_uptime)));
    let Some(place) = place else { return Err(Failed::TooMany) };
    if pdu.error_status == error_status::NO_SUCH_NAME {
        if device.absent.insert(place.key()) {
            handler.trouble(id, Trouble::NoSuchObject(place.object(&device.plan)));
        }
    } else {
        pass.skipped.push(place.key());
        handler.trouble(id, Trouble::Refused(place.object(&device.plan), pdu.error_status));
    }
    Err(Failed::Handled)
}

/// Takes `sysUpTime` if it was asked for: the first variable.
fn take_uptime(
    device: &mut Device,
    pass: &mut Pass,
    oid: OidRef<'_>,
    value: &Value<'_>,
    now: &Now,
) -> Result<(), Failed> {
    if oid.bytes() != SYS_UP_TIME_0 {
        return Err(Failed::Nonsense);
    }
    pass.needs_uptime = false;
    if let Value::TimeTicks(ticks) = *value {
        pass.report.uptime = Some(ticks);
        pass.report.is_reset |=
            device.note_uptime(ticks, now.mono) | std::mem::take(&mut device.has_restarted);
        if pass.report.is_reset {
            device.absent.clone_from(&device.plan.absent);
        }
    }
    Ok(())
}

/// Hands out what came of one target.
fn emit<H: Handler>(
    (device, id): (&mut Device, DeviceId),
    pass: &mut Pass,
    target: usize,
    (samples, is_moved): (&mut [Polled], bool),
    time: i64,
    handler: &mut H,
) {
    if is_moved {
        samples.fill(Polled::Missing);
        pass.report.moved += 1;
    }
    match samples.iter().any(|sample| *sample != Polled::Missing) {
        true => pass.report.answered += 1,
        false => pass.report.missing += 1,
    }
    device.last_time = device.last_time.max(time);
    handler.outcome(Outcome {
        device: id,
        key: device.plan.target(target).key,
        time: timestamp(time),
        values: samples,
        is_answered: !pass.is_over,
        is_reset: pass.report.is_reset,
        is_moved,
    });
}

/// Ends the pass: what has not been answered is unknown at the time it was due. Returns what it took.
pub(crate) fn finish<H: Handler>(
    (device, id): (&mut Device, DeviceId),
    now: &Now,
    scratch: &mut Scratch,
    handler: &mut H,
) -> Option<PassReport> {
    let mut pass = device.pass.take()?;
    pass.is_over = true;
    let due = pass.report.due.whole * 1_000_000 + i64::from(pass.report.due.micros);
    let time = due.max(device.last_time.saturating_add(1));
    let mut place = pass.place;
    while !place.is_end(&device.plan) {
        let columns = device.plan.blocks[place.block].shape.columns();
        let values = columns.iter().filter(|column| !column.is_reference).count();
        scratch.samples.clear();
        scratch.samples.resize(values, Polled::Missing);
        emit((&mut *device, id), &mut pass, place.target, (&mut scratch.samples, false), time, handler);
        place = place.next_target(&device.plan);
    }
    pass.report.micros = now.mono.saturating_sub(pass.started);
    pass.report.rtt_micros = device.rtt.smoothed as u32;
    match (device.is_silent, pass.report.is_alive) {
        (true, true) => handler.is_well(id),
        (false, false) if !pass.is_refused => handler.trouble(id, Trouble::Silent),
        _ => {}
    }
    device.is_silent = !pass.report.is_alive;
    if device.is_silent && device.size.good == 0 {
        // It was not the size: it has never answered.
        device.size = RequestSize::new(device.options.objects_max);
        device.no_bulk.clear();
    }
    handler.pass_ended(id, &pass.report);
    Some(pass.report)
}

/// What a request of this kind begins with.
fn head(kind: PduKind, request_id: i32) -> RequestHead {
    RequestHead { kind, request_id, non_repeaters: 0, max_repetitions: 0 }
}
