//! What stands for dropped blocks: for each RRD one reading, unknown, at the time of the last one that is missing.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use protocol::frames;
use protocol::frames::agent::AGENT_BODY_BYTES_MAX;
use protocol::frames::agent::block::{
    BlockHead, BlockReader, BlockSink, BlockValue, BlockWriter, RrdDefinition,
};
use rrd::time::Timestamp;

use super::segment::Segment;

/// A definition that outlives its block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct OwnedDefinition {
    step: u64,
    starts_before: u64,
    args: Vec<String>,
}

/// What is missing of an RRD.
#[derive(Debug)]
struct Missing {
    name: Box<[u8]>,
    definition: OwnedDefinition,
    /// That of the last reading.
    assignment: u64,
    values: usize,
    last: Option<Timestamp>,
    count: u64,
}

#[derive(Debug, Default)]
struct Collected {
    definitions: Vec<OwnedDefinition>,
    /// By the context's number: the index in `missing`, and the assignment.
    rrds: Vec<(usize, u64)>,
    by_name: HashMap<Box<[u8]>, usize>,
    missing: Vec<Missing>,
    /// This block is dropped; of the others, only the context is needed.
    counts: bool,
}

impl BlockSink for Collected {
    fn begin_context(&mut self) {
        self.definitions.clear();
        self.rrds.clear();
    }

    fn definition(&mut self, definition: RrdDefinition<'_>) {
        let RrdDefinition { step, starts_before, args } = definition;
        let args = args.into_iter().map(str::to_owned).collect();
        self.definitions.push(OwnedDefinition { step, starts_before, args });
    }

    fn rrd(&mut self, definition: u32, assignment: u64, name: &[u8], values: usize) {
        let definition = self.definitions[definition as usize].clone();
        let missing = &mut self.missing;
        let index = *self.by_name.entry(name.into()).or_insert_with(|| {
            let (last, count) = (None, 0);
            missing.push(Missing { name: name.into(), definition, assignment, values, last, count });
            missing.len() - 1
        });
        missing[index].values = values;
        self.rrds.push((index, assignment));
    }

    fn reading(&mut self, rrd: u32, time: Timestamp, values: &[BlockValue<'_>]) {
        if self.counts {
            let (index, assignment) = self.rrds[rrd as usize];
            let missing = &mut self.missing[index];
            missing.last = missing.last.max(Some(time));
            missing.assignment = assignment;
            missing.count += match values.first() {
                Some(BlockValue::Dropped(count)) => *count,
                _ => 1,
            };
        }
    }
}

impl Collected {
    fn count(&self) -> u64 {
        self.missing.iter().map(|missing| missing.count).sum()
    }
}

/// Writes the segment that stands for `victims`, of which the store has what comes up to `acknowledged`. Returns how many
/// readings are dropped that no gap stood for before.
pub fn replace(directory: &Path, victims: &[Segment], acknowledged: u64) -> io::Result<(Segment, u64)> {
    let mut collected = Collected::default();
    let mut dropped = 0;
    for victim in victims {
        let before = collected.count();
        read(&victim.read_all(directory)?, acknowledged, &mut collected);
        if !victim.is_gap {
            dropped += collected.count() - before;
        }
    }
    let numbers = (victims[0].first, victims[victims.len() - 1].last);
    let frames = write(&collected.missing, numbers, acknowledged)?;
    Ok((Segment::write_gap(directory, numbers, &frames)?, dropped))
}

/// Reads what can be read.
fn read(bytes: &[u8], acknowledged: u64, collected: &mut Collected) {
    for_each_block(bytes, |number, reader, body| {
        collected.counts = number > acknowledged;
        reader.read(body, collected).is_ok()
    });
}

/// Calls `each` with the number and the body of each block of a segment, until it returns false or the rest is damaged.
pub fn for_each_block(bytes: &[u8], mut each: impl FnMut(u64, &mut BlockReader, &[u8]) -> bool) {
    let mut reader = BlockReader::default();
    let mut at = 0;
    while let Ok(Some((frame, used))) = frames::scan(&bytes[at..], AGENT_BODY_BYTES_MAX) {
        at += used;
        let Ok(head) = BlockHead::parse(frame.body) else { return };
        if !each(head.sequence, &mut reader, frame.body) {
            return;
        }
    }
}

fn write(missing: &[Missing], (first, last): (u64, u64), acknowledged: u64) -> io::Result<Vec<u8>> {
    let mut writer = BlockWriter::default();
    let mut definitions: HashMap<&OwnedDefinition, u32> = HashMap::new();
    let (mut number, mut out) = (first.max(acknowledged + 1), Vec::new());
    for one in missing {
        let Some(time) = one.last else { continue };
        let mut rrd = add(&mut writer, &mut definitions, one);
        if rrd.is_none() {
            // There were at least as many blocks before, so there is a number.
            writer.finish(number.min(last), &mut out)?;
            number += 1;
            writer.begin_context();
            definitions.clear();
            rrd = add(&mut writer, &mut definitions, one);
        }
        let Some(rrd) = rrd else { continue };
        writer.push(rrd, time, [BlockValue::Dropped(one.count)]);
    }
    writer.finish(last, &mut out)?;
    Ok(out)
}

fn add<'m>(
    writer: &mut BlockWriter,
    definitions: &mut HashMap<&'m OwnedDefinition, u32>,
    one: &'m Missing,
) -> Option<u32> {
    let OwnedDefinition { step, starts_before, args } = &one.definition;
    let definition = match definitions.get(&one.definition) {
        Some(number) => *number,
        None => {
            let number = writer.add_definition(*step, *starts_before, args)?;
            definitions.insert(&one.definition, number);
            number
        }
    };
    writer.add_rrd(definition, one.assignment, &one.name, one.values)
}
