//! A connected socket that never raises SIGPIPE, which would end the program that the library is loaded into.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use protocol::rrdcached::address::Address;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::adaptive_spin::AdaptiveSpin;

/// A connected socket, UNIX or TCP.
#[derive(Debug)]
pub(crate) struct Socket {
    file: OwnedFd,
    spin: AdaptiveSpin,
}

impl Socket {
    pub(crate) fn new(file: OwnedFd) -> Self {
        Socket { file, spin: AdaptiveSpin::default() }
    }

    /// Connects to a daemon, whose answers may take as long as `patience` says; `None` = for ever.
    ///
    /// # Errors
    /// What the system says; for an unknown host RRDtool's text.
    pub fn connect(address: &[u8], patience: Option<Duration>) -> io::Result<Self> {
        let socket = Self::connect_to(address)?;
        if patience.is_some() {
            set_socket_timeout(&socket.file, Timeout::Recv, patience)?;
            set_socket_timeout(&socket.file, Timeout::Send, patience)?;
        }
        Ok(socket)
    }

    fn connect_to(address: &[u8]) -> io::Result<Self> {
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
        let Socket { file, spin } = self;
        let found = spin.spin(|| match recv(&*file, &mut *buffer, RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN) => None,
            done => Some(done),
        });
        if let Some(found) = found {
            return Ok(found?.0);
        }
        let (count, _) = recv(&*file, buffer, RecvFlags::empty())?;
        spin.woken();
        Ok(count)
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

/// RRDtool's text for an unknown host.
fn unresolved(host: &str, port: u16, error: &io::Error) -> io::Error {
    let text = error.to_string();
    let why = text.rsplit(": ").next().unwrap_or_default();
    // The numbers of getaddrinfo's errors; the standard library has only their texts.
    let number = match why {
        "Temporary failure in name resolution" => -3,
        "Non-recoverable failure in name resolution" => -4,
        _ => -2,
    };
    io::Error::other(format!("failed to resolve address '{host}' (port {port}): {why} ({number})"))
}
