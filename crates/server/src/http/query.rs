//! The parameters of a request: `key=value` pairs of a query or form, in order.

use std::borrow::Cow;

use axum::http::Uri;

use super::failure::Failure;

/// The most bytes of a query or form: three times a graph of a hundred long arguments.
pub const QUERY_BYTES_MAX: usize = 256 * 1024;

/// The pairs of a request. Each must be taken by a handler: a misspelt parameter is an error, not a default.
#[derive(Debug, Default)]
pub struct Query {
    pairs: Vec<(String, Vec<u8>)>,
    /// The keys that were asked for, for the message about another one.
    asked: Vec<String>,
}

impl Query {
    /// Parses `text` as HTML forms write it: `a=b&c=d`, percent-encoded, `+` for a space.
    ///
    /// # Errors
    /// 400 when it is too long or not percent-encoded.
    pub fn parse(text: &[u8]) -> Result<Query, Failure> {
        if text.len() > QUERY_BYTES_MAX {
            return Err(Failure::bad(format!("the parameters are longer than {QUERY_BYTES_MAX} bytes")));
        }
        let mut pairs = Vec::new();
        for pair in text.split(|&byte| byte == b'&').filter(|pair| !pair.is_empty()) {
            let middle = memchr::memchr(b'=', pair);
            let (key, value) = match middle {
                Some(at) => (&pair[..at], &pair[at + 1..]),
                None => (pair, &b""[..]),
            };
            let encoded = || Failure::bad("the parameters are not percent-encoded");
            let key = decode(key).and_then(|key| String::from_utf8(key).ok()).ok_or_else(encoded)?;
            pairs.push((key, decode(value).ok_or_else(encoded)?));
        }
        Ok(Query { pairs, asked: Vec::new() })
    }

    /// Parses the parameters of a URL and of a form; of a key in both, that of the form is the last.
    ///
    /// # Errors
    /// As [`Query::parse`].
    pub fn of_request(uri: &Uri, body: &[u8]) -> Result<Query, Failure> {
        let text = [uri.query().unwrap_or("").as_bytes(), b"&", body].concat();
        Query::parse(&text)
    }

    /// Takes the value of `key`; of several, the last.
    pub fn take(&mut self, key: &str) -> Option<Vec<u8>> {
        self.take_all(key).pop()
    }

    /// Takes all values of `key`.
    pub fn take_all(&mut self, key: &str) -> Vec<Vec<u8>> {
        let (taken, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pairs).into_iter().partition(|(name, _)| name == key);
        self.pairs = left;
        self.asked.push(key.to_string());
        taken.into_iter().map(|(_, value)| value).collect()
    }

    /// Takes a text.
    pub fn text(&mut self, key: &str) -> Option<String> {
        self.take(key).map(|value| String::from_utf8_lossy(&value).into_owned())
    }

    /// Takes a non-negative integer.
    ///
    /// # Errors
    /// 400 when it is not one.
    pub fn number(&mut self, key: &str, default: u64) -> Result<u64, Failure> {
        let Some(text) = self.text(key) else { return Ok(default) };
        text.parse().map_err(|_| Failure::bad(format!("{key}={text}: give a whole number")))
    }

    /// Takes `true` or `false`.
    ///
    /// # Errors
    /// 400 when it is neither.
    pub fn flag(&mut self, key: &str) -> Result<bool, Failure> {
        match self.text(key).as_deref() {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1" | "") => Ok(true),
            Some(text) => Err(Failure::bad(format!("{key}={text}: give true or false"))),
        }
    }

    /// The same with other values of `key`.
    pub fn replace(mut self, key: &str, change: impl FnOnce(Vec<Vec<u8>>) -> Vec<Vec<u8>>) -> Query {
        let values = change(self.take_all(key));
        self.pairs.extend(values.into_iter().map(|value| (key.to_string(), value)));
        self
    }

    /// The pairs that were not taken.
    pub fn into_pairs(self) -> Vec<(String, Vec<u8>)> {
        self.pairs
    }

    /// Checks that every pair was taken.
    ///
    /// # Errors
    /// 400 that names the first unknown parameter.
    pub fn finish(self) -> Result<(), Failure> {
        match self.pairs.first() {
            None => Ok(()),
            Some((key, _)) => {
                let known = match self.asked.join(", ") {
                    keys if keys.is_empty() => "there are none here".to_string(),
                    keys => format!("there are {keys}"),
                };
                Err(Failure::bad(format!("no parameter is called \"{key}\"; {known}")))
            }
        }
    }
}

fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let text: Cow<'_, [u8]> = if memchr::memchr(b'+', text).is_some() {
        text.iter().map(|&byte| if byte == b'+' { b' ' } else { byte }).collect::<Vec<u8>>().into()
    } else {
        text.into()
    };
    super::percent::decode(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_taken_in_order() {
        let mut query = Query::parse(b"arg=a%26b&x=1&&arg=c+d&flag&arg=%2b").unwrap();
        assert_eq!(query.take_all("arg"), [b"a&b".to_vec(), b"c d".to_vec(), b"+".to_vec()]);
        assert!(query.flag("flag").unwrap());
        assert_eq!(query.number("none", 7).unwrap(), 7);
        assert!(Query::parse(b"x=%").is_err());
        let unknown = query.finish().unwrap_err().to_string();
        assert_eq!(unknown, "no parameter is called \"x\"; there are arg, flag, none");
        let unknown = Query::parse(b"y").unwrap().finish().unwrap_err().to_string();
        assert_eq!(unknown, "no parameter is called \"y\"; there are none here");
        assert!(Query::parse(b"n=1x").unwrap().number("n", 0).is_err());
        assert!(Query::parse(b"f=maybe").unwrap().flag("f").is_err());
        assert!(Query::parse(&vec![b'a'; QUERY_BYTES_MAX + 1]).is_err());
    }
}
