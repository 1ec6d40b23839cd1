//! The fields of an `RRA:` argument.

use super::{CreateOptions, DefinitionError};
use crate::definition::{Cf, Consolidation, Definition, PlainCf, Rra, VERSION_SMOOTHING_WINDOW};
use crate::number::{self, leading_integer};
use crate::when::{DurationError, DurationScale, parse_duration};

/// Smoothing window of a season defined by an argument of its own.
const SMOOTHING_WINDOW_DEFAULT: f64 = 0.05;
/// Deviations in the bounds of a failure.
const DELTA_DEFAULT: f64 = 2.0;
/// Violations that make a failure, in an archive that HWPREDICT adds.
const THRESHOLD_DEFAULT: u64 = 7;
/// Rows in the window, in an archive that HWPREDICT adds.
const WINDOW_DEFAULT: u64 = 9;
/// Longest failure window (`MAX_FAILURES_WINDOW_LEN`).
const WINDOW_MAX: i32 = 28;
/// Longest name of a consolidation function that RRDtool reads.
const CF_CHARACTERS: usize = 19;
/// Longest prefix tried as a C number, in bytes.
const SCAN_BYTES_MAX: usize = 64;

/// Adds the archive and, for HWPREDICT without a mate, the four it needs.
pub(super) fn parse(
    arguments: &str,
    options: &CreateOptions<'_>,
    definition: &mut Definition,
) -> Result<(), DefinitionError> {
    let tokens: Vec<&str> = arguments.split(':').filter(|token| !token.is_empty()).collect();
    let Some(&first) = tokens.first() else {
        return Err(DefinitionError::RraArguments { want: 4, got: 0 });
    };
    let letters = first.bytes().take_while(u8::is_ascii_uppercase).take(CF_CHARACTERS).count();
    let name = &first[..letters];
    let cf = Cf::from_name(name).ok_or_else(|| DefinitionError::Cf(name.to_string()))?;
    let line = Line { cf, tokens: &tokens, options, step: definition.step };
    match cf {
        Cf::Average | Cf::Min | Cf::Max | Cf::Last => line.plain(definition),
        Cf::HwPredict | Cf::MhwPredict => line.predict(definition),
        Cf::Seasonal | Cf::DevSeasonal => line.seasonal(definition),
        Cf::DevPredict => line.dev_predict(definition),
        Cf::Failures => line.failures(definition),
    }
}

/// One `RRA:` argument, split at its colons; `tokens[0]` is the function.
///
/// RRDtool reads the fields one by one and counts them at the end, so it complains first about a bad field and
/// only then about a missing one.
struct Line<'a> {
    cf: Cf,
    tokens: &'a [&'a str],
    options: &'a CreateOptions<'a>,
    step: u64,
}

impl Line<'_> {
    fn plain(&self, definition: &mut Definition) -> Result<(), DefinitionError> {
        let xff = self.fraction(1, "xff", |xff| !(0.0..1.0).contains(&xff))?;
        let pdp_per_row = self.argument(2, 1, |text| {
            self.duration(text, self.step).map_err(|error| DefinitionError::RraStep(text.to_string(), error))
        })?;
        let row_count = self.rows(3, self.step.saturating_mul(pdp_per_row))?;
        if self.tokens.len() > 4 {
            return Err(DefinitionError::ExtraArgument(self.cf));
        }
        self.check_count(4)?;
        let cf = match self.cf {
            Cf::Average => PlainCf::Average,
            Cf::Min => PlainCf::Min,
            Cf::Max => PlainCf::Max,
            _ => PlainCf::Last,
        };
        definition.rra.push(Rra { cf: Consolidation::Plain { cf, xff }, pdp_per_row, row_count });
        Ok(())
    }

    fn predict(&self, definition: &mut Definition) -> Result<(), DefinitionError> {
        let multiplicative = self.cf == Cf::MhwPredict;
        let row_count = self.rows(1, self.step)?;
        let alpha = self.fraction(2, "alpha", |alpha| alpha <= 0.0 || alpha >= 1.0)?;
        let beta = self.fraction(3, "beta", |beta| !(0.0..=1.0).contains(&beta))?;
        let period = self.argument(4, 1, |text| Ok(integer(text)))?;
        if i64::from(period) as u64 > row_count {
            return Err(DefinitionError::SeasonLength);
        }
        self.check_count(5)?;
        if period == 0 {
            return Err(DefinitionError::NoSeason);
        }
        let this = definition.rra.len();
        let mate = self.tokens.get(5).map(|token| index(token));
        let seasonal = mate.unwrap_or(this + 1);
        let cf = Consolidation::Predict { multiplicative, alpha, beta, seasonal, period: f64::from(period) };
        definition.rra.push(Rra { cf, pdp_per_row: 1, row_count });
        if multiplicative {
            definition.version = definition.version.max(VERSION_SMOOTHING_WINDOW);
        }
        if mate.is_none() {
            self.add_mates(definition, this, alpha, period as u64);
        }
        Ok(())
    }

    /// Adds SEASONAL, DEVSEASONAL, DEVPREDICT and FAILURES, in this order.
    fn add_mates(&self, definition: &mut Definition, predict: usize, gamma: f64, period: u64) {
        let prediction_rows = definition.rra[predict].row_count;
        let devseasonal = predict + 2;
        for deviation in [false, true] {
            let smooth_index = smooth_index(self.options.file_name, period);
            let cf =
                Consolidation::Seasonal { deviation, gamma, smoothing_window: 0.0, predict, smooth_index };
            definition.rra.push(Rra { cf, pdp_per_row: 1, row_count: period });
        }
        let cf = Consolidation::DevPredict { devseasonal };
        definition.rra.push(Rra { cf, pdp_per_row: 1, row_count: prediction_rows });
        let cf = Consolidation::Failures {
            delta_pos: DELTA_DEFAULT,
            delta_neg: DELTA_DEFAULT,
            devseasonal,
            window_length: WINDOW_DEFAULT,
            threshold: THRESHOLD_DEFAULT,
        };
        definition.rra.push(Rra { cf, pdp_per_row: 1, row_count: period });
    }

    fn seasonal(&self, definition: &mut Definition) -> Result<(), DefinitionError> {
        let row_count = self.rows(1, self.step)?;
        let gamma = self.fraction(2, "gamma", |gamma| gamma <= 0.0 || gamma >= 1.0)?;
        let predict = self.argument(3, usize::MAX, |text| Ok(index(text)))?;
        let mut smoothing_window = SMOOTHING_WINDOW_DEFAULT;
        if let Some(option) = self.tokens.get(4) {
            definition.version = definition.version.max(VERSION_SMOOTHING_WINDOW);
            smoothing_window = parse_option(option)?.unwrap_or(smoothing_window);
        }
        // RRDtool accepts DEVSEASONAL without its mate and uses whatever is in memory; here it has none.
        self.check_count(if self.cf == Cf::DevSeasonal { 3 } else { 4 })?;
        let cf = Consolidation::Seasonal {
            deviation: self.cf == Cf::DevSeasonal,
            gamma,
            smoothing_window,
            predict,
            smooth_index: smooth_index(self.options.file_name, row_count),
        };
        definition.rra.push(Rra { cf, pdp_per_row: 1, row_count });
        Ok(())
    }

    fn dev_predict(&self, definition: &mut Definition) -> Result<(), DefinitionError> {
        let row_count = self.rows(1, self.step)?;
        let devseasonal = self.argument(2, 0, |text| Ok(index(text)))?;
        if self.tokens.len() > 3 {
            return Err(DefinitionError::ExtraArgument(self.cf));
        }
        self.check_count(3)?;
        definition.rra.push(Rra { cf: Consolidation::DevPredict { devseasonal }, pdp_per_row: 1, row_count });
        Ok(())
    }

    fn failures(&self, definition: &mut Definition) -> Result<(), DefinitionError> {
        let row_count = self.rows(1, self.step)?;
        let threshold = self.argument(2, 1, |text| match integer(text) {
            threshold @ 1..=WINDOW_MAX => Ok(threshold),
            _ => Err(DefinitionError::Threshold),
        })?;
        // RRDtool takes a negative window for a huge one.
        let window_length = self.argument(3, WINDOW_MAX, |text| match integer(text) {
            window if (0..threshold).contains(&window) => Err(DefinitionError::WindowShort),
            window if !(0..=WINDOW_MAX).contains(&window) => Err(DefinitionError::Window),
            window => Ok(window),
        })?;
        self.check_count(5)?;
        let cf = Consolidation::Failures {
            delta_pos: DELTA_DEFAULT,
            delta_neg: DELTA_DEFAULT,
            devseasonal: index(self.tokens[4]),
            window_length: window_length as u64,
            threshold: threshold as u64,
        };
        definition.rra.push(Rra { cf, pdp_per_row: 1, row_count });
        Ok(())
    }

    /// Refuses too few fields, and more than any function has. RRDtool ignores a superfluous sixth.
    fn check_count(&self, want: usize) -> Result<(), DefinitionError> {
        if self.tokens.len() < want {
            return Err(DefinitionError::RraArguments { want, got: self.tokens.len() });
        }
        if self.tokens.len() > 6 { Err(DefinitionError::Unknown) } else { Ok(()) }
    }

    /// A field, or `missing` where there is none; [`Line::check_count`] reports that later.
    fn argument<T>(
        &self,
        at: usize,
        missing: T,
        read: impl FnOnce(&str) -> Result<T, DefinitionError>,
    ) -> Result<T, DefinitionError> {
        self.tokens.get(at).map_or(Ok(missing), |text| read(text))
    }

    fn fraction(
        &self,
        at: usize,
        name: &'static str,
        outside: impl Fn(f64) -> bool,
    ) -> Result<f64, DefinitionError> {
        self.argument(at, 0.0, |text| match number::parse(text.as_bytes()) {
            // RRDtool accepts `nan`.
            Ok(value) if value.is_nan() || !outside(value) => Ok(value),
            _ => Err(DefinitionError::Parameter(name)),
        })
    }

    fn rows(&self, at: usize, row_units: u64) -> Result<u64, DefinitionError> {
        self.argument(at, u64::MAX, |text| {
            self.duration(text, row_units).map_err(|error| DefinitionError::RowCount(text.to_string(), error))
        })
    }

    fn duration(&self, text: &str, divisor: u64) -> Result<u64, DurationError> {
        let units_per_second = self.options.step.units_per_second;
        parse_duration(
            text,
            DurationScale { divisor, units_per_second, sub_second: self.options.limits.sub_second },
        )
    }
}

/// `smoothing-window=fraction`; `None` without a fraction, which RRDtool accepts.
fn parse_option(option: &str) -> Result<Option<f64>, DefinitionError> {
    let unknown = || DefinitionError::Option(option.to_string());
    if option == "smoothing-window" {
        return Ok(None);
    }
    let text = option.strip_prefix("smoothing-window=").ok_or_else(unknown)?.trim_start();
    if text.is_empty() {
        return Ok(None);
    }
    let value = scan_double(text).ok_or_else(unknown)?;
    if (0.0..=1.0).contains(&value) || value.is_nan() {
        return Ok(Some(value));
    }
    Err(DefinitionError::SmoothingWindow(format!("{value:.6}")))
}

/// As `%lf` of C's `scanf`: correctly rounded, ignoring what follows.
fn scan_double(text: &str) -> Option<f64> {
    let longest = text.len().min(SCAN_BYTES_MAX);
    (1..=longest).rev().filter_map(|end| text.get(..end)).find_map(|part| part.parse().ok())
}

/// As C's `atoi`.
fn integer(text: &str) -> i32 {
    let (negative, digits) = leading_integer(text);
    let value = match digits.parse::<i64>() {
        Ok(value) => value,
        Err(_) if digits.is_empty() => 0,
        Err(_) if negative => return i64::MIN as i32,
        Err(_) => i64::MAX,
    };
    (if negative { -value } else { value }) as i32
}

/// A 1-based archive number as a 0-based index. A bad number becomes an index that no RRD has.
fn index(text: &str) -> usize {
    i64::from(integer(text)).wrapping_sub(1) as usize
}

/// The row at which a season is smoothed: FNV-1 of the file name with a 32-bit prime in 64 bits.
fn smooth_index(file_name: &[u8], period: u64) -> u64 {
    let hash = file_name
        .iter()
        .fold(0x811c_9dc5_u64, |hash, &byte| hash.wrapping_mul(0x0100_0193) ^ u64::from(byte));
    hash % period.max(1)
}
