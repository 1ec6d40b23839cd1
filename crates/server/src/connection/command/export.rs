//! EXPORT: a whole RRD as the bytes of a standard `.rrd` file.

use protocol::rrdcached::limits::PIECE_BYTES;
use protocol::rrdcached::{reply, whole};
use rrd::codec::file::{FileError, FileLayout, encode_head};
use rrd::live::HeadShape;
use store::engine::{Engine, StoreError};

use super::Kept;
use super::rest::{Rest, WholeRrd};
use crate::connection::refusal::Refusal;
use crate::names::ResolvedName;
use crate::service::Service;

/// Answers EXPORT.
///
/// # Errors
/// When there is no such RRD, or it cannot be read.
pub fn export(service: &Service, word: &[u8], kept: &mut Kept) -> Result<(), Refusal> {
    let (named, rrd) = WholeRrd::read(service, word)?;
    let export = Export { rrd, named, file: Vec::new(), at: At::Top };
    // Not every RRD fits into a file.
    export.head().map_err(|error| Refusal::of_store("RRD Error: ", &error))?;
    kept.rest = Some(Box::new(export));
    Ok(())
}

/// A file in the making.
#[derive(Debug)]
struct Export {
    rrd: WholeRrd,
    named: ResolvedName,
    /// Bytes of the file that are not a whole line yet.
    file: Vec<u8>,
    at: At,
}

/// What comes next.
#[derive(Clone, Copy, Debug)]
enum At {
    Top,
    /// A row of an archive, by its place in the file.
    Rows(usize, u64),
}

impl Export {
    /// Everything before the first archive. Seasons know their position in the ring; for other archives, the position
    /// in a file is irrelevant: the newest row comes first.
    fn head(&self) -> Result<Vec<u8>, StoreError> {
        let WholeRrd { definition, live, .. } = &self.rrd;
        let mut current_rows = vec![0; definition.rra.len()];
        for season in &live.seasons {
            current_rows[season.rra] = season.current_row;
        }
        let shape = HeadShape::of(definition);
        let mut head = Vec::new();
        let unfit = |error: FileError| StoreError::Unfit { path: self.named.name.to_string(), error };
        encode_head(definition, &shape, shape.split(&live.words), &current_rows, &mut head).map_err(unfit)?;
        Ok(head)
    }

    /// Adds some rows of an archive, from `place` in the file on; returns how many.
    fn push_rows(&mut self, engine: &dyn Engine, rra: usize, place: u64) -> Result<u64, StoreError> {
        let oldest = self.rrd.oldest_row(rra);
        let WholeRrd { definition, live, rows, .. } = &mut self.rrd;
        let count = definition.rra[rra].row_count;
        // Rows from the oldest on, after which the file continues elsewhere in the ring.
        let wanted = match live.seasons.iter().find(|season| season.rra == rra) {
            Some(season) => {
                let oldest_place = (season.current_row + 1) % count;
                match place < oldest_place {
                    true => place + count - oldest_place..count,
                    false => place - oldest_place..count - oldest_place,
                }
            }
            None if place == 0 => count - 1..count,
            None => place - 1..count - 1,
        };
        let values = rows.piece(engine, (definition, live), rra, oldest, wanted)?;
        self.file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        Ok((values.len() / definition.ds.len().max(1)) as u64)
    }
}

impl Rest for Export {
    fn push_piece(&mut self, engine: &dyn Engine, out: &mut Vec<u8>) -> Result<bool, StoreError> {
        match self.at {
            At::Top => {
                let bytes = FileLayout::of(&self.rrd.definition).file_bytes;
                let status = [b"Export of ", &*self.named.path, b" follows"].concat();
                reply::push_status(out, bytes.div_ceil(PIECE_BYTES as u64) as i64, &status);
                self.file = self.head()?;
                self.at = At::Rows(0, 0);
            }
            At::Rows(rra, _) if rra == self.rrd.definition.rra.len() => {
                whole::push_lines(out, &self.file);
                return Ok(false);
            }
            At::Rows(rra, place) if place == self.rrd.definition.rra[rra].row_count => {
                self.at = At::Rows(rra + 1, 0);
            }
            At::Rows(rra, place) => self.at = At::Rows(rra, place + self.push_rows(engine, rra, place)?),
        }
        let lines = self.file.len() / PIECE_BYTES * PIECE_BYTES;
        if lines > 0 {
            // A line is long, so doubling would take twice what it needs.
            out.reserve_exact(lines / 3 * 4 + lines / PIECE_BYTES * 8);
            whole::push_lines(out, &self.file[..lines]);
            self.file.drain(..lines);
        }
        Ok(true)
    }

    fn restart(&mut self) {
        (self.at, self.file) = (At::Top, Vec::new());
    }
}
