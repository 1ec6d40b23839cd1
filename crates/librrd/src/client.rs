//! `rrd_client.h`: the daemon that a process is connected to. Connections are kept between calls.

use std::ffi::{c_char, c_double, c_int, c_ulong};
use std::sync::{Arc, Mutex, PoisonError};

use cli::daemon::{self, Link};
use cli::verb::{first, info};
use cli::{Failure, Result};
use client::{ClientError, Daemon};
use protocol::rrdcached::client::Answer;

use crate::boundary::{daemons, guard, list, needed};
use crate::errors;
use crate::fetch::{Slots, request};
use crate::info::{Info, List};
use crate::memory::{self, bytes};

/// The address that [`rrdc_connect`] connected this process to. A forked child is connected to it, too, through its own
/// connection.
static CONNECTED: Mutex<Option<Vec<u8>>> = Mutex::new(None);

/// Runs `body` with the address that this process is connected to, if there is one.
fn with<T>(body: impl FnOnce(&mut Option<Vec<u8>>) -> Result<T>) -> Result<T> {
    body(&mut CONNECTED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Runs `body` with the connected daemon; reconnects if the connection has ended.
fn with_daemon<T>(body: impl FnOnce(&Arc<Daemon>) -> Result<T, ClientError>) -> Result<T> {
    let address = with(|held| held.clone().ok_or_else(|| Failure::new("Not connected to rrdcached")))?;
    let daemon = Link::sharing(daemons()).connect(&address)?;
    body(&daemon).map_err(|error| daemon::failure(&address, error))
}

/// Sends a command about `file`.
fn ask(command: &str, file: Option<&[u8]>, words: &[&[u8]]) -> Result<Answer> {
    with_daemon(|daemon| {
        let name = file.map(|file| name_at(daemon, file)).transpose()?;
        let words: Vec<&[u8]> = name.as_deref().into_iter().chain(words.iter().copied()).collect();
        daemon.ask(command, &words)
    })
}

/// What `file` is called at a daemon.
fn name_at(daemon: &Daemon, file: &[u8]) -> Result<Vec<u8>, ClientError> {
    daemon.name(file, environment("RRDCACHED_STRIPPATH").as_deref())
}

/// A variable of the environment.
fn environment(name: &str) -> Option<Vec<u8>> {
    use std::os::unix::ffi::OsStringExt;
    std::env::var_os(name).map(OsStringExt::into_vec)
}

/// The address for a call: its own, or RRDCACHED_ADDRESS.
///
/// # Safety
/// `address` is NULL or a C string.
unsafe fn address(address: *const c_char) -> Option<Vec<u8>> {
    // SAFETY: `address` is NULL or a C string, by this function's contract.
    let given = unsafe { bytes(address) }.filter(|address| !address.is_empty());
    given
        .map(<[u8]>::to_vec)
        .or_else(|| environment("RRDCACHED_ADDRESS"))
        .filter(|address| !address.is_empty())
}

/// Connects to `addr`, or to RRDCACHED_ADDRESS when that is NULL. Without either it does nothing and succeeds. Returns
/// the system's error number for a connection that fails, -1 for any other error.
///
/// # Safety
/// `addr` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_connect(addr: *const c_char) -> c_int {
    guard(-1, || {
        // SAFETY: `addr` is NULL or a C string, by this function's contract.
        let Some(address) = (unsafe { address(addr) }) else { return Ok(0) };
        let reached = daemons().at(&address).connect();
        with(|held| {
            *held = reached.is_ok().then_some(address);
            Ok(())
        })?;
        Ok(match reached {
            Ok(()) => 0,
            Err(error) => {
                let number = match &error {
                    ClientError::Connect(error) => error.raw_os_error(),
                    _ => None,
                };
                errors::keep(daemon::failure(b"", error).text());
                number.unwrap_or(-1)
            }
        })
    })
}

/// Whether there is a connection to `addr`, or to any daemon when that is NULL.
///
/// # Safety
/// `addr` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_is_connected(addr: *const c_char) -> c_int {
    guard(0, || {
        // SAFETY: `addr` is NULL or a C string, by this function's contract.
        let address = unsafe { address(addr) };
        with(|held| {
            let same = held.is_some() && *held == address;
            Ok(c_int::from(same))
        })
    })
}

/// Whether there is a connection.
#[unsafe(no_mangle)]
pub extern "C" fn rrdc_is_any_connected() -> c_int {
    guard(0, || with(|held| Ok(c_int::from(held.is_some()))))
}

/// Ends the connection.
#[unsafe(no_mangle)]
pub extern "C" fn rrdc_disconnect() -> c_int {
    guard(-1, || {
        with(|held| {
            if let Some(address) = held.take() {
                daemons().at(&address).disconnect();
            }
            Ok(0)
        })
    })
}

/// Updates `file` with `count` readings.
///
/// # Safety
/// `file` is NULL or a C string, `values` has `count` C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_update(
    file: *const c_char,
    count: c_int,
    values: *const *const c_char,
) -> c_int {
    guard(-1, || {
        // SAFETY: `file` is NULL or a C string and `values` has `count` C strings, by this function's contract.
        let (file, values) = unsafe { (needed(file, "file name")?, list(count, values)) };
        with_daemon(|daemon| {
            let name = name_at(daemon, file)?;
            daemon.update(&name, &values).map(|()| 0)
        })
    })
}

macro_rules! about_file {
    ($($(#[$doc:meta])* $name:ident = $command:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// `file` is NULL or a C string.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(file: *const c_char) -> c_int {
            guard(-1, || {
                // SAFETY: `file` is NULL or a C string, by this function's contract.
                let file = unsafe { needed(file, "file name")? };
                ask($command, Some(file), &[]).map(|_| 0)
            })
        }
    )*};
}

about_file! {
    /// Makes the daemon write the pending updates of `file`.
    rrdc_flush = "flush";
    /// Makes the daemon discard the pending updates of `file`.
    rrdc_forget = "forget";
}

/// Makes the daemon write all pending updates.
#[unsafe(no_mangle)]
pub extern "C" fn rrdc_flushall() -> c_int {
    guard(-1, || ask("flushall", None, &[]).map(|_| 0))
}

/// Whether the daemon answers: 1 or 0.
#[unsafe(no_mangle)]
pub extern "C" fn rrdc_ping() -> c_int {
    guard(0, || ask("ping", None, &[]).map(|_| 1))
}

/// Flushes `file` if `addr` or RRDCACHED_ADDRESS names a daemon.
///
/// # Safety
/// `file` and `addr` are NULL or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_flush_if_daemon(addr: *const c_char, file: *const c_char) -> c_int {
    // SAFETY: the arguments are NULL or C strings, by this function's contract.
    unsafe {
        if address(addr).is_none() && rrdc_is_any_connected() == 0 {
            return 0;
        }
        if rrdc_connect(addr) != 0 { -1 } else { rrdc_flush(file) }
    }
}

/// As [`rrdc_flush_if_daemon`], for everything.
///
/// # Safety
/// `addr` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_flushall_if_daemon(addr: *const c_char) -> c_int {
    // SAFETY: the arguments are NULL or C strings, by this function's contract.
    unsafe {
        if address(addr).is_none() && rrdc_is_any_connected() == 0 {
            return 0;
        }
        if rrdc_connect(addr) != 0 { -1 } else { rrdc_flushall() }
    }
}

/// `rrdinfo(1)` of `file`; NULL for an error.
///
/// # Safety
/// `file` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_info(file: *const c_char) -> *mut Info {
    guard(std::ptr::null_mut(), || {
        // SAFETY: `file` is NULL or a C string, by this function's contract.
        let file = unsafe { needed(file, "file name")? };
        let answer = ask("info", Some(file), &[])?;
        Ok(info::items(&answer)?.iter().collect::<List>().into_raw())
    })
}

/// The time of the last update of `file`; -1 for an error.
///
/// # Safety
/// `file` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_last(file: *const c_char) -> libc::time_t {
    guard(-1, || {
        // SAFETY: `file` is NULL or a C string, by this function's contract.
        let file = unsafe { needed(file, "file name")? };
        Ok(first::moment(&ask("last", Some(file), &[])?)?.second())
    })
}

/// The time of the oldest row of the archive with this index; -1 for an error.
///
/// # Safety
/// `file` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_first(file: *const c_char, rra: c_int) -> libc::time_t {
    guard(-1, || {
        // SAFETY: `file` is NULL or a C string, by this function's contract.
        let file = unsafe { needed(file, "file name")? };
        Ok(first::moment(&ask("first", Some(file), &[rra.to_string().as_bytes()])?)?.second())
    })
}

/// `rrdcreate(1)`; `argv` has only definitions.
///
/// # Safety
/// `file` is NULL or a C string; `argv` is NULL or has `argc` C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_create(
    file: *const c_char,
    step: c_ulong,
    last_up: libc::time_t,
    no_overwrite: c_int,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    let none = std::ptr::null();
    // SAFETY: the same conditions hold for all arguments; NULL sources and template are allowed.
    unsafe { rrdc_create_r2(file, step, last_up, no_overwrite, std::ptr::null(), none, argc, argv) }
}

/// As [`rrdc_create`]; `sources` (ended by NULL) fill the RRD, `template` describes it.
///
/// # Safety
/// As [`rrdc_create`]; `sources` is NULL or ends with NULL, `template` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_create_r2(
    file: *const c_char,
    step: c_ulong,
    last_up: libc::time_t,
    no_overwrite: c_int,
    sources: *const *const c_char,
    template: *const c_char,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    guard(-1, || {
        // SAFETY: `file` and `template` are NULL or C strings, `argv` has `argc` of them, and `sources` ends with NULL.
        let (file, definitions, sources, template) = unsafe {
            (needed(file, "file name")?, list(argc, argv), list(c_int::MAX, sources), bytes(template))
        };
        let (step_text, start) = (step.to_string(), last_up.to_string());
        let mut words: Vec<&[u8]> = Vec::new();
        if last_up > 0 {
            words.extend([b"-b", start.as_bytes()]);
        }
        if step > 0 {
            words.extend([b"-s", step_text.as_bytes()]);
        }
        if no_overwrite != 0 {
            words.push(b"-O");
        }
        for source in &sources {
            words.extend([b"-r", *source]);
        }
        if let Some(template) = template {
            words.extend([b"-t", template]);
        }
        words.extend(definitions);
        ask("create", Some(file), &words).map(|_| 0)
    })
}

/// Rows of `file`, as from `rrd_fetch_r`.
///
/// # Safety
/// As [`crate::fetch::rrd_fetch_r`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_fetch(
    file: *const c_char,
    cf: *const c_char,
    start: *mut libc::time_t,
    end: *mut libc::time_t,
    step: *mut c_ulong,
    count: *mut c_ulong,
    names: *mut *mut *mut c_char,
    data: *mut *mut c_double,
) -> c_int {
    let slots = Slots { start, end, step, count, names, data };
    // SAFETY: each slot is NULL or writable, by this function's contract.
    unsafe { slots.clear() };
    guard(-1, || {
        // SAFETY: `file` and `cf` are NULL or C strings, and the others NULL or readable, by this function's contract.
        let (file, request) = unsafe { (needed(file, "file name")?, request(cf, start, end, step)?) };
        let rows = with_daemon(|daemon| daemon.fetch(&name_at(daemon, file)?, &request))?;
        // SAFETY: each slot is NULL or writable, by this function's contract.
        unsafe { slots.fill(rows)? };
        Ok(0)
    })
}

/// `rrdc_stats_t`
#[repr(C)]
pub struct Stats {
    name: *const c_char,
    /// 1 = a gauge, 2 = a counter.
    kind: u16,
    flags: u16,
    value: StatsValue,
    next: *mut Stats,
}

/// The value of [`Stats`].
#[repr(C)]
#[derive(Clone, Copy)]
pub union StatsValue {
    counter: u64,
    gauge: c_double,
}

/// A gauge.
const GAUGE: u16 = 1;
/// A counter.
const COUNTER: u16 = 2;
/// The values that are levels, not counts.
const GAUGES: [&str; 3] = ["QueueLength", "TreeNodesNumber", "TreeDepth"];

/// The daemon's counters, to be freed with `rrdc_stats_free`.
///
/// # Safety
/// `stats` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_stats_get(stats: *mut *mut Stats) -> c_int {
    guard(-1, || {
        if stats.is_null() {
            return Err(Failure::new("no place for the counters given"));
        }
        let answer = ask("stats", None, &[])?;
        let mut first: *mut Stats = std::ptr::null_mut();
        for line in answer.lines.iter().rev() {
            let text = String::from_utf8_lossy(line);
            let Some((name, value)) = text.split_once(": ") else { continue };
            let is_gauge = GAUGES.contains(&name);
            let value = if is_gauge {
                StatsValue { gauge: value.trim().parse().unwrap_or(f64::NAN) }
            } else {
                StatsValue { counter: value.trim().parse().unwrap_or(0) }
            };
            let item: *mut Stats = memory::zeroed(1);
            let kind = if is_gauge { GAUGE } else { COUNTER };
            // SAFETY: `item` was just allocated for one value.
            unsafe {
                item.write(Stats { name: memory::text(name.as_bytes()), kind, flags: 0, value, next: first })
            };
            first = item;
        }
        // SAFETY: `stats` is not NULL (checked above) and writable, by this function's contract.
        unsafe { stats.write(first) };
        Ok(0)
    })
}

/// Frees the list from `rrdc_stats_get`.
///
/// # Safety
/// `stats` came from `rrdc_stats_get` and was not freed yet, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_stats_free(stats: *mut Stats) {
    let mut item = stats;
    while !item.is_null() {
        // SAFETY: `item` is not NULL and not freed yet; its name is from C's allocator.
        unsafe {
            let next = (*item).next;
            libc::free((*item).name.cast_mut().cast());
            libc::free(item.cast());
            item = next;
        }
    }
}

/// The names below `directory`, separated by line feeds, which the caller frees; NULL for an error.
///
/// # Safety
/// `directory` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_list(recursive: c_int, directory: *const c_char) -> *mut c_char {
    guard(std::ptr::null_mut(), || {
        // SAFETY: `directory` is NULL or a C string, by this function's contract.
        let directory = unsafe { needed(directory, "directory")? };
        let words: &[&[u8]] = if recursive == 0 { &[directory] } else { &[b"RECURSIVE", directory] };
        let lines = ask("list", None, words)?.lines;
        Ok(memory::text(
            &[lines.join(&b'\n'), if lines.is_empty() { Vec::new() } else { b"\n".to_vec() }].concat(),
        ))
    })
}
