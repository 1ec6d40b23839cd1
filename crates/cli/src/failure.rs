//! Failures of commands: the text after `ERROR: `.

use std::fmt;
use std::io;

use args::options::OptionError;
use args::times::RangeError;

/// Bytes of an error that RRDtool keeps.
const TEXT_BYTES_MAX: usize = 4095;

/// The text after `ERROR: `, in RRDtool's words if it has some. Names of files may be any bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure(Vec<u8>);

/// The result of a command.
pub type Result<T = (), E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// A failure with this text.
    pub fn new(text: impl Into<Vec<u8>>) -> Self {
        let mut text = text.into();
        text.truncate(TEXT_BYTES_MAX);
        Failure(text)
    }

    /// A failure with the text `before`, name, `after`.
    pub fn of_name(before: &str, name: &[u8], after: &str) -> Self {
        Failure::new([before.as_bytes(), name, after.as_bytes()].concat())
    }

    /// The text.
    pub fn text(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl std::error::Error for Failure {}

impl From<OptionError> for Failure {
    fn from(error: OptionError) -> Self {
        Failure::new(error.text())
    }
}

impl From<RangeError> for Failure {
    fn from(error: RangeError) -> Self {
        Failure::new(error.to_string())
    }
}

/// The C library's text for a system error, without Rust's number after it.
pub fn system_text(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(at) if error.raw_os_error().is_some() => text[..at].to_string(),
        _ => text,
    }
}

/// An argument that must be text.
///
/// # Errors
/// When it is not UTF-8; RRDtool accepts any bytes and would store them in the file.
pub fn text(word: &[u8]) -> Result<&str> {
    std::str::from_utf8(word).map_err(|_| Failure::of_name("cannot read '", word, "': it is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_errors_have_the_texts_of_c() {
        let error = std::fs::metadata(concat!(env!("CARGO_MANIFEST_DIR"), "/no such file")).unwrap_err();
        assert_eq!(system_text(&error), "No such file or directory");
        assert_eq!(system_text(&io::Error::other("x (os error 1)")), "x (os error 1)");
    }

    #[test]
    fn long_texts_are_truncated_as_in_rrdtool() {
        assert_eq!(Failure::new(vec![b'x'; 5000]).text().len(), 4095);
    }
}
