//! The state of a newly created RRD.

use crate::definition::{Consolidation, Definition};
use crate::grid;
use crate::live::{CdpPrep, HeadShape, HwPrep, LastDs, Live, PdpPrep, Season, UNKNOWN};
use crate::time::Timestamp;

/// The live head and the seasons that `create` makes; `start_whole` is in units of the RRD.
///
/// Everything is unknown. `definition` must be sound: step, rows and PDPs per row at least 1.
pub fn new_live(definition: &Definition, start_whole: i64) -> Live {
    let mut live = new_head(definition, start_whole);
    for season in &mut live.seasons {
        season.values = vec![UNKNOWN; definition.rra[season.rra].row_count as usize * definition.ds.len()];
    }
    live
}

/// As [`new_live`], but the seasons have no values: in a file they are rows like those of other archives, and as many gigabytes.
pub fn new_head(definition: &Definition, start_whole: i64) -> Live {
    let shape = HeadShape::of(definition);
    let mut words = vec![0; shape.word_count()];
    let head = shape.split_mut(&mut words);
    *head.last_update = Timestamp::whole(start_whole);
    let (pdp_number, unknown_units) = grid::divide(start_whole, definition.step);
    head.pdp.fill(PdpPrep { last_ds: LastDs::new(b"U"), value: UNKNOWN, unknown_units });

    let ds_count = definition.ds.len();
    let mut seasons = Vec::new();
    for (index, rra) in definition.rra.iter().enumerate() {
        let (_, unknown_pdps) = grid::divide(pdp_number, rra.pdp_per_row);
        let value = match rra.cf {
            Consolidation::Plain { .. } | Consolidation::DevPredict { .. } => UNKNOWN,
            _ => 0.0,
        };
        let cell = CdpPrep { value, unknown_pdps, primary: 0.0, secondary: 0.0 };
        head.cdp[index * ds_count..][..ds_count].fill(cell);
        if let Some(hw) = shape.hw_index(index) {
            head.hw[hw * ds_count..][..ds_count].fill(HwPrep { words: hw_words(&rra.cf) });
        }
        if rra.cf.is_season() {
            let newest = definition.newest_row(index, start_whole);
            let current_row = grid::ring_index(newest, rra.row_count);
            seasons.push(Season { rra: index, current_row, values: Vec::new() });
        }
    }
    Live { words, seasons }
}

fn hw_words(cf: &Consolidation) -> [u64; 6] {
    let unknown = UNKNOWN.to_bits();
    match cf {
        // Both intercepts and both slopes are unknown; the next prediction is one row ahead.
        Consolidation::Predict { .. } => [unknown, unknown, unknown, unknown, 1, 1],
        // The coefficient, the previous one, and the count of burn-in cycles.
        Consolidation::Seasonal { .. } => [unknown, unknown, 0, 0, 1, 0],
        _ => [0; 6],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::text::{CreateOptions, Limits, parse_create};
    use crate::when::Step;

    /// Seasons of 7 GB each.
    #[test]
    fn a_head_for_a_file_takes_no_memory_for_seasons() {
        let options = CreateOptions {
            step: Step { units: 1, units_per_second: 1 },
            limits: Limits::FILE,
            file_name: b"x",
        };
        let args = ["DS:a:GAUGE:60:U:U", "RRA:HWPREDICT:1000000000:0.1:0.1:900000000"];
        let definition = parse_create(&options, &args).unwrap();
        let head = new_head(&definition, 1_000_000_000);
        assert_eq!(head.seasons.len(), 2);
        assert!(head.seasons.iter().all(|season| season.values.capacity() == 0));
    }
}
