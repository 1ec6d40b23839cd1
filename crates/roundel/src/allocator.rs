//! The daemon's allocator: when freed memory goes back to the system.

use mimalloc::MiMalloc;

/// Batches are allocated by one thread and freed by another, which mimalloc handles well.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// mimalloc's number of its option `purge_delay`.
const PURGE_DELAY: std::ffi::c_int = 15;
/// Milliseconds after which freed pages go back to the system when something is freed again: mimalloc waits for a second, in
/// which a client that means harm makes it hold a lot. After 10 ms, each of several queries in a row asks the system for its pages again: a
/// sum over 1,000 series x 1,440 rows took 31 ms instead of 27.
const PURGE_MS: std::ffi::c_long = 100;

// SAFETY: as mimalloc.h declares them. Both may be called at any time by any thread, with any numbers.
unsafe extern "C" {
    safe fn mi_collect(force: bool);
    safe fn mi_option_set_default(option: std::ffi::c_int, value: std::ffi::c_long);
}

/// Has freed memory go back soon: for a process that lives long.
pub fn give_back_soon() {
    mi_option_set_default(PURGE_DELAY, PURGE_MS);
    server::idle_memory::give_back_with(|| mi_collect(true));
}
