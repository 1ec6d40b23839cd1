//! The daemon connections that commands share, and RRDtool's texts for their failures.
//!
//! As in RRDtool, one connection is kept between commands. Verbs that only read continue with the file when
//! the daemon cannot be reached, and report that at the end ([`Link::complaint`]).

use std::sync::Arc;

use client::placeholder::PlaceholderCache;
use client::{ClientError, Daemon, Daemons, Wire};

use crate::failure::{Failure, Result, system_text};

/// A connection to a daemon, or none yet.
#[derive(Debug, Default)]
pub struct Link {
    daemon: Option<Arc<Daemon>>,
    /// Connections shared by all threads of the process; `None` = the link has its own connection.
    shared: Option<&'static Daemons>,
    complaint: Option<Failure>,
}

impl Link {
    /// A link that uses the connections of the whole process.
    pub fn sharing(daemons: &'static Daemons) -> Self {
        Link { shared: Some(daemons), ..Link::default() }
    }

    /// Whether its connections are shared.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// The placeholders that the process has met, if connections are shared.
    pub(crate) fn placeholders(&self) -> Option<&'static PlaceholderCache> {
        self.shared.map(|daemons| &daemons.placeholders)
    }

    /// Connects to the daemon at an address.
    ///
    /// # Errors
    /// `Unable to connect to rrdcached: ...`.
    pub fn connect(&mut self, address: &[u8]) -> Result<Arc<Daemon>> {
        let daemon = match (self.daemon.take(), self.shared) {
            (Some(daemon), _) if daemon.address() == address => daemon,
            (_, Some(daemons)) => daemons.at(address),
            (_, None) => Arc::new(Daemon::new(address, Wire::Text)),
        };
        daemon.connect().map_err(|error| failure(address, error))?;
        self.daemon = Some(Arc::clone(&daemon));
        Ok(daemon)
    }

    /// The daemon at an address, if there is an address and the daemon can be reached. If not, the command
    /// reports that at its end.
    pub fn reach(&mut self, address: Option<&[u8]>) -> Option<Arc<Daemon>> {
        match self.connect(address?) {
            Ok(daemon) => {
                self.complaint = None;
                Some(daemon)
            }
            Err(failure) => {
                self.complaint = Some(failure);
                None
            }
        }
    }

    /// Reports what a command that has done its work still has to complain about.
    ///
    /// # Errors
    /// The complaint.
    pub fn complaint(&mut self) -> Result {
        self.complaint.take().map_or(Ok(()), Err)
    }
}

/// Converts an error of the daemon at `address` to RRDtool's text.
pub fn failure(address: &[u8], error: ClientError) -> Failure {
    match error {
        ClientError::Connect(error) => {
            Failure::new(format!("Unable to connect to rrdcached: {}", system_text(&error)))
        }
        ClientError::Lost => Failure::new("request: socket error (-1) while talking to rrdcached"),
        ClientError::Refused { text, .. } => Failure::new([b"rrdcached@", address, b": ", &*text].concat()),
        ClientError::NotAnAnswer(what) => Failure::new(format!("rrdcached answers what is no {what}")),
        ClientError::Path { name, error } => {
            Failure::of_name("realpath(", &name, &format!("): {}", system_text(&error)))
        }
        error => Failure::new(error.to_string()),
    }
}
