//! A cursor for decoding bytes from disk, whose errors name an offset; and the encoders that match it.
//!
//! Nothing here panics on any input, and no decoder allocates for a count before it has checked that the
//! bytes are there. Variable-length integers are those of [`rrd::codec::varint`].

use std::fmt;

use rrd::codec::varint;

/// Bytes that cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Offset within the bytes given to the decoder.
    pub offset: usize,
    /// What the decoder expected there.
    pub expected: &'static str,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {} at byte {}", self.expected, self.offset)
    }
}

impl std::error::Error for DecodeError {}

/// Reads from front to back.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
    length: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Cursor { rest: bytes, length: bytes.len() }
    }

    /// The current offset.
    pub fn offset(&self) -> usize {
        self.length - self.rest.len()
    }

    /// An error at the current offset: `expected` is not there.
    pub fn bad(&self, expected: &'static str) -> DecodeError {
        DecodeError { offset: self.offset(), expected }
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn bytes(&mut self, count: usize, expected: &'static str) -> Result<&'a [u8], DecodeError> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or_else(|| self.bad(expected))?;
        self.rest = rest;
        Ok(bytes)
    }

    /// All remaining bytes.
    pub fn take_rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// One byte.
    ///
    /// # Errors
    /// At the end of the bytes.
    pub fn byte(&mut self, expected: &'static str) -> Result<u8, DecodeError> {
        self.bytes(1, expected).map(|bytes| bytes[0])
    }

    /// A variable-length integer.
    ///
    /// # Errors
    /// When it is cut off or does not fit 64 bits.
    pub fn varint(&mut self, expected: &'static str) -> Result<u64, DecodeError> {
        varint::take(&mut self.rest).ok_or_else(|| self.bad(expected))
    }

    /// A variable-length integer that fits `T`.
    ///
    /// # Errors
    /// When it is cut off or does not fit.
    pub fn number<T: TryFrom<u64>>(&mut self, expected: &'static str) -> Result<T, DecodeError> {
        let error = self.bad(expected);
        self.varint(expected).and_then(|value| T::try_from(value).map_err(|_| error))
    }

    /// A zigzag-coded signed integer.
    ///
    /// # Errors
    /// When it is cut off or does not fit 64 bits.
    pub fn signed(&mut self, expected: &'static str) -> Result<i64, DecodeError> {
        self.varint(expected).map(varint::unzigzag)
    }

    /// A count of items of at least `bytes_each` bytes each.
    ///
    /// # Errors
    /// When the remaining bytes cannot hold that many items.
    pub fn count(&mut self, bytes_each: usize, expected: &'static str) -> Result<usize, DecodeError> {
        let error = self.bad(expected);
        let count: usize = self.number(expected)?;
        if count > self.left() / bytes_each { Err(error) } else { Ok(count) }
    }

    /// Length-prefixed bytes.
    ///
    /// # Errors
    /// When the length or the bytes are cut off.
    pub fn counted_bytes(&mut self, expected: &'static str) -> Result<&'a [u8], DecodeError> {
        let count = self.count(1, expected)?;
        self.bytes(count, expected)
    }

    /// Length-prefixed UTF-8 text.
    ///
    /// # Errors
    /// When it is cut off or not UTF-8.
    pub fn text(&mut self, expected: &'static str) -> Result<&'a str, DecodeError> {
        let error = self.bad(expected);
        std::str::from_utf8(self.counted_bytes(expected)?).map_err(|_| error)
    }

    /// A double, as its bits.
    ///
    /// # Errors
    /// When fewer than 8 bytes are left.
    pub fn double(&mut self, expected: &'static str) -> Result<f64, DecodeError> {
        let mut bits = [0; 8];
        bits.copy_from_slice(self.bytes(8, expected)?);
        Ok(f64::from_bits(u64::from_le_bytes(bits)))
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// When bytes are left.
    pub fn end(&self) -> Result<(), DecodeError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.bad("the end")) }
    }
}

/// Appends bytes with a length prefix.
pub fn put_counted(out: &mut Vec<u8>, bytes: &[u8]) {
    varint::put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a zigzag-coded signed integer.
pub fn put_signed(out: &mut Vec<u8>, value: i64) {
    varint::put(out, varint::zigzag(value));
}

/// Appends a double, as its bits.
pub fn put_double(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(&value.to_bits().to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_round_trip_and_the_end_is_checked() {
        let mut bytes = Vec::new();
        put_counted(&mut bytes, b"name");
        put_signed(&mut bytes, -3);
        put_double(&mut bytes, -0.0);
        varint::put(&mut bytes, 300);
        let mut cursor = Cursor::new(&bytes);
        assert_eq!(cursor.text("a name").unwrap(), "name");
        assert_eq!(cursor.signed("a number").unwrap(), -3);
        assert_eq!(cursor.double("a double").unwrap().to_bits(), (-0.0f64).to_bits());
        assert_eq!(
            cursor.clone().number::<u8>("a byte"),
            Err(DecodeError { offset: 14, expected: "a byte" })
        );
        assert_eq!(cursor.end(), Err(DecodeError { offset: 14, expected: "the end" }));
        assert_eq!(cursor.number::<u16>("a number"), Ok(300));
        assert_eq!(cursor.end(), Ok(()));
        assert_eq!(cursor.byte("a byte"), Err(DecodeError { offset: 16, expected: "a byte" }));
    }

    #[test]
    fn a_count_beyond_the_remaining_bytes_is_refused() {
        let mut bytes = Vec::new();
        varint::put(&mut bytes, 1 << 40);
        bytes.extend_from_slice(&[0; 8]);
        let error = Cursor::new(&bytes).count(1, "a count").unwrap_err();
        assert_eq!(error.to_string(), "expected a count at byte 0");
        assert!(Cursor::new(&[5, 0, 0, 0, 0]).counted_bytes("bytes").is_err());
        assert!(Cursor::new(&[2, 0xff, 0xff]).text("text").is_err());
    }
}
