use super::*;
use crate::testing::{Recorded, pieces_at_random};

/// Protobuf in pieces: a field with bytes.
pub(crate) fn bytes(field: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    assert!(content.len() < 1 << 14, "two bytes of length suffice for tests");
    let length = [content.len() as u8 & 0x7f | 0x80, (content.len() >> 7) as u8];
    [&[field << 3 | 2][..], &length, &content].concat()
}

fn fixed(field: u8, number: u64) -> Vec<u8> {
    [&[field << 3 | 1][..], &number.to_le_bytes()].concat()
}

fn double(field: u8, number: f64) -> Vec<u8> {
    fixed(field, number.to_bits())
}

fn text_attribute(field: u8, key: &str, value: &str) -> Vec<u8> {
    bytes(field, &[&bytes(1, &[key.as_bytes()]), &bytes(2, &[&bytes(1, &[value.as_bytes()])])])
}

/// A request of metrics, with a resource of one attribute.
fn request(metrics: &[Vec<u8>]) -> Vec<u8> {
    let metrics: Vec<u8> = metrics.iter().flat_map(|metric| bytes(2, &[metric])).collect();
    // The resource after its metrics: fields may come in any order.
    let resource =
        bytes(1, &[&text_attribute(1, "service.name", "shop"), &text_attribute(1, "a", "resource")]);
    bytes(1, &[&bytes(2, &[&metrics]), &resource])
}

fn check(body: &[u8], want: &[&str]) -> OtlpAnswer {
    let mut sink = Recorded::default();
    let answer = read_protobuf(body, &mut sink).unwrap();
    assert_eq!(sink.lines, want);
    answer
}

#[test]
fn numbers_are_gauges_counts_and_differences() {
    let point = [text_attribute(7, "a", "b"), fixed(3, 7_000_000_001), double(4, 1.5)].concat();
    let int = [fixed(6, (-3_i64) as u64), fixed(3, 0)].concat();
    let name = |name: &str| bytes(1, &[name.as_bytes()]);
    let gauge = [name("g"), bytes(5, &[&bytes(1, &[&point]), &bytes(1, &[&int])])].concat();
    // The name and the temporality come last.
    let counter = [bytes(7, &[&bytes(1, &[&point]), &[2 << 3, 2, 3 << 3, 1]]), name("c")].concat();
    let delta = [name("d"), bytes(7, &[&bytes(1, &[&point]), &[2 << 3, 1, 3 << 3, 1]])].concat();
    let level = [name("l"), bytes(7, &[&bytes(1, &[&point]), &[2 << 3, 2]])].concat();
    let answer = check(
        &request(&[gauge, counter, delta, level]),
        &[
            "g{a=b,service.name=shop} 1.5 @7000000001 Gauge",
            "g{service.name=shop,a=resource} -3 @now Gauge",
            "c{a=b,service.name=shop} 1.5 @7000000001 Counter",
            "d{a=b,service.name=shop} 1.5 @7000000001 Delta",
            "l{a=b,service.name=shop} 1.5 @7000000001 Gauge",
        ],
    );
    assert_eq!(answer, OtlpAnswer::default());
    assert_eq!((answer.to_protobuf(), answer.to_json()), (vec![], "{}".to_string()));
}

#[test]
fn distributions_keep_count_and_sum() {
    let name = |name: &str| bytes(1, &[name.as_bytes()]);
    let common = [fixed(3, 5), fixed(4, 10), double(5, 2.5)].concat();
    let plain =
        [common.clone(), bytes(6, &[&[1, 0, 0, 0, 0, 0, 0, 0]]), text_attribute(9, "x", "y")].concat();
    let histogram = [name("h"), bytes(9, &[&bytes(1, &[&plain]), &[2 << 3, 2]])].concat();
    let exponential =
        [common.clone(), bytes(8, &[&[1 << 3, 2]]), bytes(9, &[&[1 << 3, 2]]), text_attribute(1, "x", "z")]
            .concat();
    let exponential = [name("e"), bytes(10, &[&bytes(1, &[&exponential]), &[2 << 3, 1]])].concat();
    let quantile = bytes(6, &[&double(1, 0.99), &double(2, 7.0)]);
    let summary = [name("s"), bytes(11, &[&bytes(1, &[&common, &quantile])])].concat();
    let answer = check(
        &request(&[histogram, exponential, summary]),
        &[
            "h_count{x=y,service.name=shop,a=resource} 10 @5 Counter",
            "h_sum{x=y,service.name=shop,a=resource} 2.5 @5 Counter",
            "e_count{x=z,service.name=shop,a=resource} 10 @5 Delta",
            "e_sum{x=z,service.name=shop,a=resource} 2.5 @5 Delta",
            "s_count{service.name=shop,a=resource} 10 @5 Counter",
            "s_sum{service.name=shop,a=resource} 2.5 @5 Counter",
            "s{service.name=shop,a=resource,quantile=0.99} 7 @5 Gauge",
        ],
    );
    assert_eq!((answer.rejected, answer.without_buckets), (0, 2));
    assert_eq!(answer.message(), "of 2 histograms count and sum are kept, and no buckets");
}

#[test]
fn what_is_refused_is_told_in_the_answer() {
    let name = |name: &str| bytes(1, &[name.as_bytes()]);
    let point = bytes(1, &[&double(4, f64::NAN)]);
    let stale = bytes(1, &[&[8 << 3, 1]]);
    let gauge = [name("g"), bytes(5, &[&point, &bytes(1, &[]), &stale])].concat();
    let sum = [name("x"), bytes(7, &[&bytes(1, &[&double(4, 1.0)])])].concat();
    let unnamed = bytes(5, &[&bytes(1, &[&double(4, 1.0)])]);
    let answer = check(
        &request(&[gauge, sum, unnamed]),
        &["1 not_finite: g", "2 no_value: g", "4 no_temporality: x", "5 no_name: "],
    );
    let message = "4 data points are refused, first one of \"g\": its value is NaN or infinite";
    assert_eq!(answer.message(), message);
    let protobuf = answer.to_protobuf();
    assert_eq!(protobuf[..5], [10, message.len() as u8 + 4, 8, 4, 18]);
    assert_eq!(&protobuf[6..], message.as_bytes());
    let json: serde_json::Value = serde_json::from_str(&answer.to_json()).unwrap();
    assert_eq!(json["partialSuccess"]["rejectedDataPoints"], "4");
    assert_eq!(json["partialSuccess"]["errorMessage"], message);
}

#[test]
fn json_is_the_same_request() {
    let body = r#"{"resourceMetrics":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}},
        {"key":"pid","value":{"intValue":"42"}},{"key":"list","value":{"arrayValue":{"values":[]}}}]},"unknown":{"x":[1]},
        "scopeMetrics":[{"scope":{"name":"s"},"metrics":[
        {"name":"c\u0041","unit":"1","sum":{"aggregationTemporality":2,"isMonotonic":true,"dataPoints":[
            {"asInt":"18","timeUnixNano":"1544712660300000000","startTimeUnixNano":"1","attributes":[
              {"key":"b","value":{"boolValue":true}},{"key":"d","value":{"doubleValue":0.5}}]},
            {"asDouble":"NaN"}]}},
        {"name":"g","gauge":{"dataPoints":[{"asDouble":3,"timeUnixNano":5},{"asInt":7,"flags":1}]}},
        {"name":"h","histogram":{"aggregationTemporality":"AGGREGATION_TEMPORALITY_DELTA","dataPoints":[
            {"count":"3","sum":1.5,"bucketCounts":["1","2"],"explicitBounds":[1]}]}},
        {"name":"s","summary":{"dataPoints":[{"count":2,"sum":4,"quantileValues":[{"quantile":0.5,"value":1}]}]}}
        ]}]}]}"#;
    let mut sink = Recorded::default();
    let answer = read_json(body.as_bytes(), &mut sink).unwrap();
    assert_eq!(
        sink.lines,
        [
            "cA{b=true,d=0.5,service.name=shop,pid=42} 18 @1544712660300000000 Counter",
            "2 not_finite: cA",
            "g{service.name=shop,pid=42} 3 @5 Gauge",
            "h_count{service.name=shop,pid=42} 3 @now Delta",
            "h_sum{service.name=shop,pid=42} 1.5 @now Delta",
            "s_count{service.name=shop,pid=42} 2 @now Counter",
            "s_sum{service.name=shop,pid=42} 4 @now Counter",
            "s{service.name=shop,pid=42,quantile=0.5} 1 @now Gauge",
        ]
    );
    assert_eq!((answer.rejected, answer.without_buckets), (1, 1));
    for bad in [
        "",
        "[]",
        "{\"resourceMetrics\":1}",
        "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"gauge\":{\"dataPoints\":[{\"asInt\":\"x\"}]}}]}]}]}",
    ] {
        assert!(matches!(read_json(bad.as_bytes(), &mut sink), Err(OtlpError::Json(_))), "{bad}");
    }
}

#[test]
fn broken_protobuf_is_named_by_its_place() {
    for (bad, offset) in [
        (&[0x0a][..], 1),
        (&[0x0a, 5, 1], 2),
        (&[0x0b], 1),
        (&[0xff; 11], 10),
        (&[0x0a, 4, 0x12, 2, 0x12, 7], 6),
        (&[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], 11),
    ] {
        let error = read_protobuf(bad, &mut Recorded::default()).unwrap_err();
        assert_eq!(error, OtlpError::Protobuf { offset }, "{bad:?}");
    }
}

#[test]
fn requests_have_limits() {
    // Points of two bytes.
    let points: Vec<u8> = [1 << 3 | 2, 0].repeat(8_000);
    let gauge = bytes(5, &[&points[..16_000]]);
    let mut metric = Vec::new();
    for _ in 0..30 {
        metric.extend_from_slice(&gauge);
    }
    let scope = wide(2, &wide(2, &metric));
    let error = read_protobuf(&wide(1, &scope), &mut Recorded::default()).unwrap_err();
    assert_eq!(error, OtlpError::TooManyPoints);
    for (open, close) in [("{", "}"), ("[", "]")] {
        let json = format!("{{\"x\":[{}]}}", format!("{open}{close},").repeat(BRACES).trim_end_matches(','));
        assert_eq!(read_json(json.as_bytes(), &mut Recorded::default()), Err(OtlpError::TooManyPoints));
    }
    // Attributes beyond the limit: the point is refused, not two series made one.
    let many: Vec<u8> = (0..100).flat_map(|number| text_attribute(7, &number.to_string(), "x")).collect();
    let gauge = [bytes(1, &[b"g"]), bytes(5, &[&bytes(1, &[&many, &double(4, 1.0)])])].concat();
    check(&request(&[gauge]), &["1 too_many_tags: g"]);
}

/// Braces that are too many.
const BRACES: usize = POINTS_MAX * 5 + 1;

fn wide(field: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let length =
        [0, 7, 14, 21].map(|shift| (length >> shift) as u8 & 0x7f | if shift < 21 { 0x80 } else { 0 });
    [&[field << 3 | 2][..], &length, content].concat()
}

#[test]
fn random_requests_cause_no_panic() {
    const PIECES: &[&str] = &[
        "\n\x02",
        "\x12\x04",
        "\n\x00",
        "*\x02",
        ":\x06",
        "J\x05",
        "R\x03",
        "Z\x02",
        "!",
        "12345678",
        "\x10\x02",
        "\x18\x01",
        "{",
        "}",
        "\"resourceMetrics\":[",
        "\"scopeMetrics\":[",
        "\"metrics\":[",
        "\"gauge\":{",
        "\"dataPoints\":[",
        "]",
        ",",
        "\"asInt\":",
        "1",
        "\"name\":\"a\"",
    ];
    pieces_at_random(5_000, PIECES, crate::fuzzing::fuzz_otlp);
}
