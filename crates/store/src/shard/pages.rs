//! The frames of a checkpoint, taken from the state.

use rrd::live::Season;

use crate::catalogue::RrdId;
use crate::checkpoint::{APART, PAGE_IDS, RawFrame};
use crate::group::{Geometry, Group};
use crate::log::Position;
use crate::shard::state::State;
use crate::streams::StreamPosition;

/// Takes the page of ids `first_id..first_id + PAGE_IDS`, with their state at `position`.
pub fn take_page(state: &State, first_id: RrdId, position: Position) -> RawFrame {
    let next_id = first_id.saturating_add(PAGE_IDS).min(state.catalogue.next_id());
    let mut definitions: Vec<u32> = Vec::new();
    let mut entries = Vec::new();
    let mut count = 0u32;
    for id in first_id..next_id {
        let Some(entry) = state.catalogue.get(id) else { continue };
        let known = definitions.iter().rposition(|&index| index == entry.definition);
        let definition = known.unwrap_or_else(|| {
            definitions.push(entry.definition);
            definitions.len() - 1
        });
        count += 1;
        let name = state.catalogue.name(id);
        put_u32(&mut entries, id);
        put_u32(&mut entries, definition as u32);
        put_u32(&mut entries, entry.group);
        put_u32(&mut entries, name.len() as u32);
        entries.extend_from_slice(name);
        let group = &state.groups()[entry.group as usize];
        entries.extend_from_slice(bytemuck::cast_slice(group.heads.get(entry.head)));
        put_seasons(&mut entries, state.seasons(id));
        put_open_rows(&mut entries, state, id, &group.group);
    }
    let mut body = Vec::with_capacity(entries.len() + 1024);
    put_u32(&mut body, definitions.len() as u32);
    for index in definitions {
        let key = state.catalogue.definition_key(index);
        put_u32(&mut body, key.len() as u32);
        body.extend_from_slice(key);
    }
    put_u32(&mut body, count);
    body.extend_from_slice(&entries);
    RawFrame::page(first_id, next_id, position, body)
}

/// The end frame: the groups, so that they keep their numbers, how far streams have been applied, and the next id.
pub fn take_end(state: &State, position: Position) -> RawFrame {
    let mut body = Vec::new();
    put_u32(&mut body, state.groups().len() as u32);
    for group in state.groups() {
        let Geometry { units_per_second, step, ds_count, archives } = &group.group.geometry;
        put_u32(&mut body, *units_per_second);
        put_u64(&mut body, *step);
        put_u32(&mut body, *ds_count as u32);
        put_u32(&mut body, archives.len() as u32);
        for archive in archives {
            put_u32(&mut body, archive.cf as u32 | if archive.is_apart { APART } else { 0 });
            put_u64(&mut body, archive.pdp_per_row);
            put_u64(&mut body, archive.row_count);
        }
    }
    put_u32(&mut body, state.streams.iter().len() as u32);
    for (name, StreamPosition { epoch, sequence }) in state.streams.iter() {
        put_u32(&mut body, name.len() as u32);
        body.extend_from_slice(name);
        put_u64(&mut body, epoch);
        put_u64(&mut body, sequence);
    }
    RawFrame::end(state.catalogue.next_id(), position, body)
}

fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_seasons(out: &mut Vec<u8>, seasons: &[Season]) {
    put_u32(out, seasons.len() as u32);
    for season in seasons {
        put_u32(out, season.rra as u32);
        put_u64(out, season.current_row);
        put_u32(out, season.values.len() as u32);
        out.extend_from_slice(bytemuck::cast_slice(&season.values));
    }
}

fn put_open_rows(out: &mut Vec<u8>, state: &State, id: RrdId, group: &Group) {
    let count_at = out.len();
    put_u32(out, 0);
    let mut count = 0u32;
    // Only the open arena: the frozen one is being written to a segment of the same cycle.
    if let Some((rows, chain)) = state.open_chain_of(id) {
        for run in rows.runs(chain, group) {
            put_u32(out, u32::from(run.source));
            put_u64(out, run.first_row as u64);
            put_u64(out, run.count);
            put_u32(out, run.values.len() as u32);
            out.extend_from_slice(bytemuck::cast_slice(run.values));
            count += 1;
        }
    }
    out[count_at..count_at + 4].copy_from_slice(&count.to_le_bytes());
}
