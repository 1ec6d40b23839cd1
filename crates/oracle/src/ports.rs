//! Ports for daemons that tests start.

use std::net::{TcpListener, UdpSocket};
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

/// The first port to try. Linux takes those from 32,768 on for outgoing connections and for port 0, so that one which was
/// free a moment ago may be taken before a daemon listens; these are left alone.
const FIRST: u16 = 10_000;
const COUNT: u16 = 20_000;

/// A TCP and UDP port of 127.0.0.1 that nothing uses, another one at each call.
///
/// # Panics
/// When all are in use.
#[must_use]
pub fn free_port() -> u16 {
    static CALLS: AtomicU16 = AtomicU16::new(0);
    // Test executables of other worktrees, which run at the same time, begin elsewhere.
    let begin = process::id().wrapping_mul(97) % u32::from(COUNT);
    for _ in 0..COUNT {
        let call = u32::from(CALLS.fetch_add(1, Ordering::Relaxed));
        let port = FIRST + ((begin + call) % u32::from(COUNT)) as u16;
        let address = ("127.0.0.1", port);
        if TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return port;
        }
    }
    panic!("no port is free");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_gives_another_port() {
        let ports = [free_port(), free_port(), free_port()];
        assert!(ports.iter().all(|port| (FIRST..FIRST + COUNT).contains(port)), "{ports:?}");
        assert!(ports[0] != ports[1] && ports[1] != ports[2], "{ports:?}");
        let _held = TcpListener::bind(("127.0.0.1", ports[2] + 1));
        assert_ne!(free_port(), ports[2] + 1);
    }
}
