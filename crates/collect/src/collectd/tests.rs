use std::net::Ipv4Addr;

use super::encode::{encrypted, push_identity, push_interval, push_message, push_samples, push_time, signed};
use super::*;

const SENDER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const NOW: i64 = 1_700_000_000;

fn collector(options: CollectdOptions) -> CollectdCollector {
    let mut types = TypesDb::default();
    assert_eq!(
        types.add("gauge value:GAUGE:U:U\nif_octets rx:DERIVE:0:U, tx:DERIVE:0:U\ncount value:COUNTER:U:U\n"),
        []
    );
    let auth = AuthFile::parse(b"u: secret\nv: other\n").unwrap();
    CollectdCollector::new(options, types, auth)
}

fn identity<'a>(type_name: &'a [u8], type_instance: &'a [u8]) -> Identity<'a> {
    Identity { host: b"h", plugin: b"p", plugin_instance: b"1", type_name, type_instance }
}

/// A packet with these readings at `NOW` and every second after.
fn packet(readings: &[(Identity<'_>, &[Sample])]) -> Vec<u8> {
    let mut packet = Vec::new();
    push_interval(&mut packet, FineTime(10 << 30));
    let mut before = Identity::default();
    for (nth, (identity, samples)) in readings.iter().enumerate() {
        push_time(&mut packet, FineTime((NOW as u64 + nth as u64) << 30));
        push_identity(&mut packet, before, *identity);
        push_samples(&mut packet, samples);
        before = *identity;
    }
    packet
}

/// What a packet gives, as lines of `name time:values`.
fn lines(collector: &mut CollectdCollector, packet: &[u8]) -> Vec<String> {
    let mut readings = Readings::default();
    collector.receive(NOW, SENDER, packet, &mut readings);
    readings.lines(collector.inventory())
}

#[test]
fn parts_persist_and_values_are_typed() {
    let mut collector = collector(CollectdOptions { directory: "c".into(), ..CollectdOptions::default() });
    let packet = packet(&[
        (identity(b"gauge", b""), &[Sample::Gauge(0.1)]),
        (identity(b"if_octets", b"eth0"), &[Sample::Derive(-5), Sample::Counter(u64::MAX)]),
        (identity(b"gauge", b"x"), &[Sample::Derive(-7)]),
        (identity(b"count", b""), &[Sample::Counter(u64::MAX)]),
        (identity(b"gauge", b"nan"), &[Sample::Gauge(f64::NAN)]),
    ]);
    assert_eq!(
        lines(&mut collector, &packet),
        [
            "c/h/p-1/gauge.rrd 1700000000:0.1",
            "c/h/p-1/if_octets-eth0.rrd 1700000001:-5:-1",
            "c/h/p-1/gauge-x.rrd 1700000002:-7",
            "c/h/p-1/count.rrd 1700000003:18446744073709551615",
            "c/h/p-1/gauge-nan.rrd 1700000004:U",
        ]
    );
    assert_eq!(lines(&mut collector, &packet), [""; 0], "a replay");
    let counts = collector.counts();
    assert_eq!((counts.packets, counts.readings, counts.values, counts.old), (2, 5, 6, 5));
}

#[test]
fn what_cannot_be_stored_is_counted_by_reason() {
    let mut collector = collector(CollectdOptions::default());
    let bad = packet(&[
        (identity(b"nothing", b""), &[Sample::Gauge(1.0)]),
        (identity(b"gauge", b""), &[Sample::Gauge(1.0), Sample::Gauge(2.0)]),
        (identity(b"count", b""), &[Sample::Gauge(1.0)]),
        (Identity { host: b"..", ..identity(b"gauge", b"") }, &[Sample::Gauge(1.0)]),
        (Identity { host: b"", ..identity(b"gauge", b"") }, &[Sample::Gauge(1.0)]),
    ]);
    assert_eq!(lines(&mut collector, &bad), [""; 0]);
    let mut late = Vec::new();
    push_time(&mut late, FineTime((NOW as u64 + 90_000) << 30));
    push_identity(&mut late, Identity::default(), identity(b"gauge", b""));
    push_samples(&mut late, &[Sample::Gauge(1.0)]);
    assert_eq!(lines(&mut collector, &late), [""; 0]);
    assert_eq!(lines(&mut collector, b"junk and more"), [""; 0]);
    let counts = *collector.counts();
    assert_eq!((counts.unknown_type, counts.incomplete, counts.ahead, counts.malformed), (3, 2, 1, 1));
    assert!(collector.complaints().take_notices().len() >= 4);
}

#[test]
fn security_levels_take_what_is_protected_enough() {
    let auth = AuthFile::parse(b"u: secret\n").unwrap();
    let wrong = AuthFile::parse(b"u: guess\nw: x\n").unwrap();
    let parts = packet(&[(identity(b"gauge", b""), &[Sample::Gauge(1.0)])]);
    let iv = [7; 16];
    let kinds = [
        ("plain", parts.clone()),
        ("signed", signed(&auth, b"u", &parts).unwrap()),
        ("encrypted", encrypted(&auth, b"u", &iv, &parts).unwrap()),
        ("signed wrongly", signed(&wrong, b"u", &parts).unwrap()),
        ("encrypted wrongly", encrypted(&wrong, b"u", &iv, &parts).unwrap()),
        ("an unknown user's", signed(&wrong, b"w", &parts).unwrap()),
    ];
    for (security, taken) in [
        (SecurityLevel::None, &["plain", "signed", "encrypted"][..]),
        (SecurityLevel::Sign, &["signed", "encrypted"]),
        (SecurityLevel::Encrypt, &["encrypted"]),
    ] {
        for (name, packet) in &kinds {
            let mut collector = collector(CollectdOptions { security, ..CollectdOptions::default() });
            let got = lines(&mut collector, packet).len();
            assert_eq!(got == 1, taken.contains(name), "{name} at {security:?}");
            let counts = collector.counts();
            assert_eq!(counts.unprotected + counts.forged, u64::from(got == 0), "{name} at {security:?}");
        }
    }
    let mut changed = signed(&auth, b"u", &parts).unwrap();
    *changed.last_mut().unwrap() ^= 1;
    assert_eq!(lines(&mut collector(CollectdOptions::default()), &changed), [""; 0]);
    // Without users, a signature cannot be checked, and is not needed.
    let mut open = CollectdCollector { auth: AuthFile::default(), ..collector(CollectdOptions::default()) };
    assert_eq!(lines(&mut open, &changed).len(), 1);
}

#[test]
fn made_up_names_are_bounded_and_named() {
    let options = CollectdOptions { rrds_max: 8, rrds_per_sender_max: 5, ..CollectdOptions::default() };
    let mut collector = collector(options);
    for number in 0..20u64 {
        let name = number.to_string();
        let packet = packet(&[(identity(b"gauge", name.as_bytes()), &[Sample::Gauge(1.0)])]);
        lines(&mut collector, &packet);
    }
    assert_eq!((collector.inventory().len(), collector.counts().over_limit), (5, 15));
    let notices = collector.complaints().take_notices();
    assert_eq!(notices.len(), 1);
    assert_eq!(notices[0].subject, "192.0.2.1: number of RRDs");
    let other = IpAddr::from([192, 0, 2, 2]);
    let mut readings = Readings::default();
    for number in 0..20u64 {
        let name = format!("other{number}");
        let packet = packet(&[(identity(b"gauge", name.as_bytes()), &[Sample::Gauge(1.0)])]);
        collector.receive(NOW, other, &packet, &mut readings);
    }
    assert_eq!((collector.inventory().len(), readings.len()), (8, 3));
}

#[test]
fn other_types_take_effect_and_notifications_are_kept() {
    let mut collector = collector(CollectdOptions::default());
    let mut types = TypesDb::default();
    types.add("new value:GAUGE:0:1\ngauge used:GAUGE:U:U, free:GAUGE:U:U");
    let one_source = packet(&[(identity(b"gauge", b""), &[Sample::Gauge(1.0)])]);
    assert_eq!(lines(&mut collector, &one_source), ["h/p-1/gauge.rrd 1700000000:1"]);
    let mut packet = packet(&[(identity(b"new", b""), &[Sample::Gauge(1.0)])]);
    assert_eq!(lines(&mut collector, &packet), [""; 0]);
    collector.set_types(types);
    // A type that was known has other sources now.
    let unknown = collector.counts().unknown_type;
    assert_eq!(lines(&mut collector, &one_source), [""; 0]);
    assert_eq!(collector.counts().unknown_type, unknown + 1);
    push_message(&mut packet, 2, "hot");
    assert_eq!(lines(&mut collector, &packet).len(), 1);
    let notifications = collector.take_notifications();
    let got = notifications.last().unwrap();
    assert_eq!((got.severity, got.subject.as_str(), got.message.as_str()), (2, "h/p/1/new", "hot"));
}
