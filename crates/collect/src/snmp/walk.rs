//! Walks over columns of a table, whole: how it is found out what a device has.

use ::snmp::ber::Writer;
use ::snmp::message::{Pdu, PduKind, RequestHead, Version, error_status};
use ::snmp::oid::{Oid, Suffix};
use ::snmp::value::OwnedValue;

use super::answer::{Trouble, WalkedRow};
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
    /// Columns that have not ended.
    active: Vec<usize>,
    from: Vec<u8>,
    rows: Vec<WalkedRow>,
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
        Walk { token, active: (0..columns.len()).collect(), columns, from: Vec::new(), rows: Vec::new() }
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
        let mut head =
            RequestHead { kind: PduKind::GetNext, request_id: id, non_repeaters: 0, max_repetitions: 0 };
        let mut rows = 1;
        if version != Version::V1 {
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
        match self.active.is_empty() {
            true => WalkStep::Done(std::mem::take(&mut self.rows)),
            false if self.rows.len() > ROWS_MAX => {
                WalkStep::Failed(Trouble::Endless(self.columns[0].clone()))
            }
            false => WalkStep::Continue,
        }
    }

    fn take_rows(&mut self, cells: &[Cell<'_>]) -> WalkStep {
        let columns = self.active.len();
        let limit = covered(cells, columns);
        let mut at = vec![0; columns];
        let cell = |at: &[usize], nth: usize| cells.get(at[nth] * columns + nth);
        loop {
            let next: Option<Suffix<'_>> = (0..columns).filter_map(|nth| cell(&at, nth)?.index).min();
            let Some(next) = next.filter(|next| limit.is_none_or(|limit| *next <= limit)) else { break };
            let mut values = vec![None; self.columns.len()];
            for nth in 0..columns {
                let Some(Cell { index: Some(index), value }) = cell(&at, nth) else { continue };
                if *index == next {
                    let value = (!value.is_exception()).then(|| OwnedValue::of(value));
                    values[self.active[nth]] = value;
                    at[nth] += 1;
                }
            }
            self.rows.push(WalkedRow { index: next.bytes().into(), values });
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
