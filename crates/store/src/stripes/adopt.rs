//! Adoption: a `.rrd` file that another program created in the tree is imported when its name is first used.
//!
//! collectd's rrdcached plugin, gmetad and many scripts create files themselves and send only the updates to
//! the daemon; rrdcached finds the file by its name. Here, the first use of such a name imports the file,
//! which stays unchanged and is not read again. One thread imports, one file at a time, so that many clients that use a name
//! at once hold its content once. Updates with such names wait there, so that other updates do not; [`order`] keeps them in
//! their order.

mod order;
pub(super) mod original;
mod unused;

use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use hashbrown::HashMap;
use rrd::codec::file::FileLayout;
use rrd_file::file::Access;
use rrd_file::handle::Handle;

use crate::engine::{Hold, Reply, StoreError, UpdateBatch, UpdateFailure};
use crate::error::OpenError;
use crate::lock::lock;
use crate::name::RrdName;
use crate::placeholder::{Placeholders, RrdNumber};
use crate::shard::message::{Command, UpdateOutcome};
use crate::shard::read::ReadTicket;
use crate::stripes::reconcile::Reconciler;
use crate::stripes::shards::Core;
use crate::tree::Tree;
use order::{Job, Order};
pub use original::Adopted;
pub(super) use original::Originals;
use original::Taken;
pub(super) use unused::Unused;

/// The largest file that is imported: what the log can hold when it does not compress at all.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// Waiting lines that are sent to the store in one batch.
const LINES_MAX: usize = 4096;

/// What the adopter's thread is asked to do.
enum Message {
    /// Apply a line of a batch once the file of its name is imported.
    Lines(Arc<Job>, Vec<(u32, RrdName)>),
    /// Import the file of a name; it goes into the archive in any case, or as the store is told to.
    Adopt(RrdName, bool, SyncSender<Result<(), StoreError>>),
    /// Replace the file of a name, whose RRD has just been created, and then answer.
    Replace(RrdName, Reply<Result<(), StoreError>>),
}

/// Imports files.
pub(super) struct Adopter {
    source: Arc<Source>,
    sender: Mutex<Option<Sender<Message>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Source {
    core: Arc<Core>,
    /// Where files are; `None` when none is imported, and names are only resolved.
    tree: Option<Arc<Tree>>,
    placeholders: Option<Arc<Placeholders>>,
    reconciler: Option<Arc<Reconciler>>,
    order: Arc<Order>,
    originals: Arc<Originals>,
}

impl Adopter {
    /// Starts importing files under `tree`, if there is one, where the store's `placeholders` may be, and resolving names through the
    /// `reconciler`.
    pub(super) fn start(
        core: Arc<Core>,
        tree: Option<Arc<Tree>>,
        placeholders: Option<Arc<Placeholders>>,
        reconciler: Option<Arc<Reconciler>>,
        originals: Arc<Originals>,
    ) -> Result<Adopter, OpenError> {
        let failed =
            |error: std::io::Error| OpenError::caused("cannot start the thread that imports files", error);
        let source =
            Arc::new(Source { core, tree, placeholders, reconciler, order: Arc::default(), originals });
        let (sender, messages) = mpsc::channel();
        let for_thread = Arc::clone(&source);
        let thread = std::thread::Builder::new()
            .name("adopter".into())
            .spawn(move || for_thread.run(&messages))
            .map_err(failed)?;
        Ok(Adopter { source, sender: Mutex::new(Some(sender)), thread: Mutex::new(Some(thread)) })
    }

    /// Updates RRDs; those that only a file has are adopted first.
    pub(super) fn update(&self, batch: UpdateBatch, reply: Reply<Vec<UpdateFailure>>) {
        let core = &self.source.core;
        let Some(sender) = lock(&self.sender).clone() else {
            return core.update(batch, Box::new(move |(_, failures)| reply(failures)));
        };
        let passage = self.source.order.enter();
        if let Some(held) = self.source.order.held() {
            let waits = |line: &u32| {
                let name = RrdName::new(batch.name(&batch.lines[*line as usize])).ok()?;
                held.contains(&name).then_some((*line, name))
            };
            let waiting: Vec<_> = (0..batch.lines.len() as u32).filter_map(|line| waits(&line)).collect();
            if !waiting.is_empty() {
                let (rest, lines) = without(&batch, &waiting);
                let job = Job::new(batch, passage.ticket, waiting.len() + 1, Vec::new(), reply);
                // Before the names are released.
                send(&sender, &job, waiting);
                drop(held);
                let finish = Box::new(move |(_, failures): UpdateOutcome| {
                    let failures = failures.into_iter().map(|failure| renumbered(failure, &lines));
                    let (unknown, failures) = unknown_names(failures.collect());
                    job.expect(unknown.len());
                    send(&sender, &job, unknown);
                    job.finish(1, failures);
                    drop(passage);
                });
                return core.update(rest, finish);
            }
        }
        let finish = Box::new(move |(batch, failures): UpdateOutcome| {
            let (unknown, failures) = unknown_names(failures);
            if unknown.is_empty() {
                reply(failures);
            } else {
                let job = Job::new(batch, passage.ticket, unknown.len(), failures, reply);
                send(&sender, &job, unknown);
            }
            drop(passage);
        });
        core.update(batch, finish);
    }

    /// Imports the file of a name now; with `archive`, it does not stay. [`StoreError::NoSuchRrd`] when there is neither a file nor, by
    /// now, an RRD.
    pub(super) fn adopt(&self, name: &RrdName, archive: bool) -> Result<(), StoreError> {
        if self.source.open(name)?.is_none() {
            // Another client's update may have had it imported since the caller looked.
            let is_there = self.is_in_store(name);
            return if is_there { Ok(()) } else { Err(StoreError::NoSuchRrd(name.clone())) };
        }
        let sender = lock(&self.sender).clone().ok_or(StoreError::Stopping)?;
        let (reply, answer) = mpsc::sync_channel(1);
        sender.send(Message::Adopt(name.clone(), archive, reply)).map_err(|_| StoreError::Stopping)?;
        drop(sender);
        answer.recv().unwrap_or(Err(StoreError::Stopping))
    }

    /// Imports the files of several names together.
    fn adopt_all<'n>(&self, names: impl Iterator<Item = &'n RrdName>) -> Vec<Result<(), StoreError>> {
        let Some(sender) = lock(&self.sender).clone() else {
            return names.map(|_| Err(StoreError::Stopping)).collect();
        };
        let ask = |name: &RrdName| {
            let (reply, answer) = mpsc::sync_channel(1);
            sender.send(Message::Adopt(name.clone(), false, reply)).ok().map(|()| answer)
        };
        let answers: Vec<_> = names.map(ask).collect();
        drop(sender);
        let wait =
            |answer: Receiver<Result<(), StoreError>>| answer.recv().unwrap_or(Err(StoreError::Stopping));
        answers.into_iter().map(|answer| answer.map_or(Err(StoreError::Stopping), wait)).collect()
    }

    /// Whether the store has an RRD of this name.
    fn is_in_store(&self, name: &RrdName) -> bool {
        self.source.core.is_in_store(name)
    }

    /// Whether only a file has this name: the store has not adopted it.
    pub(super) fn is_only_a_file(&self, name: &RrdName) -> bool {
        self.has_file(name) && !self.source.core.is_in_store(name)
    }

    /// Whether a `.rrd` file has this name.
    fn has_file(&self, name: &RrdName) -> bool {
        matches!(self.source.open(name), Ok(Some(_)))
    }

    /// Whether a `.rrd` file has this name; an RRD is about to take its place.
    pub(super) fn claim_file(&self, name: &RrdName) -> bool {
        match self.source.open(name) {
            Ok(Some(file)) => {
                self.source.originals.begin(name, &file);
                true
            }
            _ => false,
        }
    }

    /// A reply to the creation of an RRD in place of a file: when that has succeeded, the file is replaced before the answer is given.
    pub(super) fn reply_after_replacing(
        &self,
        name: RrdName,
        reply: Reply<Result<(), StoreError>>,
    ) -> Reply<Result<(), StoreError>> {
        let sender = lock(&self.sender).clone();
        Box::new(move |created| match (created, sender) {
            // Not on this thread, which is the shard's.
            (Ok(()), Some(sender)) => {
                if let Err(gone) = sender.send(Message::Replace(name, reply))
                    && let Message::Replace(_, reply) = gone.0
                {
                    reply(Err(StoreError::Stopping));
                }
            }
            (result, _) => reply(result),
        })
    }

    /// Puts a placeholder in the place of the `.rrd` file of an RRD that the store has, if there is one.
    pub(super) fn replace_file(&self, name: &RrdName) -> Result<(), StoreError> {
        self.source.replace_file(name)
    }

    /// Names of files and directories in the tree, as [`list`](rrd_file::tree::list) returns them, without
    /// hidden ones: the store itself may be there.
    pub(super) fn list(
        &self,
        directory: &[u8],
        recursive: bool,
        hold: Hold<'_>,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let Some(tree) = &self.source.tree else { return Ok(Vec::new()) };
        let mut names = rrd_file::tree::list(tree, directory, recursive, hold)?;
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

/// Has lines of a job wait for the adopter.
fn send(sender: &Sender<Message>, job: &Arc<Job>, lines: Vec<(u32, RrdName)>) {
    if lines.is_empty() {
        return;
    }
    if let Err(gone) = sender.send(Message::Lines(Arc::clone(job), lines))
        && let Message::Lines(job, lines) = gone.0
    {
        let fail = |(line, name)| UpdateFailure { line, accepted: 0, error: StoreError::NoSuchRrd(name) };
        job.finish(lines.len(), lines.into_iter().map(fail));
    }
}

/// The lines that failed because of an unknown name, and the other failures.
fn unknown_names(failures: Vec<UpdateFailure>) -> (Vec<(u32, RrdName)>, Vec<UpdateFailure>) {
    let mut unknown = Vec::new();
    let mut others = Vec::new();
    for failure in failures {
        match failure.error {
            StoreError::NoSuchRrd(name) => unknown.push((failure.line, name)),
            _ => others.push(failure),
        }
    }
    (unknown, others)
}

/// A batch without its waiting lines, and the numbers that its lines have in the whole batch.
fn without(batch: &UpdateBatch, waiting: &[(u32, RrdName)]) -> (UpdateBatch, Vec<u32>) {
    let (mut rest, mut lines) = (UpdateBatch::default(), Vec::new());
    let mut waiting = waiting.iter().map(|(line, _)| *line).peekable();
    for (index, line) in batch.lines.iter().enumerate() {
        if waiting.next_if_eq(&(index as u32)).is_none() {
            rest.push_copy(batch, line);
            lines.push(index as u32);
        }
    }
    (rest, lines)
}

fn renumbered(failure: UpdateFailure, lines: &[u32]) -> UpdateFailure {
    UpdateFailure { line: lines[failure.line as usize], ..failure }
}

/// What waits for the file of a name.
#[derive(Default)]
struct Waiting {
    lines: Vec<(Arc<Job>, u32)>,
    replies: Vec<SyncSender<Result<(), StoreError>>>,
    /// The file goes into the archive in any case.
    archive: bool,
}

/// What waits: for files to be adopted, by name, and for files to be replaced.
#[derive(Default)]
struct Queue {
    waiting: HashMap<RrdName, Waiting>,
    replaced: Vec<(RrdName, Reply<Result<(), StoreError>>)>,
}

impl Queue {
    fn take(&mut self, message: Message) {
        match message {
            Message::Adopt(name, archive, reply) => {
                let waiting = self.waiting.entry(name).or_default();
                waiting.archive |= archive;
                waiting.replies.push(reply);
            }
            Message::Replace(name, reply) => self.replaced.push((name, reply)),
            Message::Lines(job, lines) => {
                for (line, name) in lines {
                    self.waiting.entry(name).or_default().lines.push((Arc::clone(&job), line));
                }
            }
        }
    }

    fn take_all(&mut self, messages: &Receiver<Message>) {
        messages.try_iter().for_each(|message| self.take(message));
    }
}

/// Bytes of files that wait for the archive.
const TAKEN_BYTES_MAX: u64 = 64 << 20;

/// Files that were taken in and are still to be put away, with the numbers of their RRDs and the lengths of their placeholders.
#[derive(Default)]
struct TakenFiles {
    files: Vec<(Taken, (RrdNumber, u64))>,
    bytes: u64,
}

impl TakenFiles {
    fn add(&mut self, taken: Taken, number: RrdNumber, rrd_bytes: u64) {
        self.files.push((taken, (number, rrd_bytes)));
        self.bytes += rrd_bytes;
    }
}

impl Source {
    fn run(&self, messages: &Receiver<Message>) {
        let mut queue = Queue::default();
        loop {
            if queue.waiting.is_empty() {
                let Ok(message) = messages.recv() else { return };
                queue.take(message);
            }
            queue.take_all(messages);
            self.pass(&mut queue, messages);
            for (name, reply) in std::mem::take(&mut queue.replaced) {
                if let Err(error) = self.replace_file(&name) {
                    // It is not read as long as the store has the RRD.
                    tracing::warn!(%error, rrd = %name, "cannot remove the .rrd file that a new RRD replaces; remove it by hand");
                }
                reply(Ok(()));
            }
        }
    }

    /// Adopts the files of the names that wait now, and applies all lines that wait for them.
    fn pass(&self, queue: &mut Queue, messages: &Receiver<Message>) {
        let names: Vec<RrdName> = queue.waiting.keys().cloned().collect();
        let mut results: HashMap<RrdName, Result<RrdName, StoreError>> = HashMap::new();
        let mut found = Vec::new();
        for name in names {
            match self.resolve(&name) {
                Ok(None) => {}
                Ok(Some(known)) => {
                    results.insert(name, Ok(known));
                    continue;
                }
                Err(error) => {
                    results.insert(name, Err(error));
                    continue;
                }
            }
            match self.core.check_lost(&name).and_then(|()| self.open(&name)) {
                Ok(Some(_)) => found.push(name),
                // Created meanwhile, in place of the file.
                Ok(None) if self.core.is_in_store(&name) => drop(results.insert(name.clone(), Ok(name))),
                Ok(None) => drop(results.insert(name.clone(), Err(StoreError::NoSuchRrd(name)))),
                // It is lost no more.
                Err(StoreError::Lost(_)) if self.core.is_in_store(&name) => {
                    drop(results.insert(name.clone(), Ok(name)))
                }
                Err(error) => drop(results.insert(name, Err(error))),
            }
        }
        if found.is_empty() {
            return self.answer(queue, &results);
        }
        self.order.hold(&found);
        let mut taken = TakenFiles::default();
        for name in found {
            let archive = queue.waiting.get(&name).is_some_and(|waiting| waiting.archive);
            let result = self.import(&name, archive, &mut taken);
            results.insert(name.clone(), result.map(|()| name));
        }
        self.put_away(taken);
        queue.take_all(messages);
        self.answer(queue, &results);
        self.order.release(|| {
            queue.take_all(messages);
            self.answer(queue, &results);
        });
    }

    /// The RRD that is meant by a name, if the store has it.
    fn resolve(&self, name: &RrdName) -> Result<Option<RrdName>, StoreError> {
        let Some(reconciler) = &self.reconciler else { return Ok(None) };
        Ok(reconciler.resolve(name)?.filter(|known| self.core.is_in_store(known)))
    }

    /// Applies the waiting lines of the names with a result, which is the name of the RRD that is meant, or refuses them, and answers who asked for
    /// the names.
    fn answer(&self, queue: &mut Queue, results: &HashMap<RrdName, Result<RrdName, StoreError>>) {
        let mut lines = Vec::new();
        for (name, result) in results {
            let Some(waiting) = queue.waiting.remove(name) else { continue };
            match result {
                Ok(known) => {
                    lines.extend(waiting.lines.into_iter().map(|(job, line)| (job, line, known)));
                }
                Err(error) => {
                    for (job, line) in waiting.lines {
                        job.finish(1, [UpdateFailure { line, accepted: 0, error: error.clone() }]);
                    }
                }
            }
            for reply in waiting.replies {
                // Who asked may be gone.
                let _ = reply.send(result.clone().map(|_| ()));
            }
        }
        lines.sort_unstable_by_key(|(job, line, _)| (job.ticket, *line));
        for lines in lines.chunks(LINES_MAX) {
            self.apply(lines);
        }
    }

    fn apply(&self, lines: &[(Arc<Job>, u32, &RrdName)]) {
        let mut batch = UpdateBatch::default();
        for (job, line, known) in lines {
            batch.push(known.as_bytes(), job.batch.values(&job.batch.lines[*line as usize]));
        }
        let lines: Vec<(Arc<Job>, u32)> =
            lines.iter().map(|(job, line, _)| (Arc::clone(job), *line)).collect();
        let finish = Box::new(move |(_, failures): UpdateOutcome| {
            let mut failures = failures.into_iter().peekable();
            for (index, (job, line)) in lines.into_iter().enumerate() {
                let failure = failures.next_if(|failure| failure.line == index as u32);
                job.finish(1, failure.map(|failure| UpdateFailure { line, ..failure }));
            }
        });
        self.core.update(batch, finish);
    }

    /// Imports the file of a name unless the RRD exists by now.
    fn import(&self, name: &RrdName, archive: bool, taken: &mut TakenFiles) -> Result<(), StoreError> {
        if self.core.is_in_store(name) {
            return Ok(());
        }
        let Some(file) = self.open(name)? else { return Err(StoreError::NoSuchRrd(name.clone())) };
        let failed =
            |error| StoreError::io(format!("cannot take in \"{name}\": its file cannot be read"), error);
        self.originals.begin(name, &file);
        let content = original::read(&file).map_err(failed)?;
        let decode = || {
            let damaged = |error| StoreError::Damaged { path: name.to_string(), error };
            rrd::codec::file::decode(&content).map(|parts| parts.rrd).map_err(damaged)
        };
        match self.core.import(name, decode()?, true) {
            // Created meanwhile, in place of the file.
            Err(StoreError::Exists(_)) => return Ok(()),
            imported => imported?,
        }
        let goes = self.originals.go() || archive && self.placeholders.is_some();
        if !goes {
            self.originals.keep(name, &file, "adopt = \"keep\"");
            return Ok(());
        }
        let stored = self.core.ask(name, ReadTicket::take)?.complete()?;
        if !original::is_equal(&decode()?, &stored) {
            self.originals.keep(name, &file, "what was read back is not equal");
            return Ok(());
        }
        let rrd_bytes = FileLayout::of(&stored.definition).file_bytes;
        taken.add(self.originals.take(name, &file, &content)?, self.core.number(name)?, rrd_bytes);
        if taken.bytes > TAKEN_BYTES_MAX {
            self.put_away(std::mem::take(taken));
        }
        Ok(())
    }

    /// Puts placeholders in the places of files that were taken in.
    fn put_away(&self, taken: TakenFiles) {
        let Some(tree) = self.tree.as_ref().filter(|_| !taken.files.is_empty()) else { return };
        let done = self.core.every_shard(Command::Sync).and_then(|()| {
            let now = (self.core.clock)().whole;
            self.originals.put_away(tree, taken.files, now)
        });
        if let Err(error) = done {
            tracing::error!(%error, "files that were taken in stay where they are; they are archived after the next start");
        }
    }

    /// Puts a placeholder in the place of the `.rrd` file of an RRD that the store has, if there is one.
    fn replace_file(&self, name: &RrdName) -> Result<(), StoreError> {
        let (Some(file), Some(tree)) = (self.open(name)?, &self.tree) else { return Ok(()) };
        // From here on the store alone has the RRD.
        self.core.sync(name)?;
        let status = self.core.ask(name, |view, name| view.status(name))?;
        match &self.placeholders {
            Some(placeholders) => {
                let failed = |error| StoreError::io(format!("cannot replace the file of \"{name}\""), error);
                let about = rustix::fs::fstat(&file).map_err(|error| failed(error.into()))?;
                let of_rrd = (self.core.number(name)?, FileLayout::of(&status.definition).file_bytes);
                placeholders.replace_file(name, of_rrd, &about, || true)?;
            }
            None => {
                let failed = |error| StoreError::io(format!("cannot remove the file of \"{name}\""), error);
                tree.remove(name).map_err(failed)?;
            }
        }
        let failed = |error| StoreError::io(format!("cannot replace the file of \"{name}\""), error);
        tree.sync_directories(name).map_err(failed)?;
        tracing::info!(rrd = %name, "removed its .rrd file, because the RRD is deleted, imported or created anew");
        Ok(())
    }

    /// A `.rrd` file; `None` when there is none or the file is of another kind.
    fn open(&self, name: &RrdName) -> Result<Option<std::fs::File>, StoreError> {
        let failed = |error| StoreError::io(format!("cannot read the file of \"{name}\""), error);
        let Some(tree) = &self.tree else { return Ok(None) };
        let Ok(Handle::System(file)) = tree.open_file(name, Access::Read) else { return Ok(None) };
        let file = std::fs::File::from(file);
        let about = file.metadata().map_err(failed)?;
        let mut front = [0; 4];
        if !about.is_file()
            || std::os::unix::fs::FileExt::read_at(&file, &mut front, 0).map_err(failed)? < 4
            || front != *b"RRD\0"
        {
            return Ok(None);
        }
        Ok(Some(file))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failure here is the test's")]
mod tests {
    use std::sync::Arc;

    use rrd::definition::text::{CreateOptions, Limits, parse_create};
    use rrd::when::Step;
    use rrd_file::Existing;

    use super::*;
    use crate::disk::real::RealDisk;
    use crate::engine::Engine;
    use crate::stripes::{Options, Stripes};

    /// Two clients may find at the same time that only a file has a name.
    #[test]
    fn a_file_that_another_client_had_imported_is_no_missing_rrd() {
        let directory = tempfile::tempdir().unwrap();
        let tree = directory.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        let step = Step { units: 1, units_per_second: 1 };
        let options = CreateOptions { step, limits: Limits::FILE, file_name: b"x" };
        let definition = parse_create(&options, &["DS:v:GAUGE:10:U:U", "RRA:LAST:0.5:1:20"]).unwrap();
        rrd_file::create(&tree.join("a.rrd"), &definition, 1_700_000_000, Existing::Refuse).unwrap();
        let disk = Arc::new(RealDisk::create(&directory.path().join("store")).unwrap());
        let options =
            Options { placeholder_tree: Some(tree.clone()), adopt_tree: Some(tree), ..Options::default() };
        let store = Stripes::open(disk, &options).unwrap();
        let name = |text: &str| RrdName::new(text.as_bytes()).unwrap();
        let adopter = store.adopter().unwrap();
        // The second client looked before the first one's import put a placeholder in the file's place.
        assert_eq!(
            [adopter.adopt(&name("a.rrd"), false), adopter.adopt(&name("a.rrd"), false)],
            [Ok(()), Ok(())]
        );
        let missing = adopter.adopt(&name("b.rrd"), false);
        assert!(matches!(missing, Err(StoreError::NoSuchRrd(_))), "{missing:?}");
        store.stop().unwrap();
    }
}
