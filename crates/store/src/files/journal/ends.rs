//! The file `JOURNAL`: whose journal it is, which files it consists of, and up to where each was durable.
//!
//! Written at every start and rotation, before old files are removed, and at a clean stop. So a file that is missing, belongs
//! elsewhere or is shorter than it was is noticed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::path::Path;

use disk::{Disk, Mode};

use crate::manifest::replace;

/// The file's name.
pub const NAME: &str = "JOURNAL";
/// Its name while it is written.
const NEW_NAME: &str = "JOURNAL.new";
/// The version of its format.
const ENDS_VERSION: u32 = 1;

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Random, drawn when the journal was made; in the header of every file.
    pub id: [u8; 16],
    /// For each file, by generation and shard, the byte up to which it was synced at least.
    pub files: BTreeMap<(u64, u32), u64>,
}

impl Ends {
    /// A new journal.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn draw() -> io::Result<Self> {
        let mut id = [0; 16];
        rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty())?;
        Ok(Ends { id, files: BTreeMap::new() })
    }

    /// Reads the file; `None` when there is none. The inner error says what is damaged.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn load(disk: &dyn Disk) -> io::Result<Option<Result<Self, String>>> {
        let file = match disk.open(Path::new(NAME), Mode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = vec![0; file.length()? as usize];
        let count = file.read_at(&mut bytes, 0)?;
        bytes.truncate(count);
        let text = String::from_utf8_lossy(&bytes);
        Ok(Some(decode(&text).ok_or_else(|| format!("the file {NAME} is damaged"))))
    }

    /// Writes the file.
    ///
    /// # Errors
    /// When the disk fails; the file is then as it was.
    pub fn store(&self, disk: &dyn Disk) -> io::Result<()> {
        replace(disk, Path::new(NEW_NAME), Path::new(NAME), &self.encode())
    }

    fn encode(&self) -> String {
        let mut text = format!("roundel-journal {ENDS_VERSION}\nid {}\n", id_text(&self.id));
        for ((generation, shard), end) in &self.files {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "file {generation:016x} {shard:04x} {end}");
        }
        let crc = crc32c::crc32c(text.as_bytes());
        text + &format!("crc32c {crc:08x}\n")
    }
}

fn decode(text: &str) -> Option<Ends> {
    let covered = text.rfind("crc32c ")?;
    let body = &text[..covered];
    if text[covered..] != format!("crc32c {:08x}\n", crc32c::crc32c(body.as_bytes())) {
        return None;
    }
    let mut lines = body.lines();
    let version: u32 = lines.next()?.strip_prefix("roundel-journal ")?.parse().ok()?;
    if version != ENDS_VERSION {
        return None;
    }
    let digits = lines.next()?.strip_prefix("id ")?;
    let mut id = [0; 16];
    for (at, byte) in id.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    let mut files = BTreeMap::new();
    for line in lines {
        let mut words = line.strip_prefix("file ")?.split(' ');
        let generation = u64::from_str_radix(words.next()?, 16).ok()?;
        let shard = u32::from_str_radix(words.next()?, 16).ok()?;
        files.insert((generation, shard), words.next()?.parse().ok()?);
    }
    Some(Ends { id, files })
}

/// The id in hexadecimal digits.
pub fn id_text(id: &[u8; 16]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_says_round_trips_and_damage_is_noticed() {
        let ends = Ends { id: *b"0123456789abcdef", files: [((7, 0), 48), ((u64::MAX, 3), 99)].into() };
        let text = ends.encode();
        assert_eq!(decode(&text), Some(ends));
        for bit in 0..text.len() * 8 {
            let mut bytes = text.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(String::from_utf8(bytes).ok().and_then(|text| decode(&text)), None, "bit {bit}");
        }
    }
}
