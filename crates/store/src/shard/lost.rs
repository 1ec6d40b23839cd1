//! RRDs that are lost because a page of a checkpoint is damaged.
//!
//! A page holds the names, definitions and heads of 256 RRDs. Without it nothing tells which they were, so a name that no RRD has,
//! but for which a file stands in the tree, may be one of them: reads and updates of it fail and say so, and no other program's file
//! is adopted under it. The manifest remembers the ids until a repair, the compactor keeps their rows, and the damaged checkpoint
//! and the log are copied aside.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::catalogue::RrdId;
use crate::checkpoint::Loaded;
use crate::disk::Disk;
use crate::error::OpenError;
use crate::filenames;
use crate::log::copy_aside;
use crate::log::writer::log_files;
use crate::manifest::{LostIds, Manifest};
use crate::name::RrdName;

/// The most names of RRDs in a line of the log.
const NAMES_LOGGED: usize = 20;

/// What is lost in a shard.
#[derive(Debug, Default)]
pub struct LostRrds {
    ids: Vec<Range<RrdId>>,
    /// The damaged checkpoint.
    place: PathBuf,
}

impl LostRrds {
    /// The damaged checkpoint; `None` when nothing is lost.
    pub fn place(&self) -> Option<std::path::Display<'_>> {
        (!self.ids.is_empty()).then(|| self.place.display())
    }

    /// Lists the `names` that may be those of lost RRDs in a file, and some of them in the log.
    pub fn list(&self, disk: &dyn Disk, dir: &Path, names: impl Iterator<Item = RrdName>) {
        let names: Vec<String> = names.map(|name| name.to_string()).collect();
        let path = filenames::lost_rrds(dir);
        let write = || {
            match disk.remove(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let file = disk.create(&path)?;
            file.write_at((names.join("\n") + "\n").as_bytes(), 0)?;
            file.sync()
        };
        if let Err(error) = write() {
            tracing::warn!(%error, file = %path.display(), "cannot list the RRDs that are lost");
        }
        tracing::error!(
            count = names.len(), names = %names[..names.len().min(NAMES_LOGGED)].join(", "), file = %path.display(),
            "files in the tree without an RRD in the store, which may be those of the lost RRDs; this file lists all"
        );
    }

    /// The ids of the RRDs.
    pub fn ids(&self) -> &[Range<RrdId>] {
        &self.ids
    }
}

/// The ids that are lost: what the manifest says of earlier starts, and what was found now.
pub fn ids(manifest: &Manifest, loaded: &Loaded) -> Vec<Range<RrdId>> {
    let before = manifest.lost.iter().map(|lost| lost.ids.clone());
    before.chain(loaded.lost.iter().map(|lost| lost.ids.clone())).collect()
}

/// Reports what is lost. What was not known before is noted in the manifest, after checkpoint and log were copied aside.
///
/// # Errors
/// When the disk fails.
pub fn note(
    disk: &dyn Disk,
    dir: &Path,
    manifest: &mut Manifest,
    loaded: &Loaded,
) -> Result<LostRrds, OpenError> {
    let path = filenames::checkpoint(dir, manifest.checkpoint);
    let mut is_new = false;
    for page in &loaded.lost {
        let lost = LostIds { ids: page.ids.clone(), checkpoint: manifest.checkpoint };
        tracing::error!(
            error = %page.error, from = lost.ids.start, to = lost.ids.end,
            "a page of the checkpoint is damaged: the RRDs with these ids are lost, except those that the log makes again; all others are served"
        );
        if !manifest.lost.contains(&lost) {
            manifest.lost.push(lost);
            is_new = true;
        }
    }
    if is_new {
        let copy = || {
            let log = log_files(disk, dir)?.into_iter().map(|start| filenames::log(dir, start));
            for path in log.chain([path.clone()]) {
                if let Some(copy) = copy_aside(disk, &path)? {
                    tracing::error!(copy = %copy.display(), "copied for a repair of the lost RRDs");
                }
            }
            manifest.store(disk, dir)
        };
        copy().map_err(|error| OpenError::caused("cannot copy the damaged checkpoint aside", error))?;
    }
    let Some(first) = manifest.lost.first() else { return Ok(LostRrds::default()) };
    let place = filenames::checkpoint(dir, first.checkpoint);
    if loaded.lost.is_empty() {
        tracing::error!(file = %place.display(), pages = manifest.lost.len(), "RRDs are still lost since this checkpoint was damaged; `roundel repair` says what can be done");
    }
    Ok(LostRrds { ids: manifest.lost.iter().map(|lost| lost.ids.clone()).collect(), place })
}
