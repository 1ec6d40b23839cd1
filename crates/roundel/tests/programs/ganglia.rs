//! gmetad, which makes and updates RRDs by the library, fed by a real gmond. Both live in real time, so both libraries
//! get the same cluster at once, and RRDs are compared by their definitions and by a metric that does not change.

use std::net::TcpStream;
use std::process::Command;

use testkit::{Running, free_port};

use crate::support::{Place, Way, succeeded};

/// The value of a metric of the test's own.
const FIXED: &str = "42.5";
/// RRDs that come of it, and of a metric of gmond's.
const NAMES: [&str; 4] = [
    "peer/host-1/fixed.rrd",
    "peer/host-1/load_one.rrd",
    "peer/__SummaryInfo__/fixed.rrd",
    "__SummaryInfo__/load_one.rrd",
];

/// Starts gmond and gives it the metric; the port where it tells its cluster.
fn gmond(directory: &std::path::Path) -> (Running, u16) {
    let (port, udp) = (free_port(), free_port());
    let config = directory.join("gmond.conf");
    let text = format!(
        "globals {{ daemonize = no setuid = no mute = no deaf = no send_metadata_interval = 1 \
         override_hostname = host-1 }}\n\
         cluster {{ name = \"peer\" owner = \"o\" latlong = \"\" url = \"\" }}\n\
         udp_send_channel {{ host = 127.0.0.1 port = {udp} }}\n\
         udp_recv_channel {{ bind = 127.0.0.1 port = {udp} }}\n\
         tcp_accept_channel {{ bind = 127.0.0.1 port = {port} }}\n\
         modules {{ module {{ name = \"core_metrics\" }}\n\
         module {{ name = \"load_module\" path = \"/usr/lib/{arch}-linux-gnu/ganglia/modload.so\" }} }}\n\
         collection_group {{ collect_once = yes time_threshold = 20 metric {{ name = \"heartbeat\" }} }}\n\
         collection_group {{ collect_every = 1 time_threshold = 1 metric {{ name = \"load_one\" }} }}\n",
        arch = std::env::consts::ARCH
    );
    std::fs::write(&config, text).unwrap();
    let mut command = Command::new("/usr/sbin/gmond");
    command.arg("-f").arg("-c").arg(&config).env("LC_ALL", "C");
    let mut gmond = Running::start(&mut command, directory.join("gmond.log"));
    gmond.wait_for("gmond", || TcpStream::connect(("127.0.0.1", port)).ok());
    let mut gmetric = Command::new("/usr/bin/gmetric");
    gmetric.arg("-c").arg(&config).args(["-n", "fixed", "-t", "double", "-u", "things", "-v", FIXED]);
    succeeded(gmetric.args(["-S", "127.0.0.1:host-1"]));
    (gmond, port)
}

fn gmetad(place: &Place, gmond: u16) -> Running {
    let text = format!(
        "data_source \"peer\" 1 127.0.0.1:{gmond}\nsetuid off\nrrd_rootdir \"{}\"\nxml_port {}\ninteractive_port {}\n\
         RRAs \"RRA:AVERAGE:0.5:1:100\" \"RRA:MAX:0.5:10:50\"\n",
        place.rrds().display(),
        free_port(),
        free_port()
    );
    let config = place.write("gmetad.conf", &text);
    let mut command = place.command("/usr/sbin/gmetad");
    command.args(["-d", "1", "-c"]).arg(config);
    Running::start(&mut command, place.directory().join("gmetad.log"))
}

/// What does not depend on when it was made: the definition, and the newest values of the metric that is fixed.
fn essence(place: &mut Place, name: &str) -> Option<String> {
    place.names().iter().find(|known| *known == name)?;
    let dump = place.dump(name);
    let (head, rows) = dump.split_once("<database>")?;
    let changing = ["lastupdate", "last_ds", "value>", "unknown_"];
    let definition = head.lines().filter(|line| !changing.iter().any(|word| line.contains(word)));
    let known: Vec<&str> = rows.lines().filter(|row| row.contains("<v>") && !row.contains("NaN")).collect();
    let values: Vec<&str> =
        known.last()?.split("<v>").skip(1).map(|rest| rest.split('<').next().unwrap()).collect();
    let values = if name.contains("fixed") { values.join(" ") } else { String::new() };
    Some(definition.collect::<Vec<_>>().join("\n") + &values)
}

#[test]
fn gmetad_by_either_library() {
    let directory = tempfile::tempdir().unwrap();
    let (_gmond, port) = gmond(directory.path());
    let mut places = [Way::Debian, Way::Files, Way::Daemon].map(Place::new);
    let mut running: Vec<Running> = places.iter().map(|place| gmetad(place, port)).collect();
    let told: Vec<Vec<String>> = places
        .iter_mut()
        .zip(&mut running)
        .map(|(place, gmetad)| NAMES.map(|name| gmetad.wait_for(name, || essence(place, name))).into())
        .collect();
    assert!(told[0][0].ends_with("4.2500000000e+01"), "{}", told[0][0]);
    for (place, told_there) in places.iter().zip(&told) {
        assert_eq!(told_there, &told[0], "{:?}", place.way);
    }
    for gmetad in running {
        let said = gmetad.stop();
        assert!(!said.contains("ERROR") && !said.contains("rrd_update"), "{said}");
    }
}
