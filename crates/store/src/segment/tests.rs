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
fn segments_round_trip() {
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
fn held_blocks_answer_as_blocks_that_are_read() {
    // The same numbers of segment and block, and other values.
    let mut other = SegmentWriter::new(Vec::new(), "other", 7).unwrap();
    (0..3000).for_each(|slot| other.push(key(1, 0, slot), 1000, &[&[0.5; 20]], &HINT).unwrap());
    let segments = [open(sample()).unwrap(), open(other.finish().unwrap().1).unwrap()];
    let mut scratch = ReadScratch::default();
    // Forward, back, the same again, and far ahead; some rows, none and all.
    let steps = [1, 1, 7, 0, -3, 1, 1, 600, 2, -900, 0, 1, 5, 0, 1];
    let mut slot = 0i32;
    for (index, step) in steps.iter().cycle().take(4000).enumerate() {
        slot = (slot + step).rem_euclid(3000);
        let key = key(1, (index / 1000 % 2) as u16, slot as u32);
        let rows = [1010..1012, 0..9999, 1500..1600, 2000..2001, 0..1001][index % 5].clone();
        for segment in &segments {
            let mut seen = Vec::new();
            let mut see = |row: i64, ds: usize, values: &[f64]| seen.push((row, ds, values.to_vec()));
            segment.read(key, rows.clone(), &mut scratch, &mut see).unwrap();
            assert_eq!(seen, read(segment, key, rows.clone()), "{key:?} {rows:?}");
        }
    }
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

/// A small segment of a shard: two RRDs, two runs.
fn small_of(segment_id: u64, owner: u32) -> Vec<u8> {
    let mut writer = SegmentWriter::of_shard(Vec::new(), "small", segment_id, owner).unwrap();
    writer.push(key(1, 2, 3), 100, &[&[1.0, 2.0, 4.0]], &HINT).unwrap();
    writer.push(key(1, 2, 4), 100, &[&[0.25, 0.5, f64::NAN]], &HINT).unwrap();
    writer.finish().unwrap().1
}

fn small() -> Vec<u8> {
    small_of(7, 0)
}

/// The format, version 1, to the byte. Version 2 only has another number and an owner in head and trailer; since version 3
/// the checksums of the blocks cover the owner too.
#[rustfmt::skip]
const SMALL: &[&[u8]] = &[
    // File head: magic, version, zero, segment number, zero, checksum.
    b"RNDLSEGM", &[1, 0, 0, 0, 0, 0, 0, 0], &[7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[80, 43, 148, 71],
    // Block head: checksum, body bytes, runs.
    &[174, 186, 71, 63], &[26, 0, 0, 0], &[2, 0, 0, 0],
    // First run: flags, group, source, slot, columns, units, step, PDPs a row, first row, count, column.
    &[0x4f, 1, 2, 3, 1, 1, 10, 1, 200, 1, 3], &[16, 0, 2, 2, 0b11_01_00],
    // Second run: next slot, same row and count, nine bytes of column.
    &[0x81], &[5, 51, 140, 4, 0, 16, 128, 244, 31],
    // Source: group, source, columns, units, zero, step, PDPs a row, rows 100..103, 2 runs of 26 bytes.
    &[1, 0, 0, 0, 2, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
    &[100, 0, 0, 0, 0, 0, 0, 0, 103, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 26, 0, 0, 0, 0, 0, 0, 0],
    // Block place: offset, source index, slot, row, zero.
    &[32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    // Trailer: magic, version, footer checksum, file bytes, footer offset.
    b"RNDLSEGF", &[1, 0, 0, 0, 208, 196, 3, 33, 222, 0, 0, 0, 0, 0, 0, 0, 70, 0, 0, 0, 0, 0, 0, 0],
    // Sources, blocks, segment number, runs, zero, checksum.
    &[1, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 163, 73, 105, 1],
];

/// [`SMALL`] as this version of the format and this shard have it, but for the checksum of the block.
fn small_of_version(version: u32, owner: u32) -> Vec<u8> {
    let mut bytes = SMALL.concat();
    let seal = |bytes: &mut [u8], covered: usize| {
        let crc = crc32c::crc32c(&bytes[..covered]).to_le_bytes();
        bytes[covered..covered + 4].copy_from_slice(&crc);
    };
    bytes[footer::HEAD_VERSION_AT] = version as u8;
    bytes[footer::HEAD_OWNER_AT..][..4].copy_from_slice(&owner.to_le_bytes());
    seal(&mut bytes, footer::HEAD_CHECKSUM_AT);
    let trailer = bytes.len() - footer::TRAILER_BYTES;
    let trailer = &mut bytes[trailer..];
    trailer[footer::TRAILER_VERSION_AT] = version as u8;
    trailer[footer::TRAILER_OWNER_AT..][..4].copy_from_slice(&owner.to_le_bytes());
    seal(trailer, footer::TRAILER_CHECKSUM_AT);
    bytes
}

#[test]
fn the_encoding_is_fixed() {
    assert_eq!(small(), small_of_version(VERSION, 0));
    let mut owned = small_of_version(VERSION, 5);
    owned[footer::FILE_HEAD_BYTES..][..4].copy_from_slice(&[42, 122, 123, 238]);
    assert_eq!(small_of(7, 5), owned);
    for (bytes, owner) in [(SMALL.concat(), 0), (small_of_version(2, 5), 5), (owned, 5)] {
        let segment = open(bytes).unwrap();
        assert_eq!(segment.owner(), owner);
        assert_eq!(read(&segment, key(1, 2, 3), 0..1000), [(100, 0, vec![1.0, 2.0, 4.0])]);
        assert_eq!(read(&segment, key(1, 2, 4), 0..102), [(100, 0, vec![0.25, 0.5])]);
    }
}

#[test]
fn every_flipped_bit_is_detected() {
    let good = small();
    let all = |segment: &Segment| {
        let mut damage = 0;
        segment.verify(None, &mut |_| damage += 1);
        damage
    };
    assert_eq!(all(&open(good.clone()).unwrap()), 0);
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        match open(bad) {
            Ok(segment) => assert!(all(&segment) > 0, "bit {bit}"),
            Err(error) => assert!(matches!(error, SegmentError::Damaged { .. }), "bit {bit}: {error}"),
        }
    }
    for length in 0..good.len() {
        assert!(open(good[..length].to_vec()).is_err(), "cut to {length}");
    }
}

#[test]
fn damage_stays_in_its_block() {
    let mut bytes = sample();
    let at = bytes.len() / 2;
    bytes[at] ^= 0x10;
    let segment = open(bytes).unwrap();
    let (mut lost, mut found) = (0, 0);
    for (group, source) in [(1, 0), (1, 1), (3, 0)] {
        for slot in 0..3000 {
            let mut values = 0;
            let mut count = |_: i64, _: usize, part: &[f64]| values += part.len();
            match segment.read(key(group, source, slot), 0..9999, &mut ReadScratch::default(), &mut count) {
                Ok(()) => found += values,
                Err(SegmentError::Damaged { offset, .. }) => {
                    assert!(offset <= at as u64 && at as u64 - offset < 20_000);
                    lost += 1;
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert!(lost > 0 && lost < 1500, "{lost} RRDs lost");
    assert!(found > 200_000, "{found} values found");
}

#[test]
fn a_block_of_another_segment_or_shard_is_damage() {
    for other in [small_of(8, 5), small_of(7, 6), small_of(7, 0)] {
        let mut mixed = small_of(7, 5);
        let footer_at = mixed.len() - footer::TRAILER_BYTES - footer::PLACE_BYTES - footer::SOURCE_BYTES;
        mixed[32..footer_at].copy_from_slice(&other[32..footer_at]);
        let outcome =
            open(mixed).unwrap().read(key(1, 2, 3), 0..999, &mut ReadScratch::default(), &mut |_, _, _| {});
        assert!(matches!(outcome, Err(SegmentError::Damaged { offset: 32, .. })));
    }
}

#[test]
fn a_newer_version_is_reported() {
    let mut bytes = small();
    let trailer = bytes.len() - footer::TRAILER_BYTES;
    bytes[trailer + footer::TRAILER_VERSION_AT] = (VERSION + 1) as u8;
    let checksum = crc32c::crc32c(&bytes[trailer..trailer + footer::TRAILER_CHECKSUM_AT]);
    bytes[trailer + footer::TRAILER_CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
    assert!(matches!(open(bytes), Err(SegmentError::Newer { version, .. }) if version == VERSION + 1));
}

/// Name of a structure, its bytes, and its fields by offset.
type Table = (&'static str, usize, &'static [(usize, &'static str)]);

/// The table of offsets in the document is made of the constants in the code.
#[test]
fn the_document_has_these_offsets() {
    use super::block::*;
    use super::footer::*;
    let tables: &[Table] = &[
        (
            "file head",
            FILE_HEAD_BYTES,
            &[
                (HEAD_MAGIC_AT, "magic"),
                (HEAD_VERSION_AT, "version"),
                (HEAD_SEGMENT_ID_AT, "segment number"),
                (HEAD_OWNER_AT, "owner"),
                (HEAD_CHECKSUM_AT, "checksum"),
            ],
        ),
        (
            "block head",
            BLOCK_HEAD_BYTES,
            &[(CHECKSUM_AT, "checksum"), (BODY_BYTES_AT, "body bytes"), (ENTRY_COUNT_AT, "runs")],
        ),
        (
            "source",
            SOURCE_BYTES,
            &[
                (SOURCE_GROUP_AT, "group"),
                (SOURCE_SOURCE_AT, "source"),
                (SOURCE_DS_COUNT_AT, "columns"),
                (SOURCE_UNITS_AT, "units per second"),
                (SOURCE_ZERO_AT, "zero"),
                (SOURCE_STEP_AT, "step"),
                (SOURCE_PDP_PER_ROW_AT, "PDPs per row"),
                (SOURCE_FIRST_ROW_AT, "first row"),
                (SOURCE_END_ROW_AT, "end row"),
                (SOURCE_ENTRY_COUNT_AT, "runs"),
                (SOURCE_ENTRY_BYTES_AT, "bytes of runs"),
            ],
        ),
        (
            "block place",
            PLACE_BYTES,
            &[
                (PLACE_OFFSET_AT, "offset"),
                (PLACE_SOURCE_AT, "source index"),
                (PLACE_SLOT_AT, "slot"),
                (PLACE_ROW_AT, "row"),
                (PLACE_ZERO_AT, "zero"),
            ],
        ),
        (
            "trailer",
            TRAILER_BYTES,
            &[
                (TRAILER_MAGIC_AT, "magic"),
                (TRAILER_VERSION_AT, "version"),
                (TRAILER_FOOTER_CHECKSUM_AT, "footer checksum"),
                (TRAILER_FILE_BYTES_AT, "file bytes"),
                (TRAILER_FOOTER_OFFSET_AT, "footer offset"),
                (TRAILER_SOURCE_COUNT_AT, "sources"),
                (TRAILER_BLOCK_COUNT_AT, "blocks"),
                (TRAILER_SEGMENT_ID_AT, "segment number"),
                (TRAILER_ENTRY_COUNT_AT, "runs"),
                (TRAILER_OWNER_AT, "owner"),
                (TRAILER_CHECKSUM_AT, "checksum"),
            ],
        ),
    ];
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format/segment.md");
    let document = std::fs::read_to_string(path).unwrap();
    for (structure, bytes, fields) in tables {
        let heading = format!("### {structure}, {bytes} bytes\n");
        let section = document.split(&heading).nth(1).unwrap_or_else(|| panic!("no \"{heading}\" in {path}"));
        let section = section.split("\n#").next().unwrap();
        for (offset, field) in *fields {
            let row = format!("| {offset} | {field} |");
            assert!(section.contains(&row), "{structure}: no row \"{row}\"");
        }
        let rows = section
            .lines()
            .filter(|line| line.starts_with("| ") && !line.starts_with("| at") && !line.starts_with("| -"))
            .count();
        assert_eq!(rows, fields.len(), "{structure}");
    }
}
