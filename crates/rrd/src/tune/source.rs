//! Settings of data sources: heartbeat, limits, type, name.

use super::error::TuneError;
use super::option::Setting;
use crate::definition::text::parse_heartbeat;
use crate::definition::{ComputeProgram, Definition, Ds, DsKind, DsType};
use crate::live::{HeadShape, Live};
use crate::number;

/// Longest name a store takes (`crate::definition::Ds::name`).
const NAME_BYTES_MAX: usize = 255;
/// Longest name a `.rrd` file has room for.
const FILE_NAME_BYTES_MAX: usize = 19;
/// Heartbeat, in steps, of a COMPUTE source that becomes another type without one: what `rrdcreate(1)` advises.
/// RRDtool makes a heartbeat of the expression's bytes.
const HEARTBEAT_STEPS: u64 = 2;

/// The data sources while the arguments of a tune are read: a COMPUTE source may get its limits before its
/// type.
pub(super) struct Sources {
    step: u64,
    units_per_second: u32,
    list: Vec<Source>,
}

struct Source {
    name: String,
    /// `None` as long as it is COMPUTE.
    ds_type: Option<DsType>,
    heartbeat: Option<u64>,
    min: Option<f64>,
    max: Option<f64>,
    program: Option<ComputeProgram>,
}

impl Sources {
    pub(super) fn of(definition: &Definition) -> Self {
        let list = definition.ds.iter().map(Source::of).collect();
        Sources { step: definition.step, units_per_second: definition.units_per_second, list }
    }

    /// The source that an argument starts with, by index, and what follows its name.
    pub(super) fn find<'a>(
        &self,
        argument: &'a str,
        what: &'static str,
    ) -> Result<(usize, &'a str), TuneError> {
        let (name, rest) = self.take_own_name(argument);
        if name.is_empty() {
            return Err(TuneError::InvalidArgument(what));
        }
        let index = self.list.iter().position(|source| source.name == name);
        Ok((index.ok_or_else(|| TuneError::UnknownDs(name.to_string()))?, rest))
    }

    /// The source of a `name:value` argument whose value `read` understands.
    fn split<'a, T>(
        &self,
        argument: &'a str,
        what: &'static str,
        read: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<(usize, T), TuneError> {
        let value = self.take_own_name(argument).1.strip_prefix(':').and_then(read);
        let value = value.ok_or(TuneError::InvalidArgument(what))?;
        Ok((self.find(argument, what)?.0, value))
    }

    /// The leading name of `text`, and the rest. Compat: RRDtool reads no more than a name has room for.
    fn take_own_name<'a>(&self, text: &'a str) -> (&'a str, &'a str) {
        let longest = self.list.iter().map(|source| source.name.len()).max();
        take_name(text, longest.unwrap_or(0).max(FILE_NAME_BYTES_MAX))
    }

    /// `--heartbeat`, `--minimum`, `--maximum`.
    pub(super) fn limit(&mut self, setting: Setting, argument: &str) -> Result<(), TuneError> {
        if setting == Setting::Heartbeat {
            let units_per_second = self.units_per_second;
            let units = |text| heartbeat(text, units_per_second);
            let (ds, units) = self.split(argument, "arguments for heartbeat", units)?;
            self.list[ds].heartbeat = Some(units);
            return Ok(());
        }
        let minimum = setting == Setting::Minimum;
        let what = if minimum { "arguments for minimum ds value" } else { "arguments for maximum ds value" };
        let (ds, value) = self.split(argument, what, limit_value)?;
        let limit = if minimum { &mut self.list[ds].min } else { &mut self.list[ds].max };
        *limit = Some(value);
        Ok(())
    }

    /// `--data-source-type`. A source that changes its type forgets its last reading.
    pub(super) fn set_type(
        &mut self,
        definition: &Definition,
        live: &mut Live,
        argument: &str,
    ) -> Result<(), TuneError> {
        let capitals = |text: &str| {
            let end = text.bytes().take(19).take_while(u8::is_ascii_uppercase).count();
            (end != 0).then(|| text[..end].to_string())
        };
        let (ds, name) = self.split(argument, "arguments for data source type", capitals)?;
        let ds_type = DsType::from_name(&name);
        let source = &mut self.list[ds];
        match ds_type {
            None if name != "COMPUTE" => return Err(TuneError::UnknownType(name)),
            None if source.program.is_none() => return Err(TuneError::ToCompute(source.name.clone())),
            _ if source.ds_type == ds_type => return Ok(()),
            _ => source.ds_type = ds_type,
        }
        let head = HeadShape::of(definition).split_mut(&mut live.words);
        head.pdp[ds].last_ds.set(b"UNKN");
        Ok(())
    }

    /// `--data-source-rename old:new`.
    pub(super) fn rename(&mut self, argument: &str) -> Result<(), TuneError> {
        let new = |text| Some(take_name(text, NAME_BYTES_MAX).0).filter(|name| !name.is_empty());
        let (ds, name) = self.split(argument, "arguments for data source type", new)?;
        self.list[ds].name = name.to_string();
        Ok(())
    }

    /// Writes the sources back.
    pub(super) fn finish(self, definition: &mut Definition) -> Result<(), TuneError> {
        for (source, ds) in self.list.into_iter().zip(&mut definition.ds) {
            let limited = source.heartbeat.is_some() || source.min.is_some() || source.max.is_some();
            ds.kind = match (source.ds_type, source.program) {
                (Some(ds_type), _) => DsKind::Fed {
                    ds_type,
                    heartbeat: source.heartbeat.unwrap_or(self.step.saturating_mul(HEARTBEAT_STEPS)),
                    min: source.min.unwrap_or(f64::NAN),
                    max: source.max.unwrap_or(f64::NAN),
                },
                (None, Some(program)) if !limited => DsKind::Compute(program),
                (None, _) => return Err(TuneError::LimitOfCompute(source.name)),
            };
            ds.name = source.name;
        }
        Ok(())
    }
}

impl Source {
    fn of(ds: &Ds) -> Self {
        let name = ds.name.clone();
        match &ds.kind {
            &DsKind::Fed { ds_type, heartbeat, min, max } => Source {
                name,
                ds_type: Some(ds_type),
                heartbeat: Some(heartbeat),
                min: Some(min),
                max: Some(max),
                program: None,
            },
            DsKind::Compute(program) => Source {
                name,
                ds_type: None,
                heartbeat: None,
                min: None,
                max: None,
                program: Some(program.clone()),
            },
        }
    }
}

/// The leading name of `text`, of at most `longest` bytes, and the rest.
fn take_name(text: &str, longest: usize) -> (&str, &str) {
    let of_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    text.split_at(text.bytes().take(longest).take_while(of_name).count())
}

/// A heartbeat in units. RRDs that count seconds take an integer, as in RRDtool; the others what `create` takes.
fn heartbeat(text: &str, units_per_second: u32) -> Option<u64> {
    if units_per_second == 1 {
        // Compat: a negative heartbeat is a huge one.
        return leading_integer(text).map(|seconds| seconds as u64);
    }
    parse_heartbeat(text, units_per_second, true).ok()
}

/// The integer that `text` starts with after blanks, clamped to 64 bits; what follows is ignored.
pub(super) fn leading_integer(text: &str) -> Option<i64> {
    let (negative, digits) = crate::number::leading_integer(text);
    if digits.is_empty() {
        return None;
    }
    Some(digits.bytes().fold(0i64, |number, byte| {
        let digit = i64::from(byte - b'0');
        number.saturating_mul(10).saturating_add(if negative { -digit } else { digit })
    }))
}

/// A limit: `U`, or a number; anything after the characters of a number is ignored.
fn limit_value(text: &str) -> Option<f64> {
    let of_number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'+' | b'-' | b'U');
    let text = &text[..text.bytes().take_while(of_number).count()];
    if text == "U" {
        return Some(crate::live::UNKNOWN);
    }
    number::parse(text.as_bytes()).ok()
}
