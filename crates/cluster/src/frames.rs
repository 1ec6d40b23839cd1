//! Messages over one connection, in both directions: cut into frames, so that a small one does not wait for the end of a large one.
//!
//! A frame is its length (4 bytes), a CRC32C of the rest, the number of its message (8 bytes), its kind and whether it is the last one of its message; all
//! numbers little-endian. Each side sends a frame of kind [`Kind::Alive`] when it has sent nothing for a second: a side that hears nothing for some seconds
//! takes the other one for lost, however long the answers take.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::lock::lock;
use crate::wire::MESSAGE_BYTES_MAX;

/// Bytes before the piece of a message.
const HEADER_BYTES: usize = 18;
/// The most bytes of a message in a frame: at 1 Gbit/s, a small answer waits 2 ms for a piece of a large one.
pub(crate) const PIECE_BYTES_MAX: usize = 256 << 10;
/// The most messages of which some frames have come, and others not.
const PARTIAL_MAX: usize = 1024;
/// How often a side that has nothing to say shows that it lives.
pub(crate) const ALIVE_EVERY: Duration = Duration::from_secs(1);
/// Read from a connection at once.
const READ_BYTES: usize = 64 << 10;

/// What a frame is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request.
    Ask = 1,
    /// Its answer.
    Told = 2,
    /// Nothing: its sender lives.
    Alive = 3,
}

fn put_frame(out: &mut Vec<u8>, number: u64, kind: Kind, is_last: bool, piece: &[u8]) {
    let start = out.len();
    out.extend_from_slice(&((HEADER_BYTES - 4 + piece.len()) as u32).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&[kind as u8, u8::from(is_last)]);
    out.extend_from_slice(piece);
    let crc = crc32c::crc32c(&out[start + 8..]);
    out[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
}

/// A message on its way out.
struct Outgoing {
    number: u64,
    bytes: Vec<u8>,
    sent: usize,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Outgoing>,
    bytes: usize,
    is_closed: bool,
}

/// Messages that wait to be sent over a connection.
pub(crate) struct Outbox {
    kind: Kind,
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Outbox {
    /// One for requests or for answers. Requests leave whole and in order, as the stores must get them; answers take turns.
    pub(crate) fn new(kind: Kind) -> Self {
        Outbox { kind, queue: Mutex::default(), changed: Condvar::new() }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    /// Adds a message; false when the connection is closed.
    pub(crate) fn push(&self, number: u64, bytes: Vec<u8>) -> bool {
        let mut queue = self.queue();
        if queue.is_closed {
            return false;
        }
        queue.bytes += bytes.len();
        queue.waiting.push_back(Outgoing { number, bytes, sent: 0 });
        drop(queue);
        self.changed.notify_all();
        true
    }

    /// Takes no more messages, and ends [`Outbox::write_to`].
    pub(crate) fn close(&self) {
        self.queue().is_closed = true;
        self.changed.notify_all();
    }

    /// Whether it was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.queue().is_closed
    }

    /// Waits until fewer than `bytes_max` bytes wait, or the connection is closed.
    pub(crate) fn wait_below(&self, bytes_max: usize) {
        let mut queue = self.queue();
        while queue.bytes >= bytes_max && !queue.is_closed {
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes what is to be sent next, up to about one piece, as frames in `out`; false when it is closed.
    fn next(&self, out: &mut Vec<u8>) -> bool {
        let mut queue = self.queue();
        let until = Instant::now() + ALIVE_EVERY;
        while queue.waiting.is_empty() && !queue.is_closed {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                put_frame(out, 0, Kind::Alive, true, &[]);
                return true;
            }
            queue = self.changed.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if queue.is_closed {
            return false;
        }
        while out.len() < PIECE_BYTES_MAX
            && let Some(mut first) = queue.waiting.pop_front()
        {
            let rest = &first.bytes[first.sent..];
            let piece = &rest[..rest.len().min(PIECE_BYTES_MAX)];
            let is_last = piece.len() == rest.len();
            put_frame(out, first.number, self.kind, is_last, piece);
            queue.bytes -= piece.len();
            first.sent += piece.len();
            match (is_last, self.kind) {
                (true, _) => {}
                (false, Kind::Ask) => queue.waiting.push_front(first),
                (false, _) => queue.waiting.push_back(first),
            }
        }
        drop(queue);
        self.changed.notify_all();
        true
    }

    /// Sends messages until the connection fails or this is closed; then it is closed.
    pub(crate) fn write_to(&self, stream: &mut dyn Write) {
        let mut out = Vec::new();
        while self.next(&mut out) {
            if stream.write_all(&out).and_then(|()| stream.flush()).is_err() {
                break;
            }
            out.clear();
            // After a large piece, memory is given back.
            out.shrink_to(2 * PIECE_BYTES_MAX);
        }
        self.close();
    }
}

/// What arrives over a connection.
pub(crate) struct Inbox {
    expected: Kind,
    buffer: Vec<u8>,
    /// How much of it has been taken.
    used: usize,
    partial: HashMap<u64, Vec<u8>>,
    partial_bytes: usize,
    heard: Instant,
}

/// What came.
pub(crate) enum Arrival {
    /// A whole message, with its number.
    Message(u64, Vec<u8>),
    /// Nothing, for as long as a read waits.
    Nothing,
}

fn broken(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

impl Inbox {
    /// Of messages of this kind; other kinds are an error.
    pub(crate) fn new(expected: Kind) -> Self {
        let (buffer, partial) = (Vec::new(), HashMap::new());
        Inbox { expected, buffer, used: 0, partial, partial_bytes: 0, heard: Instant::now() }
    }

    /// Waits for the next message, at most as long as a read of the stream does.
    ///
    /// # Errors
    /// The system's; when the bytes are no frames, or more than they may be; when nothing was heard for `silence_max`.
    pub(crate) fn next(&mut self, stream: &mut dyn Read, silence_max: Duration) -> io::Result<Arrival> {
        loop {
            if let Some(message) = self.take_message()? {
                return Ok(message);
            }
            self.buffer.drain(..self.used);
            self.used = 0;
            let start = self.buffer.len();
            self.buffer.resize(start + READ_BYTES, 0);
            let read = stream.read(&mut self.buffer[start..]);
            self.buffer.truncate(start + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => self.heard = Instant::now(),
                Err(error) if is_timeout(&error) => {
                    if self.heard.elapsed() > silence_max {
                        return Err(io::Error::new(
                            io::ErrorKind::TimedOut,
                            "nothing is heard of it any more",
                        ));
                    }
                    return Ok(Arrival::Nothing);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes a message from the buffer, if one is complete.
    fn take_message(&mut self) -> io::Result<Option<Arrival>> {
        let mut found = None;
        while found.is_none()
            && let Some(frame) = frame_at(&self.buffer[self.used..])?
        {
            let (number, last, length) = (frame.number, frame.is_last, frame.length);
            if frame.kind != Kind::Alive as u8 {
                if frame.kind != self.expected as u8 {
                    return Err(broken("a frame of a strange kind"));
                }
                let piece = self.used + HEADER_BYTES..self.used + length;
                found = self.add(number, last, piece)?;
            }
            self.used += length;
        }
        Ok(found)
    }

    fn add(
        &mut self,
        number: u64,
        is_last: bool,
        piece: std::ops::Range<usize>,
    ) -> io::Result<Option<Arrival>> {
        if self.partial_bytes + piece.len() > MESSAGE_BYTES_MAX || self.partial.len() >= PARTIAL_MAX {
            return Err(broken("too many bytes of messages that are not complete"));
        }
        let bytes = &self.buffer[piece];
        if !is_last {
            self.partial_bytes += bytes.len();
            self.partial.entry(number).or_default().extend_from_slice(bytes);
            return Ok(None);
        }
        let mut message = self.partial.remove(&number).unwrap_or_default();
        self.partial_bytes -= message.len();
        message.extend_from_slice(bytes);
        Ok(Some(Arrival::Message(number, message)))
    }
}

/// Whether a read or write gave up only because of its time limit.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

struct Found {
    number: u64,
    kind: u8,
    is_last: bool,
    length: usize,
}

/// The frame at the beginning of the bytes, if it is there to its end.
fn frame_at(bytes: &[u8]) -> io::Result<Option<Found>> {
    let Some((length, rest)) = bytes.split_first_chunk() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize + 4;
    if !(HEADER_BYTES..=HEADER_BYTES + PIECE_BYTES_MAX).contains(&length) {
        return Err(broken("a frame of an impossible length"));
    }
    if bytes.len() < length {
        return Ok(None);
    }
    let Some((crc, covered)) = rest[..length - 4].split_first_chunk() else { return Ok(None) };
    if u32::from_le_bytes(*crc) != crc32c::crc32c(covered) {
        return Err(broken("a damaged frame"));
    }
    let Some((number, rest)) = covered.split_first_chunk() else { return Ok(None) };
    let (kind, is_last) = (rest[0], rest[1] == 1);
    Ok(Some(Found { number: u64::from_le_bytes(*number), kind, is_last, length }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an outbox sends for messages.
    fn sent(kind: Kind, messages: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let outbox = Outbox::new(kind);
        for (number, bytes) in messages {
            assert!(outbox.push(*number, bytes.clone()));
        }
        let mut all = Vec::new();
        while !outbox.queue().waiting.is_empty() {
            let mut out = Vec::new();
            assert!(outbox.next(&mut out));
            all.extend(out);
        }
        assert_eq!(outbox.queue().bytes, 0);
        all
    }

    fn received(kind: Kind, bytes: &[u8]) -> (Vec<(u64, Vec<u8>)>, io::Error) {
        let (mut inbox, mut stream) = (Inbox::new(kind), bytes);
        let mut all = Vec::new();
        loop {
            match inbox.next(&mut stream, Duration::MAX) {
                Ok(Arrival::Message(number, bytes)) => all.push((number, bytes)),
                Ok(Arrival::Nothing) => {}
                Err(error) => return (all, error),
            }
        }
    }

    #[test]
    fn answers_take_turns_and_requests_keep_their_order() {
        let large = vec![7; 3 * PIECE_BYTES_MAX + 5];
        let messages = [(1, large.clone()), (2, b"small".to_vec()), (3, Vec::new())];
        let numbers = |kind| {
            let (all, error) = received(kind, &sent(kind, &messages));
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
            let mut sorted = all.clone();
            sorted.sort();
            assert!(sorted == messages);
            all.into_iter().map(|(number, _)| number).collect::<Vec<_>>()
        };
        assert_eq!(numbers(Kind::Ask), [1, 2, 3]);
        assert_eq!(numbers(Kind::Told), [2, 3, 1]);
    }

    #[test]
    fn damage_and_strange_frames_end_the_connection() {
        let good = sent(Kind::Ask, &[(9, b"request".to_vec())]);
        assert_eq!(received(Kind::Ask, &good).0.len(), 1);
        assert_eq!(received(Kind::Told, &good).1.to_string(), "a frame of a strange kind");
        for at in 0..good.len() {
            let mut changed = good.clone();
            changed[at] ^= 0x40;
            let (all, error) = received(Kind::Ask, &changed);
            assert!(all.is_empty(), "byte {at}");
            let expected = [io::ErrorKind::InvalidData, io::ErrorKind::UnexpectedEof];
            assert!(expected.contains(&error.kind()), "byte {at}: {error}");
        }
        let mut endless = Vec::new();
        for number in 0..=PARTIAL_MAX as u64 {
            put_frame(&mut endless, number, Kind::Ask, false, b"x");
        }
        assert!(received(Kind::Ask, &endless).1.to_string().starts_with("too many bytes"));
    }

    #[test]
    fn a_closed_outbox_takes_nothing() {
        let outbox = Outbox::new(Kind::Ask);
        outbox.close();
        assert!(!outbox.push(1, b"late".to_vec()));
        let mut written = Vec::new();
        outbox.write_to(&mut written);
        assert!(written.is_empty());
    }
}
