//! Finds the store for `import` and `export`: a running daemon, or a directory that no daemon has open.

#[cfg(feature = "exchange")]
mod fill;

use std::path::Path;
use std::sync::Arc;

use client::{ClientError, Daemon, Wire};
use protocol::frames::code::ErrorCode;
use rrd::codec::file;
use server::logging;
use server::settings::{Settings, StripesSettings};
use store::engine::Engine;
use store::name::RrdName;

use super::address;

/// A store, accessed in one of two ways.
pub enum Peer {
    /// Through its daemon.
    Daemon(Box<Daemon>),
    /// Opened by this process.
    Store(Arc<dyn Engine>),
}

impl Peer {
    /// Finds the store: `given` is a directory or an address; else the daemon of RRDCACHED_ADDRESS, else that
    /// of `roundel serve` here. Only if it `may_create` one, an empty directory becomes a store.
    pub fn find(given: Option<&str>, may_create: bool) -> Result<Self, String> {
        if let Some(directory) = given.map(Path::new).filter(|path| path.is_dir()) {
            check_store(directory, may_create)?;
            // What opening it finds to be damaged is said here or nowhere: it is mended then.
            logging::start_for_command();
            return server::layout::open(&at_rest(directory)).map(Peer::Store);
        }
        connect(given, "start it, or name a daemon or a store's directory")
            .map(|daemon| Peer::Daemon(Box::new(daemon)))
    }

    /// Has a daemon on this machine take in a file of its own tree, which it then archives or keeps; false when the file is none, or the store has the RRD.
    pub fn take_in(&self, name: &RrdName, path: &Path, archive: bool) -> Result<bool, String> {
        use std::os::unix::ffi::OsStrExt;
        let Peer::Daemon(daemon) = self else { return Ok(false) };
        // A path on another machine is another file.
        let is_here = daemon.address().starts_with(b"unix:") || daemon.address().starts_with(b"/");
        let Ok(path) = std::fs::canonicalize(path) else { return Ok(false) };
        if !is_here {
            return Ok(false);
        }
        let how: &[u8] = if archive { b"ARCHIVE" } else { b"TAKE" };
        match daemon.ask_ours("adoption", &[how, name.as_bytes(), path.as_os_str().as_bytes()]) {
            Ok(answer) => Ok(answer.is_some_and(|answer| answer.lines == [b"1"])),
            // The socket does not accept the command: the content is sent.
            Err(error) if error.is(ErrorCode::Permission) => Ok(false),
            Err(error) => Err(told(error)),
        }
    }

    /// Imports the bytes of a `.rrd` file.
    pub fn import(&self, name: &RrdName, bytes: &[u8], no_overwrite: bool) -> Result<(), String> {
        match self {
            Peer::Daemon(daemon) => daemon.import(name.as_bytes(), bytes, no_overwrite).map_err(told),
            Peer::Store(engine) => {
                let parts =
                    file::decode(bytes).map_err(|error| error.named(&name.to_string()).to_string())?;
                engine.import(name.clone(), parts.rrd, no_overwrite).map_err(|error| error.to_string())
            }
        }
    }

    /// Exports an RRD as the bytes of a `.rrd` file.
    pub fn export(&self, name: &RrdName) -> Result<Vec<u8>, String> {
        match self {
            Peer::Daemon(daemon) => {
                let bytes = daemon.export(name.as_bytes()).map_err(told)?;
                bytes.ok_or_else(|| "the daemon does not know EXPORT: it is not Roundel".to_string())
            }
            Peer::Store(engine) => {
                let rrd = engine.read(name).map_err(|error| error.to_string())?;
                let current_rows = vec![0; rrd.definition.rra.len()];
                file::encode(&rrd, &current_rows).map_err(|error| error.to_string())
            }
        }
    }

    /// The names of all RRDs.
    pub fn names(&self) -> Result<Vec<Vec<u8>>, String> {
        match self {
            Peer::Daemon(daemon) => {
                daemon.list_all().map_err(|error| format!("cannot list the RRDs: {}", told(error)))
            }
            Peer::Store(engine) => engine.list(b"", true).map_err(|error| error.to_string()),
        }
    }

    /// Closes a store opened by this process.
    ///
    /// # Errors
    /// When it cannot be closed, or when something in it was damaged.
    pub fn close(self) -> Result<(), String> {
        match self {
            Peer::Daemon(_) => Ok(()),
            Peer::Store(engine) => {
                engine.stop().map_err(|error| error.to_string()).and_then(|()| match logging::error_count() {
                    0 => Ok(()),
                    _ => {
                        Err("the store is damaged: see above; what could be read of it was taken".to_string())
                    }
                })
            }
        }
    }
}

/// How a store at rest is opened.
fn at_rest(path: &Path) -> Settings {
    let mut settings = Settings::new(path.to_path_buf(), path.to_path_buf());
    if let server::settings::Layout::Stripes(stripes) = &mut settings.layout {
        // There is no tree of placeholders here; the daemon writes placeholders when it finds the names.
        *stripes = StripesSettings { placeholders: None, adopt: None, ..stripes.clone() };
    }
    settings
}

/// How the store at rest in a directory is opened.
///
/// # Errors
/// When there is no store.
pub fn settings_of(directory: &Path) -> Result<Settings, String> {
    check_store(directory, false)?;
    logging::start_for_command();
    Ok(at_rest(directory))
}

/// Whether a directory is a store, or may become one.
fn check_store(directory: &Path, may_create: bool) -> Result<(), String> {
    let failed = |error| format!("cannot read \"{}\": {error}", directory.display());
    let entries = std::fs::read_dir(directory).map_err(failed)?;
    let names: Vec<_> = entries.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let is_part = |name: &std::ffi::OsStr| name == "STORE" || name.as_encoded_bytes().starts_with(b"shard-");
    if names.iter().any(|entry| is_part(&entry.file_name())) || (may_create && names.is_empty()) {
        return Ok(());
    }
    let hint =
        if may_create { "give a store's directory, or an empty one" } else { "give a store's directory" };
    Err(format!(
        "\"{}\" is no store: it has neither a file STORE nor a directory shard-NNN; {hint}",
        directory.display()
    ))
}

/// The daemon that is given, else that of RRDCACHED_ADDRESS, else that of `roundel serve` here. `advice` says what to do when it
/// does not answer.
pub fn connect(given: Option<&str>, advice: &str) -> Result<Daemon, String> {
    let address = address::daemon(given)?.unwrap_or_else(|| address::SOCKET_HERE.to_string());
    // Text: the answers of frames are limited, and an RRD may be larger.
    let daemon = Daemon::new(address.as_bytes(), Wire::Text);
    daemon.connect().map_err(|error| match error {
        ClientError::Connect(error) => {
            format!("cannot talk to the daemon at \"{address}\": {error}; {advice}")
        }
        error => error.to_string(),
    })?;
    Ok(daemon)
}

/// The daemon's error text, without the prefix for rrdtool.
pub fn told(error: ClientError) -> String {
    let text = error.to_string();
    text.strip_prefix("RRD Error: ").map_or(text.clone(), str::to_string)
}

/// The daemon's answer to a command of ours, as lines.
pub fn ask(daemon: &Daemon, command: &str, words: &[&[u8]]) -> Result<Vec<Vec<u8>>, String> {
    match daemon.ask_ours(command, words) {
        Ok(Some(answer)) => Ok(answer.lines),
        Ok(None) => Err(format!("the daemon does not know {}: it is not Roundel", command.to_uppercase())),
        Err(error) => Err(told(error)),
    }
}
