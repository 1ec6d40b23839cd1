//! The page cache and RRDs: which pages of files are in memory, advice to the kernel about them, and what an update costs in
//! page faults, by a model and by a simulation.
//!
//! Owns the look at real files ([`incore`], [`parts`], [`advice`]), at a running system ([`system`]), the formulas
//! ([`model`], derived in `docs/capacity.md`), the plan for a machine made of them ([`plan`]) and for a cluster ([`cluster`]), the simulated page cache
//! ([`simulate`]), the speed of a disk ([`probe`]), and the pictures of all these as scenes ([`map`], [`chart`]). It looks at files without changing them, and
//! as far as the kernel permits without changing what is cached.
//!
//! Knows no store, no daemon and no protocol. Unsafe code is in [`kernel`] alone: two system calls that `rustix` lacks.

pub mod advice;
pub mod chart;
pub mod cluster;
pub mod geometry;
pub mod incore;
pub mod kernel;
pub mod lists;
pub mod map;
pub mod model;
pub mod names;
pub mod parts;
pub mod plan;
pub mod presets;
pub mod probe;
mod sharing;
pub mod simulate;
pub mod system;

/// Bytes in a page in the model and the simulation: that of amd64, and of most kernels for arm64.
pub const MODEL_PAGE_BYTES: u64 = 4096;
