//! Reads a checkpoint for `inspect`: damaged frames are reported and skipped.

use std::path::Path;

use super::page::{Loader, decode_end, decode_page};
use super::read::{read_body, read_head};
use super::{CheckpointError, KIND_END, Label, MAGIC, MAGIC_UNOWNED};
use crate::catalogue::RrdId;
use crate::disk::{Disk, Mode};
use crate::log::Position;

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Where it starts in the file.
    pub offset: u64,
    /// Its length including its head.
    pub bytes: u64,
    /// One past the last id it covers; in the end frame the next free id.
    pub next_id: RrdId,
    /// The log position up to which it contains all changes.
    pub position: Position,
    /// True for the end frame.
    pub is_end: bool,
    /// Which checkpoint it belongs to; the number only in the end frame.
    pub label: Label,
}

/// Receives frames and damage in addition to the content of frames; the groups come last.
pub trait Visitor: Loader {
    /// A frame, whose content follows.
    fn frame(&mut self, frame: &Frame);
    /// Something unreadable; readable frames after it follow.
    fn damage(&mut self, error: CheckpointError);
}

/// Visits every frame of a checkpoint. Returns false when the end frame is missing.
///
/// # Errors
/// When the file cannot be read.
pub fn survey(disk: &dyn Disk, path: &Path, visitor: &mut dyn Visitor) -> Result<bool, CheckpointError> {
    let file = disk.open(path, Mode::Read)?;
    let length = file.length()?;
    let damaged = |offset, what| CheckpointError::Damaged { path: path.to_owned(), offset, what };
    let mut magic = [0; 8];
    if file.read_at(&mut magic, 0)? != 8 || (magic != *MAGIC && magic != *MAGIC_UNOWNED) {
        visitor.damage(damaged(0, "not a checkpoint of this version"));
    }
    let mut offset = MAGIC.len() as u64;
    let mut ended = false;
    while offset < length {
        let head = match read_head(&*file, offset, length, &damaged) {
            Ok(head) => head,
            // Without its head, the end of a frame is unknown, and so is the start of the next one.
            Err(error) => {
                visitor.damage(error);
                return Ok(false);
            }
        };
        let is_end = head.kind == KIND_END;
        let frame = Frame {
            offset,
            bytes: head.end() - offset,
            next_id: head.next_id,
            position: head.position,
            is_end,
            label: Label { owner: head.owner, number: if is_end { head.first_id.into() } else { 0 } },
        };
        visitor.frame(&frame);
        offset = head.end();
        ended = is_end;
        let body = match read_body(&*file, &head, &damaged) {
            Ok(body) => body,
            Err(error) => {
                visitor.damage(error);
                continue;
            }
        };
        let read = match is_end {
            true => decode_end(&body, visitor),
            false => decode_page(&body, visitor),
        };
        if read.is_none() {
            visitor.damage(damaged(frame.offset, "what the frame holds is cut"));
        }
    }
    Ok(ended)
}
