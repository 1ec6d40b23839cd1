//! Integers in pco's wrapped format: bins whose widths adapt to the values, entropy coded.
//!
//! Writing takes ten times as long as a frame, reading twice as long, so only long columns are tried: those
//! written by merges, once or twice in a value's life.

use pco::wrapped::{FileCompressor, FileDecompressor};
use pco::{ChunkConfig, DeltaSpec, ModeSpec};

use super::CodecError;

/// Columns shorter than this do not pay for pco's table of bins (13 to 25 bytes).
pub(super) const VALUES_MIN: usize = 128;

/// The column of `values` or of their differences; `None` when pco refuses.
pub(super) fn encode(values: &[i64], deltas: bool) -> Option<Vec<u8>> {
    let delta = if deltas { DeltaSpec::TryConsecutive(1) } else { DeltaSpec::NoOp };
    let config = ChunkConfig::default().with_mode_spec(ModeSpec::Classic).with_delta_spec(delta);
    let mut chunk = FileCompressor::default().chunk_compressor::<i64>(values, &config).ok()?;
    if chunk.n_per_page().len() != 1 {
        return None;
    }
    let bytes = chunk.write_meta(Vec::new()).ok()?;
    chunk.write_page(0, bytes).ok()
}

/// Decodes `count` numbers into `out` and advances `bytes` past them.
pub(super) fn decode(bytes: &mut &[u8], count: usize, out: &mut Vec<i64>) -> Result<(), CodecError> {
    let bad = |_| CodecError::Field("pco column");
    let header = FileCompressor::default().write_header(Vec::new()).map_err(bad)?;
    let (file, _) = FileDecompressor::new(header.as_slice()).map_err(bad)?;
    let (mut chunk, rest) = file.chunk_decompressor::<i64, _>(*bytes).map_err(bad)?;
    let mut page = chunk.page_decompressor(rest, count).map_err(bad)?;
    let from = out.len();
    out.resize(from + count, 0);
    let progress = page.read(&mut out[from..]).map_err(bad)?;
    if progress.n_processed != count {
        return Err(CodecError::Cut);
    }
    *bytes = page.into_src();
    Ok(())
}
