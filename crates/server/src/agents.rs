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
use std::sync::Arc;
use std::time::Duration;

use protocol::rrdcached::address::is_local_host;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use self::counts::AgentCounts;
use self::registry::Registry;
use self::work::Dispatcher;
use crate::access::Principal;
use crate::collectors::own::Own;
use crate::frames_port::{FramesPlaces, FramesPort, FramesServer};
use crate::limits::AGENT_SESSIONS_MAX;
use crate::peer::Peer;
use crate::service::{Service, stopped};
use crate::tls::TlsOptions;

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
pub struct AgentSockets(FramesPort);

/// What all sessions share.
struct AgentServer {
    service: Arc<Service>,
    registry: Registry,
    work: Arc<Dispatcher>,
    counts: AgentCounts,
    /// Agents that do not say who they are.
    anonymous: Arc<Principal>,
    /// Sessions at once.
    places: FramesPlaces,
}

impl AgentSockets {
    /// Binds them.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn bind(settings: &AgentsSettings) -> Result<Self, String> {
        let AgentsSettings { listen, open, tls, .. } = settings;
        FramesPort::bind(("agents", NAME), listen, *open, tls.as_ref()).map(AgentSockets)
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
        let (anonymous, places) = (Arc::clone(&self.0.anonymous), FramesPlaces::new(AGENT_SESSIONS_MAX));
        let server = Arc::new(AgentServer { service, registry, work, counts, anonymous, places });
        let mut listening = self.0.listen(&server, &stop)?;
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

impl FramesServer for AgentServer {
    const CLIENTS: &str = NAME;

    fn service(&self) -> &Arc<Service> {
        &self.service
    }

    async fn session(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send,
        peer: Peer,
        number: u64,
        stop: watch::Receiver<bool>,
    ) -> io::Result<()> {
        session::run(stream, (peer, number), self, stop).await
    }
}
