//! Names and passwords of basic authentication (RFC 7617), checked by bcrypt.
//!
//! A check takes some 70 ms by intention. So its result is kept, and only one runs at a time: a client that guesses gets no more of the
//! machine than that, and clients that were let in before do not wait for it. Those that are new find a place all the same
//! ([`Places`](super::places::Places)).

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use super::places::{AddressGroup, Places};

/// What is checked for a name that there is not, so that its time does not tell: a hash of no known password, of usual cost.
const UNKNOWN_USER: &str = "$2b$10$Oq.hx9lCXVoRvUdswSUqiO6MIOSiCWo71YQaXAOmWywXiPyoonrAu";
/// Results that are kept: as many as users may be at work, and few enough that guesses take no memory.
const KEPT_MAX: usize = 1000;
/// The longest password: bcrypt takes no more than 72 bytes of it, and a longer one is refused instead of being cut.
const PASSWORD_BYTES_MAX: usize = 72;

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The password is that of the user.
    Right,
    /// It is not, or none was given.
    Wrong,
    /// Too many wait for theirs.
    Busy,
}

/// Checks passwords, and remembers what came of it.
#[derive(Debug)]
pub struct PasswordChecks {
    /// By a hash of name, password and what was to be matched.
    kept: Mutex<HashMap<[u8; 32], bool>>,
    places: Arc<Places>,
    turn: Semaphore,
}

impl Default for PasswordChecks {
    fn default() -> Self {
        PasswordChecks { kept: Mutex::default(), places: Arc::default(), turn: Semaphore::new(1) }
    }
}

impl PasswordChecks {
    /// Whether these are the name and password of one of `users`, whose hashes these are, as a client of this origin says.
    pub async fn check(
        &self,
        users: &BTreeMap<String, String>,
        origin: AddressGroup,
        name: &str,
        password: &[u8],
    ) -> Verdict {
        let hash = users.get(name);
        let key = key(name, password, hash);
        if let Some(result) = self.known(&key) {
            return result;
        }
        let hashed_name = Sha256::digest(name.as_bytes()).into();
        let Some(_place) = self.places.take(origin, hashed_name) else { return Verdict::Busy };
        // The semaphore is never closed.
        let _turn = self.turn.acquire().await.ok();
        // Who waited before may have asked the same.
        if let Some(result) = self.known(&key) {
            return result;
        }
        let is_known = hash.is_some();
        let hash = hash.map_or(UNKNOWN_USER, String::as_str).to_string();
        let password = password.to_vec();
        let checked = tokio::task::spawn_blocking(move || {
            password.len() <= PASSWORD_BYTES_MAX && bcrypt::verify(&password, &hash).unwrap_or(false)
        });
        let is_right = checked.await.unwrap_or(false) && is_known;
        self.keep(key, is_right);
        if !is_right {
            return Verdict::Wrong;
        }
        self.places.know(origin);
        Verdict::Right
    }

    fn known(&self, key: &[u8; 32]) -> Option<Verdict> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(key).map(|is_right| if *is_right { Verdict::Right } else { Verdict::Wrong })
    }

    fn keep(&self, key: [u8; 32], is_right: bool) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            // Guesses go first.
            kept.retain(|_, is_right| *is_right);
        }
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(key, is_right);
    }
}

/// What a client says by `Authorization`.
#[derive(Debug, PartialEq, Eq)]
pub enum Credentials {
    /// Basic: a name and its password, or a token in place of that.
    Password {
        /// The name.
        name: String,
        /// The password.
        password: Vec<u8>,
    },
    /// Bearer (RFC 6750), or `Token`, as clients of InfluxDB say it.
    Token(Vec<u8>),
    /// What is none of these.
    Unreadable,
}

impl Credentials {
    /// Those among the headers of a request, if it has any.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(header::AUTHORIZATION)?.as_bytes();
        let (scheme, rest) =
            value.split_at(value.iter().position(|&byte| byte == b' ').unwrap_or(value.len()));
        let rest = rest.trim_ascii();
        Some(match scheme.to_ascii_lowercase().as_slice() {
            b"basic" => Self::basic(rest).unwrap_or(Credentials::Unreadable),
            // As clients of InfluxDB 1.8 have it: no token of ours has a colon.
            b"token" if rest.contains(&b':') => Self::pair(rest).unwrap_or(Credentials::Unreadable),
            b"bearer" | b"token" => Credentials::Token(rest.to_vec()),
            _ => Credentials::Unreadable,
        })
    }

    fn basic(encoded: &[u8]) -> Option<Self> {
        Self::pair(&STANDARD.decode(encoded).ok()?)
    }

    /// `name:password`.
    fn pair(decoded: &[u8]) -> Option<Self> {
        let colon = decoded.iter().position(|&byte| byte == b':')?;
        let name = String::from_utf8(decoded[..colon].to_vec()).ok()?;
        Some(Credentials::Password { name, password: decoded[colon + 1..].to_vec() })
    }

    /// What must be kept secret of it.
    pub fn secret(&self) -> &[u8] {
        match self {
            Credentials::Password { password: secret, .. } | Credentials::Token(secret) => secret,
            Credentials::Unreadable => b"",
        }
    }
}

/// What stands for a check: no password can be read from it. Each part is hashed by itself, so that none runs into the next.
fn key(name: &str, password: &[u8], hash: Option<&String>) -> [u8; 32] {
    let mut all = Sha256::new();
    for part in [name.as_bytes(), password, hash.map_or(b"", |hash| hash.as_bytes())] {
        all.update(Sha256::digest(part));
    }
    all.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())])
    }

    #[test]
    fn credentials_are_read_as_in_the_standards() {
        let check = |value: &str, want: Credentials| {
            assert_eq!(Credentials::of(&headers(value)), Some(want), "{value}");
        };
        let password = |name: &str, password: &str| Credentials::Password {
            name: name.to_string(),
            password: password.as_bytes().to_vec(),
        };
        check("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", password("Aladdin", "open sesame"));
        check("basic dGVzdDoxMjPCow==", password("test", "123£"));
        check("Basic YTpiOmM=", password("a", "b:c"));
        check("Bearer abc", Credentials::Token(b"abc".to_vec()));
        check("token  abc ", Credentials::Token(b"abc".to_vec()));
        check("Token ann:se:cret", password("ann", "se:cret"));
        for bad in ["", "Basic", "Basic ", "Basic !!", "Digest x", "Basic YWJj", "Basic /zphYg=="] {
            check(bad, Credentials::Unreadable);
        }
        assert_eq!(Credentials::of(&HeaderMap::new()), None);
    }

    #[tokio::test]
    async fn passwords_are_checked_once() {
        let hash = |password: &str| bcrypt::hash(password, 4).unwrap();
        let users = BTreeMap::from([("a".to_string(), hash("one")), ("b".to_string(), hash("two"))]);
        let checks = PasswordChecks::default();
        let pair = |text: &str| {
            text.split_once(':').map(|(name, password)| (name.to_string(), password.to_string())).unwrap()
        };
        for round in 0..2 {
            for (text, want) in [
                ("a:one", Verdict::Right),
                ("b:two", Verdict::Right),
                ("a:two", Verdict::Wrong),
                ("a:", Verdict::Wrong),
                ("c:one", Verdict::Wrong),
            ] {
                let (name, password) = pair(text);
                assert_eq!(
                    checks.check(&users, AddressGroup::Unix(0), &name, password.as_bytes()).await,
                    want,
                    "{text}"
                );
            }
            assert_eq!(checks.kept.lock().unwrap().len(), 5, "{round}");
        }
        // A changed password is not the kept one's.
        let changed = BTreeMap::from([("a".to_string(), hash("three"))]);
        let (name, password) = pair("a:one");
        assert_eq!(
            checks.check(&changed, AddressGroup::Unix(0), &name, password.as_bytes()).await,
            Verdict::Wrong
        );
        let (name, password) = pair("a:three");
        assert_eq!(
            checks.check(&changed, AddressGroup::Unix(0), &name, password.as_bytes()).await,
            Verdict::Right
        );
        // 73 bytes that begin with the right 72.
        let long = "x".repeat(72);
        let users = BTreeMap::from([("l".to_string(), bcrypt::hash(&long, 4).unwrap())]);
        let (name, password) = pair(&format!("l:{long}"));
        assert_eq!(
            checks.check(&users, AddressGroup::Unix(0), &name, password.as_bytes()).await,
            Verdict::Right
        );
        let (name, password) = pair(&format!("l:{long}y"));
        assert_eq!(
            checks.check(&users, AddressGroup::Unix(0), &name, password.as_bytes()).await,
            Verdict::Wrong
        );
    }

    #[tokio::test]
    async fn a_user_gets_in_while_strangers_guess() {
        let hash = bcrypt::hash("one", 4).unwrap();
        let users = Arc::new(BTreeMap::from([("a".to_string(), hash)]));
        let checks = Arc::new(PasswordChecks::default());
        // One check takes long.
        let turn = checks.turn.acquire().await.unwrap();
        let guess = |address: u8, name: String| {
            let (checks, users) = (Arc::clone(&checks), Arc::clone(&users));
            tokio::spawn(async move {
                checks.check(&users, AddressGroup::V4([10, 0, 0, address]), &name, b"x").await
            })
        };
        let mut guesses = Vec::new();
        for round in 0..20 {
            guesses.extend((0..30).map(|address| guess(address, format!("name {round}"))));
        }
        guesses.extend((0..200).map(|_| guess(1, "a".to_string())));
        tokio::task::yield_now().await;
        let user = {
            let (checks, users) = (Arc::clone(&checks), Arc::clone(&users));
            tokio::spawn(
                async move { checks.check(&users, AddressGroup::V4([10, 0, 1, 1]), "a", b"one").await },
            )
        };
        tokio::task::yield_now().await;
        drop(turn);
        assert_eq!(user.await.unwrap(), Verdict::Right);
        let mut busy = 0;
        for guess in guesses {
            busy += usize::from(guess.await.unwrap() == Verdict::Busy);
        }
        assert!(busy > 700, "{busy}");
        // A password that was right needs no place, and no turn.
        let _turn = checks.turn.acquire().await.unwrap();
        assert_eq!(checks.check(&users, AddressGroup::Unix(1), "a", b"one").await, Verdict::Right);
    }

    #[tokio::test]
    async fn guesses_leave_room() {
        let checks = PasswordChecks::default();
        checks.keep([1; 32], true);
        for guess in 0..3 * KEPT_MAX as u32 {
            let mut key = [0; 32];
            key[..4].copy_from_slice(&guess.to_le_bytes());
            checks.keep(key, false);
        }
        assert!(checks.kept.lock().unwrap().len() <= KEPT_MAX);
        assert_eq!(checks.known(&[1; 32]), Some(Verdict::Right));
    }

    #[test]
    fn the_hash_for_unknown_names_is_one() {
        assert!(UNKNOWN_USER.parse::<bcrypt::HashParts>().is_ok());
    }
}
