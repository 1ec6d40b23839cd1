//! Fuzz targets of this crate. A panic is a finding.

use crate::message::Message;
use crate::oid::OidRef;

/// A datagram: what is read has object identifiers that survive text, and an order.
pub fn fuzz_message(bytes: &[u8]) {
    let Ok(message) = Message::read(bytes) else { return };
    let mut last: Option<OidRef<'_>> = None;
    for variable in message.pdu.variables() {
        let Ok((oid, _value)) = variable else { return };
        if oid.arcs().count() <= 128 {
            let again = crate::oid::Oid::parse(&oid.to_string()).expect("its own text");
            assert_eq!(again.as_ref(), oid);
        }
        if let Some(last) = last {
            let numbers = last.arcs().cmp(oid.arcs());
            assert_eq!(last.cmp(&oid), numbers, "{last} {oid}");
        }
        last = Some(oid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A response with some values, to be damaged.
    const RESPONSE: &[u8] = &[
        0x30, 0x3f, 2, 1, 1, 4, 6, b'p', b'u', b'b', b'l', b'i', b'c', 0xa2, 0x32, 2, 1, 9, 2, 1, 0, 2, 1, 0,
        0x30, 0x27, 0x30, 0x0d, 6, 8, 0x2b, 6, 1, 2, 1, 1, 3, 0, 0x43, 1, 7, 0x30, 0x16, 6, 11, 0x2b, 6, 1,
        2, 1, 0x1f, 1, 1, 1, 6, 0x81, 0x46, 7, 0x4f, 1, 2, 3, 4, 5, 6,
    ];

    #[test]
    fn damaged_datagrams_cause_no_panic() {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        fuzz_message(RESPONSE);
        for _ in 0..200_000 {
            let mut bytes = RESPONSE.to_vec();
            for _ in 0..=next() % 3 {
                let at = next() as usize % bytes.len();
                bytes[at] = next() as u8;
            }
            bytes.truncate(next() as usize % bytes.len() + 1);
            fuzz_message(&bytes);
            bytes.resize(RESPONSE.len(), 0x7f);
            fuzz_message(&bytes);
        }
    }
}
