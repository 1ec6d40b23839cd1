//! The primary's side: sockets for followers.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use store::tail::LogTail;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, watch};

use super::ReplicationSettings;
use super::session;
use super::state::ReplicationState;
use crate::access::Principal;
use crate::frames_port::{FramesPort, FramesServer};
use crate::limits::FOLLOWERS_MAX;
use crate::peer::Peer;
use crate::service::{Service, stopped};

/// Bound sockets, before privileges are dropped.
#[derive(Debug)]
pub struct FollowerSockets {
    port: FramesPort,
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
    places: Semaphore,
}

impl FollowerSockets {
    /// Binds them.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn bind(settings: &ReplicationSettings) -> Result<Self, String> {
        let ReplicationSettings { listen, open, tls, log_bytes, .. } = settings;
        let port = FramesPort::bind(("replication", FollowerServer::CLIENTS), listen, *open, tls.as_ref())?;
        Ok(FollowerSockets { port, log_bytes: *log_bytes })
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
        let FollowerSockets { port, log_bytes } = self;
        let (kept, places) = (Mutex::default(), Semaphore::new(FOLLOWERS_MAX));
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

    fn places(&self) -> &Semaphore {
        &self.places
    }

    async fn session(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send,
        peer: Peer,
        stop: watch::Receiver<bool>,
    ) -> io::Result<()> {
        session::run(stream, peer, self, stop).await
    }
}
