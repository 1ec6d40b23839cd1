//! A connected socket, UNIX or TCP.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use protocol::frames::lookout::Lookout;
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use tokio::net::{TcpStream, UnixStream};

/// A connected socket. Reading is without waiting, so that no buffer is held while there is nothing.
#[derive(Debug)]
pub enum Stream {
    /// `unix:`
    Unix(UnixStream),
    /// IPv4 or IPv6
    Tcp(TcpStream),
    /// Either, on a thread of its own, which sleeps where the others wait.
    Alone(Arc<OwnedFd>, Lookout),
}

impl Stream {
    /// For a thread of its own, with the socket itself.
    ///
    /// # Errors
    /// What the system says.
    pub fn alone(self) -> io::Result<(Stream, Arc<OwnedFd>)> {
        let file: Arc<OwnedFd> = match self {
            Stream::Unix(stream) => Arc::new(stream.into_std()?.into()),
            Stream::Tcp(stream) => Arc::new(stream.into_std()?.into()),
            Stream::Alone(file, _) => file,
        };
        Ok((Stream::Alone(Arc::clone(&file), Lookout::default()), file))
    }

    /// Waits until there is something to read, or the other end is gone.
    pub async fn readable(&self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.readable().await,
            Stream::Tcp(stream) => stream.readable().await,
            Stream::Alone(file, _) => sleep(file, PollFlags::IN),
        }
    }

    /// Reads what is there into the free part of `buffer`, which must not be full; 0 = the other end is
    /// gone, an error of kind `WouldBlock` = nothing there.
    pub fn try_read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.try_read_buf(buffer),
            Stream::Tcp(stream) => stream.try_read_buf(buffer),
            Stream::Alone(file, lookout) => {
                let found =
                    lookout.look(|| match recv(&*file, spare_capacity(buffer), RecvFlags::DONTWAIT) {
                        Err(Errno::AGAIN) => None,
                        done => Some(done),
                    });
                Ok(found.unwrap_or(Err(Errno::AGAIN))?.0)
            }
        }
    }

    /// Writes everything: in one system call, and so in one segment, whenever the kernel takes it at once.
    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = match self {
                Stream::Unix(stream) => stream.try_write(bytes),
                Stream::Tcp(stream) => stream.try_write(bytes),
                Stream::Alone(file, _) => {
                    send(file, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).map_err(io::Error::from)
                }
            };
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => match self {
                    Stream::Unix(stream) => stream.writable().await?,
                    Stream::Tcp(stream) => stream.writable().await?,
                    Stream::Alone(file, _) => sleep(file, PollFlags::OUT)?,
                },
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Sleeps until a socket is ready, or at its end.
fn sleep(file: &OwnedFd, ready: PollFlags) -> io::Result<()> {
    match poll(&mut [PollFd::new(file, ready)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
