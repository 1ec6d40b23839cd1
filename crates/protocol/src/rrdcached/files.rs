//! RRDs as files: what STAT, IMAGE and ENTRIES say of each (`docs/protocol/files.md`).

use std::fmt::{self, Display};

/// Begins the refusal of an IMAGE that is too large for a frame.
pub const TOO_LARGE_FOR_FRAME: &str = "the file is too large for a frame";

/// An RRD or a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A directory: `d`.
    Directory,
    /// An RRD of which nothing is said: `f`.
    Unread,
    /// An RRD, and its version where that is asked for: `f BYTES SECONDS.MICROS VERSION MODE USER GROUP`.
    Rrd(FileStat, Option<u64>),
}

/// What `stat(2)` says of the `.rrd` file that an RRD would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// Its length.
    pub bytes: u64,
    /// The time of its last update: seconds since 1970, and microseconds.
    pub modified: (i64, u32),
    /// The rights of its placeholder.
    pub rights: Option<Rights>,
}

/// Who may do what with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// The bits of `chmod(2)`.
    pub mode: u32,
    /// The number of its owner.
    pub user: u32,
    /// The number of its group.
    pub group: u32,
}

impl Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, version) = match self {
            Entry::Directory => return f.write_str("d"),
            Entry::Unread => return f.write_str("f"),
            Entry::Rrd(file, version) => (file, version),
        };
        let (seconds, micros) = file.modified;
        write!(f, "f {} {seconds}.{micros:06} ", file.bytes)?;
        match version {
            Some(version) => write!(f, "{version} ")?,
            None => f.write_str("- ")?,
        }
        match file.rights {
            Some(Rights { mode, user, group }) => write!(f, "{mode:o} {user} {group}"),
            None => f.write_str("- - -"),
        }
    }
}

impl Entry {
    /// Appends a line of ENTRIES: the entry, a space and the name to the end of the line.
    pub fn push_line(&self, out: &mut Vec<u8>, name: &[u8]) {
        out.extend_from_slice(self.to_string().as_bytes());
        out.push(b' ');
        out.extend_from_slice(name);
        out.push(b'\n');
    }

    /// Reads what STAT or IMAGE says; `None` = it is none of it.
    pub fn parse(text: &[u8]) -> Option<Self> {
        match Entry::parse_front(text)? {
            (entry, b"") => Some(entry),
            _ => None,
        }
    }

    /// Reads a line of ENTRIES, of which `stat` was asked or not: the entry and its name.
    pub fn parse_line(line: &[u8], stat: bool) -> Option<(Self, &[u8])> {
        match line.split_at_checked(2)? {
            (b"d ", name) => Some((Entry::Directory, name)),
            (b"f ", name) if !stat => Some((Entry::Unread, name)),
            _ => Entry::parse_front(line),
        }
        .filter(|(_, name)| !name.is_empty())
    }

    fn parse_front(text: &[u8]) -> Option<(Self, &[u8])> {
        match text {
            b"d" => return Some((Entry::Directory, b"")),
            b"f" => return Some((Entry::Unread, b"")),
            _ => {}
        }
        let mut words = text.splitn(8, |&byte| byte == b' ');
        let mut word = || std::str::from_utf8(words.next()?).ok();
        if word()? != "f" {
            return None;
        }
        let bytes = word()?.parse().ok()?;
        let (seconds, micros) = word()?.split_once('.')?;
        let micros = Some(micros).filter(|digits| digits.len() == 6)?.parse().ok()?;
        let version = match word()? {
            "-" => None,
            version => Some(version.parse().ok()?),
        };
        let rights = match (word()?, word()?, word()?) {
            ("-", "-", "-") => None,
            (mode, user, group) => Some(Rights {
                mode: u32::from_str_radix(mode, 8).ok()?,
                user: user.parse().ok()?,
                group: group.parse().ok()?,
            }),
        };
        let file = FileStat { bytes, modified: (seconds.parse().ok()?, micros), rights };
        Some((Entry::Rrd(file, version), words.next().unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(rights: Option<Rights>) -> FileStat {
        FileStat { bytes: 1_234, modified: (920_804_400, 70), rights }
    }

    #[test]
    fn entries_round_trip() {
        let rights = Some(Rights { mode: 0o640, user: 33, group: 0 });
        let check = |entry: Entry, text: &str| {
            assert_eq!(entry.to_string(), text);
            assert_eq!(Entry::parse(text.as_bytes()), Some(entry), "{text}");
        };
        check(Entry::Directory, "d");
        check(Entry::Unread, "f");
        check(Entry::Rrd(file(None), None), "f 1234 920804400.000070 - - - -");
        check(
            Entry::Rrd(file(rights), Some(u64::MAX)),
            "f 1234 920804400.000070 18446744073709551615 640 33 0",
        );
    }

    #[test]
    fn lines_hold_any_name() {
        for (entry, stat) in [
            (Entry::Directory, false),
            (Entry::Directory, true),
            (Entry::Unread, false),
            (Entry::Rrd(file(None), None), true),
        ] {
            for name in [&b"a b  c.rrd"[..], b" ", b"d", b"f 1", b"\xff\xfe.rrd"] {
                let mut line = Vec::new();
                entry.push_line(&mut line, name);
                assert_eq!(line.pop(), Some(b'\n'));
                assert_eq!(Entry::parse_line(&line, stat), Some((entry, name)), "{stat}");
            }
        }
    }

    #[test]
    fn what_is_no_entry_is_refused() {
        for text in [
            "",
            "x",
            "d a",
            "f 1",
            "f 1 2 - - - -",
            "f 1 2.5 - - - -",
            "f 1 2.000000 - 8 0 0",
            "f x 2.000000 - - - -",
        ] {
            assert_eq!(Entry::parse(text.as_bytes()), None, "{text}");
        }
        for line in ["", "d", "d ", "f 1 2.000000 - - - -", "f 1 2.000000 - - - - "] {
            assert_eq!(Entry::parse_line(line.as_bytes(), true), None, "{line}");
        }
    }
}
