//! Values per second, daemon CPU, the first load after a start, CREATE: rrdcached and Roundel in turn.

use super::subject::Subject;
use super::{Bench, Scenario};
use crate::Outcome;
use crate::daemon::Kind;
use crate::figures::{Goal, Runs, Unit};
use crate::report::Row;
use crate::usage::disk_bytes;
use crate::workload::Shape;

/// The results of one daemon's runs.
#[derive(Default)]
struct Series {
    creates: Runs,
    accepted: Runs,
    drained: Runs,
    cpu: Runs,
    client_cpu: Runs,
    bytes: Runs,
    after_restart: Runs,
    rss: Runs,
}

/// What to measure on a workload.
struct Ask {
    title: &'static str,
    shape: Shape,
    rounds: u64,
    runs: usize,
    goal: f64,
    aim: f64,
}

/// W1: 20,500 RRDs, 30 rounds.
pub fn w1(bench: &mut Bench) -> Outcome<()> {
    let runs = bench.pick(3, 5);
    compare(bench, Ask { title: "W1", shape: Shape::W1, rounds: 30, runs, goal: 6.0, aim: 10.0 })
}

/// W2: 100,000 RRDs (quick: 25,000), 6 rounds.
pub fn w2(bench: &mut Bench) -> Outcome<()> {
    let runs = bench.pick(3, 5);
    compare(bench, Ask { title: "W2", shape: Shape::W2, rounds: 6, runs, goal: 10.0, aim: 20.0 })
}

fn compare(bench: &mut Bench, ask: Ask) -> Outcome<()> {
    let [peer, ours] = &measure(bench, &ask, Kind::Roundel)?[..] else {
        return Err("two series expected".into());
    };
    let (title, is_against) = (ask.title, bench.is_against());
    let mut row = |figure: &str, peer: &Runs, ours: &Runs, unit, goal, aim| {
        let figure = format!("{title}, {figure}");
        bench.report.row(Row { figure, peer: peer.clone(), ours: ours.clone(), unit, goal, aim });
    };
    let times = |goal, aim| (Goal::Times(goal), Goal::Times(aim));
    let (goal, aim) = times(ask.goal, ask.aim);
    row("values/s accepted, logged and written", &peer.drained, &ours.drained, Unit::PerSecond, goal, aim);
    row("values/s accepted", &peer.accepted, &ours.accepted, Unit::PerSecond, Goal::None, Goal::None);
    // Rows of two different figures compare no builds.
    if !is_against {
        row(
            "values/s of ours against rrdcached's mere acceptance",
            &peer.accepted,
            &ours.drained,
            Unit::PerSecond,
            Goal::None,
            Goal::Times(1.0),
        );
    }
    row(
        "values/s right after a restart",
        &peer.after_restart,
        &ours.after_restart,
        Unit::PerSecond,
        goal,
        aim,
    );
    if !is_against {
        row(
            "Roundel right after a restart, against Roundel steady",
            &ours.drained,
            &ours.after_restart,
            Unit::PerSecond,
            Goal::Times(0.9),
            Goal::None,
        );
    }
    row("daemon CPU per value", &peer.cpu, &ours.cpu, Unit::Seconds, Goal::Part(8.0), Goal::Part(15.0));
    row(
        "bytes the daemon wrote per value, short run",
        &peer.bytes,
        &ours.bytes,
        Unit::Bytes,
        Goal::None,
        Goal::None,
    );
    row(
        "CREATE per second, with placeholders",
        &peer.creates,
        &ours.creates,
        Unit::PerSecond,
        Goal::Times(8.0),
        Goal::None,
    );
    row("resident memory of the daemon", &peer.rss, &ours.rss, Unit::Bytes, Goal::None, Goal::None);
    if ask.shape == Shape::W1 { bare_row(bench, &peer.creates) } else { Ok(()) }
}

/// CREATE without placeholders; rrdcached's `creates` have none anyway.
fn bare_row(bench: &mut Bench, creates: &Runs) -> Outcome<()> {
    let mut bare = create_bare(bench)?;
    bench.report.row(Row {
        figure: "W1, CREATE per second, without placeholders".to_string(),
        ours: bare.pop().unwrap_or_default(),
        peer: bare.pop().unwrap_or_else(|| creates.clone()),
        unit: Unit::PerSecond,
        goal: Goal::Times(30.0),
        aim: Goal::None,
    });
    Ok(())
}

/// The files layout against rrdcached: both write standard `.rrd` files.
pub fn files(bench: &mut Bench) -> Outcome<()> {
    let runs = bench.pick(2, 3);
    let ask = Ask { title: "Files layout", shape: Shape::W1, rounds: 30, runs, goal: 2.0, aim: 3.0 };
    let [peer, ours] = &measure(bench, &ask, Kind::RoundelFiles)?[..] else {
        return Err("two series expected".into());
    };
    let mut row = |figure: &str, peer: &Runs, ours: &Runs, unit, goal, aim| {
        let figure = format!("Files layout, W1, {figure}");
        bench.report.row(Row { figure, peer: peer.clone(), ours: ours.clone(), unit, goal, aim });
    };
    let (goal, aim) = (Goal::Times(2.0), Goal::Times(3.0));
    row("values/s accepted and drained", &peer.drained, &ours.drained, Unit::PerSecond, goal, aim);
    row(
        "values/s right after a restart",
        &peer.after_restart,
        &ours.after_restart,
        Unit::PerSecond,
        Goal::None,
        Goal::None,
    );
    row("daemon CPU per value", &peer.cpu, &ours.cpu, Unit::Seconds, Goal::None, Goal::None);
    Ok(())
}

fn measure(bench: &mut Bench, ask: &Ask, kind: Kind) -> Outcome<Vec<Series>> {
    let programs = bench.pair(kind);
    let (workload, count) = bench.workload(ask.shape);
    let mut series = vec![Series::default(), Series::default()];
    let mut subjects = Vec::new();
    for (index, program) in programs.iter().enumerate() {
        bench.say(&format!("{}: {} creates {count} RRDs", ask.title, program.title()));
        let place = bench.place(&format!("{}-{index}", ask.title.replace(' ', "-")));
        let mut subject = Subject::start(program, &place, workload, count)?;
        series[index].creates.push(subject.create(&bench.progress_of(count))?);
        subjects.push(subject);
    }
    // Not counted: the first values of an RRD are special (first blocks, first rows).
    for subject in &mut subjects {
        subject.run(ask.rounds)?;
    }
    for run in 0..ask.runs {
        for (index, subject) in subjects.iter_mut().enumerate() {
            bench.say(&format!(
                "{}: {}, run {} of {}",
                ask.title,
                programs[index].title(),
                run + 1,
                ask.runs
            ));
            let before = subject.daemon.written()?;
            let measured = subject.run(ask.rounds)?;
            let bytes = subject.daemon.written()? - before;
            let series = &mut series[index];
            series.accepted.push(measured.accepted_rate());
            series.drained.push(measured.drained_rate());
            series.cpu.push(measured.cpu_per_value());
            series.client_cpu.push(measured.client_cpu.as_secs_f64() / measured.values as f64);
            series.bytes.push(bytes as f64 / measured.values as f64);
            series.rss.push(measured.usage.rss_bytes as f64);
        }
    }
    for run in 0..ask.runs.min(3) {
        for (index, subject) in subjects.iter_mut().enumerate() {
            bench.say(&format!("{}: {}, restart {}", ask.title, programs[index].title(), run + 1));
            subject.restart()?;
            series[index].after_restart.push(subject.run(ask.rounds)?.drained_rate());
        }
    }
    bench.report.note(
        &format!("{} ({count} RRDs)", ask.title),
        format!(
            "{} runs of {} rounds each, one BATCH connection over a UNIX socket, after one run that is not counted; the \
             daemons in turn. rrdcached: `-t 4 -w 3600 -j`, page cache warm; Roundel: `sync = 1s`. Drained: FLUSHALL, \
             then STATS until QueueLength is 0 and DataSetsWritten has grown by the values sent. Values/s are of the \
             wall time until drained. Client CPU per value: {} beside rrdcached, {} beside Roundel.",
            ask.runs,
            ask.rounds,
            series[0].client_cpu.text(Unit::Seconds),
            series[1].client_cpu.text(Unit::Seconds)
        ),
    );
    for (index, subject) in subjects.iter_mut().enumerate() {
        let bytes = Unit::Bytes.text(disk_bytes(subject.daemon.directory())? as f64);
        let (title, resident) = (programs[index].title(), series[index].rss.text(Unit::Bytes));
        let text = format!(
            "{title}: {bytes} of disk for its directory at the end (du, archives not full), resident {resident}."
        );
        bench.report.note(&format!("{} ({count} RRDs)", ask.title), text);
        subject.daemon.stop()?;
    }
    // Directories stay until the end of the run: ext4 creates files slowly right after many were deleted.
    Ok(series)
}

/// CREATE without placeholders, in a new store each time; a series for each build.
fn create_bare(bench: &mut Bench) -> Outcome<Vec<Runs>> {
    let (workload, count) = bench.workload(Shape::W1);
    let programs = bench.builds(Kind::RoundelBare);
    let mut series = vec![Runs::default(); programs.len()];
    for run in 0..3 {
        bench.say(&format!("{:?}: creates without placeholders, run {}", Scenario::W1, run + 1));
        for (program, rates) in programs.iter().zip(&mut series) {
            let place = bench.place(&format!("bare-{run}"));
            let mut subject = Subject::start(program, &place, workload, count)?;
            rates.push(subject.create(&bench.progress_of(count))?);
            subject.daemon.stop()?;
            std::fs::remove_dir_all(place).ok();
        }
    }
    Ok(series)
}
