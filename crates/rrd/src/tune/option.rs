//! The options among the words of a tune.

use super::error::TuneError;

/// What an option sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    Heartbeat,
    Minimum,
    Maximum,
    Type,
    Rename,
    DeltaPos,
    DeltaNeg,
    FailureThreshold,
    WindowLength,
    Alpha,
    Beta,
    Gamma,
    GammaDeviation,
    SmoothingWindow,
    SmoothingWindowDeviation,
    AberrantReset,
    Step,
    /// The caller's business.
    Daemon,
}

const OPTIONS: [(char, &str, Setting); 18] = [
    ('h', "heartbeat", Setting::Heartbeat),
    ('i', "minimum", Setting::Minimum),
    ('a', "maximum", Setting::Maximum),
    ('d', "data-source-type", Setting::Type),
    ('r', "data-source-rename", Setting::Rename),
    ('p', "deltapos", Setting::DeltaPos),
    ('n', "deltaneg", Setting::DeltaNeg),
    ('f', "failure-threshold", Setting::FailureThreshold),
    ('w', "window-length", Setting::WindowLength),
    ('x', "alpha", Setting::Alpha),
    ('y', "beta", Setting::Beta),
    ('z', "gamma", Setting::Gamma),
    ('v', "gamma-deviation", Setting::GammaDeviation),
    ('s', "smoothing-window", Setting::SmoothingWindow),
    ('S', "smoothing-window-deviation", Setting::SmoothingWindowDeviation),
    ('b', "aberrant-reset", Setting::AberrantReset),
    ('t', "step", Setting::Step),
    ('D', "daemon", Setting::Daemon),
];

/// Walks the options in their order; the other words gather in [`Options::rest`]. All options take an
/// argument and none may be abbreviated; `--` ends them.
pub(super) struct Options<'w> {
    words: std::slice::Iter<'w, &'w str>,
    pub(super) rest: Vec<&'w str>,
}

impl<'w> Options<'w> {
    pub(super) fn new(words: &'w [&'w str]) -> Self {
        Options { words: words.iter(), rest: Vec::new() }
    }

    /// The next option and its argument.
    pub(super) fn next(&mut self) -> Option<Result<(Setting, &'w str), TuneError>> {
        loop {
            let word = *self.words.next()?;
            if word == "--" {
                self.rest.extend(self.words.by_ref());
            } else if let Some(long) = word.strip_prefix("--") {
                return Some(self.long(long));
            } else if let Some(short) = word.strip_prefix('-').filter(|short| !short.is_empty()) {
                return Some(self.short(short));
            } else {
                self.rest.push(word);
            }
        }
    }

    fn long(&mut self, word: &'w str) -> Result<(Setting, &'w str), TuneError> {
        let (name, given) = match word.split_once('=') {
            Some((name, argument)) => (name, Some(argument)),
            None => (word, None),
        };
        let known = OPTIONS.iter().find(|(_, long, _)| *long == name);
        let (_, _, setting) = known.ok_or_else(|| TuneError::InvalidOption(word.to_string()))?;
        let argument = given.or_else(|| self.words.next().copied());
        Ok((*setting, argument.ok_or_else(|| TuneError::MissingArgument(name.to_string()))?))
    }

    fn short(&mut self, word: &'w str) -> Result<(Setting, &'w str), TuneError> {
        let mut rest = word.chars();
        let letter = rest.next().unwrap_or('-');
        let known = OPTIONS.iter().find(|(short, _, _)| *short == letter);
        let (_, _, setting) = known.ok_or_else(|| TuneError::InvalidOption(letter.to_string()))?;
        let argument = match rest.as_str() {
            "" => self.words.next().copied(),
            attached => Some(attached),
        };
        Ok((*setting, argument.ok_or_else(|| TuneError::MissingArgument(letter.to_string()))?))
    }
}
