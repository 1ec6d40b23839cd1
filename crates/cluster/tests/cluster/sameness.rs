//! A random sequence of operations on one store, and on a cluster through any of its nodes.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use roundel_cluster::engine::ClusterOptions;
use rrd::definition::Cf;
use rrd::fetch::FetchRequest;
use store::engine::{Engine, StoreError, StreamPosition, VersionChange};

use crate::world::{START, World, create, name, options, stripes, update};

/// Random numbers from a seed.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }

    fn name(&mut self) -> String {
        match self.roll(12) {
            0 => format!("top-{}.rrd", self.roll(3)),
            1 => format!("site/host-{}/disk-{}.rrd", self.roll(6), self.roll(2)),
            _ => format!("host-{}/cpu-{}.rrd", self.roll(9), self.roll(3)),
        }
    }

    fn values(&mut self, clock: i64) -> String {
        let args = (0..=self.roll(3)).map(|_| match self.roll(15) {
            0 => "1700000000:1:2".to_owned(),
            1 => format!("{clock}:x:2"),
            2 => format!("{clock}:1"),
            3 => "nonsense".to_owned(),
            4 => format!("{clock}:1:2:3"),
            _ => format!("{}:{}:{}", clock + self.roll(40) as i64, self.roll(1000), self.roll(1000)),
        });
        args.collect::<Vec<_>>().join(" ")
    }
}

const ARGS: [&[&str]; 2] = [
    &["DS:a:GAUGE:100:U:U", "DS:b:COUNTER:100:0:U", "RRA:AVERAGE:0.5:1:20", "RRA:MAX:0.5:3:10"],
    &["DS:a:GAUGE:100:U:U", "DS:b:DERIVE:100:U:U", "RRA:AVERAGE:0.5:1:50", "RRA:HWPREDICT:40:0.1:0.0035:10"],
];

/// What a client sees of a result.
fn shown<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("{} {error}", kind(&error)),
    }
}

/// The kind of an error, as the server tells them from others.
fn kind(error: &StoreError) -> String {
    let full = format!("{error:?}");
    full.split(['(', ' ', '{']).next().unwrap_or_default().to_owned()
}

fn one_of_many(dice: &mut Dice, engine: &dyn Engine, clock: i64) -> String {
    let one = dice.name();
    match dice.roll(16) {
        0..=2 => {
            let args = ARGS[dice.roll(2) as usize];
            format!("create {one}: {}", shown(create(engine, &one, args, dice.roll(3) > 0)))
        }
        3..=6 => {
            let lines: Vec<_> = (0..=dice.roll(20)).map(|_| (dice.name(), dice.values(clock))).collect();
            let mut text = String::from("update:");
            for failure in update(engine, &lines) {
                let error: Result<(), _> = Err(failure.error);
                let _ = write!(text, " {}/{} {};", failure.line, failure.accepted, shown(error));
            }
            text
        }
        7 => {
            let outcome = engine.updatev(&name(&one), dice.values(clock).as_bytes());
            let parts =
                outcome.map(|outcome| (outcome.report, outcome.refused.map(|error| error.to_string())));
            format!("updatev {one}: {}", shown(parts))
        }
        8 => {
            let cf = Cf::ALL[dice.roll(3) as usize];
            let request = FetchRequest::new(cf, START, clock + 100, dice.roll(60));
            format!("fetch {one}: {}", shown(engine.fetch(&name(&one), request)))
        }
        9 => {
            let directory = ["", "host-1", "site", "site/host-2", "none"][dice.roll(5) as usize];
            let listed = shown(engine.list(directory.as_bytes(), dice.roll(2) == 0));
            format!("list {directory}: {listed} {}", shown(engine.has_directory(directory.as_bytes())))
        }
        10 => format!("delete {one}: {}", shown(engine.delete(&name(&one)))),
        11 => {
            let to = dice.name();
            format!("rename {one} {to}: {}", shown(engine.rename(&name(&one), &name(&to))))
        }
        12 => {
            let to = dice.name();
            format!("copy {one} {to}: {}", shown(engine.copy(&name(&one), &name(&to))))
        }
        13 => {
            let sets: [&[&str]; 4] =
                [&["--heartbeat", "a:50"], &["-i", "none:1"], &["DS:c:GAUGE:100:U:U"], &["--bad"]];
            let args: Vec<String> = sets[dice.roll(4) as usize].iter().map(|&arg| arg.to_owned()).collect();
            format!("tune {one}: {}", shown(engine.tune(&name(&one), &args)))
        }
        _ => more(dice, engine, clock, &one),
    }
}

fn more(dice: &mut Dice, engine: &dyn Engine, clock: i64, one: &str) -> String {
    match dice.roll(7) {
        0 => {
            let (to, no_overwrite) = (dice.name(), dice.roll(2) == 0);
            let imported =
                engine.read(&name(one)).and_then(|rrd| engine.import(name(&to), rrd, no_overwrite));
            format!("import {one} {to}: {}", shown(imported))
        }
        1 => {
            let trashed = engine.trash().unwrap();
            let Some(any) = trashed.get(dice.roll(trashed.len().max(1) as u64) as usize) else {
                return "nothing in the trash".to_owned();
            };
            let to = if dice.roll(2) == 0 { any.name.clone() } else { name(one) };
            let names: Vec<_> = trashed.iter().map(|trashed| &trashed.name).collect();
            format!("restore {} as {to} of {names:?}: {}", any.name, shown(engine.restore(any, &to)))
        }
        2 => {
            let version = engine.snapshot(&name(one)).map_or(5, |snapshot| snapshot.version());
            let wrong = dice.roll(2);
            let change = VersionChange::Update(dice.values(clock).into_bytes());
            let changed = engine.change(&name(one), version + wrong, change).map(|_| ());
            format!("change {one}: {}", shown(changed))
        }
        3 => {
            let number = StreamPosition { epoch: 1, sequence: dice.roll(100) };
            let set = engine.set_stream_position(one.as_bytes(), number);
            format!("stream {one}: {set:?} {:?}", engine.stream_position(one.as_bytes()))
        }
        4 => {
            let shown =
                shown(engine.status(&name(one)).map(|status| (status.definition, status.last_update)));
            format!("status {one}: {shown} {:?}", engine.flush(Some(&name(one))).is_ok())
        }
        5 => {
            let rows = engine.status(&name(one)).and_then(|status| {
                engine.rows(&name(one), &status.definition, 0, (clock / 10 - 30)..(clock / 10))
            });
            format!("rows {one}: {}", shown(rows))
        }
        _ => {
            let snapshot = engine.snapshot(&name(one));
            let parts = snapshot.map(|snapshot| (snapshot.definition, snapshot.live, snapshot.current_rows));
            format!("snapshot {one}: {} {:?}", shown(parts), engine.sync())
        }
    }
}

/// All that there is at the end.
fn everything(engine: &dyn Engine) -> String {
    let mut text = String::new();
    for listed in engine.list(b"", true).unwrap() {
        let read = engine.read(&name(std::str::from_utf8(&listed).unwrap()));
        let _ = writeln!(text, "{listed:?} {read:?}");
    }
    text
}

fn compare(seed: u64, node_count: usize, partition_count: usize) {
    let directory = tempfile::tempdir().unwrap();
    let single: Arc<dyn Engine> = Arc::new(stripes(directory.path()));
    // However loaded the machine is, nothing is given up.
    let patient = ClusterOptions { patience: Duration::from_secs(60), ..options() };
    let world = World::new(node_count, partition_count, &patient);
    let mut which = Dice(seed ^ 0x5555);
    let mut clock = START;
    for step in 0..600 {
        clock += 10;
        let state = seed.wrapping_add(step * 7919) | 1;
        let engine = &world.engines[which.roll(node_count as u64) as usize];
        let ours = one_of_many(&mut Dice(state), engine, clock);
        let theirs = one_of_many(&mut Dice(state), &*single, clock);
        assert_eq!(ours, theirs, "seed {seed}, step {step}");
    }
    for engine in &world.engines {
        assert_eq!(everything(engine), everything(&*single), "seed {seed}");
    }
    let [ours, theirs] = [world.engines[0].stats(), single.stats()];
    assert_eq!(ours.rrd_count, theirs.rrd_count);
    assert_eq!(ours.updates_refused, theirs.updates_refused);
}

#[test]
fn a_cluster_answers_as_one_store_does() {
    for seed in 1..=4 {
        compare(seed, 2, 3);
        compare(seed + 100, 3, 8);
    }
}

#[test]
fn one_node_with_one_partition_is_a_cluster_too() {
    compare(77, 1, 1);
}
