//! Tables read by GETBULK over all their columns at once. Rows are matched by index, never by place.

use ::snmp::message::{Pdu, PduKind, RequestHead};
use ::snmp::oid::{OidRef, Suffix, push_arc};
use ::snmp::value::Value;

use super::{Failed, Pass, SYS_UP_TIME_0, emit, head, take_uptime};
use crate::snmp::answer::{Polled, Trouble, is_expected};
use crate::snmp::device::Device;
use crate::snmp::engine::{DeviceId, Handler, Now, Scratch};
use crate::snmp::plan::{COLUMNS_MAX, Plan};

/// A variable of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell<'a> {
    /// The index, if the variable is still of its column.
    pub index: Option<Suffix<'a>>,
    pub value: Value<'a>,
}

/// Cells for reuse: what they refer to has gone.
pub(crate) fn recycle(mut cells: Vec<Cell<'_>>) -> Vec<Cell<'static>> {
    cells.clear();
    // The same memory, as nothing is left in it.
    cells.into_iter().map(|_| unreachable!("there are no cells")).collect()
}

/// The largest index before `index`, or a shorter one: an object from which a walk gets to `index` first.
fn before(index: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let end = index.len().saturating_sub(1);
    let start = index[..end].iter().rposition(|&byte| byte < 0x80).map_or(0, |at| at + 1);
    out.extend_from_slice(&index[..start]);
    let last = Suffix::new(&index[start..]).and_then(|arc| arc.arcs().next()).unwrap_or(0);
    if last > 0 {
        push_arc(out, last - 1);
    }
}

/// Encodes a request for the next rows.
pub(super) fn compose(
    pass: &mut Pass,
    plan: &Plan,
    limit: u16,
    scratch: &mut Scratch,
    id: i32,
) -> Option<(RequestHead, u16)> {
    let block = &plan.blocks[pass.place.block];
    let columns = block.shape.columns();
    if !pass.is_from_set {
        before(plan.index(pass.place.target), &mut pass.from);
        pass.is_from_set = true;
    }
    for column in columns.iter().rev() {
        scratch.writer.variable(column.prefix.as_ref(), &pass.from);
    }
    let mut head = head(PduKind::GetBulk, id);
    if pass.needs_uptime {
        // What follows `sysUpTime` is `sysUpTime.0`.
        let uptime = &SYS_UP_TIME_0[..SYS_UP_TIME_0.len() - 1];
        scratch.writer.variable(OidRef::new(uptime)?, &[]);
        head.non_repeaters = 1;
    }
    let remaining = block.targets.end - pass.place.target;
    let rows = (usize::from(limit) / columns.len()).clamp(1, remaining);
    head.max_repetitions = rows as u16;
    pass.is_bulk = true;
    pass.is_full = rows < remaining;
    pass.rows = rows;
    Some((head, (rows * columns.len()) as u16 + head.non_repeaters))
}

/// Takes the rows of an answer.
pub(super) fn take<H: Handler>(
    (device, id): (&mut Device, DeviceId),
    pass: &mut Pass,
    pdu: &Pdu<'_>,
    now: &Now,
    scratch: &mut Scratch,
    handler: &mut H,
) -> Result<(), Failed> {
    let mut variables = pdu.variables();
    if pass.needs_uptime {
        let Some(Ok((oid, value))) = variables.next() else { return Err(Failed::Nonsense) };
        take_uptime(&mut *device, pass, oid, &value, now)?;
    }
    let mut cells = std::mem::take(&mut scratch.cells);
    let shape = std::sync::Arc::clone(&device.plan.blocks[pass.place.block].shape);
    let prefixes = shape.columns().iter().map(|column| column.prefix.as_ref());
    let read = read_cells(variables, prefixes, &pass.from, &mut cells);
    let taken = match read {
        Ok(()) if cells.len() < shape.columns().len() => Err(Failed::TooMany),
        Ok(()) => {
            match_rows((&mut *device, id), pass, &cells, now, &mut scratch.samples, handler);
            Ok(())
        }
        Err(column) => {
            let oid = column
                .map_or_else(|| pass.place.object(&device.plan), |at| shape.columns()[at].prefix.clone());
            handler.trouble(id, Trouble::NotIncreasing(oid));
            device.no_bulk.insert(pass.place.block);
            Err(Failed::Handled)
        }
    };
    scratch.cells = recycle(cells);
    taken
}

/// Reads whole repetitions of columns; each must come after the one before. Errors name the column that does not.
pub(crate) fn read_cells<'a, 'p>(
    variables: impl Iterator<Item = Result<(OidRef<'a>, Value<'a>), ::snmp::ber::Malformed>>,
    prefixes: impl ExactSizeIterator<Item = OidRef<'p>> + Clone,
    from: &[u8],
    cells: &mut Vec<Cell<'a>>,
) -> Result<(), Option<usize>> {
    let columns = prefixes.len();
    let mut prefix = prefixes.clone();
    for variable in variables {
        let Ok((oid, value)) = variable else { return Err(None) };
        let at = cells.len() % columns;
        if at == 0 {
            prefix = prefixes.clone();
        }
        let Some(prefix) = prefix.next() else { return Err(None) };
        let mut index = oid.strip_prefix(prefix).filter(|index| !index.bytes().is_empty());
        if value == Value::EndOfMibView {
            index = None;
        }
        let last = match cells.len().checked_sub(columns) {
            Some(above) => cells[above].index,
            None => Suffix::new(from),
        };
        match (last, index) {
            (Some(last), Some(index)) if index <= last => return Err(Some(at)),
            (None, Some(_)) => index = None,
            _ => {}
        }
        cells.push(Cell { index, value });
    }
    cells.truncate(cells.len() / columns * columns);
    Ok(())
}

/// Up to which index the cells tell all rows; nothing when every column has ended.
pub(crate) fn covered<'a>(cells: &[Cell<'a>], columns: usize) -> Option<Suffix<'a>> {
    cells[cells.len() - columns..].iter().filter_map(|cell| cell.index).min()
}

fn match_rows<H: Handler>(
    (device, id): (&mut Device, DeviceId),
    pass: &mut Pass,
    cells: &[Cell<'_>],
    now: &Now,
    samples: &mut Vec<Polled>,
    handler: &mut H,
) {
    let block = pass.place.block;
    let shape = std::sync::Arc::clone(&device.plan.blocks[block].shape);
    let columns = shape.columns().len();
    let limit = covered(cells, columns);
    let mut at = [0usize; COLUMNS_MAX];
    while pass.place.block == block {
        let target = pass.place.target;
        let index = device.plan.index(target);
        let Some(wanted) = Suffix::new(index) else { break };
        if limit.is_some_and(|limit| wanted > limit) {
            break;
        }
        samples.clear();
        let mut is_moved = false;
        for (nth, column) in shape.columns().iter().enumerate() {
            let mut cell = cells.get(at[nth] * columns + nth);
            while let Some(Cell { index: Some(here), .. }) = cell {
                if here.bytes() == index || *here > wanted {
                    break;
                }
                at[nth] += 1;
                cell = cells.get(at[nth] * columns + nth);
            }
            let value = cell.filter(|cell| cell.index == Some(wanted)).map(|cell| &cell.value);
            match column.is_reference {
                true => {
                    is_moved |=
                        !value.is_some_and(|value| is_expected(value, device.plan.expected(column, target)));
                }
                false => samples.push(value.map_or(Polled::Missing, Polled::of)),
            }
        }
        emit((&mut *device, id), pass, target, (samples, is_moved), now.wall, handler);
        pass.place = pass.place.next_target(&device.plan);
    }
    pass.is_from_set = pass.place.block == block;
    if let (true, Some(limit)) = (pass.is_from_set, limit) {
        pass.from.clear();
        pass.from.extend_from_slice(limit.bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_begins_just_before_the_first_row_wanted() {
        let mut out = Vec::new();
        for (index, want) in [
            (&[5][..], &[4][..]),
            (&[0], &[]),
            (&[1, 0], &[1]),
            (&[0x81, 0], &[0x7f]),
            (&[3, 0xce, 0x75], &[3, 0xce, 0x74]),
        ] {
            before(index, &mut out);
            assert_eq!(out, want, "{index:?}");
        }
    }
}
