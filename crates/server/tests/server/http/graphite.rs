//! Graphite's API: its shapes, its refusals, which archives answer, and the requests that Grafana's data source sends.

use protocol::rrdcached::command::Permissions;
use roundel_server::service::CreatePolicy;
use serde_json::{Value, json};
use testkit::Client;

use crate::common::Roundel;
use crate::common::http::{get, request, send};

const START: i64 = 1_700_000_000;

/// A daemon with two hosts, of which one has a name with dots.
fn filled() -> Roundel {
    let create = CreatePolicy { make_directories: true, ..Default::default() };
    let roundel = Roundel::stripes(create, Permissions::ALL);
    let mut client = Client::open(&roundel.socket());
    for (factor, name) in [(1, "net/web.example/if.rrd"), (2, "net/db/if.rrd"), (3, "top.rrd")] {
        let words = format!(
            "-s 10 -b {START} DS:in:GAUGE:20:U:U DS:out:DERIVE:20:0:U RRA:AVERAGE:0.5:1:100 RRA:AVERAGE:0.5:10:1000 RRA:MAX:0.5:10:1000"
        );
        assert!(client.say(format!("CREATE {name} {words}")).starts_with('0'));
        for row in 1..=300 {
            let said = client.say(format!(
                "UPDATE {name} {}:{}:{}",
                START + 10 * row,
                factor * (row % 10),
                100 * row
            ));
            assert!(said.starts_with('0'), "{said}");
        }
    }
    roundel
}

/// A daemon without RRDs.
pub(super) fn empty() -> Roundel {
    Roundel::stripes(CreatePolicy::default(), Permissions::ALL)
}

fn render(roundel: &Roundel, target: &str, more: &str) -> Value {
    let answer = get(roundel, &format!("/render?format=json&target={target}{more}"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

#[test]
fn what_grafana_asks_is_answered() {
    let roundel = filled();
    let end = START + 3000;
    let body = format!(
        "target=aliasByNode(net.*.if.in%2C%201)&target=top.in&from={}&until={end}&format=json&maxDataPoints=1000",
        end - 30
    );
    for path in ["/render", "/render/", "/graphite/render"] {
        let found = request(&roundel, "POST", path, &body).json();
        assert_eq!(
            found[1],
            json!({"target": "web_example", "tags": {"name": "net.web_example.if.in"},
                "datapoints": [[8.0, end - 30], [9.0, end - 20], [0.0, end - 10]]}),
            "{path}"
        );
        assert_eq!(found.as_array().unwrap().len(), 3);
    }
    let line = render(&roundel, "constantLine(100)", "");
    assert_eq!(line[0]["datapoints"].as_array().unwrap().len(), 3);
    let find = |query: &str| get(&roundel, &format!("/metrics/find{query}")).json();
    assert_eq!(
        find("?query=net.*"),
        json!([
            {"text": "db", "id": "net.db", "allowChildren": 1, "expandable": 1, "leaf": 0},
            {"text": "web_example", "id": "net.web_example", "allowChildren": 1, "expandable": 1, "leaf": 0},
        ])
    );
    assert_eq!(find("/?query=net.db.if.*")[1]["leaf"], 1);
    assert_eq!(
        find("?query=t&format=completer"),
        json!({"metrics": [{"path": "top.", "name": "top", "is_leaf": "0"}]})
    );
    assert_eq!(
        get(&roundel, "/metrics/expand?query=*.*&leavesOnly=1").json(),
        json!({"results": ["top.in", "top.out"]})
    );
    for (pattern, want) in [
        ("**.out", &["net.db.if.out", "net.web_example.if.out", "top.out"][..]),
        ("net.**.in", &["net.db.if.in", "net.web_example.if.in"]),
        ("net.db.**", &["net.db.if.in", "net.db.if.out"]),
        ("net.db.if.**", &["net.db.if.in", "net.db.if.out"]),
        ("net.db.if.**.in", &["net.db.if.in"]),
        ("**.db.*.in", &["net.db.if.in"]),
    ] {
        let found = get(&roundel, &format!("/metrics/expand?query={pattern}&leavesOnly=1")).json();
        assert_eq!(found, json!({"results": want}), "{pattern}");
    }
    assert_eq!(get(&roundel, "/metrics/index.json").json().as_array().unwrap().len(), 6);
    assert!(get(&roundel, "/functions").json()["sumSeries"]["params"][0]["multiple"].as_bool().unwrap());
    assert_eq!(get(&roundel, "/functions/alias").json()["group"], "Alias");
    assert_eq!(get(&roundel, "/functions/none").status, 404);
    assert_eq!(get(&roundel, "/version").text(), "1.1.10");
    assert_eq!(get(&roundel, "/tags/autoComplete/tags?tagPrefix=n").json(), json!(["name"]));
    assert_eq!(
        get(&roundel, "/tags/autoComplete/values?tag=rrd&expr=ds%3Din&valuePrefix=net").json(),
        json!(["net/db/if", "net/web.example/if"])
    );
    assert_eq!(get(&roundel, "/events/get_data?tags=x").json(), json!([]));
}

#[test]
fn what_was_pushed_has_the_path_that_it_came_with() {
    let roundel = filled();
    let mut client = Client::open(&roundel.socket());
    for name in ["series/net/db/load", "series/net/db/load_five", "series/net/tagged,a=b", "series/two"] {
        let sources = if name.ends_with("two") {
            "DS:a:GAUGE:20:U:U DS:b:GAUGE:20:U:U"
        } else {
            "DS:value:GAUGE:20:U:U"
        };
        let said = client.say(format!("CREATE {name}.rrd -s 10 -b {START} {sources} RRA:AVERAGE:0.5:1:100"));
        assert!(said.starts_with('0'), "{said}");
    }
    assert!(
        client
            .say(format!("UPDATE series/net/db/load.rrd {}:7 {}:8", START + 10, START + 20))
            .starts_with('0')
    );
    let range = format!("&from={START}&until={}", START + 20);
    for target in ["net.db.load", "net.*.load", "net.**.load", "net.d[b].lo*d", "series.net.db.load.value"] {
        let found = render(&roundel, target, &range);
        let name = if target.starts_with("series") { target } else { "net.db.load" };
        assert_eq!(
            (&found[0]["target"], &found[0]["datapoints"]),
            (&json!(name), &json!([[7.0, START], [8.0, START + 10]])),
            "{target}"
        );
        assert_eq!(found.as_array().unwrap().len(), 1, "{target}");
    }
    let expanded =
        |pattern: &str| get(&roundel, &format!("/metrics/expand?query={pattern}")).json()["results"].clone();
    // Beside what is called so itself: a branch of both.
    assert_eq!(expanded("net.db.*"), json!(["net.db.if", "net.db.load", "net.db.load_five"]));
    assert_eq!(expanded("n*"), json!(["net"]));
    assert_eq!(
        expanded("net.*"),
        json!(["net.db", "net.web_example"]),
        "what has labels is not found by a path"
    );
    assert_eq!(expanded("two"), json!([]), "not a series, as it has two sources");
    let found = get(&roundel, "/metrics/find?query=net.db.*").json();
    assert_eq!((&found[1]["text"], &found[1]["leaf"]), (&json!("load"), &json!(1)));
    let all = get(&roundel, "/metrics/index.json").json();
    assert!(all.as_array().unwrap().contains(&json!("net.db.load")), "{all}");
}

#[test]
fn archives_follow_consolidate_by() {
    let roundel = filled();
    // Beyond the 1,000 s of the finest archive.
    let range = format!("&from={}&until={}", START + 200, START + 3000);
    let first = |target: &str, more: &str| {
        render(&roundel, target, &format!("{range}{more}"))[0]["datapoints"][1][0].clone()
    };
    assert_eq!(first("top.in", ""), 13.5);
    assert_eq!(first("consolidateBy(top.in,'max')", ""), 27.0);
    assert_eq!(first("consolidateBy(alias(top.in,'x'),'max')", ""), 27.0);
    assert_eq!(
        first("consolidateBy(sumSeries(top.in,net.*.if.in),'max')", ""),
        27.0,
        "averages: 13.5 + 4.5 + 9"
    );
    assert_eq!(first("consolidateBy(top.in,'max')", "&maxDataPoints=5"), 27.0);
    // In rows of one reading nothing differs; LAST is not kept.
    let recent = format!("&from={}&until={}", START + 2500, START + 3000);
    assert_eq!(
        render(&roundel, "consolidateBy(top.in,'max')", &recent)[0]["datapoints"].as_array().unwrap().len(),
        50
    );
    assert_eq!(first("consolidateBy(top.in,'last')", ""), 13.5);
    // The counter of a rate, and its rate again.
    let rates = render(&roundel, "perSecond(seriesByTag('name=rrd_out_total','rrd=top'))", &recent);
    assert_eq!(rates[0]["datapoints"][5][0], 10.0);
    assert_eq!(rates[0]["tags"]["rrd"], "top");
}

#[test]
fn other_formats_have_their_types() {
    let roundel = filled();
    let end = START + 3000;
    let range = format!("&from={}&until={end}", end - 20);
    let answer = |format: &str| {
        get(&roundel, &format!("/render?target=top.in&title=T&width=300{range}&format={format}"))
    };
    assert_eq!(answer("raw").text(), format!("top.in,{},{},10|27.0,0.0\n", end - 20, end + 10));
    assert!(answer("csv").text().starts_with("top.in,20"));
    assert!(answer("png").body.starts_with(b"\x89PNG"));
    assert!(!answer("").body.starts_with(b"<?xml") && answer("svg").text().contains("<svg"));
    assert!(answer("msgpack").body.starts_with(b"\x91\x89\xa4name"));
    assert!(answer("pickle").body.starts_with(b"\x80\x02]("));
    let none = get(&roundel, "/render?target=none&format=svg");
    assert!(none.status == 200 && none.text().contains("<svg"));
    assert_eq!(get(&roundel, "/render?target=none&format=json").text(), "[]");
}

#[test]
fn refusals_are_texts_that_say_what_to_do() {
    let roundel = filled();
    let deep = "absolute(".repeat(1000);
    let long = "x".repeat(60_000);
    let shifts = (0..40).fold("constantLine(1)".to_owned(), |inner, _| format!("timeShift({inner},'1h')"));
    for (target, want) in [
        ("target=sumSeries(", "missing"),
        ("target=nothing(top.in)", "there is no function"),
        ("target=SumSeries(top.in)", "did you mean sumSeries"),
        ("target=scale(top.in)", "needs \"factor\""),
        ("target=scale(top.in,'x')", "takes float"),
        ("target=alias(top.in,'x','y')", "at most 2"),
        ("target=summarize(top.in,'0s')", "longer than nothing"),
        ("target=aliasSub(top.in,'(','')", "regular expression"),
        ("target=top.in&from=yesterdayx", "from:"),
        ("target=top.in&from=5&until=5", "equal"),
        ("target=top.in&maxDataPoints=0", "maxDataPoints"),
        ("target=top.in&xFilesFactor=x", "xFilesFactor"),
        ("target=top.in&format=xml", "format=xml"),
        ("target=top.in&jsonp=f", "jsonp"),
        ("target=top.in&width=100000", "width"),
        ("target=**.**", "once"),
        ("target=timeFunction('x',1)&from=1&until=99999999999", "memory"),
        (&*format!("target=timeFunction('{long}',1)&from=-1d&format=csv"), "memory"),
        (&*format!("target={deep}"), "nested"),
        (&*format!("target={shifts}"), "calls"),
        (&*format!("target={}", "a".repeat(70_000)), "more than 65536"),
        (&*"target=a&".repeat(2001), "more than 2000 targets"),
        (&*format!("target=a&x={}", "y".repeat(300_000)), "longer than"),
    ] {
        let format = if target.contains("format") { "" } else { "&format=json" };
        let answer = request(&roundel, "POST", "/render", &format!("{target}{format}"));
        assert!(
            answer.status == 400 && answer.text().contains(want),
            "{want}: {} {}",
            answer.status,
            answer.text()
        );
    }
    for kind in ["application/json", "multipart/form-data; boundary=x"] {
        let kind = format!("Content-Type: {kind}\r\n");
        let answer = send(&roundel, "POST", "/render", &kind, b"target=top.in");
        assert!(answer.status == 400 && answer.text().contains("www-form-urlencoded"), "{}", answer.text());
    }
    for path in
        ["find", "find?query=", "find?query=*&format=x", "find?query=*&position=x", "find?query=*&jsonp=x"]
    {
        assert_eq!(get(&roundel, &format!("/metrics/{path}")).status, 400, "{path}");
    }
    assert_eq!(get(&roundel, "/tags/autoComplete/values").status, 400);
    assert_eq!(get(&roundel, "/tags/findSeries?expr=x").status, 400);
}
