//! Our polling by SNMP, and that by mrtg.cfg beside Debian's MRTG on the same file: which RRDs are made, what they are given, what is refused.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

#[path = "mrtg/bounds.rs"]
mod bounds;
#[path = "mrtg/commands.rs"]
mod commands;
#[path = "mrtg/devices.rs"]
mod devices;
#[path = "mrtg/history.rs"]
mod history;
#[path = "mrtg/own.rs"]
mod own;
#[path = "mrtg/snmp.rs"]
mod snmp;
#[path = "wire/snmpd.rs"]
mod snmpd;

use std::fs;
use std::path::Path;
use std::process::Command;

use testkit::{Running, Signal, wait_for};

/// A daemon that is killed at the end.
struct Daemon(Running);

impl Daemon {
    /// Polls by `config`, with the store in `root`/store and a socket in `root`/sock.
    fn start(root: &Path, config: &Path) -> Daemon {
        Self::start_with(root, config, "")
    }

    /// The same with `more` at the beginning of its configuration.
    fn start_with(root: &Path, config: &Path, more: &str) -> Daemon {
        let mrtg = format!("[[mrtg]]\nconfig = '{}'\nprogram_timeout = '20s'\n", config.display());
        Self::serve(root, more, &mrtg)
    }

    /// With these keys and sections in its configuration.
    fn serve(root: &Path, keys: &str, sections: &str) -> Daemon {
        Self::configure(root, keys, sections);
        let mut serve = Command::new(env!("CARGO_BIN_EXE_roundel"));
        serve.args(["serve", "--config"]).arg(root.join("roundel.toml"));
        Daemon(Running::quiet(&mut serve))
    }

    /// Writes the configuration.
    fn configure(root: &Path, keys: &str, sections: &str) {
        let toml = format!(
            "{keys}store = '{root}/store'\nbase = '{root}/ours'\n[[listen]]\naddress = 'unix:{root}/sock'\n\
             {sections}[log]\nfile = '{root}/log'\n",
            root = root.display()
        );
        fs::create_dir_all(root.join("ours")).unwrap();
        fs::write(root.join("roundel.toml"), toml).unwrap();
    }

    /// Makes it read its configuration again.
    fn hang_up(&self) {
        self.0.signal(Signal::HUP);
    }
}

/// What `rrdtool info` shows and the time does not change.
fn lasting(info: &str) -> Vec<String> {
    let passing = [
        "filename",
        "last_update",
        "rrd_version",
        "header_size",
        "cur_row",
        "cdp_prep",
        "].value",
        "unknown_sec",
    ];
    let lines = info.lines().filter(|line| !passing.iter().any(|word| line.contains(word)));
    lines.map(str::to_string).collect()
}

/// `rrdtool info` of an RRD in the daemon, once it has had a reading.
fn our_info(root: &Path, name: &str) -> String {
    wait_for(&format!("a reading of {name}"), || {
        info(root, name).filter(|text| text.matches("last_ds = \"U\"").count() < 2)
    })
}

/// `rrdtool info` of an RRD in the daemon, if it is there.
fn info(root: &Path, name: &str) -> Option<String> {
    let mut info = Command::new(env!("CARGO_BIN_EXE_rrdtool"));
    info.arg("info")
        .arg(root.join("ours").join(name))
        .arg("--daemon")
        .arg(format!("unix:{}/sock", root.display()));
    let output = info.output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

/// One round of Debian's MRTG; its exit status and what it says.
fn mrtg(config: &Path) -> (bool, String) {
    // It wants a locale that is not UTF-8.
    let output =
        Command::new("/usr/bin/mrtg").env("LANG", "C").env("LC_ALL", "C").arg(config).output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

const HEAD: &str = "LogFormat: rrdtool\nEnableIPv6: no\nMaxBytes[_]: 1000\nTitle[_]: t\n";

/// Targets whose programs say the same to both.
fn targets(program: &Path) -> String {
    let run = |a: &str, b: &str| format!("`{} {a} {b}`", program.display());
    let expressions = [
        ("plain", run("10", "20"), "gauge"),
        ("Upper", run("1.5", "-2.5"), "gauge"),
        ("counter", run("18446744073709551615", "7.5"), ""),
        ("reset", run("3", "4"), "absolute,growright"),
        ("signed", run("-3", "4.4"), "nopercent, derive"),
        ("quotient", format!("{} / {}", run("11", "21"), run("3", "8")), "gauge"),
        ("percent", format!("( {} - 1 ) * 100 / 3", run("12", "22")), "gauge"),
        ("rounded", format!("{} / 2", run("5", "7")), ""),
        ("choice", format!("{} > 3 ? 1 : 2", run("2", "5")), "gauge"),
        ("false", format!("{} > 3", run("2.0", "5.0")), "gauge"),
        ("words", run("value=-12.5C", "10%"), "gauge"),
    ];
    let mut text = String::new();
    for (name, expression, options) in expressions {
        text.push_str(&format!("Target[{name}]: {expression}\n"));
        if !options.is_empty() {
            text.push_str(&format!("Options[{name}]: {options}\n"));
        }
    }
    text.push_str("Directory[plain]: Sub/Deep\nAbsMax[counter]: 5000\nMaxBytes2[reset]: 77\nRRDRowCount[signed]: 1600\n");
    text.push_str("RRDRowCount30m[signed]: 100\nRRDRowCount1d[signed]: 90\n");
    text.push_str("RRDHWRRAs[rounded]: RRA:HWPREDICT:1440:0.1:0.0035:288\n");
    text
}

const NAMES: [&str; 11] = [
    "Sub/Deep/plain",
    "upper",
    "counter",
    "reset",
    "signed",
    "quotient",
    "percent",
    "rounded",
    "choice",
    "false",
    "words",
];

#[test]
fn rrds_and_readings_are_those_of_mrtg() {
    for interval in ["5", "1:40"] {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let program = root.join("say.sh");
        fs::write(&program, "#!/bin/sh\necho \"$1\"; echo \"$2\"; echo up; echo name\n").unwrap();
        Command::new("chmod").arg("+x").arg(&program).status().unwrap();
        let write = |side: &str| {
            fs::create_dir_all(root.join(side)).unwrap();
            let text = format!(
                "WorkDir: {}/{side}\nInterval: {interval}\n{HEAD}{}",
                root.display(),
                targets(&program)
            );
            let file = root.join(format!("{side}.cfg"));
            fs::write(&file, text).unwrap();
            file
        };
        let (said_well, said) = mrtg(&write("theirs"));
        assert!(said_well, "{said}");
        let _daemon = Daemon::start(root, &write("ours"));
        for name in NAMES {
            let theirs = Command::new("/usr/bin/rrdtool")
                .arg("info")
                .arg(root.join(format!("theirs/{name}.rrd")))
                .output()
                .unwrap();
            let theirs = String::from_utf8(theirs.stdout).unwrap();
            assert!(theirs.contains("step = "), "{name}: {said}");
            assert_eq!(
                lasting(&our_info(root, &format!("{name}.rrd"))),
                lasting(&theirs),
                "{interval}: {name}"
            );
        }
    }
}

/// Our words are MRTG's, and the line is right; MRTG's is that of the next keyword, or 0 at the end.
#[test]
fn what_mrtg_refuses_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let good = "Target[a]: `true`\nMaxBytes[a]: 100\nTitle[a]: t\n";
    for (line, words, tail) in [
        (6, "Unknown Option \"foo\"", format!("{good}Foo[a]: x\n")),
        (
            6,
            "contains a duplicate definition for title[a].\nFirst definition is on line 5",
            format!("{good}Title[a]: x\n"),
        ),
        (6, "(no line) in CFG file", format!("{good}no line\n")),
        (
            4,
            "0 must be a Number bigger than 0",
            "Target[a]: `true`\nMaxBytes[a]: 0\nTitle[a]: t\n".to_string(),
        ),
        (3, "\"MaxBytes[a]\" not specified", "Target[a]: `true`\nTitle[a]: t\n".to_string()),
        (3, "I can't find a \"target[a]\" definition", "MaxBytes[a]: 1\nTitle[a]: t\n".to_string()),
        (6, "Option[a]: \"foo\" is unknown", format!("{good}Options[a]: foo\n")),
        (6, "must be between 30 and 600 pixels", format!("{good}XSize[a]: 10\n")),
        (6, "unable to open include file: ", format!("{good}Include: nothere.inc\n")),
        (6, "\"colours[a]\" for colour definition", format!("{good}Colours[a]: GREEN\n")),
        (6, "should be 300 seconds or more", format!("{good}Refresh: 10\n")),
        (6, "Must have the format \"OptA => Number", format!("{good}SnmpOptions[a]: x y\n")),
    ] {
        let file = root.join("bad.cfg");
        fs::write(&file, format!("WorkDir: {}\nLogFormat: rrdtool\n{tail}", root.display())).unwrap();
        let (is_well, said) = mrtg(&file);
        assert!(!is_well && said.contains(words), "{words}: {said}");
        let output = Command::new(env!("CARGO_BIN_EXE_roundel"))
            .args(["mrtg", "--check"])
            .arg(&file)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(words), "{words}: {said}");
        assert!(said.contains(&format!("bad.cfg:{line}: ")), "{line}: {said}");
    }
}

/// A file that is changed takes effect; one that is broken changes nothing; SIGHUP reads it at once.
#[test]
fn a_changed_file_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let file = root.join("mrtg.cfg");
    let write = |tail: &str| {
        let text = format!("WorkDir: {}/ours\n{HEAD}Interval: 0:1\n{tail}", root.display());
        fs::write(&file, text).unwrap();
    };
    write("Target[a]: `echo 5; echo 6`\nOptions[a]: gauge\n");
    let daemon = Daemon::start(root, &file);
    our_info(root, "a.rrd");
    write("Target[b]: `echo 5; echo 6`\nFoo[b]: x\n");
    daemon.hang_up();
    wait_for("a complaint", || {
        let log = fs::read_to_string(root.join("log")).ok()?;
        (log.contains("Unknown Option") && log.contains("stays in force")).then_some(())
    });
    write(
        "Target[a]: `echo 7; echo 8`\nOptions[a]: gauge\nMaxBytes[a]: 55\nTarget[b]: `echo 1; echo 2`\nOptions[b]: gauge\n",
    );
    daemon.hang_up();
    our_info(root, "b.rrd");
    wait_for("a tuned RRD", || {
        our_info(root, "a.rrd").contains("ds[ds0].max = 5.5000000000e+01").then_some(())
    });
    let log = fs::read_to_string(root.join("log")).unwrap();
    assert_eq!(log.matches("Unknown Option").count(), 1 + usize::from(log.contains("over:")), "{log}");
}
