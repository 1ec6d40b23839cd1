//! The section `[collectd]` of `roundel.toml`.

use std::path::PathBuf;

use collect::collectd::rrd::RrdOptions;
use collect::collectd::security::SecurityLevel;
use collect::collectd::{CollectdOptions, PORT};
use serde::Deserialize;

use super::CollectdSettings;
use crate::collectors::datagrams::parse_address;
use crate::settings::parse_bytes;

/// Where Debian keeps the types.
const TYPES_DEFAULT: &str = "/usr/share/collectd/types.db";
/// Bytes asked for the kernel's buffer: 7,000 full packets, 0.2 s at 1 M values/s.
const BUFFER_BYTES_DEFAULT: usize = 16 << 20;

/// The section, key by key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section [collectd]")]
pub struct CollectdSection {
    listen: Vec<String>,
    interface: Option<String>,
    security: SecurityName,
    auth_file: Option<PathBuf>,
    types: Vec<PathBuf>,
    directory: String,
    step: Option<u64>,
    heartbeat: Option<u64>,
    rra_rows: u64,
    rra_timespans: Vec<u64>,
    xff: f64,
    rrds: usize,
    rrds_per_sender: usize,
    receive_buffer: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SecurityName {
    None,
    Sign,
    Encrypt,
}

impl Default for CollectdSection {
    fn default() -> Self {
        let CollectdOptions { directory, rrd, rrds_max, rrds_per_sender_max, .. } =
            CollectdOptions::default();
        CollectdSection {
            listen: Vec::new(),
            interface: None,
            security: SecurityName::None,
            auth_file: None,
            types: vec![TYPES_DEFAULT.into()],
            directory,
            step: rrd.step,
            heartbeat: rrd.heartbeat,
            rra_rows: rrd.rows,
            rra_timespans: rrd.timespans,
            xff: rrd.xff,
            rrds: rrds_max,
            rrds_per_sender: rrds_per_sender_max,
            receive_buffer: None,
        }
    }
}

impl CollectdSection {
    /// Checks the section; none without an address.
    ///
    /// # Errors
    /// A text that names the key.
    pub fn settings(self) -> Result<Option<CollectdSettings>, String> {
        let listen = self.listen.iter().map(|text| parse_address(text, PORT));
        let listen = listen.collect::<Result<Vec<_>, _>>().map_err(|error| format!("listen: {error}"))?;
        let security = match self.security {
            SecurityName::None => SecurityLevel::None,
            SecurityName::Sign => SecurityLevel::Sign,
            SecurityName::Encrypt => SecurityLevel::Encrypt,
        };
        if security != SecurityLevel::None && self.auth_file.is_none() {
            return Err("security: give auth_file, too; without passwords nothing would be taken".to_string());
        }
        if self.step == Some(0)
            || self.heartbeat == Some(0)
            || self.rra_rows == 0
            || self.rra_timespans.contains(&0)
        {
            return Err("step, heartbeat, rra_rows and rra_timespans are at least 1".to_string());
        }
        if self.rrds == 0 || self.rrds_per_sender == 0 {
            return Err(
                "rrds and rrds_per_sender are at least 1: with 0, nothing would be stored".to_string()
            );
        }
        if !(0.0..1.0).contains(&self.xff) {
            return Err("xff: give a number from 0 to below 1".to_string());
        }
        let buffer_bytes = match &self.receive_buffer {
            None => BUFFER_BYTES_DEFAULT,
            Some(text) => {
                parse_bytes(text).and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(|| {
                    format!("receive_buffer: \"{text}\" is no number of bytes, such as \"16 MiB\"")
                })?
            }
        };
        let options = CollectdOptions {
            directory: self.directory.trim_matches('/').to_string(),
            rrd: RrdOptions {
                step: self.step,
                heartbeat: self.heartbeat,
                rows: self.rra_rows,
                timespans: self.rra_timespans,
                xff: self.xff,
            },
            security,
            rrds_max: self.rrds,
            rrds_per_sender_max: self.rrds_per_sender,
        };
        let Self { interface, auth_file, types, .. } = self;
        let settings = CollectdSettings { listen, interface, buffer_bytes, auth_file, types, options };
        Ok((!settings.listen.is_empty()).then_some(settings))
    }
}
