//! The options among the arguments of a tune.

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
    /// Left to the caller.
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

/// Iterates over the options in their order and collects the other arguments in [`Options::rest`]. All options
/// take an argument and none may be abbreviated; `--` ends them.
pub(super) struct Options<'w> {
    args: std::slice::Iter<'w, &'w str>,
    pub(super) rest: Vec<&'w str>,
}

impl<'w> Options<'w> {
    pub(super) fn new(args: &'w [&'w str]) -> Self {
        Options { args: args.iter(), rest: Vec::new() }
    }

    /// The next option and its argument.
    pub(super) fn next(&mut self) -> Option<Result<(Setting, &'w str), TuneError>> {
        loop {
            let arg = *self.args.next()?;
            if arg == "--" {
                self.rest.extend(self.args.by_ref());
            } else if let Some(long) = arg.strip_prefix("--") {
                return Some(self.long(long));
            } else if let Some(short) = arg.strip_prefix('-').filter(|short| !short.is_empty()) {
                return Some(self.short(short));
            } else {
                self.rest.push(arg);
            }
        }
    }

    fn long(&mut self, option: &'w str) -> Result<(Setting, &'w str), TuneError> {
        let (name, attached) = match option.split_once('=') {
            Some((name, argument)) => (name, Some(argument)),
            None => (option, None),
        };
        let known = OPTIONS.iter().find(|(_, long, _)| *long == name);
        let (_, _, setting) = known.ok_or_else(|| TuneError::InvalidOption(option.to_string()))?;
        let argument = attached.or_else(|| self.args.next().copied());
        Ok((*setting, argument.ok_or_else(|| TuneError::MissingArgument(name.to_string()))?))
    }

    fn short(&mut self, option: &'w str) -> Result<(Setting, &'w str), TuneError> {
        let mut rest = option.chars();
        let letter = rest.next().unwrap_or('-');
        let known = OPTIONS.iter().find(|(short, _, _)| *short == letter);
        let (_, _, setting) = known.ok_or_else(|| TuneError::InvalidOption(letter.to_string()))?;
        let argument = match rest.as_str() {
            "" => self.args.next().copied(),
            attached => Some(attached),
        };
        Ok((*setting, argument.ok_or_else(|| TuneError::MissingArgument(letter.to_string()))?))
    }
}
