//! What the log costs: bytes and time a value for encoding, decoding, and replay from the page cache.
//!
//! `cargo run --release -p roundel-store --example log_body`. One thread; the best of some runs, for other work on
//! the machine only ever makes a run longer.

use std::convert::Infallible;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use roundel_store::disk::{Disk, RealDisk};
use roundel_store::testing::log::{
    Kind, Known, LogWriter, Options, Position, Stamp, UpdatesBody, replay, updates,
};
use rrd::time::Timestamp;

const RRDS: u32 = 20_500;
const RUNS: u32 = 40;

/// W1: one gauge with two decimals and about 11 bits of noise. W2: gauge and counter.
fn texts(two_sources: bool) -> Vec<Vec<u8>> {
    let mut random = 88_172_645_463_325_252u64;
    (0..RRDS)
        .map(|id| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let gauge = f64::from(10_000 + (random % 2048) as u32) / 100.0;
            if two_sources {
                format!("{gauge:.2}:{}", u64::from(id) * 1_000_003 + random % 100_000).into_bytes()
            } else {
                format!("{gauge:.2}").into_bytes()
            }
        })
        .collect()
}

/// Nanoseconds for each of [`RRDS`], best of [`RUNS`].
fn best(mut run: impl FnMut()) -> f64 {
    let times = (0..RUNS).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min) * 1e9 / f64::from(RRDS)
}

fn encode(builder: &mut UpdatesBody, texts: &[Vec<u8>], out: &mut Vec<u8>) {
    out.clear();
    for (id, text) in texts.iter().enumerate() {
        builder.push(id as u32, Timestamp::whole(1_700_000_000), text);
    }
    builder.finish(out);
}

fn main() {
    for (name, two_sources) in [("W1", false), ("W2", true)] {
        let texts = texts(two_sources);
        let (mut builder, mut body) = (UpdatesBody::default(), Vec::new());
        let push = best(|| encode(&mut builder, &texts, &mut body));
        let visit = best(|| {
            let mut sum = 0usize;
            let visited = updates::decode(&body, &mut |id, _, text: &[u8]| sum += id as usize + text.len());
            assert!(visited.is_ok(), "a body that was just written");
            black_box(sum);
        });
        let bytes = body.len() as f64 / f64::from(RRDS);
        println!("{name}: {bytes:.2} bytes, push {push:.1} ns, decode {visit:.1} ns a value");
    }
    replay_from_page_cache();
}

fn replay_from_page_cache() {
    let root = std::env::temp_dir().join(format!("log_body.{}", std::process::id()));
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::create(&root).expect("a temporary directory"));
    let start = Position { generation: 1, offset: 0 };
    let mut log =
        LogWriter::open(Arc::clone(&disk), Path::new("s"), start, Options::default()).expect("a log");
    let body = vec![0x21; 4096];
    let begin = Instant::now();
    while log.committed().offset < 128 << 20 {
        log.append(Kind::Updates, Stamp::default(), &body).expect("a small record");
        log.commit().expect("a disk with 128 MiB free");
    }
    let written = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let synced = log.syncer().sync().expect("a disk that syncs");
    let sync = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let end = replay(&*disk, Path::new("s"), start, Known::default(), &mut |_| Ok::<(), Infallible>(()))
        .expect("the log");
    let read = begin.elapsed().as_secs_f64();
    assert_eq!(end.end, synced);
    println!(
        "128 MiB in commits of 4 KiB: written in {written:.3} s, synced in {sync:.3} s, replayed in {read:.3} s"
    );
    std::fs::remove_dir_all(&root).expect("our own directory");
}
