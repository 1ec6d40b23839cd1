//! Imports that do not fit into one record: the body is split into parts, one consecutive record each.
//!
//! The parts of one import are appended together and committed in one write, so nothing comes between them;
//! the last one completes the import. If a crash cuts the log within them, no trace of the import remains; it
//! was not answered yet. If damage destroys a part, the import is lost and reported.

use super::catalogue::RRD_BYTES_MAX;
use crate::codec::{Cursor, DecodeError};
use rrd::codec::varint;

/// Bytes of an import in one part: the size of a log file, a quarter of the largest record.
pub const PART_BYTES: usize = 16 << 20;
/// Longest body of an import: an RRD that does not compress grows slightly.
const IMPORT_BYTES_MAX: u64 = RRD_BYTES_MAX as u64 + (64 << 20);

/// One part of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportPart<'a> {
    /// Bytes of the whole body.
    pub total: u64,
    /// Offset of this part in the body.
    pub offset: u64,
    /// The bytes of this part.
    pub bytes: &'a [u8],
}

impl<'a> ImportPart<'a> {
    /// The parts of a body, in order.
    pub fn of(body: &'a [u8]) -> impl Iterator<Item = ImportPart<'a>> {
        body.chunks(PART_BYTES).enumerate().map(|(index, bytes)| ImportPart {
            total: body.len() as u64,
            offset: (index * PART_BYTES) as u64,
            bytes,
        })
    }

    /// Appends the body of the part's record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::put(out, self.total);
        varint::put(out, self.offset);
        out.extend_from_slice(self.bytes);
    }

    /// Decodes the body of a part's record.
    ///
    /// # Errors
    /// When the bytes are malformed.
    pub fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        let total_at = cursor.bad("the length of an import");
        let total: u64 = cursor.varint(total_at.expected)?;
        let offset_at = cursor.bad("the place of a part within its import");
        let offset: u64 = cursor.varint(offset_at.expected)?;
        let bytes = cursor.take_rest();
        match offset.checked_add(bytes.len() as u64) {
            _ if total > IMPORT_BYTES_MAX => Err(total_at),
            Some(end) if end <= total && !bytes.is_empty() => Ok(ImportPart { total, offset, bytes }),
            _ => Err(offset_at),
        }
    }
}

impl ImportPart<'_> {
    /// Whether the import goes on after it.
    pub fn is_followed(&self) -> bool {
        self.offset + (self.bytes.len() as u64) < self.total
    }
}

/// The parts of one import so far.
#[derive(Debug, Default)]
pub struct Parts {
    body: Vec<u8>,
    total: u64,
}

impl Parts {
    /// Drops the parts collected so far.
    pub fn abandon(&mut self) {
        *self = Parts::default();
    }

    /// Adds the next part; returns the body when it was the last.
    ///
    /// # Errors
    /// [`Lost`] when the part does not continue the previous one: a part is missing, and the import with it.
    pub fn take(&mut self, piece: &ImportPart<'_>) -> Result<Option<Vec<u8>>, Lost> {
        if piece.offset == 0 {
            self.abandon();
            self.total = piece.total;
        }
        if (piece.total, piece.offset) != (self.total, self.body.len() as u64) {
            self.abandon();
            return Err(Lost);
        }
        self.body.extend_from_slice(piece.bytes);
        if self.body.len() as u64 != self.total {
            return Ok(None);
        }
        Ok(Some(std::mem::take(self).body))
    }
}

/// A part before this one is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_reassemble_to_the_body() {
        let body: Vec<u8> = (0..PART_BYTES * 2 + 5).map(|index| (index % 251) as u8).collect();
        let encoded: Vec<Vec<u8>> = ImportPart::of(&body)
            .map(|piece| {
                let mut out = Vec::new();
                piece.encode(&mut out);
                out
            })
            .collect();
        assert_eq!(encoded.len(), 3);
        let mut parts = Parts::default();
        let mut take = |index: usize| parts.take(&ImportPart::decode(&encoded[index]).unwrap());
        assert_eq!(take(0), Ok(None));
        assert_eq!(take(2), Err(Lost));
        assert_eq!(take(1), Err(Lost));
        assert_eq!(take(0), Ok(None));
        assert_eq!(take(1), Ok(None));
        assert!(take(2) == Ok(Some(body)));
    }

    #[test]
    fn the_encoding_is_fixed_and_malformed_parts_are_refused() {
        let mut out = Vec::new();
        ImportPart { total: 300, offset: 2, bytes: b"abc" }.encode(&mut out);
        assert_eq!(out, b"\xac\x02\x02abc");
        assert_eq!(ImportPart::decode(&out), Ok(ImportPart { total: 300, offset: 2, bytes: b"abc" }));
        for bad in
            [&b"\x02\x00abc"[..], b"\x02\x00", b"\x02", b"", b"\x02\x03a", b"\xff\xff\xff\xff\x7f\x00a"]
        {
            assert!(ImportPart::decode(bad).is_err(), "{bad:?}");
        }
    }
}
