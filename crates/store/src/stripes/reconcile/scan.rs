//! The scan: every file of the tree is looked at, and every RRD without a file is found, while requests are served.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rrd_file::tree::Tree;
use rrd_file::watch::Watch;
use rustix::fs::FsWord;

use super::Reconciler;
use crate::engine::StoreError;
use crate::lock::lock;
use crate::name::RrdName;
use crate::placeholder::Found;
use crate::stripes::names::name_hash;

/// Files looked at before their RRDs are asked for.
const FILES_AT_ONCE: usize = 1024;

/// File systems on which other machines change files, of which inotify does not tell: NFS, SMB, CIFS, FUSE, Ceph, 9p, Lustre, GFS2, OCFS2.
const SHARED: [FsWord; 10] = [
    0x6969,
    0xfe53_4d42_u32 as FsWord,
    0xff53_4d42_u32 as FsWord,
    0x6573_5546,
    0x00c3_6400,
    0x0102_1997,
    0x0bd0_0bd0,
    0x0116_1970,
    0x7461_636f,
    0x517b,
];

impl Reconciler {
    /// Scans the tree if that is due. Ends early, to be called again, when `is_stopping`.
    pub(in super::super) fn scan_if_due(&self, is_stopping: &AtomicBool) {
        if !self.wants_scan.swap(false, Ordering::SeqCst) {
            return;
        }
        let began = std::time::Instant::now();
        match self.scan(is_stopping) {
            Ok(Some(files)) => {
                let milliseconds = began.elapsed().as_millis() as u64;
                tracing::info!(files, milliseconds, "looked at the tree of placeholders");
            }
            Ok(None) => self.wants_scan.store(true, Ordering::SeqCst),
            Err(error) => tracing::debug!(%error, "the scan of the tree ends: the store stops"),
        }
    }

    /// The number of files; `None` when it was ended early.
    fn scan(&self, is_stopping: &AtomicBool) -> Result<Option<u64>, StoreError> {
        let can_be_sure = !is_shared(self.placeholders.tree());
        let mut seen: Vec<u64> = Vec::new();
        let mut directories = vec![Vec::new()];
        let (mut files, mut complete) = (0, true);
        while let Some(directory) = directories.pop() {
            if is_stopping.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let (names, inside) = match self.enter(&directory) {
                Ok(entries) => entries,
                Err(error) => {
                    let path = String::from_utf8_lossy(&directory).into_owned();
                    tracing::warn!(%error, directory = %path, "cannot read a directory of the tree: what is in it is not followed");
                    complete = false;
                    continue;
                }
            };
            directories.extend(inside);
            files += names.len() as u64;
            for some in names.chunks(FILES_AT_ONCE) {
                self.look_at_files(some, &mut seen)?;
            }
        }
        seen.sort_unstable();
        // What cannot be read is not missing.
        if complete {
            self.look_for_missing(seen)?;
        }
        let state = lock(&self.state);
        self.is_scanned.store(true, Ordering::Release);
        self.scanned.notify_all();
        if can_be_sure && complete && state.watch.is_some() && !self.wants_scan.load(Ordering::SeqCst) {
            self.is_unsure.store(false, Ordering::SeqCst);
        }
        Ok(Some(files))
    }

    /// Watches a directory and lists it.
    fn enter(&self, directory: &[u8]) -> io::Result<(Vec<RrdName>, Vec<Vec<u8>>)> {
        let mut state = lock(&self.state);
        if let Some(watch) = &mut state.watch {
            match watch.add(directory) {
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NOSPC.raw_os_error()) => {
                    self.give_up_watching(&mut state, &error);
                    // This scan goes on without.
                    self.wants_scan.store(false, Ordering::SeqCst);
                }
                other => return other,
            }
        }
        drop(state);
        Watch::list(self.placeholders.tree(), directory)
    }

    fn look_at_files(&self, names: &[RrdName], seen: &mut Vec<u64>) -> Result<(), StoreError> {
        let mut odd = BTreeSet::new();
        let numbers = self.core.numbers(names)?;
        for (name, number) in names.iter().zip(numbers) {
            match self.placeholders.look(name) {
                Ok(Found::Ours { rrd, name: written, .. })
                    if rrd.is_some() && rrd == number && written == *name => {}
                // Files of other programs.
                Ok(Found::RrdFile | Found::Other | Found::Unfinished | Found::Foreign(_))
                    if number.is_none() =>
                {
                    continue;
                }
                _ => drop(odd.insert(name.clone())),
            }
            if number.is_some() {
                seen.push(name_hash(name.as_bytes()));
            }
        }
        if !odd.is_empty() {
            self.settle(&mut lock(&self.state), odd);
        }
        Ok(())
    }

    /// RRDs without a file.
    fn look_for_missing(&self, seen: Vec<u64>) -> Result<(), StoreError> {
        let names = self.core.names_but(seen)?;
        let missing: BTreeSet<RrdName> = names.into_iter().filter(|name| !self.is_at_home(name)).collect();
        self.settle(&mut lock(&self.state), missing);
        Ok(())
    }
}

/// Whether the tree is on a file system that other machines change.
fn is_shared(tree: &Tree) -> bool {
    let about = tree.open_directory(b"").and_then(|root| Ok(rustix::fs::fstatfs(&root)?));
    let is_shared = about.is_ok_and(|about| SHARED.contains(&about.f_type));
    if is_shared {
        tracing::info!(tree = %tree.path().display(), "the tree is on a shared file system: each name is looked at when it is used");
    }
    is_shared
}
