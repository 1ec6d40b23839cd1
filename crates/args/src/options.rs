//! Options among the arguments of a verb, in the manner of RRDtool's own parser.
//!
//! Options may occur anywhere before `--`; the other arguments keep their order. Short options can be joined
//! (`-ad ADDRESS`) and take an argument attached or as the next one, long options take it after `=` or as the
//! next one. Compat, found by running Debian's rrdtool: long options cannot be abbreviated, POSIXLY_CORRECT
//! changes nothing, and a message is cut ([`OPTION_MESSAGE_BYTES_MAX`]).

use rrd::tune::OPTION_MESSAGE_BYTES_MAX;

/// One option that a verb knows.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec<T> {
    /// Its letter; `None` when it has only a long name.
    pub short: Option<u8>,
    /// Its long name, without dashes.
    pub long: &'static str,
    /// Whether it takes an argument.
    pub argument: bool,
    /// What it means to the verb.
    pub tag: T,
}

/// An option that takes an argument.
pub const fn with_argument<T>(short: u8, long: &'static str, tag: T) -> OptionSpec<T> {
    OptionSpec { short: Some(short), long, argument: true, tag }
}

/// An option that takes none.
pub const fn flag<T>(short: u8, long: &'static str, tag: T) -> OptionSpec<T> {
    OptionSpec { short: Some(short), long, argument: false, tag }
}

/// Why the options could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionError {
    /// No such option.
    Invalid(Vec<u8>),
    /// A final short option without its argument.
    MissingShort(u8),
    /// A final long option without its argument.
    MissingLong(&'static str),
    /// A long option with an argument it does not take.
    TakesNone(&'static str),
}

impl OptionError {
    /// RRDtool's text.
    pub fn text(&self) -> Vec<u8> {
        let (what, name) = match self {
            OptionError::Invalid(name) => ("invalid option", &**name),
            OptionError::MissingShort(letter) => {
                ("option requires an argument", std::slice::from_ref(letter))
            }
            OptionError::MissingLong(name) => ("option requires argument", name.as_bytes()),
            OptionError::TakesNone(name) => ("option takes no arguments", name.as_bytes()),
        };
        let mut text = [what.as_bytes(), b" -- '", name, b"'"].concat();
        text.truncate(OPTION_MESSAGE_BYTES_MAX);
        text
    }
}

/// An option in the arguments: its tag, and its argument (empty when it takes none).
pub type FoundOption<'w, T> = (T, &'w [u8]);

/// Iterates over the options in their order and collects the other arguments in [`Options::rest`].
#[derive(Debug)]
pub struct Options<'w, 'k, T> {
    known: &'k [OptionSpec<T>],
    args: std::slice::Iter<'w, &'w [u8]>,
    /// Letters after the last option, in the same argument.
    joined: &'w [u8],
    rest: Vec<&'w [u8]>,
}

impl<'w, 'k, T: Copy> Options<'w, 'k, T> {
    /// The options among `args`, which do not include the verb's name.
    pub fn new(known: &'k [OptionSpec<T>], args: &'w [&'w [u8]]) -> Self {
        Options { known, args: args.iter(), joined: b"", rest: Vec::new() }
    }

    /// The next option.
    ///
    /// # Errors
    /// [`OptionError`]; iteration can continue after it.
    #[allow(clippy::should_implement_trait, reason = "an iterator would hide that errors come in between")]
    pub fn next(&mut self) -> Option<Result<FoundOption<'w, T>, OptionError>> {
        if let Some((&letter, rest)) = self.joined.split_first() {
            return Some(self.short(letter, rest));
        }
        loop {
            match *self.args.next()? {
                b"--" => self.rest.extend(self.args.by_ref()),
                [b'-', b'-', name @ ..] => return Some(self.long(name)),
                [b'-', letter, rest @ ..] => return Some(self.short(*letter, rest)),
                arg => self.rest.push(arg),
            }
        }
    }

    /// The arguments that are not options. Complete once [`Options::next`] has returned `None`.
    pub fn rest(self) -> Vec<&'w [u8]> {
        self.rest
    }

    fn short(&mut self, letter: u8, rest: &'w [u8]) -> Result<FoundOption<'w, T>, OptionError> {
        self.joined = b"";
        let known = self.known.iter().find(|known| known.short == Some(letter));
        let known = known.ok_or_else(|| OptionError::Invalid(vec![letter]))?;
        if !known.argument {
            self.joined = rest;
            return Ok((known.tag, b""));
        }
        let argument = if rest.is_empty() { self.args.next().copied() } else { Some(rest) };
        argument.map(|argument| (known.tag, argument)).ok_or(OptionError::MissingShort(letter))
    }

    fn long(&mut self, arg: &'w [u8]) -> Result<FoundOption<'w, T>, OptionError> {
        let (name, attached) = match memchr::memchr(b'=', arg) {
            Some(at) => (&arg[..at], Some(&arg[at + 1..])),
            None => (arg, None),
        };
        let known = self.known.iter().find(|known| known.long.as_bytes() == name);
        let known = known.ok_or_else(|| OptionError::Invalid(arg.to_vec()))?;
        if !known.argument {
            return if attached.is_none() {
                Ok((known.tag, b""))
            } else {
                Err(OptionError::TakesNone(known.long))
            };
        }
        let argument = attached.or_else(|| self.args.next().copied());
        argument.map(|argument| (known.tag, argument)).ok_or(OptionError::MissingLong(known.long))
    }
}

/// The argument of `--daemon`, if any, and the arguments that are not options.
pub type DaemonAndRest<'w> = (Option<&'w [u8]>, Vec<&'w [u8]>);

/// Reads the arguments of a verb whose only option is `--daemon`.
///
/// # Errors
/// [`OptionError`].
pub fn daemon_and_rest<'w>(args: &'w [&'w [u8]]) -> Result<DaemonAndRest<'w>, OptionError> {
    const KNOWN: &[OptionSpec<()>] = &[with_argument(b'd', "daemon", ())];
    let mut options = Options::new(KNOWN, args);
    let mut daemon = None;
    while let Some(option) = options.next() {
        daemon = Some(option?.1);
    }
    Ok((daemon, options.rest()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[OptionSpec<char>] = &[
        with_argument(b'd', "daemon", 'd'),
        flag(b'F', "noflush", 'F'),
        flag(b's', "skip-past-updates", 's'),
        OptionSpec { short: None, long: "rraindex", argument: true, tag: 'r' },
    ];

    /// `want`: each option as `letter argument`, then the rest after a bar; or the message.
    fn check(args: &str, want: &str) {
        let args: Vec<&[u8]> = args.split_whitespace().map(str::as_bytes).collect();
        let mut options = Options::new(KNOWN, &args);
        let mut got = String::new();
        while let Some(option) = options.next() {
            match option {
                Ok((tag, argument)) => got.push_str(&format!("{tag} {};", String::from_utf8_lossy(argument))),
                Err(error) => {
                    assert_eq!(String::from_utf8(error.text()).unwrap(), want, "{args:?}");
                    return;
                }
            }
        }
        got.push('|');
        got.push_str(
            &options.rest().iter().map(|arg| String::from_utf8_lossy(arg)).collect::<Vec<_>>().join(" "),
        );
        assert_eq!(got, want, "{args:?}");
    }

    #[test]
    fn options_stand_anywhere_before_two_dashes() {
        check("a --daemon x b -F c", "d x;F ;|a b c");
        check("a -- --daemon x", "|a --daemon x");
        check("-dx a - b", "d x;|a - b");
        check("-Fsd x a", "F ;s ;d x;|a");
        check("-sFx", "invalid option -- 'x'");
        check("--daemon=x=y --rraindex 1", "d x=y;r 1;|");
        check("--daemon= a", "d ;|a");
    }

    #[test]
    fn messages_are_rrdtools() {
        check("--nof", "invalid option -- 'nof'");
        check("--foo=bar", "invalid option -- 'foo=bar'");
        check("-q", "invalid option -- 'q'");
        check("a -d", "option requires an argument -- 'd'");
        check("a --daemon", "option requires argument -- 'daemon'");
        check("--noflush=1", "option takes no arguments -- 'noflush'");
        check("--skip-past-updates=1", "option takes no arguments -- 'skip-past-updates");
        check("--no-such-option-of-rrdtool-at-all", "invalid option -- 'no-such-option-of-rrdtool-at");
    }
}
