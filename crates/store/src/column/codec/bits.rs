//! Fixed-width integers packed without gaps, lowest bit first.

/// Bits `value` needs; 0 for 0.
pub(super) fn width_of(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// Bytes of `count` numbers of `width` bits.
pub(super) fn packed_bytes(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

/// Appends bits to a byte buffer.
pub(super) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    held: u128,
    held_bits: u32,
}

impl<'a> BitWriter<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        BitWriter { out, held: 0, held_bits: 0 }
    }

    /// Appends the low `width` bits of `value`; the others must be zero.
    pub(super) fn put(&mut self, value: u64, width: u32) {
        self.held |= u128::from(value) << self.held_bits;
        self.held_bits += width;
        if self.held_bits >= 64 {
            self.out.extend_from_slice(&(self.held as u64).to_le_bytes());
            self.held >>= 64;
            self.held_bits -= 64;
        }
    }

    /// Pads the last byte with zero bits.
    pub(super) fn finish(self) {
        let bytes = (self.held as u64).to_le_bytes();
        self.out.extend_from_slice(&bytes[..self.held_bits.div_ceil(8) as usize]);
    }
}

/// Appends all of `values`, `width` bits each.
pub(super) fn pack(out: &mut Vec<u8>, values: impl Iterator<Item = u64>, width: u32) {
    let mut writer = BitWriter::new(out);
    values.for_each(|value| writer.put(value, width));
    writer.finish();
}

/// Reads bits from bytes.
#[derive(Clone, Copy)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    bit: usize,
}

impl<'a> BitReader<'a> {
    /// A reader at the first bit of `bytes`.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        BitReader { bytes, bit: 0 }
    }

    /// The next `width` (up to 64) bits; bits beyond the end read as zero, see [`BitReader::end`].
    #[inline]
    pub(super) fn take(&mut self, width: u32) -> u64 {
        let (byte, shift) = (self.bit / 8, (self.bit % 8) as u32);
        self.bit += width as usize;
        let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
        if let Some(word) = self.bytes.get(byte..byte + 8).and_then(|word| word.first_chunk::<8>()) {
            let low = u64::from_le_bytes(*word) >> shift;
            if shift + width <= 64 {
                return low & mask;
            }
            let high = u64::from(self.bytes.get(byte + 8).copied().unwrap_or(0));
            return (low | high << (64 - shift)) & mask;
        }
        let mut word = [0; 16];
        let rest = self.bytes.get(byte..).unwrap_or(&[]);
        let count = rest.len().min(16);
        word[..count].copy_from_slice(&rest[..count]);
        (u128::from_le_bytes(word) >> shift) as u64 & mask
    }

    /// Counts zero bits up to the next one bit, and consumes that too; `None` when there are more than `max`
    /// (up to 48).
    #[inline]
    pub(super) fn take_unary(&mut self, max: u32) -> Option<u32> {
        let (byte, shift) = (self.bit / 8, (self.bit % 8) as u32);
        let word = match self.bytes.get(byte..byte + 8).and_then(|word| word.first_chunk::<8>()) {
            Some(word) => u64::from_le_bytes(*word),
            None => {
                let mut word = [0; 8];
                let rest = self.bytes.get(byte..).unwrap_or(&[]);
                word[..rest.len()].copy_from_slice(rest);
                u64::from_le_bytes(word)
            }
        };
        let zeros = (word >> shift).trailing_zeros();
        self.bit += zeros as usize + 1;
        (zeros <= max).then_some(zeros)
    }

    /// Bytes consumed so far, rounded up; `None` when more was read than there is.
    pub(super) fn end(&self) -> Option<usize> {
        let bytes = self.bit.div_ceil(8);
        (bytes <= self.bytes.len()).then_some(bytes)
    }
}
