//! Version 5 of frames: a store's log on its way to a follower (`docs/protocol/replication.md`).
//!
//! This module owns the encoding in both directions: no socket, clock or file. Records of the log are bytes here.

use super::{Frame, FrameError, Reader, push};

/// The version of frames that followers speak.
pub const VERSION: u32 = 5;
/// The longest body of a frame from a follower: where the logs of the most shards end.
pub const FOLLOWER_BODY_BYTES_MAX: usize = 64 << 10;
/// The longest body of a frame from a primary: the longest record of a log, and where it goes.
pub const PRIMARY_BODY_BYTES_MAX: usize = (64 << 20) + (64 << 10);
/// The most shards of a store.
const SHARDS_MAX: usize = 256;
/// The longest name of a follower.
pub const NAME_BYTES_MAX: usize = 128;

/// From the follower: who it is and what it has. Always its first frame.
const HELLO: u8 = 0x20;
/// From the follower: what its log has.
const ACKNOWLEDGED: u8 = 0x21;
/// From the primary: the follower is let in; what the primary was, as a text.
const WELCOME: u8 = 0xa0;
/// From the primary: which store it is, as a text; a copy of it follows.
const COPY: u8 = 0xa1;
/// From the primary: a shard of the copy.
const SHARD: u8 = 0xa2;
/// From the primary: a file of that shard.
const FILE: u8 = 0xa3;
/// From the primary: bytes of that file.
const DATA: u8 = 0xa4;
/// From the primary: the copy is complete.
const COPIED: u8 = 0xa5;
/// From the primary: records of its log.
const RECORDS: u8 = 0xa6;
/// From the primary: all records up to a moment have been sent.
const MOMENT: u8 = 0xa7;
/// From the primary: the session ends.
const ENDED: u8 = 0xfe;

/// A position in a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPosition {
    /// Which log of the shard.
    pub generation: u32,
    /// Bytes since its start.
    pub offset: u64,
}

/// Where a shard's log ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardEnd {
    /// Where the next record goes.
    pub position: LogPosition,
    /// Where the last record begins, and its checksum.
    pub last: Option<(LogPosition, u32)>,
}

/// What a follower wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SessionKind {
    /// The log from the ends of its own on.
    Follow = 0,
    /// A copy of the store, and the log from there on.
    Copy = 1,
    /// Nothing: it is the primary now, by its epoch.
    Fence = 2,
}

/// A follower's first frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowerHello {
    /// What it wants.
    pub kind: SessionKind,
    /// The last epoch that it knows.
    pub epoch: u32,
    /// Which store it has; zeros if none yet.
    pub store: [u8; 16],
    /// What it is called, for the primary's log.
    pub name: Vec<u8>,
    /// Where its logs end, by shard; none if it wants a copy.
    pub ends: Vec<ShardEnd>,
}

/// A frame from a follower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromFollower {
    /// Who it is.
    Hello(FollowerHello),
    /// Its log has everything before these positions, by shard.
    Acknowledged(Vec<LogPosition>),
}

/// Why a primary ends a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Ending {
    /// Something else, which may pass.
    Other = 0,
    /// The log no longer has what the follower needs: it has to begin with a copy.
    Gone = 1,
    /// The follower has records that the primary does not have.
    Diverged = 2,
    /// It takes no changes itself.
    NotPrimary = 3,
    /// The follower's store is another one.
    OtherStore = 4,
    /// The client may not follow it.
    Permission = 5,
    /// It has learnt of the later epoch, and takes no changes any more.
    Fenced = 6,
}

/// A frame from a primary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromPrimary<'a> {
    /// The follower is let in; what the primary was, as a text.
    Welcome(&'a [u8]),
    /// Which store it is, as a text; a copy follows.
    Copy(&'a [u8]),
    /// A shard of the copy: its number, where its log begins and ends, its manifest.
    Shard {
        /// The shard's number.
        shard: u16,
        /// Where its log begins.
        from: LogPosition,
        /// Where it ends.
        end: LogPosition,
        /// Its manifest, a text.
        manifest: &'a [u8],
    },
    /// A file of that shard.
    File {
        /// What it is.
        kind: FileKind,
        /// Its number.
        number: u64,
        /// Its length.
        bytes: u64,
    },
    /// Bytes of that file.
    Data(&'a [u8]),
    /// The copy is complete.
    Copied,
    /// Records of a shard's log from a position on.
    Records {
        /// The shard's number.
        shard: u16,
        /// Where the first one begins.
        from: LogPosition,
        /// Whole records.
        bytes: &'a [u8],
    },
    /// All records up to a moment have been sent: the primary's time in milliseconds since 1970.
    Moment(i64),
    /// The session ends, and why.
    Ended(Ending, &'a [u8]),
}

/// What a file of a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FileKind {
    /// The checkpoint.
    Checkpoint = 1,
    /// A segment.
    Segment = 2,
    /// The log.
    Log = 3,
}

fn put_position(out: &mut Vec<u8>, position: LogPosition) {
    out.extend_from_slice(&position.generation.to_le_bytes());
    out.extend_from_slice(&position.offset.to_le_bytes());
}

fn take_position(reader: &mut Reader<'_>) -> Result<LogPosition, FrameError> {
    Ok(LogPosition { generation: reader.u32("a generation")?, offset: reader.u64("an offset")? })
}

fn take_count(reader: &mut Reader<'_>) -> Result<usize, FrameError> {
    let count = usize::from(reader.u16("the number of shards")?);
    if count <= SHARDS_MAX { Ok(count) } else { Err(FrameError::Value("the number of shards")) }
}

fn take_byte(reader: &mut Reader<'_>, what: &'static str) -> Result<u8, FrameError> {
    Ok(reader.array::<1>(what)?[0])
}

/// Appends a follower's first frame.
pub fn push_hello(out: &mut Vec<u8>, hello: &FollowerHello) {
    push(out, HELLO, 0, |out| {
        out.push(hello.kind as u8);
        out.extend_from_slice(&hello.epoch.to_le_bytes());
        out.extend_from_slice(&hello.store);
        out.extend_from_slice(&(hello.name.len() as u16).to_le_bytes());
        out.extend_from_slice(&hello.name);
        out.extend_from_slice(&(hello.ends.len() as u16).to_le_bytes());
        for end in &hello.ends {
            put_position(out, end.position);
            out.push(u8::from(end.last.is_some()));
            if let Some((start, check)) = end.last {
                put_position(out, start);
                out.extend_from_slice(&check.to_le_bytes());
            }
        }
    });
}

/// Appends what a follower's log has.
pub fn push_acknowledged(out: &mut Vec<u8>, positions: &[LogPosition]) {
    push(out, ACKNOWLEDGED, 0, |out| {
        out.extend_from_slice(&(positions.len() as u16).to_le_bytes());
        positions.iter().for_each(|position| put_position(out, *position));
    });
}

impl FromFollower {
    /// Decodes the body of a frame.
    ///
    /// # Errors
    /// [`FrameError`].
    pub fn decode(frame: Frame<'_>) -> Result<Self, FrameError> {
        let mut reader = Reader(frame.body);
        match frame.kind {
            HELLO => {
                let hello = take_hello(&mut reader)?;
                reader.end()?;
                Ok(FromFollower::Hello(hello))
            }
            ACKNOWLEDGED => {
                let count = take_count(&mut reader)?;
                let positions =
                    (0..count).map(|_| take_position(&mut reader)).collect::<Result<Vec<_>, _>>()?;
                reader.end()?;
                Ok(FromFollower::Acknowledged(positions))
            }
            kind => Err(FrameError::Kind(kind)),
        }
    }
}

fn take_hello(reader: &mut Reader<'_>) -> Result<FollowerHello, FrameError> {
    let kind = match take_byte(reader, "a kind")? {
        0 => SessionKind::Follow,
        1 => SessionKind::Copy,
        2 => SessionKind::Fence,
        _ => return Err(FrameError::Value("a kind")),
    };
    let (epoch, store) = (reader.u32("an epoch")?, reader.array("a store")?);
    let length = usize::from(reader.u16("the length of a name")?);
    let name = reader.bytes(length, "a name")?;
    if !(1..=NAME_BYTES_MAX).contains(&length) || !name.iter().all(u8::is_ascii_graphic) {
        return Err(FrameError::Value("a follower's name"));
    }
    let mut ends = Vec::new();
    for _ in 0..take_count(reader)? {
        let position = take_position(reader)?;
        let last = match take_byte(reader, "whether there is a record")? {
            0 => None,
            1 => Some((take_position(reader)?, reader.u32("a checksum")?)),
            _ => return Err(FrameError::Value("whether there is a record")),
        };
        ends.push(ShardEnd { position, last });
    }
    Ok(FollowerHello { kind, epoch, store, name: name.to_vec(), ends })
}

/// Appends a frame of a primary.
pub fn push_from_primary(out: &mut Vec<u8>, frame: &FromPrimary<'_>) {
    match frame {
        FromPrimary::Welcome(history) => push(out, WELCOME, 0, |out| out.extend_from_slice(history)),
        FromPrimary::Copy(identity) => push(out, COPY, 0, |out| out.extend_from_slice(identity)),
        FromPrimary::Shard { shard, from, end, manifest } => push(out, SHARD, 0, |out| {
            out.extend_from_slice(&shard.to_le_bytes());
            put_position(out, *from);
            put_position(out, *end);
            out.extend_from_slice(manifest);
        }),
        FromPrimary::File { kind, number, bytes } => push(out, FILE, 0, |out| {
            out.push(*kind as u8);
            out.extend_from_slice(&number.to_le_bytes());
            out.extend_from_slice(&bytes.to_le_bytes());
        }),
        FromPrimary::Data(bytes) => push(out, DATA, 0, |out| out.extend_from_slice(bytes)),
        FromPrimary::Copied => push(out, COPIED, 0, |_| {}),
        FromPrimary::Records { shard, from, bytes } => push(out, RECORDS, 0, |out| {
            out.extend_from_slice(&shard.to_le_bytes());
            put_position(out, *from);
            out.extend_from_slice(bytes);
        }),
        FromPrimary::Moment(time_ms) => {
            push(out, MOMENT, 0, |out| out.extend_from_slice(&time_ms.to_le_bytes()));
        }
        FromPrimary::Ended(ending, text) => push(out, ENDED, 0, |out| {
            out.push(*ending as u8);
            out.extend_from_slice(text);
        }),
    }
}

impl<'a> FromPrimary<'a> {
    /// Decodes the body of a frame.
    ///
    /// # Errors
    /// [`FrameError`].
    pub fn decode(frame: Frame<'a>) -> Result<Self, FrameError> {
        let mut reader = Reader(frame.body);
        let decoded = match frame.kind {
            WELCOME => FromPrimary::Welcome(frame.body),
            COPY => FromPrimary::Copy(frame.body),
            DATA => FromPrimary::Data(frame.body),
            SHARD => {
                let shard = reader.u16("a shard")?;
                let (from, end) = (take_position(&mut reader)?, take_position(&mut reader)?);
                FromPrimary::Shard { shard, from, end, manifest: reader.0 }
            }
            RECORDS => {
                let (shard, from) = (reader.u16("a shard")?, take_position(&mut reader)?);
                FromPrimary::Records { shard, from, bytes: reader.0 }
            }
            ENDED => {
                let ending = match take_byte(&mut reader, "an ending")? {
                    1 => Ending::Gone,
                    2 => Ending::Diverged,
                    3 => Ending::NotPrimary,
                    4 => Ending::OtherStore,
                    5 => Ending::Permission,
                    6 => Ending::Fenced,
                    _ => Ending::Other,
                };
                FromPrimary::Ended(ending, reader.0)
            }
            FILE => {
                let kind = match take_byte(&mut reader, "the kind of a file")? {
                    1 => FileKind::Checkpoint,
                    2 => FileKind::Segment,
                    3 => FileKind::Log,
                    _ => return Err(FrameError::Value("the kind of a file")),
                };
                let (number, bytes) = (reader.u64("a number")?, reader.u64("a length")?);
                reader.end()?;
                FromPrimary::File { kind, number, bytes }
            }
            COPIED => {
                reader.end()?;
                FromPrimary::Copied
            }
            MOMENT => {
                let time_ms = reader.i64("a time")?;
                reader.end()?;
                FromPrimary::Moment(time_ms)
            }
            kind => return Err(FrameError::Kind(kind)),
        };
        Ok(decoded)
    }
}

#[cfg(test)]
mod tests {
    use super::super::scan;
    use super::*;

    fn at(offset: u64) -> LogPosition {
        LogPosition { generation: 3, offset }
    }

    #[test]
    fn followers_frames_are_what_they_say_and_each_cut_is_noticed() {
        let last = Some((at(5), 0xfeed));
        let ends = vec![ShardEnd { position: at(9), last }, ShardEnd { position: at(0), last: None }];
        let hello =
            FollowerHello { kind: SessionKind::Follow, epoch: 7, store: [8; 16], name: b"b".to_vec(), ends };
        let mut out = Vec::new();
        push_hello(&mut out, &hello);
        let acknowledged = out.len();
        push_acknowledged(&mut out, &[at(1), at(2)]);
        let (frame, used) = scan(&out, FOLLOWER_BODY_BYTES_MAX).unwrap().unwrap();
        assert_eq!(used, acknowledged);
        assert_eq!(FromFollower::decode(frame), Ok(FromFollower::Hello(hello)));
        for length in 0..frame.body.len() {
            assert!(
                FromFollower::decode(Frame { body: &frame.body[..length], ..frame }).is_err(),
                "{length}"
            );
        }
        let (frame, _) = scan(&out[used..], FOLLOWER_BODY_BYTES_MAX).unwrap().unwrap();
        assert_eq!(FromFollower::decode(frame), Ok(FromFollower::Acknowledged(vec![at(1), at(2)])));
        assert!(FromFollower::decode(Frame { kind: 0x99, ..frame }).is_err());
    }

    #[test]
    fn a_primarys_frames_are_what_they_say() {
        let frames = [
            FromPrimary::Welcome(b"history"),
            FromPrimary::Copy(b"identity"),
            FromPrimary::Shard { shard: 2, from: at(1), end: at(7), manifest: b"text" },
            FromPrimary::File { kind: FileKind::Segment, number: 8, bytes: 9 },
            FromPrimary::Data(b"bytes"),
            FromPrimary::Copied,
            FromPrimary::Records { shard: 1, from: at(4), bytes: b"records" },
            FromPrimary::Moment(-5),
            FromPrimary::Ended(Ending::Diverged, b"why"),
        ];
        for want in frames {
            let mut out = Vec::new();
            push_from_primary(&mut out, &want);
            let (frame, used) = scan(&out, PRIMARY_BODY_BYTES_MAX).unwrap().unwrap();
            assert_eq!((used, FromPrimary::decode(frame)), (out.len(), Ok(want)));
        }
        let file = Frame { kind: FILE, number: 0, body: &[9; 17] };
        assert_eq!(FromPrimary::decode(file), Err(FrameError::Value("the kind of a file")));
        for (kind, body) in [(MOMENT, &[0; 9][..]), (COPIED, &[0]), (RECORDS, &[0; 5]), (0x99, &[])] {
            assert!(FromPrimary::decode(Frame { kind, number: 0, body }).is_err(), "{kind:#x}");
        }
    }
}
