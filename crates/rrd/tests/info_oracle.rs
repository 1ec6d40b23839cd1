//! `info` and `lastupdate` against Debian's rrdtool, line for line, on RRDs of every kind.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

mod support;

use roundel_rrd::codec::file;
use roundel_rrd::info::{info, push_last_update, push_text};
use support::Random;
use testkit::RrdTool;

const SOURCES: &str = "DS:a:GAUGE:20:U:100 DS:b:COUNTER:30:0:U DS:c:COMPUTE:a,b,+,3,*";
const VERSION_5: &str = "DS:d:DDERIVE:1d:-1e3:inf";
const ARCHIVES: [&str; 4] = [
    "RRA:AVERAGE:0.5:1:5 RRA:MAX:0.25:3:7 RRA:LAST:0:2:4 RRA:MIN:0.9:7:3",
    "RRA:HWPREDICT:20:0.1:0.0035:5 RRA:AVERAGE:0.5:1:5",
    "RRA:MHWPREDICT:20:0.1:0.0035:5:2 RRA:SEASONAL:5:0.2:1:smoothing-window=0.3",
    "RRA:HWPREDICT:20:0.9:0.5:4:2 RRA:SEASONAL:4:0.9:1 RRA:DEVSEASONAL:4:0.1:1 RRA:DEVPREDICT:9:3 RRA:FAILURES:9:1:20:3",
];

#[test]
fn every_line_is_the_same() {
    let mut tool = RrdTool::start().unwrap();
    for (index, archives) in ARCHIVES.iter().enumerate() {
        let mut random = Random::new(index as u64);
        let (last, more) = if index % 2 == 0 { ("", "") } else { (VERSION_5, ":1.5") };
        tool.run(&format!("create i.rrd --start 1000000000 --step 10 {SOURCES} {last} {archives}")).unwrap();
        for update in 0..60 {
            let parts = file::decode(&std::fs::read(tool.path("i.rrd")).unwrap()).unwrap();
            let mut mine = Vec::new();
            let items = info(&parts.rrd.definition, &parts.rrd.live, &parts.current_rows, b"i.rrd");
            push_text(&mut mine, &items);
            assert_eq!(
                String::from_utf8(mine).unwrap(),
                tool.run("info i.rrd").unwrap(),
                "{archives} {update}"
            );
            let mut mine = Vec::new();
            push_last_update(&mut mine, &parts.rrd.definition, &parts.rrd.live);
            assert_eq!(String::from_utf8(mine).unwrap(), tool.run("lastupdate i.rrd").unwrap());
            let time = 1_000_000_000 + (update + 1) * 9;
            let value = if random.chance(10) { "U".to_string() } else { random.below(500).to_string() };
            tool.run(&format!("update i.rrd {time}:{value}:{}{more}", update * 1000)).unwrap();
        }
    }
}
