//! A connected socket that never raises SIGPIPE: the process may be any program, and the signal would end it.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use protocol::rrdcached::address::Address;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// How long whoever waits for an answer looks for it before he sleeps, where there is a second processor: to be woken
/// costs about as much again as a short request takes, and more on a processor that has gone to sleep.
const LOOK: Duration = Duration::from_micros(20);
/// Answers that are slept for at once after one that did not come while it was looked for: on a busy machine to look
/// for it only takes the processor from whoever makes it.
const SLEPT_AFTER_MISS: u32 = 32;

/// A connected socket, UNIX or TCP.
#[derive(Debug)]
pub struct Socket {
    file: OwnedFd,
    /// Reads that are not looked for.
    sleeps: u32,
}

impl Socket {
    fn new(file: OwnedFd) -> Self {
        let several = std::thread::available_parallelism().is_ok_and(|count| count.get() > 1);
        Socket { file, sleeps: if several { 0 } else { u32::MAX } }
    }

    /// Whether the next answer is worth looking for: not when other threads want the processor.
    pub fn expect_soon(&mut self, soon: bool) {
        if !soon {
            self.sleeps = self.sleeps.max(1);
        }
    }

    /// Looks for bytes without sleeping; `None` when there are none for as long as that is worth.
    fn look(&mut self, buffer: &mut [u8]) -> Option<rustix::io::Result<usize>> {
        if self.sleeps > 0 {
            self.sleeps -= u32::from(self.sleeps < u32::MAX);
            return None;
        }
        let start = Instant::now();
        loop {
            match recv(&self.file, &mut *buffer, RecvFlags::DONTWAIT) {
                Err(Errno::AGAIN) if start.elapsed() > LOOK => break,
                // Whoever makes the answer may be waiting for this very processor.
                Err(Errno::AGAIN) => std::thread::yield_now(),
                done => return Some(done.map(|(count, _)| count)),
            }
        }
        self.sleeps = SLEPT_AFTER_MISS;
        None
    }

    /// Connects to a daemon.
    ///
    /// # Errors
    /// What the system says; for a host that is not known RRDtool's text.
    pub fn connect(address: &[u8]) -> io::Result<Self> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let text = std::str::from_utf8(address).map_err(|_| invalid())?;
        match Address::parse(text).map_err(|_| invalid())? {
            Address::Unix(path) => Ok(Socket::new(UnixStream::connect(path)?.into())),
            Address::Tcp { host, port } => {
                let host = if host.is_empty() { "localhost" } else { &host };
                let addresses =
                    (host, port).to_socket_addrs().map_err(|error| unresolved(host, port, &error))?;
                let stream = TcpStream::connect(&*addresses.collect::<Vec<_>>())?;
                stream.set_nodelay(true)?;
                Ok(Socket::new(stream.into()))
            }
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let found = self.look(buffer);
        let count = found.unwrap_or_else(|| Ok(recv(&self.file, buffer, RecvFlags::empty())?.0));
        Ok(count?)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(&self.file, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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
