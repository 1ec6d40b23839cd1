//! Rows in PostgreSQL's binary form of COPY: a header, then for each row the number of fields and each field with its
//! length, then a trailer; numbers are big-endian, times microseconds since 2000 (PostgreSQL's documentation of COPY).

use std::io::Write;

use ::postgres::Transaction;

use super::connect::PostgresError;

const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const TRAILER: &[u8] = &(-1i16).to_be_bytes();
/// The epoch of PostgreSQL's times in milliseconds since 1970.
const EPOCH_MS: i64 = 946_684_800_000;
/// Bytes of a row: three fields of eight bytes, each after its length.
const ROW_BYTES: usize = 2 + 3 * (4 + 8);
/// Bytes sent at once.
const PIECE_BYTES: usize = 256 << 10;

/// Rows of many series that wait to be copied into one table.
#[derive(Default)]
pub(super) struct CopyRows {
    bytes: Vec<u8>,
}

impl CopyRows {
    /// Adds rows of one series.
    pub fn push(&mut self, series: i64, times: &[i64], values: &[f64]) {
        self.bytes.reserve(times.len() * ROW_BYTES);
        for (time, value) in times.iter().zip(values) {
            let micros = (time - EPOCH_MS).saturating_mul(1000);
            let mut row = [0; ROW_BYTES];
            row[..2].copy_from_slice(&3i16.to_be_bytes());
            for (field, bits) in [series as u64, micros as u64, value.to_bits()].into_iter().enumerate() {
                let at = 2 + field * 12;
                row[at..at + 4].copy_from_slice(&8i32.to_be_bytes());
                row[at + 4..at + 12].copy_from_slice(&bits.to_be_bytes());
            }
            self.bytes.extend_from_slice(&row);
        }
    }

    /// Copies them; returns how many.
    pub fn send(self, transaction: &mut Transaction<'_>, table: &str) -> Result<u64, PostgresError> {
        let copy = format!("COPY {table} (series, time, value) FROM STDIN (FORMAT binary)");
        let mut writer = transaction.copy_in(&copy)?;
        writer.write_all(HEADER).map_err(PostgresError::of_copy)?;
        for piece in self.bytes.chunks(PIECE_BYTES) {
            writer.write_all(piece).map_err(PostgresError::of_copy)?;
        }
        writer.write_all(TRAILER).map_err(PostgresError::of_copy)?;
        Ok(writer.finish()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_as_documented() {
        let mut rows = CopyRows::default();
        rows.push(7, &[EPOCH_MS + 1], &[1.0]);
        let want = [
            &[0, 3][..],
            &[0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 7],
            &[0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 3, 232],
            &[0, 0, 0, 8, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(rows.bytes, want.concat());
    }
}
