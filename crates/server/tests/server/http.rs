//! `/api/v1` compared with its own description and with RRDtool's output for the same RRDs.

mod access;
mod grafana;
mod graphite;
mod limits;
mod page;
mod prometheus;
mod pushed;
mod remote_write;
mod rights;

use std::process::Command;

use crate::common::Roundel;
use crate::common::http::{get, request};
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_ipc::reader::StreamReader;
use protocol::rrdcached::command::Permissions;
use roundel_server::service::CreatePolicy;
use serde_json::Value;
use testkit::Client;

/// A daemon with a few RRDs whose last rows are partly unknown.
fn filled() -> Roundel {
    let create = CreatePolicy { make_directories: true, ..Default::default() };
    let roundel = Roundel::stripes(create, Permissions::ALL);
    let mut client = Client::open(&roundel.socket());
    for name in ["d/x.rrd", "d/y\\ z.rrd", "d/e/f.rrd", "top.rrd"] {
        let words = "-s 10 -b 1000000000 DS:a:GAUGE:20:U:U DS:b:COUNTER:20:0:U RRA:AVERAGE:0.5:1:20 \
                     RRA:MAX:0.5:3:20";
        assert!(client.say(format!("CREATE {name} {words}")).starts_with('0'));
        for (index, value) in ["0.1", "U", "12345.5", "-7.25", "3"].iter().enumerate() {
            let time = 1_000_000_010 + 10 * index;
            let said = client.say(format!("UPDATE {name} {time}:{value}:{}", 100 * index * index));
            assert!(said.starts_with('0'), "{said}");
        }
    }
    roundel
}

const RANGE: &str = "start=1000000000&end=1000000060";

fn description(roundel: &Roundel) -> Value {
    get(roundel, "/api/v1/openapi.json").json()
}

/// The schema of `name` with everything it references.
fn schema(description: &Value, name: &str) -> jsonschema::Validator {
    let schema = serde_json::json!({
        "$ref": format!("#/components/schemas/{name}"),
        "components": description["components"],
    });
    jsonschema::draft202012::new(&schema).unwrap()
}

#[test]
fn answers_match_the_description() {
    let roundel = filled();
    let description = description(&roundel);
    let check = |target: &str, name: &str| {
        let answer = get(&roundel, target);
        assert_eq!(answer.status, 200, "{target}: {}", answer.text());
        let errors: Vec<String> =
            schema(&description, name).iter_errors(&answer.json()).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{target}: {errors:?}\n{}", answer.text());
    };
    check("/api/v1/list", "List");
    check("/grafana/dashboards", "Dashboards");
    check("/api/v1/list?recursive=true&limit=2&after=d/e/f.rrd", "List");
    check("/api/v1/list/d?recursive=false", "List");
    check("/api/v1/tree", "Tree");
    check("/api/v1/tree/d?limit=1&after=d/e/", "Tree");
    check("/api/v1/search?q=X", "Found");
    check("/api/v1/search?q=d/*", "Found");
    check("/api/v1/graphs?directory=d", "Graphs");
    check("/api/v1/graphs?glob=*x&mode=sum", "Graphs");
    assert_eq!(request(&roundel, "POST", "/api/v1/views/v", "arg=LINE:1%23f00").status, 200);
    check("/api/v1/views", "Views");
    check("/api/v1/views/v", "SavedView");
    check("/api/v1/status", "Status");
    check(&format!("/api/v1/top?glob=*&{RANGE}"), "Top");
    check("/api/v1/info/d/x.rrd", "Info");
    check(&format!("/api/v1/fetch/d/x.rrd?{RANGE}&cf=MAX&step=30&format=json"), "Table");
    check(
        &format!("/api/v1/xport?{RANGE}&step=10&maxrows=50&arg=DEF:v=d/x.rrd:a:AVERAGE&arg=XPORT:v"),
        "Table",
    );
    for (target, status) in [
        ("/api/v1/info/none.rrd", 404),
        ("/api/v1/fetch/none.rrd", 404),
        ("/api/v1/info/..%2f..%2fetc%2fpasswd", 403),
        ("/api/v1/list/../x", 403),
        ("/api/v1/fetch/d/x.rrd?cf=MEAN", 400),
        ("/api/v1/fetch/d/x.rrd?cf=FAILURES", 422),
        ("/api/v1/fetch/d/x.rrd?start=now&end=now-1d", 400),
        ("/api/v1/fetch/d/x.rrd?start=yesteryear", 400),
        ("/api/v1/fetch/d/x.rrd?star=now", 400),
        ("/api/v1/fetch/d/x.rrd?format=xml", 400),
        ("/api/v1/fetch/d/x.rrd?start=end-1y&end=1000000060", 413),
        ("/api/v1/info/%zz", 400),
        ("/api/v1/xport", 400),
        ("/api/v1/tree/none", 404),
        ("/api/v1/search", 400),
        ("/api/v1/graphs", 404),
        ("/api/v1/graphs?name=none.rrd", 404),
        ("/api/v1/graphs?name=../x.rrd", 403),
        ("/api/v1/graphs?name=d/x.rrd&mode=pie", 400),
        ("/api/v1/views/none", 404),
        ("/api/v1/views?x=1", 400),
        ("/api/v1/xport?arg=XPORT:v", 400),
        ("/api/v1/xport?arg=COMMENT:only", 400),
        ("/api/v1/xport?arg=DEF:v=none.rrd:a:AVERAGE&arg=XPORT:v", 404),
        ("/api/v1/xport?arg=DEF:v=/etc/passwd:a:AVERAGE&arg=XPORT:v", 403),
        ("/api/v1/xport?arg=DEF:v=d/x.rrd:no:AVERAGE&arg=XPORT:v", 422),
        ("/api/v1/xport?arg=DEF:v=d/x.rrd:a:AVERAGE:daemon=h&arg=XPORT:v", 422),
    ] {
        let answer = get(&roundel, target);
        assert_eq!(answer.status, status, "{target}: {}", answer.text());
        assert!(schema(&description, "Error").is_valid(&answer.json()), "{target}: {}", answer.text());
        assert!(!answer.error().is_empty());
    }
}

/// Every operation exists, accepts exactly the parameters it describes, and answers only with statuses it
/// describes.
#[test]
fn the_description_matches_the_routes() {
    let roundel = filled();
    let description = description(&roundel);
    let paths = description["paths"].as_object().unwrap();
    assert_eq!(request(&roundel, "PUT", "/api/v1/views/example", "title = 'x'").status, 200);
    for (path, operations) in paths {
        let examples = [
            ("{name}", "d/x.rrd"),
            ("{directory}", "d"),
            ("{view}", "example"),
            ("{label}", "ds"),
            ("{dashboard}", "host.json"),
        ];
        let target = examples.iter().fold(path.clone(), |path, (name, example)| path.replace(name, example));
        for (method, operation) in operations.as_object().unwrap() {
            if operation["tags"][0] == "Pushed" {
                pushed::check(&roundel, &description, (path, method), operation);
                continue;
            }
            // What asks a Prometheus sends parameters that are not known here.
            let is_lenient = operation["tags"][0] == "Prometheus";
            let query = described_query(path, operation);
            // A form may contain the same.
            let (query, body) = match method.as_str() {
                "post" if is_lenient => (String::new(), described_form(path, operation)),
                "post" => (String::new(), form(path)),
                _ => (query, String::new()),
            };
            let method = method.to_uppercase();
            let answer = request(&roundel, &method, &format!("{target}?{query}"), &body);
            // This one is no node of a cluster.
            let status = if path == "/api/v1/cluster" { 404 } else { 200 };
            assert_eq!(answer.status, status, "{method} {target}?{query}: {}", answer.text());
            let responses = operation["responses"].as_object().unwrap();
            let content = &responses[&status.to_string()]["content"];
            let described = content
                .as_object()
                .unwrap()
                .keys()
                .any(|kind| answer.head.contains(&format!("content-type: {kind}")));
            assert!(described, "{method} {target}: {}", answer.head);
            if path.ends_with("openapi.json") {
                continue;
            }
            let answer =
                request(&roundel, &method, &format!("{target}?{query}&bogus=1"), &format!("{body}&bogus=1"));
            if is_lenient {
                assert_eq!(answer.status, 200, "{method} {target}");
                assert!(schema(&description, "PrometheusAnswer").is_valid(&answer.json()), "{target}");
                continue;
            }
            assert_eq!(answer.status, 400, "{method} {target}");
            assert!(responses.contains_key("400"), "{method} {target}");
        }
    }
    for target in ["/api/v1/nothing", "/api/v2/list", "/api/v1/fetch"] {
        let answer = get(&roundel, target);
        assert_eq!(answer.status, 404, "{target}");
        let text = String::from_utf8(answer.body).unwrap();
        assert!(text.contains("/api/v1/openapi.json describes what there is"), "{target}: {text}");
    }
}

/// A query with each parameter that an operation describes.
fn described_query(path: &str, operation: &Value) -> String {
    let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
    let query: Vec<String> = parameters
        .iter()
        .filter(|parameter| parameter["in"] == "query")
        .map(|parameter| parameter["name"].as_str().unwrap())
        // One replaces arguments, the other is of one text only.
        .filter(|name| !["template", "was"].contains(name))
        .map(|name| example(path, name))
        .collect();
    query.join("&")
}

/// A form with each field that an operation describes.
fn described_form(path: &str, operation: &Value) -> String {
    let form = &operation["requestBody"]["content"]["application/x-www-form-urlencoded"];
    let fields = form["schema"]["properties"].as_object().into_iter().flatten();
    fields.map(|(name, _)| example(path, name)).collect::<Vec<_>>().join("&")
}

fn form(path: &str) -> String {
    if path == "/api/v1/charts" {
        return r#"{"charts":[{"arg":["DEF:v=d/x.rrd:a:AVERAGE","LINE:v#f00"]}]}"#.to_string();
    }
    if path == "/api/v1/views/{view}" {
        return "arg=DEF:v%3Dd/x.rrd:a:AVERAGE&arg=LINE:v%23f00&title=x".to_string();
    }
    let range = if path == "/graph" { "" } else { "&start=1000000000&end=1000000050" };
    example(path, "arg") + range
}

fn example(path: &str, parameter: &str) -> String {
    match parameter {
        "arg" if path == "/graph" => "arg=DEF:v=d/x.rrd:a:AVERAGE&arg=LINE:v%23f00".to_string(),
        "describe" => "describe=false".to_string(),
        "arg" => "arg=DEF:v=d/x.rrd:a:AVERAGE&arg=XPORT:v".to_string(),
        "q" => "q=x".to_string(),
        "name" => "name=d/x.rrd".to_string(),
        "glob" => "glob=*".to_string(),
        "directory" => "directory=d".to_string(),
        "ds" => "ds=a".to_string(),
        "by" => "by=max".to_string(),
        "mode" => "mode=overlay".to_string(),
        "start" => "start=1000000000".to_string(),
        "end" => "end=1000000050".to_string(),
        "step" => "step=10".to_string(),
        "maxrows" => "maxrows=100".to_string(),
        "format" => "format=csv".to_string(),
        "cf" => "cf=AVERAGE".to_string(),
        "recursive" => "recursive=true".to_string(),
        "limit" => "limit=10".to_string(),
        "after" => "after=d".to_string(),
        "db" | "bucket" => format!("{parameter}=telegraf"),
        "precision" => "precision=s".to_string(),
        "verbose" => "verbose=true".to_string(),
        "url" => "url=http://a.example".to_string(),
        "query" => "query=rrd_a".to_string(),
        "time" => "time=1000000050".to_string(),
        "match[]" => "match[]=rrd_a".to_string(),
        "metric" => "metric=rrd_a".to_string(),
        "lookback_delta" => "lookback_delta=5m".to_string(),
        "max_source_resolution" => "max_source_resolution=1h".to_string(),
        other => panic!("a parameter without an example: {other}"),
    }
}

#[test]
fn lists_are_paged() {
    let roundel = filled();
    let (mut names, mut after) = (Vec::new(), String::new());
    for _ in 0..10 {
        let page = get(&roundel, &format!("/api/v1/list?recursive=true&limit=1&after={after}")).json();
        for item in page["items"].as_array().unwrap() {
            names.push((
                item["name"].as_str().unwrap().to_string(),
                item["path"].as_str().unwrap().to_string(),
            ));
        }
        match page["next"].as_str() {
            Some(next) => after = next.to_string(),
            None => break,
        }
    }
    let want = [
        ("d/e/f.rrd", "d/e/f.rrd"),
        ("d/x.rrd", "d/x.rrd"),
        ("d/y z.rrd", "d/y%20z.rrd"),
        ("top.rrd", "top.rrd"),
    ];
    assert_eq!(names, want.map(|(name, path)| (name.to_string(), path.to_string())));
    let here = get(&roundel, "/api/v1/list").json();
    assert_eq!(here["items"][0], serde_json::json!({"name": "d", "path": "d", "directory": true}));
    assert_eq!(get(&roundel, "/api/v1/info/d/y%20z.rrd").status, 200);
}

/// Rows of `rrdtool fetch` as (time, values).
fn rows_of_rrdtool(roundel: &Roundel, words: &str) -> Vec<(i64, Vec<f64>)> {
    let output = Command::new("/usr/bin/rrdtool")
        .args(words.split(' '))
        .current_dir(roundel.base())
        .env("RRDCACHED_ADDRESS", format!("unix:{}", roundel.socket().display()))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let row = |line: &str| {
        let (time, values) = line.split_once(": ")?;
        Some((time.parse().ok()?, values.split(' ').map(|value| value.parse().unwrap()).collect()))
    };
    text.lines().filter_map(row).collect()
}

#[test]
fn rows_are_rrdtools() {
    let roundel = filled();
    for cf in ["AVERAGE", "MAX"] {
        let want = rows_of_rrdtool(&roundel, &format!("fetch d/x.rrd {cf} -s 1000000000 -e 1000000060"));
        assert!(want.len() > 2);
        let got = get(&roundel, &format!("/api/v1/fetch/d/x.rrd?{RANGE}&cf={cf}")).json();
        assert_eq!(got["columns"], serde_json::json!(["a", "b"]));
        let rows = got["rows"].as_array().unwrap();
        assert_eq!(rows.len(), want.len());
        for (row, (time, values)) in rows.iter().zip(&want) {
            assert_eq!(row[0], *time);
            for (index, value) in values.iter().enumerate() {
                match row[index + 1].as_f64() {
                    Some(got) => assert!((got - value).abs() <= value.abs() * 1e-10, "{row} {values:?}"),
                    None => assert!(value.is_nan(), "{row} {values:?}"),
                }
            }
        }
        let csv = get(&roundel, &format!("/api/v1/fetch/d/x.rrd?{RANGE}&cf={cf}&format=csv"));
        assert!(
            csv.head.contains("content-type: text/csv") && csv.head.contains("cache-control:"),
            "{}",
            csv.head
        );
        assert_eq!(csv.text().lines().count(), want.len() + 1);
        assert!(csv.text().starts_with("time,a,b\r\n1000000010,"), "{}", csv.text());
    }
    let csv = "/api/v1/xport?format=csv&start=1000000000&end=1000000030&step=10&arg=DEF:v=d/x.rrd:a:AVERAGE\
               &arg=CDEF:w=v,2,*&arg=XPORT:w:twice,+a&arg=XPORT:v";
    assert_eq!(
        get(&roundel, csv).text(),
        "time,\"twice, a\",v\r\n1000000010,0.2,0.1\r\n1000000020,,\r\n1000000030,24691.0,12345.5\r\n"
    );
    let body =
        "format=csv&start=1000000000&end=1000000010&arg=DEF%3Av%3Dd/x.rrd%3Aa%3AAVERAGE&arg=XPORT:v:a%26b";
    assert_eq!(request(&roundel, "POST", "/api/v1/xport", body).text(), "time,a&b\r\n1000000010,0.1\r\n");

    let arrow = get(&roundel, &csv.replace("format=csv", "format=arrow"));
    assert!(arrow.head.contains("content-type: application/vnd.apache.arrow.stream"), "{}", arrow.head);
    let batches: Vec<_> =
        StreamReader::try_new(arrow.body.as_slice(), None).unwrap().map(Result::unwrap).collect();
    let [batch] = &batches[..] else { panic!("{} batches", batches.len()) };
    assert_eq!(batch.schema().field(1).name(), "twice, a");
    let twice: Vec<Option<f64>> = batch.column(1).as_primitive::<Float64Type>().iter().collect();
    assert_eq!(twice, [Some(0.2), None, Some(24691.0)]);
}

/// No request can make the daemon work without end or use all of its memory.
#[test]
fn requests_are_limited() {
    let roundel = filled();
    let many = "arg=COMMENT:x&".repeat(2001);
    assert_eq!(request(&roundel, "POST", "/api/v1/xport", &many).status, 413);
    let long = "x".repeat(300_000);
    assert!([400, 413].contains(&request(&roundel, "POST", "/api/v1/xport", &long).status));
    let defs: String = (0..60)
        .map(|index| format!("&arg=DEF:v{index}=d/x.rrd:a:AVERAGE:start={}", 999_000_000 - index))
        .collect();
    let answer = get(&roundel, &format!("/api/v1/xport?{RANGE}{defs}&arg=XPORT:v0"));
    assert_eq!(answer.status, 413, "{}", answer.text());
    let answer = get(
        &roundel,
        "/api/v1/xport?start=end-1y&end=1000000000&step=1&maxrows=1000000000&arg=DEF:v=d/x.rrd:a:AVERAGE&arg=XPORT:v",
    );
    assert_eq!(answer.status, 413, "{}", answer.text());
    // Copies of rows, and expressions without end.
    let range = "start=end-30d&end=1000000060&maxrows=1000000&arg=DEF:v=d/x.rrd:a:AVERAGE";
    let copies: String = (0..40).map(|index| format!("&arg=CDEF:c{index}=v,2,*")).collect();
    let words = format!("&arg=CDEF:c=v{}", ",1,%2B".repeat(600));
    for more in [copies, words] {
        let body = format!("{range}{more}&arg=XPORT:v");
        let answer = request(&roundel, "POST", "/api/v1/xport", &body);
        assert_eq!(answer.status, 413, "{}", answer.text());
    }
    assert_eq!(get(&roundel, "/healthz").status, 200);
}

#[test]
fn rows_below_a_second_have_their_decimals_and_tables_whole_seconds() {
    let roundel = filled();
    let mut client = Client::open(&roundel.socket());
    let create = "CREATE fine.rrd -s 0.25 -b 1000000000 DS:a:GAUGE:0.5:U:U RRA:AVERAGE:0.5:1:20";
    assert!(client.say(create).starts_with('0'));
    assert!(
        client
            .say("UPDATE fine.rrd 1000000000.25:1 1000000000.5:2 1000000000.75:3 1000000001:6")
            .starts_with('0')
    );
    let range = "start=1000000000&end=1000000001";
    let fetched = get(&roundel, &format!("/api/v1/fetch/fine.rrd?{range}")).json();
    let want = serde_json::json!([
        [1_000_000_000.25, 1.0],
        [1_000_000_000.5, 2.0],
        [1_000_000_000.75, 3.0],
        [1_000_000_001.0, 6.0],
        [1_000_000_001.25, null]
    ]);
    assert_eq!((&fetched["rows"], &fetched["step"]), (&want, &serde_json::json!(0.25)));
    let csv = get(&roundel, &format!("/api/v1/fetch/fine.rrd?{range}&format=csv")).text();
    assert!(csv.contains("\r\n1000000000.25,1.0\r\n"), "{csv}");
    let info = get(&roundel, "/api/v1/info/fine.rrd").json();
    assert_eq!((info["step"].as_f64(), info["last_update"].as_f64()), (Some(0.25), Some(1e9 + 1.0)));
    let elements = "arg=DEF:a=fine.rrd:a:AVERAGE";
    let table = get(&roundel, &format!("/api/v1/xport?{range}&{elements}&arg=XPORT:a:a")).json();
    assert_eq!((&table["rows"], &table["step"]), (&serde_json::json!([[1_000_000_001, 3.0]]), &1.into()));
    let picture = format!("/graph?arg=-s&arg=1000000000&arg=-e&arg=1000000001&{elements}&arg=LINE:a%23f00");
    assert_eq!(get(&roundel, &picture).status, 200);
    let exported = client.say("EXPORT fine.rrd");
    assert!(
        exported.starts_with("-1 RRD Error: ") && exported.contains("thousandths of a second"),
        "{exported}"
    );
    let bin = client.say("FETCHRES fine.rrd AVERAGE 1 1000000000 1000000001");
    assert!(bin.contains("Start: 1000000000\n") && bin.contains("Step: 0.250\n"), "{bin}");
}
