//! What collectors that ask by datagrams share: the clocks and sockets of both families.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use collect::snmp::engine::Now;
use rustix::net::SendFlags;
use tokio::net::UdpSocket;

/// What a socket's buffer should hold.
const RECEIVE_BYTES: usize = 4 << 20;
/// What the kernel counts for a datagram of 1,400 bytes.
const DATAGRAM_COST: usize = 2_315;
/// Bytes of a datagram at most.
pub const DATAGRAM_MAX: usize = 65_536;
/// Datagrams taken before something else gets its turn.
pub const DATAGRAMS_AT_ONCE: usize = 256;
/// While at least so many answers are awaited, those that arrive soon after each other are taken together.
const TOGETHER_FROM: usize = 8;
/// How long answers wait for others.
const TOGETHER_WAIT: Duration = Duration::from_millis(1);

/// The clocks.
#[derive(Debug)]
pub struct Clocks(Instant);

impl Default for Clocks {
    fn default() -> Self {
        Clocks(Instant::now())
    }
}

impl Clocks {
    /// The time now.
    pub fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64);
        // Beyond zero, so that a time before the start can be told.
        Now { wall, mono: self.0.elapsed().as_micros() as u64 + 1_000_000 }
    }
}

/// One socket for each family of addresses; one of them may be missing.
#[derive(Debug)]
pub struct UdpSockets {
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
}

impl UdpSockets {
    /// UdpSockets on any address of this host.
    ///
    /// # Errors
    /// When there is none for IPv4.
    pub fn open() -> io::Result<Self> {
        let v4 = bind((Ipv4Addr::UNSPECIFIED, 0).into())?;
        let v6 = bind((Ipv6Addr::UNSPECIFIED, 0).into()).ok();
        Ok(UdpSockets { v4: Some(v4), v6 })
    }

    /// A socket on one address of this host, or on a port of all of them.
    ///
    /// # Errors
    /// When that cannot be bound.
    pub fn open_at(host: Option<IpAddr>, port: u16) -> io::Result<Self> {
        match host {
            Some(host @ IpAddr::V6(_)) => Ok(UdpSockets { v4: None, v6: Some(bind((host, port).into())?) }),
            Some(host) => Ok(UdpSockets { v4: Some(bind((host, port).into())?), v6: None }),
            None => {
                let v6 = bind((Ipv6Addr::UNSPECIFIED, port).into()).ok();
                Ok(UdpSockets { v4: Some(bind((Ipv4Addr::UNSPECIFIED, port).into())?), v6 })
            }
        }
    }

    /// How many large answers the buffers hold.
    pub fn window(&self) -> usize {
        let size = self.v4.as_ref().or(self.v6.as_ref()).map(rustix::net::sockopt::socket_recv_buffer_size);
        size.and_then(Result::ok).map_or(64, |bytes| bytes / DATAGRAM_COST)
    }

    /// Sends a datagram.
    pub fn send(&self, to: SocketAddr, datagram: &[u8]) {
        let socket = if to.is_ipv4() { self.v4.as_ref() } else { self.v6.as_ref() };
        // Not through tokio: before its first look at a new socket, it believes that nothing can be sent. A datagram that is not sent
        // is one that is not answered: it is repeated.
        let send = |socket| rustix::net::sendto(socket, datagram, SendFlags::DONTWAIT, &to);
        if let Some(error) = socket.and_then(|socket| send(socket).err()) {
            tracing::debug!(%to, %error, "cannot send to an SNMP device");
        }
    }

    /// Waits until a datagram has arrived.
    pub async fn readable(&self) {
        tokio::select! {
            () = wait(self.v4.as_ref()) => {}
            () = wait(self.v6.as_ref()) => {}
        }
    }

    /// Takes a datagram: its length, and who sent it.
    pub fn receive(&self, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        let sockets = [self.v4.as_ref(), self.v6.as_ref()];
        sockets.into_iter().flatten().find_map(|socket| socket.try_recv_from(buffer).ok())
    }
}

/// After an answer has arrived while others are awaited: waits for them, because to wake up costs as much as to take ten answers.
pub async fn wait_for_more(in_flight: usize) {
    if in_flight >= TOGETHER_FROM {
        tokio::time::sleep(TOGETHER_WAIT).await;
    }
}

async fn wait(socket: Option<&UdpSocket>) {
    match socket {
        Some(socket) => drop(socket.readable().await),
        None => std::future::pending().await,
    }
}

fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = std::net::UdpSocket::bind(address)?;
    // More than the system's limit needs a capability.
    if rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BYTES).is_err() {
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BYTES).ok();
    }
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket)
}

/// A number that is hard to guess: without one, ids can be guessed, but addresses are still compared.
pub fn random_seed() -> u64 {
    let mut seed = [0; 8];
    rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty()).ok();
    u64::from_ne_bytes(seed)
}
