//! The tokens of a time specification.
//!
//! Which words are known depends on the context: units after the number of an offset, all others elsewhere. A
//! character that starts no token ends the text and is not consumed.

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The end, or a character that starts no token.
    End,
    Number,
    /// Letters that form none of the known words.
    Unknown,
    Plus,
    Minus,
    Dot,
    Colon,
    Slash,
    Midnight,
    Noon,
    Teatime,
    Am,
    Pm,
    Yesterday,
    Today,
    Tomorrow,
    Now,
    RangeStart,
    RangeEnd,
    Epoch,
    /// Months after January.
    Month(i32),
    /// Days after Sunday.
    Weekday(i32),
    Unit(Unit),
}

/// The unit of an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
    /// The letter `m`: months or minutes.
    MonthOrMinute,
}

const WORDS: &[(&str, Kind)] = &[
    ("midnight", Kind::Midnight),
    ("noon", Kind::Noon),
    ("teatime", Kind::Teatime),
    ("am", Kind::Am),
    ("pm", Kind::Pm),
    ("yesterday", Kind::Yesterday),
    ("today", Kind::Today),
    ("tomorrow", Kind::Tomorrow),
    ("now", Kind::Now),
    ("n", Kind::Now),
    ("start", Kind::RangeStart),
    ("s", Kind::RangeStart),
    ("end", Kind::RangeEnd),
    ("e", Kind::RangeEnd),
    ("epoch", Kind::Epoch),
];

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

const WEEKDAYS: [&str; 7] = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

const UNITS: &[(&str, Unit)] = &[
    ("s", Unit::Second),
    ("sec", Unit::Second),
    ("second", Unit::Second),
    ("seconds", Unit::Second),
    ("min", Unit::Minute),
    ("minute", Unit::Minute),
    ("minutes", Unit::Minute),
    ("h", Unit::Hour),
    ("hr", Unit::Hour),
    ("hour", Unit::Hour),
    ("hours", Unit::Hour),
    ("d", Unit::Day),
    ("day", Unit::Day),
    ("days", Unit::Day),
    ("w", Unit::Week),
    ("wk", Unit::Week),
    ("week", Unit::Week),
    ("weeks", Unit::Week),
    ("mon", Unit::Month),
    ("month", Unit::Month),
    ("months", Unit::Month),
    ("y", Unit::Year),
    ("yr", Unit::Year),
    ("year", Unit::Year),
    ("years", Unit::Year),
    ("m", Unit::MonthOrMinute),
];

/// Walks over a text and holds one token. Copy it to return to a position later.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    /// Where the token begins and ends; `rest` is where the text after it begins.
    token: (usize, usize),
    rest: usize,
    pub(super) kind: Kind,
    /// What messages show in place of the token.
    shown: Option<i32>,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut scanner = Scanner { text, token: (0, 0), rest: 0, kind: Kind::End, shown: None };
        scanner.advance();
        scanner
    }

    /// The token's text.
    pub(super) fn token(&self) -> &'a str {
        &self.text[self.token.0..self.token.1]
    }

    /// The token and everything after it, as messages show it.
    pub(super) fn remaining(&self) -> String {
        let rest = &self.text[self.rest..];
        self.shown.map_or_else(|| format!("{}{rest}", self.token()), |hour| format!("{hour}{rest}"))
    }

    /// Returns to `before`, after the token there turned out not to be an hour.
    ///
    /// Compat: messages show that number from then on.
    pub(super) fn back_to(&mut self, before: Scanner<'a>, hour: i32) {
        *self = Scanner { shown: Some(hour), ..before };
    }

    /// Advances to the next token; letters form the words of a time.
    pub(super) fn advance(&mut self) {
        self.step(word);
    }

    /// Advances to the next token; letters form a unit.
    pub(super) fn advance_unit(&mut self) {
        self.step(unit);
    }

    fn step(&mut self, find: fn(&str) -> Kind) {
        let bytes = self.text.as_bytes();
        let space = |byte: &u8| byte.is_ascii_whitespace() || matches!(*byte, 0x0b | b'_' | b',');
        let start = self.rest + bytes[self.rest..].iter().take_while(|byte| space(byte)).count();
        let run = |of: fn(&u8) -> bool| start + bytes[start..].iter().take_while(|byte| of(byte)).count();
        let (kind, end) = match bytes.get(start) {
            None => (Kind::End, start),
            Some(byte) if byte.is_ascii_digit() => (Kind::Number, run(u8::is_ascii_digit)),
            Some(byte) if byte.is_ascii_alphabetic() => {
                let end = run(u8::is_ascii_alphabetic);
                (find(&self.text[start..end]), end)
            }
            Some(byte) => (single(*byte), start + 1),
        };
        self.kind = kind;
        self.shown = None;
        self.rest = if kind == Kind::End { start } else { end };
        // Compat: a character that starts no token is in the message twice.
        let width = self.text[start..].chars().next().map_or(0, char::len_utf8);
        self.token = if kind == Kind::End { (start, start + width) } else { (start, end) };
    }
}

fn single(byte: u8) -> Kind {
    match byte {
        b'+' => Kind::Plus,
        b'-' => Kind::Minus,
        b'.' => Kind::Dot,
        b':' => Kind::Colon,
        b'/' => Kind::Slash,
        _ => Kind::End,
    }
}

fn word(text: &str) -> Kind {
    let same = |known: &str| known.eq_ignore_ascii_case(text);
    // Names are complete, or their first three letters.
    let matches = |known: &&str| same(known) || same(&known[..3]);
    if let Some((_, kind)) = WORDS.iter().find(|(known, _)| same(known)) {
        return *kind;
    }
    if let Some(month) = MONTHS.iter().position(matches) {
        return Kind::Month(month as i32);
    }
    WEEKDAYS.iter().position(matches).map_or(Kind::Unknown, |day| Kind::Weekday(day as i32))
}

fn unit(text: &str) -> Kind {
    let found = UNITS.iter().find(|(known, _)| known.eq_ignore_ascii_case(text));
    found.map_or(Kind::Unknown, |(_, unit)| Kind::Unit(*unit))
}
