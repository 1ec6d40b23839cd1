//! The side that is asked by other nodes: it takes their connections, and has the stores of its partitions do what they ask.
//!
//! A connection has two threads. The first reads requests in order; updates and creations it gives to the store itself, so that they keep that
//! order and its back-pressure, all else to a few threads of all connections. The second sends answers, in any order. Strangers
//! are bounded in number, time and bytes before they have shown that they know the secret; nodes in what they have in flight.

mod copies;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustls::ServerConnection;
use store::engine::{Engine, StoreError};

use self::copies::Copies;
use crate::chores::Chores;
use crate::engine::passes;
use crate::execute;
use crate::frames::{Arrival, Inbox, Kind, Outbox};
use crate::handshake::{self, Membership};
use crate::lock::lock;
use crate::room::{Room, Taken};
use crate::routes::Routes;
use crate::stream::Stream;
use crate::wire::{Answer, Ask, Request, Told};

/// Connections of nodes at once: two from each of a few hundred.
const CONNECTIONS_MAX: usize = 1024;
/// Connections that have not shown yet whose they are.
const STRANGERS_MAX: usize = 32;
/// A node of which nothing is heard for so long is lost.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Threads for requests that wait for a disk or a shard.
const THREADS: usize = 16;
/// Bytes of requests that are not answered yet, of all connections.
const REQUEST_BYTES_MAX: usize = 256 << 20;
/// Bytes of answers that one connection has not taken yet, before no more requests are read from it.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// After an `accept` that failed, for want of file descriptors for example.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What all connections share.
struct House {
    membership: Membership,
    routes: Arc<dyn Routes>,
    chores: Chores,
    copies: Copies,
    room: Arc<Room>,
    is_stopping: AtomicBool,
    strangers: AtomicUsize,
    connections: Mutex<HashMap<u64, TcpStream>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Listens for other nodes, until it is stopped or dropped.
pub struct Listener {
    house: Arc<House>,
    address: SocketAddr,
    acceptor: Mutex<Option<JoinHandle<()>>>,
}

impl Listener {
    /// Starts listening on a bound socket.
    ///
    /// # Errors
    /// The system's, when there can be no more threads.
    pub fn start(socket: TcpListener, membership: Membership, routes: Arc<dyn Routes>) -> io::Result<Self> {
        let address = socket.local_addr()?;
        let house = Arc::new(House {
            membership,
            routes,
            chores: Chores::start("for nodes", THREADS)?,
            copies: Copies::default(),
            room: Room::new(REQUEST_BYTES_MAX),
            is_stopping: AtomicBool::new(false),
            strangers: AtomicUsize::new(0),
            connections: Mutex::default(),
            threads: Mutex::default(),
        });
        let accepting = Arc::clone(&house);
        let acceptor = std::thread::Builder::new()
            .name("nodes".to_owned())
            .spawn(move || accept(&accepting, &socket))?;
        Ok(Listener { house, address, acceptor: Mutex::new(Some(acceptor)) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections and threads. Requests that were begun are done; their answers may not leave. Idempotent.
    pub fn stop(&self) {
        self.house.is_stopping.store(true, Ordering::SeqCst);
        let Some(acceptor) = lock(&self.acceptor).take() else { return };
        // Wakes the acceptor.
        let _ = TcpStream::connect_timeout(&reachable(self.address), Duration::from_secs(1));
        let _ = acceptor.join();
        for connection in lock(&self.house.connections).values() {
            let _ = connection.shutdown(Shutdown::Both);
        }
        self.house.chores.stop();
        for thread in std::mem::take(&mut *lock(&self.house.threads)) {
            let _ = thread.join();
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop();
    }
}

/// An address at which this machine reaches a socket that may be bound to all of its addresses.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    address
}

fn accept(house: &Arc<House>, socket: &TcpListener) {
    let mut number = 0;
    while !house.is_stopping.load(Ordering::SeqCst) {
        let Ok((connection, from)) = socket.accept() else {
            std::thread::sleep(ACCEPT_PAUSE);
            continue;
        };
        let is_full = lock(&house.connections).len() >= CONNECTIONS_MAX;
        if is_full || house.strangers.load(Ordering::SeqCst) >= STRANGERS_MAX {
            tracing::warn!(%from, "too many connections of nodes: this one is refused");
            continue;
        }
        number += 1;
        house.admit(number, connection, from);
        lock(&house.threads).retain(|thread| !thread.is_finished());
    }
}

/// Counts a stranger, until it is known or gone.
struct Stranger(Arc<House>);

impl Stranger {
    fn new(house: &Arc<House>) -> Self {
        house.strangers.fetch_add(1, Ordering::SeqCst);
        Stranger(Arc::clone(house))
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.0.strangers.fetch_sub(1, Ordering::SeqCst);
    }
}

impl House {
    /// Starts the thread of a connection.
    fn admit(self: &Arc<Self>, number: u64, connection: TcpStream, from: SocketAddr) {
        let Ok(closer) = connection.try_clone() else { return };
        let stranger = Stranger::new(self);
        lock(&self.connections).insert(number, closer);
        let house = Arc::clone(self);
        let spawned = std::thread::Builder::new().name("node".to_owned()).spawn(move || {
            match house.greet(connection, stranger) {
                Ok((stream, node, version)) => house.serve(stream, &node, version),
                Err(error) => tracing::warn!(%from, %error, "a connection for nodes is refused"),
            }
            lock(&house.connections).remove(&number);
        });
        match spawned {
            Ok(thread) => lock(&self.threads).push(thread),
            Err(error) => {
                tracing::warn!(%from, %error, "no thread for a connection of a node");
                lock(&self.connections).remove(&number);
            }
        }
    }

    fn greet(&self, connection: TcpStream, _stranger: Stranger) -> io::Result<(Stream, String, u8)> {
        let tls = match &self.membership.tls {
            Some(tls) => {
                Some(ServerConnection::new(Arc::clone(&tls.server)).map_err(io::Error::other)?.into())
            }
            None => None,
        };
        let mut stream = Stream::new(connection, tls)?;
        let (node, version) = handshake::answer(&mut stream, &self.membership)?;
        Ok((stream, node, version))
    }

    /// Reads and answers requests until the connection ends.
    fn serve(self: &Arc<Self>, stream: Stream, node: &str, version: u8) {
        let Stream { mut read, mut write, closer, .. } = stream;
        let outbox = Arc::new(Outbox::new(Kind::Told));
        let answers = Arc::clone(&outbox);
        let writer = std::thread::Builder::new().name(format!("to {node}")).spawn(move || {
            answers.write_to(&mut write);
            let _ = closer.shutdown(Shutdown::Both);
        });
        let Ok(writer) = writer else { return };
        let line = Line { outbox: Arc::clone(&outbox), version, refused: Refused::default() };
        let mut inbox = Inbox::new(Kind::Ask);
        while !self.is_stopping.load(Ordering::SeqCst) && !outbox.is_closed() {
            match inbox.next(&mut read, SILENCE_MAX) {
                Ok(Arrival::Message(number, bytes)) => self.take(number, &bytes, &line),
                Ok(Arrival::Nothing) => {}
                Err(error) => {
                    tracing::debug!(node, %error, "the connection of a node ended");
                    break;
                }
            }
            outbox.wait_below(ANSWER_BYTES_MAX);
        }
        outbox.close();
        let _ = writer.join();
    }

    /// Room for a request; `None` at the end.
    fn room_for(&self, bytes: &[u8], outbox: &Outbox) -> Option<Taken> {
        loop {
            let until = Instant::now() + Duration::from_millis(200);
            if let Some(taken) = self.room.take(bytes.len(), until) {
                return Some(taken);
            }
            if self.is_stopping.load(Ordering::SeqCst) || outbox.is_closed() {
                return None;
            }
        }
    }

    /// Does what a request asks, or has it done.
    fn take(self: &Arc<Self>, number: u64, bytes: &[u8], line: &Line) {
        let Line { outbox, version, refused } = line;
        let (outbox, version) = (Arc::clone(outbox), *version);
        let Some(taken) = self.room_for(bytes, &outbox) else { return };
        let (engine, Ask { partition, round, request, .. }) = match self.addressee(bytes, line) {
            Ok(found) => found,
            Err(told) => {
                outbox.push(number, told.encode(version));
                return;
            }
        };
        // As of before it is answered.
        let age = if request.needs_leader() { None } else { self.routes.age(partition) };
        let answers = Arc::clone(&outbox);
        let reply = move |result: Result<Answer, StoreError>| {
            let told = match result {
                Ok(answer) => Told::Answer(answer, age),
                Err(error) => Told::Refused(error),
            };
            answers.push(number, told.encode(version));
            drop(taken);
        };
        if execute::is_quick(&request) {
            let refused = refused.clone();
            let answered = move |result: Result<Answer, StoreError>| {
                if let Ok(Answer::Failures(failures)) = &result
                    && failures.iter().any(|failure| passes(&failure.error))
                {
                    refused.note(partition, round);
                }
                reply(result);
            };
            execute::run(&*engine, request, Box::new(answered));
            return;
        }
        let house = Arc::clone(self);
        self.chores.now(move || {
            let answer = || match house.copies.answer(&*house.routes, partition, &request) {
                Some(answer) => answer,
                None => match request {
                    Request::Check(request) => {
                        // Who puts a store aside waits until nothing uses it.
                        drop(engine);
                        house.routes.check(partition, request).map(Answer::Check)
                    }
                    request => execute::answer(&*engine, request),
                },
            };
            match catch_unwind(AssertUnwindSafe(answer)) {
                Ok(result) => reply(result),
                // It ends the connection of who asked, as elsewhere.
                Err(_) => outbox.close(),
            }
        });
    }

    /// The store that a request is for, or why there is none.
    fn addressee(&self, bytes: &[u8], line: &Line) -> Result<(Arc<dyn Engine>, Ask), Box<Told>> {
        let Line { version, refused, .. } = line;
        let ask = Ask::decode(bytes).map_err(|error| Box::new(Told::Unreadable(error.to_string())))?;
        if ask.request.since() > *version {
            let why = format!("it is none of version {version}, which both speak");
            return Err(Box::new(Told::Unreadable(why)));
        }
        if ask.partition >= self.routes.partition_count() {
            return Err(Box::new(Told::Absent));
        }
        let is_update = matches!(ask.request, Request::Update(_));
        if is_update && refused.has(ask.partition, ask.round) {
            return Err(Box::new(self.not_leader(ask.partition)));
        }
        let found = match self.routes.local(ask.partition) {
            Some((engine, true)) => Ok(engine),
            Some((_, false)) if ask.leader_only || ask.request.needs_leader() => {
                Err(self.not_leader(ask.partition))
            }
            // It may lack more than a moment.
            Some((_, false)) if !self.routes.is_current(ask.partition) => Err(Told::Absent),
            Some((engine, false)) => Ok(engine),
            None if ask.leader_only => Err(self.not_leader(ask.partition)),
            None => Err(Told::Absent),
        };
        if is_update && found.is_err() {
            refused.note(ask.partition, ask.round);
        }
        found.map(|engine| (engine, ask)).map_err(Box::new)
    }

    fn not_leader(&self, partition: u32) -> Told {
        let leader = self.routes.route(partition).leader;
        Told::NotLeader(leader.map(|node| (node.name, node.address)))
    }
}

/// A connection on which requests come.
struct Line {
    outbox: Arc<Outbox>,
    /// The version that both sides speak.
    version: u8,
    refused: Refused,
}

/// For each partition, the last round of a connection's updates of which one was not taken.
#[derive(Clone, Default)]
struct Refused(Arc<Mutex<HashMap<u32, u64>>>);

impl Refused {
    fn note(&self, partition: u32, round: u64) {
        let mut rounds = lock(&self.0);
        let last = rounds.entry(partition).or_default();
        *last = round.max(*last);
    }

    fn has(&self, partition: u32, round: u64) -> bool {
        lock(&self.0).get(&partition).is_some_and(|&last| round <= last)
    }
}
