use crate::snmp::collector::tests::{Bench, agent};
use crate::snmp::profile::{ProfileFile, Profiles};
use crate::snmp::source::SnmpSource;

const ADDRESS: &str = "192.0.2.1:161";

impl Bench {
    /// Reloads these devices; how many are removed, added and unchanged.
    fn reload(&mut self, sources: &[&str], profiles: Profiles) -> [usize; 3] {
        let sources = sources.iter().map(|text| toml::from_str::<SnmpSource>(text).unwrap()).collect();
        let reloaded = self.collector.reload(sources, profiles);
        assert_eq!(reloaded.refused, []);
        for id in &reloaded.added {
            self.collector.set_address(self.time(), *id, ADDRESS.parse().unwrap());
        }
        [reloaded.removed.len(), reloaded.added.len(), reloaded.unchanged]
    }
}

#[test]
fn only_what_changes_begins_anew() {
    let mut bench = Bench::new("device = 'router1'", agent());
    bench.run(130);
    let one = "device = 'router1'";
    assert_eq!(bench.reload(&[one], Profiles::default()), [0, 0, 1]);
    let walks = bench.agent.requests;
    assert_eq!(bench.reload(&[one, "device = 'router2'"], Profiles::default()), [0, 1, 1]);
    bench.run(130);
    assert!(bench.agent.requests > walks);
    assert!(bench.of("net/router2/eth0.rrd").len() >= 2, "{:?}", bench.readings);
    // The first goes on in its rhythm: a minute between two readings.
    let seconds: Vec<f64> = bench
        .of("net/router1/eth0.rrd")
        .iter()
        .map(|text| text.split(':').next().unwrap().parse().unwrap())
        .collect();
    assert!(seconds.len() >= 4 && seconds.windows(2).all(|two| two[1] - two[0] == 60.0), "{seconds:?}");
    assert_eq!([bench.number("devices"), bench.number("rrds")], [2, 8]);

    bench.readings.clear();
    assert_eq!(bench.reload(&["device = 'router2'"], Profiles::default()), [1, 0, 1]);
    bench.run(130);
    assert!(bench.of("net/router1/eth0.rrd").is_empty(), "{:?}", bench.readings);
    assert!(bench.of("net/router2/eth0.rrd").len() >= 2);
    assert_eq!([bench.number("devices"), bench.number("rrds")], [1, 4]);
}

#[test]
fn a_changed_device_is_polled_by_its_new_rules_in_the_place_of_the_old_one() {
    let mut bench = Bench::new("device = 'router1'", agent());
    bench.run(130);
    bench.readings.clear();
    let other = "device = 'router1'\nstep = '10s'\nonly = ['eth*']\nrras = ['RRA:LAST:0.5:1:9']";
    assert_eq!(bench.reload(&[other], Profiles::default()), [1, 1, 0]);
    bench.run(61);
    assert!((5..=6).contains(&bench.of("net/router1/eth0.rrd").len()), "{:?}", bench.readings);
    assert!(bench.of("net/router1/lo.rrd").is_empty());
    let (inventory, readings) = bench.collector.readings();
    assert!(readings.is_empty());
    assert_eq!(bench.collector.state.devices.len(), 1, "the place is used again");
    let rrd = bench.collector.state.devices[0].rrds[0];
    assert_eq!((inventory.name(rrd), inventory.spec(rrd).step), (&b"net/router1/eth0.rrd"[..], 10));
}

#[test]
fn a_profile_that_changes_changes_its_devices() {
    let profile = |column: &str| {
        let text = format!(
            "[[table]]\nname = 'a'\npath = 'a/{{device}}-{{index}}.rrd'\n\
             ds = [{{ name = 'x', objects = ['1.3.6.1.2.1.31.1.1.1.{column}'], kind = 'counter' }}]"
        );
        let mut profiles = Profiles::default();
        profiles.add("a.toml", ProfileFile::parse(&text).unwrap().profile(&Default::default()).unwrap());
        profiles
    };
    let sources = ["device = 'router2'\nprofiles = ['a.toml']", "device = 'router3'"];
    let mut bench = Bench::new("device = 'router1'", agent());
    assert_eq!(bench.reload(&sources, profile("6")), [1, 2, 0]);
    assert_eq!(bench.reload(&sources, profile("6")), [0, 0, 2]);
    assert_eq!(bench.reload(&sources, profile("10")), [1, 1, 1]);
    bench.run(130);
    assert!(bench.of("a/router2-2.rrd")[0].ends_with(":200"), "{:?}", bench.readings);
}

#[test]
fn a_device_may_go_while_it_is_asked() {
    let mut bench = Bench::new("device = 'router1'", agent());
    let mut datagrams = Vec::new();
    bench.collector.send_all(|_, datagram| datagrams.push(datagram.to_vec()));
    let answer = bench.agent.answer(bench.now, &datagrams[0]).unwrap();
    assert_eq!(bench.reload(&["device = 'router2'"], Profiles::default()), [1, 1, 0]);
    bench.collector.receive(bench.time(), ADDRESS.parse().unwrap(), &answer);
    assert_eq!(bench.number("unexpected"), 1);
    bench.run(130);
    assert!(bench.of("net/router2/eth0.rrd").len() >= 2, "{:?}", bench.readings);
    assert_eq!(bench.reload(&[], Profiles::default()), [1, 0, 0]);
    bench.readings.clear();
    bench.run(130);
    assert!(bench.readings.is_empty());
    assert_eq!(
        [bench.number("devices"), bench.number("in_flight"), bench.number("silent_devices")],
        [0, 0, 0]
    );
}
