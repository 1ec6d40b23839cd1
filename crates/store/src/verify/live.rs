//! A shard that is in use: read beside its threads, which may replace any file meanwhile.

use std::ops::RangeInclusive;
use std::path::Path;

use super::segment::{self, Namer};
use super::{Finding, Place, Watch, check_checkpoint, check_log, is_there};
use crate::filenames;
use crate::manifest::Manifest;
use crate::shard::Shard;

/// Asks the shard for the names of its RRDs: those of a group with ids in a range.
pub(crate) type Ask<'a> = &'a mut dyn FnMut(u32, RangeInclusive<u32>) -> Vec<String>;

struct Asking<'a>(Ask<'a>);

impl Namer for Asking<'_> {
    fn names(&mut self, group: u32, slots: RangeInclusive<u32>) -> Vec<String> {
        (self.0)(group, slots)
    }
}

/// Keeps findings until it is known that they are none of a file that was replaced.
struct Held<'a> {
    watch: &'a mut dyn Watch,
    findings: Vec<Finding>,
}

impl Watch for Held<'_> {
    fn checked(&mut self, bytes: u64) -> bool {
        self.watch.checked(bytes)
    }

    fn found(&mut self, finding: Finding) {
        self.findings.push(finding);
    }
}

/// Verifies a shard that is in use; false when the pass is to end.
pub(crate) fn shard(shard: &Shard, index: u32, ask: Ask<'_>, watch: &mut dyn Watch) -> bool {
    let files = &shard.shared.files;
    let place = Place { shard: index, segment: 0 };
    if watch.begin(place) && !check_changing(shard, watch) {
        return false;
    }
    // They never change, and stay readable as long as they are held.
    let segments = files.segments();
    let mut names = Asking(ask);
    for file in &segments.files {
        if !watch.begin(Place { segment: file.name.number, ..place }) {
            continue;
        }
        if !is_there(&*files.disk, &file.path)
            && files.segments().files.iter().any(|now| now.name.number == file.name.number)
        {
            let what = "the file is gone; it is read as long as the daemon runs".to_string();
            watch.found(Finding { file: file.path.clone(), what, ..Finding::default() });
        }
        if !segment::check(&file.segment, file.name.content, &file.path, &mut names, watch) {
            return false;
        }
    }
    true
}

/// Verifies manifest, checkpoint and log. Of the log only what had been synced before, because the rest is being written.
fn check_changing(shard: &Shard, watch: &mut dyn Watch) -> bool {
    let files = &shard.shared.files;
    let (disk, dir) = (&*files.disk, &*files.dir);
    let manifest = files.manifest();
    for file in [filenames::manifest(dir), filenames::manifest_copy(dir)] {
        let bad = |found: Result<Option<Manifest>, _>| match found {
            Ok(Some(stored)) if stored.owner == manifest.owner => None,
            Ok(Some(_)) => Some("it is that of another shard".to_string()),
            Ok(None) => Some("it is missing".to_string()),
            Err(error) => Some(format!("{error}")),
        };
        // Twice, because it may just have been replaced.
        let first = bad(Manifest::load_from(disk, &file));
        if let Some(what) = first.and_then(|_| bad(Manifest::load_from(disk, &file))) {
            let what = format!("{what}; it is written again with the next checkpoint");
            watch.found(Finding { file, what, ..Finding::default() });
        }
    }
    let mut held = Held { watch, findings: Vec::new() };
    let mut go_on = check_checkpoint(disk, dir, &manifest, &mut held);
    let of_checkpoint = held.findings.len();
    go_on = go_on && check_log(disk, dir, &manifest, &mut held);
    let Held { findings, .. } = held;
    let now = files.manifest();
    let is_same_log = now.position == manifest.position;
    for (number, finding) in findings.into_iter().enumerate() {
        let still = match number < of_checkpoint {
            true => now.checkpoint == manifest.checkpoint,
            false => is_same_log && is_before(dir, &finding, &manifest),
        };
        if still {
            watch.found(finding);
        }
    }
    go_on
}

/// True when a finding in the log lies before what had been synced when its manifest was taken.
fn is_before(dir: &Path, finding: &Finding, manifest: &Manifest) -> bool {
    let newest = manifest.known.newest_file;
    let of_newest = filenames::log(dir, newest) == finding.file;
    !of_newest || newest.offset + finding.byte < manifest.known.durable.offset
}
