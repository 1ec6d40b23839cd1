//! The state of a newly created RRD.

use crate::definition::{Consolidation, Definition};
use crate::grid;
use crate::live::{CdpPrep, HeadShape, HwPrep, LastDs, Live, PdpPrep, Season, UNKNOWN};
use crate::time::Timestamp;

/// The live head and the seasons that `create` makes; `start_whole` is in units of the RRD.
///
/// Everything is unknown. `definition` must be sound: step, rows and PDPs per row at least 1.
pub fn new_live(definition: &Definition, start_whole: i64) -> Live {
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
            let values = vec![UNKNOWN; rra.row_count as usize * ds_count];
            seasons.push(Season { rra: index, current_row, values });
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
