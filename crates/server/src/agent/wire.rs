//! An agent's connection to its store: with TLS where the address says so, and a token before all else.

use std::io;
use std::path::PathBuf;

use client::tls::{TlsFiles, explain, server_name};
use client::token;
use protocol::rrdcached::address::Address;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The longest answer to a token.
const ANSWER_BYTES_MAX: usize = 4_096;

/// How an agent shows who it is, and whom it trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentIdentity {
    /// For a store with TLS.
    pub files: TlsFiles,
    /// The file of a token that it shows.
    pub token: Option<PathBuf>,
}

/// The half of a connection that is read.
pub type ReadHalf = Box<dyn AsyncRead + Send + Unpin>;
/// The half that is written.
pub type WriteHalf = Box<dyn AsyncWrite + Send + Unpin>;

/// Connects to a store. Files are read each time: they may have been renewed.
///
/// # Errors
/// Those of the socket, of files and certificates, and the store's refusal of the token.
pub async fn connect(store: &str, identity: &AgentIdentity) -> io::Result<(ReadHalf, WriteHalf)> {
    let unusable = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let (host, port, is_encrypted) = match Address::parse(store).map_err(unusable)? {
        Address::Tls { host, port } => (host, port, true),
        Address::Tcp { host, port } => (host, port, false),
        Address::Unix(_) => return Err(io::ErrorKind::InvalidInput.into()),
    };
    let stream = TcpStream::connect((&*host, port)).await?;
    stream.set_nodelay(true)?;
    let is_exposed = !is_encrypted && !stream.peer_addr()?.ip().is_loopback();
    let (mut read, mut write): (ReadHalf, WriteHalf) = if is_encrypted {
        let config = identity.files.config().map_err(io::Error::other)?;
        let connecting = TlsConnector::from(config).connect(server_name(&host)?, stream);
        let (read, write) = tokio::io::split(connecting.await.map_err(|error| explain(error, &host))?);
        (Box::new(read), Box::new(write))
    } else {
        let (read, write) = stream.into_split();
        (Box::new(read), Box::new(write))
    };
    if let Some(path) = &identity.token {
        let token = token::from_file(path).map_err(io::Error::other)?;
        if is_exposed && !token::is_plain_allowed() {
            return Err(io::Error::other(
                "the token is not sent unencrypted to another machine: give store = \"tls:HOST:PORT\"",
            ));
        }
        send(&mut write, token::line(&token).as_bytes()).await?;
        token::answer(&line(&mut read).await?).map_err(io::Error::other)?;
    }
    Ok((read, write))
}

/// Writes bytes, and sends them.
///
/// # Errors
/// Those of the connection.
pub async fn send(write: &mut WriteHalf, bytes: &[u8]) -> io::Result<()> {
    write.write_all(bytes).await?;
    // What is encrypted may not have been taken by the socket.
    write.flush().await
}

/// One line, read byte by byte: what follows is another reader's.
async fn line(read: &mut ReadHalf) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    while line.len() < ANSWER_BYTES_MAX && !line.ends_with(b"\n") {
        match read.read_u8().await {
            Ok(byte) => line.push(byte),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        }
    }
    Ok(line)
}
