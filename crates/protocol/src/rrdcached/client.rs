//! The client's side: reads the answer to a request.

use std::io::{self, BufRead, Read};

use crate::frames::code::ErrorCode;

use super::limits::{ANSWER_LINE_BYTES_MAX, ANSWER_LINES_MAX};

/// An answer: its status and the lines after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Negative = error; else the number of lines.
    pub code: i64,
    /// The rest of the status line.
    pub text: String,
    /// The lines, without their line feeds.
    pub lines: Vec<Vec<u8>>,
}

/// What a program is told by the text of a negative answer.
///
/// Compat: the text protocol has no codes, so this is the one place that looks into texts. It knows what callers decide
/// by: rrdcached and Roundel say both in the same words.
pub fn code_of_text(text: &[u8]) -> ErrorCode {
    let illegal_time = b"illegal attempt to update";
    if text.starts_with(b"Unknown command: ") {
        ErrorCode::UnknownCommand
    } else if text.windows(illegal_time.len()).any(|window| window == illegal_time) {
        ErrorCode::IllegalTime
    } else {
        ErrorCode::Other
    }
}

/// Reads one answer. An answer of too many or too long lines, or none at all, is an error of kind `InvalidData`.
///
/// # Errors
/// The stream's; `InvalidData` for an answer that is too long or malformed.
pub fn read_answer(stream: &mut impl BufRead) -> io::Result<Answer> {
    let status = read_line(stream)?;
    let status = String::from_utf8_lossy(&status);
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, format!("no answer of a daemon: {status:?}"));
    let (code, text) = status.split_once(' ').unwrap_or((&status, ""));
    let code: i64 = code.parse().map_err(|_| invalid())?;
    let count = usize::try_from(code).unwrap_or(0);
    if count > ANSWER_LINES_MAX {
        return Err(invalid());
    }
    let mut lines = Vec::new();
    for _ in 0..count {
        lines.push(read_line(stream)?);
    }
    Ok(Answer { code, text: text.to_string(), lines })
}

/// One line without its line feed; the last one of a stream may lack it.
fn read_line(stream: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    if stream.by_ref().take(ANSWER_LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    match line.last() {
        Some(b'\n') => drop(line.pop()),
        _ if line.len() > ANSWER_LINE_BYTES_MAX => {
            let text = format!("no answer of a daemon: a line of more than {ANSWER_LINE_BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        _ => {}
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rrdcached::update::not_later;

    fn check(bytes: &str, want: Option<(i64, &str, &[&str])>) {
        let got = read_answer(&mut bytes.as_bytes()).ok();
        let want = want.map(|(code, text, lines)| Answer {
            code,
            text: text.to_string(),
            lines: lines.iter().map(|line| line.as_bytes().to_vec()).collect(),
        });
        assert_eq!(got, want, "{bytes:?}");
    }

    #[test]
    fn answers_have_as_many_lines_as_they_say() {
        check("0 PONG\n", Some((0, "PONG", &[])));
        check("-1 Unknown command: x\n", Some((-1, "Unknown command: x", &[])));
        check("2 errors\n1 a\n2 b\nmore", Some((2, "errors", &["1 a", "2 b"])));
        check("2 errors\n1 a\n", None);
        check("hello\n", None);
        check("99999999999 lines\n", None);
        check("", None);
    }

    #[test]
    fn texts_tell_what_callers_decide_by() {
        let check = |text: &str, code| assert_eq!(code_of_text(text.as_bytes()), code, "{text}");
        check("Unknown command: FETCHRES", ErrorCode::UnknownCommand);
        check(&not_later(5.0, 7.0), ErrorCode::IllegalTime);
        check(&format!("a.rrd: {}", not_later(5.0, 7.0)), ErrorCode::IllegalTime);
        check("No such file: Unknown command: x", ErrorCode::Other);
        check("", ErrorCode::Other);
    }

    #[test]
    fn a_line_without_end_is_given_up() {
        let longest = "x".repeat(ANSWER_LINE_BYTES_MAX);
        check(&format!("1 line\n{longest}\n"), Some((1, "line", &[&longest])));
        check(&format!("1 line\n{longest}"), Some((1, "line", &[&longest])));
        // One byte more, and any number more, without ever reading it all.
        check(&format!("1 line\n{longest}x\n"), None);
        let error = read_answer(&mut io::BufReader::new(io::repeat(b'7'))).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
