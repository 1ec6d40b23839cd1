//! Every expression and every variable of every dashboard has an answer, on what our collectors record.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::prometheus::encoded;
use super::recorded::{SECONDS, end, filled};
use crate::common::Roundel;
use crate::common::http::{get, request};

/// The seconds between points of a panel of a thousand pixels over the whole range: the interval of the data source.
const INTERVAL: i64 = 10;

/// What Grafana puts in the place of its own variables, for a data source of an interval of 10 s.
fn substituted(text: &str, chosen: &BTreeMap<String, String>) -> String {
    let rate_interval = (INTERVAL + INTERVAL).max(4 * INTERVAL);
    let own = [
        ("__rate_interval", format!("{rate_interval}s")),
        ("__interval", format!("{INTERVAL}s")),
        ("__range", format!("{SECONDS}s")),
    ];
    let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
    let mut text = text.to_owned();
    for (name, value) in own.chain(chosen.clone()) {
        text = text.replace(&format!("${name}"), &value);
    }
    assert!(!text.contains('$'), "{text}");
    text
}

/// The values of `label_values(METRIC{...}, LABEL)`, asked as Grafana asks.
fn values(roundel: &Roundel, query: &str) -> Vec<String> {
    let inner = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')')).unwrap();
    let (selector, label) = inner.rsplit_once(", ").unwrap();
    let (start, end) = (end() - SECONDS, end());
    let target = format!(
        "/api/v1/label/{label}/values?match[]={}&start={start}&end={end}&limit=40000",
        encoded(selector)
    );
    let answer = get(roundel, &target).json();
    assert_eq!(answer["status"], "success", "{query}: {answer}");
    answer["data"].as_array().unwrap().iter().map(|value| value.as_str().unwrap().to_owned()).collect()
}

/// Checks that an answer has a value for each series, of a number.
fn check(answer: &Value, what: &str) {
    assert_eq!(answer["status"], "success", "{what}: {answer}");
    let series = answer["data"]["result"].as_array().unwrap();
    assert!(!series.is_empty(), "{what}: no data");
    for one in series {
        let points = one["values"].as_array().cloned().unwrap_or_else(|| vec![one["value"].clone()]);
        assert!(!points.is_empty(), "{what}: {one}");
        for point in points {
            let value = point[1].as_str().unwrap().parse::<f64>().unwrap_or(f64::NAN);
            assert!(point[0].is_number() && value.is_finite(), "{what}: {point}");
        }
    }
    // Of an archive that is not kept, or of a rate of a rate.
    assert!(answer["warnings"].is_null(), "{what}: {}", answer["warnings"]);
    let infos = answer["infos"].to_string();
    assert!(!infos.contains("a rate already"), "{what}: {infos}");
}

#[test]
fn every_expression_of_every_dashboard_has_data() {
    let roundel = filled();
    let list = get(&roundel, "/grafana/dashboards").json();
    let (mut variables, mut expressions) = (0, 0);
    for item in list["items"].as_array().unwrap() {
        let dashboard = get(&roundel, item["path"].as_str().unwrap()).json();
        assert_eq!(dashboard["uid"], item["uid"]);
        let mut chosen = BTreeMap::new();
        for variable in dashboard["templating"]["list"].as_array().unwrap() {
            if variable["type"] != "query" {
                continue;
            }
            variables += 1;
            let query = substituted(variable["query"]["query"].as_str().unwrap(), &chosen);
            let found = values(&roundel, &query);
            assert!(!found.is_empty(), "{}: {query}", item["name"]);
            let value = match variable["multi"] == true {
                true => variable["allValue"].as_str().unwrap().to_owned(),
                false => found[0].clone(),
            };
            chosen.insert(variable["name"].as_str().unwrap().to_owned(), value);
        }
        for panel in dashboard["panels"].as_array().unwrap() {
            for target in panel["targets"].as_array().into_iter().flatten() {
                expressions += 1;
                let query = substituted(target["expr"].as_str().unwrap(), &chosen);
                let what = format!("{}, {}: {query}", item["name"], panel["title"]);
                let text = encoded(&query);
                let answer = match target["instant"] == true {
                    true => {
                        request(&roundel, "POST", "/api/v1/query", &format!("query={text}&time={}", end()))
                    }
                    false => {
                        let (start, end) = (end() - SECONDS / 2, end());
                        let form = format!("query={text}&start={start}&end={end}&step={INTERVAL}");
                        request(&roundel, "POST", "/api/v1/query_range", &form)
                    }
                };
                check(&answer.json(), &what);
                legend(target["legendFormat"].as_str().unwrap(), &answer.json(), &what);
            }
        }
    }
    assert!(variables >= 10 && expressions >= 90, "{variables} variables, {expressions} expressions");
}

/// Checks that each label that a legend shows is there.
fn legend(format: &str, answer: &Value, what: &str) {
    for label in format.split("{{").skip(1).filter_map(|rest| rest.split_once("}}")) {
        for series in answer["data"]["result"].as_array().unwrap() {
            assert!(series["metric"][label.0].is_string(), "{what}: no {} for the legend", label.0);
        }
    }
}

#[test]
fn an_interface_is_called_by_its_device() {
    let roundel = filled();
    assert_eq!(values(&roundel, "label_values(snmp_interface_in, instance)"), ["sw1"]);
    assert_eq!(values(&roundel, "label_values(snmp_interface_in, interface)"), ["Gi0%2F1", "Gi0%2F2"]);
    assert_eq!(values(&roundel, "label_values(host_interface_receive_bytes, device)"), ["eth0", "lo"]);
}
