//! One `<rra>` of a dump.

use super::reader::{Reader, Tag};
use super::{Archive, Cf, DsKind, RestoreError, RestoreOptions, Rra, Source, UNKNOWN, limited};
use crate::definition::{Consolidation, PlainCf};

/// Longest failure window.
const WINDOW_MAX: u64 = 28;
/// Bytes of a function's name, including the NUL.
const CF_CHARACTERS: usize = 20;
/// From this version on, parameters are in `<params>`.
const VERSION_PARAMS: u64 = 2;

/// What `<params>` may contain.
#[derive(Default)]
struct Parameters {
    xff: f64,
    alpha: f64,
    beta: f64,
    gamma: f64,
    smoothing_window: f64,
    smooth_index: u64,
    mate: u64,
    delta_pos: f64,
    delta_neg: f64,
    window_length: u64,
    threshold: u64,
}

/// Reads an archive, right after its opening tag.
pub(super) fn read(
    reader: &mut Reader<'_>,
    version: u64,
    sources: &[Source],
    options: RestoreOptions,
) -> Result<Archive, RestoreError> {
    let mut cf = None;
    let mut pdp_per_row = 0;
    let mut parameters = Parameters::default();
    let mut prepared = Vec::new();
    let mut values = None;
    while let Tag::Open(tag) = reader.tag_within("rra")? {
        match &*tag {
            "cf" => {
                let text = limited(&reader.text(&tag)?, CF_CHARACTERS)?;
                cf = Some(Cf::from_name(&text).ok_or(RestoreError::Cf(text))?);
            }
            "pdp_per_row" => pdp_per_row = reader.count(&tag)?,
            "xff" if version < VERSION_PARAMS => parameters.xff = parameter(reader, &tag)?,
            "params" if version >= VERSION_PARAMS => read_parameters(reader, &mut parameters)?,
            "cdp_prep" => prepared = read_prepared(reader, sources.len())?,
            "database" => values = Some(read_rows(reader, sources, options)?),
            _ => return Err(RestoreError::UnknownTag("rra", tag.into_owned())),
        }
    }
    let refused = |what: &str| Err(RestoreError::Refused(what.to_string()));
    let Some(cf) = cf else { return refused("an archive has no consolidation function") };
    let values = values.unwrap_or_default();
    let row_count = (values.len() / sources.len().max(1)) as u64;
    if row_count == 0 || pdp_per_row == 0 {
        return refused("an archive has no rows, or no PDPs in a row");
    }
    let cf = consolidation(cf, &parameters);
    if cf.is_holt_winters() && pdp_per_row != 1 {
        return refused("a Holt-Winters archive consolidates");
    }
    if let Consolidation::Failures { window_length, .. } = cf
        && !(1..=WINDOW_MAX).contains(&window_length)
    {
        return refused("Window length is out of range 1, 28");
    }
    prepared.resize(sources.len(), [0; 10]);
    Ok(Archive { rra: Rra { cf, pdp_per_row, row_count }, prepared, values })
}

fn read_parameters(reader: &mut Reader<'_>, parameters: &mut Parameters) -> Result<(), RestoreError> {
    while let Tag::Open(tag) = reader.tag_within("params")? {
        match &*tag {
            "xff" => parameters.xff = parameter(reader, &tag)?,
            "hw_alpha" => parameters.alpha = parameter(reader, &tag)?,
            "hw_beta" => parameters.beta = parameter(reader, &tag)?,
            "seasonal_gamma" => parameters.gamma = parameter(reader, &tag)?,
            "smoothing_window" => parameters.smoothing_window = parameter(reader, &tag)?,
            "seasonal_smooth_idx" => parameters.smooth_index = reader.count(&tag)?,
            "dependent_rra_idx" => parameters.mate = reader.count(&tag)?,
            "delta_pos" => parameters.delta_pos = parameter(reader, &tag)?,
            "delta_neg" => parameters.delta_neg = parameter(reader, &tag)?,
            "window_len" => parameters.window_length = reader.count(&tag)?,
            "failure_threshold" => parameters.threshold = reader.count(&tag)?,
            _ => return Err(RestoreError::UnknownTag("rra_params", tag.into_owned())),
        }
    }
    Ok(())
}

/// A parameter. Here alone, NaN has no sign.
fn parameter(reader: &mut Reader<'_>, tag: &str) -> Result<f64, RestoreError> {
    let value = reader.number(tag)?;
    Ok(if value.is_nan() { f64::NAN } else { value })
}

fn consolidation(cf: Cf, parameters: &Parameters) -> Consolidation {
    let mate = usize::try_from(parameters.mate).unwrap_or(usize::MAX);
    let plain = |cf| Consolidation::Plain { cf, xff: parameters.xff };
    match cf {
        Cf::Average => plain(PlainCf::Average),
        Cf::Min => plain(PlainCf::Min),
        Cf::Max => plain(PlainCf::Max),
        Cf::Last => plain(PlainCf::Last),
        // The period is in no dump; only the length of the season uses it.
        Cf::HwPredict | Cf::MhwPredict => Consolidation::Predict {
            multiplicative: cf == Cf::MhwPredict,
            alpha: parameters.alpha,
            beta: parameters.beta,
            seasonal: mate,
            period: 0.0,
        },
        Cf::Seasonal | Cf::DevSeasonal => Consolidation::Seasonal {
            deviation: cf == Cf::DevSeasonal,
            gamma: parameters.gamma,
            smoothing_window: parameters.smoothing_window,
            predict: mate,
            smooth_index: parameters.smooth_index,
        },
        Cf::DevPredict => Consolidation::DevPredict { devseasonal: mate },
        Cf::Failures => Consolidation::Failures {
            delta_pos: parameters.delta_pos,
            delta_neg: parameters.delta_neg,
            devseasonal: mate,
            window_length: parameters.window_length,
            threshold: parameters.threshold,
        },
    }
}

/// The ten scratch words of each source.
fn read_prepared(reader: &mut Reader<'_>, ds_count: usize) -> Result<Vec<[u64; 10]>, RestoreError> {
    let mut prepared = Vec::new();
    for _ in 0..ds_count {
        open(reader, "ds")?;
        let mut scratch = [0; 10];
        while let Tag::Open(tag) = reader.tag_within("ds")? {
            let word = match &*tag {
                "value" => 0,
                "unknown_datapoints" => 1,
                "intercept" | "seasonal" => 2,
                "last_intercept" | "last_seasonal" => 3,
                "slope" => 4,
                "last_slope" => 5,
                "nan_count" | "init_flag" => 6,
                "last_nan_count" => 7,
                "primary_value" => 8,
                "secondary_value" => 9,
                "history" => {
                    history(&mut scratch, &reader.text(&tag)?);
                    continue;
                }
                _ => return Err(RestoreError::UnknownTag("rra_cdp_prep", tag.into_owned())),
            };
            scratch[word] = match word {
                1 | 6 | 7 => reader.count(&tag)?,
                _ => reader.number(&tag)?.to_bits(),
            };
        }
        prepared.push(scratch);
    }
    close(reader, "cdp_prep")?;
    Ok(prepared)
}

/// The violation flags, a byte each.
fn history(scratch: &mut [u64; 10], text: &str) {
    for (index, flag) in text.trim_ascii().bytes().take(WINDOW_MAX as usize).enumerate() {
        let shift = index % 8 * 8;
        scratch[index / 8] &= !(0xff << shift);
        scratch[index / 8] |= u64::from(flag == b'1') << shift;
    }
}

/// The rows. The input bounds their number: each value takes at least eight bytes of text.
fn read_rows(
    reader: &mut Reader<'_>,
    sources: &[Source],
    options: RestoreOptions,
) -> Result<Vec<f64>, RestoreError> {
    let mut values = Vec::new();
    while let Tag::Open(tag) = reader.tag_within("database")? {
        if tag != "row" {
            return Err(reader.expected("<row>", &Tag::Open(tag)));
        }
        for source in sources {
            open(reader, "v")?;
            let value = reader.number("v")?;
            let outside = options.range_check && is_outside(source, value);
            values.push(if outside { UNKNOWN } else { value });
        }
        close(reader, "row")?;
    }
    Ok(values)
}

fn is_outside(source: &Source, value: f64) -> bool {
    match source.ds.kind {
        DsKind::Fed { min, max, .. } => value < min || value > max,
        DsKind::Compute(_) => false,
    }
}

fn open(reader: &mut Reader<'_>, name: &str) -> Result<(), RestoreError> {
    match reader.tag()? {
        Tag::Open(found) if found == name => Ok(()),
        tag => Err(reader.expected(&format!("<{name}>"), &tag)),
    }
}

fn close(reader: &mut Reader<'_>, name: &str) -> Result<(), RestoreError> {
    match reader.tag()? {
        Tag::Close(found) if found == name => Ok(()),
        tag => Err(reader.expected(&format!("</{name}>"), &tag)),
    }
}
