//! A token that says to a daemon who its client is.

use std::path::Path;

use protocol::rrdcached::limits::TOKEN_BYTES_MAX;

/// The token of `ROUNDEL_TOKEN`, else the one in the file that `ROUNDEL_TOKEN_FILE` names; `None` = neither.
///
/// # Errors
/// When it cannot be read, or can be none.
pub fn from_environment() -> Result<Option<String>, String> {
    let value = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(token) = value("ROUNDEL_TOKEN") {
        let token = token.into_string().unwrap_or_default();
        return check(&token, "ROUNDEL_TOKEN").map(Some);
    }
    value("ROUNDEL_TOKEN_FILE").map(|path| from_file(Path::new(&path))).transpose()
}

/// Whether the environment has a token.
pub fn is_given() -> bool {
    ["ROUNDEL_TOKEN", "ROUNDEL_TOKEN_FILE"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// The token in a file.
///
/// # Errors
/// When it cannot be read, or can be none.
pub fn from_file(path: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read the token in \"{}\": {error}", path.display()))?;
    check(&text, &format!("\"{}\"", path.display()))
}

fn check(text: &str, from: &str) -> Result<String, String> {
    let token = text.trim_ascii();
    let is_token =
        (1..=TOKEN_BYTES_MAX).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic());
    is_token.then(|| token.to_string()).ok_or_else(|| {
        format!("{from} is no token: it has 1 to {TOKEN_BYTES_MAX} characters of ASCII without spaces")
    })
}

/// Whether a token may be sent unencrypted to other machines: the user takes the risk.
pub fn is_plain_allowed() -> bool {
    std::env::var_os("ROUNDEL_TOKEN_PLAIN").is_some_and(|value| value == "1")
}

/// The line that shows a token.
pub fn line(token: &str) -> String {
    format!("AUTH {token}\n")
}

/// What the answer to a token says.
///
/// # Errors
/// The daemon's refusal.
pub fn answer(line: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(line.trim_ascii()).into_owned();
    let status = text.split_once(' ').and_then(|(status, _)| status.parse::<i64>().ok());
    match status {
        Some(0..) => Ok(()),
        Some(_) => Err(format!("the daemon does not accept the token: {text}")),
        None if text.is_empty() => Err("the daemon ended the connection after the token".to_string()),
        None => Err(format!("the answer to the token is none: {text}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_one_word() {
        assert_eq!(check(" rt_abc.9\n", "x").as_deref(), Ok("rt_abc.9"));
        for bad in ["", "\n", "a b", "a\nFLUSHALL", "a\u{e4}", &"a".repeat(TOKEN_BYTES_MAX + 1)] {
            assert!(check(bad, "x").is_err(), "{bad:?}");
        }
    }

    #[test]
    fn answers_are_a_status() {
        assert!(answer(b"0 authenticated as ann\n").is_ok());
        for bad in [&b"-1 no\n"[..], b"", b"hello\n", b"HTTP/1.1 400 Bad Request\n"] {
            assert!(answer(bad).is_err(), "{bad:?}");
        }
    }
}
