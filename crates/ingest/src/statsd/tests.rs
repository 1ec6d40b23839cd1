use super::aggregate::{Adding, FORGOTTEN_AFTER, FORGOTTEN_WHEN_FULL_AFTER, StatsdAggregator, StatsdOptions};
use super::*;
use crate::testing::{Recorded, pieces_at_random};

#[derive(Default)]
struct Values(Vec<String>);

impl StatsdSink for Values {
    fn value(&mut self, name: &str, tags: &[(&str, &str)], value: StatsdValue<'_>) {
        let tags: String = tags.iter().map(|(key, value)| format!("[{key}={value}]")).collect();
        let value = match value {
            StatsdValue::Member(text) => format!("Member({})", String::from_utf8_lossy(text)),
            value => format!("{value:?}"),
        };
        self.0.push(format!("{name}{tags} {value}"));
    }

    fn refused(&mut self, refusal: Refusal<'_>) {
        let text = String::from_utf8_lossy(refusal.text);
        self.0.push(format!("{} {}: {text}", refusal.line, refusal.fault.label()));
    }
}

fn check(text: &str, want: &[&str]) {
    let mut sink = Values::default();
    read_lines(text.as_bytes(), 1, &mut sink);
    assert_eq!(sink.0, want, "{text:?}");
}

#[test]
fn lines_have_types_and_rates() {
    check("a.b:1|c\nc:5|c|@0.1\n", &["a.b Count(1.0)", "c Count(50.0)"]);
    check("g:3.5|g\ng:-2|g\ng:+4|g", &["g Gauge(3.5)", "g GaugeChange(-2.0)", "g GaugeChange(4.0)"]);
    check(
        "t:320|ms|@0.5\r\nh:1|h\nd:2|d",
        &["t Timer(320.0, 2.0)", "h Timer(1.0, 1.0)", "d Timer(2.0, 1.0)"],
    );
    check("u:al:ice|s", &["u Member(al:ice)"]);
    check("m:1|m", &["m Count(1.0)"]);
}

#[test]
fn a_line_may_have_several_values() {
    // statsd's own form.
    check("a:1|c:2|c|@0.5:3|ms", &["a Count(1.0)", "a Count(4.0)", "a Timer(3.0, 1.0)"]);
    // DogStatsD's.
    check("a:1:2:3|d|#x:y", &["a[x=y] Timer(1.0, 1.0)", "a[x=y] Timer(2.0, 1.0)", "a[x=y] Timer(3.0, 1.0)"]);
}

#[test]
fn tags_are_those_of_dogstatsd() {
    check(
        "a:1|c|@0.5|#env:prod,canary,url:http://x,e:|c:83c0a99c|T1656581400",
        &["a[env=prod][canary=true][url=http://x] Count(2.0)"],
    );
    check("a:1|c|#:x", &["1 bad_tag: a:1|c|#:x"]);
}

#[test]
fn a_bad_line_costs_only_itself() {
    check(
        "a\n:1|c\na:1\na:x|c\na:1|q\na:1|c|@0\na:1|c|@2\na:nan|g\n_e{5,4}:title|text\n_sc|x|0\na:|c\nok:1|c",
        &[
            "1 no_value: a",
            "2 no_name: :1|c",
            "3 unknown_type: a:1",
            "4 bad_value: a:x|c",
            "5 unknown_type: a:1|q",
            "6 bad_rate: a:1|c|@0",
            "7 bad_rate: a:1|c|@2",
            "8 not_finite: a:nan|g",
            "9 event: _e{5,4}:title|text",
            "10 event: _sc|x|0",
            "11 no_value: a:|c",
            "ok Count(1.0)",
        ],
    );
}

/// What an aggregator tells after these lines, sorted.
fn flushed(aggregator: &mut StatsdAggregator, text: &str) -> Vec<String> {
    let mut refused = |refusal: Refusal<'_>| panic!("{refusal:?}");
    read_lines(text.as_bytes(), 1, &mut Adding { aggregator, sink: &mut refused });
    let mut sink = Recorded::default();
    aggregator.flush(5, 10.0, &mut sink);
    let end = " @5 Gauge";
    let mut lines: Vec<_> = sink.lines.iter().map(|line| line.replace(end, "")).collect();
    lines.sort();
    lines
}

#[test]
fn a_flush_tells_what_statsd_tells() {
    let mut all = StatsdAggregator::new(StatsdOptions::default());
    let lines = "hits:4|c\nhits:1|c|@0.5\nload:3|g\nload:-1|g\nuser:a|s\nuser:b|s\nuser:a|s";
    assert_eq!(
        flushed(&mut all, lines),
        ["stats.gauges.load{} 2", "stats.hits{} 0.6", "stats.sets.user.count{} 2", "stats_counts.hits{} 6",]
    );
    // What is not heard of again.
    assert_eq!(
        flushed(&mut all, "load:+5|g"),
        ["stats.gauges.load{} 7", "stats.hits{} 0", "stats.sets.user.count{} 0", "stats_counts.hits{} 0",]
    );
}

/// As statsd's own tests have it: the percentile 90 of 100 and 200 and 300 is that of all three.
#[test]
fn timers_have_the_numbers_of_statsd() {
    let mut all =
        StatsdAggregator::new(StatsdOptions { percentiles: vec![80.0, 99.9], ..StatsdOptions::default() });
    assert_eq!(
        flushed(&mut all, "t:100|ms|#b:2,a:1\nt:200|ms|#a:1,b:2\nt:300|ms|@0.1|#a:1,b:2"),
        [
            "stats.timers.t.count_80{a=1,b=2} 2",
            "stats.timers.t.count_99_9{a=1,b=2} 3",
            "stats.timers.t.count_ps{a=1,b=2} 1.2",
            "stats.timers.t.count{a=1,b=2} 12",
            "stats.timers.t.lower{a=1,b=2} 100",
            "stats.timers.t.mean_80{a=1,b=2} 150",
            "stats.timers.t.mean_99_9{a=1,b=2} 200",
            "stats.timers.t.mean{a=1,b=2} 200",
            "stats.timers.t.median{a=1,b=2} 200",
            "stats.timers.t.std{a=1,b=2} 81.64965809277261",
            "stats.timers.t.sum_80{a=1,b=2} 300",
            "stats.timers.t.sum_99_9{a=1,b=2} 600",
            "stats.timers.t.sum_squares_80{a=1,b=2} 50000",
            "stats.timers.t.sum_squares_99_9{a=1,b=2} 140000",
            "stats.timers.t.sum_squares{a=1,b=2} 140000",
            "stats.timers.t.sum{a=1,b=2} 600",
            "stats.timers.t.upper_80{a=1,b=2} 200",
            "stats.timers.t.upper_99_9{a=1,b=2} 300",
            "stats.timers.t.upper{a=1,b=2} 300",
        ]
    );
    assert_eq!(
        flushed(&mut all, ""),
        ["stats.timers.t.count_ps{a=1,b=2} 0", "stats.timers.t.count{a=1,b=2} 0"]
    );
}

#[test]
fn names_and_values_have_limits() {
    let mut all = StatsdAggregator::new(StatsdOptions { series_max: 5, ..StatsdOptions::default() });
    let count = StatsdValue::Count(1.0);
    assert_eq!(all.add("a", &[], count), Ok(()));
    assert_eq!(all.add("a", &[("x", "y")], count), Ok(()));
    assert_eq!(all.add("b", &[], count), Err(Fault::TooManySeries));
    assert_eq!(all.add("a", &[], count), Ok(()));
    assert_eq!((all.counts().values, all.counts().over_limit), (4, 1));
    assert_eq!(all.add(&"x".repeat(2_000), &[], StatsdValue::Gauge(1.0)), Err(Fault::TooLong));
    let mut sink = Recorded::default();
    all.flush(0, FORGOTTEN_AFTER, &mut sink);
    assert!(all.is_empty());
    assert_eq!(all.add("t", &[], StatsdValue::Timer(1.0, 1.0)), Err(Fault::TooManySeries));
    let mut all = StatsdAggregator::new(StatsdOptions { series_max: 14, ..StatsdOptions::default() });
    // A million values of a timer: exact but for the percentiles, which are near.
    for index in 0..1_000_000 {
        all.add("t", &[], StatsdValue::Timer(f64::from(index), 1.0)).unwrap();
    }
    let mut sink = Recorded::default();
    all.flush(0, 1.0, &mut sink);
    let value = |name: &str| -> f64 {
        let line =
            sink.lines.iter().find(|line| line.starts_with(&format!("stats.timers.t.{name}{{"))).unwrap();
        line.split(' ').nth(1).unwrap().parse().unwrap()
    };
    assert_eq!((value("count"), value("upper"), value("mean")), (1e6, 999_999.0, 499_999.5));
    assert!((value("upper_90") - 900_000.0).abs() < 1_000.0, "{}", value("upper_90"));
    assert!((value("count_90") - 900_000.0).abs() < 20_000.0, "{}", value("count_90"));
}

/// Names that were sent once, and fill it, keep out others for a while and not for a day.
#[test]
fn what_fills_it_makes_room_for_what_is_sent() {
    let mut all = StatsdAggregator::new(StatsdOptions { series_max: 5, ..StatsdOptions::default() });
    let (count, level) = (StatsdValue::Count(1.0), StatsdValue::Gauge(1.0));
    let mut sink = Recorded::default();
    for name in ["junk1", "junk2", "junk3", "kept"] {
        all.add(name, &[], level).unwrap();
    }
    let mut seconds = 0.0;
    while all.add("new", &[], count).is_err() && seconds < FORGOTTEN_AFTER {
        all.add("kept", &[], level).unwrap();
        all.flush(0, 10.0, &mut sink);
        seconds += 10.0;
    }
    assert_eq!((seconds, all.len()), (FORGOTTEN_WHEN_FULL_AFTER, 2));
    // With room for all, what is silent stays.
    for _ in 0..100 {
        all.flush(0, 60.0, &mut sink);
    }
    assert_eq!(all.len(), 2);
}

#[test]
fn random_lines_cause_no_panic() {
    const PIECES: &[&str] = &[
        "a", ":", "|", "c", "g", "ms", "s", "@", "0.5", "#", ",", "1e308", "-", "+", "nan", "\n", "\u{e4}",
        "_e{", "h",
    ];
    pieces_at_random(5_000, PIECES, crate::fuzzing::fuzz_statsd);
}
