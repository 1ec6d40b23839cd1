//! Drives a connection as a task of the async runtime.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;

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
}

/// Serves one client until it disconnects or quits, or `stop` becomes true. A client that switches to frames
/// gets its own thread if one is available.
///
/// # Errors
/// Errors of the socket.
pub async fn serve(
    stream: Stream,
    service: Arc<Service>,
    permissions: SharedPermissions,
    peer: Peer,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut connection = Connection::new(service, permissions, peer);
    let mut input = Input::Dry;
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
                if input == Input::Dry {
                    if let Err(error) = connection.rest() {
                        input = connection.read(Err(error));
                        continue;
                    }
                    let patience = connection.patience();
                    tokio::select! {
                        biased;
                        readable = stream.readable() => if let Err(error) = readable {
                            input = connection.read(Err(error));
                            continue;
                        },
                        () = stopped(&mut stop) => {
                            input = Input::End;
                            continue;
                        }
                        () = lose(patience) => {
                            input = connection.read(Err(io::ErrorKind::TimedOut.into()));
                            continue;
                        }
                    }
                }
                let result = stream.try_read(connection.room());
                input = connection.read(result);
                // The burst is over: a client that keeps sending does not keep the daemon running.
                if input == Input::Dry && *stop.borrow() {
                    input = Input::End;
                }
            }
            NextIo::Frames => {
                let result = stream.write_output(&mut connection).await;
                connection.wrote(result);
                if let Some(thread) = thread::spawn(&connection.service) {
                    return thread.serve(connection, stream, stop).await;
                }
            }
            NextIo::End => return connection.result(),
        }
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
        }
    }

    /// Reads what is available into the free part of `buffer`, which must not be full. Returns 0 when the
    /// client has disconnected; fails with `WouldBlock` when nothing is available.
    fn try_read(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.try_read_buf(buffer),
            Stream::Tcp(stream) => stream.try_read_buf(buffer),
        }
    }

    /// Writes the whole output; in one system call, and thus one segment, whenever the kernel accepts it at once.
    async fn write_output(&self, connection: &mut Connection) -> io::Result<()> {
        let mut done = 0;
        loop {
            let bytes = &connection.session.output()[done..];
            if bytes.is_empty() {
                return Ok(());
            }
            let written = match self {
                Stream::Unix(stream) => stream.try_write(bytes),
                Stream::Tcp(stream) => stream.try_write(bytes),
            };
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    connection.rest_in_answer()?;
                    tokio::time::timeout(connection.service.idle, self.writable()).await??;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn writable(&self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.writable().await,
            Stream::Tcp(stream) => stream.writable().await,
        }
    }
}
