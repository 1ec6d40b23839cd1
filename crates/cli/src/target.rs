//! Locates RRDs: in a local file, or in a daemon's store.
//!
//! Each verb has a [`Policy`]: the places where it looks for an RRD, in order. [`Tool::locate`] is the only
//! function that looks, so the table of policies below is the whole answer to "where is it?".

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use client::placeholder::FileId;
use client::{ClientError, Daemon, RemoteRrd};
use protocol::frames::code::ErrorCode;
use protocol::rrdcached::client::Answer;
use rrd::codec::file::{decode, encode};
use rrd::codec::xml::{Header, RestoreOptions, dump, restore};
use rrd::content::Rrd;
use rrd::fetch::{FetchRequest, FetchRows};
use rrd_file::placeholder::Placeholder;
use rrd_file::{Existing, ReadFile, write_file};

use crate::Tool;
use crate::daemon::{Link, failure};
use crate::environment::Environment;
use crate::failure::{Failure, Result, system_text};

/// A place where an RRD may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The RRD of a placeholder that this process has met under the name before.
    Cached,
    /// The same if the caller may write to the placeholder.
    CachedToWrite,
    /// Not a place: fails if there is a placeholder to which the caller may not write.
    Writable,
    /// The daemon in the option, else in the environment.
    Named(Unreachable),
    /// Not a place: makes the named daemon, if it can be reached, write its pending updates to the file.
    Flush,
    /// The daemon in the option, which must be reachable.
    Option,
    /// The file of that name. If it is a placeholder, the search continues.
    File,
    /// The RRD of the placeholder found under the name.
    Placeholder(Whom),
    /// If no file has the name: the store in whose tree it lies, if its daemon can be reached.
    Tree,
    /// If no file has the name: the daemon in the option, else in the environment, if it is ours and can be reached.
    /// RRDtool looks only for files there, and rrdcached does not know the commands that would follow.
    Ours,
    /// If the file is missing: the daemon in the environment.
    Environment,
}

/// What happens when a named daemon cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unreachable {
    Fail,
    /// Continue the search, and complain at the end of the command.
    Complain,
    /// Continue the search. Compat: `create` does not report an unreachable daemon.
    Ignore,
}

/// Whether the daemon must be reached: with TLS or a token, which RRDtool has not, so that no program expects a file in the daemon's place.
/// What is wrong with a certificate or token is said, whatever the verb.
fn must_reach(address: &[u8]) -> bool {
    address.starts_with(b"tls:") || client::token::is_given()
}

/// Which daemon is asked for the RRD of a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whom {
    /// The store's.
    Store,
    /// The one that flushed, else the store's.
    Flushed,
    /// The one in the option or environment, else the store's.
    Named,
}

/// The places where a verb looks for an RRD, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy(&'static [Place]);

impl Policy {
    /// `info`, `first`, `last`, `fetch`, DEFs, and what `create` reads.
    pub(crate) const READ: Policy =
        Policy(&[Place::Named(Unreachable::Complain), Place::File, Place::Placeholder(Whom::Store)]);
    /// `dump` and `lastupdate`.
    pub(crate) const READ_FLUSHED: Policy =
        Policy(&[Place::Flush, Place::Ours, Place::File, Place::Placeholder(Whom::Flushed)]);
    /// C functions that have no daemon parameter.
    pub(crate) const HERE_FIRST: Policy =
        Policy(&[Place::Cached, Place::File, Place::Placeholder(Whom::Store), Place::Environment]);
    /// The same for those that update.
    pub(crate) const UPDATE_HERE_FIRST: Policy =
        Policy(&[Place::CachedToWrite, Place::File, Place::Placeholder(Whom::Store), Place::Environment]);
    /// `update`.
    pub(crate) const UPDATE: Policy =
        Policy(&[Place::Named(Unreachable::Fail), Place::File, Place::Placeholder(Whom::Store)]);
    /// `updatev`. Compat: the environment's daemon is not asked about a file.
    pub(crate) const UPDATEV: Policy =
        Policy(&[Place::Option, Place::Ours, Place::File, Place::Placeholder(Whom::Named)]);
    /// `create`.
    pub(crate) const CREATE: Policy = Policy(&[
        Place::Named(Unreachable::Ignore),
        Place::Placeholder(Whom::Store),
        Place::Tree,
        Place::File,
    ]);
    /// `restore`: where a whole RRD is written.
    pub(crate) const PUT: Policy =
        Policy(&[Place::Option, Place::Placeholder(Whom::Named), Place::Tree, Place::File]);
    /// `tune`: the RRD itself, in a file or store.
    pub(crate) const CHANGE: Policy =
        Policy(&[Place::Writable, Place::Placeholder(Whom::Named), Place::Ours, Place::File]);
    /// The RRD that `resize` copies.
    pub(crate) const COPY: Policy = Policy(&[Place::Ours, Place::File, Place::Placeholder(Whom::Named)]);
    /// Where `resize` writes its copy: a file, unless a store has that name.
    pub(crate) const COPY_TO: Policy = Policy(&[Place::Placeholder(Whom::Named), Place::File]);
}

/// Where an RRD is.
pub enum Location<T> {
    /// In a file; the value is what opening it returned.
    Local(T),
    /// In a daemon's store.
    Remote(Remote),
}

/// An RRD in a daemon's store.
#[derive(Debug)]
pub struct Remote {
    /// The daemon.
    pub daemon: Arc<Daemon>,
    /// Its name there.
    pub name: Vec<u8>,
    /// The name as given, if a placeholder led here: everything must look as if the file were there.
    pub in_place_of: Option<Vec<u8>>,
}

impl Remote {
    /// The RRD of a daemon that the argument names.
    ///
    /// # Errors
    /// When the argument names no RRD of that daemon.
    pub fn named(daemon: Arc<Daemon>, word: &[u8], environment: &Environment) -> Result<Remote> {
        let name = daemon
            .name(word, environment.strip_path.as_deref())
            .map_err(|error| failure(daemon.address(), error))?;
        Ok(Remote { daemon, name, in_place_of: None })
    }

    /// Sends a command about the RRD; `args` follow its name.
    ///
    /// # Errors
    /// The daemon's.
    pub fn ask(&self, command: &str, args: &[&[u8]]) -> Result<Answer> {
        self.daemon.ask(command, &self.args(args)).map_err(|error| self.failure(error))
    }

    /// As [`Remote::ask`], for a command that only our daemon knows; `None` = it is another daemon.
    ///
    /// # Errors
    /// The daemon's.
    pub fn ask_ours(&self, command: &str, args: &[&[u8]]) -> Result<Option<Answer>> {
        self.daemon.ask_ours(command, &self.args(args)).map_err(|error| self.failure(error))
    }

    fn args<'w>(&'w self, args: &[&'w [u8]]) -> Vec<&'w [u8]> {
        std::iter::once(&*self.name).chain(args.iter().copied()).collect()
    }

    /// Makes the daemon write its pending updates of the RRD.
    pub(crate) fn flush(&self) -> Result {
        self.ask("flush", &[]).map(|_| ())
    }

    /// Updates it.
    ///
    /// # Errors
    /// The daemon's.
    pub(crate) fn update(&self, readings: &[Vec<u8>]) -> Result {
        let args: Vec<&[u8]> = readings.iter().map(Vec::as_slice).collect();
        let done = self.daemon.update(&self.name, &args);
        done.map_err(|error| failure(self.daemon.address(), error))
    }

    /// Updates it with one reading, unless that is not later than the last update.
    ///
    /// # Errors
    /// The daemon's.
    pub(crate) fn update_unless_past(&self, reading: &[u8]) -> Result {
        match self.daemon.update(&self.name, &[reading]) {
            Err(error) if error.is(ErrorCode::IllegalTime) => Ok(()),
            done => done.map_err(|error| failure(self.daemon.address(), error)),
        }
    }

    /// Fetches its rows. Compat: only our daemon supports resolutions.
    ///
    /// # Errors
    /// The daemon's.
    pub fn fetch(&self, request: &FetchRequest) -> Result<FetchRows> {
        self.daemon.fetch(&self.name, request).map_err(|error| self.failure(error))
    }

    fn failure(&self, error: ClientError) -> Failure {
        match (&self.in_place_of, error) {
            (Some(word), ClientError::Refused { text, .. }) => Failure::new(of_file(&text, &self.name, word)),
            (_, error) => failure(self.daemon.address(), error),
        }
    }

    /// The whole RRD, bit for bit; `None` when the daemon does not support that, or no `.rrd` file can hold
    /// it.
    ///
    /// # Errors
    /// When the answer is not an RRD.
    pub(crate) fn whole(&self) -> Result<Option<Rrd>> {
        let bytes = match self.daemon.export(&self.name) {
            Ok(Some(bytes)) => bytes,
            Err(error @ ClientError::NotAnAnswer(_)) => return Err(self.failure(error)),
            // The next request reports an invalid name, in known words.
            _ => return Ok(None),
        };
        match decode(&bytes) {
            Ok(parts) => Ok(Some(parts.rrd)),
            Err(error) => Err(Failure::new(error.named(&String::from_utf8_lossy(&self.name)).to_string())),
        }
    }

    /// The whole RRD; from a daemon that only supports DUMP, with the precision of a dump.
    ///
    /// # Errors
    /// The daemon's.
    pub(crate) fn content(&self) -> Result<Rrd> {
        if let Some(rrd) = self.whole()? {
            return Ok(rrd);
        }
        let xml = self.ask("dump", &[])?.lines.join(&b'\n');
        let options = RestoreOptions { range_check: false, long_names: true };
        restore(&xml, options).map_err(|error| Failure::new(error.to_string()))
    }

    /// Imports an RRD into the daemon's store under the name: as a file, or as a dump if no file can hold it.
    ///
    /// # Errors
    /// The daemon's; that it does not support it.
    pub(crate) fn import(&self, rrd: &Rrd, existing: Existing) -> Result {
        let current_rows = vec![0; rrd.definition.rra.len()];
        let bytes = match encode(rrd, &current_rows) {
            Ok(bytes) => bytes,
            Err(error) => {
                let refused = |_| Failure::new(error.named(&String::from_utf8_lossy(&self.name)).to_string());
                let mut text = Vec::new();
                dump(rrd, Header::Dtd, &mut |_, _| {}, &mut text).map_err(refused)?;
                text
            }
        };
        let done = self.daemon.import(&self.name, &bytes, existing == Existing::Refuse);
        done.map_err(|error| self.failure(error))
    }
}

impl Tool {
    /// The address of the daemon: the option's, else the environment's.
    ///
    /// # Errors
    /// When the option is used in a session that is confined to a directory: its operator chooses the daemon.
    pub(crate) fn address(&self, option: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
        named_address(&self.environment, option).map(|address| address.map(<[u8]>::to_vec))
    }

    /// Locates the RRD called `word` according to a policy. `open` opens or uses the file, when the search
    /// gets there; `option` is the daemon given to the command.
    ///
    /// # Errors
    /// What prevents it, in RRDtool's words.
    pub(crate) fn locate<T>(
        &mut self,
        policy: Policy,
        word: &[u8],
        option: Option<&[u8]>,
        open: impl FnOnce(&Path, &Environment) -> Result<T, rrd_file::Error>,
    ) -> Result<Location<T>> {
        let Tool { environment, link, .. } = self;
        let path = environment.path(word)?;
        let mut search =
            Search { environment, link, path, word, option, found: Found::Unknown, flushed: None };
        let mut open = Some(open);
        for &place in policy.0 {
            if place != Place::File {
                if let Some(remote) = search.look(place)? {
                    return Ok(Location::Remote(remote));
                }
                continue;
            }
            let Some(open) = open.take() else { continue };
            match open(path, search.environment) {
                Ok(file) => return Ok(Location::Local(file)),
                Err(error) => search.note(policy, error)?,
            }
        }
        Err(match search.found {
            Found::Nothing(failure) => failure,
            _ => Failure::of_name("opening '", word, "': it was replaced while it was used"),
        })
    }

    /// Locates an RRD for reading.
    ///
    /// # Errors
    /// As [`Tool::locate`].
    pub(crate) fn read_target(
        &mut self,
        policy: Policy,
        word: &[u8],
        option: Option<&[u8]>,
    ) -> Result<Location<Box<ReadFile>>> {
        self.locate(policy, word, option, |path, environment| {
            ReadFile::open(path, environment.locking).map(Box::new)
        })
    }

    /// Locates where to create or change an RRD; the caller opens the file.
    ///
    /// # Errors
    /// As [`Tool::locate`].
    pub(crate) fn write_target(
        &mut self,
        policy: Policy,
        word: &[u8],
        option: Option<&[u8]>,
    ) -> Result<Location<PathBuf>> {
        self.locate(policy, word, option, |path, _| Ok(path.to_path_buf()))
    }

    /// Writes a whole RRD to where a name leads ([`Policy::PUT`]).
    ///
    /// # Errors
    /// What prevents it, in RRDtool's words.
    pub(crate) fn put(
        &mut self,
        word: &[u8],
        rrd: &Rrd,
        existing: Existing,
        option: Option<&[u8]>,
    ) -> Result {
        let path = match self.write_target(Policy::PUT, word, option)? {
            Location::Remote(remote) => return remote.import(rrd, existing),
            Location::Local(path) => path,
        };
        write_file(&path, rrd, existing).map_err(|error| match error {
            rrd_file::Error::Io { error, .. } => Failure::of_name(
                "a file error occurred while creating '",
                word,
                &format!("': {}", system_text(&error)),
            ),
            error => file_failure(&error),
        })
    }
}

fn named_address<'a>(environment: &'a Environment, option: Option<&'a [u8]>) -> Result<Option<&'a [u8]>> {
    match option {
        Some(_) if environment.confined_to.is_some() => {
            Err(Failure::new("--daemon: Permission denied in a session confined to a directory"))
        }
        // To RRDtool an empty option means none, so the environment counts.
        Some(address) if !address.is_empty() => Ok(Some(address)),
        _ => Ok(environment.daemon.as_deref()),
    }
}

/// What is known about the file of the name.
enum Found {
    /// It has not been opened yet.
    Unknown,
    /// It is this placeholder.
    Placeholder(Placeholder),
    /// There is no file; the failure of the search if no place is left.
    Nothing(Failure),
}

/// A search in progress.
struct Search<'s> {
    environment: &'s Environment,
    link: &'s mut Link,
    path: &'s Path,
    word: &'s [u8],
    option: Option<&'s [u8]>,
    found: Found,
    /// The daemon that flushed.
    flushed: Option<Arc<Daemon>>,
}

impl Search<'_> {
    /// Looks at a place other than the file.
    fn look(&mut self, place: Place) -> Result<Option<Remote>> {
        match place {
            Place::Cached => Ok(self.cached(false)),
            Place::CachedToWrite => Ok(self.cached(true)),
            Place::Writable => self.check_writable().map(|()| None),
            Place::Named(unreachable) => self.named(unreachable),
            Place::Flush => {
                let address = named_address(self.environment, self.option)?;
                self.flushed = self.link.reach(address);
                if let Some(daemon) = &self.flushed {
                    Remote::named(Arc::clone(daemon), self.word, self.environment)?.flush()?;
                }
                Ok(None)
            }
            Place::Option => match self.option.filter(|address| !address.is_empty()) {
                Some(_) => self.named(Unreachable::Fail),
                None => Ok(None),
            },
            Place::Placeholder(whom) => self.placeholder(whom),
            Place::Tree => Ok(self.tree()),
            Place::Ours => self.ours(),
            Place::Environment => match (&self.found, &self.environment.daemon) {
                (Found::Nothing(_), Some(address)) => {
                    Remote::named(self.link.connect(address)?, self.word, self.environment).map(Some)
                }
                _ => Ok(None),
            },
            Place::File => Ok(None),
        }
    }

    fn check_writable(&self) -> Result {
        match rrd_file::placeholder::read(self.path) {
            Ok(Some(_)) => rrd_file::daemon_address::check_writable(self.path).map_err(|error| {
                Failure::of_name("opening '", self.word, &format!("': {}", system_text(&error)))
            }),
            _ => Ok(()),
        }
    }

    fn cached(&mut self, to_write: bool) -> Option<Remote> {
        let cache = self.link.placeholders()?;
        let rrd = cache.find(self.word, to_write, || FileId::at(self.path))?;
        match self.link.connect(&rrd.address) {
            Ok(daemon) => Some(self.of_store(daemon, rrd)),
            Err(_) => {
                cache.forget(self.word);
                None
            }
        }
    }

    fn named(&mut self, unreachable: Unreachable) -> Result<Option<Remote>> {
        let Some(address) = named_address(self.environment, self.option)? else { return Ok(None) };
        let daemon = match unreachable {
            _ if must_reach(address) => Some(self.link.connect(address)?),
            Unreachable::Fail => Some(self.link.connect(address)?),
            Unreachable::Complain => self.link.reach(Some(address)),
            Unreachable::Ignore => self.link.connect(address).ok(),
        };
        daemon.map(|daemon| Remote::named(daemon, self.word, self.environment)).transpose()
    }

    fn placeholder(&mut self, whom: Whom) -> Result<Option<Remote>> {
        if matches!(self.found, Found::Unknown)
            && let Ok(Some(placeholder)) = rrd_file::placeholder::read(self.path)
        {
            self.found = Found::Placeholder(placeholder);
        }
        let Found::Placeholder(placeholder) = &self.found else { return Ok(None) };
        let daemon = match whom {
            Whom::Store => None,
            Whom::Flushed => self.flushed.take(),
            Whom::Named => match named_address(self.environment, self.option)? {
                Some(address) => Some(self.link.connect(address)?),
                None => None,
            },
        };
        if let Some(daemon) = daemon {
            return Remote::named(daemon, self.word, self.environment).map(Some);
        }
        let refuse = |why: &str| Failure::of_name("opening '", self.word, &format!("': {why}"));
        let file = self.link.placeholders().and_then(|_| FileId::at(self.path));
        let rrd = RemoteRrd::of(self.path, placeholder).map_err(|error| refuse(&error.to_string()))?;
        let daemon = self.link.connect(&rrd.address).map_err(|failure| {
            let address = String::from_utf8_lossy(&rrd.address);
            refuse(&format!("a store has it, and its daemon at {address} does not answer: {failure}"))
        })?;
        if let (Some(cache), Some(file)) = (self.link.placeholders(), file) {
            cache.keep(self.word, self.path, file, placeholder, rrd.clone());
        }
        Ok(Some(self.of_store(daemon, rrd)))
    }

    fn ours(&mut self) -> Result<Option<Remote>> {
        let Some(address) = named_address(self.environment, self.option)? else { return Ok(None) };
        if self.path.symlink_metadata().is_ok() {
            return Ok(None);
        }
        match self.link.connect(address) {
            Ok(daemon) if daemon.is_ours() => Remote::named(daemon, self.word, self.environment).map(Some),
            Err(failure) if must_reach(address) => Err(failure),
            _ => Ok(None),
        }
    }

    fn tree(&mut self) -> Option<Remote> {
        if self.path.symlink_metadata().is_ok() {
            return None;
        }
        let (address, name) = rrd_file::daemon_address::above(self.path)?;
        let daemon = self.link.connect(address.as_bytes()).ok()?;
        let rrd = RemoteRrd { address: address.into_bytes(), name: name.as_bytes().to_vec() };
        Some(self.of_store(daemon, rrd))
    }

    fn of_store(&self, daemon: Arc<Daemon>, rrd: RemoteRrd) -> Remote {
        Remote { daemon, name: rrd.name, in_place_of: Some(self.word.to_vec()) }
    }

    /// Records why the file could not be opened, if another place is left.
    fn note(&mut self, policy: Policy, error: rrd_file::Error) -> Result {
        let later = policy.0.contains(&Place::Environment) && self.environment.daemon.is_some();
        self.found = match error {
            rrd_file::Error::Placeholder { placeholder, .. } => Found::Placeholder(placeholder),
            error if later && is_missing(&error) => Found::Nothing(file_failure(&error)),
            error => return Err(file_failure(&error)),
        };
        Ok(())
    }
}

/// Whether the file does not exist.
fn is_missing(error: &rrd_file::Error) -> bool {
    matches!(error, rrd_file::Error::Open { error, .. } if error.kind() == std::io::ErrorKind::NotFound)
}

/// Converts a daemon's refusal to the words for a file: without its own prefix, and with the name as given
/// instead of the daemon's path.
fn of_file(text: &[u8], name: &[u8], word: &[u8]) -> Vec<u8> {
    let prefixes: [&[u8]; 2] = [b"RRD Error: ", b"rrd_fetch_r failed: "];
    let text = prefixes.iter().find_map(|prefix| text.strip_prefix(*prefix)).unwrap_or(text);
    let mut parts = text.splitn(3, |&byte| byte == b'\'');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(before), Some(path), Some(after)) if path == name || path.ends_with(&[b"/", name].concat()) => {
            [before, b"'", word, b"'", after].concat()
        }
        _ => text.to_vec(),
    }
}

/// The text after `ERROR: ` for a file that could not be used.
pub(crate) fn file_failure(error: &rrd_file::Error) -> Failure {
    Failure::new(error.to_string())
}
