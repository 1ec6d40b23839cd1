//! Who gets in over HTTP, and how: TLS, names and passwords, a rate, and what is said with every answer.
//!
//! It is said in `roundel.toml`, or in a file of exporter-toolkit's format (`web_config`), which is looked at for every connection and
//! request, and read again when it has changed.

mod config;
mod passwords;
mod rate;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rustls::ServerConfig;

pub use config::WebConfig;
use passwords::{PasswordChecks, Verdict};
use rate::RateLimit;

use super::failure::Failure;
use crate::tls::ServerTls;
use crate::watched::WatchedFile;

/// Where it is said who gets in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebAccess {
    /// In the configuration.
    Here(Box<WebConfig>),
    /// In a file of exporter-toolkit's format.
    File(PathBuf),
}

impl Default for WebAccess {
    fn default() -> Self {
        WebAccess::Here(Box::default())
    }
}

impl WebAccess {
    /// What is said there now.
    ///
    /// # Errors
    /// A text for the operator: what cannot be used, and why.
    pub fn open(&self) -> Result<Door, String> {
        let (file, rules) = match self {
            WebAccess::Here(config) => (None, Rules::new(WebConfig::clone(config))?),
            WebAccess::File(path) => {
                let mut file = WatchedFile::new(path);
                let rules = Rules::read(&mut file)?;
                (Some(Mutex::new(file)), rules)
            }
        };
        let rate = rules.config.rate().map(|(interval, burst)| RateLimit::new(interval, burst));
        Ok(Door { file, rules: Mutex::new(Arc::new(rules)), rate, passwords: PasswordChecks::default() })
    }
}

/// Lets connections and requests in; by default all, unencrypted.
#[derive(Debug, Default)]
pub struct Door {
    file: Option<Mutex<WatchedFile>>,
    rules: Mutex<Arc<Rules>>,
    /// As it was at the start.
    rate: Option<RateLimit>,
    passwords: PasswordChecks,
}

/// What was said, and what follows from it.
#[derive(Debug, Default)]
struct Rules {
    config: WebConfig,
    tls: Option<ServerTls>,
    headers: HeaderMap,
}

impl Rules {
    fn new(config: WebConfig) -> Result<Self, String> {
        config.check()?;
        let protocols: &[&str] = if config.http2() { &["h2", "http/1.1"] } else { &["http/1.1"] };
        let options = config.tls();
        let tls = options.is_wanted().then(|| ServerTls::new(options.clone(), protocols)).transpose()?;
        if tls.is_some() && config.http2() {
            options.check_http2()?;
        }
        let headers = config.headers()?;
        Ok(Rules { config, tls, headers })
    }

    fn read(file: &mut WatchedFile) -> Result<Self, String> {
        let path = file.path().to_path_buf();
        let in_file = |error| format!("\"{}\": {error}", path.display());
        let text = String::from_utf8(file.read()?).map_err(|_| in_file("it is not UTF-8".to_string()))?;
        let directory = path.parent().unwrap_or(Path::new("."));
        WebConfig::parse(&text, directory).and_then(Rules::new).map_err(in_file)
    }
}

impl Door {
    /// What is in force, without a look at the file.
    fn current(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is in force now. A file that has changed and cannot be used leaves in force what was read before.
    fn rules(&self) -> Arc<Rules> {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &self.file {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            if file.has_changed() {
                match Rules::read(&mut file) {
                    Ok(new) if new.tls.is_some() != rules.tls.is_some() => {
                        tracing::error!(file = %file.path().display(), "TLS cannot be switched on or off without a restart: what was read before stays in force");
                    }
                    Ok(new) => *rules = Arc::new(new),
                    Err(error) => {
                        tracing::error!(%error, "who gets in over HTTP was not read again: what was read before stays in force");
                    }
                }
            }
        }
        Arc::clone(&rules)
    }

    /// Whether connections are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.current().tls.is_some()
    }

    /// TLS for a new connection, if it is to be encrypted.
    pub fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.rules().tls.as_ref().map(ServerTls::config)
    }

    /// Lets a request in that has these headers, or answers it.
    ///
    /// # Errors
    /// The answer: 429 beyond the rate, 401 without a name and its password, 503 while too many passwords are checked.
    pub async fn admit(&self, headers: &HeaderMap) -> Result<(), Box<Response>> {
        if self.rate.as_ref().is_some_and(|rate| !rate.allow()) {
            let failure = Failure::new(StatusCode::TOO_MANY_REQUESTS, "too many requests; ask again later");
            return Err(Box::new(failure.into_response()));
        }
        let rules = self.rules();
        if rules.config.users().is_empty() {
            return Ok(());
        }
        match self.passwords.check(rules.config.users(), headers).await {
            Verdict::Right => Ok(()),
            Verdict::Busy => {
                let text = "too many passwords are being checked; ask again";
                let failure = Failure::new(StatusCode::SERVICE_UNAVAILABLE, text);
                Err(Box::new(failure.into_response()))
            }
            Verdict::Wrong => {
                let text = "this takes a name and its password, as basic authentication";
                let mut response = Failure::new(StatusCode::UNAUTHORIZED, text).into_response();
                let basic = HeaderValue::from_static("Basic realm=\"Roundel\", charset=\"UTF-8\"");
                response.headers_mut().insert(header::WWW_AUTHENTICATE, basic);
                Err(Box::new(response))
            }
        }
    }

    /// Adds to an answer what is to be said with each.
    pub fn add_headers(&self, headers: &mut HeaderMap) {
        // The request was admitted by the same rules, or by those just before.
        for (name, value) in &self.current().headers {
            headers.insert(name.clone(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests;
