//! `roundel query` over real files: the numbers are those of `rrdtool graph ... PRINT`, and what cannot be
//! answered is named while the rest is.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "query/database.rs"]
mod database;
#[path = "query/history.rs"]
mod history;
#[path = "query/killed.rs"]
mod killed;
#[path = "query/languages.rs"]
mod languages;
#[path = "query/pagecache.rs"]
mod pagecache;
#[path = "query/parquet.rs"]
mod parquet;
#[path = "query/store.rs"]
mod store;

use std::process::{Command, Output};

use testkit::RrdTool;

const RANGE: [&str; 4] = ["-s", "1700000000", "-e", "1700012000"];

/// Three directories with a port each, made by Debian's rrdtool.
fn ports() -> RrdTool {
    let mut tool = RrdTool::start().unwrap();
    for port in 1..=3u64 {
        let directory = tool.path(&format!("sw{port}"));
        std::fs::create_dir(directory).unwrap();
        let file = format!("sw{port}/p.rrd");
        let create = "--start 1700000000 --step 300 DS:in:GAUGE:600:0:U RRA:AVERAGE:0.5:1:600";
        tool.run(&format!("create {file} {create}")).unwrap();
        for row in 1..=40u64 {
            let value = row * row % 37 * port;
            tool.run(&format!("update {file} {}:{value}", 1_700_000_000 + 300 * row)).unwrap();
        }
    }
    tool
}

fn query(tool: &RrdTool, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_roundel"))
        .arg("query")
        .args(RANGE)
        .args(words)
        .current_dir(tool.directory())
        .env_remove("RRDCACHED_ADDRESS")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn percentiles_are_those_of_rrdtool() {
    let mut tool = ports();
    let output = query(&tool, &["-p", "95", "-f", "csv", "DEF:in=*/p.rrd:in:AVERAGE"]);
    assert!(output.status.success(), "{output:?}");
    let answer = text(&output.stdout);
    let mut lines = answer.lines();
    assert_eq!(lines.next(), Some("rrd,in_p95"));
    for port in 1..=3 {
        let (name, value) = lines.next().unwrap().split_once(',').unwrap();
        assert_eq!(name, format!("sw{port}/p.rrd"));
        let graph = format!(
            "graph /dev/null -s 1700000000 -e 1700012000 DEF:in={name}:in:AVERAGE VDEF:p=in,95,PERCENT PRINT:p:%.17le"
        );
        let theirs = tool.run(&graph).unwrap();
        let theirs: f64 = theirs.lines().last().unwrap().trim().parse().unwrap();
        assert_eq!(value.parse::<f64>().unwrap().to_bits(), theirs.to_bits(), "{name}");
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn prints_are_those_of_rrdtool() {
    let mut tool = ports();
    let prints =
        ["VDEF:p=in,95,PERCENT", "PRINT:p:%6.2lf %s, \\\"p\\\"", "PRINT:p:%c:strftime", "PRINT:in:MAX:%.0lf"];
    let csv = |line: &[&str]| text(&query(&tool, line).stdout);
    let answer = csv(&[&["-f", "csv", "DEF:in=*/p.rrd:in:AVERAGE"], &prints[..]].concat());
    let json = csv(&[&["-f", "json", "DEF:in=*/p.rrd:in:AVERAGE"], &prints[..]].concat());
    let arrow = query(&tool, &[&["-f", "arrow", "DEF:in=*/p.rrd:in:AVERAGE"], &prints[..]].concat());
    assert!(arrow.status.success(), "{arrow:?}");
    let table = csv(&[&["DEF:in=*/p.rrd:in:AVERAGE"], &prints[..]].concat());
    let mut lines = answer.lines();
    assert_eq!(lines.next(), Some("rrd,p,print[0],print[1],print[2]"));
    for port in 1..=3 {
        let name = format!("sw{port}/p.rrd");
        let graph = format!(
            "graph /dev/null -s 1700000000 -e 1700012000 DEF:in={name}:in:AVERAGE {} '{}' {} {} PRINT:p:%.17le",
            prints[0], prints[1], prints[2], prints[3]
        );
        let theirs = tool.run(&graph).unwrap();
        // After the size of the image.
        let theirs: Vec<&str> = theirs.lines().skip(1).collect();
        let number: f64 = theirs[3].parse().unwrap();
        let quoted = format!("\"{}\"", theirs[0].replace('"', "\"\""));
        assert_eq!(lines.next(), Some(&*format!("{name},{number},{quoted},{},{}", theirs[1], theirs[2])));
        let (first, second) = (theirs[0].replace('\\', "\\\\").replace('"', "\\\""), theirs[1]);
        assert!(json.contains(&format!("\"print[0]\":\"{first}\",\"print[1]\":\"{second}\"")), "{json}");
        assert!(table.contains(theirs[0]), "{table}");
    }
    let both = query(&tool, &["DEF:in=*/p.rrd:in:AVERAGE", "XPORT:in", "PRINT:in:MAX:%lf"]);
    assert!(text(&both.stderr).contains("cannot query PRINT and XPORT at once"), "{both:?}");
}

#[test]
fn rows_come_in_every_format() {
    let tool = ports();
    let of = |format| {
        let output = query(&tool, &["-f", format, "DEF:in=*/p.rrd:in:AVERAGE", "CDEF:bits=in,8,*"]);
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    assert!(text(&of("table")).starts_with("RRD "));
    assert!(text(&of("csv")).starts_with("rrd,time,"));
    assert!(text(&of("json")).trim_end().ends_with(']'));
    assert!(of("parquet").starts_with(b"PAR1"));
    assert!(of("arrow").starts_with(&[0xff; 4]));
}

#[test]
fn what_cannot_be_answered_is_named() {
    let tool = ports();
    std::fs::write(tool.path("sw2/p.rrd"), "no RRD ".repeat(100)).unwrap();
    let output = query(&tool, &["-p", "95", "DEF:in=*/p.rrd:in:AVERAGE"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("'sw2/p.rrd' is not an RRD file"), "{output:?}");
    assert!(text(&output.stdout).contains("sw1/p.rrd"), "{output:?}");
    assert!(text(&output.stdout).contains("sw3/p.rrd"), "{output:?}");
    let none = query(&tool, &["DEF:in=none/*.rrd:in:AVERAGE"]);
    assert!(!none.status.success());
    assert!(text(&none.stderr).contains("no RRD matches"), "{none:?}");
}
