//! TLS of a port for programs: rrdcached's protocol and our frames, agents, Ganglia's XML.
//!
//! A client that begins TLS and never ends it costs its own handshake only: there is a deadline, and beyond a number of
//! handshakes at once the oldest makes room for the newest, so that a client that is quick gets in.

use std::io;
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::client_certificates::client_names;
use super::records::{HEAD_BYTES, record_bytes};
use super::{ServerTls, TlsOptions};
use crate::arrivals::Arrivals;
use crate::limits::{TLS_HANDSHAKE_WAIT, TLS_HANDSHAKES_MAX};

/// The first byte of a connection with TLS, and of all its handshakes (RFC 8446, 5.1).
pub const TLS_HANDSHAKE: u8 = 22;
/// What is spoken above TLS (ALPN). A client need not say it; one that offers other protocols only is a browser that was led
/// astray, whose requests are not to be taken for commands.
const PROTOCOL: &str = "rrdcached";
/// What a client is told that does not begin TLS.
const TLS_ONLY: &[u8] = b"-1 This port speaks TLS only.\n";

/// What a port needs to talk TLS, and the handshakes that are going on there.
#[derive(Debug)]
pub struct TlsPort {
    tls: ServerTls,
    /// Certificates of clients are worth something.
    verifies: bool,
    handshakes: Arrivals,
}

/// A client whose handshake is done, with the names in its certificate, if it was verified.
pub type Encrypted<S> = (S, Option<Arc<[String]>>);

impl TlsPort {
    /// TLS by `options`.
    ///
    /// # Errors
    /// A text for the operator: which option or file cannot be used, and why.
    pub fn open(options: &TlsOptions) -> Result<Arc<Self>, String> {
        let tls = ServerTls::new(options.clone(), &[PROTOCOL])?;
        let handshakes = Arrivals::new(TLS_HANDSHAKES_MAX);
        Ok(Arc::new(TlsPort { tls, verifies: options.verifies_clients(), handshakes }))
    }

    /// Does the handshake with a client that has connected.
    ///
    /// # Errors
    /// Why there is none: the client's fault, or too many others want one, too.
    pub async fn encrypt(&self, mut socket: TcpStream) -> io::Result<Encrypted<TlsStream<TcpStream>>> {
        let handshake = async {
            check_beginning(&mut socket).await?;
            TlsAcceptor::from(self.tls.config()).accept(socket).await
        };
        let stream = self.admit(handshake).await?;
        let names = self.names(stream.get_ref().1);
        Ok((stream, names))
    }

    /// The same for one who reads and writes records itself: nothing has been read beyond the handshake.
    ///
    /// # Errors
    /// As [`TlsPort::encrypt`].
    pub async fn handshake(&self, socket: &mut TcpStream) -> io::Result<Encrypted<ServerConnection>> {
        let tls = self.admit(handshake(self.tls.config(), socket)).await?;
        let names = self.names(&tls);
        Ok((tls, names))
    }

    /// Awaits a handshake, within the limits.
    async fn admit<T>(&self, handshake: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let place = self.handshakes.begin();
        tokio::select! {
            biased;
            done = timeout(TLS_HANDSHAKE_WAIT, handshake) => done?,
            () = place.ended() => {
                Err(io::Error::other("it made room for newer clients before its handshake was done"))
            }
        }
    }

    fn names(&self, tls: &ServerConnection) -> Option<Arc<[String]>> {
        client_names(tls, self.verifies)
    }

    /// Ends the oldest handshake, whose place another client needs.
    pub fn make_room(&self) {
        self.handshakes.make_room();
    }
}

/// Tells a client that does not begin TLS.
async fn check_beginning(socket: &mut TcpStream) -> io::Result<()> {
    let mut first = [0];
    if socket.peek(&mut first).await? == 1 && first[0] != TLS_HANDSHAKE {
        socket.write_all(TLS_ONLY).await?;
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it does not speak TLS"));
    }
    Ok(())
}

/// Does a handshake record by record.
async fn handshake(config: Arc<ServerConfig>, socket: &mut TcpStream) -> io::Result<ServerConnection> {
    check_beginning(socket).await?;
    let mut tls = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut record = Vec::new();
    while tls.is_handshaking() {
        read_record(socket, &mut record).await?;
        let (mut rest, mut result) = (&*record, Ok(()));
        while !rest.is_empty() && result.is_ok() {
            tls.read_tls(&mut rest)?;
            result = tls.process_new_packets().map(drop);
        }
        // What is wrong is told, too.
        let mut answer = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut answer)?;
        }
        socket.write_all(&answer).await?;
        result.map_err(io::Error::other)?;
    }
    Ok(tls)
}

async fn read_record(socket: &mut TcpStream, record: &mut Vec<u8>) -> io::Result<()> {
    record.clear();
    record.resize(HEAD_BYTES, 0);
    socket.read_exact(record).await?;
    record.resize(record_bytes(record)?.unwrap_or(HEAD_BYTES), 0);
    socket.read_exact(&mut record[HEAD_BYTES..]).await.map(drop)
}
