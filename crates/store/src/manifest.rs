//! The manifest of a shard: whose shard it is, and which files make it up.
//!
//! A small text file that is replaced atomically: written under another name, synced, renamed, and the
//! directory synced. After a crash either the old or the new one is there. Then the same text is written once
//! more, as `manifest.copy`, from which `roundel repair` restores a lost one. Segments and checkpoints that the manifest
//! does not name are left over from a crash; opening the shard removes them. `docs/format/store.md` describes
//! the text.

use std::fmt::Write as _;
use std::io;
use std::ops::Range;
use std::path::Path;

use crate::catalogue::RrdId;
use crate::content::Content;
use crate::disk::{Disk, Mode};
use crate::filenames;
use crate::identity::{Identity, Owner};
use crate::log::{Known, Position};
use crate::segment::Expected;

/// Version of the text. A reader also knows version 1, which says neither whose shard it is nor how far the log is
/// durable.
pub const VERSION: u32 = 2;

/// A segment, as the manifest names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentName {
    /// Its number.
    pub number: u64,
    /// How often its rows have been merged.
    pub level: u8,
    /// Its retention class.
    pub class: u8,
    /// Length of its file in bytes.
    pub bytes: u64,
    /// Hash of its file; `None` = not known, because an earlier version wrote it or `repair` found it.
    pub content: Option<Content>,
}

/// What a shard consists of.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Manifest {
    /// Whose shard this is; `None` in version 1.
    pub owner: Option<Owner>,
    /// Number of the checkpoint; 0 = none yet.
    pub checkpoint: u64,
    /// Hash of the checkpoint's file; `None` = not known.
    pub checkpoint_content: Option<Content>,
    /// Where replay starts.
    pub position: Position,
    /// How far the log was durable at least, and in which file: if it ends earlier, it is damaged.
    pub known: Known,
    /// The next number for a segment or checkpoint.
    pub next_number: u64,
    /// Ids of RRDs that are lost, because a page of a checkpoint was damaged.
    pub lost: Vec<LostIds>,
    /// All segments.
    pub segments: Vec<SegmentName>,
}

/// Ids of RRDs whose page of a checkpoint was damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostIds {
    /// The ids, of which some may have been unused.
    pub ids: Range<RrdId>,
    /// The number of the checkpoint.
    pub checkpoint: u64,
}

/// Why a manifest could not be read.
#[derive(Debug)]
pub enum ManifestError {
    /// The disk failed.
    Io(io::Error),
    /// The text is damaged; `line` is 1-based.
    Damaged {
        /// The line.
        line: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Written by another version.
    Version(u32),
}

impl std::error::Error for ManifestError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ManifestError::Io(error) => Some(error),
            ManifestError::Damaged { .. } | ManifestError::Version(_) => None,
        }
    }
}

impl std::fmt::Display for ManifestError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ManifestError::Io(error) => write!(f, "cannot read the manifest: {error}"),
            ManifestError::Damaged { line, what } => write!(
                f,
                "the manifest is damaged in line {line}: {what}; `roundel repair` on the store's directory shows how to restore it"
            ),
            ManifestError::Version(version) => write!(
                f,
                "the store was written by a newer version (manifest version {version}, this program knows {VERSION}); use that version"
            ),
        }
    }
}

impl Manifest {
    /// The manifest of a shard that holds nothing yet.
    pub fn of_new_shard(owner: Owner) -> Self {
        Manifest { owner: Some(owner), next_number: 1, ..Manifest::default() }
    }

    /// The tag of the shard in its other files; 0 = not known.
    pub fn tag(&self) -> u32 {
        self.owner.map_or(0, |owner| owner.tag())
    }

    /// What it says of the log.
    pub fn known(&self) -> Known {
        Known { owner: self.tag(), ..self.known }
    }

    /// What the file of a segment must be.
    pub fn expected(&self, segment: &SegmentName) -> Expected {
        let SegmentName { number, bytes, content, .. } = *segment;
        Expected { owner: self.tag(), number, bytes, content }
    }

    /// The text of the file.
    pub fn encode(&self) -> String {
        let mut text = format!("roundel-manifest {VERSION}\n");
        // Writing to a String cannot fail.
        if let Some(Owner { store, shard }) = &self.owner {
            let (id, count, seed) = (store.id_text(), store.shard_count, store.seed);
            let _ = writeln!(text, "store {id} shard {shard} of {count} seed {seed:016x}");
        }
        let Manifest { position, known: Known { durable, newest_file, .. }, .. } = self;
        let _ = writeln!(text, "checkpoint {}{}", self.checkpoint, content_words(self.checkpoint_content));
        let _ = writeln!(text, "log {} {}", position.generation, position.offset);
        let _ = writeln!(text, "durable {} {}", durable.generation, durable.offset);
        let _ = writeln!(text, "file {} {}", newest_file.generation, newest_file.offset);
        let _ = writeln!(text, "next {}", self.next_number);
        for LostIds { ids, checkpoint } in &self.lost {
            let _ = writeln!(text, "lost {} {} checkpoint {checkpoint}", ids.start, ids.end);
        }
        for segment in &self.segments {
            let SegmentName { number, level, class, bytes, content } = segment;
            let content = content_words(*content);
            let _ = writeln!(text, "segment {number} level {level} class {class} bytes {bytes}{content}");
        }
        let crc = crc32c::crc32c(text.as_bytes());
        let _ = writeln!(text, "crc32c {crc:08x}");
        text
    }

    /// Parses the text.
    ///
    /// # Errors
    /// When it is damaged or has another version.
    pub fn decode(text: &str) -> Result<Manifest, ManifestError> {
        let damaged = |line, what| ManifestError::Damaged { line, what };
        let mut manifest = Manifest::default();
        let mut covered = 0;
        for (index, line) in text.split_inclusive('\n').enumerate() {
            let number = index + 1;
            let bad = || damaged(number, "not a line of a manifest");
            let words: Vec<&str> = line.split_whitespace().collect();
            let value = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).ok_or_else(bad);
            match (index, words.first().copied()) {
                (0, Some("roundel-manifest")) => {
                    let version = u32::try_from(value(1)?).map_err(|_| bad())?;
                    if !(1..=VERSION).contains(&version) {
                        return Err(ManifestError::Version(version));
                    }
                }
                (0, _) => return Err(damaged(1, "not a manifest")),
                (_, Some("store")) => manifest.owner = Some(owner(&words).ok_or_else(bad)?),
                (_, Some("checkpoint")) => {
                    manifest.checkpoint = value(1)?;
                    manifest.checkpoint_content = content(&words[2..]).ok_or_else(bad)?;
                }
                (_, Some(key @ ("log" | "durable" | "file"))) => {
                    let generation = u32::try_from(value(1)?).map_err(|_| bad())?;
                    let position = Position { generation, offset: value(2)? };
                    match key {
                        "log" => manifest.position = position,
                        "durable" => manifest.known.durable = position,
                        _ => manifest.known.newest_file = position,
                    }
                }
                (_, Some("next")) => manifest.next_number = value(1)?,
                (_, Some("lost")) => {
                    let id = |at| value(at).and_then(|id| RrdId::try_from(id).map_err(|_| bad()));
                    manifest.lost.push(LostIds { ids: id(1)?..id(2)?, checkpoint: value(4)? });
                }
                (_, Some("segment")) => manifest.segments.push(SegmentName {
                    number: value(1)?,
                    level: u8::try_from(value(3)?).map_err(|_| bad())?,
                    class: u8::try_from(value(5)?).map_err(|_| bad())?,
                    bytes: value(7)?,
                    content: content(&words[8..]).ok_or_else(bad)?,
                }),
                (_, Some("crc32c")) => {
                    // As it was written: another letter case of its digits would be rot that goes unseen.
                    let crc = crc32c::crc32c(&text.as_bytes()[..covered]);
                    if text[covered..] != format!("crc32c {crc:08x}\n") {
                        return Err(damaged(number, "the checksum does not match"));
                    }
                    return Ok(manifest);
                }
                _ => return Err(bad()),
            }
            covered += line.len();
        }
        Err(damaged(text.lines().count() + 1, "the last line is missing"))
    }

    /// Reads a shard's manifest; `None` when there is none.
    ///
    /// # Errors
    /// When it cannot be read, is damaged, or has another version.
    pub fn load(disk: &dyn Disk, dir: &Path) -> Result<Option<Manifest>, ManifestError> {
        Manifest::load_from(disk, &filenames::manifest(dir))
    }

    /// Reads a manifest or its copy; `None` when there is no such file.
    ///
    /// # Errors
    /// When it cannot be read, is damaged, or has another version.
    pub fn load_from(disk: &dyn Disk, path: &Path) -> Result<Option<Manifest>, ManifestError> {
        let file = match disk.open(path, Mode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ManifestError::Io(error)),
        };
        let mut bytes = vec![0; file.length().map_err(ManifestError::Io)?.min(64 << 20) as usize];
        let count = file.read_at(&mut bytes, 0).map_err(ManifestError::Io)?;
        bytes.truncate(count);
        let text =
            std::str::from_utf8(&bytes).map_err(|_| ManifestError::Damaged { line: 1, what: "not text" })?;
        Manifest::decode(text).map(Some)
    }

    /// Atomically replaces the previous manifest with this one, then its copy.
    ///
    /// # Errors
    /// When a write, sync or rename of the manifest fails; the old or the new one is then in place. A copy that cannot be
    /// written is only logged, because the shard does not need it.
    pub fn store(&self, disk: &dyn Disk, dir: &Path) -> io::Result<()> {
        let text = self.encode();
        let new = filenames::manifest_new(dir);
        replace(disk, &new, &filenames::manifest(dir), &text)?;
        if let Err(error) = replace(disk, &new, &filenames::manifest_copy(dir), &text) {
            tracing::warn!(%error, "the copy of the manifest could not be written; it is older than the manifest now");
        }
        Ok(())
    }
}

/// Makes `text` the content of the file at `path`, durably and in one step; `new` is its name while it is written.
///
/// # Errors
/// When the disk fails; the file then has its old content or the new one.
pub fn replace(disk: &dyn Disk, new: &Path, path: &Path, text: &str) -> io::Result<()> {
    match disk.remove(new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = disk.create(new)?;
    file.write_at(text.as_bytes(), 0)?;
    file.sync()?;
    disk.rename(new, path)?;
    disk.sync_dir(path.parent().unwrap_or(Path::new("")))
}

/// The words of `store ID shard N of COUNT seed SEED`.
fn owner(words: &[&str]) -> Option<Owner> {
    let ["store", id, "shard", shard, "of", count, "seed", seed] = words else { return None };
    let store = Identity::of_words(id, count, seed)?;
    let shard = shard.parse().ok().filter(|shard| *shard < store.shard_count)?;
    Some(Owner { store, shard })
}

/// What follows a file's line when its hash is known.
fn content_words(content: Option<Content>) -> String {
    content.map_or_else(String::new, |content| format!(" content {content}"))
}

/// The words after a file's line: the hash, if it is known. `None` when they are something else.
#[allow(clippy::option_option, reason = "no hash is not a bad hash")]
fn content(words: &[&str]) -> Option<Option<Content>> {
    match words {
        [] => Some(None),
        ["content", hash] => u64::from_str_radix(hash, 16).ok().map(|hash| Some(Content(hash))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Manifest {
        let segments = vec![
            SegmentName { number: 3, level: 0, class: 255, bytes: 100, content: None },
            SegmentName { number: 9, level: 2, class: 40, bytes: 1 << 33, content: Some(Content(0xfeed)) },
        ];
        let store = Identity { id: *b"0123456789abcdef", seed: 0xfeed, shard_count: 3 };
        Manifest {
            owner: Some(Owner { store, shard: 2 }),
            checkpoint: 4,
            checkpoint_content: Some(Content(0xbee)),
            position: Position { generation: 1, offset: 77 },
            known: Known {
                durable: Position { generation: 1, offset: 99 },
                newest_file: Position { generation: 1, offset: 70 },
                owner: 0,
            },
            next_number: 12,
            lost: vec![LostIds { ids: 256..512, checkpoint: 3 }],
            segments,
        }
    }

    #[test]
    fn text_round_trips() {
        let text = sample().encode();
        assert!(text.starts_with(
            "roundel-manifest 2\nstore 30313233343536373839616263646566 shard 2 of 3 seed 000000000000feed\n\
             checkpoint 4 content 0000000000000bee\nlog 1 77\ndurable 1 99\nfile 1 70\nnext 12\nlost 256 512 checkpoint 3\nsegment 3 level 0 class 255 bytes 100\n\
             segment 9 level 2 class 40 bytes 8589934592 content 000000000000feed\n"
        ));
        assert_eq!(Manifest::decode(&text).ok(), Some(sample()));
    }

    #[test]
    fn version_1_is_read() {
        let body = "roundel-manifest 1\ncheckpoint 4\nlog 1 77\nnext 12\n";
        let text = format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()));
        let manifest = Manifest::decode(&text).unwrap();
        let position = Position { generation: 1, offset: 77 };
        assert_eq!(manifest, Manifest { checkpoint: 4, position, next_number: 12, ..Manifest::default() });
    }

    #[test]
    fn every_flipped_bit_or_missing_byte_is_detected() {
        let text = sample().encode();
        for at in 0..text.len() {
            assert!(Manifest::decode(&text[..at]).is_err(), "cut at {at}");
            for bit in 0..8 {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                let Ok(changed) = String::from_utf8(bytes) else { continue };
                assert!(Manifest::decode(&changed).is_err(), "bit {bit} changed at {at}");
            }
        }
        let newer = text.replace("roundel-manifest 2", "roundel-manifest 3");
        assert!(matches!(Manifest::decode(&newer), Err(ManifestError::Version(3))));
    }
}
