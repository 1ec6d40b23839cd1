//! Files updated in place by us and by Debian's rrdtool: errors, listed rows, and every byte must be equal.
//!
//! `ROUNDEL_SEEDS=n` runs n seeds instead of 400; `ROUNDEL_SEED=n` runs that one alone.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use roundel_rrd_file::{UpdateOptions, update};
use rrd::updatev::UpdateReport;
use testkit::RrdTool;
use testkit::random::{Random, Scenario, seeds};

const SEEDS: u64 = 400;

/// The output of `updatev`, or the error.
fn listed(result: Result<UpdateReport, String>) -> Result<String, String> {
    let mut text = b"return_value = 0\n".to_vec();
    rrd::info::push_text(&mut text, &result?.items());
    Ok(String::from_utf8(text).unwrap())
}

/// The first offset at which two files differ.
fn difference(theirs: &Path, ours: &Path) -> Option<String> {
    let (theirs, ours) = (std::fs::read(theirs).unwrap(), std::fs::read(ours).unwrap());
    if theirs.len() != ours.len() {
        return Some(format!("rrdtool's file has {} bytes, ours {}", theirs.len(), ours.len()));
    }
    let at = theirs.chunks(8).zip(ours.chunks(8)).position(|(a, b)| a != b)? * 8;
    let layout = rrd::codec::file::decode_head(&ours, ours.len() as u64).map(|head| head.layout);
    Some(format!(
        "byte {at}: rrdtool {:02x?}, we {:02x?}; {layout:?}",
        &theirs[at..at + 8],
        &ours[at..at + 8]
    ))
}

/// The first line that differs.
fn first_difference(theirs: &Result<String, String>, ours: &Result<String, String>) -> String {
    match (theirs, ours) {
        (Ok(theirs), Ok(ours)) => {
            let same = theirs.lines().zip(ours.lines()).take_while(|(a, b)| a == b).count();
            let line = |text: &str| text.lines().nth(same).unwrap_or("nothing more").to_string();
            format!("line {same}: rrdtool {}, we {}", line(theirs), line(ours))
        }
        _ => format!("rrdtool says {theirs:?}, we {ours:?}"),
    }
}

/// Creates files with rrdtool, updates a copy by us, and compares after every command.
fn run(tool: &mut RrdTool, scenario: &Scenario, random: &mut Random) -> Result<(), String> {
    let Scenario { create, updates, .. } = scenario;
    let (theirs, ours) = (tool.path("theirs.rrd"), tool.path("ours.rrd"));
    tool.run(&format!("create theirs.rrd {create}")).map_err(|error| format!("create {create}: {error}"))?;
    std::fs::copy(&theirs, &ours).unwrap();
    let updates_per_command = random.between(1, 5) as usize;
    for updates in updates.chunks(updates_per_command) {
        let list = random.once_in(2);
        let skip_past = random.once_in(4);
        let here =
            |what: String| format!("create {create}\nlist {list} skip {skip_past} {updates:?}: {what}");
        let verb = if list { "updatev" } else { "update" };
        let skip = if skip_past { " -s" } else { "" };
        let quoted: String = updates.iter().map(|word| format!(" \"{word}\"")).collect();
        let said = tool.run(&format!("{verb}{skip} theirs.rrd{quoted}"));
        let said = said.map_err(|text| text.replace("theirs.rrd", "ours.rrd"));
        let options = UpdateOptions { skip_past, collect_rows: list, ..UpdateOptions::default() };
        let report = update(&ours, updates, &options)
            .map_err(|error| error.to_string().replace(&format!("{}", ours.display()), "ours.rrd"));
        let report = if list { listed(report) } else { report.map(|_| String::new()) };
        if said != report {
            return Err(here(first_difference(&said, &report)));
        }
        if let Some(what) = difference(&theirs, &ours) {
            return Err(here(what));
        }
    }
    Ok(())
}

#[test]
fn random_files_get_the_bytes_that_rrdtool_writes() {
    let mut tool = RrdTool::start().unwrap();
    let mut failures = Vec::new();
    for seed in seeds(SEEDS) {
        let mut random = Random::new(seed);
        let scenario = Scenario::random(&mut random);
        if let Err(what) = run(&mut tool, &scenario, &mut random) {
            failures.push(format!("seed {seed}: {what}"));
            if failures.len() >= 3 {
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
