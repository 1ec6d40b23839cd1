//! Pictures as files: a [`graph::picture::scene::Scene`] becomes PNG, SVG, PDF or EPS; and the fonts that its texts are set in.
//!
//! Owns: the fonts of this host ([`Fonts`], which `graph` asks through its `Typesetter`), the raster, the formats.
//! Must not know: graphs (only scenes, texts and options), stores, sockets, the environment.
//! Costs nothing until it is used: nothing is read, found or set up at start.

mod digits;
mod eps;
pub mod fonts;
mod image;
mod pdf;
pub mod png;
pub mod raster;
mod segments;
mod steps;
mod svg;

pub use eps::eps;
pub use fonts::Fonts;
pub use image::{ImageError, Kit, image};
pub use pdf::{PdfError, pdf};
pub use svg::svg;
