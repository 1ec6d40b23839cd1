//! The slot of a running shard's worker. The schedules of its rounds are explored by `tests/schedules`.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use rrd::definition::{Consolidation, Definition, Ds, DsKind, DsType, PlainCf, Rra};
use rrd::time::Timestamp;

use crate::disk::sim::SimDisk;
use crate::engine::CreateRequest;
use crate::identity::{Identity, Owner};
use crate::name::RrdName;
use crate::shard::message::Command;
use crate::shard::view::View;
use crate::shard::{Shard, ShardOptions, recover};

const START: i64 = 1_700_000_000;

fn shard() -> Shard {
    let clock = Arc::new(|| Timestamp::whole(START));
    let disk = SimDisk::new(1).handle();
    let store = Identity::load_or_create(&*disk, 1).unwrap();
    recover::open(disk, Owner { store, shard: 0 }, ShardOptions::default(), None, clock).unwrap()
}

/// A command that creates an RRD and reports the thread that answered it.
fn create(name: &str, answered: mpsc::Sender<thread::ThreadId>) -> Command {
    create_then(name, move || answered.send(thread::current().id()).unwrap())
}

/// A command that creates an RRD and calls `answered` as its answer.
fn create_then(name: &str, answered: impl FnOnce() + Send + 'static) -> Command {
    let kind = DsKind::Fed { ds_type: DsType::Gauge, heartbeat: 20, min: f64::NAN, max: f64::NAN };
    let cf = Consolidation::Plain { cf: PlainCf::Average, xff: 0.5 };
    let definition = Definition {
        version: 3,
        units_per_second: 1,
        step: 10,
        ds: vec![Ds { name: "a".into(), kind }],
        rra: vec![Rra { cf, pdp_per_row: 1, row_count: 10 }],
    };
    let request = CreateRequest { definition, start: START, no_overwrite: true };
    let reply = Box::new(move |result: Result<(), _>| {
        result.unwrap();
        answered();
    });
    Command::Create(RrdName::new(name.as_bytes()).unwrap(), request, false, reply)
}

/// Waits until the worker rests, then reads its memory.
fn look<T>(shard: &Shard, look: impl Fn(&View<'_>) -> T) -> T {
    loop {
        match shard.worker.look(&look) {
            Some(seen) => return seen,
            None => thread::yield_now(),
        }
    }
}

#[test]
fn a_command_runs_on_the_callers_thread_while_the_worker_rests() {
    let shard = shard();
    let (sender, answers) = mpsc::channel();
    let mut command = Some(create("a.rrd", sender));
    while let Some(waiting) = command.take() {
        // The worker may be in a round of its own.
        command = shard.worker.run_inline(&shard.shared, waiting);
        thread::yield_now();
    }
    assert_eq!(answers.try_recv(), Ok(thread::current().id()), "answered before the call returned");
    assert_eq!(look(&shard, |view| view.names(b"")), [b"a.rrd"]);
}

#[test]
fn a_command_is_returned_during_a_read_and_after_the_worker_ended() {
    let shard = shard();
    let (sender, answers) = mpsc::channel();
    let inline = |name| shard.worker.run_inline(&shard.shared, create(name, sender.clone()));
    assert!(look(&shard, |_| inline("a.rrd").is_some()));
    shard.stop();
    assert!(inline("b.rrd").is_some());
    assert!(shard.worker.look(|_| ()).is_none());
    assert!(answers.try_recv().is_err());
}

#[test]
fn a_command_never_overtakes_one_sent_before_it() {
    let shard = shard();
    let (sender, answers) = mpsc::channel();
    // While this thread reads, the worker cannot execute what it is sent.
    look(&shard, |_| {
        for name in ["a.rrd", "b.rrd"] {
            let sent = shard.shared.mailbox.send_command(create(name, sender.clone()), 1);
            assert!(sent.is_ok());
        }
    });
    let mut command = Some(create("c.rrd", sender.clone()));
    while let Some(waiting) = command.take() {
        command = shard.worker.run_inline(&shard.shared, waiting);
    }
    let own = thread::current().id();
    let order: Vec<bool> = answers.try_iter().map(|thread| thread == own).collect();
    assert_eq!(order, [false, false, true]);
    assert_eq!(look(&shard, |view| view.names(b"")), [b"a.rrd", b"b.rrd", b"c.rrd"]);
}

#[test]
fn a_change_that_was_answered_is_counted() {
    let shard = shard();
    let (sender, counts) = mpsc::channel();
    for (count, name) in [(1, "a.rrd"), (2, "b.rrd")] {
        let (shared, sender) = (Arc::clone(&shard.shared), sender.clone());
        let command = create_then(name, move || {
            let get = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
            let stats = &shared.stats;
            let figures = [&stats.rrd_count, &stats.name_changes, &stats.log_bytes_written].map(get);
            sender.send(figures).unwrap();
        });
        assert!(shard.shared.mailbox.send_command(command, 1).is_ok());
        let [rrds, name_changes, log_bytes] = counts.recv().unwrap();
        assert_eq!((rrds, name_changes), (count, count));
        assert!(log_bytes > 0);
    }
}
