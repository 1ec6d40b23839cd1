//! SNMP targets beside Debian's MRTG: both ask one snmpd of Debian whose counters stand still.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv6Addr, UdpSocket};
use std::path::Path;
use std::process::Command;

use testkit::{free_port, wait_for, wait_until};

use crate::devices::metric;
use crate::snmpd::Snmpd;
use crate::{Daemon, lasting, mrtg, our_info};

/// Targets of version 3, which Debian's MRTG refuses without a module that Debian does not have by default; and what is said of
/// them. The last has a wrong password.
const THREE: &str = "Target[three1]: #2/11:x@127.0.0.1:PORT::::3
SnmpOptions[three1]: username=>'joe',authpassword=>'authpass123',authprotocol=>'sha',privpassword=>'privpass123',privprotocol=>'aes'
Target[three2]: 1001:x@127.0.0.1:PORT::::3
SnmpOptions[three2]: username=>'sue',authpassword=>'authpass123',authprotocol=>'sha256'
Target[three3]: ifInOctets.1001&ifOutOctets.1001:ann@127.0.0.1:PORT::::3
SnmpOptions[three3]: authpassword=>'authpass123',privpassword=>'privpass123'
Target[three5]: 1001:x@127.0.0.1:PORT::::3
SnmpOptions[three5]: username=>'joe',authkey=>'0x58f4586ff10331a652926d94d84794971ae7246d',authprotocol=>'sha',privkey=>'10012ce0e51ea24bd2701bd46feb4dac',privprotocol=>'aes',contextengineid=>'80001f8880aabbccdd'
Target[three6]: 1001:ann@127.0.0.1:PORT::::3
SnmpOptions[three6]: authkey=>'f31d671209ca402e03b23bf3a36468b3',privkey=>'0x22884a1ee35746c77b3c15eb04e2df02'
Target[three4]: 1001:x@127.0.0.1:PORT::::3
SnmpOptions[three4]: username=>'sue',authpassword=>'authpass124',authprotocol=>'sha256'
";

/// A file for `LoadMIBs`: names of two of the objects below.
pub const MIB: &str = "ACME-MIB DEFINITIONS ::= BEGIN
IMPORTS
    enterprises FROM RFC1155-SMI
    OBJECT-TYPE FROM RFC-1212;

acme OBJECT IDENTIFIER ::= { enterprises 99999 } -- not ours

acmeSize OBJECT-TYPE
    SYNTAX  Gauge
    ACCESS  read-only
    STATUS  mandatory
    DESCRIPTION
        \"Its size.\"
    ::= { acme 2 }

acmeLoad OBJECT-TYPE
    SYNTAX  INTEGER
    ACCESS  read-only
    STATUS  mandatory
    DESCRIPTION
        \"Its load.\"
    ::= { acme 3 }
END
";

/// An interface and some objects that stand still.
pub const OBJECTS: &str = "override .1.3.6.1.2.1.2.2.1.1.1001 integer 1001
override .1.3.6.1.2.1.2.2.1.2.1001 octet_str \"My If:2\"
override .1.3.6.1.2.1.2.2.1.3.1001 integer 117
override .1.3.6.1.2.1.2.2.1.6.1001 octet_str \"abcdef\"
override .1.3.6.1.2.1.2.2.1.7.1001 integer 1
override .1.3.6.1.2.1.2.2.1.8.1001 integer 2
override .1.3.6.1.2.1.2.2.1.10.1001 counter 111111
override .1.3.6.1.2.1.2.2.1.14.1001 counter 33
override .1.3.6.1.2.1.2.2.1.16.1001 counter 222222
override .1.3.6.1.2.1.2.2.1.20.1001 counter 44
override .1.3.6.1.2.1.31.1.1.1.1.1001 octet_str \"2/11\"
override .1.3.6.1.2.1.31.1.1.1.6.1001 counter 4111111
override .1.3.6.1.2.1.31.1.1.1.10.1001 counter 4222222
override .1.3.6.1.2.1.4.20.1.2.10.9.8.7 integer 1001
override .1.3.6.1.4.1.99999.1.0 octet_str \"12.5\"
override .1.3.6.1.4.1.99999.2.0 uinteger 4000000000
override .1.3.6.1.4.1.99999.3.0 integer -17
override .1.3.6.1.4.1.99999.4.0 octet_str \"up 3 days\"
override .1.3.6.1.4.1.99999.5.0 octet_str \" 42 \"
override .1.3.6.1.4.1.99999.6.0 octet_str \"17 C\"
override .1.3.6.1.4.1.99999.7.0 object_id 1.3.6.1
override .1.3.6.1.4.1.99999.8.0 octet_str \"18446744073709551615\"
";

/// Names, targets and options; HERE is the address with its community, NUMBERS a tree with objects.
const TARGETS: &[(&str, &str, &str)] = &[
    ("number", "1001:HERE", ""),
    ("swapped", "-1001:HERE", "gauge"),
    ("hc", "1001:HERE::::2", "gauge"),
    ("nohc", "1001:HERE:2:::2", "gauge"),
    ("patient", "1001:HERE:1.5:2::2", "derive"),
    ("descr", "\\My\\ If\\:2:HERE", "gauge"),
    ("name", "#2/11:HERE::::2", "gauge"),
    ("mac", "!61-62-63-64-65-66:HERE", "gauge"),
    ("type", "%117:HERE", "gauge"),
    ("ip", "/10.9.8.7:HERE", "gauge"),
    ("pair", "1.3.6.1.2.1.2.2.1.14.1001&.1.3.6.1.2.1.2.2.1.20.1001:HERE", "absolute"),
    ("symbols", "ifInErrors.1001&ifOutErrors.1001:HERE", "gauge"),
    ("references", "ifInErrors#2/11&ifOutErrors#2/11:HERE", "gauge"),
    ("mixed", "ifInErrors!61-62-63-64-65-66&ifOutErrors%117:HERE", "gauge"),
    ("states", "ifAdminHack.1001&ifOperHack.1001:HERE", "gauge"),
    ("constants", "PseudoZero&PseudoOne:HERE", "gauge"),
    ("constant", "PseudoOne&ifInErrors.1001:HERE", "gauge"),
    ("texts", "NUMBERS.1.0&NUMBERS.2.0:HERE", "gauge"),
    ("rounded", "NUMBERS.1.0&NUMBERS.8.0:HERE", ""),
    ("signs", "NUMBERS.3.0&NUMBERS.4.0:HERE", "gauge"),
    ("blanks", "NUMBERS.5.0&NUMBERS.6.0:HERE", "gauge"),
    ("oid", "NUMBERS.7.0&NUMBERS.3.0:HERE", "gauge"),
    ("ticks", "sysUpTime&ifInErrors.1001:HERE", "gauge"),
    ("missing1", "ifInErrors.1001&NUMBERS.77.0:HERE", "gauge"),
    ("missing2", "ifInErrors.1001&NUMBERS.77.0:HERE::::2", "gauge"),
    ("nowhere", "#nothere:HERE", "gauge"),
    ("community", "1001:st\\ pi\\@d@127.0.0.1:PORT", "gauge"),
    ("sum", "1001:HERE + ifInErrors.1001&ifOutErrors.1001:HERE * 2", "gauge"),
    ("bits", "1001:HERE * 8", ""),
    ("quotient", "( NUMBERS.3.0&NUMBERS.2.0:HERE ) * 100 / ( 1001:HERE:3 )", "gauge"),
    ("walk", "WaLK2.NUMBERS&WaLK0.NUMBERS:HERE::::2", "gauge"),
    ("next", "GeTNEXTNUMBERS.1&GeTNEXTNUMBERS.1.0:HERE", "gauge"),
    ("mib", "acmeLoad.0&acmeSize.0:HERE", "gauge"),
    ("count", "CnTWaLKNUMBERS&CnTWaLKifInOctets:HERE", "gauge"),
];

fn configuration(root: &Path, side: &str, port: u16, more: &str) -> String {
    let mut text = format!(
        "WorkDir: {}/{side}\nLogFormat: rrdtool\nMaxBytes[_]: 100000000\nTitle[_]: t\nnoHC[nohc]: yes\n{more}",
        root.display()
    );
    for (name, target, options) in TARGETS {
        let target = target.replace("HERE", "public@127.0.0.1:PORT").replace("PORT", &port.to_string());
        let target = target.replace("NUMBERS", "1.3.6.1.4.1.99999");
        text.push_str(&format!("Target[{name}]: {target}\nOptions[{name}]: {options}\n"));
    }
    text
}

/// The bytes of a `.rrd` file up to the time of the last update: version, step, data sources, archives.
fn header(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    let count = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let (sources, archives) = (count(24), count(32));
    bytes[..128 + 120 * (sources + archives)].to_vec()
}

#[test]
fn rrds_and_answers_of_agents_are_those_of_mrtg() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let snmpd = Snmpd::start(root, OBJECTS, None);
    let write = |side: &str, more: &str| {
        fs::create_dir_all(root.join(side)).unwrap();
        let file = root.join(format!("{side}.cfg"));
        fs::write(&file, configuration(root, side, snmpd.port, more)).unwrap();
        file
    };
    let mib = root.join("acme.mib");
    fs::write(&mib, MIB).unwrap();
    let load = format!("LoadMIBs: {}\n", mib.display());
    let (_, said) = mrtg(&write("theirs", &load));
    let six = "EnableIPv6: yes\nTarget[six]: 1001:public@[::1]:PORT\nOptions[six]: gauge\n";
    let more = [six, THREE, &load].concat().replace("PORT", &snmpd.port.to_string());
    let _daemon = Daemon::start_with(root, &write("ours", &more), "layout = 'files'\n");
    for (name, ..) in TARGETS {
        let file = |side: &str| root.join(format!("{side}/{name}.rrd"));
        let theirs = Command::new("/usr/bin/rrdtool").arg("info").arg(file("theirs")).output().unwrap();
        let theirs = String::from_utf8(theirs.stdout).unwrap();
        assert!(theirs.contains("step = "), "{name}: {said}");
        let is_unknown = theirs.matches("last_ds = \"U\"").count() == 2;
        let ours = match is_unknown {
            true => wait_for(name, || {
                let info = crate::info(root, &format!("{name}.rrd"))?;
                (!info.contains("last_update = 0")).then_some(info)
            }),
            false => our_info(root, &format!("{name}.rrd")),
        };
        assert_eq!(lasting(&ours), lasting(&theirs), "{name}");
        assert_eq!(header(&file("ours")), header(&file("theirs")), "{name}");
    }
    if UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
        assert!(our_info(root, "six.rrd").contains("ds[ds1].last_ds = \"222222\""));
    } else {
        testkit::skip("this machine has no ::1");
    }
    let three = [
        ("three1", 4222222),
        ("three2", 4222222),
        ("three3", 222222),
        ("three5", 4222222),
        ("three6", 4222222),
    ];
    for (name, octets) in three {
        let info = our_info(root, &format!("{name}.rrd"));
        assert!(info.contains(&format!("ds[ds1].last_ds = \"{octets}\"")), "{info}");
    }
    let log = wait_for("what is said of a wrong password", || {
        fs::read_to_string(root.join("log")).ok().filter(|log| log.contains("password"))
    });
    for said in [
        "the interface \"nothere\"",
        "has no number as .1.3.6.1.4.1.99999.4.0",
        "has no .1.3.6.1.4.1.99999.77.0",
        "the password or the protocol of authentication is wrong (target[three4])",
    ] {
        assert!(log.contains(said), "{said}: {log}");
    }
}

/// The lines of a log about agents that do not answer, by agent: whether each says that the silence is over.
fn silences(log: &str) -> BTreeMap<String, Vec<bool>> {
    let mut found: BTreeMap<String, Vec<bool>> = BTreeMap::new();
    for line in log.lines().filter(|line| line.contains("does not answer")) {
        let agent = line.split_once("subject=").unwrap_or_else(|| panic!("{line}")).1;
        found.entry(agent.to_string()).or_default().push(line.contains("over: does not answer"));
    }
    found
}

/// An agent that stops and starts again: unknown readings, one line for each change, and no rate across the restart.
#[test]
fn an_agent_that_restarts_is_unknown_between() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let object = |value: u32| format!("override .1.3.6.1.4.1.99999.1.0 counter {value}\n");
    let snmpd = Snmpd::start(root, &object(5_000), None);
    let port = snmpd.port;
    let file = root.join("mrtg.cfg");
    let joe = THREE.lines().nth(1).and_then(|line| line.split_once(": ")).unwrap().1;
    let text = format!(
        "WorkDir: {}/ours\nLogFormat: rrdtool\nInterval: 0:1\nMaxBytes[_]: 100000000\nTitle[_]: t\n\
         Target[a]: 1.3.6.1.4.1.99999.1.0&1.3.6.1.4.1.99999.1.0:public@127.0.0.1:{port}:0.2:2::2\n\
         Target[b]: `echo 7; echo 8`\nOptions[b]: gauge\n\
         Target[c]: 1.3.6.1.4.1.99999.1.0&1.3.6.1.4.1.99999.1.0:x@127.0.0.1:{port}:0.2:2::3\nSnmpOptions[c]: {joe}\n",
        root.display()
    );
    fs::write(&file, text).unwrap();
    let _daemon = Daemon::start(root, &file);
    let last = |name: &str| {
        crate::info(root, name).and_then(|info| {
            let line = info.lines().find(|line| line.contains("ds[ds0].last_ds"))?;
            Some(line.rsplit(" = ").next()?.to_string())
        })
    };
    let log = || fs::read_to_string(root.join("log")).unwrap_or_default();
    for name in ["a.rrd", "c.rrd"] {
        wait_until("a reading", || last(name).as_deref() == Some("\"5000\""));
    }
    drop(snmpd);
    wait_until("an unknown reading", || last("a.rrd").as_deref() == Some("\"U\""));
    wait_until("the complaint", || log().contains("does not answer"));
    wait_until("the other target", || last("b.rrd").as_deref() == Some("\"7\""));
    let _snmpd = Snmpd::start(root, &object(900_000), Some(port));
    wait_until("a reading after the restart", || last("a.rrd").as_deref() == Some("\"900000\""));
    wait_until("a reading by version 3", || last("c.rrd").as_deref() == Some("\"900000\""));
    // Two agents, once in version 2c and once in version 3. A busy machine may make either silent for another while.
    wait_until("the end of the complaints", || {
        let all = silences(&log());
        all.len() == 2 && all.values().all(|lines| lines.last() == Some(&true))
    });
    // As long as the agent has only just started, its counters are not compared.
    let rows = wait_for("a rate", || {
        let fetch = Command::new(env!("CARGO_BIN_EXE_rrdtool"))
            .args(["fetch", "ours/a.rrd", "MAX", "-s", "-60"])
            .arg("--daemon")
            .arg(format!("unix:{}/sock", root.display()))
            .current_dir(root)
            .output()
            .unwrap();
        String::from_utf8(fetch.stdout).ok().filter(|rows| rows.contains("0.0000000000e+00"))
    });
    assert!(!rows.contains("e+05") && !rows.contains("e+04"), "{rows}");
    // Each silence has one line at its begin and one at its end.
    let lines = silences(&log());
    let is_told_once =
        |lines: &Vec<bool>| lines.iter().enumerate().all(|(at, is_over)| *is_over == (at % 2 == 1));
    assert!(lines.len() == 2 && lines.values().all(is_told_once), "{}", log());
}

/// MRTG's file of where interfaces are is used: one that has moved since is counted.
#[test]
fn where_interfaces_were_is_taken_over_from_mrtg() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let snmpd = Snmpd::start(root, OBJECTS, None);
    let text = |side: &str| {
        let port = snmpd.port;
        format!(
            "WorkDir: {}/{side}\nLogFormat: rrdtool\nMaxBytes[_]: 100000000\nTitle[_]: t\n\
             Target[stays]: #2/11:public@127.0.0.1:{port}::::2\nOptions[stays]: gauge\n\
             Target[moves]: \\My\\ If\\:2:public@127.0.0.1:{port}::::2\nOptions[moves]: gauge\n",
            root.display()
        )
    };
    fs::create_dir_all(root.join("theirs")).unwrap();
    fs::write(root.join("theirs.cfg"), text("theirs")).unwrap();
    mrtg(&root.join("theirs.cfg"));
    let known = fs::read_to_string(root.join("theirs.ok")).unwrap();
    let was = "\tDescr\tMy If:2\t1001\n";
    assert!(known.contains(was) && known.contains("\tName\t2/11\t1001\n"), "{known}");
    fs::write(root.join("ours.cfg"), text("ours")).unwrap();
    fs::write(root.join("ours.ok"), known.replace(was, "\tDescr\tMy If:2\t1\n")).unwrap();
    let http = free_port();
    let sections =
        format!("[http]\nlisten = ['127.0.0.1:{http}']\n[[mrtg]]\nconfig = '{}/ours.cfg'\n", root.display());
    let _daemon = Daemon::serve(root, "layout = 'files'\n", &sections);
    for name in ["stays.rrd", "moves.rrd"] {
        assert!(our_info(root, name).contains("ds[ds1].last_ds = \"4222222\""), "{name}");
    }
    // Only the one that is elsewhere by now was looked up, and none but by what the file says can have moved.
    wait_until("the count", || metric(http, "mrtg_moved") == Some(1));
}
