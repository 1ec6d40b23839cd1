//! `rrd_client.h`: the daemon that a whole process is connected to; its connections are kept between calls.

use std::ffi::{c_char, c_double, c_int, c_ulong};
use std::sync::{Mutex, PoisonError};

use protocol::rrdcached::client::Answer;
use tool::daemon::{Daemon, Link};
use tool::verb::{fetch, first, info};
use tool::{Done, Failure};

use crate::boundary::{groups, guard, list, needed};
use crate::errors;
use crate::fetch::{Slots, wish};
use crate::info::{Info, List};
use crate::memory::{self, bytes};

/// Where the process is connected to by [`rrdc_connect`]. A child of a fork is connected there, too, by a connection of
/// its own.
static CONNECTED: Mutex<Option<Vec<u8>>> = Mutex::new(None);

/// Runs `body` with the address that this process is connected to, if there is one.
fn with<T>(body: impl FnOnce(&mut Option<Vec<u8>>) -> Done<T>) -> Done<T> {
    body(&mut CONNECTED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Runs `body` with the daemon that was connected to; the connection is made anew when it has ended.
fn with_daemon<T>(body: impl FnOnce(Daemon<'_>) -> Done<T>) -> Done<T> {
    let address = with(|held| held.clone().ok_or_else(|| Failure::new("Not connected to rrdcached")))?;
    body(Link::sharing(groups()).connect(&address)?)
}

/// Sends a command about `file`.
fn ask(command: &str, file: Option<&[u8]>, words: &[&[u8]]) -> Done<Answer> {
    with_daemon(|mut daemon| {
        let name = file.map(|file| daemon.name(file)).transpose()?;
        let words: Vec<&[u8]> = name.as_deref().into_iter().chain(words.iter().copied()).collect();
        daemon.ask(command, &words)
    })
}

/// The address of a call: its own, else RRDCACHED_ADDRESS.
///
/// # Safety
/// `address` is NULL or ends with NUL.
unsafe fn address(address: *const c_char) -> Option<Vec<u8>> {
    use std::os::unix::ffi::OsStringExt;
    // SAFETY: the caller's promise.
    let given = unsafe { bytes(address) }.filter(|address| !address.is_empty());
    let environment = || std::env::var_os("RRDCACHED_ADDRESS").map(OsStringExt::into_vec);
    given.map(<[u8]>::to_vec).or_else(environment).filter(|address| !address.is_empty())
}

/// Connects to `addr`, or RRDCACHED_ADDRESS where that is NULL; without either nothing happens, with success.
/// What the system says of a connection that cannot be made is given as its number, anything else as -1.
///
/// # Safety
/// `addr` is NULL or ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_connect(addr: *const c_char) -> c_int {
    guard(-1, || {
        // SAFETY: the caller's promise.
        let Some(address) = (unsafe { address(addr) }) else { return Ok(0) };
        let reached = groups().of(&address).connect();
        with(|held| {
            *held = reached.is_ok().then_some(address);
            Ok(())
        })?;
        Ok(match reached {
            Ok(()) => 0,
            Err(error) => {
                let text = tool::failure::system_text(&error);
                errors::keep(format!("Unable to connect to rrdcached: {text}").as_bytes());
                error.raw_os_error().unwrap_or(-1)
            }
        })
    })
}

/// Whether there is a connection to `addr`, or to anyone where that is NULL.
///
/// # Safety
/// `addr` is NULL or ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_is_connected(addr: *const c_char) -> c_int {
    guard(0, || {
        // SAFETY: the caller's promise.
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
                groups().of(&address).disconnect();
            }
            Ok(0)
        })
    })
}

/// Updates `file` with `count` readings.
///
/// # Safety
/// `file` ends with NUL, `values` has `count` C texts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_update(
    file: *const c_char,
    count: c_int,
    values: *const *const c_char,
) -> c_int {
    guard(-1, || {
        // SAFETY: the caller's promise.
        let (file, values) = unsafe { (needed(file, "file name")?, list(count, values)) };
        with_daemon(|mut daemon| {
            let name = daemon.name(file)?;
            daemon.update(&name, &values).map(|()| 0)
        })
    })
}

macro_rules! about_file {
    ($($(#[$doc:meta])* $name:ident = $command:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// `file` ends with NUL.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(file: *const c_char) -> c_int {
            guard(-1, || {
                // SAFETY: the caller's promise.
                let file = unsafe { needed(file, "file name")? };
                ask($command, Some(file), &[]).map(|_| 0)
            })
        }
    )*};
}

about_file! {
    /// Has the daemon write down what waits for `file`.
    rrdc_flush = "flush";
    /// Has the daemon forget what waits for `file`.
    rrdc_forget = "forget";
}

/// Has the daemon write down all that waits.
#[unsafe(no_mangle)]
pub extern "C" fn rrdc_flushall() -> c_int {
    guard(-1, || ask("flushall", None, &[]).map(|_| 0))
}

/// Asks whether the daemon is there: 1 or 0.
#[unsafe(no_mangle)]
pub extern "C" fn rrdc_ping() -> c_int {
    guard(0, || ask("ping", None, &[]).map(|_| 1))
}

/// Flushes `file` where `addr` or RRDCACHED_ADDRESS name a daemon.
///
/// # Safety
/// `file` ends with NUL, `addr` too or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_flush_if_daemon(addr: *const c_char, file: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        if address(addr).is_none() && rrdc_is_any_connected() == 0 {
            return 0;
        }
        if rrdc_connect(addr) != 0 { -1 } else { rrdc_flush(file) }
    }
}

/// The same of everything.
///
/// # Safety
/// `addr` is NULL or ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_flushall_if_daemon(addr: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        if address(addr).is_none() && rrdc_is_any_connected() == 0 {
            return 0;
        }
        if rrdc_connect(addr) != 0 { -1 } else { rrdc_flushall() }
    }
}

/// `rrdinfo(1)` of `file`; NULL when it fails.
///
/// # Safety
/// `file` ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_info(file: *const c_char) -> *mut Info {
    guard(std::ptr::null_mut(), || {
        // SAFETY: the caller's promise.
        let file = unsafe { needed(file, "file name")? };
        let answer = ask("info", Some(file), &[])?;
        Ok(info::items(&answer)?.iter().collect::<List>().into_raw())
    })
}

/// When `file` was last updated; -1 when it fails.
///
/// # Safety
/// `file` ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_last(file: *const c_char) -> libc::time_t {
    guard(-1, || {
        // SAFETY: the caller's promise.
        let file = unsafe { needed(file, "file name")? };
        first::number(&ask("last", Some(file), &[])?)
    })
}

/// The time of the oldest row of the archive of this index; -1 when it fails.
///
/// # Safety
/// `file` ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_first(file: *const c_char, rra: c_int) -> libc::time_t {
    guard(-1, || {
        // SAFETY: the caller's promise.
        let file = unsafe { needed(file, "file name")? };
        first::number(&ask("first", Some(file), &[rra.to_string().as_bytes()])?)
    })
}

/// `rrdcreate(1)`; `argv` has only definitions.
///
/// # Safety
/// `file` ends with NUL; `argv` is NULL or has `argc` C texts.
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
    // SAFETY: the caller's promise.
    unsafe { rrdc_create_r2(file, step, last_up, no_overwrite, std::ptr::null(), none, argc, argv) }
}

/// The same; `sources` (NULL at its end) fill the RRD, `template` describes it.
///
/// # Safety
/// As [`rrdc_create`]; `sources` is NULL or ends with NULL, `template` is NULL or ends with NUL.
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
        // SAFETY: the caller's promise.
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

/// Rows of `file`, as `rrd_fetch_r` gives them.
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
    // SAFETY: the caller's promise.
    unsafe { slots.clear() };
    guard(-1, || {
        // SAFETY: the caller's promise.
        let (file, wish) = unsafe { (needed(file, "file name")?, wish(cf, start, end, step)?) };
        let rows = with_daemon(|daemon| fetch::of_named(daemon, file, wish))?;
        // SAFETY: the caller's promise.
        unsafe { slots.fill(&rows)? };
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
/// What is a level and no count.
const GAUGES: [&str; 3] = ["QueueLength", "TreeNodesNumber", "TreeDepth"];

/// The daemon's counters, to be freed by `rrdc_stats_free`.
///
/// # Safety
/// `stats` can be written.
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
            // SAFETY: the item is new.
            unsafe {
                item.write(Stats { name: memory::text(name.as_bytes()), kind, flags: 0, value, next: first })
            };
            first = item;
        }
        // SAFETY: checked above.
        unsafe { stats.write(first) };
        Ok(0)
    })
}

/// Frees what `rrdc_stats_get` gave.
///
/// # Safety
/// `stats` came from there, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_stats_free(stats: *mut Stats) {
    let mut item = stats;
    while !item.is_null() {
        // SAFETY: the caller's promise.
        unsafe {
            let next = (*item).next;
            libc::free((*item).name.cast_mut().cast());
            libc::free(item.cast());
            item = next;
        }
    }
}

/// The names below `directory`, with line feeds between them, the caller's to free; NULL when it fails.
///
/// # Safety
/// `directory` ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrdc_list(recursive: c_int, directory: *const c_char) -> *mut c_char {
    guard(std::ptr::null_mut(), || {
        // SAFETY: the caller's promise.
        let directory = unsafe { needed(directory, "directory")? };
        let words: &[&[u8]] = if recursive == 0 { &[directory] } else { &[b"RECURSIVE", directory] };
        let lines = ask("list", None, words)?.lines;
        Ok(memory::text(
            &[lines.join(&b'\n'), if lines.is_empty() { Vec::new() } else { b"\n".to_vec() }].concat(),
        ))
    })
}
