//! Which rows an export's options choose.

use std::time::{SystemTime, UNIX_EPOCH};

use exchange::rows::{Archives, MS, Selection};
use rrd::definition::Cf;
use rrd::when::at::resolve;

use super::{Result, RowArguments, Which};

/// The selection that the options make.
///
/// # Errors
/// For a time or function that cannot be used.
pub(super) fn selection(rows: &RowArguments) -> Result<Selection> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
    let time = |text: &Option<String>| -> Result<Option<i64>> {
        let Some(text) = text else { return Ok(None) };
        let seconds = resolve(text, now, &localtime::Local)
            .map_err(|error| format!("cannot use the time \"{text}\": {error}"))?;
        Ok(Some(seconds.saturating_mul(MS)))
    };
    let function = |name: &String| {
        let season = |cf: &Cf| matches!(cf, Cf::Seasonal | Cf::DevSeasonal);
        match Cf::from_name(&name.to_uppercase()) {
            Some(cf) if season(&cf) => Err(format!("cannot export {name}: its rows belong to no time")),
            Some(cf) => Ok(cf),
            None => Err(format!(
                "cannot use the function \"{name}\": give AVERAGE, MIN, MAX, LAST or a Holt-Winters one"
            )),
        }
    };
    Ok(Selection {
        archives: match rows.archives {
            Which::Finest => Archives::Finest,
            Which::All => Archives::All,
        },
        functions: rows.cf.iter().map(function).collect::<Result<_>>()?,
        after: time(&rows.start)?,
        until: time(&rows.end)?,
    })
}
