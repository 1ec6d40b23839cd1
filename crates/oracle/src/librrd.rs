//! Our C library where programs look for RRDtool's.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Our library. Cargo builds it beside the tests of whoever depends on the crate `librrd`.
///
/// # Errors
/// That it is not there.
pub fn our_librrd() -> io::Result<PathBuf> {
    let built = std::env::current_exe()?.with_file_name("liblibrrd.so");
    if built.exists() { Ok(built) } else { Err(io::Error::other(format!("{built:?} is not there"))) }
}

/// The directory `place/lib`, for `LD_LIBRARY_PATH`: our library under the name of RRDtool's. Tests that run at once may
/// share it.
///
/// # Errors
/// As [`our_librrd`]; what the system says.
pub fn librrd_directory(place: &Path) -> io::Result<PathBuf> {
    let (built, directory) = (our_librrd()?, place.join("lib"));
    std::fs::create_dir_all(&directory)?;
    let link = directory.join("librrd.so.8");
    if std::fs::read_link(&link).ok().as_ref() != Some(&built) {
        let new = directory.join(format!("{}-{:?}", std::process::id(), std::thread::current().id()));
        symlink(&built, &new)?;
        std::fs::rename(&new, &link)?;
    }
    Ok(directory)
}

/// Bits of randomness of addresses that GCC 12's ThreadSanitizer copes with.
const RANDOM_BITS_MAX: u32 = 28;

/// Runs a program that was built with ThreadSanitizer.
pub fn thread_sanitized(program: &Path) -> Command {
    let bits = std::fs::read_to_string("/proc/sys/vm/mmap_rnd_bits").unwrap_or_default();
    if bits.trim().parse::<u32>().is_ok_and(|bits| bits <= RANDOM_BITS_MAX) {
        return Command::new(program);
    }
    let mut command = Command::new("setarch");
    command.arg("--addr-no-randomize").arg(program);
    command
}
