//! Renders a [`graph::picture::scene::Scene`] as PNG, SVG, PDF or EPS, and sets texts in the fonts of this host.
//!
//! Owns the fonts ([`Fonts`], which `graph` uses through its `Typesetter`), the rasteriser and the file formats. Knows
//! scenes, texts and options, but no graphs, stores, sockets or environment. Costs nothing until it is used: nothing is
//! read or set up at start.

#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

mod digits;
mod eps;
pub mod fonts;
mod image;
#[cfg(feature = "pdf")]
mod pdf;
#[cfg(not(feature = "pdf"))]
#[path = "pdf_absent.rs"]
mod pdf;
mod pdf_error;
pub mod png;
pub mod raster;
mod segments;
mod steps;
mod svg;

pub use eps::eps;
pub use fonts::Fonts;
pub use image::{ImageError, RenderCache, image};
pub use pdf::pdf;
pub use pdf_error::PdfError;
pub use svg::svg;
