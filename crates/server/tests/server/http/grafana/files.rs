//! Dashboards have what Grafana's schema needs, and files of data sources are YAML that says what was meant.

use std::collections::BTreeSet;
use std::time::Duration;

use roundel_server::grafana::{
    DataSources, GRAPHITE_UID, PROMETHEUS_UID, PROMETHEUS_VERSION, checked_url, dashboards, interval_text,
    provider_yaml,
};
use serde_json::Value;

use super::yaml;

fn sources() -> DataSources {
    DataSources {
        url: "https://history.example:8443/r$x".into(),
        interval: Some(Duration::from_secs(300)),
        has_token: true,
        authority: Some("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n".into()),
    }
}

#[test]
fn data_sources_are_what_grafana_provisions() {
    let file = yaml(&sources().yaml());
    assert_eq!(file["apiVersion"], 1);
    let all = file["datasources"].as_array().unwrap();
    let of = |index: usize| (&all[index], &all[index]["jsonData"]);
    for (index, kind, uid) in [(0, "prometheus", PROMETHEUS_UID), (1, "graphite", GRAPHITE_UID)] {
        let (source, data) = of(index);
        assert_eq!(
            (&source["type"], &source["uid"], &source["access"]),
            (&kind.into(), &uid.into(), &"proxy".into())
        );
        assert_eq!(source["url"], "https://history.example:8443/r$$x", "Grafana makes one of two");
        assert_eq!(data["httpHeaderName1"], "Authorization");
        assert_eq!(source["secureJsonData"]["httpHeaderValue1"], "Bearer $ROUNDEL_TOKEN");
        assert_eq!(data["tlsAuthWithCACert"], true);
        assert_eq!(source["secureJsonData"]["tlsCACert"], sources().authority.unwrap());
    }
    let (_, prometheus) = of(0);
    assert_eq!(prometheus["timeInterval"], "5m");
    assert_eq!(prometheus["httpMethod"], "POST");
    assert_eq!(prometheus["prometheusVersion"], PROMETHEUS_VERSION);
    assert_eq!(of(1).1["graphiteVersion"], "1.1");
    assert_eq!(of(1).1["rollupIndicatorEnabled"], false);
}

#[test]
fn what_is_not_needed_is_not_there() {
    let text = DataSources { interval: None, has_token: false, authority: None, ..sources() }.yaml();
    let file = yaml(&text);
    for source in file["datasources"].as_array().unwrap() {
        assert!(source["secureJsonData"].is_null() && source["jsonData"]["timeInterval"].is_null(), "{text}");
    }
    let provider = &yaml(&provider_yaml("/etc/grafana/x: y"))["providers"][0];
    assert_eq!(
        (&provider["type"], &provider["options"]["path"]),
        (&"file".into(), &"/etc/grafana/x: y".into())
    );
}

#[test]
fn intervals_and_addresses_are_those_of_grafana() {
    for (milliseconds, want) in [
        (500, "500ms"),
        (10_000, "10s"),
        (60_000, "1m"),
        (90_000, "90s"),
        (3_600_000, "1h"),
        (86_400_000, "1d"),
    ] {
        assert_eq!(interval_text(Duration::from_millis(milliseconds)), want);
    }
    assert_eq!(checked_url("https://a.example/roundel/"), Ok("https://a.example/roundel".to_owned()));
    for bad in ["a:80", "ftp://a", "http://", "http://a b", "http://u:p@a", "http://a/?x", "http://a/#x"] {
        assert!(checked_url(bad).is_err(), "{bad}");
    }
}

/// Whether two panels share a place.
fn overlap(a: &Value, b: &Value) -> bool {
    let of = |place: &Value, key: &str| place[key].as_u64().unwrap();
    let apart =
        |at: &str, size: &str| of(a, at) + of(a, size) <= of(b, at) || of(b, at) + of(b, size) <= of(a, at);
    !apart("x", "w") && !apart("y", "h")
}

#[test]
fn dashboards_have_what_grafana_needs() {
    assert_eq!(dashboards().len(), 5, "each description can be read");
    let mut uids = BTreeSet::new();
    for dashboard in dashboards() {
        let value: Value = serde_json::from_str(&dashboard.json()).unwrap();
        assert!(uids.insert(value["uid"].as_str().unwrap().to_owned()) && dashboard.uid().len() <= 40);
        assert!(value["schemaVersion"].as_u64().unwrap() >= 36 && value["id"].is_null());
        let variables = value["templating"]["list"].as_array().unwrap();
        let mut known: BTreeSet<&str> = variables.iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(known.len(), variables.len());
        assert_eq!(variables[0]["current"]["value"], PROMETHEUS_UID);
        known.extend(["__rate_interval", "__interval", "__range"]);
        let panels = value["panels"].as_array().unwrap();
        let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
        assert_eq!(ids.len(), panels.len(), "{}", dashboard.name);
        for (index, panel) in panels.iter().enumerate() {
            let place = &panel["gridPos"];
            assert!(
                place["x"].as_u64().unwrap() + place["w"].as_u64().unwrap() <= 24
                    && place["h"].as_u64().unwrap() > 0
            );
            for other in &panels[..index] {
                assert!(!overlap(place, &other["gridPos"]), "{}: {panel} {other}", dashboard.name);
            }
            if panel["type"] == "row" {
                continue;
            }
            assert_eq!(panel["datasource"]["uid"], "${datasource}");
            let targets = panel["targets"].as_array().unwrap();
            assert!(!targets.is_empty());
            for target in targets {
                let expr = target["expr"].as_str().unwrap();
                assert_eq!(target["datasource"], panel["datasource"]);
                for named in expr.split('$').skip(1) {
                    let end =
                        named.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(named.len());
                    assert!(known.contains(&named[..end]), "{}: {expr}", dashboard.name);
                }
            }
        }
    }
}
