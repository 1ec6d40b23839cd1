//! Writes packets: for tests, for measurements, and for passing values on to another collectd.

use super::packet::{
    self, FineTime, PART_ENCRYPTION, PART_HOST, PART_INTERVAL_FINE, PART_MESSAGE, PART_PLUGIN,
    PART_PLUGIN_INSTANCE, PART_SEVERITY, PART_SIGNATURE, PART_TIME_FINE, PART_TYPE, PART_TYPE_INSTANCE,
    PART_VALUES, Sample, ValueKind,
};
use super::rrd::Identity;
use super::security::AuthFile;

/// Appends a part.
pub fn push_part(packet: &mut Vec<u8>, kind: u16, body: &[u8]) {
    packet.extend_from_slice(&kind.to_be_bytes());
    packet.extend_from_slice(&(4 + body.len() as u16).to_be_bytes());
    packet.extend_from_slice(body);
}

/// Appends the five texts of an identity, leaving out what `before` has in common with it.
pub fn push_identity(packet: &mut Vec<u8>, before: Identity<'_>, identity: Identity<'_>) {
    let kinds = [PART_HOST, PART_PLUGIN, PART_PLUGIN_INSTANCE, PART_TYPE, PART_TYPE_INSTANCE];
    for ((kind, old), new) in kinds.into_iter().zip(before.texts()).zip(identity.texts()) {
        if old != new {
            push_part(packet, kind, &[new, b"\0"].concat());
        }
    }
}

/// Appends the time.
pub fn push_time(packet: &mut Vec<u8>, time: FineTime) {
    push_part(packet, PART_TIME_FINE, &time.0.to_be_bytes());
}

/// Appends the interval.
pub fn push_interval(packet: &mut Vec<u8>, interval: FineTime) {
    push_part(packet, PART_INTERVAL_FINE, &interval.0.to_be_bytes());
}

/// Appends the values.
pub fn push_samples(packet: &mut Vec<u8>, samples: &[Sample]) {
    let mut body = (samples.len() as u16).to_be_bytes().to_vec();
    body.extend(samples.iter().map(|sample| match sample {
        Sample::Counter(_) => ValueKind::Counter.code(),
        Sample::Gauge(_) => ValueKind::Gauge.code(),
        Sample::Derive(_) => ValueKind::Derive.code(),
        Sample::Absolute(_) => ValueKind::Absolute.code(),
    }));
    for sample in samples {
        body.extend_from_slice(&match sample {
            Sample::Counter(number) | Sample::Absolute(number) => number.to_be_bytes(),
            Sample::Gauge(number) => number.to_le_bytes(),
            Sample::Derive(number) => number.to_be_bytes(),
        });
    }
    push_part(packet, PART_VALUES, &body);
}

/// Appends a notification.
pub fn push_message(packet: &mut Vec<u8>, severity: u64, message: &str) {
    push_part(packet, PART_SEVERITY, &severity.to_be_bytes());
    push_part(packet, PART_MESSAGE, &[message.as_bytes(), b"\0"].concat());
}

/// `parts` with `user`'s signature; none if `auth` does not know that user.
pub fn signed(auth: &AuthFile, user: &[u8], parts: &[u8]) -> Option<Vec<u8>> {
    let mut packet = Vec::new();
    push_part(&mut packet, PART_SIGNATURE, &[auth.sign(user, parts)?.as_slice(), user].concat());
    packet.extend_from_slice(parts);
    Some(packet)
}

/// `parts` encrypted by `user`'s key; none if `auth` does not know that user.
pub fn encrypted(auth: &AuthFile, user: &[u8], iv: &[u8; packet::IV_BYTES], parts: &[u8]) -> Option<Vec<u8>> {
    let cipher = auth.encrypt(user, iv, parts)?;
    let mut packet = Vec::new();
    let length = (user.len() as u16).to_be_bytes();
    push_part(&mut packet, PART_ENCRYPTION, &[&length[..], user, iv, &cipher].concat());
    Some(packet)
}
