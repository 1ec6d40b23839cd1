//! What a checkpoint holds, frame by frame, for an inspection: a damaged frame is told and passed over.

use std::path::Path;

use super::{
    CheckpointError, Cursor, KIND_END, LoadedRrd, MAGIC, decode_end, decode_page, read_body, read_head,
};
use crate::catalogue::RrdId;
use crate::disk::{Disk, Mode};
use crate::group::Geometry;
use crate::log::Position;

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Where it starts in the file.
    pub offset: u64,
    /// Bytes it takes, its head included.
    pub bytes: u64,
    /// One past the last id it covers; in the end frame the next free id.
    pub next_id: RrdId,
    /// Everything up to here is in it.
    pub position: Position,
    /// It is the end frame.
    pub is_end: bool,
}

/// What is met on the way.
pub trait Visitor {
    /// A frame whose content follows.
    fn frame(&mut self, frame: &Frame);
    /// An RRD of it.
    fn rrd(&mut self, rrd: LoadedRrd<'_>);
    /// A group, in the end frame.
    fn group(&mut self, geometry: Geometry);
    /// Something that cannot be read; what can be told apart behind it follows.
    fn damage(&mut self, error: CheckpointError);
}

/// Visits every frame of a checkpoint. Returns false when the end frame is missing.
pub fn survey(disk: &dyn Disk, path: &Path, visitor: &mut dyn Visitor) -> Result<bool, CheckpointError> {
    let file = disk.open(path, Mode::Read)?;
    let length = file.length()?;
    let damaged = |offset, what| CheckpointError::Damaged { path: path.to_owned(), offset, what };
    let mut magic = [0; 8];
    if file.read_at(&mut magic, 0)? != 8 || magic != *MAGIC {
        visitor.damage(damaged(0, "not a checkpoint of this version"));
    }
    let mut offset = MAGIC.len() as u64;
    let mut ended = false;
    while offset < length {
        let head = match read_head(&*file, offset, length, &damaged) {
            Ok(head) => head,
            // Without its head a frame's end is unknown, and with it where the next begins.
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
        let mut cursor = Cursor(&body);
        let read = match is_end {
            true => decode_end(&mut cursor, &mut |geometry| visitor.group(geometry)),
            false => decode_page(&mut cursor, &mut |rrd| visitor.rrd(rrd)),
        };
        if read.is_none() {
            visitor.damage(damaged(frame.offset, "what the frame holds is cut"));
        }
    }
    Ok(ended)
}
