//! SIGHUP on an agent and on the store: what is polled changes while it is polled, and what stays notices nothing.

use std::fs;

use testkit::{Client, wait_until};

use crate::work::{Agent, World, now};

/// A line of the poller about a changed configuration.
pub fn polls(removed: usize, added: usize, unchanged: usize) -> String {
    format!("removed={removed} added={added} unchanged={unchanged}")
}

pub fn wait_for_line(agent: &Agent, line: &str) {
    wait_until(line, || agent.log().contains(line));
}

#[test]
fn an_agent_reads_its_configuration_again() {
    let mut world = World::new();
    let mut client = world.store.start();
    let root = world.directory.path().to_path_buf();
    let mrtg = root.join("mrtg.cfg");
    fs::write(
        &mrtg,
        "WorkDir: /\nLogFormat: rrdtool\nTarget[a]: `echo 1; echo 2`\nMaxBytes[a]: 9\nTitle[a]: a\n",
    )
    .unwrap();
    let head = format!("[[mrtg]]\nconfig = '{}'\n", mrtg.display());
    let device = |name: &str| world.device(name);
    let mut agent = Agent::start_with(&root, "office", world.port, &(head.clone() + &device("o1")));
    world.wait_for_reading(&mut client, "o1", 0);
    let reload = |agent: &mut Agent, devices: &str| {
        agent.configure(&format!("{head}{devices}"));
        agent.reload();
    };

    reload(&mut agent, &(device("o1") + &device("o2") + "[collect]\nhost = true\n"));
    wait_for_line(&agent, &polls(0, 1, 1));
    wait_for_line(&agent, "take a restart: [collect]");
    world.wait_for_reading(&mut client, "o2", 0);
    // The same file, read at once.
    wait_until("mrtg.cfg", || agent.log().matches("polling in MRTG's place").count() == 2);

    for (bad, want) in [
        (device("o2") + "version = '7'\n", "version \"7\""),
        (world.handed_out("o2"), "on an agent, leave it out"),
        (
            "[agents]\nlisten = ['127.0.0.1:1']\n".to_string() + &world.handed_out("o2"),
            "agents is for the store's configuration",
        ),
    ] {
        reload(&mut agent, &bad);
        wait_for_line(&agent, want);
        wait_for_line(&agent, "was not reloaded");
    }
    let passed = now();
    world.wait_for_reading(&mut client, "o1", passed + 1);
    world.wait_for_reading(&mut client, "o2", passed + 1);

    reload(&mut agent, &device("o2"));
    wait_for_line(&agent, &polls(1, 0, 1));
    let stopped = now() + 1;
    world.wait_for_reading(&mut client, "o2", stopped + 3);
    assert!(world.last(&mut client, "o1") <= stopped);
    assert!(!agent.log().contains("s3cret"), "{}", agent.log());
}

/// What `/metrics` would say: readings of agents that the store refused because they were not theirs to poll.
fn refused(agent: &Agent) -> bool {
    agent.log().contains("its device was not this agent's to poll by then")
}

#[test]
fn the_store_hands_out_what_its_configuration_says_now() {
    let mut world = World::new();
    let mut client = world.store.start();
    let root = world.directory.path().to_path_buf();
    let mut first = Agent::start(&root, "hall-1", world.port);
    world.wait_for_all(&mut client, 0);
    let before = world.assignments();

    // d0 comes to the store, d1 goes, d2 is polled in another way, d8 is new; d3 to d7 stay.
    let staying: String = (3..8).map(|device| world.handed_out(&format!("d{device}"))).collect();
    let other = world.handed_out("d2") + "retries = 1\n";
    let devices = [staying, other, world.handed_out("d8"), world.device("d0")];
    world.configure(&devices.concat());
    world.store.reload();
    wait_for_line(&first, &polls(3, 2, 5));
    let moved = now();
    let after = world.assignments();
    for device in ["d2", "d3", "d4", "d5", "d6", "d7"] {
        assert_eq!(after[device], before[device], "{device} stays with its agent");
    }
    assert!(after.contains_key("d8") && !after.contains_key("d0") && !after.contains_key("d1"), "{after:?}");
    assert!(!fs::read_to_string(first.directory.join("spool/work")).unwrap().contains("\"d0\""));
    for device in ["d0", "d2", "d7", "d8"] {
        world.wait_for_reading(&mut client, device, moved + 2);
    }
    assert!(world.last(&mut client, "d1") <= moved + 1, "it is polled no more");

    // A mistake changes nothing.
    world.configure(&(devices.concat() + &world.handed_out("d9") + "version = '7'\n"));
    world.store.reload();
    wait_until("a complaint", || world.store.log().contains("was not reloaded"));
    assert_eq!(world.assignments(), after);

    // And back, with what the store polled until then; the agent restarts without it.
    world.configure(&(devices[..3].concat() + &world.handed_out("d0")));
    world.store.reload();
    wait_for_line(&first, &polls(0, 1, 7));
    world.wait_for_reading(&mut client, "d0", now() + 2);
    assert_eq!(world.assignments()["d0"].1, "hall-1");
    first.kill();
    first.start_again();
    world.wait_for_reading(&mut client, "d0", now() + 2);
    assert!(!world.store.log().contains("take a restart"), "{}", world.store.log());
}

#[test]
fn a_device_that_comes_to_the_store_is_not_fed_by_the_agent_that_was_cut_off() {
    let mut world = World::new();
    let mut client = world.store.start();
    let root = world.directory.path().to_path_buf();
    let agent = Agent::start(&root, "hall-1", world.port);
    world.wait_for_all(&mut client, 0);
    agent.network.cut();
    world.configure(&world.device("d0"));
    world.store.reload();
    let moved = now();
    world.wait_for_reading(&mut client, "d0", moved + 1);
    // From here on only the one that was cut off polls, and its readings are the newest.
    world.configure("");
    world.store.reload();
    wait_until("a store that polls nothing", || world.store.log().contains(&polls(1, 0, 0)));
    let last = world.last(&mut client, "d0");
    agent.wait_for_run("snmp/d0.rrd", last, 5);
    let mended = now();
    agent.network.mend();
    wait_until("the refusal", || refused(&agent));
    wait_for_line(&agent, &polls(8, 0, 0));
    assert_eq!(fetch(&mut client, last + 1, mended), [""; 0]);
    assert!(world.store.log().contains("were not its own to poll by then"), "{}", world.store.log());
    assert_eq!(world.share("hall-1"), 0);
}

/// The rows of d0 that have values.
fn fetch(client: &mut Client, from: i64, to: i64) -> Vec<String> {
    let answer = client.ask(&format!("FETCH snmp/d0.rrd LAST {from} {to}")).unwrap();
    let rows = answer.lines.into_iter().filter(|line| line.starts_with(char::is_numeric));
    rows.filter(|line| !line.to_lowercase().contains("nan")).collect()
}
