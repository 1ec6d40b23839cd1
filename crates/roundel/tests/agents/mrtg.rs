//! An mrtg.cfg on an agent: readings, and what MRTG does by looking at an RRD.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use testkit::{Client, free_port, http_get, wait_for, wait_until};

use crate::work::{Agent, World, now};

/// An agent's configuration, and its mrtg.cfg of one target without `Options`.
struct Config {
    file: PathBuf,
    head: String,
    sections: String,
}

impl Config {
    fn new(root: &Path) -> Config {
        let file = root.join("mrtg.cfg");
        let head = format!(
            "WorkDir: {}\nLogFormat: rrdtool\nInterval: 0:2\nTitle[_]: t\nTarget[a.b]: `cat {}/values`\n",
            root.display(),
            root.display()
        );
        let sections = format!("base = '{}'\n[[mrtg]]\nconfig = '{}'\n", root.display(), file.display());
        fs::write(root.join("values"), "5\n7\n").unwrap();
        Config { file, head, sections }
    }

    fn write(&self, tail: &str) {
        fs::write(&self.file, format!("{}{tail}", self.head)).unwrap();
    }
}

fn info(client: &mut Client, name: &str) -> String {
    client.ask(&format!("INFO {name}")).unwrap().lines.join("\n")
}

#[test]
fn an_rrd_that_is_there_gets_the_types_and_maxima_of_the_file() {
    let mut world = World::new();
    let mut client = world.store.start();
    let root = world.directory.path().to_path_buf();
    let made = "CREATE a.b.rrd -s 2 DS:ds0:DERIVE:600:0:55 DS:ds1:GAUGE:600:0:55 RRA:AVERAGE:0.5:1:100";
    assert_eq!(client.ask(made).unwrap().status, 0);
    let config = Config::new(&root);
    config
        .write("MaxBytes[a.b]: 1000\nOptions[a.b]: gauge\nTarget[new]: `echo 1; echo 2`\nMaxBytes[new]: 9\n");
    let _agent = Agent::start_with(&root, "office", world.port, &config.sections);
    let is = |client: &mut Client, name: &str, lines: &[&str]| {
        let text = info(client, name);
        lines.iter().all(|line| text.contains(line))
    };
    let want = ["ds[ds0].type 2 GAUGE", "ds[ds0].max 0 1.0000000000e+03", "ds[ds1].max 0 1.0000000000e+03"];
    wait_until("an RRD that is tuned", || is(&mut client, "a.b.rrd", &want));
    assert!(!info(&mut client, "a.b.rrd").contains("rra[1]"), "the archives stay");
    let want = ["ds[ds0].max 0 9.0000000000e+00", "ds[ds1].type 2 COUNTER", "step 1 2", "rra[7]"];
    wait_until("a new RRD", || is(&mut client, "new.rrd", &want));
    config.write("MaxBytes[a.b]: 2000\nOptions[a.b]: gauge\n");
    wait_until("the changed file", || is(&mut client, "a.b.rrd", &["ds[ds0].max 0 2.0000000000e+03"]));
    wait_until("rows", || {
        let answer = client.ask(&format!("FETCH a.b.rrd AVERAGE {} {}", now() - 20, now())).unwrap();
        let rows = answer.lines.iter().filter_map(|line| line.split_once(": "));
        // Shares of rates, added up.
        let rounded = |word: &str| word.parse::<f64>().ok().map(f64::round);
        let values = |text: &str| -> Vec<Option<f64>> { text.split(' ').map(rounded).collect() };
        rows.map(|(_, text)| values(text)).any(|row| row == [Some(5.0), Some(7.0)])
    });
}

#[test]
fn thresholds_act_on_the_agent_and_outlive_its_restart() {
    let mut world = World::new();
    let mut client = world.store.start();
    let root = world.directory.path().to_path_buf();
    let config = Config::new(&root);
    let (program, acted) = (root.join("act"), root.join("acted"));
    fs::write(&program, format!("#!/bin/sh\necho \"$@\" >> {}\n", acted.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(root.join("thresh")).unwrap();
    let tail = format!(
        "MaxBytes[a.b]: 1000\nOptions[a.b]: gauge\nThreshDir: {root}/thresh\nThreshMaxI[a.b]: 50%\n\
         ThreshProgI[a.b]: {root}/act\nThreshProgOKI[a.b]: {root}/act\n",
        root = root.display()
    );
    config.write(&format!("{tail}HWThreshMaxI[a.b]: 1\n"));
    let mut agent = Agent::start_with(&root, "office", world.port, &config.sections);
    wait_until("the refusal", || agent.log().contains("HWThresh of a.b look at the rows of forecasts"));
    assert_eq!(client.ask("LAST a.b.rrd").unwrap().status, -1);
    config.write(&tail);
    wait_until("readings", || client.ask("LAST a.b.rrd").unwrap().status == 0);
    let acts = || fs::read_to_string(&acted).unwrap_or_default();
    let values = |text: &str| {
        fs::write(root.join("next"), text).unwrap();
        fs::rename(root.join("next"), root.join("values")).unwrap();
    };
    values("800\n7\n");
    let broken = wait_for("the action", || Some(acts()).filter(|text| text.ends_with('\n')));
    assert!(broken.starts_with("a.b 50% ") && broken.lines().count() == 1, "{broken}");
    let state = root.join("thresh/mrtg.cfg.a.b.threshmaxI");
    wait_until("the state", || state.exists());
    agent.kill();
    agent.start_again();
    // What is known of rates begins with the second reading after the start.
    let last = |client: &mut Client| -> i64 { client.ask("LAST a.b.rrd").unwrap().message.parse().unwrap() };
    let again = now();
    wait_until("readings after the restart", || last(&mut client) > again + 6);
    assert_eq!(acts(), broken, "said once");
    values("5\n7\n");
    wait_until("the second action", || acts().lines().count() == 2);
    wait_until("no state", || !state.exists());
}

#[test]
fn an_rrd_older_than_max_age_gets_no_readings() {
    let mut world = World::new();
    let mut client = world.store.start();
    let root = world.directory.path().to_path_buf();
    // LAST answers whole steps.
    let old = (now() - 1_000) / 2 * 2;
    for command in [
        format!(
            "CREATE a.b.rrd -s 2 -b {} DS:ds0:GAUGE:600:0:55 DS:ds1:GAUGE:600:0:55 RRA:AVERAGE:0.5:1:100",
            old - 2
        ),
        format!("UPDATE a.b.rrd {old}:1:2"),
    ] {
        assert_eq!(client.ask(&command).unwrap().status, 0, "{command}");
    }
    let config = Config::new(&root);
    config.write(
        "MaxAge: 600\nMaxBytes[_]: 1000\nOptions[_]: gauge\nTarget[new]: `echo 1; echo 2`\nMaxBytes[a.b]: 9\n",
    );
    let agent = Agent::start_with(&root, "office", world.port, &config.sections);
    wait_until("what the agent says", || agent.log().contains("more than MaxAge, 600 s"));
    let last = |client: &mut Client, name: &str| client.ask(&format!("LAST {name}")).unwrap().message;
    wait_until("readings of the other", || {
        last(&mut client, "new.rrd").parse::<i64>().is_ok_and(|last| last > old + 900)
    });
    assert_eq!(last(&mut client, "a.b.rrd"), old.to_string());
    // Once there is a new reading, the others follow.
    let touched = now() - 100;
    assert_eq!(client.ask(&format!("UPDATE a.b.rrd {touched}:1:2")).unwrap().status, 0);
    wait_until("readings", || last(&mut client, "a.b.rrd").parse::<i64>().is_ok_and(|last| last > touched));
}

#[test]
fn titles_and_legends_are_on_the_page_of_the_store() {
    let mut world = World::new();
    let http = free_port();
    world.configure(&format!("[http]\nlisten = ['127.0.0.1:{http}']\n"));
    let mut client = world.store.start();
    let root = world.directory.path().to_path_buf();
    let config = Config::new(&root);
    let first = "MaxBytes[a.b]: 9\nOptions[a.b]: bits,gauge\nTitle[a.b]: Uplink &amp; attic\nLegendI[a.b]: From it:\n";
    let second = "Target[new]: `echo 1; echo 2`\nMaxBytes[new]: 9\nTitle[new]: Another uplink\n";
    config.write(&format!("{first}{second}"));
    let _agent = Agent::start_with(&root, "office", world.port, &config.sections);
    let is_found = |name: &str, title: &str| {
        let found = http_get(http, "/api/v1/search?q=UPLINK").unwrap_or_default();
        found.contains(name) && found.contains(title)
    };
    wait_until("titles", || is_found("a.b.rrd", "Uplink & attic") && is_found("new.rrd", "Another uplink"));
    wait_until("the RRD", || client.ask("LAST a.b.rrd").unwrap().status == 0);
    let graphs = http_get(http, "/api/v1/graphs?name=a.b.rrd").unwrap();
    for part in ["Uplink & attic", "From it", "vraw0,8,*", "\"unit\":\"bit\""] {
        assert!(graphs.contains(part), "{part}: {graphs}");
    }
    // A store that is started again is told again, and one that was told is told what changes.
    world.store.kill();
    world.store.start();
    wait_until("titles again", || {
        is_found("a.b.rrd", "Uplink & attic") && is_found("new.rrd", "Another uplink")
    });
    config.write(&first.replace("attic", "cellar"));
    wait_until("another title", || is_found("a.b.rrd", "Uplink & cellar"));
    assert!(!is_found("new.rrd", "Another uplink"));
}
