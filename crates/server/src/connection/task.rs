//! Drives a connection as a task of the async runtime.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;

use super::encrypted::EncryptedStream;
use super::session::Input;
use super::{Connection, NextIo, SharedPermissions, thread};
use crate::peer::Peer;
use crate::service::{Service, stopped};

/// A connected socket.
#[derive(Debug)]
pub enum Stream {
    /// `unix:`
    Unix(UnixStream),
    /// IPv4 or IPv6
    Tcp(TcpStream),
    /// The same with TLS.
    Tls(Box<EncryptedStream>),
}

/// What a client is told that begins TLS where there is none.
const NO_TLS: &[u8] = b"-1 This port does not speak TLS.\n";

/// Serves one client until it disconnects or quits, or `stop` becomes true. A client that switches to frames
/// gets its own thread if one is available.
///
/// # Errors
/// Errors of the socket.
pub async fn serve(
    mut stream: Stream,
    service: Arc<Service>,
    permissions: SharedPermissions,
    peer: Peer,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut connection = Connection::new(service, permissions, peer);
    let mut input = Input::Dry;
    let mut is_new = matches!(stream, Stream::Tcp(_));
    loop {
        match connection.next(input) {
            NextIo::Wait => {
                let replies = connection.inbox.wait().await;
                connection.replied(replies);
            }
            NextIo::Turn => {
                let turn = connection.service.calls.turn().await;
                connection.got_turn(turn);
            }
            NextIo::Write => {
                let result = stream.write_output(&mut connection).await;
                connection.wrote(result);
            }
            NextIo::Read => {
                connection.beneath = stream.held();
                if input == Input::Dry
                    && let Some(ended) = wait(&stream, &mut connection, &mut stop).await
                {
                    input = ended;
                    continue;
                }
                let result = stream.try_read(&mut connection);
                input = connection.read(result);
                if input == Input::More && std::mem::take(&mut is_new) && connection.begins_tls() {
                    stream.try_write(NO_TLS)?;
                    return Ok(());
                }
                // The burst is over: a client that keeps sending does not keep the daemon running.
                if input == Input::Dry && *stop.borrow() {
                    input = Input::End;
                }
            }
            NextIo::Frames => {
                let result = stream.write_output(&mut connection).await;
                connection.wrote(result);
                // A thread knows no TLS, which costs more than the waking that it saves.
                let is_plain = !matches!(stream, Stream::Tls(_));
                if is_plain && let Some(thread) = thread::spawn(&connection.service) {
                    return thread.serve(connection, stream, stop).await;
                }
            }
            NextIo::End => {
                stream.end();
                return connection.result();
            }
        }
    }
}

/// Waits until the client sends something; else the connection's end.
async fn wait(
    stream: &Stream,
    connection: &mut Connection,
    stop: &mut watch::Receiver<bool>,
) -> Option<Input> {
    if let Err(error) = connection.rest() {
        return Some(connection.read(Err(error)));
    }
    let patience = connection.patience();
    tokio::select! {
        biased;
        readable = stream.readable() => readable.err().map(|error| connection.read(Err(error))),
        () = stopped(stop) => Some(Input::End),
        () = lose(patience) => Some(connection.read(Err(io::ErrorKind::TimedOut.into()))),
    }
}

/// Returns when patience is lost; never without a limit.
async fn lose(patience: Option<Duration>) {
    match patience {
        Some(patience) => tokio::time::sleep(patience).await,
        None => std::future::pending().await,
    }
}

impl Stream {
    async fn readable(&self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.readable().await,
            Stream::Tcp(stream) => stream.readable().await,
            Stream::Tls(stream) => stream.socket().readable().await,
        }
    }

    /// Reads what is available into the connection's room. Returns 0 when the client has disconnected; fails with `WouldBlock` when
    /// nothing is available.
    fn try_read(&mut self, connection: &mut Connection) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.try_read_buf(connection.room()),
            Stream::Tcp(stream) => stream.try_read_buf(connection.room()),
            Stream::Tls(stream) => {
                let buffers = Arc::clone(&connection.service.buffers);
                stream.try_read(connection.room(), &buffers)
            }
        }
    }

    /// Writes the whole output; in one system call, and thus one segment, whenever the kernel accepts it at once.
    async fn write_output(&mut self, connection: &mut Connection) -> io::Result<()> {
        let mut done = 0;
        loop {
            let bytes = &connection.session.output()[done..];
            let written = match bytes {
                [] => self.try_send().map(|()| 0),
                bytes => self.try_write(bytes),
            };
            match written {
                Ok(0) if bytes.is_empty() => return Ok(()),
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    connection.beneath = self.held();
                    connection.rest_in_answer()?;
                    tokio::time::timeout(connection.service.idle, self.writable()).await??;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.try_write(bytes),
            Stream::Tcp(stream) => stream.try_write(bytes),
            Stream::Tls(stream) => stream.try_write(bytes),
        }
    }

    /// Sends what is encrypted already.
    fn try_send(&mut self) -> io::Result<()> {
        match self {
            Stream::Tls(stream) => stream.try_send(),
            Stream::Unix(_) | Stream::Tcp(_) => Ok(()),
        }
    }

    /// Says that nothing more comes, where the protocol has that.
    fn end(&mut self) {
        if let Stream::Tls(stream) = self {
            stream.end();
        }
    }

    /// Bytes that it holds, and whether they are a part of something that the client sends.
    fn held(&self) -> (usize, bool) {
        match self {
            Stream::Tls(stream) => (stream.held(), stream.is_amid_record()),
            Stream::Unix(_) | Stream::Tcp(_) => (0, false),
        }
    }

    async fn writable(&self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.writable().await,
            Stream::Tcp(stream) => stream.writable().await,
            Stream::Tls(stream) => stream.socket().writable().await,
        }
    }
}
