//! Datagrams that wait to be sent.

use std::net::SocketAddr;
use std::ops::Range;

use super::engine::DeviceId;

/// Datagrams that wait to be sent, in memory that is used again.
#[derive(Debug, Default)]
pub struct Outbox {
    datagrams: Vec<(DeviceId, SocketAddr, Range<usize>)>,
    bytes: Vec<u8>,
}

impl Outbox {
    /// Adds a datagram.
    pub fn push(&mut self, device: DeviceId, to: SocketAddr, datagram: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(datagram);
        self.datagrams.push((device, to, start..self.bytes.len()));
    }

    /// Passes each datagram to `send`.
    pub fn send_all(&mut self, mut send: impl FnMut(DeviceId, SocketAddr, &[u8])) {
        for (device, to, range) in self.datagrams.drain(..) {
            send(device, to, &self.bytes[range]);
        }
        self.bytes.clear();
    }
}
