//! The network protocol's parts: type, length and body, big-endian; only gauges are little-endian.
//!
//! Reading allocates nothing: a part borrows from the datagram.

/// Bytes of a part's head: its type and its length, which includes the head.
const HEAD_BYTES: usize = 4;
/// Bytes of a text with its NUL, as in collectd: a longer one is an error there, too.
pub const TEXT_BYTES_MAX: usize = 128;
/// Bytes of a notification's message with its NUL.
const MESSAGE_BYTES_MAX: usize = 256;

pub(super) const PART_HOST: u16 = 0x0000;
pub(super) const PART_TIME: u16 = 0x0001;
pub(super) const PART_PLUGIN: u16 = 0x0002;
pub(super) const PART_PLUGIN_INSTANCE: u16 = 0x0003;
pub(super) const PART_TYPE: u16 = 0x0004;
pub(super) const PART_TYPE_INSTANCE: u16 = 0x0005;
pub(super) const PART_VALUES: u16 = 0x0006;
pub(super) const PART_INTERVAL: u16 = 0x0007;
pub(super) const PART_TIME_FINE: u16 = 0x0008;
pub(super) const PART_INTERVAL_FINE: u16 = 0x0009;
pub(super) const PART_MESSAGE: u16 = 0x0100;
pub(super) const PART_SEVERITY: u16 = 0x0101;
pub(super) const PART_SIGNATURE: u16 = 0x0200;
pub(super) const PART_ENCRYPTION: u16 = 0x0210;

pub(super) const SIGNATURE_BYTES: usize = 32;
pub(super) const IV_BYTES: usize = 16;

/// A time or a duration in units of 2^-30 s, as collectd counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FineTime(pub u64);

impl FineTime {
    /// A number of whole seconds; none if there is no such time.
    pub fn of_seconds(seconds: u64) -> Option<Self> {
        (seconds < 1 << 34).then_some(FineTime(seconds << 30))
    }

    /// Whole seconds, rounded to the nearest.
    pub fn seconds(self) -> u64 {
        (self.0 >> 30) + (self.0 >> 29 & 1)
    }

    /// Twice this time.
    pub fn doubled(self) -> Self {
        FineTime(self.0.saturating_mul(2))
    }
}

/// How a value was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A count that only wraps.
    Counter,
    /// A level.
    Gauge,
    /// A count, signed.
    Derive,
    /// A count since the last reading.
    Absolute,
}

impl ValueKind {
    pub(super) fn of_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(ValueKind::Counter),
            1 => Some(ValueKind::Gauge),
            2 => Some(ValueKind::Derive),
            3 => Some(ValueKind::Absolute),
            _ => None,
        }
    }

    /// Its number in a packet.
    pub fn code(self) -> u8 {
        match self {
            ValueKind::Counter => 0,
            ValueKind::Gauge => 1,
            ValueKind::Derive => 2,
            ValueKind::Absolute => 3,
        }
    }

    /// Its name in types.db and in RRDtool.
    pub fn name(self) -> &'static str {
        match self {
            ValueKind::Counter => "COUNTER",
            ValueKind::Gauge => "GAUGE",
            ValueKind::Derive => "DERIVE",
            ValueKind::Absolute => "ABSOLUTE",
        }
    }
}

/// One value of a values part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sample {
    /// A counter's.
    Counter(u64),
    /// A gauge's.
    Gauge(f64),
    /// A derive's.
    Derive(i64),
    /// An absolute's.
    Absolute(u64),
}

/// The values of one identity at one time.
#[derive(Clone, Copy, Debug)]
pub struct Samples<'a> {
    kinds: &'a [u8],
    numbers: &'a [u8],
}

impl<'a> Samples<'a> {
    fn parse(body: &'a [u8]) -> Option<Self> {
        let (count, rest) = body.split_first_chunk::<2>()?;
        let count = usize::from(u16::from_be_bytes(*count));
        if rest.len() != 9 * count {
            return None;
        }
        let (kinds, numbers) = rest.split_at(count);
        kinds.iter().all(|&code| ValueKind::of_code(code).is_some()).then_some(Samples { kinds, numbers })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Sample> + 'a {
        self.kinds.iter().zip(self.numbers.as_chunks::<8>().0).map(|(&kind, &bytes)| match kind {
            0 => Sample::Counter(u64::from_be_bytes(bytes)),
            1 => Sample::Gauge(f64::from_le_bytes(bytes)),
            2 => Sample::Derive(i64::from_be_bytes(bytes)),
            _ => Sample::Absolute(u64::from_be_bytes(bytes)),
        })
    }
}

/// One part of a packet; texts without their NUL.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part<'a> {
    Host(&'a [u8]),
    Plugin(&'a [u8]),
    PluginInstance(&'a [u8]),
    Type(&'a [u8]),
    TypeInstance(&'a [u8]),
    Time(FineTime),
    Interval(FineTime),
    Values(Samples<'a>),
    Message(&'a [u8]),
    Severity(u64),
    /// The signature of what follows, with the user's name.
    Signature {
        code: &'a [u8; SIGNATURE_BYTES],
        user: &'a [u8],
    },
    /// Encrypted parts: of `user`, with the checksum as their first bytes.
    Encrypted {
        user: &'a [u8],
        iv: &'a [u8; IV_BYTES],
        cipher: &'a [u8],
    },
    /// A part of a newer version.
    Unknown,
}

/// A packet that does not follow the protocol; what stood before the fault counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// The first part of `bytes`, and the rest.
pub(super) fn next_part(bytes: &[u8]) -> Result<(Part<'_>, &[u8]), Malformed> {
    let (head, _) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or(Malformed)?;
    let kind = u16::from_be_bytes([head[0], head[1]]);
    let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
    let body = bytes.get(HEAD_BYTES..length).ok_or(Malformed)?;
    let rest = &bytes[length..];
    let part = match kind {
        PART_HOST => Part::Host(text(body, TEXT_BYTES_MAX)?),
        PART_PLUGIN => Part::Plugin(text(body, TEXT_BYTES_MAX)?),
        PART_PLUGIN_INSTANCE => Part::PluginInstance(text(body, TEXT_BYTES_MAX)?),
        PART_TYPE => Part::Type(text(body, TEXT_BYTES_MAX)?),
        PART_TYPE_INSTANCE => Part::TypeInstance(text(body, TEXT_BYTES_MAX)?),
        PART_TIME => Part::Time(FineTime::of_seconds(number(body)?).ok_or(Malformed)?),
        PART_TIME_FINE => Part::Time(FineTime(number(body)?)),
        PART_INTERVAL => Part::Interval(FineTime::of_seconds(number(body)?).ok_or(Malformed)?),
        PART_INTERVAL_FINE => Part::Interval(FineTime(number(body)?)),
        PART_VALUES => Part::Values(Samples::parse(body).ok_or(Malformed)?),
        PART_MESSAGE => Part::Message(text(body, MESSAGE_BYTES_MAX)?),
        PART_SEVERITY => Part::Severity(number(body)?),
        PART_SIGNATURE => {
            let (code, user) = body.split_first_chunk().ok_or(Malformed)?;
            Part::Signature { code, user }
        }
        PART_ENCRYPTION => encrypted(body).ok_or(Malformed)?,
        _ => Part::Unknown,
    };
    Ok((part, rest))
}

fn text(body: &[u8], most: usize) -> Result<&[u8], Malformed> {
    if body.len() > most || body.last() != Some(&0) {
        return Err(Malformed);
    }
    let end = memchr::memchr(0, body).unwrap_or(body.len());
    Ok(&body[..end])
}

fn number(body: &[u8]) -> Result<u64, Malformed> {
    body.try_into().map(u64::from_be_bytes).map_err(|_| Malformed)
}

fn encrypted(body: &[u8]) -> Option<Part<'_>> {
    let (length, rest) = body.split_first_chunk::<2>()?;
    let (user, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    let (iv, cipher) = rest.split_first_chunk()?;
    Some(Part::Encrypted { user, iv, cipher })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_to_the_nearest_second() {
        let half = 1 << 29;
        for (time, seconds) in
            [(half - 1, 0), (half, 1), (3 * half, 2), ((10 << 30) + 1, 10), (u64::MAX, 1 << 34)]
        {
            assert_eq!(FineTime(time).seconds(), seconds, "{time}");
        }
        assert_eq!(FineTime::of_seconds(1 << 34), None);
    }

    #[test]
    fn a_length_that_leads_out_is_malformed() {
        for bytes in [
            &b""[..],
            b"\0\0\0",
            b"\0\0\0\x03",
            b"\0\0\0\x05",
            b"\0\x06\0\x06\0\x01",
            b"\0\x06\0\x0f\0\x01\x04aaaaaaaa",
        ] {
            assert!(next_part(bytes).is_err(), "{bytes:?}");
        }
        assert!(next_part(b"\0\0\0\x06ab").is_err(), "a text without its NUL");
        assert!(matches!(next_part(b"\0\0\0\x07ab\0rest"), Ok((Part::Host(b"ab"), b"rest"))));
        assert!(matches!(next_part(b"\x7f\0\0\x05arest"), Ok((Part::Unknown, b"rest"))));
    }
}
