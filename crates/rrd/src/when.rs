//! How time is written by people: durations, and the calendar that dates and times of day are read by.

pub mod calendar;
mod duration;

pub use duration::{DurationError, DurationScale, FINE_UNITS, Step, parse_duration, parse_step};
