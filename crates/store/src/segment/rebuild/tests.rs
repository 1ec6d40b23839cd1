#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::column::codec::ColumnHint;
use crate::segment::footer::{TRAILER_CHECKSUM_AT, TRAILER_SOURCE_COUNT_AT};
use crate::segment::{ReadScratch, Segment, SegmentWriter, merge};

const HINT: ColumnHint = ColumnHint { units_per_second: 1, step: 10, pdp_per_row: 1 };
const OWNER: u32 = 77;
const NUMBER: u64 = 5;
const SLOTS: u32 = 60;

fn noise(at: u64) -> f64 {
    f64::from_bits(0x3ff0_0000_0000_0000 | (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12))
}

/// A segment of some ten blocks.
fn sample(number: u64, owner: u32) -> Vec<u8> {
    let mut writer = SegmentWriter::of_shard(Vec::new(), "sample", number, owner).unwrap();
    for source in 0..3 {
        for slot in 0..SLOTS {
            let column: Vec<f64> = (0..100).map(|row| noise(u64::from(slot) * 1000 + row)).collect();
            let key = Key { group: u32::from(source / 2), source, slot };
            writer.push(key, 10 * i64::from(slot), &[&column], &HINT).unwrap();
        }
    }
    writer.finish().unwrap().1
}

fn open(bytes: &[u8], of: &[u8]) -> Result<(Segment, Vec<SegmentError>), SegmentError> {
    let expected = Expected { owner: OWNER, number: NUMBER, bytes: of.len() as u64, content: None };
    Segment::open_expected(Box::new(bytes.to_vec()), "sample", &expected)
}

type Rows = BTreeMap<Key, Result<Vec<(i64, u64)>, String>>;

fn rows(segment: &Segment) -> Rows {
    let keys = (0..3).flat_map(|source| (0..SLOTS).map(move |slot| (source, slot)));
    keys.map(|(source, slot)| {
        let key = Key { group: u32::from(source / 2), source, slot };
        let mut rows = Vec::new();
        let read = segment.read(key, 0..10_000, &mut ReadScratch::default(), &mut |first, _, values| {
            rows.extend(values.iter().zip(first..).map(|(value, row)| (row, value.to_bits())));
        });
        (key, read.map(|()| rows).map_err(|error| error.to_string()))
    })
    .collect()
}

/// Every read has all rows, or fails; returns how many fail.
fn failures(bytes: &[u8], of: &[u8], want: &Rows) -> usize {
    let (segment, damage) = open(bytes, of).unwrap();
    let got = rows(&segment);
    let failed = got.values().filter(|rows| rows.is_err()).count();
    assert!(damage.iter().all(|error| error.to_string().contains("\"sample\"")), "{damage:?}");
    for (key, rows) in &got {
        assert!(rows.is_err() || Some(rows) == want.get(key), "{key:?} lacks rows in silence");
    }
    failed
}

#[test]
fn a_damaged_footer_costs_nothing() {
    let good = sample(NUMBER, OWNER);
    let (segment, damage) = open(&good, &good).unwrap();
    assert!(damage.is_empty());
    let want = rows(&segment);
    let footer = segment.footer_offset() as usize;
    for at in (footer..good.len()).step_by(7) {
        let mut bytes = good.clone();
        bytes[at] ^= 4;
        assert_eq!(failures(&bytes, &good, &want), 0, "byte {at}");
        let (rebuilt, damage) = open(&bytes, &good).unwrap();
        assert_eq!((damage.len(), rebuilt.gaps()), (1, &[][..]));
        assert_eq!((rebuilt.footer_offset(), rebuilt.block_count()), (footer as u64, segment.block_count()));
    }
    assert_eq!(failures(&good[..footer], &good, &want), 0);
    assert_eq!(failures(&good[..good.len() - 1], &good, &want), 0);
    assert_eq!(failures(&[&good[..], b"more"].concat(), &good, &want), 0);
}

#[test]
fn a_damaged_block_costs_its_rows_with_and_without_a_footer() {
    let good = sample(NUMBER, OWNER);
    let (segment, _) = open(&good, &good).unwrap();
    let (want, count) = (rows(&segment), segment.block_count());
    let trailer = good.len() - TRAILER_BYTES;
    for at in (FILE_HEAD_BYTES..segment.footer_offset() as usize).step_by(997) {
        let mut bytes = good.clone();
        bytes[at] ^= 4;
        let with_footer = failures(&bytes, &good, &want);
        assert!((1..100).contains(&with_footer), "byte {at}: {with_footer} of 180 reads fail");
        bytes[trailer - 30] ^= 1;
        // The neighbours of the lost runs may have continued in them.
        let without_footer = failures(&bytes, &good, &want);
        assert!((with_footer..=with_footer + 2).contains(&without_footer), "byte {at}: {without_footer}");
        let (rebuilt, _) = open(&bytes, &good).unwrap();
        assert_eq!(rebuilt.block_count(), count - 1, "byte {at}");
        bytes[trailer + TRAILER_SOURCE_COUNT_AT] ^= 1;
        failures(&bytes, &good, &want);
    }
}

#[test]
fn no_damage_is_silent() {
    let good = sample(NUMBER, OWNER);
    let want = rows(&open(&good, &good).unwrap().0);
    for seed in 0..300u64 {
        let mut state = seed;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut bytes = good.clone();
        for _ in 0..1 + random(3) {
            let at = FILE_HEAD_BYTES + random(bytes.len() - FILE_HEAD_BYTES);
            let count = (1 + random(20_000)).min(bytes.len() - at);
            match random(5) {
                0 => bytes.truncate(at),
                1 => bytes[at..at + count].fill(0),
                2 => drop(bytes.drain(at..at + count)),
                3 => drop(bytes.splice(at..at, vec![3; count])),
                _ => bytes[at] ^= 0x20,
            }
            if bytes.len() <= FILE_HEAD_BYTES {
                break;
            }
        }
        failures(&bytes, &good, &want);
    }
}

#[test]
fn an_exchanged_segment_is_never_taken_for_a_damaged_one() {
    let good = sample(NUMBER, OWNER);
    for (number, owner) in [(NUMBER, OWNER + 1), (NUMBER + 1, OWNER)] {
        let other = sample(number, owner);
        for damaged in [usize::MAX, 3, other.len() - TRAILER_BYTES + TRAILER_CHECKSUM_AT, other.len() - 100] {
            let mut bytes = other.clone();
            if let Some(byte) = bytes.get_mut(damaged) {
                *byte ^= 1;
            }
            let found = open(&bytes, &good).map(|_| ());
            assert!(matches!(found, Err(SegmentError::Misplaced { .. })), "{number} {owner}: {found:?}");
        }
        // Nothing says any more whose it is.
        let mut bytes = other;
        bytes[3] ^= 1;
        bytes.pop();
        assert!(open(&bytes, &good).is_err());
    }
}

#[test]
fn a_segment_that_lost_blocks_is_not_merged() {
    let good = sample(NUMBER, OWNER);
    let mut bytes = good.clone();
    bytes[50_000] ^= 1;
    bytes.truncate(good.len() - 1);
    let (segment, _) = open(&bytes, &good).unwrap();
    assert!(!segment.gaps().is_empty());
    let mut output = SegmentWriter::new(Vec::new(), "out", 9).unwrap();
    let merged =
        merge::merge(&[&segment], &|_, _| true, &|_, _, _| Some(0), &AtomicBool::new(false), &mut output);
    assert!(matches!(merged, Err(SegmentError::Damaged { .. })));
}
