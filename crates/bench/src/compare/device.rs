//! What reaches the disk: bytes per value of a long run, and requests at real-time pace.

use std::thread;

use super::Bench;
use super::subject::Subject;
use crate::Outcome;
use crate::builds::Program;
use crate::daemon::Kind;
use crate::figures::{Goal, Runs, Unit};
use crate::report::Row;
use crate::usage::DeviceUsage;
use crate::volume::Volume;
use crate::workload::Shape;

/// The loop device: W1 as files is 3 GB.
const VOLUME_BYTES: u64 = 12 << 30;
/// Rounds between two flushes of rrdcached: what `-w 300` gathers at a step of 10 s.
const ROUNDS_PER_FLUSH: u64 = 30;

/// One daemon's writes to the device.
struct Wrote {
    values: u64,
    device: Option<DeviceUsage>,
    process_bytes: u64,
    seconds: f64,
    cpu_seconds: f64,
}

impl Wrote {
    /// The device's count, or the process's if the device has none.
    fn bytes_per_value(&self) -> f64 {
        let bytes = self.device.map_or(self.process_bytes, |device| device.write_bytes);
        bytes as f64 / self.values as f64
    }
}

/// W1 for long enough to include several checkpoints and merges; rrdcached for a few flushes, as all are alike.
pub fn long_run(bench: &mut Bench) -> Outcome<()> {
    let [peer, ours] = bench.pair(Kind::Roundel);
    let [files_peer, files] = bench.pair(Kind::RoundelFiles);
    let (peer, isolated) = run_long(bench, &peer)?;
    let files_before = bench.is_against().then(|| run_long(bench, &files_peer)).transpose()?;
    let files_peer = files_before.as_ref().map_or(&peer, |(wrote, _)| wrote);
    let (files, _) = run_long(bench, &files)?;
    let (ours, _) = run_long(bench, &ours)?;
    bench.report.row(Row {
        figure: "W1, bytes written to the device per value, 30 values a file".to_string(),
        peer: Runs::one(peer.bytes_per_value()),
        ours: Runs::one(ours.bytes_per_value()),
        unit: Unit::Bytes,
        goal: Goal::Part(40.0),
        aim: Goal::AtMost(20.0, Unit::Bytes),
    });
    bench.report.row(Row {
        figure: "Files layout, W1, bytes written to the device per value, 30 values a file".to_string(),
        peer: Runs::one(files_peer.bytes_per_value()),
        ours: Runs::one(files.bytes_per_value()),
        unit: Unit::Bytes,
        goal: Goal::Part(1.0),
        aim: Goal::None,
    });
    let where_text =
        if isolated { "an ext4 file system on a loop device of its own" } else { "the work directory" };
    bench.report.note(
        "Device bytes",
        format!(
            "On {where_text}, one daemon at a time, everything from the first UPDATE until the device was synced \
             (file system metadata and journal included). rrdcached: {} values, FLUSHALL and sync every 30 rounds; \
             by /proc/PID/io {} a value; the files layout the same. Roundel: {} values in {}, sync at the end; by \
             /proc/PID/io {} a value.",
            peer.values,
            Unit::Bytes.text(peer.process_bytes as f64 / peer.values as f64),
            ours.values,
            Unit::Seconds.text(ours.seconds),
            Unit::Bytes.text(ours.process_bytes as f64 / ours.values as f64),
        ),
    );
    Ok(())
}

fn run_long(bench: &mut Bench, program: &Program) -> Outcome<(Wrote, bool)> {
    let (workload, count) = bench.workload(Shape::W1);
    let rounds = match program.kind {
        Kind::Roundel => bench.pick(1_200, 4_800),
        _ => bench.pick(2, 3) * ROUNDS_PER_FLUSH,
    };
    bench.say(&format!("Device: {} creates {count} RRDs", program.title()));
    let volume = Volume::isolated(&bench.place("device"), VOLUME_BYTES)?;
    let mut subject = Subject::start(program, &volume.path().join("daemon"), workload, count)?;
    subject.create(&bench.progress_of(count))?;
    let (device, process) = (volume.device()?, subject.daemon.usage()?);
    let mut values = 0;
    let mut seconds = 0.0;
    let mut done = 0;
    bench.say(&format!("Device: {}, {rounds} rounds", program.title()));
    let progress = bench.progress_of(rounds as usize);
    while done < rounds {
        let measured = subject.run(ROUNDS_PER_FLUSH)?;
        values += measured.values;
        seconds += measured.drained.as_secs_f64();
        done += ROUNDS_PER_FLUSH;
        progress.inc(ROUNDS_PER_FLUSH);
        if program.kind != Kind::Roundel {
            volume.device()?;
        }
    }
    let wrote = wrote(&volume, &subject, device, process, (values, seconds))?;
    subject.daemon.stop()?;
    Ok((wrote, volume.is_isolated()))
}

fn wrote(
    volume: &Volume,
    subject: &Subject,
    device: Option<DeviceUsage>,
    process: crate::usage::ProcessUsage,
    (values, seconds): (u64, f64),
) -> Outcome<Wrote> {
    let device = match (device, volume.device()?) {
        (Some(before), Some(after)) => Some(after.since(&before)),
        _ => None,
    };
    let used = subject.daemon.usage()?.since(&process);
    let process_bytes = used.write_bytes;
    Ok(Wrote { values, device, process_bytes, seconds, cpu_seconds: used.cpu.as_secs_f64() })
}

/// W1 in real time, 2,050 values per second: requests and bytes on the device. Both daemons run at once, each on a
/// device of its own: at this pace neither needs a tenth of a core.
pub fn real_time(bench: &mut Bench) -> Outcome<()> {
    let rounds = bench.pick(6, 12);
    let [peer, ours] = bench.pair(Kind::Roundel);
    let peer = RealTime::prepare(bench, &peer)?;
    let ours = RealTime::prepare(bench, &ours)?;
    bench.say(&format!("Pace: warm-up and {} s of both daemons", rounds * 10));
    let (peer, ours) = thread::scope(|scope| {
        let peer = scope.spawn(move || peer.run(rounds));
        let ours = scope.spawn(move || ours.run(rounds));
        let panicked = || Err("a lane panicked".into());
        (peer.join().unwrap_or_else(|_| panicked()), ours.join().unwrap_or_else(|_| panicked()))
    });
    let (peer, ours) = (peer?, ours?);
    let requests = |wrote: &Wrote| {
        let requests = wrote.device.map_or(f64::NAN, |device| device.write_requests as f64);
        Runs::one(requests / wrote.seconds)
    };
    let cpu = |wrote: &Wrote| Runs::one(wrote.cpu_seconds / wrote.values as f64);
    let mut row = |figure: &str, peer: Runs, ours: Runs, unit, goal, aim| {
        let figure = format!("W1 at real-time pace, {figure}");
        bench.report.row(Row { figure, peer, ours, unit, goal, aim });
    };
    row("write requests", requests(&peer), requests(&ours), Unit::PerSecond, Goal::Part(100.0), Goal::None);
    row(
        "bytes written to the device per value",
        Runs::one(peer.bytes_per_value()),
        Runs::one(ours.bytes_per_value()),
        Unit::Bytes,
        Goal::Part(100.0),
        Goal::None,
    );
    row("daemon CPU per value", cpu(&peer), cpu(&ours), Unit::Seconds, Goal::None, Goal::None);
    bench.report.note(
        "Real-time pace",
        format!(
            "20,500 RRDs, 2,050 values/s in BATCHes of 205, {rounds} rounds = {} s, both daemons at once, each on a loop \
             device of its own, after a warm-up of {} s (rrdcached `-w 60 -z 60 -j`, so that it writes at an even \
             rate). Device counters from the first UPDATE after the warm-up until a sync at the end.",
            rounds * 10,
            WARM_UP_ROUNDS.max(rounds) * 10
        ),
    );
    Ok(())
}

/// Until rrdcached with `-w 60 -z 60` writes at an even rate.
const WARM_UP_ROUNDS: u64 = 12;

/// A daemon with W1 on a device of its own.
struct RealTime {
    subject: Subject,
    pace: u64,
    volume: Volume,
}

impl RealTime {
    fn prepare(bench: &mut Bench, program: &Program) -> Outcome<Self> {
        let (workload, count) = bench.workload(Shape::W1);
        let title = program.title();
        bench.say(&format!("Pace: {title} creates {count} RRDs"));
        let volume = Volume::isolated(&bench.place(&format!("pace-{title}")), VOLUME_BYTES)?;
        let mut subject = Subject::start(program, &volume.path().join("daemon"), workload, count)?;
        subject.create(&bench.progress_of(count))?;
        subject.daemon.set_real_time();
        subject.restart()?;
        Ok(RealTime { subject, pace: count as u64 / 10, volume })
    }

    fn run(mut self, rounds: u64) -> Outcome<Wrote> {
        self.subject.run_at_pace(WARM_UP_ROUNDS.max(rounds), self.pace)?;
        let (device, process) = (self.volume.device()?, self.subject.daemon.usage()?);
        let measured = self.subject.run_at_pace(rounds, self.pace)?;
        let seconds = measured.accepted.as_secs_f64();
        let wrote = wrote(&self.volume, &self.subject, device, process, (measured.values, seconds))?;
        self.subject.daemon.stop()?;
        Ok(wrote)
    }
}
