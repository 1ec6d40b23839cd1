//! What statsd makes of its lines at each flush, under the names that it gives to Graphite.
//!
//! A counter is `stats.NAME` (per second) and `stats_counts.NAME`; a gauge `stats.gauges.NAME`; a set `stats.sets.NAME.count`; a
//! timer `stats.timers.NAME.` with `count`, `count_ps`, `lower`, `upper`, `sum`, `sum_squares`, `mean`, `median`, `std`, and for each
//! percentile N `count_N`, `mean_N`, `upper_N`, `sum_N`, `sum_squares_N`. What was heard of once is told at each flush: a counter
//! as 0, a gauge as it was; after [`FORGOTTEN_AFTER`] without a line it is forgotten, earlier where others have no place.

mod timer;

use std::fmt::Write as _;

use hashbrown::{HashMap, HashSet};

use self::timer::Timer;
use super::{StatsdSink, StatsdValue};
use crate::fault::Fault;
use crate::number::Number;
use crate::pushed::Pushed;
use crate::refusal::{Refusal, Sink};
use crate::sample::Kind;

/// Seconds without a line after which a name is forgotten.
pub const FORGOTTEN_AFTER: f64 = 86_400.0;
/// The same while there are more names than may be, so that those which were sent once to fill it do not keep out others for a day. Guessed:
/// senders that tell something rarely do so each minute or each five.
pub const FORGOTTEN_WHEN_FULL_AFTER: f64 = 600.0;
/// Distinct texts of a set at most, between two flushes; further ones are not counted.
const MEMBERS_MAX: usize = 100_000;
/// Distinct texts of all sets at most, and bytes of one: it counts by its hash beyond them.
const MEMBERS_OF_ALL_MAX: usize = 1_000_000;
/// Bytes of the name and tags of one. Of a longer one no RRD can be made, with what the flush adds to its name, and it would be refused at
/// every flush.
const KEY_BYTES_MAX: usize = crate::path::PATH_BYTES_MAX - 128;
/// Bytes of the names and tags of all.
const KEYS_BYTES_MAX: usize = 64 << 20;
/// Members for which a set keeps its memory from one flush to the next.
const MEMBERS_AT_REST: usize = 64;
/// Values of all timers that are kept for percentiles.
const TIMES_OF_ALL_MAX: usize = 4_000_000;

/// How the aggregator counts.
#[derive(Clone, Debug, PartialEq)]
pub struct StatsdOptions {
    /// What stands before all names: `stats`.
    pub prefix: String,
    /// Percentiles of timers, above 0 and at most 100.
    pub percentiles: Vec<f64>,
    /// Series that are told at a flush at most: a counter is two, a timer nine and five for each percentile.
    pub series_max: usize,
}

impl Default for StatsdOptions {
    fn default() -> Self {
        StatsdOptions { prefix: "stats".into(), percentiles: vec![90.0], series_max: 100_000 }
    }
}

/// What is kept of a name.
#[derive(Debug)]
enum Kept {
    Count(f64),
    Gauge(f64),
    Timer(Timer),
    Set(HashSet<u64, foldhash::quality::FixedState>),
}

#[derive(Debug)]
struct Series {
    kept: Kept,
    /// Seconds since a line was heard.
    idle: f64,
}

/// Adds up what is heard, until it is asked for.
#[derive(Debug)]
pub struct StatsdAggregator {
    options: StatsdOptions,
    /// By type, name and tags.
    series: HashMap<Box<[u8]>, Series, foldhash::fast::RandomState>,
    key: Vec<u8>,
    /// Series that a flush tells, and bytes of their keys.
    told: usize,
    key_bytes: usize,
    /// Values of timers, and members of sets, that are kept now.
    times: usize,
    members: usize,
    hasher: foldhash::quality::FixedState,
    counts: StatsdCounts,
    /// A name had no place since the last flush.
    is_full: bool,
}

/// What was heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatsdCounts {
    /// Values.
    pub values: u64,
    /// Values of names beyond the limit.
    pub over_limit: u64,
}

impl StatsdAggregator {
    /// One that has heard nothing yet.
    pub fn new(options: StatsdOptions) -> Self {
        StatsdAggregator {
            options,
            series: HashMap::default(),
            key: Vec::new(),
            told: 0,
            key_bytes: 0,
            times: 0,
            members: 0,
            hasher: foldhash::quality::FixedState::with_seed(0),
            counts: StatsdCounts::default(),
            is_full: false,
        }
    }

    /// What was heard so far.
    pub fn counts(&self) -> StatsdCounts {
        self.counts
    }

    /// Names that are kept.
    pub fn len(&self) -> usize {
        self.series.len()
    }

    /// True when nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// Adds a value.
    ///
    /// # Errors
    /// When the name is new and there are too many.
    pub fn add(&mut self, name: &str, tags: &[(&str, &str)], value: StatsdValue<'_>) -> Result<(), Fault> {
        self.counts.values += 1;
        write_key(&mut self.key, name, tags, &value);
        if !self.series.contains_key(self.key.as_slice()) {
            if self.key.len() > KEY_BYTES_MAX {
                return Err(Fault::TooLong);
            }
            let told = series_of(self.key[0], &self.options);
            if self.told + told > self.options.series_max || self.key_bytes + self.key.len() > KEYS_BYTES_MAX
            {
                self.counts.over_limit += 1;
                self.is_full = true;
                return Err(Fault::TooManySeries);
            }
            self.told += told;
            self.key_bytes += self.key.len();
            let kept = match value {
                StatsdValue::Count(_) => Kept::Count(0.0),
                StatsdValue::Gauge(_) | StatsdValue::GaugeChange(_) => Kept::Gauge(0.0),
                StatsdValue::Timer(..) => Kept::Timer(Timer::default()),
                StatsdValue::Member(_) => Kept::Set(HashSet::default()),
            };
            self.series.insert(self.key.as_slice().into(), Series { kept, idle: 0.0 });
        }
        let Some(series) = self.series.get_mut(self.key.as_slice()) else { return Ok(()) };
        series.idle = 0.0;
        match (&mut series.kept, value) {
            (Kept::Count(sum), StatsdValue::Count(more)) => *sum = finite(*sum + more, *sum),
            (Kept::Gauge(level), StatsdValue::Gauge(new)) => *level = new,
            (Kept::Gauge(level), StatsdValue::GaugeChange(more)) => *level = finite(*level + more, *level),
            (Kept::Timer(timer), StatsdValue::Timer(time, weight)) => {
                let is_kept = self.times < TIMES_OF_ALL_MAX;
                self.times += timer.add(time, weight, is_kept);
            }
            (Kept::Set(members), StatsdValue::Member(text)) => {
                use std::hash::BuildHasher as _;
                if members.len() < MEMBERS_MAX && self.members < MEMBERS_OF_ALL_MAX {
                    self.members += usize::from(members.insert(self.hasher.hash_one(text)));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Gives what has been added up in so many seconds, at a time in nanoseconds, and begins again.
    pub fn flush(&mut self, time: i64, seconds: f64, sink: &mut dyn Sink) {
        let mut text = String::new();
        let options = &self.options;
        let is_full = std::mem::take(&mut self.is_full);
        let forgotten_after = if is_full { FORGOTTEN_WHEN_FULL_AFTER } else { FORGOTTEN_AFTER };
        self.series.retain(|key, series| {
            let (name, labels) = split_key(key);
            let emitter = Emitter { name, labels: &labels, time, prefix: &options.prefix };
            match &mut series.kept {
                Kept::Count(sum) => {
                    let rate = *sum / seconds;
                    emitter.emit(&mut text, "", "", rate, sink);
                    emitter.emit(&mut text, "_counts", "", *sum, sink);
                    *sum = 0.0;
                }
                Kept::Gauge(level) => emitter.emit(&mut text, ".gauges", "", *level, sink),
                Kept::Set(members) => {
                    emitter.emit(&mut text, ".sets", ".count", members.len() as f64, sink);
                    members.clear();
                    members.shrink_to(MEMBERS_AT_REST);
                }
                Kept::Timer(timer) => {
                    timer.flush(seconds, &options.percentiles, &mut |end, value| {
                        emitter.emit(&mut text, ".timers", end, value, sink);
                    });
                }
            }
            series.idle += seconds;
            let stays = series.idle < forgotten_after;
            if !stays {
                self.told -= series_of(key[0], options);
                self.key_bytes -= key.len();
            }
            stays
        });
        (self.times, self.members) = (0, 0);
    }
}

/// How many series a name of this type is at a flush.
fn series_of(kind: u8, options: &StatsdOptions) -> usize {
    match kind {
        b'c' => 2,
        b't' => 9 + 5 * options.percentiles.len(),
        _ => 1,
    }
}

/// An aggregator that also counts what is refused, for [`super::read_lines`].
pub struct Adding<'a, 's> {
    /// Where values go.
    pub aggregator: &'a mut StatsdAggregator,
    /// What is told of the rest.
    pub sink: &'s mut dyn FnMut(Refusal<'_>),
}

impl StatsdSink for Adding<'_, '_> {
    fn value(&mut self, name: &str, tags: &[(&str, &str)], value: StatsdValue<'_>) {
        if let Err(fault) = self.aggregator.add(name, tags, value) {
            (self.sink)(Refusal { line: 1, text: name.as_bytes(), fault });
        }
    }

    fn refused(&mut self, refusal: Refusal<'_>) {
        (self.sink)(refusal);
    }
}

/// One name, and where its samples go.
struct Emitter<'a> {
    name: &'a str,
    labels: &'a [(&'a str, &'a str)],
    time: i64,
    prefix: &'a str,
}

impl Emitter<'_> {
    fn emit(&self, text: &mut String, space: &str, end: &str, value: f64, sink: &mut dyn Sink) {
        text.clear();
        let point = if end.is_empty() || end.starts_with('.') { "" } else { "." };
        let written = write!(text, "{}{space}.{}{point}{end}", self.prefix, self.name);
        if written.is_ok() && value.is_finite() {
            sink.pushed(&Pushed {
                name: text,
                labels: self.labels,
                time: Some(self.time),
                value: Number::Float(value),
                kind: Kind::Gauge,
            });
        }
    }
}

fn finite(new: f64, old: f64) -> f64 {
    if new.is_finite() { new } else { old }
}

/// Ends of the parts of a key: no line has them.
const END: char = '\n';

/// A type, a name and tags as a key: tags in order, so that theirs in a line does not matter.
fn write_key(key: &mut Vec<u8>, name: &str, tags: &[(&str, &str)], value: &StatsdValue<'_>) {
    key.clear();
    key.push(match value {
        StatsdValue::Count(_) => b'c',
        StatsdValue::Gauge(_) | StatsdValue::GaugeChange(_) => b'g',
        StatsdValue::Timer(..) => b't',
        StatsdValue::Member(_) => b's',
    });
    key.extend_from_slice(name.as_bytes());
    let mut push = |(tag, value): &(&str, &str)| {
        key.push(END as u8);
        key.extend_from_slice(tag.as_bytes());
        key.push(b':');
        key.extend_from_slice(value.as_bytes());
    };
    if tags.is_sorted() {
        tags.iter().for_each(push);
    } else {
        let mut sorted = tags.to_vec();
        sorted.sort_unstable();
        sorted.iter().for_each(&mut push);
    }
}

fn split_key(key: &[u8]) -> (&str, Vec<(&str, &str)>) {
    let text = std::str::from_utf8(key).unwrap_or_default();
    let mut parts = text.get(1..).unwrap_or_default().split(END);
    let name = parts.next().unwrap_or_default();
    (name, parts.filter_map(|tag| tag.split_once(':')).collect())
}
