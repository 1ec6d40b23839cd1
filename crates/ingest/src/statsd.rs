//! statsd's lines, with DogStatsD's tags and packed values: `name:value|type|@rate|#key:value,key:value`.
//!
//! `c` counts, `g` is a level (`+` and `-` change it), `ms`, `h` and `d` are timers, `s` counts distinct texts. What they add up to
//! between two flushes, [`aggregate`] says.

pub mod aggregate;

use crate::fault::Fault;
use crate::number::Number;
use crate::refusal::Refusal;

/// Bytes of a line at most: what a datagram holds.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// Tags of a line at most.
pub const TAGS_MAX: usize = 64;

/// What a line says of a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StatsdValue<'a> {
    /// So much more, corrected by the sample rate.
    Count(f64),
    /// A level.
    Gauge(f64),
    /// A change of a level.
    GaugeChange(f64),
    /// A measured time, which stands for so many.
    Timer(f64, f64),
    /// A text to be counted once.
    Member(&'a [u8]),
}

/// Takes what lines say.
pub trait StatsdSink {
    /// A value of a name; tags are in the order of the line.
    fn value(&mut self, name: &str, tags: &[(&str, &str)], value: StatsdValue<'_>);
    /// A line, or the rest of one, that does not count.
    fn refused(&mut self, refusal: Refusal<'_>);
}

/// Reads the lines of a datagram, or of a connection up to a line's end.
pub fn read_lines(text: &[u8], first_line: usize, sink: &mut dyn StatsdSink) {
    let mut tags = Vec::new();
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        if let Err(fault) = read_line(line, &mut tags, sink) {
            sink.refused(Refusal { line: first_line + index, text: line, fault });
        }
    }
}

fn read_line<'a>(
    line: &'a [u8],
    tags: &mut Vec<(&'a str, &'a str)>,
    sink: &mut dyn StatsdSink,
) -> Result<(), Fault> {
    if line.len() > LINE_BYTES_MAX {
        return Err(Fault::TooLong);
    }
    if line.starts_with(b"_e{") || line.starts_with(b"_sc|") {
        return Err(Fault::IsEvent);
    }
    let line = std::str::from_utf8(line).map_err(|_| Fault::NotUtf8)?;
    let (name, mut rest) = line.split_once(':').ok_or(Fault::NoValue)?;
    if name.is_empty() {
        return Err(Fault::NoName);
    }
    loop {
        let bit = Bit::parse(rest, tags)?;
        for value in bit.values() {
            sink.value(name, tags, value?);
        }
        match bit.rest {
            Some(more) => rest = more,
            None => return Ok(()),
        }
    }
}

/// One of the parts of a line: values, a type, and what follows them. statsd's own clients put several after a name.
struct Bit<'a> {
    values: &'a str,
    kind: &'a str,
    rate: f64,
    rest: Option<&'a str>,
}

impl<'a> Bit<'a> {
    fn parse(text: &'a str, tags: &mut Vec<(&'a str, &'a str)>) -> Result<Self, Fault> {
        tags.clear();
        let (values, rest) = text.split_once('|').ok_or(Fault::UnknownType)?;
        let end = rest.find(['|', ':']).unwrap_or(rest.len());
        let mut bit = Bit { values, kind: &rest[..end], rate: 1.0, rest: None };
        let mut rest = &rest[end..];
        while !rest.is_empty() {
            if let Some(more) = rest.strip_prefix(':') {
                bit.rest = Some(more);
                break;
            }
            rest = rest.strip_prefix('|').unwrap_or(rest);
            let is_rate = rest.starts_with('@');
            // Only a rate may be followed by a colon that begins another part: tags and containers have their own.
            let end = if is_rate { rest.find(['|', ':']) } else { rest.find('|') }.unwrap_or(rest.len());
            let part = &rest[..end];
            rest = &rest[end..];
            if let Some(rate) = part.strip_prefix('@') {
                let rate = rate.parse::<f64>().ok().filter(|rate| *rate > 0.0 && *rate <= 1.0);
                bit.rate = rate.ok_or(Fault::BadRate)?;
            } else if let Some(list) = part.strip_prefix('#') {
                read_tags(list, tags)?;
            }
            // Containers, times and what else DogStatsD has of its own says nothing that is kept.
        }
        Ok(bit)
    }

    fn values(&self) -> impl Iterator<Item = Result<StatsdValue<'a>, Fault>> {
        let (kind, rate) = (self.kind, self.rate);
        // A member of a set may have a colon; of several numbers each counts.
        let mut whole = (kind == "s").then_some(self.values);
        let mut several = (kind != "s").then(|| self.values.split(':'));
        std::iter::from_fn(move || {
            let text = whole.take().or_else(|| several.as_mut()?.next())?;
            Some(value_of(kind, text, rate))
        })
    }
}

fn value_of<'a>(kind: &str, text: &'a str, rate: f64) -> Result<StatsdValue<'a>, Fault> {
    if kind == "s" {
        return Ok(StatsdValue::Member(text.as_bytes()));
    }
    if !matches!(kind, "c" | "m" | "g" | "ms" | "h" | "d") {
        return Err(Fault::UnknownType);
    }
    let number = match text.is_empty() {
        true => return Err(Fault::NoValue),
        false => Number::of_text(text.as_bytes()).ok_or(Fault::BadValue)?.to_f64(),
    };
    if !number.is_finite() {
        return Err(Fault::NotFinite);
    }
    Ok(match kind {
        "c" | "m" => StatsdValue::Count(number / rate),
        "g" if text.starts_with(['+', '-']) => StatsdValue::GaugeChange(number),
        "g" => StatsdValue::Gauge(number),
        _ => StatsdValue::Timer(number, 1.0 / rate),
    })
}

/// `key:value,flag`; a flag has the value `true`.
fn read_tags<'a>(list: &'a str, tags: &mut Vec<(&'a str, &'a str)>) -> Result<(), Fault> {
    for tag in list.split(',').filter(|tag| !tag.is_empty()) {
        let (key, value) = tag.split_once(':').unwrap_or((tag, "true"));
        if key.is_empty() {
            return Err(Fault::BadTag);
        }
        if tags.len() == TAGS_MAX {
            return Err(Fault::TooManyTags);
        }
        if !value.is_empty() {
            tags.push((key, value));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
