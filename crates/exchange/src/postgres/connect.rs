//! A connection to PostgreSQL: URL, password and TLS, as psql has them.

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::postgres::config::{Host, SslMode};
use ::postgres::{Client, Config};
use client::tls::TlsFiles;
use tokio_postgres_rustls::MakeRustlsConnect;

/// The port when none is given.
const PORT: u16 = 5432;
/// How long connecting may take, unless the URL says otherwise.
const CONNECT_PATIENCE: Duration = Duration::from_secs(30);
/// How long the other machine may acknowledge nothing that was sent to it.
const SILENCE_MAX: Duration = Duration::from_mins(1);

/// Has the server notice within a minute or two that an export is gone, also where its session waits: as long as it goes on there, the next
/// export is refused. PostgreSQL 13 and older do not know the first one.
const NOTICE: [&str; 4] = [
    "SET client_connection_check_interval = '5s'",
    "SET tcp_keepalives_idle = 30",
    "SET tcp_keepalives_interval = 10",
    "SET tcp_keepalives_count = 6",
];

/// Why rows cannot be copied.
#[derive(Debug)]
pub enum PostgresError {
    /// The URL cannot be used.
    Url(String),
    /// The server cannot be reached or refuses the user.
    Connect(String),
    /// A statement fails.
    Server(String),
    /// Another export writes to the same schema.
    InUse(String),
    /// An RRD cannot be written, for its name or its times; others can.
    Rrd(String),
}

impl PostgresError {
    pub(super) fn of_copy(error: io::Error) -> Self {
        PostgresError::Server(told(&error))
    }
}

impl fmt::Display for PostgresError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PostgresError::Url(why) => {
                write!(
                    f,
                    "cannot use the URL: {why}; give postgres://USER@HOST:PORT/DATABASE, or ?host=/run/postgresql"
                )
            }
            PostgresError::Connect(why) => write!(f, "cannot connect to PostgreSQL: {why}"),
            PostgresError::Server(why) => write!(f, "PostgreSQL refused: {why}"),
            PostgresError::InUse(schema) => {
                write!(
                    f,
                    "another export writes to the schema \"{schema}\"; wait until it ends, or choose another one"
                )
            }
            PostgresError::Rrd(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for PostgresError {}

impl From<::postgres::Error> for PostgresError {
    fn from(error: ::postgres::Error) -> Self {
        PostgresError::Server(told(&error))
    }
}

/// An error with its causes: the library's own texts name the kind only.
fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Connects.
///
/// # Errors
/// [`PostgresError::Url`], [`PostgresError::Connect`].
pub fn connect(url: &str) -> Result<Client, PostgresError> {
    let Parsed { mut config, ca } = parse(url)?;
    if config.get_password().is_none()
        && let Some(password) = password(&config)
    {
        config.password(password);
    }
    if config.get_application_name().is_none() {
        config.application_name("roundel export");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_PATIENCE);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE_MAX);
    }
    config.keepalives_idle(config.get_keepalives_idle().min(SILENCE_MAX));
    let mut files = TlsFiles::from_environment().map_err(PostgresError::Url)?;
    files.ca = ca.or(files.ca);
    let mut tls = (*files.config().map_err(PostgresError::Url)?).clone();
    tls.alpn_protocols.clear();
    let mut client = config.connect(MakeRustlsConnect::new(tls)).map_err(|error| {
        let text = told(&error);
        let advice = match config.get_ssl_mode() {
            _ if !text.contains("certificate") => "",
            SslMode::Prefer => {
                "; name its authority with sslrootcert=FILE, or use no TLS with sslmode=disable"
            }
            _ => "; name its authority with sslrootcert=FILE",
        };
        PostgresError::Connect(format!("{text}{advice}"))
    })?;
    for statement in NOTICE {
        let _not_known = client.batch_execute(statement).err();
    }
    Ok(client)
}

struct Parsed {
    config: Config,
    /// The authority of `sslrootcert`.
    ca: Option<PathBuf>,
}

/// Parses a URL, with the words of libpq that the library does not know. A certificate is always verified.
fn parse(url: &str) -> Result<Parsed, PostgresError> {
    let (front, query) = url.split_once('?').unwrap_or((url, ""));
    let mut ca = None;
    let mut kept = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("sslrootcert", path)) => ca = Some(PathBuf::from(unescaped(path))),
            Some(("sslmode", "verify-full" | "verify-ca")) => kept.push("sslmode=require"),
            Some(("sslmode", "allow")) => kept.push("sslmode=prefer"),
            _ => kept.push(pair),
        }
    }
    let url = if kept.is_empty() { front.to_string() } else { format!("{front}?{}", kept.join("&")) };
    let mut config: Config = url.parse().map_err(|error| PostgresError::Url(told(&error)))?;
    if config.get_user().is_none()
        && let Ok(user) = std::env::var("PGUSER").or_else(|_| std::env::var("USER"))
    {
        config.user(&user);
    }
    if config.get_hosts().is_empty() {
        return Err(PostgresError::Url("it has no host".to_string()));
    }
    Ok(Parsed { config, ca })
}

fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        let hex = after.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match hex {
            Some(value) if *byte == b'%' => {
                bytes.push(value);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The password of PGPASSWORD, or of the file that psql reads.
fn password(config: &Config) -> Option<String> {
    if let Ok(password) = std::env::var("PGPASSWORD") {
        return Some(password);
    }
    let file = std::env::var_os("PGPASSFILE").map(PathBuf::from);
    let path = file.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".pgpass")))?;
    // As psql: a file that others may read is not used.
    let is_private = std::fs::metadata(&path).is_ok_and(|found| found.mode() & 0o077 == 0);
    let text = std::fs::read_to_string(&path).ok().filter(|_| is_private)?;
    let host = match config.get_hosts().first()? {
        Host::Tcp(host) => host.clone(),
        Host::Unix(_) => "localhost".to_string(),
    };
    let port = config.get_ports().first().copied().unwrap_or(PORT).to_string();
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(user);
    of_passfile(&text, [&host, &port, database, user])
}

/// The password of the first line whose four fields are these or `*`.
fn of_passfile(text: &str, wanted: [&str; 4]) -> Option<String> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = split(line);
        let [host, port, database, user, password] = &fields[..] else { return None };
        let fits = |field: &String, want: &str| field == "*" || field == want;
        let all = [host, port, database, user].into_iter().zip(wanted).all(|(field, want)| fits(field, want));
        all.then(|| password.clone())
    })
}

/// The fields of a line; a backslash makes the next character mean itself.
fn split(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            ':' if fields.len() < 5 => fields.push(String::new()),
            '\\' => fields.extend_last(characters.next().unwrap_or('\\')),
            _ => fields.extend_last(character),
        }
    }
    fields
}

trait ExtendLast {
    fn extend_last(&mut self, character: char);
}

impl ExtendLast for Vec<String> {
    fn extend_last(&mut self, character: char) {
        if let Some(last) = self.last_mut() {
            last.push(character);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_found_as_psql_finds_them() {
        let text = "# a comment\ndb:5432:history:ann:one\n*:*:*:ann:t\\:w\\\\o:three\nbad line\n";
        let find = |fields| of_passfile(text, fields);
        assert_eq!(find(["db", "5432", "history", "ann"]).as_deref(), Some("one"));
        assert_eq!(find(["db", "5433", "history", "ann"]).as_deref(), Some("t:w\\o:three"));
        assert_eq!(find(["db", "5432", "history", "bob"]), None);
    }

    #[test]
    fn words_of_libpq_are_understood() {
        let parsed =
            parse("postgres://a@db/h?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem").expect("a URL");
        assert_eq!(parsed.config.get_ssl_mode(), SslMode::Require);
        assert_eq!(parsed.ca, Some(PathBuf::from("/etc/ca.pem")));
        assert!(parse("postgres://a@db/h?nonsense=1").is_err());
        assert!(parse("postgres:///h").is_err());
        let unix = parse("postgres://a@%2Frun%2Fpostgresql/h").expect("a URL");
        assert!(matches!(unix.config.get_hosts(), [Host::Unix(_)]));
    }
}
