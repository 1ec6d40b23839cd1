//! Messages of versions 1 and 2c, and the PDUs that version 3 has, too.

use crate::ber::{Malformed, Reader, Writer, tag};
use crate::oid::OidRef;
use crate::value::Value;

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// SNMPv1.
    V1,
    /// SNMPv2c.
    V2c,
    /// SNMPv3.
    V3,
}

impl Version {
    /// The number in a message.
    pub fn number(self) -> i32 {
        match self {
            Version::V1 => 0,
            Version::V2c => 1,
            Version::V3 => 3,
        }
    }
}

/// What a PDU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PduKind {
    /// Asks for these objects.
    Get,
    /// Asks for the objects that follow these.
    GetNext,
    /// The answer.
    Response,
    /// Asks for many objects that follow these.
    GetBulk,
    /// Says why a message of version 3 was refused.
    Report,
}

impl PduKind {
    const ALL: [PduKind; 5] =
        [PduKind::Get, PduKind::GetNext, PduKind::Response, PduKind::GetBulk, PduKind::Report];

    /// The tag of such a PDU.
    pub fn tag(self) -> u8 {
        match self {
            PduKind::Get => 0xa0,
            PduKind::GetNext => 0xa1,
            PduKind::Response => 0xa2,
            PduKind::GetBulk => 0xa5,
            PduKind::Report => 0xa8,
        }
    }
}

/// Values of `error-status` (RFC 3416, 3).
pub mod error_status {
    /// The answer would not fit into one message.
    pub const TOO_BIG: i32 = 1;
    /// Version 1: an object does not exist.
    pub const NO_SUCH_NAME: i32 = 2;
    /// Anything else.
    pub const GENERAL: i32 = 5;
    /// The view does not contain the object.
    pub const AUTHORIZATION: i32 = 16;

    /// Its name in the RFC.
    pub fn name(status: i32) -> &'static str {
        const NAMES: [&str; 19] = [
            "noError",
            "tooBig",
            "noSuchName",
            "badValue",
            "readOnly",
            "genErr",
            "noAccess",
            "wrongType",
            "wrongLength",
            "wrongEncoding",
            "wrongValue",
            "noCreation",
            "inconsistentValue",
            "resourceUnavailable",
            "commitFailed",
            "undoFailed",
            "authorizationError",
            "notWritable",
            "inconsistentName",
        ];
        usize::try_from(status).ok().and_then(|status| NAMES.get(status)).unwrap_or(&"an unknown error")
    }
}

/// What a request begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// Get, GetNext or GetBulk.
    pub kind: PduKind,
    /// What the answer repeats.
    pub request_id: i32,
    /// GetBulk: how many of the objects are asked for once.
    pub non_repeaters: u16,
    /// GetBulk: how many objects are wanted after each of the others.
    pub max_repetitions: u16,
}

/// Wraps the variables that `writer` holds into a PDU.
pub fn write_pdu(writer: &mut Writer, head: &RequestHead) {
    writer.header(tag::SEQUENCE, 0);
    writer.integer(i32::from(head.max_repetitions));
    writer.integer(i32::from(head.non_repeaters));
    writer.integer(head.request_id);
    writer.header(head.kind.tag(), 0);
}

/// Wraps the variables that `writer` holds, last one first, into a request of version 1 or 2c.
pub fn write_request(writer: &mut Writer, version: Version, community: &[u8], head: &RequestHead) {
    write_pdu(writer, head);
    writer.element(tag::OCTET_STRING, community);
    writer.integer(version.number());
    writer.header(tag::SEQUENCE, 0);
}

/// A PDU that was received.
#[derive(Clone, Copy, Debug)]
pub struct Pdu<'a> {
    /// What it is.
    pub kind: PduKind,
    /// The id of the request it answers.
    pub request_id: i32,
    /// 0, or what went wrong: see [`error_status`].
    pub error_status: i32,
    /// Which variable it went wrong with, from 1; 0 is none.
    pub error_index: i32,
    variables: Reader<'a>,
}

impl<'a> Pdu<'a> {
    /// Reads a PDU, all that `reader` has.
    ///
    /// # Errors
    /// When the bytes are no PDU.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let (tag, body) = reader.element()?;
        let kind = PduKind::ALL.into_iter().find(|kind| kind.tag() == tag).ok_or(Malformed)?;
        let mut reader = Reader::new(body);
        Ok(Pdu {
            kind,
            request_id: reader.integer()?,
            error_status: reader.integer()?,
            error_index: reader.integer()?,
            variables: Reader::new(reader.expect(tag::SEQUENCE)?),
        })
    }

    /// The variables in their order; after a malformed one there are no more.
    pub fn variables(&self) -> Variables<'a> {
        Variables(self.variables)
    }
}

/// The variables of a PDU.
#[derive(Clone, Debug)]
pub struct Variables<'a>(Reader<'a>);

impl<'a> Iterator for Variables<'a> {
    type Item = Result<(OidRef<'a>, Value<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let variable = read_variable(&mut self.0);
        if variable.is_err() {
            self.0 = Reader::new(&[]);
        }
        Some(variable)
    }
}

fn read_variable<'a>(reader: &mut Reader<'a>) -> Result<(OidRef<'a>, Value<'a>), Malformed> {
    let mut pair = Reader::new(reader.expect(tag::SEQUENCE)?);
    let oid = OidRef::new(pair.expect(tag::OID)?).ok_or(Malformed)?;
    Ok((oid, Value::read(&mut pair)?))
}

/// The version of a message, whatever follows it.
///
/// # Errors
/// When the bytes are no message.
pub fn version_of(datagram: &[u8]) -> Result<Version, Malformed> {
    let mut message = Reader::new(Reader::new(datagram).expect(tag::SEQUENCE)?);
    match message.integer()? {
        0 => Ok(Version::V1),
        1 => Ok(Version::V2c),
        3 => Ok(Version::V3),
        _ => Err(Malformed),
    }
}

/// A message of version 1 or 2c.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// V1 or V2c.
    pub version: Version,
    /// The community.
    pub community: &'a [u8],
    /// What it says.
    pub pdu: Pdu<'a>,
}

impl<'a> Message<'a> {
    /// Reads a datagram.
    ///
    /// # Errors
    /// When it is no message of version 1 or 2c.
    pub fn read(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let mut message = Reader::new(Reader::new(datagram).expect(tag::SEQUENCE)?);
        let version = match message.integer()? {
            0 => Version::V1,
            1 => Version::V2c,
            _ => return Err(Malformed),
        };
        let community = message.expect(tag::OCTET_STRING)?;
        Ok(Message { version, community, pdu: Pdu::read(&mut message)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oid::Oid;

    #[test]
    fn a_request_has_the_bytes_of_net_snmp() {
        let mut writer = Writer::default();
        let system = Oid::parse("1.3.6.1.2.1.1").unwrap();
        writer.variable(system.as_ref(), &[5, 0]);
        writer.variable(system.as_ref(), &[3, 0]);
        let head =
            RequestHead { kind: PduKind::Get, request_id: 0x1234_5678, non_repeaters: 0, max_repetitions: 0 };
        write_request(&mut writer, Version::V2c, b"public", &head);
        let want = [
            &[0x30, 0x37, 2, 1, 1, 4, 6][..],
            b"public",
            &[0xa0, 0x2a, 2, 4, 0x12, 0x34, 0x56, 0x78, 2, 1, 0, 2, 1, 0, 0x30, 0x1c],
            &[0x30, 0x0c, 6, 8, 0x2b, 6, 1, 2, 1, 1, 3, 0, 5, 0],
            &[0x30, 0x0c, 6, 8, 0x2b, 6, 1, 2, 1, 1, 5, 0, 5, 0],
        ]
        .concat();
        assert_eq!(writer.bytes(), want);
        let message = Message::read(&want).unwrap();
        assert_eq!((message.version, message.community), (Version::V2c, &b"public"[..]));
        assert_eq!((message.pdu.kind, message.pdu.request_id), (PduKind::Get, 0x1234_5678));
        let oids: Vec<String> =
            message.pdu.variables().map(|variable| variable.unwrap().0.to_string()).collect();
        assert_eq!(oids, [".1.3.6.1.2.1.1.3.0", ".1.3.6.1.2.1.1.5.0"]);
        for cut in 0..want.len() {
            assert!(Message::read(&want[..cut]).is_err(), "{cut}");
        }
    }
}
