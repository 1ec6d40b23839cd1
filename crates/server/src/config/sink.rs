//! The sections `[[sink]]`.

use std::time::Duration;

use ::access::PathSet;
use exchange::target::RowTarget;
use serde::Deserialize;
use toml::Spanned;

use super::{ConfigError, Reader, absolute, values};
use crate::sink::SinkSettings;

/// Sinks at most: each has a thread that reads every RRD that was updated.
const SINKS_MAX: usize = 16;
/// From round to round, unless the configuration says otherwise.
const INTERVAL_DEFAULT: Duration = Duration::from_mins(15);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a section [[sink]]")]
pub(super) struct FileSink {
    to: Spanned<String>,
    names: Option<Spanned<Vec<String>>>,
    interval: Option<Spanned<String>>,
}

impl Reader<'_> {
    /// The sinks.
    pub(super) fn sinks(&self, given: &[FileSink]) -> Result<Vec<SinkSettings>, ConfigError> {
        let mut sinks: Vec<SinkSettings> = Vec::with_capacity(given.len());
        for one in given {
            if sinks.len() == SINKS_MAX {
                return Err(self.error("to", &one.to, format!("at most {SINKS_MAX} sinks")));
            }
            let target = RowTarget::parse(one.to.get_ref());
            let to = match target.map_err(|cause| self.error("to", &one.to, cause))? {
                RowTarget::Parquet(directory) => RowTarget::Parquet(absolute(&directory)?),
                database => database,
            };
            if sinks.iter().any(|sink| sink.to == to) {
                return Err(self.error("to", &one.to, "another [[sink]] writes there, too: use one of them"));
            }
            let names = match &one.names {
                None => PathSet::all(),
                Some(patterns) => PathSet::new(patterns.get_ref(), "")
                    .map_err(|cause| self.error("names", patterns, cause))?,
            };
            let interval =
                self.duration("interval", one.interval.as_ref(), INTERVAL_DEFAULT, values::INTERVAL)?;
            sinks.push(SinkSettings { to, names, interval });
        }
        Ok(sinks)
    }
}
