//! Exports that are killed, wherever they are: no row is there twice, and the next export brings those that are not there.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use oracle::{Program, wait_until};

use super::database::Cluster;
use super::parquet::{DUCKDB, python, run};
use super::store::{Place, START, Store, check_rows, finest, parse, roundel};

type Rows = BTreeMap<Place, f64>;

/// Where the second day of the rows begins.
const MIDNIGHT: i64 = START + 900;

/// RRDs beside those that each store has: more than one transaction takes.
const COPIES: usize = 1050;
/// An RRD that the first transaction exports.
const IN_FIRST: &str = "copies/00500.rrd";
/// Milliseconds within which an export is killed at random; a whole one takes longer in a build for tests.
const WITHIN_MS: u64 = 600;

fn begin(directory: &Path, words: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roundel"));
    command.args(words).current_dir(directory).env_remove("RRDCACHED_ADDRESS").env("TZ", "UTC");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Kills exports at moments that a seed says.
fn kill_at_random(seed: u64, count: u64, mut begin: impl FnMut() -> Child, mut check: impl FnMut()) {
    let mut state = seed;
    for _ in 0..count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let export = begin();
        std::thread::sleep(Duration::from_millis((state >> 33) % WITHIN_MS));
        kill(export);
        check();
    }
}

/// Has PostgreSQL keep an export from the end of its transaction, as it has sent all rows of an RRD: until the session ends.
fn hold(cluster: &Cluster, name: &str) -> Child {
    let row = format!("name = '{name}' AND ds = 'in' AND cf = 'AVERAGE' AND step = 60");
    let insert = "INSERT INTO roundel.series (name, ds, cf, step)";
    cluster.psql(&format!("{insert} VALUES ('{name}', 'in', 'AVERAGE', 60)")).unwrap();
    let lock = format!("BEGIN; SELECT 1 FROM roundel.series WHERE {row} FOR UPDATE; SELECT pg_sleep(600)");
    let session = cluster.session(&lock);
    let is_held = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    wait_until("the row to be held", || cluster.psql(is_held).unwrap() == "1\n");
    session
}

fn wait_for_hold(cluster: &Cluster) {
    wait_until("the export to wait", || {
        cluster.psql("SELECT count(*) FROM pg_locks WHERE NOT granted").unwrap() != "0\n"
    });
}

/// Until the server has noticed that the export is gone, the next one would be refused.
fn wait_until_noticed(cluster: &Cluster) {
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'roundel export'";
    wait_until("the export's session to end", || cluster.psql(sessions).unwrap() == "0\n");
}

fn with_rows(cluster: &Cluster) -> usize {
    let names = "SELECT count(DISTINCT name) FROM roundel.history";
    cluster.psql(names).unwrap().trim().parse().unwrap()
}

#[test]
fn an_export_to_a_database_goes_on_after_it_was_killed() {
    let Some(cluster) = Cluster::start() else { return };
    let mut store = Store::new();
    store.copy(COPIES);
    let directory = store.tool.directory().to_path_buf();
    let url = cluster.url("ann");
    let want = finest(&store.rows());
    roundel(&directory, &["export", "top.rrd", "--from", "store", "--to", &url], &[]);
    let export = ["export", "--all", "--from", "store", "--to", &url];
    // In the middle of the first transaction: of its RRDs no row is there.
    let held = hold(&cluster, IN_FIRST);
    let child = begin(&directory, &export);
    wait_for_hold(&cluster);
    kill(child);
    // Also while its session waits for another one.
    wait_until_noticed(&cluster);
    kill(held);
    assert_eq!(with_rows(&cluster), 1);
    assert!(roundel(&directory, &export, &[]).starts_with("exported 1054 RRDs, 0 failed: "));
    check_rows(&cluster.rows("roundel.history"), &want);
    // Those that replace rows leave the old ones until the new ones are there.
    let again = [&export[..], &["--again"]].concat();
    kill_at_random(
        19,
        3,
        || begin(&directory, &again),
        || {
            wait_until_noticed(&cluster);
            check_rows(&cluster.rows("roundel.history"), &want);
        },
    );
}

#[test]
fn a_sink_goes_on_after_its_daemon_was_killed() {
    let Some(cluster) = Cluster::start() else { return };
    let mut store = Store::new();
    store.copy(COPIES);
    let directory = store.tool.directory().to_path_buf();
    let url = cluster.url("ann");
    let want = finest(&store.rows());
    roundel(&directory, &["export", "top.rrd", "--from", "store", "--to", &url], &[]);
    let here = directory.display();
    let config = format!(
        "store = \"{here}/store\"\nplaceholders = false\nbase = \"{here}/base\"\n[[listen]]\naddress = \"unix:{here}/sock\"\n\
         [[sink]]\nto = \"{url}\"\ninterval = \"1s\"\n"
    );
    std::fs::create_dir(directory.join("base")).unwrap();
    let file = directory.join("roundel.toml");
    std::fs::write(&file, config).unwrap();
    let words = ["serve", "--config", file.to_str().unwrap()];
    let serve = || Program::start(&directory.join("log"), env!("CARGO_BIN_EXE_roundel"), &words);
    let held = hold(&cluster, IN_FIRST);
    let daemon = serve();
    wait_for_hold(&cluster);
    // Killed.
    drop(daemon);
    wait_until_noticed(&cluster);
    kill(held);
    assert_eq!(with_rows(&cluster), 1);
    let daemon = serve();
    wait_until("the sink to have all RRDs", || with_rows(&cluster) == COPIES + 4);
    check_rows(&cluster.rows("roundel.history"), &want);
    daemon.terminate();
}

#[test]
fn a_data_set_is_completed_after_its_export_was_killed() {
    let Some(python) = python() else { return };
    let mut store = Store::new();
    store.copy(COPIES);
    let directory = store.tool.directory().to_path_buf();
    let export = ["export", "--all", "--from", "store", "--to", "parquet:out"];
    let want = finest(&store.rows());
    let read = || parse(&run(&python, DUCKDB, &directory));
    let partition = directory.join("out/day=2023-11-14/tree=copies/roundel.parquet");
    kill_at_random(
        7,
        6,
        || begin(&directory, &export),
        || {
            // A partition is there as a whole, or not yet.
            if partition.exists() {
                let of = |rows: &Rows| -> Rows {
                    let rows =
                        rows.iter().filter(|(place, _)| place.0.starts_with("copies/") && place.4 < MIDNIGHT);
                    rows.map(|(place, value)| (place.clone(), *value)).collect()
                };
                check_rows(&of(&read()), &of(&want));
            }
        },
    );
    roundel(&directory, &export, &[]);
    check_rows(&read(), &want);
    let left = Command::new("find").args(["out", "-name", ".*"]).current_dir(&directory).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
    assert!(roundel(&directory, &export, &[]).contains("0 partitions written"));
}
