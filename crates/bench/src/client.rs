//! A plain client of rrdcached's protocol, for either daemon.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::Outcome;
use crate::secure::Certificate;

/// Longest wait for one answer; a slower daemon hangs.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);
/// Most lines of one answer.
const ANSWER_LINES_MAX: i64 = 10_000_000;

/// One connection.
pub struct Client {
    reader: BufReader<Box<dyn Read + Send>>,
    writer: Box<dyn Write + Send>,
    line: Vec<u8>,
}

fn connect_tcp(address: &str) -> Outcome<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    Ok(stream)
}

/// An answer: status line and the lines after it.
#[derive(Debug, Default)]
pub struct Answer {
    /// The number it starts with; negative for an error.
    pub status: i64,
    /// The text after the number.
    pub message: String,
    /// The lines it announced.
    pub lines: Vec<String>,
}

impl Client {
    /// Connects to `unix:PATH`, `/PATH` or `HOST:PORT`.
    pub fn connect(address: &str) -> Outcome<Self> {
        let path = address.strip_prefix("unix:").or_else(|| address.starts_with('/').then_some(address));
        let (reader, writer): (Box<dyn Read + Send>, Box<dyn Write + Send>) = if let Some(path) = path {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
            stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
            (Box::new(stream.try_clone()?), Box::new(stream))
        } else {
            let stream = connect_tcp(address)?;
            (Box::new(stream.try_clone()?), Box::new(stream))
        };
        Ok(Client::over(reader, writer))
    }

    /// Connects to HOST:PORT with TLS, and shows a token.
    pub fn connect_secure(address: &str, certificate: &Certificate, token: &str) -> Outcome<Self> {
        let stream = certificate.over(connect_tcp(address)?)?;
        let mut client = Client::over(Box::new(stream.clone()), Box::new(stream));
        client.ask(&format!("AUTH {token}"))?;
        Ok(client)
    }

    fn over(reader: Box<dyn Read + Send>, writer: Box<dyn Write + Send>) -> Self {
        Client { reader: BufReader::with_capacity(1 << 16, reader), writer, line: Vec::new() }
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> Outcome<()> {
        Ok(self.writer.write_all(bytes)?)
    }

    /// Reads one answer.
    pub fn answer(&mut self) -> Outcome<Answer> {
        let first = self.read_line()?;
        let (number, message) = first.split_once(' ').unwrap_or((&first, ""));
        let status: i64 = number.parse().map_err(|_| format!("not an answer: {first:?}"))?;
        if status > ANSWER_LINES_MAX {
            return Err(format!("an answer of {status} lines is more than the limit").into());
        }
        let message = message.to_string();
        let lines = (0..status.max(0)).map(|_| self.read_line()).collect::<Outcome<_>>()?;
        Ok(Answer { status, message, lines })
    }

    /// Sends one command line and reads its answer; a negative status is an error.
    pub fn ask(&mut self, command: &str) -> Outcome<Answer> {
        self.writer.write_all(format!("{command}\n").as_bytes())?;
        let answer = self.answer()?;
        if answer.status < 0 {
            return Err(format!("{command:?}: {} {}", answer.status, answer.message).into());
        }
        Ok(answer)
    }

    /// Sends one command line and reads its complete answer without parsing it. Returns its number of lines.
    pub fn ask_and_count(&mut self, command: &str) -> Outcome<usize> {
        self.writer.write_all(format!("{command}\n").as_bytes())?;
        let first = self.read_line()?;
        let status: i64 = first.split(' ').next().unwrap_or_default().parse()?;
        let lines = usize::try_from(status).map_err(|_| format!("{command:?}: {first}"))?;
        let mut missing = lines;
        while missing > 0 {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Err("the daemon closed the connection".into());
            }
            let ends = buffer.iter().filter(|byte| **byte == b'\n').count();
            // An answer ends where the buffer does: no other command follows.
            let length = buffer.len();
            missing = missing.checked_sub(ends).ok_or("the answer had more lines than it said")?;
            self.reader.consume(length);
        }
        Ok(lines)
    }

    /// A counter of STATS by name.
    pub fn stat(&mut self, name: &str) -> Outcome<u64> {
        let answer = self.ask("STATS")?;
        for line in &answer.lines {
            if let Some(value) = line.strip_prefix(name).and_then(|rest| rest.strip_prefix(':')) {
                return Ok(value.trim().parse()?);
            }
        }
        Err(format!("STATS has no {name}").into())
    }

    fn read_line(&mut self) -> Outcome<String> {
        self.line.clear();
        if self.reader.read_until(b'\n', &mut self.line)? == 0 {
            return Err("the daemon closed the connection".into());
        }
        Ok(String::from_utf8_lossy(&self.line).trim_end_matches('\n').to_string())
    }
}
