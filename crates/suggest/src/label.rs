//! What the one who feeds an RRD says of how it is shown.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::arguments::{Line, Plan, Shape};
use crate::{Rrd, preset};

/// How an RRD is shown, by who feeds it; it counts before the presets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Label {
    /// What it shows, in plain text.
    pub title: String,
    /// Its graph, where more than a title is known. Many RRDs share one.
    pub graph: Option<Arc<LabelGraph>>,
}

/// A graph as who feeds the RRD wants it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelGraph {
    /// The unit, after `factor`.
    pub unit: String,
    /// What all values are multiplied by.
    pub factor: f64,
    /// 1000 or 1024.
    pub base: u32,
    /// The upper end of the axis, unless values are above it.
    pub upper: Option<f64>,
    /// Its lines.
    pub lines: Vec<LabelLine>,
}

/// A line of a [`LabelGraph`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelLine {
    /// The data source.
    pub source: String,
    /// What it is called.
    pub label: String,
    /// Whether it is an area.
    pub is_area: bool,
    /// Its colour, as `rrggbb`; `None`: the next one.
    pub colour: Option<String>,
}

impl LabelGraph {
    /// The graph of `rrd`; `None` when a source is not there.
    pub(crate) fn plan<'a>(&'a self, title: &str, rrd: Rrd<'a>) -> Option<Plan<'a>> {
        let has = |line: &LabelLine| rrd.definition.ds.iter().any(|ds| ds.name == line.source);
        if self.lines.is_empty() || !self.lines.iter().all(has) {
            return None;
        }
        let line = |line: &'a LabelLine| Line {
            rrd,
            source: &line.source,
            label: line.label.clone(),
            shape: if line.is_area { Shape::Area } else { Shape::Line },
            factor: self.factor,
            colour: line.colour.as_deref(),
        };
        Some(Plan {
            title: if title.is_empty() { preset::readable(rrd.name) } else { title.to_string() },
            unit: self.unit.clone(),
            base: self.base,
            lower: Some(0.0),
            upper: self.upper,
            lines: self.lines.iter().map(line).collect(),
        })
    }
}
