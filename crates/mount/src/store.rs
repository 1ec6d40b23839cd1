//! What is asked of the daemon, and what its errors are in a file system.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use client::daemon::files::{Part, PartRequest, is_too_large};
use client::{ClientError, Daemon, Wire};
use protocol::frames::code::ErrorCode;
use protocol::rrdcached::files::{Entry, FileStat};
use rustix::io::Errno;

/// How long a daemon may take to answer: then the program gets EIO.
pub const PATIENCE: Duration = Duration::from_secs(15);
/// How long a daemon that has not answered is not asked again: requests that wait for those before them would else wait as often.
const REST: Duration = Duration::from_secs(3);

/// The result of an operation of the file system.
pub type Result<T = (), E = Errno> = std::result::Result<T, E>;

/// The store of a daemon.
#[derive(Debug)]
pub struct Store {
    daemon: Daemon,
    /// For images that no frame can hold.
    text: Daemon,
    /// Names were changed from here that the daemon's list may not have.
    names_changed: AtomicBool,
    /// When the daemon did not answer the last time.
    hung: Mutex<Option<Instant>>,
}

/// A whole RRD as it was at one moment.
#[derive(Clone, Debug)]
pub struct Image {
    /// Size, time and rights.
    pub stat: FileStat,
    /// The version of the RRD.
    pub version: u64,
    /// The bytes of the standard `.rrd` file.
    pub bytes: Arc<Vec<u8>>,
}

/// An RRD, of which a version is known.
#[derive(Clone, Debug)]
pub enum Since {
    /// It is of that version. Size, time and rights are these.
    Unchanged(FileStat),
    /// It is of another one.
    Changed(Image),
}

impl Store {
    /// The store of the daemon at an address.
    pub fn at(address: &str) -> Self {
        let daemon = |wire| Daemon::new(address.as_bytes(), wire).with_patience(PATIENCE);
        let names_changed = AtomicBool::new(true);
        Store {
            daemon: daemon(Wire::Frames),
            text: daemon(Wire::Text),
            names_changed,
            hung: Mutex::default(),
        }
    }

    /// The same store by other connections, for a thread whose requests must not make others wait.
    #[must_use]
    pub fn another(&self) -> Self {
        Self::at(&String::from_utf8_lossy(self.daemon.address()))
    }

    /// Checks that the daemon answers and knows the commands that are needed.
    ///
    /// # Errors
    /// Why not, for people.
    pub fn check(&self) -> std::result::Result<(), String> {
        match self.daemon.stat(b"/") {
            Ok(_) => Ok(()),
            Err(error) if error.is(ErrorCode::UnknownCommand) => {
                Err("the daemon does not know STAT: it is rrdcached, or an older Roundel".to_string())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Asks the daemon, unless it has just not answered in time.
    fn ask<T>(&self, ask: impl FnOnce() -> Result<T, ClientError>) -> Result<T, ClientError> {
        let hung = || self.hung.lock().unwrap_or_else(PoisonError::into_inner);
        if hung().is_some_and(|at| at.elapsed() < REST) {
            return Err(ClientError::Lost);
        }
        let begun = Instant::now();
        let answer = ask();
        let has_not_come = matches!(answer, Err(ClientError::Lost | ClientError::Connect(_)));
        if has_not_come && begun.elapsed() > PATIENCE / 2 {
            *hung() = Some(Instant::now());
        }
        answer
    }

    /// Asks for something that changes nothing, once more if the connection had ended since the last request.
    fn read<T>(&self, daemon: &Daemon, ask: impl Fn(&Daemon) -> Result<T, ClientError>) -> Result<T> {
        let answer = match self.ask(|| ask(daemon)) {
            Err(ClientError::Lost) => {
                daemon.disconnect();
                self.ask(|| ask(daemon))
            }
            answer => answer,
        };
        answer.map_err(|error| errno(&error))
    }

    /// What is known of an RRD or directory.
    ///
    /// # Errors
    /// ENOENT when there is neither; EIO when the daemon does not answer.
    pub fn stat(&self, path: &[u8]) -> Result<Entry> {
        check(path)?;
        self.read(&self.daemon, |daemon| daemon.stat(path))
    }

    /// A whole RRD; `known` is returned if it is still of that version.
    ///
    /// # Errors
    /// As [`Store::stat`].
    pub fn image(&self, path: &[u8], known: Option<Image>) -> Result<Image> {
        match (self.image_since(path, known.as_ref().map(|known| known.version))?, known) {
            (Since::Changed(image), _) => Ok(image),
            (Since::Unchanged(stat), Some(known)) => Ok(Image { stat, ..known }),
            (Since::Unchanged(_), None) => Err(Errno::IO),
        }
    }

    /// A whole RRD, if it is not of this version.
    ///
    /// # Errors
    /// As [`Store::stat`].
    pub fn image_since(&self, path: &[u8], version: Option<u64>) -> Result<Since> {
        check(path)?;
        let ask = |daemon: &Daemon| match daemon.image(path, version) {
            // What the daemon says is handled below.
            Err(error) if is_too_large(&error) => Ok(None),
            image => image.map(Some),
        };
        let image = match self.read(&self.daemon, ask)? {
            Some(image) => image,
            None => self.read(&self.text, |daemon| daemon.image(path, version))?,
        };
        match image.entry {
            Entry::Rrd(stat, now) if version.is_some() && now == version => Ok(Since::Unchanged(stat)),
            Entry::Rrd(stat, Some(version)) if image.bytes.len() as u64 == stat.bytes => {
                Ok(Since::Changed(Image { stat, version, bytes: Arc::new(image.bytes) }))
            }
            _ => Err(Errno::IO),
        }
    }

    /// A part of a directory, in which every change is that was made from here.
    ///
    /// # Errors
    /// EIO when the daemon does not answer.
    pub fn entries(&self, request: &PartRequest<'_>) -> Result<Part> {
        check(request.directory)?;
        let changed = self.names_changed.swap(false, Ordering::AcqRel);
        let request = PartRequest { fresh: request.fresh || changed, ..*request };
        let part = self.read(&self.daemon, |daemon| daemon.entries(&request));
        if part.is_err() && changed {
            self.names_changed.store(true, Ordering::Release);
        }
        part
    }

    /// Does what changes names.
    fn change_names<T>(&self, change: impl FnOnce(&Daemon) -> Result<T, ClientError>) -> Result {
        let done = self.ask(|| change(&self.daemon));
        self.names_changed.store(true, Ordering::Release);
        done.map(|_| ()).map_err(|error| errno(&error))
    }

    /// Updates an RRD of this version by one reading; returns the version that it then has.
    ///
    /// # Errors
    /// ESTALE when it is of another version.
    pub fn update(&self, path: &[u8], version: u64, reading: &[u8]) -> Result<u64> {
        check(path)?;
        self.ask(|| self.daemon.change(path, version, &[reading])).map_err(|error| errno(&error))
    }

    /// Replaces an RRD of this version; returns the version that it then has.
    ///
    /// # Errors
    /// ESTALE when it is of another version.
    pub fn replace(&self, path: &[u8], version: u64, file: &[u8]) -> Result<u64> {
        check(path)?;
        self.ask(|| self.daemon.replace(path, version, file)).map_err(|error| errno(&error))
    }

    /// Takes in a whole file, in place of an RRD of that name unless `no_overwrite`.
    ///
    /// # Errors
    /// EEXIST; EINVAL when the bytes are no RRD.
    pub fn import(&self, path: &[u8], file: &[u8], no_overwrite: bool) -> Result {
        check(path)?;
        self.change_names(|daemon| daemon.import(path, file, no_overwrite))
    }

    /// Renames an RRD; one that has the other name is removed.
    ///
    /// # Errors
    /// ENOENT when there is none.
    pub fn rename(&self, from: &[u8], to: &[u8]) -> Result {
        check(from)?;
        check(to)?;
        self.change_names(|daemon| daemon.ask("rename", &[from, to]))
    }

    /// Removes an RRD.
    ///
    /// # Errors
    /// ENOENT when there is none.
    pub fn remove(&self, path: &[u8]) -> Result {
        check(path)?;
        self.change_names(|daemon| daemon.ask("remove", &[path]))
    }
}

/// A line feed cannot be part of a request, so no RRD has it in its name here.
fn check(path: &[u8]) -> Result {
    if path.contains(&b'\n') { Err(Errno::NOENT) } else { Ok(()) }
}

/// The error number that says best what a daemon says.
fn errno(error: &ClientError) -> Errno {
    match error {
        ClientError::Refused { code, .. } => match code {
            ErrorCode::NoSuchRrd => Errno::NOENT,
            ErrorCode::Exists => Errno::EXIST,
            ErrorCode::Permission => Errno::ACCESS,
            ErrorCode::DiskFull => Errno::NOSPC,
            ErrorCode::Changed | ErrorCode::IllegalTime => Errno::STALE,
            ErrorCode::Unsupported => Errno::OPNOTSUPP,
            ErrorCode::UnknownCommand => Errno::NOSYS,
            ErrorCode::Poisoned | ErrorCode::Damaged | ErrorCode::Stopping | ErrorCode::Fenced => Errno::IO,
            ErrorCode::Syntax | ErrorCode::Other | ErrorCode::Unavailable => Errno::INVAL,
        },
        ClientError::LineBreak => Errno::NOENT,
        _ => Errno::IO,
    }
}
