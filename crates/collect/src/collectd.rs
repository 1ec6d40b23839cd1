//! Receives collectd's network protocol and makes the RRDs that collectd's rrdtool plugin makes.
//!
//! [`CollectdCollector::receive`] takes a datagram and appends the readings that follow from it. On the way of a known RRD
//! nothing is allocated: its five texts are found in one table. What is new passes two limits: of this collector in all,
//! and of each sender, because who may send may also make up names.

mod converter;
pub mod encode;
pub mod packet;
pub mod rrd;
pub mod security;
pub mod types;

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;
use std::sync::Arc;

use ::rrd::time::Timestamp;
use foldhash::quality::RandomState;
use hashbrown::HashTable;

pub use converter::{Conversion, convert};

use crate::complaints::Complaints;
use crate::inventory::{Inventory, RrdId};
use crate::reading::{Readings, Value};
use packet::{FineTime, Part, Sample, Samples, ValueKind, next_part};
use rrd::{Identity, RrdOptions};
use security::{AuthFile, SecurityLevel};
use types::{TypeSources, TypesDb};

/// The protocol's port.
pub const PORT: u16 = 25_826;
/// The interval of values whose sender does not say it.
const INTERVAL_DEFAULT: FineTime = FineTime(10 << 30);
/// Seconds that a sender's clock may be ahead. A later time would stop an RRD until then, whatever sends to it.
const AHEAD_SECONDS_MAX: i64 = 86_400;
/// Notifications kept until they are taken; more are only counted.
const NOTIFICATIONS_MAX: usize = 256;
/// Most senders whose RRDs are counted one by one; the RRDs of further ones are counted together.
const SENDERS_MAX: usize = 100_000;

/// How a [`CollectdCollector`] works.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectdOptions {
    /// Directory of the store for all RRDs; empty = its root.
    pub directory: String,
    /// What RRDs are made.
    pub rrd: RrdOptions,
    /// What a packet must be to count.
    pub security: SecurityLevel,
    /// Most RRDs fed.
    pub rrds_max: usize,
    /// Most RRDs that one address may add.
    pub rrds_per_sender_max: usize,
}

impl Default for CollectdOptions {
    fn default() -> Self {
        CollectdOptions {
            directory: String::new(),
            rrd: RrdOptions::default(),
            security: SecurityLevel::None,
            rrds_max: 1_000_000,
            rrds_per_sender_max: 100_000,
        }
    }
}

/// What was received, and why values were not taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectdCounts {
    /// Datagrams.
    pub packets: u64,
    /// Bytes of datagrams.
    pub bytes: u64,
    /// Values that became part of a reading.
    pub values: u64,
    /// Readings.
    pub readings: u64,
    /// Notifications.
    pub notifications: u64,
    /// Datagrams with a fault; the parts before it counted.
    pub malformed: u64,
    /// Datagrams less protected than the security level asks for.
    pub unprotected: u64,
    /// Datagrams whose user, signature or checksum is wrong.
    pub forged: u64,
    /// Readings without a time, host, plugin or type, or whose texts cannot be a name.
    pub incomplete: u64,
    /// Readings of a type that types.db has not, or has with other sources.
    pub unknown_type: u64,
    /// Readings not newer than the last one of their RRD.
    pub old: u64,
    /// Readings of the day after tomorrow.
    pub ahead: u64,
    /// Readings of new RRDs beyond a limit.
    pub over_limit: u64,
}

/// A message that a sender's plugin wants to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// 1 failure, 2 warning, 4 okay.
    pub severity: u64,
    /// When, in seconds since the epoch.
    pub time: u64,
    /// Its sender and subject: the texts of an [`Identity`] that are not empty, with `/` between them.
    pub subject: String,
    /// The message.
    pub message: String,
}

/// An RRD that was fed before.
#[derive(Debug)]
struct Known {
    /// The five texts, each with a NUL after it.
    key: Box<[u8]>,
    rrd: RrdId,
    sources: TypeSources,
    /// Of the last reading.
    time: i64,
}

/// What persists from part to part of a packet.
#[derive(Clone, Copy, Debug, Default)]
struct Context<'a> {
    identity: Identity<'a>,
    time: FineTime,
    interval: FineTime,
    severity: u64,
}

/// How much the parts being read are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Protection {
    None,
    Signed,
    Encrypted,
}

/// Why the rest of a packet does not count.
enum Rejected {
    Malformed,
    Unprotected,
    Forged,
}

/// Turns datagrams into readings.
#[derive(Debug)]
pub struct CollectdCollector {
    options: CollectdOptions,
    types: TypesDb,
    auth: AuthFile,
    inventory: Inventory,
    known: HashTable<Known>,
    hasher: RandomState,
    key: Vec<u8>,
    plain: Vec<u8>,
    senders: HashMap<IpAddr, usize>,
    counts: CollectdCounts,
    complaints: Complaints,
    notifications: Vec<Notification>,
}

impl CollectdCollector {
    /// A collector that knows these types and users.
    pub fn new(options: CollectdOptions, types: TypesDb, auth: AuthFile) -> Self {
        CollectdCollector {
            inventory: Inventory::new(options.rrds_max),
            options,
            types,
            auth,
            known: HashTable::new(),
            hasher: RandomState::default(),
            key: Vec::new(),
            plain: Vec::new(),
            senders: HashMap::new(),
            counts: CollectdCounts::default(),
            complaints: Complaints::default(),
            notifications: Vec::new(),
        }
    }

    /// Uses other types from now on.
    pub fn set_types(&mut self, types: TypesDb) {
        self.types = types;
        // With their sources; the next values find the RRDs again by their names.
        self.known.clear();
    }

    /// Uses other users and passwords from now on.
    pub fn set_auth(&mut self, auth: AuthFile) {
        self.auth = auth;
    }

    /// The RRDs fed so far.
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// What was received since the beginning.
    pub fn counts(&self) -> &CollectdCounts {
        &self.counts
    }

    /// What is wrong with senders and types.
    pub fn complaints(&mut self) -> &mut Complaints {
        &mut self.complaints
    }

    /// The notifications since the last call; at most 256 are kept.
    pub fn take_notifications(&mut self) -> Vec<Notification> {
        std::mem::take(&mut self.notifications)
    }

    /// Appends the readings of a datagram of `sender`; `now` is in seconds since the epoch.
    pub fn receive(&mut self, now: i64, sender: IpAddr, datagram: &[u8], readings: &mut Readings) {
        self.counts.packets += 1;
        self.counts.bytes += datagram.len() as u64;
        let rejected = self.parts(now, sender, datagram, Protection::None, readings);
        // Each kind is a subject of its own: packets of two kinds in turn are two lines in the log.
        let (count, kind, text) = match rejected {
            Ok(()) => return,
            Err(Rejected::Malformed) => {
                (&mut self.counts.malformed, "malformed", "sends packets that are not collectd's")
            }
            Err(Rejected::Unprotected) => (
                &mut self.counts.unprotected,
                "protection",
                "sends packets that are less protected than `security` asks for",
            ),
            Err(Rejected::Forged) => (
                &mut self.counts.forged,
                "password",
                "sends packets whose user, password or signature is wrong",
            ),
        };
        *count += 1;
        self.complaints.raise(&format!("{sender}: {kind}"), text);
    }

    fn parts(
        &mut self,
        now: i64,
        sender: IpAddr,
        mut bytes: &[u8],
        mut protection: Protection,
        readings: &mut Readings,
    ) -> Result<(), Rejected> {
        let mut context = Context { interval: INTERVAL_DEFAULT, ..Context::default() };
        while !bytes.is_empty() {
            let (part, rest) = next_part(bytes).map_err(|_| Rejected::Malformed)?;
            bytes = rest;
            match part {
                Part::Encrypted { user, iv, cipher } if protection != Protection::Encrypted => {
                    // A packet of encrypted parts is one user's, so the buffer serves the whole packet.
                    let mut plain = std::mem::take(&mut self.plain);
                    let inside = if self.auth.decrypts(user, iv, cipher, &mut plain) {
                        self.parts(now, sender, &plain, Protection::Encrypted, readings)
                    } else {
                        Err(Rejected::Forged)
                    };
                    self.plain = plain;
                    inside?;
                    continue;
                }
                Part::Signature { code, user } if protection == Protection::None => {
                    if self.auth.verifies(user, code, rest) {
                        protection = Protection::Signed;
                    } else if !self.auth.is_empty() || self.options.security != SecurityLevel::None {
                        return Err(Rejected::Forged);
                    }
                    continue;
                }
                _ => {}
            }
            let enough = match self.options.security {
                SecurityLevel::None => true,
                SecurityLevel::Sign => protection >= Protection::Signed,
                SecurityLevel::Encrypt => protection == Protection::Encrypted,
            };
            if !enough {
                return Err(Rejected::Unprotected);
            }
            self.part(now, sender, part, &mut context, readings);
        }
        Ok(())
    }

    fn part<'a>(
        &mut self,
        now: i64,
        sender: IpAddr,
        part: Part<'a>,
        context: &mut Context<'a>,
        readings: &mut Readings,
    ) {
        let identity = &mut context.identity;
        match part {
            Part::Host(text) => identity.host = text,
            Part::Plugin(text) => identity.plugin = text,
            Part::PluginInstance(text) => identity.plugin_instance = text,
            Part::Type(text) => identity.type_name = text,
            Part::TypeInstance(text) => identity.type_instance = text,
            Part::Time(time) => context.time = time,
            Part::Interval(interval) if interval.0 > 0 => context.interval = interval,
            Part::Interval(_) => context.interval = INTERVAL_DEFAULT,
            Part::Severity(severity) => context.severity = severity,
            Part::Values(samples) => self.values(now, sender, context, samples, readings),
            Part::Message(message) => self.notify(context, message),
            Part::Signature { .. } | Part::Encrypted { .. } | Part::Unknown => {}
        }
    }

    fn values(
        &mut self,
        now: i64,
        sender: IpAddr,
        context: &Context<'_>,
        samples: Samples<'_>,
        readings: &mut Readings,
    ) {
        if context.time.0 == 0 || !context.identity.is_complete() {
            self.counts.incomplete += 1;
            return;
        }
        let seconds = context.time.seconds() as i64;
        if seconds > now.saturating_add(AHEAD_SECONDS_MAX) {
            self.counts.ahead += 1;
            self.complaints.raise(
                &format!("{sender}: time"),
                "sends times more than a day ahead of this machine's clock",
            );
            return;
        }
        self.key.clear();
        for text in context.identity.texts() {
            self.key.extend_from_slice(text);
            self.key.push(0);
        }
        let hash = hash_of(&self.hasher, &self.key);
        if self.known.find(hash, |known| *known.key == *self.key).is_none()
            && !self.add(hash, sender, context)
        {
            return;
        }
        let Some(known) = self.known.find_mut(hash, |known| *known.key == *self.key) else { return };
        let fits = known.sources.len() == samples.len()
            && samples
                .iter()
                .zip(known.sources.iter())
                .all(|(sample, source)| value(sample, source.kind).is_some());
        if !fits {
            self.counts.unknown_type += 1;
            self.complain_of_type(
                context,
                "values do not fit the sources of types.db; use the sender's file",
            );
            return;
        }
        if seconds <= known.time {
            self.counts.old += 1;
            return;
        }
        known.time = seconds;
        self.counts.values += samples.len() as u64;
        self.counts.readings += 1;
        let values = samples.iter().zip(known.sources.iter());
        let values = values.map(|(sample, source)| value(sample, source.kind).unwrap_or(Value::Unknown));
        readings.push(known.rrd, Timestamp::whole(seconds), values);
    }

    /// Adds the RRD of an identity whose key is in `self.key`; false if it cannot be.
    fn add(&mut self, hash: u64, sender: IpAddr, context: &Context<'_>) -> bool {
        let Some(sources) = self.types.find(context.identity.type_name).cloned() else {
            self.counts.unknown_type += 1;
            self.complain_of_type(context, "is not in types.db; add the sender's file to `types`");
            return false;
        };
        let Some(name) = context.identity.rrd_name(&self.options.directory) else {
            self.counts.incomplete += 1;
            self.complaints.raise(&format!("{sender}: names"), "sends names that cannot be a file's");
            return false;
        };
        // Made-up senders share one count, of an address that cannot send.
        let is_counted = self.senders.len() < SENDERS_MAX || self.senders.contains_key(&sender);
        let counted = if is_counted { sender } else { IpAddr::from([0; 4]) };
        let added = self.senders.entry(counted).or_default();
        let before = self.inventory.len();
        let is_full = *added >= self.options.rrds_per_sender_max && !self.inventory.contains(&name);
        let spec = || Arc::new(self.options.rrd.spec(&sources, context.interval));
        let limit = if is_full {
            Err(format!("made {added} RRDs, the limit of one sender (`rrds_per_sender`)"))
        } else {
            self.inventory.find_or_add(&name, spec).map_err(|full| format!("{full} (`rrds`)"))
        };
        match limit {
            Ok(rrd) => {
                *added += self.inventory.len() - before;
                let known = Known { key: self.key.as_slice().into(), rrd, sources, time: i64::MIN };
                self.known.insert_unique(hash, known, |known| hash_of(&self.hasher, &known.key));
                true
            }
            Err(text) => {
                self.counts.over_limit += 1;
                self.complaints.raise(&format!("{sender}: number of RRDs"), text);
                false
            }
        }
    }

    fn complain_of_type(&mut self, context: &Context<'_>, text: &str) {
        // Not the host: a type that is missing is missing for all.
        let name = String::from_utf8_lossy(context.identity.type_name);
        self.complaints.raise(&format!("type {name:?}"), text);
    }

    fn notify(&mut self, context: &Context<'_>, message: &[u8]) {
        self.counts.notifications += 1;
        if self.notifications.len() >= NOTIFICATIONS_MAX {
            return;
        }
        let texts: Vec<_> = context.identity.texts().into_iter().filter(|text| !text.is_empty()).collect();
        self.notifications.push(Notification {
            severity: context.severity,
            time: context.time.seconds(),
            subject: String::from_utf8_lossy(&texts.join(&b'/')).into_owned(),
            message: String::from_utf8_lossy(message).into_owned(),
        });
    }
}

fn hash_of(hasher: &RandomState, key: &[u8]) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(key);
    hasher.finish()
}

/// A value as its source wants it: whole numbers keep their bits; none for a fraction in a counter.
fn value(sample: Sample, kind: ValueKind) -> Option<Value<'static>> {
    let bits = match (sample, kind) {
        (Sample::Gauge(number), ValueKind::Gauge) => return Some(Value::Float(number)),
        (Sample::Gauge(_), _) => return None,
        (Sample::Derive(number), ValueKind::Gauge) => return Some(Value::Float(number as f64)),
        (Sample::Counter(number) | Sample::Absolute(number), ValueKind::Gauge) => {
            return Some(Value::Float(number as f64));
        }
        (Sample::Derive(number), _) => number as u64,
        (Sample::Counter(number) | Sample::Absolute(number), _) => number,
    };
    Some(match kind {
        ValueKind::Derive => Value::Signed(bits as i64),
        _ => Value::Unsigned(bits),
    })
}

#[cfg(test)]
mod tests;
