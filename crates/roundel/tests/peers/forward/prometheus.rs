//! Debian's Prometheus as a remote-write receiver.

use std::path::{Path, PathBuf};

use testkit::{Running, http_get, wait_until};

use super::{create, directory, forwarder, metric, update};

/// Debian's; `None`, and the test is skipped, without it.
pub(super) fn program() -> Option<PathBuf> {
    testkit::peer::debian("prometheus", "/usr/bin/prometheus")
}

fn start(program: &Path, directory: &Path, port: u16) -> Running {
    let prometheus = spawn(program, directory, port, &[]);
    wait_until("prometheus to be ready", || {
        http_get(port, "/-/ready").is_some_and(|answer| answer.starts_with("HTTP/1.1 200"))
    });
    prometheus
}

/// Starts it with more options; it answers later.
pub(super) fn spawn(program: &Path, directory: &Path, port: u16, more: &[&str]) -> Running {
    let config = directory.join("prometheus.yml");
    std::fs::write(&config, "global: {}\n").unwrap();
    let words = [
        format!("--config.file={}", config.display()),
        format!("--storage.tsdb.path={}", directory.join("tsdb").display()),
        format!("--web.listen-address=127.0.0.1:{port}"),
        "--web.enable-remote-write-receiver".to_owned(),
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).chain(more.iter().copied()).collect();
    Running::program(&directory.join("prometheus.log"), program, &words)
}

/// The samples of a series, as (seconds, value).
fn samples(port: u16, query: &str, at: u64) -> Vec<(f64, String)> {
    let target = format!("/api/v1/query?query={query}&time={at}");
    let Some(answer) = http_get(port, &target) else { return Vec::new() };
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    // It may come in chunks, whose lengths stand between.
    let json = &body[body.find('{').unwrap()..=body.rfind('}').unwrap()];
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    let result = json["data"]["result"].as_array().unwrap();
    let Some(series) = result.first() else { return Vec::new() };
    let values = series["values"].as_array().unwrap().iter();
    values.map(|pair| (pair[0].as_f64().unwrap(), pair[1].as_str().unwrap().to_owned())).collect()
}

#[test]
fn a_prometheus_gets_each_source_as_a_series_and_keeps_what_is_new() {
    let Some(program) = program() else { return };
    let directory = directory();
    let port = testkit::free_port();
    let to = format!("http://127.0.0.1:{port}/api/v1/write");
    let (mut first, http) = forwarder(directory.path(), &to, "");
    let mut client = first.start();
    // It takes only times around now.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let line = format!(
        "CREATE net/sw1.rrd -s 1 -b {} DS:in-octets:COUNTER:60:0:U DS:load:GAUGE:60:U:U RRA:LAST:0.5:1:100",
        now - 100
    );
    assert_eq!(client.ask(&line).unwrap().status, 0);
    create(&mut client, "old.rrd");
    let send = |client: &mut testkit::Client, ago: u64, values: &str| {
        assert_eq!(client.ask(&format!("UPDATE net/sw1.rrd {}:{values}", now - ago)).unwrap().status, 0);
    };
    send(&mut client, 90, "1000:0.5");
    send(&mut client, 80, "2000:U");
    let prometheus = start(&program, directory.path(), port);
    wait_until("the first readings", || metric(http, "sent_total", None) == 2);
    // Years too old for it, between others.
    send(&mut client, 70, "3000:0.7");
    update(&mut client, "old.rrd", 1);
    send(&mut client, 60, "4000:0.8");
    wait_until("the refusal of what is too old", || metric(http, "refused_total", Some("not_newer")) == 1);
    let at = |ago: u64| (now - ago) as f64;
    let octets = "rrd_in_octets{rrd=\"net/sw1\"}[10m]".replace('"', "%22");
    let want = [(at(90), "1000"), (at(80), "2000"), (at(70), "3000"), (at(60), "4000")];
    let owned = |all: &[(f64, &str)]| {
        all.iter().map(|(time, value)| (*time, (*value).to_owned())).collect::<Vec<_>>()
    };
    wait_until("the counter's readings", || samples(port, &octets, now) == owned(&want));
    let load = "rrd_load{ds=\"load\"}[10m]".replace('"', "%22");
    assert_eq!(samples(port, &load, now), owned(&[(at(90), "0.5"), (at(70), "0.7"), (at(60), "0.8")]));
    // Away for a while, and sent again from the start: nothing is there twice.
    prometheus.terminate();
    send(&mut client, 50, "5000:0.9");
    wait_until("that it is away", || metric(http, "reached", None) == 0);
    first.kill();
    let file = first.directory().join("store/forward/target");
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    std::fs::write(&file, format!("{}\n{}\n0:0\n0:0\n", lines[0], lines[1])).unwrap();
    first.start();
    let _prometheus = start(&program, directory.path(), port);
    let want = [&want[..], &[(at(50), "5000")]].concat();
    wait_until("the last reading", || samples(port, &octets, now) == owned(&want));
}

#[test]
fn a_roundel_gets_by_remote_write_what_was_pushed_to_another() {
    let directory = directory();
    let mut second = testkit::daemon!(testkit::Kind::Stripes, &directory.path().join("second"));
    let port = testkit::free_port();
    second.configure(&format!(
        "[http]\nlisten = [\"127.0.0.1:{port}\"]\n\n[[create]]\npath = \"all/{{name}}\"\nstep = \"1s\"\n"
    ));
    second.start();
    let (mut first, http) = forwarder(directory.path(), &format!("http://127.0.0.1:{port}/api/v1/write"), "");
    let mut client = first.start();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    for (name, ds) in [("instances/a:1/up,job=node.rrd", "value"), ("net/sw1.rrd", "load")] {
        let line = format!("CREATE {name} -s 1 -b {} DS:{ds}:GAUGE:60:U:U RRA:LAST:0.5:1:100", now - 60);
        assert_eq!(client.ask(&line).unwrap().status, 0);
        for second in 0..20 {
            assert_eq!(
                client.ask(&format!("UPDATE {name} {}:{second}", now - 50 + second)).unwrap().status,
                0
            );
        }
    }
    wait_until("the readings to be sent", || metric(http, "sent_total", None) == 40);
    let selector = "{__name__=~\"up|rrd_load\"}".replace('"', "%22");
    let answer = testkit::http_get(port, &format!("/api/v1/series?match[]={selector}")).unwrap();
    for labels in [
        r#"{"__name__":"up","instance":"a:1","job":"node"}"#,
        r#"{"__name__":"rrd_load","ds":"load","rrd":"net/sw1"}"#,
    ] {
        assert!(answer.contains(labels), "{answer}");
    }
    let rows = samples(port, "up[1m]", now - 31);
    assert_eq!(rows.last().map(|(_, value)| value.as_str()), Some("19"), "{rows:?}");
}
