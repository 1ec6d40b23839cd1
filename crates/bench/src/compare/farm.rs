//! Debian's snmpd with many interfaces, many times, and how fast they answer at all.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::usage::busy_time;

/// How many agents there are.
pub const AGENTS: usize = 32;
/// How many interfaces each of them has.
pub const INTERFACES: usize = 99;
/// How many interfaces all of them have.
pub const ALL_INTERFACES: usize = AGENTS * INTERFACES;
/// The longest wait for an agent's first answer.
const START_LIMIT: Duration = Duration::from_secs(30);
/// The longest wait for any later answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Interfaces of a request: an answer about so many, of two counters each, has at most 1,412 bytes and fits into one Ethernet packet.
const INTERFACES_AT_ONCE: usize = 30;
/// Room for the answers of all agents to several requests each.
const RECEIVE_BYTES: usize = 4 << 20;

/// `sysUpTime.0`.
const SYS_UP_TIME: [u32; 9] = [1, 3, 6, 1, 2, 1, 1, 3, 0];
/// `ifHCInOctets` and `ifHCOutOctets`.
const COUNTERS: [[u32; 11]; 2] = [[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 6], [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 10]];

/// The agents, on ports of loopback; killed when they are dropped.
pub struct Farm(Vec<Agent>);

/// A snmpd.
struct Agent {
    child: Child,
    port: u16,
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Farm {
    /// Starts them, with their files in `place`.
    pub fn start(place: &Path) -> Outcome<Self> {
        Ok(Farm((0..AGENTS).map(|number| Agent::start(place, number)).collect::<Outcome<_>>()?))
    }

    /// Their ports.
    pub fn ports(&self) -> impl Iterator<Item = u16> {
        self.0.iter().map(|agent| agent.port)
    }

    /// The CPU time of all of them so far.
    pub fn busy_time(&self) -> Outcome<Duration> {
        self.0.iter().map(|agent| busy_time(agent.child.id())).sum()
    }

    /// How long they take to answer GETs for both counters of every interface, when a sender that does nothing else keeps
    /// `in_flight` requests at each.
    pub fn answer_all(&self, in_flight: usize) -> Outcome<Duration> {
        let indexes: Vec<u32> = (0..INTERFACES).map(index).collect();
        let request = |indexes: &[u32]| {
            let objects =
                indexes.iter().flat_map(|index| COUNTERS.map(|column| [&column[..], &[*index]].concat()));
            get(objects)
        };
        let requests: Vec<Vec<u8>> = indexes.chunks(INTERFACES_AT_ONCE).map(request).collect();
        let addresses: Vec<SocketAddr> = self.ports().map(|port| ([127, 0, 0, 1], port).into()).collect();
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.set_read_timeout(Some(ANSWER_LIMIT))?;
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BYTES)?;
        let (mut sent, mut buffer) = (vec![0; AGENTS], vec![0; 65_536]);
        let start = Instant::now();
        for request in requests.iter().take(in_flight) {
            for (agent, address) in addresses.iter().enumerate() {
                socket.send_to(request, address)?;
                sent[agent] += 1;
            }
        }
        for _ in 0..AGENTS * requests.len() {
            let (length, from) = socket.recv_from(&mut buffer)?;
            let agent =
                addresses.iter().position(|address| *address == from).ok_or("an answer from a stranger")?;
            // An object that is not there is as long in the answer as in the request.
            if length <= requests[0].len().min(requests[requests.len() - 1].len()) {
                return Err("an agent lacks interfaces".into());
            }
            if let Some(request) = requests.get(sent[agent]) {
                socket.send_to(request, from)?;
                sent[agent] += 1;
            }
        }
        Ok(start.elapsed())
    }
}

impl Agent {
    fn start(place: &Path, number: usize) -> Outcome<Self> {
        let directory = place.join(format!("agent-{number}"));
        fs::create_dir_all(&directory)?;
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let port = UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port();
        let config = directory.join("snmpd.conf");
        fs::write(&config, agent_config(port, number)?)?;
        let log = File::create(directory.join("log"))?;
        let mut command = Command::new("/usr/sbin/snmpd");
        command.args(["-f", "-r", "-Lo", "-C", "-c"]).arg(&config).arg("-p").arg(directory.join("pid"));
        command.env("SNMP_PERSISTENT_DIR", &directory).env("MIBS", "");
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().map_err(|error| format!("cannot start snmpd: {error}"))?;
        let agent = Agent { child, port };
        socket.set_read_timeout(Some(Duration::from_millis(100)))?;
        let (start, request) = (Instant::now(), get([SYS_UP_TIME.to_vec()].into_iter()));
        loop {
            socket.send_to(&request, ("127.0.0.1", port))?;
            if socket.recv(&mut [0; 512]).is_ok() {
                return Ok(agent);
            }
            if start.elapsed() > START_LIMIT {
                return Err(format!("snmpd does not answer on port {port}").into());
            }
        }
    }
}

/// Interfaces whose counters stand still, beside those of this machine.
fn agent_config(port: u16, agent: usize) -> Outcome<String> {
    let mut text = format!("agentaddress udp:127.0.0.1:{port}\nrocommunity public 127.0.0.1\n");
    for interface in 0..INTERFACES {
        let index = index(interface);
        let column = |table: &str, column: usize| format!("override .1.3.6.1.2.1.{table}.{column}.{index}");
        let octets = (agent * INTERFACES + interface) * 1_000_003;
        writeln!(text, "{} integer {index}", column("2.2.1", 1))?;
        writeln!(text, "{} octet_str \"port {interface}\"", column("2.2.1", 2))?;
        writeln!(text, "{} octet_str \"p{interface}\"", column("31.1.1.1", 1))?;
        writeln!(text, "{} counter {octets}", column("31.1.1.1", 6))?;
        writeln!(text, "{} counter {}", column("31.1.1.1", 10), octets / 3)?;
    }
    Ok(text)
}

/// Not those of this machine.
pub fn index(interface: usize) -> u32 {
    1_001 + interface as u32
}

/// A GET of version 2c, community public (RFC 3416).
fn get(objects: impl Iterator<Item = Vec<u32>>) -> Vec<u8> {
    let variable =
        |object: Vec<u32>| element(0x30, &[element(0x06, &encode_oid(&object)), element(0x05, &[])].concat());
    let variables: Vec<u8> = objects.flat_map(variable).collect();
    let number = |number: u8| element(0x02, &[number]);
    let pdu = [number(1), number(0), number(0), element(0x30, &variables)].concat();
    element(0x30, &[number(1), element(0x04, b"public"), element(0xa0, &pdu)].concat())
}

/// A type, a length and a content by BER.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut bytes = match length {
        0..0x80 => vec![tag, length as u8],
        _ => vec![tag, 0x82, (length >> 8) as u8, length as u8],
    };
    bytes.extend_from_slice(content);
    bytes
}

fn encode_oid(arcs: &[u32]) -> Vec<u8> {
    let mut bytes = vec![(arcs[0] * 40 + arcs[1]) as u8];
    for &arc in &arcs[2..] {
        // Seven bits a byte, the first ones first, and all but the last marked.
        let digits = (0..5).rev().map(|digit| (digit, (arc >> (7 * digit)) as u8 & 0x7f));
        let digits = digits.skip_while(|(digit, bits)| *digit > 0 && *bits == 0);
        bytes.extend(digits.map(|(digit, bits)| if digit > 0 { bits | 0x80 } else { bits }));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_get_is_encoded_as_in_the_standard() {
        let want = b"\x30\x29\x02\x01\x01\x04\x06public\xa0\x1c\x02\x01\x01\x02\x01\0\x02\x01\0\x30\x11\x30\x0f\x06\x0b\x2b\x06\x01\x02\x01\x02\x02\x01\x0a\x87\x69\x05\0";
        assert_eq!(get([vec![1, 3, 6, 1, 2, 1, 2, 2, 1, 10, 1001]].into_iter()), want);
        assert_eq!(element(4, &[0; 300])[..4], [4, 0x82, 1, 44]);
    }
}
