//! What MRTG does by looking at an RRD, `MaxAge` and thresholds: a local `[[mrtg]]` beside Debian's MRTG on the same values.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use testkit::wait_until;

use crate::{Daemon, HEAD, info, mrtg};

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// The same configuration for each side: `{side}` stands for its directory.
fn configure(root: &Path, side: &str, tail: &str) -> PathBuf {
    let directory = root.join(side);
    fs::create_dir_all(directory.join("thresh")).unwrap();
    let text = format!("WorkDir: {}\n{HEAD}Options[_]: gauge\n{tail}", directory.display());
    let file = root.join(format!("{side}.cfg"));
    fs::write(&file, text.replace("{side}", &directory.display().to_string())).unwrap();
    file
}

/// The last update of an RRD, as `rrdtool info` says it.
fn last_update(info: &str) -> u64 {
    let last = info.lines().find_map(|line| line.strip_prefix("last_update = "));
    last.and_then(|last| last.parse().ok()).unwrap_or_else(|| panic!("{info}"))
}

fn their_info(root: &Path, name: &str) -> String {
    let output = Command::new("/usr/bin/rrdtool").arg("info").arg(root.join("theirs").join(name)).output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

#[test]
fn an_rrd_older_than_max_age_is_left_alone_by_both() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let tail = "MaxAge: 3600\nTarget[old]: `echo 1; echo 2`\nTarget[recent]: `echo 1; echo 2`\n";
    let configs = ["theirs", "ours"].map(|side| configure(root, side, tail));
    let begun = now();
    for (name, age) in [("old", 7_200), ("recent", 1_800)] {
        for side in ["theirs", "ours"] {
            let file = root.join(side).join(format!("{name}.rrd"));
            let rrdtool = |args: &[String]| {
                let status = Command::new("/usr/bin/rrdtool").args(args).status().unwrap();
                assert!(status.success(), "{args:?}");
            };
            let (file, at) = (file.display().to_string(), begun - age);
            let mut create =
                ["create", &file, "-s", "300", "-b", &(at - 300).to_string()].map(String::from).to_vec();
            create.extend(["ds0", "ds1"].map(|ds| format!("DS:{ds}:GAUGE:600:0:1000")));
            create.push("RRA:AVERAGE:0.5:1:800".to_string());
            rrdtool(&create);
            rrdtool(&["update".to_string(), file.clone(), format!("{at}:5:6")]);
            // MRTG takes the file's time for the RRD's.
            let touched = Command::new("touch").arg("-d").arg(format!("@{at}")).arg(file).status();
            assert!(touched.unwrap().success());
        }
    }
    let [theirs, ours] = configs;
    let (_, said) = mrtg(&theirs);
    let _daemon = Daemon::start(root, &ours);
    wait_until("a reading", || info(root, "recent.rrd").is_some_and(|text| last_update(&text) >= begun));
    wait_until("what the daemon says", || {
        fs::read_to_string(root.join("log")).is_ok_and(|log| log.contains("more than MaxAge, 3600 s"))
    });
    assert!(last_update(&their_info(root, "recent.rrd")) >= begun, "{said}");
    for text in [info(root, "old.rrd").unwrap(), their_info(root, "old.rrd")] {
        assert_eq!(last_update(&text), begun - 7_200, "{text} {said}");
    }
}

/// What the programs of a side were called with: the program, the target, the bound, what follows the rate. The rate itself is that
/// of a step in which the values may have changed.
fn calls(root: &Path, side: &str) -> Vec<String> {
    let text = fs::read_to_string(root.join(side).join("calls")).unwrap_or_default();
    let call = |line: &str| {
        let mut words: Vec<&str> = line.split('|').collect();
        let rate = words.remove(3);
        assert!(rate.parse::<f64>().is_ok(), "{side}: {line}");
        words.join(" ")
    };
    let mut calls: Vec<String> = text.lines().map(call).collect();
    calls.sort();
    calls
}

/// Says at its end, also when the test fails, that it is over.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn thresholds_act_as_those_of_mrtg() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let values = |text: &str| {
        fs::write(root.join("next"), text).unwrap();
        fs::rename(root.join("next"), root.join("values")).unwrap();
    };
    values("10\n20\n");
    let mut tail =
        format!("Interval: 0:1\nThreshDir: {{side}}/thresh\nTarget[a]: `cat {}/values`\n", root.display());
    tail += "ThreshMaxI[a]: 50%\nThreshMinO[a]: 5\n";
    for keyword in ["ThreshProgI", "ThreshProgO", "ThreshProgOKI", "ThreshProgOKO"] {
        tail += &format!("{keyword}[a]: {{side}}/{keyword}\n");
        for side in ["theirs", "ours"] {
            let program = root.join(side).join(keyword);
            fs::create_dir_all(root.join(side)).unwrap();
            let calls = root.join(side).join("calls");
            let script = "#!/bin/sh\nfor word; do text=\"$text|$word\"; done; echo";
            let script = format!("{script} \"{keyword}$text\" >> {}\n", calls.display());
            fs::write(&program, script).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    let [theirs, ours] = ["theirs", "ours"].map(|side| configure(root, side, &tail));
    let _daemon = Daemon::start(root, &ours);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let begun = now();
                mrtg(&theirs);
                wait_until("the next second", || now() > begun);
            }
        });
        let _over = Over(&is_over);
        let mut want: Vec<&str> = Vec::new();
        let phases = [
            ("800\n20\n", "ThreshProgI a 50% No Description"),
            ("800\n2\n", "ThreshProgO a 5 No Description"),
            ("10\n2\n", "ThreshProgOKI a 50%"),
            ("10\n20\n", "ThreshProgOKO a 5"),
        ];
        for (text, call) in phases {
            values(text);
            want.push(call);
            want.sort_unstable();
            for side in ["theirs", "ours"] {
                wait_until(&format!("{call} of {side}"), || calls(root, side) == want);
            }
        }
    });
}
