//! One client that speaks rrdcached's protocol: reads, parses, hands over, answers in order.
//!
//! What always holds: answers leave in the order of the requests, everything a burst of requests is
//! answered with in as few writes as possible (gmetad wants one segment an answer), and no error closes
//! the connection. Updates are handed over in pieces and not waited for until an answer is due; any other
//! command waits for the pieces before it. An idle connection holds no buffer.
//!
//! Cost of an ordinary UPDATE line from read to hand-over: see `examples/parse_speed.rs`.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, RwLock};

use protocol::frames::AGREED;
use protocol::rrdcached::command::{Command, Permissions, Verb};
use protocol::rrdcached::limits::LINE_BYTES_MAX;
use protocol::rrdcached::line::{Scan, scan};
use protocol::rrdcached::reply::{self, BatchErrors};
use protocol::rrdcached::request::{Request, split};
use protocol::rrdcached::update::plain_update;
use tokio::sync::watch;

use super::answer::{self, Refusal};
use super::create::{self, SentCreate};
use super::frames;
use super::piece::{Outcome, Piece, SentPiece};
use super::stream::Stream;
use super::whole::Staged;
use crate::limits::{ANSWER_BYTES_HELD, PIECES_IN_FLIGHT_MAX, READ_BYTES};
use crate::metrics::Drop;
use crate::service::{Service, stopped};

/// What a listener lets its clients do; changed by a reload.
pub type SharedPermissions = Arc<RwLock<Permissions>>;

/// Serves one client until it goes, asks to, or `stop` becomes true.
pub async fn serve(
    mut stream: Stream,
    service: Arc<Service>,
    permissions: SharedPermissions,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut session = Session::new(&service, permissions);
    let mut partial = Vec::new();
    loop {
        tokio::select! {
            biased;
            readable = stream.readable() => readable?,
            () = stopped(&mut stop) => break,
        }
        let mut buffer = service.buffers.take();
        buffer.append(&mut partial);
        let end = session.burst(&mut stream, &mut buffer).await;
        if end == End::Frames {
            let permissions = session.permissions;
            return frames::serve(stream, service, permissions, stop, buffer).await;
        }
        // A partial line is kept in a vector of its own size: the buffer serves the next connection.
        if end == End::Empty {
            partial.extend_from_slice(&buffer);
        } else if end == End::Gone && !buffer.is_empty() {
            service.metrics.drop_line(Drop::Unfinished);
        }
        service.buffers.give(buffer);
        if end != End::Empty || *stop.borrow() {
            break;
        }
    }
    session.settle_all().await;
    session.write(&stream).await;
    session.broken.map_or(Ok(()), Err)
}

/// How a burst of bytes ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Nothing more to read for now.
    Empty,
    /// The client has gone.
    Gone,
    /// The client said QUIT.
    Quit,
    /// The client goes on in frames.
    Frames,
}

/// A BATCH under way.
#[derive(Debug, Default)]
struct Batch {
    /// Commands so far.
    commands: u32,
    errors: BatchErrors,
}

/// Something the store has not answered yet.
enum InFlight {
    Updates(SentPiece),
    /// A CREATE, with its number in the batch.
    Create(SentCreate, u32),
}

struct Session<'a> {
    service: &'a Service,
    permissions: SharedPermissions,
    /// A copy for the burst under way.
    allowed: Permissions,
    batch: Option<Batch>,
    piece: Piece,
    in_flight: VecDeque<InFlight>,
    out: Vec<u8>,
    /// An IMPORT of which pieces have come.
    staged: Option<Staged>,
    /// Throwing away the rest of a line that was too long.
    skipping: bool,
    /// The client takes no more answers. What it sent before is done all the same.
    broken: Option<io::Error>,
}

impl<'a> Session<'a> {
    fn new(service: &'a Service, permissions: SharedPermissions) -> Self {
        Session {
            service,
            permissions,
            allowed: Permissions::NONE,
            batch: None,
            piece: Piece::default(),
            in_flight: VecDeque::new(),
            out: Vec::new(),
            staged: None,
            skipping: false,
            broken: None,
        }
    }

    /// Reads and works on everything there is. `buffer` comes with the beginning of a line and leaves with
    /// one.
    async fn burst(&mut self, stream: &mut Stream, buffer: &mut Vec<u8>) -> End {
        self.allowed = *self.permissions.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let end = loop {
            if buffer.capacity() - buffer.len() < READ_BYTES / 4 {
                buffer.reserve(READ_BYTES);
            }
            match stream.try_read(buffer) {
                Ok(0) => break End::Gone,
                Ok(count) => self.service.metrics.received_bytes.inc_by(count as u64),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break End::Empty,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.broken.get_or_insert(error);
                    break End::Gone;
                }
            };
            let (used, last) = self.work(&*stream, buffer).await;
            buffer.drain(..used);
            if let Some(end) = last {
                break end;
            }
        };
        self.send_piece();
        if self.batch.is_none() {
            self.settle(0).await;
        }
        self.write(&*stream).await;
        if self.broken.is_some() { End::Gone } else { end }
    }

    /// Works on all whole lines of `bytes`; returns the bytes used and, when no more lines count, why.
    async fn work(&mut self, stream: &Stream, bytes: &[u8]) -> (usize, Option<End>) {
        let mut at = 0;
        loop {
            at += self.take_updates(&bytes[at..]);
            if self.piece.is_full() {
                self.send_piece();
                self.settle(PIECES_IN_FLIGHT_MAX).await;
            }
            if self.out.len() > ANSWER_BYTES_HELD {
                self.write(stream).await;
            }
            match scan(&bytes[at..]) {
                Scan::Line { line, used } => {
                    at += used;
                    if std::mem::take(&mut self.skipping) {
                        continue;
                    }
                    let last = self.line(stream, line).await;
                    if last.is_some() {
                        return (at, last);
                    }
                }
                Scan::Partial if self.skipping => return (bytes.len(), None),
                Scan::Partial => return (at, None),
                Scan::TooLong { used } => {
                    if !std::mem::replace(&mut self.skipping, used.is_none()) {
                        self.too_long().await;
                    }
                    match used {
                        Some(used) => at += used,
                        None => return (bytes.len(), None),
                    }
                }
            }
        }
    }

    /// Takes ordinary UPDATE lines off the front until something else comes or the piece is full: the loop
    /// the speed of the daemon hangs on. Returns the bytes used.
    fn take_updates(&mut self, bytes: &[u8]) -> usize {
        if self.skipping || !self.allowed.allow(Verb::Update) {
            return 0;
        }
        let base = self.service.names.base();
        let mut at = 0;
        let mut lines = 0u32;
        while !self.piece.is_full() {
            let Scan::Line { line, used } = scan(&bytes[at..]) else { break };
            let Some(update) = plain_update(line, base) else { break };
            lines += 1;
            let tag = match &self.batch {
                Some(batch) => batch.commands.saturating_add(lines),
                None => update.words,
            };
            self.piece.push(&update, tag);
            if self.service.marks.any_forgotten() {
                self.service.marks.remember(update.name);
            }
            at += used;
        }
        if let Some(batch) = &mut self.batch {
            batch.commands = batch.commands.saturating_add(lines);
        }
        self.service.metrics.updates_received.inc_by(u64::from(lines));
        at
    }

    /// Works on any one line; why no more lines count after it, if so.
    async fn line(&mut self, stream: &Stream, line: &[u8]) -> Option<End> {
        if let Some(batch) = &mut self.batch {
            batch.commands = batch.commands.saturating_add(1);
        }
        let (word, command, words) = split(line);
        let metrics = &self.service.metrics;
        let Some(command) = command else {
            metrics.drop_line(Drop::UnknownCommand);
            self.refuse(&[b"Unknown command: ", &*word].concat()).await;
            return None;
        };
        if !self.allowed.allow(command.verb) {
            metrics.drop_line(Drop::Permission);
            self.refuse(b"Permission denied.").await;
            return None;
        }
        if !(if self.batch.is_some() { command.in_batch } else { command.alone }) {
            metrics.drop_line(Drop::Usage);
            self.refuse(format!("Can't use '{}' here.", command.name).as_bytes()).await;
            return None;
        }
        match Request::parse(command, words) {
            Ok(request) => self.request(stream, command, request).await,
            Err(usage) => {
                metrics.drop_line(Drop::Usage);
                self.refuse(format!("Usage: {}", usage.0.usage).as_bytes()).await;
                None
            }
        }
    }

    async fn request(
        &mut self,
        stream: &Stream,
        command: &'static Command,
        request: Request<'_>,
    ) -> Option<End> {
        self.service.metrics.command(command.verb);
        match request {
            Request::Quit => return Some(End::Quit),
            Request::Frames(version) => {
                self.settle_all().await;
                if *version != *b"1" {
                    self.error(frames::other_version().as_bytes());
                    return None;
                }
                self.out.extend_from_slice(AGREED.as_bytes());
                self.out.push(b'\n');
                return Some(End::Frames);
            }
            Request::Update(name, words) => self.unusual_update(&name, words).await,
            Request::Create(name, words) => self.create(&name, words).await,
            Request::Batch => {
                self.settle_all().await;
                self.out.extend_from_slice(b"0 Go ahead.  End with dot '.' on its own line.\n");
                // The client waits for this before it sends anything.
                self.write(stream).await;
                self.batch = Some(Batch::default());
            }
            Request::End => {
                self.settle_all().await;
                if let Some(mut batch) = self.batch.take() {
                    batch.errors.push_answer(&mut self.out);
                }
            }
            other => {
                self.settle_all().await;
                let kept = self.out.len();
                let service = self.service;
                let (out, staged) = (&mut self.out, &mut self.staged);
                let quick = answer::is_quick(&other);
                let result = service.waits.run(quick, || answer::answer(service, other, staged, out));
                if result.is_err() || self.batch.is_some() {
                    self.out.truncate(kept);
                }
                if let Err(refusal) = result {
                    self.service.metrics.drop_line(refusal.reason);
                    self.error(&refusal.text);
                }
            }
        }
        None
    }

    /// An UPDATE that needs unescaping, or of which something is wrong.
    async fn unusual_update(&mut self, name: &[u8], words: protocol::rrdcached::words::Words<'_>) {
        self.service.metrics.updates_received.inc();
        let reading = answer::read_update(&self.service.names, name, words);
        let (named, update) = match reading {
            Ok(reading) => reading,
            Err(refusal) => {
                self.service.metrics.drop_line(refusal.reason);
                return self.refuse(&refusal.text).await;
            }
        };
        if update.words > 0 {
            let tag = match &self.batch {
                Some(batch) => batch.commands,
                None => update.words,
            };
            self.service.marks.remember(named.name.as_bytes());
            self.piece.push_words(named.name.as_bytes(), &update.values, tag);
            if let Some(malformed) = update.malformed {
                let text = malformed.text(update.last_time, || None);
                self.piece.spoil_last(text);
            }
            return;
        }
        // Nothing to hand over: what is wrong depends on whether there is such an RRD.
        self.settle_all().await;
        let service = self.service;
        let refusal = tokio::task::block_in_place(|| answer::refuse_update(service, &named, &update));
        service.metrics.drop_line(refusal.reason);
        self.error(&refusal.text);
    }

    async fn create(&mut self, name: &[u8], words: protocol::rrdcached::words::Words<'_>) {
        // The updates before it go first; they and it are answered in order.
        self.send_piece();
        let service = self.service;
        // Waits for no disk but to look for a directory; with `-r` as long as reading takes.
        match create::send(service, name, words) {
            Ok(sent) => {
                let number = self.batch.as_ref().map_or(0, |batch| batch.commands);
                self.in_flight.push_back(InFlight::Create(sent, number));
                self.settle(PIECES_IN_FLIGHT_MAX).await;
            }
            Err(refusal) => {
                service.metrics.drop_line(refusal.reason);
                self.refuse(&refusal.text).await;
            }
        }
    }

    async fn too_long(&mut self) {
        if let Some(batch) = &mut self.batch {
            batch.commands = batch.commands.saturating_add(1);
        }
        self.service.metrics.drop_line(Drop::LineTooLong);
        self.refuse(format!("Line too long ({LINE_BYTES_MAX} bytes at most)").as_bytes()).await;
    }

    /// Answers with an error, behind all answers that are due.
    async fn refuse(&mut self, text: &[u8]) {
        if self.batch.is_none() {
            self.settle_all().await;
        }
        self.error(text);
    }

    /// Writes down an error whose turn it is.
    fn error(&mut self, text: &[u8]) {
        match &mut self.batch {
            Some(batch) => batch.errors.push(batch.commands, text),
            None => reply::push_error(&mut self.out, text),
        }
    }

    fn send_piece(&mut self) {
        if !self.piece.is_empty() {
            let piece = std::mem::take(&mut self.piece);
            self.in_flight.push_back(InFlight::Updates(piece.send(&*self.service.engine)));
        }
    }

    async fn settle_all(&mut self) {
        self.send_piece();
        self.settle(0).await;
    }

    /// Waits until at most `left` requests are in flight, and writes down the answers of the others.
    async fn settle(&mut self, left: usize) {
        while self.in_flight.len() > left {
            match self.in_flight.pop_front() {
                Some(InFlight::Updates(piece)) => self.settle_piece(piece).await,
                Some(InFlight::Create(sent, number)) => {
                    let result = sent.settle(self.service).await;
                    match (&mut self.batch, result) {
                        (None, Ok(())) => self.out.extend_from_slice(b"0 RRD created OK\n"),
                        (Some(_), Ok(())) => {}
                        (None, Err(refusal)) => reply::push_error(&mut self.out, &refusal.text),
                        (Some(batch), Err(refusal)) => batch.errors.push(number, &refusal.text),
                    }
                }
                None => {}
            }
        }
    }

    async fn settle_piece(&mut self, piece: SentPiece) {
        let (out, batch, service) = (&mut self.out, &mut self.batch, self.service);
        piece
            .settle(|tag, outcome| {
                let text = match outcome {
                    Outcome::Accepted => {
                        if batch.is_none() {
                            reply::push_enqueued(out, tag);
                        }
                        return;
                    }
                    Outcome::Failed(error) => {
                        let Refusal { text, reason } = answer::update_refusal(&service.names, error);
                        service.metrics.drop_line(reason);
                        text
                    }
                    Outcome::Spoiled(text) => {
                        service.metrics.drop_line(Drop::Refused);
                        text.to_vec()
                    }
                };
                match batch {
                    Some(batch) => batch.errors.push(tag, &text),
                    None => reply::push_error(out, &text),
                }
            })
            .await;
    }

    async fn write(&mut self, stream: &Stream) {
        if self.out.is_empty() {
            return;
        }
        if self.broken.is_none() {
            self.broken = stream.write_all(&self.out).await.err();
            self.service.metrics.sent_bytes.inc_by(self.out.len() as u64);
        }
        if self.out.capacity() > ANSWER_BYTES_HELD {
            self.out = Vec::new();
        } else {
            self.out.clear();
        }
    }
}
