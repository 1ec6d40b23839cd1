//! Tokens: secrets that machines give to say who they are. Only their hashes are kept.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use protocol::rrdcached::limits::TOKEN_BYTES_MAX;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::account::{Account, check_name};
use crate::rights::Rights;

/// What a token begins with, so that programs that look for secrets find it.
const PREFIX: &str = "rdl_";

/// The SHA-256 of a token. It takes no salt: a token has 256 random bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// That of a token that a client gave; `None` when it is too long to be one.
    pub fn of(token: &[u8]) -> Option<Self> {
        (!token.is_empty() && token.len() <= TOKEN_BYTES_MAX).then(|| TokenHash(Sha256::digest(token).into()))
    }

    /// In hexadecimal digits.
    pub fn text(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(TokenHash(bytes))
    }
}

/// A new token, of random bytes.
pub fn token_text(random: &[u8; 32]) -> String {
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random))
}

/// A file of tokens (TOML): a table `[[token]]` for each.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    accounts: Vec<Account>,
    by_hash: HashMap<TokenHash, usize>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    token: Vec<Account>,
}

impl Tokens {
    /// Reads a file's text.
    ///
    /// # Errors
    /// What cannot be used, and why.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_string())?;
        let mut tokens = Tokens::default();
        for account in file.token {
            let in_token = |error: String| format!("token {:?}: {error}", account.name);
            Rights::new(&account).map_err(in_token)?;
            tokens.add(account)?;
        }
        Ok(tokens)
    }

    /// The file's text.
    ///
    /// # Errors
    /// When an account cannot be written.
    pub fn text(&self) -> Result<String, String> {
        let file = File { token: self.accounts.clone() };
        let head =
            "# Tokens of Roundel: `roundel token add`, `list`, `revoke`. Only their hashes are here.\n\n";
        toml::to_string(&file).map(|text| format!("{head}{text}")).map_err(|error| error.to_string())
    }

    /// Adds an account.
    ///
    /// # Errors
    /// When its name is in use or cannot be used, or its hash is none.
    pub fn add(&mut self, account: Account) -> Result<(), String> {
        check_name(&account.name)?;
        let in_token = |what: &str| format!("token {:?}: {what}", account.name);
        if self.accounts.iter().any(|known| known.name == account.name) {
            return Err(in_token("there is one of that name; revoke it first"));
        }
        if account.unix_user.is_some() || account.unix_group.is_some() {
            return Err(in_token("unix_user and unix_group are for [[access.user]]"));
        }
        let hash = account.sha256.as_deref().and_then(TokenHash::parse);
        let hash = hash.ok_or_else(|| in_token("sha256 must be 64 hexadecimal digits"))?;
        if self.by_hash.insert(hash, self.accounts.len()).is_some() {
            return Err(in_token("another one has the same hash"));
        }
        self.accounts.push(account);
        Ok(())
    }

    /// Removes the account of this name; false when there is none.
    pub fn revoke(&mut self, name: &str) -> bool {
        let Some(index) = self.accounts.iter().position(|account| account.name == name) else { return false };
        self.accounts.remove(index);
        self.by_hash.retain(|_, place| *place != index);
        for place in self.by_hash.values_mut().filter(|place| **place > index) {
            *place -= 1;
        }
        true
    }

    /// The account of a token, if it has not ended at `now`, in seconds since the epoch.
    pub fn find(&self, hash: &TokenHash, now: i64) -> Option<&Account> {
        let account = &self.accounts[*self.by_hash.get(hash)?];
        account.expires.is_none_or(|expires| now < expires).then_some(account)
    }

    /// All accounts, in the order of the file.
    pub fn accounts(&self) -> &[Account] {
        &self.accounts
    }
}

#[cfg(test)]
mod tests;
