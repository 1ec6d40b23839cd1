//! Requests in frames, from a client.

use rrd::definition::Cf;
use rrd::fetch::FetchRequest;

use super::{Frame, FrameError, HEADER_BYTES, Reader, UPDATES_MAX, push};

/// Updates, answered together.
pub const UPDATE: u8 = 1;
/// Rows of one RRD.
pub const FETCH: u8 = 2;
/// A line of the text protocol; the answer is its text.
pub const COMMAND: u8 = 3;

/// Offset in a frame of the first update: after the header and the count.
pub const UPDATES_OFFSET: usize = HEADER_BYTES + 4;
/// Bytes before the name and the readings of an update.
const UPDATE_HEAD_BYTES: usize = 6;

/// A request.
#[derive(Clone, Copy, Debug)]
pub enum Request<'a> {
    /// Updates, answered together.
    Update(Updates<'a>),
    /// Rows of one RRD.
    Fetch(Fetch<'a>),
    /// A line of the text protocol without its line feed.
    Command(&'a [u8]),
}

/// One update of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update<'a> {
    /// The name of the RRD, not escaped.
    pub name: &'a [u8],
    /// What follows the name in an UPDATE: arguments separated by single spaces, escaped as there.
    pub values: &'a [u8],
}

/// Rows of one RRD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch<'a> {
    /// The name of the RRD, not escaped.
    pub name: &'a [u8],
    /// The request, or the name of an unknown consolidation function.
    pub request: Result<FetchRequest, &'a [u8]>,
}

/// The updates of a complete frame.
#[derive(Clone, Copy, Debug)]
pub struct Updates<'a> {
    left: u32,
    reader: Reader<'a>,
}

impl<'a> Request<'a> {
    /// Decodes the body of a frame.
    ///
    /// # Errors
    /// [`FrameError`].
    pub fn decode(frame: Frame<'a>) -> Result<Self, FrameError> {
        match frame.kind {
            UPDATE => Updates::decode(frame.body).map(Request::Update),
            FETCH => Fetch::decode(frame.body).map(Request::Fetch),
            COMMAND if frame.body.contains(&b'\n') => Err(FrameError::Value("a line feed in a command")),
            COMMAND => Ok(Request::Command(frame.body)),
            kind => Err(FrameError::Kind(kind)),
        }
    }
}

impl<'a> Updates<'a> {
    fn decode(body: &'a [u8]) -> Result<Self, FrameError> {
        let mut reader = Reader(body);
        let count = reader.u32("the number of updates")?;
        if count == 0 || count as usize > UPDATES_MAX {
            return Err(FrameError::Count(count));
        }
        let updates = Updates { left: count, reader };
        // All of them are checked before the first is used.
        for _ in 0..count {
            Update::read(&mut reader)?;
        }
        reader.end()?;
        Ok(updates)
    }
}

impl<'a> Update<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, FrameError> {
        let name_bytes = reader.u16("the head of an update")?;
        let values_bytes = reader.u32("the head of an update")?;
        let name = reader.bytes(usize::from(name_bytes), "a name")?;
        let values = reader.bytes(values_bytes as usize, "the readings of an update")?;
        Ok(Update { name, values })
    }

    /// The update at the start of `bytes`, which begin in a frame at [`UPDATES_OFFSET`] or at the end of the
    /// previous update; and its length in bytes.
    ///
    /// # Errors
    /// [`FrameError::Truncated`]
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<(Self, usize), FrameError> {
        let mut reader = Reader(bytes);
        let update = Self::read(&mut reader)?;
        Ok((update, bytes.len() - reader.0.len()))
    }
}

impl<'a> Iterator for Updates<'a> {
    type Item = Update<'a>;

    fn next(&mut self) -> Option<Update<'a>> {
        self.left = self.left.checked_sub(1)?;
        Update::read(&mut self.reader).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for Updates<'_> {}

impl<'a> Fetch<'a> {
    fn decode(body: &'a [u8]) -> Result<Self, FrameError> {
        let mut reader = Reader(body);
        let (start, end) = (reader.i64("a start")?, reader.i64("an end")?);
        let step = reader.u64("a step")?;
        let cf_bytes = reader.u16("the length of a consolidation function")?;
        let cf = reader.bytes(usize::from(cf_bytes), "a consolidation function")?;
        let known = std::str::from_utf8(cf).ok().and_then(Cf::from_name);
        let request = known.map(|cf| FetchRequest::new(cf, start, end, step)).ok_or(cf);
        Ok(Fetch { name: reader.0, request })
    }
}

/// Appends a request for rows of the RRD called `name`.
pub fn push_fetch(out: &mut Vec<u8>, number: u32, name: &[u8], request: &FetchRequest) {
    let cf = request.cf.name().as_bytes();
    push(out, FETCH, number, |body| {
        body.extend_from_slice(&request.start.to_le_bytes());
        body.extend_from_slice(&request.end.to_le_bytes());
        body.extend_from_slice(&request.step.to_le_bytes());
        body.extend_from_slice(&(cf.len() as u16).to_le_bytes());
        body.extend_from_slice(cf);
        body.extend_from_slice(name);
    });
}

/// Appends a frame of these updates: 1 to [`UPDATES_MAX`], of at most [`super::REQUEST_BYTES_MAX`] bytes in
/// total as counted by [`update_bytes`].
pub fn push_updates<'a>(out: &mut Vec<u8>, number: u32, updates: impl ExactSizeIterator<Item = Update<'a>>) {
    push(out, UPDATE, number, |body| {
        body.extend_from_slice(&(updates.len() as u32).to_le_bytes());
        for update in updates {
            body.extend_from_slice(&(update.name.len() as u16).to_le_bytes());
            body.extend_from_slice(&(update.values.len() as u32).to_le_bytes());
            body.extend_from_slice(update.name);
            body.extend_from_slice(update.values);
        }
    });
}

/// Bytes that an update takes in a frame.
pub fn update_bytes(name: &[u8], values: &[u8]) -> usize {
    UPDATE_HEAD_BYTES + name.len() + values.len()
}

/// Appends a command line, which must not contain a line feed.
pub fn push_command(out: &mut Vec<u8>, number: u32, line: &[u8]) {
    push(out, COMMAND, number, |body| body.extend_from_slice(line));
}

#[cfg(test)]
mod tests {
    use super::super::{REQUEST_BYTES_MAX, scan};
    use super::*;

    fn decode(bytes: &[u8]) -> Result<(u32, Request<'_>), FrameError> {
        let (frame, used) = scan(bytes, REQUEST_BYTES_MAX)?.expect("a whole frame");
        assert_eq!(used, bytes.len());
        Request::decode(frame).map(|request| (frame.number, request))
    }

    #[test]
    fn updates_round_trip() {
        let updates = [Update { name: b"a b.rrd", values: b"1:2 3:4" }, Update { name: b"", values: b"" }];
        let mut out = Vec::new();
        push_updates(&mut out, 9, updates.iter().copied());
        assert_eq!(
            out,
            b"\x1e\0\0\0\x01\0\0\0\x09\0\0\0\x02\0\0\0\x07\0\x07\0\0\0a b.rrd1:2 3:4\0\0\0\0\0\0"
        );
        let Ok((9, Request::Update(read))) = decode(&out) else { panic!("no updates") };
        assert!(read.eq(updates));
        // One by one, as a session decodes them.
        let (first, used) = Update::decode(&out[UPDATES_OFFSET..]).unwrap();
        let (second, rest) = Update::decode(&out[UPDATES_OFFSET + used..]).unwrap();
        assert_eq!(([first, second], UPDATES_OFFSET + used + rest), (updates, out.len()));
        // Truncated anywhere, or with a wrong count, it is not a frame of updates.
        for end in 0..out.len() - 12 {
            let frame = Frame { kind: UPDATE, number: 0, body: &out[12..12 + end] };
            assert!(Request::decode(frame).is_err(), "{end}");
        }
        let mut body = out[12..].to_vec();
        body.push(0);
        let with = |body: &[u8]| Request::decode(Frame { kind: UPDATE, number: 0, body }).err();
        assert_eq!(with(&body), Some(FrameError::Surplus(1)));
        assert_eq!(with(&[0, 0, 0, 0]), Some(FrameError::Count(0)));
        assert_eq!(with(&[1, 0x40, 0, 0]), Some(FrameError::Count(0x4001)));
    }

    #[test]
    fn fetches_and_commands_round_trip() {
        let request = FetchRequest::new(Cf::Average, -1, i64::MAX, 300);
        let fetch = Fetch { name: b"d/a.rrd", request: Ok(request) };
        let mut out = Vec::new();
        push_fetch(&mut out, u32::MAX, fetch.name, &request);
        assert!(
            matches!(decode(&out), Ok((u32::MAX, Request::Fetch(read))) if read == fetch),
            "{:?}",
            decode(&out)
        );
        // AVERAGE becomes an unknown function.
        out[12 + 26] = b'B';
        let unknown = Fetch { request: Err(b"BVERAGE"), ..fetch };
        assert!(matches!(decode(&out), Ok((_, Request::Fetch(read))) if read == unknown));
        let mut out = Vec::new();
        push_command(&mut out, 1, b"LAST a.rrd");
        assert!(matches!(decode(&out), Ok((1, Request::Command(b"LAST a.rrd")))));
        let bad = Frame { kind: COMMAND, number: 0, body: b"PING\nPING" };
        assert!(Request::decode(bad).is_err());
        assert_eq!(Request::decode(Frame { kind: 0, number: 0, body: b"" }).err(), Some(FrameError::Kind(0)));
    }
}
