//! Objects packed into GETs.

use std::collections::HashSet;

use ::snmp::ber::Malformed;
use ::snmp::message::{PduKind, RequestHead};
use ::snmp::oid::OidRef;
use ::snmp::value::Value;

use super::{Failed, Pass, Place, SYS_UP_TIME_0, emit, head, take_uptime};
use crate::snmp::answer::{Polled, is_expected};
use crate::snmp::device::Device;
use crate::snmp::engine::{DeviceId, Handler, Now, Scratch};
use crate::snmp::plan::Plan;

/// Bytes of a request's variables at most: request and answer each fit into one packet.
const REQUEST_BYTES_MAX: usize = 1300;
/// Bytes of a variable beside its object identifier.
const VARIABLE_BYTES: usize = 6;

/// Whether an object is not asked for.
fn is_left_out(pass: &Pass, absent: &HashSet<(u32, u16)>, place: Place) -> bool {
    (!absent.is_empty() && absent.contains(&place.key()))
        || (!pass.skipped.is_empty() && pass.skipped.contains(&place.key()))
}

/// Moves the end of the request as far as `limit` objects reach, with whole targets where they fit.
pub(super) fn extend(
    pass: &mut Pass,
    plan: &Plan,
    absent: &HashSet<(u32, u16)>,
    limit: u16,
    is_bulk: impl Fn(usize) -> bool,
) {
    let mut objects = usize::from(pass.needs_uptime);
    let mut bytes = 0;
    let limit = usize::from(limit).max(1);
    let mut place = pass.place;
    while !place.is_end(plan) && !is_bulk(place.block) {
        let columns = plan.blocks[place.block].shape.columns();
        let rest = columns.len() - place.column;
        if place != pass.place && objects + rest > limit {
            break;
        }
        let first = place;
        while place.target == first.target && !place.is_end(plan) {
            if objects >= limit {
                pass.until = place;
                pass.is_full = true;
                return;
            }
            if !is_left_out(pass, absent, place) {
                let column = &columns[place.column];
                objects += 1;
                bytes += column.prefix.as_ref().bytes().len()
                    + plan.index_for(column, place.target).len()
                    + VARIABLE_BYTES;
            }
            place = place.next(plan);
        }
        if bytes > REQUEST_BYTES_MAX && first != pass.place {
            place = first;
            break;
        }
    }
    pass.until = place;
    pass.is_full = !place.is_end(plan);
}

/// Encodes the objects up to the end of the request. Nothing when there is nothing to ask.
pub(super) fn compose(
    pass: &Pass,
    plan: &Plan,
    absent: &HashSet<(u32, u16)>,
    scratch: &mut Scratch,
    id: i32,
) -> Option<(RequestHead, u16)> {
    let mut objects = 0;
    let mut place = pass.until;
    while place != pass.place {
        place = place.previous(plan);
        if is_left_out(pass, absent, place) {
            continue;
        }
        let column = &plan.blocks[place.block].shape.columns()[place.column];
        scratch.writer.variable(column.prefix.as_ref(), plan.index_for(column, place.target));
        objects += 1;
    }
    if let (true, Some(uptime)) = (pass.needs_uptime, OidRef::new(SYS_UP_TIME_0)) {
        scratch.writer.variable(uptime, &[]);
        objects += 1;
    }
    // All objects up to the end may be left out: then an empty request only moves on.
    (objects > 0 || pass.until != pass.place).then(|| (head(PduKind::Get, id), objects))
}

/// The `nth` object of the request in flight, `sysUpTime` not counted.
pub(super) fn nth(pass: &Pass, plan: &Plan, absent: &HashSet<(u32, u16)>, nth: usize) -> Option<Place> {
    let mut place = pass.place;
    let mut left = nth;
    while place != pass.until && !place.is_end(plan) {
        if !is_left_out(pass, absent, place) {
            if left == 0 {
                return Some(place);
            }
            left -= 1;
        }
        place = place.next(plan);
    }
    None
}

/// Takes the values of an answer, target by target.
pub(super) fn take<'a, H: Handler>(
    (device, id): (&mut Device, DeviceId),
    pass: &mut Pass,
    mut variables: impl Iterator<Item = Result<(OidRef<'a>, Value<'a>), Malformed>>,
    now: &Now,
    scratch: &mut Scratch,
    handler: &mut H,
) -> Result<(), Failed> {
    if pass.needs_uptime {
        let Some(Ok((oid, value))) = variables.next() else { return Err(Failed::Nonsense) };
        take_uptime(device, pass, oid, &value, now)?;
    }
    let mut place = pass.place;
    scratch.samples.clear();
    if place.column > 0 {
        scratch.samples.append(&mut device.partial);
    }
    let mut is_moved = pass.is_moved && place.column > 0;
    while place != pass.until {
        let column = &device.plan.blocks[place.block].shape.columns()[place.column];
        if is_left_out(pass, &device.absent, place) {
            match column.is_reference {
                true => is_moved = true,
                false => scratch.samples.push(Polled::Missing),
            }
        } else {
            // What came before is done; the request is repeated from here, smaller.
            let Some(Ok((oid, value))) = variables.next() else { return cut(pass, place) };
            if !device.plan.is_object(oid, column, place.target) {
                return cut(pass, place);
            }
            match column.is_reference {
                true => is_moved |= !is_expected(&value, device.plan.expected(column, place.target)),
                false => scratch.samples.push(Polled::of(&value)),
            }
        }
        let next = place.next(&device.plan);
        if next.target != place.target {
            let samples = (&mut scratch.samples[..], is_moved);
            emit((&mut *device, id), pass, place.target, samples, now.wall, handler);
            scratch.samples.clear();
            is_moved = false;
            pass.place = next;
        }
        place = next;
    }
    if place.column > 0 {
        device.partial.clear();
        device.partial.extend_from_slice(&scratch.samples);
        pass.is_moved = is_moved;
        pass.place = place;
    }
    Ok(())
}

/// The answer ends before `place`, or goes on with another object: what is missing is asked again.
fn cut(pass: &mut Pass, place: Place) -> Result<(), Failed> {
    pass.until = place;
    match pass.place.column {
        // The samples of the first part of the target are gone with the scratch memory.
        0 => {}
        _ => pass.place.column = 0,
    }
    Err(Failed::TooMany)
}
