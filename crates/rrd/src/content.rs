//! A complete RRD: what a `.rrd` file holds, and what import, export and dump pass around.

use crate::definition::Definition;
use crate::live::{HeadShape, Live};

/// Definition, live head and every row of one RRD.
#[derive(Clone, Debug, PartialEq)]
pub struct Rrd {
    /// What the RRD is.
    pub definition: Definition,
    /// Its state.
    pub live: Live,
    /// The rows of each archive, oldest first: `row_count * ds_count` values, row-major. The last row is the
    /// one numbered [`Definition::newest_row`]. Empty for SEASONAL and DEVSEASONAL, whose rows are in
    /// [`Live::seasons`].
    pub archives: Vec<Vec<f64>>,
}

impl Rrd {
    /// The shape of its live head.
    pub fn shape(&self) -> HeadShape {
        HeadShape::of(&self.definition)
    }
}
