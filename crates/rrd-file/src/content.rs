//! The bytes of a whole file: initial ring positions, and writing a new file with unknown rows.

use std::io::{self, IoSlice};

use rrd::definition::{Definition, Rra};
use rrd::grid::ring_index;
use rrd::live::{HeadShape, Live, UNKNOWN};

use crate::handle::Handle;

/// Buffers per write; Linux accepts 1024.
const PARTS_MAX: usize = 256;

/// For each archive, the ring position of the newest row in a new file.
pub fn rings(definition: &Definition, live: &Live) -> Vec<u64> {
    let newest = HeadShape::of(definition).split(&live.words).last_update.whole;
    let ring = |(index, rra): (usize, &Rra)| ring_index(definition.newest_row(index, newest), rra.row_count);
    let mut rings: Vec<u64> = definition.rra.iter().enumerate().map(ring).collect();
    live.seasons.iter().for_each(|season| rings[season.rra] = season.current_row);
    rings
}

/// Writes `front` and then unknown values up to `bytes`, in chunks that begin at multiples of `piece_bytes`.
/// All three are multiples of 8.
///
/// # Errors
/// When a write fails; at once, when a large file certainly does not fit on the disk.
pub fn write_pieces(file: &Handle, front: &[u8], bytes: u64, piece_bytes: usize) -> io::Result<()> {
    if bytes > LARGE_BYTES {
        check_room(file, bytes)?;
    }
    let mut at = 0;
    let mut parts = Vec::new();
    while at < bytes {
        parts.clear();
        let mut from = at;
        // A chunk ends at a multiple of its size, also after a short write.
        let end = bytes.min((at / piece_bytes as u64 + 1) * piece_bytes as u64);
        while from < end && parts.len() < PARTS_MAX {
            let rest = front.get(usize::try_from(from).unwrap_or(usize::MAX)..).unwrap_or_default();
            let part = match rest {
                // Values begin where the front ends.
                [] => &unknown_rows()[(from - front.len() as u64) as usize % 8..],
                rest => rest,
            };
            let part = &part[..part.len().min((end - from) as usize)];
            from += part.len() as u64;
            parts.push(IoSlice::new(part));
        }
        at += file.append(&parts, at)? as u64;
    }
    Ok(())
}

/// A file of this size takes a while to write, so that asking for room first costs nothing.
const LARGE_BYTES: u64 = 64 << 20;

/// Fails as a write on a full disk does when fewer than `bytes` are free.
fn check_room(file: &Handle, bytes: u64) -> io::Result<()> {
    let Handle::System(file) = file else { return Ok(()) };
    let space = rustix::fs::fstatvfs(file)?;
    // Some file systems do not say how large they are.
    let known = space.f_blocks > 0;
    match known && space.f_bavail.saturating_mul(space.f_frsize) < bytes {
        true => Err(rustix::io::Errno::NOSPC.into()),
        false => Ok(()),
    }
}

/// Unknown values as stored in a file; few enough to stay in the processor's cache.
fn unknown_rows() -> &'static [u8] {
    static UNKNOWN_ROWS: [u64; 2048] = [u64::to_le(UNKNOWN.to_bits()); 2048];
    bytemuck::cast_slice(&UNKNOWN_ROWS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_fit_is_refused_before_anything_is_written() {
        let file = tempfile::tempfile().unwrap();
        let copy = file.try_clone().unwrap();
        let error = write_pieces(&Handle::System(copy.into()), &[0; 8], 1 << 60, 4096).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(file.metadata().unwrap().len(), 0);
    }
}
