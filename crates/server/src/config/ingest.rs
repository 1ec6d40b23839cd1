//! `[ingest]` and `[[create]]`: what is pushed.

use ::ingest::table::{CreateRule, CreateTable};
use serde::Deserialize;

use super::{ConfigError, Reader, line_of};
use crate::ingest::IngestSettings;

/// `[ingest]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section [ingest]")]
pub(super) struct FileIngest {
    series_max: Option<toml::Spanned<usize>>,
    new_per_minute: Option<toml::Spanned<u32>>,
    rrds_max: Option<toml::Spanned<u64>>,
}

impl Reader<'_> {
    /// What is pushed. Without `[[create]]`, the table's own rules hold.
    pub(super) fn ingest(
        &self,
        given: &FileIngest,
        rules: Vec<toml::Spanned<CreateRule>>,
        carbon: Vec<CreateRule>,
    ) -> Result<IngestSettings, ConfigError> {
        let mut settings = IngestSettings::default();
        let series_max = self.number("series_max", given.series_max.as_ref(), 1000..=1_000_000_000)?;
        settings.series_max = series_max.unwrap_or(settings.series_max);
        let new_per_minute = self.number("new_per_minute", given.new_per_minute.as_ref(), 0..=u32::MAX)?;
        settings.new_per_minute = new_per_minute.unwrap_or(settings.new_per_minute);
        let rrds_max = self.number("rrds_max", given.rrds_max.as_ref(), 0..=u64::MAX)?;
        settings.rrds_max = rrds_max.unwrap_or(settings.rrds_max);
        if !rules.is_empty() || !carbon.is_empty() {
            let lines: Vec<usize> = rules.iter().map(|rule| line_of(self.text, rule.span().start)).collect();
            let mut rules: Vec<CreateRule> = rules.into_iter().map(toml::Spanned::into_inner).collect();
            // What is written here goes before what carbon's files say, which fits every name.
            rules.extend(carbon);
            settings.table = CreateTable::new(&rules).map_err(|error| {
                let place = match lines.get(error.rule) {
                    Some(line) => format!("{}:{line}: [[create]]", self.source),
                    None => format!("{}: [carbon]: a section of carbon's files", self.source),
                };
                ConfigError(format!("{place}: {}", error.cause))
            })?;
        }
        Ok(settings)
    }
}
