//! Columns of integers: a frame of reference, deltas, or parts with their own frames, whichever is shortest;
//! the few numbers that do not fit the common width are patched in.
//!
//! The first byte gives layout and width: `0..=63` a frame without patches, `64..=125` with patches,
//! `128..=191` deltas, `192..=253` deltas with patches. The width is the low six bits, where 63 stands for 64
//! bits. A width of 64 needs no patches, and 62 leaves no room for any; so 126 and 254 mean [`rice`], 127
//! pco, and 255 parts.

use super::bits::{self, BitReader, BitWriter, packed_bytes, width_of};
use super::rice::Rice;
use super::{CodecError, Effort, pco_ints, rice};
use rrd::codec::varint;

const PATCHED: u8 = 64;
const DELTAS: u8 = 128;
const PARTS: u8 = 255;
const PCO: u8 = 127;
/// With [`DELTAS`]: Rice coding of the differences.
const RICE: u8 = 126;
const WIDTH_MASK: u8 = 63;
/// The positions of patches are a bitmap instead of gaps.
const BITMAP: u8 = 0x80;

/// Numbers by which the frame of a part grows.
const PART_UNIT: usize = 4;
/// pco's column is used only if it has at most this percentage of our bytes, because it decodes more slowly.
const PCO_PER_CENT_MAX: usize = 98;
/// Shorter columns are not split into parts: there is nothing to gain.
const PARTS_VALUES_MIN: usize = 24;

/// Buffers reused for each column.
#[derive(Debug, Default)]
pub(super) struct IntScratch {
    pub(super) effort: Effort,
    deltas: Vec<i64>,
    parts: Vec<Part>,
}

/// A part of a column with its own frame.
#[derive(Clone, Copy, Debug)]
struct Part {
    len: usize,
    min: i64,
    max: i64,
}

/// A frame: residuals against `base` in `width` bits; `patches` of them need more, up to `width_max`.
#[derive(Clone, Copy, Debug)]
struct Frame {
    base: i64,
    width: u32,
    width_max: u32,
    patches: usize,
    bits: usize,
    /// Bits an entropy coder of the widths would need; estimated for long columns only.
    entropy: u64,
}

fn residual(value: i64, base: i64) -> u64 {
    (value as u64).wrapping_sub(base as u64)
}

pub(super) fn range(values: &[i64]) -> (i64, i64) {
    values.iter().fold((i64::MAX, i64::MIN), |(min, max), &value| (min.min(value), max.max(value)))
}

/// In 256ths of a bit. Integer arithmetic only, so that every machine decides alike.
fn entropy_of_widths(counts: &[u32; 65], total: usize) -> u64 {
    let log2 = |value: u64| {
        let whole = value.ilog2();
        u64::from(whole) << 8 | (value << (63 - whole) >> 55 & 0xff)
    };
    let widths = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let bits = |(width, count): (usize, &u32)| {
        u64::from(*count) * (((width.max(1) - 1) as u64) * 256 + log2(total as u64) - log2(u64::from(*count)))
    };
    widths.map(bits).sum()
}

/// Bits of a varint.
pub(super) fn varint_bits(value: u64) -> usize {
    (width_of(value).max(1).div_ceil(7) * 8) as usize
}

impl Frame {
    /// The cheapest frame of `values`, which must not be empty; estimates the entropy if `reckon`.
    fn of(values: &[i64], reckon: bool) -> Frame {
        let (base, max) = range(values);
        let width_max = storable(width_of(residual(max, base)));
        let mut counts = [0u32; 65];
        values.iter().for_each(|&value| counts[width_of(residual(value, base)) as usize] += 1);
        let head = 8 + varint_bits(varint::zigzag(base));
        let bits = head + values.len() * width_max as usize;
        let entropy = if reckon { entropy_of_widths(&counts, values.len()) } else { 0 };
        let mut best = Frame { base, width: width_max, width_max, patches: 0, bits, entropy };
        let widest = width_max.min(62);
        let mut patches = counts[widest as usize + 1..].iter().map(|count| *count as usize).sum::<usize>();
        for width in (0..widest).rev() {
            patches += counts[width as usize + 1] as usize;
            if patches * 2 > values.len() {
                break;
            }
            if patches == 0 {
                continue;
            }
            let gap_bits = width_of((values.len() / patches) as u64) as usize + 2;
            let places = values.len().min(patches * gap_bits + 8);
            let bits =
                head + 16 + values.len() * width as usize + places + patches * (width_max - width) as usize;
            if bits < best.bits {
                best = Frame { width, patches, bits, ..best };
            }
        }
        best
    }

    fn put(&self, values: &[i64], layout: u8, out: &mut Vec<u8>) {
        let layout = if self.patches > 0 { layout | PATCHED } else { layout };
        out.push(layout | width_code(self.width));
        varint::put(out, varint::zigzag(self.base));
        let mask = if self.width == 64 { u64::MAX } else { (1 << self.width) - 1 };
        bits::pack(out, values.iter().map(|&value| residual(value, self.base) & mask), self.width);
        if self.patches > 0 {
            self.put_patches(values, out);
        }
    }

    fn put_patches(&self, values: &[i64], out: &mut Vec<u8>) {
        let high = |value: i64| residual(value, self.base) >> self.width;
        let places = || values.iter().enumerate().filter(|(_, value)| high(**value) != 0);
        let mut last = 0;
        let mut gap_max = 0;
        for (index, _) in places() {
            gap_max = gap_max.max(index - last);
            last = index + 1;
        }
        let gap_width = width_of(gap_max as u64);
        let high_width = self.width_max - self.width;
        let bitmap = values.len() <= self.patches * gap_width as usize + 8;
        varint::put(out, self.patches as u64);
        out.push(if bitmap { BITMAP } else { 0 } | high_width as u8);
        if bitmap {
            bits::pack(out, values.iter().map(|value| u64::from(high(*value) != 0)), 1);
        } else {
            out.push(gap_width as u8);
            let mut last = 0;
            let gaps = places().map(|(index, _)| (index - std::mem::replace(&mut last, index + 1)) as u64);
            bits::pack(out, gaps, gap_width);
        }
        bits::pack(out, places().map(|(_, value)| high(*value)), high_width);
    }
}

/// The width 63 has no code.
fn storable(width: u32) -> u32 {
    if width == 63 { 64 } else { width }
}

fn width_code(width: u32) -> u8 {
    if width == 64 { WIDTH_MASK } else { width as u8 }
}

fn width_from(code: u8) -> u32 {
    if code & WIDTH_MASK == WIDTH_MASK { 64 } else { u32::from(code & WIDTH_MASK) }
}

impl Plan {
    /// Estimated bits of the column, with entropy coding where it will be tried.
    pub(super) fn reckoned(&self) -> usize {
        if self.entropy == 0 { self.bits } else { self.bits.min((self.entropy >> 8) as usize) }
    }
}

/// The layout of a column, and its estimated size in bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    layout: Layout,
    pub(super) bits: usize,
    /// Entropy coding of the differences promises more than that of the values.
    deltas_vary_less: bool,
    /// The smaller entropy of the two, in 256ths of a bit, or 0.
    entropy: u64,
}

#[derive(Clone, Copy, Debug)]
enum Layout {
    Empty,
    Frame(Frame),
    Deltas(Frame),
    Parts,
    Rice(Rice),
    DeltasRice(Rice),
}

/// Finds the shortest layout.
pub(super) fn plan(values: &[i64], scratch: &mut IntScratch) -> Plan {
    if values.is_empty() {
        return Plan { layout: Layout::Empty, bits: 0, deltas_vary_less: false, entropy: 0 };
    }
    let reckon = scratch.tries_pco(values);
    let frame = Frame::of(values, reckon);
    let mut best = Plan {
        layout: Layout::Frame(frame),
        bits: frame.bits,
        deltas_vary_less: false,
        entropy: frame.entropy,
    };
    if values.len() < 3 || frame.width_max == 0 {
        return best;
    }
    take_deltas(values, &mut scratch.deltas);
    let deltas = Frame::of(&scratch.deltas, reckon);
    best.deltas_vary_less = deltas.entropy < frame.entropy;
    best.entropy = deltas.entropy.min(frame.entropy);
    let bits = deltas.bits + varint_bits(varint::zigzag(values[0]));
    if bits < best.bits {
        best = Plan { layout: Layout::Deltas(deltas), bits, ..best };
    }
    if scratch.effort != Effort::Quick {
        if let Some(rice) = Rice::of(values).filter(|rice| rice.bits < best.bits) {
            best = Plan { layout: Layout::Rice(rice), bits: rice.bits, ..best };
        }
        let first_bits = varint_bits(varint::zigzag(values[0]));
        if let Some(rice) = Rice::of(&scratch.deltas).filter(|rice| rice.bits + first_bits < best.bits) {
            best = Plan { layout: Layout::DeltasRice(rice), bits: rice.bits + first_bits, ..best };
        }
    }
    if values.len() >= PARTS_VALUES_MIN {
        let bits = cut_into_parts(values, frame.width_max, &mut scratch.parts);
        if bits < best.bits {
            best = Plan { layout: Layout::Parts, bits, ..best };
        }
    }
    best
}

/// A plan for values that are independent of each other.
pub(super) fn plan_noise(values: &[i64], scratch: &IntScratch) -> Plan {
    let frame = Frame::of(values, scratch.tries_pco(values));
    let plan = Plan {
        layout: Layout::Frame(frame),
        bits: frame.bits,
        deltas_vary_less: false,
        entropy: frame.entropy,
    };
    let rice = if scratch.effort == Effort::Quick { None } else { Rice::of(values) };
    match rice {
        Some(rice) if rice.bits < plan.bits => Plan { layout: Layout::Rice(rice), bits: rice.bits, ..plan },
        _ => plan,
    }
}

impl IntScratch {
    fn tries_pco(&self, values: &[i64]) -> bool {
        self.effort == Effort::Thorough && values.len() >= pco_ints::VALUES_MIN
    }
}

fn take_deltas(values: &[i64], deltas: &mut Vec<i64>) {
    deltas.clear();
    deltas.extend(values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])));
}

/// Appends the column of `values`. An empty column takes no bytes.
pub(super) fn encode(values: &[i64], scratch: &mut IntScratch, out: &mut Vec<u8>) {
    encode_planned(values, plan(values, scratch), scratch, out);
}

/// Appends the column of `values` according to `plan`.
pub(super) fn encode_planned(values: &[i64], plan: Plan, scratch: &mut IntScratch, out: &mut Vec<u8>) {
    let width_max = match plan.layout {
        Layout::Empty => return,
        Layout::Frame(frame) | Layout::Deltas(frame) => frame.width_max,
        Layout::Parts | Layout::Rice(_) | Layout::DeltasRice(_) => 64,
    };
    if scratch.tries_pco(values) && width_max > 0 {
        let bytes_max = plan.bits / 8 * PCO_PER_CENT_MAX / 100;
        let packed = pco_ints::encode(values, plan.deltas_vary_less);
        if let Some(packed) = packed.filter(|packed| packed.len() < bytes_max) {
            out.push(PCO);
            return out.extend_from_slice(&packed);
        }
    }
    match plan.layout {
        Layout::Empty => {}
        Layout::Frame(frame) => frame.put(values, 0, out),
        Layout::Deltas(frame) => {
            take_deltas(values, &mut scratch.deltas);
            frame.put(&scratch.deltas, DELTAS, out);
            varint::put(out, varint::zigzag(values[0]));
        }
        Layout::Parts => {
            let (min, max) = range(values);
            cut_into_parts(values, storable(width_of(residual(max, min))), &mut scratch.parts);
            put_parts(values, &scratch.parts, out);
        }
        Layout::Rice(rice) => {
            out.push(RICE);
            rice.put(values, out);
        }
        Layout::DeltasRice(rice) => {
            take_deltas(values, &mut scratch.deltas);
            out.push(RICE | DELTAS);
            rice.put(&scratch.deltas, out);
            varint::put(out, varint::zigzag(values[0]));
        }
    }
}

/// Splits `values` where a new frame costs less than a wider one; returns the total bits.
fn cut_into_parts(values: &[i64], width_max: u32, parts: &mut Vec<Part>) -> usize {
    let head_bits = 6 + width_max as usize + width_of(values.len() as u64) as usize;
    let bits = |part: &Part| part.len * width_of(residual(part.max, part.min)) as usize;
    parts.clear();
    for unit in values.chunks(PART_UNIT) {
        let (min, max) = range(unit);
        let mut part = Part { len: unit.len(), min, max };
        while let Some(before) = parts.last() {
            let both = Part {
                len: before.len + part.len,
                min: before.min.min(part.min),
                max: before.max.max(part.max),
            };
            if bits(&both) > bits(before) + bits(&part) + head_bits {
                break;
            }
            part = both;
            parts.pop();
        }
        parts.push(part);
    }
    40 + parts.iter().map(|part| bits(part) + head_bits).sum::<usize>()
}

fn put_parts(values: &[i64], parts: &[Part], out: &mut Vec<u8>) {
    let (min, max) = range(values);
    let base_width = width_of(residual(max, min));
    let len_width = width_of(parts.iter().map(|part| part.len).max().unwrap_or(0) as u64);
    out.push(PARTS);
    varint::put(out, varint::zigzag(min));
    varint::put(out, parts.len() as u64);
    out.push(base_width as u8);
    out.push(len_width as u8);
    let mut writer = BitWriter::new(out);
    for part in parts {
        writer.put(part.len as u64, len_width);
        writer.put(u64::from(width_code(storable(width_of(residual(part.max, part.min))))), 6);
        writer.put(residual(part.min, min), base_width);
    }
    let mut rest = values;
    for part in parts {
        let (these, behind) = rest.split_at(part.len);
        rest = behind;
        let width = storable(width_of(residual(part.max, part.min)));
        these.iter().for_each(|&value| writer.put(residual(value, part.min), width));
    }
    writer.finish();
}

/// Decodes `count` numbers into `out` and advances `bytes` past them.
pub(super) fn decode(bytes: &mut &[u8], count: usize, out: &mut Vec<i64>) -> Result<(), CodecError> {
    if count == 0 {
        return Ok(());
    }
    let (&code, rest) = bytes.split_first().ok_or(CodecError::Cut)?;
    *bytes = rest;
    match code {
        PARTS => decode_parts(bytes, count, out),
        PCO => pco_ints::decode(bytes, count, out),
        RICE => rice::decode(bytes, count, out),
        0..DELTAS => decode_frame(bytes, code, count, out),
        DELTAS..PARTS => {
            let from = out.len();
            out.push(0);
            if code == RICE | DELTAS {
                rice::decode(bytes, count - 1, out)?;
            } else {
                decode_frame(bytes, code, count - 1, out)?;
            }
            out[from] = varint::unzigzag(varint::take(bytes).ok_or(CodecError::Cut)?);
            for index in from + 1..from + count {
                out[index] = out[index].wrapping_add(out[index - 1]);
            }
            Ok(())
        }
    }
}

fn take_byte(bytes: &mut &[u8]) -> Result<u8, CodecError> {
    let (&byte, rest) = bytes.split_first().ok_or(CodecError::Cut)?;
    *bytes = rest;
    Ok(byte)
}

fn take_width(bytes: &mut &[u8]) -> Result<u32, CodecError> {
    let width = u32::from(take_byte(bytes)?);
    if width > 64 { Err(CodecError::Field("width")) } else { Ok(width) }
}

fn take_bytes<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], CodecError> {
    let (taken, rest) = bytes.split_at_checked(count).ok_or(CodecError::Cut)?;
    *bytes = rest;
    Ok(taken)
}

fn decode_frame(bytes: &mut &[u8], code: u8, count: usize, out: &mut Vec<i64>) -> Result<(), CodecError> {
    let width = width_from(code);
    let base = varint::unzigzag(varint::take(bytes).ok_or(CodecError::Cut)?);
    let mut reader = BitReader::new(take_bytes(bytes, packed_bytes(count, width))?);
    let from = out.len();
    out.extend((0..count).map(|_| base.wrapping_add(reader.take(width) as i64)));
    if code & PATCHED != 0 { decode_patches(bytes, width, &mut out[from..]) } else { Ok(()) }
}

fn decode_patches(bytes: &mut &[u8], width: u32, values: &mut [i64]) -> Result<(), CodecError> {
    let patches = usize::try_from(varint::take(bytes).ok_or(CodecError::Cut)?).unwrap_or(usize::MAX);
    if patches == 0 || patches > values.len() {
        return Err(CodecError::Field("patch count"));
    }
    let kind = take_byte(bytes)?;
    let high_width = u32::from(kind & !BITMAP);
    if high_width == 0 || width + high_width > 64 {
        return Err(CodecError::Field("patch width"));
    }
    let bitmap = kind & BITMAP != 0;
    let gap_width = if bitmap { 1 } else { take_width(bytes)? };
    let place_count = if bitmap { values.len() } else { patches };
    let mut places = BitReader::new(take_bytes(bytes, packed_bytes(place_count, gap_width))?);
    let mut highs = BitReader::new(take_bytes(bytes, packed_bytes(patches, high_width))?);
    let mut patch = |value: &mut i64| {
        *value = value.wrapping_add((highs.take(high_width) << width) as i64);
    };
    if bitmap {
        let mut left = patches;
        for value in values {
            if places.take(1) == 1 {
                left = left.checked_sub(1).ok_or(CodecError::Field("patch count"))?;
                patch(value);
            }
        }
        return if left == 0 { Ok(()) } else { Err(CodecError::Field("patch count")) };
    }
    let mut rest = values;
    for _ in 0..patches {
        let gap = usize::try_from(places.take(gap_width)).unwrap_or(usize::MAX);
        let (value, behind) =
            rest.get_mut(gap..).and_then(<[i64]>::split_first_mut).ok_or(CodecError::Field("patch place"))?;
        patch(value);
        rest = behind;
    }
    Ok(())
}

fn decode_parts(bytes: &mut &[u8], count: usize, out: &mut Vec<i64>) -> Result<(), CodecError> {
    let min = varint::unzigzag(varint::take(bytes).ok_or(CodecError::Cut)?);
    let part_count = usize::try_from(varint::take(bytes).ok_or(CodecError::Cut)?).unwrap_or(usize::MAX);
    if part_count == 0 || part_count > count {
        return Err(CodecError::Field("part count"));
    }
    let (base_width, len_width) = (take_width(bytes)?, take_width(bytes)?);
    let mut heads = BitReader::new(bytes);
    let mut payload = heads;
    for _ in 0..part_count {
        payload.take(len_width);
        payload.take(6);
        payload.take(base_width);
    }
    payload.end().ok_or(CodecError::Cut)?;
    let mut left = count;
    for _ in 0..part_count {
        let len = heads.take(len_width);
        let width = width_from(heads.take(6) as u8);
        let base = min.wrapping_add(heads.take(base_width) as i64);
        if len == 0 || len > left as u64 {
            return Err(CodecError::Field("part length"));
        }
        left -= len as usize;
        out.extend((0..len).map(|_| base.wrapping_add(payload.take(width) as i64)));
    }
    if left > 0 {
        return Err(CodecError::Field("part length"));
    }
    let taken = payload.end().ok_or(CodecError::Cut)?;
    *bytes = &bytes[taken..];
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[i64], bytes_max: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(values, &mut IntScratch::default(), &mut bytes);
        let mut back = vec![42];
        let mut rest = bytes.as_slice();
        decode(&mut rest, values.len(), &mut back).unwrap();
        assert!(rest.is_empty());
        assert_eq!(&back[1..], values);
        assert!(bytes.len() <= bytes_max, "{} bytes for {} values", bytes.len(), values.len());
        bytes
    }

    #[test]
    fn integers_round_trip_within_these_sizes() {
        check(&[], 0);
        check(&[0], 2);
        check(&[-5; 100], 2);
        check(&[i64::MIN, i64::MAX, 0, -1], 64);
        check(&(0..1000).collect::<Vec<i64>>(), 4);
        let hash = |index: i64| index.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64);
        check(&(0..100).map(hash).collect::<Vec<i64>>(), 820);
        let noise = |index: i64| (hash(index) as u64 >> 53) as i64;
        check(&(0..120).map(noise).collect::<Vec<i64>>(), 170);
        // Every tenth number is an outlier.
        check(&(0..120).map(|i| noise(i) + if i % 10 == 0 { 1 << 40 } else { 0 }).collect::<Vec<i64>>(), 240);
        // Every second one is.
        check(&(0..120).map(|i| noise(i) + (i % 2) * (1 << 20)).collect::<Vec<i64>>(), 330);
        // A level that changes every 30 values.
        check(&(0..120).map(|i| noise(i) + (i / 30 * 7 % 4) * 1_000_000).collect::<Vec<i64>>(), 210);
    }

    #[test]
    fn the_encoding_of_layouts_is_fixed() {
        assert_eq!(check(&[7, 8, 10], 9), [2, 14, 0b11_01_00]);
        assert_eq!(check(&[1, 1, 1, 1, 1, 1, 1, 1, 1, 1001], 9), [0x40, 2, 1, 0x8a, 0, 2, 0xe8, 3]);
        assert_eq!(check(&[100, 200, 300, 400, 500], 9), [128, 200, 1, 200, 1]);
    }
}
