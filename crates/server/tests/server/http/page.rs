//! The pages, and the endpoints that they use.

use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};
use suggest::{Label, LabelGraph, LabelLine};

use super::*;

/// The answer to charts of these arguments, over the range that the RRDs have values in.
fn charts(roundel: &Roundel, charts: &Value) -> Value {
    let body = json!({"start": 1_000_000_000, "end": 1_000_000_060, "width": 400, "charts": charts});
    let answer = request(roundel, "POST", "/api/v1/charts", &body.to_string());
    assert_eq!(answer.status, 200, "{}", answer.text());
    let errors: Vec<String> = schema(&description(roundel), "Charts")
        .iter_errors(&answer.json())
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:?}\n{}", answer.text());
    answer.json()["charts"].clone()
}

#[test]
fn charts_have_the_numbers_of_rrdtools_print() {
    let roundel = filled();
    let words = "DEF:a=d/x.rrd:a:AVERAGE CDEF:v=a,3,* LINE2:v#ff8000:three";
    let functions = [
        ("last", "LAST"),
        ("average", "AVERAGE"),
        ("minimum", "MINIMUM"),
        ("maximum", "MAXIMUM"),
        ("percentile", "95,PERCENTNAN"),
        ("total", "TOTAL"),
    ];
    let arg: Vec<&str> = words.split(' ').collect();
    let answer = charts(&roundel, &json!([{ "arg": arg }]));
    let chart = &answer[0];
    let mut command = Command::new("/usr/bin/rrdtool");
    command.args("graph /dev/null -s 1000000000 -e 1000000060 -w 400".split(' ')).args(&arg);
    for (name, function) in functions {
        command.arg(format!("VDEF:{name}=v,{function}")).arg(format!("PRINT:{name}:%.12le"));
    }
    command.current_dir(roundel.base());
    command.env("RRDCACHED_ADDRESS", format!("unix:{}", roundel.socket().display()));
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let printed: Vec<f64> = text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
    for ((name, _), want) in functions.iter().zip(&printed[printed.len() - functions.len()..]) {
        let got = chart["numbers"][0][name].as_f64().unwrap();
        assert!((got - want).abs() <= want.abs() * 1e-11, "{name}: {got}, not {want}: {text}");
    }
    assert_eq!(chart["elements"][0]["color"], "#ff8000");
    assert_eq!(chart["elements"][0]["label"], "three");
    assert_eq!(chart["sources"][0]["ds"], "a", "a CDEF knows what it was computed from");
    // 20 rows of 10 s up to the last update.
    let wanted = serde_json::json!({"last_update": 1_000_000_050.0, "oldest": 999_999_850.0, "heartbeat": 20.0, "minimum": null, "maximum": null});
    for (member, value) in wanted.as_object().unwrap() {
        assert_eq!(&chart["sources"][0][member], value, "{member}");
    }
    let exported = get(
        &roundel,
        "/api/v1/xport?start=1000000000&end=1000000060&arg=DEF:a=d/x.rrd:a:AVERAGE&arg=CDEF:v=a,3,*&arg=XPORT:v",
    );
    let rows = exported.json()["rows"].as_array().unwrap().clone();
    let values = chart["series"][0]["values"].as_array().unwrap();
    assert_eq!(rows[0][0], chart["series"][0]["start"]);
    for (row, value) in rows.iter().zip(values) {
        assert_eq!(row[1], *value);
    }
}

#[test]
fn a_chart_that_fails_does_not_hide_others_and_known_rows_are_left_out() {
    let roundel = filled();
    let arg = ["DEF:a=d/x.rrd:a:AVERAGE", "LINE:a#f00"];
    let answer = charts(
        &roundel,
        &json!([{ "arg": ["DEF:a=none.rrd:a:AVERAGE", "LINE:a#f00"] }, { "arg": arg }, { "arg": ["DEF:x"] }]),
    );
    assert!(answer[0]["error"].as_str().unwrap().contains("none.rrd"));
    assert!(answer[2]["error"].is_string());
    let newest = answer[1]["newest"].as_i64().unwrap();
    let all = answer[1]["series"][0]["values"].as_array().unwrap().len();
    let again =
        charts(&roundel, &json!([{ "arg": arg, "since": newest }, { "arg": arg, "since": newest - 10 }]));
    assert_eq!(again[0], json!({"unchanged": true, "newest": newest}));
    assert!(again[1]["series"][0]["values"].as_array().unwrap().len() < all);
    assert_eq!(again[1]["series"][0]["start"], newest);
    for body in [
        "",
        "{}",
        r#"{"charts":[],"bogus":1}"#,
        r#"{"charts":[{"arg":"x"}]}"#,
        r#"{"start":"yesteryear","charts":[]}"#,
    ] {
        assert_eq!(request(&roundel, "POST", "/api/v1/charts", body).status, 400, "{body}");
    }
    let many = json!({"charts": vec![json!({"arg": arg}); 201]}).to_string();
    assert_eq!(request(&roundel, "POST", "/api/v1/charts", &many).status, 413);
}

#[test]
fn names_are_found_as_soon_as_they_are_there() {
    let roundel = filled();
    let found =
        |text: &str| get(&roundel, &format!("/api/v1/search?q={text}")).json()["total"].as_u64().unwrap();
    assert_eq!((found("f"), found("new")), (1, 0));
    let mut client = Client::open(&roundel.socket());
    assert!(client.say("CREATE d/new.rrd -s 10 DS:a:GAUGE:20:U:U RRA:AVERAGE:0.5:1:20").starts_with('0'));
    testkit::wait_until("the new name is found", || found("new") == 1);
    let tree = get(&roundel, "/api/v1/tree/d").json();
    let names: Vec<_> = tree["items"].as_array().unwrap().iter().map(|item| item["name"].clone()).collect();
    assert_eq!(names, ["d/e", "d/new.rrd", "d/x.rrd", "d/y z.rrd"]);
    assert_eq!(tree["count"], 4);
    assert_eq!(tree["items"][2]["values"][0], json!({"ds": "a", "type": "GAUGE", "value": 3.0}));
}

#[test]
fn the_largest_values_come_first() {
    let roundel = filled();
    let mut client = Client::open(&roundel.socket());
    assert!(client.say("UPDATE d/x.rrd 1000000060:99999:1").starts_with('0'));
    let top = |words: &str| {
        let answer = get(&roundel, &format!("/api/v1/top?{RANGE}&{words}")).json();
        let items = answer["items"].as_array().unwrap().clone();
        items.iter().map(|item| (item["name"].clone(), item["value"].as_f64().unwrap())).collect::<Vec<_>>()
    };
    let by_max = top("glob=*&ds=a&by=max&limit=2");
    assert_eq!(by_max, [(json!("d/x.rrd"), 99_999.0), (json!("d/e/f.rrd"), 12_345.5)]);
    assert_eq!(top("name=d/x.rrd&ds=a&by=last"), [(json!("d/x.rrd"), 99_999.0)]);
    assert_eq!(top("name=d/x.rrd&ds=a&by=min"), [(json!("d/x.rrd"), -7.25)]);
    assert_eq!(top("glob=*&ds=none").len(), 0);
    let page = get(&roundel, &format!("/top?glob=d/*&by=max&{RANGE}"));
    assert_eq!(page.status, 200);
    assert!(page.text().contains("100.00 k"), "{}", page.text());
}

#[test]
fn what_a_collector_says_of_an_rrd_is_found_and_shown() {
    let roundel = filled();
    let line = |source: &str| LabelLine {
        source: source.to_string(),
        label: format!("the {source}"),
        is_area: false,
        colour: Some("123456".to_string()),
    };
    let graph = LabelGraph {
        unit: "bit/s".to_string(),
        factor: 8.0,
        base: 1000,
        upper: Some(1e6),
        lines: vec![line("b")],
    };
    let labels = [
        ("d/x.rrd", Label { title: "Uplink to <Zürich>".to_string(), graph: Some(Arc::new(graph.clone())) }),
        ("top.rrd", Label { title: "Uplink to Bern".to_string(), graph: None }),
        ("gone.rrd", Label { title: "Uplink to nowhere".to_string(), graph: None }),
        // A release may have had other sources.
        (
            "d/e/f.rrd",
            Label {
                title: "old".to_string(),
                graph: Some(Arc::new(LabelGraph { lines: vec![line("none")], ..graph })),
            },
        ),
    ];
    let labels = labels.map(|(name, label)| (name.as_bytes().to_vec(), label));
    roundel.service().collecting.labels.add("test", labels.into_iter());

    let found = get(&roundel, "/api/v1/search?q=ZÜRICH+uplink".replace('Ü', "%C3%9C").as_str()).json();
    assert_eq!((&found["total"], &found["items"][0]["name"]), (&1.into(), &"d/x.rrd".into()), "{found}");
    assert_eq!(found["items"][0]["title"], "Uplink to <Zürich>");
    assert!(get(&roundel, "/search?q=bern").text().contains("Uplink to Bern"));
    assert!(get(&roundel, "/rrd/d/x").text().contains("Uplink to &#60;Zürich&#62;"));
    assert!(get(&roundel, "/tree/d/").text().contains("Uplink to &#60;Zürich&#62;"));
    let graphs = |name: &str| get(&roundel, &format!("/api/v1/graphs?name={name}")).json()["graphs"].clone();
    let own = graphs("d/x.rrd");
    assert_eq!((own.as_array().unwrap().len(), &own[0]["unit"]), (1, &"bit/s".into()), "{own}");
    let words = own[0]["arg"].to_string();
    for part in ["the b", "#123456", "vraw0,8,*", "--upper-limit", "DEF:vraw0=d/x.rrd:b:AVERAGE"] {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert_eq!(graphs("top.rrd")[0]["title"], "top: Uplink to Bern");
    assert_eq!(graphs("d/e/f.rrd")[0]["title"], "e f: old");
}

#[test]
fn what_is_not_there_is_answered_with_what_may_be_meant() {
    let roundel = filled();
    let similar = |target: &str| {
        let answer = get(&roundel, target);
        assert_eq!(answer.status, 404, "{target}");
        let errors: Vec<String> = schema(&description(&roundel), "Error")
            .iter_errors(&answer.json())
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{errors:?}");
        answer.json()["similar"][0].as_str().unwrap().to_string()
    };
    assert_eq!(similar("/api/v1/info/d/yz.rrd"), "d/y z.rrd");
    assert_eq!(similar("/api/v1/fetch/tip.rrd"), "top.rrd");
    assert_eq!(similar("/api/v1/tree/d/g"), "d/e/");
    assert_eq!(similar("/api/v1/info/elsewhere/top.rrd"), "top.rrd");
    let page = get(&roundel, "/rrd/d/yz").text();
    assert!(page.contains("Did you mean") && page.contains("href=\"/rrd/d/y%20z\""), "{page}");
    assert!(get(&roundel, "/tree/c/").text().contains("href=\"/tree/d/\""));
}

#[test]
fn requests_that_were_not_done_are_in_the_status() {
    let roundel = filled();
    let mut client = Client::open(&roundel.socket());
    assert!(client.say("FROBNICATE x").starts_with('-'));
    assert!(client.say("FETCH none.rrd AVERAGE").starts_with('-'));
    let status = get(&roundel, "/api/v1/status").json();
    let dropped = json!([{"reason": "unknown_command", "count": 1}, {"reason": "no_such_rrd", "count": 1}]);
    assert_eq!(status["dropped"], dropped);
    assert!(get(&roundel, "/status").text().contains("no_such_rrd"));
}

#[test]
fn home_loads_itself_until_the_first_readings_of_this_host() {
    let roundel = filled();
    let home = || get(&roundel, "/").text();
    let waits = |page: &str| page.contains("http-equiv=\"refresh\"");
    assert!(waits(&home()), "{}", home());
    let mut client = Client::open(&roundel.socket());
    let create = "CREATE hosts/here/load.rrd -s 10 DS:one:GAUGE:20:0:U DS:five:GAUGE:20:0:U DS:fifteen:GAUGE:20:0:U RRA:AVERAGE:0.5:1:20";
    assert!(client.say(create).starts_with('0'));
    testkit::wait_until("there is a graph", || home().contains("<figure"));
    assert!(!waits(&home()), "{}", home());
}

#[test]
fn an_rrd_without_readings_is_late() {
    let roundel = filled();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let mut client = Client::open(&roundel.socket());
    for (name, age) in [("late", 3_600), ("fresh", 0)] {
        let create =
            format!("CREATE {name}.rrd -b {} -s 10 DS:a:GAUGE:20:U:U RRA:AVERAGE:0.5:1:20", now - age - 10);
        assert!(client.say(create).starts_with('0'));
        assert!(client.say(format!("UPDATE {name}.rrd {}:1", now - age)).starts_with('0'));
    }
    // Others have had no reading for years: their devices are gone.
    testkit::wait_until("it is late", || {
        let status = get(&roundel, "/api/v1/status").json();
        let is_it = status["late_count"] == 1 && status["late"][0]["name"] == "late.rrd";
        is_it
            && status["problems"]
                .as_array()
                .unwrap()
                .iter()
                .any(|one| one["text"] == "1 RRD gets no readings.")
    });
}

#[test]
fn a_view_is_made_from_a_form_changed_as_a_file_and_shown_on_a_wall() {
    let roundel = filled();
    let add = "view=uplinks&title=In+%26+out&arg=DEF:v%3Dd/x.rrd:a:AVERAGE%0A%0ALINE:v%23f00";
    let added = request(&roundel, "POST", "/views", add);
    assert_eq!(added.status, 303, "{}", added.text());
    assert!(added.head.contains("location: /view/uplinks"), "{}", added.head);
    let saved = get(&roundel, "/api/v1/views/uplinks").json();
    assert_eq!(saved["view"]["graph"][0]["arg"][1], "LINE:v#f00");
    let page = get(&roundel, "/view/uplinks").text();
    assert!(page.contains("In &amp;#38; out") || page.contains("In &#38; out"), "{page}");
    assert!(page.contains("<figure"), "{page}");

    let text = "title = 'All'\nstart = 'end-1week'\n[[graph]]\nglob = 'd/*'\nmode = 'overlay'\n[[graph]]\nname = ['gone.rrd']\n";
    let form = |text: &str, was: &str| {
        let text: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
        request(&roundel, "POST", "/view/uplinks", &format!("file={text}&was={was}"))
    };
    let stale = form(text, "0");
    assert_eq!(stale.status, 200);
    assert!(
        stale.text().contains("changed meanwhile") && stale.text().contains("glob ="),
        "{}",
        stale.text()
    );
    let tag = saved["tag"].as_str().unwrap();
    let wrong = form("title = ", tag);
    assert!(wrong.text().contains("line 1") && wrong.text().contains("title = "), "{}", wrong.text());
    assert_eq!(form(text, tag).status, 303);
    let page = get(&roundel, "/view/uplinks").text();
    // What one graph lacks does not hide the others.
    assert!(page.contains("end-1week") && page.contains("<figure") && page.contains("gone.rrd"), "{page}");

    assert_eq!(request(&roundel, "PUT", "/api/v1/views/other", "").status, 404);
    assert_eq!(request(&roundel, "PUT", "/api/v1/views/other", "title = 'Other'").status, 200);
    let wall = get(&roundel, "/wall?seconds=5&at=1").text();
    assert!(
        wall.contains("<h1>All</h1>") && wall.contains("content=\"5;url=/wall?seconds=5&#38;at=0&#38;\""),
        "{wall}"
    );
    let names: Vec<_> = get(&roundel, "/api/v1/views").json()["items"].as_array().unwrap().clone();
    assert_eq!(
        names.iter().map(|one| one["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["other", "uplinks"]
    );
    assert_eq!(get(&roundel, "/view/..%2fsecret").status, 404);
}

/// A name with everything that HTML, URLs and the graph language read.
const HOSTILE: &str = "<script>alert(1)<\\script>\"'&:%41 .rrd";

#[test]
fn pages_are_whole_without_script_and_hostile_names_stay_text() {
    let roundel = filled();
    let mut client = Client::open(&roundel.socket());
    let escaped = HOSTILE.replace('\\', "\\\\").replace(' ', "\\ ");
    let said = client.say(format!("CREATE h/{escaped} -s 10 DS:a:GAUGE:20:U:U RRA:AVERAGE:0.5:1:20"));
    assert!(said.starts_with('0'), "{said}");
    testkit::wait_until("the new name is found", || {
        get(&roundel, "/api/v1/search?q=script").json()["total"].as_u64() == Some(1)
    });
    let path =
        get(&roundel, "/api/v1/search?q=script").json()["items"][0]["path"].as_str().unwrap().to_string();
    let stem = path.strip_suffix(".rrd").unwrap();
    for target in [
        "/".to_string(),
        "/status".to_string(),
        "/top".to_string(),
        "/tree/".to_string(),
        "/tree/d/".to_string(),
        "/tree/h".to_string(),
        "/search?q=script".to_string(),
        "/search?q=%3Cscript%3E".to_string(),
        "/compare?glob=*&mode=stack".to_string(),
        format!("/compare?name={path}"),
        format!("/rrd/{stem}"),
        format!("/expression?arg=DEF:a={path}:a:AVERAGE%0ALINE:a%23f00:%3Cb%3E"),
    ] {
        let answer = get(&roundel, &target);
        assert_eq!(answer.status, 200, "{target}: {}", answer.text());
        assert!(
            answer.head.contains("content-security-policy: default-src 'self'"),
            "{target}: {}",
            answer.head
        );
        let text = answer.text();
        assert!(!text.contains("<script>") && !text.contains("<b>"), "{target}: {text}");
    }
    let page = get(&roundel, &format!("/rrd/{stem}")).text();
    // The picture that the page names is drawn.
    let picture = page
        .split("<img src=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .replace("&amp;", "&")
        .replace("&#38;", "&");
    let answer = get(&roundel, &picture);
    assert_eq!(answer.status, 200, "{picture}: {}", answer.text());
    for target in [
        "/rrd/none",
        "/tree/none/",
        "/rrd/%zz",
        "/compare?bogus=1",
        "/?start=yesteryear",
        "/rrd/..%2f..%2fetc",
    ] {
        let answer = get(&roundel, target);
        assert!((400..500).contains(&answer.status), "{target}: {}", answer.status);
        assert!(answer.head.contains("text/html"), "{target}: {}", answer.head);
    }
}

#[test]
fn an_rrd_is_a_picture_a_table_and_a_file() {
    let roundel = filled();
    let range = "?start=1000000000&end=1000000060";
    for (end, begins) in [(".svg", &b"<?xml"[..]), (".png", b"\x89PNG"), (".pdf", b"%PDF")] {
        let answer = get(&roundel, &format!("/rrd/d/x{end}{range}&width=300&height=100&graph=0"));
        assert_eq!(answer.status, 200, "{end}: {}", answer.text());
        assert!(answer.body.starts_with(begins), "{end}: {:?}", &answer.body[..20]);
    }
    assert_eq!(get(&roundel, "/rrd/d/x.svg?graph=9").status, 400);
    let table = get(&roundel, &format!("/rrd/d/x.csv{range}")).text();
    assert_eq!(table.lines().take(2).collect::<Vec<_>>(), ["time,a,b", "1000000010,0.1,"]);
    assert_eq!(get(&roundel, &format!("/rrd/d/x.json{range}")).json()["columns"], json!(["a", "b"]));
    let file = roundel.base().join("copy.rrd");
    std::fs::write(&file, get(&roundel, "/rrd/d/x.rrd").body).unwrap();
    let fetch = |daemon: bool, name: &str| {
        let mut command = Command::new("/usr/bin/rrdtool");
        command
            .args(["fetch", name, "AVERAGE", "-s", "1000000000", "-e", "1000000060"])
            .current_dir(roundel.base());
        if daemon {
            command.env("RRDCACHED_ADDRESS", format!("unix:{}", roundel.socket().display()));
        }
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert_eq!(fetch(false, "copy.rrd"), fetch(true, "d/x.rrd"));
}

#[test]
fn scripts_come_compressed_and_may_be_kept() {
    let roundel = filled();
    let home = get(&roundel, "/").text();
    let script =
        home.split("src=\"").find(|part| part.contains("main.js")).unwrap().split('"').next().unwrap();
    let plain = get(&roundel, script);
    assert!(plain.head.contains("text/javascript") && plain.head.contains("immutable"), "{}", plain.head);
    assert!(!plain.head.contains("content-encoding"));
    assert_eq!(get(&roundel, "/assets/0/main.js").status, 200, "an old page gets the new script");
    for target in ["/assets/0/none.js", "/assets/0/../../Cargo.toml", "/assets/0/tsconfig.json"] {
        assert_eq!(get(&roundel, target).status, 404, "{target}");
    }
}
