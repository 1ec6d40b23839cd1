//! Users of SNMP version 3: what configurations say of them, and their keys, made once for each.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use ::snmp::usm::keys::{AuthProtocol, PrivProtocol};
use ::snmp::usm::{Secret, User, UsmSession};

use super::device::Credentials;

/// Shorter passwords are refused by net-snmp and by RFC 3414, 11.2.
const PASSWORD_BYTES_MIN: usize = 8;

/// A user as a configuration gives it.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct UserSpec {
    /// Its name.
    pub name: String,
    /// How messages are authenticated, and by what.
    pub auth: Option<(AuthProtocol, Secret)>,
    /// How messages are encrypted, and by what.
    pub privacy: Option<(PrivProtocol, Secret)>,
    /// The context that is asked for, usually empty.
    pub context: String,
    /// The id of the context's engine; empty is the one that is asked.
    pub context_engine: Vec<u8>,
}

impl fmt::Debug for UserSpec {
    /// Without the passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (auth, privacy) = (self.auth.as_ref(), self.privacy.as_ref());
        write!(f, "{}, {:?}, {:?}", self.name, auth.map(|auth| auth.0), privacy.map(|privacy| privacy.0))
    }
}

impl UserSpec {
    /// What is wrong with it, if anything is.
    ///
    /// # Errors
    /// The first mistake.
    pub fn check(&self) -> Result<(), String> {
        if self.name.is_empty() {
            return Err("version 3 needs a user".to_string());
        }
        if self.privacy.is_some() && self.auth.is_none() {
            return Err("privacy needs authentication".to_string());
        }
        let Some((protocol, auth)) = &self.auth else { return Ok(()) };
        check_secret(auth, &[protocol.key_bytes()])?;
        match &self.privacy {
            None => Ok(()),
            // Of the password alone, or made longer for a cipher.
            Some((privacy, secret)) => check_secret(secret, &[protocol.key_bytes(), privacy.key_bytes()]),
        }
    }
}

/// Whether a password is long enough, and a key has one of these lengths.
fn check_secret(secret: &Secret, lengths: &[usize]) -> Result<(), String> {
    match secret {
        Secret::Password(password) if password.len() < PASSWORD_BYTES_MIN => {
            Err(format!("a password of SNMP has {PASSWORD_BYTES_MIN} characters or more"))
        }
        Secret::LocalKey(key) if !lengths.contains(&key.len()) => {
            let lengths: Vec<String> = lengths.iter().map(ToString::to_string).collect();
            Err(format!("a key has {} bytes, not {}", key.len(), lengths.join(" or ")))
        }
        _ => Ok(()),
    }
}

/// The users known so far: keys take a megabyte of hashing each, and thousands of devices have the same user.
#[derive(Debug)]
pub struct Users {
    known: HashMap<UserSpec, Arc<User>>,
    salt: u64,
}

impl Users {
    /// None. The salts of sessions follow from `seed`, which must not be used twice with the same password.
    pub fn new(seed: u64) -> Self {
        Users { known: HashMap::new(), salt: seed }
    }

    /// Credentials of this user for one more device.
    pub fn credentials(&mut self, spec: &UserSpec) -> Credentials {
        let make = || {
            let mut user = User::new(&spec.name, spec.auth.clone(), spec.privacy.clone());
            user.context = spec.context.clone().into_bytes();
            user.context_engine = spec.context_engine.clone();
            Arc::new(user)
        };
        let user = Arc::clone(self.known.entry(spec.clone()).or_insert_with(make));
        // Far from each other, so that sessions do not meet.
        self.salt = self.salt.wrapping_add(0x9e37_79b9_7f4a_7c15);
        Credentials::User(Box::new(UsmSession::new(user, self.salt)))
    }
}
