use super::*;
use crate::format::format;

fn shown(text: &str) -> String {
    format(&parse(text).unwrap_or_else(|error| panic!("{text}: {error}")))
}

#[test]
fn precedence_is_that_of_prometheus() {
    for (text, want) in [
        ("1 + 2 * 3 ^ 4 ^ 5", "1 + 2 * 3 ^ 4 ^ 5"),
        ("-a ^ 2", "-a ^ 2"),
        ("a or b and c", "a or b and c"),
        ("sum(a) by (x)", "sum by (x) (a)"),
        ("a{b='c'}[5m] offset 1h", r#"a{b="c"}[5m] offset 1h"#),
        ("rate(a[5m:]) @ 3", ""),
        ("a == bool 1", "a == bool 1"),
        ("a + on (x) group_left (y) b", "a + on (x) group_left (y) b"),
        ("a[5m:1m] @ end()", "a[5m:1m] @ end()"),
        (r#"{"a.b", c!~"d"}"#, r#"{"a.b",c!~"d"}"#),
        ("time() - 5m", "time() - 300"),
        ("a[1h/2]", "a[1h / 2]"),
        ("a offset -5m", "a offset -5m"),
    ] {
        match want {
            "" => assert!(parse(text).is_err(), "{text}"),
            want => assert_eq!(shown(text), want),
        }
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (text, want) in [
        ("", "1:1: parse error: no expression found in input"),
        ("foo(", "1:1: parse error: unknown function with name \"foo\""),
        (
            "sum(a[5m])",
            "1:5: parse error: expected type instant vector in aggregation expression, got range vector",
        ),
        ("1 == 1", "1:1: parse error: comparisons between scalars must use BOOL modifier"),
        ("{}", "1:1: parse error: vector selector must contain at least one non-empty matcher"),
        ("a +\n  )", "2:3: parse error: unexpected \")\""),
        (
            "rate(a)",
            "1:6: parse error: expected type range vector in call to function \"rate\", got instant vector",
        ),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), want, "{text}");
    }
}

#[test]
fn nesting_and_length_are_bounded() {
    for text in [
        "(".repeat(8_000),
        format!("{}1{}", "(".repeat(5_000), ")".repeat(5_000)),
        "-".repeat(10_000) + "1",
        vec!["a"; 4_000].join("+"),
        vec!["1"; 4_000].join("^"),
        format!("a[{}1s{}]", "(".repeat(5_000), ")".repeat(5_000)),
        format!("a[{}]", vec!["1s"; 4_000].join("+")),
        "sum(".repeat(3_000),
        "a".repeat(TEXT_BYTES_MAX + 1),
    ] {
        assert!(parse(&text).is_err(), "{}", &text[..20]);
    }
    assert!(parse(&vec!["a"; 190].join("+")).is_ok());
}
