//! Fuzz targets of this crate. A panic is a finding.

use std::sync::{Arc, OnceLock};

use crate::message::Message;
use crate::mib::MibNames;
use crate::oid::OidRef;
use crate::usm::keys::{AuthProtocol, PrivProtocol};
use crate::usm::{User, UsmAnswer, UsmSession, message_id};

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

/// A datagram of version 3, for a session that knows the engine and for one that does not.
pub fn fuzz_usm(bytes: &[u8]) {
    // Keys take a megabyte of hashing.
    static USERS: OnceLock<[Arc<User>; 2]> = OnceLock::new();
    let users = USERS.get_or_init(|| {
        let auth = Some((AuthProtocol::Sha1, "maplesyrup".into()));
        let privacy = Some((PrivProtocol::Des, "maplesyrup".into()));
        [User::new("plain", None, None), User::new("reader", auth, privacy)].map(Arc::new)
    });
    let _ = message_id(bytes);
    for user in users {
        for is_known in [false, true] {
            let mut session = UsmSession::new(Arc::clone(user), 1);
            if is_known {
                session.learn(ENGINE);
            }
            // The second time, it knows what the first time told.
            for now in [100, 101] {
                let mut plain = Vec::new();
                if let Ok(UsmAnswer::Response(pdu)) = session.open(bytes, &mut plain, now) {
                    assert!(pdu.variables().count() <= bytes.len());
                }
            }
        }
    }
}

/// The engine of [`fuzz_usm`].
const ENGINE: &[u8] = &[0x80, 0, 0x1f, 0x88, 4, b'r', b'1'];

/// A MIB file: every name that is resolved has as many arcs as an object identifier can have.
pub fn fuzz_mib(bytes: &[u8]) {
    let mut names = MibNames::default();
    names.add(&String::from_utf8_lossy(bytes));
    assert!(names.resolve().0.values().all(|arcs| arcs.len() <= 128));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ber::Writer;
    use crate::message::{PduKind, RequestHead};
    use testkit::shake;

    /// A response with some values, to be damaged.
    const RESPONSE: &[u8] = &[
        0x30, 0x3f, 2, 1, 1, 4, 6, b'p', b'u', b'b', b'l', b'i', b'c', 0xa2, 0x32, 2, 1, 9, 2, 1, 0, 2, 1, 0,
        0x30, 0x27, 0x30, 0x0d, 6, 8, 0x2b, 6, 1, 2, 1, 1, 3, 0, 0x43, 1, 7, 0x30, 0x16, 6, 11, 0x2b, 6, 1,
        2, 1, 0x1f, 1, 1, 1, 6, 0x81, 0x46, 7, 0x4f, 1, 2, 3, 4, 5, 6,
    ];

    #[test]
    fn damaged_datagrams_cause_no_panic() {
        shake(RESPONSE, 200_000, fuzz_message);
    }

    #[test]
    fn damaged_datagrams_of_version_3_cause_no_panic() {
        // Asks for the engine, and is answered without keys.
        for kind in [PduKind::Get, PduKind::Response, PduKind::Report] {
            for is_known in [false, true] {
                let mut session = UsmSession::new(Arc::new(User::new("plain", None, None)), 1);
                if is_known {
                    session.learn(ENGINE);
                }
                let mut writer = Writer::default();
                // The reason of a report: the engine is unknown.
                let reason = OidRef::new(&[0x2b, 6, 1, 6, 3, 15, 1, 1, 4, 0]).unwrap();
                writer.variable(reason, &[]);
                let head = RequestHead { kind, request_id: 9, non_repeaters: 0, max_repetitions: 0 };
                session.seal(&mut writer, &head, 100);
                shake(writer.bytes(), 5_000, fuzz_usm);
            }
        }
    }

    #[test]
    fn damaged_mib_files_cause_no_panic() {
        let text = "M DEFINITIONS ::= BEGIN a OBJECT IDENTIFIER ::= { iso org(3) 6 } -- c\n\
                    b OBJECT-TYPE SYNTAX INTEGER DESCRIPTION \"x { y\" ::= { a 1 } c OBJECT-IDENTITY ::= { b 4 } END";
        shake(text.as_bytes(), 20_000, fuzz_mib);
    }
}
