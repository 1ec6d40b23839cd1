//! What of a restored store comes later: the file RESTORING says which segments, and which objects they are made of.
//!
//! A restore that is to be served at once fetches checkpoints, logs and the ends of segments, and leaves this file. Who
//! opens the store gives its disk a [`Parts`] as the source of what is not there. The file holds no credentials.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::awaited::{Awaited, AwaitedFile, FetchedPart, PartSource};
use store::disk::Disk;
use store::filenames;
use tokio::runtime::Runtime;

use crate::location::Access;
use crate::manifest::{BackedFile, NEWEST, newest};
use crate::objects::{Limits, ObjectError, Objects};
use crate::parts::{self, PART_BYTES};
use crate::run::BackupSettings;

/// Version of RESTORING; a reader refuses any other.
pub const VERSION: u32 = 1;
/// Parts that are fetched at once in the background; what a read needs is fetched besides.
pub const THREADS: usize = 4;
/// How soon a fetch ends when the store stops.
const LOOK: Duration = Duration::from_millis(50);

/// Where a backup is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The URL or directory.
    pub from: String,
    /// The server's URL, if it is not Amazon's.
    pub endpoint: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// The file with the key of an encrypted backup.
    pub key: Option<PathBuf>,
}

/// A segment that comes later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaterFile {
    /// Its path in the store.
    pub path: PathBuf,
    /// The number of its shard.
    pub shard: u32,
    /// Its objects.
    pub file: BackedFile,
    /// So many bytes at its end are there already.
    pub end: u64,
}

/// The file RESTORING.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restoring {
    version: u32,
    /// Where the objects are.
    pub origin: Origin,
    /// What comes later.
    pub files: Vec<LaterFile>,
}

impl Origin {
    /// Where settings say that a backup is; paths become absolute, because the daemon may run elsewhere.
    pub fn of(settings: &BackupSettings) -> Origin {
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let is_directory = !settings.to.contains("://");
        let from = match is_directory {
            true => absolute(&PathBuf::from(&settings.to)).display().to_string(),
            false => settings.to.clone(),
        };
        let Access { endpoint, region, .. } = settings.access.clone();
        Origin { from, endpoint, region, key: settings.key.as_ref().map(absolute) }
    }

    /// The settings to fetch with. Credentials, and limits if they are for the same place, are taken from those of the store's
    /// own backup; otherwise the environment has them.
    pub fn settings(&self, own: Option<&BackupSettings>) -> BackupSettings {
        let access = own.map(|own| own.access.clone()).unwrap_or_default();
        let same = own.filter(|own| own.to == self.from);
        BackupSettings {
            to: self.from.clone(),
            access: Access { endpoint: self.endpoint.clone(), region: self.region.clone(), ..access },
            key: self.key.clone().or_else(|| same.and_then(|own| own.key.clone())),
            interval: Duration::ZERO,
            limits: same.map_or_else(Limits::default, |own| own.limits),
            keep: None,
            own: None,
        }
    }
}

impl Restoring {
    pub(crate) fn new(origin: Origin, files: Vec<LaterFile>) -> Restoring {
        Restoring { version: VERSION, origin, files }
    }

    /// # Errors
    /// When a path, such as that of the key, is no text.
    pub(crate) fn encode(&self) -> io::Result<Vec<u8>> {
        Ok(serde_json::to_vec(self)?)
    }

    /// Reads the file of a store in a directory; `None`: there is none, so that everything is there.
    ///
    /// # Errors
    /// When it cannot be read, is damaged, or of a newer version.
    pub fn read(store: &Path) -> Result<Option<Restoring>, String> {
        let path = filenames::restoring(store);
        let failed =
            |cause: &dyn std::fmt::Display| format!("cannot use the file {}: {cause}", path.display());
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| failed(&error))?,
        };
        let restoring: Restoring = serde_json::from_slice(&text).map_err(|error| failed(&error))?;
        match restoring.version {
            VERSION => Ok(Some(restoring)),
            version => Err(failed(&format!("it is of version {version}, and this program knows {VERSION}"))),
        }
    }

    /// The files that have not come, on a disk with the store, to be fetched from these objects.
    ///
    /// # Errors
    /// When the disk fails, or there are no threads.
    pub fn awaited(&self, disk: Arc<dyn Disk>, objects: Objects) -> io::Result<Arc<Awaited>> {
        let named = self.files.iter().map(|one| AwaitedFile {
            path: one.path.clone(),
            bytes: one.file.bytes,
            end: one.end,
        });
        Awaited::new(disk, named.collect(), Box::new(Parts::new(&self.files, objects)?))
    }
}

/// Names of parts by file, once they were fetched.
type Names = Mutex<HashMap<PathBuf, Arc<Vec<String>>>>;

/// The objects of files, fetched on a runtime of their own, so that any thread may wait for them.
struct Parts {
    /// There until it is dropped.
    runtime: Option<Runtime>,
    objects: Arc<Objects>,
    files: HashMap<PathBuf, LaterFile>,
    names: Arc<Names>,
    is_stopped: AtomicBool,
}

impl Parts {
    fn new(files: &[LaterFile], objects: Objects) -> io::Result<Parts> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("restore")
            .enable_all()
            .build()?;
        Ok(Parts {
            runtime: Some(runtime),
            objects: Arc::new(objects),
            files: files.iter().map(|one| (one.path.clone(), one.clone())).collect(),
            names: Arc::default(),
            is_stopped: AtomicBool::new(false),
        })
    }
}

impl PartSource for Parts {
    fn part_bytes(&self) -> u64 {
        PART_BYTES
    }

    fn fetch(&self, path: &Path, part: u64) -> io::Result<FetchedPart> {
        let Some(one) = self.files.get(path) else { return Err(io::ErrorKind::NotFound.into()) };
        let (sender, receiver) = mpsc::channel();
        let (objects, names) = (Arc::clone(&self.objects), Arc::clone(&self.names));
        let (path, file) = (path.to_owned(), one.file.clone());
        let work = async move {
            // Its thread may have stopped waiting.
            let _ = sender.send(fetch(&objects, &names, path, &file, part).await);
        };
        // Without a runtime, the sender is gone at once.
        self.runtime.as_ref().map(|runtime| runtime.spawn(work));
        let fetched = loop {
            match receiver.recv_timeout(LOOK) {
                Ok(fetched) => break fetched,
                Err(mpsc::RecvTimeoutError::Timeout) if !self.is_stopped.load(Ordering::SeqCst) => {}
                Err(_) => return Err(io::Error::other("the daemon stops before this part has come")),
            }
        };
        match fetched {
            Ok(plain) => Ok(FetchedPart::Bytes(plain)),
            Err(error) if error.is_loss() => {
                let (from, bytes) = parts::range(one.file.bytes, part);
                let (to, number, shard) = (from + bytes, one.file.number, one.shard);
                Ok(FetchedPart::Lost(format!(
                    "{error}; it held bytes {from} to {to} of segment {number:016x} of shard {shard}"
                )))
            }
            Err(error) => Err(io::Error::other(format!("cannot fetch what the restore lacks: {error}"))),
        }
    }

    fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
    }
}

impl Drop for Parts {
    /// Does not wait for fetches, as a runtime does by itself: the last one who holds this may be a thread that must not wait.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn fetch(
    objects: &Objects,
    names: &Names,
    path: PathBuf,
    file: &BackedFile,
    part: u64,
) -> Result<Vec<u8>, ObjectError> {
    match fetch_part(objects, names, path, file, part).await {
        Err(ObjectError::Missing(name)) if !is_backup(objects).await? => {
            Err(ObjectError::Failed(name, "there is no backup in this place now".to_string()))
        }
        fetched => fetched,
    }
}

/// Whether there is a backup at all: in a directory that is not mounted, or a bucket that is gone, everything is missing, and
/// nothing is lost for good.
async fn is_backup(objects: &Objects) -> Result<bool, ObjectError> {
    Ok(objects.look(NEWEST).await?.is_some() || newest(objects).await?.is_some())
}

async fn fetch_part(
    objects: &Objects,
    names: &Names,
    path: PathBuf,
    file: &BackedFile,
    part: u64,
) -> Result<Vec<u8>, ObjectError> {
    let known = names.lock().unwrap_or_else(PoisonError::into_inner).get(&path).cloned();
    let of_file = match known {
        Some(known) => known,
        None => {
            let fetched = Arc::new(parts::names(objects, &file.object, file.bytes).await?);
            names.lock().unwrap_or_else(PoisonError::into_inner).insert(path, Arc::clone(&fetched));
            fetched
        }
    };
    let missing = || ObjectError::Missing(file.object.clone());
    objects.get(of_file.get(part as usize).ok_or_else(missing)?).await
}
