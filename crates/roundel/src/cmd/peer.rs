//! Where `import` and `export` find the store: a running daemon, or a directory no daemon holds.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use client::{ClientError, Daemon, Wire};
use protocol::rrdcached::address::Address;
use rrd::codec::file;
use server::http::client as admin;
use server::settings::{Settings, admin_socket};
use store::engine::Engine;
use store::name::RrdName;

/// A store, one way or the other.
pub enum Peer {
    /// The administrator's socket of a daemon.
    Daemon(PathBuf),
    /// A store opened here.
    Store(Arc<dyn Engine>),
}

impl Peer {
    /// Finds it: `given` is a directory or a socket; else the daemon of RRDCACHED_ADDRESS, else the one of
    /// `roundel serve` here.
    pub fn find(given: Option<&Path>) -> Result<Self, String> {
        match given {
            Some(path) if path.is_dir() => Self::open(path),
            Some(path) => Ok(Peer::Daemon(socket(path))),
            None => match std::env::var("RRDCACHED_ADDRESS") {
                Ok(address) => match Address::parse(&address).map_err(|error| error.to_string())? {
                    Address::Unix(path) => Ok(Peer::Daemon(socket(&path))),
                    Address::Tcp { .. } => Err(format!(
                        "cannot use RRDCACHED_ADDRESS \"{address}\": whole RRDs go through a UNIX socket; name it"
                    )),
                },
                Err(_) => Ok(Peer::Daemon(socket(Path::new("var/rrdcached.sock")))),
            },
        }
    }

    fn open(path: &Path) -> Result<Self, String> {
        let mut settings = Settings::new(path.to_path_buf(), path.to_path_buf());
        if let server::settings::Layout::Stripes(stripes) = &mut settings.layout {
            // Offline there is no tree; the daemon makes placeholders when it finds the names.
            stripes.placeholders = None;
            stripes.adopt = None;
        }
        server::layout::open(&settings).map(Peer::Store)
    }

    /// Takes in the bytes of a `.rrd` file.
    pub fn import(&self, name: &RrdName, bytes: &[u8], no_overwrite: bool) -> Result<(), String> {
        match self {
            Peer::Daemon(socket) => {
                admin::import(socket, name.as_bytes(), bytes, no_overwrite).map_err(|error| error.to_string())
            }
            Peer::Store(engine) => {
                let parts =
                    file::decode(bytes).map_err(|error| error.named(&name.to_string()).to_string())?;
                engine.import(name.clone(), parts.rrd, no_overwrite).map_err(|error| error.to_string())
            }
        }
    }

    /// The bytes of a `.rrd` file.
    pub fn export(&self, name: &RrdName) -> Result<Vec<u8>, String> {
        match self {
            Peer::Daemon(socket) => admin::export(socket, name.as_bytes()).map_err(|error| error.to_string()),
            Peer::Store(engine) => {
                let rrd = engine.read(name).map_err(|error| error.to_string())?;
                let current_rows = vec![0; rrd.definition.rra.len()];
                file::encode(&rrd, &current_rows).map_err(|error| error.to_string())
            }
        }
    }

    /// All names.
    pub fn names(&self) -> Result<Vec<Vec<u8>>, String> {
        match self {
            Peer::Daemon(admin) => {
                let socket = admin.as_os_str().to_string_lossy();
                let socket = socket.strip_suffix(".admin").unwrap_or(&socket);
                let daemon = Daemon::new(format!("unix:{socket}").as_bytes(), Wire::Text);
                daemon.list_all().map_err(|error| match error {
                    ClientError::Refused(text) => String::from_utf8_lossy(&text).into_owned(),
                    ClientError::Connect(error) => format!("cannot list the RRDs of \"{socket}\": {error}"),
                    error => format!("cannot list the RRDs of \"{socket}\": {error}"),
                })
            }
            Peer::Store(engine) => engine.list(b"", true).map_err(|error| error.to_string()),
        }
    }

    /// Finishes: a store opened here is closed.
    pub fn close(self) -> Result<(), String> {
        match self {
            Peer::Daemon(_) => Ok(()),
            Peer::Store(engine) => engine.stop().map_err(|error| error.to_string()),
        }
    }
}

/// The administrator's socket that a socket means: itself, or the one beside it.
fn socket(path: &Path) -> PathBuf {
    let beside = admin_socket(path);
    let is_socket = |path: &Path| std::fs::metadata(path).is_ok_and(|found| found.file_type().is_socket());
    let is_admin = path.extension().is_some_and(|extension| extension == "admin");
    if is_socket(&beside) || !is_admin { beside } else { path.to_path_buf() }
}
