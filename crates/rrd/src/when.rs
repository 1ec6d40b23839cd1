//! How people write time: durations, times, and the calendar that dates refer to.

pub mod at;
pub mod calendar;
mod duration;

pub use duration::{DurationError, DurationScale, FINE_UNITS, Step, parse_duration, parse_step};
