//! InfluxDB's and OpenTelemetry's HTTP, request by request.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

use super::{Receiver, now};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = Command::new("gzip").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, bytes) = (gzip.stdin.take().unwrap(), bytes.to_vec());
    let writing = thread::spawn(move || input.write_all(&bytes).unwrap());
    let output = gzip.wait_with_output().unwrap();
    writing.join().unwrap();
    output.stdout
}

#[test]
fn influx_writes_are_answered_as_there() {
    let mut receiver = Receiver::start("");
    let time = now() - 100;
    let (status, answer) = receiver.request("GET /ping", &[], b"");
    assert!(status == 204 && answer.to_lowercase().contains("x-influxdb-version"), "{answer}");
    let (status, answer) = receiver.request("GET /health", &[], b"");
    assert!(status == 200 && answer.contains("\"status\":\"pass\""), "{answer}");
    let (status, answer) = receiver.request("POST /query?q=CREATE+DATABASE+%22telegraf%22", &[], b"");
    assert!(status == 200 && answer.contains("{\"results\":[{\"statement_id\":0}]}"), "{answer}");
    let (_, answer) = receiver.request("GET /query?q=SHOW+DATABASES&db=mine", &[], b"");
    assert!(answer.contains("[[\"mine\"]]"), "{answer}");
    let (status, answer) = receiver.request("GET /query?q=SELECT+1", &[], b"");
    assert!(status == 200 && answer.contains("InfluxQL is not spoken here"), "{answer}");

    let lines = format!("cpu,host=a user=1,name=\"x\" {time}\nload,host=a value=5i {time}");
    let (status, answer) = receiver.request("POST /write?db=t&precision=s", &[], lines.as_bytes());
    assert!(status == 204, "{answer}");
    assert_eq!(receiver.last("hosts/a/cpu_user,db=t.rrd"), (time, 1.0));
    assert_eq!(receiver.last("hosts/a/load,db=t.rrd"), (time, 5.0));
    // Sent again it is the same; what is bad is named, and what is good around it stored.
    let (status, _) = receiver.request("POST /write?db=t&precision=s", &[], lines.as_bytes());
    assert_eq!(status, 204);
    let lines = format!("cpu,host=b user=2 {time}\nnonsense\nmem,host=b a=3 x\ncpu,host=c user=3 {time}");
    let (status, answer) =
        receiver.request("POST /api/v2/write?org=o&bucket=t&precision=s", &[], lines.as_bytes());
    let want = "partial write: line 2: it has no value: nonsense; line 3: its time is no time: mem,host=b a=3 x; dropped=2";
    assert!(status == 400 && answer.contains(want) && answer.contains("\"code\":\"invalid\""), "{answer}");
    assert_eq!(receiver.last("hosts/c/cpu_user,db=t.rrd"), (time, 3.0));
    let lines = format!("cpu,host=z user=9 {}", time * 1000);
    let (status, answer) = receiver.request(
        "POST /influx/write?precision=ms",
        &["Content-Encoding: gzip"],
        &gzip(lines.as_bytes()),
    );
    assert!(status == 204, "{answer}");
    assert_eq!(receiver.last("hosts/z/cpu_user.rrd"), (time, 9.0));
    assert_eq!(receiver.refused("influx", "text"), 2);

    let (status, _) = receiver.request("POST /write?precision=week", &[], b"m a=1");
    assert_eq!(status, 400);
    let (status, _) = receiver.request("POST /write", &["Content-Encoding: br"], b"m a=1");
    assert_eq!(status, 415);
    let (status, _) = receiver.request("POST /write", &["Content-Encoding: gzip"], b"no gzip");
    assert_eq!(status, 400);
    let (status, _) = receiver.request("POST /write", &["Origin: http://elsewhere"], b"m a=1");
    assert_eq!(status, 403);
    // Sixty-four megabytes of nothing in sixty-four kilobytes.
    let bomb = gzip(&vec![b'\n'; 64 << 20]);
    assert!(bomb.len() < 512 << 10);
    let (status, answer) = receiver.request("POST /write", &["Content-Encoding: gzip"], &bomb);
    assert!(status == 413, "{answer}");
}

/// The hash is that of "secret".
const USERS: &str = "[http.web_config.basic_auth_users]\nann = \"$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\"\n";

#[test]
fn influx_clients_say_who_they_are_in_four_ways() {
    let receiver = Receiver::start(USERS);
    let write =
        |query: &str, headers: &[&str]| receiver.request(&format!("POST /write{query}"), headers, b"m a=1").0;
    assert_eq!(write("", &[]), 401);
    assert_eq!(write("?u=ann&p=wrong", &[]), 401);
    assert_eq!(write("?u=ann&p=secret", &[]), 204);
    assert_eq!(write("", &["Authorization: Token ann:secret"]), 204);
    assert_eq!(write("", &["Authorization: Basic YW5uOnNlY3JldA=="]), 204);
    assert_eq!(write("", &["Authorization: Token nonsense"]), 401);
}

#[test]
fn otlp_is_answered_by_its_kind() {
    let mut receiver = Receiver::start("");
    let time = now() - 100;
    let body = format!(
        r#"{{"resourceMetrics":[{{"resource":{{"attributes":[{{"key":"host","value":{{"stringValue":"h"}}}}]}},
        "scopeMetrics":[{{"metrics":[{{"name":"temperature","gauge":{{"dataPoints":[
        {{"asDouble":21.5,"timeUnixNano":"{time}000000000"}},{{"asDouble":"NaN"}}]}}}}]}}]}}]}}"#
    );
    let json = "Content-Type: application/json; charset=utf-8";
    for path in ["/v1/metrics", "/otlp/v1/metrics", "/api/v1/otlp/v1/metrics"] {
        let (status, answer) = receiver.request(&format!("POST {path}"), &[json], body.as_bytes());
        assert!(status == 200 && answer.contains("\"rejectedDataPoints\":\"1\""), "{answer}");
    }
    assert_eq!(receiver.last("hosts/h/temperature.rrd"), (time, 21.5));
    let (status, answer) = receiver.request("POST /v1/metrics", &[json], b"{\"resourceMetrics\":7}");
    assert!(status == 400 && answer.contains("\"message\":\"the body is no"), "{answer}");
    let protobuf = "Content-Type: application/x-protobuf";
    let (status, answer) = receiver.request("POST /v1/metrics", &[protobuf], &[0x0a, 9]);
    assert!(status == 400 && answer.contains("broken at byte 2"), "{answer}");
    let (status, answer) =
        receiver.request("POST /v1/metrics", &[protobuf, "Content-Encoding: gzip"], &gzip(b""));
    assert!(status == 200 && answer.ends_with("\r\n\r\n"), "{answer}");
    let (status, _) = receiver.request("POST /v1/metrics", &["Content-Type: text/plain"], b"x");
    assert_eq!(status, 415);
}

#[test]
fn labels_that_end_as_names_of_files_do_are_kept_apart() {
    let mut receiver = Receiver::start("");
    let lines = "rw,zz=a.rrd value=9\nrw,zz=a value=10\nq,host=bar.. value=1\nq..,host=h value=2";
    let (status, answer) = receiver.request("POST /write", &[], lines.as_bytes());
    assert!(status == 204, "{answer}");
    // No directory of theirs ends with two dots: whatever names RRDs refuses `../`.
    for (name, want) in [
        ("series/rw,zz=a.rrd.rrd", 9.0),
        ("series/rw,zz=a.rrd", 10.0),
        ("hosts/bar.%2E/q.rrd", 1.0),
        ("hosts/h/q.%2E.rrd", 2.0),
    ] {
        assert_eq!(receiver.last(name).1, want, "{name}");
    }
    for (query, labels) in
        [("rw", ["\"zz\":\"a\"", "\"zz\":\"a.rrd\""]), ("{host=~'bar..|h'}", ["\"q\"", "\"q..\""])]
    {
        let query = query.replace('{', "%7B").replace('}', "%7D").replace('|', "%7C").replace('\'', "%27");
        testkit::wait_until("the series to be found", || {
            let (_, answer) = receiver.request(&format!("GET /api/v1/series?match[]={query}"), &[], b"");
            labels.iter().all(|label| answer.contains(label))
        });
    }
}
