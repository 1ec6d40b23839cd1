//! What a client may do: the one place that decides it.

use crate::account::Account;
use crate::paths::{Below, PathSet};

/// What is to be done with an RRD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// See that it is there, its definition and its rows.
    Read,
    /// Update, create, tune, rename or remove it.
    Write,
}

/// How much a client may do in a time; `None`: as much as it can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Values that it sends, per second.
    pub values_per_second: Option<u32>,
    /// Rows that it reads, per second.
    pub rows_per_second: Option<u32>,
    /// RRDs that it makes, per hour.
    pub new_rrds_per_hour: Option<u32>,
}

/// What a client may do.
#[derive(Clone, Debug, Default)]
pub struct Rights {
    read: PathSet,
    write: PathSet,
    /// It may ask of the daemon and the store as a whole, and stop, flush and verify them.
    pub operate: bool,
    /// How much of it.
    pub rates: Rates,
}

impl Rights {
    /// What an account says.
    ///
    /// # Errors
    /// Which pattern cannot be used, and why.
    pub fn new(account: &Account) -> Result<Self, String> {
        let set = |key: &str, patterns: &[String]| {
            PathSet::new(patterns, &account.name).map_err(|error| format!("{key} {error}"))
        };
        Ok(Rights {
            read: set("read", &account.read)?,
            write: set("write", &account.write)?,
            operate: account.operate,
            rates: Rates {
                values_per_second: account.values_per_second,
                rows_per_second: account.rows_per_second,
                new_rrds_per_hour: account.new_rrds_per_hour,
            },
        })
    }

    /// Everything.
    pub fn all() -> Self {
        Rights { read: PathSet::all(), write: PathSet::all(), operate: true, rates: Rates::default() }
    }

    /// To see everything, and change nothing.
    pub fn read_all() -> Self {
        Rights { read: PathSet::all(), ..Rights::default() }
    }

    /// Whether nothing is forbidden.
    pub fn is_all(&self) -> bool {
        self.read.is_all() && self.write.is_all() && self.operate && self.rates == Rates::default()
    }

    /// Whether nothing is allowed.
    pub fn is_nothing(&self) -> bool {
        self.read.is_empty() && self.write.is_empty() && !self.operate
    }

    /// Whether every RRD may be read.
    pub fn reads_all(&self) -> bool {
        self.read.is_all()
    }

    /// Whether every RRD may be written.
    pub fn writes_all(&self) -> bool {
        self.write.is_all()
    }

    /// Whether no RRD may be written.
    pub fn writes_nothing(&self) -> bool {
        self.write.is_empty()
    }

    /// Whether this may be done to the RRD of this name, which is in normal form.
    #[inline]
    pub fn may(&self, verb: Verb, name: &[u8]) -> bool {
        match verb {
            Verb::Read => self.read.contains(name),
            Verb::Write => self.write.contains(name),
        }
    }

    /// What may be read below a directory, which is given without a slash at its end.
    pub fn readable_below(&self, directory: &[u8]) -> Below {
        self.read.below(directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_do_everything_at_a_limited_rate_has_not_all_rights() {
        let everything = || vec!["**".to_owned()];
        let account =
            Account { read: everything(), write: everything(), operate: true, ..Account::default() };
        let is_all = |account: &Account| Rights::new(account).is_ok_and(|rights| rights.is_all());
        assert!(is_all(&account));
        assert!(!is_all(&Account { rows_per_second: Some(1), ..account.clone() }));
        assert!(!is_all(&Account { operate: false, ..account.clone() }));
        assert!(!is_all(&Account { read: vec!["net/**".to_owned()], ..account }));
    }
}
