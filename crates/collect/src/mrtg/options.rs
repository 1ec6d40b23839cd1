//! The words after `Options`.

/// The words that exist.
const WORDS: &[&str] = &[
    "growright",
    "bits",
    "noinfo",
    "absolute",
    "gauge",
    "nopercent",
    "avgpeak",
    "derive",
    "integer",
    "perhour",
    "perminute",
    "transparent",
    "dorelpercent",
    "unknaszero",
    "withzeroes",
    "noborder",
    "noarrow",
    "noi",
    "noo",
    "nobanner",
    "nolegend",
    "logscale",
    "secondmean",
    "pngdate",
    "printrouter",
    "expscale",
];

/// The words of a value: commas and blanks separate them.
pub fn words(value: &str) -> impl Iterator<Item = String> + '_ {
    let words = value.split(|letter: char| letter == ',' || letter.is_whitespace());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// The words that do not exist.
pub fn unknown(value: &str) -> impl Iterator<Item = String> + '_ {
    words(value).filter(|word| !WORDS.contains(&word.as_str()))
}

/// Whether a word is among a value's.
pub fn has(value: Option<&str>, word: &str) -> bool {
    value.is_some_and(|value| words(value).any(|found| found == word))
}
