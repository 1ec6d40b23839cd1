//! Another node, as one that is asked: a few connections, with many requests in flight on each.
//!
//! Nothing is connected before something is asked, and a lost connection is made again by the next request. While that
//! fails, requests fail at once, for longer and longer: the caller looks for another node. An answer comes by a callback, on a
//! thread of the peer, which must not block.

use std::collections::HashMap;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use store::transfer::DecodeError;

use crate::frames::{Arrival, Inbox, Kind, Outbox};
use crate::handshake::{self, Called, Membership};
use crate::lock::lock;
use crate::room::{Room, Taken};
use crate::routes::NodeAddress;
use crate::stream::{ReadHalf, Stream};
use crate::wire::{Letter, Told};

/// Connections to a node. Requests of one partition share one, so that they arrive in their order.
const LANES: usize = 2;
/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// A node of which nothing is heard for so long is lost; it shows each second that it lives.
const SILENCE_MAX: Duration = Duration::from_secs(4);
/// After a failed connection, how long nothing is tried: at first, and at most.
const BACKOFF: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];
/// How often requests are looked for whose time is over.
const SWEEP_EVERY: Duration = Duration::from_millis(200);

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// The node has not got the request.
    Unsent(String),
    /// It may have done it.
    Unknown(String),
    /// The node has not got it: it speaks this version of the protocol, which has no such request.
    Older(u8),
}

impl NoAnswer {
    /// What a node of an older version cannot be asked, for people.
    pub(crate) fn older(version: u8) -> String {
        format!(
            "it has version {version} of the protocol between nodes, which lacks this request: upgrade it"
        )
    }
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Received {
    /// The version of its connection.
    version: u8,
    bytes: Vec<u8>,
}

impl Received {
    /// What it says.
    ///
    /// # Errors
    /// When the bytes are malformed.
    pub(crate) fn told(&self) -> Result<Told, DecodeError> {
        Told::decode(&self.bytes, self.version)
    }
}

/// Called once.
pub(crate) type OnAnswer = Box<dyn FnOnce(Result<Received, NoAnswer>) + Send>;

/// A request without its answer.
struct Waiting {
    on: OnAnswer,
    until: Instant,
    _taken: Taken,
}

struct LaneState {
    /// With its version.
    connection: Option<(Arc<Outbox>, u8)>,
    /// Requests for which the connection is being made.
    queued: Vec<(u64, Letter)>,
    waiting: HashMap<u64, Waiting>,
    next_number: u64,
    /// Before then, no connection is tried.
    retry_at: Instant,
    backoff: Duration,
    trouble: String,
    is_stopping: bool,
}

/// One connection.
struct Lane {
    node: NodeAddress,
    membership: Membership,
    state: Mutex<LaneState>,
    changed: Condvar,
}

/// Another node.
pub(crate) struct Peer {
    lanes: [Arc<Lane>; LANES],
    threads: Mutex<Vec<JoinHandle<()>>>,
    room: Arc<Room>,
}

impl Peer {
    /// A node that is asked. `bytes_max`: of requests in flight; who asks more waits.
    ///
    /// # Errors
    /// The system's, when there can be no more threads.
    pub(crate) fn new(node: &NodeAddress, membership: &Membership, bytes_max: usize) -> io::Result<Self> {
        let lane = || Arc::new(Lane::new(node.clone(), membership.clone()));
        let peer = Peer { lanes: [lane(), lane()], threads: Mutex::default(), room: Room::new(bytes_max) };
        for lane in &peer.lanes {
            let lane = Arc::clone(lane);
            let name = format!("to {}", node.name);
            let thread = std::thread::Builder::new().name(name).spawn(move || lane.run())?;
            lock(&peer.threads).push(thread);
        }
        Ok(peer)
    }

    /// Sends a request about a partition. Waits, if at all, for room. The callback is called by `until`, or a little later.
    pub(crate) fn ask(&self, partition: u32, request: Letter, until: Instant, on: OnAnswer) {
        match self.room.take(request.bytes.len(), until) {
            Some(taken) => self.lanes[partition as usize % LANES].ask(request, until, on, taken),
            None => on(Err(NoAnswer::Unsent("too much waits for it already".to_owned()))),
        }
    }

    /// Ends all connections; what has no answer gets none.
    pub(crate) fn stop(&self) {
        for lane in &self.lanes {
            lane.stop();
        }
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            // A callback may drop the last reference to this.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Lane {
    fn new(node: NodeAddress, membership: Membership) -> Self {
        let state = LaneState {
            connection: None,
            queued: Vec::new(),
            waiting: HashMap::new(),
            next_number: 1,
            retry_at: Instant::now(),
            backoff: BACKOFF[0],
            trouble: String::new(),
            is_stopping: false,
        };
        Lane { node, membership, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn ask(&self, request: Letter, until: Instant, on: OnAnswer, taken: Taken) {
        let mut state = lock(&self.state);
        let unsent = |why: &str| Some(NoAnswer::Unsent(why.to_owned()));
        let refused = match state.is_stopping {
            true => unsent("this node is stopping"),
            false if state.connection.is_none() && Instant::now() < state.retry_at => unsent(&state.trouble),
            false => match state.connection {
                Some((_, version)) if version < request.since => Some(NoAnswer::Older(version)),
                _ => None,
            },
        };
        if let Some(why) = refused {
            drop(state);
            return on(Err(why));
        }
        let number = state.next_number;
        state.next_number += 1;
        state.waiting.insert(number, Waiting { on, until, _taken: taken });
        match state.connection.clone() {
            // A connection that has just been closed fails its requests soon.
            Some((outbox, _)) => drop(outbox.push(number, request.bytes)),
            None => {
                state.queued.push((number, request));
                self.changed.notify_all();
            }
        }
    }

    fn stop(&self) {
        let mut state = lock(&self.state);
        state.is_stopping = true;
        if let Some((outbox, _)) = &state.connection {
            outbox.close();
        }
        self.changed.notify_all();
    }

    /// The lane's thread: connects when something is to be sent, and sends.
    fn run(self: Arc<Self>) {
        loop {
            let mut state = lock(&self.state);
            while state.queued.is_empty() && !state.is_stopping {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let is_stopping = state.is_stopping;
            drop(state);
            match self.connect() {
                _ if is_stopping => {
                    self.fail_queued("this node is stopping".to_owned());
                    return;
                }
                Ok((stream, version)) => self.serve(stream, version),
                Err(error) => self.fail_queued(error.to_string()),
            }
        }
    }

    fn connect(&self) -> io::Result<(Stream, u8)> {
        if lock(&self.state).is_stopping {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let older = match self.call(self.membership.newest())? {
            (stream, Called::Speaks(version)) => return Ok((stream, version)),
            (_, Called::Older(version)) => version,
        };
        match self.call(older)? {
            (stream, Called::Speaks(version)) => {
                tracing::info!(node = %self.node.name, version, "this node speaks an older version of the protocol between nodes: upgrade it, too");
                Ok((stream, version))
            }
            (_, Called::Older(_)) => {
                Err(io::Error::other("it says another version of the protocol each time"))
            }
        }
    }

    fn call(&self, version: u8) -> io::Result<(Stream, Called)> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the address names no machine");
        for address in self.node.address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_MAX) {
                Ok(socket) => return self.greet(socket, version),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn greet(&self, socket: TcpStream, version: u8) -> io::Result<(Stream, Called)> {
        let tls = match &self.membership.tls {
            None => None,
            Some(tls) => {
                let host = self.node.address.rsplit_once(':').map_or("", |(host, _)| host);
                let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
                let host = ServerName::try_from(host).map_err(io::Error::other)?;
                let session =
                    ClientConnection::new(Arc::clone(&tls.client), host).map_err(io::Error::other)?;
                Some(session.into())
            }
        };
        let mut stream = Stream::new(socket, tls)?;
        let called = handshake::call(&mut stream, &self.membership, version)?;
        Ok((stream, called))
    }

    /// No connection: what waits for one fails, and what comes soon.
    fn fail_queued(&self, why: String) {
        let mut state = lock(&self.state);
        let numbers = std::mem::take(&mut state.queued);
        let failed: Vec<_> = numbers.iter().filter_map(|(number, _)| state.waiting.remove(number)).collect();
        state.retry_at = Instant::now() + state.backoff;
        state.backoff = (state.backoff * 2).min(BACKOFF[1]);
        state.trouble.clone_from(&why);
        drop(state);
        for waiting in failed {
            (waiting.on)(Err(NoAnswer::Unsent(why.clone())));
        }
    }

    /// Sends and receives until the connection ends.
    fn serve(self: &Arc<Self>, stream: Stream, version: u8) {
        let Stream { read, mut write, closer, .. } = stream;
        let outbox = Arc::new(Outbox::new(Kind::Ask));
        let mut state = lock(&self.state);
        state.backoff = BACKOFF[0];
        let mut too_new = Vec::new();
        for (number, request) in std::mem::take(&mut state.queued) {
            match request.since <= version {
                true => drop(outbox.push(number, request.bytes)),
                false => too_new.extend(state.waiting.remove(&number)),
            }
        }
        if state.is_stopping {
            outbox.close();
        }
        state.connection = Some((Arc::clone(&outbox), version));
        drop(state);
        for waiting in too_new {
            (waiting.on)(Err(NoAnswer::Older(version)));
        }
        let (lane, theirs) = (Arc::clone(self), Arc::clone(&outbox));
        let reader = std::thread::Builder::new().name(format!("from {}", self.node.name)).spawn(move || {
            let why = lane.receive(read, &theirs, version);
            theirs.close();
            why
        });
        match reader {
            Ok(reader) => {
                outbox.write_to(&mut write);
                let _ = closer.shutdown(std::net::Shutdown::Both);
                let why = reader.join().unwrap_or_default();
                self.lose_all(&why);
            }
            Err(error) => self.lose_all(&error.to_string()),
        }
    }

    /// The connection is lost, and with it the answers of what was sent.
    fn lose_all(&self, why: &str) {
        let mut state = lock(&self.state);
        state.connection = None;
        let lost = std::mem::take(&mut state.waiting);
        drop(state);
        for waiting in lost.into_values() {
            (waiting.on)(Err(NoAnswer::Unknown(why.to_owned())));
        }
    }

    /// Receives answers until the connection fails; says why it did.
    fn receive(&self, mut read: ReadHalf, outbox: &Outbox, version: u8) -> String {
        let mut inbox = Inbox::new(Kind::Told);
        let mut swept = Instant::now();
        loop {
            match inbox.next(&mut read, SILENCE_MAX) {
                Ok(Arrival::Message(number, bytes)) => {
                    let waiting = lock(&self.state).waiting.remove(&number);
                    if let Some(waiting) = waiting {
                        (waiting.on)(Ok(Received { version, bytes }));
                    }
                }
                Ok(Arrival::Nothing) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return "it ended the connection".to_owned();
                }
                Err(error) => return error.to_string(),
            }
            if outbox.is_closed() {
                return "the connection failed".to_owned();
            }
            if swept.elapsed() >= SWEEP_EVERY {
                swept = Instant::now();
                self.sweep(swept);
            }
        }
    }

    /// Ends the wait of requests whose time is over.
    fn sweep(&self, now: Instant) {
        let mut state = lock(&self.state);
        let over: Vec<u64> = state
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.until <= now)
            .map(|(number, _)| *number)
            .collect();
        let over: Vec<_> = over.iter().filter_map(|number| state.waiting.remove(number)).collect();
        drop(state);
        for waiting in over {
            (waiting.on)(Err(NoAnswer::Unknown("it does not answer in time".to_owned())));
        }
    }
}

#[cfg(test)]
mod tests;
