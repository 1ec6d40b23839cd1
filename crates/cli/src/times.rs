//! Times among a verb's arguments, in addition to [`args::times`]: those of updates.

use args::times::spec;
use rrd::when::at::AtError;
use rrd_file::Locking;

use crate::environment::Environment;
use crate::failure::{Failure, Result, text};

pub use args::times::Range;

fn failed(what: &str, why: &AtError) -> Failure {
    Failure::new(format!("{what} time: {why}"))
}

/// The argument of `--start` where there is no end.
///
/// # Errors
/// RRDtool's text.
pub fn start(word: &[u8], environment: &Environment) -> Result<i64> {
    let spec = spec(word, environment.clock()).map_err(|why| failed("start", &why))?;
    spec.alone(&*environment.calendar).map_err(|error| Failure::new(error.to_string()))
}

/// The time of an update in AT syntax, in seconds.
///
/// # Errors
/// RRDtool's text.
pub fn at(word: &[u8], environment: &Environment) -> Result<i64, String> {
    let spec = spec(word, environment.clock()).map_err(|error| error.to_string())?;
    spec.alone(&*environment.calendar).map_err(|error| error.to_string())
}

/// The argument of `--locking`.
///
/// # Errors
/// When it is none of the three.
pub fn locking(word: &[u8]) -> Result<Locking> {
    Locking::from_word(text(word)?)
        .ok_or_else(|| Failure::of_name("unsupported locking mode '", word, "': give try, block or none"))
}
