//! Adoption: a `.rrd` file that another program created in the tree is imported when its name is first used.
//!
//! collectd's rrdcached plugin, gmetad and many scripts create files themselves and send only the updates to
//! the daemon; rrdcached finds the file by its name. Here, the first use of such a name imports the file,
//! which stays unchanged and is not read again. Updates with such names are retried after the import, on a
//! separate thread, so that other updates do not wait.
//!
//! Known gap: a client that sends on without waiting may have a later batch reach the shard between the import
//! and the retry of an earlier one, whose updates are then refused as too old.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rrd_file::file::Access;
use rrd_file::handle::Handle;

use crate::engine::{Reply, StoreError, UpdateBatch, UpdateFailure};
use crate::error::OpenError;
use crate::lock::lock;
use crate::name::RrdName;
use crate::stripes::Core;
use crate::tree::Tree;

/// The largest file that is imported: what the log can hold when it does not compress at all.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Updates whose names were unknown.
struct Retry {
    batch: UpdateBatch,
    failures: Vec<UpdateFailure>,
    reply: Reply<Vec<UpdateFailure>>,
}

/// Imports files.
pub(super) struct Adopter {
    source: Arc<Source>,
    sender: Mutex<Option<RetrySender>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The channel to the adopter's thread.
#[derive(Clone)]
pub(super) struct RetrySender(Option<Sender<Retry>>);

impl RetrySender {
    /// Retries the lines with unknown names once the files of those names are imported.
    pub(super) fn send(
        &self,
        batch: UpdateBatch,
        failures: Vec<UpdateFailure>,
        reply: Reply<Vec<UpdateFailure>>,
    ) {
        let retry = Retry { batch, failures, reply };
        let refused = match &self.0 {
            Some(sender) => sender.send(retry).err().map(|gone| gone.0),
            None => Some(retry),
        };
        if let Some(Retry { failures, reply, .. }) = refused {
            reply(failures);
        }
    }
}

struct Source {
    core: Arc<Core>,
    tree: Tree,
    /// One import at a time, so that two first uses of a name do not both import it.
    turn: Mutex<()>,
}

impl Adopter {
    /// Starts importing files under `tree`.
    pub(super) fn start(core: Arc<Core>, tree: &Path) -> Result<Adopter, OpenError> {
        let failed = |error: std::io::Error| {
            OpenError::caused(format!("cannot look for .rrd files in \"{}\"", tree.display()), error)
        };
        let source = Arc::new(Source { core, tree: Tree::open(tree).map_err(failed)?, turn: Mutex::new(()) });
        let (sender, retries) = mpsc::channel();
        let for_thread = Arc::clone(&source);
        let thread = std::thread::Builder::new()
            .name("adopter".into())
            .spawn(move || for_thread.run(&retries))
            .map_err(failed)?;
        let sender = Mutex::new(Some(RetrySender(Some(sender))));
        Ok(Adopter { source, sender, thread: Mutex::new(Some(thread)) })
    }

    /// A channel to the thread.
    pub(super) fn retry_sender(&self) -> RetrySender {
        lock(&self.sender).clone().unwrap_or(RetrySender(None))
    }

    /// Imports the file of a name now, if there is one.
    pub(super) fn adopt(&self, name: &RrdName) -> Result<(), StoreError> {
        self.source.adopt(name)
    }

    /// Names of files and directories in the tree, as [`list`](rrd_file::tree::list) returns them, without
    /// hidden ones: the store itself may be there.
    pub(super) fn list(&self, directory: &[u8], recursive: bool) -> Result<Vec<Vec<u8>>, StoreError> {
        let mut names = rrd_file::tree::list(&self.source.tree, directory, recursive)?;
        let hidden = |name: &[u8]| name.split(|&byte| byte == b'/').any(|part| part.starts_with(b"."));
        names.retain(|name| !hidden(name));
        Ok(names)
    }

    /// Ends the thread after it has answered all requests.
    pub(super) fn stop(&self) {
        lock(&self.sender).take();
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }
}

impl Source {
    fn run(&self, retries: &Receiver<Retry>) {
        while let Ok(Retry { batch, failures, reply }) = retries.recv() {
            let (unknown, mut failures): (Vec<_>, Vec<_>) =
                failures.into_iter().partition(|failure| matches!(failure.error, StoreError::NoSuchRrd(_)));
            let mut again = UpdateBatch::default();
            let mut lines = Vec::new();
            for failure in unknown {
                let StoreError::NoSuchRrd(name) = &failure.error else { continue };
                match self.adopt(name) {
                    Ok(()) => {
                        again.push_copy(&batch, &batch.lines[failure.line as usize]);
                        lines.push(failure.line);
                    }
                    Err(error) => failures.push(UpdateFailure { error, ..failure }),
                }
            }
            let finish = Box::new(move |(_, more): (UpdateBatch, Vec<UpdateFailure>)| {
                let renumber =
                    |failure: UpdateFailure| UpdateFailure { line: lines[failure.line as usize], ..failure };
                failures.extend(more.into_iter().map(renumber));
                failures.sort_by_key(|failure| failure.line);
                reply(failures);
            });
            self.core.update(again, finish);
        }
    }

    /// Imports the file of a name unless the RRD exists by now. [`StoreError::NoSuchRrd`] when there is no
    /// `.rrd` file of that name either.
    fn adopt(&self, name: &RrdName) -> Result<(), StoreError> {
        let bytes = match self.read_file(name)? {
            Some(bytes) => bytes,
            None => return Err(StoreError::NoSuchRrd(name.clone())),
        };
        let _turn = lock(&self.turn);
        if self.core.ask(name, |view, name| view.status(name)).is_ok() {
            return Ok(());
        }
        let parts = rrd::codec::file::decode(&bytes)
            .map_err(|error| StoreError::Damaged { path: name.to_string(), error })?;
        self.core.import(name, parts.rrd, true)?;
        tracing::info!(rrd = %name, bytes = bytes.len(), "took in a .rrd file that stood in the tree");
        Ok(())
    }

    /// The bytes of a `.rrd` file; `None` when there is none or the file is of another kind.
    fn read_file(&self, name: &RrdName) -> Result<Option<Vec<u8>>, StoreError> {
        let failed = |error| StoreError::io(format!("cannot read the file of \"{name}\""), error);
        let Ok(Handle::System(file)) = self.tree.open_file(name, Access::Read) else { return Ok(None) };
        let file = std::fs::File::from(file);
        let about = file.metadata().map_err(failed)?;
        let mut front = [0; 4];
        if !about.is_file()
            || std::os::unix::fs::FileExt::read_at(&file, &mut front, 0).map_err(failed)? < 4
            || front != *b"RRD\0"
        {
            return Ok(None);
        }
        if about.len() > FILE_BYTES_MAX {
            return Err(StoreError::TooLarge(format!(
                "cannot take in \"{name}\": it has {} bytes, {FILE_BYTES_MAX} are the limit",
                about.len()
            )));
        }
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut &file, &mut bytes).map_err(failed)?;
        Ok(Some(bytes))
    }
}
