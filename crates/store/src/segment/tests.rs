//! Segments written into memory and read back.

use super::*;

const HINT: ColumnHint = ColumnHint { units_per_second: 1, step: 10, pdp_per_row: 1 };

fn key(group: u32, source: u16, slot: u32) -> Key {
    Key { group, source, slot }
}

fn value(key: Key, row: i64, ds: usize) -> f64 {
    f64::from(key.slot) * 100.0 + row as f64 + ds as f64 / 4.0
}

/// Two groups, two sources, 3,000 RRDs with a run of 16 rows and every seventh with a second one.
fn sample() -> Vec<u8> {
    let mut writer = SegmentWriter::new(Vec::new(), "sample", 7).unwrap();
    for (group, source) in [(1, 0), (1, 1), (3, 0)] {
        for slot in 0..3000 {
            let key = key(group, source, slot);
            for first_row in [1000, 2000] {
                if first_row == 2000 && slot % 7 != 0 {
                    continue;
                }
                let column = |ds| (0..16).map(|row| value(key, first_row + row, ds)).collect::<Vec<f64>>();
                writer.push(key, first_row, &[&column(0), &column(1)], &HINT).unwrap();
            }
        }
    }
    writer.finish().unwrap().1
}

fn open(bytes: Vec<u8>) -> Result<Segment, SegmentError> {
    Segment::open(Box::new(bytes), "sample")
}

fn read(segment: &Segment, key: Key, rows: std::ops::Range<i64>) -> Vec<(i64, usize, Vec<f64>)> {
    let mut seen = Vec::new();
    segment
        .read(key, rows, &mut ReadScratch::default(), &mut |row, ds, values| {
            seen.push((row, ds, values.to_vec()))
        })
        .unwrap();
    seen
}

#[test]
fn what_was_written_is_read() {
    let segment = open(sample()).unwrap();
    assert_eq!(segment.sources().len(), 3);
    assert_eq!(segment.source(1, 1).map(|source| (source.first_row, source.end_row)), Some((1000, 2016)));
    for slot in [0, 1, 7, 1500, 2999] {
        let key = key(3, 0, slot);
        let seen = read(&segment, key, 1010..1012);
        let want: Vec<_> =
            (0..2).map(|ds| (1010, ds, vec![value(key, 1010, ds), value(key, 1011, ds)])).collect();
        assert_eq!(seen, want);
        let all = read(&segment, key, i64::MIN..i64::MAX);
        assert_eq!(all.len(), if slot % 7 == 0 { 4 } else { 2 });
    }
    for absent in [key(3, 0, 3000), key(2, 0, 1), key(3, 1, 0)] {
        assert!(read(&segment, absent, 0..9999).is_empty());
    }
    assert!(read(&segment, key(3, 0, 0), 1016..2000).is_empty());
}

#[test]
fn entries_come_in_order() {
    let segment = open(sample()).unwrap();
    let mut entries = segment.entries();
    let mut count = 0;
    let mut before = None;
    while let Some(entry) = entries.next_entry().unwrap() {
        assert!(before < Some((entry.key, entry.first_row)));
        before = Some((entry.key, entry.first_row));
        assert_eq!(entry.values[17].to_bits(), value(entry.key, entry.first_row + 1, 1).to_bits());
        count += 1;
    }
    assert_eq!(count, segment.entry_count());
}

#[test]
fn long_runs_of_one_key_span_blocks() {
    let mut writer = SegmentWriter::new(Vec::new(), "long", 1).unwrap();
    let column: Vec<f64> = (0..50_000).map(|row| (row as f64).sqrt()).collect();
    writer.push(key(0, 0, 5), -7, &[&column], &HINT).unwrap();
    let segment = open(writer.finish().unwrap().1).unwrap();
    for from in [-7, 0, 4088, 4089, 30_000, 49_992] {
        let seen = read(&segment, key(0, 0, 5), from..from + 1);
        assert_eq!(seen, [(from, 0, vec![column[(from + 7) as usize]])]);
    }
    let whole = read(&segment, key(0, 0, 5), -100..100_000);
    assert_eq!(whole.iter().map(|(_, _, values)| values.len()).sum::<usize>(), 50_000);
}

#[test]
fn misuse_is_refused() {
    let mut writer = SegmentWriter::new(Vec::new(), "bad", 1).unwrap();
    let mut push = |slot, row, columns: &[&[f64]]| writer.push(key(0, 0, slot), row, columns, &HINT).is_err();
    assert!(!push(5, 10, &[&[1.0, 2.0]]));
    assert!(push(4, 10, &[&[1.0]]));
    assert!(push(5, 11, &[&[1.0]]));
    assert!(push(6, 10, &[&[1.0], &[1.0]]));
    assert!(push(6, 10, &[]));
    assert!(push(6, i64::MAX, &[&[1.0]]));
    assert!(!push(5, 12, &[&[1.0]]));
}
