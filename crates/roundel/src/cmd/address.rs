//! The address of the daemon, spelt in the same way in every option and in RRDCACHED_ADDRESS.

use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use protocol::rrdcached::address::Address;
use server::settings::Settings;

/// The default socket of `roundel serve`.
pub const SOCKET_HERE: &str = "unix:var/rrdcached.sock";

/// The daemon's address: the option's, else RRDCACHED_ADDRESS, else none. `unix:path`, a path, a host or
/// host:port; a word without a slash that names an existing socket is a path too.
///
/// # Errors
/// When the address is malformed.
pub fn daemon(option: Option<&str>) -> Result<Option<String>, String> {
    let environment = || std::env::var("RRDCACHED_ADDRESS").ok();
    let address = option.map(str::to_string).or_else(environment).filter(|address| !address.is_empty());
    address.map(|address| spelt_out(&address)).transpose()
}

fn spelt_out(address: &str) -> Result<String, String> {
    if std::fs::metadata(address).is_ok_and(|found| found.file_type().is_socket()) {
        return Ok(format!("unix:{address}"));
    }
    match Address::parse(address).map_err(|error| error.to_string())? {
        Address::Unix(path) => Ok(format!("unix:{}", path.display())),
        Address::Tcp { .. } | Address::Tls { .. } => Ok(address.to_string()),
    }
}

/// The URL of HTTP that a configuration says, as this machine reaches it.
///
/// # Errors
/// When the configuration cannot be read, or says none.
pub fn http_here(config: Option<&Path>) -> Result<String, String> {
    let settings = super::serve::configured(config)?;
    http_of(&settings)?.ok_or_else(|| {
        "no daemon is known: give --url http://HOST:PORT, or run this where roundel.toml has an address in [http] listen"
            .to_owned()
    })
}

/// The URL of the first address of HTTP, as this machine reaches it; `None`: there is none.
///
/// # Errors
/// When the files of TLS cannot be read.
pub fn http_of(settings: &Settings) -> Result<Option<String>, String> {
    let Some(address) = settings.http.first() else { return Ok(None) };
    let door = settings.web_access.open().map_err(|error| format!("[http] web_config: {error}"))?;
    let scheme = if door.is_encrypted() { "https" } else { "http" };
    let address = match address.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_unspecified() => match address {
            SocketAddr::V4(_) => format!("127.0.0.1:{}", address.port()),
            SocketAddr::V6(_) => format!("[::1]:{}", address.port()),
        },
        _ => address.clone(),
    };
    Ok(Some(format!("{scheme}://{address}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_spelt_as_in_rrdtool() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sock").display().to_string();
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        for (given, want) in [
            (&*path, Ok(format!("unix:{path}"))),
            (&format!("unix:{path}"), Ok(format!("unix:{path}"))),
            ("var/none.sock", Ok("unix:var/none.sock".to_string())),
            ("unix:none.sock", Ok("unix:none.sock".to_string())),
            ("db1", Ok("db1".to_string())),
            ("tls:db1:1", Ok("tls:db1:1".to_string())),
            ("[::1]:4242", Ok("[::1]:4242".to_string())),
        ] {
            assert_eq!(daemon(Some(given)), want.map(Some), "{given}");
        }
        assert!(daemon(Some("host:port")).is_err());
    }
}
