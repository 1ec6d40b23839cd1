//! The command line: `rrdtool`, and under their names `rrdupdate`, `rrdinfo` and `rrdcreate`.
//!
//! Scripts start it thousands of times, and each process lives for a millisecond, so linking and setup
//! dominate its cost. Therefore it is a separate executable without the daemon. It uses the system's
//! allocator, because mimalloc, which suits the daemon's threads, first reserves a gigabyte of address space.
//! And `main` is C's, because Rust's start code reads `/proc/self/maps` and sets up a signal stack: a tenth
//! of the start (measured).

#![no_main]

use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::panic;
use std::path::Path;

use cli::process;

/// Exit status after a panic, as in Rust's own `main`.
const PANICKED: c_int = 101;

/// Called by C's start code.
///
/// # Safety
/// `words` must be `count` texts, each terminated by a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn main(count: c_int, words: *const *const c_char) -> c_int {
    let word = |index| {
        // SAFETY: guaranteed by the caller; the texts live as long as the process.
        let word = unsafe { CStr::from_ptr(*words.add(index)) };
        OsStr::from_bytes(word.to_bytes()).to_os_string()
    };
    let words: Vec<OsString> = (0..usize::try_from(count).unwrap_or(0)).map(word).collect();
    let status = panic::catch_unwind(|| run(&words)).map_or(PANICKED, c_int::from);
    // SAFETY: no memory is passed. All output has been flushed, and no library needs to run code at exit.
    unsafe { libc::_exit(status) }
}

fn run(words: &[OsString]) -> u8 {
    prepare_process();
    if words.get(1).is_some_and(|verb| verb == "graph" || verb == "graphv") {
        fill_heap();
    }
    let (called, words) = words.split_first().map_or((OsStr::new(""), words), |(first, rest)| (first, rest));
    let name = Path::new(called).file_name().unwrap_or_default();
    // Under any other name it is rrdtool too.
    process::run(name, words).or_else(|| process::run(OsStr::new("rrdtool"), words)).unwrap_or_default()
}

/// The necessary part of Rust's start code, and settings that make the system's allocator suit one command.
fn prepare_process() {
    for descriptor in 0..3 {
        // SAFETY: the only memory passed is a constant text. Closed standard streams are opened on /dev/null;
        // otherwise the next file would get their number, and output would be written into it.
        unsafe {
            if libc::fcntl(descriptor, libc::F_GETFD) == -1 {
                libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
            }
        }
    }
    // SAFETY: no handler is installed. Writing to a closed pipe becomes an error of the write.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    reuse_large_blocks();
}

/// Makes the allocator take large blocks from the heap too, grow the heap in large steps and keep 64 MB of it: memory
/// freed by one step of a graph, or one command of a session, is reused by the next, and each page that is not new
/// saves a microsecond.
#[cfg(target_env = "gnu")]
fn reuse_large_blocks() {
    // SAFETY: only options and numbers that glibc knows; it ignores others.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 32 << 20);
        libc::mallopt(libc::M_TOP_PAD, 1 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 20);
    }
}

#[cfg(not(target_env = "gnu"))]
fn reuse_large_blocks() {}

/// Has the heap's first megabyte given at once: a picture needs most of it, and page by page takes three times as long.
#[cfg(target_env = "gnu")]
fn fill_heap() {
    const PAGE_BYTES: usize = 4096;
    // SAFETY: `malloc` and `free` create the heap; nothing uses its part after the block yet. The pages there are
    // only populated, nothing is written to them. A kernel without that function changes nothing.
    unsafe {
        let block = libc::malloc(PAGE_BYTES);
        let (start, end) = ((block as usize).next_multiple_of(PAGE_BYTES), libc::sbrk(0) as usize);
        if !block.is_null() && start < end {
            libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_POPULATE_WRITE);
        }
        libc::free(block);
    }
}

#[cfg(not(target_env = "gnu"))]
fn fill_heap() {}
