//! RRDs as files, as `docs/protocol/files.md` describes: for those who show them as files.

use protocol::rrdcached::files::{Entry, TOO_LARGE_FOR_FRAME};

use super::{Daemon, Result, check_words, line};
use crate::error::ClientError;

/// An RRD with its bytes.
#[derive(Clone, Debug)]
pub struct Image {
    /// What is said of it: size, time, version.
    pub entry: Entry,
    /// The bytes of the standard `.rrd` file; none if it is of the version that the caller has.
    pub bytes: Vec<u8>,
}

/// A part of a directory.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// Entries with their names in the directory, in order of their bytes.
    pub entries: Vec<(Entry, Vec<u8>)>,
    /// Whether others follow.
    pub more: bool,
}

/// Which part of a directory.
#[derive(Clone, Copy, Debug)]
pub struct PartRequest<'a> {
    /// The directory; empty for the base directory.
    pub directory: &'a [u8],
    /// The name of the entry before, if it is not the beginning; that of a directory with a slash.
    pub after: Option<&'a [u8]>,
    /// The most entries.
    pub count: usize,
    /// With size, time and rights of each RRD.
    pub stat: bool,
    /// Even the latest change of a name must be in it, however long that takes.
    pub fresh: bool,
}

impl Daemon {
    /// What is known of an RRD or directory as a file.
    ///
    /// # Errors
    /// As [`Daemon::ask`].
    pub fn stat(&self, name: &[u8]) -> Result<Entry> {
        let answer = self.ask("stat", &[name])?;
        Entry::parse(answer.text.as_bytes()).ok_or(ClientError::NotAnAnswer("stat"))
    }

    /// An RRD as a file, whose bytes are left out if it is of the version `known`.
    ///
    /// # Errors
    /// As [`Daemon::ask`]; that it is too large, over a wire of frames ([`is_too_large`]).
    pub fn image(&self, name: &[u8], known: Option<u64>) -> Result<Image> {
        check_words(&[name])?;
        let known = known.map(|known| known.to_string());
        let words: Vec<&[u8]> = std::iter::once(name).chain(known.as_deref().map(str::as_bytes)).collect();
        let line = line("image", &words);
        let (entry, bytes) = self.exchange(|connection| connection.image(&line))??;
        Ok(Image { entry, bytes })
    }

    /// A part of a directory.
    ///
    /// # Errors
    /// As [`Daemon::ask`].
    pub fn entries(&self, request: &PartRequest<'_>) -> Result<Part> {
        let count = request.count.to_string();
        let mut words: Vec<&[u8]> = Vec::new();
        words.extend(request.fresh.then_some(&b"-f"[..]));
        words.extend(request.stat.then_some(&b"-s"[..]));
        words.push(if request.directory.is_empty() { b"/" } else { request.directory });
        words.push(count.as_bytes());
        words.extend(request.after);
        let answer = self.ask("entries", &words)?;
        let entry = |line: &Vec<u8>| {
            Entry::parse_line(line, request.stat).map(|(entry, name)| (entry, name.to_vec()))
        };
        let entries: Option<Vec<_>> = answer.lines.iter().map(entry).collect();
        let entries = entries.ok_or(ClientError::NotAnAnswer("part of a directory"))?;
        Ok(Part { entries, more: answer.text.ends_with("more follow") })
    }

    /// Updates an RRD of this version; returns the one that it then has. Readings are as in [`Daemon::update`].
    ///
    /// # Errors
    /// As [`Daemon::ask`].
    pub fn change(&self, name: &[u8], version: u64, readings: &[&[u8]]) -> Result<u64> {
        let version = version.to_string();
        let words: Vec<&[u8]> =
            [name, version.as_bytes()].into_iter().chain(readings.iter().copied()).collect();
        let answer = self.ask("change", &words)?;
        answer.text.parse().map_err(|_| ClientError::NotAnAnswer("version"))
    }

    /// Replaces an RRD of this version by the bytes of a `.rrd` file; returns the version that it then has.
    ///
    /// # Errors
    /// As [`Daemon::ask`].
    pub fn replace(&self, name: &[u8], version: u64, file: &[u8]) -> Result<u64> {
        let version = version.to_string();
        let answer = self.import_pieces(name, file, &[b"-v", version.as_bytes()])?;
        answer.text.parse().map_err(|_| ClientError::NotAnAnswer("version"))
    }
}

/// Whether an image was refused because no frame can hold it; it can be asked for in text.
pub fn is_too_large(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused { text, .. } if text.starts_with(TOO_LARGE_FOR_FRAME.as_bytes()))
}
