//! One connection of a [`super::group::Group`]: frames where the daemon speaks them, else the text protocol.

use std::io::{self, BufRead, BufReader, Read, Write};

use protocol::frames::answer::{Answer, Rows};
use protocol::frames::request::{Fetch, Update, push_command, push_updates};
use protocol::frames::{AGREED, ANSWER_BYTES_MAX, Frame, HEADER_BYTES, NEGOTIATION, scan};
use protocol::rrdcached::client;
use protocol::rrdcached::words::push_escaped;
use rustix::io::Errno;

use super::socket::Socket;

/// Bytes of an answer that are read at once.
const READ_BYTES: usize = 32 * 1024;
/// The longest line that is read in answer to the question for frames.
const AGREEMENT_BYTES_MAX: u64 = 4096;
/// Bytes of a buffer that are kept for the next request.
const KEPT_BYTES: usize = 1 << 20;

/// A connection.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<Socket>,
    frames: bool,
    /// Of the last request.
    number: u32,
    out: Vec<u8>,
    body: Vec<u8>,
    /// Whether anything was answered yet: then it may have gone stale since.
    used: bool,
}

/// The updates that a daemon refused, by index, each with its text.
pub type Refusals = Vec<(u32, Vec<u8>)>;

/// What a request in frames is answered with.
pub type Answered<T> = io::Result<Result<T, Vec<u8>>>;

impl Connection {
    /// Connects, and asks for frames.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(address: &[u8]) -> io::Result<Self> {
        let mut stream = BufReader::with_capacity(READ_BYTES, Socket::connect(address)?);
        stream.get_mut().write_all(format!("{NEGOTIATION}\n").as_bytes())?;
        let mut line = Vec::new();
        stream.by_ref().take(AGREEMENT_BYTES_MAX).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Err(Errno::CONNRESET.into());
        }
        let frames = line.strip_suffix(b"\n") == Some(AGREED.as_bytes());
        Ok(Connection { stream, frames, number: 0, out: Vec::new(), body: Vec::new(), used: false })
    }

    /// Whether the daemon speaks frames.
    pub fn speaks_frames(&self) -> bool {
        self.frames
    }

    /// Whether a request that could not be sent may be sent again on a new connection: this one may have ended while
    /// nobody looked, and a daemon that has closed it has read nothing more.
    pub fn may_be_stale(&self, error: &io::Error) -> bool {
        self.used && error.kind() == io::ErrorKind::BrokenPipe
    }

    /// Sends updates and waits for what becomes of them.
    ///
    /// # Errors
    /// The connection has ended; nobody knows what became of them.
    pub fn update<'a>(
        &mut self,
        updates: impl ExactSizeIterator<Item = Update<'a>> + Clone,
    ) -> io::Result<Refusals> {
        if !self.frames {
            return self.update_by_lines(updates);
        }
        self.number = self.number.wrapping_add(1);
        push_updates(&mut self.out, self.number, updates);
        match self.exchange()? {
            Answer::Updated(refusals) => {
                Ok(refusals.iter().map(|refusal| (refusal.index, refusal.text.to_vec())).collect())
            }
            other => Err(unexpected(&other)),
        }
    }

    /// As lines of the text protocol: all of them, then all answers.
    fn update_by_lines<'a>(
        &mut self,
        updates: impl ExactSizeIterator<Item = Update<'a>>,
    ) -> io::Result<Refusals> {
        let count = updates.len() as u32;
        for update in updates {
            self.out.extend_from_slice(b"update ");
            push_escaped(&mut self.out, update.name);
            self.out.push(b' ');
            self.out.extend_from_slice(update.values);
            self.out.push(b'\n');
        }
        self.send()?;
        let mut refusals = Vec::new();
        for index in 0..count {
            let answer = client::read_answer(&mut self.stream)?;
            if answer.code < 0 {
                refusals.push((index, answer.text.into_bytes()));
            }
        }
        self.used = true;
        Ok(refusals)
    }

    /// Sends a line of the text protocol, without its line feed.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn ask(&mut self, line: &[u8]) -> io::Result<client::Answer> {
        if !self.frames {
            self.out.extend_from_slice(line);
            self.out.push(b'\n');
            self.send()?;
            let answer = client::read_answer(&mut self.stream)?;
            self.used = true;
            return Ok(answer);
        }
        self.number = self.number.wrapping_add(1);
        push_command(&mut self.out, self.number, line);
        match self.exchange()? {
            Answer::Text(mut text) => client::read_answer(&mut text),
            other => Err(unexpected(&other)),
        }
    }

    /// Asks for rows in a frame, and has `read` read them.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn fetch<T>(&mut self, fetch: &Fetch<'_>, read: impl FnOnce(&Rows<'_>) -> T) -> Answered<T> {
        self.number = self.number.wrapping_add(1);
        fetch.push(&mut self.out, self.number);
        match self.exchange()? {
            Answer::Rows(rows) => Ok(Ok(read(&rows))),
            Answer::Refused(text) => Ok(Err(text.to_vec())),
            other => Err(unexpected(&other)),
        }
    }

    fn send(&mut self) -> io::Result<()> {
        let sent = self.stream.get_mut().write_all(&self.out);
        self.out.clear();
        self.out.shrink_to(KEPT_BYTES);
        sent
    }

    /// Sends the frame that was made and reads its answer.
    fn exchange(&mut self) -> io::Result<Answer<'_>> {
        self.send()?;
        let mut header = [0; HEADER_BYTES];
        self.stream.read_exact(&mut header)?;
        let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_string());
        // A header alone is a whole frame only where there is no body.
        scan(&header, ANSWER_BYTES_MAX).map_err(|error| invalid(&error.to_string()))?;
        let [a, b, c, d, kind, _, _, _, number @ ..] = header;
        let length = u32::from_le_bytes([a, b, c, d]);
        self.body.clear();
        self.body.shrink_to(KEPT_BYTES);
        // No more memory than bytes have come.
        self.stream.by_ref().take(u64::from(length)).read_to_end(&mut self.body)?;
        if self.body.len() < length as usize {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let frame = Frame { kind, number: u32::from_le_bytes(number), body: &self.body };
        let answer = Answer::decode(frame).map_err(|error| invalid(&error.to_string()))?;
        if frame.number != self.number && !matches!(answer, Answer::Ended(_)) {
            return Err(invalid("the answer to another request"));
        }
        self.used = true;
        Ok(answer)
    }
}

/// An answer of another kind, which says why when the daemon ends the connection.
fn unexpected(answer: &Answer<'_>) -> io::Error {
    let text = match answer {
        Answer::Ended(text) | Answer::Refused(text) => String::from_utf8_lossy(text).into_owned(),
        _ => "an answer of another kind".to_string(),
    };
    io::Error::new(io::ErrorKind::InvalidData, text)
}
