use super::*;
use crate::definition::{Consolidation, Ds, DsType, PlainCf, Rra};

/// Sources a, b, (COMPUTE) c, d.
fn definition() -> Definition {
    let fed = DsKind::Fed { ds_type: DsType::Gauge, heartbeat: 600, min: f64::NAN, max: f64::NAN };
    let ds = |name: &str, kind: &DsKind| Ds { name: name.to_string(), kind: kind.clone() };
    let compute = DsKind::Compute(Default::default());
    Definition {
        version: 3,
        units_per_second: 1,
        step: 300,
        ds: vec![ds("a", &fed), ds("b", &fed), ds("c", &compute), ds("d", &fed)],
        rra: vec![Rra {
            cf: Consolidation::Plain { cf: PlainCf::Average, xff: 0.5 },
            pdp_per_row: 1,
            row_count: 10,
        }],
    }
}

const NOW: Timestamp = Timestamp::new(2_000_000_000, 250_000);

fn read(word: &str, template: Option<&str>) -> Result<(Timestamp, String), UpdateError> {
    read_for(&definition(), word, template)
}

fn read_for(
    definition: &Definition,
    word: &str,
    template: Option<&str>,
) -> Result<(Timestamp, String), UpdateError> {
    let template = template.map(|text| Template::parse(text.as_bytes(), definition).unwrap());
    let at_time = |text: &[u8]| match text {
        b"now" => Ok(NOW.whole),
        _ => Err("unparsable time: ".to_string() + &lossy(text)),
    };
    let mut values = Vec::new();
    let reading = parse_argument(word.as_bytes(), NOW, definition, template.as_ref(), &at_time, &mut values)?;
    Ok((reading.time, reading.values.iter().map(|text| lossy(text)).collect::<Vec<_>>().join(" ")))
}

#[test]
fn splits_words() {
    fn check(word: &str, template: Option<&str>, whole: i64, micros: u32, values: &str) {
        assert_eq!(read(word, template), Ok((Timestamp::new(whole, micros), values.to_string())), "{word}");
    }
    check("1000:1:2:3", None, 1000, 0, "1 2 3");
    check("1000:::", None, 1000, 0, "  ");
    check("1000000001.3:1:2:3", None, 1_000_000_001, 299_999, "1 2 3");
    check("1000000001.9999999:1:2:3", None, 1_000_000_002, 0, "1 2 3");
    check("+1e9:1:2:3", None, 1_000_000_000, 0, "1 2 3");
    check("N:1:2:3", None, 2_000_000_000, 250_000, "1 2 3");
    check("-5:1:2:3", None, 1_999_999_995, 250_000, "1 2 3");
    check("-0:1:2:3", None, 0, 0, "1 2 3");
    check("now@1:2:3", None, 2_000_000_000, 0, "1 2 3");
    check("nan:1:2:3", None, i64::MIN, 0, "1 2 3");
    check("1e300:1:2:3", None, i64::MIN, 0, "1 2 3");
    check("5:1", Some("b"), 5, 0, "U 1 U");
    check("5:1:2", Some("d:a"), 5, 0, "2 U 1");
    check("5:1:2", Some("a:a"), 5, 0, "2 U U");
    check("5:x:2", Some("c:a"), 5, 0, "2 U U");
}

#[test]
fn times_in_thousandths_are_what_their_digits_say() {
    let fine = Definition { units_per_second: 1000, ..definition() };
    // Whole seconds, and millionths.
    let check = |time: &str, whole: i64, micros: u32| {
        let got = read_for(&fine, &format!("{time}:1:2:3"), None).map(|(time, _)| time.in_seconds(1000));
        assert_eq!(got, Ok(Timestamp::new(whole, micros)), "{time}");
    };
    for millis in 0..1000 {
        check(&format!("1700000000.{millis:03}"), 1_700_000_000, millis * 1000);
        check(&format!("1700000000{millis:03}e-3"), 1_700_000_000, millis * 1000);
    }
    check("1700000000.1", 1_700_000_000, 100_000);
    check("1700000000.", 1_700_000_000, 0);
    check("1700000000.999999999999999999999999", 1_700_000_000, 999_999);
    check("0000000000000000001700000000.000001", 1_700_000_000, 1);
    check(" +1.7000000001e9", 1_700_000_000, 100_000);
    check("N", 2_000_000_000, 250_000);
    check("-0.1", 2_000_000_000, 150_000);
    check("-0.2500001", 1_999_999_999, 999_999);
    check("-1e-9", 2_000_000_000, 249_999);
    check("-0.0", 0, 0);
    check("0e100", 0, 0);
    let error = |time: &str| read_for(&fine, &format!("{time}:1:2:3"), None).unwrap_err().to_string();
    for far in ["9007199254740.993", "1e25", "99999999999999999999999.5"] {
        let want = format!("cannot update using time {far}: it is out of range; give seconds since 1970");
        assert_eq!(error(far), want);
    }
    let wrong = "error while parsing time in get_time_from_reading - Converted '7.5x' to 7.500000, but cannot convert 'x'";
    assert_eq!(error("7.5x"), wrong);
}

#[test]
fn refuses_words_in_rrdtools_text() {
    fn check(word: &str, template: Option<&str>, want: &str) {
        assert_eq!(read(word, template).unwrap_err().to_string(), want);
    }
    check("1000", None, "expected timestamp not found in data source from 1000");
    check("1000:1:2", None, "expected 3 data source readings (got 2) from 1000");
    check("1000:", None, "expected 3 data source readings (got 1) from 1000");
    check("1000:1:2", Some("a"), "found extra data on update argument: 2");
    check("x:1:2:3:4:5", None, "found extra data on update argument: 4:5");
    check("1000:1:2:3:", None, "found extra data on update argument: ");
    let time = "error while parsing time in get_time_from_reading";
    check("x:1:2:3", None, &format!("{time} - Cannot convert 'x' to float"));
    check("7x:1:2:3", None, &format!("{time} - Converted '7x' to 7.000000, but cannot convert 'x'"));
    check("1:2@1:2:3", None, "ds time: 1:2: unparsable time: 1:2");
    check("9e18:1:2:3", None, "cannot update using time 9e18: it is out of range; give seconds since 1970");
}

#[test]
fn refuses_templates_in_rrdtools_text() {
    fn check(text: &str, want: &str) {
        assert_eq!(Template::parse(text.as_bytes(), &definition()).unwrap_err().to_string(), want);
    }
    check("z", "unknown DS name 'z'");
    check("a:", "unknown DS name ''");
    check("a:b:c:d:a", "tmplt contains more DS definitions than RRD");
}
