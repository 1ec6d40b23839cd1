//! How long a store of stripes takes to open until it answers a first question, and what that costs:
//! `cargo run --release -p roundel-store --example restart -- DIR NAME`, over what `ingest` left in `DIR`.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use roundel_store::disk::RealDisk;
use roundel_store::engine::Engine;
use roundel_store::name::RrdName;
use roundel_store::stripes::{Options, Stripes};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, dir, name] = &args[..] else {
        eprintln!("usage: restart DIR NAME");
        std::process::exit(2);
    };
    let begun = Instant::now();
    let disk = RealDisk::open(Path::new(dir)).expect("a disk");
    let store = Stripes::open(Arc::new(disk), &Options::default()).expect("a store");
    let opened = begun.elapsed().as_secs_f64();
    let snapshot = store.snapshot(&RrdName::new(name.as_bytes()).expect("a name")).expect("an RRD");
    let answered = begun.elapsed().as_secs_f64();
    println!("opened in {opened:.3} s, answered after {answered:.3} s, {:.2} s CPU", cpu_seconds());
    println!("{} archives, rows {:?}", snapshot.definition.rra.len(), snapshot.current_rows);
    // As a kill would end it: what follows is no part of the measure.
    std::process::exit(0);
}

fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}
