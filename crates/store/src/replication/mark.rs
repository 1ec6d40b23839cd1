//! How far a store is a copy of what a replicated log says: the file REPLICATED beside STORE (`docs/format/store.md`).

use std::io;
use std::path::Path;

use crate::disk::{Disk, Mode};
use crate::error::OpenError;
use crate::filenames;
use crate::manifest::replace;
use crate::position::Position;

/// Version of the text.
const VERSION: u32 = 1;
/// Version of the text once the log is sealed, which has a line more.
const VERSION_SEALED: u32 = 2;
/// The longest text.
const TEXT_BYTES_MAX: u64 = 4096;

/// A place in the replicated log, and what had been accepted before it. All of that was durable in the store when the mark was written, and whatever
/// the store's log has beyond it may not have been accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Which log it is.
    pub log: String,
    /// The offset of the next message to read.
    pub next: u64,
    /// The epoch.
    pub epoch: u32,
    /// Who leads in it.
    pub leader: u64,
    /// Where the accepted part of the store's log ends.
    pub end: Position,
    /// Which log goes on from there, once nothing more is accepted in this one.
    pub sealed_for: Option<String>,
}

impl Mark {
    /// Reads it; `None` when there is none.
    ///
    /// # Errors
    /// When it cannot be read, is damaged or of a newer version.
    pub fn load(disk: &dyn Disk) -> Result<Option<Mark>, OpenError> {
        let path = filenames::replicated(Path::new(""));
        let failed = |error| OpenError::caused("cannot read the store's file REPLICATED", error);
        let file = match disk.open(&path, Mode::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(failed)?,
        };
        let mut bytes = vec![0; file.length().map_err(failed)?.min(TEXT_BYTES_MAX) as usize];
        let count = file.read_at(&mut bytes, 0).map_err(failed)?;
        bytes.truncate(count);
        Mark::decode(&String::from_utf8(bytes).unwrap_or_default()).map(Some)
    }

    /// Writes it.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn store(&self, disk: &dyn Disk) -> io::Result<()> {
        let root = Path::new("");
        replace(disk, &filenames::replicated_new(root), &filenames::replicated(root), &self.encode())
    }

    /// The text of the file.
    pub fn encode(&self) -> String {
        let Mark { log, next, epoch, leader, end, sealed_for } = self;
        let (version, sealed) = match sealed_for {
            Some(log) => (VERSION_SEALED, format!("sealed-for {log}\n")),
            None => (VERSION, String::new()),
        };
        let body = format!(
            "roundel-replicated {version}\nlog {log}\nnext {next}\nepoch {epoch} leader {leader:016x}\nend {end}\n{sealed}"
        );
        format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()))
    }

    /// Parses the file's text.
    ///
    /// # Errors
    /// When it is damaged or has another version.
    pub fn decode(text: &str) -> Result<Mark, OpenError> {
        let damaged = || {
            OpenError::new(
                "the file REPLICATED of the store is damaged: how far this copy is the same as the others is not known; remove its \
                 directory, and it is made again",
            )
        };
        let covered = text.rfind("crc32c ").ok_or_else(damaged)?;
        let crc = crc32c::crc32c(&text.as_bytes()[..covered]);
        if text[covered..] != format!("crc32c {crc:08x}\n") {
            return Err(damaged());
        }
        let mut lines = text[..covered].lines();
        let mut word = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ');
        let version: u32 =
            word("roundel-replicated").and_then(|word| word.parse().ok()).ok_or_else(damaged)?;
        if ![VERSION, VERSION_SEALED].contains(&version) {
            return Err(OpenError::new(format!(
                "the store's file REPLICATED is of version {version}, this program knows {VERSION_SEALED}; use the newer version"
            )));
        }
        let mut parse = || {
            let log = word("log")?.to_owned();
            let next = word("next")?.parse().ok()?;
            let (epoch, leader) = word("epoch")?.split_once(" leader ")?;
            let (epoch, leader) = (epoch.parse().ok()?, u64::from_str_radix(leader, 16).ok()?);
            let end = word("end")?.parse().ok()?;
            let sealed_for = match version {
                VERSION_SEALED => Some(word("sealed-for")?.to_owned()),
                _ => None,
            };
            Some(Mark { log, next, epoch, leader, end, sealed_for })
        };
        parse().ok_or_else(damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_its_text_and_damage_is_found() {
        let end = Position { generation: 1, offset: 4711 };
        let mark =
            Mark { log: "kafka abc/def".into(), next: 17, epoch: 3, leader: 0xfeed, end, sealed_for: None };
        let sealed = Mark { sealed_for: Some("kafka ghi".into()), ..mark.clone() };
        for mark in [Mark::default(), mark.clone(), sealed] {
            assert_eq!(Mark::decode(&mark.encode()).unwrap(), mark);
        }
        let text = mark.encode();
        for bit in 0..text.len() * 8 {
            let mut bytes = text.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            assert!(Mark::decode(&changed).is_err(), "bit {bit}");
        }
        let body = text[..text.rfind("crc32c ").unwrap()].replace("replicated 1", "replicated 3");
        let newer = format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()));
        assert!(Mark::decode(&newer).is_err_and(|error| error.to_string().contains("newer")));
    }
}
