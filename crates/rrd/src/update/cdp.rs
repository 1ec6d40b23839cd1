//! From primary data points to rows, for AVERAGE, MIN, MAX and LAST.

use super::pdp::{canonical, double};
use crate::definition::PlainCf;
use crate::live::{CdpPrep, UNKNOWN};

/// How the PDPs of a span map to the rows of one archive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowCut {
    /// PDPs per row.
    pub pdp_per_row: u64,
    /// PDPs needed to complete the open row.
    pub to_row_end: u64,
    /// PDPs in the span.
    pub elapsed: u64,
    /// Rows the span completes.
    pub rows: u64,
}

impl RowCut {
    #[inline]
    pub(crate) fn new(pdp_per_row: u64, pdp_in_row: u64, elapsed: u64) -> RowCut {
        let to_row_end = pdp_per_row - pdp_in_row;
        let rows = match elapsed.checked_sub(to_row_end) {
            None => 0,
            Some(0) => 1,
            Some(after) => after / pdp_per_row + 1,
        };
        RowCut { pdp_per_row, to_row_end, elapsed, rows }
    }
}

/// Adds PDPs that do not complete the row.
#[inline]
pub(crate) fn accumulate(cf: PlainCf, cell: &mut CdpPrep, point: f64, elapsed: u64) {
    if point.is_nan() {
        cell.unknown_pdps = cell.unknown_pdps.wrapping_add(elapsed);
        return;
    }
    let value = cell.value;
    cell.value = match cf {
        PlainCf::Average if value.is_nan() => point * double(elapsed),
        PlainCf::Average => canonical(value + point * double(elapsed)),
        PlainCf::Min if value.is_nan() || point < value => point,
        PlainCf::Max if value.is_nan() || point > value => point,
        PlainCf::Min | PlainCf::Max => value,
        PlainCf::Last => point,
    };
}

/// Completes the open row and starts the next one.
#[inline]
pub(crate) fn complete(cf: PlainCf, xff: f64, cell: &mut CdpPrep, point: f64, cut: &RowCut) {
    let unknown = point.is_nan();
    if unknown {
        cell.unknown_pdps = cell.unknown_pdps.wrapping_add(cut.to_row_end);
    }
    cell.secondary = if unknown { UNKNOWN } else { point };
    cell.primary = if double(cell.unknown_pdps) > double(cut.pdp_per_row) * xff {
        UNKNOWN
    } else {
        row_value(cf, cell, point, cut)
    };
    let carried = match cut.elapsed - cut.to_row_end {
        0 => 0,
        after => after % cut.pdp_per_row,
    };
    if unknown || carried == 0 {
        cell.value = match cf {
            PlainCf::Average => 0.0,
            PlainCf::Min => f64::INFINITY,
            PlainCf::Max => f64::NEG_INFINITY,
            PlainCf::Last => UNKNOWN,
        };
        cell.unknown_pdps = if unknown { carried } else { 0 };
    } else {
        cell.value = if cf == PlainCf::Average { point * double(carried) } else { point };
        cell.unknown_pdps = 0;
    }
}

#[inline]
fn row_value(cf: PlainCf, cell: &CdpPrep, point: f64, cut: &RowCut) -> f64 {
    let or = |value: f64, other: f64| if value.is_nan() { other } else { value };
    match cf {
        PlainCf::Average => {
            let known = cut.pdp_per_row.wrapping_sub(cell.unknown_pdps);
            let sum = or(cell.value, 0.0) + or(point, 0.0) * double(cut.to_row_end);
            canonical(sum / double(known))
        }
        PlainCf::Min => {
            let (value, point) = (or(cell.value, f64::INFINITY), or(point, f64::INFINITY));
            if point < value { point } else { value }
        }
        PlainCf::Max => {
            let (value, point) = (or(cell.value, f64::NEG_INFINITY), or(point, f64::NEG_INFINITY));
            if point > value { point } else { value }
        }
        PlainCf::Last => point,
    }
}
