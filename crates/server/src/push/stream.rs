//! Ports of TCP: lines, or messages after their length. No client is answered, so what cannot be stored is counted and logged.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use ::ingest::graphite::LINE_BYTES_MAX;
use ::ingest::pickle::MESSAGE_BYTES_MAX;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::PushProtocol;
use super::port::{Arrived, Port};
use crate::budget::Share;
use crate::connection_limits::{ListenerKind, ShortageLog};
use crate::limits::{ACCEPT_PAUSE, HELD_FREELY, READ_BYTES, STOP_TIMEOUT};
use crate::service::stopped;

/// Memory of a connection while what it has sent is read and stored: its bytes, some times over as samples and updates, twice.
const BUSY_BYTES: u64 = 12 * READ_BYTES as u64;
/// The wait for memory that others have.
const MEMORY_PAUSE: Duration = Duration::from_millis(20);
/// How long a connection may bring nothing at all: senders of an hour's means keep theirs.
const SILENCE_MAX: Duration = Duration::from_secs(86_400);
/// Bytes of the length before a pickle.
const LENGTH_BYTES: usize = 4;

/// Serves until `stop` becomes true; what has arrived then is stored.
///
/// # Errors
/// When the runtime cannot use the socket.
pub(super) async fn serve(
    listener: TcpListener,
    port: Arc<Port>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    let mut shortage = ShortageLog::default();
    let stop_of_connections = stop.clone();
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            ended = connections.join_next(), if !connections.is_empty() => {
                if let Some(Err(error)) = ended && error.is_panic() {
                    port.service.metrics.panics.inc();
                    tracing::error!(%error, "a bug ended a connection to {}", port.settings.address());
                }
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let limits = &port.service.connection_limits;
                    let Some(slot) = limits.try_acquire(ListenerKind::Rrdcached) else {
                        port.service.metrics.connections_refused.inc();
                        shortage.begin("all places for connections are taken; a new one is closed");
                        continue;
                    };
                    let (port, stop) = (Arc::clone(&port), stop_of_connections.clone());
                    connections.spawn(async move {
                        receive(&port, &stream, stop).await;
                        drop(slot);
                    });
                }
                Err(error) => {
                    shortage.begin(format_args!("cannot accept a connection: {error}"));
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            () = shortage.over() => shortage.end(),
        }
    }
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(STOP_TIMEOUT, all_ended).await.is_err() {
        connections.shutdown().await;
    }
    Ok(())
}

/// What a connection has sent and is not read yet.
#[derive(Default)]
struct Unread {
    bytes: Vec<u8>,
    /// What comes belongs to a line that was too long.
    skips_line: bool,
}

async fn receive(port: &Port, stream: &TcpStream, mut stop: watch::Receiver<bool>) {
    let mut unread = Unread::default();
    let mut held = port.service.memory.share();
    loop {
        // Between messages a connection may be silent as long as it likes, and holds nothing.
        let wait = if unread.bytes.is_empty() { SILENCE_MAX } else { port.service.idle };
        tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            ready = tokio::time::timeout(wait, stream.ready(Interest::READABLE)) => if !matches!(ready, Ok(Ok(_))) { break },
        }
        let _share = memory(port).await;
        // Not kept for the next time: else ten thousand connections would.
        let (mut arrived, mut next) = (Arrived::default(), Arrived::default());
        let mut goes_on = unread.take(port, stream, &mut arrived);
        while !arrived.is_empty() {
            // What has come meanwhile is read while the store works.
            let may_read = goes_on && !*stop.borrow();
            let reading = async { may_read && unread.take(port, stream, &mut next) };
            let ((), more) = tokio::join!(port.store(&mut arrived), reading);
            goes_on = more;
            std::mem::swap(&mut arrived, &mut next);
        }
        let waiting = unread.bytes.capacity();
        let has_memory = waiting <= HELD_FREELY || held.try_resize(waiting as u64);
        if !goes_on || !has_memory {
            break;
        }
    }
    if !unread.bytes.is_empty() {
        // A number may be cut, too: half of a line is no line.
        port.refuse("cut_off", &unread.bytes, "the connection ended in the middle of it");
    }
}

/// Waits for memory that other clients do not have; so those who send have to wait.
async fn memory(port: &Port) -> Share {
    let mut share = port.service.memory.share();
    while !share.try_resize(BUSY_BYTES) {
        tokio::time::sleep(MEMORY_PAUSE).await;
    }
    share
}

/// Takes what is there, up to [`READ_BYTES`] beside an incomplete message; false at the end of the connection.
fn fill(stream: &TcpStream, bytes: &mut Vec<u8>) -> bool {
    let most = bytes.len() + READ_BYTES;
    bytes.reserve(READ_BYTES);
    while bytes.len() < most {
        match stream.try_read_buf(bytes) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
    true
}

impl Unread {
    /// Reads what is there now; false when nothing more will come.
    fn take(&mut self, port: &Port, stream: &TcpStream, arrived: &mut Arrived) -> bool {
        let is_open = fill(stream, &mut self.bytes);
        let is_good = tokio::task::block_in_place(|| match port.settings.protocol {
            PushProtocol::Pickle => self.read_pickles(port, arrived),
            _ => {
                self.read_lines(port, arrived);
                true
            }
        });
        is_open && is_good
    }

    fn read_lines(&mut self, port: &Port, arrived: &mut Arrived) {
        let mut from = 0;
        if self.skips_line {
            let Some(end) = memchr::memchr(b'\n', &self.bytes) else {
                self.bytes = Vec::new();
                return;
            };
            from = end + 1;
            self.skips_line = false;
        }
        let end = memchr::memrchr(b'\n', &self.bytes[from..]).map_or(from, |at| from + at + 1);
        if end > from {
            port.read_lines(&self.bytes[from..end], arrived);
        }
        self.keep(end);
        if self.bytes.len() > LINE_BYTES_MAX {
            port.refuse("too_long", &self.bytes, "the line is too long");
            self.bytes = Vec::new();
            self.skips_line = true;
        }
    }

    /// False when nothing more can be read, because where the next message begins is not known.
    fn read_pickles(&mut self, port: &Port, arrived: &mut Arrived) -> bool {
        let mut at = 0;
        while let Some(length) = self.bytes.get(at..at + LENGTH_BYTES) {
            let length = length.iter().fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte));
            if length > MESSAGE_BYTES_MAX {
                let cause = format!("a pickle of {length} bytes: at most {MESSAGE_BYTES_MAX}");
                port.refuse("pickle_too_long", b"a message", &cause);
                self.bytes = Vec::new();
                return false;
            }
            let from = at + LENGTH_BYTES;
            let Some(message) = self.bytes.get(from..from + length) else { break };
            port.read_pickle(message, arrived);
            at = from + length;
        }
        self.keep(at);
        true
    }

    /// Keeps what begins at `from`, in no more memory than it needs.
    fn keep(&mut self, from: usize) {
        match from {
            // The rest of a long message follows.
            0 if !self.bytes.is_empty() => {}
            _ => self.bytes = self.bytes[from..].to_vec(),
        }
    }
}
