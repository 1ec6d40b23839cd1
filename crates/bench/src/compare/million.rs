//! A million RRDs of the W2 geometry in Roundel: speed, memory, restart after kill -9.

use super::Bench;
use super::subject::Subject;
use crate::Outcome;
use crate::builds::Program;
use crate::daemon::Kind;
use crate::figures::{Goal, Runs, Unit};
use crate::report::Row;
use crate::workload::{Shape, Workload};

/// The number the million is compared with.
const FEW: usize = 20_500;

/// What one build gave.
struct Measured {
    few: Runs,
    many: Runs,
    rss_bytes: Runs,
    restarts: Runs,
}

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Outcome<()> {
    let many = bench.million;
    let mut measured = Vec::new();
    for program in bench.builds(bench.pick(Kind::RoundelBare, Kind::Roundel)) {
        measured.push(measure(bench, &program, many)?);
    }
    let Some(ours) = measured.pop() else { return Ok(()) };
    // The other build; else the million are compared with the few, and the rest with bounds.
    let (rates, peer) = match measured.pop() {
        Some(before) => ((before.many, ours.many), (before.rss_bytes, before.restarts)),
        None => ((ours.few, ours.many), (Runs::default(), Runs::default())),
    };
    rows(bench, many, rates, (peer.0, ours.rss_bytes), (peer.1, ours.restarts));
    Ok(())
}

fn measure(bench: &mut Bench, program: &Program, many: usize) -> Outcome<Measured> {
    let workload = Workload::usual(Shape::W2);
    let mut few_rates = Runs::default();
    let mut many_rates = Runs::default();
    let mut few = Subject::start(program, &bench.place("few"), workload, FEW)?;
    few.create(&bench.progress_of(FEW))?;
    bench.say(&format!("Million: creates {many} RRDs"));
    let mut million = Subject::start(program, &bench.place("million"), workload, many)?;
    let create_rate = million.create(&bench.progress_of(many))?;
    let created_rss = million.daemon.usage()?.rss_bytes;
    let rounds_few = (many / FEW).max(1) as u64;
    few.run(rounds_few)?;
    million.run(1)?;
    for run in 0..3 {
        bench.say(&format!("Million: run {} of 3", run + 1));
        few_rates.push(few.run(rounds_few)?.drained_rate());
        many_rates.push(million.run(1)?.drained_rate());
    }
    few.daemon.stop()?;
    let more_rounds = bench.pick(2, 8);
    let rss = million.run(more_rounds)?.usage;
    let mut restarts = Runs::default();
    for run in 0..bench.pick(2, 3) {
        bench.say(&format!("Million: kill -9 and restart {}", run + 1));
        million.run(1)?;
        restarts.push(million.crash()?.as_secs_f64());
    }
    let after = million.daemon.usage()?.rss_bytes;
    million.daemon.stop()?;
    bench.report.note(
        "A million RRDs",
        format!(
            "{many} RRDs of the W2 geometry ({}), one connection, {} rounds in all; a run is one round, against {rounds_few} \
             rounds of {FEW} RRDs. Memory is VmHWM of the daemon, all told. Created at {}; resident {} after creation, \
             {} after {} rounds, {} after the last restart. Restart: kill -9 right after the last BATCH was answered, \
             then the time from starting the process until LAST of an RRD was answered, which was checked to be the \
             last round's (page cache warm).",
            program.title(),
            4 + more_rounds,
            Unit::PerSecond.text(create_rate),
            Unit::Bytes.text(created_rss as f64),
            Unit::Bytes.text(rss.rss_bytes as f64),
            4 + more_rounds,
            Unit::Bytes.text(after as f64),
        ),
    );
    std::fs::remove_dir_all(bench.place("few")).ok();
    std::fs::remove_dir_all(bench.place("million")).ok();
    let rss_bytes = Runs::one(rss.rss_max_bytes as f64 / many as f64);
    Ok(Measured { few: few_rates, many: many_rates, rss_bytes, restarts })
}

fn rows(
    bench: &mut Bench,
    many: usize,
    rates: (Runs, Runs),
    rss_bytes: (Runs, Runs),
    restarts: (Runs, Runs),
) {
    bench.report.row(Row {
        figure: format!("W2, values/s at {many} RRDs, against Roundel at {FEW}"),
        peer: rates.0,
        ours: rates.1,
        unit: Unit::PerSecond,
        goal: Goal::Times(0.6),
        aim: Goal::Times(0.9),
    });
    bench.report.row(Row {
        figure: format!("W2, resident memory per RRD, {many} RRDs being updated"),
        peer: rss_bytes.0,
        ours: rss_bytes.1,
        unit: Unit::Bytes,
        goal: Goal::AtMost(2_000.0, Unit::Bytes),
        aim: Goal::AtMost(1_200.0, Unit::Bytes),
    });
    bench.report.row(Row {
        figure: format!("W2, restart after kill -9 with {many} RRDs, until the first answer"),
        peer: restarts.0,
        ours: restarts.1,
        unit: Unit::Seconds,
        goal: Goal::AtMost(10.0, Unit::Seconds),
        aim: Goal::AtMost(3.0, Unit::Seconds),
    });
}
