//! `[[snmp]]` polls Debian's snmpd.

use std::fs;
use std::path::Path;

use testkit::{free_port, http_get, wait_for, wait_until};

use crate::snmp::{MIB, OBJECTS};
use crate::snmpd::Snmpd;
use crate::{Daemon, info, our_info};

/// What `/metrics` says of a collector: the name without `roundel_` and `_total`.
pub fn metric(port: u16, name: &str) -> Option<u64> {
    let text = http_get(port, "/metrics")?;
    let prefix = format!("roundel_{name}");
    text.lines().find_map(|line| {
        let (metric, value) = line.split_once(' ')?;
        let is_it = metric.strip_suffix("_total").unwrap_or(metric) == prefix;
        value.parse().ok().filter(|_| is_it)
    })
}

/// The last values of an RRD, by data source.
fn last(root: &Path, name: &str, ds: &str) -> Option<f64> {
    let text = info(root, name)?;
    let line = text.lines().find(|line| line.starts_with(&format!("ds[{ds}].last_ds")))?.to_string();
    line.split('"').nth(1)?.parse().ok()
}

#[test]
fn a_poller_says_how_it_does() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let snmpd = Snmpd::start(root, "", None);
    let http = free_port();
    let sections = format!(
        "[http]\nlisten = ['127.0.0.1:{http}']\n\
         [[snmp]]\ndevice = '127.0.0.1:{}'\nname = 'good'\nstep = '1s'\n\
         [[snmp]]\ndevice = '127.0.0.1:9'\nname = 'dead'\nstep = '1s'\n",
        snmpd.port
    );
    let _daemon = Daemon::serve(root, "", &sections);
    wait_until("passes over the good device", || {
        metric(http, "snmp_passes").is_some_and(|passes| passes > 3)
    });
    assert!(metric(http, "snmp_targets_answered").unwrap() > 0 && metric(http, "snmp_stored").unwrap() > 0);
    assert_eq!((metric(http, "snmp_devices"), metric(http, "snmp_silent_devices")), (Some(2), Some(1)));
    wait_until("timeouts of the dead one", || metric(http, "snmp_timeouts").is_some_and(|count| count > 0));
    assert!(metric(http, "snmp_requests") > metric(http, "snmp_answers"));
    // The same as an RRD, and one for each device that is polled.
    let own = wait_for("the poller's own RRD", || info(root, "roundel/snmp.rrd"));
    for ds in ["passes", "pass_micros", "late_passes", "timeouts", "retries", "devices"] {
        assert!(own.contains(&format!("ds[{ds}].type")), "{own}");
    }
    our_info(root, "net/good/lo.rrd");
    // By the names that the dashboard of interfaces asks for.
    for (label, metric, want) in [
        ("interface", "snmp_interface_outDiscards_total%7Binstance=%22good%22%7D", "\"lo\""),
        ("ds", "roundel_snmp_passes", "\"passes\""),
    ] {
        wait_until(metric, || {
            let target = format!("/api/v1/label/{label}/values?match[]={metric}");
            http_get(http, &target).is_some_and(|answer| answer.contains(want))
        });
    }
    wait_until("the device's poll time", || {
        last(root, "snmp/good.rrd", "duration").is_some_and(|time| time > 0.0)
    });
    assert_eq!(last(root, "snmp/good.rrd", "timeouts"), Some(0.0));
    let log = || fs::read_to_string(root.join("log")).unwrap();
    wait_until("a line about the dead device", || log().contains("does not answer"));
    assert_eq!(log().matches("does not answer").count(), 1, "{}", log());
}

/// SIGHUP adds, changes and removes devices; a configuration that cannot be used changes nothing.
#[test]
fn devices_change_on_a_reload() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let snmpd = Snmpd::start(root, "", None);
    let http = free_port();
    let http_section = format!("[http]\nlisten = ['127.0.0.1:{http}']\n");
    let device = |name: &str, more: &str| {
        format!("[[snmp]]\ndevice = '127.0.0.1:{}'\nname = '{name}'\nstep = '1s'\n{more}", snmpd.port)
    };
    let log = || fs::read_to_string(root.join("log")).unwrap_or_default();
    let daemon = Daemon::serve(root, "", &http_section);
    // A socket that answers is served after signals are handled.
    wait_until("the daemon", || log().contains("HTTP on"));
    let reload = |sections: &str| {
        Daemon::configure(root, "", &format!("{http_section}{sections}"));
        daemon.hang_up();
    };
    reload(&device("one", ""));
    our_info(root, "net/one/lo.rrd");

    reload(&(device("one", "") + &device("two", "") + "[collect]\nhost = true\n"));
    our_info(root, "net/two/lo.rrd");
    wait_until("what was changed", || log().contains("removed=0 added=1 unchanged=1"));
    assert!(log().contains("take a restart: [collect]"), "{}", log());
    wait_until("two devices", || metric(http, "snmp_devices") == Some(2));

    reload(&(device("one", "") + &device("two", "community = 'x'\nversion = '7'\n")));
    wait_until("a complaint", || log().contains("was not reloaded") && log().contains("version \"7\""));
    let passes = metric(http, "snmp_passes").unwrap();
    wait_until("passes over both", || metric(http, "snmp_passes").is_some_and(|now| now >= passes + 4));

    reload(&device("one", "profiles = ['host-resources']\n"));
    our_info(root, "host/one/system.rrd");
    wait_until("what was changed", || log().contains("removed=2 added=1 unchanged=0"));
    wait_until("one device", || metric(http, "snmp_devices") == Some(1));
    let last = || {
        let info = info(root, "net/one/lo.rrd").unwrap();
        info.lines().find(|line| line.starts_with("last_update")).unwrap().to_string()
    };
    let (before, passes) = (last(), metric(http, "snmp_passes").unwrap());
    wait_until("further passes", || metric(http, "snmp_passes").is_some_and(|now| now >= passes + 2));
    assert_eq!(last(), before, "its interfaces are polled no more");
}

#[test]
fn rules_paths_archives_and_profiles_are_those_of_the_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let snmpd = Snmpd::start(root, OBJECTS, None);
    fs::write(root.join("ACME-MIB.txt"), MIB).unwrap();
    let profile = "mibs = ['ACME-MIB.txt']\n[[table]]\nname = 'acme'\npath = 'acme/{device}.rrd'\n\
                   ds = [{ name = 'size', objects = ['acmeSize'], kind = 'gauge' },\n\
                   { name = 'load', objects = ['acme.3'], kind = 'gauge' }]\n";
    fs::write(root.join("acme.toml"), profile).unwrap();
    let section = format!(
        "[[snmp]]\ndevice = '127.0.0.1:{}'\nname = 'a'\nstep = '1s'\nprofiles = ['if-mib', '{}/acme.toml']\n\
         only = [{{ ifType = 'softwareLoopback', ifOperStatus = 'up' }}, {{ ifType = 117 }}]\n\
         except = [{{ name = '2/*', ifOperStatus = 'down' }}]\n\
         paths = {{ interface = 'links/{{device}}/{{ifDescr}}-{{index}}.rrd' }}\n\
         rras = ['RRA:LAST:0.5:1s:1h']\nheartbeat = '5s'\n",
        snmpd.port,
        root.display()
    );
    let _daemon = Daemon::serve(root, "", &section);
    let link = our_info(root, "links/a/lo-1.rrd");
    for line in ["rra[0].cf = \"LAST\"", "rra[0].rows = 3600", "ds[in].minimal_heartbeat = 5"] {
        assert!(link.contains(line), "{line}: {link}");
    }
    our_info(root, "acme/a.rrd");
    let acme = ["size", "load"].map(|ds| last(root, "acme/a.rrd", ds));
    assert_eq!(acme, [Some(4e9), Some(-17.0)]);
    assert_eq!(info(root, "links/a/My%20If%3A2-1001.rrd"), None, "it is down");
}
