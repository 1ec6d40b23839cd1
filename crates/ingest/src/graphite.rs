//! Graphite's plaintext lines: `PATH VALUE TIME`, where a path may have tags: `name;key=value;key=value`.
//!
//! A time of -1, or none, is now. A value that is not finite is refused, as carbon drops NaN.

use crate::fault::Fault;
use crate::number::{Number, nanoseconds};
use crate::pickle::{PickleError, PickledPoint};
use crate::pushed::Pushed;
use crate::refusal::{Refusal, Sink};
use crate::sample::Kind;

/// Bytes of a line at most: carbon's own limit of a path is that of a file name, and its reader's is 16 KiB.
pub const LINE_BYTES_MAX: usize = 16 << 10;
/// Tags of a path at most.
pub const TAGS_MAX: usize = 64;

/// Reads lines, from text that ends with a line: those of a datagram, or of a connection up to a line's end.
pub fn read_lines(text: &[u8], first_line: usize, sink: &mut dyn Sink) {
    let mut tags = Vec::new();
    let mut start = 0;
    let ends = memchr::memchr_iter(b'\n', text).chain(std::iter::once(text.len()));
    for (number, end) in (first_line..).zip(ends) {
        let line = text[start..end].trim_ascii();
        start = end + 1;
        if !line.is_empty() {
            let read = read_line(line, tags, sink);
            if let Err(fault) = read.1 {
                sink.refused(Refusal { line: number, text: line, fault });
            }
            tags = read.0;
        }
    }
}

type Tags<'a> = Vec<(&'a str, &'a str)>;

/// Reads a line; gives the memory for tags back.
fn read_line<'a>(line: &'a [u8], mut tags: Tags<'a>, sink: &mut dyn Sink) -> (Tags<'a>, Result<(), Fault>) {
    let parsed = parse_line(line, &mut tags);
    let result = parsed.map(|(name, value, time)| {
        sink.pushed(&Pushed { name, labels: &tags, time, value, kind: Kind::Gauge });
    });
    (tags, result)
}

fn parse_line<'a>(line: &'a [u8], tags: &mut Tags<'a>) -> Result<(&'a str, Number, Option<i64>), Fault> {
    if line.len() > LINE_BYTES_MAX {
        return Err(Fault::TooLong);
    }
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let path = words.next().ok_or(Fault::NoName)?;
    let value = words.next().ok_or(Fault::NoValue)?;
    let value = Number::of_text(value).ok_or(Fault::BadValue)?;
    let time = words.next().map(|time| Number::of_text(time).ok_or(Fault::BadTime)).transpose()?;
    if words.next().is_some() {
        return Err(Fault::TooManyParts);
    }
    Ok((split_path(path, tags)?, finite(value)?, time_of(time)?))
}

/// Reads a message of the pickle protocol.
///
/// # Errors
/// When it cannot be used at all.
pub fn read_pickle(message: &[u8], sink: &mut dyn Sink) -> Result<(), PickleError> {
    crate::pickle::read(message, &mut |index, entry| {
        let (text, result) = match entry {
            Ok(point) => (point.path, take_pickled(point, sink)),
            Err(fault) => (&[][..], Err(fault)),
        };
        if let Err(fault) = result {
            sink.refused(Refusal { line: index, text, fault });
        }
    })
}

fn take_pickled(point: PickledPoint<'_>, sink: &mut dyn Sink) -> Result<(), Fault> {
    let mut tags = Vec::new();
    let name = split_path(point.path, &mut tags)?;
    let (value, time) = (finite(point.value)?, time_of(Some(point.time))?);
    sink.pushed(&Pushed { name, labels: &tags, time, value, kind: Kind::Gauge });
    Ok(())
}

fn finite(value: Number) -> Result<Number, Fault> {
    if value.is_finite() { Ok(value) } else { Err(Fault::NotFinite) }
}

fn time_of(time: Option<Number>) -> Result<Option<i64>, Fault> {
    match time {
        None => Ok(None),
        Some(time) if time.to_f64() == -1.0 => Ok(None),
        Some(time) => nanoseconds(time).filter(|time| *time >= 0).map(Some).ok_or(Fault::BadTime),
    }
}

/// The name of a path; `tags` gets its tags.
///
/// # Errors
/// When it is no text, or a tag has no form.
pub fn split_path<'a>(path: &'a [u8], tags: &mut Vec<(&'a str, &'a str)>) -> Result<&'a str, Fault> {
    tags.clear();
    let path = std::str::from_utf8(path).map_err(|_| Fault::NotUtf8)?;
    let (name, rest) = match memchr::memchr(b';', path.as_bytes()) {
        Some(at) => (&path[..at], Some(&path[at + 1..])),
        None => (path, None),
    };
    if name.is_empty() {
        return Err(Fault::NoName);
    }
    for tag in rest.into_iter().flat_map(|rest| rest.split(';')) {
        let (key, value) = tag.split_once('=').ok_or(Fault::BadTag)?;
        if key.is_empty() || value.is_empty() {
            return Err(Fault::BadTag);
        }
        if tags.len() == TAGS_MAX {
            return Err(Fault::TooManyTags);
        }
        tags.push((key, value));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Recorded, pieces_at_random};

    fn check(text: &str, want: &[&str]) {
        let mut sink = Recorded::default();
        read_lines(text.as_bytes(), 1, &mut sink);
        assert_eq!(sink.lines, want, "{text:?}");
    }

    #[test]
    fn a_line_is_a_path_a_value_and_a_time() {
        check("a.b 1 1700000000\n", &["a.b{} 1 @1700000000000000000 Gauge"]);
        check(
            "a.b 1.5 1700000000.25\r\nc -2 -1\r\n",
            &["a.b{} 1.5 @1700000000250000000 Gauge", "c{} -2 @now Gauge"],
        );
        check("a\t  1\t2", &["a{} 1 @2000000000 Gauge"]);
        check(
            "a 18446744073709551615\n\n \nb 1e3 -1.0",
            &["a{} 18446744073709551615 @now Gauge", "b{} 1000 @now Gauge"],
        );
    }

    #[test]
    fn paths_have_tags() {
        check("disk.used;host=a b;x 1 2", &["1 bad_value: disk.used;host=a b;x 1 2"]);
        check("disk.used;host=a;rack=b=c 1 2", &["disk.used{host=a,rack=b=c} 1 @2000000000 Gauge"]);
        for bad in ["d; 1 2", "d;x 1 2", "d;=x 1 2", "d;x= 1 2", "d;x=y; 1 2"] {
            check(bad, &[&format!("1 bad_tag: {bad}")]);
        }
        check(";x=y 1 2", &["1 no_name: ;x=y 1 2"]);
        let many = format!("d{} 1 2", ";x=y".repeat(TAGS_MAX + 1));
        check(&many, &[&format!("1 too_many_tags: {many}")]);
    }

    #[test]
    fn a_bad_line_costs_only_itself() {
        check(
            "a 1 2\nb\nc x 2\nd nan 2\ne 1 y\nf 1 2 3\ng inf\nh 1 -7\ni 3 4",
            &[
                "a{} 1 @2000000000 Gauge",
                "2 no_value: b",
                "3 bad_value: c x 2",
                "4 not_finite: d nan 2",
                "5 bad_time: e 1 y",
                "6 too_many_parts: f 1 2 3",
                "7 not_finite: g inf",
                "8 bad_time: h 1 -7",
                "i{} 3 @4000000000 Gauge",
            ],
        );
        let mut sink = Recorded::default();
        read_lines(b"\xff 1 2\na 1 2", 7, &mut sink);
        assert_eq!(sink.lines, ["7 not_utf8: \u{fffd} 1 2", "a{} 1 @2000000000 Gauge"]);
        let long = format!("{} 1 2", "x".repeat(LINE_BYTES_MAX));
        check(&long, &[&format!("1 too_long: {long}")]);
    }

    #[test]
    fn pickled_points_are_the_same_samples() {
        let mut sink = Recorded::default();
        // [("a;x=y", (-1, 2.0)), ("b", (3, nan))]
        let message = b"](X\x05\x00\x00\x00a;x=yJ\xff\xff\xff\xffK\x02\x86\x86X\x01\x00\x00\x00bK\x03G\x7f\xf8\x00\x00\x00\x00\x00\x00\x86\x86e.";
        read_pickle(message, &mut sink).unwrap();
        assert_eq!(sink.lines, ["a{x=y} 2 @now Gauge", "2 not_finite: b"]);
    }

    #[test]
    fn random_lines_cause_no_panic() {
        const PIECES: &[&str] =
            &["a.b", " ", "\n", ";", "=", "1", "-1", "nan", "1e309", "1700000000", "\t", "\r\n", "\u{fe}"];
        pieces_at_random(3_000, PIECES, crate::fuzzing::fuzz_graphite);
    }
}
