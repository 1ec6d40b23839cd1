use super::answer::GangliaQuery;
use super::gmond::{GmondOptions, GmondReceiver};
use super::*;
use std::net::IpAddr;

/// A cluster of hosts with `tn` and metrics `name value type slope`.
fn feed(localtime: i64, hosts: &[(&str, u32, &[[&str; 4]])]) -> Feed {
    let mut xml = format!(
        "<GANGLIA_XML VERSION=\"3.7.2\" SOURCE=\"gmond\">\n<CLUSTER NAME=\"a b\" LOCALTIME=\"{localtime}\" OWNER=\"o\">\n"
    );
    for (name, tn, metrics) in hosts {
        xml += &format!(
            "<HOST NAME=\"{name}\" IP=\"1.2.3.4\" REPORTED=\"5\" TN=\"{tn}\" TMAX=\"20\" DMAX=\"0\">\n"
        );
        for [name, value, kind, slope] in *metrics {
            xml += &format!(
                "<METRIC NAME=\"{name}\" VAL=\"{value}\" TYPE=\"{kind}\" UNITS=\"u\" TN=\"9\" TMAX=\"60\" DMAX=\"0\" \
                 SLOPE=\"{slope}\"></METRIC>\n"
            );
        }
        xml += "</HOST>\n";
    }
    Feed::parse(format!("{xml}</CLUSTER>\n</GANGLIA_XML>\n").as_bytes()).unwrap()
}

/// What Debian's gmetad 3.7.2 stored of the same answer.
#[test]
fn readings_and_sums_are_gmetad_s() {
    let mut collector = GangliaCollector::new(GangliaOptions::default());
    let source = collector.add_source(5);
    let mut readings = Readings::default();
    let hosts: [(&str, u32, &[[&str; 4]]); 4] = [
        (
            "UPPER",
            79,
            &[
                ["m", "1.5", "float", "both"],
                ["n", "1", "int32", "zero"],
                ["we ird.na&amp;me", "3", "uint32", "positive"],
                ["ts", "5", "timestamp", "both"],
                ["os", "Linux", "string", "both"],
                ["e", "1.25e3", "float", "derivative"],
                ["bad", "1:2", "float", "both"],
            ],
        ),
        ("b", 1, &[["m", "0.75", "float", "both"], ["n", "-3", "int32", "zero"]]),
        ("c", 80, &[["m", "2", "float", "both"]]),
        ("d", 0, &[["m", "2", "float", "both"], ["n", "7", "int32", "zero"]]),
    ];
    collector.read(source, 101, feed(100, &hosts), &mut readings);
    collector.summarize(103, &mut readings);
    assert_eq!(
        readings.lines(collector.inventory()),
        [
            "a b/upper/m.rrd 100:1.5",
            "a b/upper/n.rrd 100:1",
            "a b/upper/we ird.na&me.rrd 100:3",
            "a b/upper/e.rrd 100:1.25e3",
            "a b/b/m.rrd 100:0.75",
            "a b/b/n.rrd 100:-3",
            "a b/d/m.rrd 100:2",
            "a b/d/n.rrd 100:7",
            "a b/__SummaryInfo__/m.rrd 100:4.2:3",
            "a b/__SummaryInfo__/n.rrd 100:5:3",
            "a b/__SummaryInfo__/we ird.na&me.rrd 100:3:1",
            "a b/__SummaryInfo__/e.rrd 100:1250.0000:1",
            "__SummaryInfo__/m.rrd 103:4.25000:3",
            "__SummaryInfo__/n.rrd 103:5.00000:3",
            "__SummaryInfo__/we ird.na&me.rrd 103:3.00000:1",
            "__SummaryInfo__/e.rrd 103:1250.00000:1",
        ]
    );
    let args = |index: usize| {
        let rrd = readings.iter().nth(index).unwrap().rrd;
        collector.inventory().spec(rrd).args[..2].join(" ")
    };
    assert_eq!(args(2), "DS:sum:COUNTER:40:U:U RRA:AVERAGE:0.5:1:5856");
    assert_eq!(args(8), "DS:sum:GAUGE:40:U:U DS:num:GAUGE:40:U:U");
    assert_eq!(args(15), "DS:sum:GAUGE:120:U:U DS:num:GAUGE:120:U:U");
    // Once more at the same time, and then a source that is gone: its sums are 0 of no hosts.
    readings.clear();
    collector.read(source, 106, feed(100, &hosts), &mut readings);
    assert_eq!((readings.len(), collector.counts().old), (0, 1));
    collector.fail(source);
    collector.summarize(118, &mut readings);
    assert_eq!(readings.lines(collector.inventory())[0], "__SummaryInfo__/m.rrd 118:0.00000:0");
}

#[test]
fn queries_select_as_far_as_their_path_exists() {
    let mut collector =
        GangliaCollector::new(GangliaOptions { grid: "G".into(), ..GangliaOptions::default() });
    let source = collector.add_source(15);
    let hosts: [(&str, u32, &[[&str; 4]]); 2] = [
        ("h1", 3, &[["m", "1.5", "float", "both"], ["n", "1", "int32", "zero"]]),
        ("h2", 90, &[["m", "2", "float", "both"]]),
    ];
    collector.read(source, 101, feed(100, &hosts), &mut Readings::default());
    let ask = |query: &str| {
        let query = GangliaQuery::parse(query.as_bytes()).unwrap();
        let answer = String::from_utf8(collector.answer(105, &query)).unwrap();
        assert!(Feed::parse(answer.as_bytes()).is_ok(), "{answer}");
        let body = answer.split_once("]>\n").unwrap().1;
        let words =
            ["NAME=\"h1\"", "NAME=\"h2\"", "NAME=\"m\" VAL", "NAME=\"n\" VAL", "NAME=\"m\" SUM", "HOSTS UP"];
        words.map(|word| body.matches(word).count())
    };
    assert_eq!(ask("/\n"), [1, 1, 1, 1, 0, 0]);
    assert_eq!(ask("/nosuch"), [1, 1, 1, 1, 0, 0]);
    assert_eq!(ask("/a b/h1\r\n"), [1, 0, 1, 1, 0, 0]);
    assert_eq!(ask("/a b/h1/m"), [1, 0, 1, 0, 0, 0]);
    assert_eq!(ask("/a b/h1/nosuch"), [1, 0, 1, 1, 0, 0]);
    assert_eq!(ask("/a b/nosuch/m"), [1, 1, 1, 1, 0, 0]);
    assert_eq!(ask("/?filter=summary"), [0, 0, 0, 0, 2, 2]);
    assert_eq!(ask("/a b/?filter=summary"), [0, 0, 0, 0, 1, 1]);
    assert_eq!(GangliaQuery::parse(b"a"), None);
    let all = String::from_utf8(collector.answer(105, &GangliaQuery::default())).unwrap();
    let host = "<HOST NAME=\"h1\" IP=\"1.2.3.4\" REPORTED=\"5\" TN=\"7\" TMAX=\"20\" DMAX=\"0\" LOCATION=\"\" \
                GMOND_STARTED=\"0\" TAGS=\"\">\n<METRIC NAME=\"m\" VAL=\"1.5\" TYPE=\"float\" UNITS=\"u\" TN=\"13\" TMAX=\"60\" \
                DMAX=\"0\" SLOPE=\"both\" SOURCE=\"gmond\">\n<EXTRA_DATA>\n</EXTRA_DATA>\n</METRIC>\n";
    assert!(all.contains(host), "{all}");
}

fn words(parts: &[&[u8]], numbers: &[u32]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        out.extend_from_slice(&(part.len() as u32).to_be_bytes());
        out.extend_from_slice(part);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    numbers.iter().for_each(|number| out.extend_from_slice(&number.to_be_bytes()));
    out
}

#[test]
fn datagrams_become_what_a_gmond_would_answer() {
    let mut receiver = GmondReceiver::new(GmondOptions { hosts_max: 2, ..GmondOptions::default() });
    let sender = IpAddr::from([192, 0, 2, 1]);
    let value = |host: &[u8], name: &[u8], spoofed| {
        let id = [
            &134u32.to_be_bytes()[..],
            &words(&[host, name], &[spoofed]),
            &words(&[b"%.1f"], &[4.25f32.to_bits()]),
        ];
        id.concat()
    };
    let metadata = |host: &[u8], name: &[u8], spoofed| {
        let id = [&128u32.to_be_bytes()[..], &words(&[host, name], &[spoofed])].concat();
        [id, words(&[b"float", name, b"u"], &[3, 60, 0, 1]), words(&[b"GROUP", b"g"], &[])].concat()
    };
    assert!(receiver.receive(100, sender, &value(b"x", b"m", 0)).is_some(), "metadata is asked for");
    assert!(receiver.receive(101, sender, &value(b"x", b"m", 0)).is_none(), "not so soon again");
    assert!(receiver.receive(102, sender, &metadata(b"x", b"m", 0)).is_none());
    receiver.receive(103, sender, &metadata(b"10.0.0.9:far", b"m:real", 1));
    receiver.receive(103, sender, &value(b"10.0.0.9:far", b"m:real", 1));
    assert_eq!(receiver.feed(104).clusters[0].hosts.len(), 1, "a host without a name waits for it");
    assert_eq!(receiver.nameless(9), [sender]);
    receiver.set_name(sender, Some("near"));
    receiver.receive(105, [192, 0, 2, 9].into(), &value(b"x", b"m", 0));
    assert_eq!(receiver.counts().over_limit, 1);
    let feed = receiver.feed(110);
    let hosts = &feed.clusters[0].hosts;
    let got: Vec<_> = hosts.iter().map(|host| (&*host.name, &*host.ip, host.tn)).collect();
    assert_eq!(got, [("near", "192.0.2.1", 8), ("far", "10.0.0.9", 7)]);
    let metric = &hosts[0].metrics[0];
    assert_eq!((&*metric.name, &*metric.value, metric.tn, &*metric.slope), ("m", "4.2", 9, "both"));
    assert_eq!(metric.extra, [("GROUP".into(), "g".into())]);
}

#[test]
fn compressed_answers_are_read_up_to_a_limit() {
    use std::io::Write as _;
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(&[b'x'; 1000]).unwrap();
    let bytes = writer.finish().unwrap();
    assert_eq!(decompress(bytes.clone(), 1000), Ok(vec![b'x'; 1000]));
    assert!(decompress(bytes[..20].to_vec(), 1000).is_err());
    assert!(decompress(bytes, 999).is_err());
    assert_eq!(decompress(b"plain".to_vec(), 9), Ok(b"plain".to_vec()));
}
