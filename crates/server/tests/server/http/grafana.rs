//! Grafana: what it provisions, its dashboards on the RRDs that our collectors make, the requests of its data sources, and the programs
//! of Prometheus and VictoriaMetrics that ask the same.

mod dashboards;
mod files;
mod programs;
mod recorded;
mod replayed;

use serde_json::Value;

use super::rights::get_as;
use crate::common::http::{get, send};

/// A file of YAML.
fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn data_sources_have_the_address_and_the_interval_of_this_store() {
    let empty = super::graphite::empty();
    let text = get(&empty, "/grafana/datasources.yaml").text();
    assert!(
        yaml(&text)["datasources"][0]["jsonData"]["timeInterval"].is_null(),
        "no RRDs, no interval: {text}"
    );
    let roundel = recorded::filled();
    let answer = send(&roundel, "GET", "/grafana/datasources.yaml", "", b"");
    assert!(answer.head.contains("content-type: application/yaml"), "{}", answer.head);
    let file = yaml(&answer.text());
    let sources = file["datasources"].as_array().unwrap();
    assert_eq!(sources.len(), 2);
    assert_eq!(sources[0]["url"], "http://localhost");
    assert_eq!(sources[0]["jsonData"]["timeInterval"], "15s", "most are pushed, by the usual [[create]]");
    assert!(sources.iter().all(|source| source["secureJsonData"].is_null()));
    let file = yaml(&get(&roundel, "/grafana/datasources.yaml?url=https://a.example/r/").text());
    assert_eq!(file["datasources"][1]["url"], "https://a.example/r");
    let said = get_as(&roundel, Some("secret-token"), "/grafana/datasources.yaml").text();
    assert!(said.contains("Bearer $ROUNDEL_TOKEN") && !said.contains("secret-token"), "{said}");
    for bad in ["?url=ftp://a", "?url=http://u:p@a", "?url=", "?bogus=1"] {
        assert_eq!(get(&roundel, &format!("/grafana/datasources.yaml{bad}")).status, 400, "{bad}");
    }
    assert_eq!(get(&roundel, "/grafana/dashboards").json()["interval"], "15s");
    for (path, status) in [("host.json", 200), ("host", 404), ("none.json", 404), ("..%2fhost.json", 404)] {
        assert_eq!(get(&roundel, &format!("/grafana/dashboards/{path}")).status, status, "{path}");
    }
}

#[test]
fn a_client_sees_the_interval_of_what_it_may_read() {
    let (whole, _) = super::rights::both(true);
    for (who, status) in [(Some("ann"), 200), (None, 401)] {
        assert_eq!(get_as(&whole, who, "/grafana/datasources.yaml").status, status);
        assert_eq!(get_as(&whole, who, "/grafana/dashboards/host.json").status, status);
    }
    let text = get_as(&whole, Some("writer"), "/grafana/datasources.yaml").text();
    assert!(
        yaml(&text)["datasources"][0]["jsonData"]["timeInterval"].is_null(),
        "it may read nothing: {text}"
    );
}

/// What docs/grafana.md shows for Infinity: the list that a panel takes as its root, and columns of it.
#[test]
fn tables_of_infinity_have_their_columns() {
    let roundel = recorded::filled();
    let top = get(&roundel, "/api/v1/top?glob=net/**&by=max&start=end-1h").json();
    let first = &top["items"][0];
    assert!(first["name"].is_string() && first["ds"].is_string() && first["value"].is_number(), "{top}");
    assert!(get(&roundel, "/api/v1/status").json()["late"].is_array());
    let (start, end) = (recorded::end() - recorded::SECONDS, recorded::end());
    let target = format!(
        "/api/v1/xport?start={start}&end={end}&format=csv&arg=DEF:v=net/sw1/Gi0%252F1.rrd:in:AVERAGE&arg=CDEF:b=v,8,*&arg=XPORT:b:bits"
    );
    let text = get(&roundel, &target).text();
    assert!(text.lines().next() == Some("time,bits") && text.lines().count() > 10, "{text}");
}

#[test]
fn the_interval_is_that_of_the_finest_rows_of_most() {
    let roundel = super::graphite::empty();
    let mut client = testkit::Client::open(&roundel.socket());
    for (name, words, want) in [
        ("a", "-s 10 DS:x:GAUGE:20:U:U RRA:AVERAGE:0.5:1:10 RRA:AVERAGE:0.5:30:10", "10s"),
        // As many of one as of the other: the longer, so that a range has two rows of both.
        ("b", "-s 60 DS:x:GAUGE:120:U:U RRA:AVERAGE:0.5:1:10", "1m"),
        ("c", "-s 10 DS:x:GAUGE:20:U:U RRA:MAX:0.5:1:10 RRA:AVERAGE:0.5:6:10", "10s"),
        ("d", "-s 10 DS:x:GAUGE:20:U:U RRA:AVERAGE:0.5:6:10", "1m"),
    ] {
        let said = client.say(format!("CREATE {name}.rrd -b 1000000000 {words}"));
        assert!(said.starts_with('0'), "{said}");
        // The index is made again a moment after names have changed.
        testkit::wait_until(want, || get(&roundel, "/grafana/dashboards").json()["interval"] == want);
    }
}
