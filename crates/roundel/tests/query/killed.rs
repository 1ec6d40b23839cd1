//! Exports that are killed, wherever they are: no row is there twice, and the next export brings those that are not there.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use testkit::{Running, peer, wait_until};

use super::database::Cluster;
use super::parquet::{DUCKDB, run};
use super::store::{Place, START, Store, check_rows, finest, parse, roundel};

type Rows = BTreeMap<Place, f64>;

/// Where the second day of the rows begins.
const MIDNIGHT: i64 = START + 900;
/// RRDs beside those that each store has: more than one transaction takes.
const COPIES: usize = 1050;
/// Milliseconds within which an export is killed at random; a whole one takes longer in a build for tests.
const WITHIN_MS: u64 = 600;

fn begin(directory: &Path, words: &[&str]) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roundel"));
    command.args(words).current_dir(directory).env_remove("RRDCACHED_ADDRESS").env("TZ", "UTC");
    Running::quiet(&mut command)
}

/// Kills exports at moments that a seed says.
fn kill_at_random(seed: u64, count: u64, mut begin: impl FnMut() -> Running, mut check: impl FnMut()) {
    let mut random = testkit::random::Random::new(seed);
    for _ in 0..count {
        let export = begin();
        std::thread::sleep(Duration::from_millis(random.below(WITHIN_MS)));
        export.kill();
        check();
    }
}

fn count(cluster: &Cluster, of: &str) -> usize {
    cluster.psql(&format!("SELECT count(*) FROM {of}")).unwrap().trim().parse().unwrap()
}

/// Waits until the server has noticed that the export is gone: until then the next one would be refused.
fn wait_until_noticed(cluster: &Cluster) {
    let sessions = "pg_stat_activity WHERE application_name = 'roundel export'";
    wait_until("the export's session to end", || count(cluster, sessions) == 0);
}

/// Does something while an export's tables are locked; `begin` starts one, which is killed as it waits for them.
fn kill_while_it_waits(cluster: &Cluster, begin: impl FnOnce() -> Killed) {
    let lock = cluster.session("BEGIN; LOCK TABLE roundel.series; SELECT pg_sleep(600)");
    let sleeping = "pg_stat_activity WHERE wait_event = 'PgSleep'";
    wait_until("the lock", || count(cluster, sleeping) == 1);
    let export = begin();
    wait_until("the export to wait", || count(cluster, "pg_locks WHERE NOT granted") > 0);
    export();
    // Although what it waits for does not come.
    wait_until_noticed(cluster);
    assert_eq!(count(cluster, sleeping), 1);
    // A session that sleeps does not notice that its psql is gone.
    cluster.psql(&format!("SELECT pg_terminate_backend(pid) FROM {sleeping}")).unwrap();
    lock.kill();
}

/// Kills what was begun.
type Killed = Box<dyn FnOnce()>;

/// The rows of RRDs that have some must be all of theirs.
fn check_whole_rrds(got: &Rows, want: &Rows) {
    let mut names: Vec<&String> = got.keys().map(|place| &place.0).collect();
    names.dedup();
    let of_these = |place: &&Place| names.binary_search(&&place.0).is_ok();
    let want = want.iter().filter(|(place, _)| of_these(place)).map(|(place, value)| (place.clone(), *value));
    check_rows(got, &want.collect());
}

#[test]
fn an_export_to_a_database_goes_on_after_it_was_killed() {
    let Some(cluster) = Cluster::start() else { return };
    let mut store = Store::new();
    store.copy(COPIES);
    let directory = store.tool.directory().to_path_buf();
    let url = cluster.url("ann");
    let want = finest(&store.rows());
    roundel(&directory, &["export", "hosts", "top.rrd", "--from", "store", "--to", &url], &[]);
    let export = ["export", "--all", "--from", "store", "--to", &url];
    kill_while_it_waits(&cluster, || {
        let child = begin(&directory, &export);
        Box::new(|| child.kill())
    });
    kill_at_random(
        18,
        4,
        || begin(&directory, &export),
        || {
            wait_until_noticed(&cluster);
            check_whole_rrds(&cluster.rows("roundel.history"), &want);
        },
    );
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
    let serve = || Running::program(&directory.join("log"), env!("CARGO_BIN_EXE_roundel"), &words);
    kill_while_it_waits(&cluster, || {
        let daemon = serve();
        Box::new(|| drop(daemon))
    });
    let daemon = serve();
    let names = "(SELECT DISTINCT name FROM roundel.history) names";
    wait_until("the sink to have all RRDs", || count(&cluster, names) == store.names.len());
    daemon.terminate();
    check_rows(&cluster.rows("roundel.history"), &want);
}

#[test]
fn a_data_set_is_completed_after_its_export_was_killed() {
    let Some(python) = peer::duckdb() else { return };
    let mut store = Store::new();
    store.copy(COPIES);
    let directory = store.tool.directory().to_path_buf();
    let export = ["export", "--all", "--from", "store", "--to", "parquet:out"];
    let want = finest(&store.rows());
    let read = || parse(&run(&python, DUCKDB, &directory));
    let partition = directory.join("out/day=2023-11-14/tree=copies/roundel.parquet");
    let of_partition = |rows: &Rows| -> Rows {
        let is_of = |place: &Place| place.0.starts_with("copies/") && place.4 < MIDNIGHT;
        rows.iter().filter(|(place, _)| is_of(place)).map(|(place, value)| (place.clone(), *value)).collect()
    };
    kill_at_random(
        7,
        6,
        || begin(&directory, &export),
        || {
            // A partition is there as a whole, or not yet.
            if partition.exists() {
                check_rows(&of_partition(&read()), &of_partition(&want));
            }
        },
    );
    roundel(&directory, &export, &[]);
    check_rows(&read(), &want);
    let left = Command::new("find").args(["out", "-name", ".*"]).current_dir(&directory).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
    assert!(roundel(&directory, &export, &[]).contains("0 partitions written"));
}
