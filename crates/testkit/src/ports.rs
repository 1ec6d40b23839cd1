//! Ports for daemons that tests start.

use std::net::{TcpListener, UdpSocket};
use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};
use std::{fs, process};

use crate::wait_until;

/// The first port to try. Linux takes ports from 32,768 on for outgoing connections and for port 0, so a port there that was
/// free a moment ago may be taken before a daemon listens. Tests use lower ports only.
const FIRST: u16 = 10_000;
const COUNT: u16 = 20_000;

/// Holds the leases of this process until it ends.
static LEASES: Mutex<Vec<UnixDatagram>> = Mutex::new(Vec::new());

/// Returns a TCP and UDP port of 127.0.0.1 that nothing uses, another one at each call.
///
/// The port is leased to this process until the process ends: no other test gets it meanwhile, also while the test's daemon
/// is stopped and started again on it. A lease is a socket with an abstract name, which the system releases with the process.
///
/// # Panics
/// When all ports are in use.
#[must_use]
pub fn free_port() -> u16 {
    free_ports(1).start
}

/// Returns consecutive ports, each as of [`free_port`].
///
/// # Panics
/// When there are no such ports.
#[must_use]
pub fn free_ports(count: u16) -> Range<u16> {
    static CALLS: AtomicU16 = AtomicU16::new(0);
    // Test programs that run at the same time begin at different ports, so that they rarely try leased ones.
    let begin = process::id().wrapping_mul(97) % u32::from(COUNT);
    for _ in 0..COUNT {
        let call = u32::from(CALLS.fetch_add(count, Ordering::Relaxed));
        let first = FIRST + ((begin + call) % u32::from(COUNT)) as u16;
        let ports = first..first + count;
        // The leases of a range that is not free as a whole end here.
        let leases: Option<Vec<_>> = ports.clone().map(lease_free).collect();
        if let Some(leases) = leases.filter(|_| ports.end <= FIRST + COUNT) {
            LEASES.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(leases);
            return ports;
        }
    }
    panic!("no {count} ports are free");
}

/// Leases a port if nothing uses it.
fn lease_free(port: u16) -> Option<UnixDatagram> {
    let lease = lease(port)?;
    let address = ("127.0.0.1", port);
    (TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok()).then_some(lease)
}

/// Leases a port, unless another process or an earlier call has it.
fn lease(port: u16) -> Option<UnixDatagram> {
    let name = SocketAddr::from_abstract_name(format!("roundel-test-port-{port}")).ok()?;
    UnixDatagram::bind_addr(&name).ok()
}

/// Waits until the programs at these UDP ports (IPv4) have read all that was sent to them, so that no datagram is lost however busy
/// the machine is: proc_pid_net(5), columns `rx_queue` and `drops` of `udp`.
///
/// # Panics
/// When a datagram has been dropped, or nothing listens.
pub fn wait_until_received(ports: &[u16]) {
    for &port in ports {
        wait_until("datagrams to be read", || {
            let sockets = fs::read_to_string("/proc/net/udp").unwrap_or_default();
            let of_port = |columns: &Vec<&str>| columns[1].ends_with(&format!(":{port:04X}"));
            let socket = sockets.lines().skip(1).map(|line| line.split_whitespace().collect()).find(of_port);
            let socket = socket.unwrap_or_else(|| panic!("nothing listens at UDP port {port}"));
            assert_eq!(socket.last(), Some(&"0"), "datagrams to port {port} were dropped");
            socket[4].ends_with(":00000000")
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "were dropped")]
    fn a_dropped_datagram_is_noticed() {
        let port = free_port();
        let receiver = UdpSocket::bind(("127.0.0.1", port)).unwrap();
        wait_until_received(&[port]);
        for _ in 0..10_000 {
            receiver.send_to(b"datagram", ("127.0.0.1", port)).unwrap();
        }
        wait_until_received(&[port]);
    }

    #[test]
    fn consecutive_ports_are_all_leased() {
        let ports = free_ports(52);
        assert_eq!(ports.len(), 52);
        assert!(FIRST <= ports.start && ports.end <= FIRST + COUNT, "{ports:?}");
        assert!(
            ports.clone().all(|port| lease(port).is_none()),
            "another process could take one of {ports:?}"
        );
        assert!(!ports.contains(&free_port()));
    }

    #[test]
    fn each_call_gives_another_port() {
        let ports = [free_port(), free_port(), free_port()];
        assert!(ports.iter().all(|port| (FIRST..FIRST + COUNT).contains(port)), "{ports:?}");
        assert!(ports[0] != ports[1] && ports[1] != ports[2], "{ports:?}");
        let _held = TcpListener::bind(("127.0.0.1", ports[2] + 1));
        assert_ne!(free_port(), ports[2] + 1);
        assert!(lease(ports[0]).is_none(), "another process could take the port");
    }
}
