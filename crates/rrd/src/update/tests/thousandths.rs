//! RRDs with steps below a second, beside the same RRD in whole seconds: with every time a thousand times as long, and
//! every count a thousand times as large, all of its numbers must be the same, bit for bit.

use super::*;
use crate::definition::Cf;
use crate::definition::text::{CreateOptions, Limits, parse_create};
use crate::fetch::FetchRequest;
use crate::plan::{first, plan};
use crate::reading::parse_argument;
use crate::when::Step;

/// In seconds; in an RRD of whole seconds a thousandfold.
const START: i64 = 1_700_000_000;
const SOURCES: [DsType; 6] =
    [DsType::Gauge, DsType::Counter, DsType::Derive, DsType::Absolute, DsType::Dcounter, DsType::Dderive];
/// Every function, rows of one and of several steps.
const ARCHIVES: [&str; 11] = [
    "RRA:AVERAGE:0.5:1:40",
    "RRA:AVERAGE:0.5:7:20",
    "RRA:MIN:0.5:3:20",
    "RRA:MAX:0.9:4:20",
    "RRA:LAST:0.2:10:20",
    "RRA:HWPREDICT:50:0.3:0.1:8:7",
    "RRA:SEASONAL:8:0.3:6",
    "RRA:DEVSEASONAL:8:0.3:6",
    "RRA:DEVPREDICT:50:8",
    "RRA:FAILURES:50:2:3:8",
    "RRA:MHWPREDICT:50:0.3:0.1:8",
];

/// An RRD and all the rows that it has completed.
struct Rrd {
    definition: Definition,
    live: Live,
    rows: Vec<(usize, i64, Vec<u64>)>,
}

impl Rrd {
    /// `step` units long, each with a heartbeat of two and a half of them.
    fn new(units_per_second: u32, step: u64) -> Rrd {
        let seconds = |units: u64| match units_per_second {
            1 => units.to_string(),
            _ => format!("{}.{:03}", units / 1000, units % 1000),
        };
        let heartbeat = seconds(step * 5 / 2);
        let mut args: Vec<String> =
            SOURCES.iter().map(|kind| format!("DS:{0}:{0}:{heartbeat}:U:4000", kind.name())).collect();
        args.push("DS:sum:COMPUTE:GAUGE,COUNTER,+".to_string());
        args.extend(ARCHIVES.map(str::to_string));
        let step = Step { units: step, units_per_second };
        let options = CreateOptions { step, limits: Limits::STORE, file_name: b"a.rrd" };
        let definition = parse_create(&options, &args).unwrap();
        assert_eq!(definition.units_per_second, units_per_second);
        let live = new_live(&definition, START * 1000);
        Rrd { definition, live, rows: Vec::new() }
    }

    fn update(&mut self, argument: &str) -> Result<(), UpdateError> {
        let mut texts = Vec::new();
        let no_at_time = |_: &[u8]| Err(String::new());
        let argument = argument.as_bytes();
        let reading =
            parse_argument(argument, Timestamp::default(), &self.definition, None, &no_at_time, &mut texts)?;
        let values: Vec<&str> =
            reading.values.iter().map(|text| std::str::from_utf8(text).unwrap()).collect();
        let rows = update(&self.definition, &mut self.live, reading.time, &values)?;
        let bits = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect();
        self.rows.extend(rows.into_iter().map(|(rra, row, values)| (rra, row, bits(values))));
        Ok(())
    }

    fn seasons(&self) -> Vec<(u64, Vec<u64>)> {
        let bits = |season: &Season| season.values.iter().map(|value| value.to_bits()).collect();
        self.live.seasons.iter().map(|season| (season.current_row, bits(season))).collect()
    }

    fn last_update(&self) -> i64 {
        HeadShape::of(&self.definition).split(&self.live.words).last_update.whole
    }
}

/// Linear congruential numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Both RRDs of a step take the same readings: regular ones, jitter, gaps and long gaps, and quarters of a thousandth.
fn check_step(step: u64, readings: usize) {
    let (mut fine, mut plain) = (Rrd::new(1000, step), Rrd::new(1, step));
    let mut random = Random(step);
    let (mut quarters, mut counts) = (START as u64 * 4000, [0u64; 6]);
    for reading in 0..readings {
        quarters += match random.below(16) {
            0 => 4 * step * (3 + random.below(30)),
            1 => 4 * step * random.below(3) + 4,
            2..=8 => 1 + random.below(8 * step),
            _ => 4 * step,
        };
        for count in &mut counts {
            *count += random.below(3 * step + 2);
        }
        let (millis, quarter) = (quarters / 4, quarters % 4 * 25);
        let unknown = random.below(12) == 0;
        let values = |scale: u64| -> String {
            let [gauge, counter, derive, absolute, dcounter, dderive] = counts;
            let (gauge, absolute) = (gauge % 1000, absolute % 5 * scale);
            let (gauge, counter) = match unknown {
                true => ("U".to_string(), "U".to_string()),
                false => (format!("{gauge}.25"), (counter * scale).to_string()),
            };
            let (derive, dcounter, dderive) = (derive * scale, dcounter * scale, dderive * scale);
            format!("{gauge}:{counter}:-{derive}:{absolute}:{dcounter}:-{dderive}")
        };
        let fraction = if quarter == 0 { String::new() } else { format!(".{quarter:02}") };
        let whole = format!("{millis}{fraction}:{}", values(1000));
        let decimals = if quarter == 0 { String::new() } else { format!("{quarter:02}") };
        let seconds = format!("{}.{:03}{decimals}:{}", millis / 1000, millis % 1000, values(1));
        let (got, want) = (fine.update(&seconds), plain.update(&whole));
        assert_eq!((got, want), (Ok(()), Ok(())), "step {step}: {seconds}, {whole}");
        assert_eq!(fine.rows, plain.rows, "step {step}, reading {reading}: {seconds}");
        fine.rows.clear();
        plain.rows.clear();
    }
    assert!(fine.seasons() == plain.seasons(), "step {step}");
    check_plans(step, &fine, &plain, &mut random);
}

/// Both RRDs answer a fetch from the same rows of the same archive.
fn check_plans(step: u64, fine: &Rrd, plain: &Rrd, random: &mut Random) {
    let last = fine.last_update();
    assert_eq!(last, plain.last_update());
    for cf in Cf::ALL {
        let end = last.div_euclid(1000) + random.below(3) as i64;
        let start = end - random.below(step * 80 / 1000 + 2) as i64;
        let resolution = random.below(step * 20 / 1000 + 2);
        let scaled = if resolution <= 1 { resolution } else { resolution * 1000 };
        let got = plan(&fine.definition, last, &FetchRequest::new(cf, start, end, resolution));
        let want = plan(&plain.definition, last, &FetchRequest::new(cf, start * 1000, end * 1000, scaled));
        assert_eq!(got, want, "step {step}, {cf:?} from {start} to {end} by {resolution}");
    }
    for rra in 0..ARCHIVES.len() {
        assert_eq!(first(&fine.definition, last, rra), first(&plain.definition, last, rra));
    }
}

#[test]
fn every_step_below_a_second_gives_the_numbers_of_whole_seconds() {
    for step in 1..1000 {
        check_step(step, 40);
    }
}

#[test]
fn the_steps_in_use_give_them_over_a_long_time() {
    for step in [1, 10, 20, 33, 100, 125, 250, 500, 999, 1500, 2500] {
        check_step(step, 2000);
    }
}

#[test]
fn a_reading_for_each_step_is_its_row() {
    for step in 1..1000u64 {
        let mut rrd = Rrd::new(1000, step);
        let first = (START as u64 * 1000).div_ceil(step);
        for nth in 0..10 {
            let millis = (first + nth) * step;
            let (gauge, count) = (nth + 1, 1000 + nth * step);
            let time = format!("{}.{:03}", millis / 1000, millis % 1000);
            // The reading at the RRD's own start is none.
            let done = rrd.update(&format!("{time}:{gauge}:{count}:{count}:{step}:{count}:{count}"));
            assert!(done.is_ok() || nth == 0, "step {step}: {done:?}");
        }
        let rows: Vec<_> = rrd.rows.iter().filter(|(rra, ..)| *rra == 0).collect();
        for nth in 2..10u64 {
            let row = rows.iter().find(|(_, row, _)| *row == (first + nth) as i64).unwrap();
            let value = |ds: usize| f64::from_bits(row.2[ds]);
            assert_eq!(value(0), (nth + 1) as f64, "step {step}, row {nth}");
            // `step` in `step` thousandths are 1000 a second.
            for ds in 1..6 {
                assert_eq!(value(ds), 1000.0, "step {step}, row {nth}, source {ds}");
            }
            assert_eq!(value(6), value(0) + 1000.0);
        }
    }
}

#[test]
fn the_issues_example() {
    let args = ["DS:x:GAUGE:0.3:0:U", "RRA:AVERAGE:0.5:1:1000"];
    let step = Step { units: 100, units_per_second: 1000 };
    let options = CreateOptions { step, limits: Limits::STORE, file_name: b"s.rrd" };
    let definition = parse_create(&options, &args).unwrap();
    let mut rrd = Rrd { live: new_live(&definition, START * 1000), definition, rows: Vec::new() };
    for tenth in 1..=8 {
        rrd.update(&format!("{START}.{tenth}00:{tenth}")).unwrap();
    }
    let want: Vec<_> = (1..=8).map(|tenth| (0, START * 10 + tenth, vec![(tenth as f64).to_bits()])).collect();
    assert_eq!(rrd.rows, want);
}

#[test]
fn a_counter_that_wraps_below_a_second() {
    let definition = definition(1000, 100, &[DsType::Counter], &[1]);
    let definition = Definition {
        ds: vec![Ds {
            kind: DsKind::Fed { ds_type: DsType::Counter, heartbeat: 1000, min: f64::NAN, max: f64::NAN },
            name: "a".to_string(),
        }],
        ..definition
    };
    let mut rrd = Rrd { live: new_live(&definition, START * 1000), definition, rows: Vec::new() };
    for reading in
        ["1700000000.1:4294967290", "1700000000.2:4", "1700000000.3:18446744073709551615", "1700000000.4:0"]
    {
        rrd.update(reading).unwrap();
    }
    let rates: Vec<f64> = rrd.rows.iter().map(|(.., values)| f64::from_bits(values[0])).collect();
    // RRDtool adds 2^32 - 1, and then 2^64 - 2^32, to what decreased: 9 and 0 in a tenth of a second.
    assert!(rates[0].is_nan());
    assert_eq!(rates[1], 90.0);
    assert_eq!(rates[3], 0.0);
}
