//! How fast collectd's packets are decoded. A whole daemon is measured by `bench compare --only collectd`.
//!
//!     cargo run --profile quick -p roundel-collect --example collectd_speed

use std::net::IpAddr;
use std::time::{Duration, Instant};

use roundel_collect::collectd::encode::{push_identity, push_interval, push_samples, push_time};
use roundel_collect::collectd::packet::{FineTime, Sample};
use roundel_collect::collectd::rrd::Identity;
use roundel_collect::collectd::security::AuthFile;
use roundel_collect::collectd::types::TypesDb;
use roundel_collect::collectd::{CollectdCollector, CollectdOptions};
use roundel_collect::reading::Readings;

/// Bytes of a packet: collectd's own limit.
const PACKET_BYTES: usize = 1_452;

/// Packets with one reading of each RRD at `seconds`; one in ten has two values.
fn packets(rrds: usize, seconds: u64) -> (Vec<Vec<u8>>, usize) {
    let mut packets = vec![Vec::new()];
    let mut values = 0;
    let mut texts = Vec::new();
    for number in 0..rrds {
        texts.push((format!("host{:04}", number / 100), format!("{}", number % 100)));
    }
    let mut before = Identity::default();
    for (number, (host, instance)) in texts.iter().enumerate() {
        let is_double = number % 10 == 0;
        let identity = Identity {
            host: host.as_bytes(),
            plugin: b"interface",
            plugin_instance: instance.as_bytes(),
            type_name: if is_double { &b"if_octets"[..] } else { b"gauge" },
            type_instance: b"",
        };
        let samples: &[Sample] = match is_double {
            true => &[Sample::Derive(seconds as i64 * 100), Sample::Derive(seconds as i64 * 7)],
            false => &[Sample::Gauge(number as f64 * 0.5)],
        };
        let mut part = Vec::new();
        push_identity(&mut part, before, identity);
        push_samples(&mut part, samples);
        if packets.last().is_none_or(|packet| packet.is_empty() || packet.len() + part.len() > PACKET_BYTES) {
            let mut packet = Vec::new();
            push_time(&mut packet, FineTime(seconds << 30));
            push_interval(&mut packet, FineTime(1 << 30));
            push_identity(&mut packet, Identity::default(), identity);
            push_samples(&mut packet, samples);
            packets.push(packet);
        } else if let Some(packet) = packets.last_mut() {
            packet.extend_from_slice(&part);
        }
        before = identity;
        values += samples.len();
    }
    packets.retain(|packet| !packet.is_empty());
    (packets, values)
}

fn main() {
    let mut types = TypesDb::default();
    types.add("gauge value:GAUGE:U:U\nif_octets rx:DERIVE:0:U, tx:DERIVE:0:U\n");
    let mut collector = CollectdCollector::new(CollectdOptions::default(), types, AuthFile::default());
    let mut readings = Readings::default();
    let (rounds, rrds) = (30, 30_000);
    let all: Vec<_> = (0..=rounds).map(|round| packets(rrds, 1_700_000_000 + round)).collect();
    let sender = IpAddr::from([192, 0, 2, 1]);
    let mut took = Duration::ZERO;
    let mut texts = Duration::ZERO;
    let mut values = 0;
    for (round, (packets, count)) in all.iter().enumerate() {
        let start = Instant::now();
        packets.iter().for_each(|packet| collector.receive(1_700_000_000, sender, packet, &mut readings));
        // The first round makes the RRDs.
        if round > 0 {
            took += start.elapsed();
            values += count;
            let start = Instant::now();
            let mut text = Vec::new();
            readings.iter().for_each(|reading| {
                text.clear();
                readings.push_text(reading, &mut text);
            });
            texts += start.elapsed();
        }
        readings.clear();
    }
    let per_value = |took: Duration| took.as_nanos() as f64 / values as f64;
    let packets = collector.counts().packets;
    println!("{values} values of {rrds} RRDs, {packets} packets");
    println!(
        "decode: {:.1} ns a value; text for the store: {:.1} ns a value",
        per_value(took),
        per_value(texts)
    );
}
