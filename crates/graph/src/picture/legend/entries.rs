//! Collects the legend's entries: which elements have one, and its text.

use super::{Align, Entry, Mark, MarkShape};
use crate::eval::Data;
use crate::language::graphic::{Dashes, Graphic, PlotValue, Rule, Shape, ShapeKind};
use crate::language::{Element, Print, PrintStyle, Script};
use crate::picture::options::Options;

/// Bytes that RRDtool keeps of a number that GPRINT printed.
const NUMBER_BYTES_MAX: usize = 197;
/// The same of a date or a duration.
const TIME_BYTES_MAX: usize = 199;

/// What the entries are made of.
#[derive(Clone, Copy)]
pub struct LegendInput<'a> {
    /// The elements.
    pub script: &'a Script,
    /// Their values.
    pub data: &'a Data,
    /// The texts of GPRINT, in order.
    pub printed: &'a [Vec<u8>],
    /// Start and end of the graph: seconds since the epoch.
    pub span: (i64, i64),
}

/// The entries of a graph's legend, in the order of the arguments. If the last element has no text, an empty entry
/// stands for it.
pub fn entries(source: LegendInput<'_>, options: &Options) -> Vec<Entry> {
    let mut printed = source.printed.iter();
    let mut entries = Vec::new();
    for (number, element) in source.script.elements.iter().enumerate() {
        let entry = match element {
            Element::Print(print) if print.inside => printed.next().map(|text| gprint(print, text)),
            Element::TextAlign(word) => align(word).map(Entry::Align),
            Element::Comment(text) => Some(Entry::Text { text: text.clone(), mark: None, comment: true }),
            // Compat: an XPORT has an entry in a picture too.
            Element::Xport(xport) => {
                Some(Entry::Text { text: xport.legend.clone(), mark: None, comment: false })
            }
            Element::Graphic(Graphic::Shape(shape)) => {
                Some(marked(&shape.legend, Some(shape_mark(shape, options))))
            }
            Element::Graphic(Graphic::Rule(rule)) if shows(rule, source, options) => {
                Some(marked(&rule.legend, Some(rule_mark(rule, options))))
            }
            // Compat: the text of a TICK leaves no room for its box and overlaps it.
            Element::Graphic(Graphic::Tick(tick)) => Some(Entry::Text {
                text: tick.legend.clone(),
                mark: Some(Mark { shape: MarkShape::Box { dashed: false }, colour: Some(tick.colour) }),
                comment: false,
            }),
            _ => None,
        };
        let shown = entry.filter(|entry| !matches!(entry, Entry::Text { text, .. } if text.is_empty()));
        match shown {
            Some(entry) => entries.push(entry),
            None if number + 1 == source.script.elements.len() => entries.push(marked(b"", None)),
            None => {}
        }
    }
    entries
}

/// An entry whose text makes room for the box with two spaces, unless it is empty.
fn marked(legend: &[u8], mark: Option<Mark>) -> Entry {
    let text = if legend.is_empty() { Vec::new() } else { [b"  ", legend].concat() };
    Entry::Text { text, mark, comment: false }
}

fn gprint(print: &Print, text: &[u8]) -> Entry {
    let bytes_max = if print.style == PrintStyle::Number { NUMBER_BYTES_MAX } else { TIME_BYTES_MAX };
    let text = text[..text.len().min(bytes_max)].to_vec();
    Entry::Text { text, mark: None, comment: false }
}

fn align(word: &[u8]) -> Option<Align> {
    match word {
        b"left" => Some(Align::Left),
        b"right" => Some(Align::Right),
        b"center" => Some(Align::Centre),
        b"justified" => Some(Align::Justified),
        _ => None,
    }
}

fn shape_mark(shape: &Shape, options: &Options) -> Mark {
    let form = match &shape.kind {
        ShapeKind::Line { width, .. } if options.dynamic_labels => MarkShape::Rising { width: *width },
        ShapeKind::Line { dashes, .. } => framed(dashes),
        ShapeKind::Area { .. } => MarkShape::Box { dashed: false },
    };
    Mark { shape: form, colour: shape.colour }
}

fn rule_mark(rule: &Rule, options: &Options) -> Mark {
    let shape = match (options.dynamic_labels, rule.vertical) {
        (false, _) => framed(&rule.dashes),
        (true, true) => MarkShape::Upright,
        (true, false) => MarkShape::Level,
    };
    Mark { shape, colour: Some(rule.colour) }
}

fn framed(dashes: &Dashes) -> MarkShape {
    MarkShape::Box { dashed: !dashes.lengths.is_empty() }
}

/// Whether a rule has an entry: those outside the graph have none. Compat: the limits are those of the options, not
/// those of the axis; and a VRULE of a VDEF is at the VDEF's time, not at its value.
fn shows(rule: &Rule, source: LegendInput<'_>, options: &Options) -> bool {
    if options.force_rules_legend {
        return true;
    }
    let scalar = |scalar: usize| source.data.scalars[scalar];
    if rule.vertical {
        let time = match rule.value {
            PlotValue::Scalar(number) => scalar(number).time.unwrap_or(0),
            PlotValue::Number(time) => time as i64,
            PlotValue::Series(_) => 0,
        };
        return (source.span.0..=source.span.1).contains(&time);
    }
    let value = match rule.value {
        PlotValue::Scalar(number) => scalar(number).value,
        PlotValue::Number(value) => value,
        PlotValue::Series(_) => f64::NAN,
    };
    // NaN is inside.
    !options.upper_limit.is_some_and(|upper| value > upper)
        && !options.lower_limit.is_some_and(|lower| value < lower)
}
