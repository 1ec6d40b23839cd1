//! The requests that Grafana's two data sources make, with the checks of those who read the answers there.

use serde_json::{Value, json};

use super::super::prometheus::encoded;
use super::recorded::{SECONDS, end, filled};
use crate::common::Roundel;
use crate::common::http::{get, request};

/// Labels and points of a series.
type Frame = (Vec<(String, String)>, Vec<(f64, f64)>);

/// What the data source makes of an answer of Prometheus: labels and points of each series, or a text why there are none.
fn frames(answer: &Value) -> Vec<Frame> {
    assert_eq!(answer["status"], "success", "{answer}");
    for notes in ["warnings", "infos"] {
        assert!(answer[notes].is_null() || answer[notes].as_array().unwrap().iter().all(Value::is_string));
    }
    let (kind, result) = (answer["data"]["resultType"].as_str().unwrap(), &answer["data"]["result"]);
    let point = |pair: &Value| {
        assert_eq!(pair.as_array().map(Vec::len), Some(2), "{pair}");
        // Go's ParseFloat takes the same words.
        let value = pair[1].as_str().unwrap();
        (pair[0].as_f64().unwrap(), value.parse::<f64>().unwrap_or_else(|_| panic!("{value}")))
    };
    if matches!(kind, "scalar" | "string") {
        return vec![(Vec::new(), vec![point(result)])];
    }
    assert!(matches!(kind, "vector" | "matrix"), "{kind}");
    let series = |one: &Value| {
        let label = |(name, value): (&String, &Value)| (name.clone(), value.as_str().unwrap().to_owned());
        let labels = one["metric"].as_object().unwrap().iter().map(label).collect();
        let points = match kind {
            "vector" => vec![point(&one["value"])],
            _ => one["values"].as_array().unwrap().iter().map(point).collect(),
        };
        (labels, points)
    };
    result.as_array().unwrap().iter().map(series).collect()
}

/// A list of names.
fn names(answer: &Value) -> Vec<String> {
    assert_eq!(answer["status"], "success", "{answer}");
    answer["data"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

fn post(roundel: &Roundel, path: &str, form: &str) -> Value {
    let answer = request(roundel, "POST", path, form);
    assert!(answer.head.contains("content-type: application/json"), "{path}: {}", answer.head);
    answer.json()
}

#[test]
fn the_prometheus_data_source_is_answered() {
    let roundel = filled();
    let (start, end) = (end() - SECONDS, end());
    // Save & test.
    assert_eq!(frames(&post(&roundel, "/api/v1/query", "query=1%2B1&time=4")), [(vec![], vec![(4.0, 2.0)])]);
    let build = get(&roundel, "/api/v1/status/buildinfo").json();
    let version = build["data"]["version"].as_str().unwrap();
    assert!(version.split('.').count() == 3 && version.split('.').all(|part| part.parse::<u32>().is_ok()));
    assert!(build["data"]["features"].is_null(), "else it would be taken for one with a ruler");
    // The editor.
    let metadata = get(&roundel, "/api/v1/metadata?limit=40000").json();
    for (name, all) in metadata["data"].as_object().unwrap() {
        let one = &all[0];
        assert!(["type", "help", "unit"].iter().all(|key| one[*key].is_string()), "{name}: {all}");
        assert!(
            ["counter", "gauge", "unknown", "histogram", "summary"].contains(&one["type"].as_str().unwrap())
        );
    }
    assert_eq!(metadata["data"]["host_cpu_user_total"][0]["type"], "counter");
    let range = format!("start={start}&end={end}");
    let form = format!("{range}&limit=40000&match[]={}", encoded("{__name__=\"host_load_one\"}"));
    assert_eq!(names(&post(&roundel, "/api/v1/labels", &form)), ["__name__", "ds", "instance", "rrd"]);
    let target = format!("/api/v1/label/__name__/values?{range}&limit=40000");
    let all = names(&get(&roundel, &target).json());
    assert!(all.contains(&"snmp_interface_in_total".to_owned()) && all.is_sorted(), "{all:?}");
    let matched = encoded("{instance=\"localhost\",__name__=~\".*(?i)LOAD.*\"}");
    let target = format!("/api/v1/label/__name__/values?{range}&limit=40000&match[]={matched}");
    assert_eq!(names(&get(&roundel, &target).json()).len(), 3);
    assert_eq!(names(&get(&roundel, "/api/v1/label/U__instance/values").json()).len(), 5);
    let series =
        get(&roundel, &format!("/api/v1/series?{range}&limit=2&match[]={}", encoded("{__name__!=\"\"}")));
    assert_eq!(series.json()["data"].as_array().unwrap().len(), 2);
    // Panels.
    let query = encoded("sum by (instance) (rate(host_cpu_user_total{instance=~\"localhost\"}[1m0s]))");
    let form = format!("end={end}&query={query}&start={start}.000&step=15&timeout=30s");
    let found = frames(&post(&roundel, "/api/v1/query_range", &form));
    assert_eq!(found[0].0, [("instance".to_owned(), "localhost".to_owned())]);
    assert!(found[0].1.len() > 50 && found[0].1.windows(2).all(|two| two[1].0 - two[0].0 == 15.0));
    let tables = post(
        &roundel,
        "/api/v1/query",
        &format!("query={}&time={end}.500", encoded("topk(3, host_memory_total)")),
    );
    assert_eq!(frames(&tables)[0].1, [(end as f64 + 0.5, 1_024_000.0)]);
    // Once each, for what there is not.
    assert_eq!(get(&roundel, "/api/v1/rules").json()["data"]["groups"], json!([]));
    assert_eq!(get(&roundel, "/api/v1/alerts").json()["data"]["alerts"], json!([]));
    assert_eq!(
        get(&roundel, "/api/v1/query_exemplars?query=test").json(),
        json!({"status": "success", "data": []})
    );
    assert_eq!(post(&roundel, "/api/v1/query_exemplars", "query=test")["data"], json!([]));
    for missing in ["/api/v1/status/flags", "/api/v1/search/metric_names", "/ruler/rules"] {
        assert_eq!(get(&roundel, missing).status, 404, "{missing}");
    }
}

#[test]
fn errors_are_those_that_panels_show() {
    let roundel = filled();
    for (form, status, kind) in [
        ("query=sum(&start=0&end=60&step=15", 400, "bad_data"),
        ("query=a%2Bb&start=0&end=60&step=0", 400, "bad_data"),
        ("query=host_load_one%2Bon()host_load_one", 400, "bad_data"),
    ] {
        let answer = request(&roundel, "POST", "/api/v1/query_range", form);
        let body = answer.json();
        assert_eq!(
            (answer.status, &body["status"], &body["errorType"]),
            (status, &"error".into(), &kind.into())
        );
        assert!(body["error"].as_str().is_some_and(|text| text.len() > 10));
    }
    // Parameters that someone has added to the data source.
    let form = format!(
        "query=host_load_one&time={}&max_source_resolution=5m&dedup=true&partial_response=true",
        end()
    );
    assert_eq!(frames(&post(&roundel, "/api/v1/query", &form)).len(), 1);
}

/// What the data source makes of an answer of Graphite: targets with their points.
fn targets(answer: &Value) -> Vec<(String, usize)> {
    let one = |series: &Value| {
        for point in series["datapoints"].as_array().unwrap() {
            assert!((point[0].is_null() || point[0].is_number()) && point[1].is_i64(), "{point}");
        }
        assert!(series["tags"].as_object().unwrap().contains_key("name"), "{series}");
        (series["target"].as_str().unwrap().to_owned(), series["datapoints"].as_array().unwrap().len())
    };
    answer.as_array().unwrap().iter().map(one).collect()
}

#[test]
fn the_graphite_data_source_is_answered() {
    let roundel = filled();
    let (from, until) = (end() - SECONDS, end());
    let render = |target: &str, more: &str| {
        let form = format!("target={}&from={from}&until={until}&format=json{more}", encoded(target));
        post(&roundel, "/render", &form)
    };
    // Save & test, of now and of before.
    assert_eq!(targets(&render("constantLine(100)", ""))[0].1, 3);
    assert!(!get(&roundel, "/metrics/find?query=*").json().as_array().unwrap().is_empty());
    // Panels.
    let found = targets(&render("aliasByNode(net.sw1.*.in, 2)", "&maxDataPoints=1000"));
    assert_eq!(found.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["Gi0%2F1", "Gi0%2F2"]);
    assert!(found.iter().all(|(_, points)| *points == (SECONDS / 60) as usize));
    let few = targets(&render("localhost.load.one", "&maxDataPoints=5"));
    assert!(few[0].1 <= 5, "{few:?}");
    let tagged = render("groupByTags(seriesByTag('name=snmp_interface_in'), 'sum', 'instance')", "");
    assert_eq!(tagged[0]["tags"]["instance"], "sw1");
    // The editor.
    for (form, want) in [("query=net.*", "sw1"), ("query=localhost.lo*", "load")] {
        let found = post(&roundel, "/metrics/find", &format!("{form}&from={from}&until={until}"));
        let node = &found[0];
        assert_eq!(node["text"], want, "{found}");
        assert!(node["id"].is_string() && node["expandable"].is_number() && node["leaf"].is_number());
    }
    let expanded = get(&roundel, "/metrics/expand?query=net.*").json();
    assert_eq!(expanded["results"], json!(["net.sw1"]));
    let functions = get(&roundel, "/functions").json();
    for (name, function) in functions.as_object().unwrap() {
        assert!(function["params"].is_array() && function["group"].is_string(), "{name}: {function}");
        for parameter in function["params"].as_array().unwrap() {
            assert!(parameter["name"].is_string() && parameter["type"].is_string(), "{name}: {parameter}");
        }
    }
    assert_eq!(get(&roundel, "/version").status, 200);
    let tags = get(&roundel, "/tags/autoComplete/tags?limit=100&tagPrefix=in").json();
    assert_eq!(tags, json!(["instance", "interface"]));
    let expression = encoded("name=snmp_interface_in");
    let values = get(
        &roundel,
        &format!("/tags/autoComplete/values?limit=100&expr={expression}&tag=instance&valuePrefix="),
    );
    assert_eq!(values.json(), json!(["sw1"]));
    let events = format!("/events/get_data?from={from}&until={until}&tags=deploy");
    assert_eq!(get(&roundel, &events).json(), json!([]));
    // What is wrong is a text that the panel shows.
    let refused = request(&roundel, "POST", "/render", "target=sumSeries(&format=json");
    assert!(refused.status == 400 && refused.text().contains("at byte"), "{}", refused.text());
}
