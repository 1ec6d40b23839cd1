//! The words of exporter-toolkit's `web-config.yml`, which `[http.web_config]` of `roundel.toml` has, too.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;

use crate::config::parse_with_unit;
use crate::tls::TlsOptions;

/// Headers that may be set, and the values that each may have; none: any.
const HEADERS: [(&str, &[&str]); 5] = [
    ("Strict-Transport-Security", &[]),
    ("X-Content-Type-Options", &["nosniff"]),
    ("X-Frame-Options", &["deny", "sameorigin"]),
    ("X-XSS-Protection", &[]),
    ("Content-Security-Policy", &[]),
];

/// Who gets in over HTTP, as it is written.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct WebConfig {
    tls_server_config: TlsOptions,
    http_server_config: HttpOptions,
    rate_limit: RateOptions,
    /// Hashes of passwords by bcrypt, by the names of their users.
    basic_auth_users: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
struct HttpOptions {
    http2: bool,
    headers: BTreeMap<String, String>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        HttpOptions { http2: true, headers: BTreeMap::new() }
    }
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
struct RateOptions {
    /// From request to request, with a unit; nothing or 0: no limit.
    interval: String,
    /// Requests that may come at once.
    burst: u32,
}

impl WebConfig {
    /// Reads the text of a file in `directory`, to which its paths are relative.
    ///
    /// # Errors
    /// When it is no YAML, or has a key that there is not.
    #[cfg(feature = "web-config")]
    pub fn parse(text: &str, directory: &Path) -> Result<Self, String> {
        // An empty file is a file without a key.
        let read: Option<WebConfig> =
            serde_saphyr::from_str(text).map_err(|error| format!("yaml: {error}"))?;
        let mut config = read.unwrap_or_default();
        config.set_directory(directory);
        Ok(config)
    }

    /// Refuses a file: this build reads no YAML.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(feature = "web-config"))]
    pub fn parse(_text: &str, _directory: &Path) -> Result<Self, String> {
        let text = args::feature::missing("a web_config file (YAML)", "web-config");
        Err(format!("{text}; or write a table [http.web_config]"))
    }

    /// Makes relative paths relative to `directory`.
    pub fn set_directory(&mut self, directory: &Path) {
        self.tls_server_config.set_directory(directory);
    }

    /// Checks what needs no file.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn check(&self) -> Result<(), String> {
        for (name, hash) in &self.basic_auth_users {
            hash.parse::<bcrypt::HashParts>().map_err(|error| {
                format!("the password of user \"{name}\" is no hash of bcrypt ({error}); make one with `htpasswd -nBC 10 {name}`")
            })?;
        }
        self.rate_interval().map(drop)
    }

    /// What is said of TLS.
    pub fn tls(&self) -> &TlsOptions {
        &self.tls_server_config
    }

    /// Whether HTTP/2 is offered above TLS.
    pub fn http2(&self) -> bool {
        self.http_server_config.http2
    }

    /// Hashes of passwords by the names of their users; none: no client is asked.
    pub fn users(&self) -> &BTreeMap<String, String> {
        &self.basic_auth_users
    }

    /// The time from request to request, and how many may come at once; `None`: without a limit.
    pub fn rate(&self) -> Option<(Duration, u32)> {
        let interval = self.rate_interval().unwrap_or_default();
        (!interval.is_zero()).then_some((interval, self.rate_limit.burst))
    }

    fn rate_interval(&self) -> Result<Duration, String> {
        let interval = &*self.rate_limit.interval;
        if interval.is_empty() || interval == "0" {
            return Ok(Duration::ZERO);
        }
        parse_with_unit(interval).ok_or_else(|| {
            format!("rate_limit: interval is \"{interval}\": give a number with ms, s, m or h, or 0")
        })
    }

    /// What is said with every answer.
    ///
    /// # Errors
    /// When a header may not be set, or not to that value.
    pub fn headers(&self) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.http_server_config.headers {
            let known = HEADERS.iter().find(|(known, _)| known == name);
            let (_, values) = known.ok_or_else(|| format!("HTTP header \"{name}\" can not be configured"))?;
            if !values.is_empty() && !values.contains(&value.as_str()) {
                return Err(format!(
                    "invalid value for {name}: \"{value}\"; it may be {}",
                    values.join(" or ")
                ));
            }
            let cannot = |error: &dyn std::fmt::Display| format!("invalid value for {name}: {error}");
            let header = HeaderName::from_bytes(name.as_bytes()).map_err(|error| cannot(&error))?;
            if !value.is_empty() {
                headers.insert(header, HeaderValue::from_str(value).map_err(|error| cannot(&error))?);
            }
        }
        Ok(headers)
    }
}
