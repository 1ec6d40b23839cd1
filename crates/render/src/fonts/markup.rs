//! Pango's markup: `<span foreground="red">`, `<b>`, `<i>`, `<u>`, `<s>`, `<big>`, `<small>`, `<sub>`, `<sup>`, `<tt>`.
//!
//! Markup with an error is shown as plain text. (RRDtool shows whatever text it set before.)

use std::sync::Arc;

use graph::picture::scene::Colour;
use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};

use super::description::{Description, families};
use super::style::{Style, Styled};
use super::{UNITS, pixels};

/// Factor between neighbouring named sizes.
const SIZE_STEP: f64 = 1.2;
/// Deepest nesting of elements.
const DEPTH_MAX: usize = 256;
/// Names of sizes from the smallest; the middle one is the size of the text.
const SIZES: [&str; 7] = ["xx-small", "x-small", "small", "medium", "large", "x-large", "xx-large"];
/// Attributes of a span that Pango knows but that have no effect here.
const IGNORED: &[&str] = &[
    "variant",
    "background",
    "bgcolor",
    "background_alpha",
    "bgalpha",
    "underline_color",
    "overline",
    "overline_color",
    "strikethrough_color",
    "fallback",
    "lang",
    "gravity",
    "gravity_hint",
    "font_features",
    "show",
    "insert_hyphens",
    "allow_breaks",
    "line_height",
    "text_transform",
    "segment",
    "font_scale",
    "baseline_shift",
    "font_variations",
];

/// Parses `markup` into styled text; None if it is not valid.
pub(super) fn parse(markup: &str, base: &Style) -> Option<Styled> {
    let mut reader = Reader::from_str(markup);
    let mut styled = Styled { text: String::new(), spans: Vec::new() };
    let mut open = vec![base.clone()];
    loop {
        let top = open.last()?;
        match reader.read_event().ok()? {
            Event::Start(tag) => {
                if open.len() >= DEPTH_MAX {
                    return None;
                }
                open.push(opened(&tag, top)?);
            }
            Event::Empty(tag) => {
                opened(&tag, top)?;
            }
            Event::End(_) => {
                open.pop();
            }
            Event::Text(text) => add(&mut styled, top, &text),
            Event::CData(text) => add(&mut styled, top, &text),
            Event::GeneralRef(name) => {
                let character = name.resolve_char_ref().ok()?;
                let text = match character {
                    Some(character) => character.to_string(),
                    None => entity(&name)?.to_string(),
                };
                add(&mut styled, top, &text);
            }
            Event::Comment(_) | Event::PI(_) => {}
            Event::Decl(_) | Event::DocType(_) => return None,
            Event::Eof => break,
        }
    }
    if open.len() != 1 {
        return None;
    }
    if styled.spans.is_empty() {
        styled.spans.push((0, base.clone()));
    }
    Some(styled)
}

fn add(styled: &mut Styled, style: &Style, text: &str) {
    if text.is_empty() {
        return;
    }
    styled.text.push_str(text);
    let end = styled.text.len();
    match styled.spans.last_mut() {
        Some((last, same)) if same == style => *last = end,
        _ => styled.spans.push((end, style.clone())),
    }
}

fn entity(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => return None,
    })
}

/// The style inside `tag`.
fn opened(tag: &BytesStart<'_>, outer: &Style) -> Option<Style> {
    let mut style = outer.clone();
    let name = tag.name();
    let name: &str = name.as_ref();
    let plain = tag.attributes().next().is_none();
    let describe = |style: &mut Style, change: &dyn Fn(&mut Description)| {
        change(Arc::make_mut(&mut style.description));
    };
    match name {
        "markup" if plain => {}
        "b" if plain => describe(&mut style, &|it| it.weight = 700),
        "i" if plain => describe(&mut style, &|it| it.italic = true),
        "tt" if plain => describe(&mut style, &|it| it.families = vec!["Monospace".to_string()]),
        "u" if plain => style.underline = true,
        "s" if plain => style.strike = true,
        "big" if plain => style.size *= SIZE_STEP,
        "small" if plain => style.size /= SIZE_STEP,
        "sub" if plain => style.script = Some(false),
        "sup" if plain => style.script = Some(true),
        "span" => {
            for attribute in tag.attributes() {
                let attribute = attribute.ok()?;
                let value = unescape(&attribute.value).ok()?;
                span(&mut style, attribute.key.as_ref(), &value)?;
            }
        }
        _ => return None,
    }
    Some(style)
}

/// Applies one attribute of a span; None if Pango would refuse it.
fn span(style: &mut Style, key: &str, value: &str) -> Option<()> {
    match key {
        "font" | "font_desc" => {
            let (described, size) = style.description.changed_by(value);
            style.description = Arc::new(described);
            if let Some(points) = size {
                style.size = pixels(points);
            }
        }
        "font_family" | "face" => Arc::make_mut(&mut style.description).families = families(value),
        "size" | "font_size" => style.size = size(value, style.size)?,
        "style" | "font_style" => match value {
            "normal" => Arc::make_mut(&mut style.description).italic = false,
            "italic" | "oblique" => Arc::make_mut(&mut style.description).italic = true,
            _ => return None,
        },
        "weight" | "font_weight" => {
            Arc::make_mut(&mut style.description).weight = Description::weight_of(value)?;
        }
        "stretch" | "font_stretch" => {
            let described = Arc::make_mut(&mut style.description);
            described.stretch = 100;
            if !described.style(value) {
                return None;
            }
        }
        "foreground" | "fgcolor" | "color" => {
            let alpha = style.colour.map_or(1.0, |colour| colour.alpha);
            style.colour = Some(Colour { alpha, ..colour(value)? });
        }
        "alpha" | "fgalpha" => {
            let black = Colour { red: 0.0, green: 0.0, blue: 0.0, alpha: 1.0 };
            style.colour = Some(Colour { alpha: alpha(value)?, ..style.colour.unwrap_or(black) });
        }
        "underline" => style.underline = value != "none",
        "strikethrough" => style.strike = value == "true",
        "rise" => style.rise = length(value)?,
        "letter_spacing" => style.spacing = length(value)?,
        _ => return IGNORED.contains(&key).then_some(()),
    }
    Some(())
}

/// A size in pixels.
fn size(value: &str, own: f64) -> Option<f64> {
    if let Some(at) = SIZES.iter().position(|name| *name == value) {
        return Some(own * SIZE_STEP.powi(at as i32 - 3));
    }
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| *number > 0.0);
    match value {
        "larger" => Some(own * SIZE_STEP),
        "smaller" => Some(own / SIZE_STEP),
        _ => {
            if let Some(points) = value.strip_suffix("pt") {
                number(points).map(pixels)
            } else if let Some(percent) = value.strip_suffix('%') {
                Some(own * number(percent)? / 100.0)
            } else {
                number(value).map(|units| pixels(units / UNITS))
            }
        }
    }
}

/// A length in pixels: Pango's units, or points.
fn length(value: &str) -> Option<f64> {
    match value.strip_suffix("pt") {
        Some(points) => points.parse::<f64>().ok(),
        None => value.parse::<i32>().ok().map(|units| f64::from(units) / UNITS),
    }
}

fn alpha(value: &str) -> Option<f64> {
    match value.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().ok().map(|percent| percent / 100.0),
        None => value.parse::<f64>().ok().map(|part| part / 65_535.0),
    }
}

/// `#rgb`, `#rrggbb`, `#rrrrggggbbbb`, each with an optional opacity at the end, or a common name.
fn colour(value: &str) -> Option<Colour> {
    const NAMES: &[(&str, u32)] = &[
        ("black", 0x0000_00ff),
        ("blue", 0x0000_ffff),
        ("brown", 0xa52a_2aff),
        ("cyan", 0x00ff_ffff),
        ("darkblue", 0x0000_8bff),
        ("darkgreen", 0x0064_00ff),
        ("darkred", 0x8b00_00ff),
        ("gold", 0xffd7_00ff),
        ("gray", 0xbebe_beff),
        ("green", 0x00ff_00ff),
        ("grey", 0xbebe_beff),
        ("lightblue", 0xadd8_e6ff),
        ("lightgreen", 0x90ee_90ff),
        ("lightgray", 0xd3d3_d3ff),
        ("lightgrey", 0xd3d3_d3ff),
        ("magenta", 0xff00_ffff),
        ("maroon", 0xb030_60ff),
        ("navy", 0x0000_80ff),
        ("orange", 0xffa5_00ff),
        ("pink", 0xffc0_cbff),
        ("purple", 0xa020_f0ff),
        ("red", 0xff00_00ff),
        ("turquoise", 0x40e0_d0ff),
        ("violet", 0xee82_eeff),
        ("white", 0xffff_ffff),
        ("yellow", 0xffff_00ff),
    ];
    let Some(digits) = value.strip_prefix('#') else {
        let name = value.to_ascii_lowercase();
        return NAMES.iter().find(|(known, _)| *known == name).map(|(_, rgba)| Colour::new(*rgba));
    };
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let (each, parts) = match digits.len() {
        3 => (1, 3),
        4 => (1, 4),
        6 => (2, 3),
        8 => (2, 4),
        12 => (4, 3),
        16 => (4, 4),
        _ => return None,
    };
    let whole = f64::from((1_u32 << (4 * each)) - 1);
    let part = |index: usize| {
        let text = &digits[index * each..(index + 1) * each];
        u32::from_str_radix(text, 16).ok().map(|number| f64::from(number) / whole)
    };
    let alpha = if parts == 4 { part(3)? } else { 1.0 };
    Some(Colour { red: part(0)?, green: part(1)?, blue: part(2)?, alpha })
}
