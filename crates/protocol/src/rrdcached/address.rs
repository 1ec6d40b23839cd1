//! Addresses of a daemon, as given to `-l` and in RRDCACHED_ADDRESS.

use std::fmt;
use std::path::PathBuf;

/// The port when none is given.
pub const PORT_DEFAULT: u16 = 42217;
/// Where a daemon listens when it is not told.
pub const SOCKET_DEFAULT: &str = "/tmp/rrdcached.sock";

/// Where a daemon listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A UNIX socket.
    Unix(PathBuf),
    /// A host (empty = every interface) and a port.
    Tcp {
        /// Name or number, without brackets.
        host: String,
        /// Its port.
        port: u16,
    },
    /// The same, with TLS: for clients.
    Tls {
        /// Name or number, without brackets.
        host: String,
        /// Its port.
        port: u16,
    },
}

/// A malformed address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressError(pub String);

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot use address \"{}\": give unix:path, /path, host, host:port, [host]:port, :port or tls:host:port",
            self.0
        )
    }
}

impl std::error::Error for AddressError {}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Tcp { host, port } => write!(f, "[{host}]:{port}"),
            Address::Tls { host, port } => write!(f, "tls:[{host}]:{port}"),
        }
    }
}

/// Whether a host is this machine, by its loopback interface.
pub fn is_local_host(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|host| host.is_loopback())
}

impl Address {
    /// Whether only programs of this machine reach it.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Unix(_) => true,
            Address::Tcp { host, .. } | Address::Tls { host, .. } => is_local_host(host),
        }
    }

    /// Reads one of the forms of `rrdcached(1)`, option `-l`; with `tls:` or `tls://` before a host, one of a daemon with TLS.
    ///
    /// # Errors
    /// [`AddressError`] on a port that is no number or brackets that do not close.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let error = || AddressError(text.to_string());
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(error()) } else { Ok(Address::Unix(path.into())) };
        }
        if let Some(rest) = text.strip_prefix("tls:") {
            let rest = rest.strip_prefix("//").unwrap_or(rest);
            // A host that is called tls, and its port.
            let is_port = !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
            if !is_port {
                let (host, port) = host_and_port(rest).filter(|_| !rest.contains('/')).ok_or_else(error)?;
                return Ok(Address::Tls { host: host.to_string(), port });
            }
        }
        // Compat: RRDtool wants `unix:` before a path that does not begin with a slash. No host has a slash in its name.
        if text.contains('/') {
            return Ok(Address::Unix(text.into()));
        }
        let (host, port) = host_and_port(text).ok_or_else(error)?;
        Ok(Address::Tcp { host: host.to_string(), port })
    }
}

fn host_and_port(text: &str) -> Option<(&str, u16)> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        match rest {
            "" => (host, None),
            rest => (host, Some(rest.strip_prefix(':')?)),
        }
    } else {
        match text.rsplit_once(':') {
            // More than one colon and no brackets: a bare IPv6 address.
            Some((host, _)) if host.contains(':') => (text, None),
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    port.map_or(Some(PORT_DEFAULT), |port| port.parse().ok()).map(|port| (host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_manual_is_read() {
        let unix = |text: &str, path: &str| {
            assert_eq!(Address::parse(text), Ok(Address::Unix(path.into())), "{text}");
        };
        unix("unix:/run/x.sock", "/run/x.sock");
        unix("unix:x.sock", "x.sock");
        unix("/run/x.sock", "/run/x.sock");
        unix("var/x.sock", "var/x.sock");
        unix("./x:1", "./x:1");
        let tcp = |text: &str, host: &str, port| {
            assert_eq!(Address::parse(text), Ok(Address::Tcp { host: host.into(), port }), "{text}");
        };
        tcp("localhost", "localhost", 42217);
        tcp("", "", 42217);
        tcp(":1234", "", 1234);
        tcp("10.0.0.1:1234", "10.0.0.1", 1234);
        tcp("[::1]:1234", "::1", 1234);
        tcp("[::1]", "::1", 42217);
        tcp("::1", "::1", 42217);
        let tls = |text: &str, host: &str, port| {
            assert_eq!(Address::parse(text), Ok(Address::Tls { host: host.into(), port }), "{text}");
        };
        tls("tls:db1", "db1", 42217);
        tls("tls:db1:1234", "db1", 1234);
        tls("tls://db1:1234", "db1", 1234);
        tls("tls:[::1]:1234", "::1", 1234);
        tls("tls::1234", "", 1234);
        tcp("tls:1234", "tls", 1234);
        tcp("tls", "tls", 42217);
        let written = Address::parse("tls:db1:1").unwrap().to_string();
        assert_eq!(Address::parse(&written), Address::parse("tls:db1:1"));
        for bad in [
            "tls:db1:x",
            "tls:[::1",
            "tls:///x",
            "tls:db1/x",
            "unix:",
            "[::1",
            "[::1]x",
            "host:port",
            "host:99999",
        ] {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
    }
}
