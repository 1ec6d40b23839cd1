//! A connected socket that never raises SIGPIPE, which would end the program that the library is loaded into; with TLS where the
//! address says so.

mod encrypted;

use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use protocol::rrdcached::address::Address;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};

use crate::adaptive_spin::AdaptiveSpin;
use crate::tls::TlsFiles;
use encrypted::EncryptedSocket;

/// A connected socket, UNIX or TCP.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: SocketStream,
    /// What is sent over it, others may read.
    is_exposed: bool,
}

#[derive(Debug)]
enum SocketStream {
    Plain(WireSocket),
    Tls(Box<EncryptedSocket>),
}

/// A socket as the system has it.
#[derive(Debug)]
struct WireSocket {
    file: OwnedFd,
    spin: AdaptiveSpin,
}

impl Socket {
    pub(crate) fn new(file: OwnedFd) -> Self {
        Socket { stream: SocketStream::Plain(WireSocket::new(file)), is_exposed: false }
    }

    /// Connects to a daemon, whose answers may take as long as `patience` says; `None` = for ever. Without `files`, the
    /// environment names those of TLS.
    ///
    /// # Errors
    /// What the system says; for an unknown host RRDtool's text; what is wrong with certificates.
    pub fn connect(address: &[u8], patience: Option<Duration>, files: Option<&TlsFiles>) -> io::Result<Self> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let text = std::str::from_utf8(address).map_err(|_| invalid())?;
        let socket = match Address::parse(text).map_err(|_| invalid())? {
            Address::Unix(path) => Socket::new(UnixStream::connect(path)?.into()),
            Address::Tcp { host, port } => {
                let (stream, peer) = connect_to(&host, port, patience)?;
                Socket { is_exposed: !peer.ip().is_loopback(), ..Socket::new(stream.into()) }
            }
            Address::Tls { host, port } => {
                let wire = WireSocket::new(connect_to(&host, port, patience)?.0.into());
                wire.set_patience(Some(patience.unwrap_or(encrypted::HANDSHAKE_WAIT)))?;
                let socket = EncryptedSocket::begin(wire, &host, files)?;
                socket.wire().set_patience(patience)?;
                return Ok(Socket { stream: SocketStream::Tls(Box::new(socket)), is_exposed: false });
            }
        };
        if let (SocketStream::Plain(wire), Some(_)) = (&socket.stream, patience) {
            wire.set_patience(patience)?;
        }
        Ok(socket)
    }

    /// Whether others than this machine may read what is sent.
    pub fn is_exposed(&self) -> bool {
        self.is_exposed
    }
}

impl WireSocket {
    fn new(file: OwnedFd) -> Self {
        WireSocket { file, spin: AdaptiveSpin::default() }
    }

    fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        set_socket_timeout(&self.file, Timeout::Recv, patience)?;
        set_socket_timeout(&self.file, Timeout::Send, patience)?;
        Ok(())
    }
}

/// Connects to a host, `localhost` if its name is empty, by the first of its addresses that answers; each of them may take as long
/// as `patience` says; `None` = as the system does.
///
/// # Errors
/// What the system says; for an unknown host RRDtool's text.
pub fn connect_to(host: &str, port: u16, patience: Option<Duration>) -> io::Result<(TcpStream, SocketAddr)> {
    let host = if host.is_empty() { "localhost" } else { host };
    let addresses = (host, port).to_socket_addrs().map_err(|error| unresolved(host, port, &error))?;
    let addresses: Vec<_> = addresses.collect();
    let stream = match patience {
        None => TcpStream::connect(&*addresses)?,
        Some(patience) => {
            let mut failed = io::ErrorKind::AddrNotAvailable.into();
            let connect = |address| TcpStream::connect_timeout(address, patience);
            let connected =
                addresses.iter().find_map(|address| connect(address).map_err(|error| failed = error).ok());
            connected.ok_or(failed)?
        }
    };
    stream.set_nodelay(true)?;
    let peer = stream.peer_addr()?;
    Ok((stream, peer))
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.stream {
            SocketStream::Plain(wire) => wire.read(buffer),
            SocketStream::Tls(socket) => socket.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.stream {
            SocketStream::Plain(wire) => wire.write(bytes),
            SocketStream::Tls(socket) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for WireSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let WireSocket { file, spin } = self;
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

impl Write for WireSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(&self.file, bytes, SendFlags::NOSIGNAL)?)
    }

    /// Several records in one system call.
    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(sendmsg(&self.file, parts, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)?)
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
