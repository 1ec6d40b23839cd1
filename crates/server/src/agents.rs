//! Receives the readings of agents on other machines (`docs/protocol/agents.md`).

mod assignments;
mod counts;
mod labels;
mod receiving;
mod registry;
pub mod seen;
mod session;
pub mod work;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use protocol::rrdcached::address::is_local_host;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use self::counts::AgentCounts;
use self::registry::Registry;
use self::work::Dispatcher;
use crate::access::Principal;
use crate::collectors::own::Own;
use crate::limits::{ACCEPT_PAUSE, AGENT_SESSIONS_MAX, TLS_STREAM_BYTES};
use crate::peer::Peer;
use crate::service::{Service, stopped};
use crate::tls::TlsOptions;
use crate::tls::port::TlsPort;

/// The name in the log, in `/metrics` and of the RRD with its numbers.
const NAME: &str = "agents";
/// How often numbers are published.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);

/// The checked section `[agents]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentsSettings {
    /// Addresses, each HOST:PORT.
    pub listen: Vec<String>,
    /// How long an agent is gone before its devices go to others.
    pub handover: Duration,
    /// Agents need not say who they are.
    pub open: bool,
    /// TLS of all of them.
    pub tls: Option<TlsOptions>,
}

impl AgentsSettings {
    /// Whether only this machine reaches an address; `None` when it is none.
    pub fn is_local(address: &str) -> Option<bool> {
        let address =
            address.strip_prefix("tls:").map_or(address, |rest| rest.strip_prefix("//").unwrap_or(rest));
        let (host, port) = address.rsplit_once(':')?;
        port.parse::<u16>().ok()?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        (!host.is_empty()).then(|| is_local_host(host))
    }
}

/// Bound sockets, before privileges are dropped.
#[derive(Debug)]
pub struct AgentSockets {
    listeners: Vec<TcpListener>,
    anonymous: Arc<Principal>,
    tls: Option<Arc<TlsPort>>,
}

/// What all sessions share.
struct AgentServer {
    service: Arc<Service>,
    registry: Registry,
    work: Arc<Dispatcher>,
    counts: AgentCounts,
    /// Agents that do not say who they are.
    anonymous: Arc<Principal>,
    tls: Option<Arc<TlsPort>>,
    /// Sessions at once.
    places: Semaphore,
}

impl AgentSockets {
    /// Binds them.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn bind(settings: &AgentsSettings) -> Result<Self, String> {
        let bind = |address: &String| {
            let cannot = |error| format!("cannot listen on \"{address}\" for agents: {error}");
            let listener = TcpListener::bind(address.as_str()).map_err(cannot)?;
            listener.set_nonblocking(true).map_err(cannot)?;
            Ok(listener)
        };
        let listeners = settings.listen.iter().map(bind).collect::<Result<_, String>>()?;
        let anonymous = if settings.open { Principal::everyone() } else { Principal::without_rights() };
        let tls = settings.tls.as_ref().map(TlsPort::open).transpose();
        let tls = tls.map_err(|error| format!("[agents] tls: {error}"))?;
        Ok(AgentSockets { listeners, anonymous, tls })
    }

    /// Serves agents until `stop` becomes true; `work` decides what they poll.
    ///
    /// # Errors
    /// When a socket cannot be used.
    pub async fn run(
        self,
        service: Arc<Service>,
        work: Arc<Dispatcher>,
        mut stop: watch::Receiver<bool>,
    ) -> io::Result<()> {
        let context = Arc::clone(&service.collecting);
        let mut own = Own::new(&context, NAME);
        let (registry, counts) = (Registry::default(), AgentCounts::default());
        let (anonymous, tls, places) = (self.anonymous, self.tls, Semaphore::new(AGENT_SESSIONS_MAX));
        let server = Arc::new(AgentServer { service, registry, work, counts, anonymous, tls, places });
        let mut listening = JoinSet::new();
        for listener in self.listeners {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            listening.spawn(accept(listener, Arc::clone(&server), stop.clone()));
        }
        loop {
            tokio::select! {
                biased;
                () = stopped(&mut stop) => break,
                () = tokio::time::sleep(PUBLISH_EVERY) => {}
            }
            tokio::task::block_in_place(|| server.work.tick());
            let numbers =
                |_| [server.counts.numbers(server.registry.count()), server.work.numbers()].concat();
            own.publish(&context, numbers).await;
        }
        while listening.join_next().await.is_some() {}
        Ok(())
    }
}

/// Accepts sessions until the daemon stops, and waits for them to end.
async fn accept(
    listener: tokio::net::TcpListener,
    server: Arc<AgentServer>,
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

impl AgentServer {
    /// Begins TLS where it is spoken, then serves the agent.
    async fn admit(&self, stream: TcpStream, from: SocketAddr, mut stop: watch::Receiver<bool>) {
        // Blocks and answers go out at once.
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
            Err(error) => tracing::debug!(%from, %error, "an agent could not begin TLS"),
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
            // The agent tries again.
            tracing::warn!(%from, "no more than {AGENT_SESSIONS_MAX} sessions of agents");
            return;
        };
        if let Err(error) = session::run(stream, Peer::Tcp { address: from, certificate }, self, stop).await {
            tracing::debug!(%from, %error, "a session of an agent has ended");
        }
    }
}
