//! Names of RRDs: relative to the store, and safe to use as a path.

use std::fmt;

/// Longest name in bytes: Linux's `PATH_MAX` less the NUL.
pub const NAME_BYTES_MAX: usize = 4095;

/// Longest component of a name that a file or directory can have, on all usual file systems of Linux.
const FILE_NAME_BYTES_MAX: usize = 255;

/// The name of an RRD inside its store, such as `host-1/cpu-0.rrd`.
///
/// Relative, `/`-separated, without empty, `.` or `..` components and without NUL, so it can never leave the
/// directory under which it is used. Need not be UTF-8.
///
/// A *hidden* name is the store's own, for an RRD that no client can reach. It begins with NUL, so that no client can send it and no
/// file can have it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RrdName(Box<[u8]>);

/// Why a name was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// Empty, or only slashes.
    Empty,
    /// Longer than [`NAME_BYTES_MAX`].
    TooLong,
    /// No file can have it: a component is longer than 255 bytes.
    TooLongForFiles,
    /// Contains a NUL byte.
    Nul,
    /// Has a `..` component or is absolute.
    Outside,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NameError::Empty => "the name is empty",
            NameError::TooLong => "the name is too long (4095 bytes)",
            NameError::TooLongForFiles => "the name is too long for files (255 bytes a component)",
            NameError::Nul => "the name holds a NUL byte",
            NameError::Outside => "the name leads out of the base directory",
        })
    }
}

impl std::error::Error for NameError {}

impl RrdName {
    /// Checks and normalises a relative name: `./a//b.rrd` becomes `a/b.rrd`.
    ///
    /// # Errors
    /// As in [`NameError`].
    pub fn new(text: &[u8]) -> Result<Self, NameError> {
        if text.len() > NAME_BYTES_MAX {
            return Err(NameError::TooLong);
        }
        if text.contains(&0) {
            return Err(NameError::Nul);
        }
        if text.first() == Some(&b'/') {
            return Err(NameError::Outside);
        }
        let mut name = Vec::with_capacity(text.len());
        for component in text.split(|&byte| byte == b'/') {
            match component {
                b"" | b"." => continue,
                b".." => return Err(NameError::Outside),
                _ => {}
            }
            if !name.is_empty() {
                name.push(b'/');
            }
            name.extend_from_slice(component);
        }
        if name.is_empty() { Err(NameError::Empty) } else { Ok(RrdName(name.into())) }
    }

    /// True when `text` is already in normal form and can be used without a copy.
    pub fn is_normal(text: &[u8]) -> bool {
        !text.is_empty()
            && text.len() <= NAME_BYTES_MAX
            && text
                .split(|&byte| byte == b'/')
                .all(|component| !matches!(component, b"" | b"." | b"..") && !component.contains(&0))
    }

    /// Checks that a file can have this name, below a directory whose own path counts too where it is used as a whole.
    ///
    /// # Errors
    /// [`NameError::TooLongForFiles`].
    pub fn check_for_files(&self) -> Result<(), NameError> {
        match self.0.split(|&byte| byte == b'/').all(|component| component.len() <= FILE_NAME_BYTES_MAX) {
            true => Ok(()),
            false => Err(NameError::TooLongForFiles),
        }
    }

    /// The hidden name that an RRD of this name has for a purpose, which contains no NUL.
    pub fn hidden(&self, purpose: &str) -> Self {
        RrdName([b"\0", purpose.as_bytes(), b"\0", &self.0].concat().into())
    }

    /// Whether the bytes are those of a hidden name.
    #[inline]
    pub fn is_hidden(name: &[u8]) -> bool {
        name.first() == Some(&0)
    }

    /// The purpose of a hidden name, and the name that it hides; `None` for any other.
    pub fn revealed(name: &[u8]) -> Option<(&str, Self)> {
        let name = name.strip_prefix(b"\0")?;
        let end = name.iter().position(|&byte| byte == 0)?;
        Some((std::str::from_utf8(&name[..end]).ok()?, RrdName::new(&name[end + 1..]).ok()?))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for RrdName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for RrdName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_normalised_and_never_leave_the_store() {
        let good = |text: &str, want: &str| {
            assert_eq!(RrdName::new(text.as_bytes()).expect(text).as_bytes(), want.as_bytes());
            assert_eq!(RrdName::is_normal(text.as_bytes()), text == want, "{text}");
        };
        good("a.rrd", "a.rrd");
        good("./a//b c/'d'.rrd", "a/b c/'d'.rrd");
        good("a/..b/c..", "a/..b/c..");
        let bad = |text: &[u8], want| {
            assert_eq!(RrdName::new(text).err(), Some(want));
            assert!(!RrdName::is_normal(text));
        };
        bad(b"", NameError::Empty);
        bad(b"./.", NameError::Empty);
        bad(b"/etc/passwd", NameError::Outside);
        bad(b"a/../../b", NameError::Outside);
        bad(b"a\0b", NameError::Nul);
        bad(&[b'x'; 4096], NameError::TooLong);
        for (bytes, want) in [(255, Ok(())), (256, Err(NameError::TooLongForFiles))] {
            let name = RrdName::new(format!("a/{}/b", "x".repeat(bytes)).as_bytes()).unwrap();
            assert_eq!(name.check_for_files(), want);
        }
        bad(&[b"x/".repeat(2048).as_slice()].concat(), NameError::TooLong);
    }

    #[test]
    fn hidden_names_cannot_be_sent() {
        let name = RrdName::new(b"a/b.rrd").unwrap();
        let hidden = name.hidden("trash/17");
        assert!(RrdName::is_hidden(hidden.as_bytes()) && !RrdName::is_hidden(name.as_bytes()));
        assert!(RrdName::new(hidden.as_bytes()).is_err() && !RrdName::is_normal(hidden.as_bytes()));
        assert_eq!(RrdName::revealed(hidden.as_bytes()), Some(("trash/17", name)));
        assert_eq!(RrdName::revealed(b"a/b.rrd"), None);
    }
}
