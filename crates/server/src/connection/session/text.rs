//! rrdcached's text protocol as a codec of a session: lines, and BATCH.

use protocol::frames::{VERSION, agreement};
use protocol::rrdcached::command::Verb;
use protocol::rrdcached::limits::LINE_BYTES_MAX;
use protocol::rrdcached::line::{Scan, scan};
use protocol::rrdcached::reply::{self, BatchErrors};
use protocol::rrdcached::request::Request;
use protocol::rrdcached::update::plain_update;

use super::queue::{SentRequest, StoreReply};
use super::{Effect, Shared, Step, other_version};
use crate::connection::command::{Ask, Wait};
use crate::connection::refusal::Refusal;
use crate::metrics::DropReason;

/// The state of the text protocol. The tag of an update is the number of its arguments; in a BATCH, that of
/// its command.
#[derive(Debug, Default)]
pub struct Text {
    batch: Option<Batch>,
    /// Discarding the rest of a line that was too long.
    skipping: bool,
    /// Offset in the output at which the answer to the pending query begins.
    asked_at: usize,
}

/// A BATCH in progress.
#[derive(Debug, Default)]
struct Batch {
    /// Commands so far.
    commands: u32,
    errors: BatchErrors,
}

/// Agrees on frames of the version that the client asks for, or says which there are.
fn frames<'b>(shared: &mut Shared, word: &[u8]) -> Step<'b> {
    let Some(version) = (1..=VERSION).find(|version| *word == *version.to_string().as_bytes()) else {
        // Not counted as a drop, because the client only asks.
        reply::push_error(&mut shared.out, &other_version().text);
        return Step::Again;
    };
    shared.out.extend_from_slice(agreement(version).as_bytes());
    shared.out.push(b'\n');
    Step::Do(Effect::Frames(version))
}

/// Whether a line is the first one of a request of HTTP. A browser sends such to any port that a page of any site tells it, and
/// what the page says in the body of the request must not be taken for commands.
fn is_http_request(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.ends_with(b" HTTP/1.1") || line.ends_with(b" HTTP/1.0")
}

impl Text {
    /// True while answers wait for the end of a BATCH.
    pub fn in_batch(&self) -> bool {
        self.batch.is_some()
    }

    /// True in the middle of a BATCH or of a line that is too long.
    pub fn is_open(&self) -> bool {
        self.batch.is_some() || self.skipping
    }

    /// Bytes of the errors of a BATCH.
    pub fn error_bytes(&self) -> usize {
        self.batch.as_ref().map_or(0, |batch| batch.errors.bytes())
    }

    /// Processes ordinary UPDATE lines and one other line.
    pub fn step<'b>(&mut self, shared: &mut Shared, bytes: &'b [u8]) -> (usize, Step<'b>) {
        let taken = self.take_updates(shared, bytes);
        if shared.queue.chunk.is_full() {
            return (taken, shared.queue.send(None));
        }
        let bytes = &bytes[taken..];
        let (used, step) = match scan(bytes) {
            Scan::Line { used, .. } if self.skipping => {
                self.skipping = false;
                (used, Step::Again)
            }
            // A line that must wait is parsed again later.
            Scan::Line { line, used } => match self.line(shared, line) {
                Ok(step) => (used, step),
                Err(step) => (0, step),
            },
            Scan::Partial if self.skipping => (bytes.len(), Step::Rest),
            Scan::Partial => (0, Step::Rest),
            Scan::TooLong { used } => {
                if !std::mem::replace(&mut self.skipping, used.is_none()) {
                    let text = format!("Line too long ({LINE_BYTES_MAX} bytes at most)");
                    self.refuse(shared, Refusal::new(DropReason::LineTooLong, text));
                }
                used.map_or((bytes.len(), Step::Rest), |used| (used, Step::Again))
            }
        };
        (taken + used, step)
    }

    /// Adds ordinary UPDATE lines to the chunk until it is full or another line follows. The daemon's speed
    /// depends on this loop. Returns the bytes used.
    fn take_updates(&mut self, shared: &mut Shared, bytes: &[u8]) -> usize {
        if self.skipping || !shared.allowed.allow(Verb::Update) {
            return 0;
        }
        let (service, chunk) = (&*shared.service, &mut shared.queue.chunk);
        let base = service.names.base();
        let mut at = 0;
        let mut lines = 0u32;
        while !chunk.is_full() {
            let Some((update, used)) = plain_update(&bytes[at..], base) else { break };
            chunk.reserve(bytes.len() - at);
            lines += 1;
            let tag = match &self.batch {
                Some(batch) => batch.commands.saturating_add(lines),
                None => update.words,
            };
            chunk.push(&update, tag);
            if service.marks.any_forgotten() {
                service.marks.remember(update.name());
            }
            at += used;
        }
        if let Some(batch) = &mut self.batch {
            batch.commands = batch.commands.saturating_add(lines);
        }
        service.metrics.updates_received.inc_by(u64::from(lines));
        at
    }

    /// Processes any single line. The error is what must be done first.
    fn line<'b>(&mut self, shared: &mut Shared, line: &'b [u8]) -> Result<Step<'b>, Step<'b>> {
        let in_batch = self.batch.is_some();
        let parsed = shared.parse(line, |command| if in_batch { command.in_batch } else { command.alone });
        let (command, request) = match parsed {
            Ok(parsed) => parsed,
            Err(refusal) => return self.not_parsed(shared, line, refusal),
        };
        let request = match request {
            Request::Update(name, words) => {
                let tag = self.batch.as_ref().map(|batch| batch.commands.saturating_add(1));
                let refused = shared.unusual_update(&name, words, tag)?;
                self.count(shared, command.verb);
                shared.service.metrics.updates_received.inc();
                let Some(refused) = refused else { return Ok(Step::Again) };
                return Ok(self.ask(shared, Ask::RefusedUpdate(refused)));
            }
            Request::Create(name, words) => {
                // The updates before it are sent first.
                if !shared.queue.chunk.is_empty() {
                    return Err(shared.queue.send(None));
                }
                shared.may_block(Wait::Short)?;
                let number = self.count(shared, command.verb);
                let ticket = shared.queue.push(SentRequest::Create(number));
                return Ok(Step::Do(Effect::Create(ticket, name, words)));
            }
            other => other,
        };
        if !matches!(request, Request::Quit) {
            shared.queue.drained()?;
        }
        if !matches!(
            request,
            Request::Quit | Request::Auth(_) | Request::Frames(_) | Request::Batch | Request::End
        ) {
            shared.may_block(Wait::of(&request))?;
        }
        self.count(shared, command.verb);
        Ok(match request {
            Request::Quit => {
                shared.ended = true;
                Step::Again
            }
            Request::Frames(word) => frames(shared, &word),
            Request::Auth(token) => {
                self.asked_at = shared.out.len();
                Step::Do(Effect::Auth(token))
            }
            Request::Batch => {
                shared.out.extend_from_slice(b"0 Go ahead.  End with dot '.' on its own line.\n");
                self.batch = Some(Batch::default());
                // The client waits for this answer before it sends anything.
                Step::Do(Effect::Write)
            }
            Request::End => {
                if let Some(mut batch) = self.batch.take() {
                    batch.errors.push_answer(&mut shared.out);
                }
                Step::Again
            }
            request => self.ask(shared, Ask::Command(request)),
        })
    }

    /// Refuses a line. One of HTTP ends the connection. The error is what must be done first.
    fn not_parsed<'b>(
        &mut self,
        shared: &mut Shared,
        line: &[u8],
        refusal: Refusal,
    ) -> Result<Step<'b>, Step<'b>> {
        if refusal.reason == DropReason::UnknownCommand && is_http_request(line) {
            // All that came before is answered.
            shared.queue.drained()?;
            shared.service.metrics.drop_line(refusal.reason);
            reply::push_error(&mut shared.out, b"This port does not speak HTTP.");
            shared.ended = true;
        } else {
            self.refuse(shared, refusal);
        }
        Ok(Step::Again)
    }

    /// Counts a command; returns its number in the BATCH.
    fn count(&mut self, shared: &Shared, verb: Verb) -> u32 {
        shared.service.metrics.command(verb);
        self.next_number()
    }

    /// The number of the next command in a BATCH; 0 outside.
    fn next_number(&mut self) -> u32 {
        let Some(batch) = &mut self.batch else { return 0 };
        batch.commands = batch.commands.saturating_add(1);
        batch.commands
    }

    fn ask<'b>(&mut self, shared: &Shared, ask: Ask<'b>) -> Step<'b> {
        self.asked_at = shared.out.len();
        Step::Do(Effect::Ask(ask))
    }

    /// Answers a line with an error when its turn comes.
    fn refuse(&mut self, shared: &mut Shared, refusal: Refusal) {
        let tag = self.next_number();
        shared.queue.chunk.refuse(refusal, tag);
    }

    /// Completes the pending query. In a BATCH only errors are answered.
    pub fn answered(&mut self, shared: &mut Shared, result: Result<(), Refusal>) {
        if result.is_err() || self.batch.is_some() {
            shared.out.truncate(self.asked_at);
        }
        if let Err(refusal) = result {
            shared.service.metrics.drop_line(refusal.reason);
            let number = self.batch.as_ref().map_or(0, |batch| batch.commands);
            self.error(&mut shared.out, number, &refusal.text);
        }
    }

    /// Appends the answers to a request.
    pub fn settle(&mut self, shared: &mut Shared, request: SentRequest, reply: StoreReply) {
        let mut out = std::mem::take(&mut shared.out);
        match (request, reply) {
            (SentRequest::Updates(chunk, _), reply) => {
                let failures = match reply {
                    StoreReply::Updated(failures) => Some(failures),
                    _ => None,
                };
                chunk.settle(failures, |tag, outcome| match shared.refusal(outcome) {
                    None if self.batch.is_none() => reply::push_enqueued(&mut out, tag),
                    None => {}
                    Some(refusal) => self.error(&mut out, tag, &refusal.text),
                });
            }
            (SentRequest::Create(number), reply) => match shared.created(reply) {
                Ok(text) if self.batch.is_none() => out.extend_from_slice(text),
                Ok(_) => {}
                Err(refusal) => self.error(&mut out, number, &refusal.text),
            },
        }
        shared.out = out;
    }

    /// Appends an error that is due; `number` is that of its command in a BATCH.
    fn error(&mut self, out: &mut Vec<u8>, number: u32, text: &[u8]) {
        match &mut self.batch {
            Some(batch) => batch.errors.push(number, text),
            None => reply::push_error(out, text),
        }
    }
}
