//! Users of SNMP version 3: what configurations say of them, and their keys, made once for each.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use ::snmp::usm::keys::{AuthProtocol, PrivProtocol};
use ::snmp::usm::{User, UsmSession};

use super::device::Credentials;

/// Shorter passwords are refused by net-snmp and by RFC 3414, 11.2.
const PASSWORD_BYTES_MIN: usize = 8;

/// A user as a configuration gives it.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct UserSpec {
    /// Its name.
    pub name: String,
    /// How messages are authenticated, and the password.
    pub auth: Option<(AuthProtocol, String)>,
    /// How messages are encrypted, and the password.
    pub privacy: Option<(PrivProtocol, String)>,
    /// The context that is asked for, usually empty.
    pub context: String,
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
        let auth = self.auth.as_ref().map(|(_, password)| password);
        let passwords = auth.into_iter().chain(self.privacy.as_ref().map(|(_, password)| password));
        for password in passwords {
            if password.len() < PASSWORD_BYTES_MIN {
                return Err(format!("a password of SNMP has {PASSWORD_BYTES_MIN} characters or more"));
            }
        }
        Ok(())
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
            let auth = spec.auth.as_ref().map(|(protocol, password)| (*protocol, password.as_str()));
            let privacy = spec.privacy.as_ref().map(|(protocol, password)| (*protocol, password.as_str()));
            let mut user = User::new(&spec.name, auth, privacy);
            user.context = spec.context.clone().into_bytes();
            Arc::new(user)
        };
        let user = Arc::clone(self.known.entry(spec.clone()).or_insert_with(make));
        // Far from each other, so that sessions do not meet.
        self.salt = self.salt.wrapping_add(0x9e37_79b9_7f4a_7c15);
        Credentials::User(Box::new(UsmSession::new(user, self.salt)))
    }
}
