//! An SNMP agent in memory, with the faults of real ones.

use std::collections::BTreeMap;

use ::snmp::ber::{Writer, tag};
use ::snmp::message::{Message, PduKind, Version, error_status};
use ::snmp::oid::Oid;
use ::snmp::value::{OwnedValue, Value};

/// An object identifier as numbers: they sort as a walk goes.
type Arcs = Vec<u32>;

/// What is wrong with an agent.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Variables of an answer at most: beyond, tooBig.
    pub too_big: Option<usize>,
    /// Variables beyond this are left out without a word.
    pub cut: Option<usize>,
    /// Answers to walks with the same object again.
    pub loops: bool,
    /// Answers with another id.
    pub wrong_id: bool,
    /// Does not answer.
    pub is_dead: bool,
    /// Does not answer requests of more objects.
    pub drops_above: Option<usize>,
}

#[derive(Clone, Debug, Default)]
pub struct Agent {
    pub objects: BTreeMap<Arcs, OwnedValue>,
    /// When it was started, in microseconds.
    pub booted: u64,
    pub faults: Faults,
    pub requests: u64,
}

impl Agent {
    pub fn set(&mut self, oid: &str, value: Value<'_>) {
        let oid = Oid::parse(oid).unwrap();
        self.objects.insert(oid.as_ref().arcs().collect(), OwnedValue::of(&value));
    }

    /// Interfaces with 64-bit counters: (index, name, octets in, octets out).
    pub fn interface(&mut self, index: u32, name: &str, octets: (u64, u64)) {
        self.set(&format!("1.3.6.1.2.1.2.2.1.1.{index}"), Value::Integer(index.into()));
        self.set(&format!("1.3.6.1.2.1.2.2.1.2.{index}"), Value::Bytes(name.as_bytes()));
        self.set(&format!("1.3.6.1.2.1.2.2.1.3.{index}"), Value::Integer(6));
        self.set(&format!("1.3.6.1.2.1.2.2.1.8.{index}"), Value::Integer(1));
        self.set(&format!("1.3.6.1.2.1.2.2.1.10.{index}"), Value::Counter32(octets.0 as u32));
        self.set(&format!("1.3.6.1.2.1.31.1.1.1.1.{index}"), Value::Bytes(name.as_bytes()));
        self.set(&format!("1.3.6.1.2.1.31.1.1.1.6.{index}"), Value::Counter64(octets.0));
        self.set(&format!("1.3.6.1.2.1.31.1.1.1.10.{index}"), Value::Counter64(octets.1));
        self.set(&format!("1.3.6.1.2.1.31.1.1.1.15.{index}"), Value::Gauge32(1000));
    }

    /// Removes an interface.
    pub fn remove(&mut self, index: u32) {
        self.objects.retain(|oid, _| oid.last() != Some(&index));
    }

    /// The answer to a request at `now`, in microseconds.
    pub fn answer(&mut self, now: u64, datagram: &[u8]) -> Option<Vec<u8>> {
        self.requests += 1;
        self.set("1.3.6.1.2.1.1.3.0", Value::TimeTicks(((now - self.booted) / 10_000) as u32));
        let message = Message::read(datagram).expect("a request");
        let pdu = message.pdu;
        let asked: Vec<Arcs> = pdu.variables().map(|variable| variable.unwrap().0.arcs().collect()).collect();
        if self.faults.is_dead || self.faults.drops_above.is_some_and(|most| asked.len() > most) {
            return None;
        }
        let (mut status, mut error_index) = (0, 0);
        let mut found: Vec<(Arcs, Value<'_>)> = Vec::new();
        match pdu.kind {
            PduKind::Get => {
                for (nth, oid) in asked.iter().enumerate() {
                    let value = self.objects.get(oid).map(|value| value.value());
                    if value.is_none() && message.version == Version::V1 {
                        (status, error_index) = (error_status::NO_SUCH_NAME, nth as i32 + 1);
                    }
                    found.push((oid.clone(), value.unwrap_or(Value::NoSuchInstance)));
                }
            }
            PduKind::GetNext => {
                for (nth, oid) in asked.iter().enumerate() {
                    let next = self.after(oid);
                    if next.1 == Value::EndOfMibView && message.version == Version::V1 {
                        (status, error_index) = (error_status::NO_SUCH_NAME, nth as i32 + 1);
                    }
                    found.push(next);
                }
            }
            _ => {
                // In GETBULK the two numbers stand in the place of the error.
                let once = pdu.error_status as usize;
                found.extend(asked[..once].iter().map(|oid| self.after(oid)));
                let mut at = asked[once..].to_vec();
                for _ in 0..pdu.error_index {
                    for oid in &mut at {
                        let next = self.after(oid);
                        *oid = next.0.clone();
                        found.push(next);
                    }
                }
            }
        }
        if self.faults.too_big.is_some_and(|most| found.len() > most) {
            (status, error_index) = (error_status::TOO_BIG, 0);
            found.clear();
        }
        found.truncate(self.faults.cut.unwrap_or(usize::MAX));
        let id = if self.faults.wrong_id { pdu.request_id ^ 1 } else { pdu.request_id };
        Some(encode(&message, id, (status, error_index), &found))
    }

    fn after(&self, oid: &Arcs) -> (Arcs, Value<'_>) {
        if self.faults.loops && oid.len() > 11 {
            return (oid.clone(), Value::Integer(1));
        }
        let bounds = (std::ops::Bound::Excluded(oid.clone()), std::ops::Bound::Unbounded);
        match self.objects.range::<Arcs, _>(bounds).next() {
            Some((oid, value)) => (oid.clone(), value.value()),
            None => (oid.clone(), Value::EndOfMibView),
        }
    }
}

fn encode(request: &Message<'_>, id: i32, error: (i32, i32), found: &[(Arcs, Value<'_>)]) -> Vec<u8> {
    let mut writer = Writer::default();
    for (oid, value) in found.iter().rev() {
        let end = writer.len();
        value.write(&mut writer);
        writer.element(tag::OID, Oid::from_arcs(oid).unwrap().as_ref().bytes());
        writer.header(tag::SEQUENCE, end);
    }
    writer.header(tag::SEQUENCE, 0);
    writer.integer(error.1);
    writer.integer(error.0);
    writer.integer(id);
    writer.header(PduKind::Response.tag(), 0);
    writer.element(tag::OCTET_STRING, request.community);
    writer.integer(request.version.number());
    writer.header(tag::SEQUENCE, 0);
    writer.bytes().to_vec()
}
