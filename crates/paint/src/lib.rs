//! Pictures as files: a [`graph::picture::scene::Scene`] becomes PNG; and the fonts that its texts are set in.
//!
//! Owns: the fonts of this host ([`Fonts`], which `graph` asks through its `Typesetter`), the raster, the formats.
//! Must not know: graphs (only scenes, texts and options), stores, sockets, the environment.
//! Costs nothing until it is used: nothing is read, found or set up at start.

pub mod fonts;
pub mod png;
pub mod raster;

pub use fonts::Fonts;
