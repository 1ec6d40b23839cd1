//! Where a verb finds an RRD: a file here, or a store behind a daemon.
//!
//! A daemon that is named, by option or RRDCACHED_ADDRESS, is asked; one that cannot be reached leaves the
//! file, and a complaint at the end. Without one the file is read - and if a placeholder stands there, the
//! daemon of its store is asked: where that listens it has said beside the tree ([`store::beacon`]).

use std::path::Path;

use protocol::rrdcached::client::Answer;
use protocol::rrdcached::limits::PIECE_BYTES;
use protocol::rrdcached::whole;
use rrd::codec::file::{decode, encode};
use rrd::codec::xml::{RestoreOptions, restore};
use rrd::content::Rrd;
use store::direct::{DirectError, Existing, ReadFile, write_file};
use store::placeholder::Placeholder;

use crate::Tool;
use crate::daemon::{Daemon, Link, line};
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
    /// Its name as it was given, where a placeholder led here: all is to be as if the file were there.
    pub in_place_of: Option<Vec<u8>>,
}

impl Remote<'_> {
    /// Sends a command about the RRD, with the words behind its name.
    ///
    /// # Errors
    /// What the daemon says.
    pub fn ask(&mut self, command: &str, words: &[&[u8]]) -> Done<Answer> {
        let words: Vec<&[u8]> = std::iter::once(&*self.name).chain(words.iter().copied()).collect();
        let answer = self.daemon.exchange(command, &words)?;
        if answer.code < 0 { Err(self.refusal(&answer)) } else { Ok(answer) }
    }

    /// The same with a command that only our daemon knows; `None` from another.
    ///
    /// # Errors
    /// What the daemon says.
    pub fn ask_ours(&mut self, command: &str, words: &[&[u8]]) -> Done<Option<Answer>> {
        let words: Vec<&[u8]> = std::iter::once(&*self.name).chain(words.iter().copied()).collect();
        match self.daemon.exchange_ours(command, &words)? {
            Some(answer) if answer.code < 0 => Err(self.refusal(&answer)),
            answer => Ok(answer),
        }
    }

    fn refusal(&self, answer: &Answer) -> Failure {
        match &self.in_place_of {
            Some(word) => Failure::new(of_file(answer.text.as_bytes(), &self.name, word)),
            None => self.daemon.refusal(answer),
        }
    }

    /// All of the RRD, bit for bit; `None` when the daemon does not give it, or no `.rrd` file can hold it.
    ///
    /// # Errors
    /// An answer that is no RRD.
    pub(crate) fn whole(&mut self) -> Done<Option<Rrd>> {
        // What is wrong with the name the next question tells, in words that are known.
        let Ok(Some(answer)) = self.ask_ours("export", &[]) else { return Ok(None) };
        let mut bytes = Vec::new();
        for line in &answer.lines {
            whole::push_bytes(line, &mut bytes)
                .ok_or_else(|| Failure::new("rrdcached answers what is no export"))?;
        }
        match decode(&bytes) {
            Ok(parts) => Ok(Some(parts.rrd)),
            Err(error) => Err(Failure::new(error.named(&String::from_utf8_lossy(&self.name)).to_string())),
        }
    }

    /// All of the RRD; from a daemon that only dumps, with a dump's digits.
    ///
    /// # Errors
    /// What the daemon says.
    pub(crate) fn content(&mut self) -> Done<Rrd> {
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
    pub(crate) fn import(&mut self, rrd: &Rrd, existing: Existing) -> Done {
        let current_rows = vec![0; rrd.definition.rra.len()];
        let bytes = encode(rrd, &current_rows)
            .map_err(|error| Failure::new(error.named(&String::from_utf8_lossy(&self.name)).to_string()))?;
        let count = bytes.len().to_string();
        let lines = bytes.chunks(PIECE_BYTES).enumerate().map(|(index, piece)| {
            let (offset, piece) = ((index * PIECE_BYTES).to_string(), whole::word(piece));
            let mut words: Vec<&[u8]> = vec![&self.name];
            if existing == Existing::Refuse {
                words.push(b"-O");
            }
            words.extend([count.as_bytes(), offset.as_bytes(), piece.as_bytes()]);
            line("import", &words)
        });
        // The daemon holds the pieces by connection.
        let answer = self.daemon.exchange_in_turn(lines)?;
        if answer.code < 0 { Err(self.refusal(&answer)) } else { Ok(()) }
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
            return Ok(Target::Remote(self.link.at(place, word)));
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
        self.link.known()?.find(word, || Seen::at(self.surroundings.path(word).ok()?))
    }

    /// Whether a placeholder stands at a name.
    ///
    /// # Errors
    /// A name that is not allowed.
    pub(crate) fn is_placeholder(&self, word: &[u8]) -> Done<bool> {
        Ok(matches!(store::placeholder::read(self.surroundings.path(word)?), Ok(Some(_))))
    }

    /// The RRD of the store whose placeholder stands at a name, as the daemon that is named has it, else the
    /// daemon of the store; `None` when no placeholder stands there.
    ///
    /// # Errors
    /// A daemon that is named and does not answer; a placeholder whose store cannot be asked.
    pub(crate) fn stored(&mut self, word: &[u8], daemon_option: Option<&[u8]>) -> Done<Option<Remote<'_>>> {
        if !self.is_placeholder(word)? {
            return Ok(None);
        }
        match self.address(daemon_option)? {
            Some(address) => remote(self.link.connect(&address)?, word).map(Some),
            None => self.placeholder(word),
        }
    }

    /// What an RRD of this name would be of the store in whose tree it lies; `None` when something stands there, or
    /// no store has the tree, or its daemon cannot be reached: then a file is made, which the daemon takes in later.
    ///
    /// # Errors
    /// A name that is not allowed.
    pub(crate) fn in_tree(&mut self, word: &[u8]) -> Done<Option<Remote<'_>>> {
        let path = self.surroundings.path(word)?;
        if path.symlink_metadata().is_ok() {
            return Ok(None);
        }
        let Some((address, name)) = store::beacon::above(path) else { return Ok(None) };
        let name = name.as_bytes().to_vec();
        let remote = |daemon| Remote { daemon, name, in_place_of: Some(word.to_vec()) };
        Ok(self.link.connect(address.as_bytes()).ok().map(remote))
    }

    /// Puts a whole RRD where a name is: into the store whose placeholder stands there, or whose tree would have it
    /// there, or into a file. A daemon that is named by an option is asked in any case.
    ///
    /// # Errors
    /// What stands in the way, in RRDtool's words.
    pub(crate) fn put(
        &mut self,
        word: &[u8],
        rrd: &Rrd,
        existing: Existing,
        daemon_option: Option<&[u8]>,
    ) -> Done {
        let path = self.surroundings.path(word)?.to_path_buf();
        if let Some(option) = daemon_option.filter(|address| !address.is_empty()) {
            let address = self.address(Some(option))?.unwrap_or_default();
            return remote(self.link.connect(&address)?, word)?.import(rrd, existing);
        }
        if let Some(mut remote) = self.stored(word, None)? {
            return remote.import(rrd, existing);
        }
        if let Some(mut remote) = self.in_tree(word)? {
            return remote.import(rrd, existing);
        }
        write_file(&path, rrd, existing).map_err(|error| match error {
            DirectError::Io { error, .. } => Failure::of_name(
                "a file error occurred while creating '",
                word,
                &format!("': {}", crate::failure::system_text(&error)),
            ),
            error => file_failure(&error),
        })
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
    Ok(Remote { daemon, name, in_place_of: None })
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
    Ok(link.at(place, word))
}

/// Whether there is no file of a name.
pub(crate) fn is_missing(error: &DirectError) -> bool {
    matches!(error, DirectError::Open { error, .. } if error.kind() == std::io::ErrorKind::NotFound)
}

impl Link {
    /// The RRD at a place whose daemon was connected to last; it goes by `word` here.
    pub(crate) fn at(&mut self, place: Place, word: &[u8]) -> Remote<'_> {
        Remote { daemon: self.current(), name: place.name, in_place_of: Some(word.to_vec()) }
    }
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

/// Why a file could not be used, as the text behind `ERROR: `.
pub(crate) fn file_failure(error: &DirectError) -> Failure {
    Failure::new(error.to_string())
}
