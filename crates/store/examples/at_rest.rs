//! Prints what the segments of a store that is not running hold, file by file and source by source:
//! `cargo run --release -p roundel-store --example at_rest -- STORE`.
//!
//! *Useful* are rows that can still be fetched, counted from the newest row any segment has of their RRD; rows
//! held twice count once. `B/row` is bytes of runs for each useful row and data source.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use roundel_store::disk::RealDisk;
use roundel_store::filenames;
use roundel_store::testing::checkpoint::{self, LoadedRrd, Loader, PageDefinition};
use roundel_store::testing::group::{Geometry, Group};
use roundel_store::testing::manifest::Manifest;
use roundel_store::testing::segment::Key;
use roundel_store::testing::segments::open_segment;

/// One run: whose, which rows, in which file.
struct Run {
    key: Key,
    rows: Range<i64>,
}

/// What a source of a group has over all files.
#[derive(Default)]
struct Total {
    held: i64,
    useful: i64,
    runs: u64,
    bytes: u64,
}

/// The groups of a checkpoint.
#[derive(Default)]
struct Groups(Vec<Group>);

impl Loader for Groups {
    fn group(&mut self, geometry: Geometry) {
        self.0.push(Group::of(geometry));
    }

    fn page(&mut self, _: &[PageDefinition<'_>]) {}

    fn rrd(&mut self, _: LoadedRrd<'_>) {}
}

fn main() {
    let Some(store) = std::env::args().nth(1) else {
        eprintln!("usage: at_rest STORE");
        std::process::exit(2);
    };
    let disk = RealDisk::open(Path::new(&store)).expect("a store");
    for index in 0.. {
        let dir = filenames::shard(Path::new(""), index);
        match Manifest::load(&disk, &dir) {
            Ok(Some(manifest)) => print_shard(&disk, &dir, &manifest),
            _ => break,
        }
    }
}

fn print_shard(disk: &RealDisk, dir: &Path, manifest: &Manifest) {
    let mut groups = Groups::default();
    let path = filenames::checkpoint(dir, manifest.checkpoint);
    checkpoint::load(disk, &path, 0, &mut groups).expect("a checkpoint");
    let Groups(groups) = groups;
    let mut runs: Vec<(usize, Run)> = Vec::new();
    let mut files = Vec::new();
    for (place, name) in manifest.segments.iter().enumerate() {
        let segment = open_segment(disk, &filenames::segment(dir, name.number)).expect("a segment");
        let mut entries = segment.entries();
        while let Some(entry) = entries.next_entry().expect("a good segment") {
            let rows = entry.first_row..entry.first_row + entry.count as i64;
            runs.push((place, Run { key: entry.key, rows }));
        }
        files.push((name, segment));
    }
    let mut newest: HashMap<Key, i64> = HashMap::new();
    for (_, run) in &runs {
        let row = newest.entry(run.key).or_insert(i64::MIN);
        *row = run.rows.end.max(*row);
    }
    let oldest = |key: &Key| {
        let source = &groups[key.group as usize].sources[usize::from(key.source)];
        newest[key] - source.row_count as i64
    };
    // Newest file first, so that what an older one has too counts as held only.
    runs.sort_by_key(|(place, run)| (run.key, std::cmp::Reverse(*place), run.rows.start));
    let mut useful: HashMap<(usize, u32, u16), Total> = HashMap::new();
    for of_one in runs.chunk_by(|a, b| a.1.key == b.1.key) {
        let mut seen: Vec<Range<i64>> = Vec::new();
        for (place, run) in of_one {
            let total = useful.entry((*place, run.key.group, run.key.source)).or_default();
            let known = run.rows.start.max(oldest(&run.key))..run.rows.end;
            let twice: i64 =
                seen.iter().map(|rows| (known.end.min(rows.end) - known.start.max(rows.start)).max(0)).sum();
            total.runs += 1;
            total.held += run.rows.end - run.rows.start;
            total.useful += (known.end - known.start).max(0) - twice.min((known.end - known.start).max(0));
            seen.push(known);
        }
    }
    println!(" segment level class    bytes");
    let mut by_source: HashMap<(u32, u16), Total> = HashMap::new();
    for (place, (name, segment)) in files.iter().enumerate() {
        println!("{:8} {:5} {:5} {:8}", name.number, name.level, name.class, name.bytes);
        for summary in segment.sources() {
            let group = &groups[summary.group as usize];
            let source = &group.sources[usize::from(summary.source)];
            let total = useful.remove(&(place, summary.group, summary.source)).unwrap_or_default();
            println!(
                "    group {} source {:2} of {:4} PDPs: rows {}..{} = {:5} of {:4} kept; {:6} runs of {:6.1} rows, \
                 held {:8} useful {:8}, {:8} bytes = {:5.2} B/held",
                summary.group,
                summary.source,
                source.pdp_per_row,
                summary.first_row,
                summary.end_row,
                summary.end_row - summary.first_row,
                source.row_count,
                total.runs,
                total.held as f64 / total.runs.max(1) as f64,
                total.held,
                total.useful,
                summary.bytes,
                summary.bytes as f64 / total.held.max(1) as f64 / group.geometry.ds_count as f64,
            );
            let of_all = by_source.entry((summary.group, summary.source)).or_default();
            of_all.held += total.held;
            of_all.useful += total.useful;
            of_all.runs += total.runs;
            of_all.bytes += summary.bytes;
        }
    }
    let mut by_source: Vec<_> = by_source.into_iter().collect();
    by_source.sort_by_key(|(key, _)| *key);
    println!("by source");
    for ((group_index, source_index), total) in by_source {
        let group = &groups[group_index as usize];
        let source = &group.sources[usize::from(source_index)];
        println!(
            "    group {group_index} source {source_index:2} of {:4} PDPs: {:7} runs of {:6.1} rows, held {:8} useful {:8} = {:4.0} %, \
             {:8} bytes = {:5.2} B/held, {:5.2} B/useful",
            source.pdp_per_row,
            total.runs,
            total.held as f64 / total.runs.max(1) as f64,
            total.held,
            total.useful,
            total.useful as f64 * 100.0 / total.held.max(1) as f64,
            total.bytes,
            total.bytes as f64 / total.held.max(1) as f64 / group.geometry.ds_count as f64,
            total.bytes as f64 / total.useful.max(1) as f64 / group.geometry.ds_count as f64,
        );
    }
}
