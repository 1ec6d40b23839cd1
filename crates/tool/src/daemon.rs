//! The client's side of a daemon: where it is, what an RRD is called there, one question at a time.
//!
//! One connection is kept between commands, as RRDtool keeps it. What RRDtool does when the daemon cannot be
//! reached is kept too: verbs that only read go on with the file and complain at the end
//! ([`Link::complaint`]). Names are made absolute, links resolved, for a daemon on this host, and must be
//! relative for one behind TCP.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use protocol::rrdcached::address::Address;
use protocol::rrdcached::client::{Answer, Buffered, ask};
use protocol::rrdcached::words::push_escaped;

use crate::failure::{Done, Failure, system_text};

/// A connection to a daemon, or none yet.
#[derive(Debug, Default)]
pub struct Link {
    open: Option<(Vec<u8>, Buffered)>,
    complaint: Option<Failure>,
}

/// A daemon that can be asked.
#[derive(Debug)]
pub struct Daemon<'l> {
    link: &'l mut Link,
}

impl Link {
    /// The daemon at an address, connected to.
    ///
    /// # Errors
    /// `Unable to connect to rrdcached: ...`.
    pub fn connect(&mut self, address: &[u8]) -> Done<Daemon<'_>> {
        if self.open.as_ref().is_none_or(|(open, _)| open != address) {
            self.open = None;
            let stream = open(address).map_err(|error| {
                Failure::new(format!("Unable to connect to rrdcached: {}", system_text(&error)))
            })?;
            self.open = Some((address.to_vec(), stream));
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
        let Some((address, stream)) = self.link.open.as_mut() else {
            return Err(Failure::new("Not connected to rrdcached"));
        };
        let mut line = command.as_bytes().to_vec();
        for word in words {
            line.push(b' ');
            push_escaped(&mut line, word);
        }
        let answer = match ask(stream, &line) {
            Ok(answer) => answer,
            Err(error) => {
                let text = [b"rrdcached@", &**address, b": ", system_text(&error).as_bytes()].concat();
                self.link.open = None;
                return Err(Failure::new(text));
            }
        };
        if answer.code < 0 {
            return Err(Failure::new([b"rrdcached@", &**address, b": ", answer.text.as_bytes()].concat()));
        }
        Ok(answer)
    }
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

fn open(address: &[u8]) -> io::Result<Buffered> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let text = std::str::from_utf8(address).map_err(|_| invalid())?;
    match Address::parse(text).map_err(|_| invalid())? {
        Address::Unix(path) => Ok(Buffered::new(UnixStream::connect(path)?, READ_BYTES)),
        Address::Tcp { host, port } => {
            let host = if host.is_empty() { "localhost" } else { &host };
            let addresses = (host, port).to_socket_addrs().map_err(|error| unresolved(host, port, &error))?;
            let stream = TcpStream::connect(&*addresses.collect::<Vec<_>>())?;
            stream.set_nodelay(true)?;
            Ok(Buffered::new(stream, READ_BYTES))
        }
    }
}

/// RRDtool's text for a host that is not known.
fn unresolved(host: &str, port: u16, error: &io::Error) -> io::Error {
    let text = error.to_string();
    let why = text.rsplit(": ").next().unwrap_or_default();
    // Numbers of getaddrinfo's errors, which the standard library gives as texts only.
    let number = match why {
        "Temporary failure in name resolution" => -3,
        "Non-recoverable failure in name resolution" => -4,
        _ => -2,
    };
    io::Error::other(format!("failed to resolve address '{host}' (port {port}): {why} ({number})"))
}
