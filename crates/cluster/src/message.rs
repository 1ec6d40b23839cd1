//! What the nodes write to the replicated log, and what of it counts.
//!
//! `docs/format/replicated-log.md` describes the bytes. The log may store a message twice, or one of a leader that does not know yet that it was replaced.
//! [`Accepted`] decides which messages count: a pure function of the messages in their order, so that all replicas, and the
//! leader itself, which reads its own messages back, decide alike. Nothing is believed of what an append returned.

use std::fmt;

use store::replication::Position;

/// Version of the envelope.
const VERSION: u8 = 1;
/// The first bytes of each message.
const MAGIC: [u8; 3] = *b"RPL";
/// Bytes before the body.
pub const ENVELOPE_BYTES: usize = 48;
/// Where the checksum stands.
const CRC_AT: usize = 4;
/// From where on it covers.
const COVERED_FROM: usize = 8;

/// A running node, drawn at random at each start: one that was started again is another writer.
pub type WriterId = u64;

/// Who leads a partition of which the log is sealed, or has no claim yet.
pub const NO_WRITER: WriterId = 0;

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'b> {
    /// Its writer leads the partition from here on.
    Claim {
        /// Where what its writer has accepted of the partition ends. That is only looked at after another log: all go on at one place.
        from: Position,
    },
    /// Records of the partition's log, from a position on.
    Records {
        /// Where they begin.
        from: Position,
        /// As they stand in the leader's log; a long record is cut into several messages.
        bytes: &'b [u8],
        /// With these, all records are whole, and so are imports that take several: a partition may end here when another leads.
        is_whole: bool,
    },
    /// For the nodes to read, and without effect on the partition: that a node lives, and what it has.
    Note(&'b [u8]),
    /// Nothing that follows counts: the partition goes on in another log.
    Seal {
        /// Its identity.
        next: &'b str,
    },
    /// The first message of a partition that goes on after another log. A replica that does not have what was before lacks it.
    Continues {
        /// The identity of that log.
        of: &'b str,
    },
}

/// A message of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'b> {
    /// The partition it was written for: a log whose topics were exchanged is found out.
    pub partition: u32,
    /// The epoch of its leader.
    pub epoch: u32,
    /// Who wrote it.
    pub writer: WriterId,
    /// What it says.
    pub content: Content<'b>,
}

/// Why bytes are no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotMessage {
    /// Too short, or another beginning: something else wrote it.
    Strange,
    /// The checksum does not fit.
    Damaged,
    /// A newer program wrote it.
    Newer {
        /// Its version.
        version: u8,
        /// Its kind.
        kind: u8,
    },
}

impl fmt::Display for NotMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotMessage::Strange => {
                f.write_str("it is no message of Roundel's: something else writes to this topic")
            }
            NotMessage::Damaged => f.write_str("its checksum does not fit: it is damaged"),
            NotMessage::Newer { version, kind } => {
                write!(
                    f,
                    "a newer program wrote it (version {version}, kind {kind}): use that one on this node, too"
                )
            }
        }
    }
}

impl std::error::Error for NotMessage {}

impl Message<'_> {
    /// The bytes of the message.
    pub fn encode(&self) -> Vec<u8> {
        let start = Position::default();
        let (kind, is_whole, from, body): (u8, bool, Position, &[u8]) = match self.content {
            Content::Claim { from } => (1, true, from, &[]),
            Content::Records { from, bytes, is_whole } => (2, is_whole, from, bytes),
            Content::Note(bytes) => (3, true, start, bytes),
            Content::Seal { next } => (4, true, start, next.as_bytes()),
            Content::Continues { of } => (5, true, start, of.as_bytes()),
        };
        let mut out = Vec::with_capacity(ENVELOPE_BYTES + body.len());
        out.extend_from_slice(&MAGIC);
        out.push(VERSION);
        out.extend_from_slice(&[0; COVERED_FROM - CRC_AT]);
        out.extend_from_slice(&[kind, u8::from(is_whole), 0, 0]);
        out.extend_from_slice(&self.partition.to_le_bytes());
        out.extend_from_slice(&self.epoch.to_le_bytes());
        out.extend_from_slice(&from.generation.to_le_bytes());
        out.extend_from_slice(&self.writer.to_le_bytes());
        out.extend_from_slice(&from.offset.to_le_bytes());
        out.extend_from_slice(&(body.len() as u64).to_le_bytes());
        out.extend_from_slice(body);
        let crc = crc32c::crc32c(&out[COVERED_FROM..]);
        out[CRC_AT..COVERED_FROM].copy_from_slice(&crc.to_le_bytes());
        out
    }
}

impl<'b> Message<'b> {
    /// The message of some bytes.
    ///
    /// # Errors
    /// When they are none, or not one that this program knows.
    pub fn decode(bytes: &'b [u8]) -> Result<Message<'b>, NotMessage> {
        if bytes.len() < ENVELOPE_BYTES || bytes[..MAGIC.len()] != MAGIC {
            return Err(NotMessage::Strange);
        }
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        if u32_at(CRC_AT) != crc32c::crc32c(&bytes[COVERED_FROM..]) {
            return Err(NotMessage::Damaged);
        }
        let [version, kind] = [bytes[MAGIC.len()], bytes[COVERED_FROM]];
        let is_whole = bytes[COVERED_FROM + 1] == 1;
        let body = &bytes[ENVELOPE_BYTES..];
        if u64_at(40) != body.len() as u64 {
            return Err(NotMessage::Damaged);
        }
        let from = Position { generation: u32_at(20), offset: u64_at(32) };
        let content = match (version, kind) {
            (VERSION, 1) => Content::Claim { from },
            (VERSION, 2) => Content::Records { from, bytes: body, is_whole },
            (VERSION, 3) => Content::Note(body),
            (VERSION, 4) => Content::Seal { next: identity(body)? },
            (VERSION, 5) => Content::Continues { of: identity(body)? },
            _ => return Err(NotMessage::Newer { version, kind }),
        };
        Ok(Message { partition: u32_at(12), epoch: u32_at(16), writer: u64_at(24), content })
    }
}

/// The identity of a log in a message's body.
fn identity(body: &[u8]) -> Result<&str, NotMessage> {
    std::str::from_utf8(body).map_err(|_| NotMessage::Damaged)
}

/// What has been accepted of a partition, up to some message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// The epoch; 0 before the first claim.
    pub epoch: u32,
    /// Who leads in it.
    pub leader: WriterId,
    /// Where the accepted bytes of the partition's log end.
    pub end: Position,
    /// Where the last of them ended with which all records were whole.
    pub whole: Position,
    /// Nothing more will be accepted.
    pub is_sealed: bool,
}

/// What a message does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'b> {
    /// Its writer leads from now on. What is not whole by then is no part of the partition's log.
    Leads,
    /// No message counts after this one. What is not whole by then is no part of the partition's log.
    Seals {
        /// The log in which the partition goes on.
        next: &'b str,
    },
    /// These bytes are the next ones.
    Append(&'b [u8]),
    /// They follow something that did not come: a leader writes records once those before were accepted, so who finds this lacks something that the
    /// log had, or is a copy of something else.
    Gap,
    /// Nothing: it was stored twice, or its writer did not lead when it was stored.
    Nothing,
}

impl Accepted {
    /// Takes the next message of the log, and says what it does.
    pub fn take<'b>(&mut self, message: &Message<'b>) -> Verdict<'b> {
        match message.content {
            _ if self.is_sealed => Verdict::Nothing,
            // The first leader after another log goes on where that was sealed, or this replica is no copy of the same.
            Content::Claim { from }
                if message.epoch > self.epoch
                    && self.epoch > 0
                    && self.leader == NO_WRITER
                    && from != self.whole =>
            {
                Verdict::Gap
            }
            // Of several claims of one epoch the first counts.
            Content::Claim { .. } if message.epoch > self.epoch => {
                (self.epoch, self.leader, self.end) = (message.epoch, message.writer, self.whole);
                Verdict::Leads
            }
            Content::Seal { next } if message.epoch > self.epoch => {
                (self.epoch, self.leader, self.end) = (message.epoch, NO_WRITER, self.whole);
                self.is_sealed = true;
                Verdict::Seals { next }
            }
            // What begins before was stored twice. A leader that does not see its records accepted appends them again.
            Content::Records { from, bytes, is_whole }
                if self.epoch > 0
                    && (message.epoch, message.writer) == (self.epoch, self.leader)
                    && from == self.end =>
            {
                self.end = from.plus(bytes.len() as u64);
                if is_whole {
                    self.whole = self.end;
                }
                Verdict::Append(bytes)
            }
            Content::Records { from, .. }
                if (message.epoch, message.writer) == (self.epoch, self.leader) && from > self.end =>
            {
                Verdict::Gap
            }
            Content::Claim { .. }
            | Content::Records { .. }
            | Content::Note(_)
            | Content::Seal { .. }
            | Content::Continues { .. } => Verdict::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: Position = Position { generation: 0, offset: 96 };
    const CONTINUES: Content<'static> = Content::Continues { of: "directory 12" };
    const CLAIM: Content<'static> = Content::Claim { from: FROM };

    fn message<'b>(epoch: u32, writer: WriterId, content: Content<'b>) -> Message<'b> {
        Message { partition: 7, epoch, writer, content }
    }

    fn records(offset: u64, bytes: &[u8]) -> Content<'_> {
        Content::Records { from: Position { generation: 0, offset }, bytes, is_whole: true }
    }

    fn part(offset: u64, bytes: &[u8]) -> Content<'_> {
        Content::Records { from: Position { generation: 0, offset }, bytes, is_whole: false }
    }

    #[test]
    fn a_message_is_its_bytes_and_damage_is_found() {
        for content in [
            CLAIM,
            Content::Seal { next: "kafka abc" },
            CONTINUES,
            records(96, b"records"),
            part(96, b"re"),
            Content::Note(b"alive"),
            records(0, b""),
        ] {
            let message = message(3, 0x0102_0304_0506_0708, content);
            let bytes = message.encode();
            assert_eq!(Message::decode(&bytes), Ok(message));
            for cut in 0..bytes.len() {
                assert!(Message::decode(&bytes[..cut]).is_err(), "{cut} bytes");
            }
            for bit in 0..bytes.len() * 8 {
                let mut changed = bytes.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                // The version stands before the checksum, so that a newer one may have another.
                assert!(Message::decode(&changed).is_err(), "bit {bit}");
            }
        }
        let mut newer = message(1, 1, CLAIM).encode();
        newer[3] = 2;
        assert_eq!(Message::decode(&newer), Err(NotMessage::Newer { version: 2, kind: 1 }));
    }

    #[test]
    fn the_first_claim_of_an_epoch_ends_all_earlier_ones() {
        let mut accepted = Accepted { end: FROM, whole: FROM, ..Accepted::default() };
        assert_eq!(accepted.take(&message(0, 0, records(96, b"too early"))), Verdict::Nothing);
        assert_eq!(accepted.take(&message(1, 10, CLAIM)), Verdict::Leads);
        assert_eq!(accepted.take(&message(1, 11, CLAIM)), Verdict::Nothing);
        assert_eq!(accepted.take(&message(1, 11, records(96, b"a"))), Verdict::Nothing);
        assert_eq!(accepted.take(&message(1, 10, records(96, b"ab"))), Verdict::Append(b"ab"));
        // Stored twice, and after a gap.
        assert_eq!(accepted.take(&message(1, 10, records(96, b"ab"))), Verdict::Nothing);
        assert_eq!(accepted.take(&message(1, 10, records(99, b"d"))), Verdict::Gap);
        assert_eq!(accepted.take(&message(2, 11, CLAIM)), Verdict::Leads);
        // The former leader does not know yet.
        assert_eq!(accepted.take(&message(1, 10, records(98, b"c"))), Verdict::Nothing);
        assert_eq!(accepted.take(&message(1, 10, CLAIM)), Verdict::Nothing);
        assert_eq!(accepted.take(&message(2, 11, Content::Note(b"x"))), Verdict::Nothing);
        assert_eq!(accepted.take(&message(2, 11, records(98, b"C"))), Verdict::Append(b"C"));
        let end = FROM.plus(3);
        assert_eq!(accepted, Accepted { epoch: 2, leader: 11, end, whole: end, is_sealed: false });
    }

    #[test]
    fn a_record_that_its_leader_could_not_complete_is_none() {
        let mut accepted = Accepted::default();
        assert_eq!(accepted.take(&message(1, 10, CLAIM)), Verdict::Leads);
        assert_eq!(accepted.take(&message(1, 10, records(0, b"ab"))), Verdict::Append(b"ab"));
        assert_eq!(accepted.take(&message(1, 10, part(2, b"c"))), Verdict::Append(b"c"));
        assert_eq!((accepted.end.offset, accepted.whole.offset), (3, 2));
        let mut other = accepted;
        assert_eq!(accepted.take(&message(2, 11, CLAIM)), Verdict::Leads);
        assert_eq!(accepted.take(&message(1, 10, records(3, b"d"))), Verdict::Nothing);
        assert_eq!(accepted.take(&message(2, 11, records(2, b"D"))), Verdict::Append(b"D"));
        assert_eq!(other.take(&message(1, 10, records(3, b"d"))), Verdict::Append(b"d"));
        assert_eq!(other.whole.offset, 4);
    }

    #[test]
    fn after_a_seal_nothing_counts() {
        let mut accepted = Accepted::default();
        let seal = Content::Seal { next: "other" };
        assert_eq!(accepted.take(&message(0, 10, seal)), Verdict::Nothing);
        assert_eq!(accepted.take(&message(1, 10, CLAIM)), Verdict::Leads);
        assert_eq!(accepted.take(&message(1, 10, records(0, b"ab"))), Verdict::Append(b"ab"));
        assert_eq!(accepted.take(&message(1, 10, part(2, b"c"))), Verdict::Append(b"c"));
        // Of an epoch that is over: its writer did not know.
        assert_eq!(accepted.take(&message(1, 11, seal)), Verdict::Nothing);
        assert_eq!(accepted.take(&message(2, 11, seal)), Verdict::Seals { next: "other" });
        let sealed = accepted;
        assert_eq!((sealed.end.offset, sealed.whole.offset, sealed.leader), (2, 2, 0));
        for late in [records(2, b"d"), records(3, b"d"), CLAIM, seal, CONTINUES] {
            for (epoch, writer) in [(1, 10), (2, 0), (2, 11), (3, 11)] {
                assert_eq!(accepted.take(&message(epoch, writer, late)), Verdict::Nothing);
            }
        }
        assert_eq!(accepted, sealed);
    }

    #[test]
    fn the_first_leader_after_another_log_begins_where_that_was_sealed() {
        let entered = Accepted { epoch: 5, leader: NO_WRITER, end: FROM, whole: FROM, is_sealed: false };
        let mut accepted = entered;
        let stray = Content::Claim { from: FROM.plus(1) };
        assert_eq!(accepted.take(&message(1, 10, CONTINUES)), Verdict::Nothing);
        // Of a node that has nothing of what was before.
        assert_eq!(accepted.take(&message(1, 10, stray)), Verdict::Nothing);
        assert_eq!(accepted.take(&message(6, 10, stray)), Verdict::Gap);
        assert_eq!(accepted, entered);
        assert_eq!(accepted.take(&message(6, 11, CLAIM)), Verdict::Leads);
        // Later ones may have written theirs before they had read all.
        assert_eq!(accepted.take(&message(7, 10, stray)), Verdict::Leads);
    }
}
