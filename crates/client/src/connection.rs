//! One connection of a [`crate::daemon::Daemon`]: frames where both ends speak them, else the text protocol.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::time::Duration;

use protocol::frames::answer::{Answer, Refusal};
use protocol::frames::code::ErrorCode;
use protocol::frames::request::{Update, push_command, push_fetch, push_updates};
use protocol::frames::{
    ANSWER_BYTES_MAX, Frame, HEADER_BYTES, OTHER_VERSIONS, VERSION, VERSION_WITH_CODES, agreement,
    negotiation, scan,
};
use protocol::rrdcached::client::{self, code_of_text};
use protocol::rrdcached::files::Entry;
use protocol::rrdcached::rows::read_text;
use protocol::rrdcached::words::push_escaped;
use rrd::fetch::{FetchRequest, FetchRows};
use rustix::io::Errno;

use crate::daemon::{ClientIdentity, Wire};
use crate::error::ClientError;
use crate::socket::Socket;
use crate::token;

/// Bytes of an answer that are read at once.
const READ_BYTES: usize = 32 * 1024;
/// The longest answer to the request for frames.
const AGREEMENT_BYTES_MAX: u64 = 4096;
/// Why a token stays here.
const EXPOSED_TOKEN: &str = "a token (ROUNDEL_TOKEN, ROUNDEL_TOKEN_FILE) is not sent unencrypted to another machine: use tls:HOST:PORT, or set \
     ROUNDEL_TOKEN_PLAIN=1 in a network that you trust";
/// Bytes of a buffer that are kept for the next request.
const KEPT_BYTES: usize = 1 << 20;

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: BufReader<Socket>,
    /// The version of frames that both ends speak; `None` = text.
    frames: Option<u32>,
    /// Of the last request.
    number: u32,
    out: Vec<u8>,
    body: Vec<u8>,
    /// Something was answered, so the connection may have gone stale since.
    used: bool,
}

/// The updates that a daemon refused, by index.
pub type Refusals = Vec<(u32, ClientError)>;

impl Connection {
    /// Connects, and asks for frames unless the wire is to be text.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(
        address: &[u8],
        wire: Wire,
        patience: Option<Duration>,
        identity: Option<&ClientIdentity>,
    ) -> io::Result<Self> {
        let token = match identity {
            Some(identity) => identity.token()?,
            None => token::from_environment().map_err(io::Error::other)?,
        };
        let socket = Socket::connect(address, patience, identity.map(|identity| &identity.tls))?;
        if token.is_some() && socket.is_exposed() && !token::is_plain_allowed() {
            return Err(io::Error::other(EXPOSED_TOKEN));
        }
        Connection::over(socket, wire, token)
    }

    /// As [`Connection::open`], over a connected socket, with a token to show.
    ///
    /// # Errors
    /// When the connection ends during the negotiation.
    pub fn over(socket: Socket, wire: Wire, token: Option<String>) -> io::Result<Self> {
        let stream = BufReader::with_capacity(READ_BYTES, socket);
        let mut connection =
            Connection { stream, frames: None, number: 0, out: Vec::new(), body: Vec::new(), used: false };
        if let Some(token) = token {
            connection.show(&token)?;
        }
        if wire == Wire::Frames {
            connection.frames = connection.negotiate()?;
        }
        Ok(connection)
    }

    /// Shows a token.
    fn show(&mut self, token: &str) -> io::Result<()> {
        let stream = &mut self.stream;
        stream.get_mut().write_all(token::line(token).as_bytes())?;
        let mut line = Vec::new();
        stream.by_ref().take(AGREEMENT_BYTES_MAX).read_until(b'\n', &mut line)?;
        token::answer(&line).map_err(|text| io::Error::new(io::ErrorKind::PermissionDenied, text))
    }

    /// Asks for the newest version of frames, and then for older ones of a daemon that knows no newer. Whatever else it
    /// says, it speaks text.
    fn negotiate(&mut self) -> io::Result<Option<u32>> {
        for version in (1..=VERSION).rev() {
            let stream = &mut self.stream;
            stream.get_mut().write_all(format!("{}\n", negotiation(version)).as_bytes())?;
            let mut line = Vec::new();
            stream.by_ref().take(AGREEMENT_BYTES_MAX).read_until(b'\n', &mut line)?;
            if line.is_empty() {
                return Err(Errno::CONNRESET.into());
            }
            if line.strip_suffix(b"\n") == Some(agreement(version).as_bytes()) {
                return Ok(Some(version));
            }
            if !line.strip_prefix(b"-1 ").is_some_and(|text| text.starts_with(OTHER_VERSIONS.as_bytes())) {
                break;
            }
        }
        Ok(None)
    }

    /// Whether both ends speak frames.
    pub fn speaks_frames(&self) -> bool {
        self.frames.is_some()
    }

    /// Whether a request that could not be sent may be sent again on a new connection: this one may have ended since its
    /// last answer, and the daemon that closed it has read nothing more.
    pub fn may_be_stale(&self, error: &io::Error) -> bool {
        self.used && error.kind() == io::ErrorKind::BrokenPipe
    }

    /// Sends updates and waits for their answers.
    ///
    /// # Errors
    /// The connection has ended; what became of the updates is unknown.
    pub fn update<'a>(
        &mut self,
        updates: impl ExactSizeIterator<Item = Update<'a>> + Clone,
    ) -> io::Result<Refusals> {
        let Some(version) = self.frames else { return self.update_by_lines(updates) };
        self.number = self.number.wrapping_add(1);
        push_updates(&mut self.out, self.number, updates);
        match self.exchange()? {
            Answer::Updated(refusals) => {
                let each =
                    |refusal: &Refusal<'_>| (refusal.index, refused(version, refusal.code, refusal.text));
                Ok(refusals.iter().map(each).collect())
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Sends them as lines of the text protocol, all at once, and reads all answers.
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
                refusals.push((index, refused_in_text(answer)));
            }
        }
        self.used = true;
        Ok(refusals)
    }

    /// Sends a line of the text protocol, without its line feed. The answer, or why there is none:
    /// [`ClientError::Refused`].
    ///
    /// # Errors
    /// The connection has ended.
    pub fn ask(&mut self, line: &[u8]) -> io::Result<Result<client::Answer, ClientError>> {
        let answer = if let Some(version) = self.frames {
            self.number = self.number.wrapping_add(1);
            push_command(&mut self.out, self.number, line);
            match self.exchange()? {
                Answer::Text(mut text) => client::read_answer(&mut text)?,
                Answer::Refused(code, text) => return Ok(Err(refused(version, code, text))),
                other => return Err(unexpected(&other)),
            }
        } else {
            self.out.extend_from_slice(line);
            self.out.push(b'\n');
            self.send()?;
            let answer = client::read_answer(&mut self.stream)?;
            self.used = true;
            answer
        };
        Ok(if answer.code < 0 { Err(refused_in_text(answer)) } else { Ok(answer) })
    }

    /// Asks for the image of an RRD: what is said of it, and its bytes unless `line` names the version that it has.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn image(&mut self, line: &[u8]) -> io::Result<Result<(Entry, Vec<u8>), ClientError>> {
        let Some(version) = self.frames else { return self.image_in_text(line) };
        self.number = self.number.wrapping_add(1);
        push_command(&mut self.out, self.number, line);
        Ok(match self.exchange()? {
            Answer::Text(text) => {
                let status = text.iter().position(|&byte| byte == b'\n').unwrap_or(text.len());
                let (status, file) = text.split_at(status);
                let (entry, bytes) =
                    image_status(status).ok_or_else(|| invalid("an answer that is no image"))?;
                let file = file.get(1..).unwrap_or_default();
                if file.len() as u64 != bytes {
                    return Err(invalid("an image of another length"));
                }
                Ok((entry, file.to_vec()))
            }
            Answer::Refused(code, text) => Err(refused(version, code, text)),
            other => return Err(unexpected(&other)),
        })
    }

    fn image_in_text(&mut self, line: &[u8]) -> io::Result<Result<(Entry, Vec<u8>), ClientError>> {
        self.out.extend_from_slice(line);
        self.out.push(b'\n');
        self.send()?;
        let mut status = Vec::new();
        self.stream.by_ref().take(AGREEMENT_BYTES_MAX).read_until(b'\n', &mut status)?;
        self.used = true;
        let Some((entry, bytes)) = image_status(status.trim_ascii_end()) else {
            let answer = client::read_answer(&mut &*status)?;
            return Ok(Err(refused_in_text(answer)));
        };
        let mut file = Vec::new();
        self.stream.by_ref().take(bytes).read_to_end(&mut file)?;
        if (file.len() as u64) < bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Ok((entry, file)))
    }

    /// Asks for the rows of many RRDs, all at once; the answers are in the order of the requests. Compat: only our
    /// daemon knows resolutions, so `resolutions` = false asks rrdcached for its finest rows.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn fetch(
        &mut self,
        requests: &[(&[u8], FetchRequest)],
        resolutions: bool,
    ) -> io::Result<Vec<Result<FetchRows, ClientError>>> {
        let Some(version) = self.frames else { return self.fetch_by_lines(requests, resolutions) };
        let first = self.number.wrapping_add(1);
        for (name, request) in requests {
            self.number = self.number.wrapping_add(1);
            push_fetch(&mut self.out, self.number, name, request);
        }
        self.send()?;
        let mut answers = Vec::with_capacity(requests.len());
        for index in 0..requests.len() {
            answers.push(match self.receive(first.wrapping_add(index as u32))? {
                Answer::Rows(rows) => Ok(rows),
                Answer::Refused(code, text) => Err(refused(version, code, text)),
                other => return Err(unexpected(&other)),
            });
        }
        Ok(answers)
    }

    fn fetch_by_lines(
        &mut self,
        requests: &[(&[u8], FetchRequest)],
        resolutions: bool,
    ) -> io::Result<Vec<Result<FetchRows, ClientError>>> {
        // One second is as fine as there is.
        let has_resolution = |request: &FetchRequest| resolutions && request.step > 1;
        for (name, request) in requests {
            let with_resolution = has_resolution(request);
            self.out.extend_from_slice(if with_resolution { b"FETCHRES " } else { b"FETCH " });
            push_escaped(&mut self.out, name);
            let cf = request.cf.name();
            let step = if with_resolution { format!(" {}", request.step) } else { String::new() };
            let range = format!(" {cf}{step} {} {}\n", request.start, request.end);
            self.out.extend_from_slice(range.as_bytes());
        }
        self.send()?;
        let mut answers = Vec::with_capacity(requests.len());
        for _ in requests {
            let answer = client::read_answer(&mut self.stream)?;
            answers.push(match answer.code {
                ..0 => Err(refused_in_text(answer)),
                _ => Ok(read_text(&answer.lines).ok_or_else(|| invalid("an answer that is no fetch"))?),
            });
        }
        self.used = true;
        Ok(answers)
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
        self.receive(self.number)
    }

    /// Reads the answer to request `number`.
    fn receive(&mut self, number: u32) -> io::Result<Answer<'_>> {
        let mut header = [0; HEADER_BYTES];
        self.stream.read_exact(&mut header)?;
        // A header alone is a whole frame only where there is no body.
        scan(&header, ANSWER_BYTES_MAX).map_err(|error| invalid(&error.to_string()))?;
        let [a, b, c, d, kind, _, _, _, answered @ ..] = header;
        let length = u32::from_le_bytes([a, b, c, d]);
        self.body.clear();
        self.body.shrink_to(KEPT_BYTES);
        // No more memory than bytes have come.
        self.stream.by_ref().take(u64::from(length)).read_to_end(&mut self.body)?;
        if self.body.len() < length as usize {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let frame = Frame { kind, number: u32::from_le_bytes(answered), body: &self.body };
        let version = self.frames.unwrap_or(VERSION);
        let answer = Answer::decode(frame, version).map_err(|error| invalid(&error.to_string()))?;
        if frame.number != number && !matches!(answer, Answer::Ended(_)) {
            return Err(invalid("the answer to another request"));
        }
        self.used = true;
        Ok(answer)
    }
}

/// What the first line of an image says, and how many bytes follow.
fn image_status(status: &[u8]) -> Option<(Entry, u64)> {
    let (count, entry) = status.split_at_checked(2)?;
    match (count, Entry::parse(entry)?) {
        (b"0 ", entry) => Some((entry, 0)),
        (b"1 ", entry @ Entry::Rrd(file, Some(_))) => Some((entry, file.bytes)),
        _ => None,
    }
}

/// What the daemon refused in frames. Compat: version 1 has no codes.
fn refused(version: u32, code: ErrorCode, text: &[u8]) -> ClientError {
    let code = if version < VERSION_WITH_CODES { code_of_text(text) } else { code };
    ClientError::Refused { code, text: text.to_vec() }
}

/// What a negative answer in text says.
fn refused_in_text(answer: client::Answer) -> ClientError {
    let text = answer.text.into_bytes();
    ClientError::Refused { code: code_of_text(&text), text }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}

/// An answer of another kind, which says why when the daemon ends the connection.
fn unexpected(answer: &Answer<'_>) -> io::Error {
    let text = match answer {
        Answer::Ended(text) | Answer::Refused(_, text) => String::from_utf8_lossy(text).into_owned(),
        _ => "an answer of another kind".to_string(),
    };
    invalid(&text)
}
