//! Values of a query against PRINT of Debian's `rrdtool graph`, RRD by RRD: from files, and from rrdcached.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

use std::collections::BTreeMap;

use graph::plan::TimeRange;
use roundel_query::{Format, Query, Report};
use rrd::format::push_e;
use testkit::random::Random;
use testkit::{RrdTool, Rrdcached};

const EPOCH: i64 = 1_000_000_000;
const COUNT: usize = 40;

/// RRDs `port0/rx.rrd` and so on, the last one damaged.
fn make(tool: &mut RrdTool) {
    for number in 0..COUNT {
        std::fs::create_dir(tool.path(&format!("port{number}"))).unwrap();
        for name in ["rx", "tx"] {
            let mut random = Random::new(number as u64 * 2 + name.len() as u64);
            let file = format!("port{number}/{name}.rrd");
            let create = "--step 300 DS:in:GAUGE:600:U:U RRA:AVERAGE:0.5:1:300 RRA:AVERAGE:0.5:6:100";
            tool.run(&format!("create {file} --start {EPOCH} {create}")).unwrap();
            let mut line = format!("update {file}");
            for row in 1..200 {
                let value = match random.below(10) {
                    0 => "U".to_string(),
                    1 => "0".to_string(),
                    _ => format!("{}.{:03}", random.below(1_000_000), random.below(1000)),
                };
                line += &format!(" {}:{value}", EPOCH + row * 300);
            }
            tool.run(&line).unwrap();
        }
    }
    std::fs::write(tool.path("port39/rx.rrd"), "not an RRD").unwrap();
    std::fs::remove_file(tool.path("port38/tx.rrd")).unwrap();
}

fn query(pattern: &str, step: u64, daemon: Option<String>) -> (Report, BTreeMap<String, Vec<f64>>) {
    query_with(pattern, "", step, daemon)
}

/// Appends `more` to each DEF.
fn query_with(
    pattern: &str,
    more: &str,
    step: u64,
    daemon: Option<String>,
) -> (Report, BTreeMap<String, Vec<f64>>) {
    let def = |name: &str| format!("DEF:{name}={pattern}/{name}.rrd:in:AVERAGE{more}").into_bytes();
    let query = Query {
        arguments: vec![
            def("rx"),
            def("tx"),
            b"CDEF:both=rx,tx,+".to_vec(),
            b"VDEF:p=both,95,PERCENT".to_vec(),
            b"VDEF:m=rx,MAXIMUM".to_vec(),
        ],
        percentiles: vec!["95".to_string()],
        range: TimeRange { start: EPOCH + 3000, end: EPOCH + 50_000, step },
        now: EPOCH + 100_000,
        daemon,
        threads: 3,
    };
    let mut out: Vec<u8> = Vec::new();
    let report = query.run(Format::Csv, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("rrd,p,m,rx_p95,tx_p95,both_p95"));
    let number = |word: &str| if word.is_empty() { f64::NAN } else { word.parse().unwrap() };
    let values = lines.map(|line| {
        let (name, rest) = line.split_once(',').unwrap();
        (name.to_string(), rest.split(',').map(number).collect())
    });
    (report, values.collect())
}

/// What rrdtool prints for the RRDs of one directory.
fn printed(tool: &mut RrdTool, directory: &str, step: u64) -> Vec<String> {
    let text = tool
        .run(&format!(
            "graph /dev/null -s {} -e {} -w 10000 --step {step} DEF:rx={directory}/rx.rrd:in:AVERAGE \
             DEF:tx={directory}/tx.rrd:in:AVERAGE CDEF:both=rx,tx,+ VDEF:p=both,95,PERCENT VDEF:m=rx,MAXIMUM \
             VDEF:a=rx,95,PERCENT VDEF:b=tx,95,PERCENT PRINT:p:%.10le PRINT:m:%.10le PRINT:a:%.10le \
             PRINT:b:%.10le PRINT:p:%.10le",
            EPOCH + 3000,
            EPOCH + 50_000
        ))
        .unwrap();
    text.lines().skip(1).map(str::to_string).collect()
}

fn formatted(value: f64) -> String {
    let mut text = Vec::new();
    push_e(&mut text, value, 10);
    String::from_utf8(text).unwrap().replace("-nan", "nan")
}

fn check(tool: &mut RrdTool, values: &BTreeMap<String, Vec<f64>>, step: u64, count: usize) {
    assert_eq!(values.len(), count);
    for (name, values) in values {
        let directory = name.strip_suffix("/rx.rrd").unwrap().rsplit('/').next().unwrap();
        let want: Vec<String> =
            printed(tool, directory, step).iter().map(|text| text.replace("-nan", "nan")).collect();
        let got: Vec<String> = values.iter().map(|&value| formatted(value)).collect();
        assert_eq!(got, want, "{name} step {step}");
    }
}

#[test]
fn percentiles_are_those_that_rrdtool_prints() {
    let mut tool = RrdTool::start().unwrap();
    make(&mut tool);
    let pattern = format!("{}/port*", tool.directory().display());
    for step in [300, 900, 1800] {
        let (report, values) = query(&pattern, step, None);
        check(&mut tool, &values, step, COUNT - 2);
        assert_eq!((report.answered, report.failures.len()), (COUNT - 2, 2), "{:?}", report.failures);
        let told = format!("{:?}", report.failures);
        assert!(told.contains("reached EOF") && told.contains("nothing beside it matches"), "{told}");
    }
}

#[test]
fn a_daemon_gives_the_same() {
    let mut tool = RrdTool::start().unwrap();
    make(&mut tool);
    let daemon = Rrdcached::over(tool.directory(), &["-R"]).unwrap();
    let address = format!("unix:{}", daemon.socket().display());
    let (report, values) = query("port*", 300, Some(address));
    check(&mut tool, &values, 300, COUNT - 2);
    assert_eq!(report.failures.len(), 2, "{:?}", report.failures);
    drop(daemon);
}

#[test]
fn a_def_may_name_its_own_daemon() {
    let mut tool = RrdTool::start().unwrap();
    make(&mut tool);
    let daemon = Rrdcached::over(tool.directory(), &["-R"]).unwrap();
    let pattern = format!("{}/port*", tool.directory().display());
    let address = daemon.socket().display().to_string();
    let (_, values) = query_with(&pattern, &format!(r":daemon=unix\:{address}"), 300, None);
    check(&mut tool, &values, 300, COUNT - 2);
    drop(daemon);
    let (report, _) = query_with(&pattern, r":daemon=unix\:/nowhere/sock", 300, None);
    assert_eq!((report.answered, report.failures.len()), (0, COUNT), "{:?}", report.failures);
    assert!(report.failures.iter().any(|(_, why)| why.contains("/nowhere/sock")), "{:?}", report.failures);
}
