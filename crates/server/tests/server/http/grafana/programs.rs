//! promtool and vmalert ask as their operators have them ask. vmctl cannot: Debian's (1.79) reads snapshots of a Prometheus and writes to
//! VictoriaMetrics' own import, which we have not.

use std::process::Command;

use testkit::{Running, peer};

use super::super::prometheus::encoded;
use super::recorded::{SECONDS, end, filled};
use crate::common::Roundel;
use crate::common::http::get;

fn url(roundel: &Roundel) -> String {
    format!("http://{}", std::fs::read_to_string(roundel.path("http")).unwrap())
}

#[test]
fn promtool_asks_what_there_is() {
    let Some(program) = peer::debian("prometheus", "/usr/bin/promtool") else { return };
    let roundel = filled();
    let (start, end) = ((end() - SECONDS).to_string(), end().to_string());
    let promtool = |words: &[&str]| {
        let output = Command::new(&program).args(words).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), text + &String::from_utf8_lossy(&output.stderr))
    };
    let url = url(&roundel);
    let range = [format!("--start={start}"), format!("--end={end}")];
    let [from, to] = [&*range[0], &*range[1]];
    let load = "host_load_one{instance=\"localhost\"}";
    for (words, want) in [
        (&["query", "instant", &url, load][..], "=> 0.05 @["),
        (&["query", "instant", "--time", &end, &url, "count(host_cpu_idle)"], "{} => 2 @["),
        (
            &["query", "range", from, to, "--step=60s", &url, load],
            "host_load_one{ds=\"one\", instance=\"localhost\"",
        ),
        (&["query", "series", "--match=snmp_interface_in", from, to, &url], "interface=\"Gi0%2F1\""),
        (&["query", "labels", from, to, &url, "interface"], "Gi0%2F2"),
    ] {
        let (is_good, text) = promtool(words);
        assert!(is_good && text.contains(want), "{words:?}: {text}");
    }
    let (is_good, text) = promtool(&["query", "instant", &url, "sum("]);
    assert!(!is_good && text.contains("parse error"), "{text}");
}

#[test]
fn vmalert_evaluates_rules_here_and_writes_back() {
    let Some(program) = peer::debian("victoria-metrics", "/usr/bin/vmalert") else { return };
    let roundel = filled();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let rules = "groups:\n- name: roundel\n  interval: 1s\n  rules:\n  - record: instance:host_load:max\n    expr: max by (instance) \
                 (last_over_time(host_load_one[1h]))\n  - alert: TooMuchFree\n    expr: last_over_time(host_memory_free[1h]) > 1\n    \
                 labels: {severity: page}\n    annotations: {summary: '{{ $labels.instance }} has {{ $value }}'}\n";
    std::fs::write(path("rules.yml"), rules).unwrap();
    let (url, port) = (url(&roundel), testkit::free_port());
    let words = [
        format!("-rule={}", path("rules.yml")),
        format!("-datasource.url={url}"),
        format!("-remoteWrite.url={url}"),
        format!("-remoteRead.url={url}"),
        "-remoteWrite.flushInterval=1s".to_owned(),
        "-notifier.url=http://127.0.0.1:9".to_owned(),
        format!("-httpListenAddr=127.0.0.1:{port}"),
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let _vmalert = Running::program(&directory.path().join("vmalert.log"), program, &words);
    testkit::wait_until("the alert", || {
        let alerts = testkit::http_get(port, "/api/v1/alerts").unwrap_or_default();
        alerts.contains("TooMuchFree") && alerts.contains("localhost has 409600")
    });
    for query in [
        "last_over_time({\"instance:host_load:max\",instance=\"localhost\"}[1h])",
        "last_over_time(ALERTS{alertname=\"TooMuchFree\",alertstate=\"firing\"}[1h])",
    ] {
        testkit::wait_until(query, || {
            // A row of 15 s is complete after its end.
            let target = format!("/api/v1/query?query={}&time={}", encoded(query), end() + 120);
            let answer = get(&roundel, &target).json();
            answer["data"]["result"].as_array().is_some_and(|all| !all.is_empty())
        });
    }
}
