//! `roundel grafana`: data sources and dashboards in Grafana's directory of provisioning.

use std::fmt::Write as _;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use serde_json::Value;
use server::access::Anonymous;
use server::grafana::{self, DataSources, MARK, TOKEN_VARIABLE};
use server::settings::Settings;

use super::remote::Server;
use super::{Result, address, print, serve};

const EXAMPLES: &str = "\
Examples:
  Grafana on this machine, where roundel.toml is:
    sudo roundel grafana --to /etc/grafana/provisioning
    sudo systemctl restart grafana-server

  Grafana elsewhere, in a container that has ./grafana as its /etc/grafana/provisioning:
    roundel grafana --to grafana --seen-as /etc/grafana/provisioning --url https://history.example:8443 --ca ca.pem

Written are datasources/roundel.yaml, dashboards/roundel.yaml and dashboards/roundel/*.json; files of these names that
Roundel has not written stay, and then nothing is written. A running daemon gives the same over HTTP: /grafana/datasources.yaml
and /grafana/dashboards. The page docs/grafana.md says what each dashboard needs.";

/// Options of `grafana`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// Grafana's directory of provisioning, such as /etc/grafana/provisioning
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// What Grafana calls this directory, if it sees it elsewhere, as in a container
    #[arg(long, value_name = "DIR")]
    seen_as: Option<PathBuf>,
    /// The address at which Grafana's server reaches Roundel, as http://HOST:PORT [default: the first listen of http in the
    /// configuration]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The daemon's configuration [default: roundel.toml if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The interval of the data source, as 10s or 5m [default: the step of most RRDs, asked of the daemon]
    #[arg(long, value_name = "DURATION")]
    interval: Option<String>,
    /// Have Grafana show the token that its environment has as ROUNDEL_TOKEN [default: if the configuration demands one, or this
    /// environment has one]
    #[arg(long, conflicts_with = "no_token")]
    token: bool,
    /// Have Grafana show no token
    #[arg(long)]
    no_token: bool,
    /// The certificate of the authority that Grafana is to trust, as PEM [default: those that its machine trusts]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result {
    let settings = serve::configured(arguments.config.as_deref())?;
    let here = address::http_of(&settings)?;
    let url = match (&arguments.url, &here) {
        (Some(url), _) => grafana::checked_url(url).map_err(|error| format!("--{error}"))?,
        (None, Some(here)) => from_elsewhere(&settings, here),
        (None, None) => {
            return Err("it is not known where HTTP listens: give --url http://HOST:PORT, or --config FILE"
                .to_owned());
        }
    };
    let authority = arguments.ca.as_deref().map(authority).transpose()?;
    let sources = DataSources {
        interval: interval(arguments, &url, here.as_deref())?,
        has_token: needs_token(arguments, &settings)?,
        authority,
        url,
    };
    let files = files(arguments, &sources)?;
    let foreign: Vec<String> =
        files.iter().filter(|file| file.is_foreign()).map(|file| file.path.display().to_string()).collect();
    if !foreign.is_empty() {
        let names = foreign.join(", ");
        return Err(format!(
            "nothing is written: Roundel has not made {names}; move them, or give another directory"
        ));
    }
    for file in &files {
        file.write().map_err(|error| format!("cannot write \"{}\": {error}", file.path.display()))?;
    }
    print(report(arguments, &sources, &files))
}

/// The address by which others reach this machine, if it listens for them.
fn from_elsewhere(settings: &Settings, here: &str) -> String {
    let everywhere = settings.http.first().and_then(|address| address.parse::<SocketAddr>().ok());
    let Some(address) = everywhere.filter(|address| address.ip().is_unspecified()) else {
        return here.to_owned();
    };
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let scheme = here.split_once("://").map_or("http", |(scheme, _)| scheme);
    match name.trim() {
        "" => here.to_owned(),
        name => format!("{scheme}://{name}:{}", address.port()),
    }
}

/// Whether Grafana has to say who it is.
fn needs_token(arguments: &Arguments, settings: &Settings) -> Result<bool> {
    if arguments.token || arguments.no_token {
        return Ok(arguments.token);
    }
    let door = settings.web_access.open().map_err(|error| format!("[http] web_config: {error}"))?;
    let is_demanded = match settings.anonymous_of_http(&door) {
        Some(anonymous) => anonymous == Anonymous::Nothing,
        None => door.asks(),
    };
    Ok(is_demanded || client::token::is_given())
}

fn authority(path: &Path) -> Result<String> {
    let cannot = |why: String| format!("cannot use \"{}\" (--ca): {why}", path.display());
    let text = fs::read_to_string(path).map_err(|error| cannot(error.to_string()))?;
    if text.contains("PRIVATE KEY") {
        return Err(cannot("it has a private key; give the certificate alone".to_owned()));
    }
    if !text.contains("-----BEGIN CERTIFICATE-----") {
        return Err(cannot("it has no certificate as PEM".to_owned()));
    }
    Ok(text)
}

/// What `/grafana/dashboards` answers.
#[derive(Deserialize)]
struct Listing {
    interval: Option<String>,
}

/// The interval that is given, else the one of most rows in the daemon.
fn interval(arguments: &Arguments, url: &str, here: Option<&str>) -> Result<Option<Duration>> {
    if let Some(text) = &arguments.interval {
        let duration =
            duration(text).ok_or_else(|| format!("--interval {text}: give a duration such as 10s or 5m"))?;
        return Ok(Some(duration));
    }
    let ask = |url: &str| {
        let body = Server::daemon(url, arguments.ca.as_deref())?.get("/grafana/dashboards", &[])?;
        let listing: Listing =
            serde_json::from_slice(&body).map_err(|error| format!("{url} is no Roundel: {error}"))?;
        Ok::<_, String>(listing.interval)
    };
    // What this machine reaches, whatever Grafana does.
    let answered = match here {
        Some(here) if here != url => ask(here).or_else(|_| ask(url)),
        _ => ask(url),
    };
    let text = answered.map_err(|error| format!("{error}; start the daemon, or give --interval"))?;
    Ok(text.as_deref().and_then(duration))
}

/// `500ms`, `10s`, `5m`, `1h`, `1d`.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let count: u64 = text[..digits].parse().ok().filter(|count| *count > 0)?;
    let unit = match &text[digits..] {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    count.checked_mul(unit).map(Duration::from_millis)
}

/// A file to write.
struct Provisioned {
    path: PathBuf,
    content: String,
    /// The identifier of a dashboard.
    uid: Option<String>,
}

fn files(arguments: &Arguments, sources: &DataSources) -> Result<Vec<Provisioned>> {
    let to = &arguments.to;
    let seen_as = match &arguments.seen_as {
        Some(path) if path.is_absolute() => path.clone(),
        Some(path) => return Err(format!("--seen-as {}: give a path that begins with /", path.display())),
        None => std::path::absolute(to).map_err(|error| format!("--to {}: {error}", to.display()))?,
    };
    let directory = seen_as.join("dashboards/roundel");
    let directory = directory.to_str().ok_or_else(|| format!("{}: it is not UTF-8", directory.display()))?;
    let file = |path: &str, content| Provisioned { path: to.join(path), content, uid: None };
    let mut all = vec![
        file("datasources/roundel.yaml", sources.yaml()),
        file("dashboards/roundel.yaml", grafana::provider_yaml(directory)),
    ];
    all.extend(grafana::dashboards().iter().map(|dashboard| Provisioned {
        path: to.join(format!("dashboards/roundel/{}.json", dashboard.name)),
        content: dashboard.json(),
        uid: Some(dashboard.uid()),
    }));
    Ok(all)
}

impl Provisioned {
    /// Whether something is there that Roundel has not written.
    fn is_foreign(&self) -> bool {
        match fs::read_to_string(&self.path) {
            Err(error) => error.kind() != ErrorKind::NotFound,
            Ok(text) => match &self.uid {
                None => !text.starts_with(MARK),
                Some(uid) => serde_json::from_str::<Value>(&text).map_or(true, |value| value["uid"] != **uid),
            },
        }
    }

    /// Writes under another name first, because Grafana reads these directories all the time.
    fn write(&self) -> std::io::Result<()> {
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory)?;
        }
        let mut temporary = self.path.clone().into_os_string();
        temporary.push(".partial");
        let mut file = fs::File::create(&temporary)?;
        file.write_all(self.content.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, &self.path)
    }
}

/// What was done, and what is left to do.
fn report(arguments: &Arguments, sources: &DataSources, files: &[Provisioned]) -> String {
    let mut out = format!("wrote {} files below {}\n", files.len(), arguments.to.display());
    match sources.interval {
        Some(interval) => {
            let _ =
                writeln!(out, "data sources: {}, interval {}", sources.url, grafana::interval_text(interval));
        }
        None => {
            let _ = writeln!(
                out,
                "data sources: {}; there are no RRDs yet: run this again once there are, for the interval",
                sources.url
            );
        }
    }
    out.push_str("next:\n");
    if sources.has_token {
        let _ = writeln!(
            out,
            "  make a token that may read (roundel token add grafana --read '**'), and put it as {TOKEN_VARIABLE} into the \
             environment of Grafana's server (Debian: /etc/default/grafana-server)"
        );
    }
    let is_here = ["//127.", "//[::1]", "//localhost"].iter().any(|host| sources.url.contains(host));
    if is_here && arguments.url.is_none() {
        out.push_str(
            "  if Grafana runs elsewhere, give --url with the address at which it reaches this machine\n",
        );
    }
    out.push_str("  restart Grafana's server, or have it read its provisioning again; the dashboards are in the folder Roundel\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_grafana_writes_them() {
        for (text, milliseconds) in
            [("500ms", 500), ("10s", 10_000), ("5m", 300_000), ("1h", 3_600_000), ("2d", 172_800_000)]
        {
            assert_eq!(duration(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for bad in ["", "5", "m", "0s", "5w", "-5s", "99999999999999999999s", "18446744073709551615d"] {
            assert_eq!(duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_not_ours_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |name: &str, uid: Option<&str>| Provisioned {
            path: directory.path().join("a").join(name),
            content: format!("{MARK}\nx"),
            uid: uid.map(str::to_owned),
        };
        let (yaml, json) = (file("a.yaml", None), file("a.json", Some("roundel-a")));
        assert!(!yaml.is_foreign() && !json.is_foreign());
        yaml.write().expect("written");
        assert!(!yaml.is_foreign());
        fs::write(&yaml.path, "apiVersion: 1\n").expect("written");
        assert!(yaml.is_foreign());
        for (text, is_foreign) in
            [("{\"uid\":\"roundel-a\"}", false), ("{\"uid\":\"b\"}", true), ("{", true), ("[1]", true)]
        {
            fs::write(&json.path, text).expect("written");
            assert_eq!(json.is_foreign(), is_foreign, "{text}");
        }
    }
}
