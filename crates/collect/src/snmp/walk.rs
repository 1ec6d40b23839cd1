//! Walks over columns of a table, whole: how it is found out what a device has.

use std::collections::HashMap;

use ::snmp::ber::Writer;
use ::snmp::message::{Pdu, PduKind, RequestHead, Version, error_status};
use ::snmp::oid::{Oid, Suffix};
use ::snmp::value::OwnedValue;

use super::answer::{Trouble, WalkedRow};
use super::device::RequestSize;
use super::engine::Scratch;
use super::pass::bulk::{Cell, covered, read_cells, recycle};

/// Rows of a walk at most: more is a table that does not end.
const ROWS_MAX: usize = 200_000;

/// A walk and how far it is.
#[derive(Debug)]
pub(crate) struct Walk {
    /// The caller's own number.
    pub token: u32,
    columns: Vec<Oid>,
    how: WalkKind,
    /// Whether it only asks if the device answers: then it is asked once.
    pub is_probe: bool,
    /// Columns that are asked for at once: fewer than all, if a row is too large for an answer.
    width: usize,
    /// The first column that is asked for after these.
    next: usize,
    /// Columns that have not ended.
    active: Vec<usize>,
    from: Vec<u8>,
    rows: HashMap<Box<[u8]>, Vec<Option<OwnedValue>>>,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WalkKind {
    /// All rows of the columns.
    Columns,
    /// The object that follows, wherever that is.
    Next,
    /// The object itself.
    Object,
}

/// What follows from an answer.
#[derive(Debug)]
pub(crate) enum WalkStep {
    /// The walk goes on.
    Continue,
    /// Fewer objects should be asked for.
    TooMany,
    /// It is over.
    Done(Vec<WalkedRow>),
    /// It cannot go on.
    Failed(Trouble),
}

impl Walk {
    pub(crate) fn new(token: u32, columns: Vec<Oid>) -> Self {
        let width = columns.len();
        let active = (0..width).collect();
        Walk {
            token,
            columns,
            how: WalkKind::Columns,
            is_probe: false,
            width,
            next: width,
            active,
            from: Vec::new(),
            rows: HashMap::new(),
        }
    }

    /// Asks for the object that follows.
    pub(crate) fn once(token: u32, oid: Oid) -> Self {
        Walk { how: WalkKind::Next, ..Walk::new(token, vec![oid]) }
    }

    /// Asks for the object itself, and only once, to learn whether the device answers.
    pub(crate) fn probe(token: u32, oid: Oid) -> Self {
        Walk { is_probe: true, ..Walk::object(token, oid) }
    }

    /// Asks for the object itself.
    pub(crate) fn object(token: u32, oid: Oid) -> Self {
        Walk { how: WalkKind::Object, ..Walk::new(token, vec![oid]) }
    }

    /// A request for so many objects was too large: asks for less, if that is possible.
    pub(crate) fn asks_less(&mut self, size: &mut RequestSize, objects: u16, now: u64) -> bool {
        if usize::from(objects) > self.active.len() {
            return size.too_many(objects, now);
        }
        if self.active.len() <= 1 {
            return false;
        }
        // Those that are left out come once more, in a later group.
        self.width = self.active.len() / 2;
        self.next = self.active[self.width];
        self.active.truncate(self.width);
        true
    }

    /// Writes the next request's variables; returns its head and how many objects it asks for.
    pub(crate) fn compose(
        &self,
        writer: &mut Writer,
        version: Version,
        limit: u16,
        id: i32,
    ) -> (RequestHead, u16) {
        writer.clear();
        for &column in self.active.iter().rev() {
            writer.variable(self.columns[column].as_ref(), &self.from);
        }
        let columns = self.active.len().max(1);
        let kind = if self.how == WalkKind::Object { PduKind::Get } else { PduKind::GetNext };
        let mut head = RequestHead { kind, request_id: id, non_repeaters: 0, max_repetitions: 0 };
        let mut rows = 1;
        if version != Version::V1 && self.how == WalkKind::Columns {
            rows = (usize::from(limit) / columns).max(1);
            head.kind = PduKind::GetBulk;
            head.max_repetitions = rows as u16;
        }
        (head, (rows * columns) as u16)
    }

    /// Takes an answer.
    pub(crate) fn take(&mut self, pdu: &Pdu<'_>, scratch: &mut Scratch) -> WalkStep {
        if pdu.error_status != 0 {
            return self.refused(pdu);
        }
        if self.how != WalkKind::Columns {
            let found = pdu.variables().next().and_then(Result::ok);
            let values =
                found.map(|(_, value)| vec![(!value.is_exception()).then(|| OwnedValue::of(&value))]);
            return WalkStep::Done(
                values.map(|values| WalkedRow { index: [].into(), values }).into_iter().collect(),
            );
        }
        let mut cells = std::mem::take(&mut scratch.cells);
        let prefixes = self.active.iter().map(|&column| self.columns[column].as_ref());
        let read = read_cells(pdu.variables(), prefixes, &self.from, &mut cells);
        let step = match read {
            Err(Some(nth)) => {
                WalkStep::Failed(Trouble::NotIncreasing(self.columns[self.active[nth]].clone()))
            }
            Err(None) => WalkStep::Failed(Trouble::BadAnswer),
            Ok(()) if cells.len() < self.active.len() => WalkStep::TooMany,
            Ok(()) => self.take_rows(&cells),
        };
        scratch.cells = recycle(cells);
        step
    }

    fn refused(&mut self, pdu: &Pdu<'_>) -> WalkStep {
        if pdu.error_status == error_status::TOO_BIG {
            return WalkStep::TooMany;
        }
        let nth = usize::try_from(pdu.error_index).unwrap_or(0).wrapping_sub(1);
        match (pdu.error_status, self.active.get(nth)) {
            // Version 1: nothing follows in this column.
            (error_status::NO_SUCH_NAME, Some(_)) => {
                self.active.remove(nth);
                self.go_on()
            }
            (status, column) => {
                let column = column.copied().unwrap_or(0);
                WalkStep::Failed(Trouble::Refused(self.columns[column].clone(), status))
            }
        }
    }

    fn go_on(&mut self) -> WalkStep {
        if self.active.is_empty() && self.next < self.columns.len() {
            let end = (self.next + self.width).min(self.columns.len());
            self.active = (self.next..end).collect();
            self.next = end;
            self.from.clear();
        }
        match self.active.is_empty() {
            true => WalkStep::Done(self.sorted()),
            false if self.rows.len() > ROWS_MAX => {
                WalkStep::Failed(Trouble::Endless(self.columns[0].clone()))
            }
            false => WalkStep::Continue,
        }
    }

    fn sorted(&mut self) -> Vec<WalkedRow> {
        let rows = std::mem::take(&mut self.rows).into_iter();
        let mut rows: Vec<WalkedRow> = rows.map(|(index, values)| WalkedRow { index, values }).collect();
        rows.sort_by(|a, b| Suffix::new(&a.index).cmp(&Suffix::new(&b.index)));
        rows
    }

    fn take_rows(&mut self, cells: &[Cell<'_>]) -> WalkStep {
        let columns = self.active.len();
        let limit = covered(cells, columns);
        let mut at = vec![0; columns];
        let cell = |at: &[usize], nth: usize| cells.get(at[nth] * columns + nth);
        loop {
            let next: Option<Suffix<'_>> = (0..columns).filter_map(|nth| cell(&at, nth)?.index).min();
            let Some(next) = next.filter(|next| limit.is_none_or(|limit| *next <= limit)) else { break };
            let all = self.columns.len();
            let values = self.rows.entry(next.bytes().into()).or_insert_with(|| vec![None; all]);
            for nth in 0..columns {
                let Some(Cell { index: Some(index), value }) = cell(&at, nth) else { continue };
                if *index == next {
                    let value = (!value.is_exception()).then(|| OwnedValue::of(value));
                    values[self.active[nth]] = value;
                    at[nth] += 1;
                }
            }
        }
        if let Some(limit) = limit {
            self.from.clear();
            self.from.extend_from_slice(limit.bytes());
        }
        let last = &cells[cells.len() - columns..];
        let mut nth = 0;
        self.active.retain(|_| {
            nth += 1;
            last[nth - 1].index.is_some()
        });
        self.go_on()
    }
}
