//! The file-level calls: `rrd_open` and its relatives, which `rrd.h` calls deprecated.
//!
//! [`Rrd`] points to copies of the header's parts as they are in the file. They live until `rrd_free`, even after the
//! file is closed. A program that changes them writes them itself, with `rrd_seek` and `rrd_write`.

use std::ffi::{OsStr, c_char, c_int, c_uint, c_void};
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use cli::failure::system_text;
use cli::{Failure, Result};
use rrd::codec::file::{FileLayout, decode_head};

use crate::boundary::{guard, needed};
use crate::memory;

/// `RRD_READONLY`
const READ_ONLY: c_uint = 1;
/// `RRD_READWRITE`
const READ_WRITE: c_uint = 2;
/// `RRD_CREAT`
const CREATE: c_uint = 4;
/// `RRD_EXCL`
const EXCLUSIVE: c_uint = 32;
/// `RRD_READVALUES`
const READ_VALUES: c_uint = 64;
/// `RRD_LOCK`
const LOCK: c_uint = 128;

/// Bytes of `stat_head_t`.
const STAT_HEAD_BYTES: usize = 128;
/// Bytes of `ds_def_t` and of `rra_def_t`.
const DEFINITION_BYTES: usize = 120;
/// Bytes of the last update in versions 1 and 2.
const OLD_LIVE_HEAD_BYTES: usize = 8;
/// Bytes of `live_head_t`.
const LIVE_HEAD_BYTES: usize = 16;

/// `rrd_t`
#[repr(C)]
pub struct Rrd {
    stat_head: *mut c_void,
    ds_def: *mut c_void,
    rra_def: *mut c_void,
    live_head: *mut c_void,
    legacy_last_up: *mut c_void,
    pdp_prep: *mut c_void,
    cdp_prep: *mut c_void,
    rra_ptr: *mut c_void,
    rrd_value: *mut c_void,
    map_start: *mut c_void,
    map_bytes: usize,
}

impl Rrd {
    const EMPTY: Rrd = Rrd {
        stat_head: std::ptr::null_mut(),
        ds_def: std::ptr::null_mut(),
        rra_def: std::ptr::null_mut(),
        live_head: std::ptr::null_mut(),
        legacy_last_up: std::ptr::null_mut(),
        pdp_prep: std::ptr::null_mut(),
        cdp_prep: std::ptr::null_mut(),
        rra_ptr: std::ptr::null_mut(),
        rrd_value: std::ptr::null_mut(),
        map_start: std::ptr::null_mut(),
        map_bytes: 0,
    };

    /// Copies of the parts of a header.
    fn copied(header: &[u8], layout: &FileLayout, ds: usize, rra: usize) -> Rrd {
        let part = |from: usize, to: usize| memory::copy(&header[from..to]).cast::<c_void>();
        let rra_def = STAT_HEAD_BYTES + ds * DEFINITION_BYTES;
        let mut rrd = Rrd {
            stat_head: part(0, STAT_HEAD_BYTES),
            ds_def: part(STAT_HEAD_BYTES, rra_def),
            rra_def: part(rra_def, rra_def + rra * DEFINITION_BYTES),
            pdp_prep: part(layout.pdp_prep, layout.cdp_prep),
            cdp_prep: part(layout.cdp_prep, layout.rra_ptr),
            rra_ptr: part(layout.rra_ptr, layout.header_bytes),
            ..Rrd::EMPTY
        };
        // Versions 1 and 2 have no microseconds.
        let live: *mut u8 = memory::zeroed(LIVE_HEAD_BYTES);
        let bytes = &header[layout.live_head..layout.pdp_prep];
        // SAFETY: `live` has room for the longer of the two forms, and no more than that is copied.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), live, bytes.len().min(LIVE_HEAD_BYTES)) };
        rrd.live_head = live.cast();
        if bytes.len() == OLD_LIVE_HEAD_BYTES {
            rrd.legacy_last_up = part(layout.live_head, layout.pdp_prep);
        }
        rrd
    }
}

/// `rrd_file_t`
#[repr(C)]
pub struct RrdFile {
    header_len: usize,
    file_len: usize,
    pos: libc::off_t,
    pvt: *mut c_void,
    rrd: *mut Rrd,
}

/// Sets all parts to NULL.
///
/// # Safety
/// `rrd` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_init(rrd: *mut Rrd) {
    if !rrd.is_null() {
        // SAFETY: `rrd` is not NULL and writable, by this function's contract.
        unsafe { rrd.write(Rrd::EMPTY) };
    }
}

/// Frees all parts.
///
/// # Safety
/// `rrd` is NULL, or was filled by `rrd_open` or set up by `rrd_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_free(rrd: *mut Rrd) {
    if rrd.is_null() {
        return;
    }
    // SAFETY: `rrd` was set up by `rrd_init` or `rrd_open`, so each part is NULL or from C's allocator.
    unsafe {
        let parts = [
            (*rrd).stat_head,
            (*rrd).ds_def,
            (*rrd).rra_def,
            (*rrd).live_head,
            (*rrd).legacy_last_up,
            (*rrd).pdp_prep,
            (*rrd).cdp_prep,
            (*rrd).rra_ptr,
            (*rrd).rrd_value,
        ];
        parts.into_iter().for_each(|part| libc::free(part));
        rrd.write(Rrd::EMPTY);
    }
}

/// Opens `name` by the flags of `rrd.h` and fills `rrd`. Returns NULL for an error.
///
/// # Safety
/// `name` is a C string; `rrd` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_open(name: *const c_char, rrd: *mut Rrd, flags: c_uint) -> *mut RrdFile {
    guard(std::ptr::null_mut(), || {
        // SAFETY: `name` is a C string or NULL, by this function's contract, and outlives the call.
        let path = unsafe { needed(name, "file name")? };
        if rrd.is_null() {
            return Err(Failure::new("no place for the RRD given"));
        }
        let writes = flags & READ_WRITE != 0;
        let failed = |error: std::io::Error| {
            Failure::of_name("opening '", path, &format!("': {}", system_text(&error)))
        };
        if flags & (READ_ONLY | READ_WRITE) == 0 {
            return Err(Failure::of_name("opening '", path, "': neither to read nor to write"));
        }
        let mut options = OpenOptions::new();
        options.read(true).write(writes);
        if flags & CREATE != 0 && writes {
            options.create(true).create_new(flags & EXCLUSIVE != 0);
        }
        let file = options.open(Path::new(OsStr::from_bytes(path))).map_err(failed)?;
        if flags & LOCK != 0 {
            lock(&file, writes)?;
        }
        let (content, file_bytes) =
            if flags & CREATE != 0 { (Rrd::EMPTY, 0) } else { read(&file, path, flags & READ_VALUES != 0)? };
        let header_bytes = content.map_bytes;
        // SAFETY: `rrd` is not NULL (checked above) and writable, by this function's contract; the `RrdFile` was just
        // allocated for one value.
        unsafe {
            rrd.write(Rrd { map_bytes: 0, ..content });
            let opened: *mut RrdFile = memory::zeroed(1);
            opened.write(RrdFile {
                header_len: header_bytes,
                file_len: file_bytes,
                pos: header_bytes as libc::off_t,
                pvt: Box::into_raw(Box::new(file)).cast(),
                rrd,
            });
            Ok(opened)
        }
    })
}

/// The parts of a file, with the length of its header in `map_bytes`; and the file's length.
fn read(file: &File, path: &[u8], values: bool) -> Result<(Rrd, usize)> {
    let failed =
        |error: std::io::Error| Failure::of_name("reading '", path, &format!("': {}", system_text(&error)));
    let file_bytes = file.metadata().map_err(failed)?.len();
    // A header is small; its decoder refuses one that claims otherwise.
    let mut bytes = vec![0; usize::try_from(file_bytes).unwrap_or(usize::MAX).min(HEADER_BYTES_MAX)];
    file.read_exact_at(&mut bytes, 0).map_err(failed)?;
    let head = decode_head(&bytes, file_bytes)
        .map_err(|error| Failure::new(error.named(&String::from_utf8_lossy(path)).to_string()))?;
    let layout = FileLayout::of(&head.definition);
    let (ds, rra) = (head.definition.ds.len(), head.definition.rra.len());
    let header = bytes
        .get(..layout.header_bytes)
        .ok_or_else(|| Failure::of_name("'", path, "' is too small: its header is cut off"))?;
    let mut rrd = Rrd::copied(header, &layout, ds, rra);
    if values {
        let rows = layout.file_bytes.saturating_sub(layout.header_bytes as u64) as usize;
        let mut all = vec![0; rows];
        file.read_exact_at(&mut all, layout.header_bytes as u64).map_err(failed)?;
        rrd.rrd_value = memory::copy(&all).cast();
    }
    rrd.map_bytes = layout.header_bytes;
    Ok((rrd, file_bytes as usize))
}

/// Most bytes read of a file to find its header: enough for 2,000 data sources in 100 archives.
const HEADER_BYTES_MAX: usize = 64 << 20;

fn lock(file: &File, writes: bool) -> Result {
    use std::os::fd::AsRawFd;
    // SAFETY: all-zero bytes are a valid `flock`.
    let mut request: libc::flock = unsafe { std::mem::zeroed() };
    request.l_type = if writes { libc::F_WRLCK } else { libc::F_RDLCK } as i16;
    request.l_whence = libc::SEEK_SET as i16;
    // SAFETY: the descriptor is open, and F_SETLK takes a `flock`.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw mut request) } == 0 {
        Ok(())
    } else {
        Err(Failure::new("could not lock RRD"))
    }
}

/// The open file of a structure.
///
/// # Safety
/// `file` is NULL or came from `rrd_open` and was not closed.
unsafe fn opened<'a>(file: *mut RrdFile) -> Result<(&'a mut RrdFile, &'a File)> {
    // SAFETY: a file that is not NULL came from `rrd_open` and is still open, by this function's contract, so the
    // structure and the `File` that `pvt` points to are alive; C uses an open file from one thread at a time.
    unsafe {
        let file = file.as_mut().ok_or_else(|| Failure::new("no open RRD given"))?;
        let inner = file.pvt.cast::<File>().as_ref().ok_or_else(|| Failure::new("the RRD is closed"))?;
        Ok((file, inner))
    }
}

/// Closes the file; the parts of its `rrd_t` stay valid.
///
/// # Safety
/// `file` is NULL, or came from `rrd_open` and is still open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_close(file: *mut RrdFile) -> c_int {
    guard(-1, || {
        // SAFETY: `file` is NULL or open, by this function's contract; it is not used after this.
        unsafe {
            let (structure, _) = opened(file)?;
            drop(Box::from_raw(structure.pvt.cast::<File>()));
            libc::free(file.cast());
        }
        Ok(0)
    })
}

/// Reads at the position. Returns the number of bytes read, or -1.
///
/// # Safety
/// As [`rrd_close`]; `buffer` has room for `count` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_read(file: *mut RrdFile, buffer: *mut c_void, count: usize) -> isize {
    guard(-1, || {
        // SAFETY: `file` is NULL or open, and `buffer` has room for `count` bytes, by this function's contract.
        let ((structure, inner), room) =
            unsafe { (opened(file)?, std::slice::from_raw_parts_mut(buffer.cast::<u8>(), count)) };
        let read =
            inner.read_at(room, structure.pos as u64).map_err(|error| Failure::new(system_text(&error)))?;
        structure.pos += read as libc::off_t;
        Ok(read as isize)
    })
}

/// Writes at the position. Returns the number of bytes written, or -1.
///
/// # Safety
/// As [`rrd_close`]; `buffer` has `count` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_write(file: *mut RrdFile, buffer: *const c_void, count: usize) -> isize {
    guard(-1, || {
        // SAFETY: `file` is NULL or open, and `buffer` has `count` bytes, by this function's contract.
        let ((structure, inner), bytes) =
            unsafe { (opened(file)?, std::slice::from_raw_parts(buffer.cast::<u8>(), count)) };
        inner.write_all_at(bytes, structure.pos as u64).map_err(|error| Failure::new(system_text(&error)))?;
        structure.pos += count as libc::off_t;
        structure.file_len = structure.file_len.max(structure.pos as usize);
        Ok(count as isize)
    })
}

/// Moves the position like `lseek`. Returns 0, or 1 when it would be before the start.
///
/// # Safety
/// As [`rrd_close`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_seek(file: *mut RrdFile, offset: libc::off_t, whence: c_int) -> libc::off_t {
    guard(1, || {
        // SAFETY: `file` is NULL or open, by this function's contract.
        let (structure, _) = unsafe { opened(file)? };
        let from = match whence {
            libc::SEEK_CUR => structure.pos,
            libc::SEEK_END => structure.file_len as libc::off_t,
            _ => 0,
        };
        let wanted = from.checked_add(offset).filter(|&wanted| wanted >= 0);
        structure.pos =
            wanted.ok_or_else(|| Failure::new("attempting to seek before the start of the RRD"))?;
        Ok(0)
    })
}

/// The position, or -1.
///
/// # Safety
/// As [`rrd_close`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_tell(file: *mut RrdFile) -> libc::off_t {
    // SAFETY: `file` is NULL or open, by this function's contract.
    guard(-1, || unsafe { opened(file) }.map(|(structure, _)| structure.pos))
}

/// Makes the system write to the disk what was written.
///
/// # Safety
/// As [`rrd_close`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_flush(file: *mut RrdFile) {
    guard((), || {
        // SAFETY: `file` is NULL or open, by this function's contract.
        let (_, inner) = unsafe { opened(file)? };
        inner.sync_data().map_err(|error| Failure::new(system_text(&error)))
    });
}

/// Tells the system that the rows will not be needed again.
///
/// # Safety
/// As [`rrd_close`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_dontneed(file: *mut RrdFile, _rrd: *mut Rrd) {
    use std::os::fd::AsRawFd;
    guard((), || {
        // SAFETY: `file` is NULL or open, by this function's contract; `posix_fadvise` changes no data.
        unsafe {
            let (structure, inner) = opened(file)?;
            let from = structure.header_len as libc::off_t;
            libc::posix_fadvise(inner.as_raw_fd(), from, 0, libc::POSIX_FADV_DONTNEED);
        }
        Ok(())
    });
}

/// Locks the file against writers in other processes. Returns 0, or -1.
///
/// # Safety
/// As [`rrd_close`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_lock(file: *mut RrdFile) -> c_int {
    guard(-1, || {
        // SAFETY: `file` is NULL or open, by this function's contract.
        let (_, inner) = unsafe { opened(file)? };
        lock(inner, true).map(|()| 0)
    })
}
