//! Debian's snmpd as a device.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::net::{Ipv6Addr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use testkit::{Running, free_port, wait_until};

/// An agent that is stopped at the end.
pub struct Snmpd {
    _process: Running,
    pub port: u16,
}

/// `sysUpTime.0` of the community `public`, version 1.
const GET_UPTIME: &[u8] =
    b"\x30\x26\x02\x01\x00\x04\x06public\xa0\x19\x02\x01\x01\x02\x01\x00\x02\x01\x00\x30\x0e\x30\x0c\x06\x08\x2b\x06\x01\x02\x01\x01\x03\x00\x05\x00";

impl Snmpd {
    /// Starts one with these lines beside its own interfaces; on a free port, or on `port`.
    pub fn start(root: &Path, lines: &str, port: Option<u16>) -> Snmpd {
        let port = port.unwrap_or_else(free_port);
        let has_v6 = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
        let v6 = if has_v6 { format!(",udp6:[::1]:{port}") } else { String::new() };
        let directory = root.join("snmpd");
        fs::create_dir_all(&directory).unwrap();
        let text = format!(
            "agentaddress udp:127.0.0.1:{port}{v6}\nrocommunity public 127.0.0.1\nrocommunity6 public ::1\n\
             rocommunity \"st pi@d\" 127.0.0.1\n{USERS}{lines}"
        );
        let config = directory.join("snmpd.conf");
        fs::write(&config, text).unwrap();
        let mut snmpd = Command::new("/usr/sbin/snmpd");
        snmpd.args(["-f", "-r", "-C", "-c"]).arg(&config).arg("-Lf").arg(directory.join("log")).arg("-p");
        snmpd.arg(directory.join("pid")).env("SNMP_PERSISTENT_DIR", &directory).env("MIBS", "");
        let process = Running::quiet(&mut snmpd);
        let snmpd = Snmpd { _process: process, port };
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        wait_until("an answer of snmpd", || {
            socket.send_to(GET_UPTIME, ("127.0.0.1", port)).unwrap();
            socket.recv_from(&mut [0; 512]).is_ok()
        });
        snmpd
    }
}

/// Users of version 3.
const USERS: &str = "exactEngineID 0x80001f8880aabbccdd
createUser joe SHA \"authpass123\" AES \"privpass123\"
createUser sue SHA-256 \"authpass123\"
createUser ann MD5 \"authpass123\" DES \"privpass123\"
rouser joe priv
rouser sue auth
rouser ann priv
";
