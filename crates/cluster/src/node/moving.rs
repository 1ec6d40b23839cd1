//! From one log to the next: what a node does when the cluster is to go on in another one, and when it starts with that.
//!
//! `docs/cluster.md`, "To another log, or to more partitions", is the reference. A replica that is sealed goes on in the next log as it is, which its mark says. Where
//! that log has more partitions, the node first divides each replica, in the folder `next-log`; the next start puts these in the place of the others.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use store::disk::RealDisk;
use store::replication::Mark;

use super::{Inner, NodeError, identity, partition_directory};
use crate::lock::lock;
use crate::log::ReplicatedLog;
use crate::members::{Stage, Succession};
use crate::message::{Content, Message};
use crate::partition::{Part, Replica};

/// The folder with the parts of the replicas.
const NEXT_LOG: &str = "next-log";
/// The file that says which log the stores in a folder are of.
const OWNER: &str = "LOG";
/// The most characters of why a division failed that a beat has.
const TROUBLE_MAX: usize = 500;
/// The pause after a division that failed.
const PAUSE: Duration = Duration::from_secs(3);
/// How long the first message of a log is waited for.
const FIRST_PATIENCE: Duration = Duration::from_secs(10);
/// How often a thread that waits looks whether the node stops.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The log that the stores in a folder are of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) log: String,
    /// Partitions with RRDs.
    pub(super) partitions: u32,
}

/// Which replicas are divided, and who does that.
#[derive(Default)]
pub(super) struct Divisions {
    done: Mutex<BTreeSet<u32>>,
    /// Why the last attempt failed.
    trouble: Mutex<Option<String>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Divisions {
    /// What the others are told, while a division fails.
    pub(super) fn trouble(&self) -> Option<String> {
        lock(&self.trouble).clone()
    }

    /// Waits for what is being divided.
    pub(super) fn join(&self) {
        if let Some(thread) = lock(&self.thread).take()
            && thread.join().is_err()
        {
            tracing::error!("a bug ended the thread that divides replicas");
        }
    }
}

impl Owner {
    fn read(directory: &Path) -> io::Result<Option<Owner>> {
        let text = match fs::read_to_string(directory.join(OWNER)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let parsed = || {
            let mut lines = text.strip_prefix("roundel-node 1\n")?.lines();
            let log = lines.next()?.strip_prefix("log ")?.to_owned();
            Some(Owner { log, partitions: lines.next()?.strip_prefix("partitions ")?.parse().ok()? })
        };
        let path = directory.join(OWNER);
        let damaged = || {
            io::Error::other(format!(
                "\"{}\" is damaged: it says which log the replicas beside it are of. If the configuration names the log that they had, remove it",
                path.display()
            ))
        };
        parsed().map(Some).ok_or_else(damaged)
    }

    fn write(&self, directory: &Path) -> io::Result<()> {
        let new = directory.join(format!("{OWNER}.new"));
        fs::write(&new, format!("roundel-node 1\nlog {}\npartitions {}\n", self.log, self.partitions))?;
        fs::File::open(&new)?.sync_all()?;
        fs::rename(new, directory.join(OWNER))?;
        sync(directory)
    }

    fn names(&self, other: &Owner) -> String {
        format!(
            "\"{}\" with {} partitions, and the log is now \"{}\" with {}",
            self.log, self.partitions, other.log, other.partitions
        )
    }
}

fn sync(directory: &Path) -> io::Result<()> {
    fs::File::open(directory)?.sync_all()
}

/// Begins with a log: what this node has is of that one, was sealed or divided for it, or is older than what others have in it.
pub(super) fn enter(directory: &Path, log: &dyn ReplicatedLog, here: &Owner) -> Result<(), NodeError> {
    let kept = Owner::read(directory)?;
    match &kept {
        Some(kept) if kept.log == here.log && kept.partitions != here.partitions => {
            return Err(NodeError::OtherLog(format!(
                "the replicas in \"{}\" are of the log {}: partitions were added to it, and RRDs are not found any more by the hash of their names. \
                 Make another topic, and use roundel cluster split",
                directory.display(),
                kept.names(here)
            )));
        }
        Some(kept) if kept.partitions > here.partitions => {
            return Err(NodeError::OtherLog(format!(
                "the replicas in \"{}\" are of the log {}, and the log now has fewer partitions: has this node gone on in that one already? Then give the \
                 configuration that names it. Nothing was changed",
                directory.display(),
                kept.names(here)
            )));
        }
        Some(kept) if kept.partitions < here.partitions => take_parts(directory, kept, here)?,
        _ => {}
    }
    let strangers = strangers(directory, kept.as_ref(), here)?;
    let sealed = |stranger: &Stranger| Some((stranger.path.clone(), stranger.sealed_for.clone()?));
    if let Some((path, next)) = strangers.iter().find_map(sealed) {
        // Another log may have been prepared, too, when two commands were given at once: it says that it goes on after the same one.
        return Err(NodeError::OtherLog(format!(
            "the replica in \"{}\" was sealed for the log \"{next}\", in which the cluster goes on, and the log is now \"{}\": give the configuration that \
             names that one. Nothing was changed",
            path.display(),
            here.log
        )));
    }
    if let Some(Stranger { log: first, .. }) = strangers.first() {
        // With a mistyped topic nodes would begin with nothing, and what they have would be in the way.
        let before = continued(log)?;
        let mut others = strangers.iter().filter(|stranger| before.as_ref() != Some(&stranger.log));
        if let Some(Stranger { path, log: own, .. }) = others.next() {
            return Err(NodeError::OtherLog(format!(
                "the replica in \"{}\" is of the log \"{own}\", and the log is now \"{}\", which was not made to go on after that one (roundel cluster seal): is another \
                 topic meant, or was it made again? Nothing was changed",
                path.display(),
                here.log
            )));
        }
        tracing::warn!(log = %first, "what this node has was not sealed for the log that follows: it is copied from others");
    }
    match kept.as_ref() == Some(here) {
        true => Ok(()),
        false => Ok(here.write(directory)?),
    }
}

/// A replica that is neither of the present log nor sealed for it.
struct Stranger {
    path: PathBuf,
    /// The log that it is of.
    log: String,
    /// The log that it was sealed for.
    sealed_for: Option<String>,
}

/// All such. One that has no mark yet is of the log that was there before.
fn strangers(directory: &Path, kept: Option<&Owner>, here: &Owner) -> io::Result<Vec<Stranger>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        // Also of another number of partitions.
        let number = path.file_name().and_then(|name| name.to_str()?.strip_prefix("partition-"));
        let is_one = number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        if !is_one || !path.join("STORE").exists() {
            continue;
        }
        let (log, sealed_for) = match mark(&path) {
            Some(mark) if mark.sealed_for.as_ref() == Some(&here.log) => continue,
            Some(mark) => (mark.log, mark.sealed_for),
            None => (kept.map_or_else(|| here.log.clone(), |kept| kept.log.clone()), None),
        };
        if log != here.log {
            all.push(Stranger { path, log, sealed_for });
        }
    }
    Ok(all)
}

/// The log that this one was made to go on after, as far as its first message tells.
fn continued(log: &dyn ReplicatedLog) -> Result<Option<String>, NodeError> {
    let bounds = log.bounds(0)?;
    if bounds.start > 0 || bounds.end == 0 {
        return Ok(None);
    }
    let first = log.reader(0, 0)?.next(FIRST_PATIENCE)?;
    let message = first.as_ref().and_then(|stored| Message::decode(&stored.bytes).ok());
    Ok(message.and_then(|message| match message.content {
        Content::Continues { of } => Some(of.to_owned()),
        _ => None,
    }))
}

/// Puts the parts of divided replicas in their place.
fn take_parts(directory: &Path, kept: &Owner, here: &Owner) -> Result<(), NodeError> {
    let next = directory.join(NEXT_LOG);
    let is_here = |path: &Path| mark(path).is_some_and(|mark| mark.log == here.log);
    let divided: Vec<(u32, PathBuf)> = (0..kept.partitions)
        .map(|partition| (partition, partition_directory(directory, partition)))
        .filter(|(_, path)| path.exists() && !is_here(path))
        .collect();
    let is_made = |part: u32| {
        is_here(&partition_directory(&next, part)) || is_here(&partition_directory(directory, part))
    };
    let is_for_this = Owner::read(&next)?.as_ref() == Some(here);
    let parts = |partition: u32| (partition..here.partitions).step_by(kept.partitions.max(1) as usize);
    let missing = divided.iter().find(|(partition, _)| !is_for_this || !parts(*partition).all(is_made));
    if let Some((partition, path)) = missing {
        return Err(NodeError::OtherLog(format!(
            "the replicas in \"{}\" are of the log {}, and partition {partition} was not divided for that. Start this node with the former log until \
             roundel cluster split, said again, has it ready; or, if other nodes run with the new log and have all partitions, remove \"{}\" and its like: they are then copied",
            directory.display(),
            kept.names(here),
            path.display()
        )));
    }
    for (_, path) in &divided {
        fs::remove_dir_all(path)?;
    }
    for part in 0..here.partitions {
        let made = partition_directory(&next, part);
        if made.exists() {
            fs::rename(made, partition_directory(directory, part))?;
        }
    }
    sync(directory)?;
    match fs::remove_dir_all(next) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// The mark of the replica in a folder, if it has one that can be read.
fn mark(path: &Path) -> Option<Mark> {
    let disk = path.exists().then(|| RealDisk::open(path))?.ok()?;
    Mark::load(&disk).ok()?
}

impl Inner {
    /// How far a replica is that is sealed for a log, when this is to follow.
    pub(super) fn stage(
        &self,
        partition: u32,
        sealed_for: Option<&str>,
        succession: Option<&Succession>,
    ) -> Stage {
        let is_divided = |succession: &Succession| {
            succession.partitions == self.partitions || lock(&self.divisions.done).contains(&partition)
        };
        match (sealed_for, succession) {
            (None, _) => Stage::Open,
            (Some(log), Some(succession)) if log == succession.next && is_divided(succession) => {
                Stage::Prepared
            }
            (Some(_), _) => Stage::Sealed,
        }
    }

    /// Has the replicas that lead seal their partitions, and divides those that are sealed.
    pub(super) fn succeed(self: &Arc<Self>, succession: &Succession) {
        for replica in lock(&self.replicas).values() {
            replica.seal(&succession.next);
        }
        let mut thread = lock(&self.divisions.thread);
        if succession.partitions == self.partitions || thread.is_some() || self.is_stopping() {
            return;
        }
        let (inner, succession) = (Arc::clone(self), succession.clone());
        let divides = std::thread::Builder::new().name("divisions".into());
        match divides.spawn(move || inner.divide_all(&succession)) {
            Ok(started) => *thread = Some(started),
            Err(error) => tracing::error!(%error, "cannot start a thread to divide the replicas"),
        }
    }

    /// Divides each replica once it is sealed, until the node stops.
    fn divide_all(&self, succession: &Succession) {
        let next = self.options.directory.join(NEXT_LOG);
        while !self.is_stopping() {
            let replicas = lock(&self.replicas).clone();
            let is_due = |partition: &u32, replica: &Replica| {
                !lock(&self.divisions.done).contains(partition)
                    && replica.status().sealed_for.as_ref() == Some(&succession.next)
            };
            for (partition, replica) in
                replicas.into_iter().filter(|(number, replica)| is_due(number, replica))
            {
                match self.divide(&replica, partition, succession, &next) {
                    Ok(()) => {
                        tracing::info!(partition, "the replica is divided for the next log");
                        lock(&self.divisions.done).insert(partition);
                        *lock(&self.divisions.trouble) = None;
                    }
                    Err(_) if self.is_stopping() => return,
                    Err(error) => {
                        tracing::error!(partition, %error, "the replica cannot be divided for the next log; it is tried again");
                        let why =
                            format!("partition {partition} cannot be divided for the next log: {error}");
                        *lock(&self.divisions.trouble) = Some(why.chars().take(TROUBLE_MAX).collect());
                        self.pause();
                    }
                }
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn pause(&self) {
        for _ in 0..PAUSE.as_millis() / LOOK_AGAIN.as_millis() {
            if self.is_stopping() {
                return;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Makes the parts of a replica that are not there yet.
    fn divide(
        &self,
        replica: &Replica,
        partition: u32,
        succession: &Succession,
        next: &Path,
    ) -> io::Result<()> {
        let owner = Owner { log: succession.next.clone(), partitions: succession.partitions };
        if Owner::read(next).ok().flatten().as_ref() != Some(&owner) {
            // Of another log, to which the cluster did not go.
            if next.exists() {
                fs::remove_dir_all(next)?;
            }
            fs::create_dir_all(next)?;
            owner.write(next)?;
        }
        // Stores of their own, which threads fill side by side.
        let parts = (partition..succession.partitions).step_by(self.partitions.max(1) as usize);
        let parts = Mutex::new(parts);
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let make_some = || loop {
            let Some(number) = lock(&parts).next() else { return Ok(()) };
            self.make_part(replica, number, succession, next)?;
        };
        std::thread::scope(|scope| {
            let makers: Vec<_> = (0..threads).map(|_| scope.spawn(make_some)).collect();
            let mut ended = makers.into_iter().map(std::thread::ScopedJoinHandle::join);
            ended.try_for_each(|made| made.unwrap_or_else(|_| Err(io::Error::other("a bug ended it"))))
        })
    }

    /// Makes a part, if it is not there yet.
    fn make_part(
        &self,
        replica: &Replica,
        number: u32,
        succession: &Succession,
        next: &Path,
    ) -> io::Result<()> {
        let made = partition_directory(next, number);
        if made.exists() {
            return Ok(());
        }
        let unfinished = made.with_extension("new");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished)?;
        }
        let part = Part {
            partition: number,
            partitions: succession.partitions,
            log: &succession.next,
            identity: identity(&self.options.cluster, number, succession.partitions),
        };
        if let Err(error) = replica.divide(&part, &unfinished, &|| self.is_stopping()) {
            // It would take room that the next attempt needs.
            let _ = fs::remove_dir_all(&unfinished);
            return Err(error);
        }
        fs::rename(&unfinished, &made)?;
        sync(next)
    }
}
