//! Messages of version 3 with the user-based security model (RFC 3412, RFC 3414).

pub mod cipher;
pub mod keys;

use std::fmt;
use std::sync::Arc;

use crate::ber::{Malformed, Reader, Writer, tag};
use crate::message::{Pdu, PduKind, RequestHead, Version, write_pdu};
use crate::oid::OidRef;
use cipher::{Cipher, Moment};
use keys::{AuthProtocol, PrivProtocol};

/// What we say to take at most.
const SIZE_MAX: i32 = 65_507;
/// The number of this security model.
const MODEL: i32 = 3;
/// Seconds that a message's time may differ (RFC 3414, 3.2).
const WINDOW_SECONDS: i64 = 150;
/// Bits of `msgFlags`.
const FLAG_AUTH: u8 = 1;
const FLAG_PRIV: u8 = 2;
const FLAG_REPORTABLE: u8 = 4;
/// Bytes of an engine's id at most (RFC 3411).
const ENGINE_ID_MAX: usize = 32;
/// `usmStats`, below which the reasons of reports are.
const USM_STATS: &[u8] = &[0x2b, 6, 1, 6, 3, 15, 1, 1];

/// What the keys of a user are made of.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Secret {
    /// A password: each engine has another key.
    Password(String),
    /// The key for one engine, made of a password and the engine's id (RFC 3414, A.2).
    LocalKey(Vec<u8>),
}

impl fmt::Debug for Secret {
    /// Without it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Secret::Password(_) => "a password",
            Secret::LocalKey(_) => "a key",
        })
    }
}

impl From<&str> for Secret {
    fn from(password: &str) -> Self {
        Secret::Password(password.to_string())
    }
}

/// What is kept of a [`Secret`].
#[derive(Clone)]
enum UserKey {
    /// Of a password, for all engines.
    General(Vec<u8>),
    /// For one engine.
    Local(Vec<u8>),
}

impl fmt::Debug for UserKey {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UserKey::General(_) => "General",
            UserKey::Local(_) => "Local",
        })
    }
}

impl UserKey {
    fn new(secret: &Secret, auth: AuthProtocol) -> Self {
        match secret {
            Secret::Password(password) => UserKey::General(auth.key_of_password(password.as_bytes())),
            Secret::LocalKey(key) => UserKey::Local(key.clone()),
        }
    }

    fn localized(&self, auth: AuthProtocol, engine_id: &[u8]) -> Vec<u8> {
        match self {
            UserKey::General(key) => auth.localize(key, engine_id),
            UserKey::Local(key) => key.clone(),
        }
    }
}

/// A user; its keys for all engines are made once.
#[derive(Clone, Debug)]
pub struct User {
    /// Its name.
    pub name: Vec<u8>,
    /// The context that is asked for, usually empty.
    pub context: Vec<u8>,
    /// The engine of the context; empty is the one that is asked.
    pub context_engine: Vec<u8>,
    auth: Option<(AuthProtocol, UserKey)>,
    privacy: Option<(PrivProtocol, UserKey)>,
}

impl User {
    /// A user with its secrets. Privacy needs authentication: without it, it is left out.
    pub fn new(
        name: &str,
        auth: Option<(AuthProtocol, Secret)>,
        privacy: Option<(PrivProtocol, Secret)>,
    ) -> Self {
        let privacy = auth.as_ref().zip(privacy);
        let privacy = privacy.map(|((auth, _), (protocol, secret))| (protocol, UserKey::new(&secret, *auth)));
        let auth = auth.map(|(protocol, secret)| (protocol, UserKey::new(&secret, protocol)));
        let name = name.as_bytes().to_vec();
        User { name, context: Vec::new(), context_engine: Vec::new(), auth, privacy }
    }
}

/// Keys for one engine.
#[derive(Clone, Default)]
struct LocalKeys {
    auth: Option<(AuthProtocol, Vec<u8>)>,
    cipher: Option<Cipher>,
}

impl fmt::Debug for LocalKeys {
    /// Without the keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let auth = self.auth.as_ref().map(|(protocol, _)| protocol);
        f.debug_struct("LocalKeys").field("auth", &auth).field("cipher", &self.cipher).finish()
    }
}

/// What is known of a device's engine, and how to talk to it.
#[derive(Clone, Debug)]
pub struct UsmSession {
    user: Arc<User>,
    engine_id: Vec<u8>,
    boots: i32,
    /// The engine's time, and our seconds when it was that.
    time: (i32, i64),
    keys: LocalKeys,
    salt: u64,
}

/// What a message says.
#[derive(Debug)]
pub enum UsmAnswer<'a> {
    /// An answer.
    Response(Pdu<'a>),
    /// The engine is now known, or its time: ask again.
    Synchronized {
        /// Whether the engine has restarted since the last message.
        has_restarted: bool,
    },
    /// The engine refuses us.
    Refused(UsmRefusal),
}

/// Why an engine refuses a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsmRefusal {
    /// It does not know the level of security.
    SecurityLevel,
    /// The user is unknown.
    UserName,
    /// The password or the protocol of authentication is wrong.
    Digest,
    /// The password or the protocol of encryption is wrong.
    Decryption,
    /// Something else.
    Other,
}

impl std::fmt::Display for UsmRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            UsmRefusal::SecurityLevel => "does not allow this user this level of security",
            UsmRefusal::UserName => "does not know the user",
            UsmRefusal::Digest => "says that the password or the protocol of authentication is wrong",
            UsmRefusal::Decryption => "says that the password or the protocol of encryption is wrong",
            UsmRefusal::Other => "refuses the request by a report",
        })
    }
}

impl UsmSession {
    /// A session with an engine that is not known yet. `salt` must differ from session to session.
    pub fn new(user: Arc<User>, salt: u64) -> Self {
        let keys = LocalKeys::default();
        UsmSession { user, engine_id: Vec::new(), boots: 0, time: (0, 0), keys, salt }
    }

    /// Whether the engine is known. Until then, what is sent only asks for it.
    pub fn is_known(&self) -> bool {
        !self.engine_id.is_empty()
    }

    /// Makes the keys for an engine.
    pub(crate) fn learn(&mut self, engine_id: &[u8]) {
        self.engine_id = engine_id.to_vec();
        let localize =
            |(protocol, key): &(AuthProtocol, UserKey)| (*protocol, key.localized(*protocol, engine_id));
        self.keys.auth = self.user.auth.as_ref().map(localize);
        let privacy = self.keys.auth.as_ref().zip(self.user.privacy.as_ref());
        self.keys.cipher = privacy.map(|((auth, _), (protocol, key))| {
            let localized = key.localized(*auth, engine_id);
            Cipher::new(*protocol, protocol.key(*auth, &localized, engine_id))
        });
    }

    /// Wraps the variables that `writer` holds into a message; `now` is in seconds by any clock that goes forward. While the engine
    /// is unknown, the message asks for it instead.
    pub fn seal(&mut self, writer: &mut Writer, head: &RequestHead, now: i64) {
        let is_known = self.is_known();
        if !is_known {
            writer.clear();
        }
        let kind = if is_known { head.kind } else { PduKind::Get };
        write_pdu(writer, &RequestHead { kind, ..*head });
        writer.element(tag::OCTET_STRING, if is_known { &self.user.context } else { &[] });
        let context_engine = Some(&self.user.context_engine).filter(|engine| is_known && !engine.is_empty());
        writer.element(tag::OCTET_STRING, context_engine.unwrap_or(&self.engine_id));
        writer.header(tag::SEQUENCE, 0);
        let time = self.time.0.saturating_add((now - self.time.1).clamp(0, i64::from(i32::MAX)) as i32);
        let mut flags = FLAG_REPORTABLE;
        let mut salt = [0; 8];
        if let Some(cipher) = &self.keys.cipher {
            self.salt = self.salt.wrapping_add(1);
            salt = self.salt.to_be_bytes();
            writer.pad(cipher.padding(writer.len()));
            // What is not encrypted is not sent.
            if cipher.encrypt(Moment { boots: self.boots, time, salt }, writer.bytes_mut()).is_none() {
                return writer.clear();
            }
            writer.header(tag::OCTET_STRING, 0);
            flags |= FLAG_PRIV;
        }
        let end = writer.len();
        writer.element(tag::OCTET_STRING, if flags & FLAG_PRIV != 0 { &salt } else { &[] });
        // Where the code stands, counted from the end.
        let code_end = writer.len();
        let code_bytes = self.keys.auth.as_ref().map_or(0, |(protocol, _)| protocol.code_bytes());
        writer.element(tag::OCTET_STRING, &[0; 48][..code_bytes]);
        writer.element(tag::OCTET_STRING, if is_known { &self.user.name } else { &[] });
        writer.integer(time);
        writer.integer(self.boots);
        writer.element(tag::OCTET_STRING, &self.engine_id);
        writer.header(tag::SEQUENCE, end);
        writer.header(tag::OCTET_STRING, end);
        flags |= if code_bytes > 0 { FLAG_AUTH } else { 0 };
        let global = writer.len();
        writer.integer(MODEL);
        writer.element(tag::OCTET_STRING, &[flags]);
        writer.integer(SIZE_MAX);
        writer.integer(head.request_id);
        writer.header(tag::SEQUENCE, global);
        writer.integer(Version::V3.number());
        writer.header(tag::SEQUENCE, 0);
        if let Some((protocol, key)) = &self.keys.auth {
            let code = protocol.code(key, [writer.bytes(), &[], &[]]);
            let at = writer.len() - code_end;
            writer.bytes_mut()[at - code_bytes..at].copy_from_slice(&code[..code_bytes]);
        }
    }

    /// Opens a message; what was encrypted is decrypted into `plain`.
    ///
    /// # Errors
    /// When it is no message of version 3 for us, or its code or time is wrong.
    pub fn open<'a>(
        &mut self,
        datagram: &'a [u8],
        plain: &'a mut Vec<u8>,
        now: i64,
    ) -> Result<UsmAnswer<'a>, Malformed> {
        let message = Envelope::read(datagram)?;
        let is_authentic = self.is_authentic(datagram, &message)?;
        let body = if message.flags & FLAG_PRIV != 0 {
            let cipher = self.keys.cipher.as_ref().filter(|_| is_authentic).ok_or(Malformed)?;
            let salt = message.salt.try_into().map_err(|_| Malformed)?;
            let moment = Moment { boots: message.boots, time: message.time, salt };
            plain.clear();
            plain.extend_from_slice(Reader::new(message.body).expect(tag::OCTET_STRING)?);
            cipher.decrypt(moment, plain).ok_or(Malformed)?;
            plain
        } else {
            message.body
        };
        let pdu = read_scoped(body)?;
        if pdu.kind == PduKind::Report {
            let report = report_of(&pdu);
            return self.take_report(report, &message, is_authentic, now);
        }
        if pdu.kind != PduKind::Response || !self.is_known() || message.engine_id != self.engine_id {
            return Err(Malformed);
        }
        // What we ask for with a code is answered with one, encrypted if we encrypt.
        let wants_privacy = self.keys.cipher.is_some();
        if (self.keys.auth.is_some() && !is_authentic) || (wants_privacy && message.flags & FLAG_PRIV == 0) {
            return Err(Malformed);
        }
        if is_authentic {
            let expected = i64::from(self.time.0) + (now - self.time.1);
            let is_newer = message.boots > self.boots;
            let is_timely =
                message.boots == self.boots && i64::from(message.time) + WINDOW_SECONDS >= expected;
            if !is_newer && !is_timely {
                return Err(Malformed);
            }
            if is_newer || i64::from(message.time) > expected {
                (self.boots, self.time) = (message.boots, (message.time, now));
            }
        }
        Ok(UsmAnswer::Response(pdu))
    }

    /// Whether a message has the right code. Wrong ones are errors; none is `false`.
    fn is_authentic(&self, datagram: &[u8], message: &Envelope<'_>) -> Result<bool, Malformed> {
        if message.flags & FLAG_AUTH == 0 {
            return Ok(false);
        }
        let (protocol, key) = self.keys.auth.as_ref().ok_or(Malformed)?;
        let length = protocol.code_bytes();
        if message.code.len() != length {
            return Err(Malformed);
        }
        let at = message.code.as_ptr() as usize - datagram.as_ptr() as usize;
        let zeros = [0; 48];
        let code = protocol.code(key, [&datagram[..at], &zeros[..length], &datagram[at + length..]]);
        // All bytes are compared, so that the time says nothing of the code.
        let differing = code[..length].iter().zip(message.code).fold(0, |bits, (a, b)| bits | (a ^ b));
        if differing == 0 { Ok(true) } else { Err(Malformed) }
    }

    fn take_report(
        &mut self,
        reason: u8,
        message: &Envelope<'_>,
        is_authentic: bool,
        now: i64,
    ) -> Result<UsmAnswer<'static>, Malformed> {
        const SECURITY_LEVEL: u8 = 1;
        const NOT_IN_TIME: u8 = 2;
        const USER_NAME: u8 = 3;
        const ENGINE_ID: u8 = 4;
        const DIGEST: u8 = 5;
        const DECRYPTION: u8 = 6;
        let refusal = match reason {
            ENGINE_ID if !self.is_known() => {
                if !(5..=ENGINE_ID_MAX).contains(&message.engine_id.len()) {
                    return Err(Malformed);
                }
                self.learn(message.engine_id);
                (self.boots, self.time) = (message.boots, (message.time, now));
                return Ok(UsmAnswer::Synchronized { has_restarted: false });
            }
            // It has another id now: it is asked for its id again, without any key.
            ENGINE_ID => {
                self.engine_id.clear();
                self.keys = LocalKeys::default();
                return Ok(UsmAnswer::Synchronized { has_restarted: true });
            }
            // Only with a code: otherwise anyone could set our clock.
            NOT_IN_TIME if is_authentic && message.engine_id == self.engine_id => {
                let has_restarted = message.boots != self.boots;
                (self.boots, self.time) = (message.boots, (message.time, now));
                return Ok(UsmAnswer::Synchronized { has_restarted });
            }
            NOT_IN_TIME => return Err(Malformed),
            SECURITY_LEVEL => UsmRefusal::SecurityLevel,
            USER_NAME => UsmRefusal::UserName,
            DIGEST => UsmRefusal::Digest,
            DECRYPTION => UsmRefusal::Decryption,
            _ => UsmRefusal::Other,
        };
        Ok(UsmAnswer::Refused(refusal))
    }
}

/// The id of a message of version 3, which is that of its request.
///
/// # Errors
/// When the bytes are no message of version 3.
pub fn message_id(datagram: &[u8]) -> Result<i32, Malformed> {
    let mut message = Reader::new(Reader::new(datagram).expect(tag::SEQUENCE)?);
    message.integer()?;
    Reader::new(message.expect(tag::SEQUENCE)?).integer()
}

/// What is around a scoped PDU.
struct Envelope<'a> {
    flags: u8,
    engine_id: &'a [u8],
    boots: i32,
    time: i32,
    code: &'a [u8],
    salt: &'a [u8],
    body: &'a [u8],
}

impl<'a> Envelope<'a> {
    fn read(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let mut message = Reader::new(Reader::new(datagram).expect(tag::SEQUENCE)?);
        if message.integer()? != Version::V3.number() {
            return Err(Malformed);
        }
        let mut global = Reader::new(message.expect(tag::SEQUENCE)?);
        global.integer()?;
        global.integer()?;
        let &[flags] = global.expect(tag::OCTET_STRING)? else { return Err(Malformed) };
        if global.integer()? != MODEL {
            return Err(Malformed);
        }
        let mut security =
            Reader::new(Reader::new(message.expect(tag::OCTET_STRING)?).expect(tag::SEQUENCE)?);
        let engine_id = security.expect(tag::OCTET_STRING)?;
        let (boots, time) = (security.integer()?, security.integer()?);
        security.expect(tag::OCTET_STRING)?;
        let (code, salt) = (security.expect(tag::OCTET_STRING)?, security.expect(tag::OCTET_STRING)?);
        if boots < 0 || time < 0 {
            return Err(Malformed);
        }
        Ok(Envelope { flags, engine_id, boots, time, code, salt, body: message.rest() })
    }
}

fn read_scoped(body: &[u8]) -> Result<Pdu<'_>, Malformed> {
    let mut scoped = Reader::new(Reader::new(body).expect(tag::SEQUENCE)?);
    scoped.expect(tag::OCTET_STRING)?;
    scoped.expect(tag::OCTET_STRING)?;
    Pdu::read(&mut scoped)
}

/// Which of the `usmStats` a report names, or 0.
fn report_of(pdu: &Pdu<'_>) -> u8 {
    let first = pdu.variables().next().and_then(Result::ok);
    let stats = OidRef::new(USM_STATS);
    let index = first.zip(stats).and_then(|((oid, _), stats)| oid.strip_prefix(stats));
    index.and_then(|index| index.bytes().first().copied()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
