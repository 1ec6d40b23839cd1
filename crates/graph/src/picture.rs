//! The picture of a graph: from computed data to a [`scene`] of lines, areas and texts.
//!
//! The way: [`options`] (how it shall look), [`legend`] and [`layout`] (where everything is on the image), [`limits`]
//! and [`axis`] (which values lie where, where grid lines and their labels stand), `shapes` (the data) and `frame`
//! (what is around it), and then [`scene`], which a backend paints. [`compose`] calls them in this order. Geometry is RRDtool's, to the pixel. How wide a text is comes through a [`text::Typesetter`]:
//! fonts are files, and this crate opens none.

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
