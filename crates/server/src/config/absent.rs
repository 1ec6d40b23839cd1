//! Sections whose feature this build lacks: refused by name instead of as unknown keys.

use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error};

/// A section, and the cargo feature it needs.
pub(super) trait Section: std::fmt::Debug {
    /// The section as it is written.
    const NAME: &'static str;
    /// The feature.
    const FEATURE: &'static str;
}

/// A section that this build does not accept; never exists.
#[derive(Debug)]
pub(super) struct Absent<S>(std::convert::Infallible, PhantomData<S>);

impl<S> Absent<S> {
    /// Whatever is wanted of it.
    pub(super) fn never<T>(&self) -> T {
        match self.0 {}
    }
}

impl<'de, S: Section> Deserialize<'de> for Absent<S> {
    fn deserialize<D: Deserializer<'de>>(_deserializer: D) -> Result<Self, D::Error> {
        Err(D::Error::custom(args::feature::missing(S::NAME, S::FEATURE)))
    }
}
