//! The section `[backup]`.

use std::path::PathBuf;

use backup::keep::Keep;
use backup::location::{Access, Target};
use backup::objects::Limits;
use backup::run::BackupSettings;
use serde::Deserialize;
use toml::Spanned;

use super::{ConfigError, Reader, absolute, values};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a section [backup]")]
pub(super) struct FileBackup {
    to: Spanned<String>,
    interval: Option<Spanned<String>>,
    endpoint: Option<String>,
    region: Option<String>,
    access_key_id: Option<String>,
    secret_access_key: Option<String>,
    key: Option<PathBuf>,
    bandwidth: Option<Spanned<String>>,
    requests: Option<Spanned<u64>>,
    keep: Option<Spanned<String>>,
}

impl Reader<'_> {
    /// The backup of the store.
    pub(super) fn backup(&self, given: &FileBackup) -> Result<BackupSettings, ConfigError> {
        Target::parse(given.to.get_ref()).map_err(|cause| self.error("to", &given.to, cause))?;
        let keep = given.keep.as_ref();
        let keep =
            keep.map(|text| Keep::parse(text.get_ref()).map_err(|cause| self.error("keep", text, cause)));
        let bandwidth = given.bandwidth.as_ref();
        let bandwidth =
            bandwidth.map(|_| self.bytes("bandwidth", bandwidth, 0, values::BANDWIDTH)).transpose()?;
        Ok(BackupSettings {
            to: given.to.get_ref().clone(),
            access: Access {
                endpoint: given.endpoint.clone(),
                region: given.region.clone(),
                access_key_id: given.access_key_id.clone(),
                secret_access_key: given.secret_access_key.clone(),
            },
            key: given.key.as_deref().map(absolute).transpose()?,
            interval: self.duration(
                "interval",
                given.interval.as_ref(),
                values::BACKUP_DEFAULT,
                values::BACKUP,
            )?,
            limits: Limits {
                bytes_per_second: bandwidth,
                requests_per_second: self.number("requests", given.requests.as_ref(), 1..=100_000)?,
            },
            keep: keep.transpose()?,
            own: None,
        })
    }
}
