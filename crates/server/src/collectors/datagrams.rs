//! UDP sockets that receive for collectors: many datagrams per call, and the kernel's count of those it dropped.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, setsockopt, sockopt,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

/// Datagrams per call.
const BATCH: usize = 64;
/// Bytes of the longest datagram.
const DATAGRAM_BYTES_MAX: usize = 65_535;

/// The longest wait for a datagram, so that a stop is seen.
const WAIT: Duration = Duration::from_millis(200);

/// A bound UDP socket.
#[derive(Debug)]
pub struct DatagramSocket {
    socket: UdpSocket,
    /// Datagrams that the kernel dropped because the socket's buffer was full.
    dropped: u32,
}

/// Splits `udp://host:port`; the scheme and the port may be missing.
///
/// # Errors
/// A text when it has no such form.
pub fn parse_address(text: &str, port_default: u16) -> Result<(String, u16), String> {
    let rest = text.strip_prefix("udp://").unwrap_or(text);
    let bad = || format!("\"{text}\" is not udp://host:port or udp://[v6]:port");
    let (host, port) = match rest.strip_prefix('[') {
        Some(inner) => {
            let (host, after) = inner.split_once(']').ok_or_else(bad)?;
            (host, after.strip_prefix(':'))
        }
        None => match rest.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (rest, None),
        },
    };
    let port = port.map_or(Ok(port_default), |port| port.parse().map_err(|_| bad()))?;
    if host.is_empty() || host.contains("//") { Err(bad()) } else { Ok((host.to_string(), port)) }
}

/// Binds a socket for each address of a host; a multicast address is joined on `interface`, or on the system's choice.
///
/// # Errors
/// A text for the operator.
pub fn bind(
    host: &str,
    port: u16,
    interface: Option<&str>,
    buffer_bytes: usize,
) -> Result<Vec<DatagramSocket>, String> {
    let cannot = |error: io::Error| format!("cannot receive on udp://{host}:{port}: {error}");
    let addresses = (host, port).to_socket_addrs().map_err(cannot)?;
    let index = interface.map_or(Ok(0), interface_index)?;
    addresses.map(|address| bind_one(address, index, buffer_bytes).map_err(cannot)).collect()
}

/// The number of a network interface.
///
/// # Errors
/// When there is none of this name.
pub fn interface_index(name: &str) -> Result<u32, String> {
    let path = format!("/sys/class/net/{name}/ifindex");
    let text = std::fs::read_to_string(path).ok();
    text.and_then(|text| text.trim().parse().ok()).ok_or_else(|| format!("there is no interface \"{name}\""))
}

fn bind_one(address: SocketAddr, interface: u32, buffer_bytes: usize) -> io::Result<DatagramSocket> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    if address.ip().is_multicast() {
        // Several programs of a machine may be members of a group.
        rustix::net::sockopt::set_socket_reuseaddr(&socket, true)?;
    }
    rustix::net::bind(&socket, &address)?;
    match address.ip() {
        IpAddr::V4(group) if group.is_multicast() => {
            let any = std::net::Ipv4Addr::UNSPECIFIED;
            rustix::net::sockopt::set_ip_add_membership_with_ifindex(&socket, &group, &any, interface)?;
        }
        IpAddr::V6(group) if group.is_multicast() => {
            rustix::net::sockopt::set_ipv6_add_membership(&socket, &group, interface)?;
        }
        _ => {}
    }
    // Beyond net.core.rmem_max only with CAP_NET_ADMIN; what is granted is used.
    if rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, buffer_bytes).is_err() {
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, buffer_bytes)?;
    }
    setsockopt(&socket, sockopt::RxqOvfl, &1)?;
    Ok(DatagramSocket { socket: socket.into(), dropped: 0 })
}

impl DatagramSocket {
    /// Datagrams that the kernel has dropped so far, as far as later datagrams said so.
    pub fn dropped(&self) -> u64 {
        u64::from(self.dropped)
    }

    /// Bytes of the kernel's buffer.
    pub fn buffer_bytes(&self) -> u64 {
        rustix::net::sockopt::socket_recv_buffer_size(&self.socket).map_or(0, |bytes| bytes as u64)
    }

    /// The socket, for sending.
    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Passes on the datagrams that wait, at most one call's; returns how many there were.
    ///
    /// # Errors
    /// When the system refuses; never because there are none.
    pub fn receive(
        &mut self,
        buffers: &mut DatagramBuffers,
        mut take: impl FnMut(SocketAddr, &[u8]),
    ) -> io::Result<usize> {
        let mut slices: Vec<[IoSliceMut<'_>; 1]> =
            buffers.0.iter_mut().map(|buffer| [IoSliceMut::new(buffer)]).collect();
        // New ones for each call: a call leaves the lengths of its answers in them.
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(BATCH, Some(nix::cmsg_space!(u32)));
        let file = self.socket.as_raw_fd();
        let messages = match recvmmsg(file, &mut headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None) {
            Ok(messages) => messages,
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => return Ok(0),
            Err(error) => return Err(error.into()),
        };
        let mut count = 0;
        for message in messages {
            count += 1;
            for control in message.cmsgs()? {
                if let ControlMessageOwned::RxqOvfl(dropped) = control {
                    self.dropped = self.dropped.max(dropped);
                }
            }
            let sender = message.address.as_ref().and_then(socket_address);
            if let (Some(sender), Some(bytes)) = (sender, message.iovs().next()) {
                take(sender, bytes);
            }
        }
        Ok(count)
    }
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    if let Some(v4) = address.as_sockaddr_in() {
        return Some(SocketAddr::new(v4.ip().into(), v4.port()));
    }
    let v6 = address.as_sockaddr_in6()?;
    // A sender of IPv4 is the same sender on a socket of both.
    Some(SocketAddr::new(v6.ip().to_canonical(), v6.port()))
}

/// Waits until a socket has something, for 200 ms at most; which ones have.
///
/// # Errors
/// When the system refuses.
pub fn wait(sockets: &[DatagramSocket]) -> io::Result<Vec<bool>> {
    let mut files: Vec<_> = sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
    let wait = Timespec { tv_sec: 0, tv_nsec: WAIT.as_nanos() as _ };
    match poll(&mut files, Some(&wait)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(files.iter().map(|file| !file.revents().is_empty()).collect())
}

/// Memory for one call of [`DatagramSocket::receive`].
#[derive(Debug)]
pub struct DatagramBuffers(Vec<Vec<u8>>);

impl Default for DatagramBuffers {
    fn default() -> Self {
        DatagramBuffers(vec![vec![0; DATAGRAM_BYTES_MAX]; BATCH])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_schemes_and_ports() {
        let check = |text: &str, host: &str, port| {
            assert_eq!(parse_address(text, 9), Ok((host.to_string(), port)), "{text}");
        };
        check("udp://[::]:25826", "::", 25_826);
        check("udp://[::]", "::", 9);
        check("239.2.11.71:8649", "239.2.11.71", 8649);
        check("localhost", "localhost", 9);
        for bad in ["", "tcp://x:1", "udp://[::", "x:y", "udp://:1"] {
            assert!(parse_address(bad, 9).is_err(), "{bad}");
        }
    }

    #[test]
    fn datagrams_come_with_their_senders_and_drops_are_counted() {
        let mut socket = bind("127.0.0.1", 0, None, 4096).unwrap().remove(0);
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.socket().local_addr().unwrap();
        let mut buffers = DatagramBuffers::default();
        let mut got = Vec::new();
        sender.send_to(b"one", to).unwrap();
        sender.send_to(b"", to).unwrap();
        sender.send_to(b"two", to).unwrap();
        let from = sender.local_addr().unwrap();
        let count = socket.receive(&mut buffers, |who, bytes| got.push((who, bytes.to_vec()))).unwrap();
        assert_eq!((count, got), (3, vec![(from, b"one".to_vec()), (from, b"two".to_vec())]));
        assert_eq!(socket.receive(&mut buffers, |_, _| panic!("nothing waits")).unwrap(), 0);
        for _ in 0..200 {
            sender.send_to(&[0; 1000], to).unwrap();
        }
        // The count comes with a datagram that arrives after the drops.
        while socket.receive(&mut buffers, |_, _| {}).unwrap() > 0 {}
        sender.send_to(b"last", to).unwrap();
        socket.receive(&mut buffers, |_, _| {}).unwrap();
        assert!(socket.dropped() > 100, "{}", socket.dropped());
    }
}
