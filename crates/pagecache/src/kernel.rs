//! What the kernel says about the pages of an open file: `mincore` and `cachestat`, which `rustix` lacks.
//!
//! Neither reads the file nor changes what is cached. Both answer only to users who own the file or may write to it; to others Linux
//! says that all of it is in memory (`mincore`, since 5.2) or nothing (`cachestat`: EPERM), so that a secret cannot be guessed.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

/// The system call's number, which is the same on all architectures.
const CACHESTAT: libc::c_long = 451;
/// Pages that are looked at with one mapping: a gigabyte of address space, a quarter of a megabyte of answer.
const WINDOW_PAGES: u64 = 1 << 18;

/// What `cachestat` counts, in pages.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// In the page cache.
    pub cached: u64,
    /// Of them changed and not yet being written.
    pub dirty: u64,
    /// Of them being written.
    pub writeback: u64,
    /// Dropped, of which the kernel still knows.
    pub evicted: u64,
    /// Of them so recently that reading them again would show memory to be short.
    pub recently_evicted: u64,
}

#[repr(C)]
struct Span {
    offset: u64,
    length: u64,
}

/// Bytes in a page of this machine.
pub fn page_bytes() -> u64 {
    // SAFETY: reads a constant of the system.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// Whether the kernel says the truth about a file's pages: to who owns it, may write to it, or is root.
pub fn answers(file: impl AsFd) -> bool {
    let file = file.as_fd();
    let user = rustix::process::geteuid();
    if user.is_root() || rustix::fs::fstat(file).is_ok_and(|stat| stat.st_uid == user.as_raw()) {
        return true;
    }
    let flags = libc::AT_EMPTY_PATH | libc::AT_EACCESS;
    // SAFETY: asks about an open file; the name is empty and ends with a zero.
    unsafe { libc::faccessat(file.as_raw_fd(), c"".as_ptr(), libc::W_OK, flags) == 0 }
}

/// Counts the pages of a whole file.
///
/// # Errors
/// `ENOSYS` before Linux 6.5, `EPERM` for who neither owns the file nor may write to it, `EOPNOTSUPP` for huge pages.
pub fn cachestat(file: impl AsFd) -> io::Result<CacheCounts> {
    let span = Span { offset: 0, length: 0 };
    let mut counts = CacheCounts::default();
    // SAFETY: both structures have the kernel's layout and live until the call returns; flags must be 0.
    let result = unsafe {
        libc::syscall(
            CACHESTAT,
            file.as_fd().as_raw_fd(),
            ptr::from_ref(&span),
            ptr::from_mut(&mut counts),
            0 as libc::c_uint,
        )
    };
    if result == 0 { Ok(counts) } else { Err(io::Error::last_os_error()) }
}

/// Looks at each page of the first `bytes` bytes of a file: `visit` gets the number of a page and for it and those that follow
/// whether they are in memory (lowest bit of each byte), in pieces of at most [`WINDOW_PAGES`].
///
/// # Errors
/// When the file cannot be mapped: it is none, or its file system has no mappings.
pub fn mincore(file: impl AsFd, bytes: u64, visit: &mut dyn FnMut(u64, &[u8])) -> io::Result<()> {
    let page_bytes = page_bytes();
    let pages = bytes.div_ceil(page_bytes);
    let mut answer = vec![0u8; pages.min(WINDOW_PAGES) as usize];
    let mut first = 0;
    while first < pages {
        let count = (pages - first).min(WINDOW_PAGES);
        let answer = &mut answer[..count as usize];
        look(file.as_fd().as_raw_fd(), first * page_bytes, count * page_bytes, answer)?;
        visit(first, answer);
        first += count;
    }
    Ok(())
}

/// Asks about one window; `answer` has a byte for each of its pages.
fn look(file: libc::c_int, offset: u64, length: u64, answer: &mut [u8]) -> io::Result<()> {
    let too_far = || io::Error::from_raw_os_error(libc::EOVERFLOW);
    let offset = libc::off_t::try_from(offset).map_err(|_| too_far())?;
    let length = usize::try_from(length).map_err(|_| too_far())?;
    debug_assert_eq!(answer.len() as u64, (length as u64).div_ceil(page_bytes()));
    // SAFETY: a new mapping at an address that the kernel chooses. Nothing can be read or written through it, and it is gone
    // before this function returns.
    let at = unsafe { libc::mmap(ptr::null_mut(), length, libc::PROT_NONE, libc::MAP_SHARED, file, offset) };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping has `length` bytes, the answer a byte for each page of it.
    let result = unsafe { libc::mincore(at, length, answer.as_mut_ptr()) };
    let failure = io::Error::last_os_error();
    // SAFETY: unmaps what was mapped above.
    unsafe { libc::munmap(at, length) };
    if result == 0 { Ok(()) } else { Err(failure) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn both_calls_agree() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![1; 5 * page_bytes() as usize + 1]).unwrap();
        let mut seen = Vec::new();
        mincore(&file, 5 * page_bytes() + 1, &mut |first, pages| {
            assert_eq!(first, 0);
            seen.extend(pages.iter().map(|page| page & 1));
        })
        .unwrap();
        assert_eq!(seen, [1; 6]);
        match cachestat(&file) {
            Ok(counts) => assert_eq!(counts.cached, 6),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOSYS)),
        }
    }

    /// As another user, for which a thread of its own changes its identity.
    #[test]
    fn files_of_others_are_not_told() {
        if !rustix::process::geteuid().is_root() {
            return testkit::skip("only root becomes another user");
        }
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let file = std::fs::File::open(&path).unwrap();
        assert!(answers(&file));
        let seen = std::thread::spawn(move || {
            // SAFETY: the system call itself, which changes this thread only, and no memory.
            let result = unsafe { libc::syscall(libc::SYS_setresuid, 65_534, 65_534, 65_534) };
            assert_eq!(result, 0);
            answers(&file)
        });
        assert!(!seen.join().unwrap());
    }

    #[test]
    fn what_has_no_pages_says_so() {
        let (reader, _writer) = std::io::pipe().unwrap();
        assert!(mincore(&reader, 4096, &mut |_, _| {}).is_err());
        assert!(mincore(&reader, 0, &mut |_, _| panic!("nothing is there")).is_ok());
    }
}
