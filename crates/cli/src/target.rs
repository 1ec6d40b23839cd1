//! Where an RRD is: in a file here, or in a store behind a daemon.
//!
//! Each verb has a [`Policy`]: the places where it looks for an RRD, in order. [`Tool::locate`] is the only function that
//! looks, so the whole answer to "where is it?" is the table of policies below.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use client::placeholder::FileId;
use client::{ClientError, Daemon, RemoteRrd};
use protocol::frames::code::ErrorCode;
use protocol::rrdcached::client::Answer;
use rrd::codec::file::{decode, encode};
use rrd::codec::xml::{RestoreOptions, restore};
use rrd::content::Rrd;
use rrd::fetch::{FetchRequest, FetchRows};
use store::direct::{DirectError, Existing, ReadFile, write_file};
use store::placeholder::Placeholder;

use crate::Tool;
use crate::daemon::{Link, failure};
use crate::environment::Environment;
use crate::failure::{Failure, Result, system_text};

/// A place where an RRD may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The RRD of a placeholder that this process has met at the name before.
    Cached,
    /// The daemon that the option names, else the environment.
    Named(Unreachable),
    /// No place: the named daemon, if it can be reached, writes what waits for the file.
    Flush,
    /// The daemon that the option names, which must be reached.
    Option,
    /// The file of the name. A placeholder is no RRD, and the search goes on.
    File,
    /// The RRD of the placeholder that is at the name.
    Placeholder(Whom),
    /// Where nothing is at the name: the store in whose tree it lies, if its daemon can be reached.
    Tree,
    /// Where the file is missing: the daemon that the environment names.
    Environment,
}

/// What happens when a named daemon cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unreachable {
    Fail,
    /// The search goes on, and the command complains at its end.
    Complain,
    /// The search goes on. Compat: `create` does not miss a daemon.
    Ignore,
}

/// Which daemon is asked for the RRD of a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whom {
    /// That of the store.
    Store,
    /// The one that was reached to flush, else that of the store.
    Flushed,
    /// The one that option or environment name, else that of the store.
    Named,
}

/// Where a verb looks for an RRD, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy(&'static [Place]);

impl Policy {
    /// `info`, `first`, `last`, `fetch`, and what `create` reads.
    pub(crate) const READ: Policy =
        Policy(&[Place::Named(Unreachable::Complain), Place::File, Place::Placeholder(Whom::Store)]);
    /// `dump`, `lastupdate`, and DEFs.
    pub(crate) const READ_FLUSHED: Policy =
        Policy(&[Place::Flush, Place::File, Place::Placeholder(Whom::Flushed)]);
    /// The C functions that know no daemon.
    pub(crate) const HERE_FIRST: Policy =
        Policy(&[Place::Cached, Place::File, Place::Placeholder(Whom::Store), Place::Environment]);
    /// `update`.
    pub(crate) const UPDATE: Policy =
        Policy(&[Place::Named(Unreachable::Fail), Place::File, Place::Placeholder(Whom::Store)]);
    /// `updatev`. Compat: the environment's daemon is not asked for a file.
    pub(crate) const UPDATE_LISTED: Policy =
        Policy(&[Place::Option, Place::File, Place::Placeholder(Whom::Named)]);
    /// `create`.
    pub(crate) const CREATE: Policy = Policy(&[
        Place::Named(Unreachable::Ignore),
        Place::Placeholder(Whom::Store),
        Place::Tree,
        Place::File,
    ]);
    /// `restore`: where a whole RRD is put.
    pub(crate) const PUT: Policy =
        Policy(&[Place::Option, Place::Placeholder(Whom::Named), Place::Tree, Place::File]);
    /// `tune` and `resize`: the RRD itself, or the store's.
    pub(crate) const CHANGE: Policy = Policy(&[Place::Placeholder(Whom::Named), Place::File]);
    /// What `resize` copies.
    pub(crate) const COPY: Policy = Policy(&[Place::File, Place::Placeholder(Whom::Named)]);
}

/// Where an RRD is.
pub enum Location<T> {
    /// In a file: what opening that gave.
    Local(T),
    /// In a daemon's store.
    Remote(Remote),
}

/// An RRD of a daemon's.
#[derive(Debug)]
pub struct Remote {
    /// The daemon to ask.
    pub daemon: Arc<Daemon>,
    /// What it is called there.
    pub name: Vec<u8>,
    /// Its name as it was given, where a placeholder led here: all is to be as if the file were there.
    pub in_place_of: Option<Vec<u8>>,
}

impl Remote {
    /// A daemon's RRD that goes by this word here.
    ///
    /// # Errors
    /// A word that names no RRD of that daemon.
    pub fn named(daemon: Arc<Daemon>, word: &[u8]) -> Result<Remote> {
        let name = daemon.name(word).map_err(|error| failure(daemon.address(), error))?;
        Ok(Remote { daemon, name, in_place_of: None })
    }

    /// Sends a command about the RRD, with the words that follow its name.
    ///
    /// # Errors
    /// What the daemon says.
    pub fn ask(&self, command: &str, words: &[&[u8]]) -> Result<Answer> {
        self.daemon.ask(command, &self.words(words)).map_err(|error| self.failure(error))
    }

    /// The same with a command that only our daemon knows; `None` = it is another's.
    ///
    /// # Errors
    /// What the daemon says.
    pub fn ask_ours(&self, command: &str, words: &[&[u8]]) -> Result<Option<Answer>> {
        self.daemon.ask_ours(command, &self.words(words)).map_err(|error| self.failure(error))
    }

    fn words<'w>(&'w self, words: &[&'w [u8]]) -> Vec<&'w [u8]> {
        std::iter::once(&*self.name).chain(words.iter().copied()).collect()
    }

    /// Has the daemon write what it knows of the RRD.
    pub(crate) fn flush(&self) -> Result {
        self.ask("flush", &[]).map(|_| ())
    }

    /// Updates it.
    ///
    /// # Errors
    /// What the daemon says.
    pub(crate) fn update(&self, readings: &[Vec<u8>]) -> Result {
        let words: Vec<&[u8]> = readings.iter().map(Vec::as_slice).collect();
        let done = self.daemon.update(&self.name, &words);
        done.map_err(|error| failure(self.daemon.address(), error))
    }

    /// Updates it by one reading, or passes over one that is not later than the last update.
    ///
    /// # Errors
    /// What the daemon says.
    pub(crate) fn update_unless_past(&self, reading: &[u8]) -> Result {
        match self.daemon.update(&self.name, &[reading]) {
            Err(error) if error.is(ErrorCode::IllegalTime) => Ok(()),
            done => done.map_err(|error| failure(self.daemon.address(), error)),
        }
    }

    /// Its rows. Compat: only our daemon knows resolutions.
    ///
    /// # Errors
    /// What the daemon says.
    pub fn fetch(&self, request: &FetchRequest) -> Result<FetchRows> {
        self.daemon.fetch(&self.name, request).map_err(|error| self.failure(error))
    }

    fn failure(&self, error: ClientError) -> Failure {
        match (&self.in_place_of, error) {
            (Some(word), ClientError::Refused { text, .. }) => Failure::new(of_file(&text, &self.name, word)),
            (_, error) => failure(self.daemon.address(), error),
        }
    }

    /// All of the RRD, bit for bit; `None` when the daemon does not give it, or no `.rrd` file can hold it.
    ///
    /// # Errors
    /// An answer that is no RRD.
    pub(crate) fn whole(&self) -> Result<Option<Rrd>> {
        let bytes = match self.daemon.export(&self.name) {
            Ok(Some(bytes)) => bytes,
            Err(error @ ClientError::NotAnAnswer(_)) => return Err(self.failure(error)),
            // The next request tells what is wrong with the name, in words that are known.
            _ => return Ok(None),
        };
        match decode(&bytes) {
            Ok(parts) => Ok(Some(parts.rrd)),
            Err(error) => Err(Failure::new(error.named(&String::from_utf8_lossy(&self.name)).to_string())),
        }
    }

    /// All of the RRD; from a daemon that only dumps, with a dump's digits.
    ///
    /// # Errors
    /// What the daemon says.
    pub(crate) fn content(&self) -> Result<Rrd> {
        if let Some(rrd) = self.whole()? {
            return Ok(rrd);
        }
        let xml = self.ask("dump", &[])?.lines.join(&b'\n');
        let options = RestoreOptions { range_check: false, long_names: true };
        restore(&xml, options).map_err(|error| Failure::new(error.to_string()))
    }

    /// Has the daemon take an RRD in under the name.
    ///
    /// # Errors
    /// What the daemon says; that it does not know how.
    pub(crate) fn import(&self, rrd: &Rrd, existing: Existing) -> Result {
        let current_rows = vec![0; rrd.definition.rra.len()];
        let bytes = encode(rrd, &current_rows)
            .map_err(|error| Failure::new(error.named(&String::from_utf8_lossy(&self.name)).to_string()))?;
        let done = self.daemon.import(&self.name, &bytes, existing == Existing::Refuse);
        done.map_err(|error| self.failure(error))
    }
}

impl Tool {
    /// The address of the daemon to ask: the option's, else the environment's.
    ///
    /// # Errors
    /// An option in a session that is confined to a directory: its operator names the daemon.
    pub(crate) fn address(&self, option: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
        named_address(&self.environment, option).map(|address| address.map(<[u8]>::to_vec))
    }

    /// Finds the RRD called `word` by a policy. `open` opens the file or uses it, when the policy comes to that; `option`
    /// is the daemon that the command names.
    ///
    /// # Errors
    /// What stands in the way, in RRDtool's words.
    pub(crate) fn locate<T>(
        &mut self,
        policy: Policy,
        word: &[u8],
        option: Option<&[u8]>,
        open: impl FnOnce(&Path, &Environment) -> Result<T, DirectError>,
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

    /// Finds an RRD to read it.
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

    /// Finds where an RRD is to be made or changed; a file is left for the caller to open.
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

    /// Puts a whole RRD where a name is ([`Policy::PUT`]).
    ///
    /// # Errors
    /// What stands in the way, in RRDtool's words.
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
            DirectError::Io { error, .. } => Failure::of_name(
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
        // An empty option means none to RRDtool, and the environment counts again.
        Some(address) if !address.is_empty() => Ok(Some(address)),
        _ => Ok(environment.daemon.as_deref()),
    }
}

/// What is at the name.
enum Found {
    /// The file was not opened yet.
    Unknown,
    /// This placeholder.
    Placeholder(Placeholder),
    /// No file, and why that ends the search where no place is left.
    Nothing(Failure),
}

/// A search under way.
struct Search<'s> {
    environment: &'s Environment,
    link: &'s mut Link,
    path: &'s Path,
    word: &'s [u8],
    option: Option<&'s [u8]>,
    found: Found,
    /// The daemon that was told to flush.
    flushed: Option<Arc<Daemon>>,
}

impl Search<'_> {
    /// Looks at a place other than the file.
    fn look(&mut self, place: Place) -> Result<Option<Remote>> {
        match place {
            Place::Cached => Ok(self.cached()),
            Place::Named(unreachable) => self.named(unreachable),
            Place::Flush => {
                let address = named_address(self.environment, self.option)?;
                self.flushed = self.link.reach(address);
                if let Some(daemon) = &self.flushed {
                    Remote::named(Arc::clone(daemon), self.word)?.flush()?;
                }
                Ok(None)
            }
            Place::Option => match self.option.filter(|address| !address.is_empty()) {
                Some(_) => self.named(Unreachable::Fail),
                None => Ok(None),
            },
            Place::Placeholder(whom) => self.placeholder(whom),
            Place::Tree => Ok(self.tree()),
            Place::Environment => match (&self.found, &self.environment.daemon) {
                (Found::Nothing(_), Some(address)) => {
                    Remote::named(self.link.connect(address)?, self.word).map(Some)
                }
                _ => Ok(None),
            },
            Place::File => Ok(None),
        }
    }

    fn cached(&mut self) -> Option<Remote> {
        let cache = self.link.placeholders()?;
        let rrd = cache.find(self.word, || FileId::at(self.path))?;
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
            Unreachable::Fail => Some(self.link.connect(address)?),
            Unreachable::Complain => self.link.reach(Some(address)),
            Unreachable::Ignore => self.link.connect(address).ok(),
        };
        daemon.map(|daemon| Remote::named(daemon, self.word)).transpose()
    }

    fn placeholder(&mut self, whom: Whom) -> Result<Option<Remote>> {
        if matches!(self.found, Found::Unknown)
            && let Ok(Some(placeholder)) = store::placeholder::read(self.path)
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
            return Remote::named(daemon, self.word).map(Some);
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

    fn tree(&mut self) -> Option<Remote> {
        if self.path.symlink_metadata().is_ok() {
            return None;
        }
        let (address, name) = store::daemon_address::above(self.path)?;
        let daemon = self.link.connect(address.as_bytes()).ok()?;
        let rrd = RemoteRrd { address: address.into_bytes(), name: name.as_bytes().to_vec() };
        Some(self.of_store(daemon, rrd))
    }

    fn of_store(&self, daemon: Arc<Daemon>, rrd: RemoteRrd) -> Remote {
        Remote { daemon, name: rrd.name, in_place_of: Some(self.word.to_vec()) }
    }

    /// Notes why the file could not be opened, where that leaves another place to look at.
    fn note(&mut self, policy: Policy, error: DirectError) -> Result {
        let later = policy.0.contains(&Place::Environment) && self.environment.daemon.is_some();
        self.found = match error {
            DirectError::Placeholder { placeholder, .. } => Found::Placeholder(placeholder),
            error if later && is_missing(&error) => Found::Nothing(file_failure(&error)),
            error => return Err(file_failure(&error)),
        };
        Ok(())
    }
}

/// Whether there is no file of a name.
fn is_missing(error: &DirectError) -> bool {
    matches!(error, DirectError::Open { error, .. } if error.kind() == std::io::ErrorKind::NotFound)
}

/// What a daemon refuses, in the words for a file: without what it says of itself, and with the name as it was given
/// in the place of the path that it knows.
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

/// Why a file could not be used, as the text that follows `ERROR: `.
pub(crate) fn file_failure(error: &DirectError) -> Failure {
    Failure::new(error.to_string())
}
