//! The agents' addresses and the sockets through which they are asked.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::task::Poll;

use collect::mrtg::term::AgentAddress;

use crate::collectors::lookup::{Found, Lookups};
use crate::collectors::udp::UdpSockets;

/// What happens at the sockets.
pub enum PeerEvent {
    /// An agent's address was looked up.
    Found(Found<usize>),
    /// Datagrams have arrived at this socket.
    Datagrams(usize),
}

/// An address and a port of this host.
type Local = (Option<String>, Option<u16>);

/// The sockets, and who is asked through which.
pub struct Peers {
    /// The first for all agents whose target names no local address.
    sockets: Vec<UdpSockets>,
    by_local: HashMap<Local, usize>,
    /// By the agent's number: its socket.
    routes: Vec<usize>,
    /// By the agent's number: its address.
    lookups: Lookups<usize>,
}

impl Peers {
    /// The sockets of agents without a local address.
    ///
    /// # Errors
    /// When there are none.
    pub fn open() -> io::Result<Self> {
        Ok(Peers {
            sockets: vec![UdpSockets::open()?],
            by_local: HashMap::from([((None, None), 0)]),
            routes: Vec::new(),
            lookups: Lookups::default(),
        })
    }

    /// How many large answers the buffers hold.
    pub fn window(&self) -> usize {
        self.sockets[0].window()
    }

    /// Looks up these agents now and then, and no others; a resolver that hangs delays no poll. Returns which local addresses cannot
    /// be bound, and why.
    pub fn look_up<'a>(&mut self, agents: impl Iterator<Item = &'a AgentAddress>) -> Vec<(String, String)> {
        (self.lookups, self.routes) = (Lookups::default(), Vec::new());
        let mut failed = Vec::new();
        for (number, agent) in agents.enumerate() {
            let route = self.route(agent).unwrap_or_else(|error| {
                failed.push((format!("{}:{}", agent.host, agent.port), error));
                0
            });
            self.routes.push(route);
            let is_v6_first = agent.is_ipv6_first;
            let preferred = move |address: &SocketAddr| address.is_ipv6() == is_v6_first;
            self.lookups.add(number, &agent.host, agent.port, preferred);
        }
        failed
    }

    /// The socket for an agent.
    fn route(&mut self, agent: &AgentAddress) -> Result<usize, String> {
        let local = (agent.local_host.clone(), agent.local_port);
        if let Some(route) = self.by_local.get(&local) {
            return Ok(*route);
        }
        let said = || format!("{}:{}", local.0.as_deref().unwrap_or("*"), local.1.unwrap_or(0));
        let host = local.0.as_deref().map(str::parse).transpose();
        let host = host.map_err(|_| format!("{} is no address to send from", said()))?;
        let sockets = UdpSockets::open_at(host, local.1.unwrap_or(0));
        self.sockets.push(sockets.map_err(|error| format!("cannot send from {}: {error}", said()))?);
        self.by_local.insert(local, self.sockets.len() - 1);
        Ok(self.sockets.len() - 1)
    }

    /// Sends a datagram to an agent.
    pub fn send(&self, agent: usize, to: SocketAddr, datagram: &[u8]) {
        let route = self.routes.get(agent).copied().unwrap_or(0);
        self.sockets[route].send(to, datagram);
    }

    /// Waits until an address has been found, or datagrams have arrived.
    pub async fn wait(&mut self) -> PeerEvent {
        let waiting = self.sockets.iter().map(|sockets| Box::pin(sockets.readable()));
        let mut waiting: Vec<_> = waiting.collect();
        let readable = std::future::poll_fn(|context| {
            let ready = waiting.iter_mut().position(|future| future.as_mut().poll(context).is_ready());
            ready.map_or(Poll::Pending, Poll::Ready)
        });
        tokio::select! {
            found = self.lookups.next() => PeerEvent::Found(found),
            socket = readable => PeerEvent::Datagrams(socket),
        }
    }

    /// Takes a datagram from a socket.
    pub fn receive(&self, socket: usize, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        self.sockets.get(socket)?.receive(buffer)
    }
}
