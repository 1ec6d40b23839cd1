//! Lossless compression of one column of doubles.
//!
//! Every bit pattern comes back as it went in, NaN payloads and signs of zero included. A column carries
//! everything its decoder needs but the number of its values. Decoding is safe on any bytes and allocates
//! no more than `count` values.

/// How the values of a column were made; helps the encoder only, the decoder needs none of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ColumnHint {
    /// Units in a second.
    pub units_per_second: u32,
    /// Units in a step.
    pub step: u64,
    /// PDPs in a row.
    pub pdp_per_row: u64,
}

/// Buffers the encoder keeps from column to column.
#[derive(Debug, Default)]
pub struct Scratch {}

/// Why bytes are no column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodecError {
    /// The bytes end before the column does.
    Cut,
    /// An unknown tag byte.
    Tag(u8),
    /// A field that no encoder writes; says which.
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

const TAG_CONSTANT: u8 = 1;
const TAG_RAW: u8 = 2;

/// Appends the column of `values` to `out`.
pub fn encode(values: &[f64], _hint: &ColumnHint, _scratch: &mut Scratch, out: &mut Vec<u8>) {
    match values {
        [first, rest @ ..] if rest.iter().all(|value| value.to_bits() == first.to_bits()) => {
            out.push(TAG_CONSTANT);
            out.extend_from_slice(&first.to_bits().to_le_bytes());
        }
        _ => {
            out.push(TAG_RAW);
            out.extend(values.iter().flat_map(|value| value.to_bits().to_le_bytes()));
        }
    }
}

/// Appends the `count` values of the column at the front of `bytes` to `out`; returns the bytes it took.
pub fn decode(bytes: &[u8], count: usize, out: &mut Vec<f64>) -> Result<usize, CodecError> {
    let (&tag, body) = bytes.split_first().ok_or(CodecError::Cut)?;
    let value_count = match tag {
        TAG_CONSTANT => 1,
        TAG_RAW => count,
        other => return Err(CodecError::Tag(other)),
    };
    let raw = body.get(..value_count * 8).ok_or(CodecError::Cut)?;
    let (words, _) = raw.as_chunks::<8>();
    let mut values = words.iter().map(|word| f64::from_bits(u64::from_le_bytes(*word)));
    match tag {
        TAG_CONSTANT => out.extend(std::iter::repeat_n(values.next().unwrap_or(0.0), count)),
        _ => out.extend(values),
    }
    Ok(1 + raw.len())
}
