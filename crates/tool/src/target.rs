//! Where a verb finds an RRD: a file here, or a store behind a daemon.
//!
//! A daemon that is named, by option or RRDCACHED_ADDRESS, is asked; one that cannot be reached leaves the
//! file, and a complaint at the end. Without one the file is read - and if a placeholder stands there, the
//! daemon of its store is asked: where that listens it has said beside the tree ([`store::beacon`]).

use std::path::Path;

use protocol::rrdcached::client::Answer;
use store::direct::{DirectError, ReadFile};
use store::placeholder::Placeholder;

use crate::Tool;
use crate::daemon::{Daemon, Link};
use crate::failure::{Done, Failure};
use crate::known::{Place, Seen};

/// An RRD that can be read.
pub enum Target<'t> {
    /// A file, open.
    File(Box<ReadFile>),
    /// One of a daemon's.
    Remote(Remote<'t>),
}

/// An RRD of a daemon's.
pub struct Remote<'t> {
    /// Whom to ask.
    pub daemon: Daemon<'t>,
    /// What it is called there.
    pub name: Vec<u8>,
    /// Whether its placeholder led here, so that all is to be as if the file were here.
    pub behind_placeholder: bool,
}

impl Remote<'_> {
    /// Sends a command about the RRD, with the words behind its name.
    ///
    /// # Errors
    /// What the daemon says.
    pub fn ask(&mut self, command: &str, words: &[&[u8]]) -> Done<Answer> {
        let words: Vec<&[u8]> = std::iter::once(&*self.name).chain(words.iter().copied()).collect();
        self.daemon.ask(command, &words)
    }
}

impl Tool {
    /// The address of the daemon to ask: the option's, else the environment's.
    ///
    /// # Errors
    /// An option in a session that is confined to a directory: its operator names the daemon.
    pub(crate) fn address(&self, option: Option<&[u8]>) -> Done<Option<Vec<u8>>> {
        match option {
            Some(_) if self.surroundings.confined_to.is_some() => {
                Err(Failure::new("--daemon: Permission denied in a session confined to a directory"))
            }
            // An empty option means none to RRDtool, and the environment counts again.
            Some(address) if !address.is_empty() => Ok(Some(address.to_vec())),
            _ => Ok(self.surroundings.daemon.clone()),
        }
    }

    /// The RRD of a name: a daemon's when one is named and reached, else the file's or its store's.
    ///
    /// # Errors
    /// What stands in the way of reading it, in RRDtool's words.
    pub(crate) fn target(&mut self, word: &[u8], daemon_option: Option<&[u8]>) -> Done<Target<'_>> {
        let path = self.surroundings.path(word)?;
        let address = self.address(daemon_option)?;
        let locking = self.surroundings.locking;
        if self.link.reach(address.as_deref()) {
            return remote(self.link.current(), word).map(Target::Remote);
        }
        match ReadFile::open(path, locking) {
            Ok(file) => Ok(Target::File(Box::new(file))),
            Err(DirectError::Placeholder { placeholder, .. }) => {
                behind(&mut self.link, path, word, &placeholder).map(Target::Remote)
            }
            Err(error) => Err(file_failure(&error)),
        }
    }

    /// The file of a name; what a daemon has not written yet is flushed into it first. A placeholder's RRD is
    /// the daemon's.
    ///
    /// # Errors
    /// As [`Tool::target`].
    pub(crate) fn flushed_target(&mut self, word: &[u8], daemon_option: Option<&[u8]>) -> Done<Target<'_>> {
        let path = self.surroundings.path(word)?;
        let address = self.address(daemon_option)?;
        let locking = self.surroundings.locking;
        let reached = self.link.reach(address.as_deref());
        if reached {
            flush(self.link.current(), word)?;
        }
        match ReadFile::open(path, locking) {
            Ok(file) => Ok(Target::File(Box::new(file))),
            Err(DirectError::Placeholder { .. }) if reached => {
                remote(self.link.current(), word).map(Target::Remote)
            }
            Err(DirectError::Placeholder { placeholder, .. }) => {
                behind(&mut self.link, path, word, &placeholder).map(Target::Remote)
            }
            Err(error) => Err(file_failure(&error)),
        }
    }

    /// The RRD of a name as the C functions that know no daemon see it: the file, or its store's behind a
    /// placeholder; where there is neither, that of the daemon which the environment names.
    ///
    /// # Errors
    /// As [`Tool::target`].
    pub(crate) fn target_here_first(&mut self, word: &[u8]) -> Done<Target<'_>> {
        if let Some(place) = self.known_place(word)
            && self.link.connect(&place.address).is_ok()
        {
            return Ok(Target::Remote(self.link.at(place)));
        }
        let path = self.surroundings.path(word)?;
        match ReadFile::open(path, self.surroundings.locking) {
            Ok(file) => Ok(Target::File(Box::new(file))),
            Err(DirectError::Placeholder { placeholder, .. }) => {
                behind(&mut self.link, path, word, &placeholder).map(Target::Remote)
            }
            Err(error) => match self.surroundings.daemon.clone().filter(|_| is_missing(&error)) {
                Some(address) => remote(self.link.connect(&address)?, word).map(Target::Remote),
                None => Err(file_failure(&error)),
            },
        }
    }

    /// Where the RRD of a placeholder is that was met before and is still the same.
    pub(crate) fn known_place(&self, word: &[u8]) -> Option<Place> {
        let seen = Seen::at(self.surroundings.path(word).ok()?)?;
        self.link.known()?.find(word, seen)
    }

    /// The RRD of the store whose placeholder stands at a name; `None` when none does.
    ///
    /// # Errors
    /// A placeholder whose store cannot be asked.
    pub(crate) fn placeholder(&mut self, word: &[u8]) -> Done<Option<Remote<'_>>> {
        let path = self.surroundings.path(word)?;
        match store::placeholder::read(path) {
            Ok(Some(placeholder)) => behind(&mut self.link, path, word, &placeholder).map(Some),
            _ => Ok(None),
        }
    }
}

/// An RRD of a daemon's that goes by this word here.
pub(crate) fn remote<'l>(daemon: Daemon<'l>, word: &[u8]) -> Done<Remote<'l>> {
    let name = daemon.name(word)?;
    Ok(Remote { daemon, name, behind_placeholder: false })
}

/// Has the daemon write down what it knows of an RRD.
pub(crate) fn flush(daemon: Daemon<'_>, word: &[u8]) -> Done {
    remote(daemon, word)?.ask("flush", &[]).map(|_| ())
}

/// The RRD behind a placeholder, in its store's daemon.
fn behind<'l>(link: &'l mut Link, path: &Path, word: &[u8], placeholder: &Placeholder) -> Done<Remote<'l>> {
    let refuse = |why: &str| Failure::of_name("opening '", word, &format!("': {why}"));
    let seen = link.known().and_then(|_| Seen::at(path));
    let address = store::beacon::find(path, placeholder).map_err(|error| refuse(&error.to_string()))?;
    link.connect(address.as_bytes()).map_err(|failure| {
        refuse(&format!("a store has it, and its daemon at {address} does not answer: {failure}"))
    })?;
    // Its name there, wherever the tree is.
    let place = Place { address: address.into_bytes(), name: placeholder.name.as_bytes().to_vec() };
    if let (Some(known), Some(seen)) = (link.known(), seen) {
        // Read once more: what was seen is what it says only if it still stood there after it was seen.
        let same = store::placeholder::read(path).is_ok_and(|found| found.as_ref() == Some(placeholder));
        if same {
            known.keep(word, seen, place.clone());
        }
    }
    Ok(link.at(place))
}

/// Whether there is no file of a name.
pub(crate) fn is_missing(error: &DirectError) -> bool {
    matches!(error, DirectError::Open { error, .. } if error.kind() == std::io::ErrorKind::NotFound)
}

impl Link {
    /// The RRD at a place whose daemon was connected to last.
    pub(crate) fn at(&mut self, place: Place) -> Remote<'_> {
        Remote { daemon: self.current(), name: place.name, behind_placeholder: true }
    }
}

/// Why a file could not be used, as the text behind `ERROR: `.
pub(crate) fn file_failure(error: &DirectError) -> Failure {
    Failure::new(error.to_string())
}
