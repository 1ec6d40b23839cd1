//! The primary's side: sockets for followers.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use store::tail::LogTail;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::ReplicationSettings;
use super::session;
use super::state::ReplicationState;
use crate::access::Principal;
use crate::limits::{ACCEPT_PAUSE, FOLLOWERS_MAX, TLS_STREAM_BYTES};
use crate::peer::Peer;
use crate::service::{Service, stopped};
use crate::tls::port::TlsPort;

/// Bound sockets, before privileges are dropped.
#[derive(Debug)]
pub struct FollowerSockets {
    listeners: Vec<TcpListener>,
    anonymous: Arc<Principal>,
    tls: Option<Arc<TlsPort>>,
    log_bytes: u64,
}

/// What all sessions share.
pub(super) struct FollowerServer {
    pub(super) service: Arc<Service>,
    pub(super) state: Arc<ReplicationState>,
    /// Followers that do not say who they are.
    pub(super) anonymous: Arc<Principal>,
    /// Bytes of log of each shard that are kept for a follower.
    pub(super) log_bytes: u64,
    /// What keeps the log for followers that are away.
    pub(super) kept: Mutex<BTreeMap<String, LogTail>>,
    tls: Option<Arc<TlsPort>>,
    places: Semaphore,
}

impl FollowerSockets {
    /// Binds them.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn bind(settings: &ReplicationSettings) -> Result<Self, String> {
        let bind = |address: &String| {
            let cannot = |error| format!("cannot listen on \"{address}\" for followers: {error}");
            let listener = TcpListener::bind(address.as_str()).map_err(cannot)?;
            listener.set_nonblocking(true).map_err(cannot)?;
            Ok(listener)
        };
        let listeners = settings.listen.iter().map(bind).collect::<Result<_, String>>()?;
        let anonymous = if settings.open { Principal::everyone() } else { Principal::without_rights() };
        let tls = settings.tls.as_ref().map(TlsPort::open).transpose();
        let tls = tls.map_err(|error| format!("[replication] tls: {error}"))?;
        Ok(FollowerSockets { listeners, anonymous, tls, log_bytes: settings.log_bytes })
    }

    /// Serves followers until `stop` becomes true.
    ///
    /// # Errors
    /// When a socket cannot be used.
    pub async fn run(
        self,
        service: Arc<Service>,
        state: Arc<ReplicationState>,
        mut stop: watch::Receiver<bool>,
    ) -> io::Result<()> {
        let FollowerSockets { listeners, anonymous, tls, log_bytes } = self;
        let (kept, places) = (Mutex::default(), Semaphore::new(FOLLOWERS_MAX));
        let server = Arc::new(FollowerServer { service, state, anonymous, log_bytes, kept, tls, places });
        let mut listening = JoinSet::new();
        for listener in listeners {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            listening.spawn(accept(listener, Arc::clone(&server), stop.clone()));
        }
        stopped(&mut stop).await;
        while listening.join_next().await.is_some() {}
        Ok(())
    }
}

/// Accepts sessions until the daemon stops, and waits for them to end.
async fn accept(
    listener: tokio::net::TcpListener,
    server: Arc<FollowerServer>,
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
        let (server, stop) = (Arc::clone(&server), stop.clone());
        sessions.spawn(async move { server.admit(stream, from, stop).await });
    }
    while sessions.join_next().await.is_some() {}
}

impl FollowerServer {
    /// Begins TLS where it is spoken, then serves the follower.
    async fn admit(&self, stream: TcpStream, from: SocketAddr, mut stop: watch::Receiver<bool>) {
        stream.set_nodelay(true).ok();
        let Some(tls) = &self.tls else { return self.serve(stream, from, None, stop).await };
        let _fixed = self.service.memory.fix(TLS_STREAM_BYTES);
        let encrypted = tokio::select! {
            biased;
            () = stopped(&mut stop) => return,
            encrypted = tls.encrypt(stream) => encrypted,
        };
        match encrypted {
            Ok((stream, names)) => self.serve(stream, from, names, stop).await,
            Err(error) => tracing::debug!(%from, %error, "a follower could not begin TLS"),
        }
    }

    async fn serve(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        from: SocketAddr,
        certificate: Option<Arc<[String]>>,
        stop: watch::Receiver<bool>,
    ) {
        let Ok(_place) = self.places.try_acquire() else {
            tracing::warn!(%from, "no more than {FOLLOWERS_MAX} followers at once");
            return;
        };
        if let Err(error) = session::run(stream, Peer::Tcp { address: from, certificate }, self, stop).await {
            tracing::debug!(%from, %error, "a session of a follower has ended");
        }
    }
}
