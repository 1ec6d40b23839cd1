//! The login of the page: a password or token is exchanged for a cookie, so that browsers need not keep it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use askama::Template;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::failure::Failure;
use super::page::{Frame, answer};
use super::query::Query;
use crate::access::{Access, Principal};

/// Where it is.
pub const LOGIN: &str = "/login";
/// What ends it.
pub const LOGOUT: &str = "/logout";
const COOKIE: &str = "roundel_session";
/// A session ends after this time.
const SESSION_TIME: Duration = Duration::from_hours(12);
/// Sessions at once; beyond it, the oldest ends.
const SESSIONS_MAX: usize = 10_000;

/// Those who are logged in, by hashes of their cookies.
#[derive(Debug, Default)]
pub struct Sessions(Mutex<HashMap<[u8; 32], Session>>);

#[derive(Debug)]
struct Session {
    who: Arc<Principal>,
    ends: Instant,
    /// The hash of its password then: the session ends when that is another one.
    password: Option<(String, String)>,
}

/// One who has shown by the login's form who it is.
#[derive(Debug)]
pub struct LoggedIn {
    /// Who it is.
    pub who: Arc<Principal>,
    /// Its name and the hash of its password, unless it had a token.
    pub password: Option<(String, String)>,
}

impl Sessions {
    /// Begins a session; returns its cookie's value.
    fn begin(&self, logged_in: LoggedIn) -> Result<String, Failure> {
        let mut random = [0; 32];
        let got = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
        if got != Ok(random.len()) {
            return Err(Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "the system has no random numbers"));
        }
        let value = URL_SAFE_NO_PAD.encode(random);
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if sessions.len() >= SESSIONS_MAX {
            sessions.retain(|_, session| now < session.ends);
        }
        if sessions.len() >= SESSIONS_MAX
            && let Some(oldest) = sessions.iter().min_by_key(|(_, session)| session.ends).map(|(key, _)| *key)
        {
            sessions.remove(&oldest);
        }
        let LoggedIn { who, password } = logged_in;
        sessions.insert(key(&value), Session { who, ends: now + SESSION_TIME, password });
        Ok(value)
    }

    /// Who has the cookie among these headers, if its session goes on: its token is still known, or its password is still that of `users`.
    pub fn find(
        &self,
        headers: &HeaderMap,
        access: &Access,
        users: &BTreeMap<String, String>,
    ) -> Option<Arc<Principal>> {
        let value = cookie(headers)?;
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Session { who, ends, password } = sessions.get(&key(value))?;
        let is_password = password.as_ref().is_none_or(|(name, hash)| users.get(name) == Some(hash));
        (Instant::now() < *ends && is_password && access.is_known(who)).then(|| Arc::clone(who))
    }

    fn end(&self, headers: &HeaderMap) {
        if let Some(value) = cookie(headers) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&key(value));
        }
    }

    /// The answer to one who has shown who it is: its cookie, and where it wanted to go.
    pub fn welcome(&self, logged_in: LoggedIn, next: &str, is_encrypted: bool) -> Response {
        let value = match self.begin(logged_in) {
            Ok(value) => value,
            Err(failure) => return failure.into_response(),
        };
        let mut response = Redirect::to(inner_path(next)).into_response();
        set_cookie(&mut response, &value, SESSION_TIME, is_encrypted);
        response
    }

    /// Ends the session of the cookie among these headers.
    pub fn farewell(&self, headers: &HeaderMap, is_encrypted: bool) -> Response {
        self.end(headers);
        let mut response = Redirect::to(LOGIN).into_response();
        set_cookie(&mut response, "", Duration::ZERO, is_encrypted);
        response
    }
}

/// What a browser sent from the form.
#[derive(Debug, PartialEq, Eq)]
pub struct LoginForm {
    /// The name; empty with a token.
    pub name: String,
    /// The password or token.
    pub secret: String,
    /// Where to go then.
    pub next: String,
}

impl LoginForm {
    /// Reads a form's body.
    ///
    /// # Errors
    /// 400 when it is none.
    pub fn parse(body: &[u8]) -> Result<LoginForm, Failure> {
        let mut query = Query::parse(body)?;
        let mut text = |key: &str| query.text(key).unwrap_or_default();
        Ok(LoginForm { name: text("name"), secret: text("secret"), next: text("next") })
    }
}

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage {
    frame: Frame,
    next: String,
    error: Option<&'static str>,
}

/// The form, which leads to `next`; after an attempt that failed, with what was wrong.
pub fn page(headers: &HeaderMap, next: &str, error: Option<&'static str>) -> Response {
    let next = inner_path(next).to_string();
    let mut response = answer(headers, Ok(LoginPage { frame: Frame::new("login", "Log in"), next, error }));
    if error.is_some() {
        *response.status_mut() = StatusCode::UNAUTHORIZED;
    }
    response
}

/// A path of this daemon: no other site.
fn inner_path(next: &str) -> &str {
    let is_inner = next.starts_with('/')
        && !next.starts_with("//")
        && !next.contains('\\')
        && next.bytes().all(|byte| byte.is_ascii_graphic());
    if is_inner { next } else { "/" }
}

fn set_cookie(response: &mut Response, value: &str, time: Duration, is_encrypted: bool) {
    let secure = if is_encrypted { "; Secure" } else { "" };
    let text =
        format!("{COOKIE}={value}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict{secure}", time.as_secs());
    if let Ok(value) = HeaderValue::from_str(&text) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
}

/// Whether a request shows a session's cookie.
pub fn has_cookie(headers: &HeaderMap) -> bool {
    cookie(headers).is_some()
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, value)| value)
}

fn key(value: &str) -> [u8; 32] {
    Sha256::digest(value.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_known_by_its_cookie_until_it_ends() {
        let (sessions, access) = (Sessions::default(), Access::default());
        let users = |hash: &str| BTreeMap::from([("ann".to_string(), hash.to_string())]);
        let password = Some(("ann".to_string(), "hash".to_string()));
        let logged_in = LoggedIn { who: Principal::everyone(), password };
        let response = sessions.welcome(logged_in, "/tree/", true);
        assert_eq!(response.status(), StatusCode::SEE_OTHER);
        let set = response.headers()[header::SET_COOKIE].to_str().unwrap().to_string();
        for part in ["HttpOnly", "SameSite=Strict", "Secure", "Max-Age=43200"] {
            assert!(set.contains(part), "{set} lacks {part}");
        }
        let value = set.split_once(';').unwrap().0.to_string();
        let headers = |text: &str| HeaderMap::from_iter([(header::COOKIE, text.parse().unwrap())]);
        let find = |text: &str, users| sessions.find(&headers(text), &access, &users);
        assert!(find(&format!("a=b; {value}"), users("hash")).is_some());
        assert!(find(&format!("{value}x"), users("hash")).is_none());
        assert!(find("", users("hash")).is_none());
        assert!(find(&value, users("another")).is_none());
        assert!(find(&value, BTreeMap::new()).is_none());
        sessions.farewell(&headers(&value), true);
        assert!(find(&value, users("hash")).is_none());
    }

    #[test]
    fn no_login_leads_to_another_site() {
        for next in
            ["//evil.example/", "https://evil.example/", "/\\evil.example", "", "tree", "/a b", "/a\r\nb"]
        {
            assert_eq!(inner_path(next), "/", "{next:?}");
        }
        assert_eq!(inner_path("/graph?x=1&y=%20"), "/graph?x=1&y=%20");
    }
}
