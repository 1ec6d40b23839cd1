//! Accounts: what a file says of a user or a token.

use serde::{Deserialize, Serialize};

/// The longest name of an account.
const NAME_BYTES_MAX: usize = 64;

/// What may be done by a user, or with a token.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// Who it is: the name of a password or certificate, or of a token.
    #[serde(default)]
    pub name: String,
    /// Of a user: the user or numeric id whose programs it is on a UNIX socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix_user: Option<String>,
    /// Of a user: the group or numeric id likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix_group: Option<String>,
    /// Of a token: its SHA-256, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Patterns of names that may be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// Patterns of names that may be written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    /// Whether the daemon may be asked of itself and told to do something.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub operate: bool,
    /// Values that may be sent, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values_per_second: Option<u32>,
    /// Rows that may be read, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_per_second: Option<u32>,
    /// RRDs that may be made, per hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_rrds_per_hour: Option<u32>,
    /// Of a token: when it ends, in seconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<i64>,
    /// Of a token: when it was made, in seconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<i64>,
}

/// Checks a name, which stands in patterns and in logs.
///
/// # Errors
/// What is wrong with it.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"._@:+-".contains(&byte);
    match name.len() {
        0 => Err("the name is empty".to_string()),
        1..=NAME_BYTES_MAX if name.bytes().all(is_usual) && !name.starts_with(['.', '-']) => Ok(()),
        _ => Err(format!(
            "cannot use the name {name:?}: give up to {NAME_BYTES_MAX} letters, digits, and . _ @ : + - not at its beginning"
        )),
    }
}
