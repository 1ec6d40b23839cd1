//! Who is at the other end of a connection, as far as the connection itself says.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// Who is at the other end of a connection: known when it is accepted, before anything is read of what the client asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A process of this machine, over a UNIX socket: whom the kernel says that it runs as.
    Unix {
        /// Its effective user when it connected.
        uid: u32,
        /// Its effective group.
        gid: u32,
    },
    /// A client over TCP.
    Tcp {
        /// Its address and port.
        address: SocketAddr,
        /// The names in its certificate, if it showed one that an authority vouches for: the subject's alternative names, or
        /// its common name where there are none.
        certificate: Option<Arc<[String]>>,
    },
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Unix { uid, .. } => write!(f, "uid {uid}"),
            Peer::Tcp { address, .. } => address.fmt(f),
        }
    }
}
