//! What a copy of a replica consists of, as bytes.

use store::replication::Position;
use store::transfer::{Cursor, DecodeError, varint};

use super::{put_text, text};
use crate::partition::{CopyFile, CopyFileKind, CopyHead};

pub(super) fn put(out: &mut Vec<u8>, head: &CopyHead) {
    for said in [&head.identity, &head.mark, &head.manifest] {
        put_text(out, said);
    }
    varint::put(out, u64::from(head.end.generation));
    varint::put(out, head.end.offset);
    varint::put(out, head.files.len() as u64);
    for file in &head.files {
        out.push(match file.kind {
            CopyFileKind::Checkpoint => 1,
            CopyFileKind::Segment => 2,
            CopyFileKind::Log => 3,
        });
        varint::put(out, file.number);
        varint::put(out, file.bytes);
    }
}

pub(super) fn take(cursor: &mut Cursor<'_>) -> Result<CopyHead, DecodeError> {
    let (identity, mark, manifest) = (text(cursor)?, text(cursor)?, text(cursor)?);
    let end = Position { generation: cursor.number("a generation")?, offset: cursor.varint("an offset")? };
    let count = cursor.count(3, "the number of files")?;
    let files = (0..count).map(|_| take_file(cursor)).collect::<Result<_, _>>()?;
    Ok(CopyHead { identity, mark, manifest, end, files })
}

fn take_file(cursor: &mut Cursor<'_>) -> Result<CopyFile, DecodeError> {
    let bad = cursor.bad("a kind of file");
    let kind = match cursor.byte(bad.expected)? {
        1 => CopyFileKind::Checkpoint,
        2 => CopyFileKind::Segment,
        3 => CopyFileKind::Log,
        _ => return Err(bad),
    };
    Ok(CopyFile { kind, number: cursor.varint("a number")?, bytes: cursor.varint("a length")? })
}
