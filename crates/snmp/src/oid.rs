//! Object identifiers, kept as the bytes that BER sends: what is compared and copied per message needs no conversion.

use std::cmp::Ordering;
use std::fmt;

/// Arcs of an object identifier at most (RFC 2578, 3.5).
const ARCS_MAX: usize = 128;

/// An object identifier as it is encoded, without tag and length: each arc in groups of seven bits, the first two arcs in one.
///
/// A suffix, the index of a row, is encoded in the same way but all its arcs stand alone: see [`Suffix`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OidRef<'a>(&'a [u8]);

impl<'a> OidRef<'a> {
    /// Takes encoded bytes, if they are an object identifier: 1 to 128 arcs of 32 bits, in their shortest form.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        (!bytes.is_empty() && are_arcs(bytes)).then_some(OidRef(bytes))
    }

    /// The encoded bytes.
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// What follows `prefix`, if this is below it or equal to it.
    pub fn strip_prefix(self, prefix: OidRef<'_>) -> Option<Suffix<'a>> {
        // Every encoded arc ends in a byte below 0x80, so the prefix of bytes is a prefix of arcs.
        self.0.strip_prefix(prefix.0).map(Suffix)
    }

    /// The arcs as numbers.
    pub fn arcs(self) -> impl Iterator<Item = u32> + 'a {
        let mut arcs = Arcs(self.0);
        let first = arcs.next().unwrap_or(0);
        let (top, second) = match first {
            0..=39 => (0, first),
            40..=79 => (1, first - 40),
            _ => (2, first - 80),
        };
        [top, second].into_iter().chain(arcs)
    }

    /// A copy of its own.
    pub fn to_owned(self) -> Oid {
        Oid(self.0.into())
    }
}

impl PartialOrd for OidRef<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for OidRef<'_> {
    /// The order of a walk: arc by arc.
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self.0, other.0)
    }
}

impl fmt::Display for OidRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.arcs().try_for_each(|arc| write!(f, ".{arc}"))
    }
}

impl fmt::Debug for OidRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The arcs of an object identifier after some prefix, such as the index of a table's row.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Suffix<'a>(&'a [u8]);

impl<'a> Suffix<'a> {
    /// Takes encoded arcs; none are an empty suffix.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        are_arcs(bytes).then_some(Suffix(bytes))
    }

    /// The encoded bytes.
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// The arcs as numbers.
    pub fn arcs(self) -> impl Iterator<Item = u32> + 'a {
        Arcs(self.0)
    }
}

impl PartialOrd for Suffix<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Suffix<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self.0, other.0)
    }
}

impl fmt::Display for Suffix<'_> {
    /// `1.2.3`, without a dot in front.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, arc) in self.arcs().enumerate() {
            write!(f, "{}{arc}", if nth == 0 { "" } else { "." })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Suffix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An object identifier with its own memory.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Oid(Box<[u8]>);

impl Oid {
    /// Encodes arcs: two or more, the first at most 2 and, below that, the second at most 39.
    pub fn from_arcs(arcs: &[u32]) -> Option<Self> {
        let (&[top, second], rest) = arcs.split_first_chunk::<2>()?;
        if top > 2 || (top < 2 && second > 39) || arcs.len() > ARCS_MAX {
            return None;
        }
        let mut bytes = Vec::with_capacity(arcs.len() + 4);
        push_arc(&mut bytes, (top * 40).checked_add(second)?);
        rest.iter().for_each(|&arc| push_arc(&mut bytes, arc));
        Some(Oid(bytes.into()))
    }

    /// Reads `1.3.6.1` or `.1.3.6.1`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('.').unwrap_or(text);
        let arcs: Option<Vec<u32>> = text.split('.').map(parse_arc).collect();
        Self::from_arcs(&arcs?)
    }

    /// Borrows it.
    pub fn as_ref(&self) -> OidRef<'_> {
        OidRef(&self.0)
    }

    /// This with further arcs.
    pub fn join(&self, arcs: &[u32]) -> Oid {
        let mut bytes = self.0.to_vec();
        arcs.iter().for_each(|&arc| push_arc(&mut bytes, arc));
        Oid(bytes.into())
    }

    /// This with the arcs of a suffix.
    pub fn join_suffix(&self, suffix: Suffix<'_>) -> Oid {
        Oid([&self.0, suffix.0].concat().into())
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_ref(), f)
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn parse_arc(text: &str) -> Option<u32> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// Appends an arc in groups of seven bits, highest first.
pub fn push_arc(out: &mut Vec<u8>, arc: u32) {
    let groups = (38 - arc.leading_zeros()).max(7) / 7;
    for group in (0..groups).rev() {
        let more = if group == 0 { 0 } else { 0x80 };
        out.push((arc >> (7 * group)) as u8 & 0x7f | more);
    }
}

/// Whether bytes are whole arcs of 32 bits in their shortest form, and not too many.
fn are_arcs(bytes: &[u8]) -> bool {
    if bytes.last().is_some_and(|&last| last >= 0x80) {
        return false;
    }
    if bytes.len() <= ARCS_MAX && bytes.iter().all(|&byte| byte < 0x80) {
        return true;
    }
    let (mut arcs, mut length) = (1, 0);
    for &byte in bytes {
        length += 1;
        if (length == 1 && byte == 0x80) || length > 5 || (length == 1 && byte < 0x80 && arcs >= ARCS_MAX) {
            return false;
        }
        if byte < 0x80 {
            arcs += 1;
            length = 0;
        }
    }
    // Five groups hold 35 bits.
    arcs <= ARCS_MAX && Wide(bytes).all(|arc| arc <= u64::from(u32::MAX))
}

/// Arcs before it is known that they have 32 bits.
struct Wide<'a>(&'a [u8]);

impl Iterator for Wide<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let mut arc = 0;
        loop {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            arc = arc << 7 | u64::from(byte & 0x7f);
            if byte < 0x80 {
                return Some(arc);
            }
        }
    }
}

struct Arcs<'a>(&'a [u8]);

impl Iterator for Arcs<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let mut arc = 0u32;
        loop {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            arc = arc << 7 | u32::from(byte & 0x7f);
            if byte < 0x80 {
                return Some(arc);
            }
        }
    }
}

/// Compares encoded arcs in the order of their numbers.
fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    if same == a.len() || same == b.len() {
        return a.len().cmp(&b.len());
    }
    // Back to the start of the arc that differs; the longer encoding is the larger number.
    let start = a[..same].iter().rposition(|&byte| byte < 0x80).map_or(0, |at| at + 1);
    Arcs(&a[start..]).next().cmp(&Arcs(&b[start..]).next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_agree() {
        for (text, bytes) in [
            (".1.3.6.1.2.1.1.3.0", &[0x2b, 6, 1, 2, 1, 1, 3, 0][..]),
            (".1.3.127.128.16383.16384", &[0x2b, 0x7f, 0x81, 0, 0xff, 0x7f, 0x81, 0x80, 0]),
            (".0.0", &[0]),
            (".2.999.4294967295", &[0x88, 0x37, 0x8f, 0xff, 0xff, 0xff, 0x7f]),
        ] {
            let oid = Oid::parse(text).unwrap();
            assert_eq!((oid.to_string().as_str(), oid.as_ref().bytes()), (text, bytes));
            assert_eq!(OidRef::new(bytes), Some(oid.as_ref()));
        }
        for bad in ["", ".", "1", "1.40", "3.1", "1.3.", "1..3", "1.3.4294967296", "1.3.+1", "1.3.x"] {
            assert_eq!(Oid::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_whole_short_arcs_are_taken() {
        for bad in [&[][..], &[0x2b, 0x81], &[0x2b, 0x80, 1], &[0x2b, 0x90, 0x80, 0x80, 0x80, 0], &[1; 129]] {
            assert_eq!(OidRef::new(bad), None, "{bad:?}");
        }
        assert!(OidRef::new(&[0x2b, 0x8f, 0xff, 0xff, 0xff, 0x7f]).is_some());
    }

    #[test]
    fn the_order_is_that_of_the_numbers() {
        let texts = [
            "1.3",
            "1.3.0",
            "1.3.127",
            "1.3.128",
            "1.3.128.1",
            "1.3.16383",
            "1.3.16384",
            "1.3.99999.4",
            "2.1",
        ];
        let oids: Vec<Oid> = texts.iter().map(|text| Oid::parse(text).unwrap()).collect();
        for (i, a) in oids.iter().enumerate() {
            for (j, b) in oids.iter().enumerate() {
                assert_eq!(a.as_ref().cmp(&b.as_ref()), i.cmp(&j), "{a} {b}");
            }
        }
        let suffix = oids[4].as_ref().strip_prefix(oids[0].as_ref()).unwrap();
        assert_eq!(suffix.to_string(), "128.1");
        assert_eq!(oids[0].join_suffix(suffix), oids[4]);
    }
}
