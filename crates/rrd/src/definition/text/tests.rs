use super::*;

fn parse(step: &str, limits: Limits, words: &[&str]) -> Result<Definition, String> {
    let step = crate::when::parse_step(step, limits.sub_second).unwrap();
    let options = CreateOptions { step, limits, file_name: b"x.rrd" };
    parse_create(&options, words).map_err(|error| error.to_string())
}

const RRA: &str = "RRA:AVERAGE:0.5:1:10";

#[test]
fn bad_words_are_refused_in_rrdtools_words() {
    fn check(words: &[&str], want: &str) {
        assert_eq!(parse("300", Limits::FILE, words).unwrap_err(), want, "{words:?}");
    }
    let ds = "DS:a:GAUGE:600:U:U";
    check(&[], "you must define at least one Round Robin Archive");
    check(&[RRA], "you must define at least one Data Source");
    check(&[ds, "x"], "can't parse argument 'x'");
    check(&[ds, ds], "Duplicate DS name: a");
    check(&["DS:aaaaaaaaaaaaaaaaaaaa:GAUGE:5:U:U"], "invalid DS format");
    check(&["DS:a:FOO:5:U:U"], "invalid DS type specified (FOO)");
    check(&["DS:a:GAUGE:5"], "failed to parse data source 5: missing separator");
    check(&["DS:a:GAUGE:5:1x:U"], "parsing min val - Converted '1x' to 1.000000, but cannot convert 'x'");
    check(
        &[ds, "RRA:HWPREDICT:9:0.1:0.1:10"],
        "Length of seasonal cycle exceeds length of HW prediction array",
    );
}

#[test]
fn hostile_words_end_in_an_error() {
    fn check(words: &[&str]) {
        parse("300", Limits::STORE, words).unwrap_err();
    }
    let ds = "DS:a:GAUGE:600:U:U";
    check(&[ds, "RRA:AVERAGE:0.5:18446744073709551615:18446744073709551615"]);
    check(&[ds, "RRA:AVERAGE:0.5:1:10000000000000000000"]);
    check(&[ds, "RRA:HWPREDICT:10:0.1:0.1:0"]);
    check(&[ds, "RRA:HWPREDICT:10:0.1:0.1:5:7"]);
    check(&[ds, "RRA:FAILURES:10:3:5:99999999999999999999"]);
    check(&["DS:a:GAUGE:5:1:ääääääääääääääääääää", RRA]);
    let many: Vec<String> = (0..5000).map(|index| format!("DS:a{index}:GAUGE:5:U:U")).collect();
    check(&many.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn a_store_takes_long_names_and_short_steps() {
    let name = "n".repeat(200);
    let source = format!("DS:{name}:GAUGE:0.3:U:U");
    let definition = parse("0.1", Limits::STORE, &[&source, "RRA:AVERAGE:0.5:1s:1h"]).unwrap();
    assert_eq!((definition.step, definition.units_per_second), (100, 1000));
    assert!(matches!(definition.ds[0].kind, DsKind::Fed { heartbeat: 300, .. }));
    assert_eq!((definition.rra[0].pdp_per_row, definition.rra[0].row_count), (10, 3600));
    parse("1", Limits::FILE, &[&source, RRA]).unwrap_err();
}

#[test]
fn a_file_that_would_need_decimals_is_refused_with_a_way_out() {
    fn check(words: &[&str], want: &str) {
        assert_eq!(parse("1", Limits::FILE, words).unwrap_err(), want, "{words:?}");
    }
    let ds = "DS:a:GAUGE:600:U:U";
    check(&["DS:a:GAUGE:0.3:U:U", RRA], DECIMALS_IN_FILE);
    check(&["DS:a:GAUGE:2.0s:U:U", RRA], DECIMALS_IN_FILE);
    check(&[ds, "RRA:AVERAGE:0.5:1.0s:10"], DECIMALS_IN_FILE);
    check(&[ds, "RRA:AVERAGE:0.5:1:2.5m"], DECIMALS_IN_FILE);
    // What no store would take either is refused in RRDtool's words.
    check(&[ds, "RRA:AVERAGE:0.5:1:2.5x"], "Invalid row count 2.5x: value has trailing garbage");
    check(
        &["DS:a:GAUGE:.3:U:U", RRA],
        "failed to parse data source .3:U:U: value must be (suffixed) positive number",
    );
}

#[test]
fn ms_is_minutes_as_in_rrdtool() {
    let words = ["DS:a:GAUGE:300ms:U:U", "RRA:AVERAGE:0.5:100ms:10"];
    for limits in [Limits::FILE, Limits::STORE] {
        let definition = parse("100ms", limits, &words).unwrap();
        assert_eq!((definition.step, definition.units_per_second), (6000, 1));
        assert!(matches!(definition.ds[0].kind, DsKind::Fed { heartbeat: 18_000, .. }));
        assert_eq!(definition.rra[0].pdp_per_row, 1);
    }
}

#[test]
fn a_fraction_of_a_second_anywhere_makes_the_unit_fine() {
    let words = ["DS:a:GAUGE:10:U:U", "DS:b:GAUGE:1.5:U:U", "RRA:AVERAGE:0.5:1:1m"];
    let definition = parse("1", Limits::STORE, &words).unwrap();
    assert_eq!((definition.step, definition.units_per_second), (1000, 1000));
    assert!(matches!(definition.ds[0].kind, DsKind::Fed { heartbeat: 10_000, .. }));
    assert!(matches!(definition.ds[1].kind, DsKind::Fed { heartbeat: 1500, .. }));
    assert_eq!(definition.rra[0].row_count, 60);
}

#[test]
fn another_step_leaves_heartbeats_as_long_as_they_are() {
    fn check(old: &str, heartbeat: &str, new: &str, want: (u64, u32, u64)) {
        let source = format!("DS:a:GAUGE:{heartbeat}:U:U");
        let mut definition = parse(old, Limits::STORE, &[&source, RRA]).unwrap();
        definition.set_step(crate::when::parse_step(new, true).unwrap());
        let DsKind::Fed { heartbeat, .. } = definition.ds[0].kind else { unreachable!() };
        assert_eq!((definition.step, definition.units_per_second, heartbeat), want);
    }
    check("10", "20", "5", (5, 1, 20));
    check("10", "20", "0.1", (100, 1000, 20_000));
    check("0.1", "0.3", "10", (10_000, 1000, 300));
    check("0.1", "3", "10", (10, 1, 3));
    check("0.1", "0.3", "0.2", (200, 1000, 300));
}
