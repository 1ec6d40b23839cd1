//! Drives a connection as a task of the async runtime.

use std::io;
use std::sync::Arc;

use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;

use super::session::Input;
use super::{Connection, NextIo, SharedPermissions, thread};
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
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut connection = Connection::new(service, permissions);
    let mut input = Input::Dry;
    loop {
        match connection.next(input) {
            NextIo::Wait => {
                let replies = connection.inbox.wait().await;
                connection.replied(replies);
            }
            NextIo::Write => {
                let result = stream.write_all(connection.session.output()).await;
                connection.wrote(result);
            }
            NextIo::Read => {
                if input == Input::Dry {
                    connection.rest();
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
                let result = stream.write_all(connection.session.output()).await;
                connection.wrote(result);
                if let Some(thread) = thread::spawn(&connection.service) {
                    return thread.serve(connection, stream, stop).await;
                }
            }
            NextIo::End => return connection.result(),
        }
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

    /// Writes everything; in one system call, and thus one segment, whenever the kernel accepts it at once.
    async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = match self {
                Stream::Unix(stream) => stream.try_write(bytes),
                Stream::Tcp(stream) => stream.try_write(bytes),
            };
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => match self {
                    Stream::Unix(stream) => stream.writable().await?,
                    Stream::Tcp(stream) => stream.writable().await?,
                },
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
