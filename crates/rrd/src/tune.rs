//! `rrdtune(1)`: changes to an RRD that exists.
//!
//! Settings (heartbeats, limits, types, names, Holt-Winters parameters) leave the rows where they are and
//! so change a definition and its live head alone ([`tune`]). Sources and archives come and go with all
//! rows at hand ([`tune_content`]). Either all words of a tune take effect or none does; RRDtool leaves the
//! words before a bad one in effect. Options, their order and their texts are those of Debian's rrdtool,
//! found by running it.

mod error;
mod holt_winters;
mod layout;
mod option;
mod source;

pub use error::TuneError;

use crate::content::Rrd;
use crate::definition::Definition;
use crate::live::Live;
use option::{Options, Setting};

/// What a word begins with that changes the layout.
const STRUCTURAL: [&str; 5] = ["DS:", "DEL:", "RRA:", "DELRRA:", "RRA#"];

/// Whether some of `tune`'s words change the layout, which takes a whole RRD.
pub fn is_structural(words: &[&str]) -> bool {
    let mut options = Options::new(words);
    while options.next().is_some() {}
    options.rest.iter().any(|word| is_structural_word(word))
}

fn is_structural_word(word: &str) -> bool {
    STRUCTURAL.iter().any(|prefix| word.starts_with(prefix))
}

/// Changes the settings of an RRD by the words of `rrdtune(1)` behind the file name.
///
/// `live` belongs to `definition` ([`crate::live::HeadShape::of`]). On error nothing has changed.
///
/// # Errors
/// [`TuneError`]; [`TuneError::Structural`] for words that change the layout.
pub fn tune(definition: &mut Definition, live: &mut Live, words: &[&str]) -> Result<(), TuneError> {
    let (mut new_definition, mut new_live) = (definition.clone(), live.clone());
    let rest = settings(&mut new_definition, &mut new_live, words)?.rest;
    if let Some(word) = rest.first() {
        return Err(match is_structural_word(word) {
            true => TuneError::Structural((*word).to_string()),
            false => TuneError::Unparseable((*word).to_string()),
        });
    }
    (*definition, *live) = (new_definition, new_live);
    Ok(())
}

/// Changes an RRD by any words of `rrdtune(1)` behind the file name, those of the layout included.
///
/// New sources are unknown. The rows of new archives, and those that an archive grows by, are made from the rows
/// there are ([`crate::prefill`]). On error nothing has changed.
///
/// # Errors
/// [`TuneError`].
pub fn tune_content(rrd: &mut Rrd, words: &[&str]) -> Result<(), TuneError> {
    let (mut definition, mut live) = (rrd.definition.clone(), rrd.live.clone());
    let settings = settings(&mut definition, &mut live, words)?;
    if settings.rest.is_empty() {
        (rrd.definition, rrd.live) = (definition, live);
        return Ok(());
    }
    let changes = layout::Changes::parse(&settings.rest)?;
    if settings.step {
        return Err(TuneError::Step);
    }
    *rrd = changes.apply(&definition, &live, &rrd.archives)?;
    Ok(())
}

/// What the options leave to do.
struct Settings<'w> {
    /// The words that are no options.
    rest: Vec<&'w str>,
    /// `--step` was among the options.
    step: bool,
}

/// Applies the options.
fn settings<'w>(
    definition: &mut Definition,
    live: &mut Live,
    words: &'w [&'w str],
) -> Result<Settings<'w>, TuneError> {
    let mut step = false;
    let mut sources = source::Sources::of(definition);
    let mut options = Options::new(words);
    while let Some(option) = options.next() {
        let (setting, argument) = option?;
        match setting {
            Setting::Heartbeat | Setting::Minimum | Setting::Maximum => sources.limit(setting, argument)?,
            Setting::Type => sources.set_type(definition, live, argument)?,
            Setting::Rename => sources.rename(argument)?,
            Setting::AberrantReset => {
                let ds = sources.named(argument, "argument for aberrant-reset")?.0;
                holt_winters::reset(definition, live, ds);
            }
            // Compat: alone, it changes nothing.
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
