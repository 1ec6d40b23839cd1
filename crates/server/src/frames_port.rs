//! Ports on which frames are all that is spoken: agents' and followers'. Accepts clients, begins TLS where it is spoken, and bounds how
//! many there are.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::access::Principal;
use crate::arrivals::Arrivals;
use crate::limits::{ACCEPT_PAUSE, FRAMES_ARRIVALS_MAX, TLS_STREAM_BYTES};
use crate::peer::Peer;
use crate::service::{Service, stopped};
use crate::tls::TlsOptions;
use crate::tls::port::TlsPort;

/// Bound sockets, before privileges are dropped.
#[derive(Debug)]
pub struct FramesPort {
    listeners: Vec<TcpListener>,
    /// Clients that do not say who they are.
    pub anonymous: Arc<Principal>,
    tls: Option<Arc<TlsPort>>,
}

/// How many clients there may be at once.
#[derive(Debug)]
pub struct FramesPlaces {
    sessions: Semaphore,
    /// Those that have not said yet who they are: they take no place of a session.
    arrivals: Arrivals,
}

impl FramesPlaces {
    /// So many sessions.
    pub fn new(sessions: usize) -> Self {
        FramesPlaces { sessions: Semaphore::new(sessions), arrivals: Arrivals::new(FRAMES_ARRIVALS_MAX) }
    }

    /// Awaits a greeting for so long at most; then the client, one of the `clients`, has a place until it drops it. `None` when it is not let in,
    /// or there is none.
    ///
    /// # Errors
    /// Those of the greeting.
    pub async fn greet<T>(
        &self,
        clients: &str,
        wait: Duration,
        greeting: impl Future<Output = io::Result<Option<T>>>,
    ) -> io::Result<Option<(SemaphorePermit<'_>, T)>> {
        let arrival = self.arrivals.begin();
        let greeted = tokio::select! {
            biased;
            greeted = timeout(wait, greeting) => greeted.unwrap_or(Ok(None))?,
            () = arrival.ended() => None,
        };
        let Some(greeted) = greeted else { return Ok(None) };
        let place = self.sessions.try_acquire();
        if place.is_err() {
            // The client tries again.
            tracing::warn!("there are too many sessions of {clients}");
        }
        Ok(place.ok().map(|place| (place, greeted)))
    }
}

/// What serves the clients of such a port.
pub trait FramesServer: Send + Sync + 'static {
    /// What its clients are called, in the log.
    const CLIENTS: &str;
    /// The state of all connections.
    fn service(&self) -> &Arc<Service>;
    /// Serves one client. A client that was accepted later has a higher `number`.
    fn session(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send,
        peer: Peer,
        number: u64,
        stop: watch::Receiver<bool>,
    ) -> impl Future<Output = io::Result<()>> + Send;
}

impl FramesPort {
    /// Binds addresses, each HOST:PORT, for `clients`; `section` is that of the configuration. With `open`, clients need not say who they are.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn bind(
        (section, clients): (&str, &str),
        listen: &[String],
        open: bool,
        tls: Option<&TlsOptions>,
    ) -> Result<Self, String> {
        let bind = |address: &String| {
            let cannot = |error| format!("cannot listen on \"{address}\" for {clients}: {error}");
            let listener = TcpListener::bind(address.as_str()).map_err(cannot)?;
            listener.set_nonblocking(true).map_err(cannot)?;
            Ok(listener)
        };
        let listeners = listen.iter().map(bind).collect::<Result<_, String>>()?;
        let anonymous = if open { Principal::everyone() } else { Principal::without_rights() };
        let tls = tls.map(TlsPort::open).transpose();
        let tls = tls.map_err(|error| format!("[{section}] tls: {error}"))?;
        Ok(FramesPort { listeners, anonymous, tls })
    }

    /// Accepts clients until `stop` becomes true, as tasks of `listening`.
    ///
    /// # Errors
    /// When a socket cannot be used.
    pub fn listen<S: FramesServer>(
        self,
        server: &Arc<S>,
        stop: &watch::Receiver<bool>,
    ) -> io::Result<JoinSet<()>> {
        let mut listening = JoinSet::new();
        let numbers = Arc::new(AtomicU64::new(1));
        for listener in self.listeners {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let numbers = Arc::clone(&numbers);
            listening.spawn(accept(listener, numbers, Arc::clone(server), self.tls.clone(), stop.clone()));
        }
        Ok(listening)
    }
}

/// Accepts sessions until the daemon stops, and waits for them to end. Each gets the next of the `numbers`.
async fn accept<S: FramesServer>(
    listener: tokio::net::TcpListener,
    numbers: Arc<AtomicU64>,
    server: Arc<S>,
    tls: Option<Arc<TlsPort>>,
    mut stop: watch::Receiver<bool>,
) {
    let mut sessions = JoinSet::new();
    loop {
        while sessions.try_join_next().is_some() {}
        let accepted = tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, from)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let accepted = Accepted { stream, from, number: numbers.fetch_add(1, Ordering::Relaxed) };
        let (server, tls, stop) = (Arc::clone(&server), tls.clone(), stop.clone());
        sessions.spawn(async move { admit(&*server, tls.as_deref(), accepted, stop).await });
    }
    while sessions.join_next().await.is_some() {}
}

/// A connection that was accepted.
struct Accepted {
    stream: TcpStream,
    from: SocketAddr,
    /// Higher than the numbers of connections that were accepted before.
    number: u64,
}

/// Begins TLS where it is spoken, then serves the client.
async fn admit<S: FramesServer>(
    server: &S,
    tls: Option<&TlsPort>,
    accepted: Accepted,
    mut stop: watch::Receiver<bool>,
) {
    let Accepted { stream, from, number } = accepted;
    // What is written is complete, so waiting for more gains nothing.
    stream.set_nodelay(true).ok();
    let Some(tls) = tls else { return serve(server, stream, (from, None), number, stop).await };
    let _fixed = server.service().memory.fix(TLS_STREAM_BYTES);
    let encrypted = tokio::select! {
        biased;
        () = stopped(&mut stop) => return,
        encrypted = tls.encrypt(stream) => encrypted,
    };
    match encrypted {
        Ok((stream, names)) => serve(server, stream, (from, names), number, stop).await,
        Err(error) => tracing::debug!(%from, %error, "one of the {} could not begin TLS", S::CLIENTS),
    }
}

async fn serve<S: FramesServer>(
    server: &S,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    (from, certificate): (SocketAddr, Option<Arc<[String]>>),
    number: u64,
    stop: watch::Receiver<bool>,
) {
    let peer = Peer::Tcp { address: from, certificate };
    if let Err(error) = server.session(stream, peer, number, stop).await {
        tracing::debug!(%from, %error, "a session of {} has ended", S::CLIENTS);
    }
}
