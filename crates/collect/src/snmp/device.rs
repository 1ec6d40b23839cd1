//! What is known of one device: how it is asked, how fast it answers, and how much it can answer at once.

use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;

use ::snmp::ber::{Malformed, Writer};
use ::snmp::message::{Message, Pdu, RequestHead, Version, write_request};
use ::snmp::usm::{UsmAnswer, UsmRefusal, UsmSession};

use super::answer::Polled;
use super::pass::Pass;
use super::plan::Plan;
use super::walk::Walk;

/// Objects of the first request.
const FIRST_OBJECTS: u16 = 20;
/// Bytes of an answer that fit into one Ethernet packet: larger ones are fragmented, and firewalls drop fragments.
const ANSWER_BYTES_MAX: usize = 1472;
/// Objects of a request at most.
const OBJECTS_MAX: u16 = 120;
/// After so long, a request is tried again that was too large once.
const FORGET_BAD_MICROS: u64 = 86_400_000_000;
/// Bounds of the wait for an answer.
const WAIT_MIN_MICROS: u64 = 1_000_000;
const WAIT_MAX_MICROS: u64 = 5_000_000;
/// So long after its start, in hundredths of a second, an agent's counters may jump: for three seconds, net-snmp says 0 for its
/// 64-bit counters of packets.
const UNSETTLED_TICKS: u32 = 1_000;

/// How a device is told who asks.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// Versions 1 and 2c.
    Community {
        /// V1 or V2c.
        version: Version,
        /// The community.
        community: Vec<u8>,
    },
    /// Version 3.
    User(Box<UsmSession>),
}

/// What a datagram of a device is.
#[derive(Debug)]
pub(crate) enum Opened<'a> {
    /// A message.
    Pdu(Pdu<'a>),
    /// The device's engine or its time is now known: the request is to be sent again.
    Synchronized {
        /// Whether it has restarted.
        has_restarted: bool,
    },
    /// It does not accept us.
    Refused(UsmRefusal),
}

impl Credentials {
    /// The version they are of.
    pub fn version(&self) -> Version {
        match self {
            Credentials::Community { version, .. } => *version,
            Credentials::User(_) => Version::V3,
        }
    }

    /// Wraps the variables in `writer` into a message; `now` is in seconds by a clock that goes forward.
    pub(crate) fn seal(&mut self, writer: &mut Writer, head: &RequestHead, now: i64) {
        match self {
            Credentials::User(session) => session.seal(writer, head, now),
            Credentials::Community { version, community } => write_request(writer, *version, community, head),
        }
    }

    /// What a datagram is; what was encrypted is decrypted into `plain`.
    pub(crate) fn open<'a>(
        &mut self,
        datagram: &'a [u8],
        plain: &'a mut Vec<u8>,
        now: i64,
    ) -> Result<Opened<'a>, Malformed> {
        match self {
            Credentials::User(session) => Ok(match session.open(datagram, plain, now)? {
                UsmAnswer::Response(pdu) => Opened::Pdu(pdu),
                UsmAnswer::Synchronized { has_restarted } => Opened::Synchronized { has_restarted },
                UsmAnswer::Refused(refusal) => Opened::Refused(refusal),
            }),
            Credentials::Community { version, .. } => {
                let message = Message::read(datagram)?;
                if message.version == *version { Ok(Opened::Pdu(message.pdu)) } else { Err(Malformed) }
            }
        }
    }
}

/// How a device is polled.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// Microseconds from pass to pass.
    pub step: u64,
    /// When in the step it is polled, in microseconds from its start by the clock.
    pub offset: u64,
    /// How often a request is repeated.
    pub retries: u8,
    /// Microseconds to wait for the first answer; afterwards the measured round trip counts. 0: by default.
    pub timeout: u64,
    /// Objects per request at most; 0: learnt.
    pub objects_max: u16,
    /// Whether tables may be read by GETBULK.
    pub bulk: bool,
    /// Whether answers are taken from any address.
    pub any_source: bool,
    /// Whether `sysUpTime` is asked for in each pass: without it, a restart is not seen.
    pub has_uptime: bool,
    /// Whether ids of requests have 16 bits.
    pub has_short_ids: bool,
    /// How long each answer is awaited, instead of what is learnt.
    pub patience: Option<FixedWait>,
}

/// A wait for answers that does not depend on how fast they come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedWait {
    /// Microseconds until the first repetition.
    pub micros: u64,
    /// By how much each wait is longer than the one before.
    pub backoff: f64,
}

impl FixedWait {
    /// How long to wait for the answer to a request sent for the `tries`th time, from 0.
    pub(crate) fn wait(self, tries: u8) -> u64 {
        (self.micros as f64 * self.backoff.powi(i32::from(tries))).clamp(1.0, 1e10) as u64
    }
}

impl DeviceOptions {
    /// A device with a step in seconds whose place in the step follows from its name.
    pub fn new(step_seconds: u64, name: &str) -> Self {
        let step = step_seconds.max(1) * 1_000_000;
        // FNV-1a, mixed: names that differ in their last digit must not be neighbours.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let hash = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
        // The last quarter of the step is for answers and repeats.
        let offset = hash % (step / 4 * 3);
        DeviceOptions {
            step,
            offset,
            retries: 2,
            timeout: 0,
            objects_max: 0,
            bulk: true,
            any_source: false,
            has_uptime: true,
            has_short_ids: false,
            patience: None,
        }
    }
}

/// The round trip as TCP smooths it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundTrip {
    pub smoothed: u64,
}

impl RoundTrip {
    pub(crate) fn measured(&mut self, micros: u64) {
        self.smoothed = if self.smoothed == 0 { micros.max(1) } else { (self.smoothed * 7 + micros) / 8 };
    }

    /// How long to wait for the answer to a request sent for the `tries`th time.
    pub(crate) fn wait(&self, first: u64, tries: u8) -> u64 {
        let base = match self.smoothed {
            0 if first > 0 => first,
            0 => WAIT_MIN_MICROS,
            smoothed => (smoothed * 4).clamp(WAIT_MIN_MICROS.min(first.max(100_000)), WAIT_MAX_MICROS),
        };
        (base << tries.min(4)).min(WAIT_MAX_MICROS * 2)
    }
}

/// How many objects the device answers at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestSize {
    pub now: u16,
    /// The largest number that was answered.
    pub good: u16,
    /// The smallest number that was not; 0 is none.
    bad: u16,
    bad_at: u64,
    max: u16,
}

impl RequestSize {
    pub(crate) fn new(max: u16) -> Self {
        let max = if max == 0 { OBJECTS_MAX } else { max };
        RequestSize { now: FIRST_OBJECTS.min(max), good: 0, bad: 0, bad_at: 0, max }
    }

    /// A request was answered in `bytes`; `is_full` if it asked for as much as it was allowed to.
    pub(crate) fn answered(&mut self, objects: u16, is_full: bool, bytes: usize, now: u64) {
        self.good = self.good.max(objects);
        if self.bad != 0 && now.saturating_sub(self.bad_at) > FORGET_BAD_MICROS {
            self.bad = 0;
        }
        // Answers grow with the counters in them.
        let fitting = usize::from(objects) * ANSWER_BYTES_MAX / bytes.max(1);
        let fitting = u16::try_from(fitting).unwrap_or(u16::MAX).max(1);
        let larger = (self.now + self.now.div_ceil(2)).min(self.max).min(fitting);
        if bytes > ANSWER_BYTES_MAX {
            self.now = self.now.min(fitting);
        } else if is_full && larger > self.now && (self.bad == 0 || larger < self.bad) {
            self.now = larger;
        }
    }

    /// So many objects were too many. False when there is nothing to halve.
    pub(crate) fn too_many(&mut self, objects: u16, now: u64) -> bool {
        // A request cannot be smaller than a row.
        if objects <= 1 || self.now <= objects / 2 {
            return false;
        }
        self.bad = objects;
        self.bad_at = now;
        self.good = self.good.min(objects - 1);
        self.now = (objects / 2).max(1);
        true
    }
}

/// What the request in flight is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Pass,
    Walk,
}

/// The request in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub id: i32,
    pub purpose: Purpose,
    /// When it was sent first.
    pub sent: u64,
    /// When its answer is late.
    pub deadline: u64,
    pub tries: u8,
    /// How often it was sent again because the device told its engine or its time.
    pub synchronizations: u8,
    /// How many objects it asks for.
    pub objects: u16,
}

/// A device.
#[derive(Debug)]
pub(crate) struct Device {
    pub address: Option<SocketAddr>,
    pub credentials: Credentials,
    pub options: DeviceOptions,
    pub plan: Plan,
    /// Replaces the plan when the pass is over.
    pub next_plan: Option<Plan>,
    pub rtt: RoundTrip,
    pub size: RequestSize,
    pub flight: Option<Flight>,
    pub is_ready: bool,
    pub pass: Option<Pass>,
    pub walks: VecDeque<Walk>,
    /// When the next pass is due: monotonic, and by the clock.
    pub due: u64,
    pub due_wall: i64,
    /// The earliest timer set.
    pub timer: Option<u64>,
    /// Whether it answered nothing in the last pass.
    pub is_silent: bool,
    /// `sysUpTime` and when it came.
    pub uptime: Option<(u32, u64)>,
    /// Whether its engine has restarted since `sysUpTime` came last.
    pub has_restarted: bool,
    /// Objects that the device has said not to have, by target and column: not asked for until the plan changes.
    pub absent: HashSet<(u32, u16)>,
    /// Blocks of the plan that GETBULK does not work for.
    pub no_bulk: HashSet<usize>,
    /// Time of the last outcome, in microseconds by the clock.
    pub last_time: i64,
    /// Samples of a target of which a request asks only a part.
    pub partial: Vec<Polled>,
}

impl Device {
    pub(crate) fn new(address: Option<SocketAddr>, credentials: Credentials, options: DeviceOptions) -> Self {
        Device {
            size: RequestSize::new(options.objects_max),
            address,
            credentials,
            options,
            plan: Plan::default(),
            next_plan: None,
            rtt: RoundTrip::default(),
            flight: None,
            is_ready: false,
            pass: None,
            walks: VecDeque::new(),
            due: u64::MAX,
            due_wall: 0,
            timer: None,
            is_silent: false,
            uptime: None,
            has_restarted: false,
            absent: HashSet::new(),
            no_bulk: HashSet::new(),
            last_time: i64::MIN,
            partial: Vec::new(),
        }
    }

    /// Notes `sysUpTime`; true when counters do not go on from when it was noted last: the device has restarted since, or had only
    /// just started then.
    pub(crate) fn note_uptime(&mut self, ticks: u32, now: u64) -> bool {
        let before = self.uptime.replace((ticks, now));
        let Some((before, then)) = before else { return false };
        if before < UNSETTLED_TICKS {
            return true;
        }
        let elapsed = now.saturating_sub(then) / 10_000;
        let expected = u64::from(before) + elapsed;
        // Ten seconds and five percent: clocks of devices drift, answers wait.
        let slack = 1_000 + elapsed / 20;
        let is_short = u64::from(ticks) + slack < expected;
        // After 497 days it begins again at 0.
        let wrapped = (u64::from(ticks) + (1 << 32)).abs_diff(expected) <= slack;
        is_short && !wrapped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> Device {
        let credentials = Credentials::Community { version: Version::V2c, community: b"public".to_vec() };
        Device::new(None, credentials, DeviceOptions::new(60, "a"))
    }

    #[test]
    fn a_restart_is_told_from_a_wrap() {
        let mut device = device();
        let minute = 60_000_000;
        let mut now = 0;
        let steps = [
            (1_000, false),
            (7_000, false),
            // Restarted 30 s ago: less than expected, although more than before.
            (3_000, true),
            (9_000, false),
            (u32::MAX - 2_000, false),
            // 6,000 ticks later it has wrapped.
            (3_999, false),
            (100, true),
        ];
        for (ticks, is_reset) in steps {
            assert_eq!(device.note_uptime(ticks, now), is_reset, "{ticks}");
            now += minute;
        }
    }

    #[test]
    fn the_size_grows_to_a_packet_and_shrinks_on_trouble() {
        let mut size = RequestSize::new(0);
        for _ in 0..10 {
            size.answered(size.now, true, usize::from(size.now) * 20, 1);
        }
        assert_eq!((size.now, size.good), (73, 73), "73 times 20 bytes are 1,460");
        size.answered(73, true, 1_600, 1);
        assert_eq!(size.now, 67, "the counters have become longer");
        assert!(size.too_many(67, 2) && size.now == 33);
        for _ in 0..10 {
            size.answered(size.now, true, usize::from(size.now) * 20, 3);
        }
        assert_eq!(size.now, 50, "half as much again is more than what was too many");
        size.answered(size.now, true, 1400, 3 + 2 * FORGET_BAD_MICROS);
        assert_eq!(size.now, 52, "as many as fit");
        assert!(!size.too_many(1, 4));
        assert!(size.too_many(52, 5) && !size.too_many(52, 6), "a row of 52 objects");
    }

    #[test]
    fn names_spread_over_three_quarters_of_the_step() {
        let offsets: Vec<u64> =
            (0..1000).map(|number| DeviceOptions::new(60, &format!("router{number}")).offset).collect();
        for quarter in 0..3u64 {
            let range = quarter * 15_000_000..(quarter + 1) * 15_000_000;
            let count = offsets.iter().filter(|offset| range.contains(*offset)).count();
            assert!((250..420).contains(&count), "{quarter}: {count}");
        }
    }
}
