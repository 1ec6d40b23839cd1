//! How time is written by people: durations, times, and the calendar that dates are read by.

pub mod at;
pub mod calendar;
mod duration;

pub use duration::{DurationError, DurationScale, FINE_UNITS, Step, parse_duration, parse_step};
