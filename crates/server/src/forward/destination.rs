//! Where a `[[forward]]` sends, from the value of its key `to`.

use std::fmt;

use axum::http::Uri;
use protocol::rrdcached::address::{Address, is_local_host};

/// The port of carbon's lines.
const CARBON_PORT: u16 = 2003;

/// Where it sends, and what it speaks there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A daemon that speaks frames, or rrdcached's text: it is asked.
    Roundel(String),
    /// A daemon that is spoken to in rrdcached's text.
    Rrdcached(String),
    /// Carbon's plaintext lines.
    Graphite {
        /// Name or number.
        host: String,
        /// Its port.
        port: u16,
    },
    /// Remote write 1.0, to this URL.
    Prometheus(String),
}

impl Destination {
    /// Reads `to`.
    ///
    /// # Errors
    /// What is wrong with it, and what to give.
    pub fn parse(to: &str) -> Result<Self, String> {
        let forms = "give HOST:PORT, tls:HOST:PORT or unix:PATH of a Roundel, rrdcached:HOST:PORT or rrdcached:unix:PATH, \
                     graphite:HOST[:PORT], or the http:// or https:// URL of a remote-write receiver";
        let daemon = |address: &str| match Address::parse(address) {
            Ok(_) if !address.is_empty() => Ok(address.to_owned()),
            _ => Err(format!("\"{address}\" is no address: {forms}")),
        };
        if to.starts_with("http://") || to.starts_with("https://") {
            if !cfg!(feature = "http-client") {
                return Err(args::feature::missing(
                    "[[forward]] to an http:// or https:// URL",
                    "http-client",
                ));
            }
            return match to.parse::<Uri>() {
                Ok(url) if url.host().is_none_or(str::is_empty) => {
                    Err(format!("the URL has no host: {forms}"))
                }
                Ok(url) if url.authority().is_some_and(|authority| authority.as_str().contains('@')) => {
                    Err("a URL does not hold a password here: use token_file".to_owned())
                }
                Ok(_) => Ok(Destination::Prometheus(to.to_owned())),
                Err(error) => Err(format!("{error}: {forms}")),
            };
        }
        if let Some(address) = to.strip_prefix("rrdcached:") {
            return daemon(address).map(Destination::Rrdcached);
        }
        if let Some(address) = to.strip_prefix("graphite:") {
            let with_port = match Address::parse(address) {
                Ok(Address::Tcp { .. }) if !has_port(address) => format!("{address}:{CARBON_PORT}"),
                _ => address.to_owned(),
            };
            return match Address::parse(&with_port) {
                Ok(Address::Tcp { host, port }) if !host.is_empty() => {
                    Ok(Destination::Graphite { host, port })
                }
                _ => Err(format!("\"{address}\" is no host and port: {forms}")),
            };
        }
        if to.contains("://") && !to.starts_with("tls://") {
            return Err(forms.to_owned());
        }
        daemon(to).map(Destination::Roundel)
    }

    /// Why it cannot be shown a token, if so.
    pub fn refuses_token(&self) -> Option<&'static str> {
        const PLAIN: &str =
            "a token is not sent unencrypted to another machine: use tls:HOST:PORT, or https://";
        match self {
            Destination::Roundel(address) => match Address::parse(address) {
                Ok(Address::Tcp { host, .. }) if !is_local_host(&host) => Some(PLAIN),
                _ => None,
            },
            Destination::Prometheus(url) => match url.parse::<Uri>() {
                Ok(url) if url.scheme_str() == Some("http") && !url.host().is_some_and(is_local_host) => {
                    Some(PLAIN)
                }
                _ => None,
            },
            Destination::Rrdcached(_) => Some("rrdcached knows no tokens"),
            Destination::Graphite { .. } => Some("Graphite knows no tokens"),
        }
    }
}

/// Whether a host without brackets, or in them, has a port after it.
fn has_port(address: &str) -> bool {
    let after = address.rsplit_once(']').map_or(address, |(_, after)| after);
    after.contains(':') && (address.contains(']') || address.matches(':').count() == 1)
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Destination::Roundel(address) => f.write_str(address),
            Destination::Rrdcached(address) => write!(f, "rrdcached:{address}"),
            Destination::Graphite { host, port } => write!(f, "graphite:{host}:{port}"),
            Destination::Prometheus(url) => f.write_str(url),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_says_what_is_spoken() {
        let graphite = |host: &str, port| Destination::Graphite { host: host.to_owned(), port };
        for (to, want) in [
            ("second:42217", Destination::Roundel("second:42217".into())),
            ("tls:second:42217", Destination::Roundel("tls:second:42217".into())),
            ("unix:/run/other.sock", Destination::Roundel("unix:/run/other.sock".into())),
            ("rrdcached:old", Destination::Rrdcached("old".into())),
            ("rrdcached:unix:/run/rrdcached.sock", Destination::Rrdcached("unix:/run/rrdcached.sock".into())),
            ("graphite:carbon", graphite("carbon", 2003)),
            ("graphite:carbon:2013", graphite("carbon", 2013)),
            ("graphite:[::1]:2013", graphite("::1", 2013)),
            ("graphite:[::1]", graphite("::1", 2003)),
            ("https://metrics/api/v1/write", Destination::Prometheus("https://metrics/api/v1/write".into())),
        ] {
            assert_eq!(Destination::parse(to), Ok(want), "{to}");
        }
        for to in [
            "",
            "rrdcached:",
            "graphite:",
            "graphite:unix:/x",
            "graphite:a:b",
            "ftp://a",
            "http://",
            "host:no",
        ] {
            assert!(Destination::parse(to).unwrap_err().contains("give HOST:PORT"), "{to}");
        }
        assert!(Destination::parse("https://me:secret@metrics/").unwrap_err().contains("token_file"));
    }

    #[test]
    fn tokens_stay_here_where_others_could_read_them() {
        for (to, refused) in [
            ("second:42217", true),
            ("localhost:42217", false),
            ("tls:second:42217", false),
            ("unix:/x", false),
            ("http://metrics/", true),
            ("http://127.0.0.1:9090/", false),
            ("https://metrics/", false),
            ("rrdcached:localhost", true),
            ("graphite:localhost", true),
        ] {
            assert_eq!(Destination::parse(to).unwrap().refuses_token().is_some(), refused, "{to}");
        }
    }
}
