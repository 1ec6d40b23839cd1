//! MRTG with `LogFormat: rrdtool`, polling a real snmpd on loopback whose counters the test sets.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{Running, free_port};

use crate::support::{Place, Way, alike};

/// The objects that are polled: a counter that grows, and a gauge.
const IN: &str = "1.3.6.1.4.1.55555.1.1.0";
const OUT: &str = "1.3.6.1.4.1.55555.1.2.0";

/// An agent with two values of the test's own.
struct Agent {
    port: u16,
    values: PathBuf,
    _process: Running,
}

impl Agent {
    fn start(directory: &Path) -> Agent {
        let (port, values) = (free_port(), directory.join("values"));
        // `pass` runs it with -g and the object's number.
        let script = format!(
            "read in out < {}\ncase \"$2\" in\n.{IN}) printf '%s\\ncounter\\n%s\\n' \"$2\" $in;;\n\
             .{OUT}) printf '%s\\ngauge\\n%s\\n' \"$2\" $out;;\nesac\n",
            values.display()
        );
        let config = format!(
            "agentaddress udp:127.0.0.1:{port}\nrocommunity public 127.0.0.1\n\
             pass .1.3.6.1.4.1.55555.1 /bin/sh {}/pass.sh\n",
            directory.display()
        );
        fs::write(directory.join("pass.sh"), script).unwrap();
        fs::write(directory.join("snmpd.conf"), config).unwrap();
        let mut snmpd = Command::new("/usr/sbin/snmpd");
        snmpd
            .args(["-f", "-Lo", "-C", "-c"])
            .arg(directory.join("snmpd.conf"))
            .arg("-p")
            .arg(directory.join("pid"));
        // No MIBs: Debian does not have their texts.
        snmpd.env("MIBS", "").env("SNMP_PERSISTENT_DIR", directory.join("persistent"));
        let log = directory.join("snmpd.log");
        let mut process = Running::start(&mut snmpd, log.clone());
        // It reports when it listens.
        process.wait_for("snmpd", || {
            fs::read_to_string(&log).unwrap().contains("NET-SNMP version").then_some(())
        });
        Agent { port, values, _process: process }
    }

    fn set(&self, counter: u64, gauge: u64) {
        fs::write(&self.values, format!("{counter} {gauge}\n")).unwrap();
    }
}

/// One poll at a given time.
fn poll(place: &Place, agent: &Agent, minute: u32, counter: u64, gauge: u64) {
    agent.set(counter, gauge);
    let more =
        if place.way == Way::Daemon { format!("RRDCached: {}\n", place.address()) } else { String::new() };
    let target = format!("{IN}&{OUT}:public@127.0.0.1:{}", agent.port);
    let text = format!(
        "WorkDir: {}\nLogFormat: rrdtool\nEnableIPv6: no\n{more}\
         Target[one]: {target}\nMaxBytes[one]: 125000000\nTitle[one]: one\nPageTop[one]: one\n\
         Target[two]: {target}\nMaxBytes[two]: 1000\nTitle[two]: two\nPageTop[two]: two\nOptions[two]: gauge\n",
        place.rrds().display()
    );
    let config = place.write("mrtg.cfg", &text);
    let mut mrtg = place.command_at(&format!("2001-09-09 01:{minute}:00"), "/usr/bin/mrtg");
    // It wants a locale that is not UTF-8.
    let output = mrtg.env("LANG", "C").arg(config).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("ERROR"), "{:?}: {said}", place.way);
}

#[test]
fn mrtg() {
    let directory = tempfile::tempdir().unwrap();
    let agent = Agent::start(directory.path());
    let first = |place: &Place| {
        poll(place, &agent, 40, 1_000, 10);
        poll(place, &agent, 45, 301_000, 20);
    };
    let more = |place: &Place| {
        poll(place, &agent, 50, 4_000_000_000, 30);
        poll(place, &agent, 55, 4_000_300_000, 2_000);
    };
    alike(&Way::OURS, &[&first, &more]);
}
