//! Our `rrdtool` compared with Debian's: written scenarios, random ones by seed, sessions, hostile files.
//!
//! Under the name `rrdtool` this executable is our rrdtool; otherwise it runs the tests, with the arguments of any
//! other test. `ROUNDEL_SEED` and `ROUNDEL_SEEDS` choose the random scenarios.

mod anything;
mod bad_input;
mod bytes;
mod cases;
mod drivers;
mod graphs;
mod harness;
mod listed;
mod locales;
mod narrow;
mod pictures;
mod plots;
mod random;
mod resize;
mod scenarios;
mod session;
mod slips;
mod spellings;

use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// Our program and Debian's.
fn pair() -> harness::Pair {
    harness::Pair::new()
}

/// The tests by name.
const TESTS: &[(&str, fn())] = &[
    ("cases_are_answered_as_they_say", cases::check_all),
    ("random_scenarios_are_answered_alike", random::check),
    ("spellings_are_answered_alike", random::check_spellings),
    ("anything_is_answered_alike", random::check_anything),
    ("what_is_listed_is_nothing_else", narrow::check_all),
    ("graphs_are_answered_alike", graphs::check),
    ("pictures_look_alike", pictures::check_likeness),
    ("parts_of_pictures_are_at_the_same_pixels", pictures::check_places),
    ("lazy_pictures_are_drawn_when_they_are_old", pictures::check_lazy),
    ("fonts_and_modes_change_the_layout_alike", pictures::check_surroundings),
    ("a_daemon_that_a_def_names_is_asked", pictures::check_daemon),
    ("no_picture_takes_too_much_memory", pictures::check_bounds),
    ("resized_copies_are_equal", resize::check_bytes),
    ("sessions_are_answered_alike", session::check),
    ("slips_of_rrdtool_are_not_copied", slips::check_all),
    ("a_session_takes_what_comes", session::check_ours),
    ("programs_that_drive_a_pipe_read_the_same", drivers::check),
    ("damaged_files_are_refused_alike", bad_input::check_files),
    ("damaged_dumps_are_refused_alike", bad_input::check_dumps),
    ("a_full_disk_and_a_missing_directory_leave_what_was_there", bad_input::check_system),
];

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let called = words.next().unwrap_or_default();
    if called.as_bytes().ends_with(b"rrdtool") {
        let words: Vec<_> = words.collect();
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        return ExitCode::from(roundel_cli::process::rrdtool(&words));
    }
    let trial = |&(name, test): &(&str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    libtest_mimic::run(&Arguments::from_args(), TESTS.iter().map(trial).collect()).exit_code()
}
