//! XML attributes, texts, colours and ids.

use graph::picture::scene::Colour;

use crate::digits::Places;

/// Decimal places of an opacity: enough for steps of 1/255.
const OPACITY: Places = Places::new(3);

/// Appends ` name="value"`; the value needs no escaping.
pub(super) fn attribute(out: &mut String, name: &str, value: &str) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    out.push_str(value);
    out.push('"');
}

/// Appends escaped text. Characters that XML cannot hold, and those that only confuse a terminal, become replacement
/// characters; other blanks become spaces.
pub(super) fn content(out: &mut String, text: &str) {
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            letter if letter.is_control() => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
}

/// Appends a colour and, unless it is 1, its opacity, for `fill` or `stroke`.
pub(super) fn paint_attributes(out: &mut String, name: &str, colour: Colour) {
    coloured(out, name, &format!("{name}-opacity"), colour);
}

/// Appends a colour and its opacity for a stop of a gradient.
pub(super) fn stop_attributes(out: &mut String, colour: Colour) {
    coloured(out, "stop-color", "stop-opacity", colour);
}

fn coloured(out: &mut String, name: &str, opacity: &str, colour: Colour) {
    attribute(out, name, &hexadecimal(colour));
    if colour.alpha < 1.0 {
        let mut text = String::new();
        OPACITY.push(&mut text, colour.alpha.max(0.0));
        attribute(out, opacity, &text);
    }
}

/// `#rgb` if that is exact, else `#rrggbb`.
fn hexadecimal(colour: Colour) -> String {
    let [red, green, blue] =
        [colour.red, colour.green, colour.blue].map(|part| (part.clamp(0.0, 1.0) * 255.0).round() as u8);
    if [red, green, blue].iter().all(|part| part % 17 == 0) {
        format!("#{:x}{:x}{:x}", red / 17, green / 17, blue / 17)
    } else {
        format!("#{red:02x}{green:02x}{blue:02x}")
    }
}

/// An id that is a hash of the definition (FNV-1a): the same in every run and every picture.
pub(super) fn name_of(definition: &str) -> String {
    let hash = definition
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("r{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_only_text() {
        let mut out = String::new();
        content(&mut out, "</text><script>&\"'\u{0}\u{1b}[31m\u{7f}\u{9b}\u{ffff}\u{fffe}\ta\r\nb");
        assert_eq!(
            out,
            "&lt;/text&gt;&lt;script&gt;&amp;&quot;'\u{fffd}\u{fffd}[31m\u{fffd}\u{fffd}\u{fffd}\u{fffd} a  b"
        );
    }

    #[test]
    fn colours_are_short() {
        assert_eq!(hexadecimal(Colour::new(0x0000_00ff)), "#000");
        assert_eq!(hexadecimal(Colour::new(0xff88_00ff)), "#f80");
        assert_eq!(hexadecimal(Colour::new(0xf3f3_f380)), "#f3f3f3");
        let mut out = String::new();
        paint_attributes(&mut out, "fill", Colour::new(0x8f8f_8fbf));
        assert_eq!(out, " fill=\"#8f8f8f\" fill-opacity=\".749\"");
    }

    #[test]
    fn a_name_says_what_it_names() {
        assert_eq!(name_of("a"), name_of("a"));
        assert_ne!(name_of("a"), name_of("b"));
    }
}
