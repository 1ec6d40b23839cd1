//! A mount from its beginning to its end.

use std::fs::OpenOptions;
use std::io;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use fuser::{Config, MountOption, Session as FuseSession, SessionACL};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

use crate::filesystem::Mounted;
use crate::options::Options;
use crate::store::Store;

/// The fewest and most threads that answer the kernel. The kernel takes them in turn, so that with more than there are
/// processors each finds less of what it needs in their caches.
const THREADS: RangeInclusive<usize> = 2..=4;

fn threads() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    processors.clamp(*THREADS.start(), *THREADS.end())
}

/// A store that is mounted.
pub struct Session {
    session: FuseSession<Mounted>,
    directory: PathBuf,
}

/// Ends a mount, from any thread.
#[derive(Clone, Debug)]
pub struct Unmounter {
    directory: PathBuf,
}

impl Session {
    /// Mounts a store, called `source` in the list of mounts, on a directory.
    ///
    /// # Errors
    /// What the system says.
    pub fn mount(store: Store, source: &str, directory: &Path, options: &Options) -> io::Result<Self> {
        let directory = directory.canonicalize()?;
        let mut config = Config::default();
        // Commas would end the name.
        let name = source.replace(',', "_");
        config.mount_options = vec![
            MountOption::FSName(name),
            MountOption::Subtype("roundel".to_string()),
            MountOption::DefaultPermissions,
            MountOption::NoDev,
            MountOption::NoSuid,
            MountOption::NoAtime,
        ];
        if options.read_only {
            config.mount_options.push(MountOption::RO);
        }
        if options.allow_other {
            config.acl = SessionACL::All;
        }
        config.n_threads = Some(threads());
        config.clone_fd = true;
        let notifier = Arc::new(Mutex::new(None));
        let mounted = Mounted::new(store, options, Arc::clone(&notifier))?;
        let session = FuseSession::new(mounted, &directory, &config)?;
        *notifier.lock().unwrap_or_else(PoisonError::into_inner) = Some(session.notifier());
        Ok(Session { session, directory })
    }

    /// What ends it.
    pub fn unmounter(&self) -> Unmounter {
        Unmounter { directory: self.directory.clone() }
    }

    /// Answers the kernel until the file system is unmounted and all files in it are closed.
    ///
    /// # Errors
    /// When the kernel's requests cannot be read.
    pub fn run(self) -> io::Result<()> {
        self.session.run()
    }
}

impl Unmounter {
    /// Takes the file system out of the tree. Programs that have files of it open can go on with these.
    ///
    /// # Errors
    /// What the system says.
    pub fn unmount(&self) -> io::Result<()> {
        match unmount(&*self.directory, UnmountFlags::DETACH) {
            // Who is not root has help.
            Err(Errno::PERM) => {
                let status = Command::new("fusermount3")
                    .args(["-u", "-z", "-q", "--"])
                    .arg(&self.directory)
                    .status()?;
                if status.success() { Ok(()) } else { Err(io::Error::other("fusermount3 cannot unmount it")) }
            }
            done => done.map_err(io::Error::from),
        }
    }
}

/// Lets this process go on without the terminal that it was started from.
///
/// # Errors
/// What the system says.
pub fn leave_terminal() -> io::Result<()> {
    let nothing = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    // A process that leads its group already stays in its session.
    rustix::process::setsid().ok();
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    Ok(())
}
