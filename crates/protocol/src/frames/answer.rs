//! What a daemon sends in frames.

use super::{Frame, FrameError, Reader, push};

/// The answer to [`super::request::UPDATE`].
pub const UPDATED: u8 = 0x81;
/// The answer to [`super::request::FETCH`].
pub const ROWS: u8 = 0x82;
/// The answer to [`super::request::COMMAND`].
pub const TEXT: u8 = 0x83;
/// The request was refused, and the connection goes on.
pub const REFUSED: u8 = 0xfe;
/// The connection ends.
pub const ENDED: u8 = 0xff;

/// Data sources of an answer; RRDtool's limit is far below.
const NAMES_MAX: u32 = 1 << 16;
/// Bytes of an error that a client shows: RRDtool keeps 4,095.
const TEXT_BYTES_MAX: usize = u16::MAX as usize;

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer<'a> {
    /// All updates went in but these.
    Updated(Vec<Refusal<'a>>),
    /// Rows.
    Rows(Rows<'a>),
    /// The answer of the text protocol.
    Text(&'a [u8]),
    /// Why the request was refused.
    Refused(&'a [u8]),
    /// Why the connection ends.
    Ended(&'a [u8]),
}

/// An update that was refused; the words of it before the bad one went in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal<'a> {
    /// Its place in the frame, from 0.
    pub index: u32,
    /// Why, as an UPDATE is answered behind its `-1 `.
    pub text: &'a [u8],
}

/// Rows: what stands in front of the values, and the values.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows<'a> {
    /// In units; the first row ends a step later.
    pub start: i64,
    /// Time of the last row, in units.
    pub end: i64,
    /// Units in a row.
    pub step: u64,
    /// Units in a second.
    pub units_per_second: u32,
    /// Names of the data sources.
    pub names: Vec<&'a [u8]>,
    values: &'a [u8],
}

impl Rows<'_> {
    /// The values, row after row, one for each name.
    pub fn values(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        self.values.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes))
    }
}

impl<'a> Answer<'a> {
    /// Reads the body of a frame.
    ///
    /// # Errors
    /// [`FrameError`].
    pub fn decode(frame: Frame<'a>) -> Result<Self, FrameError> {
        match frame.kind {
            UPDATED => refusals(frame.body).map(Answer::Updated),
            ROWS => rows(frame.body).map(Answer::Rows),
            TEXT => Ok(Answer::Text(frame.body)),
            REFUSED => Ok(Answer::Refused(frame.body)),
            ENDED => Ok(Answer::Ended(frame.body)),
            kind => Err(FrameError::Kind(kind)),
        }
    }
}

fn refusals(body: &[u8]) -> Result<Vec<Refusal<'_>>, FrameError> {
    let mut reader = Reader(body);
    let mut refusals: Vec<Refusal<'_>> = Vec::new();
    for _ in 0..reader.u32("the number of refusals")? {
        let index = reader.u32("a refusal")?;
        let bytes = reader.u16("a refusal")?;
        let text = reader.bytes(usize::from(bytes), "the text of a refusal")?;
        if refusals.last().is_some_and(|last| last.index >= index) {
            return Err(FrameError::Value("the order of refusals"));
        }
        refusals.push(Refusal { index, text });
    }
    reader.end()?;
    Ok(refusals)
}

fn rows(body: &[u8]) -> Result<Rows<'_>, FrameError> {
    let mut reader = Reader(body);
    let (start, end) = (reader.i64("a start")?, reader.i64("an end")?);
    let step = reader.u64("a step")?;
    let units_per_second = reader.u32("the units of a second")?;
    let count = reader.u32("the number of names")?;
    if step == 0 || units_per_second == 0 || count > NAMES_MAX {
        return Err(FrameError::Value("a step, unit or number of names"));
    }
    let mut names = Vec::new();
    for _ in 0..count {
        let bytes = reader.u16("the length of a name")?;
        names.push(reader.bytes(usize::from(bytes), "a name")?);
    }
    let row_count = reader.u64("the number of rows")?;
    let bytes = row_count.checked_mul(u64::from(count) * 8);
    let values = match bytes.and_then(|bytes| usize::try_from(bytes).ok()) {
        Some(bytes) => reader.bytes(bytes, "the values")?,
        None => return Err(FrameError::Value("a number of rows")),
    };
    reader.end()?;
    Ok(Rows { start, end, step, units_per_second, names, values })
}

/// Appends the answer to a frame of updates: the refused ones by index, in order.
pub fn push_updated(out: &mut Vec<u8>, number: u32, refusals: &[(u32, Vec<u8>)]) {
    push(out, UPDATED, number, |body| {
        body.extend_from_slice(&(refusals.len() as u32).to_le_bytes());
        for (index, text) in refusals {
            let text = &text[..text.len().min(TEXT_BYTES_MAX)];
            body.extend_from_slice(&index.to_le_bytes());
            body.extend_from_slice(&(text.len() as u16).to_le_bytes());
            body.extend_from_slice(text);
        }
    });
}

/// Start, end and step of rows in units, and the units of a second.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// In units.
    pub start: i64,
    /// In units.
    pub end: i64,
    /// In units.
    pub step: u64,
    /// Units in a second.
    pub units_per_second: u32,
}

/// Appends rows: `values` has one value for each name, row after row.
pub fn push_rows(out: &mut Vec<u8>, number: u32, times: Times, names: &[String], values: &[f64]) {
    out.reserve(values.len() * 8 + names.len() * 32 + 64);
    push(out, ROWS, number, |body| {
        body.extend_from_slice(&times.start.to_le_bytes());
        body.extend_from_slice(&times.end.to_le_bytes());
        body.extend_from_slice(&times.step.to_le_bytes());
        body.extend_from_slice(&times.units_per_second.to_le_bytes());
        body.extend_from_slice(&(names.len() as u32).to_le_bytes());
        for name in names {
            body.extend_from_slice(&(name.len() as u16).to_le_bytes());
            body.extend_from_slice(name.as_bytes());
        }
        let rows = values.len() / names.len().max(1);
        body.extend_from_slice(&(rows as u64).to_le_bytes());
        values.iter().for_each(|value| body.extend_from_slice(&value.to_le_bytes()));
    });
}

/// Appends an answer that is text: [`TEXT`], [`REFUSED`] or [`ENDED`].
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
        Answer::decode(frame)
    }

    #[test]
    fn refusals_are_bytes_and_back() {
        let mut out = Vec::new();
        push_updated(&mut out, 5, &[]);
        assert_eq!(decode(&out), Ok(Answer::Updated(Vec::new())));
        let mut out = Vec::new();
        push_updated(&mut out, 5, &[(2, b"no".to_vec()), (7, Vec::new())]);
        assert_eq!(out[12..], *b"\x02\0\0\0\x02\0\0\0\x02\0no\x07\0\0\0\0\0");
        let want = vec![Refusal { index: 2, text: b"no" }, Refusal { index: 7, text: b"" }];
        assert_eq!(decode(&out), Ok(Answer::Updated(want)));
        out[24] = 1;
        assert_eq!(decode(&out), Err(FrameError::Value("the order of refusals")));
    }

    #[test]
    fn rows_are_bytes_and_back() {
        let names = ["a".to_string(), "b".to_string()];
        let times = Times { start: 100, end: 120, step: 10, units_per_second: 1 };
        let mut out = Vec::new();
        push_rows(&mut out, 5, times, &names, &[1.0, f64::NAN, -0.0, f64::INFINITY]);
        let Ok(Answer::Rows(rows)) = decode(&out) else { panic!("no rows") };
        assert_eq!((rows.start, rows.end, rows.step, rows.units_per_second), (100, 120, 10, 1));
        assert_eq!(rows.names, [b"a", b"b"]);
        let bits: Vec<u64> = rows.values().map(f64::to_bits).collect();
        assert_eq!(bits, [1.0, f64::NAN, -0.0, f64::INFINITY].map(f64::to_bits));
        for end in 12..out.len() {
            let frame = Frame { kind: ROWS, number: 5, body: &out[12..end] };
            assert!(Answer::decode(frame).is_err(), "{end}");
        }
        // More rows than any memory has.
        let at = 12 + 8 + 8 + 8 + 4 + 4 + 3 + 3;
        out[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(decode(&out), Err(FrameError::Value("a number of rows")));
    }
}
