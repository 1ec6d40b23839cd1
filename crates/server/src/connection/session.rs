//! One client's session without I/O: bytes in, effects out.
//!
//! A driver ([`super::task`] or [`super::thread`]) passes in what the client sent and does what
//! [`Session::next`] returns: send updates to the store, query it, wait for it, write, read. So order,
//! batching, limits and back-pressure are decided here, for text and frames alike, and tested without
//! sockets.
//!
//! Invariants: answers leave in the order of the requests, in whatever order the store replies; the answers
//! to a burst of requests leave in as few writes as possible (gmetad wants one segment per answer); no error
//! ends the session except bytes that are not a frame. Updates are sent in chunks, and the session waits for
//! their replies only when an answer is due; any other command except CREATE waits for everything before it.
//!
//! Cost of an ordinary UPDATE line: no allocation; see `examples/parse_speed.rs`.
#![allow(clippy::result_large_err, reason = "a step leaves at once; a box would be an allocation per chunk")]

mod frames;
mod queue;
mod text;

use std::sync::Arc;

use protocol::frames::{OTHER_VERSIONS, VERSION};
use protocol::rrdcached::command::{Command, Permissions};
use protocol::rrdcached::reply;
use protocol::rrdcached::request::{Request, Word, split};
use protocol::rrdcached::update::UpdateWords;
use protocol::rrdcached::words::Words;
use store::engine::{StoreError, UpdateBatch};

use self::frames::Frames;
use self::queue::Queue;
pub use self::queue::{StoreReply, Ticket};
use self::text::Text;
use super::chunk::Outcome;
use super::command::update::{self, RefusedUpdate};
use super::command::{Ask, Kept, Wait};
use super::refusal::{Refusal, reason};
use crate::limits::{
    ANSWER_BYTES_AT_REST, ANSWER_BYTES_HELD, ANSWER_BYTES_KEPT_SHORT, ANSWER_BYTES_SHORT,
    CHUNKS_IN_FLIGHT_MAX,
};
use crate::metrics::DropReason;
use crate::service::Service;

/// What the driver must do next.
#[derive(Debug)]
pub enum Effect<'b> {
    /// Send these updates to the store; pass its reply to [`Session::replied`] with the ticket.
    Update(Ticket, UpdateBatch),
    /// Create an RRD with this name and these arguments, and pass on the reply in the same way.
    Create(Ticket, Word<'b>, Words<'b>),
    /// What follows may block so long: get a turn, and call [`Session::take_turn`].
    Turn(Wait),
    /// Find out who has this token, and call [`Session::authenticated`] at once.
    Auth(Word<'b>),
    /// Append the answer to [`Session::answer_space`] and call [`Session::answered`] at once.
    Ask(Ask<'b>),
    /// Append more of the last answer to [`Session::answer_space`] and call [`Session::continued`] at once.
    More,
    /// Wait for a reply from the store.
    Wait,
    /// There is more to answer than little: call [`Session::make_room`] if there is memory for more at once.
    Room,
    /// Write [`Session::output`], then call [`Session::written`].
    Write,
    /// Read more; with [`Input::Dry`] everything due has been written and the driver may sleep.
    Read,
    /// The client switches to frames of this version; nothing has to be done.
    Frames(u32),
    /// The connection ends; everything due has been written.
    End,
}

/// What the driver knows about further bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// There may be more, so answers may wait for it.
    More,
    /// There are none at the moment.
    Dry,
    /// No more will arrive.
    End,
}

/// One client's requests and their answers.
pub struct Session {
    shared: Shared,
    codec: Codec,
    kept: Kept,
    /// The driver was asked for room since the last write.
    has_asked_for_room: bool,
}

/// The encoding of requests and answers.
#[derive(Debug)]
enum Codec {
    Text(Text),
    Frames(Frames),
}

/// State that both codecs use.
struct Shared {
    service: Arc<Service>,
    allowed: Permissions,
    queue: Queue,
    /// Answers to be written.
    out: Vec<u8>,
    /// No more requests are accepted.
    ended: bool,
    /// The next request may block.
    has_turn: bool,
}

/// The result of a codec's step.
#[derive(Debug)]
enum Step<'b> {
    /// Continue with the bytes after those used.
    Again,
    /// The driver has something to do.
    Do(Effect<'b>),
    /// No complete request is left.
    Rest,
}

impl Session {
    /// A session whose client has sent nothing yet, so it starts with text. It may do nothing before
    /// [`Session::allow`].
    pub fn new(service: Arc<Service>) -> Self {
        let (allowed, queue) = (Permissions::NONE, Queue::default());
        let shared = Shared { service, allowed, queue, out: Vec::new(), ended: false, has_turn: false };
        let (codec, kept) = (Codec::Text(Text::default()), Kept::default());
        Session { shared, codec, kept, has_asked_for_room: false }
    }

    /// Sets the client's permissions for the requests that follow.
    pub fn allow(&mut self, permissions: Permissions) {
        self.shared.allowed = permissions;
    }

    /// Processes `bytes`, which start where the previous call stopped. Returns how many were used, and what
    /// must be done before the next call.
    pub fn next<'b>(&mut self, bytes: &'b [u8], input: Input) -> (usize, Effect<'b>) {
        let next = self.advance(bytes, input);
        self.shared.has_turn = false;
        next
    }

    fn advance<'b>(&mut self, bytes: &'b [u8], input: Input) -> (usize, Effect<'b>) {
        let mut at = 0;
        loop {
            self.settle();
            if self.shared.out.len() > self.kept.answer_bytes_max {
                let asks = !std::mem::replace(&mut self.has_asked_for_room, true);
                return (at, if asks { Effect::Room } else { Effect::Write });
            }
            if self.kept.rest.is_some() {
                return (at, if self.shared.has_turn { Effect::More } else { Effect::Turn(Wait::Short) });
            }
            if self.shared.queue.len() > CHUNKS_IN_FLIGHT_MAX {
                return (at, Effect::Wait);
            }
            let (used, step) = match &mut self.codec {
                _ if self.shared.ended => (0, Step::Rest),
                Codec::Text(text) => text.step(&mut self.shared, &bytes[at..]),
                Codec::Frames(frames) => frames.step(&mut self.shared, &bytes[at..]),
            };
            at += used;
            let step = if matches!(step, Step::Rest) { self.rest(input) } else { step };
            if let Step::Do(effect) = step {
                if let Effect::Frames(version) = effect {
                    self.codec = Codec::Frames(Frames::new(version));
                    self.kept.is_framed = true;
                }
                return (at, effect);
            }
        }
    }

    /// What is due when no complete request is left.
    fn rest<'b>(&mut self, input: Input) -> Step<'b> {
        let ends = self.shared.ended || input == Input::End;
        let (waits, chunk_grows) = match &self.codec {
            // The commands of a BATCH are answered at its end.
            Codec::Text(text) => (ends || !text.in_batch(), !ends && input == Input::More),
            Codec::Frames(_) => (true, false),
        };
        let queue = &mut self.shared.queue;
        if chunk_grows {
            return Step::Do(Effect::Read);
        }
        if waits {
            if let Err(step) = queue.drained() {
                return step;
            }
        } else if !queue.chunk.is_empty() {
            return queue.send(None);
        }
        Step::Do(match ends {
            _ if !self.shared.out.is_empty() => Effect::Write,
            true => Effect::End,
            false => Effect::Read,
        })
    }

    /// Accepts the store's reply to an update or a CREATE; replies may come in any order.
    pub fn replied(&mut self, ticket: Ticket, reply: StoreReply) {
        self.shared.queue.replied(ticket, reply);
    }

    /// Appends the answers that are due in order.
    fn settle(&mut self) {
        while let Some((request, reply)) = self.shared.queue.pop() {
            match &mut self.codec {
                Codec::Text(text) => text.settle(&mut self.shared, request, reply),
                Codec::Frames(frames) => frames.settle(&mut self.shared, request, reply),
            }
        }
    }

    /// Where to append the answer to [`Effect::Ask`], and what is kept between requests.
    pub fn answer_space(&mut self) -> (&mut Kept, &mut Vec<u8>) {
        (&mut self.kept, &mut self.shared.out)
    }

    /// Completes [`Effect::Ask`]: the answer was appended, or refused.
    pub fn answered(&mut self, result: Result<(), Refusal>) {
        // In a BATCH, only errors are answered.
        if result.is_err() || matches!(&self.codec, Codec::Text(text) if text.in_batch()) {
            self.forget_rest();
        }
        match &mut self.codec {
            Codec::Text(text) => text.answered(&mut self.shared, result),
            Codec::Frames(frames) => frames.answered(&mut self.shared, result, self.kept.frame_bytes_left),
        }
    }

    /// Completes [`Effect::Auth`]: from now on, the client works with this service; or it is refused, and goes on as before.
    pub fn authenticated(&mut self, result: Result<(&str, &Arc<Service>), Refusal>) {
        let result = result.map(|(name, service)| {
            self.shared.service = Arc::clone(service);
            reply::push_status(&mut self.shared.out, 0, format!("authenticated as {name}").as_bytes());
        });
        self.answered(result);
    }

    /// Completes [`Effect::More`]. An answer that cannot be completed ends the session, because its client was told how
    /// long it would be.
    pub fn continued(&mut self, result: Result<(), StoreError>) {
        if let Err(error) = result {
            tracing::warn!(%error, "an answer ends early");
            self.shared.service.metrics.drop_line(reason(&error));
            self.forget_rest();
            self.shared.ended = true;
        }
    }

    /// The driver has a turn for the request that is processed by the next call of [`Session::next`].
    pub fn take_turn(&mut self) {
        self.shared.has_turn = true;
    }

    fn forget_rest(&mut self) {
        self.kept.rest = None;
        self.kept.frame_bytes_left = None;
    }

    /// The output to be written.
    pub fn output(&self) -> &[u8] {
        &self.shared.out
    }

    /// Until the next write, answers may grow to [`ANSWER_BYTES_HELD`].
    pub fn make_room(&mut self) {
        self.kept.answer_bytes_max = ANSWER_BYTES_HELD;
        let out = &mut self.shared.out;
        // Once, instead of doubling several times: it may wait to be read.
        out.reserve_exact((ANSWER_BYTES_HELD + ANSWER_BYTES_HELD / 8).saturating_sub(out.len()));
    }

    /// Bytes held for the client: answers, and the errors of a BATCH.
    pub fn held(&self) -> usize {
        let errors = match &self.codec {
            // At the end of the BATCH they become an answer of the same size.
            Codec::Text(text) => 2 * text.error_bytes(),
            Codec::Frames(_) => 0,
        };
        self.shared.out.capacity() + errors
    }

    /// True in the middle of a BATCH, an IMPORT or a line that is too long.
    pub fn is_open(&self) -> bool {
        self.kept.staged.is_some() || matches!(&self.codec, Codec::Text(text) if text.is_open())
    }

    /// The client sends nothing: gives memory back.
    pub fn rest_for_now(&mut self) {
        if self.shared.out.is_empty() && self.shared.out.capacity() > ANSWER_BYTES_AT_REST {
            self.shared.out = Vec::new();
        }
    }

    /// The client reads no more.
    pub fn abandon(&mut self) {
        self.forget_rest();
        self.written();
    }

    /// The output was written, or the client reads no more.
    pub fn written(&mut self) {
        // While clients hold much memory, none of it stays with one that is served in small parts.
        let most = match std::mem::replace(&mut self.kept.answer_bytes_max, ANSWER_BYTES_SHORT) {
            ANSWER_BYTES_SHORT if self.has_asked_for_room => ANSWER_BYTES_KEPT_SHORT,
            _ => ANSWER_BYTES_HELD,
        };
        self.has_asked_for_room = false;
        if self.shared.out.capacity() > most {
            self.shared.out = Vec::new();
        } else {
            self.shared.out.clear();
        }
    }
}

impl Shared {
    /// Parses a line into a request, if its command `may_stand` here.
    fn parse<'b>(
        &self,
        line: &'b [u8],
        may_stand: impl FnOnce(&Command) -> bool,
    ) -> Result<(&'static Command, Request<'b>), Refusal> {
        let (word, command, words) = split(line);
        let Some(command) = command else { return Err(Refusal::unknown_command(&word)) };
        if !self.allowed.allow(command.verb) {
            self.service.refused_command(command.name);
            return Err(Refusal::permission());
        }
        if !may_stand(command) {
            return Err(Refusal::misplaced(&word));
        }
        let request = Request::parse(command, words).map_err(|usage| Refusal::usage(usage.0))?;
        Ok((command, request))
    }

    /// Succeeds when a request that blocks so long may be made now.
    fn may_block<'b>(&self, wait: Wait) -> Result<(), Step<'b>> {
        match wait == Wait::None || self.has_turn {
            true => Ok(()),
            false => Err(Step::Do(Effect::Turn(wait))),
        }
    }

    /// Handles an UPDATE that needs unescaping or is invalid. Its tag is the number of its arguments unless
    /// another is given. Why an update without a valid argument is refused depends on the RRD, so the store
    /// is asked. The error is what must be done before this can be called again.
    fn unusual_update<'b>(
        &mut self,
        name: &[u8],
        words: Words<'_>,
        tag: Option<u32>,
    ) -> Result<Option<RefusedUpdate>, Step<'b>> {
        let named = match self.service.names.resolve(name) {
            Ok(named) => named,
            Err(failure) => {
                let refusal = Refusal::of_name(failure, update::no_such_rrd);
                self.queue.chunk.refuse(refusal, tag.unwrap_or(0));
                return Ok(None);
            }
        };
        let read = UpdateWords::parse(words);
        if read.count == 0 {
            self.queue.drained()?;
            self.may_block(Wait::Short)?;
            return Ok(Some(RefusedUpdate { named, bad: read.bad }));
        }
        self.service.marks.remember(named.name.as_bytes());
        let chunk = &mut self.queue.chunk;
        chunk.push_words(named.name.as_bytes(), &read.values, tag.unwrap_or(read.count));
        if let Some(bad) = read.bad {
            let text = bad.text(read.last_time.unwrap_or(0.0));
            chunk.refuse_rest(Refusal::new(DropReason::Refused, text).with_code(update::code(&bad)));
        }
        Ok(None)
    }

    /// The answer to a CREATE.
    fn created(&self, reply: StoreReply) -> Result<&'static [u8], Refusal> {
        let result = match reply {
            StoreReply::Created(result) => result,
            _ => Err(Refusal::of_store("RRD Error: ", &StoreError::Stopping)),
        };
        result.map(|()| CREATED).inspect_err(|refusal| self.service.metrics.drop_line(refusal.reason))
    }

    /// Counts a refused update and returns the refusal.
    fn refusal(&self, outcome: Outcome<'_>) -> Option<Refusal> {
        let refusal = match outcome {
            Outcome::Accepted => return None,
            Outcome::Failed(error) => update::refusal(&self.service.names, error),
            Outcome::Refused(refusal) => refusal.clone(),
        };
        self.service.metrics.drop_line(refusal.reason);
        Some(refusal)
    }
}

/// The text protocol's answer to a successful CREATE.
const CREATED: &[u8] = b"0 RRD created OK\n";

/// Why a client that requests another version of frames stays with text.
fn other_version() -> Refusal {
    Refusal::new(DropReason::Usage, format!("{OTHER_VERSIONS}s 1 to {VERSION} are spoken here."))
}
