//! The messages of remote read, as protocol buffers.

use std::fmt;

use super::wire::{Field, fields, put_varint, text, varint};
use super::xor;

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// They end early, or are something else.
    Broken,
    /// They are too many.
    TooLong,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DecodeError::Broken => "the request is no snappy-compressed protocol buffer of this kind",
            DecodeError::TooLong => "the request is too long",
        })
    }
}

impl std::error::Error for DecodeError {}

/// How a label is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConditionKind {
    /// Equal.
    #[default]
    Equal,
    /// Not equal.
    NotEqual,
    /// A regular expression.
    Regex,
    /// No match of a regular expression.
    NotRegex,
}

/// A condition on a label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// How it is compared.
    pub kind: ConditionKind,
    /// The label.
    pub name: String,
    /// What it is compared with.
    pub value: String,
}

/// What is asked for. Times are in milliseconds since the epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadQuery {
    /// The first time.
    pub start: i64,
    /// The last time.
    pub end: i64,
    /// Conditions that all must hold.
    pub conditions: Vec<Condition>,
    /// The step of the query that it is for; 0: there is none.
    pub step: i64,
    /// The range of its function; 0: there is none.
    pub range: i64,
    /// Its function; may be empty.
    pub function: String,
}

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadRequest {
    /// What is asked for.
    pub queries: Vec<ReadQuery>,
    /// Whether a stream of chunks is understood, and preferred to samples.
    pub takes_chunks: bool,
}

/// A series of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Labels in the order of their names.
    pub labels: Vec<(String, String)>,
    /// Times in milliseconds, ascending, and values.
    pub samples: Vec<(i64, f64)>,
}

impl ReadRequest {
    /// Reads a request that is no longer compressed.
    ///
    /// # Errors
    /// When it is none.
    pub fn decode(bytes: &[u8]) -> Result<ReadRequest, DecodeError> {
        let mut request = ReadRequest::default();
        let mut kinds = Vec::new();
        fields(bytes, |number, field| {
            match (number, field) {
                (1, Field::Bytes(bytes)) => request.queries.push(query(bytes)?),
                (2, Field::Number(kind)) => kinds.push(kind),
                (2, Field::Bytes(mut bytes)) => {
                    while !bytes.is_empty() {
                        kinds.push(varint(&mut bytes)?);
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        // The first that is understood counts: 0 is samples, 1 chunks.
        request.takes_chunks = kinds.iter().find(|kind| **kind <= 1) == Some(&1);
        Ok(request)
    }
}

fn query(bytes: &[u8]) -> Result<ReadQuery, DecodeError> {
    let mut query = ReadQuery::default();
    fields(bytes, |number, field| {
        match (number, field) {
            (1, Field::Number(time)) => query.start = time as i64,
            (2, Field::Number(time)) => query.end = time as i64,
            (3, Field::Bytes(bytes)) => query.conditions.push(condition(bytes)?),
            (4, Field::Bytes(bytes)) => fields(bytes, |number, field| {
                match (number, field) {
                    (1, Field::Number(step)) => query.step = step as i64,
                    (2, Field::Bytes(name)) => query.function = text(name)?,
                    (7, Field::Number(range)) => query.range = range as i64,
                    _ => {}
                }
                Ok(())
            })?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(query)
}

fn condition(bytes: &[u8]) -> Result<Condition, DecodeError> {
    let mut condition = Condition::default();
    fields(bytes, |number, field| {
        match (number, field) {
            (1, Field::Number(kind)) => {
                condition.kind = match kind {
                    0 => ConditionKind::Equal,
                    1 => ConditionKind::NotEqual,
                    2 => ConditionKind::Regex,
                    3 => ConditionKind::NotRegex,
                    _ => return Err(DecodeError::Broken),
                };
            }
            (2, Field::Bytes(name)) => condition.name = text(name)?,
            (3, Field::Bytes(value)) => condition.value = text(value)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(condition)
}

fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_varint(out, field << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_number(out: &mut Vec<u8>, field: u64, number: i64) {
    put_varint(out, field << 3);
    put_varint(out, number as u64);
}

fn put_labels(out: &mut Vec<u8>, labels: &[(String, String)]) {
    for (name, value) in labels {
        let mut label = Vec::with_capacity(name.len() + value.len() + 4);
        put_bytes(&mut label, 1, name.as_bytes());
        put_bytes(&mut label, 2, value.as_bytes());
        put_bytes(out, 1, &label);
    }
}

/// The answer of samples, not compressed yet: the series of each query.
pub fn samples_answer(results: &[Vec<Samples>]) -> Vec<u8> {
    let mut out = Vec::new();
    for series in results {
        put_bytes(&mut out, 1, &write_request(series));
    }
    out
}

/// The request of remote write 1.0 with these series, not compressed yet. The answer to a query is written alike.
pub fn write_request(series: &[Samples]) -> Vec<u8> {
    let mut out = Vec::new();
    for one in series {
        let mut bytes = Vec::with_capacity(one.samples.len() * 18);
        put_labels(&mut bytes, &one.labels);
        let mut sample = Vec::with_capacity(20);
        for (time, value) in &one.samples {
            sample.clear();
            put_varint(&mut sample, 1 << 3 | 1);
            sample.extend_from_slice(&value.to_bits().to_le_bytes());
            put_number(&mut sample, 2, *time);
            put_bytes(&mut bytes, 2, &sample);
        }
        put_bytes(&mut out, 1, &bytes);
    }
    out
}

/// A message of the stream of chunks, with its length and checksum: a series of the query with this number.
pub fn chunk_frame(query: usize, series: &Samples) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_labels(&mut bytes, &series.labels);
    for samples in series.samples.chunks(xor::SAMPLES_MAX) {
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else { continue };
        let mut chunk = Vec::new();
        put_number(&mut chunk, 1, first.0);
        put_number(&mut chunk, 2, last.0);
        // The encoding: 1 is XOR.
        put_number(&mut chunk, 3, 1);
        put_bytes(&mut chunk, 4, &xor::chunk(samples));
        put_bytes(&mut bytes, 2, &chunk);
    }
    let mut message = Vec::with_capacity(bytes.len() + 16);
    put_bytes(&mut message, 1, &bytes);
    put_number(&mut message, 2, query as i64);
    let mut frame = Vec::with_capacity(message.len() + 14);
    put_varint(&mut frame, message.len() as u64);
    frame.extend_from_slice(&crc32c::crc32c(&message).to_be_bytes());
    frame.extend_from_slice(&message);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read() {
        let bytes = [
            10, 20, 8, 100, 16, 200, 1, 26, 9, 8, 2, 18, 1, b'a', 26, 2, b'b', b'c', 34, 2, 8, 60, 18, 2, 1,
            0,
        ];
        let request = ReadRequest::decode(&bytes).unwrap();
        assert!(request.takes_chunks);
        let query = &request.queries[0];
        assert_eq!((query.start, query.end, query.step), (100, 200, 60));
        let condition = Condition { kind: ConditionKind::Regex, name: "a".into(), value: "bc".into() };
        assert_eq!(query.conditions, [condition]);
        assert_eq!(ReadRequest::decode(&bytes[..15]), Err(DecodeError::Broken));
    }

    #[test]
    fn an_answer_is_written() {
        let series = Samples { labels: vec![("a".into(), "b".into())], samples: vec![(5, 1.0)] };
        let want =
            [10, 23, 10, 21, 10, 6, 10, 1, b'a', 18, 1, b'b', 18, 11, 9, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 16, 5];
        assert_eq!(samples_answer(&[vec![series.clone()]]), want);
        let frame = chunk_frame(3, &series);
        let (length, message) = (usize::from(frame[0]), &frame[5..]);
        assert_eq!((length, &frame[1..5]), (message.len(), &crc32c::crc32c(message).to_be_bytes()[..]));
        assert_eq!(message[message.len() - 2..], [16, 3]);
    }
}
