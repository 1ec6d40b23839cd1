//! Programs that run under ThreadSanitizer.
//!
//! ThreadSanitizer sees what the C library does for a library that it did not build (copies, comparisons, allocation),
//! but not the locks in between, which are not pthread's. It would report a race for whatever two threads do in turn.
//! So each call tells it to ignore this thread meanwhile, as it does by itself when told to ignore such libraries
//! (`ignore_noninstrumented_modules`). It still checks what the program does; Rust checks what we do.

use std::ffi::{CStr, c_char, c_int};
use std::sync::LazyLock;

/// `AnnotateIgnoreReadsBegin`, its `End`, and those for writes: file and line of the caller.
type Annotation = unsafe extern "C" fn(*const c_char, c_int);

/// Present only in programs that run under ThreadSanitizer.
static ANNOTATIONS: LazyLock<Option<[Annotation; 2]>> = LazyLock::new(|| {
    let find = |name: &CStr| {
        // SAFETY: the name ends with a NUL.
        let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        // SAFETY: in a program that has `__tsan_init`, these symbols are functions of that type.
        (!symbol.is_null()).then(|| unsafe { std::mem::transmute::<*mut libc::c_void, Annotation>(symbol) })
    };
    find(c"__tsan_init")?;
    Some([find(c"AnnotateIgnoreReadsBegin")?, find(c"AnnotateIgnoreReadsEnd")?])
});

fn annotate(which: usize) {
    if let Some(annotations) = *ANNOTATIONS {
        // SAFETY: the functions accept any C string and number, and count per thread.
        unsafe { annotations[which](c"librrd".as_ptr(), 0) };
    }
}

/// While this lives, ThreadSanitizer ignores this thread.
pub struct LookAway(());

impl LookAway {
    /// Starts ignoring.
    pub fn begin() -> LookAway {
        annotate(0);
        LookAway(())
    }
}

impl Drop for LookAway {
    fn drop(&mut self) {
        annotate(1);
    }
}

/// Runs a function of the program in the middle of a call, with ThreadSanitizer watching.
pub fn seen<T>(body: impl FnOnce() -> T) -> T {
    annotate(1);
    let value = body();
    annotate(0);
    value
}
