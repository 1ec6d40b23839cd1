//! Clocks that are wrong.

use super::*;

/// Lets a program's clock be off by `clock`, such as `-2d`. The program `faketime` would do the same, but cannot be killed with what it runs.
pub fn set(command: &mut Command, clock: &str) {
    // Waits must not be skewed.
    command.env("LD_PRELOAD", testkit::faketime()).env("FAKETIME", clock);
    command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
}

/// Removes the shared memory of killed programs with wrong clocks when dropped.
struct Clocks;

impl Clocks {
    /// Returns `None`, and skips the test, if faketime is not installed: the dynamic linker only warns of a missing library.
    fn installed() -> Option<Clocks> {
        let library = testkit::faketime();
        testkit::peer::debian("faketime", library.to_str().unwrap()).map(|_| Clocks)
    }
}

impl Drop for Clocks {
    fn drop(&mut self) {
        testkit::stale::remove_clocks();
    }
}

#[test]
fn a_new_spool_of_a_host_whose_clock_was_set_back_is_the_newest_all_the_same() {
    let Some(_clocks) = Clocks::installed() else { return };
    let mut world = World::new(Kind::Stripes);
    world.daemon.start();
    world.start_agent(20);
    world.wait_until_done();
    world.kill_agent();
    std::fs::remove_dir_all(world.directory.path().join("spool")).unwrap();
    world.clock = Some("-2d");
    world.start_agent(40);
    world.wait_until_done();
    world.check(1, 40, "after the clock was set back");
}

#[test]
fn clocks_that_differ_are_reported_once() {
    let Some(_clocks) = Clocks::installed() else { return };
    let mut world = World::new(Kind::Stripes);
    let mut client = world.daemon.start();
    let config = world.host_agent_toml("hall-3");
    let place = world.directory.path().join("agent.log");
    let mut command = Command::new(env!("CARGO_BIN_EXE_roundel"));
    set(&mut command, "-1h");
    command.args(["agent", "--config"]).arg(&config);
    let agent = testkit::Running::start(&mut command, &place);
    let log = || std::fs::read_to_string(&place).unwrap_or_default();
    testkit::wait_until("the skew is reported", || log().contains("this host's clock is ahead"));
    // Its readings are an hour old, as it says.
    testkit::wait_until("readings arrive", || {
        client.ask("LAST roundel/hall-3/agent.rrd").unwrap().status >= 0
    });
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    let last: i64 = client.ask("LAST roundel/hall-3/agent.rrd").unwrap().message.parse().unwrap();
    assert!((now - 3_600 - last).abs() < 600, "{last}, now {now}");
    world.daemon.kill();
    world.daemon.spawn();
    testkit::wait_until("another session", || log().matches("connected to the store").count() == 2);
    assert_eq!(log().matches("this host's clock is ahead").count(), 1, "{}", log());
    agent.kill();
}
