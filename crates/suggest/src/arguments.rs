//! Writes a graph as the arguments of `rrdtool graph` (`rrdgraph(1)`).

use rrd::definition::{Cf, Definition};
use serde::Deserialize;

use crate::forecast::Forecast;
use crate::{Rrd, Suggestion, colours};

/// Letters of a label in the table below the graph; longer ones push the numbers aside.
const LABEL_LETTERS: usize = 24;
/// Lines with a band between their extremes, or around their forecasts; more bands hide one another.
const BANDS_MAX: usize = 2;
/// Marks of failures.
const FAILURE_COLOUR: &str = "d6272850";

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// A line.
    Line,
    /// An area from zero.
    Area,
    /// An area on top of the one before it.
    Stack,
}

/// A line of a graph.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// The RRD.
    pub rrd: Rrd<'a>,
    /// Its data source.
    pub source: &'a str,
    /// What it is called.
    pub label: String,
    /// How it is drawn.
    pub shape: Shape,
    /// What values are multiplied by.
    pub factor: f64,
    /// Its colour; `None`: the one of its place.
    pub colour: Option<&'a str>,
}

impl Line<'_> {
    fn colour(&self, index: usize) -> &str {
        self.colour.unwrap_or_else(|| colours::of(index))
    }
}

/// A graph before it is written.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// `--title`
    pub title: String,
    /// `--vertical-label`
    pub unit: String,
    /// `--base`: 1000 or 1024.
    pub base: u32,
    /// `--lower-limit`
    pub lower: Option<f64>,
    /// `--upper-limit`
    pub upper: Option<f64>,
    /// Its lines, at least one.
    pub lines: Vec<Line<'a>>,
}

impl Plan<'_> {
    /// The graph of these lines.
    pub fn into_suggestion(self) -> Suggestion {
        let mut out = Arguments { words: Vec::new() };
        out.options(&self);
        let width = self.lines.iter().map(|line| line.label.chars().count()).max().unwrap_or(0);
        let width = width.min(LABEL_LETTERS);
        let has_bands = self.lines.len() <= BANDS_MAX;
        for (index, line) in self.lines.iter().enumerate() {
            out.data(index, line, has_bands);
        }
        for (index, line) in self.lines.iter().enumerate().filter(|_| has_bands) {
            match Forecast::of(line.rrd.definition) {
                Some(forecast) => out.forecast_band(index, line, forecast),
                None => out.band(index, line),
            }
        }
        out.words.push(
            format!("COMMENT:{:width$}           last   average   maximum\\l", "", width = width).into(),
        );
        for (index, line) in self.lines.iter().enumerate() {
            out.shape(index, line, width);
            if let Some(forecast) = Forecast::of(line.rrd.definition).filter(|_| has_bands) {
                out.forecast(index, line, forecast);
            }
        }
        let mut names: Vec<Vec<u8>> = self.lines.iter().map(|line| line.rrd.name.to_vec()).collect();
        names.dedup();
        Suggestion { title: self.title, unit: self.unit, names, arguments: out.words }
    }

    /// The graph of the sum of these lines.
    pub fn into_sum(self) -> Suggestion {
        let mut out = Arguments { words: Vec::new() };
        out.options(&self);
        for (index, line) in self.lines.iter().enumerate() {
            out.data(index, line, false);
        }
        // Unknown values count as nothing, unless all are unknown.
        let first = "v0".to_string();
        let sum = (1..self.lines.len()).fold(first, |sum, index| format!("{sum},v{index},ADDNAN"));
        out.words.push(format!("CDEF:sum={sum}").into());
        out.words.push(format!("AREA:sum#{}:sum", colours::of(0)).into());
        out.numbers("sum");
        let names = self.lines.iter().map(|line| line.rrd.name.to_vec()).collect();
        Suggestion { title: self.title, unit: self.unit, names, arguments: out.words }
    }
}

struct Arguments {
    words: Vec<Vec<u8>>,
}

impl Arguments {
    fn options(&mut self, plan: &Plan<'_>) {
        let mut option = |name: &str, value: String| self.words.extend([name.into(), value.into_bytes()]);
        option("--title", plan.title.clone());
        if !plan.unit.is_empty() {
            option("--vertical-label", plan.unit.clone());
        }
        if plan.base != 1000 {
            option("--base", plan.base.to_string());
        }
        if let Some(lower) = plan.lower {
            option("--lower-limit", lower.to_string());
        }
        if let Some(upper) = plan.upper {
            option("--upper-limit", upper.to_string());
        }
    }

    /// `v0`: the values of line 0. With `has_bands` also `n0` and `x0`, its extremes, where the RRD keeps them, or `p0`, `d0` and
    /// `f0`: forecasts, deviations and failures.
    fn data(&mut self, index: usize, line: &Line<'_>, has_bands: bool) {
        let definition = line.rrd.definition;
        let cf = if keeps(definition, Cf::Average) { Cf::Average } else { first(definition) };
        self.def("v", index, line, cf);
        match Forecast::of(definition) {
            _ if !has_bands => {}
            Some(forecast) => {
                self.def("p", index, line, forecast.predict);
                if forecast.band.is_some() {
                    self.def("d", index, line, Cf::DevPredict);
                }
                if forecast.has_failures {
                    // 0 or 1, whatever the line's factor.
                    self.def("f", index, &Line { factor: 1.0, ..line.clone() }, Cf::Failures);
                }
            }
            None if has_band(line) => {
                self.def("n", index, line, Cf::Min);
                self.def("x", index, line, Cf::Max);
            }
            None => {}
        }
    }

    fn def(&mut self, letter: &str, index: usize, line: &Line<'_>, cf: Cf) {
        let Line { rrd, source, factor, .. } = line;
        let raw = if *factor == 1.0 { letter.to_string() } else { format!("{letter}raw") };
        let mut def = format!("DEF:{raw}{index}=").into_bytes();
        push_name(&mut def, rrd.name);
        def.extend_from_slice(format!(":{source}:{}", cf.name()).as_bytes());
        self.words.push(def);
        if *factor != 1.0 {
            self.words.push(format!("CDEF:{letter}{index}={raw}{index},{factor},*").into());
        }
    }

    fn band(&mut self, index: usize, line: &Line<'_>) {
        if has_band(line) {
            let colour = line.colour(index);
            self.words.push(format!("CDEF:band{index}=x{index},n{index},-").into());
            self.words.push(format!("AREA:n{index}").into());
            self.words.push(format!("AREA:band{index}#{colour}30::STACK").into());
        }
    }

    /// Where values are usual: around the forecast, as wide as the deviations.
    fn forecast_band(&mut self, index: usize, line: &Line<'_>, forecast: Forecast) {
        if forecast.has_failures {
            self.words.push(format!("TICK:f{index}#{FAILURE_COLOUR}:1:  unlike the forecast\\l").into());
        }
        if let Some((above, below)) = forecast.band {
            let colour = line.colour(index);
            self.words.push(format!("CDEF:low{index}=p{index},d{index},{below},*,-").into());
            self.words.push(format!("CDEF:usual{index}=d{index},{},*", above + below).into());
            self.words.push(format!("AREA:low{index}").into());
            self.words.push(format!("AREA:usual{index}#{colour}20::STACK").into());
        }
    }

    fn forecast(&mut self, index: usize, line: &Line<'_>, forecast: Forecast) {
        let colour = line.colour(index);
        let band = if forecast.band.is_some() { ", with what is usual around it" } else { "" };
        self.words.push(format!("LINE1:p{index}#{colour}a0:forecast{band}\\l:dashes=4,3").into());
    }

    fn shape(&mut self, index: usize, line: &Line<'_>, width: usize) {
        let colour = line.colour(index);
        let label = escaped(&line.label, width);
        self.words.push(match line.shape {
            Shape::Line => format!("LINE1.5:v{index}#{colour}:{label}").into(),
            Shape::Area => format!("AREA:v{index}#{colour}c0:{label}").into(),
            Shape::Stack => format!("AREA:v{index}#{colour}c0:{label}:STACK").into(),
        });
        self.numbers(&format!("v{index}"));
    }

    /// Last, average and maximum of a variable.
    fn numbers(&mut self, name: &str) {
        for (letter, function) in [("l", "LAST"), ("a", "AVERAGE"), ("m", "MAXIMUM")] {
            self.words.push(format!("VDEF:{name}{letter}={name},{function}").into());
        }
        self.words.push(format!("GPRINT:{name}l:%8.2lf%s").into());
        self.words.push(format!("GPRINT:{name}a:%8.2lf%s").into());
        self.words.push(format!("GPRINT:{name}m:%8.2lf%s\\l").into());
    }
}

fn keeps(definition: &Definition, cf: Cf) -> bool {
    definition.rra.iter().any(|rra| rra.cf.cf() == cf)
}

fn first(definition: &Definition) -> Cf {
    definition.rra.first().map_or(Cf::Average, |rra| rra.cf.cf())
}

/// Whether there are extremes to draw around a line; an area has none, it would hide them.
fn has_band(line: &Line<'_>) -> bool {
    let definition = line.rrd.definition;
    line.shape == Shape::Line && [Cf::Average, Cf::Min, Cf::Max].iter().all(|&cf| keeps(definition, cf))
}

/// A file of a DEF: only its colons need a backslash.
fn push_name(out: &mut Vec<u8>, name: &[u8]) {
    for &byte in name {
        if byte == b':' {
            out.push(b'\\');
        }
        out.push(byte);
    }
}

/// A label, at least `width` letters wide, with nothing in it that the graph language reads.
fn escaped(label: &str, width: usize) -> String {
    let mut text = String::with_capacity(label.len());
    for letter in label.chars() {
        match letter {
            ':' => text.push_str("\\:"),
            '\\' => text.push_str("\\\\"),
            letter if letter.is_control() => text.push('?'),
            letter => text.push(letter),
        }
    }
    let missing = width.saturating_sub(label.chars().count());
    text.extend(std::iter::repeat_n(' ', missing));
    text
}
