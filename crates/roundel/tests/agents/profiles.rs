//! Profiles that are files of the store go to agents with their devices.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc::channel;

use testkit::{Client, DEADLINE, wait_for, wait_until};

use crate::reload::{polls, wait_for_line};
use crate::work::{Agent, World, join, now, work};

const MIB: &str = "acmeLoad OBJECT-TYPE SYNTAX INTEGER ::= { enterprises 99999 3 }";

/// A profile with these data sources.
fn profile(ds: &[&str]) -> String {
    let ds = ds.iter().map(|name| format!("{{ name = '{name}', objects = ['acmeLoad'], kind = 'gauge' }}"));
    let ds: Vec<String> = ds.collect();
    format!(
        "mibs = ['ACME-MIB']\n[[table]]\nname = 'acme'\npath = 'acme/{{device}}.rrd'\nds = [{}]\n",
        ds.join(", ")
    )
}

/// The last value of a data source of d0's RRD.
fn last(client: &mut Client, ds: &str) -> Option<f64> {
    let info = client.ask("INFO acme/d0.rrd").ok()?.lines.join("\n");
    let line = info.lines().find(|line| line.starts_with(&format!("ds[{ds}].last_ds")))?.to_string();
    line.split(' ').next_back()?.parse().ok()
}

#[test]
fn an_agent_needs_no_file_and_one_of_an_earlier_release_is_not_chosen() {
    let mut world = World::new();
    let root = world.directory.path().to_path_buf();
    let file = root.join("acme.toml");
    fs::write(root.join("ACME-MIB"), MIB).unwrap();
    fs::write(&file, profile(&["load"])).unwrap();
    let device =
        |world: &World| world.handed_out("d0") + &format!("profiles = ['if-mib', '{}']\n", file.display());
    world.configure(&(device(&world) + &world.handed_out("d1")));
    let mut client = world.store.start();

    let mut earlier = join(world.port, b"hall-0");
    assert_eq!(work(&mut earlier).len(), 1);
    let held = world.assignments();
    assert!(held.contains_key("d1") && !held.contains_key("d0"), "{held:?}");
    assert!(
        world.store.log().contains("an agent of an earlier release polls no devices"),
        "{}",
        world.store.log()
    );

    let mut agent = Agent::start(&root, "hall-1", world.port);
    wait_until("a value of the profile", || last(&mut client, "load") == Some(-17.0));
    assert_eq!(world.assignments()["d0"].1, "hall-1");
    drop(earlier);

    // Another profile, by SIGHUP on the store.
    fs::write(&file, profile(&["load", "again"])).unwrap();
    world.store.reload();
    wait_until("the new data source", || last(&mut client, "again") == Some(-17.0));

    // One that is too large changes nothing.
    let mut large = profile(&["load"]);
    for table in 0..1_000 {
        write!(
            large,
            "{}",
            profile(&["x"]).replace("mibs = ['ACME-MIB']", "").replace("'acme'", &format!("'a{table}'"))
        )
        .unwrap();
    }
    fs::write(&file, large).unwrap();
    world.store.reload();
    wait_until("a complaint", || world.store.log().contains("and is handed out up to 65536"));

    // Without the store and the file, also after its own restart.
    world.store.kill();
    fs::remove_file(&file).unwrap();
    agent.kill();
    agent.start_again();
    let again = wait_for("the agent's start", || agent.log().matches("collecting").nth(1).map(|_| now()));
    agent.wait_for_run("acme/d0.rrd", again, 4);
    let down = now();
    fs::write(&file, profile(&["load", "again"])).unwrap();
    let mut client = world.store.start();
    wait_until("what was read without the store", || {
        let answer = client.ask(&format!("FETCH acme/d0.rrd LAST {again} {down}")).unwrap();
        let rows = answer.lines.iter().filter(|line| line.starts_with(char::is_numeric));
        rows.filter(|line| !line.to_lowercase().contains("nan")).count() >= 2
    });
    // It has that of the earlier agent by now, too, which is gone.
    wait_for_line(&agent, &polls(0, 1, 1));
    world.configure(&world.handed_out("d1"));
    world.store.reload();
    wait_for_line(&agent, &polls(1, 0, 1));
}

/// A store of the release before, as far as it speaks.
#[test]
fn an_agent_speaks_the_version_of_an_earlier_store() {
    let directory = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (said, asked) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).ok();
            let answer: &[u8] = match line.as_str() {
                "FRAMES 3\n" => b"0 Frames of version 3 from here on\n",
                _ => b"-1 Only frames of version 3 are spoken here.\n",
            };
            stream.write_all(answer).ok();
            said.send(line).ok();
        }
    });
    let _agent = Agent::start(directory.path(), "hall-1", port);
    let mut lines = Vec::new();
    while !lines.contains(&"FRAMES 3\n".to_string()) {
        lines.push(asked.recv_timeout(DEADLINE).unwrap());
    }
    assert_eq!(lines[0], "FRAMES 4\n");
}
