//! Where lines and labels of both axes stand, in values and seconds; [`mapping`] says at which pixel that is.
//!
//! Knows nothing of pixels but how many there are, and paints nothing.

pub mod mapping;
