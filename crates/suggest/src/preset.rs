//! Presets: what a producer means by its data sources.

use std::fmt;

use args::pattern;
use serde::Deserialize;

use crate::Rrd;
use crate::arguments::Shape;

/// The presets that are shipped.
const SHIPPED: &str = include_str!("presets.toml");

/// Presets, in the order in which they are tried.
#[derive(Clone, Debug, Default)]
pub struct Presets {
    graphs: Vec<Preset>,
    stacks: Vec<String>,
}

/// Presets that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresetError(String);

impl PresetError {
    pub(crate) fn new(text: String) -> PresetError {
        PresetError(text)
    }
}

impl fmt::Display for PresetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.trim_end())
    }
}

impl std::error::Error for PresetError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    graph: Vec<Preset>,
    /// Patterns of RRDs that are drawn on top of one another, where several of a directory are drawn together.
    #[serde(default)]
    stack: Vec<String>,
}

/// One graph of the RRDs whose name and sources fit.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// Patterns of names without `.rrd`; a star takes slashes too. Without any, all names fit.
    #[serde(default)]
    pub names: Vec<String>,
    /// What it shows. `{name}` is the last part of the RRD's name, `{directory}` the part before it, and `{1}`, `{2}` ... what
    /// the wildcards of the pattern stand for.
    pub title: Option<String>,
    /// The unit, after `factor`.
    #[serde(default)]
    pub unit: String,
    /// What all values are multiplied by.
    #[serde(default = "one")]
    pub factor: f64,
    /// 1000 or 1024.
    #[serde(default = "thousand")]
    pub base: u32,
    /// The lower end of the axis, unless values are below it.
    pub lower: Option<f64>,
    /// The upper end of the axis, unless values are above it.
    pub upper: Option<f64>,
    /// Sources that need no graph where this one is.
    #[serde(default)]
    pub hide: Vec<String>,
    /// Its lines. All sources must be there.
    pub lines: Vec<PresetLine>,
}

/// A line of a [`Preset`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PresetLine {
    /// The data source.
    pub source: String,
    /// What it is called; default: as the source.
    pub label: Option<String>,
    /// How it is drawn.
    #[serde(default = "line", rename = "as")]
    pub shape: Shape,
    /// What its values are multiplied by besides.
    #[serde(default = "one")]
    pub factor: f64,
}

fn one() -> f64 {
    1.0
}

fn thousand() -> u32 {
    1000
}

fn line() -> Shape {
    Shape::Line
}

impl Presets {
    /// The presets that are shipped.
    ///
    /// # Panics
    /// Never: a test reads them.
    pub fn shipped() -> Presets {
        Presets::parse(SHIPPED).expect("the shipped presets are tested")
    }

    /// Presets of a file in the form of `presets.toml`.
    ///
    /// # Errors
    /// [`PresetError`] with line and reason.
    pub fn parse(text: &str) -> Result<Presets, PresetError> {
        let file: File = toml::from_str(text).map_err(|error| PresetError(error.to_string()))?;
        match file.graph.iter().position(|preset| preset.lines.is_empty()) {
            Some(index) => Err(PresetError(format!("graph {} has no lines", index + 1))),
            None => Ok(Presets { graphs: file.graph, stacks: file.stack }),
        }
    }

    /// The same with those of `others` first.
    #[must_use]
    pub fn with(mut self, mut others: Presets) -> Presets {
        others.graphs.append(&mut self.graphs);
        others.stacks.append(&mut self.stacks);
        others
    }

    /// The presets that fit an RRD; of those that show the same source only the first.
    pub(crate) fn of(&self, rrd: Rrd<'_>) -> Vec<&Preset> {
        let mut found: Vec<&Preset> = Vec::new();
        for preset in self.graphs.iter().filter(|preset| preset.fits(rrd)) {
            let shows = |other: &Preset, source: &str| other.lines.iter().any(|line| line.source == source);
            let is_shown = |line: &PresetLine| found.iter().any(|other| shows(other, &line.source));
            if !preset.lines.iter().any(is_shown) {
                found.push(preset);
            }
        }
        found
    }

    /// Whether RRDs of this name are drawn on top of one another.
    pub(crate) fn is_stack(&self, name: &[u8]) -> bool {
        self.stacks.iter().any(|stack| pattern::matches(stack.as_bytes(), stem(name)))
    }
}

impl Preset {
    fn fits(&self, rrd: Rrd<'_>) -> bool {
        let has = |line: &PresetLine| rrd.definition.ds.iter().any(|ds| ds.name == line.source);
        let fits = |name: &String| pattern::matches(name.as_bytes(), stem(rrd.name));
        self.lines.iter().all(has) && (self.names.is_empty() || self.names.iter().any(fits))
    }

    /// The title of the graph of the RRD called `name`.
    pub(crate) fn title_of(&self, name: &[u8]) -> String {
        let Some(title) = &self.title else { return readable(name) };
        let captures =
            self.names.iter().find_map(|pattern| pattern::captures(pattern.as_bytes(), stem(name)));
        let (directory, last) = split(name);
        let mut text = title.replace("{name}", &plain(last)).replace("{directory}", &plain(directory));
        for (index, part) in captures.unwrap_or_default().iter().enumerate() {
            text = text.replace(&format!("{{{}}}", index + 1), &plain(part));
        }
        text
    }
}

/// A name without `.rrd`.
pub(crate) fn stem(name: &[u8]) -> &[u8] {
    name.strip_suffix(b".rrd").unwrap_or(name)
}

/// The last part of a name, and the part before it.
pub(crate) fn split(name: &[u8]) -> (&[u8], &[u8]) {
    let mut parts = stem(name).rsplitn(3, |&byte| byte == b'/');
    let last = parts.next().unwrap_or_default();
    (parts.next().unwrap_or_default(), last)
}

/// A name for people.
pub(crate) fn readable(name: &[u8]) -> String {
    let (directory, last) = split(name);
    if directory.is_empty() { plain(last) } else { format!("{} {}", plain(directory), plain(last)) }
}

/// Text for people: collectors write odd characters of names as `%2F`.
pub(crate) fn plain(name: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&first, after)) = rest.split_first() {
        let digit = |index: usize| after.get(index).and_then(|&byte| char::from(byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes)
        .chars()
        .map(|letter| if letter.is_control() { '?' } else { letter })
        .collect()
}
