//! Imports that are out of the ordinary survive a kill, a checkpoint and a restart.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;

use roundel_store::disk::RealDisk;
use roundel_store::engine::{Engine, StoreError};
use roundel_store::name::RrdName;
use roundel_store::stripes::{Options, Stripes};
use roundel_store::testing::log::BODY_BYTES_MAX;
use rrd::content::Rrd;
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::when::Step;
use testkit::random::Random;

const START: i64 = 1_700_000_000;

fn name() -> RrdName {
    RrdName::new(b"large.rrd").unwrap()
}

/// An RRD with this many rows, all different.
fn rrd(rows: usize, seed: u64) -> Rrd {
    let step = Step { units: 1, units_per_second: 1 };
    let options = CreateOptions { step, limits: Limits::STORE, file_name: b"large.rrd" };
    let rra = format!("RRA:LAST:0.5:1:{rows}");
    let definition = parse_create(&options, &["DS:v:GAUGE:10:U:U", &rra]).unwrap();
    let live = rrd::create::new_live(&definition, START);
    let mut random = Random::new(seed);
    let archive = (0..rows).map(|_| f64::from_bits(random.next() >> 2)).collect();
    Rrd { definition, live, archives: vec![archive] }
}

fn bits(rrd: &Rrd) -> Vec<u64> {
    rrd.archives.iter().flatten().map(|value| value.to_bits()).collect()
}

fn newest_rows(rrd: &Rrd) -> Vec<f64> {
    rrd.archives.iter().map(|rows| rows[rows.len() - 1]).collect()
}

#[test]
fn an_import_larger_than_a_record_survives_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        let options = Options { shard_count: 1, ..Options::default() };
        Stripes::open(Arc::new(RealDisk::open(directory.path()).unwrap()), &options).unwrap()
    };
    let large = rrd(BODY_BYTES_MAX / 8 + 500_000, 1);
    let store = open();
    store.import(name(), rrd(5, 2), false).unwrap();
    store.import(name(), large.clone(), false).unwrap();
    assert!(matches!(store.import(name(), rrd(5, 3), true), Err(StoreError::Exists(_))));
    assert!(bits(&store.read(&name()).unwrap()) == bits(&large));
    // Like a kill: nothing is flushed.
    drop(store);
    let store = open();
    assert!(bits(&store.read(&name()).unwrap()) == bits(&large), "after replay");
    store.checkpoint().unwrap();
    drop(store);
    assert!(bits(&open().read(&name()).unwrap()) == bits(&large), "from segments");
}

/// Archives of single primary points usually hold the same rows, and are stored once. MRTG makes others of its `.log` files.
#[test]
fn archives_of_points_keep_rows_that_differ() {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        let options = Options { shard_count: 1, ..Options::default() };
        Stripes::open(Arc::new(RealDisk::open(directory.path()).unwrap()), &options).unwrap()
    };
    let step = Step { units: 10, units_per_second: 1 };
    let options = CreateOptions { step, limits: Limits::STORE, file_name: b"x.rrd" };
    let args = ["DS:v:GAUGE:20:U:U", "RRA:AVERAGE:0.5:1:4", "RRA:MAX:0.5:1:4", "RRA:LAST:0.5:1:2"];
    let definition = parse_create(&options, &args).unwrap();
    let live = rrd::create::new_live(&definition, START);
    let apart = Rrd {
        definition: definition.clone(),
        live: live.clone(),
        archives: vec![vec![1.0, f64::NAN, 3.0, 4.0], vec![2.0, 3.0, f64::NAN, 9.0], vec![3.0, 4.0]],
    };
    let alike = Rrd { archives: vec![vec![5.0; 4], vec![5.0; 4], vec![5.0; 2]], definition, live };
    let (one, other) = (RrdName::new(b"apart.rrd").unwrap(), RrdName::new(b"alike.rrd").unwrap());
    let store = open();
    store.import(other.clone(), alike.clone(), false).unwrap();
    store.import(one.clone(), apart.clone(), false).unwrap();
    let check = |store: &Stripes, when: &str| {
        // NaNs are all the same.
        assert_eq!(
            format!("{:?}", store.read(&one).unwrap().archives),
            format!("{:?}", apart.archives),
            "{when}"
        );
        assert_eq!(store.read(&other).unwrap().archives, alike.archives, "{when}");
    };
    check(&store, "at once");
    drop(store);
    let store = open();
    check(&store, "after replay");
    store.checkpoint().unwrap();
    drop(store);
    let store = open();
    check(&store, "from a checkpoint and segments");
    store.updatev(&one, format!("{}:7", START + 10).as_bytes()).unwrap();
    assert_eq!(newest_rows(&store.read(&one).unwrap()), [7.0; 3]);
    store.stop().unwrap();
    drop(store);
    assert_eq!(newest_rows(&open().read(&one).unwrap()), [7.0; 3]);
}
