//! What only the owner of a structure uses, while others may read the rest of it.

use std::sync::{Mutex, PoisonError};

/// A value that is reached only by who may change it. So it can be part of a structure that several threads read, although it is none that
/// threads may share. Nothing is ever locked.
#[derive(Debug, Default)]
pub struct Exclusive<T>(Mutex<T>);

impl<T> Exclusive<T> {
    /// A value.
    pub fn new(value: T) -> Self {
        Exclusive(Mutex::new(value))
    }

    /// The value.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}
