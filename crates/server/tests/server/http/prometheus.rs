//! Prometheus' API: its shapes, whose RRDs it shows, the same numbers as xport, and the same answers as a Prometheus with the same rows.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use protocol::rrdcached::command::Permissions;
use roundel_server::access::Anonymous;
use roundel_server::service::CreatePolicy;
use serde_json::Value;
use testkit::random::Random;
use testkit::{Client, Running, peer};

use super::rights::{account, daemon};
use crate::common::Roundel;
use crate::common::http::{get, request, request_with};

const START: i64 = 1_700_000_040;
const STEP: i64 = 60;
const ROWS: i64 = 300;

/// A daemon with RRDs in rows of a minute; `archives` beside the finest.
fn filled(archives: &str) -> Roundel {
    let create = CreatePolicy { make_directories: true, ..Default::default() };
    let roundel = Roundel::stripes(create, Permissions::ALL);
    let mut client = Client::open(&roundel.socket());
    let mut random = Random::new(7);
    for (index, host) in ["web-1", "web-2", "db"].iter().enumerate() {
        let words = format!(
            "-s {STEP} -b {START} DS:temp:GAUGE:120:U:U DS:requests_total:GAUGE:120:U:U DS:state:GAUGE:120:U:U \
             RRA:AVERAGE:0.5:1:1000 {archives}"
        );
        assert!(client.say(format!("CREATE {host}/x.rrd {}", words.trim_end())).starts_with('0'));
        let mut counter = 0.0;
        for row in 1..=ROWS {
            counter = if random.once_in(50) { 0.0 } else { counter + random.below(1000) as f64 };
            let temp = (row as f64 / 10.0 + index as f64).sin() * 20.0;
            let state = random.below(4);
            let time = START + STEP * row;
            let said = client.say(format!("UPDATE {host}/x.rrd {time}:{temp}:{counter}:{state}"));
            assert!(said.starts_with('0'), "{said}");
        }
    }
    roundel
}

pub(super) fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "%{byte:02X}");
        out
    })
}

fn instant(roundel: &Roundel, query: &str, time: i64) -> Value {
    get(roundel, &format!("/api/v1/query?query={}&time={time}", encoded(query))).json()
}

#[test]
fn shapes_are_those_of_prometheus() {
    let roundel = filled("");
    let health = get(&roundel, "/prometheus/api/v1/query?query=1%2B1&time=4&unknown=x").json();
    assert_eq!(
        health,
        serde_json::json!({"status": "success", "data": {"resultType": "scalar", "result": [4, "2"]}})
    );
    let end = START + STEP * ROWS;
    let one = instant(&roundel, "rrd_temp{rrd='db/x'}", end);
    assert_eq!(one["data"]["resultType"], "vector");
    let metric = serde_json::json!({"__name__": "rrd_temp", "ds": "temp", "rrd": "db/x"});
    assert_eq!(one["data"]["result"][0]["metric"], metric);
    // Two rows later, or five minutes, it is gone.
    assert_eq!(instant(&roundel, "rrd_temp", end + 299)["data"]["result"].as_array().unwrap().len(), 3);
    assert_eq!(instant(&roundel, "rrd_temp", end + 300)["data"]["result"].as_array().unwrap().len(), 0);
    let body = format!("match[]=rrd_temp&start={START}");
    let names = request(&roundel, "POST", "/api/v1/labels", &body).json();
    assert_eq!(names["data"], serde_json::json!(["__name__", "ds", "rrd"]));
    let values = get(&roundel, "/api/v1/label/U__rrd/values?limit=1").json();
    assert_eq!(values["data"], serde_json::json!(["db/x"]));
    assert_eq!(values["warnings"][0], "results truncated due to limit");
    let refused = get(&roundel, "/api/v1/label/%FF/values");
    assert_eq!((refused.status, &refused.json()["errorType"]), (400, &Value::from("bad_data")));
    let metrics = get(&roundel, "/api/v1/label/__name__/values").json();
    assert_eq!(metrics["data"], serde_json::json!(["rrd_requests_total", "rrd_state", "rrd_temp"]));
    // What is known of all series is what looking through them finds.
    for path in ["labels", "label/rrd/values", "label/ds/values", "label/none/values"] {
        let all = get(&roundel, &format!("/api/v1/{path}")).json();
        let found = get(&roundel, &format!("/api/v1/{path}?match[]={{__name__!=%22%22}}")).json();
        assert_eq!(all, found, "{path}");
        assert_eq!(all["data"].as_array().unwrap().is_empty(), path.contains("none"), "{all}");
    }
    let series = get(&roundel, "/api/v1/series?match[]={ds=~%22t.*%22}").json();
    assert_eq!(series["data"].as_array().unwrap().len(), 3);
    assert_eq!(
        get(&roundel, "/api/v1/metadata?metric=rrd_temp").json()["data"]["rrd_temp"][0]["type"],
        "gauge"
    );
    let formatted = get(&roundel, "/api/v1/format_query?query=sum(a)by(b)").json();
    assert_eq!(formatted["data"], "sum by (b) (a)");
    for (path, data) in
        [("rules", "{\"groups\":[]}"), ("alerts", "{\"alerts\":[]}"), ("query_exemplars?query=x", "[]")]
    {
        assert!(get(&roundel, &format!("/api/v1/{path}")).text().contains(data), "{path}");
    }
    assert!(get(&roundel, "/api/v1/status/buildinfo").json()["data"]["features"].is_null());
}

#[test]
fn refusals_are_those_of_prometheus() {
    let roundel = filled("");
    let deep = "(".repeat(10_000);
    let huge = encoded(&format!("rrd_temp{{a=~\"{}\"}}", "((x{1000}){1000}){1000}"));
    let selectors = |count: usize| (0..count).map(|number| format!("match[]=a{number}&")).collect::<String>();
    for (target, status, kind) in [
        ("query?query=sum(".to_owned(), 400, "bad_data"),
        ("query".to_owned(), 400, "bad_data"),
        ("query?query=1&time=x".to_owned(), 400, "bad_data"),
        (format!("query?query={deep}"), 400, "bad_data"),
        (format!("query?query={huge}"), 400, "bad_data"),
        ("query_range?query=1&start=1&end=0&step=1".to_owned(), 400, "bad_data"),
        ("query_range?query=1&start=0&end=1&step=0".to_owned(), 400, "bad_data"),
        ("query_range?query=1&start=0&end=11001&step=1".to_owned(), 400, "bad_data"),
        ("series".to_owned(), 400, "bad_data"),
        (format!("series?{}", selectors(1_001)), 400, "bad_data"),
        (
            "query?query=rrd_temp%2Bon(ds)rrd_temp".to_owned() + &format!("&time={}", START + 600),
            422,
            "execution",
        ),
        ("query?query=max_over_time(vector(1)[1y:1ms])".to_owned(), 422, "execution"),
    ] {
        let answer = get(&roundel, &format!("/api/v1/{target}"));
        let body = answer.json();
        let short = &target[..target.len().min(60)];
        assert_eq!(
            (answer.status, &body["status"], &body["errorType"]),
            (status, &"error".into(), &kind.into()),
            "{short}: {body}"
        );
    }
}

#[test]
fn what_a_client_may_not_read_is_not_there() {
    let roundel = daemon(
        &[
            account("ann"),
            access::Account {
                operate: true,
                read: vec!["**".into()],
                write: vec!["**".into()],
                ..account("boss")
            },
        ],
        true,
        Anonymous::Nothing,
    );
    let mut client = Client::open(&roundel.socket());
    client.say("AUTH boss");
    for name in ["net/a/if.rrd", "secret/a.rrd"] {
        let said =
            client.say(format!("CREATE {name} -s 60 -b {START} DS:x:GAUGE:120:U:U RRA:AVERAGE:0.5:1:100"));
        assert!(said.starts_with('0'), "{said}");
        client.say(format!("UPDATE {name} {}:1 {}:2", START + 60, START + 120));
    }
    let ask = |who: &str, target: &str| {
        request_with(&roundel, "GET", target, &format!("Authorization: Bearer {who}\r\n"), "").json()["data"]
            .clone()
    };
    let time = START + 120;
    let count = format!("/api/v1/query?query=count(rrd_x)&time={time}");
    assert_eq!(ask("boss", &count)["result"][0]["value"][1], "2");
    assert_eq!(ask("ann", &count)["result"][0]["value"][1], "1");
    let hidden = encoded("rrd_x{rrd='secret/a'}");
    assert_eq!(
        ask("ann", &format!("/api/v1/query?query={hidden}&time={time}"))["result"],
        serde_json::json!([])
    );
    assert_eq!(ask("ann", "/api/v1/label/rrd/values"), serde_json::json!(["net/a/if"]));
    assert_eq!(ask("boss", "/api/v1/label/rrd/values"), serde_json::json!(["net/a/if", "secret/a"]));
    assert_eq!(ask("ann", "/api/v1/series?match[]=rrd_x").as_array().unwrap().len(), 1);
}

/// Values of an answer's first series, as their text says.
fn values(answer: &Value) -> Vec<(i64, f64)> {
    let all = answer["data"]["result"][0]["values"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let value = |pair: &Value| (pair[0].as_i64().unwrap(), number(pair[1].as_str().unwrap()));
    all.iter().map(value).collect()
}

fn number(text: &str) -> f64 {
    match text {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        text => text.parse().unwrap(),
    }
}

#[test]
fn numbers_are_those_of_xport() {
    let roundel = filled("RRA:AVERAGE:0.5:5:400 RRA:MAX:0.5:5:400 RRA:MIN:0.5:5:400");
    let (start, end, step) = (START / 300 * 300 + 300, START / 300 * 300 + 300 * 50, 300);
    for (function, cf) in [("avg", "AVERAGE"), ("max", "MAX"), ("min", "MIN")] {
        let query = encoded(&format!("{function}_over_time(rrd_temp{{rrd='db/x'}}[5m])"));
        let range = format!("start={}&end={end}&step={step}", start + step);
        let ours = values(&get(&roundel, &format!("/api/v1/query_range?query={query}&{range}")).json());
        let xport = format!(
            "/api/v1/xport?start={start}&end={end}&step={step}&arg=DEF:v=db/x.rrd:temp:{cf}&arg=XPORT:v"
        );
        // As text: the JSON parser of the tests may be wrong in the last bit.
        let table = get(&roundel, &(xport + "&format=csv")).text();
        let row = |line: &str| {
            let (time, value) = line.split_once(',')?;
            Some((time.parse().ok()?, value.parse().ok()?))
        };
        let rows: Vec<(i64, f64)> = table.lines().filter_map(row).collect();
        assert!(ours.len() > 40, "{ours:?}");
        let theirs: Vec<_> = rows.into_iter().filter(|(time, _)| *time <= end && *time > start).collect();
        let bits =
            |all: &[(i64, f64)]| all.iter().map(|(time, value)| (*time, value.to_bits())).collect::<Vec<_>>();
        assert_eq!(bits(&ours), bits(&theirs), "{function}");
    }
}

/// Prometheus looks five minutes back for a value, and a row of an hour would be there for five minutes of it.
#[test]
fn a_row_of_an_hour_is_a_value_until_two_hours_later() {
    let roundel = Roundel::stripes(CreatePolicy::default(), Permissions::ALL);
    let mut client = Client::open(&roundel.socket());
    let create =
        format!("CREATE hours.rrd -s {STEP} -b {START} DS:temp:GAUGE:3600:U:U RRA:AVERAGE:0.5:60:48");
    assert!(client.say(create).starts_with('0'));
    let last = (START + 2 * 3600) / 3600 * 3600;
    for minute in (START + 60..=last).step_by(60) {
        assert!(client.say(format!("UPDATE hours.rrd {minute}:7")).starts_with('0'));
    }
    let count = |minutes: i64| {
        let answer = instant(&roundel, "rrd_temp{rrd='hours'}", last + 60 * minutes);
        answer["data"]["result"].as_array().unwrap().len()
    };
    assert_eq!([count(1), count(40), count(119), count(121)], [1, 1, 1, 0]);
}

#[test]
fn cf_is_a_label_of_selectors_only() {
    let roundel = filled("RRA:AVERAGE:0.5:5:400 RRA:MAX:0.5:5:400");
    let time = START + STEP * ROWS;
    let names = |query: &str| {
        let answer = instant(&roundel, query, time);
        let all = answer["data"]["result"].as_array().unwrap().clone();
        all.iter().map(|series| series["metric"]["cf"].as_str().unwrap_or("-").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("rrd_temp{rrd='db/x'}"), ["-"]);
    assert_eq!(names("rrd_temp{rrd='db/x',cf='MAX'}"), ["MAX"]);
    assert_eq!(names("rrd_temp{rrd='db/x',cf=~'.+'}"), ["AVERAGE", "MAX"]);
    assert_eq!(names("rrd_temp{rrd='db/x',cf='LAST'}"), Vec::<String>::new());
    // MIN is not kept; in rows of one reading that makes no difference, in longer ones it is said.
    let warnings = |step: &str| {
        let range = format!("start={}&end={time}&step={step}", START + 600);
        let query = encoded("min_over_time(rrd_temp[10m])");
        get(&roundel, &format!("/api/v1/query_range?query={query}&{range}")).json()["warnings"].clone()
    };
    assert!(warnings("60").is_null());
    assert_eq!(warnings("300")[0], "rrd_temp: MIN is not kept for all of this range, AVERAGE was used");
}

#[test]
fn counters_are_the_integral_of_rates() {
    let create = CreatePolicy { make_directories: true, ..Default::default() };
    let roundel = Roundel::stripes(create, Permissions::ALL);
    let mut client = Client::open(&roundel.socket());
    client.say(format!(
        "CREATE c.rrd -s 60 -b {START} DS:n:COUNTER:120:0:U RRA:AVERAGE:0.5:1:1000 RRA:AVERAGE:0.5:5:400"
    ));
    // From 600 on, the readings stop for ten minutes.
    for row in (0..=10).chain(20..=100) {
        let said = client.say(format!("UPDATE c.rrd {}:{}", START + 60 * row, 120 * row));
        assert!(said.starts_with('0') || row == 0, "{said}");
    }
    let value = |query: &str, time: i64| {
        number(instant(&roundel, query, time)["data"]["result"][0]["value"][1].as_str().unwrap())
    };
    let end = START + 60 * 100;
    assert!((value("rate(rrd_n_total[30m])", end) - 2.0).abs() < 1e-9);
    assert!((value("increase(rrd_n_total[30m])", end) - 3600.0).abs() < 1e-9);
    // One row, and part of it.
    assert!((value("increase(rrd_n_total[20s])", end - 10) - 40.0).abs() < 1e-9);
    // Unknown time is missing: the rate is that of the known time, the increase what is known.
    let gap = START + 60 * 30;
    assert!((value("rate(rrd_n_total[20m])", gap) - 2.0).abs() < 1e-9);
    assert!(value("increase(rrd_n_total[20m])", gap) < 2400.0 - 1e-9);
    let rated = instant(&roundel, "rate(rrd_n[10m])", end);
    assert_eq!(rated["infos"][0], "PromQL info: the rows of \"rrd_n\" are a rate already (1:6)");
    // An unknown row ends the series, as a staleness marker does.
    assert_eq!(instant(&roundel, "rrd_n", START + 60 * 15)["data"]["result"], serde_json::json!([]));
}

/// A Prometheus with these rows.
struct Peer {
    port: u16,
    /// Before 3.0, ranges include their start.
    is_old: bool,
    _program: Running,
    _directory: tempfile::TempDir,
}

impl Peer {
    /// Starts one with the rows of `roundel`; `None`, and the test is skipped, without the program.
    fn start(roundel: &Roundel) -> Option<Peer> {
        let program = peer::prometheus()?;
        peer::debian("prometheus", "/usr/bin/promtool")?;
        let directory = tempfile::tempdir().unwrap();
        let (text, data) = (directory.path().join("rows"), directory.path().join("data"));
        std::fs::write(&text, open_metrics(roundel)).unwrap();
        let made = Command::new("promtool")
            .args(["tsdb", "create-blocks-from", "openmetrics"])
            .args([&text, &data])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Some(Peer::with_data(&program, directory, "global: {}\n"))
    }

    /// Starts one with a configuration, on the data in a directory.
    fn with_data(program: &Path, directory: tempfile::TempDir, config: &str) -> Peer {
        std::fs::write(directory.path().join("config"), config).unwrap();
        let data = directory.path().join("data");
        let version = Command::new(program).arg("--version").output().unwrap();
        let version = String::from_utf8_lossy(&[version.stdout, version.stderr].concat()).into_owned();
        let is_old = version.contains("version 2.");
        let port = testkit::free_port();
        let flag = |name: &str, value: &Path| format!("--{name}={}", value.display());
        let words = [
            flag("config.file", &directory.path().join("config")),
            flag("storage.tsdb.path", &data),
            "--storage.tsdb.retention.time=100y".to_owned(),
            format!("--web.listen-address=127.0.0.1:{port}"),
            "--enable-feature=promql-experimental-functions".to_owned(),
        ];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let program = Running::program(&directory.path().join("log"), program.to_str().unwrap(), &words);
        testkit::wait_until("Prometheus", || {
            testkit::http_get(port, "/-/ready").is_some_and(|answer| answer.contains("200 OK"))
        });
        Peer { port, is_old, _program: program, _directory: directory }
    }

    fn ask(&self, target: &str) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        // Answers to version 1.0 come in one piece.
        write!(stream, "GET {target} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }
}

/// All rows, as our own answers say them.
fn open_metrics(roundel: &Roundel) -> String {
    let mut out = String::new();
    for metric in ["rrd_requests_total", "rrd_state", "rrd_temp"] {
        let end = START + STEP * ROWS;
        let answer = instant(roundel, &format!("{metric}[1d]"), end);
        let _ = writeln!(out, "# TYPE {metric} unknown");
        for series in answer["data"]["result"].as_array().unwrap() {
            let label = |(name, value): (&String, &Value)| format!("{name}={value}");
            let labels = series["metric"].as_object().unwrap().iter().filter(|(name, _)| *name != "__name__");
            let labels: Vec<String> = labels.map(label).collect();
            for pair in series["values"].as_array().unwrap() {
                let _ = writeln!(
                    out,
                    "{metric}{{{}}} {} {}",
                    labels.join(","),
                    pair[1].as_str().unwrap(),
                    pair[0]
                );
            }
        }
    }
    out + "# EOF\n"
}

/// Whether two answers are equal, numbers up to rounding.
fn are_equal(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::String(a), Value::String(b)) => {
            let (x, y) = (a.parse::<f64>(), b.parse::<f64>());
            let close = |x: f64, y: f64| (x - y).abs() <= 1e-10 * x.abs().max(y.abs()).max(1e-3);
            a == b || matches!((x, y), (Ok(x), Ok(y)) if x == y || close(x, y))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| are_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| are_equal(a, b)))
        }
        (a, b) => a == b || a.as_f64().is_some_and(|a| b.as_f64() == Some(a)),
    }
}

/// Series of a vector in the order of their labels, unless the query orders them.
fn data(answer: &Value, is_ordered: bool) -> Value {
    let mut data = answer["data"].clone();
    if let Some(all) = data["result"].as_array_mut()
        && !is_ordered
        && all.iter().all(Value::is_object)
    {
        all.sort_by_key(|series| series["metric"].to_string());
    }
    data
}

const QUERIES: &str = include_str!("queries.txt");

/// Each line of `queries.txt`, and random ones.
fn queries(is_old: bool) -> Vec<String> {
    let mut all = Vec::new();
    for line in QUERIES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix("new: ") {
            Some(line) if !is_old => all.push(line.to_owned()),
            Some(_) => {}
            None => all.push(line.to_owned()),
        }
    }
    if is_old {
        // Ranges inside of subqueries are on the grid of rows, and version 2 includes their starts.
        all.retain(|query| query.matches('[').count() < 2);
        return all;
    }
    for seed in 0..200 {
        let mut random = Random::new(seed);
        all.push(expression(&mut random, 3));
    }
    all
}

/// A random expression.
fn expression(random: &mut Random, depth: u32) -> String {
    let metric =
        random.pick(&["rrd_temp", "rrd_state", "rrd_requests_total", "rrd_temp{rrd=~\"web.*\"}"]).to_owned();
    if depth == 0 {
        return metric;
    }
    match random.below(9) {
        0 => metric,
        1 => format!(
            "{}({metric}[{}m])",
            random.pick(&[
                "rate",
                "increase",
                "delta",
                "irate",
                "avg_over_time",
                "max_over_time",
                "deriv",
                "changes",
                "resets",
                "stddev_over_time",
                "count_over_time"
            ]),
            random.between(2, 20)
        ),
        2 => format!(
            "{} by (rrd) ({})",
            random.pick(&["sum", "avg", "max", "count", "stddev"]),
            expression(random, depth - 1)
        ),
        3 => format!(
            "{}({})",
            random.pick(&["abs", "ceil", "floor", "exp", "sgn", "-", "sqrt"]),
            expression(random, depth - 1)
        ),
        4 => format!(
            "({}) {} {}",
            expression(random, depth - 1),
            random.pick(&["+", "*", ">", "==", "/", "%", "^"]),
            random.below(5)
        ),
        5 => format!(
            "({}) {} on (rrd) ({})",
            expression(random, depth - 1),
            random.pick(&["and", "unless", "or"]),
            expression(random, depth - 1)
        ),
        6 => format!(
            "sum by (rrd) ({}) {} sum by (rrd) ({})",
            expression(random, depth - 1),
            random.pick(&["+", "-", "*", "/", ">"]),
            expression(random, depth - 1)
        ),
        7 => format!(
            "max_over_time(({})[{}m:{}s])",
            expression(random, depth - 1),
            random.between(5, 15),
            30 * random.between(1, 6)
        ),
        _ => format!("quantile by (rrd) (0.{}, {})", random.between(1, 9), expression(random, depth - 1)),
    }
}

#[test]
fn answers_are_those_of_prometheus() {
    let roundel = filled("");
    let Some(peer) = Peer::start(&roundel) else { return };
    // Off the grid of rows, ranges with and without their start are the same.
    let shift = if peer.is_old { 7 } else { 0 };
    let (start, end) = (START + 1200 + shift, START + 15_000 + shift);
    // ... which steps of whole minutes keep it.
    let (odd, small) = if peer.is_old { (180, 60) } else { (47, 5) };
    // Ranges that begin before the first row, also by a bit more than the distance of two rows.
    let early = if peer.is_old { START + 50 } else { START };
    let mut different = Vec::new();
    let all = queries(peer.is_old);
    let mut compared = 0;
    for query in &all {
        let text = encoded(query);
        let is_ordered =
            query.starts_with("sort") || query.starts_with("topk(") || query.starts_with("bottomk(");
        for target in [
            format!("/api/v1/query?query={text}&time={end}"),
            format!("/api/v1/query_range?query={text}&start={start}&end={end}&step=300"),
            format!("/api/v1/query_range?query={text}&start={start}&end={end}&step={odd}"),
            format!("/api/v1/query_range?query={text}&start={early}&end={}&step={small}", early + 1200),
        ] {
            // Version 2 extends to where a counter was 0 if that is near, however far away the edge of the range is.
            if peer.is_old && query == "rate(rrd_temp[10m])" && target.contains(&format!("start={early}&")) {
                continue;
            }
            let (ours, theirs) = (get(&roundel, &target).json(), peer.ask(&target));
            compared += 1;
            let is_instant = target.starts_with("/api/v1/query?");
            let same = ours["status"] == theirs["status"]
                && ours["errorType"] == theirs["errorType"]
                && are_equal(
                    &data(&ours, is_ordered && is_instant),
                    &data(&theirs, is_ordered && is_instant),
                )
                && (peer.is_old
                    || (ours["warnings"] == theirs["warnings"] && ours["infos"] == theirs["infos"]));
            if !same {
                let cut = |value: &Value| value.to_string().chars().take(600).collect::<String>();
                different.push(format!(
                    "{query}\n{target}\n  ours   {}\n  theirs {}",
                    cut(&ours),
                    cut(&theirs)
                ));
            }
        }
    }
    assert!(different.is_empty(), "{} of {compared} differ:\n{}", different.len(), different.join("\n"));
    eprintln!("{compared} answers to {} queries are those of Prometheus", all.len());
}

#[test]
fn prometheus_reads_our_rows() {
    let roundel = filled("RRA:AVERAGE:0.5:5:400");
    let Some(program) = peer::prometheus() else { return };
    let address = std::fs::read_to_string(roundel.path("http")).unwrap();
    let config = format!("remote_read:\n- url: http://{address}/api/v1/read\n  read_recent: true\n");
    let peer = Peer::with_data(&program, tempfile::tempdir().unwrap(), &config);
    let shift = if peer.is_old { 7 } else { 0 };
    let (start, end) = (START + 1200 + shift, START + 15_000 + shift);
    for query in [
        "rrd_temp",
        "sum by (rrd) (rrd_state)",
        "rate(rrd_requests_total{rrd=~\"web.*\"}[10m])",
        "max_over_time(rrd_temp[5m])",
    ] {
        let target = format!("/api/v1/query_range?query={}&start={start}&end={end}&step=60", encoded(query));
        let (ours, theirs) = (get(&roundel, &target).json(), peer.ask(&target));
        assert!(ours["data"]["result"].as_array().is_some_and(|all| all.len() > 1), "{ours}");
        assert!(are_equal(&data(&ours, false), &data(&theirs, false)), "{query}: {ours}\n{theirs}");
    }
}
