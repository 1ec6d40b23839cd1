//! Plans both axes: which values and times have a line or a label. [`mapping`] turns them into pixels.
//!
//! Paints nothing; of pixels only their number matters here.

mod alt_grid;
pub mod horizontal;
mod logarithmic;
pub mod mapping;
mod steps;
mod time_steps;
pub mod value_label;
pub mod vertical;
