//! A connection between two nodes as two halves, one for each thread: TCP, or TLS over it.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::Connection;

use crate::lock::lock;

/// How long a read waits before its thread looks around.
pub(crate) const READ_WAIT: Duration = Duration::from_millis(200);
/// How long a write may take; a node that takes nothing for so long is lost.
const WRITE_WAIT: Duration = Duration::from_secs(10);
/// Read from the socket at once: a record of TLS, and its header.
const CIPHERTEXT_BYTES: usize = 17 << 10;

/// Both halves, before each goes to its thread.
pub(crate) struct Stream {
    pub(crate) read: ReadHalf,
    pub(crate) write: WriteHalf,
    /// Ends both.
    pub(crate) closer: TcpStream,
    /// What only the two ends of this TLS session know; empty without TLS. Bound into the handshake, so that nothing can stand between them.
    pub(crate) binding: Vec<u8>,
}

/// The half that is read from.
pub(crate) struct ReadHalf {
    socket: TcpStream,
    session: Option<Arc<Session>>,
    /// What has come and the session has not taken yet.
    ciphertext: Vec<u8>,
}

/// The half that is written to.
pub(crate) struct WriteHalf {
    socket: TcpStream,
    session: Option<Arc<Session>>,
}

/// A TLS session that both halves use.
struct Session {
    connection: Mutex<Connection>,
    /// Held while ciphertext goes to the socket, so that records leave in their order.
    sending: Mutex<()>,
}

impl Session {
    /// Sends what the session has to send, after `plain`.
    fn send(&self, mut plain: &[u8], socket: &mut TcpStream) -> io::Result<()> {
        let _order = lock(&self.sending);
        loop {
            let mut out = Vec::new();
            {
                let mut connection = lock(&self.connection);
                if !plain.is_empty() {
                    let taken = connection.writer().write(plain)?;
                    plain = &plain[taken..];
                }
                while connection.wants_write() {
                    connection.write_tls(&mut out)?;
                }
            }
            socket.write_all(&out)?;
            if plain.is_empty() {
                return Ok(());
            }
        }
    }

    /// Gives the session as much ciphertext as it takes before its plaintext is read; says how much, and whether it has something to
    /// send because of that.
    fn take(&self, ciphertext: &[u8]) -> io::Result<(usize, bool)> {
        let mut connection = lock(&self.connection);
        let taken = connection.read_tls(&mut &*ciphertext)?;
        match connection.process_new_packets() {
            Ok(_) => Ok((taken, connection.wants_write())),
            Err(error) => Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        }
    }
}

impl ReadHalf {
    /// Passes on to the session what has come, and waits for more only when nothing has.
    fn advance(&mut self, session: &Session) -> io::Result<()> {
        if self.ciphertext.is_empty() {
            self.ciphertext.resize(CIPHERTEXT_BYTES, 0);
            let read = self.socket.read(&mut self.ciphertext);
            self.ciphertext.truncate(*read.as_ref().unwrap_or(&0));
            if read? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let taken = session.take(&self.ciphertext);
        if let Err(error) = taken {
            // The alert that says why.
            let _ = session.send(&[], &mut self.socket);
            return Err(error);
        }
        let (count, must_send) = taken?;
        self.ciphertext.drain(..count);
        if must_send { session.send(&[], &mut self.socket) } else { Ok(()) }
    }
}

impl Read for ReadHalf {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(session) = self.session.clone() else { return self.socket.read(buffer) };
        loop {
            match lock(&session.connection).reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
            self.advance(&session)?;
        }
    }
}

impl Write for WriteHalf {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &self.session {
            None => self.socket.write(bytes),
            Some(session) => session.send(bytes, &mut self.socket).map(|()| bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream {
    /// Prepares a connection. With TLS, its handshake is not made yet: [`Stream::complete`].
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn new(socket: TcpStream, tls: Option<Connection>) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(READ_WAIT))?;
        socket.set_write_timeout(Some(WRITE_WAIT))?;
        let session = tls.map(|connection| {
            Arc::new(Session { connection: Mutex::new(connection), sending: Mutex::new(()) })
        });
        Ok(Stream {
            read: ReadHalf { socket: socket.try_clone()?, session: session.clone(), ciphertext: Vec::new() },
            write: WriteHalf { socket: socket.try_clone()?, session },
            closer: socket,
            binding: Vec::new(),
        })
    }

    /// Makes the handshake of TLS, if there is any.
    ///
    /// # Errors
    /// The system's; when a certificate is refused; when `goes_on` says that it takes too long.
    pub(crate) fn complete(&mut self, goes_on: &dyn Fn() -> io::Result<()>) -> io::Result<()> {
        let Some(session) = self.read.session.clone() else { return Ok(()) };
        session.send(&[], &mut self.write.socket)?;
        while lock(&session.connection).is_handshaking() {
            goes_on()?;
            match self.read.advance(&session) {
                Err(error) if !crate::frames::is_timeout(&error) => return Err(error),
                _ => {}
            }
        }
        self.binding = lock(&session.connection)
            .export_keying_material([0; 32], b"EXPORTER-roundel-cluster", None)
            .map_err(io::Error::other)?
            .to_vec();
        Ok(())
    }
}
