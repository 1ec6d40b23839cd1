//! Bytes of a log by their positions, for copies of it.

use std::io;
use std::path::Path;

use super::Position;
use super::writer::log_files;
use crate::disk::{Disk, Mode};
use crate::filenames;

/// Fills `bytes` with the log from `from` on, whose files must all be there, and must hold so much.
///
/// # Errors
/// `UnexpectedEof` when they do not, and the disk's.
pub fn read(disk: &dyn Disk, dir: &Path, from: Position, bytes: &mut [u8]) -> io::Result<()> {
    let starts = log_files(disk, dir)?;
    let (mut filled, mut at) = (0, from);
    while filled < bytes.len() {
        let missing = || {
            let text = format!("the log in {} has nothing at {at}", dir.display());
            io::Error::new(io::ErrorKind::UnexpectedEof, text)
        };
        let index = starts.partition_point(|start| *start <= at).checked_sub(1).ok_or_else(missing)?;
        let start = starts[index];
        // What a file holds from the start of the next one on is not part of the log.
        let next = starts.get(index + 1).filter(|next| next.generation == start.generation);
        let rest = bytes.len() - filled;
        let wanted =
            next.map_or(rest, |next| rest.min(usize::try_from(next.offset - at.offset).unwrap_or(rest)));
        let file = disk.open(&filenames::log(dir, start), Mode::Read)?;
        let into = &mut bytes[filled..filled + wanted];
        if start.generation != at.generation || file.read_at(into, at.offset - start.offset)? != wanted {
            return Err(missing());
        }
        filled += wanted;
        at = at.plus(wanted as u64);
    }
    Ok(())
}
