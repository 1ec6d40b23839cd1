use super::*;
use crate::testing::pieces_at_random;

#[derive(Default)]
struct Fields(Vec<String>);

impl InfluxSink for Fields {
    fn field(&mut self, field: &InfluxField<'_>) {
        let tags: String = field.tags.iter().map(|(key, value)| format!("[{key}={value}]")).collect();
        let time = field.time.map_or("now".to_string(), |time| time.to_string());
        let InfluxField { measurement, field, value, .. } = field;
        self.0.push(format!("{measurement}{tags} {field} {value:?} @{time}"));
    }

    fn refused(&mut self, refusal: Refusal<'_>) {
        let text = String::from_utf8_lossy(refusal.text);
        self.0.push(format!("{} {}: {text}", refusal.line, refusal.fault.label()));
    }
}

fn check(text: &str, want: &[&str]) {
    let mut sink = Fields::default();
    read_lines(text.as_bytes(), Precision::Nanoseconds, &mut sink);
    assert_eq!(sink.0, want, "{text:?}");
}

#[test]
fn a_line_is_measurement_tags_fields_and_time() {
    check(
        "cpu,host=a,core=0 user=1.5,idle=2i,total=3u 17\n",
        &[
            "cpu[host=a][core=0] user Float(1.5) @17",
            "cpu[host=a][core=0] idle Unsigned(2) @17",
            "cpu[host=a][core=0] total Unsigned(3) @17",
        ],
    );
    check("cpu value=-5i", &["cpu value Signed(-5) @now"]);
    check(
        "cpu   value=1   17  \r\n\n# a comment \"\n  mem v=2e3",
        &["cpu value Unsigned(1) @17", "mem v Float(2000.0) @now"],
    );
    check("cpu,host= v=18446744073709551615u", &["cpu v Unsigned(18446744073709551615) @now"]);
}

#[test]
fn what_is_no_number_costs_only_itself() {
    check(
        "m a=\"x\",b=1,c=t,d=TRUE,e=false,g=F 5",
        &["1 text: a", "m b Unsigned(1) @5", "1 boolean: c", "1 boolean: d", "1 boolean: e", "1 boolean: g"],
    );
    check("m a=nan,b=2", &["1 not_finite: a", "m b Unsigned(2) @now"]);
}

#[test]
fn escapes_are_those_of_their_place() {
    check(
        r"my\ me\,as\=ure,ta\ g\=k\,ey=va\ l\=u\,e f\ ie\=ld\,=1",
        &[r"my me,as\=ure[ta g=k,ey=va l=u,e] f ie=ld, Unsigned(1) @now"],
    );
    check(r"a\b,c\d=e\\f g\h=1", &[r"a\b[c\d=e\\f] g\h Unsigned(1) @now"]);
    check(
        r#"m"x",t="a" f=1,s="q\"u,o te\\",g=2 3"#,
        &[r#"m"x"[t="a"] f Unsigned(1) @3"#, "1 text: s", r#"m"x"[t="a"] g Unsigned(2) @3"#],
    );
    check("\u{fc},\u{e4}=\u{f6} \u{df}=1", &["\u{fc}[\u{e4}=\u{f6}] \u{df} Unsigned(1) @now"]);
}

#[test]
fn texts_may_hold_ends_of_lines() {
    check("m s=\"one\ntwo\",a=1 7\nn b=2", &["1 text: s", "m a Unsigned(1) @7", "n b Unsigned(2) @now"]);
    check("m s=\"\n\n\"\nn x", &["1 text: s", "4 no_value: n x"]);
    // One that does not end costs one line.
    check("m s=\"one\nn b=2", &["1 open_quote: m s=\"one", "n b Unsigned(2) @now"]);
    check("m,t=\"x v=1\nn b=2", &["m[t=\"x] v Unsigned(1) @now", "n b Unsigned(2) @now"]);
}

#[test]
fn texts_without_ends_cost_no_more_than_their_bytes() {
    // Each line ends the text of the one before and begins another.
    let text = "\"\" s=\"\n".repeat(500_000);
    let began = std::time::Instant::now();
    let mut sink = Fields::default();
    read_lines(text.as_bytes(), Precision::Nanoseconds, &mut sink);
    assert_eq!(sink.0.len(), 500_000);
    // Without a limit it is hours.
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
}

#[test]
fn a_bad_line_costs_only_itself() {
    check(
        "m\nm a\nm a=\nm a=1 x\nm a=1 2 3\n,t=1 a=1\nm,t a=1\nm,=x a=1\nm, a=1\nm a=1i2\nm a=1,\nm =1\nm a=12345678901234567890i\nm a=-1u\nm a=\"x\"y\nm a=1 -5\nok a=1",
        &[
            "1 no_value: m",
            "2 no_value: m a",
            "3 bad_value: m a=",
            "4 bad_time: m a=1 x",
            "5 too_many_parts: m a=1 2 3",
            "6 no_name: ,t=1 a=1",
            "7 bad_tag: m,t a=1",
            "8 bad_tag: m,=x a=1",
            "9 bad_tag: m, a=1",
            "10 bad_value: m a=1i2",
            "11 no_value: m a=1,",
            "12 no_value: m =1",
            "13 bad_value: m a=12345678901234567890i",
            "14 bad_value: m a=-1u",
            "15 bad_value: m a=\"x\"y",
            "16 bad_time: m a=1 -5",
            "ok a Unsigned(1) @now",
        ],
    );
    let many = format!("m{} a=1", ",t=x".repeat(TAGS_MAX + 1));
    check(&many, &[&format!("1 too_many_tags: {many}")]);
    let long = format!("m a=\"{}\"", "x".repeat(LINE_BYTES_MAX));
    check(&long, &[&format!("1 too_long: {long}")]);
}

#[test]
fn times_have_the_precision_that_was_asked_for() {
    let check = |name: &str, want: i64| {
        let mut sink = Fields::default();
        read_lines(b"m a=1 1700000", Precision::of_name(name).unwrap(), &mut sink);
        assert_eq!(sink.0, [format!("m a Unsigned(1) @{want}")], "{name}");
    };
    check("", 1_700_000);
    check("ns", 1_700_000);
    check("n", 1_700_000);
    check("u", 1_700_000_000);
    check("us", 1_700_000_000);
    check("ms", 1_700_000_000_000);
    check("s", 1_700_000_000_000_000);
    check("m", 102_000_000_000_000_000);
    check("h", 6_120_000_000_000_000_000);
    assert_eq!(Precision::of_name("d"), None);
    let mut sink = Fields::default();
    read_lines(b"m a=1 99999999999", Precision::Hours, &mut sink);
    assert_eq!(sink.0, ["1 bad_time: m a=1 99999999999"]);
}

#[test]
fn random_lines_cause_no_panic() {
    const PIECES: &[&str] = &[
        "m", ",", "=", " ", "\\", "\"", "\n", "a", "1i", "2u", "t", "-1.5", "nan", "17", "#", "\u{e4}", "\r",
        "f=1", ",t=x",
    ];
    pieces_at_random(5_000, PIECES, crate::fuzzing::fuzz_influx);
}
