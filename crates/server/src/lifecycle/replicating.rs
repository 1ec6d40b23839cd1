//! A daemon's part beside a second server: the store of a follower, the session with its primary, and what changes when it is promoted.

use std::sync::Arc;

use store::awaited::Awaited;
use store::engine::Engine;
use store::position::Position;
use store::replication::Role;

use crate::daemon::{Daemon, Sockets};
use crate::layout;
use crate::replication::follower::Follower;
use crate::replication::preparing::{self, FollowerFit};
use crate::replication::primary::{FollowerSockets, LogForFollowers};
use crate::replication::state::ReplicationState;
use crate::replication::tell_former_primary;
use crate::service::Service;
use crate::settings::{Layout, Settings};

/// Opens the store, of which some files may come later; that of a follower as the primary's, which is copied where that is needed.
pub(super) fn open(settings: &Settings, awaited: Option<&Arc<Awaited>>) -> Result<Arc<dyn Engine>, String> {
    let (Some(follow), Layout::Stripes(stripes)) = (&settings.follow, &settings.layout) else {
        return layout::open_awaiting(settings, awaited);
    };
    preparing::copy_if_missing(follow, &stripes.store)?;
    let engine = layout::open_awaiting(settings, awaited)?;
    let fit = preparing::look(follow, &engine)?;
    match &fit {
        FollowerFit::Follows => return Ok(engine),
        FollowerFit::Outdated => {
            tracing::warn!("the primary no longer has the log that this store lacks: it is copied again")
        }
        FollowerFit::Diverged(text) => {
            tracing::error!(
                "{text}: the store is set aside, and that of the primary is copied; to keep it instead, start without [follow] and promote it"
            )
        }
    }
    engine.stop().map_err(|error| format!("the old store did not close well: {error}"))?;
    drop(engine);
    match (preparing::copy_anew(follow, &stripes.store)?, fit) {
        (Some(aside), FollowerFit::Diverged(_)) => tracing::error!(
            directory = %aside.display(),
            "what only the old store has is in this directory: look with roundel export --from, and remove it by hand"
        ),
        // The primary has all of it.
        (Some(aside), _) => std::fs::remove_dir_all(aside).map_err(|error| error.to_string())?,
        (None, _) => {}
    }
    layout::open(settings)
}

/// Keeps the log for followers that are away, for as long as what this returns; before the log that was held at the start is released.
pub(super) fn keep_log(
    service: &Service,
    settings: &Settings,
    sockets: &mut Sockets,
) -> Option<LogForFollowers> {
    let path = settings.own_directory().join("followers");
    sockets.followers.as_mut()?.keep_log(&*service.engine, path)
}

/// What is told of replication, wherever it is asked for.
pub(super) fn state(service: &Arc<Service>) -> Arc<ReplicationState> {
    let state = ReplicationState::new(Arc::clone(&service.engine));
    if state.replica().is_some() {
        let _ = service.metrics.replication.set(Arc::clone(&state));
    }
    state
}

/// Lets others follow this server, and follows another one itself, as the settings say.
pub(super) fn start(
    daemon: &mut Daemon,
    settings: &Settings,
    followers: Option<FollowerSockets>,
    state: &Arc<ReplicationState>,
) {
    if let Some(sockets) = followers {
        daemon.spawn(sockets.run(Arc::clone(daemon.service()), Arc::clone(state), daemon.stopping()));
    }
    match (&settings.follow, state.role()) {
        (_, Role::Primary) => {}
        (Some(follow), _) => {
            let (settings, engine) = (follow.clone(), Arc::clone(&daemon.service().engine));
            let follower = Follower { settings, engine, state: Arc::clone(state) };
            daemon.spawn(follower.run(daemon.stopping()));
        }
        (None, role) => tracing::warn!(
            role = role.word(),
            "this store takes no changes: give [follow] with the primary, or make this server the primary (roundel promote)"
        ),
    }
}

/// Where the epoch of this primary began.
pub(super) fn epoch_began(state: &ReplicationState) -> Option<Vec<Position>> {
    state.replica()?.history().epochs.pop().map(|epoch| epoch.began)
}

/// Tells the former primary that this server is it now.
pub(super) fn promoted(daemon: &mut Daemon, settings: &Settings, state: &Arc<ReplicationState>) {
    if let Some(follow) = &settings.follow {
        daemon.spawn(tell_former_primary(follow.clone(), Arc::clone(state), daemon.stopping()));
    }
}
