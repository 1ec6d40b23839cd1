//! TLS over a socket that blocks.

use std::io::{self, BufReader, Read, Write};
use std::time::Duration;

use rustls::{ClientConnection, Error};

use super::WireSocket;
use crate::tls::{TlsFiles, explain, server_name};

/// The longest wait for each part of the handshake: a port without TLS may wait for the rest of a line.
pub(super) const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);
/// Bytes that are received at once: the library alone would take four kilobytes.
const RECEIVE_BYTES: usize = 32 * 1024;

/// A socket with what encrypts its connection.
#[derive(Debug)]
pub(super) struct EncryptedSocket {
    tls: ClientConnection,
    wire: BufReader<WireSocket>,
    host: String,
}

impl EncryptedSocket {
    /// Does the handshake with a host to which `wire` is connected.
    ///
    /// # Errors
    /// Which file, certificate or version cannot be used, and what to do.
    pub fn begin(wire: WireSocket, host: &str, files: Option<&TlsFiles>) -> io::Result<Self> {
        let config = match files {
            Some(files) => files.config(),
            None => TlsFiles::from_environment().and_then(|files| files.config()),
        };
        let config = config.map_err(io::Error::other)?;
        let tls = ClientConnection::new(config, server_name(host)?).map_err(io::Error::other)?;
        let wire = BufReader::with_capacity(RECEIVE_BYTES, wire);
        let mut socket = EncryptedSocket { tls, wire, host: host.to_string() };
        match socket.handshake() {
            Ok(()) => Ok(socket),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                let text = format!("{host} did not answer in TLS: does it speak TLS at this port?");
                Err(io::Error::new(io::ErrorKind::TimedOut, text))
            }
            Err(error) => Err(explain(error, host)),
        }
    }

    /// The socket beneath.
    pub fn wire(&self) -> &WireSocket {
        self.wire.get_ref()
    }

    fn handshake(&mut self) -> io::Result<()> {
        while self.tls.is_handshaking() {
            self.send()?;
            if self.tls.is_handshaking() && self.receive()? == 0 {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the connection ended instead of beginning TLS",
                ));
            }
        }
        self.send()
    }

    fn send(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            self.tls.write_tls(self.wire.get_mut())?;
        }
        Ok(())
    }

    /// Decrypts more; 0 at the end.
    fn receive(&mut self) -> io::Result<usize> {
        let count = self.tls.read_tls(&mut self.wire)?;
        if let Err(error) = self.tls.process_new_packets() {
            // The daemon is told, as far as it listens.
            self.send().ok();
            return Err(invalid(error));
        }
        Ok(count)
    }

    /// What the daemon said before it closed the connection, rather than that it is closed.
    fn last_words(&mut self, error: io::Error) -> io::Error {
        loop {
            match self.receive() {
                Ok(1..) => {}
                Err(said) if said.get_ref().is_some_and(|said| said.is::<Error>()) => {
                    return explain(said, &self.host);
                }
                _ => return error,
            }
        }
    }
}

impl Read for EncryptedSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.tls.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // An end without its announcement is one, too: answers say themselves where they end.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                done => return done,
            }
            self.receive().map_err(|error| explain(error, &self.host))?;
            self.send()?;
        }
    }
}

impl Write for EncryptedSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.tls.writer().write(bytes)?;
        match self.send() {
            Ok(()) => Ok(count),
            Err(error) => Err(self.last_words(error)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn invalid(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
