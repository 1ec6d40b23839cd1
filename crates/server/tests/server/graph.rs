//! `/graph` against Debian's `rrdtool graphv` on the same daemon.

use std::process::Command;

use crate::common::Roundel;
use crate::common::http::{Answer, get, request};
use protocol::rrdcached::command::Permissions;
use roundel_server::service::CreatePolicy;
use serde_json::Value;
use testkit::Client;

/// A daemon with an hour of two data sources.
fn filled() -> Roundel {
    let create = CreatePolicy { make_directories: true, ..Default::default() };
    let roundel = Roundel::stripes(create, Permissions::ALL);
    let mut client = Client::open(&roundel.socket());
    let words = "-s 10 -b 1000000000 DS:in:GAUGE:20:U:U DS:out:GAUGE:20:U:U RRA:AVERAGE:0.5:1:400";
    assert!(client.say(format!("CREATE d/x.rrd {words}")).starts_with('0'));
    for index in 1..=360 {
        let (time, value) = (1_000_000_000 + 10 * index, (index * 7919) % 1000);
        let said = client.say(format!("UPDATE d/x.rrd {time}:{value}:{}", value * 3));
        assert!(said.starts_with('0'), "{said}");
    }
    roundel
}

const ARGUMENTS: [&str; 14] = [
    "--start=1000000000",
    "--end=1000003600",
    "--title=Traffic & more",
    "--vertical-label=bits",
    "--width=300",
    "DEF:i=d/x.rrd:in:AVERAGE",
    "DEF:o=d/x.rrd:out:AVERAGE",
    "CDEF:b=i,8,*",
    "VDEF:m=b,MAXIMUM",
    "AREA:b#00ff00:in",
    "LINE1:o#0000ff:out",
    "GPRINT:m:most %6.2lf%s",
    "PRINT:m:%.3lf",
    "COMMENT:a <script> \\& \"quotes\"",
];

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

fn target(more: &str, arguments: &[&str]) -> String {
    let words: Vec<String> = arguments.iter().map(|word| format!("arg={}", encoded(word))).collect();
    format!("/graph?{more}{}", words.join("&"))
}

fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    let prefix = format!("{name}: ");
    answer.head.lines().find_map(|line| line.strip_prefix(&*prefix))
}

/// The output of `graphv` on the same daemon, without the image.
fn told_by_rrdtool(roundel: &Roundel) -> Vec<(String, String)> {
    let output = Command::new("/usr/bin/rrdtool")
        .args(["graphv", "out.png"])
        .args(ARGUMENTS)
        .current_dir(roundel.base())
        .env("RRDCACHED_ADDRESS", format!("unix:{}", roundel.socket().display()))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let pair = |line: &str| {
        let (key, value) = line.split_once(" = ")?;
        let text = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        Some((key.to_string(), text.unwrap_or(value).to_string()))
    };
    text.lines().filter_map(pair).collect()
}

#[test]
fn the_image_geometry_equals_rrdtools() {
    let roundel = filled();
    let want = told_by_rrdtool(&roundel);
    assert!(want.len() > 12, "{want:?}");
    let got = get(&roundel, &target("describe=true&", &ARGUMENTS));
    assert_eq!(got.status, 200, "{}", got.text());
    let got = got.json();
    let description = get(&roundel, "/api/v1/openapi.json").json();
    let schema = serde_json::json!({
        "$ref": "#/components/schemas/Picture", "components": description["components"],
    });
    assert!(jsonschema::draft202012::new(&schema).unwrap().is_valid(&got), "{got}");
    for (key, value) in &want {
        match &got[key] {
            Value::Number(number) => assert_eq!(number.as_f64(), value.parse().ok(), "{key}"),
            Value::String(text) => assert_eq!(text, value, "{key}"),
            other => panic!("{key} = {value}, not {other}"),
        }
    }
    let image = get(&roundel, &target("", &ARGUMENTS));
    assert_eq!((image.status, header(&image, "content-type")), (200, Some("image/png")), "{}", image.head);
    assert!(image.body.starts_with(b"\x89PNG\r\n\x1a\n"));
    let side = |at: usize| u64::from(u32::from_be_bytes(image.body[at..at + 4].try_into().unwrap()));
    assert_eq!(Some(side(16)), got["image_width"].as_u64());
    assert_eq!(Some(side(20)), got["image_height"].as_u64());
}

#[test]
fn images_can_be_cached_by_clients() {
    let roundel = filled();
    let first = get(&roundel, &target("", &ARGUMENTS));
    let tag = header(&first, "etag").unwrap();
    assert_eq!(header(&first, "cache-control"), Some("private, max-age=12"));
    let ask = |tag: &str| {
        crate::common::http::request_with(
            &roundel,
            "GET",
            &target("", &ARGUMENTS),
            &format!("If-None-Match: {tag}\r\n"),
            "",
        )
    };
    let again = ask(tag);
    assert_eq!((again.status, again.body.len(), header(&again, "etag")), (304, 0, Some(tag)));
    assert_eq!(ask("\"other\"").status, 200);
    // Other data gives another image.
    Client::open(&roundel.socket()).say("UPDATE d/x.rrd 1000003610:5000:1");
    let arguments = ARGUMENTS.map(|word| if word.starts_with("--end") { "--end=1000003610" } else { word });
    assert_ne!(header(&get(&roundel, &target("", &arguments)), "etag"), Some(tag));
}

#[test]
fn every_image_format_has_its_type_and_no_script() {
    let roundel = filled();
    for (format, content, start) in [
        ("SVG", "image/svg+xml", &b"<"[..]),
        ("PDF", "application/pdf", b"%PDF-"),
        ("EPS", "application/postscript", b"%!PS"),
        ("PNG", "image/png", b"\x89PNG"),
    ] {
        let option = format!("--imgformat={format}");
        let mut arguments = ARGUMENTS.to_vec();
        arguments.push(&option);
        let words: Vec<String> = arguments.iter().map(|word| format!("arg={}", encoded(word))).collect();
        let answer = request(&roundel, "POST", "/graph", &words.join("&"));
        assert_eq!((answer.status, header(&answer, "content-type")), (200, Some(content)), "{}", answer.head);
        assert!(answer.body.starts_with(start), "{format}");
        assert!(
            header(&answer, "content-security-policy")
                .is_some_and(|policy| policy.starts_with("default-src 'none'"))
        );
        // The other formats cannot contain scripts.
        let has_script = answer.body.windows(7).any(|part| part == b"<script");
        assert!(format != "SVG" || !has_script, "{format}");
    }
}

#[test]
fn saved_graphs_accept_parameters() {
    let roundel = filled();
    std::fs::create_dir(roundel.path("graphs")).unwrap();
    std::fs::write(
        roundel.path("graphs/traffic.graph"),
        "# of one host\n--start\n1000000000\n--end\n1000003600\nDEF:i=${host}/x.rrd:in:AVERAGE\n\
         LINE:i#${colour:-f00}:in of ${host}\n",
    )
    .unwrap();
    let answer = get(&roundel, "/graph?template=traffic&host=d");
    assert_eq!((answer.status, header(&answer, "content-type")), (200, Some("image/png")));
    assert_eq!(
        get(&roundel, "/graph?template=traffic&host=d&describe=true").json()["legend[0]"],
        "  in of d"
    );
    for (target, status) in [
        ("/graph?template=traffic", 400),
        ("/graph?template=traffic&host=d&x=y", 400),
        ("/graph?template=traffic&host=none", 404),
        ("/graph?template=traffic&host=../../etc", 403),
        ("/graph?template=none", 404),
        ("/graph?template=../graphs/traffic&host=d", 404),
    ] {
        assert_eq!(get(&roundel, target).status, status, "{target}");
    }
}

#[test]
fn missing_rrds_read_as_unknown_on_request() {
    let roundel = filled();
    let none = ["DEF:a=none.rrd:in:AVERAGE", "LINE:a#f00"];
    assert_eq!(get(&roundel, &target("", &none)).status, 404);
    let with: Vec<&str> = ["-Z"].into_iter().chain(none).collect();
    let answer = get(&roundel, &target("", &with));
    assert_eq!(answer.status, 200, "{}", answer.text());
    // Placeholders for missing rows count too.
    let mut many = vec!["-Z".to_string(), "--start".into(), "end-1d".into(), "HRULE:1#f00".into()];
    many.extend((0..90).map(|index| format!("DEF:a{index}=none{index}.rrd:in:AVERAGE:step=1")));
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let words: Vec<String> = many.iter().map(|word| format!("arg={}", encoded(word))).collect();
    assert_eq!(request(&roundel, "POST", "/graph", &words.join("&")).status, 413);
}

#[test]
fn graphs_that_cannot_be_drawn_are_refused_with_a_reason() {
    let roundel = filled();
    let check = |arguments: &[&str], status: u16, text: &str| {
        let answer = get(&roundel, &target("", arguments));
        assert_eq!(answer.status, status, "{arguments:?}: {}", answer.text());
        assert!(answer.error().contains(text), "{arguments:?}: {}", answer.error());
    };
    check(&["LINE:x#f00"], 400, "x");
    check(&["--nonsense", "LINE:1#f00"], 400, "invalid option");
    check(&["--width=5", "LINE:1#f00"], 400, "width");
    check(&["--width=100000", "--height=100000", "HRULE:1#f00"], 413, "too large");
    check(&["--zoom=1000000", "HRULE:1#f00"], 413, "too large");
    check(&["--daemon=unix:/x", "HRULE:1#f00"], 422, "daemon");
    check(&["DEF:a=none.rrd:in:AVERAGE", "LINE:a#f00"], 404, "none.rrd");
    check(&["DEF:a=/etc/passwd:in:AVERAGE", "LINE:a#f00"], 403, "base directory");
    check(&["DEF:a=d/x.rrd:in:AVERAGE:daemon=unix\\:/x", "LINE:a#f00"], 422, "daemon");
    check(&["DEF:a=d/x.rrd:in:AVERAGE", "PRINT:a:MAX:%lf"], 422, "nothing to draw");
    check(&["--imgformat=CSV", "DEF:a=d/x.rrd:in:AVERAGE", "LINE:a#f00"], 422, "xport");
    assert_eq!(get(&roundel, "/graph").status, 400);
    assert_eq!(get(&roundel, "/graph?arg=HRULE:1%23f00&bogus=1").status, 400);
    assert_eq!(get(&roundel, "/healthz").status, 200);
}
