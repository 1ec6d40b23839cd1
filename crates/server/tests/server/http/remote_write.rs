//! Remote write: what is pushed comes back by queries under the same names and labels; real senders; what is refused, and how.

use protocol::prometheus::{Samples, compress, write_request};
use protocol::rrdcached::command::Permissions;
use roundel_server::access::Anonymous;
use roundel_server::ingest::IngestSettings;
use roundel_server::service::CreatePolicy;
use serde_json::Value;
use testkit::{Client, Running};

use super::prometheus::encoded;
use super::rights::{account, daemon, get_as, limited};
use crate::common::Roundel;
use crate::common::http::{Answer, get, send};

const ONE: &str = "Content-Encoding: snappy\r\nContent-Type: application/x-protobuf\r\n";
const TWO: &str = "Content-Encoding: snappy\r\nContent-Type: application/x-protobuf;proto=io.prometheus.write.v2.Request\r\n";

fn fresh() -> Roundel {
    Roundel::stripes(CreatePolicy { make_directories: true, ..Default::default() }, Permissions::ALL)
}

/// Posts bytes, with headers that each have their line end.
fn post(roundel: &Roundel, headers: &str, body: &[u8]) -> Answer {
    send(roundel, "POST", "/api/v1/write", headers, body)
}

fn one(labels: &[(&str, &str)], samples: &[(i64, f64)]) -> Samples {
    let text = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    Samples { labels: labels.iter().map(text).collect(), samples: samples.to_vec() }
}

fn push(roundel: &Roundel, series: &[Samples]) -> Answer {
    post(roundel, ONE, &compress(&write_request(series)))
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    since.as_secs() as i64 / 15 * 15
}

/// The series and values of a query at a time.
fn ask(roundel: &Roundel, query: &str, time: i64) -> Vec<(String, String)> {
    let answer = get(roundel, &format!("/api/v1/query?query={}&time={time}", encoded(query))).json();
    let all = answer["data"]["result"].as_array().unwrap_or_else(|| panic!("{answer}")).clone();
    all.iter().map(|one| (one["metric"].to_string(), one["value"][1].as_str().unwrap().to_owned())).collect()
}

#[test]
fn what_is_written_is_queried_under_its_name() {
    let roundel = fresh();
    let start = now() - 1500;
    let times = || (0..100).map(|row| (start + 15 * row) * 1000);
    let up = [("__name__", "up"), ("instance", "web1:9100"), ("job", "node")];
    let odd = [("__name__", "my.odd näme"), ("a", "x/../\"y\" {}%,=\n"), ("b.c", "é")];
    let requests = [("__name__", "http_requests_total"), ("code", "200"), ("instance", "web1:9100")];
    let last = start + 15 * 99;
    let answer = push(
        &roundel,
        &[
            one(&up, &times().map(|time| (time, (time / 1000 % 7) as f64)).collect::<Vec<_>>()),
            one(&odd, &[(last * 1000, 0.1 + 0.2)]),
            one(
                &requests,
                &times().map(|time| (time, (time / 1000 - start) as f64 * 3.0)).collect::<Vec<_>>(),
            ),
        ],
    );
    assert_eq!((answer.status, answer.text()), (204, String::new()));
    let label = r#"{"__name__":"up","instance":"web1:9100","job":"node"}"#;
    assert_eq!(ask(&roundel, "up", last), [(label.to_owned(), (last % 7).to_string())]);
    assert_eq!(ask(&roundel, "{job='node'}", last).len(), 1);
    // The way back is there when it is asked for.
    let back = ask(&roundel, "up{rrd=~'.+',ds='value'}", last);
    let path = "instances/web1:9100/up,job=node";
    assert!(back[0].0.contains(&format!("\"rrd\":\"{path}\"")), "{back:?}");
    let odd = ask(&roundel, "{\"my.odd näme\"}", last);
    let metric: Value = serde_json::from_str(&odd[0].0).unwrap();
    assert_eq!((metric["a"].as_str(), metric["b.c"].as_str()), (Some("x/../\"y\" {}%,=\n"), Some("é")));
    assert_eq!(odd[0].1, "0.30000000000000004");
    // A counter is one again, and pairs of metrics are found as they were.
    assert_eq!(ask(&roundel, "rate(http_requests_total[5m])", last)[0].1, "3");
    assert_eq!(ask(&roundel, "increase(http_requests_total[5m])", last)[0].1, "900");
    assert_eq!(ask(&roundel, "{__name__='http_requests_total:rate'}", last)[0].1, "3");
    assert_eq!(
        ask(&roundel, "rate(http_requests_total[5m]) * on(instance) group_left(job) up", last).len(),
        1
    );
    let kinds = get(&roundel, "/api/v1/metadata?metric=http_requests_total").json();
    assert_eq!(kinds["data"]["http_requests_total"][0]["type"], "counter");
}

#[test]
fn what_is_sent_again_is_a_success_and_what_is_older_is_not() {
    let roundel = fresh();
    let time = now() * 1000;
    let up = [("__name__", "up"), ("instance", "a")];
    let check = |samples: &[(i64, f64)], status: u16, want: &str| {
        let answer = push(&roundel, &[one(&up, samples)]);
        assert_eq!(answer.status, status, "{}", answer.text());
        assert!(answer.text().contains(want), "{}", answer.text());
    };
    check(&[(time - 2000, 1.0), (time - 1000, 2.0)], 204, "");
    check(&[(time - 1000, 2.0)], 204, "");
    check(&[(time - 1000, 3.0)], 400, "up{instance=\"a\"}: out of order sample");
    check(&[(time - 2000, 1.0), (time, 4.0)], 400, "1 samples were stored");
    check(&[(time, 4.0), (time + 3_600_000, 1.0)], 400, "out of bounds");
    // Prometheus' mark of an end, and what is no number.
    let stale = f64::from_bits(0x7ff0_0000_0000_0002);
    check(&[(time + 1000, stale), (time + 2000, f64::INFINITY), (time + 3000, f64::NAN)], 204, "");
    let report = get(&roundel, "/api/v1/ingest").json();
    let counts = &report["protocols"]["remote_write"];
    assert_eq!((&counts["stored"], &counts["again"], &counts["created"]), (&8.into(), &2.into(), &1.into()));
    assert_eq!(counts["refused"], serde_json::json!({"not_later": 2, "out_of_bounds": 1}));
    assert!(
        get(&roundel, "/metrics")
            .text()
            .contains("roundel_ingest_refused_total{protocol=\"remote_write\",reason=\"not_later\"} 2")
    );
}

#[test]
fn what_was_there_before_the_start_is_known_too() {
    let roundel = fresh();
    let time = now() - 100;
    let mut client = Client::open(&roundel.socket());
    let create =
        format!("CREATE series/x.rrd -s 15 -b {} DS:value:GAUGE:300:U:U RRA:AVERAGE:0.5:1:10", time - 15);
    assert!(client.say(create).starts_with('0'));
    assert!(client.say(format!("UPDATE series/x.rrd {time}.250:0.1")).starts_with('0'));
    let check = |time: i64, value: f64, status: u16| {
        let answer = push(&roundel, &[one(&[("__name__", "x")], &[(time, value)])]);
        assert_eq!(answer.status, status, "{}", answer.text());
    };
    check(time * 1000 + 250, 0.1, 204);
    check(time * 1000 + 250, 0.2, 400);
    check(time * 1000 + 249, 0.1, 400);
    check(time * 1000 + 251, 0.1, 204);
    // One with two sources is not a series'.
    let create = "CREATE series/y.rrd -s 15 DS:a:GAUGE:300:U:U DS:b:GAUGE:300:U:U RRA:AVERAGE:0.5:1:10";
    assert!(client.say(create).starts_with('0'));
    let answer = push(&roundel, &[one(&[("__name__", "y")], &[(time * 1000, 1.0)])]);
    assert!(answer.status == 400 && answer.text().contains("2 data sources"), "{}", answer.text());
}

#[test]
fn good_series_go_in_beside_bad_ones() {
    let roundel = fresh();
    let sample = [(now() * 1000, 1.0)];
    let huge = "x".repeat(1 << 20);
    let answer = push(
        &roundel,
        &[
            one(&[("__name__", "good")], &sample),
            one(&[("a", "b")], &sample),
            one(&[("__name__", "twice"), ("a", "b"), ("a", "c")], &sample),
            one(&[("__name__", "huge"), ("a", &huge)], &sample),
            one(&[("__name__", "../../../etc/passwd"), ("..", "/")], &sample),
            one(&[("__name__", "long"), ("a", &"y".repeat(4000))], &sample),
        ],
    );
    let text = answer.text();
    assert_eq!(answer.status, 400, "{text}");
    for want in [
        "2 samples were stored",
        "a series has no name",
        "twice: a series has a label twice",
        "huge: the name",
        "2048 bytes",
    ] {
        assert!(text.contains(want), "{want}: {text}");
    }
    assert!(text.len() < 2000);
    let names = get(&roundel, "/api/v1/list?recursive=true").text();
    assert!(names.contains("series/good.rrd") && !names.contains("etc/"), "{names}");
    let left = get(&roundel, "/api/v1/ingest").json();
    assert_eq!(left["left_out"].as_array().unwrap().len(), 1, "{left}");
}

#[test]
fn bodies_that_are_none_are_refused() {
    let roundel = fresh();
    let body = compress(&write_request(&[one(&[("__name__", "x")], &[(now() * 1000, 1.0)])]));
    let check = |headers: &str, body: &[u8], status: u16| {
        let answer = post(&roundel, headers, body);
        assert_eq!(answer.status, status, "{headers}: {}", answer.text());
    };
    check("Content-Encoding: gzip\r\nContent-Type: application/x-protobuf\r\n", &body, 415);
    check("Content-Encoding: snappy\r\nContent-Type: application/json\r\n", &body, 415);
    check("Content-Encoding: snappy\r\nContent-Type: application/x-protobuf;proto=x\r\n", &body, 415);
    check(ONE, b"", 400);
    check(ONE, b"not snappy at all", 400);
    check(ONE, &compress(b"\xff\xff\xff"), 400);
    // It says that it stands for four gigabytes.
    check(ONE, &[0xff, 0xff, 0xff, 0xff, 0x0f, 0], 413);
    check(ONE, &vec![0; 20 << 20], 413);
    check(TWO, &compress(b"\x22\x01x"), 400);
    check("", &body, 204);
}

#[test]
fn version_2_says_what_was_written() {
    let roundel = fresh();
    let time = now() * 1000;
    let mut varint = Vec::new();
    let mut rest = time as u64;
    while rest >= 128 {
        varint.push(rest as u8 | 128);
        rest >>= 7;
    }
    varint.push(rest as u8);
    let sample =
        [b"\x12".as_slice(), &[10 + varint.len() as u8], b"\x09\0\0\0\0\0\0\0\x40\x10", &varint].concat();
    let request = |refs: &[u8], more: &[u8]| {
        let series = [&[0x0a, refs.len() as u8], refs, &sample, more].concat();
        let symbols = b"\x22\0\x22\x08__name__\x22\x01x";
        compress(&[symbols, [0x2a, series.len() as u8].as_slice(), &series].concat())
    };
    let answer = post(&roundel, TWO, &request(&[1, 2], b"\x2a\x02\x08\x01"));
    assert_eq!(answer.status, 204, "{}", answer.text());
    assert!(answer.head.contains("x-prometheus-remote-write-samples-written: 1"), "{}", answer.head);
    assert!(answer.head.contains("x-prometheus-remote-write-histograms-written: 0"), "{}", answer.head);
    // Its metadata say that it is a counter, whatever it is called.
    assert!(get(&roundel, "/api/v1/label/__name__/values").text().contains("x:rate"));
    let answer = post(&roundel, TWO, &request(&[1, 2], b"\x1a\0\x22\0"));
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert!(answer.text().contains("no native histogram"), "{}", answer.text());
    assert!(answer.head.contains("samples-written: 1"));
    for refs in [&[1, 9][..], &[1, 2, 1], &[0, 2], &[]] {
        let answer = post(&roundel, TWO, &request(refs, b""));
        assert_eq!(answer.status, 400, "{refs:?}: {}", answer.text());
    }
}

#[test]
fn a_client_writes_what_it_may() {
    let mut ann = account("ann");
    ann.write = vec!["instances/a/**".to_owned()];
    ann.read = ann.write.clone();
    let roundel = daemon(&[ann], true, Anonymous::parse("none").unwrap());
    let sample = [(now() * 1000, 1.0)];
    let body = compress(&write_request(&[
        one(&[("__name__", "up"), ("instance", "a")], &sample),
        one(&[("__name__", "up"), ("instance", "b")], &sample),
    ]));
    assert_eq!(post(&roundel, ONE, &body).status, 401);
    let headers = format!("{ONE}Authorization: Bearer ann\r\n");
    let answer = post(&roundel, &headers, &body);
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert!(
        answer.text().contains("1 samples were stored") && answer.text().contains("Permission denied"),
        "{}",
        answer.text()
    );
}

/// A client that sees a part of the store is held to the limit on all of it.
#[test]
fn the_limit_on_rrds_counts_those_that_a_client_may_not_see() {
    let mut ann = account("ann");
    (ann.read, ann.write) = (vec![], vec!["instances/a/**".to_owned()]);
    let mut bob = account("bob");
    (bob.read, bob.write) = (vec![], vec!["instances/b/**".to_owned()]);
    for is_striped in [true, false] {
        let limits = IngestSettings { rrds_max: 3, ..Default::default() };
        let accounts = [ann.clone(), bob.clone()];
        let roundel = limited(&accounts, is_striped, Anonymous::parse("none").unwrap(), limits);
        let push_as = |who: &str, names: &[&str], ago: i64| {
            let sample = [((now() - ago) * 1000, 1.0)];
            let all: Vec<_> = names
                .iter()
                .map(|name| one(&[("__name__", name), ("instance", &who[..1])], &sample))
                .collect();
            let headers = format!("{ONE}Authorization: Bearer {who}\r\n");
            let answer = post(&roundel, &headers, &compress(&write_request(&all)));
            (answer.status, answer.text())
        };
        assert_eq!(push_as("bob", &["x", "y"], 60), (204, String::new()));
        // The third one is made, and in the same request no fourth.
        let (status, text) = push_as("ann", &["x", "y"], 60);
        assert!(status == 400 && text.contains("1 samples were stored"), "{status} {text}");
        assert!(text.contains("the store has 3 RRDs already ([ingest] rrds_max)"), "{text}");
        let (status, text) = push_as("ann", &["z"], 60);
        assert!(status == 400 && text.contains("rrds_max"), "{status} {text}");
        // What is there goes on.
        assert_eq!(push_as("ann", &["x"], 30), (204, String::new()));
        let left = get_as(&roundel, Some("bob"), "/api/v1/ingest").status;
        assert_eq!(left, 403, "what others push is for those who operate the daemon");
    }
}

/// One who may not write a series learns nothing of it: neither that others push it, nor what its last value is.
#[test]
fn what_others_push_is_not_told_to_one_who_may_not_write_it() {
    let mut ann = account("ann");
    (ann.read, ann.write) = (vec![], vec!["instances/a/**".to_owned()]);
    let mut bob = account("bob");
    (bob.read, bob.write) = (vec![], vec!["instances/b/**".to_owned()]);
    let roundel = daemon(&[ann, bob], true, Anonymous::parse("none").unwrap());
    let push_as = |who: &str, instance: &str, value: f64| {
        let body = [one(&[("__name__", "up"), ("instance", instance)], &[((now() - 60) * 1000, value)])];
        let headers = format!("{ONE}Authorization: Bearer {who}\r\n");
        let answer = post(&roundel, &headers, &compress(&write_request(&body)));
        (answer.status, answer.text())
    };
    assert_eq!(push_as("bob", "b", 7.0).0, 204);
    assert_eq!(push_as("bob", "b", 7.0).0, 204, "what is sent again is a success");
    let missing = push_as("ann", "c", 7.0);
    assert!(missing.0 == 400 && missing.1.contains("Permission denied"), "{missing:?}");
    for value in [7.0, 8.0] {
        let (status, text) = push_as("ann", "b", value);
        assert_eq!((status, text.replace("/b/", "/c/").replace("\"b\"", "\"c\"")), missing, "{value}");
    }
    let audit = std::fs::read_to_string(roundel.path("audit")).unwrap();
    assert!(audit.contains("instances/b/up.rrd") && audit.contains("\"detail\":\"push\""), "{audit}");
    // A page of another site makes a browser send what it likes.
    let headers = format!("{ONE}Authorization: Bearer bob\r\nOrigin: https://elsewhere.example\r\n");
    let body =
        compress(&write_request(&[one(&[("__name__", "up"), ("instance", "b")], &[(now() * 1000, 1.0)])]));
    assert_eq!(post(&roundel, &headers, &body).status, 403);
}

/// Prometheus and vmagent scrape our own `/metrics` and write it to us; what they send is there.
/// Whether a target was there in a row: of its scrapes, a busy machine may have missed one.
fn is_up(value: &str) -> bool {
    value.parse::<f64>().is_ok_and(|up| up > 0.0 && up <= 1.0)
}

/// The system chooses the port: one that is chosen before may be another test's by then.
const ANY_PORT: &str = "127.0.0.1:0";

#[test]
fn real_senders_are_understood() {
    let roundel = fresh();
    let address = std::fs::read_to_string(roundel.path("http")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let scrape =
        format!("scrape_configs:\n- job_name: own\n  static_configs: [{{targets: ['{address}']}}]\n");
    let url = format!("http://{address}/api/v1/write");
    let mut running = Vec::new();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    if let Some(program) = testkit::peer::prometheus() {
        let version = std::process::Command::new(&program).arg("--version").output().unwrap();
        let version = String::from_utf8_lossy(&[version.stdout, version.stderr].concat()).into_owned();
        let is_new = !version.contains("version 2.");
        let writes = |more: &str| format!("remote_write:\n- url: {url}\n{more}");
        // Version 3 speaks 2.0 if it is told to.
        let message = if is_new { "  protobuf_message: io.prometheus.write.v2.Request\n" } else { "" };
        let config = format!(
            "global: {{scrape_interval: 1s, external_labels: {{from: prometheus}}}}\n{scrape}{}",
            writes(message)
        );
        std::fs::write(path("prometheus.yml"), config).unwrap();
        let words = [
            format!("--config.file={}", path("prometheus.yml")),
            format!("--storage.tsdb.path={}", path("data")),
            format!("--web.listen-address={ANY_PORT}"),
        ];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        running.push((
            "prometheus",
            Running::program(&directory.path().join("prometheus.log"), &program, &words),
        ));
    }
    if let Some(program) = testkit::peer::debian("victoria-metrics", "/usr/bin/vmagent") {
        std::fs::write(
            path("vmagent.yml"),
            format!("global: {{scrape_interval: 1s, external_labels: {{from: vmagent}}}}\n{scrape}"),
        )
        .unwrap();
        let words = [
            format!("-promscrape.config={}", path("vmagent.yml")),
            format!("-remoteWrite.url={url}"),
            format!("-remoteWrite.tmpDataPath={}", path("vmagent")),
            format!("-httpListenAddr={ANY_PORT}"),
        ];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        running.push(("vmagent", Running::program(&directory.path().join("vmagent.log"), &program, &words)));
    }
    for (from, _) in &running {
        let query = format!("/api/v1/series?match[]={}", encoded(&format!("{{from='{from}',job='own'}}")));
        testkit::wait_until(from, || {
            let names = get(&roundel, &query).text();
            ["\"up\"", "roundel_connections_total\"", "\"scrape_duration_seconds\""]
                .iter()
                .all(|name| names.contains(name))
        });
        let up = format!("last_over_time(up{{from='{from}'}}[1m])");
        testkit::wait_until("rows", || {
            ask(&roundel, &up, now() + 15).first().is_some_and(|(_, value)| is_up(value))
        });
    }
    let counts = get(&roundel, "/api/v1/ingest").json();
    assert_eq!(counts["protocols"]["remote_write"]["refused"], serde_json::json!({}), "{counts}");
}
