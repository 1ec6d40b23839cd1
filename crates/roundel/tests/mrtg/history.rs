//! The past of targets in MRTG's `.log` files, beside what Debian's MRTG makes of them.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::{Daemon, HEAD, mrtg, our_info};

/// Lines of each section, and the seconds between them.
const SECTIONS: [(i64, i64); 4] = [(600, 300), (600, 1800), (600, 7200), (732, 86400)];

/// The oldest time of each section, and the text of a file whose last round was at `now`.
fn log_file(now: i64) -> (Vec<i64>, String) {
    let last = now - 300;
    let mut text = format!("{now} 1000000 2000000\n{now} 500 600 550 660\n{last} 300 400 330 440\n");
    let (mut at, mut number, mut oldest) = (last, 0_i64, Vec::new());
    for (count, step) in SECTIONS {
        at = (at - 1).div_euclid(step) * step;
        for _ in 0..count {
            number += 1;
            // Zeros among all columns.
            let value = |column: i64| (number * 7919 + column * 104_729) % 97;
            text.push_str(&format!("{at} {} {} {} {}\n", value(1), value(2), value(3) + 100, value(4) * 3));
            at -= step;
        }
        oldest.push(at + step);
    }
    (oldest, text)
}

/// The rows of each archive by their time, in the order of a dump; and how many primary points a row has.
fn archives(dump: &str) -> Vec<(i64, HashMap<i64, String>)> {
    let of_archive = |text: &str| {
        let (_, rest) = text.split_once("<pdp_per_row>").unwrap();
        let per_row = rest.split_once('<').unwrap().0.trim().parse().unwrap();
        let row = |line: &str| {
            let (time, values) = line.split_once(" --> ")?;
            Some((time.rsplit_once(" / ")?.1.parse().unwrap(), values.to_string()))
        };
        (per_row, rest.lines().filter_map(row).collect())
    };
    dump.split("<rra>").skip(1).map(of_archive).collect()
}

fn dump(program: &str, file: &Path, more: &[String]) -> String {
    let output = Command::new(program).arg("dump").arg(file).args(more).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// MRTG puts the means of five minutes one step too late, but not their maxima, nor longer rows. It has fewer rows than a new RRD.
#[test]
fn old_logs_become_rrds() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    let (oldest, text) = log_file(now - 90);
    let configure = |side: &str| {
        let deep = root.join(side).join("Sub");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("a.log"), &text).unwrap();
        fs::write(deep.join("b.log"), "nothing of MRTG's\n").unwrap();
        fs::write(deep.join("c.log"), format!("{} 1 2\n", now + 1_000_000)).unwrap();
        let program = "`echo 1300000; echo 2600000`";
        let target = |name: &str| format!("Target[{name}]: {program}\nDirectory[{name}]: Sub\n");
        let targets = ["A", "b", "c"].map(target).concat();
        let file = root.join(format!("{side}.cfg"));
        // The others are Roundel's alone: of such a file MRTG makes no RRD, or one that takes no readings.
        let targets = if side == "ours" { &targets } else { targets.split_once("Target[b]").unwrap().0 };
        fs::write(&file, format!("WorkDir: {}/{side}\n{HEAD}{targets}", root.display())).unwrap();
        file
    };
    let (is_well, said) = mrtg(&configure("theirs"));
    assert!(is_well, "{said}");
    let _daemon = Daemon::start(root, &configure("ours"));
    our_info(root, "Sub/a.rrd");
    our_info(root, "Sub/b.rrd");
    our_info(root, "Sub/c.rrd");
    let log = fs::read_to_string(root.join("log")).unwrap();
    assert!(log.contains("ours/Sub/b.log") && log.contains("line 1: it does not begin with a time"), "{log}");
    assert!(log.contains("ours/Sub/c.log") && log.contains("its last round is in the future"), "{log}");
    let theirs = archives(&dump("/usr/bin/rrdtool", &root.join("theirs/Sub/a.rrd"), &[]));
    let address = ["--daemon".to_string(), format!("unix:{}/sock", root.display())];
    let ours = archives(&dump(env!("CARGO_BIN_EXE_rrdtool"), &root.join("ours/Sub/a.rrd"), &address));
    assert_eq!((ours.len(), theirs.len()), (8, 8));
    for (index, ((per_row, ours), (_, theirs))) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(ours.len(), 800);
        let section = index % 4;
        // From the first whole row, which MRTG may lack, to the newest that no finer line touches.
        let late = if index == 0 { 300 } else { 0 };
        let newest = if section == 0 { now - 900 } else { oldest[section - 1] - per_row * 300 };
        let lines: Vec<&i64> =
            ours.keys().filter(|time| (oldest[section] + 2 * per_row * 300..newest).contains(time)).collect();
        assert!(lines.len() as i64 > SECTIONS[section].0 - 12, "{} rows of {per_row}", lines.len());
        for time in lines {
            assert_eq!(Some(&ours[time]), theirs.get(&(time + late)), "archive {index} at {time}");
        }
        assert!(ours.values().filter(|values| values.contains("NaN")).count() > 5);
    }
}
