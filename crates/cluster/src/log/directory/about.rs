//! The file `about` of a directory's log: its identity and the number of its partitions. It is written once, and never changed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use rustix::rand::{GetRandomFlags, getrandom};

use super::failed;
use crate::log::LogError;

/// Its name.
const NAME: &str = "about";
/// Its first line.
const FIRST_LINE: &str = "roundel-replicated-log 1";
/// The most partitions: what a mistyped number exceeds.
const PARTITIONS_MAX: u32 = 100_000;

/// What it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct About {
    /// Drawn when the log was made.
    pub(super) identity: u128,
    /// Numbered from 0.
    pub(super) partitions: u32,
}

impl About {
    /// Writes it, unless it is there; of several processes that do so at once, the first one's counts.
    pub(super) fn create(directory: &Path, partitions: u32) -> Result<About, LogError> {
        if !(1..=PARTITIONS_MAX).contains(&partitions) {
            let text = format!("{partitions} partitions: there are 1 to {PARTITIONS_MAX}");
            return Err(LogError::Refused(text));
        }
        fs::create_dir_all(directory).map_err(failed("make the directory", directory))?;
        let path = directory.join(NAME);
        if !path.exists() {
            let about =
                About { identity: random().map_err(failed("draw the identity of", &path))?, partitions };
            about.write(directory).map_err(failed("write", &path))?;
        }
        About::read(directory)
    }

    fn write(self, directory: &Path) -> io::Result<()> {
        let begun = directory.join(format!("{NAME}.{:032x}", self.identity));
        let mut file = File::create_new(&begun)?;
        file.write_all(self.text().as_bytes())?;
        file.sync_all()?;
        // A link, because a rename would replace what another process made meanwhile.
        let linked = fs::hard_link(&begun, directory.join(NAME));
        fs::remove_file(&begun)?;
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        File::open(directory)?.sync_all()
    }

    fn text(self) -> String {
        let lines =
            format!("{FIRST_LINE}\nidentity {:032x}\npartitions {}\n", self.identity, self.partitions);
        format!("{lines}crc32c {:08x}\n", crc32c::crc32c(lines.as_bytes()))
    }

    /// Reads it.
    pub(super) fn read(directory: &Path) -> Result<About, LogError> {
        let path = directory.join(NAME);
        let text = fs::read_to_string(&path).map_err(failed("read", &path))?;
        About::parse(&text).ok_or_else(|| {
            LogError::Refused(format!("{} is damaged, or a newer program wrote it", path.display()))
        })
    }

    fn parse(text: &str) -> Option<About> {
        let mut lines = text.lines().skip(1);
        let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ');
        let identity = u128::from_str_radix(value("identity")?, 16).ok()?;
        let about = About { identity, partitions: value("partitions")?.parse().ok()? };
        // Whatever differs from what would be written is none.
        (about.text() == text && about.partitions <= PARTITIONS_MAX).then_some(about)
    }
}

fn random() -> io::Result<u128> {
    let mut bytes = [0; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(u128::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_what_it_says_and_damage_is_found() {
        let about = About { identity: 0x0123_4567_89ab_cdef, partitions: 32 };
        let text = about.text();
        assert!(
            text.starts_with("roundel-replicated-log 1\nidentity 00000000000000000123456789abcdef\n"),
            "{text}"
        );
        assert_eq!(About::parse(&text), Some(about));
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            assert_eq!(About::parse(&String::from_utf8_lossy(&bytes)), None, "byte {at}");
            assert_eq!(About::parse(&text[..at]), None, "{at} bytes");
        }
    }

    #[test]
    fn of_many_that_make_it_one_counts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let made: Vec<About> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| About::create(&path, 3).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(made.iter().all(|about| *about == made[0]), "{made:?}");
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
    }
}
