use super::*;

/// A dispatcher of so many devices, `r0` and so on, with this file.
fn dispatcher(directory: &std::path::Path, patterns: &[&str], devices: usize) -> Arc<Dispatcher> {
    let agents: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_string()).collect();
    let source = |n| SnmpSource { agents: agents.clone(), ..SnmpSource::new(&format!("r{n}")) };
    let devices = HandedOut { sources: (0..devices).map(source).collect(), ..Default::default() };
    // Time is made to pass by what is noted of it.
    let handover = Duration::from_secs(3_600);
    Dispatcher::open(WorkSettings { devices, handover, file: directory.join("assignments") }).unwrap()
}

/// Lets an hour pass for the agents that are there and those that are gone.
fn pass_an_hour(dispatcher: &Dispatcher) {
    let mut state = dispatcher.lock();
    let hour = Duration::from_secs(3_600);
    state.workers.values_mut().for_each(|worker| worker.since -= hour);
    state.gone.values_mut().for_each(|since| *since -= hour);
    state.due = Some(Instant::now());
    drop(state);
    dispatcher.tick();
}

/// Which devices each agent has.
fn shares(dispatcher: &Dispatcher) -> BTreeMap<String, Vec<String>> {
    let state = dispatcher.lock();
    let mut shares: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for device in state.devices.keys() {
        let agent = state.assignments.of(device).map_or("", |(_, agent)| agent);
        shares.entry(agent.to_string()).or_default().push(device.clone());
    }
    shares
}

fn counts(dispatcher: &Dispatcher) -> Vec<(String, usize)> {
    shares(dispatcher).into_iter().map(|(agent, devices)| (agent, devices.len())).collect()
}

#[test]
fn devices_are_shared_out_and_few_move_when_an_agent_comes_or_goes() {
    let directory = tempfile::tempdir().unwrap();
    let dispatcher = dispatcher(directory.path(), &["hall-*"], 900);
    assert_eq!(counts(&dispatcher), [(String::new(), 900)]);
    let _other = dispatcher.join(b"office", vec!["hall-3".to_string()], true);
    assert_eq!(counts(&dispatcher), [(String::new(), 900)]);
    let _first = dispatcher.join(b"hall-1", Vec::new(), true);
    assert_eq!(counts(&dispatcher), [("hall-1".to_string(), 900)]);
    let second = dispatcher.join(b"hall-2", Vec::new(), true);
    // An agent that has just come takes nothing from one that is there.
    assert_eq!(counts(&dispatcher), [("hall-1".to_string(), 900)]);
    pass_an_hour(&dispatcher);
    let two = shares(&dispatcher);
    assert!((350..550).contains(&two["hall-2"].len()), "{:?}", counts(&dispatcher));
    let _third = dispatcher.join(b"hall-3", Vec::new(), true);
    pass_an_hour(&dispatcher);
    let three = shares(&dispatcher);
    assert!((230..370).contains(&three["hall-3"].len()), "{:?}", counts(&dispatcher));
    for agent in ["hall-1", "hall-2"] {
        assert!(three[agent].iter().all(|device| two[agent].contains(device)), "only to the new one");
    }
    // A short absence moves nothing, a long one what it had.
    drop(second);
    dispatcher.tick();
    assert_eq!(shares(&dispatcher), three);
    pass_an_hour(&dispatcher);
    let without = shares(&dispatcher);
    assert!(!without.contains_key("hall-2"));
    assert!(three["hall-1"].iter().all(|device| without["hall-1"].contains(device)));
    let _second = dispatcher.join(b"hall-2", Vec::new(), true);
    assert_eq!(shares(&dispatcher), without);
    pass_an_hour(&dispatcher);
    assert_eq!(shares(&dispatcher), three);
}

#[test]
fn what_no_other_agent_may_poll_stays_and_a_restart_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let first = dispatcher(directory.path(), &["tag:lab", "spare"], 50);
    let seat = first.join(b"a", vec!["lab".to_string()], true);
    let before = first.assignments();
    drop(seat);
    pass_an_hour(&first);
    assert_eq!(first.assignments(), before);
    // A newer session of the same agent, and the end of the older one.
    let old = first.join(b"a", vec!["lab".to_string()], true);
    let mut new = first.join(b"a", vec!["lab".to_string()], true);
    drop(old);
    assert_eq!(first.lock().workers.len(), 1);
    let mut said = Vec::new();
    new.push_changes(&mut said);
    assert!(said.len() > 50 * 100);
    let bytes = said.len();
    new.push_changes(&mut said);
    assert_eq!(said.len(), bytes, "nothing has changed");
    drop(new);
    let second = dispatcher(directory.path(), &["tag:lab", "spare"], 50);
    assert_eq!(second.assignments(), before);
    // While the agents come back.
    let _spare = second.join(b"spare", Vec::new(), true);
    second.tick();
    assert_eq!(second.assignments(), before);
    pass_an_hour(&second);
    assert_eq!(counts(&second), [("spare".to_string(), 50)]);
    assert!(second.assignments().of("r7").unwrap().0 > before.of("r7").unwrap().0);
    // Devices that the configuration no longer has, or gives to others.
    let third = dispatcher(directory.path(), &["b"], 20);
    let _spare = third.join(b"spare", Vec::new(), true);
    assert_eq!(counts(&third), [(String::new(), 20)]);
    assert_eq!(third.assignments().devices().count(), 0);
}

#[test]
fn what_cannot_be_written_is_not_done() {
    let directory = tempfile::tempdir().unwrap();
    let dispatcher = dispatcher(directory.path(), &["*"], 5);
    let block = directory.path().join("assignments.new");
    std::fs::create_dir(&block).unwrap();
    let mut seat = dispatcher.join(b"a", Vec::new(), true);
    let mut said = Vec::new();
    seat.push_changes(&mut said);
    assert_eq!((counts(&dispatcher), said.len()), (vec![(String::new(), 5)], 12 + 5));
    std::fs::remove_dir(&block).unwrap();
    pass_an_hour(&dispatcher);
    assert_eq!(counts(&dispatcher), [("a".to_string(), 5)]);
}

#[test]
fn a_damaged_file_is_put_aside() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("assignments"), "roundel-assignments 1\n").unwrap();
    let dispatcher = dispatcher(directory.path(), &["*"], 5);
    assert!(directory.path().join("damaged-assignments").exists());
    let _seat = dispatcher.join(b"a", Vec::new(), true);
    assert_eq!(counts(&dispatcher), [("a".to_string(), 5)]);
}

#[test]
fn profiles_go_with_their_devices_to_agents_that_take_them() {
    let directory = tempfile::tempdir().unwrap();
    let with = |name: &str, profile: &str| SnmpSource {
        agents: vec!["*".to_string()],
        profiles: vec!["if-mib".to_string(), profile.to_string()],
        ..SnmpSource::new(name)
    };
    let handed_out = |text: &str| HandedOut {
        sources: vec![with("r1", "/a.toml"), with("r2", "/a.toml"), with("r3", "ucd")],
        profiles: [("/a.toml".to_string(), text.into())].into(),
    };
    let (devices, handover) = (handed_out("acme = 1"), Duration::from_secs(3_600));
    let file = directory.path().join("assignments");
    let dispatcher = Dispatcher::open(WorkSettings { devices, handover, file }).unwrap();
    let said = |seat: &mut Seat| {
        let mut out = Vec::new();
        seat.push_changes(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    };
    let mut earlier = dispatcher.join(b"earlier", Vec::new(), false);
    assert_eq!(counts(&dispatcher), [(String::new(), 2), ("earlier".to_string(), 1)]);
    assert!(!said(&mut earlier).contains("acme"));
    let mut seat = dispatcher.join(b"new", Vec::new(), true);
    assert_eq!(shares(&dispatcher)["new"], ["r1", "r2"]);
    let first = said(&mut seat);
    assert_eq!((first.matches("acme = 1").count(), first.matches("\"device\":\"r").count()), (1, 2));
    dispatcher.replace(handed_out("acme = 1")).unwrap();
    assert_eq!(said(&mut seat), "");
    dispatcher.replace(handed_out("acme = 2")).unwrap();
    assert!(said(&mut seat).contains("acme = 2"));
    assert_eq!(said(&mut earlier), "");
}
