//! Options among the words of a verb, in the manner of RRDtool's own parser.
//!
//! Options may stand anywhere before `--`; the other words keep their order. Short options can be joined
//! (`-ad ADDRESS`) and take an argument attached or as the next word, long ones take it behind `=` or as the
//! next word. Compat, found by running Debian's rrdtool: long options cannot be abbreviated, POSIXLY_CORRECT
//! changes nothing, and a message is cut to 47 bytes.

/// Bytes of a message that RRDtool keeps.
const MESSAGE_BYTES_MAX: usize = 47;

/// One option that a verb knows.
#[derive(Clone, Copy, Debug)]
pub struct Known<T> {
    /// Its letter; `None` = it has only a long name.
    pub short: Option<u8>,
    /// Its long name, without dashes.
    pub long: &'static str,
    /// Whether it takes an argument.
    pub argument: bool,
    /// What it is to the verb.
    pub tag: T,
}

/// An option that takes an argument.
pub const fn with_argument<T>(short: u8, long: &'static str, tag: T) -> Known<T> {
    Known { short: Some(short), long, argument: true, tag }
}

/// An option that takes none.
pub const fn flag<T>(short: u8, long: &'static str, tag: T) -> Known<T> {
    Known { short: Some(short), long, argument: false, tag }
}

/// Why the options could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionError {
    /// No such option.
    Invalid(Vec<u8>),
    /// A short option at the end without its argument.
    MissingShort(u8),
    /// A long option at the end without its argument.
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
        text.truncate(MESSAGE_BYTES_MAX);
        text
    }
}

/// An option that was given: what it is, and its argument (empty when it takes none).
pub type Given<'w, T> = (T, &'w [u8]);

/// Walks the options in their order; the other words gather in [`Options::rest`].
#[derive(Debug)]
pub struct Options<'w, 'k, T> {
    known: &'k [Known<T>],
    words: std::slice::Iter<'w, &'w [u8]>,
    /// Letters behind the one that was just given, in the same word.
    joined: &'w [u8],
    rest: Vec<&'w [u8]>,
}

impl<'w, 'k, T: Copy> Options<'w, 'k, T> {
    /// The options among `words`, which do not hold the verb's name.
    pub fn new(known: &'k [Known<T>], words: &'w [&'w [u8]]) -> Self {
        Options { known, words: words.iter(), joined: b"", rest: Vec::new() }
    }

    /// The next option.
    ///
    /// # Errors
    /// [`OptionError`]; the walk can go on behind it.
    #[allow(clippy::should_implement_trait, reason = "an iterator would hide that errors come in between")]
    pub fn next(&mut self) -> Option<Result<Given<'w, T>, OptionError>> {
        if let Some((&letter, behind)) = self.joined.split_first() {
            return Some(self.short(letter, behind));
        }
        loop {
            match *self.words.next()? {
                b"--" => self.rest.extend(self.words.by_ref()),
                [b'-', b'-', name @ ..] => return Some(self.long(name)),
                [b'-', letter, behind @ ..] => return Some(self.short(*letter, behind)),
                word => self.rest.push(word),
            }
        }
    }

    /// The words that are no options, once [`Options::next`] has given `None`.
    pub fn rest(self) -> Vec<&'w [u8]> {
        self.rest
    }

    fn short(&mut self, letter: u8, behind: &'w [u8]) -> Result<Given<'w, T>, OptionError> {
        self.joined = b"";
        let known = self.known.iter().find(|known| known.short == Some(letter));
        let known = known.ok_or_else(|| OptionError::Invalid(vec![letter]))?;
        if !known.argument {
            self.joined = behind;
            return Ok((known.tag, b""));
        }
        let argument = if behind.is_empty() { self.words.next().copied() } else { Some(behind) };
        argument.map(|argument| (known.tag, argument)).ok_or(OptionError::MissingShort(letter))
    }

    fn long(&mut self, word: &'w [u8]) -> Result<Given<'w, T>, OptionError> {
        let (name, given) = match memchr::memchr(b'=', word) {
            Some(at) => (&word[..at], Some(&word[at + 1..])),
            None => (word, None),
        };
        let known = self.known.iter().find(|known| known.long.as_bytes() == name);
        let known = known.ok_or_else(|| OptionError::Invalid(word.to_vec()))?;
        if !known.argument {
            return if given.is_none() {
                Ok((known.tag, b""))
            } else {
                Err(OptionError::TakesNone(known.long))
            };
        }
        let argument = given.or_else(|| self.words.next().copied());
        argument.map(|argument| (known.tag, argument)).ok_or(OptionError::MissingLong(known.long))
    }
}

/// The argument of `--daemon`, if it was given, and the words that are no options.
pub type DaemonAndRest<'w> = (Option<&'w [u8]>, Vec<&'w [u8]>);

/// Reads the words of a verb whose only option is `--daemon`.
///
/// # Errors
/// [`OptionError`].
pub fn daemon_and_rest<'w>(words: &'w [&'w [u8]]) -> Result<DaemonAndRest<'w>, OptionError> {
    const KNOWN: &[Known<()>] = &[with_argument(b'd', "daemon", ())];
    let mut options = Options::new(KNOWN, words);
    let mut daemon = None;
    while let Some(given) = options.next() {
        daemon = Some(given?.1);
    }
    Ok((daemon, options.rest()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Known<char>] = &[
        with_argument(b'd', "daemon", 'd'),
        flag(b'F', "noflush", 'F'),
        flag(b's', "skip-past-updates", 's'),
        Known { short: None, long: "rraindex", argument: true, tag: 'r' },
    ];

    /// `want`: each option as `letter argument`, then the rest behind a bar; or the message.
    fn check(words: &str, want: &str) {
        let words: Vec<&[u8]> = words.split_whitespace().map(str::as_bytes).collect();
        let mut options = Options::new(KNOWN, &words);
        let mut got = String::new();
        while let Some(given) = options.next() {
            match given {
                Ok((tag, argument)) => got.push_str(&format!("{tag} {};", String::from_utf8_lossy(argument))),
                Err(error) => {
                    assert_eq!(String::from_utf8(error.text()).unwrap(), want, "{words:?}");
                    return;
                }
            }
        }
        got.push('|');
        got.push_str(
            &options.rest().iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" "),
        );
        assert_eq!(got, want, "{words:?}");
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
