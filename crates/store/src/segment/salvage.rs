//! Reads the blocks of a segment whose footer is lost, for `inspect`.
//!
//! A block contains its own length, and its checksum covers number and offset, so blocks can be followed from
//! the front. The first bytes that are no block end that: the footer, the end of a truncated file, or damage.

use super::block::{self, BLOCK_HEAD_BYTES, BODY_BYTES_AT};
use super::footer::{self, FILE_HEAD_BYTES, HEAD_SEGMENT_ID_AT};
use super::{BLOCK_BYTES_MAX, Key, ReadAt, SegmentError};
use crate::column::codec::ColumnHint;

/// One run of a block, without its values.
#[derive(Clone, Copy, Debug)]
pub struct RunHead {
    /// Identifies whose rows these are.
    pub key: Key,
    /// Columns.
    pub ds_count: usize,
    /// How the values came about.
    pub hint: ColumnHint,
    /// Number of the first row.
    pub first_row: i64,
    /// Rows.
    pub count: usize,
    /// Bytes of its columns.
    pub bytes: usize,
}

/// How far [`salvage`] got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// The segment's number, from its head.
    pub segment_id: u64,
    /// Number of good blocks.
    pub block_count: u64,
    /// Offset of the first byte that is no block.
    pub end: u64,
}

/// Visits the runs of every block that can be read without the footer.
///
/// # Errors
/// When the head is damaged or the file cannot be read; blocks cannot be checked without the head.
pub fn salvage(
    file: &dyn ReadAt,
    name: &str,
    visit: &mut dyn FnMut(&RunHead),
) -> Result<Salvaged, SegmentError> {
    let failed = |offset| move |error| SegmentError::Io { file: name.into(), offset, error };
    let file_bytes = file.bytes().map_err(failed(0))?;
    let mut head = [0; FILE_HEAD_BYTES];
    file.read_at(0, &mut head).map_err(failed(0))?;
    let mut id = [0; 8];
    id.copy_from_slice(&head[HEAD_SEGMENT_ID_AT..HEAD_SEGMENT_ID_AT + 8]);
    let segment_id = u64::from_le_bytes(id);
    footer::check_file_head(&head, segment_id).map_err(|fault| fault.in_file(name, 0))?;
    let mut found = Salvaged { segment_id, block_count: 0, end: FILE_HEAD_BYTES as u64 };
    let mut bytes = Vec::new();
    while file_bytes - found.end >= BLOCK_HEAD_BYTES as u64 {
        let mut front = [0; BLOCK_HEAD_BYTES];
        file.read_at(found.end, &mut front).map_err(failed(found.end))?;
        let mut length = [0; 4];
        length.copy_from_slice(&front[BODY_BYTES_AT..BODY_BYTES_AT + 4]);
        let block_bytes = BLOCK_HEAD_BYTES as u64 + u64::from(u32::from_le_bytes(length));
        if block_bytes > BLOCK_BYTES_MAX as u64 || block_bytes > file_bytes - found.end {
            break;
        }
        bytes.resize(block_bytes as usize, 0);
        file.read_at(found.end, &mut bytes).map_err(failed(found.end))?;
        let Ok(mut runs) = block::open(&bytes, segment_id, found.end) else { break };
        while let Ok(Some(run)) = runs.next() {
            let block::Head { key, ds_count, hint, first_row, count } = run.head;
            visit(&RunHead { key, ds_count, hint, first_row, count, bytes: run.columns.len() });
        }
        found.block_count += 1;
        found.end += block_bytes;
    }
    Ok(found)
}
