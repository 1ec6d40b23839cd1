//! A function for each decoder of this crate, for fuzzers: any bytes may be given, and a panic is a finding.

mod received;

pub use received::{fuzz_collectd, fuzz_collectd_files, fuzz_ganglia_xml, fuzz_gmond};

use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::when::Step;

use crate::mrtg::config;
use crate::mrtg::log::MrtgLog;
use crate::mrtg::plan::{Answer, MrtgPlan, PlanContext};
use crate::mrtg::report::Report;
use crate::mrtg::{operand::Operand, program};
use crate::reading::Readings;

/// MRTG's configuration: whatever it says, a plan follows from it, and readings from answers. An included file is the whole
/// once more.
pub fn fuzz_mrtg_config(bytes: &[u8]) {
    let mut includes = 0;
    let mut read = |name: &str| {
        includes += 1;
        if includes > 3 { Err("enough".to_string()) } else { Ok(vec![(name.to_string(), bytes.to_vec())]) }
    };
    let Ok(config) = config::parse("mrtg.cfg", bytes, &mut read) else { return };
    let Ok(plan) = MrtgPlan::new(&config, &PlanContext::default()) else { return };
    assert_eq!(plan.targets.len(), config.targets.len());
    let answers: Vec<Answer> = (0..plan.terms.len())
        .map(|term| Answer {
            time: 1_700_000_000,
            input: Operand::of_text(bytes.get(term..term + 5).unwrap_or(b"0")),
            output: Operand::Unsigned(term as u64),
            is_reset: term % 3 == 2,
        })
        .collect();
    let mut readings = Readings::default();
    let mut text = Vec::new();
    for target in &plan.targets {
        plan.push_reading(target, &answers, 1_700_000_001, &mut readings);
    }
    readings.iter().for_each(|reading| readings.push_text(reading, &mut text));
    assert!(!Report::new(&config, &plan).to_string().is_empty());
}

/// What a program says.
pub fn fuzz_mrtg_program(bytes: &[u8]) {
    let output = program::read(bytes);
    for operand in [&output.input, &output.output] {
        if let Some(number) = operand.to_decimal() {
            assert!(number.rounded().to_integer().is_some() || number.to_string().len() > 20);
        }
    }
}

/// A `.log` file of MRTG, and the RRD that is made of it.
pub fn fuzz_mrtg_log(bytes: &[u8]) {
    let Ok(log) = MrtgLog::parse(&String::from_utf8_lossy(bytes)) else { return };
    let step = Step { units: 300, units_per_second: 1 };
    let options = CreateOptions { step, limits: Limits::FILE, file_name: b"x" };
    let args = ["DS:a:COUNTER:600:0:U", "DS:b:COUNTER:600:0:U", "RRA:AVERAGE:0.5:1:9", "RRA:MAX:0.5:6:9"];
    let definition = parse_create(&options, &args).expect("a good definition");
    let rrd = log.rrd(definition);
    assert!(rrd.archives.iter().flatten().all(|value| !value.is_infinite()));
}

#[cfg(test)]
mod tests {
    use super::*;

    use testkit::random::{Random, each_seed};

    const SEEDS: u64 = 3_000;

    /// Pieces of configurations, put together at random, and then some bytes changed.
    #[test]
    fn configurations_cause_no_panic() {
        const PIECES: &[&str] = &[
            "WorkDir: /\n",
            "LogFormat: rrdtool\n",
            "Interval: 0:",
            "Target[a]: ",
            "Target[^]: ",
            "Target[_]: ",
            "Target[$]: ",
            "MaxBytes[_]: 5\n",
            "Title[_]: t\n",
            "NoSpaceChar: ~\n",
            "Include: x\n",
            "Options[a]: gauge\n",
            "`p 1`",
            " + ",
            " / ",
            "2:public@host",
            ":161:1:2::2",
            "#eth0:c@h",
            "\\a\\ b:c@h",
            "1.3.6.1&1.3.6.2:c@h",
            "ifInOctets!0-1&ifOutOctets%2:c@[::1]",
            "|Conv",
            "( ",
            " )",
            " ? 1 : 2",
            " ** ",
            "9e",
            "0x",
            "%",
            "- ",
            "not ",
            "\n",
            "\n ",
            "[",
            "]",
            ":",
            "@",
            "`",
            "\\",
            "~",
            "\u{fc}",
            "ThreshMaxI[a]: 5%\n",
            "SnmpOptions[a]: timeout => 'x'\n",
            "routers.cgi*X[a]: y\n",
            "SetEnv[a]: A=\"b\"\n",
            "Colours[a]: G#00ff00,B#0000ff\n",
            "kMG[a]: ,k,M\n",
        ];
        each_seed(SEEDS, |seed| {
            let mut random = Random::new(seed);
            let mut text = String::from("WorkDir: /\nMaxBytes[_]: 5\nTitle[_]: t\nTarget[a]: ");
            for _ in 0..random.below(30) {
                text.push_str(PIECES[random.below(PIECES.len() as u64) as usize]);
            }
            let mut bytes = text.into_bytes();
            for _ in 0..random.below(3) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.below(256) as u8;
            }
            fuzz_mrtg_config(&bytes);
            fuzz_mrtg_program(&bytes);
        });
    }

    #[test]
    fn logs_cause_no_panic() {
        const WORDS: &[&str] = &[
            "0",
            "1",
            "300",
            "600",
            "1000000000",
            "999999700",
            "9007199254740992",
            "-1",
            "1e300",
            "1e308",
            "x",
            "\n",
            "\n",
        ];
        each_seed(SEEDS, |seed| {
            let mut random = Random::new(seed);
            let mut text = String::from("1000000000 5 6\n");
            let mut at = 1_000_000_000_u64;
            for _ in 0..random.below(12) {
                at = at.saturating_sub(random.below(4_000));
                text.push_str(&format!("{at} {} 2 1e20 {}\n", random.below(3), random.below(900)));
            }
            for _ in 0..random.below(4) {
                text.push_str(WORDS[random.below(WORDS.len() as u64) as usize]);
                text.push(' ');
            }
            fuzz_mrtg_log(text.as_bytes());
        });
    }

    #[test]
    fn long_configurations_are_read_in_time() {
        fuzz_mrtg_config(
            format!("WorkDir: /\nTarget[a]: {}\nMaxBytes[a]: 1\nTitle[a]: t\n", "a@".repeat(3_000))
                .as_bytes(),
        );
        fuzz_mrtg_config(
            format!("WorkDir: /\nTarget[a]: {}\nMaxBytes[a]: 1\nTitle[a]: t\n", ":#&@h".repeat(300))
                .as_bytes(),
        );
    }
}
