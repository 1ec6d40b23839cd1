//! One RRD, whole: what a `.rrd` file holds, and what import, export and dump pass around.

use crate::definition::Definition;
use crate::live::{HeadShape, Live};

/// Definition, live head and every row of one RRD.
#[derive(Clone, Debug, PartialEq)]
pub struct Rrd {
    /// What it is.
    pub definition: Definition,
    /// Where it stands.
    pub live: Live,
    /// For each archive its rows, oldest first, `row_count * ds_count` values, row-major; the newest row
    /// is the one [`Definition::newest_row`] numbers. Empty for SEASONAL and DEVSEASONAL, whose rows are
    /// in [`Live::seasons`].
    pub archives: Vec<Vec<f64>>,
}

impl Rrd {
    /// The shape of its live head.
    pub fn shape(&self) -> HeadShape {
        HeadShape::of(&self.definition)
    }
}
