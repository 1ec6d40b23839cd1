//! Pango's font descriptions: `DejaVu Sans Mono,monospace Bold Italic 12`.

/// A parsed font description.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Description {
    /// Families in the order of preference.
    pub(super) families: Vec<String>,
    /// 400 is normal, 700 bold.
    pub(super) weight: u16,
    /// Italic or oblique.
    pub(super) italic: bool,
    /// Width of the letters in percent of normal.
    pub(super) stretch: u16,
}

/// Words for a weight, without hyphens.
const WEIGHTS: &[(&str, u16)] = &[
    ("thin", 100),
    ("ultralight", 200),
    ("extralight", 200),
    ("light", 300),
    ("semilight", 350),
    ("demilight", 350),
    ("book", 380),
    ("medium", 500),
    ("semibold", 600),
    ("demibold", 600),
    ("bold", 700),
    ("ultrabold", 800),
    ("extrabold", 800),
    ("heavy", 900),
    ("black", 900),
    ("ultraheavy", 1000),
    ("extraheavy", 1000),
    ("ultrablack", 1000),
    ("extrablack", 1000),
];
/// Words for a width, without hyphens, in percent.
const STRETCHES: &[(&str, u16)] = &[
    ("ultracondensed", 50),
    ("extracondensed", 63),
    ("condensed", 75),
    ("semicondensed", 87),
    ("semiexpanded", 113),
    ("expanded", 125),
    ("extraexpanded", 150),
    ("ultraexpanded", 200),
];
/// Words that have no effect here.
const IGNORED: &[&str] = &["normal", "roman", "regular", "smallcaps"];

impl Default for Description {
    fn default() -> Description {
        Description { families: Vec::new(), weight: 400, italic: false, stretch: 100 }
    }
}

impl Description {
    /// Parses a description; a size in it is ignored.
    pub(super) fn parse(text: &str) -> Description {
        let mut described = Description::default();
        let mut rest = text.trim();
        let (before, last) = split_last(rest);
        if number(last).is_some() {
            rest = before;
        }
        // A comma ends the families: only style words follow.
        loop {
            let (before, word) = split_last(rest);
            if word.is_empty() || !described.style(word) {
                break;
            }
            rest = before;
        }
        described.families = families(rest);
        described
    }

    /// The description, changed by `text` (`font_desc` in markup), and the size in points in it.
    pub(super) fn changed_by(&self, text: &str) -> (Description, Option<f64>) {
        let mut described = Description::parse(text);
        if described.families.is_empty() {
            described.families.clone_from(&self.families);
        }
        (described, number(split_last(text.trim()).1))
    }

    /// Applies a style word; false if it is not one.
    pub(super) fn style(&mut self, word: &str) -> bool {
        let word: String = word.chars().filter(|c| *c != '-').collect::<String>().to_ascii_lowercase();
        let find =
            |table: &[(&str, u16)]| table.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
        if let Some(weight) = find(WEIGHTS) {
            self.weight = weight;
        } else if let Some(stretch) = find(STRETCHES) {
            self.stretch = stretch;
        } else if word == "italic" || word == "oblique" {
            self.italic = true;
        } else {
            return IGNORED.contains(&word.as_str());
        }
        true
    }

    /// The weight that `word` names, or is the number of.
    pub(super) fn weight_of(word: &str) -> Option<u16> {
        let mut described = Description::default();
        match word.parse::<u16>() {
            Ok(weight) => Some(weight.clamp(1, 1000)),
            Err(_) => described.style(word).then_some(described.weight),
        }
    }
}

/// A list of families.
pub(super) fn families(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|family| !family.is_empty()).map(str::to_string).collect()
}

/// Splits off the last word, at blanks and commas; a comma stays with the rest.
fn split_last(text: &str) -> (&str, &str) {
    let text = text.trim_end();
    match text.rfind([' ', '\t', ',']) {
        Some(at) => (&text[..=at], &text[at + 1..]),
        None => ("", text),
    }
}

/// A size: a number, or a number of pixels (`px`).
fn number(word: &str) -> Option<f64> {
    let word = word.strip_suffix("px").unwrap_or(word);
    let plain = word.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    plain.then(|| word.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, families: &[&str], weight: u16, italic: bool, stretch: u16) {
        let families = families.iter().map(ToString::to_string).collect();
        assert_eq!(Description::parse(text), Description { families, weight, italic, stretch }, "{text}");
    }

    #[test]
    fn families_and_styles_are_told_apart() {
        check("", &[], 400, false, 100);
        check("DejaVu Sans Mono", &["DejaVu Sans Mono"], 400, false, 100);
        check(
            "DejaVu Sans Mono,monospace,Courier",
            &["DejaVu Sans Mono", "monospace", "Courier"],
            400,
            false,
            100,
        );
        check("Sans Bold Italic 12", &["Sans"], 700, true, 100);
        check("Sans, Semi-Bold", &["Sans"], 600, false, 100);
        check("DejaVu Sans Condensed Oblique", &["DejaVu Sans"], 400, true, 75);
        check("Bold 7.5", &[], 700, false, 100);
        check("Futura 2 Medium", &["Futura 2"], 500, false, 100);
        check("Noto Sans CJK JP 10px", &["Noto Sans CJK JP"], 400, false, 100);
        check("Normal", &[], 400, false, 100);
    }
}
