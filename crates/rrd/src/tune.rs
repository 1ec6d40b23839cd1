//! `rrdtune(1)`: changes to an existing RRD.
//!
//! Settings (heartbeats, limits, types, names, Holt-Winters parameters) do not touch the rows, so [`tune`]
//! changes only a definition and its live head. Adding and removing sources and archives needs all rows
//! ([`tune_content`]). Either all arguments take effect or none; RRDtool leaves those before a bad one in
//! effect. The options, their order and their texts are those of Debian's rrdtool, found by running it.

mod error;
mod holt_winters;
mod layout;
mod option;
mod source;

pub use error::{OPTION_MESSAGE_BYTES_MAX, TuneError};

use crate::content::Rrd;
use crate::definition::Definition;
use crate::definition::text::Limits;
use crate::live::Live;
use option::{Options, Setting};

/// The prefixes of arguments that change the layout.
const STRUCTURAL: [&str; 5] = ["DS:", "DEL:", "RRA:", "DELRRA:", "RRA#"];

/// Whether any of `tune`'s arguments changes the layout, which needs a complete RRD.
pub fn is_structural(args: &[&str]) -> bool {
    let mut options = Options::new(args);
    while options.next().is_some() {}
    options.rest.iter().any(|arg| is_structural_arg(arg))
}

fn is_structural_arg(arg: &str) -> bool {
    STRUCTURAL.iter().any(|prefix| arg.starts_with(prefix))
}

/// Changes the settings of an RRD by the arguments of `rrdtune(1)` that follow the file name.
///
/// `live` belongs to `definition` ([`crate::live::HeadShape::of`]). On error nothing has changed.
///
/// # Errors
/// [`TuneError`]; [`TuneError::Structural`] for arguments that change the layout.
pub fn tune(definition: &mut Definition, live: &mut Live, args: &[&str]) -> Result<(), TuneError> {
    let (mut new_definition, mut new_live) = (definition.clone(), live.clone());
    let rest = settings(&mut new_definition, &mut new_live, args)?.rest;
    if let Some(arg) = rest.first() {
        return Err(match is_structural_arg(arg) {
            true => TuneError::Structural((*arg).to_string()),
            false => TuneError::Unparseable((*arg).to_string()),
        });
    }
    (*definition, *live) = (new_definition, new_live);
    Ok(())
}

/// Changes the RRD of a `.rrd` file by any arguments of `rrdtune(1)` that follow the file name, including layout changes.
///
/// New sources are unknown. The rows of new archives, and those that an archive gains, are made from existing
/// rows ([`crate::prefill`]). On error nothing has changed.
///
/// # Errors
/// [`TuneError`].
pub fn tune_content(rrd: &mut Rrd, args: &[&str]) -> Result<(), TuneError> {
    tune_content_within(rrd, args, TuneLimits { definition: Limits::FILE, live_bytes: u64::MAX })
}

/// What an RRD may become.
#[derive(Clone, Copy, Debug)]
pub struct TuneLimits {
    /// What the target can hold.
    pub definition: Limits,
    /// Bytes of memory that the RRD may take ([`crate::footprint`]).
    pub live_bytes: u64,
}

/// As [`tune_content`], within these limits.
///
/// # Errors
/// As [`tune_content`], and [`TuneError::Memory`].
pub fn tune_content_within(rrd: &mut Rrd, args: &[&str], limits: TuneLimits) -> Result<(), TuneError> {
    let (mut definition, mut live) = (rrd.definition.clone(), rrd.live.clone());
    let settings = settings(&mut definition, &mut live, args)?;
    if settings.rest.is_empty() {
        (rrd.definition, rrd.live) = (definition, live);
        return Ok(());
    }
    let changes = layout::Changes::parse(&settings.rest)?;
    if settings.step {
        return Err(TuneError::Step);
    }
    *rrd = changes.apply(&definition, &live, &rrd.archives, limits)?;
    Ok(())
}

/// What remains after the options.
struct Settings<'w> {
    /// The arguments that are not options.
    rest: Vec<&'w str>,
    /// `--step` was among the options.
    step: bool,
}

/// Applies the options.
fn settings<'w>(
    definition: &mut Definition,
    live: &mut Live,
    args: &'w [&'w str],
) -> Result<Settings<'w>, TuneError> {
    let mut step = false;
    let mut sources = source::Sources::of(definition);
    let mut options = Options::new(args);
    while let Some(option) = options.next() {
        let (setting, argument) = option?;
        match setting {
            Setting::Heartbeat | Setting::Minimum | Setting::Maximum => sources.limit(setting, argument)?,
            Setting::Type => sources.set_type(definition, live, argument)?,
            Setting::Rename => sources.rename(argument)?,
            Setting::AberrantReset => {
                let ds = sources.find(argument, "argument for aberrant-reset")?.0;
                holt_winters::reset(definition, live, ds);
            }
            // Compat: on its own it changes nothing.
            Setting::Step => step = true,
            Setting::Daemon => {}
            _ => holt_winters::set(definition, live, setting, argument)?,
        }
    }
    sources.finish(definition)?;
    Ok(Settings { rest: options.rest, step })
}

#[cfg(test)]
mod tests;
