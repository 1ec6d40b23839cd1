//! TLS of a port for programs: rrdcached's protocol and our frames, agents, Ganglia's XML.
//!
//! A client that begins TLS and never ends it costs its own handshake only: there is a deadline, and beyond a number of
//! handshakes at once the oldest makes room for the newest, so that a client that is quick gets in.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::client_certificates::client_names;
use super::{ServerTls, TlsOptions};
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
    handshakes: Mutex<VecDeque<Arc<Notify>>>,
}

/// A connection whose handshake is done.
#[derive(Debug)]
pub struct Encrypted {
    /// The connection.
    pub stream: TlsStream<TcpStream>,
    /// The names in the client's certificate, if it was verified.
    pub names: Option<Arc<[String]>>,
}

/// One handshake, until it is dropped.
struct Handshake<'a> {
    port: &'a TlsPort,
    /// It is to make room.
    ended: Arc<Notify>,
}

impl TlsPort {
    /// TLS by `options`.
    ///
    /// # Errors
    /// A text for the operator: which option or file cannot be used, and why.
    pub fn open(options: &TlsOptions) -> Result<Arc<Self>, String> {
        let tls = ServerTls::new(options.clone(), &[PROTOCOL])?;
        Ok(Arc::new(TlsPort { tls, verifies: options.verifies_clients(), handshakes: Mutex::default() }))
    }

    /// Does the handshake with a client that has connected.
    ///
    /// # Errors
    /// Why there is none: the client's fault, or too many others want one, too.
    pub async fn encrypt(&self, stream: TcpStream) -> io::Result<Encrypted> {
        let handshake = self.begin();
        tokio::select! {
            biased;
            done = timeout(TLS_HANDSHAKE_WAIT, self.handshake(stream)) => done?,
            () = handshake.ended.notified() => {
                Err(io::Error::other("it made room for newer clients before its handshake was done"))
            }
        }
    }

    async fn handshake(&self, mut stream: TcpStream) -> io::Result<Encrypted> {
        let mut first = [0];
        if stream.peek(&mut first).await? == 1 && first[0] != TLS_HANDSHAKE {
            stream.write_all(TLS_ONLY).await?;
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it does not speak TLS"));
        }
        let stream = TlsAcceptor::from(self.tls.config()).accept(stream).await?;
        let names = client_names(stream.get_ref().1, self.verifies);
        Ok(Encrypted { stream, names })
    }

    fn begin(&self) -> Handshake<'_> {
        let ended = Arc::new(Notify::new());
        let mut handshakes = self.handshakes();
        handshakes.push_back(Arc::clone(&ended));
        if handshakes.len() > TLS_HANDSHAKES_MAX
            && let Some(oldest) = handshakes.pop_front()
        {
            oldest.notify_one();
        }
        Handshake { port: self, ended }
    }

    /// Ends the oldest handshake, whose place another client needs.
    pub fn make_room(&self) {
        if let Some(oldest) = self.handshakes().pop_front() {
            oldest.notify_one();
        }
    }

    fn handshakes(&self) -> MutexGuard<'_, VecDeque<Arc<Notify>>> {
        self.handshakes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Handshake<'_> {
    fn drop(&mut self) {
        self.port.handshakes().retain(|other| !Arc::ptr_eq(other, &self.ended));
    }
}
