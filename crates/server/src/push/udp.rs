//! Ports of UDP: a thread that takes many datagrams at once, and hands them to the store.

use std::io;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::watch;

use super::port::{Arrived, Port};
use crate::collectors::datagrams::{self, DatagramBuffers, DatagramSocket};

/// Samples handed to the store at once.
const SAMPLES_MAX: usize = 16_384;

/// Receives until `stop` becomes true. Blocks; on a thread of its own.
///
/// # Errors
/// When waiting for the sockets fails.
pub(super) fn run(
    mut sockets: Vec<DatagramSocket>,
    port: &Arc<Port>,
    stop: &watch::Receiver<bool>,
) -> io::Result<()> {
    let mut buffers = DatagramBuffers::default();
    let mut arrived = Arrived::default();
    let mut dropped = 0;
    let mut has_warned = false;
    let handle = Handle::current();
    while !*stop.borrow() {
        let ready = datagrams::wait(&sockets)?;
        for (socket, is_ready) in sockets.iter_mut().zip(ready) {
            while is_ready && arrived.samples.samples().len() < SAMPLES_MAX {
                match socket.receive(&mut buffers, |_, text| port.read_lines(text, &mut arrived)) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) => {
                        if !std::mem::replace(&mut has_warned, true) {
                            tracing::warn!(%error, "cannot receive on {}", port.settings.address());
                        }
                        break;
                    }
                }
            }
        }
        handle.block_on(port.store(&mut arrived));
        let now_dropped = sockets.iter().map(DatagramSocket::dropped).sum();
        let more = now_dropped - dropped;
        dropped = now_dropped;
        port.service.ingest.counts.refuse(port.name(), "datagrams_dropped_by_kernel", more);
    }
    Ok(())
}
