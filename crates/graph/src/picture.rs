//! The picture of a graph: from computed data to a [`scene`] of lines, areas and texts.
//!
//! [`compose`] runs the steps in this order: [`options`] (how it looks), [`legend`] and [`layout`] (where everything
//! is on the image), [`limits`] and [`axis`] (the range of values, grid lines and their labels), `shapes` (the data)
//! and `frame` (everything around it). The result is a [`scene`], which a backend paints.
//!
//! Geometry is RRDtool's, to the pixel. The widths of texts come through a [`text::Typesetter`]: fonts are files, and
//! this crate opens none.

pub mod axis;
pub mod compose;
mod fit;
mod frame;
pub mod image_info;
pub mod layout;
pub mod legend;
pub mod limits;
pub mod options;
pub mod report;
pub mod scene;
mod shapes;
pub mod text;
mod zoom;
