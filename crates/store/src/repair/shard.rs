//! Repairs one shard: its directory, its manifest, and what the manifest names.

use std::io;
use std::path::Path;

use super::Work;
use crate::checkpoint::survey::{Frame, Visitor, survey};
use crate::checkpoint::{CheckpointError, Label, LoadedRrd, Loader, LostPage, PageDefinition};
use crate::content::Content;
use crate::disk::Disk;
use crate::filenames::{self, FileKind};
use crate::group::Geometry;
use crate::identity::{Identity, Owner};
use crate::log::Position;
use crate::log::writer::log_files;
use crate::manifest::{LostIds, Manifest, SegmentName};
use crate::segments::{CLASS_MIXED, open_segment};
use crate::shard::recover::load_checkpoint;
use crate::shard::state::State;
use crate::verify::CHECKPOINT_OF_COPY;

impl Work<'_> {
    pub(super) fn shard(&mut self, store: &Identity, index: u32) -> io::Result<()> {
        let owner = Owner { store: *store, shard: index };
        let dir = filenames::shard(Path::new(""), index);
        if !self.disk.exists(&dir)? {
            self.damage(format_args!("the directory {} is missing", dir.display()));
            if self.restore_shard(&dir, owner)? {
                return Ok(());
            }
            self.line("  best: give a copy of the store with --from DIR, from which it can be taken");
            if self.step("make it empty", Some("every RRD of this shard")) {
                self.disk.create_dir_all(&dir)?;
                Manifest::of_new_shard(owner).store(self.disk, &dir)?;
            }
            return Ok(());
        }
        let path = filenames::manifest(&dir);
        let manifest = match Manifest::load(self.disk, &dir) {
            Ok(Some(manifest)) if manifest.owner.is_none_or(|named| named == owner) => Some(manifest),
            Ok(Some(other)) => {
                let whose = other.owner.map_or_else(String::new, |owner| owner.to_string());
                self.damage(format_args!("the file {} is that of {whose}", path.display()));
                None
            }
            Ok(None) => {
                self.damage(format_args!("the file {} is missing", path.display()));
                None
            }
            Err(error) => {
                self.damage(format_args!("{}: {error}", path.display()));
                None
            }
        };
        let manifest = match manifest {
            Some(manifest) => manifest,
            None => match self.restore_manifest(&dir, owner)? {
                Some(manifest) => manifest,
                None => return Ok(()),
            },
        };
        self.check_named(&dir, &manifest)
    }

    /// Restores the manifest from its copy, or else from the files of the shard.
    fn restore_manifest(&mut self, dir: &Path, owner: Owner) -> io::Result<Option<Manifest>> {
        let copy = filenames::manifest_copy(dir);
        let (manifest, what, loss) = match Manifest::load_from(self.disk, &copy) {
            Ok(Some(manifest)) if manifest.owner == Some(owner) && !self.is_outdated(dir, &manifest)? => {
                (manifest, format!("restore it from its copy, {}", copy.display()), None)
            }
            _ => match (self.manifest_of_backup(dir, owner)?, self.rebuild(dir, owner)?) {
                (Some(manifest), _) => {
                    let what =
                        "take it from the backup: all files that it names are there, and the log since then";
                    (manifest, what.to_owned(), None)
                }
                (None, Some(manifest)) => {
                    let what = format!(
                        "make it from the files that are there: checkpoint {}, {} segments, log from position {}",
                        manifest.checkpoint,
                        manifest.segments.len(),
                        manifest.position
                    );
                    let loss = "certainty: nothing tells whether one of the shard's files is missing as well";
                    (manifest, what, Some(loss))
                }
                (None, None) => {
                    self.hopeless("no checkpoint is complete, and the log does not begin at its beginning; restore the shard from a backup");
                    return Ok(None);
                }
            },
        };
        if self.step(what, loss) {
            self.put_aside(&filenames::manifest(dir))?;
            manifest.store(self.disk, dir)?;
        }
        Ok(Some(manifest))
    }

    /// True when the shard has moved on since this manifest: a file that it names is gone, and newer ones are there.
    fn is_outdated(&self, dir: &Path, manifest: &Manifest) -> io::Result<bool> {
        for segment in &manifest.segments {
            if !self.disk.exists(&filenames::segment(dir, segment.number))? {
                return self.has_newer(dir, manifest);
            }
        }
        let checkpoint = filenames::checkpoint(dir, manifest.checkpoint);
        let is_gone = manifest.checkpoint != 0 && !self.disk.exists(&checkpoint)?;
        Ok(is_gone && self.has_newer(dir, manifest)?)
    }

    /// True when a checkpoint or segment is there that was numbered after this manifest was written.
    pub(super) fn has_newer(&self, dir: &Path, manifest: &Manifest) -> io::Result<bool> {
        Ok(self.disk.list(dir)?.iter().any(|name| match filenames::kind_of(name) {
            Some(FileKind::Checkpoint(number) | FileKind::Segment(number)) => number >= manifest.next_number,
            _ => false,
        }))
    }

    /// A manifest of the newest complete checkpoint and every segment. Segments that a merge has replaced may be among
    /// them: they hold the same rows again, which the next merge removes.
    fn rebuild(&self, dir: &Path, owner: Owner) -> io::Result<Option<Manifest>> {
        let mut manifest = Manifest::of_new_shard(owner);
        for name in self.disk.list(dir)? {
            let number = match filenames::kind_of(&name) {
                Some(FileKind::Checkpoint(number)) => {
                    let label = Label { owner: owner.tag(), number };
                    if let Some(position) = position_of(self.disk, &dir.join(&name), label)
                        && number > manifest.checkpoint
                    {
                        (manifest.checkpoint, manifest.position) = (number, position);
                    }
                    number
                }
                Some(FileKind::Segment(number)) => {
                    if let Ok(segment) = open_segment(self.disk, &dir.join(&name))
                        && segment.is(owner.tag(), number)
                    {
                        let bytes = segment.file_bytes();
                        manifest.segments.push(SegmentName {
                            number,
                            level: 0,
                            class: CLASS_MIXED,
                            bytes,
                            content: None,
                        });
                    }
                    number
                }
                _ => continue,
            };
            manifest.next_number = manifest.next_number.max(number.saturating_add(1));
        }
        manifest.known.durable = manifest.position;
        if manifest.checkpoint == 0 {
            // Without a checkpoint there is one only if the whole log is there.
            let first = log_files(self.disk, dir)?.first().copied().unwrap_or_default();
            if first != Position::default() || !manifest.segments.is_empty() {
                return Ok(None);
            }
        }
        Ok(Some(manifest))
    }

    /// Checks the files that a manifest names.
    fn check_named(&mut self, dir: &Path, manifest: &Manifest) -> io::Result<()> {
        if manifest.checkpoint != 0 {
            self.check_checkpoint(dir, manifest)?;
        }
        let mut kept = manifest.clone();
        self.check_lost(dir, &mut kept)?;
        for segment in &manifest.segments {
            self.check_segment(dir, &mut kept, segment)?;
        }
        self.check_log(dir, manifest)
    }

    fn check_checkpoint(&mut self, dir: &Path, manifest: &Manifest) -> io::Result<()> {
        let path = filenames::checkpoint(dir, manifest.checkpoint);
        let label = Label { owner: manifest.tag(), number: manifest.checkpoint };
        let is_content = |disk: &dyn Disk| match manifest.checkpoint_content {
            Some(want) => Content::of_file(disk, &path).is_ok_and(|found| found == want),
            None => true,
        };
        if !self.disk.exists(&path)? {
            self.damage(format_args!("the file {} is missing", path.display()));
        } else if position_of(self.disk, &path, label).is_none() {
            self.damage(format_args!(
                "the checkpoint {} is damaged or another one; `roundel inspect` says where",
                path.display()
            ));
        } else if !is_content(self.disk) {
            self.damage(format_args!("{}: {CHECKPOINT_OF_COPY}", path.display()));
        } else {
            return Ok(());
        }
        let is_whole = |backup: &dyn Disk| position_of(backup, &path, label).is_some() && is_content(backup);
        if self.options.backup.is_some_and(is_whole) {
            return self.restore(&path);
        }
        let mut state = State::new(0, 0);
        match load_checkpoint(self.disk, dir, label, &mut state) {
            Ok(loaded) if !loaded.lost.is_empty() => {
                for LostPage { ids, error } in &loaded.lost {
                    self.damage(error);
                    self.line(format_args!(
                        "  the RRDs with ids from {} to {} were on this page",
                        ids.start,
                        ids.end - 1
                    ));
                }
                self.hopeless(
                    "give a copy of the store that has this checkpoint with --from DIR before the next start, and nothing is lost. A start \
                     serves all other RRDs, keeps this file as damaged-..., and lists the names that may be lost; import those from any backup",
                );
            }
            _ => {
                self.hopeless("the names and states of the RRDs were in it; restore the shard from a backup")
            }
        }
        Ok(())
    }

    /// RRDs that a start has found to be lost.
    fn check_lost(&mut self, dir: &Path, kept: &mut Manifest) -> io::Result<()> {
        if kept.lost.is_empty() {
            return Ok(());
        }
        let label = Label { owner: kept.tag(), number: kept.checkpoint };
        let is_whole = position_of(self.disk, &filenames::checkpoint(dir, kept.checkpoint), label).is_some();
        let of_whole = |lost: &LostIds| is_whole && lost.checkpoint == label.number;
        if kept.lost.iter().any(of_whole) {
            // No other checkpoint was written since, so the log is there, too.
            let loss = "RRDs that were made since under the names of lost ones";
            if self.step("use the lost RRDs again, because their checkpoint is whole again", Some(loss)) {
                kept.lost.retain(|lost| !of_whole(lost));
                kept.store(self.disk, dir)?;
            }
        }
        if kept.lost.iter().all(of_whole) {
            return Ok(());
        }
        for LostIds { ids, checkpoint } in kept.lost.clone() {
            self.damage(format_args!(
                "{}: the RRDs with ids from {} to {} are lost since a page of checkpoint {checkpoint} was damaged; their rows are kept",
                filenames::manifest(dir).display(), ids.start, ids.end - 1
            ));
        }
        self.line(format_args!(
            "  best: export the RRDs that {} names from a backup, and import them into the running store",
            filenames::lost_rrds(dir).display()
        ));
        let loss = "the rows of RRDs that were not imported; their names are free then";
        if self.step("forget the lost RRDs", Some(loss)) {
            kept.lost.clear();
            kept.store(self.disk, dir)?;
        }
        Ok(())
    }
}

/// The position from which the log completes the checkpoint `label`; `None` when it is damaged, incomplete or another one.
pub(super) fn position_of(disk: &dyn Disk, path: &Path, label: Label) -> Option<Position> {
    #[derive(Default)]
    struct First {
        /// Everything before it is in the frames seen.
        position: Option<Position>,
        /// That of the last frame.
        label: Label,
        is_damaged: bool,
    }
    impl Loader for First {
        fn group(&mut self, _: Geometry) {}
        fn page(&mut self, _: &[PageDefinition<'_>]) {}
        fn rrd(&mut self, _: LoadedRrd<'_>) {}
    }
    impl Visitor for First {
        fn frame(&mut self, frame: &Frame) {
            self.label = frame.label;
            self.position = Some(self.position.map_or(frame.position, |first| first.min(frame.position)));
        }
        fn damage(&mut self, _: CheckpointError) {
            self.is_damaged = true;
        }
    }
    let mut first = First::default();
    let is_whole = survey(disk, path, &mut first).ok()?;
    first.position.filter(|_| is_whole && label.matches(first.label) && !first.is_damaged)
}
