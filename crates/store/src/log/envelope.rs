//! The envelope of a record: 64 bytes with the kind of its body, its position, and its sender.
//!
//! The checksum covers everything except itself, including the record's own position. So bytes from another
//! position (an old record in a recycled file, a misplaced write) are never valid.

use super::BODY_BYTES_MAX;
use super::Position;

/// First bytes of a record.
pub const MAGIC: [u8; 3] = *b"RLG";
/// Version of the records written here.
pub const VERSION: u8 = 2;
/// Version of records without an owner, which are still read.
pub const VERSION_UNOWNED: u8 = 1;
/// Bytes of an envelope.
pub const ENVELOPE_BYTES: usize = 64;

/// Offset of the version byte.
pub const VERSION_AT: usize = 3;
/// Offset of the CRC32C of everything else.
pub const CRC_AT: usize = 4;
/// Offset of the body's length.
pub const BODY_LENGTH_AT: usize = 8;
/// Offset of the kind.
pub const KIND_AT: usize = 12;
/// Offset of the owner's tag, 3 bytes.
pub const OWNER_AT: usize = 13;
/// Offset of the generation.
pub const GENERATION_AT: usize = 16;
/// Offset of the producer's epoch.
pub const EPOCH_AT: usize = 20;
/// Offset of the record's own offset in its generation.
pub const OFFSET_AT: usize = 24;
/// Offset of the durable mark.
pub const DURABLE_AT: usize = 32;
/// Offset of the producer id.
pub const PRODUCER_AT: usize = 40;
/// Offset of the producer's sequence.
pub const SEQUENCE_AT: usize = 48;
/// Offset of the time.
pub const TIME_AT: usize = 56;

/// The kind of a record's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A batch of updates ([`super::updates`]).
    Updates = 1,
    /// A new RRD ([`super::catalogue::Create`]).
    Create = 2,
    /// Changes by the arguments of `tune` ([`super::catalogue::Tune`]).
    Tune = 3,
    /// Removal of an RRD ([`super::catalogue::Delete`]).
    Delete = 4,
    /// A new name ([`super::catalogue::Rename`]).
    Rename = 5,
    /// A whole RRD ([`super::catalogue::Import`]).
    Import = 6,
    /// Marks that from here on the engine behaves like a newer version; reserved, nothing writes it yet.
    Behaviour = 7,
    /// A part of an import whose body is longer than a record's ([`super::parts`]).
    Part = 8,
    /// How far a stream has been applied ([`super::catalogue::Stream`]).
    Stream = 9,
    /// A hash of some RRDs, for copies to compare theirs with ([`super::catalogue::CopyCheck`]).
    Check = 10,
    /// Where copies compare whole RRDs, with their rows ([`super::catalogue::RowCheck`]).
    RowCheck = 11,
    /// Updates with the names of their RRDs, as a spool keeps them for other stores ([`crate::records`]). A shard writes none.
    Named = 12,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Kind; 12] = [
        Kind::Updates,
        Kind::Create,
        Kind::Tune,
        Kind::Delete,
        Kind::Rename,
        Kind::Import,
        Kind::Behaviour,
        Kind::Part,
        Kind::Stream,
        Kind::Check,
        Kind::RowCheck,
        Kind::Named,
    ];

    /// The kind of this number.
    pub fn from_number(number: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|&kind| kind as u8 == number)
    }
}

/// The sender and time of a record, which the log stores for its readers without interpreting them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Id of the producer.
    pub producer: u64,
    /// Counts the producer's restarts.
    pub epoch: u32,
    /// Counts the producer's records since its last restart.
    pub sequence: u64,
    /// The caller's time in milliseconds since the Unix epoch.
    pub time_ms: i64,
}

/// A record as replay delivers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Where it starts.
    pub position: Position,
    /// Where the next one starts. A checkpoint that includes this record has this position.
    pub end: Position,
    /// The kind of its body.
    pub kind: Kind,
    /// Its sender and time.
    pub stamp: Stamp,
    /// How far the log was durable when the record was written: an offset in the same generation.
    pub durable: u64,
    /// The tag of its shard ([`crate::identity::Owner::tag`]); 0 = not known.
    pub owner: u32,
    /// The body.
    pub body: &'a [u8],
}

/// Starts a record in `buffer`. [`close`] fills in length and checksum.
pub fn open(buffer: &mut Vec<u8>, owner: u32, kind: Kind, stamp: Stamp, position: Position, durable: u64) {
    let mut head = [0; ENVELOPE_BYTES];
    head[..3].copy_from_slice(&MAGIC);
    head[VERSION_AT] = VERSION;
    head[KIND_AT] = kind as u8;
    let [low, middle, high, _] = owner.to_le_bytes();
    put(&mut head, OWNER_AT, [low, middle, high]);
    put(&mut head, GENERATION_AT, position.generation.to_le_bytes());
    put(&mut head, EPOCH_AT, stamp.epoch.to_le_bytes());
    put(&mut head, OFFSET_AT, position.offset.to_le_bytes());
    put(&mut head, DURABLE_AT, durable.to_le_bytes());
    put(&mut head, PRODUCER_AT, stamp.producer.to_le_bytes());
    put(&mut head, SEQUENCE_AT, stamp.sequence.to_le_bytes());
    put(&mut head, TIME_AT, stamp.time_ms.to_le_bytes());
    buffer.extend_from_slice(&head);
}

/// Completes the record in `record`, which holds it from envelope to last byte. Its body must be within
/// [`BODY_BYTES_MAX`].
pub fn close(record: &mut [u8]) {
    let body_length = (record.len() - ENVELOPE_BYTES) as u32;
    put(record, BODY_LENGTH_AT, body_length.to_le_bytes());
    let crc = checksum(record);
    put(record, CRC_AT, crc.to_le_bytes());
}

/// Makes a complete record one of another server's log: all of it stays but how far the log was durable when it was written.
pub fn set_durable(record: &mut [u8], durable: u64) {
    put(record, DURABLE_AT, durable.to_le_bytes());
    let crc = checksum(record);
    put(record, CRC_AT, crc.to_le_bytes());
}

/// A checksum of a complete record that is the same on every server.
pub fn check_of(record: &[u8]) -> u32 {
    let before = crc32c::crc32c(&record[BODY_LENGTH_AT..DURABLE_AT]);
    crc32c::crc32c_append(before, &record[PRODUCER_AT..])
}

fn checksum(record: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&record[..CRC_AT]), &record[BODY_LENGTH_AT..])
}

/// Why bytes are not the record of their position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRecord {
    /// No magic, or a record of another position.
    Foreign,
    /// The record extends beyond the end of the data.
    Cut,
    /// The checksum does not match.
    Checksum {
        /// The checksum in the envelope.
        expected: u32,
        /// The computed checksum.
        found: u32,
    },
    /// An intact record of another shard or store.
    Stranger,
    /// An intact record whose version or kind this program does not know.
    Unknown {
        /// Version.
        version: u8,
        /// Kind.
        kind: u8,
    },
}

/// The length of the record of `position` that starts `bytes`, according to its envelope alone. `bytes` must
/// hold at least an envelope.
///
/// # Errors
/// When it is no record of that position, by its envelope.
pub fn peek(bytes: &[u8], position: Position) -> Result<usize, NotRecord> {
    let here = bytes[..3] == MAGIC
        && u32::from_le_bytes(take(bytes, GENERATION_AT)) == position.generation
        && u64::from_le_bytes(take(bytes, OFFSET_AT)) == position.offset;
    if !here {
        return Err(NotRecord::Foreign);
    }
    let body_length = u32::from_le_bytes(take(bytes, BODY_LENGTH_AT)) as usize;
    if body_length > BODY_BYTES_MAX { Err(NotRecord::Cut) } else { Ok(ENVELOPE_BYTES + body_length) }
}

/// The position in the envelope at the start of `bytes`, which is not checked otherwise.
pub fn place_of(bytes: &[u8]) -> Option<Position> {
    (bytes.len() >= ENVELOPE_BYTES && bytes.starts_with(&MAGIC)).then(|| Position {
        generation: u32::from_le_bytes(take(bytes, GENERATION_AT)),
        offset: u64::from_le_bytes(take(bytes, OFFSET_AT)),
    })
}

/// Checks the record in `bytes`, whose length [`peek`] returned.
///
/// # Errors
/// When it is damaged, or of an unknown version or kind.
pub fn decode(bytes: &[u8], position: Position) -> Result<Record<'_>, NotRecord> {
    let expected = u32::from_le_bytes(take(bytes, CRC_AT));
    let found = checksum(bytes);
    if expected != found {
        return Err(NotRecord::Checksum { expected, found });
    }
    let (version, kind) = (bytes[VERSION_AT], bytes[KIND_AT]);
    let [low, middle, high] = take(bytes, OWNER_AT);
    let owner = u32::from_le_bytes([low, middle, high, 0]);
    let is_known = version == VERSION || (version == VERSION_UNOWNED && owner == 0);
    let known = Kind::from_number(kind).filter(|_| is_known);
    let Some(known) = known else { return Err(NotRecord::Unknown { version, kind }) };
    Ok(Record {
        position,
        end: position.plus(bytes.len() as u64),
        kind: known,
        stamp: Stamp {
            producer: u64::from_le_bytes(take(bytes, PRODUCER_AT)),
            epoch: u32::from_le_bytes(take(bytes, EPOCH_AT)),
            sequence: u64::from_le_bytes(take(bytes, SEQUENCE_AT)),
            time_ms: i64::from_le_bytes(take(bytes, TIME_AT)),
        },
        durable: u64::from_le_bytes(take(bytes, DURABLE_AT)),
        owner,
        body: &bytes[ENVELOPE_BYTES..],
    })
}

/// The whole good records at the start of bytes, of which the first begins at `from`.
pub fn records(bytes: &[u8], from: Position) -> impl Iterator<Item = Record<'_>> {
    let (mut rest, mut at) = (bytes, from);
    std::iter::from_fn(move || {
        let length = (rest.len() >= ENVELOPE_BYTES).then(|| peek(rest, at).ok()).flatten()?;
        let (first, after) = rest.split_at_checked(length)?;
        let record = decode(first, at).ok()?;
        (rest, at) = (after, record.end);
        Some(record)
    })
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&value);
}

fn take<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut value = [0; N];
    value.copy_from_slice(&bytes[at..at + N]);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Position = Position { generation: 2, offset: 0x0102 };

    fn sample() -> Vec<u8> {
        let mut bytes = Vec::new();
        let stamp = Stamp { producer: 7, epoch: 3, sequence: 9, time_ms: 1000 };
        open(&mut bytes, 0x0c0b0a, Kind::Delete, stamp, PLACE, 0x0100);
        bytes.extend_from_slice(b"body");
        close(&mut bytes);
        bytes
    }

    #[test]
    fn a_record_is_these_bytes() {
        let bytes = sample();
        let want: &[u8] = b"RLG\x02\x2c\xc7\x7f\x26\
            \x04\0\0\0\x04\x0a\x0b\x0c\
            \x02\0\0\0\x03\0\0\0\
            \x02\x01\0\0\0\0\0\0\
            \0\x01\0\0\0\0\0\0\
            \x07\0\0\0\0\0\0\0\
            \x09\0\0\0\0\0\0\0\
            \xe8\x03\0\0\0\0\0\0\
            body";
        assert_eq!(bytes, want);
        assert_eq!(peek(&bytes, PLACE), Ok(68));
        let record = decode(&bytes, PLACE).unwrap();
        assert_eq!((record.kind, record.durable, record.body), (Kind::Delete, 0x100, &b"body"[..]));
        assert_eq!(record.end, Position { generation: 2, offset: 0x0146 });
        assert_eq!(record.stamp, Stamp { producer: 7, epoch: 3, sequence: 9, time_ms: 1000 });
    }

    #[test]
    fn a_record_of_another_server_differs_in_its_durable_mark_only() {
        let mut bytes = sample();
        let check = check_of(&bytes);
        set_durable(&mut bytes, 0x0101);
        assert_eq!(check_of(&bytes), check);
        let record = decode(&bytes, PLACE).unwrap();
        assert_eq!((record.durable, record.body), (0x0101, &b"body"[..]));
        bytes[ENVELOPE_BYTES] ^= 1;
        assert_ne!(check_of(&bytes), check);
    }

    #[test]
    fn every_flipped_bit_is_detected() {
        let good = sample();
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let read = peek(&bytes, PLACE).and_then(|length| match length == bytes.len() {
                true => decode(&bytes, PLACE).map(|_| ()),
                false => Err(NotRecord::Cut),
            });
            let seen = matches!(read, Err(NotRecord::Foreign | NotRecord::Cut | NotRecord::Checksum { .. }));
            assert!(seen, "bit {bit}: {read:?}");
        }
    }

    #[test]
    fn records_of_other_positions_and_kinds_are_recognised() {
        let check = |change: &dyn Fn(&mut Vec<u8>), want| {
            let mut bytes = sample();
            change(&mut bytes);
            close(&mut bytes);
            assert_eq!(peek(&bytes, PLACE).and_then(|_| decode(&bytes, PLACE).map(|_| ())), Err(want));
        };
        check(&|bytes| bytes[OFFSET_AT] = 1, NotRecord::Foreign);
        check(&|bytes| bytes[GENERATION_AT] = 1, NotRecord::Foreign);
        check(&|bytes| bytes[KIND_AT] = 0, NotRecord::Unknown { version: 2, kind: 0 });
        let newer = Kind::ALL.len() as u8 + 1;
        check(&|bytes| bytes[KIND_AT] = newer, NotRecord::Unknown { version: 2, kind: newer });
        check(&|bytes| bytes[VERSION_AT] = 3, NotRecord::Unknown { version: 3, kind: 4 });
        check(&|bytes| bytes[VERSION_AT] = 1, NotRecord::Unknown { version: 1, kind: 4 });
    }

    #[test]
    fn records_of_version_1_have_no_owner() {
        let mut bytes = sample();
        bytes[VERSION_AT] = 1;
        bytes[OWNER_AT..OWNER_AT + 3].fill(0);
        close(&mut bytes);
        assert_eq!(decode(&bytes, PLACE).map(|record| record.owner), Ok(0));
        assert_eq!(decode(&sample(), PLACE).map(|record| record.owner), Ok(0x0c0b0a));
    }
}
