//! `roundel snmp` asks Debian's snmpd.

use std::fs;
use std::process::Command;

use crate::snmpd::Snmpd;

const AGENT: &str = "sysContact somebody
createUser plain
createUser reader SHA-256 maplesyrup AES otherpassword
createUser old MD5 maplesyrup DES otherpassword
createUser long SHA-512 maplesyrup AES-256 otherpassword
rouser plain noauth
rouser reader
rouser old priv
rouser long priv
";

/// Runs `roundel snmp`: whether it succeeded, and what it said.
fn snmp(words: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_roundel")).arg("snmp").args(words).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

#[test]
fn objects_are_walked_in_every_version() {
    let directory = tempfile::tempdir().unwrap();
    let snmpd = Snmpd::start(directory.path(), AGENT, None);
    let device = format!("127.0.0.1:{}", snmpd.port);
    let walk =
        |more: &[&str]| snmp(&[&["walk", &device, "1.3.6.1.2.1.1.4", "--timeout", "20"], more].concat());
    let want = (true, ".1.3.6.1.2.1.1.4.0 = STRING: \"somebody\"\n".to_string());
    for more in [
        &["-v", "1"][..],
        &[],
        &["-c", "st pi@d"],
        &["-u", "plain"],
        &["-u", "reader", "-a", "SHA-256", "-A", "maplesyrup"],
        &["-u", "reader", "-a", "SHA-256", "-A", "maplesyrup", "-X", "otherpassword"],
        &["-u", "old", "-a", "md5", "-A", "maplesyrup", "-x", "des", "-X", "otherpassword"],
        &["-u", "long", "-a", "SHA-512", "-A", "maplesyrup", "-x", "AES-256", "-X", "otherpassword"],
    ] {
        assert_eq!(walk(more), want, "{more:?}");
    }
    for (more, why) in [
        (&["-u", "stranger"][..], "does not know the user"),
        (
            &["-u", "reader", "-a", "SHA-256", "-A", "wrongpassword"],
            "the password or the protocol of authentication",
        ),
        (
            &["-u", "reader", "-a", "SHA", "-A", "maplesyrup"],
            "the password or the protocol of authentication",
        ),
        (&["-u", "reader", "-A", "short"], "8 characters"),
        (&["-v", "4"], "not 1, 2c or 3"),
    ] {
        let (is_good, said) = walk(more);
        assert!(!is_good && said.contains(why), "{more:?}: {said}");
    }
    assert!(snmp(&["walk", &device, "sysDescr"]).1.contains("no object identifier"));
    // An object without any below it answers for itself, as in snmpwalk.
    for version in ["1", "2c"] {
        let walk = |oid: &str| snmp(&["walk", &device, oid, "-v", version]);
        assert_eq!(walk("1.3.6.1.2.1.1.4.0"), want);
        let (is_good, said) = walk("1.3.6.1.2.1.1.4.1");
        assert!(!is_good && said.contains("has nothing at .1.3.6.1.2.1.1.4.1"), "{said}");
    }
}

#[test]
fn devices_are_discovered_and_tested() {
    let directory = tempfile::tempdir().unwrap();
    let snmpd = Snmpd::start(directory.path(), AGENT, None);
    let device = format!("127.0.0.1:{}", snmpd.port);
    let user = ["-u", "reader", "-a", "SHA-256", "-A", "maplesyrup"];
    let (is_good, said) = snmp(&[&["discover", device.as_str()][..], &user].concat());
    assert!(is_good && said.contains("  net/127.0.0.1/lo.rrd  in="), "{said}");
    // The lines it gives are a configuration that works.
    let section = &said[said.find("[[snmp]]").unwrap()..];
    let config = directory.path().join("roundel.toml");
    let silent = "[[snmp]]\ndevice = '127.0.0.1:9'\nretries = 0\nname = 'silent'\n";
    for (text, is_good, want) in [
        (section.to_string(), true, "good, "),
        (format!("{section}{silent}"), false, "silent (127.0.0.1:9): does not answer"),
    ] {
        fs::write(&config, text).unwrap();
        let (success, said) = snmp(&["test", config.to_str().unwrap()]);
        assert!(success == is_good && said.contains(want) && said.contains("RRDs, "), "{said}");
    }
    fs::write(&config, "").unwrap();
    assert!(snmp(&["test", config.to_str().unwrap()]).1.contains("has no [[snmp]]"));
}
