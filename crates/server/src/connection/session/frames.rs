//! Frames (`docs/protocol/frames.md`) as a codec of a session.
//!
//! A frame of updates is answered once the store has answered all of them, so the answer promises what that
//! of an UPDATE does. Bytes that are not a frame end the session with the reason, after everything before
//! them was answered.

use protocol::frames::answer::{self, ENDED, TEXT, push_refused, push_text, push_updated};
use protocol::frames::request::{Fetch, Request as FrameRequest, UPDATES_OFFSET, Update};
use protocol::frames::{FrameError, REQUEST_BYTES_MAX, VERSION_WITH_CODES, begin, finish, scan, set_length};
use protocol::rrdcached::command::{Command, Verb};
use protocol::rrdcached::reply::push_error;
use protocol::rrdcached::request::Request;
use protocol::rrdcached::update::plain_name;
use protocol::rrdcached::words::Words;

use super::queue::{SentRequest, StoreReply};
use super::{Effect, Shared, Step};
use crate::connection::chunk::UpdateChunk;
use crate::connection::command::{Ask, Wait};
use crate::connection::refusal::Refusal;
use crate::metrics::DropReason;

/// The state of a session in frames. The tag of an update is its index in its frame, that of a CREATE the
/// frame's number.
#[derive(Debug)]
pub struct Frames {
    version: u32,
    /// The frame of updates in progress.
    updates: Option<Progress>,
    asked: PendingQuery,
    /// Refused updates of the frame that is answered next, by index.
    refused: Vec<(u32, Refusal)>,
}

/// Progress within a frame of updates.
#[derive(Debug)]
struct Progress {
    number: u32,
    /// Index of the next update.
    next: u32,
    count: u32,
}

/// The pending query to the store.
#[derive(Clone, Copy, Debug, Default)]
enum PendingQuery {
    /// Nothing.
    #[default]
    Nothing,
    /// A text frame that starts at this offset of the output, with its number.
    Text(usize, u32),
    /// A frame of rows that starts at this offset, with its number.
    Rows(usize, u32),
    /// Why the update with this index is refused.
    Update(u32),
}

impl Frames {
    /// The state for a client that requested this version.
    pub fn new(version: u32) -> Self {
        Frames { version, updates: None, asked: PendingQuery::Nothing, refused: Vec::new() }
    }

    /// Processes a frame, or the rest of one.
    pub fn step<'b>(&mut self, shared: &mut Shared, bytes: &'b [u8]) -> (usize, Step<'b>) {
        if self.updates.is_some() {
            return self.take_updates(shared, bytes);
        }
        let found = scan(bytes, REQUEST_BYTES_MAX).and_then(|found| {
            found.map(|(frame, used)| Ok((frame.number, FrameRequest::decode(frame)?, used))).transpose()
        });
        match found {
            Ok(None) => (0, Step::Rest),
            Ok(Some((number, FrameRequest::Update(updates), _))) if shared.allowed.allow(Verb::Update) => {
                shared.service.metrics.updates_received.inc_by(updates.len() as u64);
                shared.queue.chunk = UpdateChunk::with_capacity(updates.len());
                self.updates = Some(Progress { number, next: 0, count: updates.len() as u32 });
                let (used, step) = self.take_updates(shared, &bytes[UPDATES_OFFSET..]);
                (UPDATES_OFFSET + used, step)
            }
            // A frame that must wait is parsed again later.
            Ok(Some((number, request, used))) => match self.request(shared, number, request) {
                Ok(step) => (used, step),
                Err(step) => (0, step),
            },
            Err(error) => (0, end(shared, &error).unwrap_or_else(|step| step)),
        }
    }

    /// Sends the updates of a complete frame to the store.
    fn take_updates<'b>(&mut self, shared: &mut Shared, bytes: &'b [u8]) -> (usize, Step<'b>) {
        let Some(progress) = &mut self.updates else { return (0, Step::Again) };
        let mut at = 0;
        while progress.next < progress.count
            && let Ok((update, used)) = Update::decode(&bytes[at..])
        {
            let index = progress.next;
            if let Some(name) = plain_name(update.name, update.values, shared.service.names.base()) {
                shared.queue.chunk.push_words(name, update.values, index);
                if shared.service.marks.any_forgotten() {
                    shared.service.marks.remember(name);
                }
            } else {
                match shared.unusual_update(update.name, Words::new(update.values), Some(index)) {
                    Ok(None) => {}
                    Ok(Some(refused)) => {
                        progress.next += 1;
                        self.asked = PendingQuery::Update(index);
                        return (at + used, Step::Do(Effect::Ask(Ask::RefusedUpdate(refused))));
                    }
                    Err(step) => return (at, step),
                }
            }
            at += used;
            progress.next += 1;
        }
        let number = progress.number;
        self.updates = None;
        (at, shared.queue.send(Some(number)))
    }

    /// Processes any other frame. The error is what must be done first.
    fn request<'b>(
        &mut self,
        shared: &mut Shared,
        number: u32,
        request: FrameRequest<'b>,
    ) -> Result<Step<'b>, Step<'b>> {
        shared.queue.drained()?;
        Ok(match request {
            FrameRequest::Fetch(fetch) if shared.allowed.allow(Verb::FetchBin) => {
                shared.may_block(Wait::Short)?;
                self.fetch(shared, number, fetch)
            }
            FrameRequest::Update(_) | FrameRequest::Fetch(_) => {
                self.refuse(shared, number, &Refusal::permission());
                Step::Again
            }
            FrameRequest::Command(line) => self.command(shared, number, line)?,
        })
    }

    fn fetch<'b>(&mut self, shared: &Shared, number: u32, fetch: Fetch<'b>) -> Step<'b> {
        shared.service.metrics.command(Verb::FetchBin);
        self.asked = PendingQuery::Rows(shared.out.len(), number);
        Step::Do(Effect::Ask(Ask::Rows(number, fetch)))
    }

    /// Processes a line of the text protocol. The error is what must be done first.
    fn command<'b>(
        &mut self,
        shared: &mut Shared,
        number: u32,
        line: &'b [u8],
    ) -> Result<Step<'b>, Step<'b>> {
        let parsed = shared.parse(line, may_stand);
        if let Ok((_, request)) = &parsed {
            shared.may_block(Wait::of(request))?;
        }
        Ok(match parsed {
            Ok((command, Request::Create(name, words))) => {
                shared.service.metrics.command(command.verb);
                let ticket = shared.queue.push(SentRequest::Create(number));
                Step::Do(Effect::Create(ticket, name, words))
            }
            Ok((command, request)) => {
                shared.service.metrics.command(command.verb);
                self.asked = PendingQuery::Text(begin(&mut shared.out, TEXT, number), number);
                Step::Do(Effect::Ask(Ask::Command(request)))
            }
            Err(refusal) => {
                shared.service.metrics.drop_line(refusal.reason);
                self.refuse_command(shared, number, &refusal);
                Step::Again
            }
        })
    }

    /// Completes the pending query.
    pub fn answered(&mut self, shared: &mut Shared, result: Result<(), Refusal>, bytes_left: Option<usize>) {
        match (std::mem::take(&mut self.asked), result) {
            (PendingQuery::Text(start, _), Ok(())) => match bytes_left {
                Some(bytes) => set_length(&mut shared.out, start, bytes),
                None => finish(&mut shared.out, start),
            },
            (PendingQuery::Text(start, number), Err(refusal)) => {
                shared.service.metrics.drop_line(refusal.reason);
                shared.out.truncate(start);
                self.refuse_command(shared, number, &refusal);
            }
            (PendingQuery::Rows(start, number), Err(refusal)) => {
                shared.out.truncate(start);
                self.refuse(shared, number, &refusal);
            }
            (PendingQuery::Update(index), Err(refusal)) => shared.queue.chunk.refuse(refusal, index),
            (_, Ok(())) | (PendingQuery::Nothing, _) => {}
        }
    }

    /// Appends the answer to a frame if `request` is its last part.
    pub fn settle(&mut self, shared: &mut Shared, request: SentRequest, reply: StoreReply) {
        match (request, reply) {
            (SentRequest::Updates(chunk, frame), reply) => {
                let failures = match reply {
                    StoreReply::Updated(failures) => Some(failures),
                    _ => None,
                };
                chunk.settle(failures, |index, outcome| {
                    if let Some(refusal) = shared.refusal(outcome) {
                        self.refused.push((index, refusal));
                    }
                });
                if let Some(number) = frame {
                    let refused = self.refused.iter().map(|(index, refusal)| answer::Refusal {
                        index: *index,
                        code: refusal.code,
                        text: &refusal.text,
                    });
                    push_updated(&mut shared.out, number, self.version, refused);
                    self.refused.clear();
                }
            }
            (SentRequest::Create(number), reply) => match shared.created(reply) {
                Ok(text) => push_text(&mut shared.out, TEXT, number, text),
                Err(refusal) => self.refuse_command(shared, number, &refusal),
            },
        }
    }

    fn refuse(&self, shared: &mut Shared, number: u32, refusal: &Refusal) {
        shared.service.metrics.drop_line(refusal.reason);
        push_refused(&mut shared.out, number, self.version, refusal.code, &refusal.text);
    }

    /// In version 1, errors of commands are text as well.
    fn refuse_command(&self, shared: &mut Shared, number: u32, refusal: &Refusal) {
        if self.version >= VERSION_WITH_CODES {
            return push_refused(&mut shared.out, number, self.version, refusal.code, &refusal.text);
        }
        let start = begin(&mut shared.out, TEXT, number);
        push_error(&mut shared.out, &refusal.text);
        finish(&mut shared.out, start);
    }
}

/// Excludes commands that have their own frames or change the state of the text protocol.
fn may_stand(command: &Command) -> bool {
    command.alone && !matches!(command.verb, Verb::Update | Verb::Batch | Verb::Quit | Verb::Frames)
}

/// Ends the session, because the start of the next frame is unknown. The error is what must be done first.
fn end<'b>(shared: &mut Shared, error: &FrameError) -> Result<Step<'b>, Step<'b>> {
    shared.queue.drained()?;
    shared.service.metrics.drop_line(DropReason::BadFrame);
    push_text(&mut shared.out, ENDED, 0, error.to_string().as_bytes());
    shared.ended = true;
    Ok(Step::Again)
}
