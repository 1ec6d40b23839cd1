//! How the brokers of the log are reached: TLS, and the login.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// What the connections to brokers are protected by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrokerSecurity {
    /// TLS; `None` = none.
    pub tls: Option<BrokerTls>,
    /// Who this client says it is (SASL); `None` = it does not say.
    pub login: Option<BrokerLogin>,
}

/// The files of TLS to brokers, all in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrokerTls {
    /// The authorities of the brokers' certificates; `None` = those that this machine trusts.
    pub authority: Option<PathBuf>,
    /// This client's certificate chain, and its key, for brokers that ask for one.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// A user of the brokers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerLogin {
    /// How the password is shown.
    pub mechanism: Mechanism,
    /// The user's name.
    pub user: String,
    /// The password.
    pub password: Password,
}

/// How a password is shown to a broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mechanism {
    /// As it is: who reads the connection has it.
    Plain,
    /// By a proof of SHA-256.
    ScramSha256,
    /// By a proof of SHA-512.
    #[default]
    ScramSha512,
}

impl Mechanism {
    /// All of them.
    pub const ALL: [Mechanism; 3] = [Mechanism::ScramSha512, Mechanism::ScramSha256, Mechanism::Plain];

    /// As the protocol calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Plain => "PLAIN",
            Mechanism::ScramSha256 => "SCRAM-SHA-256",
            Mechanism::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}

impl FromStr for Mechanism {
    type Err = String;

    fn from_str(text: &str) -> Result<Mechanism, String> {
        let found = Mechanism::ALL.into_iter().find(|mechanism| mechanism.name() == text);
        found.ok_or_else(|| {
            let names = Mechanism::ALL.map(Mechanism::name);
            format!("give one of {}", names.join(", "))
        })
    }
}

/// A password, which neither logs nor errors show.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Wraps it.
    #[must_use]
    pub fn new(text: String) -> Password {
        Password(text)
    }

    /// The password itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(...)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mechanisms_are_called_as_in_the_protocol() {
        for mechanism in Mechanism::ALL {
            assert_eq!(mechanism.name().parse(), Ok(mechanism));
        }
        assert_eq!(
            Mechanism::from_str("plain").unwrap_err(),
            "give one of SCRAM-SHA-512, SCRAM-SHA-256, PLAIN"
        );
        assert_eq!(Mechanism::default(), Mechanism::ScramSha512);
    }

    #[test]
    fn a_password_is_not_shown() {
        let login = BrokerLogin {
            mechanism: Mechanism::Plain,
            user: "roundel".into(),
            password: Password::new("hunter2".into()),
        };
        assert!(!format!("{login:?}").contains("hunter2"));
        assert_eq!(login.password.expose(), "hunter2");
    }
}
