//! One line of the line protocol, in parts.

use std::borrow::Cow;

use super::{LINE_BYTES_MAX, TAGS_MAX};
use crate::fault::Fault;
use crate::number::Number;

/// A text without its escapes; borrowed where there are none.
type Text<'a> = Cow<'a, str>;

/// What stands as the value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FieldValue {
    Number(Number),
    Text,
    Boolean,
}

/// A line, in memory that serves one after the other.
#[derive(Debug, Default)]
pub(super) struct Line<'a> {
    pub(super) measurement: Text<'a>,
    pub(super) tags: Vec<(Text<'a>, Text<'a>)>,
    pub(super) fields: Vec<(Text<'a>, FieldValue)>,
    pub(super) time_text: Option<&'a str>,
    /// In nanoseconds.
    pub(super) time: Option<i64>,
}

/// Bytes that may be looked through in vain for the ends of texts, in a body: else lines that all begin one without an end cost a
/// look through the rest each.
pub(super) const LOOKED_IN_VAIN_MAX: usize = 1 << 20;

/// Bytes of the first line: an end of line inside of a text is not its end. What is looked through in vain goes off `patience`.
pub(super) fn length(text: &[u8], patience: &mut usize) -> usize {
    let end = memchr::memchr(b'\n', text).unwrap_or(text.len());
    if memchr::memchr(b'"', &text[..end]).is_none() || text[0] == b'#' {
        return end;
    }
    // Before the fields a quotation mark is a letter like any other.
    let mut at = match blank_outside_escapes(&text[..end]) {
        Some(blank) => blank,
        None => return end,
    };
    let (mut is_text, mut follows_equals) = (false, false);
    let look_max = end.max(LINE_BYTES_MAX.min(*patience)).min(text.len());
    while at < look_max {
        match text[at] {
            b'\\' => at += 1,
            b'"' if is_text => is_text = false,
            b'"' if follows_equals => is_text = true,
            b'\n' if !is_text => return at,
            _ => {}
        }
        follows_equals = text.get(at) == Some(&b'=');
        at += 1;
    }
    if !is_text && look_max == text.len() {
        return look_max;
    }
    // A text without an end costs its line only.
    *patience = patience.saturating_sub(look_max);
    end
}

fn blank_outside_escapes(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 1,
            b' ' => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

impl<'a> Line<'a> {
    pub(super) fn clear(&mut self) {
        self.measurement = Cow::Borrowed("");
        self.tags.clear();
        self.fields.clear();
        (self.time_text, self.time) = (None, None);
    }

    /// Takes a line apart.
    pub(super) fn parse(&mut self, text: &'a str) -> Result<(), Fault> {
        let (measurement, mut rest) = piece(text, b", ", b", ");
        if measurement.is_empty() {
            return Err(Fault::NoName);
        }
        self.measurement = measurement;
        while let Some(after) = rest.strip_prefix(',') {
            rest = self.tag(after)?;
        }
        rest = rest.trim_start_matches(' ');
        if rest.is_empty() {
            return Err(Fault::NoValue);
        }
        loop {
            rest = self.field(rest)?;
            match rest.strip_prefix(',') {
                Some(after) => rest = after,
                None => break,
            }
        }
        let time = rest.trim_matches(' ');
        if time.contains(' ') {
            return Err(Fault::TooManyParts);
        }
        self.time_text = Some(time).filter(|time| !time.is_empty());
        Ok(())
    }

    fn tag(&mut self, text: &'a str) -> Result<&'a str, Fault> {
        let (key, rest) = piece(text, b",= ", b"=, ");
        let (value, rest) = match rest.strip_prefix('=') {
            Some(rest) if !key.is_empty() => piece(rest, b",= ", b", "),
            _ => return Err(Fault::BadTag),
        };
        if self.tags.len() == TAGS_MAX {
            return Err(Fault::TooManyTags);
        }
        // As InfluxDB has it: a tag without a value is none.
        if !value.is_empty() {
            self.tags.push((key, value));
        }
        Ok(rest)
    }

    fn field(&mut self, text: &'a str) -> Result<&'a str, Fault> {
        let (key, rest) = piece(text, b",= ", b"=, ");
        let rest = rest.strip_prefix('=').filter(|_| !key.is_empty()).ok_or(Fault::NoValue)?;
        if let Some(text) = rest.strip_prefix('"') {
            let end = quote(text).ok_or(Fault::OpenQuote)?;
            self.fields.push((key, FieldValue::Text));
            let rest = &text[end + 1..];
            return if rest.is_empty() || rest.starts_with([',', ' ']) {
                Ok(rest)
            } else {
                Err(Fault::BadValue)
            };
        }
        let end = rest.find([',', ' ']).unwrap_or(rest.len());
        let value = value(&rest[..end]).ok_or(Fault::BadValue)?;
        self.fields.push((key, value));
        Ok(&rest[end..])
    }
}

/// Where a text ends: at a quotation mark that is not escaped.
fn quote(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'"', b'\\', bytes.get(from..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        from = at + 2;
    }
}

fn value(text: &str) -> Option<FieldValue> {
    let number = match text.as_bytes() {
        [digits @ .., b'i'] => std::str::from_utf8(digits).ok()?.parse::<i64>().ok().map(Number::from),
        [digits @ .., b'u'] => std::str::from_utf8(digits).ok()?.parse::<u64>().ok().map(Number::Unsigned),
        b"t" | b"T" | b"true" | b"True" | b"TRUE" | b"f" | b"F" | b"false" | b"False" | b"FALSE" => {
            return Some(FieldValue::Boolean);
        }
        text => Number::of_text(text),
    };
    number.map(FieldValue::Number)
}

/// The text up to one of `ends` that is not escaped, without the backslashes before `escapable`; and the rest.
fn piece<'a>(text: &'a str, escapable: &[u8], ends: &[u8]) -> (Text<'a>, &'a str) {
    let bytes = text.as_bytes();
    let mut plain: Option<String> = None;
    let (mut from, mut at) = (0, 0);
    while at < bytes.len() && !ends.contains(&bytes[at]) {
        let is_escape = bytes[at] == b'\\' && bytes.get(at + 1).is_some_and(|next| escapable.contains(next));
        if is_escape {
            plain.get_or_insert_default().push_str(&text[from..at]);
            from = at + 1;
            at += 1;
        }
        at += 1;
    }
    let piece = match plain {
        None => Cow::Borrowed(&text[..at]),
        Some(mut plain) => {
            plain.push_str(&text[from..at]);
            Cow::Owned(plain)
        }
    };
    (piece, &text[at..])
}
