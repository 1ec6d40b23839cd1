//! The primary's side: sockets for followers.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use store::engine::Engine;
use store::replication::Role;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::ReplicationSettings;
use super::kept::KeptLogs;
use super::session;
use super::state::{ReplicationState, SeenFollower};
use crate::access::Principal;
use crate::frames_port::{FramesPlaces, FramesPort, FramesServer};
use crate::limits::FOLLOWERS_MAX;
use crate::peer::Peer;
use crate::service::{Service, stopped};

/// Bound sockets, before privileges are dropped.
#[derive(Debug)]
pub struct FollowerSockets {
    port: FramesPort,
    log_bytes: u64,
    kept: Option<Arc<KeptLogs>>,
}

/// Keeps the log for followers that are away, also while the store is closed.
pub struct LogForFollowers {
    _kept: Arc<KeptLogs>,
}

/// What all sessions share.
pub(super) struct FollowerServer {
    pub(super) service: Arc<Service>,
    pub(super) state: Arc<ReplicationState>,
    /// Followers that do not say who they are.
    pub(super) anonymous: Arc<Principal>,
    /// Bytes of log of each shard that are kept for a follower.
    pub(super) log_bytes: u64,
    pub(super) kept: Option<Arc<KeptLogs>>,
    pub(super) places: FramesPlaces,
}

impl FollowerSockets {
    /// Binds them.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn bind(settings: &ReplicationSettings) -> Result<Self, String> {
        let ReplicationSettings { listen, open, tls, log_bytes, .. } = settings;
        let port = FramesPort::bind(("replication", FollowerServer::CLIENTS), listen, *open, tls.as_ref())?;
        Ok(FollowerSockets { port, log_bytes: *log_bytes, kept: None })
    }

    /// Goes on keeping the log for the followers that the file `path` names. Call it before the log that was held at the start is released; the log
    /// stays for as long as what this returns. `None`: the store has no log.
    pub fn keep_log(&mut self, engine: &dyn Engine, path: PathBuf) -> Option<LogForFollowers> {
        self.kept = KeptLogs::open(engine, path, self.log_bytes);
        self.kept.clone().map(|kept| LogForFollowers { _kept: kept })
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
        let FollowerSockets { port, log_bytes, kept } = self;
        let places = FramesPlaces::new(FOLLOWERS_MAX);
        if state.role() == Role::Primary {
            for (name, has) in kept.iter().flat_map(|kept| kept.away()) {
                state.note_follower(&name, SeenFollower { connected: false, has });
            }
        }
        let anonymous = Arc::clone(&port.anonymous);
        let server = Arc::new(FollowerServer { service, state, anonymous, log_bytes, kept, places });
        let mut listening = port.listen(&server, &stop)?;
        stopped(&mut stop).await;
        while listening.join_next().await.is_some() {}
        Ok(())
    }
}

impl FramesServer for FollowerServer {
    const CLIENTS: &str = "followers";

    fn service(&self) -> &Arc<Service> {
        &self.service
    }

    async fn session(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send,
        peer: Peer,
        _number: u64,
        stop: watch::Receiver<bool>,
    ) -> io::Result<()> {
        session::run(stream, peer, self, stop).await
    }
}
