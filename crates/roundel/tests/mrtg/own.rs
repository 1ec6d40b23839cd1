//! The collectors' own numbers: RRDs that a release with fewer of them has made.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use testkit::{free_port, http_get, wait_for, wait_until};

use crate::{Daemon, info};

/// The numbers of each collector, in their order. A release appends to a list; it never changes what is there, because RRDs have them
/// in this order.
const NUMBERS: [(&str, &str); 5] = [
    (
        "collectd",
        "packets bytes values readings stored refused dropped_packets malformed unprotected forged incomplete unknown_type old ahead \
         over_limit notifications rrds buffer_bytes",
    ),
    (
        "ganglia",
        "answers failures metrics readings stored refused old not_numbers over_limit packets values malformed requests \
         dropped_packets hosts rrds",
    ),
    (
        "mrtg",
        "rounds readings unknown programs failed_programs passes late_passes pass_micros requests answers timeouts retries \
         too_big unauthorized malformed unexpected wrong_address moved restarts stored refused targets agents",
    ),
    (
        "snmp",
        "passes late_passes pass_micros requests answers timeouts retries too_big unauthorized malformed unexpected wrong_address moved restarts \
         targets_answered targets_missing devices silent_devices in_flight rrds stored refused",
    ),
    (
        "agents",
        "connected sessions blocks bytes stored repeated refused dropped refused_moved fenced malformed devices unassigned moves",
    ),
];

/// Sections that start each collector.
fn sections(root: &Path) -> String {
    let config = root.join("mrtg.cfg");
    let text = format!("WorkDir: {}/ours\nTarget[a]: `true`\nTitle[a]: t\nMaxBytes[a]: 9\n", root.display());
    fs::write(&config, text).unwrap();
    format!(
        "[[snmp]]\ndevice = '127.0.0.1:9'\n[[mrtg]]\nconfig = '{}'\n[collectd]\nlisten = ['udp://127.0.0.1:{}']\n\
         [gmond_listen]\nlisten = ['udp://127.0.0.1:{}']\n[agents]\nlisten = ['127.0.0.1:{}']\n",
        config.display(),
        free_port(),
        free_port(),
        free_port()
    )
}

/// The data sources of an RRD, in their order.
fn sources(info: &str) -> String {
    let types = info.lines().filter_map(|line| line.strip_prefix("ds[")?.split_once("].type"));
    types.map(|(name, _)| name).collect::<Vec<_>>().join(" ")
}

fn rrdtool(root: &Path, verb: &str, name: &str, words: &[&str]) -> String {
    let mut rrdtool = Command::new(env!("CARGO_BIN_EXE_rrdtool"));
    rrdtool.arg(verb).arg(root.join("ours").join(name)).args(words);
    let output = rrdtool.arg("--daemon").arg(format!("unix:{}/sock", root.display())).output().unwrap();
    assert!(output.status.success(), "{verb} {name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn numbers_are_only_appended() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let _daemon = Daemon::serve(root, "", &sections(root));
    for (collector, numbers) in NUMBERS {
        let info = wait_for(collector, || info(root, &format!("roundel/{collector}.rrd")));
        assert_eq!(sources(&info), numbers, "{collector}: append new numbers, to this list too");
    }
}

#[test]
fn an_rrd_of_fewer_numbers_gets_the_others_and_keeps_its_history() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let daemon = Daemon::serve(root, "", "");
    let log = || fs::read_to_string(root.join("log")).unwrap_or_default();
    wait_until("the daemon", || log().contains("listening on"));
    fs::create_dir(root.join("ours/roundel")).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let start = now / 10 * 10 - 1_000;
    let create = |collector: &str, names: &[&str]| {
        let ds = names.iter().map(|name| format!("DS:{name}:GAUGE:30:0:U")).collect::<Vec<_>>();
        let begin = start.to_string();
        let mut words = vec!["--start", &begin, "--step", "10", "RRA:AVERAGE:0.5:1:1000"];
        words.extend(ds.iter().map(String::as_str));
        let name = format!("roundel/{collector}.rrd");
        rrdtool(root, "create", &name, &words);
        let values = ":7".repeat(names.len());
        rrdtool(
            root,
            "update",
            &name,
            &[&format!("{}{values}", start + 10), &format!("{}{values}", start + 20)],
        );
    };
    let first: Vec<&str> = NUMBERS[3].1.split(' ').take(2).collect();
    create("snmp", &first);
    create("mrtg", &["readings", "rounds"]);
    drop(daemon);
    let _daemon = Daemon::serve(root, "", &sections(root));
    let last = format!("ds[{}].last_ds = \"", NUMBERS[3].1.rsplit(' ').next().unwrap());
    let whole = wait_for("a reading of all numbers", || {
        let info = info(root, "roundel/snmp.rrd")?;
        (info.contains(&last) && !info.contains(&format!("{last}U"))).then_some(info)
    });
    assert_eq!(sources(&whole), NUMBERS[3].1);
    let (begin, end) = (start.to_string(), (start + 19).to_string());
    let history = rrdtool(root, "fetch", "roundel/snmp.rrd", &["AVERAGE", "--start", &begin, "--end", &end]);
    let want = format!("{}: 7.0000000000e+00 7.0000000000e+00 -nan ", start + 20);
    assert!(history.contains(&want), "{history}");
    // Of numbers in another order, nothing is stored, and the log says why, once.
    wait_until("a complaint", || log().contains("its data sources are not this collector's"));
    let other = info(root, "roundel/mrtg.rrd").unwrap();
    assert!(other.contains(&format!("last_update = {}\n", start + 20)), "{other}");
    assert_eq!(log().matches("are not this collector's").count(), 1, "{}", log());
}

/// What the file says of a target's page is on ours.
#[test]
fn titles_and_legends_of_the_file_are_found_and_shown() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let config = root.join("mrtg.cfg");
    let text = format!(
        "WorkDir: {}/ours\nLogFormat: rrdtool\nInterval: 0:1\nTarget[r1_2]: `echo 5; echo 6`\nMaxBytes[r1_2]: 1250\n\
         Title[r1_2]: Traffic &amp; more to the attic\nOptions[r1_2]: bits,gauge\nUnscaled[r1_2]: d\nLegendI[r1_2]: From the attic:\n",
        root.display()
    );
    fs::write(&config, text).unwrap();
    let http = free_port();
    let sections =
        format!("[http]\nlisten = ['127.0.0.1:{http}']\n[[mrtg]]\nconfig = '{}'\n", config.display());
    let _daemon = Daemon::serve(root, "", &sections);
    wait_for("the target's RRD", || info(root, "r1_2.rrd"));
    let found = http_get(http, "/api/v1/search?q=ATTIC").unwrap();
    assert!(found.contains("r1_2.rrd") && found.contains("Traffic & more to the attic"), "{found}");
    let graphs = http_get(http, "/api/v1/graphs?name=r1_2.rrd").unwrap();
    for part in [
        "Traffic & more to the attic",
        "From the attic",
        "--upper-limit\",\"10000",
        "vraw0,8,*",
        "\"unit\":\"bit\"",
    ] {
        assert!(graphs.contains(part), "{part}: {graphs}");
    }
}
