//! One client that speaks frames (`docs/protocol/frames.md`): what [`super::rrdcached`] does for text.
//!
//! What always holds: answers leave in the order of the requests; a frame of updates is answered when the store has
//! answered all of them, so with the promise of an UPDATE; while it works on one frame the next are taken, up to
//! [`PIECES_IN_FLIGHT_MAX`]. Bytes that are no frame end the connection, with the reason, after everything before
//! them was answered. An idle connection holds no buffer.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use protocol::frames::answer::{self as wire, ENDED, REFUSED, TEXT};
use protocol::frames::request::{Request as FrameRequest, Updates};
use protocol::frames::{FrameError, REQUEST_BYTES_MAX, VERSION, scan};
use protocol::rrdcached::command::{Permissions, Verb};
use protocol::rrdcached::reply;
use protocol::rrdcached::request::{Request, split};
use protocol::rrdcached::update::plain_update_parts;
use protocol::rrdcached::words::Words;
use rustix::net::{Shutdown, shutdown};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use super::answer::{self, Refusal};
use super::piece::{Outcome, Piece, SentPiece};
use super::rrdcached::SharedPermissions;
use super::stream::Stream;
use super::whole::Staged;
use super::{create, fetch};
use crate::limits::{ANSWER_BYTES_HELD, PIECES_IN_FLIGHT_MAX, READ_BYTES};
use crate::metrics::Drop;
use crate::service::{Service, stopped};

/// Why a client that asks for another version goes on with text.
pub fn other_version() -> String {
    format!("Only frames of version {VERSION} are spoken here.")
}

/// Serves a client until it goes, sends what is no frame, or `stop` becomes true. `buffer` has what came behind the
/// line that asked for frames.
///
/// A client that speaks frames is most likely waiting for each answer, so it gets a thread of its own while there are
/// any: tokio wakes two threads to serve one request.
pub async fn serve(
    stream: Stream,
    service: Arc<Service>,
    permissions: SharedPermissions,
    mut stop: watch::Receiver<bool>,
    buffer: Vec<u8>,
) -> io::Result<()> {
    let Some((thread, give)) = own_thread(&service) else {
        return converse(stream, &service, &permissions, stop, buffer).await;
    };
    let (stream, socket) = stream.alone()?;
    // However this ends: the thread finds the end of its client.
    let hang_up = HangUp(socket);
    let (sender, mut ended) = oneshot::channel();
    let stop_of_thread = stop.clone();
    let talk = async move {
        let result = converse(stream, &service, &permissions, stop_of_thread, buffer).await;
        // Nobody is left to hear it when the daemon has waited long enough.
        sender.send(result).ok();
    };
    // It waits for this and nothing else.
    give.send(Box::pin(talk)).ok();
    let result = tokio::select! {
        biased;
        result = &mut ended => result,
        () = stopped(&mut stop) => {
            hang_up.no_more();
            ended.await
        }
    };
    match result {
        Ok(result) => result,
        Err(_) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => Ok(()),
        },
    }
}

/// What a thread of one connection does.
type Talk = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A thread, and how to give it what it is to do; `None` where there are enough, or the system gives no more.
fn own_thread(service: &Service) -> Option<(JoinHandle<()>, mpsc::Sender<Talk>)> {
    let place = Arc::clone(&service.threads).try_acquire_owned().ok()?;
    let (runtime, (give, taken)) = (Handle::current(), mpsc::channel::<Talk>());
    let body = move || {
        let _place = place;
        if let Ok(talk) = taken.recv() {
            runtime.block_on(talk);
        }
    };
    let spawned = std::thread::Builder::new().name("frames".to_string()).spawn(body);
    spawned
        .inspect_err(|error| tracing::warn!(%error, "no thread for a connection; it shares those of others"))
        .ok()
        .map(|thread| (thread, give))
}

/// Ends a connection that a thread sleeps on.
struct HangUp(Arc<OwnedFd>);

impl HangUp {
    /// Nothing more is read; what was is answered.
    fn no_more(&self) {
        // It may have ended already.
        shutdown(&self.0, Shutdown::Read).ok();
    }
}

impl std::ops::Drop for HangUp {
    fn drop(&mut self) {
        shutdown(&self.0, Shutdown::Both).ok();
    }
}

async fn converse(
    mut stream: Stream,
    service: &Service,
    permissions: &SharedPermissions,
    mut stop: watch::Receiver<bool>,
    mut buffer: Vec<u8>,
) -> io::Result<()> {
    let mut session =
        Session { service, allowed: Permissions::NONE, sent: VecDeque::new(), out: Vec::new(), staged: None };
    loop {
        session.allowed = *permissions.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let bad = session.work(&stream, &mut buffer).await?.err();
        session.settle(0).await;
        if let Some(error) = &bad {
            service.metrics.drop_line(Drop::BadFrame);
            wire::push_text(&mut session.out, ENDED, 0, error.to_string().as_bytes());
        }
        session.write(&stream).await?;
        if bad.is_some() || *stop.borrow() {
            return Ok(());
        }
        match stream.try_read(&mut buffer) {
            Ok(0) => {
                if !buffer.is_empty() {
                    service.metrics.drop_line(Drop::Unfinished);
                }
                return Ok(());
            }
            Ok(count) => drop(service.metrics.received_bytes.inc_by(count as u64)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // What is there of a frame is kept in a vector of its own size.
                let partial = buffer.clone();
                service.buffers.give(std::mem::take(&mut buffer));
                tokio::select! {
                    biased;
                    readable = stream.readable() => readable?,
                    () = stopped(&mut stop) => return Ok(()),
                }
                buffer = service.buffers.take();
                buffer.extend_from_slice(&partial);
            }
            Err(error) => return Err(error),
        }
    }
}

/// A frame of updates that the store has not answered yet.
struct Sent {
    number: u32,
    piece: Option<SentPiece>,
    /// Updates that were refused already, by index.
    refused: Vec<(u32, Vec<u8>)>,
}

struct Session<'a> {
    service: &'a Service,
    /// A copy for the burst under way.
    allowed: Permissions,
    sent: VecDeque<Sent>,
    out: Vec<u8>,
    /// A file that comes in pieces.
    staged: Option<Staged>,
}

impl Session<'_> {
    /// Works on all whole frames of `buffer` and takes them off.
    async fn work(&mut self, stream: &Stream, buffer: &mut Vec<u8>) -> io::Result<Result<(), FrameError>> {
        let mut at = 0;
        let result = loop {
            let found = scan(&buffer[at..], REQUEST_BYTES_MAX).and_then(|found| {
                found.map(|(frame, used)| Ok((frame.number, FrameRequest::decode(frame)?, used))).transpose()
            });
            match found {
                Ok(Some((number, request, used))) => {
                    self.request(number, request).await;
                    if self.out.len() > ANSWER_BYTES_HELD {
                        self.write(stream).await?;
                    }
                    at += used;
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        buffer.drain(..at);
        if buffer.capacity() - buffer.len() < READ_BYTES / 4 {
            buffer.reserve(READ_BYTES);
        }
        Ok(result)
    }

    async fn request(&mut self, number: u32, request: FrameRequest<'_>) {
        match request {
            FrameRequest::Update(updates) if self.allowed.allow(Verb::Update) => {
                self.update(number, updates).await;
                self.settle(PIECES_IN_FLIGHT_MAX).await;
            }
            FrameRequest::Fetch(wish) if self.allowed.allow(Verb::FetchBin) => {
                self.settle(0).await;
                let (service, kept) = (self.service, self.out.len());
                service.metrics.command(Verb::FetchBin);
                let out = &mut self.out;
                let fetched = service.waits.run(true, || fetch::fetch_frame(service, &wish, number, out));
                if let Err(refusal) = fetched {
                    self.out.truncate(kept);
                    self.refuse(number, &refusal);
                }
            }
            FrameRequest::Update(_) | FrameRequest::Fetch(_) => {
                self.settle(0).await;
                self.refuse(number, &Refusal::new(Drop::Permission, "Permission denied."));
            }
            FrameRequest::Command(line) => {
                self.settle(0).await;
                let mut text = Vec::new();
                if let Err(refusal) = self.command(line, &mut text).await {
                    self.service.metrics.drop_line(refusal.reason);
                    text.clear();
                    reply::push_error(&mut text, &refusal.text);
                }
                wire::push_text(&mut self.out, TEXT, number, &text);
            }
        }
    }

    fn refuse(&mut self, number: u32, refusal: &Refusal) {
        self.service.metrics.drop_line(refusal.reason);
        wire::push_text(&mut self.out, REFUSED, number, &refusal.text);
    }

    /// Hands the updates of a frame to the store.
    async fn update(&mut self, number: u32, updates: Updates<'_>) {
        let service = self.service;
        service.metrics.updates_received.inc_by(updates.len() as u64);
        let base = service.names.base();
        let mut piece = Piece::of_frame(updates.len());
        let mut refused = Vec::new();
        for (index, update) in (0u32..).zip(updates) {
            if let Some(plain) = plain_update_parts(update.name, update.values, base) {
                piece.push(&plain, index);
                if service.marks.any_forgotten() {
                    service.marks.remember(plain.name);
                }
                continue;
            }
            let result = match answer::read_update(&service.names, update.name, Words::new(update.values)) {
                Ok((named, read)) if read.words == 0 => {
                    // What is wrong depends on what stands before it.
                    let before = self.send(std::mem::take(&mut piece));
                    self.settle(0).await;
                    self.settle_piece(before, &mut refused).await;
                    let refuse = || answer::refuse_update(service, &named, &read);
                    Err(tokio::task::block_in_place(refuse))
                }
                Ok((named, read)) => {
                    service.marks.remember(named.name.as_bytes());
                    piece.push_words(named.name.as_bytes(), &read.values, index);
                    if let Some(malformed) = read.malformed {
                        piece.spoil_last(malformed.text(read.last_time, || None));
                    }
                    Ok(())
                }
                Err(refusal) => Err(refusal),
            };
            if let Err(refusal) = result {
                service.metrics.drop_line(refusal.reason);
                refused.push((index, refusal.text));
            }
        }
        let piece = self.send(piece);
        self.sent.push_back(Sent { number, piece, refused });
    }

    fn send(&self, piece: Piece) -> Option<SentPiece> {
        (!piece.is_empty()).then(|| self.service.waits.run(true, || piece.send(&*self.service.engine)))
    }

    /// A line of the text protocol.
    async fn command(&mut self, line: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
        let service = self.service;
        let (word, command, words) = split(line);
        let Some(command) = command else {
            return Err(Refusal::new(Drop::UnknownCommand, [b"Unknown command: ", &*word].concat()));
        };
        if !self.allowed.allow(command.verb) {
            return Err(Refusal::new(Drop::Permission, "Permission denied."));
        }
        let usage = |_| Refusal::new(Drop::Usage, format!("Usage: {}", command.usage));
        service.metrics.command(command.verb);
        match Request::parse(command, words).map_err(usage)? {
            // These have frames of their own, or change how the text protocol goes on.
            Request::Update(..) | Request::Batch | Request::End | Request::Quit | Request::Frames(_) => {
                Err(Refusal::new(Drop::Usage, format!("Can't use '{}' here.", command.name)))
            }
            Request::Create(name, words) => {
                create::send(service, &name, words)?.settle(service).await?;
                out.extend_from_slice(b"0 RRD created OK\n");
                Ok(())
            }
            request => {
                let (quick, staged) = (answer::is_quick(&request), &mut self.staged);
                service.waits.run(quick, || answer::answer(service, request, staged, out))
            }
        }
    }

    /// Waits until at most `left` frames are in flight, and writes down the answers of the others.
    async fn settle(&mut self, left: usize) {
        while self.sent.len() > left {
            let Some(Sent { number, piece, mut refused }) = self.sent.pop_front() else { return };
            let before = refused.len();
            self.settle_piece(piece, &mut refused).await;
            if before > 0 {
                refused.sort_by_key(|&(index, _)| index);
            }
            wire::push_updated(&mut self.out, number, &refused);
        }
    }

    /// Waits for a piece; what of it was refused goes to `refused`.
    async fn settle_piece(&self, piece: Option<SentPiece>, refused: &mut Vec<(u32, Vec<u8>)>) {
        let (Some(piece), service) = (piece, self.service) else { return };
        piece
            .settle(|index, outcome| match outcome {
                Outcome::Accepted => {}
                Outcome::Failed(error) => {
                    let Refusal { text, reason } = answer::update_refusal(&service.names, error);
                    service.metrics.drop_line(reason);
                    refused.push((index, text));
                }
                Outcome::Spoiled(text) => {
                    service.metrics.drop_line(Drop::Refused);
                    refused.push((index, text.to_vec()));
                }
            })
            .await;
    }

    async fn write(&mut self, stream: &Stream) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        stream.write_all(&self.out).await?;
        self.service.metrics.sent_bytes.inc_by(self.out.len() as u64);
        if self.out.capacity() > ANSWER_BYTES_HELD {
            self.out = Vec::new();
        } else {
            self.out.clear();
        }
        Ok(())
    }
}
