//! Lossless compression of one column of doubles.
//!
//! Every bit pattern survives, including NaN payloads and the sign of zero. A column contains everything its
//! decoder needs except the number of its values. Decoding is safe on any bytes and allocates at most a few
//! times the memory of `count` values. `docs/format/segment.md` describes the bytes.
//!
//! The encoder works in layers: it takes out gaps of unknown values, then runs of equal values, then tries
//! fractions of a known denominator ([`scaled`]); anything else is stored as ordered bit patterns. It decodes
//! what it wrote before it returns, and stores the values raw should the result differ.

mod bits;
mod ints;
mod pco_ints;
mod rice;
mod scaled;

use rrd::live::UNKNOWN;

use ints::IntScratch;
use rrd::codec::varint;
use scaled::{IntBuffers, ScaledScratch};

/// All values are the unknown NaN.
const TAG_UNKNOWN: u8 = 1;
/// All values are the 8 bytes that follow.
const TAG_CONSTANT: u8 = 2;
/// The values, uncompressed.
const TAG_RAW: u8 = 3;
/// Bit patterns in the order of their values, as integers.
const TAG_ORDERED: u8 = 4;
/// The same, shifted right by the number of zero bits in which every value ends.
const TAG_ORDERED_SHIFTED: u8 = 5;
/// Runs of equal values.
const TAG_RUNS: u8 = 6;
/// Stretches of unknown values between the values of another column.
const TAG_GAPS: u8 = 7;
/// The same, with one bit per value in place of the lengths.
const TAG_SPARSE: u8 = 8;
/// Fractions; [`scaled`] owns the low four bits.
const TAG_SCALED: u8 = 16;

/// Runs are used only for columns with at least this many values per run, on average.
const VALUES_PER_RUN: usize = 4;

/// Bits per value below which fractions are used without trying bit patterns.
const SCALED_BITS_SURE: usize = 36;

/// How the values of a column came about. Only the encoder uses it; segments keep it for when a merge encodes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ColumnHint {
    /// Units per second.
    pub units_per_second: u32,
    /// Units per step.
    pub step: u64,
    /// PDPs per row.
    pub pdp_per_row: u64,
}

/// Buffers that the encoder reuses for each column, and the denominator that fitted last.
#[derive(Debug, Default)]
pub struct Scratch {
    scaled: ScaledScratch,
    ints: IntScratch,
    patterns: Vec<i64>,
    check: Vec<f64>,
}

/// How much time an encoder may take. All levels share one decoder, about equally fast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// For data that will soon be merged.
    #[default]
    Quick,
    /// A third more time, about 5 % less space.
    Dense,
    /// Ten times the time for columns of at least 128 values, and slightly less space again.
    Thorough,
}

impl Scratch {
    /// Buffers of an encoder with this effort.
    pub fn new(effort: Effort) -> Self {
        let mut scratch = Scratch::default();
        scratch.set_effort(effort);
        scratch
    }

    /// Changes the effort from the next column on.
    pub fn set_effort(&mut self, effort: Effort) {
        self.ints.effort = effort;
    }
}

/// Why bytes cannot be decoded as a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodecError {
    /// The bytes end before the column does.
    Cut,
    /// An unknown tag byte.
    Tag(u8),
    /// A field with a value that no encoder writes, and its name.
    Field(&'static str),
}

impl std::fmt::Display for CodecError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CodecError::Cut => f.write_str("the column is cut short"),
            CodecError::Tag(tag) => write!(f, "unknown column tag {tag}"),
            CodecError::Field(name) => write!(f, "impossible {name} in a column"),
        }
    }
}

impl std::error::Error for CodecError {}

/// Maps bit patterns to integers that sort like the values; [`unordered`] is the inverse.
#[inline]
fn ordered(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

#[inline]
fn unordered(pattern: i64) -> f64 {
    f64::from_bits((pattern ^ ((pattern >> 63) as u64 >> 1) as i64) as u64)
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits()
}

/// Appends the column of `values`, which is not empty, to `out`.
pub fn encode(values: &[f64], hint: &ColumnHint, scratch: &mut Scratch, out: &mut Vec<u8>) {
    let from = out.len();
    encode_gaps(values, hint, scratch, out);
    let mut check = std::mem::take(&mut scratch.check);
    check.clear();
    let taken = decode(&out[from..], values.len(), &mut check);
    let good = taken == Ok(out.len() - from) && check.iter().zip(values).all(|(a, b)| same(*a, *b));
    scratch.check = check;
    if !good || out.len() - from > values.len() * 8 {
        debug_assert!(good, "a column must decode to the same bits");
        out.truncate(from);
        put_raw(values, out);
    }
}

fn put_raw(values: &[f64], out: &mut Vec<u8>) {
    out.push(TAG_RAW);
    out.extend(values.iter().flat_map(|value| value.to_bits().to_le_bytes()));
}

/// Takes out unknown values.
fn encode_gaps(values: &[f64], hint: &ColumnHint, scratch: &mut Scratch, out: &mut Vec<u8>) {
    let unknown = |value: &f64| same(*value, UNKNOWN);
    let unknown_count = values.iter().filter(|value| unknown(value)).count();
    if unknown_count == 0 {
        return encode_runs(values, hint, scratch, out);
    }
    if unknown_count == values.len() {
        return out.push(TAG_UNKNOWN);
    }
    // Alternating lengths: known, unknown, known ...; the first may be 0.
    let mut lengths = vec![0i64];
    let mut in_gap = false;
    for value in values {
        if unknown(value) != in_gap {
            in_gap = !in_gap;
            lengths.push(0);
        }
        if let Some(length) = lengths.last_mut() {
            *length += 1;
        }
    }
    let known: Vec<f64> = values.iter().copied().filter(|value| !unknown(value)).collect();
    if ints::plan(&lengths, &mut scratch.ints).bits < values.len() {
        out.push(TAG_GAPS);
        varint::put(out, lengths.len() as u64);
        ints::encode(&lengths, &mut scratch.ints, out);
    } else {
        out.push(TAG_SPARSE);
        bits::pack(out, values.iter().map(|value| u64::from(!unknown(value))), 1);
    }
    encode_runs(&known, hint, scratch, out);
}

/// Takes out repetitions.
fn encode_runs(values: &[f64], hint: &ColumnHint, scratch: &mut Scratch, out: &mut Vec<u8>) {
    let run_count = 1 + values.windows(2).filter(|pair| !same(pair[0], pair[1])).count();
    if run_count == 1 || run_count * VALUES_PER_RUN > values.len() {
        return encode_values(values, hint, scratch, out);
    }
    let mut run_values = Vec::with_capacity(run_count);
    let mut lengths = Vec::with_capacity(run_count);
    for run in values.chunk_by(|a, b| same(*a, *b)) {
        run_values.push(run[0]);
        lengths.push(run.len() as i64);
    }
    out.push(TAG_RUNS);
    varint::put(out, run_count as u64);
    ints::encode(&lengths, &mut scratch.ints, out);
    encode_values(&run_values, hint, scratch, out);
}

fn encode_values(values: &[f64], hint: &ColumnHint, scratch: &mut Scratch, out: &mut Vec<u8>) {
    let alike = values.iter().all(|value| same(*value, values[0]));
    let raw_bits = if alike { 72 } else { 8 + 64 * values.len() };
    let scaled_bits = scaled::fit(values, hint, raw_bits, &mut scratch.scaled, &mut scratch.ints);
    if scaled_bits.is_some_and(|bits| alike || bits <= values.len() * SCALED_BITS_SURE) {
        return scaled::put(TAG_SCALED, values, &mut scratch.scaled, &mut scratch.ints, out);
    }
    let zero_bits = values.iter().fold(63, |bits: u32, value| bits.min(value.to_bits().trailing_zeros()));
    let shift = zero_bits.min(63);
    scratch.patterns.clear();
    scratch.patterns.extend(values.iter().map(|value| ordered(*value) >> shift));
    let plan = ints::plan(&scratch.patterns, &mut scratch.ints);
    if scaled_bits.is_some_and(|bits| bits < plan.bits) {
        return scaled::put(TAG_SCALED, values, &mut scratch.scaled, &mut scratch.ints, out);
    }
    if alike {
        out.push(TAG_CONSTANT);
        out.extend_from_slice(&values[0].to_bits().to_le_bytes());
    } else if plan.bits >= raw_bits {
        put_raw(values, out);
    } else {
        out.push(if shift > 0 { TAG_ORDERED_SHIFTED } else { TAG_ORDERED });
        if shift > 0 {
            out.push(shift as u8);
        }
        ints::encode_planned(&scratch.patterns, plan, &mut scratch.ints, out);
    }
}

/// Decodes the column of `count` values at the start of `bytes` and appends them to `out`; returns how many
/// bytes it had.
///
/// # Errors
/// When the bytes are no such column; `out` may then have grown.
pub fn decode(bytes: &[u8], count: usize, out: &mut Vec<f64>) -> Result<usize, CodecError> {
    let mut rest = bytes;
    let mut buffers = IntBuffers::default();
    decode_column(&mut rest, count, NESTING_MAX, &mut buffers, out)?;
    Ok(bytes.len() - rest.len())
}

/// Columns nested in columns: at most, the encoder writes gaps around runs around values.
const NESTING_MAX: u32 = 2;

fn decode_column(
    bytes: &mut &[u8],
    count: usize,
    nesting: u32,
    buffers: &mut IntBuffers,
    out: &mut Vec<f64>,
) -> Result<(), CodecError> {
    let (&tag, rest) = bytes.split_first().ok_or(CodecError::Cut)?;
    *bytes = rest;
    match tag {
        TAG_UNKNOWN => out.extend(std::iter::repeat_n(UNKNOWN, count)),
        TAG_CONSTANT => {
            let raw = take(bytes, 8)?;
            out.extend(
                raw.as_chunks::<8>().0.iter().flat_map(|word| std::iter::repeat_n(from_word(word), count)),
            );
        }
        TAG_RAW => out.extend(take(bytes, count * 8)?.as_chunks::<8>().0.iter().map(from_word)),
        TAG_ORDERED | TAG_ORDERED_SHIFTED => return decode_ordered(tag, bytes, count, out),
        TAG_RUNS | TAG_GAPS | TAG_SPARSE if nesting == 0 => return Err(CodecError::Field("nesting")),
        TAG_RUNS => return decode_runs(bytes, count, nesting - 1, buffers, out),
        TAG_GAPS => return decode_gaps(bytes, count, nesting - 1, buffers, out),
        TAG_SPARSE => return decode_sparse(bytes, count, nesting - 1, buffers, out),
        _ if tag & !scaled::TAG_MASK == TAG_SCALED => return scaled::decode(tag, bytes, count, buffers, out),
        other => return Err(CodecError::Tag(other)),
    }
    Ok(())
}

fn from_word(word: &[u8; 8]) -> f64 {
    f64::from_bits(u64::from_le_bytes(*word))
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], CodecError> {
    let (taken, rest) = bytes.split_at_checked(count).ok_or(CodecError::Cut)?;
    *bytes = rest;
    Ok(taken)
}

fn take_count(bytes: &mut &[u8], max: usize, field: &'static str) -> Result<usize, CodecError> {
    let count = usize::try_from(varint::take(bytes).ok_or(CodecError::Cut)?).unwrap_or(usize::MAX);
    if count == 0 || count > max { Err(CodecError::Field(field)) } else { Ok(count) }
}

fn decode_ordered(tag: u8, bytes: &mut &[u8], count: usize, out: &mut Vec<f64>) -> Result<(), CodecError> {
    let shift = if tag == TAG_ORDERED { 0 } else { u32::from(take(bytes, 1)?[0]) };
    if shift > 63 || (shift == 0) != (tag == TAG_ORDERED) {
        return Err(CodecError::Field("shift"));
    }
    let mut patterns = Vec::with_capacity(count);
    ints::decode(bytes, count, &mut patterns)?;
    // The bits shifted out were zero before they were put in order, hence ones in a negative pattern.
    let restore = |pattern: i64| {
        let low = if pattern < 0 { ((1u64 << shift) - 1) as i64 } else { 0 };
        unordered(pattern << shift | low)
    };
    out.extend(patterns.into_iter().map(restore));
    Ok(())
}

fn decode_runs(
    bytes: &mut &[u8],
    count: usize,
    nesting: u32,
    buffers: &mut IntBuffers,
    out: &mut Vec<f64>,
) -> Result<(), CodecError> {
    let run_count = take_count(bytes, count, "run count")?;
    let mut lengths = Vec::with_capacity(run_count);
    ints::decode(bytes, run_count, &mut lengths)?;
    let mut values = Vec::with_capacity(run_count);
    decode_column(bytes, run_count, nesting, buffers, &mut values)?;
    let mut left = count as i64;
    for (value, length) in values.into_iter().zip(lengths) {
        if length <= 0 || length > left {
            return Err(CodecError::Field("run length"));
        }
        left -= length;
        out.extend(std::iter::repeat_n(value, length as usize));
    }
    if left == 0 { Ok(()) } else { Err(CodecError::Field("run length")) }
}

fn decode_gaps(
    bytes: &mut &[u8],
    count: usize,
    nesting: u32,
    buffers: &mut IntBuffers,
    out: &mut Vec<f64>,
) -> Result<(), CodecError> {
    let length_count = take_count(bytes, count + 1, "gap count")?;
    let mut lengths = Vec::with_capacity(length_count);
    ints::decode(bytes, length_count, &mut lengths)?;
    let total = lengths.iter().try_fold(
        0i64,
        |total, &length| {
            if length < 0 { None } else { total.checked_add(length) }
        },
    );
    if total != Some(count as i64) {
        return Err(CodecError::Field("gap length"));
    }
    let known: usize = lengths.iter().step_by(2).map(|length| *length as usize).sum();
    let mut values = Vec::with_capacity(known);
    decode_column(bytes, known, nesting, buffers, &mut values)?;
    let mut values = values.into_iter();
    for (index, length) in lengths.into_iter().enumerate() {
        if index % 2 == 0 {
            out.extend(values.by_ref().take(length as usize));
        } else {
            out.extend(std::iter::repeat_n(UNKNOWN, length as usize));
        }
    }
    Ok(())
}

fn decode_sparse(
    bytes: &mut &[u8],
    count: usize,
    nesting: u32,
    buffers: &mut IntBuffers,
    out: &mut Vec<f64>,
) -> Result<(), CodecError> {
    let mask = take(bytes, bits::packed_bytes(count, 1))?;
    let known_at = |index: usize| mask[index / 8] >> (index % 8) & 1 == 1;
    let known = (0..count).filter(|index| known_at(*index)).count();
    let mut values = Vec::with_capacity(known);
    decode_column(bytes, known, nesting, buffers, &mut values)?;
    let mut values = values.into_iter();
    out.extend((0..count).map(
        |index| {
            if known_at(index) { values.next().unwrap_or(UNKNOWN) } else { UNKNOWN }
        },
    ));
    Ok(())
}

#[cfg(test)]
mod tests;
