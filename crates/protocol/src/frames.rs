//! Frames: our own binary protocol on rrdcached's sockets, for programs that call often
//! (`docs/protocol/frames.md`).
//!
//! Many updates are sent and answered at once; rows are sent as binary numbers. A client requests frames with
//! the line `FRAMES version`; a daemon without frames answers with an error line, and the text protocol
//! continues.
//!
//! This module owns the encoding in both directions. No memory is allocated because of a length that was
//! merely claimed, an invalid frame is refused as a whole, and no input panics.

pub mod agent;
pub mod answer;
pub mod code;
pub mod replication;
pub mod request;

use std::fmt;

/// The newest supported version. The daemon supports all versions from 1 on.
pub const VERSION: u32 = 2;
/// From this version on, refusals contain an [`code::ErrorCode`].
pub const VERSION_WITH_CODES: u32 = 2;
/// The prefix of the error of a daemon that supports only other versions.
pub const OTHER_VERSIONS: &str = "Only frames of version";

/// The line that requests a version, without its line feed.
pub fn negotiation(version: u32) -> String {
    format!("FRAMES {version}")
}

/// The daemon's positive answer to [`negotiation`], without the line feed; after any other answer, the text
/// protocol continues.
pub fn agreement(version: u32) -> String {
    format!("0 Frames of version {version} from here on")
}

/// Bytes before the body.
pub const HEADER_BYTES: usize = 12;
/// Longest body of a request: four of the longest lines of text.
pub const REQUEST_BYTES_MAX: usize = 1 << 20;
/// Longest body of an answer: the 16,777,216 values that a fetch may return, with room for names.
pub const ANSWER_BYTES_MAX: usize = (128 << 20) + (1 << 20);
/// The most updates of one frame. They are answered together, so more would only make their senders wait.
pub const UPDATES_MAX: usize = 16 * 1024;

const OFFSET_KIND: usize = 4;
const OFFSET_RESERVED: usize = 5;
const OFFSET_NUMBER: usize = 8;

/// A frame whose body has not been decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its kind.
    pub kind: u8,
    /// The request's number, which its answer repeats.
    pub number: u32,
    /// The body.
    pub body: &'a [u8],
}

/// Why bytes are not a frame. The connection cannot continue after that, because the start of the next frame
/// is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// A body longer than the limit.
    TooLong(u32, usize),
    /// A kind that this version does not know.
    Kind(u8),
    /// Reserved bytes are not zero.
    Reserved,
    /// The body ends within this field.
    Truncated(&'static str),
    /// The body has this many bytes too many.
    Surplus(usize),
    /// More updates than a frame may have, or none.
    Count(u32),
    /// An invalid value of this field.
    Value(&'static str),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bad frame: ")?;
        match self {
            FrameError::TooLong(bytes, max) => write!(f, "{bytes} bytes, {max} are the limit"),
            FrameError::Kind(kind) => write!(f, "kind {kind} is not known in version {VERSION}"),
            FrameError::Reserved => f.write_str("reserved bytes are not zero"),
            FrameError::Truncated(what) => write!(f, "it ends within {what}"),
            FrameError::Surplus(bytes) => write!(f, "{bytes} bytes too many"),
            FrameError::Count(count) => write!(f, "{count} updates, 1 to {UPDATES_MAX} are allowed"),
            FrameError::Value(what) => write!(f, "{what} cannot be"),
        }
    }
}

impl std::error::Error for FrameError {}

/// The frame at the start of `bytes`, with its length in bytes; `None` while it is incomplete.
///
/// # Errors
/// [`FrameError`], as soon as the header is invalid.
#[inline]
pub fn scan(bytes: &[u8], body_bytes_max: usize) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let length = u32_at(header, 0);
    if length as usize > body_bytes_max {
        return Err(FrameError::TooLong(length, body_bytes_max));
    }
    if header[OFFSET_RESERVED..OFFSET_NUMBER] != [0; OFFSET_NUMBER - OFFSET_RESERVED] {
        return Err(FrameError::Reserved);
    }
    let end = HEADER_BYTES + length as usize;
    let Some(body) = bytes.get(HEADER_BYTES..end) else { return Ok(None) };
    Ok(Some((Frame { kind: header[OFFSET_KIND], number: u32_at(header, OFFSET_NUMBER), body }, end)))
}

/// Appends a frame; `fill` appends its body.
pub fn push(out: &mut Vec<u8>, kind: u8, number: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = begin(out, kind, number);
    fill(out);
    finish(out, start);
}

/// Appends the header of a frame whose body the caller appends next; returns where the frame starts.
pub fn begin(out: &mut Vec<u8>, kind: u8, number: u32) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, 0, kind, 0, 0, 0]);
    out.extend_from_slice(&number.to_le_bytes());
    start
}

/// Completes the frame that starts at `start`: everything after its header is its body.
pub fn finish(out: &mut [u8], start: usize) {
    set_length(out, start, out.len() - start - HEADER_BYTES);
}

/// Sets the length of the frame that starts at `start`, whose body has or will have so many bytes.
pub fn set_length(out: &mut [u8], start: usize, body_bytes: usize) {
    // Callers respect the limits, which are far below 4 GiB.
    out[start..start + 4].copy_from_slice(&(body_bytes as u32).to_le_bytes());
}

fn u32_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Decodes fields from the start of a body.
#[derive(Clone, Copy, Debug)]
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], FrameError> {
        let (front, rest) = self.0.split_at_checked(count).ok_or(FrameError::Truncated(what))?;
        self.0 = rest;
        Ok(front)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], FrameError> {
        let (front, rest) = self.0.split_first_chunk::<N>().ok_or(FrameError::Truncated(what))?;
        self.0 = rest;
        Ok(*front)
    }

    fn u16(&mut self, what: &'static str) -> Result<u16, FrameError> {
        self.array(what).map(u16::from_le_bytes)
    }

    fn u32(&mut self, what: &'static str) -> Result<u32, FrameError> {
        self.array(what).map(u32::from_le_bytes)
    }

    fn u64(&mut self, what: &'static str) -> Result<u64, FrameError> {
        self.array(what).map(u64::from_le_bytes)
    }

    fn i64(&mut self, what: &'static str) -> Result<i64, FrameError> {
        self.array(what).map(i64::from_le_bytes)
    }

    /// Checks that nothing is left.
    fn end(self) -> Result<(), FrameError> {
        if self.0.is_empty() { Ok(()) } else { Err(FrameError::Surplus(self.0.len())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_its_header_and_its_body() {
        let mut out = Vec::new();
        push(&mut out, 3, 7, |body| body.extend_from_slice(b"PING"));
        assert_eq!(out, b"\x04\0\0\0\x03\0\0\0\x07\0\0\0PING");
        let frame = Frame { kind: 3, number: 7, body: b"PING" };
        assert_eq!(scan(&out, 4), Ok(Some((frame, 16))));
        for length in 0..out.len() {
            assert_eq!(scan(&out[..length], 4), Ok(None), "{length} bytes");
        }
        assert_eq!(scan(&out, 3), Err(FrameError::TooLong(4, 3)));
        for at in OFFSET_RESERVED..OFFSET_NUMBER {
            let mut bad = out.clone();
            bad[at] = 1;
            assert_eq!(scan(&bad, 4), Err(FrameError::Reserved));
        }
    }
}
