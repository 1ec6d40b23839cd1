//! A daemon's rows: FETCHBIN, many questions before the first answer, and LIST for wildcards.
//!
//! Works with rrdcached and with ours alike. Ours is told a resolution where one is asked for, and answers as a file
//! would; rrdcached cannot be, and answers with the finest rows that reach back far enough.

use std::io::{self, BufRead, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use graph::plan::{Fetched, Request};
use protocol::rrdcached::address::Address;
use protocol::rrdcached::client::{Buffered, ask, read_answer};
use protocol::rrdcached::fetched::Rows;
use protocol::rrdcached::words::push_escaped;

use crate::error::QueryError;

/// Values one answer may hold: what our own plan allows.
const VALUES_MAX: u64 = rrd::plan::FETCH_VALUES_MAX;
/// Lines of an answer to FETCHBIN: five of heading and one a data source.
const LINES_MAX: i64 = 1 << 20;

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Buffered,
    /// It knows rrdcached's commands only.
    plain: bool,
}

impl Connection {
    /// Connects.
    pub(crate) fn open(address: &str) -> Result<Connection, QueryError> {
        let failed = |why: String| QueryError::Daemon { address: address.to_string(), why };
        let parsed = Address::parse(address).map_err(|error| failed(error.to_string()))?;
        let stream = open(&parsed).map_err(|error| failed(error.to_string()))?;
        Ok(Connection { stream, plain: false })
    }

    /// Every RRD below its base directory.
    pub(crate) fn list(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let answer = ask(&mut self.stream, b"LIST RECURSIVE /")?;
        answer.accepted().map(|answer| answer.lines).map_err(io::Error::other)
    }

    /// Asks for all of these at once. An error is that of the connection; each answer has its own.
    pub(crate) fn fetch(&mut self, requests: &[Request]) -> io::Result<Vec<Result<Fetched, String>>> {
        let mut lines = Vec::new();
        for request in requests {
            let (cf, start, end) = (request.cf.name(), request.start, request.end);
            let (command, step) = match self.is_told(request) {
                true => ("FETCHRES ", format!("{} ", request.step)),
                false => ("FETCHBIN ", String::new()),
            };
            lines.extend_from_slice(command.as_bytes());
            push_escaped(&mut lines, &request.file);
            lines.extend_from_slice(format!(" {cf} {step}{start} {end}\n").as_bytes());
        }
        self.stream.write_all(&lines)?;
        let mut answers = Vec::with_capacity(requests.len());
        for request in requests {
            answers.push(match self.is_told(request) {
                true => read_text_rows(&mut self.stream)?,
                false => read_rows(&mut self.stream)?,
            });
        }
        let unknown = |answer: &Result<Fetched, String>| {
            answer.as_ref().is_err_and(|text| text.starts_with("Unknown command: FETCHRES"))
        };
        if answers.iter().any(unknown) {
            self.plain = true;
            return self.fetch(requests);
        }
        Ok(answers)
    }

    /// Whether the daemon is told the resolution. One second is as fine as there is.
    fn is_told(&self, request: &Request) -> bool {
        !self.plain && request.step > 1
    }
}

/// Reads the answer to one FETCHRES: a heading, then `time: value value...` in a line.
fn read_text_rows(stream: &mut impl BufRead) -> io::Result<Result<Fetched, String>> {
    let answer = read_answer(stream)?;
    if answer.code < 0 {
        return Ok(Err(answer.text));
    }
    let read = Rows::read(&answer.lines).filter(|rows| rows.units_per_second == 1 && rows.step > 0);
    let rows = read.map(|rows| Fetched {
        start: rows.start,
        step: rows.step,
        names: rows.names.into_iter().map(String::into_bytes).collect(),
        values: rows.values,
    });
    Ok(rows.ok_or_else(|| "the daemon answers what are no rows of whole seconds".to_string()))
}

/// Reads the answer to one FETCHBIN.
fn read_rows(stream: &mut impl BufRead) -> io::Result<Result<Fetched, String>> {
    let status = line(stream)?;
    let (code, text) = status.split_once(' ').unwrap_or((&status, ""));
    let lines: i64 = code.parse().map_err(|_| invalid(&status))?;
    if lines < 0 {
        return Ok(Err(text.to_string()));
    }
    if lines > LINES_MAX {
        return Err(invalid(&status));
    }
    let mut field = |name: &str| -> io::Result<i64> {
        let line = line(stream)?;
        let value = line.strip_prefix(name).and_then(|rest| rest.strip_prefix(": "));
        // A time with decimals is one of an RRD of less than a second.
        value.and_then(|value| value.trim().parse().ok()).ok_or_else(|| invalid(&line))
    };
    field("FlushVersion")?;
    let (start, _, step, count) = (field("Start")?, field("End")?, field("Step")?, field("DSCount")?);
    let (mut names, mut columns) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let head = line(stream)?;
        let (name, size, little) = column_head(&head).ok_or_else(|| invalid(&head))?;
        names.push(name.as_bytes().to_vec());
        columns.push(column(stream, size, little)?);
    }
    let rows = columns.first().map_or(0, Vec::len);
    if columns.iter().any(|column| column.len() != rows) {
        return Err(invalid("columns of different length"));
    }
    let mut values = Vec::with_capacity(rows * columns.len());
    for row in 0..rows {
        values.extend(columns.iter().map(|column| column[row]));
    }
    Ok(Ok(Fetched { start, step: u64::try_from(step).unwrap_or(1).max(1), names, values }))
}

/// `DSName-NAME: BinaryData COUNT 8 LITTLE`
fn column_head(line: &str) -> Option<(&str, u64, bool)> {
    let (name, rest) = line.strip_prefix("DSName-")?.rsplit_once(": BinaryData ")?;
    let mut words = rest.split(' ');
    let count = words.next()?.parse().ok()?;
    let eight = words.next()? == "8";
    let little = words.next()? == "LITTLE";
    (eight && count <= VALUES_MAX).then_some((name, count, little))
}

fn column(stream: &mut impl BufRead, count: u64, little: bool) -> io::Result<Vec<f64>> {
    let mut bytes = vec![0; count as usize * 8];
    stream.read_exact(&mut bytes)?;
    let mut end = [0];
    stream.read_exact(&mut end)?;
    let value = |bytes: &[u8]| {
        let bytes: [u8; 8] = bytes.try_into().unwrap_or_default();
        if little { f64::from_le_bytes(bytes) } else { f64::from_be_bytes(bytes) }
    };
    Ok(bytes.chunks_exact(8).map(value).collect())
}

fn line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    if stream.take(1 << 16).read_until(b'\n', &mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(String::from_utf8_lossy(&line).trim_end_matches('\n').to_string())
}

fn invalid(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("this is no answer to FETCHBIN: {line:?}"))
}

/// Bytes that are read at once: the rows of some answers.
const READ_BYTES: usize = 1 << 17;

fn open(address: &Address) -> io::Result<Buffered> {
    match address {
        Address::Unix(path) => Ok(Buffered::new(UnixStream::connect(path)?, READ_BYTES)),
        Address::Tcp { host, port } => {
            let host = if host.is_empty() { "localhost" } else { host };
            let stream = TcpStream::connect((host, *port))?;
            stream.set_nodelay(true)?;
            Ok(Buffered::new(stream, READ_BYTES))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_and_bad_ones_refused() {
        let head = "7 Success\nFlushVersion: 1\nStart: 1000\nEnd: 1020\nStep: 10\nDSCount: 2\n";
        let mut bytes = head.as_bytes().to_vec();
        for (name, values) in [("a", [1.0f64, 2.0]), ("b", [3.0, f64::NAN])] {
            bytes.extend_from_slice(format!("DSName-{name}: BinaryData 2 8 LITTLE\n").as_bytes());
            values.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
            bytes.push(b'\n');
        }
        let fetched = read_rows(&mut bytes.as_slice()).expect("an answer").expect("rows");
        assert_eq!((fetched.start, fetched.step, fetched.rows()), (1000, 10, 2));
        assert_eq!(fetched.column(0), [1.0, 2.0]);
        assert_eq!(fetched.names, [b"a", b"b"]);
        let error = read_rows(&mut &b"-1 No such file: x\n"[..]).expect("an answer");
        assert_eq!(error, Err("No such file: x".to_string()));
        for bad in [
            "",
            "hello\n",
            "7 x\nStart: 1\n",
            &bytes_text(head, "DSName-a: BinaryData 99999999999 8 LITTLE\n"),
        ] {
            assert!(read_rows(&mut bad.as_bytes()).is_err(), "{bad:?}");
        }
    }

    fn bytes_text(head: &str, line: &str) -> String {
        format!("{head}{line}")
    }
}
