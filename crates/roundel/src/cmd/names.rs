//! `roundel rename`, `copy`, `remove`, `restore` and `trash`: what `mv`, `cp` and `rm` do in a tree of placeholders, for stores without one and over TCP.

#[cfg(not(feature = "backup"))]
#[path = "names/backup_absent.rs"]
mod backup;

use clap::{Args, Subcommand};
use client::Daemon;

#[cfg(feature = "backup")]
use super::backup;
use super::peer::ask;
use super::{Result, import, peer, print};

/// Which daemon to ask.
#[derive(Debug, Args)]
struct Whom {
    /// The daemon's address, as in RRDCACHED_ADDRESS [default: RRDCACHED_ADDRESS, else unix:var/rrdcached.sock]
    #[arg(long, value_name = "ADDRESS")]
    daemon: Option<String>,
}

/// Options of `rename` and `copy`.
#[derive(Debug, Args)]
pub struct PairArguments {
    /// The RRD's name, or a directory's
    from: String,
    /// The new name. An RRD that has it is removed: into the trash
    to: String,
    /// Keep an RRD that has the new name, and fail
    #[arg(long, short)]
    no_clobber: bool,
    #[command(flatten)]
    whom: Whom,
}

/// Options of `remove`.
#[derive(Debug, Args)]
pub struct RemoveArguments {
    /// Names of RRDs
    #[arg(required_unless_present = "missing")]
    names: Vec<String>,
    /// With a name: the RRDs below that directory, too
    #[arg(long, short)]
    recursive: bool,
    /// Instead: those RRDs that the daemon keeps although their placeholders are missing
    #[arg(long, conflicts_with = "names")]
    missing: bool,
    #[command(flatten)]
    whom: Whom,
}

/// Options of `restore`.
#[derive(Debug, Args)]
pub struct RestoreArguments {
    /// The names that the removed RRDs had; of several removed under one name, the last one is restored. With --from: RRDs and
    /// directories of the backup [default: the whole store]
    #[arg(required_unless_present_any = ["missing", "from"])]
    names: Vec<String>,
    /// The name to restore it under; with --from, the directory to make
    #[arg(long, value_name = "NAME")]
    to: Option<String>,
    #[command(flatten)]
    backup: Box<backup::FromBackup>,
    /// Instead: write the placeholders of all RRDs again whose placeholders are missing
    #[arg(long, conflicts_with_all = ["names", "to"])]
    missing: bool,
    #[command(flatten)]
    whom: Whom,
}

/// Options of `trash`.
#[derive(Debug, Args)]
pub struct TrashArguments {
    #[command(subcommand)]
    command: TrashCommand,
}

#[derive(Debug, Subcommand)]
enum TrashCommand {
    /// List the removed RRDs, with the time of their removal
    List {
        /// Only names that begin so
        prefix: Option<String>,
        #[command(flatten)]
        whom: Whom,
    },
    /// Restore removed RRDs
    Restore(RestoreArguments),
    /// Delete removed RRDs for good
    Empty {
        /// Only names that begin so
        prefix: Option<String>,
        #[command(flatten)]
        whom: Whom,
    },
}

impl Whom {
    fn connect(&self) -> Result<Daemon> {
        peer::connect(self.daemon.as_deref(), "start it, or name it with --daemon")
    }
}

/// The names of RRDs that a word means: an RRD's, or those below a directory, with what follows the directory.
fn meant(daemon: &Daemon, word: &str, directories: bool) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let name = word.trim_end_matches('/').as_bytes();
    if ask(daemon, "last", &[name]).is_ok() {
        return Ok(vec![(name.to_vec(), Vec::new())]);
    }
    let below = [name, b"/"].concat();
    let all = daemon.list_all().map_err(|error| format!("cannot list the RRDs: {error}"))?;
    let inside = |name: Vec<u8>| name.strip_prefix(&below[..]).map(|rest| (name.clone(), rest.to_vec()));
    let found: Vec<_> = all.into_iter().filter_map(inside).collect();
    match found.len() {
        0 => Err(format!("{word}: no such RRD or directory")),
        count if !directories => Err(format!("{word}: a directory of {count} RRDs; use --recursive")),
        _ => Ok(found),
    }
}

/// Runs `work` for each item, with a progress bar, and lists the failures at the end.
fn each<T>(items: Vec<T>, done: &str, work: impl Fn(&T) -> Result) -> Result {
    let bar = import::progress(items.len() as u64);
    let mut failures = import::Failures::default();
    for item in &items {
        failures.extend(work(item).err());
        bar.inc(1);
    }
    bar.finish_and_clear();
    print(format!("{done} {} RRDs, {} failed\n", items.len() - failures.count(), failures.count()))?;
    failures.report()
}

/// Whether a path is below a directory.
fn is_inside(path: &str, directory: &str) -> bool {
    let parts = |path: &str| -> Vec<String> {
        path.split('/').filter(|part| !matches!(*part, "" | ".")).map(str::to_string).collect()
    };
    let (path, directory) = (parts(path), parts(directory));
    path.len() > directory.len() && path.starts_with(&directory)
}

/// Runs `rename` or `copy`.
fn pairs(arguments: &PairArguments, command: &str, done: &str) -> Result {
    let daemon = arguments.whom.connect()?;
    let to = arguments.to.trim_end_matches('/').as_bytes();
    let pairs = meant(&daemon, &arguments.from, true)?;
    let is_directory = pairs.iter().any(|(_, rest)| !rest.is_empty());
    if is_directory && is_inside(&arguments.to, &arguments.from) {
        return Err(format!("{}: cannot be {done} to {}, which is in it", arguments.from, arguments.to));
    }
    each(pairs, done, |(from, rest)| {
        let to = if rest.is_empty() { to.to_vec() } else { [to, b"/", rest].concat() };
        let failed = |why: &str| format!("{}: {why}", String::from_utf8_lossy(from));
        if arguments.no_clobber && ask(&daemon, "last", &[&to]).is_ok() {
            return Err(failed(&format!("{} exists", String::from_utf8_lossy(&to))));
        }
        ask(&daemon, command, &[from, &to]).map(|_| ()).map_err(|error| failed(&error))
    })
}

/// Runs `rename`.
pub fn rename(arguments: &PairArguments) -> Result {
    pairs(arguments, "rename", "renamed")
}

/// Runs `copy`.
pub fn copy(arguments: &PairArguments) -> Result {
    pairs(arguments, "copy", "copied")
}

/// Runs `remove`.
pub fn remove(arguments: &RemoveArguments) -> Result {
    let daemon = arguments.whom.connect()?;
    if arguments.missing {
        return settle_missing(&daemon, "DROP", "removed");
    }
    let mut names = Vec::new();
    for word in &arguments.names {
        names.extend(meant(&daemon, word, arguments.recursive)?.into_iter().map(|(name, _)| name));
    }
    each(names, "removed", |name| {
        let failed = |error| format!("{}: {error}", String::from_utf8_lossy(name));
        ask(&daemon, "remove", &[name]).map(|_| ()).map_err(failed)
    })
}

fn settle_missing(daemon: &Daemon, verb: &str, done: &str) -> Result {
    let count = ask(daemon, "trash", &[b"MISSING"])?.len();
    ask(daemon, "trash", &[verb.as_bytes()])?;
    print(format!("{done} {count} RRDs whose placeholders were missing\n"))
}

/// An RRD of the trash: when it was removed, as the daemon writes it, and its name.
type Removed = (String, Vec<u8>);

fn list(daemon: &Daemon, prefix: Option<&str>) -> Result<Vec<Removed>> {
    let prefix = prefix.unwrap_or_default().as_bytes();
    let one = |line: Vec<u8>| {
        let blank = line.iter().position(|&byte| byte == b' ')?;
        let time = String::from_utf8(line[..blank].to_vec()).ok()?;
        Some((time, line[blank + 1..].to_vec()))
    };
    let removed = ask(daemon, "trash", &[b"LIST"])?.into_iter().filter_map(one);
    Ok(removed.filter(|(_, name)| name.starts_with(prefix)).collect())
}

/// Runs `restore`.
pub fn restore(arguments: &RestoreArguments) -> Result {
    if arguments.backup.is_given() {
        return backup::restore(&arguments.backup, &arguments.names, arguments.to.as_deref());
    }
    let daemon = arguments.whom.connect()?;
    if arguments.missing {
        return settle_missing(&daemon, "KEEP", "kept");
    }
    if arguments.to.is_some() && arguments.names.len() > 1 {
        return Err("--to gives a name for one RRD".to_string());
    }
    let removed = list(&daemon, None)?;
    let mut wanted: Vec<Result<(&Removed, Vec<u8>)>> = Vec::new();
    for word in &arguments.names {
        let name = word.trim_end_matches('/').as_bytes();
        let below = [name, b"/"].concat();
        // By name and time: the last of each name.
        let mut found: Vec<&Removed> =
            removed.iter().filter(|(_, other)| other == name || other.starts_with(&below)).collect();
        found.reverse();
        found.dedup_by(|one, other| one.1 == other.1);
        if found.is_empty() {
            wanted.push(Err(format!("{word}: nothing of that name was removed")));
        }
        if arguments.to.is_some() && found.len() > 1 {
            return Err("--to gives a name for one RRD".to_string());
        }
        let to =
            |removed: &Removed| arguments.to.as_ref().map_or(removed.1.clone(), |to| to.clone().into_bytes());
        wanted.extend(found.into_iter().map(|removed| Ok((removed, to(removed)))));
    }
    each(wanted, "restored", |one| {
        let ((time, name), to) = one.as_ref().map_err(String::clone)?;
        let failed = |error| format!("{}: {error}", String::from_utf8_lossy(name));
        ask(&daemon, "trash", &[b"RESTORE", time.as_bytes(), name, to]).map(|_| ()).map_err(failed)
    })
}

/// Runs `trash`.
pub fn trash(arguments: &TrashArguments) -> Result {
    match &arguments.command {
        TrashCommand::Restore(arguments) => restore(arguments),
        TrashCommand::List { prefix, whom } => {
            let removed = list(&whom.connect()?, prefix.as_deref())?;
            let mut text = Vec::new();
            for (time, name) in &removed {
                let seconds = time.parse::<i64>().unwrap_or_default().div_euclid(1000);
                text.extend(format!("{}  ", super::verify::utc(seconds)).into_bytes());
                text.extend([name, &b"\n"[..]].concat());
            }
            print(text)
        }
        TrashCommand::Empty { prefix, whom } => {
            let daemon = whom.connect()?;
            let removed = list(&daemon, prefix.as_deref())?;
            each(removed, "deleted", |(time, name)| {
                let failed = |error| format!("{}: {error}", String::from_utf8_lossy(name));
                ask(&daemon, "trash", &[b"ERASE", time.as_bytes(), name]).map(|_| ()).map_err(failed)
            })
        }
    }
}
