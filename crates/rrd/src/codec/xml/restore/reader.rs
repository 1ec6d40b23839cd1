//! Elements and their texts, without comments, declarations and the blanks between them.

use std::borrow::Cow;

use quick_xml::events::{BytesRef, Event};

use super::RestoreError;
use crate::number::{self, NumberError, leading_integer};

/// Longest text of an element in bytes. The longest in use, a long expression, has a few hundred.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// The name of an element in lower case. Names within rows, nearly all there are, allocate nothing.
pub(super) type Name = Cow<'static, str>;

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// An element begins; its name in lower case.
    Open(Name),
    /// An element ends.
    Close(Name),
    /// The document ends.
    End,
}

pub(super) struct Reader<'a> {
    xml: &'a str,
    events: quick_xml::Reader<&'a [u8]>,
    /// The end of an empty element whose start was just returned.
    pending_close: Option<Name>,
    /// Memory for the text of a number.
    scratch: String,
}

impl<'a> Reader<'a> {
    pub(super) fn new(xml: &'a str) -> Self {
        Reader { xml, events: quick_xml::Reader::from_str(xml), pending_close: None, scratch: String::new() }
    }

    fn line(&self) -> usize {
        let end = (self.events.buffer_position() as usize).min(self.xml.len());
        1 + memchr::memchr_iter(b'\n', &self.xml.as_bytes()[..end]).count()
    }

    pub(super) fn malformed(&self, what: &str) -> RestoreError {
        RestoreError::Malformed { line: self.line(), what: what.to_string() }
    }

    pub(super) fn expected(&self, want: &str, got: &Tag) -> RestoreError {
        let got = match got {
            Tag::Open(name) => format!("<{name}>"),
            Tag::Close(name) => format!("</{name}>"),
            Tag::End => return RestoreError::Ended,
        };
        RestoreError::Element { line: self.line(), want: want.to_string(), got }
    }

    fn event(&mut self) -> Result<Event<'a>, RestoreError> {
        match self.events.read_event() {
            Ok(event) => Ok(event),
            Err(error) => Err(self.malformed(&error.to_string())),
        }
    }

    /// The start or end of the next element.
    pub(super) fn tag(&mut self) -> Result<Tag, RestoreError> {
        if let Some(name) = self.pending_close.take() {
            return Ok(Tag::Close(name));
        }
        loop {
            match self.event()? {
                Event::Start(start) => return Ok(Tag::Open(name(start.name().as_ref()))),
                Event::Empty(start) => {
                    let name = name(start.name().as_ref());
                    self.pending_close = Some(name.clone());
                    return Ok(Tag::Open(name));
                }
                Event::End(end) => return Ok(Tag::Close(name(end.name().as_ref()))),
                Event::Text(text) if text.trim_ascii().is_empty() => {}
                Event::Text(text) => return Err(self.stray_text(&text)),
                Event::CData(text) => return Err(self.stray_text(&text)),
                Event::GeneralRef(text) => return Err(self.stray_text(&text)),
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
                Event::Eof => return Ok(Tag::End),
            }
        }
    }

    fn stray_text(&self, text: &str) -> RestoreError {
        let text = text.trim().chars().take(80).collect();
        RestoreError::Text { line: self.line(), text }
    }

    /// As [`Reader::tag`], but the document must not end before `parent` does.
    pub(super) fn tag_within(&mut self, parent: &str) -> Result<Tag, RestoreError> {
        match self.tag()? {
            Tag::End => Err(RestoreError::Ended),
            Tag::Close(name) if name != parent => {
                Err(self.expected(&format!("</{parent}>"), &Tag::Close(name)))
            }
            tag => Ok(tag),
        }
    }

    /// The text of element `parent`, whose start was just read, up to its end.
    pub(super) fn text(&mut self, parent: &str) -> Result<String, RestoreError> {
        let mut value = String::new();
        self.text_to(parent, &mut value)?;
        Ok(value)
    }

    /// As [`Reader::text`], appended to `value`.
    fn text_to(&mut self, parent: &str, value: &mut String) -> Result<(), RestoreError> {
        let no_value =
            |reader: &Self, got: &str| RestoreError::NoValue { line: reader.line(), got: got.to_string() };
        if self.pending_close.take().is_some() {
            return Err(no_value(self, parent));
        }
        loop {
            match self.event()? {
                Event::Text(text) => value.push_str(&text),
                Event::CData(text) => value.push_str(&text),
                Event::GeneralRef(reference) => value.push(self.resolve(&reference)?),
                Event::Comment(_) | Event::PI(_) => {}
                Event::End(_) => return Ok(()),
                Event::Start(start) | Event::Empty(start) => {
                    let got = name(start.name().as_ref());
                    return Err(no_value(self, &got));
                }
                Event::Eof | Event::Decl(_) | Event::DocType(_) => return Err(RestoreError::Ended),
            }
            if value.len() > TEXT_BYTES_MAX {
                return Err(self.malformed("a value is too long"));
            }
        }
    }

    /// Characters by number, and XML's five predefined names; a dump defines no others.
    fn resolve(&self, reference: &BytesRef<'_>) -> Result<char, RestoreError> {
        if let Ok(Some(character)) = reference.resolve_char_ref() {
            return Ok(character);
        }
        match &**reference {
            "lt" => Ok('<'),
            "gt" => Ok('>'),
            "amp" => Ok('&'),
            "apos" => Ok('\''),
            "quot" => Ok('"'),
            _ => Err(self.malformed("Entity not defined")),
        }
    }

    /// The number in element `parent`.
    pub(super) fn number(&mut self, parent: &str) -> Result<f64, RestoreError> {
        let mut text = std::mem::take(&mut self.scratch);
        text.clear();
        let number = self.text_to(parent, &mut text).and_then(|()| self.parse_number(text.trim_ascii()));
        self.scratch = text;
        number
    }

    fn parse_number(&self, text: &str) -> Result<f64, RestoreError> {
        let trailing = match number::parse(text.as_bytes()) {
            // As everywhere in RRDtool, an unknown value in a dump is the plain NaN.
            Ok(value) if value.is_nan() => return Ok(crate::live::UNKNOWN),
            Ok(value) => return Ok(value),
            Err(NumberError::Trailing { .. }) => true,
            Err(NumberError::Nothing) => false,
        };
        // An exponent too large for RRDtool's own parser gives infinity.
        if let Ok(value) = text.parse::<f64>()
            && value.is_infinite()
        {
            return Ok(value);
        }
        Err(RestoreError::Number { line: self.line(), kind: "double", text: text.to_string(), trailing })
    }

    /// The count in element `parent`. As C's `strtoul`: no digits are zero, anything after them is ignored, a minus wraps.
    pub(super) fn count(&mut self, parent: &str) -> Result<u64, RestoreError> {
        let text = self.text(parent)?;
        let (negative, digits) = leading_integer(&text);
        let value = if digits.is_empty() { Some(0) } else { digits.parse().ok() };
        let value: u64 = value.ok_or_else(|| self.too_large("ulong", &text))?;
        Ok(if negative { value.wrapping_neg() } else { value })
    }

    /// The time in element `parent`, in the same way.
    pub(super) fn time(&mut self, parent: &str) -> Result<i64, RestoreError> {
        let text = self.text(parent)?;
        let (negative, digits) = leading_integer(&text);
        let value: i128 = if digits.is_empty() { 0 } else { digits.parse().unwrap_or(i128::MAX) };
        let value = if negative { -value } else { value };
        i64::try_from(value).map_err(|_| self.too_large("time_t", &text))
    }

    fn too_large(&self, kind: &'static str, text: &str) -> RestoreError {
        RestoreError::Number { line: self.line(), kind, text: text.trim_ascii().to_string(), trailing: false }
    }
}

fn name(name: &str) -> Name {
    match name {
        "row" => Cow::Borrowed("row"),
        "v" => Cow::Borrowed("v"),
        name => Cow::Owned(name.to_ascii_lowercase()),
    }
}
