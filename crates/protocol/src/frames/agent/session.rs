//! The frames of a session except the content of its blocks.

use super::super::code::ErrorCode;
use super::super::{Frame, FrameError, Reader, push};
use super::is_agent_name;
use super::labels::{self, LabelsPart};
use super::work::{self, GivenProfile, WorkPart};

/// From the agent: who it is. Always its first frame.
pub const HELLO: u8 = 0x10;
/// From the agent: readings.
pub const BLOCK: u8 = 0x11;
/// From the agent: it is still there. Answered by [`APPLIED`].
pub const ALIVE: u8 = 0x12;
/// From the agent: it takes work. Answered by [`WORK`], now and whenever its work changes.
pub const WORK_WANTED: u8 = 0x13;
/// From the agent: how RRDs that it feeds are shown. Since version 4.
pub const LABELS: u8 = 0x14;
/// From the store: the answer to [`HELLO`].
pub const WELCOME: u8 = 0x90;
/// From the store: what it has applied for good.
pub const APPLIED: u8 = 0x91;
/// From the store: readings that it refused, of a block that it applied.
pub const READINGS_REFUSED: u8 = 0x92;
/// From the store: the devices that the agent is to poll, all of them, in one or several frames.
pub const WORK: u8 = 0x93;
/// From the store, before [`WORK`]: a profile that devices of that work name. Since version 4.
pub const PROFILE: u8 = 0x95;
/// From the store, before the end: the epoch of a later spool of this agent.
pub const LATER_EPOCH: u8 = 0x94;
/// From the store: the session ends; a code says whether it may be tried again.
pub const SESSION_ENDED: u8 = 0xfe;

/// Refused readings that one frame lists; of the others, only the number is told.
pub const REFUSALS_LISTED_MAX: usize = 64;
/// The index of a refused reading that was refused before readings are counted.
pub const NOT_INDEXED: u32 = u32::MAX;
/// Bytes of the text of a refusal.
const TEXT_BYTES_MAX: usize = 1024;

/// Who an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello<'a> {
    /// Which spool it sends: a later one has a higher number.
    pub epoch: u64,
    /// Blocks up to this number may have been sent before.
    pub sent: u64,
    /// What it is called.
    pub name: &'a [u8],
}

/// A frame from an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromAgent<'a> {
    /// [`HELLO`]
    Hello(Hello<'a>),
    /// [`BLOCK`]: its body, for [`super::block::BlockReader`].
    Block(&'a [u8]),
    /// [`ALIVE`]
    Alive,
    /// [`WORK_WANTED`]: the agent's tags.
    WorkWanted(Vec<&'a [u8]>),
    /// [`LABELS`]
    Labels(LabelsPart<'a>),
}

/// What the store knows of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The last block of this epoch that is applied for good; 0 = none.
    pub sequence: u64,
    /// Bytes of blocks that may be on their way.
    pub credit: u32,
    /// The store's time, in microseconds since 1970.
    pub time: i64,
}

/// What the store has applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// All blocks up to this one are applied and durable.
    pub sequence: u64,
    /// Bytes of blocks that may be on their way.
    pub credit: u32,
}

/// A reading that the store refused for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedReading<'a> {
    /// Its index in the block.
    pub index: u32,
    /// The reason as a code.
    pub code: ErrorCode,
    /// The RRD and the reason, as a text.
    pub text: &'a [u8],
}

/// A frame from the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromStore<'a> {
    /// [`WELCOME`]
    Welcome(Welcome),
    /// [`APPLIED`]
    Applied(Applied),
    /// [`READINGS_REFUSED`]
    Refused {
        /// The block.
        sequence: u64,
        /// How many of its readings were refused.
        count: u32,
        /// The first of them.
        listed: Vec<RefusedReading<'a>>,
    },
    /// [`WORK`]
    Work(WorkPart<'a>),
    /// [`PROFILE`]
    Profile(GivenProfile<'a>),
    /// [`LATER_EPOCH`]
    LaterEpoch(u64),
    /// [`SESSION_ENDED`]: why.
    Ended(ErrorCode, &'a [u8]),
}

impl<'a> FromAgent<'a> {
    /// Decodes the body of a frame.
    ///
    /// # Errors
    /// [`FrameError`].
    pub fn decode(frame: Frame<'a>) -> Result<Self, FrameError> {
        let mut reader = Reader(frame.body);
        match frame.kind {
            HELLO => {
                let (epoch, sent) = (reader.u64("an epoch")?, reader.u64("a number")?);
                let name = reader.0;
                if !is_agent_name(name) {
                    return Err(FrameError::Value("an agent's name"));
                }
                Ok(FromAgent::Hello(Hello { epoch, sent, name }))
            }
            BLOCK => Ok(FromAgent::Block(frame.body)),
            ALIVE => reader.end().map(|()| FromAgent::Alive),
            WORK_WANTED => work::tags(reader).map(FromAgent::WorkWanted),
            LABELS => labels::part(reader).map(FromAgent::Labels),
            kind => Err(FrameError::Kind(kind)),
        }
    }
}

impl<'a> FromStore<'a> {
    /// Decodes the body of a frame.
    ///
    /// # Errors
    /// [`FrameError`].
    pub fn decode(frame: Frame<'a>) -> Result<Self, FrameError> {
        let mut reader = Reader(frame.body);
        let decoded = match frame.kind {
            WELCOME => {
                let (sequence, credit) = (reader.u64("a number")?, reader.u32("a credit")?);
                FromStore::Welcome(Welcome { sequence, credit, time: reader.i64("a time")? })
            }
            APPLIED => {
                let sequence = reader.u64("a number")?;
                FromStore::Applied(Applied { sequence, credit: reader.u32("a credit")? })
            }
            READINGS_REFUSED => refusals(&mut reader)?,
            WORK => FromStore::Work(work::part(&mut reader)?),
            PROFILE => return work::profile(reader).map(FromStore::Profile),
            LATER_EPOCH => FromStore::LaterEpoch(reader.u64("an epoch")?),
            SESSION_ENDED => {
                let code = ErrorCode::from_number(reader.u16("a code")?);
                return Ok(FromStore::Ended(code, reader.0));
            }
            kind => return Err(FrameError::Kind(kind)),
        };
        reader.end()?;
        Ok(decoded)
    }
}

fn refusals<'a>(reader: &mut Reader<'a>) -> Result<FromStore<'a>, FrameError> {
    let sequence = reader.u64("a number")?;
    let count = reader.u32("a number of refusals")?;
    let listed = usize::from(reader.u16("a number of refusals")?);
    if listed > REFUSALS_LISTED_MAX {
        return Err(FrameError::Value("a number of refusals"));
    }
    let one = |_| {
        let index = reader.u32("a refusal")?;
        let code = ErrorCode::from_number(reader.u16("a code")?);
        let bytes = usize::from(reader.u16("a refusal")?);
        Ok(RefusedReading { index, code, text: reader.bytes(bytes, "the text of a refusal")? })
    };
    let listed = (0..listed).map(one).collect::<Result<_, FrameError>>()?;
    Ok(FromStore::Refused { sequence, count, listed })
}

/// Appends [`HELLO`].
pub fn push_hello(out: &mut Vec<u8>, hello: &Hello<'_>) {
    push(out, HELLO, 0, |body| {
        body.extend_from_slice(&hello.epoch.to_le_bytes());
        body.extend_from_slice(&hello.sent.to_le_bytes());
        body.extend_from_slice(hello.name);
    });
}

/// Appends [`ALIVE`].
pub fn push_alive(out: &mut Vec<u8>) {
    push(out, ALIVE, 0, |_| {});
}

/// Appends [`WELCOME`].
pub fn push_welcome(out: &mut Vec<u8>, welcome: &Welcome) {
    push(out, WELCOME, 0, |body| {
        body.extend_from_slice(&welcome.sequence.to_le_bytes());
        body.extend_from_slice(&welcome.credit.to_le_bytes());
        body.extend_from_slice(&welcome.time.to_le_bytes());
    });
}

/// Appends [`APPLIED`].
pub fn push_applied(out: &mut Vec<u8>, applied: &Applied) {
    push(out, APPLIED, 0, |body| {
        body.extend_from_slice(&applied.sequence.to_le_bytes());
        body.extend_from_slice(&applied.credit.to_le_bytes());
    });
}

/// Appends [`READINGS_REFUSED`]: `count` readings of a block, of which the first [`REFUSALS_LISTED_MAX`] of `listed` are listed.
pub fn push_refused(out: &mut Vec<u8>, sequence: u64, count: u32, listed: &[RefusedReading<'_>]) {
    let listed = &listed[..listed.len().min(REFUSALS_LISTED_MAX)];
    push(out, READINGS_REFUSED, 0, |body| {
        body.extend_from_slice(&sequence.to_le_bytes());
        body.extend_from_slice(&count.to_le_bytes());
        body.extend_from_slice(&(listed.len() as u16).to_le_bytes());
        for RefusedReading { index, code, text } in listed {
            let text = &text[..text.len().min(TEXT_BYTES_MAX)];
            body.extend_from_slice(&index.to_le_bytes());
            body.extend_from_slice(&code.number().to_le_bytes());
            body.extend_from_slice(&(text.len() as u16).to_le_bytes());
            body.extend_from_slice(text);
        }
    });
}

/// Appends [`LATER_EPOCH`].
pub fn push_later_epoch(out: &mut Vec<u8>, epoch: u64) {
    push(out, LATER_EPOCH, 0, |body| body.extend_from_slice(&epoch.to_le_bytes()));
}

/// Appends [`SESSION_ENDED`].
pub fn push_ended(out: &mut Vec<u8>, code: ErrorCode, text: &[u8]) {
    push(out, SESSION_ENDED, 0, |body| {
        body.extend_from_slice(&code.number().to_le_bytes());
        body.extend_from_slice(&text[..text.len().min(TEXT_BYTES_MAX)]);
    });
}

#[cfg(test)]
mod tests {
    use super::super::super::scan;
    use super::super::{NAME_BYTES_MAX, STORE_BODY_BYTES_MAX};
    use super::*;

    fn one(bytes: &[u8]) -> Frame<'_> {
        let (frame, used) = scan(bytes, STORE_BODY_BYTES_MAX).unwrap().unwrap();
        assert_eq!(used, bytes.len());
        frame
    }

    #[test]
    fn an_agent_s_frames_round_trip() {
        let mut out = Vec::new();
        let hello = Hello { epoch: 7, sent: 9, name: b"hall-2" };
        push_hello(&mut out, &hello);
        assert_eq!(out, b"\x16\0\0\0\x10\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0hall-2");
        assert_eq!(FromAgent::decode(one(&out)), Ok(FromAgent::Hello(hello)));
        for name in [&b""[..], b"a b", b"a\n", b"\xc3\xa4", &[b'a'; NAME_BYTES_MAX + 1]] {
            let mut out = Vec::new();
            push_hello(&mut out, &Hello { name, ..hello });
            assert_eq!(FromAgent::decode(one(&out)), Err(FrameError::Value("an agent's name")), "{name:?}");
        }
        out.clear();
        push_alive(&mut out);
        assert_eq!(FromAgent::decode(one(&out)), Ok(FromAgent::Alive));
    }

    #[test]
    fn the_store_s_frames_round_trip() {
        let mut out = Vec::new();
        let welcome = Welcome { sequence: 3, credit: 8 << 20, time: -1 };
        push_welcome(&mut out, &welcome);
        assert_eq!(FromStore::decode(one(&out)), Ok(FromStore::Welcome(welcome)));
        out.clear();
        let applied = Applied { sequence: u64::MAX, credit: 0 };
        push_applied(&mut out, &applied);
        assert_eq!(FromStore::decode(one(&out)), Ok(FromStore::Applied(applied)));
        out.clear();
        push_later_epoch(&mut out, 1 << 63);
        assert_eq!(FromStore::decode(one(&out)), Ok(FromStore::LaterEpoch(1 << 63)));
        out.clear();
        push_ended(&mut out, ErrorCode::Fenced, b"no");
        assert_eq!(FromStore::decode(one(&out)), Ok(FromStore::Ended(ErrorCode::Fenced, b"no")));
    }

    #[test]
    fn only_the_first_refusals_are_listed() {
        let refused = RefusedReading { index: 4, code: ErrorCode::IllegalTime, text: b"a.rrd: old" };
        let many = vec![refused; REFUSALS_LISTED_MAX + 1];
        let mut out = Vec::new();
        push_refused(&mut out, 12, 1_000, &many);
        let listed = many[1..].to_vec();
        assert_eq!(
            FromStore::decode(one(&out)),
            Ok(FromStore::Refused { sequence: 12, count: 1_000, listed })
        );
        for cut in 1..30 {
            let mut frame = one(&out);
            frame.body = &frame.body[..frame.body.len() - cut];
            assert!(FromStore::decode(frame).is_err(), "{cut} bytes too few");
        }
    }
}
