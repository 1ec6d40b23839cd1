//! What is pushed over HTTP, as the description says it is taken and answered.

use protocol::prometheus::{Samples, compress, write_request};
use roundel_server::ingest::routes::{PUSH_BYTES_MAX, is_push};
use roundel_server::push::http::PATHS;
use serde_json::Value;

use super::{description, example, filled, schema};
use crate::common::Roundel;
use crate::common::http::{Answer, get, send};

/// Each kind of body is taken, with parameters that are not known here, too; what is wrong with a request is said as described.
pub(super) fn check(roundel: &Roundel, description: &Value, of: (&str, &str), operation: &Value) {
    let (path, method) = (of.0, of.1.to_uppercase());
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let query: Vec<String> =
        parameters.map(|parameter| example(path, parameter["name"].as_str().unwrap())).collect();
    let target = format!("{path}?{}&bogus=1", query.join("&"));
    let ask = |headers: &str, body: &[u8]| {
        let answer = send(roundel, &method, &target, headers, body);
        is_described(description, operation, &answer, &target);
        answer.status
    };
    let Some(kinds) = operation["requestBody"]["content"].as_object() else {
        assert_eq!(ask("", b""), 200, "{target}");
        let plain = send(roundel, &method, path, "", b"");
        return is_described(description, operation, &plain, path);
    };
    for kind in kinds.keys() {
        let encoding = if path == "/api/v1/write" { "snappy" } else { "identity" };
        let headers = format!("Content-Type: {kind}\r\nContent-Encoding: {encoding}\r\n");
        let status = ask(&headers, &good_body(path, kind));
        assert!((200..300).contains(&status), "{target} {kind}: {status}");
        assert_eq!(ask(&headers, b"\xff{ \n"), 400, "{target} {kind}");
        assert_eq!(ask(&format!("{headers}Origin: https://elsewhere.example\r\n"), b""), 403, "{target}");
        assert_eq!(ask(&headers, &vec![b' '; PUSH_BYTES_MAX + 1]), 413, "{target}");
        let unknown = format!("Content-Type: {kind}\r\nContent-Encoding: br\r\n");
        assert_eq!(ask(&unknown, b"x"), 415, "{target}");
    }
}

/// The status of an answer is described, and what is in it is of a kind and form that is described for it.
fn is_described(description: &Value, operation: &Value, answer: &Answer, target: &str) {
    let shown = || format!("{target}: {} {}", answer.head, answer.text());
    let response = &operation["responses"][answer.status.to_string()];
    assert!(response.is_object(), "{}", shown());
    let Some(content) = response["content"].as_object() else {
        return assert!(answer.body.is_empty(), "{}", shown());
    };
    let found = content.iter().find(|(kind, _)| answer.head.contains(&format!("content-type: {kind}")));
    let (kind, of_kind) = found.unwrap_or_else(|| panic!("{}", shown()));
    if kind == "application/json" {
        let form = serde_json::json!({
            "allOf": [of_kind["schema"]], "components": description["components"],
        });
        let form = jsonschema::draft202012::new(&form).unwrap();
        assert!(form.is_valid(&answer.json()), "{}", shown());
    }
}

fn good_body(path: &str, kind: &str) -> Vec<u8> {
    match (path, kind) {
        ("/api/v1/write", _) => {
            let labels = vec![("__name__".to_owned(), "described".to_owned())];
            compress(&write_request(&[Samples { labels, samples: vec![(1_700_000_000_000, 1.0)] }]))
        }
        ("/write" | "/api/v2/write", _) => {
            format!("described,path={} f=1 1700000000", &path[1..2]).into_bytes()
        }
        ("/v1/metrics", "application/json") => {
            br#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"described_json",
            "gauge":{"dataPoints":[{"asDouble":1,"timeUnixNano":"1700000000000000000"}]}}]}]}]}"#
                .to_vec()
        }
        // A request with nothing in it.
        ("/v1/metrics", _) => Vec::new(),
        ("/collectd", _) => {
            br#"[{"values":[1],"dstypes":["gauge"],"dsnames":["value"],"time":1700000000,"interval":10,
            "host":"described","plugin":"p","plugin_instance":"","type":"t","type_instance":""}]"#
                .to_vec()
        }
        (other, _) => panic!("a path without an example: {other}"),
    }
}

/// A few bytes may be a sample, which takes many as it goes into the store: a request with more of them than there is memory for is refused.
#[test]
fn many_samples_in_few_bytes_take_no_more_memory_than_there_is() {
    let roundel = Roundel::with_memory(16_000_000);
    let labels = vec![("__name__".to_owned(), "bomb".to_owned())];
    let samples = |count| Samples { labels: labels.clone(), samples: vec![(0, 0.0); count] };
    let check = |path: &str, headers: &str, body: &[u8], status: u16, want: &str| {
        let answer = send(&roundel, "POST", path, headers, body);
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        assert!(answer.text().contains(want), "{path}: {}", answer.text());
    };
    let snappy = "Content-Encoding: snappy\r\n";
    let write = |all: &[Samples]| compress(&write_request(all));
    check("/api/v1/write", snappy, &write(&[samples(100_000)]), 413, "bytes of memory");
    check("/api/v1/write", snappy, &write(&vec![samples(1); 100_000]), 413, "bytes of memory");
    check("/api/v1/write", snappy, &write(&[samples(1_000_001)]), 413, "bytes of memory");
    check("/write", "", &b"a b=1\n".repeat(100_000), 413, "bytes of memory");
    let json = "Content-Type: application/json\r\n";
    let values = ["1"; 100_000].join(",");
    let collectd = format!(
        r#"[{{"values":[{values}],"dstypes":["gauge"],"dsnames":["v"],"time":1,"interval":1,"host":"h","plugin":"p"}}]"#
    );
    let answer = send(&roundel, "POST", "/collectd", json, collectd.as_bytes());
    assert!(matches!(answer.status, 400 | 413 | 422), "{}", answer.text());
    // What is usual goes in.
    check(
        "/api/v1/write",
        snappy,
        &write(&[Samples { labels: labels.clone(), samples: vec![(1_700_000_000_000, 1.0)] }]),
        204,
        "",
    );
}

/// A series that cannot be one is a data point that does not count, and its sender is told so.
#[test]
fn points_of_series_that_cannot_be_are_rejected() {
    let roundel = filled();
    let name = "x".repeat(9000);
    let body = format!(
        r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"name":"{name}","gauge":{{"dataPoints":[
        {{"asDouble":1}},{{"asDouble":"NaN"}}]}}}}]}}]}}]}}"#
    );
    let answer = send(&roundel, "POST", "/v1/metrics", "Content-Type: application/json\r\n", body.as_bytes());
    let partial = &answer.json()["partialSuccess"];
    assert_eq!(
        (answer.status, &partial["rejectedDataPoints"]),
        (200, &Value::from("2")),
        "{}",
        answer.text()
    );
    let message = partial["errorMessage"].as_str().unwrap();
    assert!(message.contains("first one of \"xxx") && message.len() < 300, "{message}");
}

#[test]
fn every_path_that_is_pushed_to_is_described() {
    let description = description(&filled());
    let paths = description["paths"].as_object().unwrap();
    let summaries: Vec<&str> = paths
        .values()
        .flat_map(|path| path.as_object().unwrap().values())
        .map(|operation| operation["summary"].as_str().unwrap())
        .collect();
    let others = ["/api/v1/write", "/prometheus/api/v1/write", "/api/v1/push"];
    for path in PATHS.iter().chain(&others) {
        assert!(is_push(path));
        let is_named =
            |summary: &&str| summary.split([' ', ',', ';']).any(|word| word.trim_end_matches('.') == *path);
        assert!(paths.contains_key(*path) || summaries.iter().any(is_named), "{path}");
    }
}

#[test]
fn what_is_described_of_pushed_samples_has_their_form() {
    let roundel = filled();
    let description = description(&roundel);
    let pushed = send(&roundel, "POST", "/write", "", b"good f=1\nbad f=x");
    assert_eq!(pushed.status, 400, "{}", pushed.text());
    let report = get(&roundel, "/api/v1/ingest").json();
    assert_eq!(report["protocols"]["influx"]["refused"]["bad_value"], 1, "{report}");
    assert!(schema(&description, "Ingest").is_valid(&report), "{report}");
}
