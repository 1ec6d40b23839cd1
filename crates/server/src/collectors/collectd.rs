//! Receives collectd's packets: one thread that reads its sockets, decodes, and hands the readings to the store.
//!
//! While the store works, the kernel's buffer takes what arrives; what it drops is counted.

pub mod config;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use collect::collectd::security::AuthFile;
use collect::collectd::types::TypesDb;
use collect::collectd::{CollectdCollector, CollectdOptions};
use collect::reading::Readings;
use collect::statistics::Statistic;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::context::CollectorContext;
use super::datagrams::{self, DatagramBuffers, DatagramSocket};
use super::notices;
use super::own::Own;
use super::recorder::{Recorded, Recorder};
use crate::watched::WatchedFile;

/// The collector's name in the log, in `/metrics` and of its own RRD.
const NAME: &str = "collectd";
/// Readings handed to the store at once.
const READINGS_MAX: usize = 8_192;
/// How often the files are looked at.
const FILES_EVERY: Duration = Duration::from_secs(5);

/// The checked section `[collectd]`.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectdSettings {
    /// Hosts and ports.
    pub listen: Vec<(String, u16)>,
    /// The interface on which multicast groups are joined; none = the system's choice.
    pub interface: Option<String>,
    /// Bytes asked for the kernel's buffer of a socket.
    pub buffer_bytes: usize,
    /// Users and passwords.
    pub auth_file: Option<PathBuf>,
    /// Files of types, later ones first.
    pub types: Vec<PathBuf>,
    /// What the collector does.
    pub options: CollectdOptions,
}

/// Bound sockets and the files as first read: before privileges are dropped, because they may be root's.
#[derive(Debug)]
pub struct CollectdReceiver {
    sockets: Vec<DatagramSocket>,
    files: CollectdFiles,
    collector: CollectdCollector,
}

/// The files that the collector reads.
#[derive(Debug)]
pub struct CollectdFiles {
    types: Vec<WatchedFile>,
    auth: Option<WatchedFile>,
}

impl CollectdFiles {
    /// Reads them.
    ///
    /// # Errors
    /// A text with the file and its key.
    pub fn read(settings: &CollectdSettings) -> Result<(Self, TypesDb, AuthFile), String> {
        let mut types: Vec<_> = settings.types.iter().map(|path| WatchedFile::new(path)).collect();
        let mut auth = settings.auth_file.as_deref().map(WatchedFile::new);
        let db = read_types(&mut types)?;
        let users = auth.as_mut().map_or(Ok(AuthFile::default()), read_auth)?;
        Ok((CollectdFiles { types, auth }, db, users))
    }
}

impl CollectdReceiver {
    /// Binds the sockets and reads the files.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn bind(settings: &CollectdSettings) -> Result<Self, String> {
        let mut sockets = Vec::new();
        for (host, port) in &settings.listen {
            sockets.extend(datagrams::bind(
                host,
                *port,
                settings.interface.as_deref(),
                settings.buffer_bytes,
            )?);
        }
        let (files, db, users) = CollectdFiles::read(settings)?;
        let collector = CollectdCollector::new(settings.options.clone(), db, users);
        Ok(CollectdReceiver { sockets, files, collector })
    }

    /// Receives until `stop` becomes true. Blocks; on a thread of its own.
    ///
    /// # Errors
    /// When waiting for the sockets fails.
    pub fn run(mut self, context: &Arc<CollectorContext>, stop: &watch::Receiver<bool>) -> io::Result<()> {
        let mut recorder = Recorder::new(Arc::clone(context), NAME);
        let mut own = Own::new(context, NAME);
        let mut buffers = DatagramBuffers::default();
        let mut readings = Readings::default();
        let mut files_due = Instant::now() + FILES_EVERY;
        let mut warned_of_socket = false;
        let handle = Handle::current();
        while !*stop.borrow() {
            let ready = datagrams::wait(&self.sockets)?;
            for (socket, is_ready) in self.sockets.iter_mut().zip(ready) {
                if !is_ready {
                    continue;
                }
                let collector = &mut self.collector;
                loop {
                    let now = context.now();
                    let take = |sender: std::net::SocketAddr, bytes: &[u8]| {
                        collector.receive(now, sender.ip(), bytes, &mut readings);
                    };
                    match socket.receive(&mut buffers, take) {
                        Ok(0) => break,
                        Ok(_) if readings.len() >= READINGS_MAX => break,
                        Ok(_) => {}
                        Err(error) => {
                            if !std::mem::replace(&mut warned_of_socket, true) {
                                tracing::warn!(%error, "cannot receive from a socket of collectd's protocol");
                            }
                            break;
                        }
                    }
                }
            }
            if !readings.is_empty() {
                let recorded = handle.block_on(recorder.record(self.collector.inventory(), &readings));
                own.add(recorded);
                readings.clear();
            }
            self.report();
            handle.block_on(own.publish(context, |stored| self.numbers(stored)));
            if Instant::now() >= files_due {
                files_due = Instant::now() + FILES_EVERY;
                self.reread();
            }
        }
        Ok(())
    }

    /// Logs what the collector noticed.
    fn report(&mut self) {
        notices::log(NAME, self.collector.complaints().take_notices());
        for notification in self.collector.take_notifications() {
            let (subject, message) = (notification.subject, notification.message);
            match notification.severity {
                1 => tracing::error!(collector = NAME, subject, "{message}"),
                2 => tracing::warn!(collector = NAME, subject, "{message}"),
                _ => tracing::info!(collector = NAME, subject, "{message}"),
            }
        }
    }

    /// Reads the files that have changed; if one cannot be used, what was read before stays.
    fn reread(&mut self) {
        if self.files.types.iter().any(WatchedFile::has_changed) {
            match read_types(&mut self.files.types) {
                Ok(types) => {
                    tracing::info!(types = types.len(), "read collectd's types again");
                    self.collector.set_types(types);
                }
                Err(error) => tracing::error!("collectd's types stay as they were: {error}"),
            }
        }
        if let Some(auth) = self.files.auth.as_mut().filter(|auth| auth.has_changed()) {
            match read_auth(auth) {
                Ok(users) => {
                    tracing::info!(users = users.len(), "read collectd's users again");
                    self.collector.set_auth(users);
                }
                Err(error) => tracing::error!("collectd's users stay as they were: {error}"),
            }
        }
    }

    fn numbers(&self, stored: Recorded) -> Vec<Statistic> {
        let counts = self.collector.counts();
        let dropped = self.sockets.iter().map(DatagramSocket::dropped).sum();
        let refused = stored.refused;
        vec![
            Statistic::count("packets", "Packets received", counts.packets),
            Statistic::count("bytes", "Bytes received", counts.bytes),
            Statistic::count("values", "Values in readings", counts.values),
            Statistic::count("readings", "Readings made", counts.readings),
            Statistic::count("stored", "Readings that the store took", stored.accepted),
            Statistic::count("refused", "Readings that the store refused", refused),
            Statistic::count("dropped_packets", "Packets that the kernel dropped", dropped),
            Statistic::count("malformed", "Packets with a fault", counts.malformed),
            Statistic::count("unprotected", "Packets below the security level", counts.unprotected),
            Statistic::count("forged", "Packets with a wrong user or password", counts.forged),
            Statistic::count("incomplete", "Readings without time or name", counts.incomplete),
            Statistic::count("unknown_type", "Readings that types.db does not know", counts.unknown_type),
            Statistic::count("old", "Readings not newer than the last one", counts.old),
            Statistic::count("ahead", "Readings of a clock far ahead", counts.ahead),
            Statistic::count("over_limit", "Readings of RRDs beyond a limit", counts.over_limit),
            Statistic::count("notifications", "Notifications", counts.notifications),
            Statistic::level("rrds", "RRDs fed", self.collector.inventory().len() as u64),
            Statistic::level("buffer_bytes", "Bytes of the kernel's buffers", self.buffer_bytes()),
        ]
    }

    fn buffer_bytes(&self) -> u64 {
        self.sockets.iter().map(DatagramSocket::buffer_bytes).sum()
    }
}

fn read_types(files: &mut [WatchedFile]) -> Result<TypesDb, String> {
    let mut types = TypesDb::default();
    for file in files {
        let bytes = file.read().map_err(|error| format!("{error} (`types` of [collectd])"))?;
        let text = String::from_utf8_lossy(&bytes);
        for fault in types.add(&text) {
            let (path, line) = (file.path().display(), fault.line);
            tracing::warn!("{path}:{line}: {}; the line does not count", fault.cause);
        }
    }
    Ok(types)
}

fn read_auth(file: &mut WatchedFile) -> Result<AuthFile, String> {
    let bytes = file.read().map_err(|error| format!("{error} (`auth_file` of [collectd])"))?;
    AuthFile::parse(&bytes).map_err(|line| format!("{}:{line}: no \"user: password\"", file.path().display()))
}
