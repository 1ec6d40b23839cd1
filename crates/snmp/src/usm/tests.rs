//! Sessions against an engine that has the same keys.

use super::*;
use super::{AuthProtocol as Auth, PrivProtocol as Priv};
use crate::message::write_pdu;

const ENGINE: &[u8] = &[0x80, 0, 0x1f, 0x88, 4, b'r', b'1'];
const UP_TIME: &[u8] = &[0x2b, 6, 1, 2, 1, 1, 3, 0];

fn users() -> Vec<User> {
    let mut users = vec![User::new("nosy", None, None)];
    for auth in [Auth::Md5, Auth::Sha1, Auth::Sha224, Auth::Sha256, Auth::Sha384, Auth::Sha512] {
        users.push(User::new("reader", Some((auth, "maplesyrup".into())), None));
    }
    let aes = [Priv::Aes128, Priv::Aes192, Priv::Aes256, Priv::Aes192Reeder, Priv::Aes256Reeder];
    for privacy in aes.into_iter().chain([Priv::Des, Priv::TripleDes]) {
        users.push(User::new(
            "reader",
            Some((Auth::Sha256, "maplesyrup".into())),
            Some((privacy, "otherpassword".into())),
        ));
    }
    users
}

#[test]
fn no_key_is_shown() {
    for user in users() {
        let shown = format!("{user:?} {:?}", engine(&user, 0));
        let keys = user.auth.iter().map(|(_, key)| key).chain(user.privacy.iter().map(|(_, key)| key));
        for UserKey::General(key) | UserKey::Local(key) in keys {
            assert!(!shown.contains(&format!("{key:?}")), "{shown}");
        }
        let local = engine(&user, 0).keys.auth.map(|(_, key)| format!("{key:?}"));
        assert!(local.is_none_or(|key| !shown.contains(&key)), "{shown}");
    }
}

/// A message of the engine with one variable.
fn say(engine: &mut UsmSession, kind: PduKind, id: i32, oid: &[u8], now: i64) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.variable(OidRef::new(oid).unwrap(), &[]);
    let head = RequestHead { kind, request_id: id, non_repeaters: 0, max_repetitions: 0 };
    engine.seal(&mut writer, &head, now);
    writer.bytes().to_vec()
}

fn engine(user: &User, now: i64) -> UsmSession {
    let mut engine = UsmSession::new(Arc::new(user.clone()), 77);
    engine.learn(ENGINE);
    (engine.boots, engine.time) = (5, (1_000, now));
    engine
}

/// A session that knows the engine.
fn synchronized(user: &User, now: i64) -> UsmSession {
    let mut session = UsmSession::new(Arc::new(user.clone()), 1);
    let asked = say(&mut session, PduKind::Get, 9, UP_TIME, now);
    assert_eq!(message_id(&asked), Ok(9));
    assert!(Envelope::read(&asked).unwrap().engine_id.is_empty());
    // The report that tells the engine has no code.
    let mut without_keys = engine(&User::new("", None, None), now);
    let unknown_engine = [USM_STATS, &[4, 0]].concat();
    let report = say(&mut without_keys, PduKind::Report, 9, &unknown_engine, now);
    let mut plain = Vec::new();
    let answer = session.open(&report, &mut plain, now).unwrap();
    assert!(matches!(answer, UsmAnswer::Synchronized { has_restarted: false }));
    assert!(session.is_known());
    session
}

#[test]
fn every_protocol_talks_and_no_changed_byte_is_taken() {
    for user in users() {
        let mut session = synchronized(&user, 100);
        let mut engine = engine(&user, 100);
        let request = say(&mut session, PduKind::Get, 10, UP_TIME, 130);
        let envelope = Envelope::read(&request).unwrap();
        assert_eq!((envelope.engine_id, envelope.boots, envelope.time), (ENGINE, 5, 1_030));
        assert_eq!(engine.is_authentic(&request, &envelope), Ok(user.auth.is_some()));
        let response = say(&mut engine, PduKind::Response, 10, UP_TIME, 130);
        let has_privacy = user.privacy.is_some();
        assert_eq!(response.windows(UP_TIME.len()).any(|bytes| bytes == UP_TIME), !has_privacy);
        let mut plain = Vec::new();
        let UsmAnswer::Response(pdu) = session.open(&response, &mut plain, 130).unwrap() else { panic!() };
        assert_eq!((pdu.request_id, pdu.variables().next().unwrap().unwrap().0.bytes()), (10, UP_TIME));
        for at in 0..response.len() {
            let mut changed = response.clone();
            changed[at] ^= 1;
            let answer = session.clone().open(&changed, &mut Vec::new(), 130).map(drop);
            assert!(answer.is_err() || user.auth.is_none(), "byte {at} of {user:?}");
        }
        // 151 seconds later it is a replay.
        assert_eq!(session.open(&response, &mut Vec::new(), 130 + 151).is_err(), user.auth.is_some());
    }
}

#[test]
fn a_response_that_is_less_protected_than_the_request_is_refused() {
    for user in users() {
        let session = synchronized(&user, 100);
        let mut readable = engine(&user, 100);
        readable.keys.cipher = None;
        let mut unsigned = engine(&user, 100);
        unsigned.keys = LocalKeys::default();
        for (mut engine, is_taken) in [(readable, user.privacy.is_none()), (unsigned, user.auth.is_none())] {
            let response = say(&mut engine, PduKind::Response, 10, UP_TIME, 100);
            let opened = session.clone().open(&response, &mut Vec::new(), 100).is_ok();
            assert_eq!(opened, is_taken, "{user:?}");
        }
    }
}

#[test]
fn keys_for_one_engine_are_those_of_the_password_and_the_context_may_have_an_engine_of_its_own() {
    let local = |password: &str| {
        Secret::LocalKey(Auth::Sha1.localize(&Auth::Sha1.key_of_password(password.as_bytes()), ENGINE))
    };
    let secrets = |auth: Secret, privacy: Secret| {
        User::new("reader", Some((Auth::Sha1, auth)), Some((Priv::Aes128, privacy)))
    };
    let by_password = secrets("maplesyrup".into(), "otherpassword".into());
    let mut session = synchronized(&secrets(local("maplesyrup"), local("otherpassword")), 100);
    let mut engine = engine(&by_password, 100);
    let response = say(&mut engine, PduKind::Response, 10, UP_TIME, 100);
    assert!(matches!(session.open(&response, &mut Vec::new(), 100), Ok(UsmAnswer::Response(_))));
    let request = say(&mut session, PduKind::Get, 11, UP_TIME, 100);
    assert!(engine.is_authentic(&request, &Envelope::read(&request).unwrap()).unwrap());
    for context_engine in [&b""[..], b"elsewhere"] {
        let mut user = User::new("nosy", None, None);
        user.context_engine = context_engine.to_vec();
        let request = say(&mut synchronized(&user, 100), PduKind::Get, 12, UP_TIME, 100);
        let envelope = Envelope::read(&request).unwrap();
        let mut scoped = Reader::new(Reader::new(envelope.body).expect(tag::SEQUENCE).unwrap());
        let want = if context_engine.is_empty() { ENGINE } else { context_engine };
        assert_eq!((scoped.expect(tag::OCTET_STRING), envelope.engine_id), (Ok(want), ENGINE));
    }
}

#[test]
fn a_restart_is_told_by_a_report_with_a_code_and_by_nothing_else() {
    let user = &users()[3];
    let mut session = synchronized(user, 100);
    let mut engine = engine(user, 100);
    let old = say(&mut engine, PduKind::Response, 11, UP_TIME, 100);
    (engine.boots, engine.time) = (6, (3, 200));
    let not_in_time = [USM_STATS, &[2, 0]].concat();
    let report = say(&mut engine, PduKind::Report, 11, &not_in_time, 200);
    let mut without_keys = engine.clone();
    without_keys.keys = LocalKeys::default();
    let forged = say(&mut without_keys, PduKind::Report, 11, &not_in_time, 200);
    assert!(session.open(&forged, &mut Vec::new(), 200).is_err());
    assert!(matches!(
        session.open(&report, &mut Vec::new(), 200),
        Ok(UsmAnswer::Synchronized { has_restarted: true })
    ));
    assert!(session.open(&old, &mut Vec::new(), 200).is_err(), "a message from before the restart");
    let response = say(&mut engine, PduKind::Response, 12, UP_TIME, 201);
    assert!(matches!(session.open(&response, &mut Vec::new(), 201), Ok(UsmAnswer::Response(_))));
    let wrong_digest = [USM_STATS, &[5, 0]].concat();
    let report = say(&mut without_keys, PduKind::Report, 12, &wrong_digest, 201);
    assert!(matches!(
        session.open(&report, &mut Vec::new(), 201),
        Ok(UsmAnswer::Refused(UsmRefusal::Digest))
    ));
}

#[test]
fn damaged_messages_cause_no_panic() {
    let user = &users()[9];
    let session = synchronized(user, 100);
    let response = say(&mut engine(user, 100), PduKind::Response, 10, UP_TIME, 100);
    let mut state = 88_172_645_463_325_252u64;
    for _ in 0..5_000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let mut bytes = response.clone();
        let at = state as usize % bytes.len();
        bytes[at] = (state >> 32) as u8;
        bytes.truncate((state >> 40) as usize % bytes.len() + 1);
        let _ = session.clone().open(&bytes, &mut Vec::new(), 100);
        let _ = message_id(&bytes);
    }
    let mut writer = Writer::default();
    write_pdu(
        &mut writer,
        &RequestHead { kind: PduKind::Get, request_id: 1, non_repeaters: 0, max_repetitions: 0 },
    );
    assert!(session.clone().open(writer.bytes(), &mut Vec::new(), 100).is_err());
}
