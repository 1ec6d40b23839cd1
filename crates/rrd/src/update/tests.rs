mod thousandths;

use super::*;
use crate::create::new_live;
use crate::definition::{Ds, DsType, PlainCf, Rra};
use crate::live::Live;

/// Rows as they come: archive, number, values.
#[derive(Default)]
struct Rows(Vec<(usize, i64, Vec<f64>)>);

impl RowSink for Rows {
    fn rows(&mut self, rra: usize, first_row: i64, count: u64, cells: &[CdpPrep]) {
        for nth in 0..count as i64 {
            let value = |cell: &CdpPrep| if nth == 0 { cell.primary } else { cell.secondary };
            self.0.push((rra, first_row + nth, cells.iter().map(value).collect()));
        }
    }
}

fn definition(units_per_second: u32, step: u64, types: &[DsType], rows: &[u64]) -> Definition {
    let kind = |ds_type| DsKind::Fed { ds_type, heartbeat: step * 2, min: f64::NAN, max: 600.0 };
    let cf = Consolidation::Plain { cf: PlainCf::Average, xff: 0.5 };
    Definition {
        version: 3,
        units_per_second,
        step,
        ds: types
            .iter()
            .map(|&ds_type| Ds { name: ds_type.name().to_string(), kind: kind(ds_type) })
            .collect(),
        rra: rows.iter().map(|&pdp_per_row| Rra { cf: cf.clone(), pdp_per_row, row_count: 10 }).collect(),
    }
}

fn update(
    definition: &Definition,
    live: &mut Live,
    time: Timestamp,
    values: &[&str],
) -> Result<Vec<(usize, i64, Vec<f64>)>, UpdateError> {
    let shape = HeadShape::of(definition);
    let values: Vec<&[u8]> = values.iter().map(|text| text.as_bytes()).collect();
    let reading = Reading { time, values: &values };
    let (mut scratch, mut rows) = (Scratch::default(), Rows::default());
    let Live { words, seasons } = live;
    let (head, shape, scratch, sink) = (shape.split_mut(words), &shape, &mut scratch, &mut rows);
    Updater { definition, shape, head, seasons, scratch, sink }.apply(&reading)?;
    Ok(rows.0)
}

#[test]
fn a_step_below_a_second_counts_in_thousandths_and_rates_stay_per_second() {
    let definition = definition(1000, 100, &[DsType::Gauge, DsType::Counter], &[1, 2]);
    let mut live = new_live(&definition, 1_000_000_000_000);
    let at = |millis: i64| Timestamp::whole(1_000_000_000_000 + millis);
    update(&definition, &mut live, at(100), &["5", "1000"]).unwrap();
    let rows = update(&definition, &mut live, at(200), &["7", "1050"]).unwrap();
    assert_eq!(rows[0], (0, 10_000_000_002, vec![7.0, 500.0]));
    // 70 in a tenth of a second is beyond the maximum of 600 a second.
    let rows = update(&definition, &mut live, at(300), &["8", "1120"]).unwrap();
    assert!(rows[0].2[0] == 8.0 && rows[0].2[1].is_nan(), "{rows:?}");
    let error = update(&definition, &mut live, at(250), &["8", "1120"]).unwrap_err();
    let seconds = |micros| Timestamp::new(1_000_000_000, micros);
    let (time, last_update) = (seconds(250_000), seconds(300_000));
    assert_eq!(error, UpdateError::NotLater { time, last_update, units_per_second: 1000 });
    assert_eq!(
        error.to_string(),
        "illegal attempt to update using time 1000000000.250000 when last update time is 1000000000.300000 \
         (minimum one second step)"
    );
}

#[test]
fn a_refused_reading_changes_nothing() {
    let definition = definition(1, 10, &[DsType::Gauge, DsType::Counter, DsType::Dderive], &[1, 3]);
    let mut live = new_live(&definition, 1_000_000_000);
    update(&definition, &mut live, Timestamp::whole(1_000_000_013), &["5", "1000", "1.5"]).unwrap();
    let before = live.clone();
    let mut check = |time: i64, values: &[&str], want: &str| {
        let error = update(&definition, &mut live, Timestamp::whole(time), values).unwrap_err();
        assert_eq!((error.to_string(), &live), (want.to_string(), &before));
    };
    check(
        1_000_000_013,
        &["5", "1", "1"],
        "illegal attempt to update using time 1000000013 when last update time is 1000000013 (minimum one second step)",
    );
    check(1_000_000_017, &["6", "1.5", "2"], "not a simple unsigned integer: '1.5'");
    check(
        1_000_000_017,
        &["6", "7", "2z"],
        "Function update_pdp_prep, case DST_DDERIVE - Converted '2z' to 2.000000, but cannot convert 'z'",
    );
    check(1_000_000_017, &["6", "7"], "expected 3 data source readings (got 2) from ");
}
