//! Answers in frames, from a daemon.

use rrd::fetch::FetchRows;

use super::code::ErrorCode;
use super::{Frame, FrameError, HEADER_BYTES, Reader, VERSION_WITH_CODES, begin, push, set_length};

/// The answer to [`super::request::UPDATE`].
pub const UPDATED: u8 = 0x81;
/// The answer to [`super::request::FETCH`].
pub const ROWS: u8 = 0x82;
/// The answer to [`super::request::COMMAND`].
pub const TEXT: u8 = 0x83;
/// The request was refused; the connection continues.
pub const REFUSED: u8 = 0xfe;
/// The connection ends.
pub const ENDED: u8 = 0xff;

/// The most data sources of an answer; RRDtool's limit is far lower.
const NAMES_MAX: u32 = 1 << 16;
/// The most bytes of an error text; RRDtool keeps 4,095.
const TEXT_BYTES_MAX: usize = u16::MAX as usize;

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer<'a> {
    /// All updates were applied except these.
    Updated(Vec<Refusal<'a>>),
    /// Rows.
    Rows(FetchRows),
    /// The answer of the text protocol.
    Text(&'a [u8]),
    /// Why the request was refused: a code and a text.
    Refused(ErrorCode, &'a [u8]),
    /// Why the connection ends.
    Ended(&'a [u8]),
}

/// An update that was refused; its arguments before the invalid one were applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal<'a> {
    /// Its index in the frame.
    pub index: u32,
    /// The reason as a code.
    pub code: ErrorCode,
    /// The reason as a text, without the `-1 ` of the answer to an UPDATE.
    pub text: &'a [u8],
}

impl<'a> Answer<'a> {
    /// Decodes the body of a frame of this version. In versions without codes, the code is
    /// [`ErrorCode::Other`].
    ///
    /// # Errors
    /// [`FrameError`].
    pub fn decode(frame: Frame<'a>, version: u32) -> Result<Self, FrameError> {
        match frame.kind {
            UPDATED => refusals(frame.body, version).map(Answer::Updated),
            ROWS => rows(frame.body).map(Answer::Rows),
            TEXT => Ok(Answer::Text(frame.body)),
            REFUSED => {
                let mut reader = Reader(frame.body);
                Ok(Answer::Refused(code(&mut reader, version)?, reader.0))
            }
            ENDED => Ok(Answer::Ended(frame.body)),
            kind => Err(FrameError::Kind(kind)),
        }
    }
}

fn code(reader: &mut Reader<'_>, version: u32) -> Result<ErrorCode, FrameError> {
    if version < VERSION_WITH_CODES {
        return Ok(ErrorCode::Other);
    }
    reader.u16("a code").map(ErrorCode::from_number)
}

fn push_code(out: &mut Vec<u8>, version: u32, code: ErrorCode) {
    if version >= VERSION_WITH_CODES {
        out.extend_from_slice(&code.number().to_le_bytes());
    }
}

fn refusals(body: &[u8], version: u32) -> Result<Vec<Refusal<'_>>, FrameError> {
    let mut reader = Reader(body);
    let mut refusals: Vec<Refusal<'_>> = Vec::new();
    for _ in 0..reader.u32("the number of refusals")? {
        let index = reader.u32("a refusal")?;
        let code = code(&mut reader, version)?;
        let bytes = reader.u16("a refusal")?;
        let text = reader.bytes(usize::from(bytes), "the text of a refusal")?;
        if refusals.last().is_some_and(|last| last.index >= index) {
            return Err(FrameError::Value("the order of refusals"));
        }
        refusals.push(Refusal { index, code, text });
    }
    reader.end()?;
    Ok(refusals)
}

/// Compat: invalid UTF-8 in a name is replaced.
fn rows(body: &[u8]) -> Result<FetchRows, FrameError> {
    let mut reader = Reader(body);
    let (start, end) = (reader.i64("a start")?, reader.i64("an end")?);
    let step = reader.u64("a step")?;
    let units_per_second = reader.u32("the units of a second")?;
    let count = reader.u32("the number of names")?;
    if step == 0 || units_per_second == 0 || count > NAMES_MAX {
        return Err(FrameError::Value("a step, unit or number of names"));
    }
    let mut ds_names = Vec::new();
    for _ in 0..count {
        let bytes = reader.u16("the length of a name")?;
        let name = reader.bytes(usize::from(bytes), "a name")?;
        ds_names.push(String::from_utf8_lossy(name).into_owned());
    }
    let row_count = reader.u64("the number of rows")?;
    let bytes = row_count.checked_mul(u64::from(count) * 8);
    let values = match bytes.and_then(|bytes| usize::try_from(bytes).ok()) {
        Some(bytes) => reader.bytes(bytes, "the values")?,
        None => return Err(FrameError::Value("a number of rows")),
    };
    reader.end()?;
    let values = values.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
    Ok(FetchRows { start, end, step, units_per_second, ds_names, values })
}

/// Appends the answer to a frame of updates: the refused ones, ordered by index.
pub fn push_updated<'a>(
    out: &mut Vec<u8>,
    number: u32,
    version: u32,
    refusals: impl ExactSizeIterator<Item = Refusal<'a>>,
) {
    push(out, UPDATED, number, |body| {
        body.extend_from_slice(&(refusals.len() as u32).to_le_bytes());
        for Refusal { index, code, text } in refusals {
            let text = &text[..text.len().min(TEXT_BYTES_MAX)];
            body.extend_from_slice(&index.to_le_bytes());
            push_code(body, version, code);
            body.extend_from_slice(&(text.len() as u16).to_le_bytes());
            body.extend_from_slice(text);
        }
    });
}

/// Appends rows.
pub fn push_rows(out: &mut Vec<u8>, number: u32, rows: &FetchRows) {
    out.reserve(rows.values.len() * 8 + rows.ds_names.len() * 32 + 64);
    push_rows_head(out, number, rows, rows.row_count());
    push_values(out, &rows.values);
}

/// Appends what precedes the values of rows, which must follow ([`push_values`]); `rows` need not have them.
pub fn push_rows_head(out: &mut Vec<u8>, number: u32, rows: &FetchRows, row_count: usize) {
    let names = &rows.ds_names;
    let start = begin(out, ROWS, number);
    out.extend_from_slice(&rows.start.to_le_bytes());
    out.extend_from_slice(&rows.end.to_le_bytes());
    out.extend_from_slice(&rows.step.to_le_bytes());
    out.extend_from_slice(&rows.units_per_second.to_le_bytes());
    out.extend_from_slice(&(names.len() as u32).to_le_bytes());
    for name in names {
        out.extend_from_slice(&(name.len() as u16).to_le_bytes());
        out.extend_from_slice(name.as_bytes());
    }
    out.extend_from_slice(&(row_count as u64).to_le_bytes());
    let body = out.len() - start - HEADER_BYTES + row_count * names.len() * 8;
    set_length(out, start, body);
}

/// Appends the values of rows, row-major.
pub fn push_values(out: &mut Vec<u8>, values: &[f64]) {
    out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}

/// Appends the refusal of a request.
pub fn push_refused(out: &mut Vec<u8>, number: u32, version: u32, code: ErrorCode, text: &[u8]) {
    push(out, REFUSED, number, |body| {
        push_code(body, version, code);
        body.extend_from_slice(text);
    });
}

/// Appends a text answer: [`TEXT`] or [`ENDED`].
pub fn push_text(out: &mut Vec<u8>, kind: u8, number: u32, text: &[u8]) {
    push(out, kind, number, |body| body.extend_from_slice(text));
}

#[cfg(test)]
mod tests {
    use super::super::{ANSWER_BYTES_MAX, scan};
    use super::*;

    fn decode(bytes: &[u8]) -> Result<Answer<'_>, FrameError> {
        let (frame, used) = scan(bytes, ANSWER_BYTES_MAX)?.expect("a whole frame");
        assert_eq!((used, frame.number), (bytes.len(), 5));
        Answer::decode(frame, 1)
    }

    fn decode_with_codes(bytes: &[u8]) -> Result<Answer<'_>, FrameError> {
        let (frame, _) = scan(bytes, ANSWER_BYTES_MAX)?.expect("a whole frame");
        Answer::decode(frame, 2)
    }

    const NO: Refusal<'_> = Refusal { index: 2, code: ErrorCode::NoSuchRrd, text: b"no" };
    const LATE: Refusal<'_> = Refusal { index: 7, code: ErrorCode::IllegalTime, text: b"" };

    #[test]
    fn refusals_round_trip() {
        for version in [1, 2] {
            let mut out = Vec::new();
            push_updated(&mut out, 5, version, [].into_iter());
            assert_eq!(decode(&out), Ok(Answer::Updated(Vec::new())));
        }
        let mut out = Vec::new();
        push_updated(&mut out, 5, 1, [NO, LATE].into_iter());
        assert_eq!(out[12..], *b"\x02\0\0\0\x02\0\0\0\x02\0no\x07\0\0\0\0\0");
        let want = [NO, LATE].map(|refusal| Refusal { code: ErrorCode::Other, ..refusal });
        assert_eq!(decode(&out), Ok(Answer::Updated(want.to_vec())));
        out[24] = 1;
        assert_eq!(decode(&out), Err(FrameError::Value("the order of refusals")));
        let mut out = Vec::new();
        push_updated(&mut out, 5, 2, [NO, LATE].into_iter());
        assert_eq!(out[12..], *b"\x02\0\0\0\x02\0\0\0\x02\0\x02\0no\x07\0\0\0\x04\0\0\0");
        assert_eq!(decode_with_codes(&out), Ok(Answer::Updated(vec![NO, LATE])));
    }

    #[test]
    fn refused_requests_have_a_code_from_version_2_on() {
        let mut out = Vec::new();
        push_refused(&mut out, 5, 1, ErrorCode::Permission, b"no");
        assert_eq!(out[12..], *b"no");
        assert_eq!(decode(&out), Ok(Answer::Refused(ErrorCode::Other, b"no")));
        let mut out = Vec::new();
        push_refused(&mut out, 5, 2, ErrorCode::Permission, b"no");
        assert_eq!(out[12..], *b"\x07\0no");
        assert_eq!(decode_with_codes(&out), Ok(Answer::Refused(ErrorCode::Permission, b"no")));
        let cut = Frame { kind: REFUSED, number: 5, body: b"\x07" };
        assert_eq!(Answer::decode(cut, 2), Err(FrameError::Truncated("a code")));
    }

    #[test]
    fn rows_round_trip() {
        let ds_names = vec!["a".to_string(), "b".to_string()];
        let values = vec![1.0, f64::NAN, -0.0, f64::INFINITY];
        let rows = FetchRows { start: 100, end: 120, step: 10, units_per_second: 1, ds_names, values };
        let mut out = Vec::new();
        push_rows(&mut out, 5, &rows);
        let Ok(Answer::Rows(read)) = decode(&out) else { panic!("no rows") };
        let bits = |rows: &FetchRows| rows.values.iter().map(|value| value.to_bits()).collect::<Vec<u64>>();
        assert_eq!(bits(&read), bits(&rows));
        assert_eq!(FetchRows { values: Vec::new(), ..read }, FetchRows { values: Vec::new(), ..rows });
        for end in 12..out.len() {
            let frame = Frame { kind: ROWS, number: 5, body: &out[12..end] };
            assert!(Answer::decode(frame, 1).is_err(), "{end}");
        }
        // More rows than fit in memory.
        let at = 12 + 8 + 8 + 8 + 4 + 4 + 3 + 3;
        out[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(decode(&out), Err(FrameError::Value("a number of rows")));
    }
}
