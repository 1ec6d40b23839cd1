//! collectd's packets: what Debian's collectd receives with its plugins network and rrdtool, whose values wait in memory, and what
//! ours receives and stores.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::Bench;
use super::collector::{self, Collector};
use crate::Outcome;
use crate::builds::Program;
use crate::daemon::Daemon;
use crate::figures::{Goal, Runs, Unit};
use crate::report::Row;
use crate::usage::{ProcessUsage, wait_until_idle};

/// RRDs with one data source, and how many of them are a host's.
const RRDS: u64 = 20_000;
const RRDS_PER_HOST: u64 = 100;
/// Seconds between the values of an RRD.
const INTERVAL: u64 = 10;
/// The time of the first values.
const FIRST: u64 = 1_700_000_000;
/// Bytes of a packet: collectd's own limit.
const PACKET_BYTES: usize = 1_452;
/// Bytes that may wait in the receiver's socket, as the kernel counts them: half of what it holds by default.
const WAITING_BYTES: u64 = 100_000;
/// Packets between two looks at what waits.
const LOOK_EVERY: usize = 8;
/// Values per second at which nothing may be lost, and for how long.
const PACE: f64 = 300_000.0;
const PACED_ROUNDS: u64 = 150;

/// What one receiver gave.
#[derive(Default)]
struct Measured {
    rate: Runs,
    cpu: Runs,
    /// Packets lost at [`PACE`].
    lost: Runs,
}

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Outcome<()> {
    let [peer, ours] = collector::sides(bench);
    let peer = measure(bench, peer.as_ref())?;
    let ours = measure(bench, ours.as_ref())?;
    let mut row = |figure: &str, peer, ours, unit, goal, aim| {
        let figure = format!("collectd's packets, {figure}");
        bench.report.row(Row { figure, peer, ours, unit, goal, aim });
    };
    row("values/s received and stored", peer.rate, ours.rate, Unit::PerSecond, Goal::Times(5.0), Goal::None);
    row("CPU of the receiver per value", peer.cpu, ours.cpu, Unit::Seconds, Goal::Part(5.0), Goal::None);
    let lost = Goal::AtMost(0.0, Unit::Number);
    row("packets lost at 300,000 values/s", peer.lost, ours.lost, Unit::Number, lost, Goal::None);
    bench.report.note(
        "Collectors",
        format!(
            "collectd's packets: {RRDS} RRDs of {} hosts, one value each, {INTERVAL} s apart, over UDP on loopback, as fast as they are \
             taken: the sender waits while more than {WAITING_BYTES} bytes are in the receiver's socket, and the end is when the \
             receiver rests. Debian's collectd keeps the values in memory (rrdtool, CacheTimeout 3600), ours logs them.",
            RRDS / RRDS_PER_HOST
        ),
    );
    Ok(())
}

/// Measures a build of ours, or Debian's collectd.
fn measure(bench: &mut Bench, program: Option<&Program>) -> Outcome<Measured> {
    let title = program.map_or_else(|| "collectd".to_string(), Program::title);
    let place = bench.place(&format!("collectd-{title}"));
    let port = UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port();
    let receiver = match program {
        None => start_collectd(&place, port)?,
        Some(program) => Collector::start_ours(
            Daemon::new(program, &place)?,
            &format!("[collectd]\nlisten = [\"udp://127.0.0.1:{port}\"]\n"),
        )?,
    };
    let pid = receiver.pid()?;
    wait_until_idle(pid)?;
    let mut sender = Sender::to(port)?;
    bench.say(&format!("Collectd: {title}: the first values"));
    sender.send(2, None)?;
    wait_until_idle(pid)?;
    let rounds = bench.pick(25, 50);
    let mut measured = Measured::default();
    for run in 1..=3 {
        bench.say(&format!("Collectd: {title}, run {run} of 3"));
        let (before, start) = (ProcessUsage::of(pid)?, Instant::now());
        let values = sender.send(rounds, None)? as f64;
        let took = wait_until_idle(pid)?.duration_since(start);
        measured.rate.push(values / took.as_secs_f64());
        measured.cpu.push(ProcessUsage::of(pid)?.since(&before).cpu.as_secs_f64() / values);
    }
    if sender.dropped()? > 0 {
        return Err(format!("{title}: the kernel dropped packets of a sender that waits").into());
    }
    bench.say(&format!("Collectd: {title} at 300,000 values/s"));
    sender.send(bench.pick(PACED_ROUNDS / 3, PACED_ROUNDS), Some(PACE))?;
    measured.lost.push(sender.dropped()? as f64);
    wait_until_idle(pid)?;
    if let Collector::Ours(daemon) = &receiver {
        check_last(daemon, &sender)?;
    }
    drop(receiver);
    fs::remove_dir_all(place).ok();
    Ok(measured)
}

/// Whether the newest values are stored, unless packets were lost.
fn check_last(daemon: &Daemon, sender: &Sender) -> Outcome<()> {
    if sender.dropped()? > 0 {
        return Ok(());
    }
    let mut client = crate::client::Client::connect(&daemon.address())?;
    for number in [0, RRDS / 2, RRDS - 1] {
        let name = format!("{}/bench/gauge-{}.rrd", host(number), number % RRDS_PER_HOST);
        let answer = client.ask(&format!("LAST {name}"))?;
        if answer.message.trim() != sender.last().to_string() {
            return Err(format!("{name}: LAST {} instead of {}", answer.message, sender.last()).into());
        }
    }
    Ok(())
}

fn start_collectd(place: &Path, port: u16) -> Outcome<Collector> {
    fs::create_dir_all(place)?;
    let (config, directory) = (place.join("collectd.conf"), place.display());
    let text = format!(
        "Hostname \"bench\"\nBaseDir \"{directory}\"\nPIDFile \"{directory}/pid\"\n\
         TypesDB \"/usr/share/collectd/types.db\"\nLoadPlugin network\nLoadPlugin rrdtool\n\
         <Plugin network>\n Listen \"127.0.0.1\" \"{port}\"\n</Plugin>\n\
         <Plugin rrdtool>\n DataDir \"{directory}/rrd\"\n CacheTimeout 3600\n CacheFlush 7200\n</Plugin>\n"
    );
    fs::write(&config, text)?;
    let config = config.display().to_string();
    Collector::start_peer("/usr/sbin/collectd", &["-f", "-C", &config], place)
}

/// Sends rounds of values, one of each RRD.
struct Sender {
    socket: UdpSocket,
    port: u16,
    rounds: u64,
}

impl Sender {
    fn to(port: u16) -> Outcome<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(("127.0.0.1", port))?;
        Ok(Sender { socket, port, rounds: 0 })
    }

    /// The time of the last values.
    fn last(&self) -> u64 {
        FIRST + self.rounds * INTERVAL
    }

    /// Sends so many rounds: at so many values a second, or as fast as they are taken. Returns the number of values.
    fn send(&mut self, rounds: u64, pace: Option<f64>) -> Outcome<u64> {
        let (start, mut values) = (Instant::now(), 0);
        for _ in 0..rounds {
            self.rounds += 1;
            for (nth, (packet, count)) in packets(self.last(), self.rounds).iter().enumerate() {
                match pace {
                    Some(pace) => wait_for(start + Duration::from_secs_f64(values as f64 / pace)),
                    None if nth % LOOK_EVERY == 0 => self.wait_for_room()?,
                    None => {}
                }
                self.socket.send(packet)?;
                values += count;
            }
        }
        Ok(values)
    }

    fn wait_for_room(&self) -> Outcome<()> {
        while self.waiting()?.0 > WAITING_BYTES {
            thread::sleep(Duration::from_micros(50));
        }
        Ok(())
    }

    /// Packets that the kernel dropped because the receiver's socket was full.
    fn dropped(&self) -> Outcome<u64> {
        Ok(self.waiting()?.1)
    }

    /// Bytes that wait in the receiver's socket, and packets dropped there: columns `rx_queue` and `drops` of /proc/net/udp.
    fn waiting(&self) -> Outcome<(u64, u64)> {
        let address = format!("0100007F:{:04X}", self.port);
        let text = fs::read_to_string("/proc/net/udp")?;
        let line = text.lines().find(|line| line.split_whitespace().nth(1) == Some(&address));
        let columns: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
        let queue = columns.get(4).and_then(|queues| queues.split_once(':'));
        let (Some((_, queue)), Some(drops)) = (queue, columns.last()) else {
            return Err("the receiver has no socket".into());
        };
        Ok((u64::from_str_radix(queue, 16)?, drops.parse()?))
    }
}

/// Sleeps until shortly before `due`: the kernel wakes late.
fn wait_for(due: Instant) {
    let wait = due.saturating_duration_since(Instant::now());
    if wait > Duration::from_micros(200) {
        thread::sleep(wait);
    }
}

fn host(number: u64) -> String {
    format!("host{}", number / RRDS_PER_HOST)
}

/// The packets of a round, and how many values each has: a time and an interval, then for each RRD the parts of its name that differ
/// from those before, and its value.
fn packets(time: u64, round: u64) -> Vec<(Vec<u8>, u64)> {
    let mut packets: Vec<(Vec<u8>, u64)> = Vec::new();
    for number in 0..RRDS {
        let is_first_of_host = number % RRDS_PER_HOST == 0;
        let has_room = |packet: &(Vec<u8>, u64)| packet.0.len() + 50 <= PACKET_BYTES;
        if is_first_of_host || !packets.last().is_some_and(has_room) {
            let mut packet = Vec::with_capacity(PACKET_BYTES);
            push_number(&mut packet, 1, time);
            push_number(&mut packet, 7, INTERVAL);
            push_text(&mut packet, 0, &host(number));
            push_text(&mut packet, 2, "bench");
            push_text(&mut packet, 4, "gauge");
            packets.push((packet, 0));
        }
        if let Some((packet, values)) = packets.last_mut() {
            push_text(packet, 5, &(number % RRDS_PER_HOST).to_string());
            // One gauge.
            packet.extend_from_slice(&[0, 6, 0, 15, 0, 1, 1]);
            packet.extend_from_slice(&((number * 7 + round * 13) as f64 / 8.0).to_le_bytes());
            *values += 1;
        }
    }
    packets
}

fn push_number(packet: &mut Vec<u8>, part: u8, number: u64) {
    packet.extend_from_slice(&[0, part, 0, 12]);
    packet.extend_from_slice(&number.to_be_bytes());
}

fn push_text(packet: &mut Vec<u8>, part: u8, text: &str) {
    packet.extend_from_slice(&[0, part, 0, 5 + text.len() as u8]);
    packet.extend_from_slice(text.as_bytes());
    packet.push(0);
}
