//! The lines of a text that may be anything: however long a line is, only its first bytes are held.

use std::io::{self, BufRead};

use protocol::rrdcached::limits::LINE_BYTES_MAX;

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// Without its line feed.
    Whole(&'a [u8]),
    /// Longer than any line of the protocol; its length in bytes.
    TooLong(u64),
    /// The last one, without a line feed.
    CutOff,
}

/// Reads lines and counts them.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    line: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Lines { input, line: Vec::new(), number: 0 }
    }

    /// The next line and its number, from 1.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn next_line(&mut self) -> io::Result<Option<(u64, Line<'_>)>> {
        self.line.clear();
        let mut bytes = 0;
        loop {
            let part = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                part => part?,
            };
            if part.is_empty() {
                self.number += 1;
                return Ok((bytes > 0).then_some((self.number, Line::CutOff)));
            }
            let end = memchr::memchr(b'\n', part);
            let length = end.unwrap_or(part.len());
            let kept = length.min(LINE_BYTES_MAX - self.line.len());
            self.line.extend_from_slice(&part[..kept]);
            self.input.consume(length + usize::from(end.is_some()));
            bytes += length as u64;
            if end.is_some() {
                break;
            }
        }
        self.number += 1;
        let line = match bytes > LINE_BYTES_MAX as u64 {
            true => Line::TooLong(bytes),
            false => Line::Whole(&self.line),
        };
        Ok(Some((self.number, line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_too_long_or_cut_off() {
        let long = vec![b'x'; LINE_BYTES_MAX + 1];
        let text = [b"update a 1:2\n\n", &long[..], b"\n", &long[1..], b"\nupdate b 1"].concat();
        let mut lines = Lines::new(io::BufReader::with_capacity(7, &text[..]));
        let mut next = |want: Option<(u64, Line<'_>)>| assert_eq!(lines.next_line().unwrap(), want);
        next(Some((1, Line::Whole(b"update a 1:2"))));
        next(Some((2, Line::Whole(b""))));
        next(Some((3, Line::TooLong(LINE_BYTES_MAX as u64 + 1))));
        next(Some((4, Line::Whole(&long[1..]))));
        next(Some((5, Line::CutOff)));
        next(None);
    }
}
