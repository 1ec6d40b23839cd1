use std::sync::Arc;

use super::*;
use crate::mrtg::config;
use crate::mrtg::plan::PlanContext;

const START: i64 = 1_700_000_000;

fn collector(text: &str, programs: bool) -> MrtgCollector {
    let text = format!(
        "WorkDir: /\nLogFormat: rrdtool\nInterval: 1\nOptions[_]: gauge\nTitle[_]: t\nMaxBytes[_]: 100\n{text}"
    );
    let mut none = |_: &str| Err(String::new());
    let config = config::parse("x", text.as_bytes(), &mut none).unwrap();
    let plan = MrtgPlan::new(&config, &PlanContext::default()).unwrap();
    let options = MrtgCollectorOptions { config: "x".to_string(), programs, window: 8, seed: 1 };
    MrtgCollector::new(at(0), Arc::new(plan), &options, 0)
}

fn at(seconds: i64) -> Now {
    Now { wall: (START + seconds) * 1_000_000, mono: 1_000_000 + (seconds * 1_000_000) as u64 }
}

/// The readings of the targets that are complete, as `rrdupdate(1)` takes them.
fn readings(collector: &mut MrtgCollector, now: Now) -> Vec<String> {
    let mut readings = Readings::default();
    for target in collector.take_complete() {
        collector.push_reading(now, target, &mut readings);
    }
    let texts = readings.iter().map(|reading| {
        let mut text = Vec::new();
        readings.push_text(reading, &mut text);
        format!("{} {}", reading.rrd.index(), String::from_utf8(text).unwrap().replace("17000000", "+"))
    });
    texts.collect()
}

#[test]
fn a_target_waits_for_its_own_terms_only() {
    let mut collector =
        collector("Target[a]: `x`\nTarget[b]: `y`\nTarget[c]: `x` + `y`\nTarget[d]: 7 * 3\n", true);
    collector.tick(at(0));
    let commands: Vec<String> = collector.take_commands().into_iter().map(|(_, command)| command).collect();
    assert_eq!(commands, ["x", "y"]);
    assert_eq!(readings(&mut collector, at(0)), ["3 +00:21:21"]);
    collector.program_ended(at(1), 0, Ok(b"1\n2\n".to_vec()));
    assert_eq!(readings(&mut collector, at(1)), ["0 +01:1:2"]);
    collector.program_ended(at(5), 1, Ok(b"10\n20\n".to_vec()));
    assert_eq!(readings(&mut collector, at(6)), ["1 +05:10:20", "2 +06:11:22"]);
    // Rounds are by the clock: 1,700,000,000 is 20 s after a minute.
    collector.tick(at(39));
    assert!(collector.take_commands().is_empty());
    collector.tick(at(40));
    assert_eq!(collector.take_commands().len(), 2);
    collector.program_ended(at(41), 0, Err("killed".to_string()));
    assert_eq!(readings(&mut collector, at(41)), ["3 +41:21:21", "0 +41:U:U"]);
    // A program that still runs is not run twice, and what it says late counts.
    collector.tick(at(100));
    assert_eq!(collector.take_commands().len(), 1);
    collector.program_ended(at(101), 1, Ok(b"5\n5\n".to_vec()));
    assert_eq!(
        readings(&mut collector, at(102))[1..],
        ["1 +101:5:5", "2 +102:U:U"].map(|text| text.replace("+1", "17000001"))
    );
    let notices: Vec<String> = collector.take_notices().into_iter().map(|notice| notice.text).collect();
    assert_eq!(notices, ["killed (target[a], target[c])"]);
    let counts = collector.counts();
    assert_eq!((counts.rounds, counts.programs, counts.failed_programs, counts.unknown), (3, 5, 1, 2));
}

#[test]
fn what_cannot_be_read_is_unknown_and_what_is_switched_off_has_no_readings() {
    let mut collector = collector(
        "Target[a]: `x`\nTarget[b]: 1.2.3&1.2.4:p@h|Conv\nTarget[c]: max(`x`)\nTarget[d]: 1.2.3&1.2.4:p@h|Conv + 1\n",
        false,
    );
    collector.tick(at(0));
    assert!(collector.take_commands().is_empty());
    assert_eq!(readings(&mut collector, at(0)), ["1 +00:U:U", "3 +00:U:U"]);
    let subjects: Vec<String> = collector.take_notices().into_iter().map(|notice| notice.subject).collect();
    assert_eq!(
        subjects,
        [
            "x: programs are switched off (programs = false)",
            "x:8: target[b]",
            "x:9: target[c]",
            "x:10: target[d]"
        ]
    );
    collector.tick(at(40));
    assert_eq!(readings(&mut collector, at(40)).len(), 2);
    assert!(collector.take_notices().is_empty());
}
