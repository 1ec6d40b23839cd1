//! Where memory comes from: a process of one command takes the system's, whatever runs longer takes mimalloc's.
//!
//! The daemon's batches come from one thread and are freed by another all day long, which mimalloc is made for. But
//! before its first word it lays out a gigabyte and asks for large pages: of the 1.45 ms of an `rrdtool info` that
//! was 0.35 ms (measured), and scripts start those thousands of times.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use mimalloc::MiMalloc;
use tool::process::Single;

/// Both; which of them is decided before anything is allocated.
pub struct Memory;

/// Set before `main`, never after: what one gave the other cannot take back.
static ONE_COMMAND: AtomicBool = AtomicBool::new(false);

// SAFETY: all calls of a process go to one allocator, and both are sound.
unsafe impl GlobalAlloc for Memory {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those of the other allocator, here and below.
        if is_one_command() { unsafe { System.alloc(layout) } } else { unsafe { MiMalloc.alloc(layout) } }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        if is_one_command() {
            unsafe { System.alloc_zeroed(layout) }
        } else {
            unsafe { MiMalloc.alloc_zeroed(layout) }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as above.
        if is_one_command() {
            unsafe { System.dealloc(place, layout) }
        } else {
            unsafe { MiMalloc.dealloc(place, layout) }
        }
    }

    #[inline]
    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        if is_one_command() {
            unsafe { System.realloc(place, layout, size) }
        } else {
            unsafe { MiMalloc.realloc(place, layout, size) }
        }
    }
}

#[inline]
fn is_one_command() -> bool {
    ONE_COMMAND.load(Ordering::Relaxed)
}

/// glibc calls it before `main`, with what `main` gets.
#[cfg(target_env = "gnu")]
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: unsafe extern "C" fn(c_int, *const *const c_char) = choose;

#[cfg(target_env = "gnu")]
unsafe extern "C" fn choose(count: c_int, words: *const *const c_char) {
    let word = |index| {
        // SAFETY: glibc gives as many texts as it says, each with a NUL behind it.
        (index < count as usize).then(|| unsafe { CStr::from_ptr(*words.add(index)) })
    };
    let words = [0, 1, 2].map(|index| word(index).map_or(&b""[..], CStr::to_bytes));
    ONE_COMMAND.store(are_one_command(words), Ordering::Relaxed);
    if is_one_command() {
        reuse_large_blocks();
    }
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

/// Whether a process of these first words does one thing of RRDtool's and ends. Of a pipe's commands there may be any
/// number.
fn are_one_command([path, first, second]: [&[u8]; 3]) -> bool {
    let program = Path::new(OsStr::from_bytes(path)).file_name().unwrap_or_default().as_bytes();
    let verb = match (program, first) {
        (b"rrdtool", verb) => verb,
        (b"rrdcached", _) => return false,
        // `roundel rrdtool VERB`, whatever it is called.
        (_, b"rrdtool") => second,
        _ => return Single::find(program).is_some(),
    };
    verb != b"-"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_of_rrdtool_are_one_command() {
        let decide = |words: [&str; 3]| are_one_command(words.map(str::as_bytes));
        for words in [
            ["rrdtool", "info", "a.rrd"],
            ["/usr/bin/rrdtool", "graph", "-"],
            ["rrdtool", "", ""],
            ["./rrdinfo", "a.rrd", ""],
            ["rrdupdate", "-", ""],
            ["roundel", "rrdtool", "info"],
        ] {
            assert!(decide(words), "{words:?}");
        }
        for words in [
            ["rrdtool", "-", ""],
            ["rrdtool", "-", "/base"],
            ["roundel", "rrdtool", "-"],
            ["roundel", "serve", ""],
            ["roundel", "", ""],
            ["rrdcached", "rrdtool", ""],
            ["", "", ""],
            ["/", "", ""],
            ["rrdtool/roundel", "query", ""],
        ] {
            assert!(!decide(words), "{words:?}");
        }
        // A test is none, so all this came from the other allocator.
        assert!(!is_one_command());
    }
}
