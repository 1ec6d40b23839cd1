//! [`Rrd`] to the bytes of a `.rrd` file.

use super::layout::FileLayout;
use super::{
    CDP_PREP_BYTES, COMPUTE_END, COMPUTE_NODES_MAX, DS_DEF_BYTES, FAILURES_WINDOW_MAX, FLOAT_COOKIE,
    FileError, Inexpressible, NAME_BYTES, PARAMETERS_AT, PDP_PREP_BYTES, RRA_DEF_BYTES, STAT_HEAD_BYTES,
    VERSION_MICROSECONDS,
};
use crate::content::Rrd;
use crate::definition::{Consolidation, Definition, Ds, DsKind, Rra};
use crate::live::{CdpPrep, Head, HeadShape, HwPrep, PdpPrep};

/// The bytes of a `.rrd` file. `current_rows` has one entry per archive: the ring position of its newest row.
/// (For a seasonal archive its own [`crate::live::Season::current_row`] counts.)
///
/// # Errors
/// [`FileError::Inexpressible`] when a file cannot hold the RRD.
pub fn encode(rrd: &Rrd, current_rows: &[u64]) -> Result<Vec<u8>, FileError> {
    let definition = &rrd.definition;
    let layout = FileLayout::of(definition);
    let shape = rrd.shape();
    check_parts(rrd, &shape, current_rows)?;
    let mut current_rows = current_rows.to_vec();
    for season in &rrd.live.seasons {
        current_rows[season.rra] = season.current_row;
    }
    let mut out = Vec::with_capacity(layout.file_bytes as usize);
    encode_head(definition, &shape, shape.split(&rrd.live.words), &current_rows, &mut out)?;
    for (index, rows) in rrd.archives.iter().enumerate() {
        match rrd.live.seasons.iter().find(|season| season.rra == index) {
            Some(season) => put_values(&mut out, &season.values),
            None => put_ring(&mut out, rows, current_rows[index], definition.ds.len()),
        }
    }
    Ok(out)
}

/// Appends the complete header: everything before the first ring.
///
/// # Errors
/// [`FileError::Inexpressible`] when a file cannot hold the definition.
pub fn encode_head(
    definition: &Definition,
    shape: &HeadShape,
    head: Head<'_>,
    current_rows: &[u64],
    out: &mut Vec<u8>,
) -> Result<(), FileError> {
    check_definition(definition)?;
    let start = out.len();
    out.extend_from_slice(b"RRD\0");
    out.extend_from_slice(format!("{:04}\0", definition.version).as_bytes());
    pad_to(out, start + 16);
    put_f64(out, FLOAT_COOKIE);
    put_u64(out, definition.ds.len() as u64);
    put_u64(out, definition.rra.len() as u64);
    put_u64(out, definition.step);
    pad_to(out, start + STAT_HEAD_BYTES);
    for ds in &definition.ds {
        put_ds(out, ds);
    }
    for rra in &definition.rra {
        put_rra(out, rra);
    }
    encode_live(definition, shape, head, current_rows, out);
    Ok(())
}

/// Appends the live part, from `live_head` to the end of the header: what every update changes.
///
/// `current_rows` has one entry per archive. Never fails: the fraction of a second, which a file of version 1
/// or 2 cannot hold, was never there.
pub fn encode_live(
    definition: &Definition,
    shape: &HeadShape,
    head: Head<'_>,
    current_rows: &[u64],
    out: &mut Vec<u8>,
) {
    put_u64(out, head.last_update.whole as u64);
    if definition.version >= VERSION_MICROSECONDS {
        put_u64(out, u64::from(head.last_update.micros));
    }
    for pdp in head.pdp {
        put_pdp(out, pdp);
    }
    let ds_count = shape.ds_count();
    for (rra, cells) in head.cdp.chunks_exact(ds_count).enumerate() {
        for (ds, cell) in cells.iter().enumerate() {
            put_cdp(out, cell, shape.hw_index(rra).map(|index| &head.hw[index * ds_count + ds]));
        }
    }
    for &row in current_rows {
        put_u64(out, row);
    }
}

fn check_definition(definition: &Definition) -> Result<(), FileError> {
    let fail = |why| Err(FileError::Inexpressible(why));
    if definition.units_per_second != 1 {
        let (step, units_per_second) = (definition.step, definition.units_per_second);
        return fail(Inexpressible::SubSecondStep { step, units_per_second });
    }
    for ds in &definition.ds {
        if ds.name.len() >= NAME_BYTES || ds.name.as_bytes().contains(&0) {
            return fail(Inexpressible::DsName(ds.name.clone()));
        }
        if let DsKind::Compute(program) = &ds.kind
            && program.nodes.len() > COMPUTE_NODES_MAX
        {
            return fail(Inexpressible::ComputeNodes(program.nodes.len()));
        }
    }
    for rra in &definition.rra {
        if let Consolidation::Failures { window_length, .. } = rra.cf
            && window_length > FAILURES_WINDOW_MAX
        {
            return fail(Inexpressible::FailuresWindow(window_length));
        }
    }
    Ok(())
}

fn check_parts(rrd: &Rrd, shape: &HeadShape, current_rows: &[u64]) -> Result<(), FileError> {
    let fail = |what| Err(FileError::Inexpressible(Inexpressible::Inconsistent(what)));
    let definition = &rrd.definition;
    let rra_count = definition.rra.len();
    if rrd.live.words.len() != shape.word_count() {
        return fail("words of the live head");
    }
    if rrd.archives.len() != rra_count || current_rows.len() != rra_count {
        return fail("number of archives");
    }
    for (index, rra) in definition.rra.iter().enumerate() {
        let season = rrd.live.seasons.iter().find(|season| season.rra == index);
        let values = season.map_or(rrd.archives[index].len(), |season| season.values.len());
        let position = season.map_or(current_rows[index], |season| season.current_row);
        if values as u64 != rra.row_count * definition.ds.len() as u64
            || season.is_some() != rra.cf.is_season()
        {
            return fail("rows of an archive");
        }
        if position >= rra.row_count {
            return fail("position of the newest row");
        }
    }
    Ok(())
}

fn put_ds(out: &mut Vec<u8>, ds: &Ds) {
    let start = out.len();
    put_name(out, &ds.name);
    put_name(out, ds.kind.name());
    match &ds.kind {
        DsKind::Fed { heartbeat, min, max, .. } => {
            put_u64(out, *heartbeat);
            put_f64(out, *min);
            put_f64(out, *max);
        }
        DsKind::Compute(program) => {
            for node in &program.nodes {
                out.extend_from_slice(&[node.op, 0]);
                out.extend_from_slice(&node.operand.to_le_bytes());
            }
            out.push(COMPUTE_END);
        }
    }
    pad_to(out, start + DS_DEF_BYTES);
}

fn put_rra(out: &mut Vec<u8>, rra: &Rra) {
    let start = out.len();
    put_name(out, rra.cf.cf().name());
    pad_to(out, start + 24);
    put_u64(out, rra.row_count);
    put_u64(out, rra.pdp_per_row);
    debug_assert_eq!(out.len(), start + PARAMETERS_AT);
    // The first parameter is xff; only the plain functions have one.
    match rra.cf {
        Consolidation::Plain { xff, .. } => put_f64(out, xff),
        Consolidation::Predict { alpha, beta, seasonal, period, .. } => {
            put_u64(out, 0);
            put_f64(out, alpha);
            put_f64(out, beta);
            put_u64(out, seasonal as u64);
            put_f64(out, period);
        }
        Consolidation::Seasonal { gamma, smoothing_window, predict, smooth_index, .. } => {
            put_u64(out, 0);
            put_f64(out, gamma);
            put_f64(out, smoothing_window);
            put_u64(out, predict as u64);
            put_u64(out, smooth_index);
        }
        Consolidation::DevPredict { devseasonal } => {
            put_values(out, &[0.0; 3]);
            put_u64(out, devseasonal as u64);
        }
        Consolidation::Failures { delta_pos, delta_neg, devseasonal, window_length, threshold } => {
            put_u64(out, 0);
            put_f64(out, delta_pos);
            put_f64(out, delta_neg);
            put_u64(out, devseasonal as u64);
            put_u64(out, window_length);
            put_u64(out, threshold);
        }
    }
    pad_to(out, start + RRA_DEF_BYTES);
}

fn put_pdp(out: &mut Vec<u8>, pdp: &PdpPrep) {
    let start = out.len();
    out.extend_from_slice(pdp.last_ds.as_bytes());
    pad_to(out, start + 32);
    put_u64(out, pdp.unknown_units);
    put_f64(out, pdp.value);
    pad_to(out, start + PDP_PREP_BYTES);
}

fn put_cdp(out: &mut Vec<u8>, cell: &CdpPrep, hw: Option<&HwPrep>) {
    let start = out.len();
    put_f64(out, cell.value);
    put_u64(out, cell.unknown_pdps);
    for word in hw.map_or([0; 6], |hw| hw.words) {
        put_u64(out, word);
    }
    put_f64(out, cell.primary);
    put_f64(out, cell.secondary);
    debug_assert_eq!(out.len(), start + CDP_PREP_BYTES);
}

/// Appends rows given oldest first, rotated so that the newest lands at `current_row`.
fn put_ring(out: &mut Vec<u8>, rows: &[f64], current_row: u64, ds_count: usize) {
    let (older, newer) = rows.split_at(rows.len() - (current_row as usize + 1) * ds_count);
    put_values(out, newer);
    put_values(out, older);
}

fn put_values(out: &mut Vec<u8>, values: &[f64]) {
    out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}

fn put_name(out: &mut Vec<u8>, name: &str) {
    let end = out.len() + NAME_BYTES;
    out.extend_from_slice(name.as_bytes());
    pad_to(out, end);
}

fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_f64(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn pad_to(out: &mut Vec<u8>, length: usize) {
    debug_assert!(out.len() <= length);
    out.resize(length, 0);
}
