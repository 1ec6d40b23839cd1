//! What an RRD takes in memory, from its definition alone: everyone who makes or changes one asks here first.
//!
//! The argument of a CREATE is short, and what it asks for may be large: seasons live in memory, and every data
//! source has a scratch area in every archive.

use std::fmt;

use crate::definition::Definition;
use crate::live::HeadShape;

/// Bytes that a data source or an archive takes in a definition: its fields, its name, and allocations.
const PART_BYTES: u64 = 128;

/// The memory limit of one RRD unless another is configured. 1,000 data sources in 100 archives take 3 MiB, a season
/// of a week of seconds 5 MiB.
pub const LIVE_BYTES_MAX: u64 = 16 << 20;

/// Bytes that an RRD keeps in memory as long as it exists: definition, live head and seasons.
pub fn live_bytes(definition: &Definition) -> u64 {
    let (ds_count, rra_count) = (definition.ds.len() as u64, definition.rra.len() as u64);
    let seasons = definition.rra.iter().filter(|rra| rra.cf.is_season());
    let season_rows = seasons.fold(0u64, |sum, rra| sum.saturating_add(rra.row_count));
    let head = 8 * HeadShape::of(definition).word_count() as u64;
    let parts = (ds_count + rra_count) * PART_BYTES;
    season_rows.saturating_mul(ds_count).saturating_mul(8).saturating_add(head + parts)
}

/// Values (rows times data sources) of all archives, seasons included.
pub fn value_count(definition: &Definition) -> u64 {
    let rows = definition.rra.iter().fold(0u64, |sum, rra| sum.saturating_add(rra.row_count));
    rows.saturating_mul(definition.ds.len() as u64)
}

/// Checks that an RRD of this definition takes at most `bytes_max` bytes of memory; returns how many it takes.
///
/// # Errors
/// When it takes more.
pub fn check(definition: &Definition, bytes_max: u64) -> Result<u64, TooMuchMemory> {
    match live_bytes(definition) {
        bytes if bytes > bytes_max => Err(TooMuchMemory { bytes, bytes_max }),
        bytes => Ok(bytes),
    }
}

/// An RRD would take more memory than one may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuchMemory {
    /// What it would take.
    pub bytes: u64,
    /// What one may take.
    pub bytes_max: u64,
}

impl fmt::Display for TooMuchMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seasons and data sources x archives would take {} bytes of memory, {} are the limit of one RRD \
             ([limits] rrd_memory)",
            self.bytes, self.bytes_max
        )
    }
}

impl std::error::Error for TooMuchMemory {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::create::new_live;
    use crate::definition::text::{CreateOptions, Limits, parse_create};
    use crate::when::Step;

    fn definition(words: &[&str]) -> Definition {
        let options = CreateOptions {
            step: Step { units: 1, units_per_second: 1 },
            limits: Limits::STORE,
            file_name: b"x",
        };
        parse_create(&options, words).unwrap()
    }

    #[test]
    fn the_live_head_and_the_seasons_are_counted() {
        let small = definition(&["DS:a:GAUGE:9:U:U", "DS:b:GAUGE:9:U:U", "RRA:HWPREDICT:99:0.1:0.1:50"]);
        let live = new_live(&small, 1_000_000_000);
        let seasons: usize = live.seasons.iter().map(|season| season.values.len()).sum();
        let parts = (small.ds.len() + small.rra.len()) as u64 * PART_BYTES;
        assert_eq!(live_bytes(&small), 8 * (live.words.len() + seasons) as u64 + parts);
        assert_eq!(check(&small, 1 << 20), Ok(live_bytes(&small)));
    }

    #[test]
    fn what_a_short_line_asks_for_is_seen_before_it_is_made() {
        let season = definition(&["DS:a:GAUGE:9:U:U", "RRA:HWPREDICT:1000000000:0.1:0.1:900000000"]);
        let error = check(&season, LIVE_BYTES_MAX).unwrap_err();
        assert!(error.bytes > 14_400_000_000, "{error}");
        assert!(error.to_string().contains("[limits] rrd_memory"), "{error}");
        let ds: Vec<String> = (0..4000).map(|ds| format!("DS:d{ds}:GAUGE:9:U:U")).collect();
        let rra: Vec<String> = (1..=4000).map(|rra| format!("RRA:LAST:0:{rra}:1")).collect();
        let words: Vec<&str> = ds.iter().chain(&rra).map(String::as_str).collect();
        assert!(check(&definition(&words), LIVE_BYTES_MAX).unwrap_err().bytes > 500_000_000);
    }
}
