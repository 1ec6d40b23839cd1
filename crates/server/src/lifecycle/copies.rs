//! The threads that make a backup and complete a restore, in the order of a start and a stop; in a build without them, nothing.

use std::sync::Arc;

#[cfg(feature = "backup")]
use backup::own::OwnPaths;
#[cfg(feature = "backup")]
use backup::run::{BackupSettings, Running};
use store::awaited::Awaited;

#[cfg(feature = "backup")]
use crate::restoring::Completing;
use crate::service::Service;
use crate::settings::Settings;
#[cfg(feature = "backup")]
use crate::{backing, restoring};

/// Where the daemon's own files are.
#[cfg(feature = "backup")]
fn own_paths(settings: &Settings) -> OwnPaths {
    let directory = settings.own_directory();
    OwnPaths {
        store: directory.to_owned(),
        tokens: settings.access.tokens.clone().unwrap_or_else(|| settings.tokens_in_store()),
        assignments: directory.join("assignments"),
        graphs: settings.templates.clone(),
    }
}

/// What is done beside the store for its copies.
#[derive(Default)]
pub(super) struct Copies {
    awaited: Option<Arc<Awaited>>,
    #[cfg(feature = "backup")]
    completing: Option<Completing>,
    #[cfg(feature = "backup")]
    backing: Option<Running>,
}

impl Copies {
    /// Looks for a restore that is not complete, before the store is opened.
    #[cfg(feature = "backup")]
    pub(super) fn find(settings: &Settings) -> Result<Copies, String> {
        let awaited = restoring::find(settings.data_directory(), settings.backup.as_ref())?;
        Ok(Copies { awaited, ..Copies::default() })
    }

    /// Nothing in this build: the store refuses to open then.
    #[cfg(not(feature = "backup"))]
    pub(super) fn find(_settings: &Settings) -> Result<Copies, String> {
        Ok(Copies::default())
    }

    /// The files that the store awaits.
    pub(super) fn awaited(&self) -> Option<&Arc<Awaited>> {
        self.awaited.as_ref()
    }

    /// Starts the threads.
    #[cfg(feature = "backup")]
    pub(super) fn start(&mut self, service: &Arc<Service>, settings: &mut Settings) -> Result<(), String> {
        let own = own_paths(settings);
        let given = settings.backup.take();
        self.backing = given
            .map(|given| backing::start(service, BackupSettings { own: Some(own), ..given }))
            .transpose()
            .map_err(|error| format!("cannot start the thread of the backup: {error}"))?;
        self.completing = self
            .awaited
            .take()
            .map(|awaited| restoring::start(service, awaited))
            .transpose()
            .map_err(|error| format!("cannot start the thread of the restore: {error}"))?;
        Ok(())
    }

    /// There are none in this build.
    #[cfg(not(feature = "backup"))]
    pub(super) fn start(&mut self, _service: &Arc<Service>, _settings: &mut Settings) -> Result<(), String> {
        Ok(())
    }

    /// Has reads of what has not come fail, so that no connection waits for them at the stop.
    pub(super) fn stop_completing(&mut self) {
        self.awaited = None;
        #[cfg(feature = "backup")]
        drop(self.completing.take());
    }

    /// Ends the backup, with a last round.
    pub(super) fn stop(self) {
        #[cfg(feature = "backup")]
        drop(self.backing);
    }
}
