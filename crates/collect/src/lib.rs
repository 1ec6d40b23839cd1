//! Placeholder header; the owner of this crate writes it.
