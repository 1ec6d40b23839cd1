//! The Basic Encoding Rules as far as SNMP uses them: definite lengths, tags of one byte.

use crate::oid::OidRef;

/// Tags (RFC 3417, 8; RFC 3416, 3).
pub mod tag {
    #![allow(missing_docs)]
    pub const INTEGER: u8 = 0x02;
    pub const OCTET_STRING: u8 = 0x04;
    pub const NULL: u8 = 0x05;
    pub const OID: u8 = 0x06;
    pub const SEQUENCE: u8 = 0x30;
    pub const IP_ADDRESS: u8 = 0x40;
    pub const COUNTER32: u8 = 0x41;
    pub const GAUGE32: u8 = 0x42;
    pub const TIME_TICKS: u8 = 0x43;
    pub const OPAQUE: u8 = 0x44;
    pub const COUNTER64: u8 = 0x46;
    pub const UINTEGER32: u8 = 0x47;
    pub const NO_SUCH_OBJECT: u8 = 0x80;
    pub const NO_SUCH_INSTANCE: u8 = 0x81;
    pub const END_OF_MIB_VIEW: u8 = 0x82;
}

/// The bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not a message of SNMP")
    }
}

impl std::error::Error for Malformed {}

/// Reads elements from bytes.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads from `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader(bytes)
    }

    /// True at the end.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What has not been read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// The next element: its tag and its content.
    ///
    /// # Errors
    /// When it is cut off, or its length is indefinite.
    pub fn element(&mut self) -> Result<(u8, &'a [u8]), Malformed> {
        let (&[tag, short], rest) = self.0.split_first_chunk::<2>().ok_or(Malformed)?;
        let (length, rest) = match short {
            0..=0x7f => (usize::from(short), rest),
            0x81..=0x84 => {
                let (digits, rest) = rest.split_at_checked(usize::from(short - 0x80)).ok_or(Malformed)?;
                (digits.iter().fold(0, |length, &byte| length << 8 | usize::from(byte)), rest)
            }
            _ => return Err(Malformed),
        };
        let (body, rest) = rest.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok((tag, body))
    }

    /// The content of the next element, which must have this tag.
    ///
    /// # Errors
    /// When it is cut off or has another tag.
    pub fn expect(&mut self, tag: u8) -> Result<&'a [u8], Malformed> {
        match self.element()? {
            (found, body) if found == tag => Ok(body),
            _ => Err(Malformed),
        }
    }

    /// The next element, an `INTEGER` of at most 32 bits.
    ///
    /// # Errors
    /// When it is something else.
    pub fn integer(&mut self) -> Result<i32, Malformed> {
        match self.expect(tag::INTEGER)? {
            [] => Err(Malformed),
            body @ [first, ..] if body.len() <= 4 => {
                let sign = i32::from(*first as i8) >> 7;
                Ok(body.iter().fold(sign, |number, &byte| number << 8 | i32::from(byte)))
            }
            _ => Err(Malformed),
        }
    }
}

/// Writes elements from the last byte to the first, so that each length is known when it is written. The buffer is reused.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    buffer: Vec<u8>,
    /// Where the first byte written is.
    start: usize,
}

impl Writer {
    /// Forgets what was written, and keeps the memory.
    pub fn clear(&mut self) {
        self.start = self.buffer.len();
    }

    /// What was written.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// What was written, for signing and encrypting in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start..]
    }

    /// How much was written.
    pub fn len(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// True when nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes bytes before what was written.
    pub fn bytes_before(&mut self, bytes: &[u8]) {
        if self.start < bytes.len() {
            self.grow(bytes.len());
        }
        let from = self.start - bytes.len();
        self.buffer[from..self.start].copy_from_slice(bytes);
        self.start = from;
    }

    /// Writes up to eight zeros after what was written.
    pub fn pad(&mut self, count: usize) {
        self.bytes_before(&[0; 8][..count.min(8)]);
        self.bytes_mut().rotate_left(count.min(8));
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        let len = self.len();
        let mut larger = vec![0; (self.buffer.len() * 2).max(len + more).max(2048)];
        let start = larger.len() - len;
        larger[start..].copy_from_slice(self.bytes());
        (self.buffer, self.start) = (larger, start);
    }

    /// Writes tag and length of an element whose content is what was written since the buffer had `end` bytes.
    pub fn header(&mut self, tag: u8, end: usize) {
        let length = self.len() - end;
        match length {
            0..=0x7f => self.bytes_before(&[tag, length as u8]),
            0x80..=0xff => self.bytes_before(&[tag, 0x81, length as u8]),
            0x100..=0xffff => self.bytes_before(&[tag, 0x82, (length >> 8) as u8, length as u8]),
            _ => {
                let digits = (length as u32).to_be_bytes();
                self.bytes_before(&[tag, 0x84, digits[0], digits[1], digits[2], digits[3]]);
            }
        }
    }

    /// Writes a whole element.
    pub fn element(&mut self, tag: u8, body: &[u8]) {
        let end = self.len();
        self.bytes_before(body);
        self.header(tag, end);
    }

    /// Writes an `INTEGER`.
    pub fn integer(&mut self, number: i32) {
        let digits = number.to_be_bytes();
        // Leading bytes that only repeat the sign are left out.
        let same =
            |at: &usize| (digits[*at], digits[at + 1] >> 7) == if number < 0 { (0xff, 1) } else { (0, 0) };
        let skipped = (0..3).take_while(same).count();
        self.element(tag::INTEGER, &digits[skipped..]);
    }

    /// Writes a variable without a value: the object identifier is `prefix` followed by `suffix`.
    pub fn variable(&mut self, prefix: OidRef<'_>, suffix: &[u8]) {
        let end = self.len();
        self.bytes_before(&[tag::NULL, 0]);
        let oid = self.len();
        self.bytes_before(suffix);
        self.bytes_before(prefix.bytes());
        self.header(tag::OID, oid);
        self.header(tag::SEQUENCE, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_in_their_shortest_form_and_read_back() {
        let mut writer = Writer::default();
        for (number, bytes) in [
            (0, &[2, 1, 0][..]),
            (127, &[2, 1, 0x7f]),
            (128, &[2, 2, 0, 0x80]),
            (-1, &[2, 1, 0xff]),
            (-129, &[2, 2, 0xff, 0x7f]),
            (i32::MAX, &[2, 4, 0x7f, 0xff, 0xff, 0xff]),
            (i32::MIN, &[2, 4, 0x80, 0, 0, 0]),
        ] {
            writer.clear();
            writer.integer(number);
            assert_eq!(writer.bytes(), bytes);
            assert_eq!(Reader::new(bytes).integer(), Ok(number));
        }
    }

    #[test]
    fn lengths_are_written_and_read() {
        let mut writer = Writer::default();
        for length in [0, 1, 127, 128, 255, 256, 65_535, 65_536] {
            writer.clear();
            writer.element(tag::OCTET_STRING, &vec![7; length]);
            let mut reader = Reader::new(writer.bytes());
            assert_eq!(reader.expect(tag::OCTET_STRING).map(<[u8]>::len), Ok(length));
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn lengths_beyond_the_end_are_refused() {
        for bytes in [
            &[4][..],
            &[4, 1],
            &[4, 0x80],
            &[4, 0x84, 255, 255, 255, 255],
            &[4, 0x85, 0, 0, 0, 0, 1, 1],
            &[4, 0x82, 1],
        ] {
            assert_eq!(Reader::new(bytes).element(), Err(Malformed), "{bytes:?}");
        }
        assert_eq!(Reader::new(&[2, 5, 0, 0, 0, 0, 1]).integer(), Err(Malformed));
    }
}
