//! The client's side of a daemon: where it is, what an RRD is called there, one question at a time.
//!
//! One connection is kept between commands, as RRDtool keeps it. What RRDtool does when the daemon cannot be
//! reached is kept too: verbs that only read go on with the file and complain at the end
//! ([`Link::complaint`]). Names are made absolute, links resolved, for a daemon on this host, and must be
//! relative for one behind TCP.

pub mod connection;
pub mod group;
pub mod socket;

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::frames::request::Fetch;
use protocol::rrdcached::client::{Answer, Buffered, ask};
use protocol::rrdcached::words::push_escaped;

use crate::failure::{Done, Failure, system_text};
use crate::known::Known;
use crate::verb::fetch::Rows;
use group::{Group, Groups};
use socket::Socket;

/// A connection to a daemon, or none yet.
#[derive(Debug, Default)]
pub struct Link {
    open: Option<(Vec<u8>, Way)>,
    /// The address of a daemon that knows rrdcached's commands only.
    plain: Option<Vec<u8>>,
    /// The connections that are shared with the other threads of the process; `None` = the link has its own.
    shared: Option<&'static Groups>,
    complaint: Option<Failure>,
}

/// How a daemon is reached.
#[derive(Debug)]
enum Way {
    /// A connection of the link's own, in the text protocol.
    Own(Buffered),
    /// Connections of the whole process.
    Shared(Arc<Group>),
}

/// A daemon that can be asked.
#[derive(Debug)]
pub struct Daemon<'l> {
    link: &'l mut Link,
}

/// That a daemon cannot be reached.
pub(crate) fn unreachable(error: &io::Error) -> Failure {
    Failure::new(format!("Unable to connect to rrdcached: {}", system_text(error)))
}

/// That a daemon was reached and did not answer.
pub(crate) fn lost() -> Failure {
    Failure::new("request: socket error (-1) while talking to rrdcached")
}

/// What a daemon says instead of doing what it was asked.
pub(crate) fn refused(address: &[u8], text: &[u8]) -> Failure {
    Failure::new([b"rrdcached@", address, b": ", text].concat())
}

impl Link {
    /// A link by connections that the whole process shares.
    pub fn sharing(groups: &'static Groups) -> Self {
        Link { shared: Some(groups), ..Link::default() }
    }

    /// Whether its connections are shared.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// The placeholders that the process has met, where links are shared.
    pub(crate) fn known(&self) -> Option<&'static Known> {
        self.shared.map(|groups| &groups.known)
    }

    /// The daemon at an address, connected to.
    ///
    /// # Errors
    /// `Unable to connect to rrdcached: ...`.
    pub fn connect(&mut self, address: &[u8]) -> Done<Daemon<'_>> {
        if self.open.as_ref().is_none_or(|(open, _)| open != address) {
            self.open = None;
            let way = match self.shared {
                Some(groups) => Way::Shared(groups.of(address)),
                None => {
                    let socket = Socket::connect(address).map_err(|error| unreachable(&error))?;
                    Way::Own(Buffered::new(socket, READ_BYTES))
                }
            };
            self.open = Some((address.to_vec(), way));
        }
        if let Some((_, Way::Shared(group))) = &self.open {
            group.connect().map_err(|error| unreachable(&error))?;
        }
        Ok(Daemon { link: self })
    }

    /// Whether there is an address and its daemon can be asked. One that cannot be reached is complained
    /// about when the command is done.
    pub fn reach(&mut self, address: Option<&[u8]>) -> bool {
        let Some(address) = address else { return false };
        let reached = self.connect(address).map(|_| ());
        self.complaint = reached.err();
        self.complaint.is_none()
    }

    /// The daemon that was reached last.
    pub fn current(&mut self) -> Daemon<'_> {
        Daemon { link: self }
    }

    /// What a command that has done its work still has to complain about.
    ///
    /// # Errors
    /// That complaint.
    pub fn complaint(&mut self) -> Done {
        self.complaint.take().map_or(Ok(()), Err)
    }
}

impl Daemon<'_> {
    /// What an RRD or directory is called there.
    ///
    /// # Errors
    /// An absolute name for a daemon that is not on this host; a directory that does not exist.
    pub fn name(&self, word: &[u8]) -> Done<Vec<u8>> {
        if !self.link.open.as_ref().is_some_and(|(address, _)| is_local(address)) {
            return if word.starts_with(b"/") {
                Err(Failure::new("absolute path names not allowed when talking to a remote daemon"))
            } else {
                Ok(word.to_vec())
            };
        }
        let path = Path::new(std::ffi::OsStr::from_bytes(word));
        absolute(path)
            .map(|path| path.into_os_string().as_bytes().to_vec())
            .map_err(|error| Failure::of_name("realpath(", word, &format!("): {}", system_text(&error))))
    }

    /// Sends a command with its words.
    ///
    /// # Errors
    /// What the daemon answers, as RRDtool shows it, or that it answers nothing.
    pub fn ask(&mut self, command: &str, words: &[&[u8]]) -> Done<Answer> {
        let answer = self.exchange(command, words)?;
        if answer.code < 0 { Err(self.refusal(&answer)) } else { Ok(answer) }
    }

    /// The answer to a command that rrdcached does not know, whatever it is; `None` from a daemon that does not know it
    /// either, which is not asked for such a thing again.
    ///
    /// # Errors
    /// That the daemon answers nothing.
    pub(crate) fn exchange_ours(&mut self, command: &str, words: &[&[u8]]) -> Done<Option<Answer>> {
        let address = self.link.open.as_ref().map(|(address, _)| address.clone());
        if self.link.plain.is_some() && self.link.plain == address {
            return Ok(None);
        }
        let answer = self.exchange(command, words)?;
        let unknown = answer.code < 0 && answer.text.starts_with("Unknown command: ");
        if unknown {
            self.link.plain = address;
        }
        Ok((!unknown).then_some(answer))
    }

    /// What the daemon refuses, as RRDtool shows it.
    pub(crate) fn refusal(&self, answer: &Answer) -> Failure {
        let address = self.link.open.as_ref().map_or(&b""[..], |(address, _)| address);
        refused(address, answer.text.as_bytes())
    }

    /// The answer to a command, whatever it is.
    ///
    /// # Errors
    /// That the daemon answers nothing.
    pub(crate) fn exchange(&mut self, command: &str, words: &[&[u8]]) -> Done<Answer> {
        self.exchange_in_turn(std::iter::once(line(command, words)))
    }

    /// Sends [`line`]s over one connection, each when the one before was answered, up to the first that is refused; the
    /// answer to the last.
    ///
    /// # Errors
    /// That the daemon answers nothing.
    pub(crate) fn exchange_in_turn(&mut self, lines: impl Iterator<Item = Vec<u8>> + Clone) -> Done<Answer> {
        let Some((_, way)) = self.link.open.as_mut() else {
            return Err(Failure::new("Not connected to rrdcached"));
        };
        match way {
            Way::Shared(group) => group.ask(lines),
            Way::Own(stream) => match in_turn(lines, |line| ask(stream, line)) {
                Ok(answer) => Ok(answer),
                Err(_) => {
                    self.link.open = None;
                    Err(lost())
                }
            },
        }
    }

    /// Updates the RRD of this name there by readings.
    ///
    /// # Errors
    /// As [`Daemon::ask`].
    pub fn update(&mut self, name: &[u8], readings: &[&[u8]]) -> Done {
        if let Some((_, Way::Shared(group))) = &self.link.open
            && !readings.is_empty()
        {
            let mut values = Vec::with_capacity(64);
            for (index, reading) in readings.iter().enumerate() {
                if index > 0 {
                    values.push(b' ');
                }
                push_escaped(&mut values, reading);
            }
            return group.update(name, &values);
        }
        let words: Vec<&[u8]> = std::iter::once(name).chain(readings.iter().copied()).collect();
        self.ask("update", &words).map(|_| ())
    }

    /// Rows as numbers; `None` where they can only be had as text.
    ///
    /// # Errors
    /// As [`Daemon::ask`].
    pub fn fetch(&mut self, fetch: &Fetch<'_>) -> Done<Option<Rows>> {
        match &self.link.open {
            Some((_, Way::Shared(group))) => group.fetch(fetch),
            _ => Ok(None),
        }
    }
}

/// A command with its words, without its line feed.
pub(crate) fn line(command: &str, words: &[&[u8]]) -> Vec<u8> {
    let mut line = command.as_bytes().to_vec();
    for word in words {
        line.push(b' ');
        push_escaped(&mut line, word);
    }
    line
}

/// Asks line after line, up to the first that is refused; the last answer.
fn in_turn(
    lines: impl Iterator<Item = Vec<u8>>,
    mut ask: impl FnMut(&[u8]) -> io::Result<Answer>,
) -> io::Result<Answer> {
    let mut last = Err(io::ErrorKind::InvalidInput.into());
    for line in lines {
        let answer = ask(&line)?;
        if answer.code < 0 {
            return Ok(answer);
        }
        last = Ok(answer);
    }
    last
}

/// Compat: only these two beginnings make an address one of this host's file system.
fn is_local(address: &[u8]) -> bool {
    address.starts_with(b"unix:") || address.starts_with(b"/")
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

/// Bytes of an answer that are read at once.
const READ_BYTES: usize = 8 * 1024;
