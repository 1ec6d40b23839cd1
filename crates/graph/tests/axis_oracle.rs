//! Axes against Debian's rrdtool: limits, lines and labels of random graphs, in several time zones.
//!
//! A process has one time zone, so this program runs itself once for each zone.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "support/axes.rs"]
mod axes;

use axes::{Case, Debian, Times, c_exponent, same_times, same_values};
use localtime::Local;
use roundel_graph::picture::axis::horizontal;
use roundel_graph::picture::axis::mapping::{CanvasRect, Mapping};
use roundel_graph::picture::axis::vertical;
use roundel_graph::picture::limits::{Extent, limits};
use roundel_graph::picture::options::{AxisFormatter, FontTag, Interval, Options, TimeUnit, XGrid, YGrid};
use roundel_graph::print::TimeFormat;
use rrd::when::calendar::Utc;
use testkit::in_zones;
use testkit::random::{Random, seeds};

/// A value of any size.
fn value(random: &mut Random) -> f64 {
    let digits = random.between(1, 4) as i32;
    let mantissa = random.below(10_u64.pow(digits as u32)) as f64;
    let size = mantissa * 10_f64.powi(random.between(0, 16) as i32 - 8 - digits);
    if random.once_in(4) { -size } else { size }
}

/// A value near this one that RRDtool reads back from its own text: it does not read every number exactly.
fn read(value: f64) -> f64 {
    let again = |value: f64| rrd::number::parse(format!("{value:e}").as_bytes()).unwrap();
    // Some texts go round in circles; whole numbers and few digits never do.
    std::iter::successors(Some(value + 0.0), |value| Some(again(*value)))
        .take(20)
        .find(|value| again(*value) == *value)
        .unwrap_or_else(|| value.trunc())
}

fn vertical_case(random: &mut Random) -> Case {
    let mut case = Case::default();
    let one = value(random);
    let other = match random.below(4) {
        0 => value(random),
        1 => one * (1.0 + random.below(1000) as f64 / 1e3),
        2 => one * (1.0 + random.below(1000) as f64 / 1e6),
        _ => one * 10_f64.powi(random.below(6) as i32) + 1.0,
    };
    let (one, other) = (read(one), read(other));
    case.data = (one.min(other), one.max(other));
    let options = &mut case.options;
    options.x_grid = XGrid::None;
    options.rigid = random.once_in(6);
    options.allow_shrink = random.once_in(12);
    options.alt_autoscale = random.once_in(8);
    options.alt_autoscale_min = random.once_in(12);
    options.alt_autoscale_max = random.once_in(12);
    options.alt_y_grid = random.once_in(6);
    options.logarithmic = random.once_in(6);
    options.units_si = random.once_in(20);
    options.base = if random.once_in(6) { 1024 } else { 1000 };
    let near = |random: &mut Random, value: f64| read(value * random.below(300) as f64 / 100.0);
    options.lower_limit = random.once_in(5).then(|| near(random, case.data.0));
    options.upper_limit = random.once_in(5).then(|| near(random, case.data.1));
    let range = case.data.1 - case.data.0;
    if range > 0.0 && random.once_in(10) {
        let (part, label_factor) = (random.between(1, 300) as f64, random.between(1, 7) as i32);
        let step = read(range / part);
        // Both refuse none.
        if step > 0.0 {
            options.y_grid = YGrid::Custom { step, label_factor };
        }
    }
    options.units_exponent = random.once_in(8).then(|| random.between(0, 12) as i32 - 6);
    let scales = [(1.0, 0.0), (2.0, 10.0), (-1.0, 0.0), (0.001, 0.0), (1000.0, 5.0), (3e-6, -1e-3)];
    options.right_axis = random.once_in(6).then(|| scales[random.below(6) as usize]);
    for text in [&mut options.left_axis, &mut options.right_axis_text] {
        let formats: [&str; 4] = match random.below(16) {
            0 => ["%lf", "%5.2lf|%%", "%le", "a%.1lgb"],
            // RRDtool passes the date format of a logarithmic axis to printf.
            1 | 2 if options.logarithmic => continue,
            1 => {
                text.formatter = AxisFormatter::Timestamp;
                ["%H|%M", "%Y", "", "%s"]
            }
            2 => {
                text.formatter = AxisFormatter::Duration;
                ["%H|%M", "%d", "%W", "%02s.%f"]
            }
            _ => continue,
        };
        text.format = random.once_in(2).then(|| random.pick(&formats).as_bytes().to_vec());
    }
    options.height = if random.once_in(3) { random.between(10, 500) } else { 100 } as u32;
    if random.once_in(4) {
        let most = if random.once_in(4) { 160 } else { 30 };
        options.fonts[FontTag::Axis as usize].size = random.between(4, most) as f64 / 2.0;
    }
    case
}

fn check_values(debian: &mut Debian, case: &Case) -> Result<(), String> {
    let options = &case.options;
    let mut extent = Extent::new(options);
    extent.add(case.data.0);
    extent.add(case.data.1);
    let limits = limits(options, &extent);
    let plan = |rect: CanvasRect| {
        let mapping = Mapping::new(rect, case.span, limits, options.logarithmic);
        let input =
            vertical::ValueAxisInput { options, extent: &extent, limits, mapping: &mapping, times: &Times };
        vertical::plan(&input).map_err(|error| error.to_string())
    };
    let height = f64::from(options.height);
    if options.logarithmic && limits.1 <= 0.0 {
        // Debian's rrdtool paints at NaN.
        return Ok(());
    }
    if plan(CanvasRect { left: 0.0, top: 0.0, width: 1.0, height })?.lines.len() * 2 > vertical::LINES_MAX {
        // Debian's rrdtool would take minutes.
        return Ok(());
    }
    let drawn = match debian.draw(case) {
        Ok(drawn) => drawn,
        Err(text) if text.contains("you must specify a lower-limit > 0") => return Ok(()),
        Err(text) => return Err(text),
    };
    let ours = (c_exponent(limits.0), c_exponent(limits.1));
    if ours != drawn.limits {
        return Err(format!("limits {ours:?}, want {:?}", drawn.limits));
    }
    let axis = plan(drawn.rect)?;
    same_values(&axis, case, limits, &drawn)
}

#[test]
fn vertical_axes_are_debians() {
    // Texts of times may be on this axis, too.
    let Some(zone) = in_zones("vertical_axes_are_debians", &["UTC", "America/St_Johns"]) else { return };
    let mut debian = Debian::start(&zone);
    let mut wrong = Vec::new();
    for seed in seeds(250) {
        let case = vertical_case(&mut Random::new(seed));
        if let Err(text) = check_values(&mut debian, &case) {
            wrong.push(format!("seed {seed}: {:?} {}: {text}", case.data, axes::words(&case.options)));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.iter().take(12).cloned().collect::<Vec<_>>().join("\n")
    );
}

fn kept(data: (f64, f64), change: impl FnOnce(&mut Options)) -> Case {
    let mut case = Case { data, ..Case::default() };
    case.options.x_grid = XGrid::None;
    change(&mut case.options);
    case
}

/// Cases that random graphs have found, and a few that they cannot find.
fn kept_vertical() -> Vec<Case> {
    vec![
        // Limits that are round already.
        kept((1.0, 2.0), |_| {}),
        kept((-10.0, -2.0), |_| {}),
        kept((0.0018, 0.0021), |_| {}),
        // No data; no positive data on a logarithmic axis.
        kept((f64::NAN, f64::NAN), |_| {}),
        kept((f64::NAN, f64::NAN), |options| options.logarithmic = true),
        kept((-10.0, -2.0), |options| options.logarithmic = true),
        // Equal limits, above 0, below 0, and in single precision only.
        kept((5.0, 5.0), |_| {}),
        kept((-5.0, -5.0), |options| options.rigid = true),
        kept((19_000_000.0, 19_000_001.0), |options| options.alt_autoscale_min = true),
        // The lower limit above the upper one.
        kept((3.0, 7.0), |options| (options.rigid, options.upper_limit) = (true, Some(-20.0))),
        kept((3.0, 7.0), |options| (options.rigid, options.lower_limit) = (true, Some(10.0))),
        kept((-5.0, 150.0), |options| (options.rigid, options.upper_limit) = (true, Some(-20.0))),
        // A lower limit that the data falls below.
        kept((3.0, 7.0), |options| {
            (options.rigid, options.allow_shrink) = (true, true);
            (options.lower_limit, options.upper_limit) = (Some(4.0), Some(5.0));
        }),
        // A logarithmic axis ends at the option's limit, or at twice the data.
        kept((3.0, 7.0), |options| (options.logarithmic, options.lower_limit) = (true, Some(2.0))),
        kept((3.0, 7.0), |options| (options.logarithmic, options.upper_limit) = (true, Some(8.0))),
        // Powers of ten with labels that are no multiples of their distance; a fourth major line in a decade.
        kept((28.0, 1.4e6), |options| options.logarithmic = true),
        kept((0.9, 2.0), |options| options.logarithmic = true),
        // Only the labels of the right axis depend on the base.
        kept((28.0, 1.4e6), |options| {
            (options.logarithmic, options.units_si, options.base) = (true, true, 1024);
            options.right_axis = Some((3.0, 0.0));
        }),
        // Both alternatives at once; 2 % of a thousand times too large a power.
        kept((3.0, 7.0), |options| (options.alt_autoscale_min, options.alt_autoscale_max) = (true, true)),
        kept((0.0, 0.5), |options| options.alt_autoscale = true),
        // A single label, and a second one if the next line is outside of the canvas.
        kept((-5.0, 5.0), |options| (options.alt_y_grid, options.rigid) = (true, true)),
        kept((0.0, 1.5), |options| (options.height, options.rigid) = (19, true)),
        // A font too large for any distance of labels.
        kept((-8.91, -5.0), |options| {
            options.rigid = true;
            options.fonts[FontTag::Axis as usize].size = 68.5;
        }),
        // No line at all.
        kept((1010.0, 1020.0), |options| options.rigid = true),
        // Units that are slightly off, and units without a prefix.
        kept((0.006, 1.6), |options| {
            (options.alt_y_grid, options.units_exponent) = (true, Some(3));
            options.left_axis.formatter = AxisFormatter::Timestamp;
        }),
        kept((-0.25, -0.1), |options| (options.rigid, options.units_exponent) = (true, Some(-1))),
        kept((0.0, 5.0), |options| options.units_exponent = Some(30)),
        kept((0.0, 1e22), |_| {}),
        // The unit of the right axis is that of the grid's middle.
        kept((-1200.0, -60.0), |options| (options.rigid, options.right_axis) = (true, Some((1.0, 0.0)))),
        kept((60.0, 1930.0), |options| (options.rigid, options.right_axis) = (true, Some((1.0, 0.0)))),
        // The grid of --y-grid, which widens the limits to its labels, or not.
        kept((3.3, 7.7), |options| options.y_grid = YGrid::Custom { step: 0.7, label_factor: 3 }),
        kept((3.3, 7.7), |options| {
            (options.rigid, options.y_grid) = (true, YGrid::Custom { step: 0.7, label_factor: 3 });
        }),
        kept((3.3, 7.7), |options| {
            (options.alt_y_grid, options.y_grid) = (true, YGrid::Custom { step: 1.0, label_factor: 1 });
        }),
        kept((3.3, 7.7), |options| options.y_grid = YGrid::None),
        kept((1100.0, 9300.0), |options| options.left_axis.format = Some(Vec::new())),
        // Formats for numbers, where a logarithmic axis has one on the right alone.
        kept((1100.0, 9300.0), |options| options.left_axis.format = Some(b"%.1lf|%%".to_vec())),
        kept((1100.0, 9300.0), |options| {
            (options.logarithmic, options.right_axis) = (true, Some((1000.0, 0.0)));
            options.left_axis.format = Some(b"%lf".to_vec());
            options.right_axis_text.format = Some(b"%lf".to_vec());
        }),
    ]
}

#[test]
fn what_differed_once_does_not_again() {
    let mut debian = Debian::start("UTC");
    for case in kept_vertical() {
        check_values(&mut debian, &case).unwrap_or_else(|text| {
            panic!("{:?} {}: {text}", case.data, axes::words(&case.options));
        });
    }
}

/// A locale with a decimal comma.
struct Comma;

impl TimeFormat for Comma {
    fn strftime(&self, _format: &[u8], _time: i64) -> Vec<u8> {
        Vec::new()
    }

    fn strftime_utc(&self, _format: &[u8], _time: i64) -> Vec<u8> {
        Vec::new()
    }

    fn decimal_point(&self) -> String {
        ",".to_string()
    }
}

/// What Debian's rrdtool wrote with `LC_ALL=de_DE.UTF-8`.
#[test]
fn decimals_of_labels_follow_the_point_of_the_locale() {
    fn check(change: impl FnOnce(&mut Options), want: &[&str]) {
        let case = kept((0.0, 1.0), |options| {
            options.height = 60;
            change(options);
        });
        let mut extent = Extent::new(&case.options);
        extent.add(0.0);
        extent.add(1.0);
        let rect = CanvasRect { left: 50.0, top: 15.0, width: 400.0, height: 60.0 };
        let mapping = Mapping::new(rect, case.span, (0.0, 1.0), false);
        let (options, limits) = (&case.options, (0.0, 1.0));
        let input =
            vertical::ValueAxisInput { options, extent: &extent, limits, mapping: &mapping, times: &Comma };
        let axis = vertical::plan(&input).unwrap();
        let texts = axis.lines.iter().flat_map(|line| [&line.right_label, &line.label]).flatten();
        let texts: Vec<_> = texts.map(|text| String::from_utf8_lossy(text)).collect();
        assert_eq!(texts, want);
    }
    check(|_| {}, &[" 0,0", " 0,5", " 1,0"]);
    check(|options| options.left_axis.format = Some(b"%.2lf".to_vec()), &["0,00", "0,50", "1,00"]);
    check(
        |options| options.right_axis = Some((1.5, 0.0)),
        &["  0,0 m", " 0,0", "750,0 m", " 0,5", "1500,0 m", " 1,0"],
    );
}

/// Debian's rrdtool never ends or crashes here.
#[test]
fn axes_of_any_limits_come_to_an_end() {
    let numbers =
        [0.0, 1.0, -3.0, 1e-300, 5e-324, 1e300, -1e300, f64::MAX, f64::MIN, f64::INFINITY, f64::NAN];
    let mut random = Random::new(1);
    for _ in 0..3000 {
        let mut number = || numbers[random.below(numbers.len() as u64) as usize];
        let mut case = Case { data: (number(), number()), ..Case::default() };
        case.options.lower_limit = Some(number());
        case.options.upper_limit = Some(number());
        let (step, right) = (number(), (number(), number()));
        case.options.rigid = random.once_in(2);
        case.options.alt_autoscale = random.once_in(4);
        case.options.alt_y_grid = random.once_in(3);
        case.options.logarithmic = random.once_in(3);
        case.options.units_exponent = random.once_in(3).then(|| random.next() as i32);
        case.options.right_axis = random.once_in(2).then_some(right);
        if random.once_in(3) {
            case.options.y_grid = YGrid::Custom { step, label_factor: random.below(3) as i32 - 1 };
        }
        let mut extent = Extent::new(&case.options);
        extent.add(case.data.0);
        extent.add(case.data.1);
        let limits = limits(&case.options, &extent);
        let rect = CanvasRect { left: 50.0, top: 15.0, width: 400.0, height: 100.0 };
        let mapping = Mapping::new(rect, case.span, limits, case.options.logarithmic);
        let options = &case.options;
        let input =
            vertical::ValueAxisInput { options, extent: &extent, limits, mapping: &mapping, times: &Times };
        let axis = vertical::plan(&input).unwrap();
        assert!(axis.lines.len() <= vertical::LINES_MAX + 2, "{:?} {}", case.data, axes::words(options));
    }
}

#[test]
fn times_of_any_grid_come_to_an_end() {
    let units = [TimeUnit::Second, TimeUnit::Hour, TimeUnit::Week, TimeUnit::Month, TimeUnit::Year];
    let counts = [1, 0, -1, 7, i32::MAX, i32::MIN];
    let times = [0, 1_700_000_000, -5_000_000_000, i64::MAX / 4, i64::MIN / 4];
    let mut random = Random::new(2);
    for _ in 0..300 {
        let mut below = |end: usize| random.below(end as u64) as usize;
        let mut every = || Interval { unit: units[below(units.len())], count: counts[below(counts.len())] };
        let (grid, major, label) = (every(), every(), every());
        let precision = [0, 86_400, i64::MAX, i64::MIN][below(4)];
        let options = Options {
            x_grid: XGrid::Custom { grid, major, label, precision, format: b"%H".to_vec() },
            ..Options::default()
        };
        let start = times[below(times.len())];
        let span = (start, start + [1, 86_400, i64::MAX / 4][below(3)]);
        let input = horizontal::TimeAxisInput {
            options: &options,
            span,
            width: 400.0,
            calendar: &Utc,
            times: &Times,
            first_weekday: 0,
        };
        let axis = horizontal::plan(&input);
        assert!(axis.lines.len() <= 2 * horizontal::LINES_MAX && axis.labels.len() <= horizontal::LINES_MAX);
    }
}

/// Zones whose clocks change at odd times, and one that never does.
const ZONES: &[&str] = &["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"];

fn every(random: &mut Random, seconds_min: i64) -> Interval {
    let units = [
        (TimeUnit::Second, 1, 60),
        (TimeUnit::Minute, 60, 60),
        (TimeUnit::Hour, 3600, 24),
        (TimeUnit::Day, 86_400, 10),
        (TimeUnit::Week, 7 * 86_400, 5),
        (TimeUnit::Month, 30 * 86_400, 12),
        (TimeUnit::Year, 365 * 86_400, 5),
    ];
    loop {
        let (unit, seconds, most) = units[random.below(7) as usize];
        let count = random.between(1, most);
        if count as i64 * seconds > seconds_min
            && (count as i64 * seconds < seconds_min * 50 || random.once_in(20))
        {
            return Interval { unit, count: count as i32 };
        }
    }
}

fn horizontal_case(random: &mut Random) -> Case {
    let mut case = Case::default();
    // Near a change of the clocks, or anywhere in 40 years.
    let changes = [1_711_846_800, 1_729_990_800, 1_710_054_000, 1_730_613_600, 1_712_415_600, 1_728_142_200];
    let about = match random.below(3) {
        0 => changes[random.below(6) as usize],
        _ => 400_000_000 + random.below(1_300_000_000) as i64,
    };
    let seconds = (10.0 * 10_f64.powf(random.below(7_900) as f64 / 1000.0)) as i64;
    let start = (about - random.below(seconds as u64) as i64).max(320_000_000);
    let start = if random.once_in(4) { start - start % 86_400 } else { start };
    case.span = (start, start + seconds);
    let options = &mut case.options;
    options.y_grid = YGrid::None;
    options.upper_limit = Some(2.0);
    options.width = if random.once_in(3) { random.between(50, 2000) } else { 400 } as u32;
    if random.once_in(10) {
        options.week_format = b"W%U".to_vec();
    }
    if random.once_in(4) {
        let grid = every(random, seconds / 100);
        let major = every(random, seconds / 50);
        let label = every(random, seconds / 20);
        let precision = [0, 0, 3600, 86_400, 86_401, 30 * 86_400][random.below(6) as usize];
        let format = random.pick(&["%H:%M", "%a %d %b", "%X", "%Y-%m-%d %H", "%V|%%"]).as_bytes().to_vec();
        options.x_grid = XGrid::Custom { grid, major, label, precision, format };
    }
    case
}

fn check_times(debian: &mut Debian, case: &Case) -> Result<(), String> {
    let drawn = debian.draw(case)?;
    let (options, span) = (&case.options, case.span);
    let width = f64::from(options.width);
    let input =
        horizontal::TimeAxisInput { options, span, width, calendar: &Local, times: &Times, first_weekday: 0 };
    same_times(&horizontal::plan(&input), case, &drawn)
}

fn ask(zone: &str) {
    let mut debian = Debian::start(zone);
    let mut wrong = Vec::new();
    for seed in seeds(40) {
        let case = horizontal_case(&mut Random::new(seed));
        if let Err(text) = check_times(&mut debian, &case) {
            wrong.push(format!("seed {seed}: {zone} {:?} {}: {text}", case.span, axes::words(&case.options)));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.iter().take(12).cloned().collect::<Vec<_>>().join("\n")
    );
}

#[test]
fn horizontal_axes_are_debians() {
    if let Some(zone) = in_zones("horizontal_axes_are_debians", ZONES) {
        ask(&zone);
    }
}
