//! A connection over TCP with TLS, as a task drives it.

use std::io::{self, IoSlice, Write};

use rustls::ServerConnection;
use tokio::net::TcpStream;

use crate::limits::{READ_BYTES, READ_BYTES_SHORT};
use crate::service::Buffers;
use crate::tls::records::{Records, SENDING_BYTES_MAX};

/// A socket with what encrypts its connection.
#[derive(Debug)]
pub struct EncryptedStream {
    socket: TcpStream,
    records: Records,
}

impl EncryptedStream {
    /// Takes over a connection whose handshake is done.
    pub fn new(socket: TcpStream, tls: ServerConnection) -> Self {
        EncryptedStream { socket, records: Records::new(tls) }
    }

    /// The socket, to wait for.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Bytes held that the connection does not know of.
    pub fn held(&self) -> usize {
        let sending = if self.records.wants_to_send() { SENDING_BYTES_MAX } else { 0 };
        self.records.partial_bytes() + sending
    }

    /// Whether the client has sent only a part of something.
    pub fn is_amid_record(&self) -> bool {
        self.records.partial_bytes() > 0
    }

    /// Appends what has arrived to `plain`; 0 when the client has disconnected. Fails with `WouldBlock` when there is nothing.
    pub fn try_read(&mut self, plain: &mut Vec<u8>, buffers: &Buffers) -> io::Result<usize> {
        // Who is served in small parts receives in small parts.
        let is_large = plain.capacity() >= READ_BYTES;
        let mut wire = if is_large { buffers.take() } else { Vec::with_capacity(3 * READ_BYTES_SHORT) };
        let socket = &self.socket;
        let read = self.records.read(&mut wire, plain, |wire| socket.try_read_buf(wire));
        if is_large {
            buffers.give(wire);
        }
        // New keys are answered, and what is wrong is told, as far as the client reads.
        let told = self.try_send();
        match (read, told) {
            (Ok(count), Err(error)) if error.kind() != io::ErrorKind::WouldBlock && count == 0 => Err(error),
            (read, _) => read,
        }
    }

    /// Encrypts some of `plain` and sends what the socket takes. Returns how much is encrypted; fails with `WouldBlock` while that
    /// has not been sent.
    pub fn try_write(&mut self, plain: &[u8]) -> io::Result<usize> {
        self.try_send()?;
        let count = self.records.write(plain)?;
        match self.try_send() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(count),
            sent => sent.map(|()| count),
        }
    }

    /// Sends what is encrypted.
    pub fn try_send(&mut self) -> io::Result<()> {
        self.records.send(&mut Sending(&self.socket))
    }

    /// Says that nothing more is sent, as far as the socket takes it at once.
    pub fn end(&mut self) {
        self.records.end();
        self.try_send().ok();
    }
}

/// Writes to a socket, several records in one system call.
struct Sending<'a>(&'a TcpStream);

impl Write for Sending<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
