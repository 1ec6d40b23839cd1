//! The fields of a `DS:` argument.

use super::error::DsError;
use super::{CreateOptions, DefinitionError};
use crate::definition::{Ds, DsKind, DsType};
use crate::live::UNKNOWN;
use crate::number::{self, NumberError};
use crate::rpn;
use crate::when::{DurationError, DurationScale, FINE_UNITS, parse_duration};

/// Characters of a limit that RRDtool reads.
const LIMIT_CHARACTERS: usize = 18;
/// Longest name of a type that RRDtool reads.
const TYPE_CHARACTERS: usize = 19;

/// `name[=mapped[index]]:TYPE:parameters`. The mapping only matters together with `--source`.
pub(super) fn parse(
    arguments: &str,
    options: &CreateOptions<'_>,
    earlier: &[Ds],
) -> Result<Ds, DefinitionError> {
    let (head, rest) = arguments.split_once(':').ok_or(DefinitionError::DsFormat)?;
    let (type_name, rest) = rest.split_once(':').ok_or(DefinitionError::DsFormat)?;
    let name = parse_name(head, options.limits.ds_name_bytes).ok_or(DefinitionError::DsFormat)?;
    let type_sound = (1..=TYPE_CHARACTERS).contains(&type_name.len())
        && type_name.bytes().all(|byte| byte.is_ascii_uppercase());
    if !type_sound || rest.is_empty() {
        return Err(DefinitionError::DsFormat);
    }
    if earlier.iter().any(|ds| ds.name == name) {
        return Err(DefinitionError::DuplicateDs(name.to_string()));
    }
    let kind = if type_name == "COMPUTE" {
        let names: Vec<&str> = earlier.iter().map(|ds| ds.name.as_str()).collect();
        DsKind::Compute(rpn::compile(rest, &names).map_err(DefinitionError::Compute)?)
    } else {
        let ds_type =
            DsType::from_name(type_name).ok_or_else(|| DefinitionError::DsType(type_name.to_string()))?;
        parse_fed(ds_type, rest, options)?
    };
    Ok(Ds { name: name.to_string(), kind })
}

/// The name, if it and the mapping after it are well formed.
fn parse_name(head: &str, bytes_max: usize) -> Option<&str> {
    let sound = |name: &str| {
        (1..=bytes_max).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    let (name, mapped) = match head.split_once('=') {
        Some((name, mapped)) => (name, Some(mapped)),
        None => (head, None),
    };
    if let Some(mapped) = mapped {
        let mapped = match mapped.split_once('[') {
            Some((mapped, index)) => {
                let digits = index.strip_suffix(']')?;
                if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return None;
                }
                mapped
            }
            None => mapped,
        };
        if !sound(mapped) {
            return None;
        }
    }
    sound(name).then_some(name)
}

/// `heartbeat:min:max`.
fn parse_fed(ds_type: DsType, text: &str, options: &CreateOptions<'_>) -> Result<DsKind, DefinitionError> {
    let fail = |error| DefinitionError::Ds(text.to_string(), error);
    let (heartbeat, limits) = text.split_once(':').ok_or(fail(DsError::Separator))?;
    let (units_per_second, sub_second) = (options.step.units_per_second, options.limits.sub_second);
    let heartbeat = parse_heartbeat(heartbeat, units_per_second, sub_second).map_err(|error| {
        if error == DurationError::Truncates && options.limits.sub_second {
            DefinitionError::FinerHeartbeat
        } else {
            fail(DsError::Heartbeat(error))
        }
    })?;
    let (min, max) = limits.split_once(':').ok_or(fail(DsError::MinMax))?;
    let max = max.split(':').next().unwrap_or_default();
    if !(1..=LIMIT_CHARACTERS).contains(&min.len()) || max.is_empty() {
        return Err(fail(DsError::MinMax));
    }
    let (min, max) = parse_limits(min, cut(max))?;
    if min >= max {
        return Err(fail(DsError::Order));
    }
    Ok(DsKind::Fed { ds_type, heartbeat, min, max })
}

/// A heartbeat in units; a plain integer is a number of seconds.
///
/// # Errors
/// [`DurationError::Truncates`] when it is finer than the units of the RRD.
pub(crate) fn parse_heartbeat(
    text: &str,
    units_per_second: u32,
    sub_second: bool,
) -> Result<u64, DurationError> {
    let scale = DurationScale { divisor: 1, units_per_second, sub_second };
    let value = match parse_duration(text, scale) {
        // Finer than the finest unit: no other unit would help.
        Err(DurationError::Truncates) if units_per_second == FINE_UNITS => Err(DurationError::Trailing),
        value => value,
    }?;
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    Ok(if plain { value.saturating_mul(u64::from(units_per_second)) } else { value })
}

/// The characters of a limit that RRDtool reads.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(LIMIT_CHARACTERS);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Minimum and maximum, `U` for none.
fn parse_limits(min: &str, max: &str) -> Result<(f64, f64), DefinitionError> {
    Ok((parse_limit(min, "parsing min val")?, parse_limit(max, "parsing max val")?))
}

fn parse_limit(text: &str, what: &str) -> Result<f64, DefinitionError> {
    if text == "U" {
        return Ok(UNKNOWN);
    }
    number::parse(text.as_bytes())
        .map_err(|error| DefinitionError::Limit(format!("{what} - {}", number_text(text, error))))
}

/// RRDtool's text for something that is not a number.
fn number_text(text: &str, error: NumberError<'_>) -> String {
    match error {
        NumberError::Nothing => format!("Cannot convert '{text}' to float"),
        NumberError::Trailing { value, rest } => {
            let rest = String::from_utf8_lossy(rest);
            format!("Converted '{text}' to {value:.6}, but cannot convert '{rest}'")
        }
    }
}
