//! SmokePing with its FPing probe: three rounds at given times, then its pages with their graphs.
//!
//! The real fping needs raw sockets and never answers twice the same, so a script stands in for it.

use std::fs;

use crate::support::{Place, Way, alike, succeeded, write_program};

/// Prints what `fping -C 5 -q HOST...` does; one packet is lost.
const FPING: &str = "#!/bin/sh\nfor host; do case \"$host\" in 127.*) echo \"$host : 0.05 0.17 0.06 - 0.08\" >&2;; esac; done\n";

/// Writes the configuration; where it is.
fn config(place: &Place) -> String {
    let fping = place.directory().join("fping");
    write_program(&fping, FPING);
    for directory in ["pid", "cache", "pages"] {
        fs::create_dir_all(place.directory().join(directory)).unwrap();
    }
    let text = format!(
        "*** General ***\nowner = o\ncontact = o@example.org\nmailhost = localhost\nsendmail = /bin/true\n\
         imgcache = {base}/cache\nimgurl = ../cache\ndatadir = {rrds}\npiddir = {base}/pid\n\
         cgiurl = http://localhost/smokeping.cgi\nsmokemail = /etc/smokeping/smokemail\ntmail = /etc/smokeping/tmail\n\
         *** Database ***\nstep = 300\npings = 5\n\
         AVERAGE 0.5 1 288\nAVERAGE 0.5 12 100\nMIN 0.5 12 100\nMAX 0.5 12 100\n\
         *** Presentation ***\ntemplate = /etc/smokeping/basepage.html\n\
         + overview\nwidth = 600\nheight = 50\nrange = 10h\n\
         + detail\nwidth = 600\nheight = 200\nunison_tolerance = 2\n\"Last 3 Hours\" 3h\n\"Last 30 Hours\" 30h\n\
         *** Probes ***\n+ FPing\nbinary = {base}/fping\n\
         *** Targets ***\nprobe = FPing\nmenu = Top\ntitle = top\n\
         + Local\nmenu = Local\ntitle = local\n++ One\nmenu = one\ntitle = one\nhost = 127.0.0.1\n\
         ++ Two\nmenu = two\ntitle = two\nhost = 127.0.0.2\n",
        base = place.directory().display(),
        rrds = place.rrds().display(),
    );
    place.write("config", &text).display().to_string()
}

fn round(place: &Place, time: &str) {
    let mut smokeping = place.command_at(time, "/usr/sbin/smokeping");
    let said = succeeded(smokeping.arg(format!("--config={}", config(place))).arg("--debug"));
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(!said.contains("ERROR"), "{:?}: {said}", place.way);
}

fn first(place: &Place) {
    round(place, "2001-09-09 01:50:00");
}

fn more(place: &Place) {
    round(place, "2001-09-09 01:55:00");
    round(place, "2001-09-09 02:00:00");
}

/// The texts of pages, and the sizes and the limits of the graphs on them.
fn pages(place: &Place) -> Vec<String> {
    let mut smokeping = place.command_at("2001-09-09 02:01:00", "/usr/sbin/smokeping");
    let pages = place.directory().join("pages");
    succeeded(
        smokeping
            .arg(format!("--config={}", config(place)))
            .arg(format!("--static-pages={}", pages.display())),
    );
    let read = |name: &str| {
        let path = place.directory().join(name);
        fs::read(&path).unwrap_or_else(|error| panic!("{:?} {path:?}: {error}", place.way))
    };
    let texts = ["pages/index.html", "pages/Local.html", "pages/Local.One.html", "cache/Local/One.maxheight"];
    let text = |name: &str| String::from_utf8(read(name)).unwrap();
    let mut all: Vec<String> =
        texts.iter().flat_map(|name| text(name).lines().map(str::to_string).collect::<Vec<_>>()).collect();
    // A PNG has its width and height after its first 16 bytes.
    let graphs =
        ["Local/One_mini.png", "Local/One_last_10800.png", "Local/One_last_108000.png", "Local/Two_mini.png"];
    all.extend(graphs.map(|name| format!("{name} {:?}", &read(&format!("cache/{name}"))[..24])));
    all
}

#[test]
fn smokeping() {
    let places = alike(&Way::OURS, &[&first, &more]);
    let theirs = pages(&places[0]);
    for place in &places[1..] {
        for (our, their) in pages(place).iter().zip(&theirs) {
            assert_eq!(our, their, "{:?}", place.way);
        }
    }
}
