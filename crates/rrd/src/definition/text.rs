//! `DS:` and `RRA:` arguments, as `rrdcreate(1)` takes them, to a [`Definition`].
//!
//! The checks come in RRDtool's order and give its messages. What RRDtool accepts but cannot work with - a
//! Holt-Winters archive without its mates, a season without rows, an archive longer than time - is refused
//! here, so that every parsed definition keeps the promises the engine relies on.

mod archive;
mod error;
mod source;

pub use error::{DECIMALS_IN_FILE, DefinitionError};
pub(crate) use source::parse_heartbeat;

use super::{Cf, Consolidation, Definition, DsKind, DsType, Rra, VERSION_DCOUNTER, VERSION_DEFAULT};
use crate::when::{FINE_UNITS, Step};

/// Longest DS name a `.rrd` file holds, in bytes.
pub const DS_NAME_BYTES_FILE: usize = 19;
/// Longest DS name a store takes, in bytes: the limit of file systems for a name.
pub const DS_NAME_BYTES_STORE: usize = 255;
/// Most sources or archives of one RRD. Guessed: far above any in use, and their product still fits in memory.
pub const PARTS_MAX: usize = 4096;
/// Longest span of an archive, in units: below it every row time is exact in a double.
const SPAN_MAX: u128 = 1 << 53;

/// What the target (a `.rrd` file or a store) can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest DS name in bytes.
    pub ds_name_bytes: usize,
    /// Whether durations with decimals are accepted (see [`crate::when`]).
    pub sub_second: bool,
}

impl Limits {
    /// A `.rrd` file: RRDtool's limits.
    pub const FILE: Limits = Limits { ds_name_bytes: DS_NAME_BYTES_FILE, sub_second: false };
    /// A store.
    pub const STORE: Limits = Limits { ds_name_bytes: DS_NAME_BYTES_STORE, sub_second: true };
}

/// The options of `create` besides `DS:` and `RRA:`.
#[derive(Clone, Copy, Debug)]
pub struct CreateOptions<'a> {
    /// The length of a PDP.
    pub step: Step,
    /// What the target can hold.
    pub limits: Limits,
    /// The file name as the client gave it: RRDtool derives the smoothing row of a season from it.
    pub file_name: &'a [u8],
}

/// The definition that these `DS:` and `RRA:` arguments describe.
///
/// # Errors
/// [`DefinitionError`] for the first bad argument.
pub fn parse_create<A: AsRef<str>>(
    options: &CreateOptions<'_>,
    args: &[A],
) -> Result<Definition, DefinitionError> {
    match parse_args(options, args) {
        Err(DefinitionError::FinerHeartbeat) => {
            let fine = u64::from(FINE_UNITS);
            let units = options.step.units.checked_mul(fine).ok_or(DefinitionError::StepRange)?;
            let step = Step { units, units_per_second: FINE_UNITS };
            parse_args(&CreateOptions { step, ..*options }, args)
        }
        Err(error) if !options.limits.sub_second => {
            let limits = Limits { sub_second: true, ..options.limits };
            let in_store = parse_create(&CreateOptions { limits, ..*options }, args);
            Err(if in_store.is_ok() { DefinitionError::Decimals } else { error })
        }
        result => result,
    }
}

fn parse_args<A: AsRef<str>>(options: &CreateOptions<'_>, args: &[A]) -> Result<Definition, DefinitionError> {
    let step = options.step;
    if step.units == 0 || u128::from(step.units) > SPAN_MAX {
        return Err(DefinitionError::StepRange);
    }
    let mut definition = Definition {
        version: VERSION_DEFAULT,
        units_per_second: step.units_per_second,
        step: step.units,
        ds: Vec::new(),
        rra: Vec::new(),
    };
    extend(&mut definition, options, args)?;
    Ok(definition)
}

/// Adds the sources and archives of these arguments to a definition, whose step is that of the options, and
/// checks the result.
///
/// # Errors
/// [`DefinitionError`] for the first bad argument; do not use the definition then.
pub fn extend<A: AsRef<str>>(
    definition: &mut Definition,
    options: &CreateOptions<'_>,
    args: &[A],
) -> Result<(), DefinitionError> {
    for arg in args {
        add(definition, options, arg.as_ref())?;
    }
    check(definition)
}

/// Adds the source or archive of one argument, without a check of the whole.
pub(crate) fn add(
    definition: &mut Definition,
    options: &CreateOptions<'_>,
    arg: &str,
) -> Result<(), DefinitionError> {
    if let Some(arguments) = arg.strip_prefix("DS:") {
        let ds = source::parse(arguments, options, &definition.ds)?;
        definition.version = definition.version.max(ds_version(&ds.kind));
        definition.ds.push(ds);
    } else if let Some(arguments) = arg.strip_prefix("RRA:") {
        archive::parse(arguments, options, definition)?;
    } else {
        return Err(DefinitionError::Argument(arg.to_string()));
    }
    if definition.ds.len() > PARTS_MAX || definition.rra.len() > PARTS_MAX {
        return Err(DefinitionError::TooMany);
    }
    Ok(())
}

/// Checks a definition that is complete.
pub(crate) fn check(definition: &mut Definition) -> Result<(), DefinitionError> {
    if definition.rra.is_empty() {
        return Err(DefinitionError::NoArchive);
    }
    if definition.ds.is_empty() {
        return Err(DefinitionError::NoSource);
    }
    check_archives(definition)
}

/// The format version that a source of this kind needs.
fn ds_version(kind: &DsKind) -> super::FormatVersion {
    match kind {
        DsKind::Fed { ds_type: DsType::Dcounter | DsType::Dderive, .. } => VERSION_DCOUNTER,
        _ => VERSION_DEFAULT,
    }
}

/// Checks what the engine relies on and RRDtool does not: spans, and the mates of Holt-Winters archives.
///
/// # Errors
/// [`DefinitionError::Span`] or [`DefinitionError::Mate`].
pub(crate) fn check_archives(definition: &Definition) -> Result<(), DefinitionError> {
    for (index, rra) in definition.rra.iter().enumerate() {
        let span = u128::from(definition.step) * u128::from(rra.pdp_per_row);
        if span.saturating_mul(u128::from(rra.row_count)) > SPAN_MAX {
            return Err(DefinitionError::Span(index));
        }
        check_mate(definition, index, rra)?;
    }
    Ok(())
}

fn check_mate(definition: &Definition, index: usize, rra: &Rra) -> Result<(), DefinitionError> {
    let (mate, wanted) = match rra.cf {
        Consolidation::Plain { .. } => return Ok(()),
        Consolidation::Predict { seasonal, .. } => (seasonal, Cf::Seasonal),
        Consolidation::Seasonal { predict, .. } => (predict, Cf::HwPredict),
        Consolidation::DevPredict { devseasonal } | Consolidation::Failures { devseasonal, .. } => {
            (devseasonal, Cf::DevSeasonal)
        }
    };
    let found = definition.rra.get(mate).map(|rra| match rra.cf.cf() {
        Cf::MhwPredict => Cf::HwPredict,
        cf => cf,
    });
    if found == Some(wanted) {
        return Ok(());
    }
    Err(DefinitionError::Mate { rra: index, cf: rra.cf.cf(), mate, wanted })
}

#[cfg(test)]
mod tests;
