//! The command line: `rrdtool`, and by their names `rrdupdate`, `rrdinfo` and `rrdcreate`.
//!
//! Scripts start it thousands of times, and then it lives for a millisecond: what is linked and set up is what it
//! costs. So it is an executable of its own, without the daemon; it uses the system's allocator, because mimalloc,
//! which the daemon's threads need, reserves a gigabyte of addresses first; and `main` is C's, because before Rust's
//! the standard library reads `/proc/self/maps` and makes a stack for signals: a tenth of the start (measured).

#![no_main]

use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::panic;
use std::path::Path;

use cli::process;

/// Status of a process that has panicked, as Rust's own `main` has it.
const PANICKED: c_int = 101;

/// Called by C's start code.
///
/// # Safety
/// `words` are `count` texts, each with a NUL at its end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn main(count: c_int, words: *const *const c_char) -> c_int {
    let word = |index| {
        // SAFETY: the caller's promise; the texts live as long as the process.
        let word = unsafe { CStr::from_ptr(*words.add(index)) };
        OsStr::from_bytes(word.to_bytes()).to_os_string()
    };
    let words: Vec<OsString> = (0..usize::try_from(count).unwrap_or(0)).map(word).collect();
    let status = panic::catch_unwind(|| run(&words)).map_or(PANICKED, c_int::from);
    // SAFETY: takes no memory. All output is sent by now, and no library has anything to do at the end.
    unsafe { libc::_exit(status) }
}

fn run(words: &[OsString]) -> u8 {
    prepare_process();
    if words.get(1).is_some_and(|verb| verb == "graph" || verb == "graphv") {
        fill_heap();
    }
    let (called, words) = words.split_first().map_or((OsStr::new(""), words), |(first, rest)| (first, rest));
    let name = Path::new(called).file_name().unwrap_or_default();
    // By any other name it is rrdtool, too.
    process::run(name, words).or_else(|| process::run(OsStr::new("rrdtool"), words)).unwrap_or_default()
}

/// What Rust's start code does that matters here, and what makes the system's allocator suit one command.
fn prepare_process() {
    for descriptor in 0..3 {
        // SAFETY: no memory is passed but a constant text. A closed standard stream is opened on nothing: the next
        // file would get its number, and what is printed would be written into it.
        unsafe {
            if libc::fcntl(descriptor, libc::F_GETFD) == -1 {
                libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
            }
        }
    }
    // SAFETY: no handler is installed. A reader that has gone is an error of the write.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    reuse_large_blocks();
}

/// Takes large blocks from the heap, too, and the heap in large pieces: what one step of a graph gives back the next
/// one takes, and every page that is not new saves a microsecond.
#[cfg(target_env = "gnu")]
fn reuse_large_blocks() {
    // SAFETY: options and numbers that glibc knows; it refuses what it does not like.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 32 << 20);
        libc::mallopt(libc::M_TOP_PAD, 1 << 20);
    }
}

#[cfg(not(target_env = "gnu"))]
fn reuse_large_blocks() {}

/// Has the heap's first megabyte given at once: a picture needs most of it, and page by page takes three times as long.
#[cfg(target_env = "gnu")]
fn fill_heap() {
    const PAGE_BYTES: usize = 4096;
    // SAFETY: `malloc` and `free` make the heap begin; from the block's end on it belongs to nobody yet. Its pages are
    // given, and nothing is written to them. A kernel that does not know how leaves it as it is.
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
