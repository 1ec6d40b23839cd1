//! Who answers PromQL and Graphite's targets: a daemon over HTTP, or a store at rest in this process.

use std::path::Path;

use server::private::PrivateHttp;
use server::settings::Settings;

use super::super::remote::Server;
use super::super::{Result, address, peer, serve};

/// One of the two.
pub enum Asked {
    /// A daemon.
    Daemon(Server),
    /// A store that no daemon has open.
    Store(Box<PrivateHttp>),
}

impl Asked {
    /// `given` is the URL of a daemon or the directory of a store; without it, what the configuration says: that of `config`, or that
    /// here. It also says what the RRDs of a store at rest are called as metrics.
    ///
    /// # Errors
    /// Why neither can be asked.
    pub fn find(given: Option<&str>, config: Option<&Path>) -> Result<Self> {
        if let Some(directory) = given.map(Path::new).filter(|path| path.is_dir()) {
            let metrics = serve::configured(config)?.metrics;
            let settings = Settings { metrics, ..peer::settings_of(directory)? };
            return PrivateHttp::open(&settings).map(|store| Asked::Store(Box::new(store)));
        }
        let url = match given {
            Some(url) => url.to_owned(),
            None if cfg!(not(feature = "http-client")) => {
                return Err(args::feature::missing("a query of a daemon", "http-client"));
            }
            None => address::http_here(config)?,
        };
        Server::daemon(&url, None).map(Asked::Daemon)
    }

    /// The status and body of an answer to a form.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn post(&self, path: &str, form: &[(&str, String)]) -> Result<(u16, Vec<u8>)> {
        match self {
            Asked::Daemon(server) => server.post(path, form),
            Asked::Store(store) => store.post(path, encoded(form)),
        }
    }

    /// Closes a store.
    ///
    /// # Errors
    /// When it does not close well.
    pub fn close(self) -> Result {
        match self {
            Asked::Daemon(_) => Ok(()),
            Asked::Store(store) => store.stop(),
        }
    }
}

/// A form as it is sent.
fn encoded(form: &[(&str, String)]) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    let pair =
        |(key, value): &(&str, String)| format!("{key}={}", value.bytes().map(byte).collect::<String>());
    form.iter().map(pair).collect::<Vec<_>>().join("&")
}

/// An error of a place in a text, shown below the text: its line, and a mark below the column (from 1 on, in bytes).
pub fn marked(text: &str, line: usize, column: usize, why: &str) -> String {
    let Some(shown) = text.lines().nth(line.saturating_sub(1)) else { return why.to_owned() };
    let before = shown.char_indices().take_while(|(at, _)| at + 1 < column).count();
    format!("{why}\n  {shown}\n  {}^", " ".repeat(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_marked() {
        assert_eq!(marked("sum(é b)", 1, 8, "bad"), "bad\n  sum(é b)\n        ^");
        assert_eq!(marked("a\n  b", 2, 3, "bad"), "bad\n    b\n    ^");
        assert_eq!(marked("a", 9, 3, "bad"), "bad");
        assert_eq!(encoded(&[("a", "b&c=é".into()), ("d", String::new())]), "a=b%26c%3D%C3%A9&d=");
    }
}
