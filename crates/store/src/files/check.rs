//! Whether an update would be taken, decided when it arrives and without its RRD's live head.
//!
//! An update waits in memory before [`rrd::update::step`] applies it, yet its client is to be told at once
//! what is wrong with it. The texts are those of `step`; one thing only the live head knows is not looked
//! at: a DCOUNTER or DDERIVE whose last value is unknown takes any text, here it must be a number.

use rrd::definition::{Definition, DsKind, DsType};
use rrd::number::{self, NumberError};
use rrd::reading::Reading;
use rrd::time::{MICROS, Timestamp};
use rrd::update::UpdateError;

/// The first format version that keeps fractions of a second.
const VERSION_FRACTIONS: u8 = 3;

/// The time an update counts with: files of versions 1 and 2 know whole seconds only.
pub fn effective_time(definition: &Definition, time: Timestamp) -> Timestamp {
    if definition.version < VERSION_FRACTIONS { Timestamp::whole(time.whole) } else { time }
}

/// Checks a reading against the time of the update before it.
pub fn check(definition: &Definition, last: Timestamp, reading: &Reading<'_>) -> Result<(), UpdateError> {
    let time = effective_time(definition, reading.time);
    if time <= last {
        return Err(UpdateError::NotLater { time, last_update: last });
    }
    let micros = (i64::from(time.micros) - i64::from(last.micros)) as f64;
    let interval = time.whole.saturating_sub(last.whole) as f64 + micros / f64::from(MICROS);
    let mut texts = reading.values.iter();
    for ds in &definition.ds {
        if let DsKind::Fed { ds_type, heartbeat, .. } = ds.kind
            && let Some(text) = texts.next()
            // What comes too late is not even looked at.
            && text.first() != Some(&b'U')
            && interval <= heartbeat as f64
        {
            check_value(ds_type, text)?;
        }
    }
    Ok(())
}

fn check_value(ds_type: DsType, text: &[u8]) -> Result<(), UpdateError> {
    let lossy = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    match ds_type {
        DsType::Counter => match text.iter().all(u8::is_ascii_digit) {
            true => Ok(()),
            false => Err(UpdateError::NotUnsigned { text: lossy(text) }),
        },
        DsType::Derive => match text.strip_prefix(b"-").unwrap_or(text).iter().all(u8::is_ascii_digit) {
            true => Ok(()),
            false => Err(UpdateError::NotSigned { text: lossy(text) }),
        },
        DsType::Gauge | DsType::Absolute | DsType::Dcounter | DsType::Dderive => {
            number::parse(text).map(|_| ()).map_err(|error| match error {
                NumberError::Nothing => UpdateError::NotANumber { ds_type, text: lossy(text) },
                NumberError::Trailing { value, rest } => {
                    UpdateError::Trailing { ds_type, text: lossy(text), value, rest: lossy(rest) }
                }
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use rrd::definition::{Consolidation, Ds, PlainCf, Rra};
    use rrd::live::{CdpPrep, HeadShape};
    use rrd::update::{RowSink, Scratch, step};

    use super::*;

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
        let types = [
            DsType::Gauge,
            DsType::Counter,
            DsType::Derive,
            DsType::Absolute,
            DsType::Dcounter,
            DsType::Dderive,
        ];
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
                    for (whole, micros) in
                        [(99, 0), (100, 0), (100, 5), (101, 0), (120, 0), (120, 1), (121, 0)]
                    {
                        let mut live = rrd::create::new_live(&definition, 100);
                        let head = shape.split_mut(&mut live.words);
                        head.pdp[0].last_ds.set(b"7");
                        let last = *head.last_update;
                        let values = [text.as_bytes()];
                        let reading = Reading { time: Timestamp::new(whole, micros), values: &values };
                        let mut scratch = Scratch::default();
                        let want =
                            step(&definition, &shape, head, &mut [], &reading, &mut scratch, &mut Nowhere);
                        let case = format!("version {version}, {ds_type:?} {text:?} at {whole}.{micros}");
                        assert_eq!(check(&definition, last, &reading), want, "{case}");
                    }
                }
            }
        }
    }
}
