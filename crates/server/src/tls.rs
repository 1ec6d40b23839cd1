//! TLS of the daemon's ports: a certificate and its key, what is asked of clients' certificates, and versions.
//!
//! Keys, certificates and authorities that are files are read again when they change, at the next connection; what cannot be
//! used then leaves in force what was read before, and is logged.

mod client_certificates;
mod options;
pub mod port;
pub mod records;
mod words;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;

pub use client_certificates::client_names;
pub use options::TlsOptions;

use crate::watched::WatchedFile;

/// What a port needs to talk TLS.
#[derive(Debug)]
pub struct ServerTls {
    options: TlsOptions,
    /// The protocols that are offered above TLS (ALPN), best first.
    protocols: Vec<Vec<u8>>,
    state: Mutex<State>,
}

/// What follows from the files as they were when they were read last.
#[derive(Debug)]
struct State {
    files: Vec<WatchedFile>,
    config: Arc<ServerConfig>,
}

impl ServerTls {
    /// TLS by `options`, with `protocols` above it (as in ALPN), best first.
    ///
    /// # Errors
    /// A text for the operator: which option or file cannot be used, and why.
    pub fn new(options: TlsOptions, protocols: &[&str]) -> Result<Self, String> {
        let protocols: Vec<Vec<u8>> = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let mut files: Vec<WatchedFile> = options.files().map(WatchedFile::new).collect();
        let config = Arc::new(read(&options, &protocols, &mut files)?);
        Ok(ServerTls { options, protocols, state: Mutex::new(State { files, config }) })
    }

    /// The configuration for a new connection. Costs a `stat` per file.
    pub fn config(&self) -> Arc<ServerConfig> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.files.iter().any(WatchedFile::has_changed) {
            match read(&self.options, &self.protocols, &mut state.files) {
                Ok(config) => {
                    state.config = Arc::new(config);
                    tracing::info!("read certificates again");
                }
                Err(error) => {
                    tracing::error!(%error, "certificates have changed and cannot be used: those read before stay in force");
                }
            }
        }
        Arc::clone(&state.config)
    }
}

/// Reads every file and makes the configuration of them.
fn read(
    options: &TlsOptions,
    protocols: &[Vec<u8>],
    files: &mut [WatchedFile],
) -> Result<ServerConfig, String> {
    let mut contents = Vec::new();
    // All of them, even if one cannot be read: what has been looked at is not logged again.
    for file in files.iter_mut() {
        contents.push((file.path().to_path_buf(), file.read()));
    }
    let read = |path: &Path| {
        let found = contents.iter().find(|(known, _)| known == path);
        found.map_or_else(|| Err(format!("\"{}\" was not read", path.display())), |(_, read)| read.clone())
    };
    let mut config = options.server_config(protocols, &read)?;
    if !protocols.iter().any(|protocol| protocol == b"http/1.1") {
        // Programs stay connected, and one that comes back shows its certificate again.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    }
    Ok(config)
}

/// The cryptography of all TLS of the daemon, and of the programs that talk to it.
pub fn provider() -> CryptoProvider {
    rustls::crypto::ring::default_provider()
}
