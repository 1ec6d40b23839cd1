//! What can be known, before anything is bound, made or changed, of whether a daemon can start with its settings.
//!
//! `roundel validate` asks this, and so does a start before all else: what the one refuses, the other does. Only what is known at
//! binding is left, such as a port that another program has.

use std::fmt::Display;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use protocol::rrdcached::address::Address;

use crate::access::{Access, Anonymous};
use crate::cluster::ClusterSettings;
use crate::collectors::{collectd, datagrams};
use crate::http::access::Door;
use crate::settings::{Layout, Settings};
use crate::tls::TlsOptions;
use crate::tls::port::TlsPort;

/// The longest path of a UNIX socket in bytes: the kernel's structure has 108, of which one is zero.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// Checks the settings.
///
/// # Errors
/// A text for the operator: the key, its value, and what to do.
pub fn check(settings: &Settings) -> Result<(), String> {
    if settings.listen.is_empty() {
        return Err("cannot start: no address to listen on; give [[listen]] or -l".to_string());
    }
    for listen in &settings.listen {
        if let Address::Unix(path) = &listen.address {
            check_socket(path).map_err(|cause| cannot("[[listen]] address", &listen.address, cause))?;
        }
    }
    check_listeners(settings)?;
    let files = [("pid_file", &settings.pid_file), ("[log] file", &settings.log_file)];
    for (key, path) in files {
        let Some(path) = path else { continue };
        check_file(path).map_err(|cause| cannot(key, path.display(), cause))?;
    }
    for (key, path) in directories(settings) {
        check_directory(path).map_err(|cause| cannot(key, path.display(), cause))?;
    }
    check_tls(settings)?;
    settings.cluster.as_ref().map_or(Ok(()), ClusterSettings::check_files)?;
    let door = settings.web_access.open().map_err(|error| format!("[http] web_config: {error}"))?;
    let access = Access::new(&settings.access).map_err(|error| format!("[access]: {error}"))?;
    check_open(settings, &door, &access)?;
    let collectd = settings.collectd.as_ref();
    let gmond = settings.ganglia.as_ref().and_then(|ganglia| ganglia.listen.as_ref());
    let interfaces = [
        ("[collectd] interface", collectd.and_then(|collectd| collectd.interface.as_ref())),
        ("[gmond_listen] interface", gmond.and_then(|gmond| gmond.interface.as_ref())),
    ];
    for (key, interface) in interfaces {
        let Some(interface) = interface else { continue };
        datagrams::interface_index(interface).map_err(|cause| cannot(key, interface, cause))?;
    }
    collectd.map_or(Ok(()), |collectd| collectd::CollectdFiles::read(collectd).map(drop))
}

/// Checks that someone gets in where other machines do, and that this was written if it is everyone.
fn check_open(settings: &Settings, door: &Door, access: &Access) -> Result<(), String> {
    if access.has_tokens() {
        return Ok(());
    }
    let advice = "other machines reach it, and could not say who they are: make a token (`roundel token add`), or write \
                  anonymous = \"read\" or \"all\" beside it, for every program that reaches it";
    for listen in &settings.listen {
        let is_closed = listen.tls.as_ref().is_some_and(TlsOptions::demands_certificates);
        if !listen.address.is_local() && listen.anonymous == Anonymous::Nothing && !is_closed {
            return Err(cannot("[[listen]] address", &listen.address, advice));
        }
    }
    if let Some(agents) = settings.agents.as_ref().filter(|agents| !agents.open) {
        let advice = "other machines reach it, and agents could not say who they are: make a token (`roundel token add`), or write \
                      open = true, with which every program that reaches it may write";
        return Err(cannot("[agents] listen", agents.listen.join(", "), advice));
    }
    let replication = &settings.replication;
    if !replication.listen.is_empty() && !replication.open {
        let advice = "other machines reach it, and followers could not say who they are: make a token (`roundel token add NAME \
                      --operate`), or write open = true, with which every program that reaches it may copy the store";
        return Err(cannot("[replication] listen", replication.listen.join(", "), advice));
    }
    match settings.anonymous_of_http(door) {
        Some(Anonymous::Nothing) if !door.asks() && !settings.http.is_empty() => {
            let advice = format!("{advice}; or ask for passwords or certificates by web_config");
            Err(cannot("[http] listen", settings.http.join(", "), advice))
        }
        _ => Ok(()),
    }
}

/// Checks that TLS of every port can be used.
fn check_tls(settings: &Settings) -> Result<(), String> {
    let listen = settings.listen.iter().map(|listen| ("[[listen]]", &listen.tls));
    let agents = settings.agents.iter().map(|agents| ("[agents]", &agents.tls));
    let ganglia = settings.ganglia.iter().map(|ganglia| ("[gmetad]", &ganglia.tls));
    let replication = [("[replication]", &settings.replication.tls)];
    for (section, tls) in listen.chain(agents).chain(ganglia).chain(replication) {
        tls.as_ref().map_or(Ok(()), |tls| {
            TlsPort::open(tls).map(drop).map_err(|error| format!("{section} tls: {error}"))
        })?;
    }
    Ok(())
}

fn cannot(key: &str, value: impl Display, cause: impl Display) -> String {
    format!("cannot use {key} = \"{value}\": {cause}")
}

fn check_socket(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::FileTypeExt;
    let bytes = path.as_os_str().len();
    if bytes > SOCKET_PATH_BYTES_MAX {
        return Err(format!(
            "the path has {bytes} bytes, and that of a socket at most {SOCKET_PATH_BYTES_MAX}"
        ));
    }
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            Err("something that is no socket is there; move it away".to_string())
        }
        // Its directory is made.
        _ => path.parent().map_or(Ok(()), check_directory),
    }
}

/// Checks that a file can be in its directory, which is not made.
fn check_file(path: &Path) -> Result<(), String> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    if !directory.is_dir() {
        return Err(format!(
            "there is no directory \"{}\"; make it, or give another path",
            directory.display()
        ));
    }
    match path.is_dir() {
        true => Err("it is a directory; give the path of a file".to_string()),
        false => Ok(()),
    }
}

/// Directories that are made if they are missing.
fn directories(settings: &Settings) -> Vec<(&'static str, &PathBuf)> {
    let mut found = vec![("base", &settings.base)];
    match &settings.layout {
        Layout::Stripes(stripes) => {
            found.push(("store", &stripes.store));
            found.extend(stripes.placeholders.iter().chain(&stripes.adopt).map(|tree| ("tree", tree)));
        }
        Layout::Files(files) => {
            found.extend(files.journal.iter().map(|journal| ("[files] journal", journal)))
        }
    }
    found
}

fn check_directory(path: &Path) -> Result<(), String> {
    match path.ancestors().find(|path| path.exists()) {
        Some(found) if !found.is_dir() => {
            Err(format!("\"{}\" is no directory; move it away, or give another path", found.display()))
        }
        _ => Ok(()),
    }
}

/// A socket that will be bound, with the key that asks for it.
struct Listener<'a> {
    key: &'static str,
    value: String,
    place: Place<'a>,
}

enum Place<'a> {
    Unix(&'a Path),
    Tcp(String, u16),
    Udp(&'a str, u16),
}

impl Place<'_> {
    /// True when not both can be bound.
    fn clashes(&self, other: &Place<'_>) -> bool {
        match (self, other) {
            (Place::Unix(one), Place::Unix(other)) => one == other,
            (Place::Tcp(one, port), Place::Tcp(other, other_port)) => {
                *port != 0 && port == other_port && hosts_clash(one, other)
            }
            // Multicast groups may share a port with each other and with the rest.
            (Place::Udp(one, port), Place::Udp(other, other_port)) => {
                *port != 0 && (one, port) == (other, other_port)
            }
            _ => false,
        }
    }
}

fn hosts_clash(one: &str, other: &str) -> bool {
    let same_family = |any: &str, host: &str| match (any, host.parse::<IpAddr>()) {
        // As a host, nothing means all addresses of both families.
        ("", _) => true,
        ("0.0.0.0", Ok(host)) => host.is_ipv4(),
        ("::", Ok(host)) => host.is_ipv6(),
        _ => false,
    };
    one.eq_ignore_ascii_case(other) || same_family(one, other) || same_family(other, one)
}

/// Checks addresses, and that none is given twice.
fn check_listeners(settings: &Settings) -> Result<(), String> {
    let mut listeners: Vec<Listener<'_>> = settings
        .listen
        .iter()
        .map(|listen| {
            let place = match &listen.address {
                Address::Unix(path) => Place::Unix(path),
                Address::Tcp { host, port } | Address::Tls { host, port } => Place::Tcp(host.clone(), *port),
            };
            Listener { key: "[[listen]] address", value: listen.address.to_string(), place }
        })
        .collect();
    let ganglia = settings.ganglia.as_ref();
    let ports = [
        ("[http] listen", Some(&settings.http)),
        ("[agents] listen", settings.agents.as_ref().map(|agents| &agents.listen)),
        ("[replication] listen", Some(&settings.replication.listen)),
        ("[gmetad] xml_listen", ganglia.map(|ganglia| &ganglia.xml)),
        ("[gmetad] interactive_listen", ganglia.map(|ganglia| &ganglia.interactive)),
    ];
    for (key, addresses) in ports {
        for value in addresses.into_iter().flatten() {
            let (host, port) = host_and_port(value)
                .ok_or_else(|| cannot(key, value, "give HOST:PORT, such as 127.0.0.1:9181"))?;
            listeners.push(Listener { key, value: value.clone(), place: Place::Tcp(host, port) });
        }
    }
    let gmond = ganglia.and_then(|ganglia| ganglia.listen.as_ref());
    let datagrams = [
        ("[collectd] listen", settings.collectd.as_ref().map(|collectd| &collectd.listen)),
        ("[gmond_listen] listen", gmond.map(|gmond| &gmond.listen)),
    ];
    for (key, addresses) in datagrams {
        for (host, port) in addresses.into_iter().flatten() {
            listeners.push(Listener {
                key,
                value: format!("udp://{host}:{port}"),
                place: Place::Udp(host, *port),
            });
        }
    }
    for (index, one) in listeners.iter().enumerate() {
        if let Some(other) = listeners[..index].iter().find(|other| one.place.clashes(&other.place)) {
            let cause = format!(
                "{} = \"{}\" listens there already; give each an address of its own",
                other.key, other.value
            );
            return Err(cannot(one.key, &one.value, cause));
        }
    }
    Ok(())
}

/// Splits HOST:PORT as the standard library does, without asking for the host's addresses.
fn host_and_port(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = match bare {
        Some(bare) => bare.parse::<std::net::Ipv6Addr>().ok()?.to_string(),
        None if host.is_empty()
            || host.contains([':', '/', '[', ']'])
            || host.contains(char::is_whitespace) =>
        {
            return None;
        }
        None => host.to_string(),
    };
    Some((host, port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    /// A directory, and what is said of a configuration in which it is called DIR.
    fn said(text: &str) -> String {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("file"), "").unwrap();
        let dir = place.path().display().to_string();
        let settings = parse(&text.replace("DIR", &dir), "x.toml").unwrap();
        let before = std::fs::read_dir(place.path()).unwrap().count();
        let said = check(&settings).err().unwrap_or_default();
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), before, "{text}: something was made");
        said.replace(&dir, "DIR")
    }

    #[test]
    fn what_cannot_start_is_refused_with_key_value_and_advice() {
        let check = |text: &str, want: &[&str]| {
            let said = said(text);
            assert!(want.iter().all(|part| said.contains(part)), "{text}: {said:?} lacks some of {want:?}");
        };
        let long = "x".repeat(120);
        check("listen = []", &["no address"]);
        check(&format!("[[listen]]\naddress = 'unix:/tmp/{long}'"), &["[[listen]] address", "107"]);
        check("[[listen]]\naddress = 'unix:DIR/file'", &["unix:DIR/file", "no socket", "move"]);
        check("[[listen]]\naddress = 'unix:DIR/file/sock'", &["\"DIR/file\" is no directory"]);
        for bad in [
            "9181",
            ":9181",
            "localhost",
            "localhost:http",
            "::1:80",
            "[::1]",
            "1.2.3.4:99999",
            "http://x:80",
        ] {
            check(&format!("[http]\nlisten = ['{bad}']"), &["[http] listen", bad, "HOST:PORT"]);
        }
        check(
            "pid_file = 'DIR/no/pid'",
            &["pid_file = \"DIR/no/pid\"", "no directory \"DIR/no\"", "make it"],
        );
        check("pid_file = 'DIR'", &["pid_file", "is a directory"]);
        check("[log]\nfile = 'DIR/no/log'", &["[log] file", "no directory"]);
        check("store = 'DIR/file/store'", &["store = ", "\"DIR/file\" is no directory"]);
        check("base = 'DIR/file'", &["base = ", "no directory"]);
        check("layout = 'files'\n[files]\njournal = 'DIR/file'", &["[files] journal", "no directory"]);
        let collectd = "[collectd]\nlisten = ['udp://127.0.0.1:25826']\n";
        check(&format!("{collectd}types = ['DIR/no.db']"), &["DIR/no.db", "types", "[collectd]"]);
        check(&format!("{collectd}types = []\nauth_file = 'DIR/no'"), &["DIR/no", "auth_file"]);
        check(&format!("{collectd}types = []\ninterface = 'no0'"), &["[collectd] interface = \"no0\""]);
    }

    #[test]
    fn no_listener_is_given_twice() {
        let check = |text: &str, clash: bool| {
            let said = said(text);
            assert_eq!(said.contains("listens there already"), clash, "{text}: {said}");
        };
        let two = |one: &str, other: &str| {
            format!("[[listen]]\naddress = '{one}'\n[[listen]]\naddress = '{other}'")
        };
        check(&two("unix:DIR/a", "unix:DIR/a"), true);
        check(&two("unix:DIR/a", "unix:DIR/b"), false);
        check(&two("127.0.0.1:4242", "127.0.0.1:4242"), true);
        check(&two("127.0.0.1:4242", "127.0.0.1:4243"), false);
        check(&two("127.0.0.1:4242", ":4242"), true);
        check(&two("[::1]:4242", "0.0.0.0:4242"), false);
        check(&two("127.0.0.1:4242", "0.0.0.0:4242"), true);
        check(&two("127.0.0.1:0", "127.0.0.1:0"), false);
        let http = "[[listen]]\naddress = 'localhost:9181'\n[http]\nlisten = ['LOCALHOST:9181']";
        check(http, true);
        let udp = "[collectd]\ntypes = []\nlisten = ['udp://[::]:25826', 'udp://239.192.74.66']";
        check(udp, false);
        check(&udp.replace("[::]:25826", "239.192.74.66"), true);
        let gmetad = "[gmond_listen]\nlisten = ['127.0.0.1:9']\n[gmetad]\nxml_listen = ['127.0.0.1:9']\n";
        check(gmetad, false);
        check(&format!("{gmetad}interactive_listen = ['0.0.0.0:9']"), true);
    }
}
