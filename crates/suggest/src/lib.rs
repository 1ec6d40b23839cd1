//! Which graphs RRDs suggest: names and definitions in, arguments of `rrdtool graph` out.
//!
//! What a producer means by its data sources stands in presets (`presets.toml`, and further ones of the user); sources that
//! no preset knows are drawn as lines, each with its name.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

mod arguments;
mod colours;
mod family;
mod forecast;
mod label;
mod metric;
mod preset;

pub use colours::of as colour;
pub use family::{Together, directory, together};
pub use label::{Label, LabelGraph, LabelLine};
pub use metric::{DS_LABEL, Fitting, MetricKind, MetricRule, MetricRules, RRD_LABEL};
pub use preset::{PresetError, Presets};

use rrd::definition::Definition;

use arguments::{Line, Plan, Shape};
use preset::Preset;

/// Lines of one graph; more cannot be told apart.
pub const LINES_MAX: usize = 30;

/// An RRD that graphs are suggested for.
#[derive(Clone, Copy, Debug)]
pub struct Rrd<'a> {
    /// Its name in the store.
    pub name: &'a [u8],
    /// Its definition.
    pub definition: &'a Definition,
    /// What the one who feeds it says of it.
    pub label: Option<&'a Label>,
}

/// A graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// What it shows.
    pub title: String,
    /// The unit of its values; empty: unknown, or a plain number.
    pub unit: String,
    /// The RRDs it reads.
    pub names: Vec<Vec<u8>>,
    /// What `rrdtool graph` takes after the file, without range and size.
    pub arguments: Vec<Vec<u8>>,
}

/// The graphs of one RRD: the one that its label says, or those of the presets that know it, and one of the sources that none of
/// them shows.
pub fn each(presets: &Presets, rrd: Rrd<'_>) -> Vec<Suggestion> {
    let title = rrd.label.map_or("", |label| &label.title);
    let graph = rrd.label.and_then(|label| label.graph.as_ref());
    if let Some(plan) = graph.and_then(|graph| graph.plan(title, rrd)) {
        return vec![plan.into_suggestion()];
    }
    let mut shown: Vec<&str> = Vec::new();
    let mut plans: Vec<Plan<'_>> = Vec::new();
    for preset in presets.of(rrd) {
        shown.extend(preset.lines.iter().map(|line| line.source.as_str()));
        shown.extend(preset.hide.iter().map(String::as_str));
        plans.push(of_preset(preset, rrd));
    }
    let sources = rrd.definition.ds.iter().map(|ds| ds.name.as_str());
    let rest: Vec<&str> = sources.filter(|name| !shown.contains(name)).collect();
    for part in rest.chunks(LINES_MAX) {
        plans.push(of_sources(rrd, part));
    }
    for plan in plans.iter_mut().filter(|_| !title.is_empty()) {
        plan.title = format!("{}: {title}", plan.title);
    }
    plans.into_iter().map(Plan::into_suggestion).collect()
}

fn of_preset<'a>(preset: &'a Preset, rrd: Rrd<'a>) -> Plan<'a> {
    let lines = preset.lines.iter().map(|line| Line {
        rrd,
        source: &line.source,
        label: line.label.clone().unwrap_or_else(|| line.source.clone()),
        shape: line.shape,
        factor: preset.factor * line.factor,
        colour: None,
    });
    Plan {
        title: preset.title_of(rrd.name),
        unit: preset.unit.clone(),
        base: preset.base,
        lower: preset.lower,
        upper: preset.upper,
        lines: lines.collect(),
    }
}

fn of_sources<'a>(rrd: Rrd<'a>, sources: &[&'a str]) -> Plan<'a> {
    let line = |source: &&'a str| Line {
        rrd,
        source,
        label: source.to_string(),
        shape: Shape::Line,
        factor: 1.0,
        colour: None,
    };
    Plan {
        title: preset::readable(rrd.name),
        unit: String::new(),
        base: 1000,
        lower: None,
        upper: None,
        lines: sources.iter().map(line).collect(),
    }
}

#[cfg(test)]
mod tests;
