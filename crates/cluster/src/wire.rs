//! What one node asks of another, and the answers: the operations of [`store::engine::Engine`] as bytes.
//!
//! `docs/cluster.md` describes the layout in general; RRDs have the encodings of the log ([`store::transfer`]). Decoders never panic,
//! and allocate no more than the bytes at hand justify.
//!
//! Two nodes speak the newest version that both know, so that the nodes of a cluster can be upgraded one after the other; the handshake says
//! which one. What a request is in bytes never changes: a later version has further ones ([`Request::since`]). Answers are written for the
//! version of the connection, and may have more in a later one.

mod answer;
mod check;
mod copy;
mod error;
pub mod fuzzing;
mod pack;
mod request;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::fetch::{FetchRequest, FetchRows};
use store::engine::{
    CreateRequest, RrdStatus, Snapshot, Stats, StoreError, StreamPosition, Trashed, UpdateBatch,
    UpdateFailure, UpdatevOutcome, VersionChange,
};
use store::name::RrdName;
use store::transfer::{Cursor, DecodeError, varint};

use crate::check::{CheckAnswer, CheckRequest};
use crate::partition::CopyHead;
pub(crate) use answer::add as add_stats;
use pack::{pack, unpack};
pub(crate) use request::{put_update as put_batch, take_batch};

/// The newest version of the handshake, the frames and all bodies that this program speaks. 2 has comparisons of replicas; 3 has the age of
/// an answer, and a handshake that agrees on a version.
pub const VERSION_MAX: u8 = 3;
/// The oldest one.
pub const VERSION_MIN: u8 = 2;
/// The first one whose answers say how old they are.
const AGES_SINCE: u8 = 3;
/// The longest message: an RRD as large as the store takes, and what is around it.
pub const MESSAGE_BYTES_MAX: usize = store::transfer::RRD_BYTES_MAX + (64 << 20);

/// The longest part of a copy.
pub const PART_BYTES_MAX: u32 = 4 << 20;

/// An operation.
#[derive(Clone, Debug)]
pub enum Request {
    /// [`store::engine::Engine::update`].
    Update(UpdateBatch),
    /// [`store::engine::Engine::updatev`].
    Updatev(RrdName, Vec<u8>),
    /// [`store::engine::Engine::create`].
    Create(RrdName, CreateRequest),
    /// [`store::engine::Engine::import`]; with `no_overwrite`.
    Import(RrdName, Arc<Rrd>, bool),
    /// [`store::engine::Engine::tune`].
    Tune(RrdName, Vec<String>),
    /// [`store::engine::Engine::change`].
    Change(RrdName, u64, VersionChange),
    /// [`store::engine::Engine::delete`].
    Delete(RrdName),
    /// [`store::engine::Engine::rename`].
    Rename(RrdName, RrdName),
    /// [`store::engine::Engine::copy`].
    Copy(RrdName, RrdName),
    /// [`store::engine::Engine::trash`].
    Trash,
    /// [`store::engine::Engine::restore`].
    Restore(Trashed, RrdName),
    /// [`store::engine::Engine::erase`].
    Erase(Trashed),
    /// [`store::engine::Engine::snapshot`].
    Snapshot(RrdName),
    /// [`store::engine::Engine::status`].
    Status(RrdName),
    /// [`store::engine::Engine::status_for_change`].
    StatusForChange(RrdName),
    /// [`store::engine::Engine::fetch`].
    Fetch(RrdName, FetchRequest),
    /// [`store::engine::Engine::read`].
    Read(RrdName),
    /// [`store::engine::Engine::rows`].
    Rows(RrdName, Arc<Definition>, usize, Range<i64>),
    /// [`store::engine::Engine::list`]; whether recursively.
    List(Vec<u8>, bool),
    /// [`store::engine::Engine::has_directory`].
    HasDirectory(Vec<u8>),
    /// [`store::engine::Engine::flush`].
    Flush(Option<RrdName>),
    /// [`store::engine::Engine::sync`].
    Sync,
    /// [`store::engine::Engine::stream_position`].
    StreamPosition(Vec<u8>),
    /// [`store::engine::Engine::set_stream_position`].
    SetStreamPosition(Vec<u8>, StreamPosition),
    /// [`store::engine::Engine::stats`].
    Stats,
    /// Hold the replica as it is now, for a copy.
    BeginCopy,
    /// A part of a copy that was begun.
    ReadCopy {
        /// Which copy.
        copy: u64,
        /// The place of the file.
        file: u32,
        /// Where it begins.
        offset: u64,
        /// How many bytes; at most [`PART_BYTES_MAX`].
        count: u32,
    },
    /// A comparison of all rows of the replicas.
    Check(CheckRequest),
}

impl Request {
    /// The first version of the protocol that has it. A new one is named here with a new [`VERSION_MAX`].
    pub fn since(&self) -> u8 {
        // All that there were before nodes could speak several versions.
        VERSION_MIN
    }

    /// Whether it changes something, so that only the leader may do it, or tells what only the leader knows.
    pub fn needs_leader(&self) -> bool {
        !matches!(
            self,
            Request::Snapshot(_)
                | Request::Status(_)
                | Request::Fetch(..)
                | Request::Read(_)
                | Request::Rows(..)
                | Request::List(..)
                | Request::HasDirectory(_)
                | Request::BeginCopy
                | Request::ReadCopy { .. }
                | Request::Check(CheckRequest::Read { .. } | CheckRequest::PutAside { .. })
        )
    }

    /// Whether the updates that came before it must be in the store: it changes RRDs, or is to find what was written.
    pub(crate) fn follows_updates(&self) -> bool {
        matches!(
            self,
            Request::Updatev(..)
                | Request::Create(..)
                | Request::Import(..)
                | Request::Tune(..)
                | Request::Change(..)
                | Request::Delete(_)
                | Request::Rename(..)
                | Request::Copy(..)
                | Request::Restore(..)
                | Request::Erase(_)
                | Request::Read(_)
                | Request::Flush(_)
                | Request::Sync
        )
    }

    /// Whether it can be asked again when it may have been done already: doing it twice is the same as once.
    pub fn is_repeatable(&self) -> bool {
        !matches!(
            self,
            Request::Updatev(..)
                | Request::Tune(..)
                | Request::Change(..)
                | Request::Restore(..)
                | Request::Rename(..)
                | Request::Check(CheckRequest::Begin { .. })
        )
    }
}

/// What an operation gave.
#[derive(Debug)]
pub enum Answer {
    /// It is done.
    Done,
    /// Of [`Request::Update`]: the lines that failed.
    Failures(Vec<UpdateFailure>),
    /// Of [`Request::Updatev`].
    Written(UpdatevOutcome),
    /// Of [`Request::Change`]: the version of the RRD now.
    Version(u64),
    /// Of [`Request::Trash`].
    Trashed(Vec<Trashed>),
    /// Of [`Request::Snapshot`].
    Snapshot(Box<Snapshot>),
    /// Of [`Request::Status`] and [`Request::StatusForChange`].
    Status(RrdStatus),
    /// Of [`Request::Fetch`].
    Fetched(FetchRows),
    /// Of [`Request::Read`].
    Whole(Box<Rrd>),
    /// Of [`Request::Rows`].
    Values(Vec<f64>),
    /// Of [`Request::List`].
    Names(Vec<Vec<u8>>),
    /// Of [`Request::HasDirectory`].
    Is(bool),
    /// Of [`Request::StreamPosition`].
    Position(Option<StreamPosition>),
    /// Of [`Request::Stats`].
    Stats(Box<Stats>),
    /// Of [`Request::BeginCopy`]: which copy it is, and what it consists of.
    Copy(u64, Box<CopyHead>),
    /// Of [`Request::ReadCopy`].
    Bytes(Vec<u8>),
    /// Of [`Request::Check`].
    Check(CheckAnswer),
}

/// A message to a node.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The partition it is about.
    pub partition: u32,
    /// Whether only its leader may answer.
    pub leader_only: bool,
    /// Of updates: raised whenever some are sent again. Once one was not taken, none of the same round is, that came after it.
    pub round: u64,
    /// What is asked.
    pub request: Request,
}

/// A message to a node, as bytes.
#[derive(Clone, Debug)]
pub struct Letter {
    /// The first version of the protocol in which they say the same.
    pub since: u8,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// What a node answers.
#[derive(Debug)]
pub enum Told {
    /// The store's answer, and how old it may be at most: what was acknowledged before that is in it. `None`: that is not known.
    Answer(Answer, Option<Duration>),
    /// The store's error.
    Refused(StoreError),
    /// The node does not lead the partition; name and address of the node that does, as far as it knows.
    NotLeader(Option<(String, String)>),
    /// The node has no open store of the partition.
    Absent,
    /// The node could not read the request.
    Unreadable(String),
}

impl Ask {
    /// The bytes with the version that they need.
    pub fn letter(&self) -> Letter {
        Letter { since: self.request.since(), bytes: self.encode() }
    }

    /// The bytes, packed.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        varint::put(&mut out, u64::from(self.partition));
        out.push(u8::from(self.leader_only));
        varint::put(&mut out, self.round);
        request::put(&mut out, &self.request);
        pack(out)
    }

    /// The same for a batch of updates, which need not be moved for it.
    pub fn letter_of_update(partition: u32, round: u64, batch: &UpdateBatch) -> Letter {
        let mut out = Vec::with_capacity(batch.text.len() + batch.lines.len() * 3 + 16);
        varint::put(&mut out, u64::from(partition));
        out.push(1);
        varint::put(&mut out, round);
        request::put_update(&mut out, batch);
        Letter { since: VERSION_MIN, bytes: pack(out) }
    }

    /// Reads what [`Ask::encode`] wrote.
    ///
    /// # Errors
    /// When the bytes are malformed.
    pub fn decode(packed: &[u8]) -> Result<Self, DecodeError> {
        let plain = unpack(packed)?;
        let mut cursor = Cursor::new(&plain);
        let partition = cursor.number("a partition")?;
        let leader_only = flag(&mut cursor)?;
        let round = cursor.varint("a round")?;
        let request = request::take(&mut cursor)?;
        cursor.end()?;
        Ok(Ask { partition, leader_only, round, request })
    }
}

const ANSWER: u8 = 1;
const REFUSED: u8 = 2;
const NOT_LEADER: u8 = 3;
const ABSENT: u8 = 4;
const UNREADABLE: u8 = 5;

/// Appends an age: milliseconds and one more, rounded up; 0 is an unknown one.
fn put_age(out: &mut Vec<u8>, age: Option<Duration>) {
    let millis = age.map(|age| u64::try_from(age.as_micros().div_ceil(1000)).unwrap_or(u64::MAX));
    varint::put(out, millis.map_or(0, |millis| millis.saturating_add(1)));
}

fn take_age(cursor: &mut Cursor<'_>) -> Result<Option<Duration>, DecodeError> {
    Ok(cursor.varint("an age")?.checked_sub(1).map(Duration::from_millis))
}

impl Told {
    /// The bytes for a connection of some version, packed.
    pub fn encode(&self, version: u8) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Told::Answer(given, age) => {
                out.push(ANSWER);
                if version >= AGES_SINCE {
                    put_age(&mut out, *age);
                }
                answer::put(&mut out, given);
            }
            Told::Refused(why) => {
                out.push(REFUSED);
                error::put(&mut out, why);
            }
            Told::NotLeader(leader) => {
                out.push(NOT_LEADER);
                out.push(u8::from(leader.is_some()));
                if let Some((name, address)) = leader {
                    put_text(&mut out, name);
                    put_text(&mut out, address);
                }
            }
            Told::Absent => out.push(ABSENT),
            Told::Unreadable(why) => {
                out.push(UNREADABLE);
                put_text(&mut out, why);
            }
        }
        pack(out)
    }

    /// Reads what [`Told::encode`] wrote for the same version.
    ///
    /// # Errors
    /// When the bytes are malformed.
    pub fn decode(packed: &[u8], version: u8) -> Result<Self, DecodeError> {
        let plain = unpack(packed)?;
        let mut cursor = Cursor::new(&plain);
        let bad = cursor.bad("a kind of answer");
        let told = match cursor.byte(bad.expected)? {
            ANSWER => {
                let age = if version >= AGES_SINCE { take_age(&mut cursor)? } else { None };
                Told::Answer(answer::take(&mut cursor)?, age)
            }
            REFUSED => Told::Refused(error::take(&mut cursor)?),
            NOT_LEADER => Told::NotLeader(match flag(&mut cursor)? {
                true => Some((text(&mut cursor)?, text(&mut cursor)?)),
                false => None,
            }),
            ABSENT => Told::Absent,
            UNREADABLE => Told::Unreadable(text(&mut cursor)?),
            _ => return Err(bad),
        };
        cursor.end()?;
        Ok(told)
    }
}

fn flag(cursor: &mut Cursor<'_>) -> Result<bool, DecodeError> {
    let bad = cursor.bad("0 or 1");
    match cursor.byte(bad.expected)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(bad),
    }
}

fn text(cursor: &mut Cursor<'_>) -> Result<String, DecodeError> {
    cursor.text("a text").map(str::to_owned)
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    store::transfer::put_counted(out, text.as_bytes());
}

/// Takes a name as [`put_name`] wrote it; the store's own hidden ones, too.
fn name(cursor: &mut Cursor<'_>) -> Result<RrdName, DecodeError> {
    let bad = cursor.bad("the name of an RRD in normal form");
    checked_name(cursor.counted_bytes(bad.expected)?).ok_or(bad)
}

fn checked_name(bytes: &[u8]) -> Option<RrdName> {
    let name = match RrdName::is_hidden(bytes) {
        true => RrdName::revealed(bytes).map(|(purpose, name)| name.hidden(purpose)),
        false => RrdName::new(bytes).ok(),
    };
    name.filter(|name| name.as_bytes() == bytes)
}

fn put_name(out: &mut Vec<u8>, name: &RrdName) {
    store::transfer::put_counted(out, name.as_bytes());
}
