//! Programs that run under ThreadSanitizer.
//!
//! Of a library that it did not build it sees what the C library does for it (copies, comparisons, memory taken and
//! given back) but not the locks in between, which are not those of pthreads: so it would call a race whatever two
//! threads do in turn. While a call is under way it is told to look away, as it does itself where it is told to ignore
//! such libraries (`ignore_noninstrumented_modules`). What the program does it goes on to check; what we do Rust does.

use std::ffi::{CStr, c_char, c_int};
use std::sync::LazyLock;

/// `AnnotateIgnoreReadsBegin` and its `End`, of reads and writes: file and line of who asks.
type Annotation = unsafe extern "C" fn(*const c_char, c_int);

/// Found in programs under ThreadSanitizer only.
static ANNOTATIONS: LazyLock<Option<[Annotation; 2]>> = LazyLock::new(|| {
    let find = |name: &CStr| {
        // SAFETY: the name ends in a NUL.
        let place = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        // SAFETY: in a program that has `__tsan_init` these are functions of that type.
        (!place.is_null()).then(|| unsafe { std::mem::transmute::<*mut libc::c_void, Annotation>(place) })
    };
    find(c"__tsan_init")?;
    Some([find(c"AnnotateIgnoreReadsBegin")?, find(c"AnnotateIgnoreReadsEnd")?])
});

fn annotate(which: usize) {
    if let Some(annotations) = *ANNOTATIONS {
        // SAFETY: they take any text and number, and count for each thread.
        unsafe { annotations[which](c"librrd".as_ptr(), 0) };
    }
}

/// While this lives nobody looks at what this thread does.
pub struct LookAway(());

impl LookAway {
    /// From here on.
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

/// Runs a function of the program in the middle of a call.
pub fn seen<T>(body: impl FnOnce() -> T) -> T {
    annotate(1);
    let value = body();
    annotate(0);
    value
}
