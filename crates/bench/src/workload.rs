//! The two workloads of the table, W1 ("collectd") and W2 ("MRTG"), and Ganglia's for the lab: definitions, names and values.
//!
//! Deterministic: values are a hash of (RRD, round), so that two daemons get the same bytes and a run can
//! be repeated. Rendering costs about 0.1 us per value, so that the client does not become the bottleneck.

use clap::ValueEnum;

/// Sample time of round 0, in seconds: a multiple of every archive's row span that matters here (300 s).
pub const FIRST_ROUND_SECONDS: i64 = 1_700_000_100;
/// RRDs that share a directory, as collectd's hosts do (20,500 RRDs on 290 hosts).
const RRDS_PER_HOST: usize = 70;
/// Steps between changes of a series' level.
const LEVEL_ROUNDS: u64 = 30;

/// Which of the workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    /// 10 s, 1 source, 15 archives.
    W1,
    /// 300 s, 2 sources, 8 archives.
    W2,
    /// 15 s, 1 source, 3 archives: what gmetad makes by default.
    Ganglia,
}

/// The types of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sources {
    /// W1: GAUGE, W2: GAUGE and COUNTER.
    Usual,
    /// All GAUGE.
    Gauge,
    /// All COUNTER.
    Counter,
}

/// How hard the values are to compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Texture {
    /// A level that changes every 30 steps and about 11 bits of noise in each value.
    Noisy,
    /// Like a host's own metrics: constants, slow walks, percentages that often repeat.
    Smooth,
}

/// How far sample times are off the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Jitter {
    /// On the grid.
    None,
    /// 0 to 999 microseconds late.
    Micros,
    /// 0 to a tenth of the step late, in whole seconds.
    Seconds,
}

/// One workload with its variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Geometry.
    pub shape: Shape,
    /// Types of the sources.
    pub sources: Sources,
    /// Compressibility.
    pub texture: Texture,
    /// Sample times.
    pub jitter: Jitter,
}

impl Workload {
    /// The workload of a shape with its usual sources, noisy values and no jitter.
    pub fn usual(shape: Shape) -> Self {
        Workload { shape, sources: Sources::Usual, texture: Texture::Noisy, jitter: Jitter::None }
    }

    /// Seconds of a step.
    pub fn step_seconds(self) -> i64 {
        match self.shape {
            Shape::W1 => 10,
            Shape::W2 => 300,
            Shape::Ganglia => 15,
        }
    }

    /// RRDs of the workload in full.
    pub fn rrd_count(self) -> usize {
        match self.shape {
            Shape::W1 => 20_500,
            Shape::W2 => 100_000,
            Shape::Ganglia => 1_000_000,
        }
    }

    /// Bytes of one standard `.rrd` file of it.
    pub fn rrd_file_bytes(self) -> u64 {
        match self.shape {
            Shape::W1 => 148_648,
            Shape::W2 => 94_816,
            Shape::Ganglia => 630_760,
        }
    }

    /// True for each COUNTER source, in order.
    fn counters(self) -> &'static [bool] {
        match (self.shape, self.sources) {
            (Shape::W1 | Shape::Ganglia, Sources::Usual | Sources::Gauge) => &[false],
            (Shape::W1 | Shape::Ganglia, Sources::Counter) => &[true],
            (Shape::W2, Sources::Usual) => &[false, true],
            (Shape::W2, Sources::Gauge) => &[false, false],
            (Shape::W2, Sources::Counter) => &[true, true],
        }
    }

    /// `-s STEP DS:... RRA:...`, as CREATE and `rrdtool create` take them.
    pub fn create_words(self) -> String {
        let (heartbeat, cfs, xff, archives): (_, &[&str], _, &[(u64, u64)]) = match self.shape {
            Shape::W1 => (
                20,
                &["AVERAGE", "MIN", "MAX"],
                "0.1",
                &[(1, 1200), (7, 1235), (50, 1210), (223, 1202), (2635, 1201)],
            ),
            Shape::W2 => (600, &["AVERAGE", "MAX"], "0.5", &[(1, 600), (6, 700), (24, 775), (288, 797)]),
            Shape::Ganglia => (120, &["AVERAGE"], "0.5", &[(1, 5856), (4, 20_160), (40, 52_704)]),
        };
        let mut words = format!("-s {}", self.step_seconds());
        for (index, counter) in self.counters().iter().enumerate() {
            let kind = if *counter { "COUNTER" } else { "GAUGE" };
            words.push_str(&format!(" DS:ds{index}:{kind}:{heartbeat}:0:U"));
        }
        for cf in cfs {
            for (pdps, rows) in archives {
                words.push_str(&format!(" RRA:{cf}:{xff}:{pdps}:{rows}"));
            }
        }
        words
    }

    /// Seconds of the grid time of a round.
    pub fn round_seconds(self, round: u64) -> i64 {
        FIRST_ROUND_SECONDS + round as i64 * self.step_seconds()
    }
}

/// The name of RRD number `index`, relative to the daemon's base directory.
pub fn rrd_name(index: usize) -> String {
    format!("host-{:05}/metric-{:02}.rrd", index / RRDS_PER_HOST, index % RRDS_PER_HOST)
}

/// A range of RRDs with the state their next values need; one per connection.
pub struct Feed {
    workload: Workload,
    first: usize,
    /// `UPDATE name ` of every RRD, one after the other.
    prefixes: Vec<u8>,
    /// Where each prefix ends.
    ends: Vec<u32>,
    /// Counter values and smooth walks: `state[rrd * sources + source]`.
    state: Vec<u64>,
}

impl Feed {
    /// RRDs `first .. first + count`.
    pub fn new(workload: Workload, first: usize, count: usize) -> Self {
        let mut prefixes = Vec::with_capacity(count * 36);
        let mut ends = Vec::with_capacity(count);
        for index in first..first + count {
            prefixes.extend_from_slice(b"UPDATE ");
            prefixes.extend_from_slice(rrd_name(index).as_bytes());
            ends.push(prefixes.len() as u32);
        }
        let sources = workload.counters().len();
        let state = (0..count * sources).map(|slot| hash(slot as u64, first as u64) % 50_000).collect();
        Feed { workload, first, prefixes, ends, state }
    }

    /// How many RRDs.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Appends `UPDATE name`, without the end of the line.
    pub fn render_name(&self, rrd: usize, out: &mut Vec<u8>) {
        let start = if rrd == 0 { 0 } else { self.ends[rrd - 1] as usize };
        out.extend_from_slice(&self.prefixes[start..self.ends[rrd] as usize]);
    }

    /// Appends ` time:value...` of one round. Rounds of an RRD must be rendered in order.
    pub fn render_word(&mut self, rrd: usize, round: u64, out: &mut Vec<u8>) {
        let global = (self.first + rrd) as u64;
        let noise = hash(global, round);
        out.push(b' ');
        let grid = self.workload.round_seconds(round) as u64;
        match self.workload.jitter {
            Jitter::None => push_integer(out, grid),
            Jitter::Micros => {
                push_integer(out, grid);
                out.extend_from_slice(b".000");
                push_digits(out, (noise >> 40) % 1000, 3);
            }
            Jitter::Seconds => {
                let late_max = (self.workload.step_seconds() as u64 / 10).max(2);
                push_integer(out, grid + (noise >> 40) % late_max);
            }
        }
        let sources = self.workload.counters();
        for (source, counter) in sources.iter().enumerate() {
            let slot = &mut self.state[rrd * sources.len() + source];
            let noise = noise.rotate_left(source as u32 * 17);
            let series = hash(global, u64::MAX - source as u64);
            let level = hash(series, round / LEVEL_ROUNDS);
            out.push(b':');
            match (self.workload.texture, *counter) {
                (Texture::Noisy, false) => {
                    let cents = series % 40_000 + level % 40_000 + (noise & 0x7ff);
                    push_cents(out, cents);
                }
                (Texture::Noisy, true) => {
                    *slot += series % 1_000_000 + level % 1_000_000 + (noise & 0x7ff);
                    push_integer(out, *slot);
                }
                (Texture::Smooth, false) => smooth_gauge(out, slot, series, noise),
                (Texture::Smooth, true) => {
                    *slot += smooth_increment(series, noise);
                    push_integer(out, *slot);
                }
            }
        }
    }
}

/// A quarter of the series each: a constant, memory in pages, a percentage of whole jiffies, a load.
fn smooth_gauge(out: &mut Vec<u8>, state: &mut u64, series: u64, noise: u64) {
    match series % 4 {
        0 => push_integer(out, series % 1_000_000),
        1 => {
            if noise & 3 == 0 {
                *state = (*state + (noise >> 2) % 65).saturating_sub(32);
            }
            push_integer(out, (1_000_000 + *state) * 4096);
        }
        2 => push_integer(out, if noise & 7 == 0 { (noise >> 3) % 12 } else { series % 3 }),
        _ => {
            *state = (*state * 63 / 64 + (noise & 0x7f)).min(99_999);
            push_cents(out, *state / 64);
        }
    }
}

/// Half of the counters rarely change, the others count a few packets.
fn smooth_increment(series: u64, noise: u64) -> u64 {
    match series % 4 {
        0 => 0,
        1 if noise & 7 != 0 => 0,
        1 => noise % 100,
        _ => series % 500 + (noise & 0xff),
    }
}

/// A well-mixed word of two numbers (multiply-and-fold).
pub fn hash(a: u64, b: u64) -> u64 {
    let mixed = (a ^ 0x9e37_79b9_7f4a_7c15) as u128 * (b ^ 0xd1b5_4a32_d192_ed03 ^ (a << 32)) as u128;
    let folded = (mixed as u64) ^ ((mixed >> 64) as u64);
    let again = folded as u128 * 0xa076_1d64_78bd_642f_u128;
    (again as u64) ^ ((again >> 64) as u64)
}

fn push_integer(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0u8; 20];
    let mut rest = number;
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

fn push_digits(out: &mut Vec<u8>, number: u64, width: u32) {
    for place in (0..width).rev() {
        out.push(b'0' + (number / 10u64.pow(place) % 10) as u8);
    }
}

fn push_cents(out: &mut Vec<u8>, cents: u64) {
    push_integer(out, cents / 100);
    out.push(b'.');
    push_digits(out, cents % 100, 2);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(workload: Workload, rrd: usize, round: u64) -> String {
        let mut out = Vec::new();
        Feed::new(workload, 0, rrd + 1).render_word(rrd, round, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn words_are_a_time_and_a_value_per_source() {
        let mut workload = Workload::usual(Shape::W2);
        let text = word(workload, 3, 2);
        assert!(text.starts_with(" 1700000700:"), "{text}");
        assert_eq!(text.matches(':').count(), 2, "{text}");
        assert_eq!(text, word(workload, 3, 2), "the same again");
        workload.jitter = Jitter::Seconds;
        let late: u64 = word(workload, 3, 2)[1..11].parse().unwrap();
        assert!((1_700_000_700..1_700_000_730).contains(&late), "{late}");
        workload.jitter = Jitter::Micros;
        assert!(word(workload, 3, 2).starts_with(" 1700000700.000"));
    }

    #[test]
    fn counters_never_step_back() {
        for texture in [Texture::Noisy, Texture::Smooth] {
            let workload = Workload { sources: Sources::Counter, texture, ..Workload::usual(Shape::W1) };
            let mut feed = Feed::new(workload, 7, 4);
            let mut last = [0u64; 4];
            for round in 0..100 {
                for (rrd, last) in last.iter_mut().enumerate() {
                    let mut out = Vec::new();
                    feed.render_word(rrd, round, &mut out);
                    let text = String::from_utf8(out).unwrap();
                    let value = text.rsplit(':').next().unwrap().parse().unwrap();
                    assert!(value >= *last, "{text}");
                    *last = value;
                }
            }
        }
    }

    #[test]
    fn numbers_are_written_in_full() {
        let mut out = Vec::new();
        push_integer(&mut out, 0);
        out.push(b' ');
        push_integer(&mut out, u64::MAX);
        out.push(b' ');
        push_cents(&mut out, 105);
        assert_eq!(out, b"0 18446744073709551615 1.05");
    }
}
