//! `roundel token`: makes, lists and revokes tokens. It changes the file that the daemon looks at, so no daemon need run.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use access::{Account, Rights, TokenHash, Tokens, token_text};
use clap::{Args, Subcommand};
use rrd::when::calendar::Calendar;
use server::access::audit::{Audit, Event};
use server::settings::parse_duration;

use super::serve::configured;
use super::{Result, print};

/// Options of `token`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Make a token and print it: it is shown only once
    ///
    /// Patterns are paths with a shell's wildcards in their components; ** stands for any number of components, {name} for the token's name.
    /// Programs give it by ROUNDEL_TOKEN or ROUNDEL_TOKEN_FILE, agents by token_file, clients of HTTP as a bearer token or a password.
    Add(AddArguments),
    /// List tokens and what may be done with them
    List(FileArguments),
    /// Revoke a token: within a second, nothing can be done with it any more
    Revoke {
        /// Its name
        name: String,
        #[command(flatten)]
        file: FileArguments,
    },
}

#[derive(Debug, Args)]
struct FileArguments {
    /// Configuration of the daemon [default: roundel.toml if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The file of tokens, instead of the one that the configuration says
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    tokens: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct AddArguments {
    /// Its name: whose it is. That of an agent is the agent's name
    name: String,
    /// RRDs that may be read, such as 'net/**'; may be repeated
    #[arg(long, value_name = "PATTERN")]
    read: Vec<String>,
    /// RRDs that may be made and changed, such as 'hosts/{name}/**'; may be repeated
    #[arg(long, value_name = "PATTERN")]
    write: Vec<String>,
    /// Also what concerns the whole daemon: its numbers, the trash, verifying
    #[arg(long)]
    operate: bool,
    /// When it ends, such as 90d
    #[arg(long, value_name = "TIME", value_parser = duration)]
    expires: Option<std::time::Duration>,
    /// The most values that it may send in a second
    #[arg(long, value_name = "COUNT")]
    values_per_second: Option<u32>,
    /// The most rows that it may read in a second
    #[arg(long, value_name = "COUNT")]
    rows_per_second: Option<u32>,
    /// The most RRDs that it may make in an hour
    #[arg(long, value_name = "COUNT")]
    new_rrds_per_hour: Option<u32>,
    #[command(flatten)]
    file: FileArguments,
}

fn duration(text: &str) -> Result<std::time::Duration, String> {
    let usual = parse_duration(text).filter(|time| !time.is_zero());
    usual.ok_or_else(|| "give a number with s, m, h, d or w, such as 90d".to_string())
}

/// Runs `token`.
pub fn run(arguments: &Arguments) -> Result {
    match &arguments.command {
        TokenCommand::Add(arguments) => add(arguments),
        TokenCommand::List(file) => list(file),
        TokenCommand::Revoke { name, file } => revoke(name, file),
    }
}

fn add(arguments: &AddArguments) -> Result {
    let mut random = [0; 32];
    fs::File::open("/dev/urandom")
        .and_then(|mut source| std::io::Read::read_exact(&mut source, &mut random))
        .map_err(|error| format!("no random numbers from /dev/urandom: {error}"))?;
    let token = token_text(&random);
    let now = now();
    let account = Account {
        name: arguments.name.clone(),
        sha256: TokenHash::of(token.as_bytes()).map(|hash| hash.text()),
        read: arguments.read.clone(),
        write: arguments.write.clone(),
        operate: arguments.operate,
        values_per_second: arguments.values_per_second,
        rows_per_second: arguments.rows_per_second,
        new_rrds_per_hour: arguments.new_rrds_per_hour,
        expires: arguments.expires.map(|time| now + time.as_secs() as i64),
        made: Some(now),
        ..Account::default()
    };
    let rights = Rights::new(&account).map_err(|error| format!("--{error}"))?;
    if rights.is_nothing() {
        return Err("nothing could be done with it: give --read, --write or --operate".to_string());
    }
    let file = &arguments.file;
    change(&file.path()?, |tokens| tokens.add(account))?;
    file.record(&arguments.name, "added")?;
    print(format!("{token}\n"))
}

fn list(file: &FileArguments) -> Result {
    let tokens = read(&file.path()?)?;
    let mut text = String::new();
    for account in tokens.accounts() {
        let ends = match account.expires {
            Some(expires) if expires <= now() => format!("  ended {}", day(expires)),
            Some(expires) => format!("  until {}", day(expires)),
            None => String::new(),
        };
        let patterns = |key: &str, patterns: &[String]| match patterns {
            [] => String::new(),
            patterns => format!("  {key} {}", patterns.join(" ")),
        };
        let limit =
            |key: &str, limit: Option<u32>| limit.map_or(String::new(), |limit| format!("  {limit} {key}"));
        text.push_str(&format!(
            "{}{}{}{}{}{}{}{ends}\n",
            account.name,
            patterns("read", &account.read),
            patterns("write", &account.write),
            if account.operate { "  operate" } else { "" },
            limit("values/s", account.values_per_second),
            limit("rows/s", account.rows_per_second),
            limit("new RRDs/h", account.new_rrds_per_hour),
        ));
    }
    print(text)
}

fn revoke(name: &str, file: &FileArguments) -> Result {
    change(&file.path()?, |tokens| match tokens.revoke(name) {
        true => Ok(()),
        false => {
            Err(format!("there is no token \"{name}\"; `roundel token list` shows those that there are"))
        }
    })?;
    file.record(name, "revoked")
}

impl FileArguments {
    fn path(&self) -> Result<PathBuf> {
        if let Some(path) = &self.tokens {
            return Ok(path.clone());
        }
        let settings = configured(self.config.as_deref())?;
        Ok(settings.access.tokens.clone().unwrap_or_else(|| settings.tokens_in_store()))
    }

    /// Records a change in the audit log that the configuration says.
    fn record(&self, name: &str, detail: &str) -> Result {
        if self.tokens.is_some() {
            return Ok(());
        }
        let Some(path) = configured(self.config.as_deref())?.access.audit else { return Ok(()) };
        let is_new = !path.exists();
        let who = std::env::var("SUDO_USER").or_else(|_| std::env::var("USER"));
        let who = who.unwrap_or_else(|_| "an administrator".to_string());
        let event = Event { who: &who, what: "token", name: Some(name.to_string()), detail: Some(detail) };
        Audit::new(Some(path.clone())).record(&event);
        if is_new {
            give(&path, &self.path()?);
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<Tokens> {
    match fs::read_to_string(path) {
        Ok(text) => Tokens::parse(&text).map_err(|error| format!("\"{}\": {error}", path.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Tokens::default()),
        Err(error) => Err(format!("cannot read \"{}\": {error}", path.display())),
    }
}

/// Replaces the file as a whole, so that the daemon never sees a part of it. Its owner can read it, and no other user.
fn change(path: &Path, change: impl FnOnce(&mut Tokens) -> Result) -> Result {
    let directory = path.parent().unwrap_or(Path::new("."));
    let new = path.with_extension("new");
    let cannot = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => {
            format!("another command changes the tokens; if none does, remove \"{}\"", new.display())
        }
        _ => format!("cannot write \"{}\": {error}", new.display()),
    };
    make_directory(directory).map_err(cannot)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).map_err(cannot)?;
    let changed = (|| {
        let mut tokens = read(path)?;
        change(&mut tokens)?;
        file.write_all(tokens.text()?.as_bytes()).and_then(|()| file.sync_all()).map_err(cannot)?;
        // The daemon's user must be able to read it: that of the file before, or of the store.
        give(&new, if path.exists() { path } else { directory });
        fs::rename(&new, path).map_err(cannot)?;
        fs::File::open(directory).and_then(|directory| directory.sync_all()).map_err(cannot)
    })();
    if changed.is_err() {
        fs::remove_file(&new).ok();
    }
    changed
}

/// Makes a directory that is missing. It belongs to the owner of the one that it is made in: a store that only root could write to would
/// keep the daemon, whose user is another, from starting.
fn make_directory(directory: &Path) -> std::io::Result<()> {
    let directory = std::path::absolute(directory)?;
    let missing: Vec<&Path> = directory.ancestors().take_while(|ancestor| !ancestor.exists()).collect();
    fs::create_dir_all(&directory)?;
    for made in missing.iter().rev() {
        if let Some(parent) = made.parent() {
            give(made, parent);
        }
    }
    Ok(())
}

/// Gives a file to the owner of another one, as only root can.
fn give(file: &Path, like: &Path) {
    if let Ok(owner) = fs::metadata(like) {
        std::os::unix::fs::chown(file, Some(owner.uid()), Some(owner.gid())).ok();
    }
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs() as i64)
}

/// A time as a day of this host's calendar.
fn day(seconds: i64) -> String {
    let local = localtime::Local.local(seconds);
    format!("{:04}-{:02}-{:02}", local.year, local.month + 1, local.day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_the_first_token_makes_belongs_to_the_owner_of_its_place() {
        let place = tempfile::tempdir().unwrap();
        let (user, group) = (Some(65_534), Some(65_534));
        if std::os::unix::fs::chown(place.path(), user, group).is_err() {
            testkit::skip("only root can give a directory to another user");
            return;
        }
        let tokens = place.path().join("data/store/tokens");
        let hash = TokenHash::of(b"x").map(|hash| hash.text());
        let account = Account { name: "x".to_string(), sha256: hash, operate: true, ..Account::default() };
        change(&tokens, |all| all.add(account)).unwrap();
        for made in ["data", "data/store", "data/store/tokens"] {
            let owner = fs::metadata(place.path().join(made)).unwrap();
            assert_eq!((Some(owner.uid()), Some(owner.gid())), (user, group), "{made}");
        }
    }
}
