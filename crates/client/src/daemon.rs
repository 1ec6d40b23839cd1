//! A daemon at an address: its connections, and what it can be asked.
//!
//! Requests may come from several threads. Updates that arrive while another thread sends go together in one frame
//! (`batch.rs`); every other request takes a connection for itself. Connections are kept for the next request.

mod batch;
pub mod files;
#[cfg(test)]
mod tests;

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use protocol::frames::code::ErrorCode;
use protocol::frames::request::Update;
use protocol::rrdcached::address::Address;
use protocol::rrdcached::client::Answer;
use protocol::rrdcached::limits::PIECE_BYTES;
use protocol::rrdcached::rows::read_text;
use protocol::rrdcached::whole;
use protocol::rrdcached::words::push_escaped;
use rrd::fetch::{FetchRequest, FetchRows};

use crate::connection::{Connection, Refusals};
use crate::error::ClientError;
use crate::placeholder::PlaceholderCache;
use crate::tls::TlsFiles;
use crate::token;
use batch::Batches;

type Result<T = (), E = ClientError> = std::result::Result<T, E>;

/// Idle connections that are kept; more threads at once open their own.
const IDLE_MAX: usize = 16;

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// Frames where the daemon knows them, else text: one more round trip to begin with.
    Frames,
    /// rrdcached's text.
    Text,
}

/// The daemons that a process talks to, by address, and the placeholders that lead to them.
#[derive(Debug, Default)]
pub struct Daemons {
    daemons: Mutex<Vec<Arc<Daemon>>>,
    /// Placeholders that the process has met.
    pub placeholders: PlaceholderCache,
}

impl Daemons {
    /// The daemon at an address, which is not connected to yet.
    pub fn at(&self, address: &[u8]) -> Arc<Daemon> {
        let mut daemons = self.daemons.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(daemon) = daemons.iter().find(|daemon| daemon.address == address) {
            return Arc::clone(daemon);
        }
        let daemon = Arc::new(Daemon::new(address, Wire::Frames));
        daemons.push(Arc::clone(&daemon));
        daemon
    }
}

/// How a client shows who it is, where that is not for the environment to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The file with its token, read for each connection; `None` = it has none.
    pub token_file: Option<PathBuf>,
    /// The files of TLS.
    pub tls: TlsFiles,
}

impl ClientIdentity {
    pub(crate) fn token(&self) -> io::Result<Option<String>> {
        let file = self.token_file.as_deref();
        file.map(token::from_file).transpose().map_err(io::Error::other)
    }
}

/// A daemon.
#[derive(Debug)]
pub struct Daemon {
    address: Vec<u8>,
    wire: Wire,
    batches: Batches,
    /// It knows rrdcached's commands only.
    is_rrdcached: AtomicBool,
    /// How long an answer may take; `None` = for ever.
    patience: Option<Duration>,
    /// `None` = as the environment says.
    identity: Option<ClientIdentity>,
}

impl Daemon {
    /// The daemon at an address, which is not connected to yet.
    pub fn new(address: &[u8], wire: Wire) -> Self {
        let is_rrdcached = AtomicBool::new(false);
        let batches = Batches::default();
        Daemon { address: address.to_vec(), wire, batches, is_rrdcached, patience: None, identity: None }
    }

    /// The same, for a caller that waits no longer than this for the socket to take or give anything.
    pub fn with_patience(self, patience: Duration) -> Self {
        Daemon { patience: Some(patience), ..self }
    }

    /// The same, for a client that does not ask the environment who it is.
    pub fn with_identity(self, identity: ClientIdentity) -> Self {
        Daemon { identity: Some(identity), ..self }
    }

    /// Its address, as it was given.
    pub fn address(&self) -> &[u8] {
        &self.address
    }

    /// Makes sure that there is a connection.
    ///
    /// # Errors
    /// [`ClientError::Connect`].
    pub fn connect(&self) -> Result {
        if self.batches.has_connection() {
            return Ok(());
        }
        self.batches.give_back(self.open()?);
        Ok(())
    }

    /// Closes the idle connections.
    pub fn disconnect(&self) {
        self.batches.disconnect();
    }

    /// What an RRD or directory is called there: the absolute path, links resolved, for a daemon on this host; for one on
    /// another host an absolute name without `strip_path`, the leading part that RRDCACHED_STRIPPATH says to cut off.
    ///
    /// # Errors
    /// An absolute name for a daemon on another host; a directory that does not exist.
    pub fn name(&self, word: &[u8], strip_path: Option<&[u8]>) -> Result<Vec<u8>> {
        let address = std::str::from_utf8(&self.address).ok().and_then(|text| Address::parse(text).ok());
        if !matches!(address, Some(Address::Unix(_))) {
            return remote_name(word, strip_path).ok_or(ClientError::AbsoluteName);
        }
        let path = Path::new(std::ffi::OsStr::from_bytes(word));
        match absolute(path) {
            Ok(path) => Ok(path.into_os_string().as_bytes().to_vec()),
            Err(error) => Err(ClientError::Path { name: word.to_vec(), error: Arc::new(error) }),
        }
    }

    /// Sends a command with its words.
    ///
    /// # Errors
    /// [`ClientError`]; a negative answer is [`ClientError::Refused`].
    pub fn ask(&self, command: &str, words: &[&[u8]]) -> Result<Answer> {
        check_words(words)?;
        self.ask_in_turn(std::iter::once(line(command, words)))
    }

    /// Sends a command that rrdcached does not know; `None` = this daemon does not know it either, and is not asked for
    /// such a command again.
    ///
    /// # Errors
    /// As [`Daemon::ask`].
    pub fn ask_ours(&self, command: &str, words: &[&[u8]]) -> Result<Option<Answer>> {
        if self.is_rrdcached.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match self.ask(command, words) {
            Err(error) if error.is(ErrorCode::UnknownCommand) => {
                self.is_rrdcached.store(true, Ordering::Relaxed);
                Ok(None)
            }
            answer => answer.map(Some),
        }
    }

    /// Whether it is a daemon of Roundel, which knows more than rrdcached's commands. Asks it when that is not known;
    /// a daemon that does not answer is none.
    pub fn is_ours(&self) -> bool {
        match self.ask_ours("export", &[]) {
            Ok(answer) => answer.is_some(),
            // It knows the command, and that the name is missing.
            Err(error) => matches!(error, ClientError::Refused { .. }),
        }
    }

    /// Updates an RRD by readings, each `time:value[:value...]`.
    ///
    /// # Errors
    /// As [`Daemon::ask`].
    pub fn update(&self, name: &[u8], readings: &[&[u8]]) -> Result {
        let Some((first, others)) = readings.split_first() else {
            return self.ask("update", &[name]).map(|_| ());
        };
        check_words(&[name])?;
        check_words(readings)?;
        let mut values = Vec::with_capacity(64);
        push_escaped(&mut values, first);
        for reading in others {
            values.push(b' ');
            push_escaped(&mut values, reading);
        }
        self.batches.update(name, &values, || self.open())
    }

    /// Sends many updates at once and returns those that were refused, by index. In text, more than fit the buffers of
    /// both ends would wait for each other: some hundreds are safe.
    ///
    /// # Errors
    /// When the connection ends; what became of the updates is then unknown.
    pub fn update_all(&self, updates: &[Update<'_>]) -> Result<Refusals> {
        self.exchange(|connection| connection.update(updates.iter().copied()))
    }

    /// Whether it speaks frames, over the connection that is there or can be made.
    ///
    /// # Errors
    /// [`ClientError::Connect`].
    pub fn speaks_frames(&self) -> Result<bool> {
        self.exchange(|connection| Ok(connection.speaks_frames()))
    }

    /// The rows of an RRD.
    ///
    /// # Errors
    /// As [`Daemon::ask`].
    pub fn fetch(&self, name: &[u8], request: &FetchRequest) -> Result<FetchRows> {
        // Frames take times as they are; text counts those below 1 from now.
        if request.start > 0 && request.end > 0 {
            let mut answers = self.fetch_all(&[(name, *request)])?;
            return answers.pop().unwrap_or(Err(ClientError::NotAnAnswer("fetch")));
        }
        let [start, end, step] =
            [request.start.to_string(), request.end.to_string(), request.step.to_string()];
        let (cf, start, end) = (request.cf.name().as_bytes(), start.as_bytes(), end.as_bytes());
        let ours = match request.step {
            // One second is as fine as there is.
            ..=1 => None,
            _ => self.ask_ours("FETCHRES", &[name, cf, step.as_bytes(), start, end])?,
        };
        let answer = ours.map_or_else(|| self.ask("FETCH", &[name, cf, start, end]), Ok)?;
        read_text(&answer.lines).ok_or(ClientError::NotAnAnswer("fetch"))
    }

    /// The rows of many RRDs, asked for before the first answer is read; in the order of the requests, whose times are
    /// above 0.
    ///
    /// # Errors
    /// That the connection has ended; each answer has its own errors.
    pub fn fetch_all(&self, requests: &[(&[u8], FetchRequest)]) -> Result<Vec<Result<FetchRows>>> {
        for (name, _) in requests {
            check_words(&[name])?;
        }
        loop {
            let resolutions = !self.is_rrdcached.load(Ordering::Relaxed);
            let answers = self.exchange(|connection| connection.fetch(requests, resolutions))?;
            let unknown =
                |answer: &Result<_>| answer.as_ref().is_err_and(|error| error.is(ErrorCode::UnknownCommand));
            if resolutions && answers.iter().any(unknown) {
                self.is_rrdcached.store(true, Ordering::Relaxed);
                continue;
            }
            return Ok(answers);
        }
    }

    /// The names of all RRDs of the daemon, relative to its base directory.
    ///
    /// # Errors
    /// As [`Daemon::ask`].
    pub fn list_all(&self) -> Result<Vec<Vec<u8>>> {
        self.ask("LIST", &[b"RECURSIVE", b"/"]).map(|answer| answer.lines)
    }

    /// A whole RRD as the bytes of a `.rrd` file; `None` = the daemon is not ours.
    ///
    /// # Errors
    /// As [`Daemon::ask`].
    pub fn export(&self, name: &[u8]) -> Result<Option<Vec<u8>>> {
        let Some(answer) = self.ask_ours("export", &[name])? else { return Ok(None) };
        let mut bytes = Vec::new();
        for line in &answer.lines {
            whole::push_bytes(line, &mut bytes).ok_or(ClientError::NotAnAnswer("export"))?;
        }
        Ok(Some(bytes))
    }

    /// Gives the daemon a whole RRD as the bytes of a `.rrd` file, which replaces one of the name unless `no_overwrite`.
    ///
    /// # Errors
    /// As [`Daemon::ask`].
    pub fn import(&self, name: &[u8], file: &[u8], no_overwrite: bool) -> Result {
        let condition: &[&[u8]] = if no_overwrite { &[b"-O"] } else { &[] };
        self.import_pieces(name, file, condition).map(|_| ())
    }

    /// Sends a whole RRD in pieces; the answer to the last.
    fn import_pieces(&self, name: &[u8], file: &[u8], condition: &[&[u8]]) -> Result<Answer> {
        check_words(&[name])?;
        let count = file.len().to_string();
        let lines = file.chunks(PIECE_BYTES).enumerate().map(|(index, piece)| {
            let (offset, piece) = ((index * PIECE_BYTES).to_string(), whole::word(piece));
            let mut words = vec![name];
            words.extend(condition);
            words.extend([count.as_bytes(), offset.as_bytes(), piece.as_bytes()]);
            line("import", &words)
        });
        // The daemon holds the pieces by connection.
        self.ask_in_turn(lines)
    }

    /// Sends lines of text over one connection, each after the answer to the one before, up to the first that is
    /// refused; the answer to the last.
    fn ask_in_turn(&self, lines: impl Iterator<Item = Vec<u8>> + Clone) -> Result<Answer> {
        self.exchange(|connection| {
            let mut last = Err(io::ErrorKind::InvalidInput.into());
            for line in lines.clone() {
                last = Ok(connection.ask(&line)?);
                if matches!(last, Ok(Err(_))) {
                    break;
                }
            }
            last
        })?
    }

    fn exchange<T>(&self, exchange: impl Fn(&mut Connection) -> io::Result<T>) -> Result<T> {
        self.batches.exchange(self.batches.idle(), exchange, || self.open())
    }

    fn open(&self) -> Result<Connection> {
        Connection::open(&self.address, self.wire, self.patience, self.identity.as_ref())
            .map_err(ClientError::connect)
    }
}

/// A name for a daemon on another host; `None` = it stays absolute. Compat: `strip_path` is cut off as bytes, even in the
/// middle of a directory's name, and so are all slashes that then come first.
fn remote_name(word: &[u8], strip_path: Option<&[u8]>) -> Option<Vec<u8>> {
    if !word.starts_with(b"/") {
        return Some(word.to_vec());
    }
    let name = word.strip_prefix(strip_path?)?;
    let slashes = name.iter().take_while(|&&byte| byte == b'/').count();
    Some(name[slashes..].to_vec())
}

/// Refuses words that would not stay within their line.
fn check_words(words: &[&[u8]]) -> Result {
    let breaks = words.iter().any(|word| word.iter().any(|byte| matches!(byte, b'\n' | 0)));
    if breaks { Err(ClientError::LineBreak) } else { Ok(()) }
}

/// A command with its words, without its line feed.
fn line(command: &str, words: &[&[u8]]) -> Vec<u8> {
    let mut line = command.as_bytes().to_vec();
    for word in words {
        line.push(b' ');
        push_escaped(&mut line, word);
    }
    line
}

/// A path from the root, free of links; its last name need not exist.
fn absolute(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let name = path.file_name().ok_or(error)?;
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            Ok(parent.unwrap_or(Path::new(".")).canonicalize()?.join(name))
        }
        done => done,
    }
}
