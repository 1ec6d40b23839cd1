//! Bodies of requests that push, no longer compressed.

use std::borrow::Cow;
use std::io::Read;

use axum::http::{HeaderMap, header};
use flate2::read::{MultiGzDecoder, ZlibDecoder};

use crate::budget::Share;
use crate::service::Service;

/// Bytes of a body that is no longer compressed, at most.
pub(super) const DECODED_BYTES_MAX: usize = 32 << 20;
/// Memory that samples and updates take for each byte that they are read from.
const MEMORY_PER_BYTE: u64 = 4;
/// Bytes that are decompressed before memory for them is asked for.
const PIECE_BYTES: usize = 1 << 20;

/// Why a body cannot be read.
#[derive(Debug)]
pub(super) enum BodyError {
    /// It is compressed in another way: 415.
    Encoding(String),
    /// It cannot be decompressed: 400.
    Broken(String),
    /// It is longer than [`DECODED_BYTES_MAX`]: 413.
    TooLong,
    /// There is no memory now: 503.
    NoMemory,
}

impl BodyError {
    /// The status of the answer, and its text.
    pub(super) fn answer(&self) -> (u16, String) {
        match self {
            BodyError::Encoding(name) => (
                415,
                format!("the encoding \"{name}\" is not known: send it as it is, or by gzip or deflate"),
            ),
            BodyError::Broken(cause) => (400, format!("the body cannot be decompressed: {cause}")),
            BodyError::TooLong => {
                (413, format!("the body is longer than {DECODED_BYTES_MAX} bytes: send smaller ones"))
            }
            BodyError::NoMemory => (503, "there is no memory for the body now; send it again".to_string()),
        }
    }
}

/// The body, and the memory that is held for what is made of it.
///
/// # Errors
/// When it cannot be read.
pub(super) fn decode<'a>(
    service: &Service,
    headers: &HeaderMap,
    body: &'a [u8],
) -> Result<(Cow<'a, [u8]>, Share), BodyError> {
    let mut share = service.memory.share();
    let encoding = headers.get(header::CONTENT_ENCODING).map_or(&b""[..], |value| value.as_bytes());
    let mut decoder: Box<dyn Read + 'a> = match encoding.trim_ascii().to_ascii_lowercase().as_slice() {
        b"" | b"identity" => {
            hold(&mut share, body.len())?;
            return Ok((Cow::Borrowed(body), share));
        }
        b"gzip" | b"x-gzip" => Box::new(MultiGzDecoder::new(body)),
        b"deflate" => Box::new(ZlibDecoder::new(body)),
        other => return Err(BodyError::Encoding(String::from_utf8_lossy(other).into_owned())),
    };
    let mut decoded = Vec::new();
    loop {
        hold(&mut share, decoded.len() + PIECE_BYTES)?;
        let read = decoder.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut decoded);
        match read.map_err(|error| BodyError::Broken(error.to_string()))? {
            0 => return Ok((Cow::Owned(decoded), share)),
            _ if decoded.len() > DECODED_BYTES_MAX => return Err(BodyError::TooLong),
            _ => {}
        }
    }
}

fn hold(share: &mut Share, bytes: usize) -> Result<(), BodyError> {
    let is_held = share.try_resize(bytes as u64 * MEMORY_PER_BYTE);
    if is_held { Ok(()) } else { Err(BodyError::NoMemory) }
}
