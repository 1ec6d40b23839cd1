//! A connected socket, UNIX or TCP.

use std::io;

use tokio::net::{TcpStream, UnixStream};

/// A connected socket. Reading is without waiting, so that no buffer is held while there is nothing.
#[derive(Debug)]
pub enum Stream {
    /// `unix:`
    Unix(UnixStream),
    /// IPv4 or IPv6
    Tcp(TcpStream),
}

impl Stream {
    /// Waits until there is something to read, or the other end is gone.
    pub async fn readable(&self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.readable().await,
            Stream::Tcp(stream) => stream.readable().await,
        }
    }

    /// Reads what is there into the free part of `buffer`, which must not be full; 0 = the other end is
    /// gone, an error of kind `WouldBlock` = nothing there.
    pub fn try_read(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.try_read_buf(buffer),
            Stream::Tcp(stream) => stream.try_read_buf(buffer),
        }
    }

    /// Writes everything: in one system call, and so in one segment, whenever the kernel takes it at once.
    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
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
