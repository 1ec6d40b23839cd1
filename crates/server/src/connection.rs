//! Connections: sessions without I/O ([`session`]), driven by a task ([`task`]) or a thread ([`thread`]).

pub mod chunk;
pub mod command;
pub mod encrypted;
pub mod inbox;
pub mod refusal;
pub mod session;
pub mod task;
pub mod thread;

use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use protocol::rrdcached::command::Permissions;

use self::command::create;
use self::inbox::{Inbox, ReplyTo};
use self::refusal::Refusal;
use self::session::{Effect, Input, Session, StoreReply};
use crate::access::{Access, Principal};
use crate::budget::{Fixed, Share};
use crate::limits::{
    ANSWER_BYTES_HELD, CONNECTION_BYTES, HELD_FREELY, READ_BYTES, READ_BYTES_SHORT, TOKENS_LOOK_EVERY,
};
use crate::metrics::DropReason;
use crate::peer::Peer;
use crate::service::{Service, Turn};
use crate::tls::port::TLS_HANDSHAKE;

/// What a listener allows its clients.
#[derive(Debug)]
pub struct ListenerRights {
    /// The commands; a reload changes them.
    pub permissions: RwLock<Permissions>,
    /// Who they are as long as they do not say it.
    pub anonymous: Arc<Principal>,
}

impl ListenerRights {
    /// The commands that a client may give.
    fn of(&self, who: &Principal) -> Permissions {
        who.commands(*self.permissions.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Who a client is that has not said it yet.
    fn who(&self, access: &Access, peer: &Peer) -> Arc<Principal> {
        access.of_peer(peer).unwrap_or_else(|| Arc::clone(&self.anonymous))
    }
}

/// What a listener allows, shared by its connections.
pub type SharedPermissions = Arc<ListenerRights>;

/// A session with its read buffer and the store's replies, as both drivers need them. An idle one holds no
/// buffer.
pub struct Connection {
    /// All of the store.
    root: Arc<Service>,
    /// What the client may see of it.
    service: Arc<Service>,
    /// Who the client is, and when that was last looked at.
    who: Arc<Principal>,
    looked: Instant,
    permissions: SharedPermissions,
    peer: Peer,
    /// Bytes that its stream holds, and whether those are a part of something.
    beneath: (usize, bool),
    session: Session,
    inbox: Arc<Inbox>,
    /// Bytes received; those before `used` are processed.
    buffer: Vec<u8>,
    used: usize,
    /// The connection has its own thread, where a blocking call delays no other connection.
    has_thread: bool,
    /// Permission for the call that follows.
    turn: Option<Turn>,
    /// What it holds of the memory for clients.
    share: Share,
    /// What any connection takes of it.
    _fixed: Fixed,
    /// Writing to the client failed. What it sent before is still processed.
    broken: Option<io::Error>,
}

/// What a driver has to do with its socket next.
#[derive(Debug, PartialEq, Eq)]
pub enum NextIo {
    /// Wait for the store, then call [`Connection::replied`].
    Wait,
    /// Wait for a turn ([`Connection::turn`]) to call the store, then call [`Connection::got_turn`].
    Turn,
    /// Write the session's output, then call [`Connection::wrote`].
    Write,
    /// Read into [`Connection::room`], or sleep.
    Read,
    /// The client switches to frames.
    Frames,
    /// Close the connection.
    End,
}

impl Connection {
    fn new(service: Arc<Service>, permissions: SharedPermissions, peer: Peer) -> Self {
        let (root, who) = (Arc::clone(&service), permissions.who(&service.access, &peer));
        let service = root.seen_by(&who);
        let session = Session::new(Arc::clone(&service));
        let (inbox, buffer, share) = (Arc::default(), Vec::new(), service.memory.share());
        let (has_thread, turn, broken) = (false, None, None);
        let _fixed = service.memory.fix(CONNECTION_BYTES);
        Connection {
            root,
            service,
            who,
            looked: Instant::now(),
            permissions,
            peer,
            beneath: (0, false),
            session,
            inbox,
            buffer,
            used: 0,
            has_thread,
            turn,
            share,
            _fixed,
            broken,
        }
    }

    /// Whether the first bytes of a client are those of TLS.
    fn begins_tls(&self) -> bool {
        self.buffer.starts_with(&[TLS_HANDSHAKE, 3])
    }

    /// Does everything that needs no socket, until something does.
    fn next(&mut self, input: Input) -> NextIo {
        // A client that reads no answers is served until it pauses.
        let input = if self.broken.is_some() && input == Input::Dry { Input::End } else { input };
        loop {
            let (used, effect) = self.session.next(&self.buffer[self.used..], input);
            self.used += used;
            // For this effect only.
            let turn = self.turn.take();
            match effect {
                Effect::Update(ticket, batch) => {
                    let reply = ReplyTo::new(&self.inbox, ticket);
                    let reply = Box::new(move |failures| reply.send(StoreReply::Updated(failures)));
                    self.service.engine.update(batch, reply);
                }
                Effect::Turn(_) if self.has_thread => self.got_turn(Turn::Own),
                Effect::Turn(wait) => match self.service.calls.try_turn(wait) {
                    Some(turn) => self.got_turn(turn),
                    None => return NextIo::Turn,
                },
                Effect::Auth(token) => {
                    let token = token.into_owned();
                    self.authenticate(&token);
                }
                Effect::Create(ticket, name, words) => {
                    create::create(&self.service, &name, words, ReplyTo::new(&self.inbox, ticket));
                }
                Effect::Ask(ask) if self.broken.is_some() && ask.only_reads() => {
                    self.session.answered(Err(Refusal::new(DropReason::Unfinished, "the client has gone")));
                }
                Effect::Ask(ask) => {
                    let service = &*self.service;
                    let (kept, out) = self.session.answer_space();
                    let answer = || command::answer(service, ask, kept, out);
                    let mut result = match turn {
                        Some(turn) => turn.run(answer),
                        None => answer(),
                    };
                    let held = self.session.held();
                    if held > 2 * ANSWER_BYTES_HELD && !self.share.try_resize(held as u64) {
                        result = Err(Refusal::no_memory("this answer", held as u64, &self.share));
                    }
                    self.session.answered(result);
                }
                Effect::More => {
                    let (kept, out) = self.session.answer_space();
                    let more = || command::rest::push_more(&self.service, kept, out);
                    let result = turn.unwrap_or(Turn::Own).run(more);
                    self.session.continued(result);
                }
                Effect::Room => {
                    let bytes = 2 * ANSWER_BYTES_HELD + self.buffer.capacity();
                    if self.share.try_resize(bytes as u64) {
                        self.session.make_room();
                    }
                }
                Effect::Wait => {
                    let replies = self.inbox.take();
                    if replies.is_empty() {
                        return NextIo::Wait;
                    }
                    self.replied(replies);
                }
                Effect::Write if self.broken.is_some() => self.session.abandon(),
                Effect::Write => return NextIo::Write,
                Effect::Read => return NextIo::Read,
                Effect::Frames(_) => return NextIo::Frames,
                Effect::End => return NextIo::End,
            }
        }
    }

    /// From now on, the client is the one that has this token.
    fn authenticate(&mut self, token: &[u8]) {
        let Some(who) = self.root.access.of_token(token) else {
            self.root.metrics.authentications_refused.inc();
            self.root.access.refused(&self.peer.to_string(), "a token that is not known");
            let text = "this token is not known, or has ended";
            return self.session.authenticated(Err(Refusal::new(DropReason::Permission, text)));
        };
        self.service = self.root.seen_by(&who);
        self.session.allow(self.permissions.of(&who));
        self.session.authenticated(Ok((&who.name, &self.service)));
        self.who = who;
    }

    fn got_turn(&mut self, turn: Turn) {
        self.turn = Some(turn);
        self.session.take_turn();
    }

    fn replied(&mut self, replies: Vec<(session::Ticket, StoreReply)>) {
        for (ticket, reply) in replies {
            self.session.replied(ticket, reply);
        }
    }

    fn wrote(&mut self, result: io::Result<()>) {
        self.service.metrics.sent_bytes.inc_by(self.session.output().len() as u64);
        self.session.written();
        self.share_reading();
        self.broken = result.err();
        if self.broken.is_some() {
            self.session.abandon();
        }
    }

    /// Takes a share of the memory for clients before it waits for its own.
    ///
    /// # Errors
    /// When too much is held already: the connection ends.
    fn hold(&mut self) -> io::Result<()> {
        let held = self.session.held() + self.buffer.capacity() + self.beneath.0;
        let share = if held > HELD_FREELY { held as u64 } else { 0 };
        match self.share.bytes() == share || self.share.try_resize(share) {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::OutOfMemory, "clients hold too much memory")),
        }
    }

    /// How long the client may be silent now: in the middle of something not for ever.
    fn patience(&self) -> Option<Duration> {
        (self.used < self.buffer.len() || self.session.is_open() || self.beneath.1)
            .then_some(self.service.idle)
    }

    /// The buffer, with room for more. Called when the client has sent something; also applies the current
    /// permissions.
    fn room(&mut self) -> &mut Vec<u8> {
        self.look_again();
        self.session.allow(self.permissions.of(&self.who));
        self.buffer.drain(..self.used);
        self.used = 0;
        if self.buffer.capacity() < READ_BYTES {
            // While clients hold much, one that sends is served in small parts.
            if self.share.try_resize(READ_BYTES as u64) {
                let mut buffer = self.service.buffers.take();
                buffer.append(&mut self.buffer);
                self.buffer = buffer;
            } else {
                self.buffer.reserve_exact(READ_BYTES_SHORT);
            }
        }
        if self.buffer.capacity() - self.buffer.len() < READ_BYTES_SHORT / 2 {
            self.buffer.reserve(READ_BYTES);
        }
        &mut self.buffer
    }

    /// Ends the connection of a client whose token was revoked, or has ended.
    fn look_again(&mut self) {
        if !Access::can_change(&self.who) || self.looked.elapsed() < TOKENS_LOOK_EVERY {
            return;
        }
        self.looked = Instant::now();
        if !self.root.access.is_known(&self.who) {
            self.who = Principal::without_rights();
            self.service = self.root.seen_by(&self.who);
            self.broken.get_or_insert(io::Error::new(io::ErrorKind::PermissionDenied, "its token has ended"));
        }
    }

    /// What it takes of the budget while it reads and has nothing to write: a large buffer.
    fn share_reading(&mut self) {
        let bytes = if self.buffer.capacity() >= READ_BYTES { self.buffer.capacity() } else { 0 };
        if self.share.bytes() != bytes as u64 {
            self.share.resize(bytes as u64);
        }
    }

    /// Handles the result of a read; returns what the session may expect.
    fn read(&mut self, result: io::Result<usize>) -> Input {
        match result {
            Ok(0) => {
                if self.used < self.buffer.len() {
                    self.service.metrics.drop_line(DropReason::Unfinished);
                }
                Input::End
            }
            Ok(count) => {
                self.service.metrics.received_bytes.inc_by(count as u64);
                if self.session.held() > 4 * ANSWER_BYTES_HELD
                    && let Err(error) = self.hold()
                {
                    self.broken.get_or_insert(error);
                    return Input::End;
                }
                Input::More
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => Input::Dry,
                io::ErrorKind::Interrupted => Input::More,
                _ => {
                    self.broken.get_or_insert(error);
                    Input::End
                }
            },
        }
    }

    /// Prepares for sleep: copies a partial request to a vector of its own size, so that others can use the
    /// buffer.
    ///
    /// # Errors
    /// When that is more than there is memory for: the connection ends.
    fn rest(&mut self) -> io::Result<()> {
        self.session.rest_for_now();
        self.shrink();
        self.hold()
    }

    /// Prepares to wait until the client reads on.
    ///
    /// # Errors
    /// When what it holds is more than there is memory for: the connection ends.
    fn rest_in_answer(&mut self) -> io::Result<()> {
        self.shrink();
        self.hold()
    }

    fn shrink(&mut self) {
        if self.buffer.capacity() >= READ_BYTES {
            let partial = self.buffer[self.used..].to_vec();
            self.service.buffers.give(std::mem::replace(&mut self.buffer, partial));
            self.used = 0;
        } else if self.buffer.capacity() > 0 {
            self.buffer.drain(..self.used);
            self.buffer.shrink_to_fit();
            self.used = 0;
        }
    }

    fn result(self) -> io::Result<()> {
        self.broken.map_or(Ok(()), Err)
    }
}
