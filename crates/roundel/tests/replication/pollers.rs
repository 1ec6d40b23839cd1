//! Nodes of a cluster that have the same devices in their configuration: each is polled by one node, which is killed and paused.

use std::time::{SystemTime, UNIX_EPOCH};

use testkit::{free_port, http_get, wait_until};

use super::cluster::{are_well, node};
use super::held::HeldAnswers;
use super::server::Server;
use super::snmpd::Snmpd;
use super::spool::pause;

/// Devices, of many directories.
const DEVICES: u64 = 12;

/// What `/metrics` says of the poller.
fn metric(port: u16, name: &str) -> u64 {
    let text = http_get(port, "/metrics").unwrap_or_default();
    let prefix = format!("roundel_snmp_{name}");
    let value = text.lines().find_map(|line| {
        let (metric, value) = line.split_once(' ')?;
        (metric.strip_suffix("_total").unwrap_or(metric) == prefix).then(|| value.parse().ok())?
    });
    value.unwrap_or(0)
}

fn section(number: u64, port: u16) -> String {
    format!("[[snmp]]\ndevice = '127.0.0.1:{port}'\nname = 'd{number}'\nstep = '1s'\nheartbeat = '60s'\n")
}

fn last(server: &Server, device: u64) -> u64 {
    let answer = server.say(&format!("LAST net/d{device}/lo.rrd"));
    answer.strip_prefix("0 ").and_then(|time| time.parse().ok()).unwrap_or(0)
}

/// Waits until each device is polled by some node after this moment.
fn wait_for_polls(server: &Server) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    wait_until("later readings of all devices", || (0..DEVICES).all(|device| last(server, device) > now + 1));
}

#[test]
fn each_device_is_polled_by_the_node_that_leads_and_by_no_paused_one() {
    let parent = tempfile::tempdir().unwrap();
    let snmpd = Snmpd::start(parent.path(), "", None);
    let ports = [free_port(), free_port()];
    let held = HeldAnswers::of(snmpd.port);
    let [mut a, mut b] = ["a", "b"].map(|name| node(parent.path(), name));
    for (server, http, device) in [(&mut a, ports[0], snmpd.port), (&mut b, ports[1], held.port)] {
        let devices: String = (0..DEVICES).map(|number| section(number, device)).collect();
        server.more(&format!("[http]\nlisten = ['127.0.0.1:{http}']\n{devices}"));
        server.start();
    }
    wait_until("both to have everything", || are_well(&a, &["a", "b"]) && are_well(&b, &["a", "b"]));
    let polled = || ports.map(|port| metric(port, "devices"));
    wait_until("each device to be polled by one", || polled().iter().sum::<u64>() == DEVICES);
    wait_for_polls(&a);
    assert_eq!(ports.map(|port| metric(port, "refused")), [0, 0], "two that write one RRD refuse each other");

    a.kill();
    wait_until("the other to poll all", || metric(ports[1], "devices") == DEVICES);
    wait_for_polls(&b);
    a.start();
    wait_until("it to have caught up", || are_well(&b, &["a", "b"]));

    // Answers reach the paused one while another polls. Written when it wakes up, they would be late and refused.
    held.hold();
    wait_until("answers on their way", || held.count() > 0);
    pause(&b, parent.path());
    wait_until("the first to poll all", || metric(ports[0], "devices") == DEVICES);
    wait_for_polls(&a);
    held.release();
    b.signal(testkit::Signal::CONT);
    wait_until("each device to be polled by one", || polled().iter().sum::<u64>() == DEVICES);
    wait_for_polls(&b);
    assert_eq!(
        ports.map(|port| metric(port, "refused")),
        [0, 0],
        "what the paused one had asked is not written"
    );
    // Their own numbers do not meet.
    for name in ["a", "b"] {
        wait_until("numbers of its own", || {
            b.say(&format!("LAST roundel/{name}/snmp.rrd")).starts_with("0 ")
        });
    }
}
