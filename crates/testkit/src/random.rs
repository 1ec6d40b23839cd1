//! Random RRDs and random updates for them.

use std::ops::Range;

/// A small generator (splitmix64): equal seeds give equal numbers, for ever.
pub struct Random(u64);

impl Random {
    /// The numbers of this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    #[expect(clippy::should_implement_trait, reason = "never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`, which is at least 1.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of these.
    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// The seeds of a test: only `ROUNDEL_SEED`, or as many as `ROUNDEL_SEEDS` says (`5000`, or `10x` for ten times the
/// usual number, or `0.5x` for half of it, at least one), or those from one to before another (`5000..8000`), or the usual
/// number.
///
/// # Panics
/// If one of the variables is not a number, or leaves no seed: a test without seeds would test nothing.
pub fn seeds(usual: u64) -> Range<u64> {
    chosen(usual, 1, |name| std::env::var(name).ok())
}

/// The seeds that the variables of the environment choose; of a multiple of the usual number, at least `least`.
fn chosen(usual: u64, least: u64, variable: impl Fn(&str) -> Option<String>) -> Range<u64> {
    let number =
        |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("{text:?} is no number of seeds"));
    if let Some(seed) = variable("ROUNDEL_SEED") {
        let seed = number(&seed);
        return seed..seed + 1;
    }
    let many = variable("ROUNDEL_SEEDS").unwrap_or_else(|| usual.to_string());
    let seeds = match (many.split_once(".."), many.strip_suffix('x')) {
        (Some((from, to)), _) => number(from)..number(to),
        (None, Some(times)) => 0..scaled(usual, times, least),
        (None, None) => 0..number(&many),
    };
    assert!(
        !seeds.is_empty(),
        "ROUNDEL_SEEDS={many} chooses no seed: give ROUNDEL_SEEDS a number from 1 on, 0.5x, or 5..8"
    );
    seeds
}

/// `usual` multiplied by a positive decimal number, rounded up, and at least `least`; 0 if multiplied by another number.
fn scaled(usual: u64, times: &str, least: u64) -> u64 {
    let times: f64 = times.parse().unwrap_or_else(|_| panic!("{times:?} is no multiple of seeds"));
    if times > 0.0 { ((usual as f64 * times).ceil() as u64).max(least) } else { 0 }
}

/// Runs a test with each of its [`seeds`]; says which one failed.
pub fn each_seed(usual: u64, run: fn(u64)) {
    run_seeds(seeds(usual), run);
}

/// As [`each_seed`] with the even ones of the seeds: half of a long test.
pub fn each_even_seed(usual: u64, run: fn(u64)) {
    run_seeds(half(usual, 0, |name| std::env::var(name).ok()), run);
}

/// As [`each_seed`] with the odd ones of the seeds: the other half.
pub fn each_odd_seed(usual: u64, run: fn(u64)) {
    run_seeds(half(usual, 1, |name| std::env::var(name).ok()), run);
}

/// The seeds with a remainder of their division by two. None if `ROUNDEL_SEED` belongs to the other half.
fn half(usual: u64, remainder: u64, variable: impl Fn(&str) -> Option<String>) -> impl Iterator<Item = u64> {
    let is_single = variable("ROUNDEL_SEED").is_some();
    let all = chosen(usual, 2, variable);
    let mut half = all.filter(move |seed| seed % 2 == remainder).peekable();
    assert!(
        is_single || half.peek().is_some(),
        "this half of a split test has no seed: let ROUNDEL_SEEDS choose two or more"
    );
    half
}

fn run_seeds(seeds: impl Iterator<Item = u64>, run: fn(u64)) {
    for seed in seeds {
        if let Err(panic) = std::panic::catch_unwind(|| run(seed)) {
            eprintln!("seed {seed} failed; replay it with ROUNDEL_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// The commands for rrdtool.
pub struct Scenario {
    /// The arguments of `create` after the file name.
    pub create: String,
    /// The arguments of `update`, one per reading.
    pub updates: Vec<String>,
    /// How many readings an `update` command takes. RRDtool smooths seasons at most once per command, so with a
    /// forecast it is 1.
    pub updates_per_command: usize,
}

impl Scenario {
    /// A random scenario.
    pub fn random(random: &mut Random) -> Scenario {
        let step = [1, 1, 2, 5, 7, 10, 10, 60, 300, 3600][random.below(10) as usize];
        let start = 1_000_000_000 + random.below(10_000);
        let mut create = format!("--start {start} --step {step}");
        let mut types = Vec::new();
        for ds in 0..random.between(1, 4) {
            if ds > 0 && random.once_in(6) {
                create += &format!(" DS:d{ds}:COMPUTE:{}", compute(random, ds));
                continue;
            }
            let kind =
                random.pick(&["GAUGE", "GAUGE", "COUNTER", "DERIVE", "ABSOLUTE", "DCOUNTER", "DDERIVE"]);
            let heartbeat = [step, step * 2, step * 2, step * 5, step * 100][random.below(5) as usize];
            let limit = |random: &mut Random, texts: &[&str]| random.pick(texts).to_string();
            let min = limit(random, &["U", "U", "U", "0", "-10", "5"]);
            let max = limit(random, &["U", "U", "U", "1000", "100", "1e12"]);
            create += &format!(" DS:d{ds}:{kind}:{heartbeat}:{min}:{max}");
            types.push(kind);
        }
        let forecast = random.below(4);
        let mut archives: Vec<String> =
            (0..random.between(u64::from(forecast > 1), 5)).map(|_| plain_rra(random)).collect();
        match forecast {
            0 => archives.push(implicit_forecast(random)),
            1 => explicit_forecast(random, &mut archives),
            _ => {}
        }
        for archive in archives {
            create = create + " " + &archive;
        }
        let calm = forecast < 2 && random.once_in(2);
        let updates = updates(random, start, step, &types, calm);
        let updates_per_command = if forecast < 2 { 1 } else { random.between(1, 5) as usize };
        Scenario { create, updates, updates_per_command }
    }
}

/// An expression over the sources before `ds`.
fn compute(random: &mut Random, ds: u64) -> String {
    let mut tokens = vec![format!("d{}", random.below(ds))];
    for _ in 0..random.between(1, 4) {
        let operand = match random.below(3) {
            0 => random.between(1, 1000).to_string(),
            _ => format!("d{}", random.below(ds)),
        };
        tokens.push(operand);
        tokens.push(random.pick(&["+", "-", "*", "/", "MAX", "MIN", "LT", "GE", "ADDNAN", "%"]).to_string());
        if random.once_in(4) {
            tokens.push(random.pick(&["ABS", "FLOOR", "CEIL", "UN", "SQRT", "ISINF"]).to_string());
        }
    }
    tokens.join(",")
}

fn plain_rra(random: &mut Random) -> String {
    let cf = random.pick(&["AVERAGE", "MIN", "MAX", "LAST"]);
    let xff = random.pick(&["0", "0.1", "0.25", "0.5", "0.5", "0.7", "0.99"]);
    let pdp_per_row = [1, 1, 2, 3, 4, 5, 7, 12, 50][random.below(9) as usize];
    let rows = [1, 2, 3, 5, 8, 13, 40][random.below(7) as usize];
    format!("RRA:{cf}:{xff}:{pdp_per_row}:{rows}")
}

fn implicit_forecast(random: &mut Random) -> String {
    let cf = random.pick(&["HWPREDICT", "HWPREDICT", "MHWPREDICT"]);
    let (alpha, beta) = (factor(random), factor(random));
    let period = [2, 3, 4, 6, 10, 45][random.below(6) as usize];
    let rows = period + random.between(1, 20);
    format!("RRA:{cf}:{rows}:{alpha}:{beta}:{period}")
}

/// The archives of a forecast in any order, among the others.
fn explicit_forecast(random: &mut Random, archives: &mut Vec<String>) {
    const KINDS: [&str; 5] = ["PREDICT", "SEASONAL", "DEVSEASONAL", "DEVPREDICT", "FAILURES"];
    for kind in KINDS {
        let at = random.below(archives.len() as u64 + 1) as usize;
        archives.insert(at, kind.to_string());
    }
    let number = |archives: &[String], kind: &str| {
        1 + archives.iter().position(|archive| archive == kind).expect("inserted above")
    };
    let [predict, seasonal, devseasonal] = [KINDS[0], KINDS[1], KINDS[2]].map(|kind| number(archives, kind));
    let period = random.between(2, 12);
    let rows = period + random.between(1, 20);
    let smoothing = |random: &mut Random| match random.below(3) {
        0 => String::new(),
        _ => format!(":smoothing-window={}", random.pick(&["0", "0.1", "0.35", "0.5", "0.9", "1"])),
    };
    for archive in archives.iter_mut() {
        *archive = match archive.as_str() {
            "PREDICT" => {
                let cf = random.pick(&["HWPREDICT", "MHWPREDICT"]);
                format!("RRA:{cf}:{rows}:{}:{}:{period}:{seasonal}", factor(random), factor(random))
            }
            "SEASONAL" => format!("RRA:SEASONAL:{period}:{}:{predict}{}", factor(random), smoothing(random)),
            "DEVSEASONAL" => {
                format!("RRA:DEVSEASONAL:{period}:{}:{predict}{}", factor(random), smoothing(random))
            }
            "DEVPREDICT" => format!("RRA:DEVPREDICT:{rows}:{devseasonal}"),
            "FAILURES" => {
                let window = random.between(1, 28);
                let threshold = random.between(1, window);
                format!("RRA:FAILURES:{}:{threshold}:{window}:{devseasonal}", rows + window)
            }
            _ => continue,
        };
    }
}

fn factor(random: &mut Random) -> &'static str {
    const FACTORS: [&str; 6] = ["0.1", "0.5", "0.03", "0.9", "0.0035", "0.7"];
    FACTORS[random.below(6) as usize]
}

/// Readings for sources of these types. A `calm` sequence has few gaps and no odd values, so that forecasts get
/// through their burn-in.
fn updates(random: &mut Random, start: u64, step: u64, types: &[&str], calm: bool) -> Vec<String> {
    let micros_per_step = step * 1_000_000;
    let fractions = random.once_in(2);
    let steady = random.once_in(2);
    let mut now = start * 1_000_000;
    let mut counters = vec![0u128; types.len()];
    for counter in &mut counters {
        *counter = match random.below(5) {
            0 => (1 << 32) - u128::from(random.below(3000)),
            1 => (1 << 64) - u128::from(random.below(3000)),
            2 => (1 << 53) - 1000,
            _ => u128::from(random.below(100_000)),
        };
    }
    let count = random.between(30, if calm { 200 } else { 120 });
    let mut updates = Vec::new();
    for _ in 0..count {
        let ahead = match random.below(40) {
            1.. if calm => micros_per_step,
            0 if calm => random.below(micros_per_step * 4),
            0 => 0,
            1..4 => random.below(micros_per_step * 3),
            4 => random.below(micros_per_step * 60),
            5 => micros_per_step * random.between(2, 30),
            6..14 => random.below(micros_per_step),
            _ if steady => micros_per_step,
            _ => random.between(micros_per_step / 2, micros_per_step * 3 / 2),
        };
        now += ahead;
        if !fractions {
            now -= now % 1_000_000;
        }
        let mut reading = (now / 1_000_000).to_string();
        if !now.is_multiple_of(1_000_000) {
            reading += format!(".{:06}", now % 1_000_000).trim_end_matches('0');
        }
        for (kind, counter) in types.iter().zip(&mut counters) {
            reading.push(':');
            reading += &value(random, kind, counter, calm);
        }
        updates.push(reading);
    }
    updates
}

const ODD: [&str; 30] = [
    "U",
    "U",
    "U",
    "U",
    "U",
    "UNKN",
    "nan",
    "-inf",
    "inf",
    "0",
    "-0",
    "-.0",
    "1e5",
    "1e-300",
    "1e300",
    "-1e300",
    "x",
    "1x",
    "",
    "-",
    "007",
    "1.5.2",
    "999999999999999999999999999999",
    "-999999999999999999999999999999",
    "9999999999999999999999999999999999",
    "3.14159265358979323846264338327950288",
    "1e1025",
    "-5",
    "0.1e-5",
    "+7",
];

fn value(random: &mut Random, kind: &str, counter: &mut u128, calm: bool) -> String {
    if !calm && random.once_in(25) {
        return random.pick(&ODD).to_string();
    }
    match kind {
        "COUNTER" | "DERIVE" => {
            if random.once_in(40) {
                *counter = u128::from(random.below(1000));
            } else if kind == "DERIVE" && random.once_in(3) {
                *counter = counter.saturating_sub(u128::from(random.below(5000)));
            } else {
                *counter += u128::from(random.below(5000));
            }
            let modulo = if random.once_in(2) { 1 << 32 } else { 1u128 << 64 };
            if *counter >= modulo && *counter < modulo + 10_000 {
                *counter -= modulo;
            }
            counter.to_string()
        }
        "DCOUNTER" | "DDERIVE" => {
            *counter += u128::from(random.below(500));
            let sign = if random.once_in(8) { "-" } else { "" };
            format!("{sign}{}.{}", *counter, random.below(1000))
        }
        _ => match random.below(4) {
            0 => random.below(100).to_string(),
            1 => format!("-{}.{}", random.below(20), random.below(100)),
            2 => format!("{}.{:02}", random.below(1000), random.below(100)),
            _ => format!("{:e}", random.below(1 << 60) as f64 / 1e9),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{chosen, half, scaled};

    /// An environment with only this variable.
    fn only(name: &'static str, value: &'static str) -> impl Fn(&str) -> Option<String> {
        move |asked| (asked == name).then(|| value.to_string())
    }

    #[test]
    fn a_part_of_the_seeds_is_at_least_one() {
        let parts = [(1, "0.5"), (5, "0.5"), (8, "0.25"), (3, "10")];
        assert_eq!(parts.map(|(usual, times)| scaled(usual, times, 1)), [1, 3, 2, 30]);
    }

    #[test]
    fn seeds_are_those_that_the_variables_choose() {
        let of = |text| chosen(8, 1, only("ROUNDEL_SEEDS", text));
        assert_eq!([of("3"), of("0.5x"), of("5..7")], [0..3, 0..4, 5..7]);
        assert_eq!(chosen(8, 1, |_| None), 0..8);
        assert_eq!(chosen(8, 1, only("ROUNDEL_SEED", "0")), 0..1);
    }

    #[test]
    fn no_seeds_at_all_are_refused() {
        for text in ["0", "0x", "0.0x", "-1x", "5..5", "8..5"] {
            let refused = std::panic::catch_unwind(|| chosen(8, 1, only("ROUNDEL_SEEDS", text))).unwrap_err();
            let message = refused.downcast::<String>().unwrap();
            assert!(message.starts_with(&format!("ROUNDEL_SEEDS={text} chooses no seed")), "{message}");
        }
    }

    #[test]
    fn both_halves_have_a_seed() {
        let halves = |text| [0, 1].map(|remainder| half(8, remainder, only("ROUNDEL_SEEDS", text)).count());
        assert_eq!([halves("0.01x"), halves("3"), halves("1x")], [[1, 1], [2, 1], [4, 4]]);
        // A single seed is a replay, which leaves one half empty.
        let replay = [0, 1].map(|remainder| half(8, remainder, only("ROUNDEL_SEED", "7")).count());
        assert_eq!(replay, [0, 1]);
    }

    #[test]
    #[should_panic(expected = "let ROUNDEL_SEEDS choose two or more")]
    fn a_half_without_a_seed_is_refused() {
        drop(half(8, 1, only("ROUNDEL_SEEDS", "1")));
    }
}
