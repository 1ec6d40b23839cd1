//! Who gets in over HTTP, and how: TLS, names and passwords, a rate, and what is said with every answer.
//!
//! It is said in `roundel.toml`, or in a file of exporter-toolkit's format (`web_config`), which is looked at for every connection and
//! request, and read again when it has changed.

mod config;
mod passwords;
mod places;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rustls::ServerConfig;

pub use config::WebConfig;
use passwords::{Credentials, PasswordChecks, Verdict};
use places::AddressGroup;

use super::failure::Failure;
use super::login::{self, LoggedIn, LoginForm, Sessions};
use super::origin::is_foreign;
use crate::access::{Access, Principal};
use crate::peer::Peer;
use crate::rate::RateLimit;
use crate::service::Service;
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
        Ok(Door { file, rules: Mutex::new(Arc::new(rules)), rate, ..Door::default() })
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
    /// Those who do not say who they are; `None`: they may do everything, if no passwords are asked for.
    anonymous: Option<Arc<Principal>>,
    sessions: Sessions,
}

/// A client that was let in, or why it was not.
#[derive(Debug)]
enum Admission {
    Known(Arc<Principal>),
    /// It has shown something that is not known.
    Wrong,
    Busy,
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

    /// Whether the names in clients' certificates are vouched for.
    pub fn verifies_clients(&self) -> bool {
        self.current().config.tls().verifies_clients()
    }

    /// TLS for a new connection, if it is to be encrypted.
    pub fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.rules().tls.as_ref().map(ServerTls::config)
    }

    /// The same door, with these rights for those who do not say who they are.
    pub fn with_anonymous(self, anonymous: Option<Arc<Principal>>) -> Self {
        Door { anonymous, ..self }
    }

    /// Whether clients are asked who they are by what was said: for a password, or a certificate.
    pub fn asks(&self) -> bool {
        let rules = self.current();
        !rules.config.users().is_empty() || rules.config.tls().demands_certificates()
    }

    /// Whether one more request may come now, whatever it asks for.
    ///
    /// # Errors
    /// 429.
    pub fn limit(&self) -> Result<(), Failure> {
        match self.rate.as_ref().is_none_or(RateLimit::allow) {
            true => Ok(()),
            false => Err(Failure::new(StatusCode::TOO_MANY_REQUESTS, "too many requests; ask again later")),
        }
    }

    /// Who may do what a request with these headers asks for, from this client; or the answer.
    ///
    /// # Errors
    /// The answer: 401 for one who must say who it is, 503 while too many passwords are checked.
    pub async fn admit(
        &self,
        service: &Service,
        headers: &HeaderMap,
        peer: &Peer,
    ) -> Result<Arc<Principal>, Box<Response>> {
        let rules = self.rules();
        let users = rules.config.users();
        let access = &service.access;
        let known = match Credentials::of(headers) {
            Some(credentials) => self.check(access, (users, peer), &credentials).await,
            None => {
                let shown = self.sessions.find(headers, access, users);
                let shown = shown.or_else(|| access.of_peer(peer));
                shown.or_else(|| self.anonymous(users)).map_or(Admission::Wrong, Admission::Known)
            }
        };
        match known {
            Admission::Known(who) => Ok(who),
            Admission::Busy => Err(Box::new(busy())),
            Admission::Wrong => {
                if headers.contains_key(header::AUTHORIZATION) {
                    service.metrics.authentications_refused.inc();
                    access.refused(&peer.to_string(), "a password or token that is not known");
                }
                let (text, asked) = match users.is_empty() {
                    true => ("this takes a token, as bearer authentication", "Bearer realm=\"Roundel\""),
                    false => (
                        "this takes a name and its password, as basic authentication",
                        "Basic realm=\"Roundel\", charset=\"UTF-8\"",
                    ),
                };
                let mut response = Failure::new(StatusCode::UNAUTHORIZED, text).into_response();
                response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(asked));
                Err(Box::new(response))
            }
        }
    }

    /// Who does not say who it is, if it gets in. Where passwords are asked for, every client is, unless it was written what others may do.
    fn anonymous(&self, users: &BTreeMap<String, String>) -> Option<Arc<Principal>> {
        match &self.anonymous {
            Some(anonymous) => (!anonymous.rights.is_nothing()).then(|| Arc::clone(anonymous)),
            None => users.is_empty().then(Principal::everyone),
        }
    }

    /// Who has a password or token.
    async fn check(
        &self,
        access: &Access,
        (users, peer): (&BTreeMap<String, String>, &Peer),
        credentials: &Credentials,
    ) -> Admission {
        if let Some(who) = access.of_token(credentials.secret()) {
            return Admission::Known(who);
        }
        // Where neither tokens nor passwords are kept, what a client says of itself is as good as nothing.
        if users.is_empty() && !access.has_tokens() {
            return self.anonymous(users).map_or(Admission::Wrong, Admission::Known);
        }
        let Credentials::Password { name, password } = credentials else { return Admission::Wrong };
        match self.passwords.check(users, AddressGroup::of(peer), name, password).await {
            Verdict::Right => Admission::Known(access.of_user(name)),
            Verdict::Busy => Admission::Busy,
            Verdict::Wrong => Admission::Wrong,
        }
    }

    /// Answers the login's form, whose method, query and body these are, of this client.
    pub async fn log_in(
        &self,
        (service, peer): (&Service, &Peer),
        headers: &HeaderMap,
        method: &Method,
        query: &str,
        body: &[u8],
    ) -> Response {
        let next = |query: &[u8]| LoginForm::parse(query).map(|form| form.next);
        if *method != Method::POST {
            return match next(query.as_bytes()) {
                Ok(next) => login::page(headers, &next, None),
                Err(failure) => failure.into_response(),
            };
        }
        if is_foreign(headers) {
            return Failure::new(StatusCode::FORBIDDEN, "this was sent by a page of another site")
                .into_response();
        }
        let form = match LoginForm::parse(body) {
            Ok(form) => form,
            Err(failure) => return failure.into_response(),
        };
        let rules = self.rules();
        let users = rules.config.users();
        let hash = users.get(&form.name).map(|hash| (form.name.clone(), hash.clone()));
        let credentials = Credentials::Password { name: form.name, password: form.secret.into_bytes() };
        match self.check(&service.access, (users, peer), &credentials).await {
            Admission::Known(who) if !who.rights.is_nothing() => {
                let password = if Access::can_change(&who) { None } else { hash };
                self.sessions.welcome(LoggedIn { who, password }, &form.next, rules.tls.is_some())
            }
            Admission::Busy => busy(),
            Admission::Known(_) | Admission::Wrong => {
                service.metrics.authentications_refused.inc();
                service.access.refused(&peer.to_string(), "a login");
                login::page(headers, &form.next, Some("That name, password or token is not known."))
            }
        }
    }

    /// Answers the request to end a session.
    pub fn log_out(&self, headers: &HeaderMap) -> Response {
        self.sessions.farewell(headers, self.is_encrypted())
    }

    /// Adds to an answer what is to be said with each.
    pub fn add_headers(&self, headers: &mut HeaderMap) {
        // The request was admitted by the same rules, or by those just before.
        for (name, value) in &self.current().headers {
            headers.insert(name.clone(), value.clone());
        }
    }
}

fn busy() -> Response {
    let text = "too many passwords are being checked; ask again";
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

#[cfg(test)]
mod tests;
