//! What `check` says of a reading without the live head is what `step` says with it.

use roundel_rrd::definition::{Consolidation, Definition, Ds, DsKind, DsType, PlainCf, Rra};
use roundel_rrd::live::{CdpPrep, HeadShape};
use roundel_rrd::reading::Reading;
use roundel_rrd::time::Timestamp;
use roundel_rrd::update::{RowSink, Scratch, Updater, check};

struct Nowhere;

impl RowSink for Nowhere {
    fn rows(&mut self, _: usize, _: i64, _: u64, _: &[CdpPrep]) {}
}

#[test]
fn check_decides_as_step_does() {
    let texts = [
        "U",
        "Unknown",
        "",
        "1",
        "-1",
        "+1",
        "1.5",
        "-1.5",
        "1e3",
        "1e400",
        "1x",
        "x",
        "nan",
        "inf",
        "0x10",
        " 1",
        "18446744073709551616",
        "1234567890123456789012345678901234567890",
        "--1",
        "-",
    ];
    let types =
        [DsType::Gauge, DsType::Counter, DsType::Derive, DsType::Absolute, DsType::Dcounter, DsType::Dderive];
    for version in [2, 3] {
        for ds_type in types {
            let kind = DsKind::Fed { ds_type, heartbeat: 20, min: f64::NAN, max: f64::NAN };
            let cf = Consolidation::Plain { cf: PlainCf::Average, xff: 0.5 };
            let definition = Definition {
                version,
                units_per_second: 1,
                step: 10,
                ds: vec![Ds { name: "v".to_string(), kind }],
                rra: vec![Rra { cf, pdp_per_row: 1, row_count: 5 }],
            };
            let shape = HeadShape::of(&definition);
            for text in texts {
                for (whole, micros) in [(99, 0), (100, 0), (100, 5), (101, 0), (120, 0), (120, 1), (121, 0)] {
                    let mut live = roundel_rrd::create::new_live(&definition, 100);
                    let head = shape.split_mut(&mut live.words);
                    head.pdp[0].last_ds.set(b"7");
                    let last = *head.last_update;
                    let values = [text.as_bytes()];
                    let reading = Reading { time: Timestamp::new(whole, micros), values: &values };
                    let mut scratch = Scratch::default();
                    let mut updater = Updater {
                        definition: &definition,
                        shape: &shape,
                        head,
                        seasons: &mut [],
                        scratch: &mut scratch,
                        sink: Nowhere,
                    };
                    let want = updater.apply(&reading);
                    let case = format!("version {version}, {ds_type:?} {text:?} at {whole}.{micros}");
                    assert_eq!(check(&definition, last, &reading).map(|_| ()), want, "{case}");
                }
            }
        }
    }
}
