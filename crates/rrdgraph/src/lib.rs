//! rrdgraph(1) and rrdxport(1) as functions: from arguments and rows to a picture, a table or values.
//!
//! The one pipeline of the command line, the C library, HTTP and `roundel query`. Each of them brings its rows
//! ([`::graph::plan::Rows`]), what a graph takes from its surroundings ([`GraphContext`]) and its [`Limits`];
//! everything else happens here:
//!
//! 1. [`Graph::parse`] reads options and elements, a second time in universal time if `--utc` is among them.
//! 2. [`Evaluator::evaluate`] fetches the rows and computes every variable.
//! 3. [`Graph::draw`] makes a scene and [`Renderer::paint`] an image of it, or `Graph::table` writes the rows.
//!    [`Graph::render`] runs whatever the image format asks for.
//!
//! Opens no RRD, writes no file and knows no socket. Local time is the C library's.

#![forbid(unsafe_code)]

mod context;
mod error;
mod evaluator;
mod graph;
mod limits;
mod renderer;

pub use context::GraphContext;
pub use error::Error;
pub use evaluator::Evaluator;
pub use graph::{Graph, Output};
pub use limits::Limits;
pub use renderer::Renderer;
