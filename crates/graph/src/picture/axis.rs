//! Where lines and labels of both axes stand, in values and seconds; [`mapping`] says at which pixel that is.
//!
//! Knows nothing of pixels but how many there are, and paints nothing.

mod alt_grid;
pub mod horizontal;
mod logarithmic;
pub mod mapping;
mod steps;
mod time_steps;
pub mod value_label;
pub mod vertical;
