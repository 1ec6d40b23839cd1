//! Where lines and labels of both axes stand, in values and seconds; [`mapping`] says at which pixel that is.
//!
//! Knows nothing of pixels but how many there are, and paints nothing.

mod alt_grid;
mod logarithmic;
pub mod mapping;
mod steps;
pub mod value_label;
pub mod vertical;
