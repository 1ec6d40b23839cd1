//! Between the two times that the clock tells.

use std::time::Duration;

pub const SPIN: Duration = Duration::from_millis(1);
pub const SHORT: Duration = Duration::from_millis(1);

pub fn has_several_processors() -> bool {
    true
}
