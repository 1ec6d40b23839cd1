//! Random RRDs, updated by Debian's rrdtool and by us; every bit of the state is compared after each update.
//!
//! `ROUNDEL_SEEDS=n` runs n seeds instead of 300; `ROUNDEL_SEED=n` runs only that one and prints each step.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "update_oracle/ours.rs"]
mod ours;

use ours::Ours;
use testkit::RrdTool;
use testkit::random::{Random, Scenario, seeds};

use roundel_rrd::codec::file;

const SEEDS: u64 = 300;
const FILE: &str = "r.rrd";

/// Creates with rrdtool, updates both, compares. The error describes the first difference.
fn run(tool: &mut RrdTool, scenario: &Scenario, loud: bool) -> Result<(), String> {
    let Scenario { create, updates, updates_per_command } = scenario;
    tool.run(&format!("create {FILE} {create}")).map_err(|error| format!("create {create}: {error}"))?;
    let path = tool.path(FILE);
    let read = || {
        let bytes = std::fs::read(&path).map_err(|error| error.to_string())?;
        file::decode(&bytes).map_err(|error| error.to_string())
    };
    let mut before = read()?;
    let mut ours = Ours::new(before.clone());
    ours.check_fresh(&before).map_err(|what| format!("create {create}: {what}"))?;
    for updates in updates.chunks(*updates_per_command) {
        let here = |what: String| format!("create {create}\nupdate {updates:?}: {what}");
        let quoted: String = updates.iter().map(|update| format!(" \"{update}\"")).collect();
        let theirs = tool.run(&format!("update {FILE}{quoted}")).map(|_| ());
        let theirs = theirs.map_err(|text| text.trim_start_matches("r.rrd: ").to_string());
        let mine = updates.iter().try_for_each(|update| ours.update(update.as_bytes()));
        let mine = mine.map_err(|error| error.to_string());
        if loud {
            println!("{}{updates:?} {theirs:?}", ours::show(&before));
        }
        if theirs != mine {
            return Err(here(format!("rrdtool says {theirs:?}, we {mine:?}")));
        }
        let parts = read()?;
        if theirs.is_err() {
            // RRDtool has changed the texts of the sources before the bad one; see `roundel_rrd::update::Updater`.
            ours.take_texts(&parts);
        }
        ours.compare(&parts).map_err(here)?;
        before = parts;
    }
    Ok(())
}

#[test]
fn random_rrds_are_updated_as_rrdtool_does() {
    let mut tool = RrdTool::start().unwrap();
    let seeds = seeds(SEEDS);
    let loud = seeds.end - seeds.start == 1;
    let mut failures = Vec::new();
    for seed in seeds {
        let scenario = Scenario::random(&mut Random::new(seed));
        if let Err(what) = run(&mut tool, &scenario, loud) {
            failures.push(format!("seed {seed}: {what}"));
            if failures.len() >= 5 {
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Checks differences that random runs found.
fn check(create: &str, updates: &[&str]) {
    let mut tool = RrdTool::start().expect("Debian's rrdtool runs");
    let updates = updates.iter().map(|update| update.to_string()).collect();
    let scenario =
        Scenario { create: format!("--start 1000000000 {create}"), updates, updates_per_command: 1 };
    if let Err(what) = run(&mut tool, &scenario, false) {
        panic!("{what}");
    }
}

#[test]
fn an_open_pdp_is_closed_by_itself_with_whole_seconds() {
    let create = "--step 10 DS:a:ABSOLUTE:15:U:U DS:b:GAUGE:100:U:U RRA:AVERAGE:0.5:2:5 RRA:LAST:0.5:1:9";
    check(create, &["1000000003.25:9:9", "1000000027.5:5:5", "1000000058.75:7:7", "1000000200:1:1"]);
}

#[test]
fn a_reading_that_comes_too_late_is_kept_unread() {
    let create = "--step 10 DS:a:COUNTER:5:U:U DS:b:DERIVE:5:U:U DS:c:DDERIVE:5:U:U RRA:LAST:0.5:1:9";
    check(
        create,
        &["1000000006:1x5:x-5:u", "1000000007:10:-10:7", "1000000020:--3:5-:5", "1000000021:7:7:7"],
    );
}

#[test]
fn equal_negative_integers_differ_by_a_negative_zero() {
    check(
        "--step 2 DS:a:DERIVE:9:U:U RRA:LAST:0.5:1:9",
        &["1000000001:-5", "1000000003:-5", "1000000005:-0", "1000000007:-0"],
    );
}

#[test]
fn a_gap_longer_than_an_archive_keeps_the_first_row_oldest() {
    check("--step 1 DS:a:GAUGE:1000:U:U RRA:MAX:0.5:2:3", &["1000000001:9", "1000000150:4", "1000000151:5"]);
}

#[test]
fn failures_look_at_the_deviation_by_the_place_of_the_seasonal() {
    let mut updates = Vec::new();
    for (index, value) in [5, 7, 9, 5, 7, 9, 6, 7, 9, 80, 7, 9, 5, 90, 9].iter().enumerate() {
        updates.push(format!("{}:{value}", 1_000_000_001 + index));
    }
    let updates: Vec<&str> = updates.iter().map(String::as_str).collect();
    check(
        "--step 1 DS:a:GAUGE:9:U:U RRA:HWPREDICT:9:0.1:0.1:3:4 RRA:DEVSEASONAL:3:0.5:1 \
         RRA:FAILURES:9:1:3:2 RRA:SEASONAL:3:0.1:1",
        &updates,
    );
}

#[test]
fn a_multiplicative_season_of_negative_mean_is_lost_in_smoothing() {
    let mut updates = Vec::new();
    for index in 0..40 {
        updates.push(format!("{}:{}", 1_000_000_001 + index, [5, -700, 9, -30][index % 4]));
    }
    let updates: Vec<&str> = updates.iter().map(String::as_str).collect();
    check(
        "--step 1 DS:a:GAUGE:9:U:U RRA:MHWPREDICT:9:0.5:0.1:4:2 RRA:SEASONAL:4:0.9:1:smoothing-window=1",
        &updates,
    );
}
