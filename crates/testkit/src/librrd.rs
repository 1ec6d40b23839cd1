//! Our C library in place of RRDtool's.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Our library. Cargo builds it beside the tests of every crate that depends on `librrd`.
///
/// # Errors
/// The library is missing.
pub fn our_librrd() -> io::Result<PathBuf> {
    let built = std::env::current_exe()?.with_file_name("liblibrrd.so");
    if built.exists() { Ok(built) } else { Err(io::Error::other(format!("{built:?} is not there"))) }
}

/// The directory `parent/lib`, for `LD_LIBRARY_PATH`: our library under the name of RRDtool's. Concurrent tests may
/// share it.
///
/// # Errors
/// As [`our_librrd`], and those of the file system.
pub fn librrd_directory(parent: &Path) -> io::Result<PathBuf> {
    let (built, directory) = (our_librrd()?, parent.join("lib"));
    std::fs::create_dir_all(&directory)?;
    let link = directory.join("librrd.so.8");
    if std::fs::read_link(&link).ok().as_ref() != Some(&built) {
        let new = directory.join(format!("{}-{:?}", std::process::id(), std::thread::current().id()));
        symlink(&built, &new)?;
        std::fs::rename(&new, &link)?;
    }
    Ok(directory)
}

/// Most bits of address randomness that GCC 12's ThreadSanitizer tolerates.
const RANDOM_BITS_MAX: u32 = 28;

/// A command that runs a program built with ThreadSanitizer.
pub fn thread_sanitized(program: &Path) -> Command {
    let bits = std::fs::read_to_string("/proc/sys/vm/mmap_rnd_bits").unwrap_or_default();
    if bits.trim().parse::<u32>().is_ok_and(|bits| bits <= RANDOM_BITS_MAX) {
        return Command::new(program);
    }
    let mut command = Command::new("setarch");
    command.arg("--addr-no-randomize").arg(program);
    command
}
