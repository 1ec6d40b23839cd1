//! One function for each decoder of segments, for fuzzers: any bytes in, a panic is a finding.

use super::block::{self, BLOCK_HEAD_BYTES, SegmentSeal};
use super::footer::{self, FILE_HEAD_BYTES, SOURCE_BYTES};
use super::held::ReadScratch;
use super::reader::{Segment, decode_columns};
use super::{BLOCK_BYTES_MAX, RUN_ROWS_MAX, SegmentError, VERSION};
use crate::column::codec::{self, ColumnHint, Scratch};

/// Decodes a column: two bytes of value count, then the column. What decodes must survive a new encoding.
pub fn fuzz_column(bytes: &[u8]) {
    let Some((count, column)) = bytes.split_first_chunk::<2>() else { return };
    let count = usize::from(u16::from_le_bytes(*count)) % (RUN_ROWS_MAX + 1);
    let mut values = Vec::new();
    if codec::decode(column, count, &mut values).is_err() || count == 0 {
        return;
    }
    assert_eq!(values.len(), count);
    let hint = ColumnHint { units_per_second: 1, step: 300, pdp_per_row: 6 };
    let mut again = Vec::new();
    codec::encode(&values, &hint, &mut Scratch::default(), &mut again);
    let mut back = Vec::new();
    assert_eq!(codec::decode(&again, count, &mut back), Ok(again.len()));
    assert!(values.iter().zip(&back).all(|(a, b)| a.to_bits() == b.to_bits()));
}

/// Reads the bytes as a segment, then, with good checksums, as a segment of one block: two bytes of the
/// body's length, the body, the footer.
pub fn fuzz_segment(bytes: &[u8]) {
    read_all(bytes.to_vec());
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else { return };
    let (body, footer) = rest.split_at(rest.len().min(usize::from(u16::from_le_bytes(*length))));
    let block = fuzz_block(body);
    let source_count = (footer.len() / SOURCE_BYTES).min(1);
    let footer_offset = (FILE_HEAD_BYTES + block.len()) as u64;
    let trailer = footer::encode_trailer(1, footer_offset, footer, source_count);
    read_all([&footer::file_head(1, 0), block.as_slice(), footer, &trailer].concat());
}

fn fuzz_block(body: &[u8]) -> Vec<u8> {
    let body = &body[..body.len().min(BLOCK_BYTES_MAX - BLOCK_HEAD_BYTES)];
    let mut sealed = vec![0; BLOCK_HEAD_BYTES];
    sealed.extend_from_slice(body);
    let segment = SegmentSeal::new(VERSION, 1, 0);
    block::seal(&mut sealed, segment, FILE_HEAD_BYTES as u64, body.len() as u32);
    let mut values = Vec::new();
    if let Ok(mut runs) = block::open(&sealed, segment, FILE_HEAD_BYTES as u64) {
        while let Ok(Some(run)) = runs.next() {
            let _ = decode_columns(&run, &mut values);
        }
    }
    sealed
}

fn read_all(bytes: Vec<u8>) {
    let Ok(segment) = Segment::open(Box::new(bytes), "fuzz") else { return };
    segment.verify(None, &mut |_: SegmentError| {});
    for source in segment.sources().to_vec() {
        let key = super::Key { group: source.group, source: source.source, slot: 1 };
        let _ = segment.read(key, i64::MIN..i64::MAX, &mut ReadScratch::default(), &mut |_, _, _| {});
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::codec::Effort;
    use crate::segment::footer::{PLACE_BYTES, TRAILER_BYTES};
    use crate::segment::{Key, SegmentWriter};

    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    /// Feeds `good` with some bytes changed, cut off or doubled.
    fn shake(good: &[u8], rounds: u64, fuzz: fn(&[u8])) {
        for seed in 1..=rounds {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut bytes = good.to_vec();
            for _ in 0..1 + random(&mut state) % 4 {
                let at = random(&mut state) as usize % bytes.len();
                match random(&mut state) % 4 {
                    0 => bytes.truncate(at + 1),
                    1 => bytes[at] ^= 1 << (random(&mut state) % 8),
                    2 => bytes[at] = random(&mut state) as u8,
                    _ => bytes.insert(at, random(&mut state) as u8),
                }
            }
            fuzz(&bytes);
        }
    }

    fn columns() -> Vec<Vec<f64>> {
        let unknown = rrd::live::UNKNOWN;
        let noise = |i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 53) as f64;
        let column = |value: &dyn Fn(u64) -> f64| (0..200).map(value).collect::<Vec<f64>>();
        vec![
            column(&|i| noise(i) / 100.0),
            column(&|i| if i % 30 < 7 { unknown } else { noise(i) / 1800.0 }),
            column(&|i| if i % 2 == 0 { unknown } else { noise(i).sqrt() }),
            column(&|i| (i / 50) as f64),
            column(&|i| noise(i) * 1e7 / 1e9 + 400.0),
            column(&|i| f64::from((noise(i) / 10.0) as f32)),
            column(&|i| if i == 77 { f64::INFINITY } else { noise(i) }),
            column(&|i| i as f64 + (i / 100 * 1_000_000) as f64),
            column(&|i| -noise(i).sqrt()),
        ]
    }

    #[test]
    fn damaged_columns_never_panic() {
        let hint = ColumnHint { units_per_second: 1, step: 300, pdp_per_row: 6 };
        for effort in [Effort::Quick, Effort::Dense, Effort::Thorough] {
            for column in columns() {
                let mut bytes = (column.len() as u16).to_le_bytes().to_vec();
                codec::encode(&column, &hint, &mut Scratch::new(effort), &mut bytes);
                fuzz_column(&bytes);
                shake(&bytes, 3000, fuzz_column);
            }
        }
    }

    #[test]
    fn damaged_segments_never_panic() {
        let hint = ColumnHint { units_per_second: 1, step: 300, pdp_per_row: 6 };
        let mut writer = SegmentWriter::new(Vec::new(), "fuzz", 1).unwrap();
        for slot in 0..2 {
            for column in columns().iter().enumerate() {
                let key = Key { group: 0, source: 0, slot };
                writer.push(key, 1000 * column.0 as i64, &[column.1, column.1], &hint).unwrap();
            }
        }
        let bytes = writer.finish().unwrap().1;
        fuzz_segment(&bytes);
        shake(&bytes, 2000, fuzz_segment);
        let footer_at = bytes.len() - TRAILER_BYTES - PLACE_BYTES - SOURCE_BYTES;
        let mut seed = ((footer_at - 44) as u16).to_le_bytes().to_vec();
        seed.extend_from_slice(&bytes[44..bytes.len() - TRAILER_BYTES]);
        shake(&seed, 10_000, fuzz_segment);
    }
}
