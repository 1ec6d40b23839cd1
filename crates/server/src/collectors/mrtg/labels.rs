//! What an mrtg.cfg says of how its targets are shown (`mrtg-reference(1)`), for the page.

use std::sync::Arc;

use collect::mrtg::display::Display;
use suggest::{Label, LabelGraph, LabelLine};

/// The data sources of MRTG's RRDs.
const SOURCES: [&str; 2] = ["ds0", "ds1"];
/// What they are called without `LegendI` and `LegendO`.
const LEGENDS: [&str; 2] = ["In", "Out"];

/// The label of a target's RRD.
pub fn label(display: &Display) -> Label {
    let has = |word: &str| display.options.iter().any(|option| option.eq_ignore_ascii_case(word));
    let bits = if has("bits") { 8.0 } else { 1.0 };
    let (per, second) = match (has("perminute"), has("perhour")) {
        (true, _) => (60.0, "min"),
        (_, true) => (3600.0, "h"),
        _ => (1.0, "s"),
    };
    let factor = bits * if has("gauge") { 1.0 } else { per } * display.factor.unwrap_or(1.0);
    let given = [&display.short_legend, &display.y_legend].into_iter().flatten().map(|text| plain(text));
    let unit =
        given.into_iter().find(|text| !text.is_empty()).unwrap_or_else(|| match (has("gauge"), bits > 1.0) {
            (true, true) => "bit".to_string(),
            (true, false) => String::new(),
            (false, true) => format!("bit/{second}"),
            (false, false) => format!("B/{second}"),
        });
    let lines = [(&display.legend_in, has("noi")), (&display.legend_out, has("noo"))];
    let lines = lines.into_iter().enumerate().filter_map(|(index, (legend, is_hidden))| {
        let label = match legend {
            // An empty legend leaves the line out.
            Some(text) if text.trim().is_empty() => return None,
            Some(text) => plain(text).trim_end_matches(':').trim().to_string(),
            None => LEGENDS[index].to_string(),
        };
        let label = if label.is_empty() { LEGENDS[index].to_string() } else { label };
        let line = LabelLine {
            source: SOURCES[index].to_string(),
            label,
            is_area: index == 0,
            colour: colour(display, index),
        };
        (!is_hidden).then_some(line)
    });
    let most = display.max.iter().flatten().copied().fold(f64::NAN, f64::max);
    let upper = (display.unscaled.contains('d') && most.is_finite()).then_some(most * factor);
    let base = if display.kilo == Some(1024.0) { 1024 } else { 1000 };
    let graph = LabelGraph { unit, factor, base, upper, lines: lines.collect() };
    Label { title: plain(&display.title), graph: Some(Arc::new(graph)) }
}

/// The colour of line number `index`, if it is six hexadecimal digits.
fn colour(display: &Display, index: usize) -> Option<String> {
    let (_, colour) = display.colours.get(index)?;
    let digits = colour.strip_prefix('#')?;
    let is_one = digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then(|| digits.to_lowercase())
}

/// A text of MRTG's pages, which is HTML, without tags and with the usual entities resolved.
fn plain(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        rest = after.split_once('>').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    for (entity, letter) in
        [("&nbsp;", " "), ("&#160;", " "), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")]
    {
        text = text.replace(entity, letter);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_keywords_make_a_graph() {
        let display = Display {
            title: "Traffic &amp; more for <B>r1</B>".to_string(),
            options: vec!["growright".to_string(), "Bits".to_string()],
            max: [Some(1250.0), Some(2500.0)],
            unscaled: "dw".to_string(),
            legend_in: Some("&nbsp;From&nbsp;ISP:".to_string()),
            kilo: Some(1024.0),
            colours: vec![
                ("GREEN".to_string(), "#00CC00".to_string()),
                ("BLUE".to_string(), "#00f".to_string()),
            ],
            ..Display::default()
        };
        let label = label(&display);
        assert_eq!(label.title, "Traffic & more for r1");
        let graph = label.graph.unwrap();
        assert_eq!(
            (graph.unit.as_str(), graph.factor, graph.base, graph.upper),
            ("bit/s", 8.0, 1024, Some(20_000.0))
        );
        let lines: Vec<_> = graph
            .lines
            .iter()
            .map(|line| (line.label.as_str(), line.is_area, line.colour.as_deref()))
            .collect();
        assert_eq!(lines, [("From ISP", true, Some("00cc00")), ("Out", false, None)]);
    }

    #[test]
    fn what_is_hidden_or_a_gauge_is_not_a_rate() {
        let options = ["gauge", "noo"].map(String::from).into();
        let gauge = label(&Display {
            options,
            y_legend: Some("Degrees".to_string()),
            factor: Some(0.1),
            ..Display::default()
        });
        let graph = gauge.graph.unwrap();
        assert_eq!((graph.unit.as_str(), graph.factor, graph.lines.len()), ("Degrees", 0.1, 1));
        let hourly = Display {
            options: vec!["perhour".to_string()],
            legend_out: Some(String::new()),
            ..Display::default()
        };
        let graph = label(&hourly).graph.unwrap();
        assert_eq!((graph.unit.as_str(), graph.factor, graph.lines.len()), ("B/h", 3600.0, 1));
    }
}
