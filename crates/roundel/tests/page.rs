//! The page in a real browser: Debian's Chromium, driven by the modules in `crates/roundel/tests/page`, opens what a daemon serves that
//! records this host and holds a few RRDs made here. Screenshots of what fails are left in `target/page/failed`.

#![allow(clippy::unwrap_used, reason = "tests")]
// Each test program uses a part of the shared modules.
#![allow(dead_code)]

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use testkit::{Client, Daemon, Kind};

/// Three days of rows of a minute and a month of rows of half an hour, both with extremes.
const ARCHIVES: &str = "RRA:AVERAGE:0.5:1:4320 RRA:MIN:0.5:1:4320 RRA:MAX:0.5:1:4320 \
                        RRA:AVERAGE:0.5:30:1440 RRA:MIN:0.5:30:1440 RRA:MAX:0.5:30:1440";
/// A day of rows of a minute, and a forecast by seasons of an hour.
const FORECAST: &str = "RRA:AVERAGE:0.5:1:1440 RRA:HWPREDICT:1440:0.1:0.0035:60";
/// Seconds of a row.
const STEP: u64 = 60;
/// Rows of a day.
const DAY: u64 = 1440;
/// Rows of a graph of three days.
const ROWS: u64 = 3 * DAY;
/// Names that look like markup, quotes, or text from right to left; the last is as long as a file's name may be, with `.rrd`.
const HOSTILE: [&str; 3] =
    ["<img src=x onerror=alert(1)>", "\"quoted\" 'names' & <b>", "\u{202e}from right \u{5d0}\u{5d1}\u{5d2}"];
/// RRDs of a directory of more than one page.
const MANY: usize = 250;

/// A daemon with something to look at.
struct Shown {
    url: String,
    /// That of a node of a cluster.
    cluster: String,
    _daemon: Daemon,
    _node: Daemon,
    _place: tempfile::TempDir,
}

fn start() -> Shown {
    let place = tempfile::tempdir().unwrap();
    let mut daemon = testkit::daemon!(Kind::Stripes, place.path());
    let port = testkit::free_port();
    daemon.configure(&format!(
        "[http]\nlisten = [\"127.0.0.1:{port}\"]\ntemplates = '{}'\n[collect]\nhost = true\n",
        place.path().join("graphs").display()
    ));
    let mut client = daemon.start();
    for port in ["switch one/eth0", "switch one/eth1", "switch two/eth0"] {
        create(&mut client, &format!("net/{port}.rrd"), &["in", "out"], ROWS);
    }
    create_with(&mut client, "aberrant/load.rrd", &["load"], FORECAST, DAY, |row, _| {
        let usual =
            10.0 + (row as f64 / 60.0 * std::f64::consts::TAU).sin() + (row * 7919 % 100) as f64 / 500.0;
        // Ten minutes are unlike the hours before.
        if (DAY - 40..DAY - 30).contains(&row) { usual * 5.0 } else { usual }
    });
    for name in HOSTILE.map(String::from).into_iter().chain(["x".repeat(251)]) {
        create(&mut client, &format!("hostile/{name}.rrd"), &["v"], 60);
    }
    import_unspeakable(&place.path().join("import"), daemon.socket());
    for number in 0..MANY {
        create(&mut client, &format!("many/rrd{number:03}.rrd"), &["v"], 2);
    }
    // The tests of the first page look at this host's graphs, which come with the first readings.
    testkit::wait_until("this host's RRDs are there", || {
        let answer = client.ask("LIST RECURSIVE /").unwrap();
        answer.lines.iter().any(|name| name.ends_with("/swap.rrd"))
    });
    let (node, cluster) = start_node(&place.path().join("cluster"));
    Shown { _daemon: daemon, _node: node, _place: place, url: format!("http://127.0.0.1:{port}"), cluster }
}

/// The only node of a cluster, which lacks replicas.
fn start_node(place: &Path) -> (Daemon, String) {
    std::fs::create_dir_all(place).unwrap();
    std::fs::write(place.join("secret"), "a secret of the cluster in this test\n").unwrap();
    let mut daemon = testkit::daemon!(Kind::Stripes, place);
    let port = testkit::free_port();
    daemon.configure(&format!(
        "[http]\nlisten = [\"127.0.0.1:{port}\"]\n[cluster]\nname = 'test'\nnode = 'first'\nzone = 'east'\nlisten = '127.0.0.1:{}'\n\
         secret_file = '{place}/secret'\ndirectory = '{place}/messages'\n",
        testkit::free_port(),
        place = place.display()
    ));
    let mut client = daemon.start();
    testkit::wait_until("it to lead all", || {
        let answer = client.ask("CLUSTER").unwrap();
        answer.lines.iter().filter(|line| line.contains(" leader first ")).count() == 8
    });
    (daemon, format!("http://127.0.0.1:{port}"))
}

/// Imports an RRD whose name no JSON can hold.
fn import_unspeakable(directory: &Path, socket: PathBuf) {
    let hostile = directory.join("hostile");
    std::fs::create_dir_all(&hostile).unwrap();
    let made = Command::new("rrdtool")
        .args(["create".as_ref(), hostile.join(OsStr::from_bytes(b"not \xff UTF-8.rrd")).as_os_str()])
        .args(["--step", "60", "DS:v:GAUGE:120:0:U", "RRA:AVERAGE:0.5:1:60"])
        .status();
    assert!(made.unwrap().success());
    let to = format!("unix:{}", socket.display());
    let imported =
        Command::new(env!("CARGO_BIN_EXE_roundel")).args(["import", "--to", &to]).arg(directory).status();
    assert!(imported.unwrap().success());
}

/// An RRD with `rows` rows up to now: two waves, and nothing for an hour of each day.
fn create(client: &mut Client, name: &str, sources: &[&str], rows: u64) {
    create_with(client, name, sources, ARCHIVES, rows, value);
}

/// An RRD with `rows` rows up to now, and the values of a row and a data source; of [`ROWS`] rows, an hour of each day is unknown.
fn create_with(
    client: &mut Client,
    name: &str,
    sources: &[&str],
    archives: &str,
    rows: u64,
    value: impl Fn(u64, usize) -> f64,
) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / STEP * STEP;
    let quoted: String = name.chars().flat_map(quote).collect();
    let sources_text: String = sources.iter().fold(String::new(), |mut text, source| {
        write!(text, " DS:{source}:GAUGE:{}:0:U", 2 * STEP).unwrap();
        text
    });
    let begin = now - (rows + 1) * STEP;
    let answer =
        client.ask(&format!("CREATE {quoted} -b {begin} -s {STEP}{sources_text} {archives}")).unwrap();
    assert_eq!(answer.status, 0, "{name}: {answer:?}");
    let readings: Vec<String> = (0..rows)
        .filter(|row| rows < ROWS || !(600..660).contains(&(row % DAY)))
        .map(|row| {
            let values = (0..sources.len()).map(|wave| format!(":{:.3}", value(row, wave)));
            format!("{}{}", now - (rows - 1 - row) * STEP, values.collect::<String>())
        })
        .collect();
    for part in readings.chunks(100) {
        let answer = client.ask(&format!("UPDATE {quoted} {}", part.join(" "))).unwrap();
        assert!(answer.status >= 0, "{name}: {answer:?}");
    }
}

fn value(row: u64, wave: usize) -> f64 {
    let noise = (row * 7919 % 1000) as f64 / 3000.0;
    4e6 * (1.0 + (row as f64 / 200.0 + wave as f64).sin() + noise)
}

/// A character as in a word of rrdcached's protocol.
fn quote(letter: char) -> Vec<char> {
    if " \"'\\".contains(letter) { vec!['\\', letter] } else { vec![letter] }
}

/// Runs a script of `tests/page` with node and the packages in `modules`, and fails with what it says.
fn node(script: &[&str], modules: &Path, variables: &[(&str, &OsStr)]) {
    let status = Command::new("node")
        .arg("--test-reporter=spec")
        .args(script)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page"))
        .env("ROUNDEL_PAGE_MODULES", modules)
        .envs(variables.iter().copied())
        .status()
        .expect("node runs");
    assert!(status.success(), "{script:?}: {status}");
}

/// Runs a script that opens pages of a daemon; pictures go into a directory of `target/page`.
fn browse(script: &[&str], pictures: &str) {
    let Some(modules) = testkit::peer::page_modules() else { return };
    let shown = start();
    let pictures = modules.join(pictures);
    println!("pictures are in {}", pictures.display());
    node(
        script,
        &modules,
        &[
            ("ROUNDEL_PAGE_URL", shown.url.as_ref()),
            ("ROUNDEL_PAGE_CLUSTER", shown.cluster.as_ref()),
            ("ROUNDEL_PAGE_ARTEFACTS", pictures.as_ref()),
        ],
    );
}

#[test]
fn graphs_work_in_a_browser() {
    browse(&["suite.mjs", "graphs"], "failed");
}

/// With ROUNDEL_PAGE_SHOTS (`make page-shots`), pictures of every page are made instead, in `target/page/shots`.
#[test]
fn every_page_is_accessible_and_works_without_script() {
    match std::env::var_os("ROUNDEL_PAGE_SHOTS") {
        None => browse(&["suite.mjs", "every_page"], "failed"),
        Some(_) => browse(&["shots.mjs"], "shots"),
    }
}

#[test]
fn pages_work_in_a_browser() {
    browse(&["suite.mjs", "pages"], "failed");
}

#[test]
fn rrds_are_found_in_a_browser() {
    browse(&["suite.mjs", "finding"], "failed");
}

#[test]
fn the_types_of_all_modules_agree() {
    let Some(modules) = testkit::peer::page_modules() else { return };
    node(&["types.mjs"], &modules, &[]);
}
