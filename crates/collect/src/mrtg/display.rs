//! How a target is shown: kept with its RRD, for who draws it.

use serde::{Deserialize, Serialize};

use super::config::TargetSettings;
use super::options;

/// What a target's keywords say of its page and its graphs. A keyword that is not given is `None`, so that who draws knows its
/// own default; one that is given and empty is an empty text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Display {
    /// `Title`
    pub title: String,
    /// `PageTop`: HTML.
    pub page_top: Option<String>,
    /// `PageFoot`: HTML.
    pub page_foot: Option<String>,
    /// `YLegend`
    pub y_legend: Option<String>,
    /// `ShortLegend`: the unit.
    pub short_legend: Option<String>,
    /// `Legend1` to `Legend5`.
    pub legends: [Option<String>; 5],
    /// `LegendI`; empty: the line is left out.
    pub legend_in: Option<String>,
    /// `LegendO`; empty: the line is left out.
    pub legend_out: Option<String>,
    /// `PNGTitle`
    pub graph_title: Option<String>,
    /// The words of `Options`: `bits`, `growright`, `nopercent`, `perminute` and others.
    pub options: Vec<String>,
    /// `Unscaled`: which graphs reach to the maximum, by letter: d, w, m, y.
    pub unscaled: String,
    /// `WithPeak`: which graphs show the maximum, by letter.
    pub with_peak: String,
    /// `Suppress`: which graphs are left out, by letter.
    pub suppress: String,
    /// `MaxBytes1` and `MaxBytes2`: what 100 % are.
    pub max: [Option<f64>; 2],
    /// `AbsMax`
    pub absolute_max: Option<f64>,
    /// `kilo`
    pub kilo: Option<f64>,
    /// `kMG`: the prefixes, `-` where a magnitude is left out.
    pub prefixes: Option<Vec<String>>,
    /// `Factor`
    pub factor: Option<f64>,
    /// `YTics`
    pub y_tics: Option<u32>,
    /// `YTicsFactor`
    pub y_tics_factor: Option<f64>,
    /// `Colours`: names and colours.
    pub colours: Vec<(String, String)>,
    /// `XSize` and `YSize`
    pub size: [Option<u32>; 2],
    /// `Timezone`
    pub time_zone: Option<String>,
    /// `Weekformat`
    pub week_format: Option<String>,
    /// `TimeStrPos`
    pub time_position: Option<String>,
    /// `TimeStrFmt`
    pub time_format: Option<String>,
}

impl Display {
    /// What `target` says.
    pub fn of(target: &TargetSettings) -> Self {
        let text = |keyword: &str| target.get(keyword).map(str::to_string);
        let number = |keyword: &str| target.get(keyword).and_then(|value| value.trim().parse::<f64>().ok());
        let letters = |keyword: &str| graphs(target.get(keyword).unwrap_or(""));
        let pixels = |keyword: &str| target.get(keyword).and_then(|value| value.trim().parse().ok());
        Display {
            title: text("title").unwrap_or_default(),
            page_top: text("pagetop"),
            page_foot: text("pagefoot"),
            y_legend: text("ylegend"),
            short_legend: text("shortlegend"),
            legends: ["legend1", "legend2", "legend3", "legend4", "legend5"].map(text),
            legend_in: text("legendi"),
            legend_out: text("legendo"),
            graph_title: text("pngtitle"),
            options: options::words(target.get("options").unwrap_or("")).collect(),
            unscaled: letters("unscaled"),
            with_peak: letters("withpeak"),
            suppress: letters("suppress"),
            max: ["maxbytes1", "maxbytes2"].map(|keyword| number(keyword).or_else(|| number("maxbytes"))),
            absolute_max: number("absmax"),
            kilo: number("kilo"),
            prefixes: target
                .get("kmg")
                .map(|list| list.split(',').map(|prefix| prefix.trim().to_string()).collect()),
            factor: number("factor"),
            y_tics: pixels("ytics"),
            y_tics_factor: number("yticsfactor"),
            colours: colours(target.get("colours").unwrap_or("")),
            size: [pixels("xsize"), pixels("ysize")],
            time_zone: text("timezone"),
            week_format: text("weekformat"),
            time_position: text("timestrpos"),
            time_format: text("timestrfmt"),
        }
    }
}

/// The letters of graphs; `n` takes all away.
fn graphs(value: &str) -> String {
    let value = value.to_lowercase();
    if value.contains('n') {
        return String::new();
    }
    "dwmy".chars().filter(|letter| value.contains(*letter)).collect()
}

fn colours(value: &str) -> Vec<(String, String)> {
    let pairs = value.split(',').filter_map(|pair| pair.split_once('#'));
    pairs.map(|(name, colour)| (name.trim().to_string(), format!("#{}", colour.trim()))).collect()
}
