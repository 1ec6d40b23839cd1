//! Readers of what senders send: collectd and Ganglia.

use std::net::IpAddr;

use crate::collectd::security::{AuthFile, SecurityLevel};
use crate::collectd::types::TypesDb;
use crate::collectd::{CollectdCollector, CollectdOptions, convert};
use crate::ganglia::answer::GangliaQuery;
use crate::ganglia::feed::Feed;
use crate::ganglia::gmond::{GmondOptions, GmondReceiver};
use crate::ganglia::{GangliaCollector, GangliaOptions, decompress};
use crate::reading::Readings;

/// A packet of collectd, at each security level: the readings have the values of their RRDs, and the limit holds.
pub fn fuzz_collectd(bytes: &[u8]) {
    let mut types = TypesDb::default();
    types.add("gauge value:GAUGE:U:U\nif_octets rx:DERIVE:0:U, tx:DERIVE:0:U\n");
    let Ok(auth) = AuthFile::parse(b"u: secret\n") else { panic!("this file is good") };
    for security in [SecurityLevel::None, SecurityLevel::Sign, SecurityLevel::Encrypt] {
        let options = CollectdOptions { security, rrds_max: 2, ..CollectdOptions::default() };
        let mut collector = CollectdCollector::new(options, types.clone(), auth.clone());
        let mut readings = Readings::default();
        collector.receive(1_700_000_000, IpAddr::from([192, 0, 2, 1]), bytes, &mut readings);
        assert!(collector.inventory().len() <= 2);
        for reading in readings.iter() {
            let spec = collector.inventory().spec(reading.rrd);
            let sources = spec.args.iter().filter(|arg| arg.starts_with("DS:")).count();
            assert_eq!(readings.values(reading).len(), sources);
        }
    }
}

/// Files of collectd: types, users, configuration.
pub fn fuzz_collectd_files(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut types = TypesDb::default();
    types.add(&text);
    convert(&text);
    let _ = AuthFile::parse(bytes);
}

/// A datagram of gmond, and again with what it made known.
pub fn fuzz_gmond(bytes: &[u8]) {
    let mut receiver = GmondReceiver::new(GmondOptions { hosts_max: 2, ..GmondOptions::default() });
    let sender = IpAddr::from([192, 0, 2, 1]);
    for now in [100, 101, 200] {
        receiver.receive(now, sender, bytes);
        receiver.set_name(sender, Some("h"));
        assert!(receiver.feed(now).clusters[0].hosts.len() <= 2);
    }
}

/// An answer of a gmond or gmetad: what is answered from it can be read again.
pub fn fuzz_ganglia_xml(bytes: &[u8]) {
    let Ok(bytes) = decompress(bytes.to_vec(), 1 << 20) else { return };
    let Ok(feed) = Feed::parse(&bytes) else { return };
    let mut collector = GangliaCollector::new(GangliaOptions { rrds_max: 8, ..GangliaOptions::default() });
    let source = collector.add_source(15);
    let mut readings = Readings::default();
    collector.read(source, 100, feed, &mut readings);
    collector.summarize(101, &mut readings);
    assert!(collector.inventory().len() <= 8);
    for query in ["/", "/?filter=summary", "/c/h/m"] {
        let Some(query) = GangliaQuery::parse(query.as_bytes()) else { panic!("these queries are good") };
        let answer = collector.answer(105, &query);
        if let Err(error) = Feed::parse(&answer) {
            panic!("{error}: {}", String::from_utf8_lossy(&answer));
        }
    }
}

#[cfg(test)]
mod tests {
    use testkit::shake;

    use super::*;
    use crate::collectd::encode::{
        encrypted, push_identity, push_interval, push_message, push_samples, push_time, signed,
    };
    use crate::collectd::packet::{FineTime, Sample};
    use crate::collectd::rrd::Identity;

    #[test]
    fn collectd_packets() {
        let mut parts = Vec::new();
        push_time(&mut parts, FineTime(1_700_000_000 << 30));
        push_interval(&mut parts, FineTime(10 << 30));
        let identity = Identity {
            host: b"h",
            plugin: b"p",
            plugin_instance: b"1",
            type_name: b"gauge",
            type_instance: b"x",
        };
        push_identity(&mut parts, Identity::default(), identity);
        push_samples(&mut parts, &[Sample::Gauge(1.5)]);
        push_identity(&mut parts, identity, Identity { type_name: b"if_octets", ..identity });
        push_samples(&mut parts, &[Sample::Derive(5), Sample::Derive(-5)]);
        push_message(&mut parts, 1, "bad");
        let auth = AuthFile::parse(b"u: secret\n").unwrap();
        let kinds = [
            signed(&auth, b"u", &parts).unwrap(),
            encrypted(&auth, b"u", &[3; 16], &parts).unwrap(),
            parts.clone(),
        ];
        for packet in kinds {
            shake(&packet, 5_000, fuzz_collectd);
        }
    }

    #[test]
    fn gmond_datagrams() {
        let word = |number: u32| number.to_be_bytes().to_vec();
        let text = |text: &[u8]| {
            let mut out = word(text.len() as u32);
            out.extend_from_slice(text);
            out.resize(out.len().next_multiple_of(4), 0);
            out
        };
        let id = [text(b"1.2.3.4:h"), text(b"load"), word(1)].concat();
        let rest = [
            text(b"float"),
            text(b"load"),
            text(b"u"),
            word(3),
            word(60),
            word(0),
            word(1),
            text(b"a"),
            text(b"b"),
        ];
        shake(&[word(128), id.clone(), rest.concat()].concat(), 5_000, fuzz_gmond);
        shake(&[word(135), id, text(b"%10.3f"), word(1), word(2)].concat(), 5_000, fuzz_gmond);
    }

    #[test]
    fn ganglia_answers() {
        let metric = "<METRIC NAME=\"m\" VAL=\"1.5\" TYPE=\"float\" UNITS=\"u\" TN=\"1\" TMAX=\"60\" DMAX=\"0\" SLOPE=\"both\">\
                      <EXTRA_DATA><EXTRA_ELEMENT NAME=\"a\" VAL=\"&lt;\"/></EXTRA_DATA></METRIC>";
        let cluster = format!(
            "<CLUSTER NAME=\"c\" LOCALTIME=\"100\" OWNER=\"o\"><HOST NAME=\"h\" IP=\"i\" REPORTED=\"9\" TN=\"1\" TMAX=\"20\">{metric}</HOST>\
             <HOSTS UP=\"1\" DOWN=\"2\"/><METRICS NAME=\"s\" SUM=\"2\" NUM=\"3\" TYPE=\"double\"></METRICS></CLUSTER>"
        );
        let xml = format!(
            "<GANGLIA_XML VERSION=\"3\">{cluster}<GRID NAME=\"g\" LOCALTIME=\"5\">{cluster}</GRID></GANGLIA_XML>"
        );
        shake(xml.as_bytes(), 5_000, fuzz_ganglia_xml);
    }

    #[test]
    fn collectd_files() {
        let types = b"if_octets rx:DERIVE:0:U, tx:DERIVE:0:U\nu: p\n# x\n<Plugin \"network\">\n Listen \"::\" \"1\"\n</Plugin>\n";
        shake(types, 5_000, fuzz_collectd_files);
    }
}
