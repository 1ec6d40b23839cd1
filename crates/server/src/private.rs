//! A daemon for one client alone: a command that works with a store at rest as if its daemon ran.

use std::path::Path;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use protocol::rrdcached::address::Address;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::access::{Access, Principal};
use crate::daemon::{self, Daemon, Sockets};
use crate::http::{Routers, SiteSettings};
use crate::layout;
use crate::listener;
use crate::names::Names;
use crate::service::{CreatePolicy, Service};
use crate::settings::{Layout, Settings, listen_plain};
use crate::status::StatusWatch;

/// A daemon on a socket that no other program knows.
pub struct PrivateDaemon(Daemon);

impl PrivateDaemon {
    /// Opens the store and serves it on the socket.
    ///
    /// # Errors
    /// Why it cannot, for people.
    pub fn start(settings: &Settings, socket: &Path) -> Result<Self, String> {
        let listen = listen_plain(Address::Unix(socket.to_path_buf()));
        let permissions = listener::shared(listen.permissions, Principal::everyone());
        let mut sockets = Sockets::default();
        for bound in listen.bind().map_err(|error| error.to_string())? {
            sockets.rrdcached.push((bound, Arc::clone(&permissions)));
        }
        let service = service(settings)?;
        let daemon = daemon::runtime().and_then(|runtime| Daemon::start(runtime, service, sockets));
        daemon.map(PrivateDaemon).map_err(|error| format!("cannot start: {error}"))
    }

    /// Closes the store.
    ///
    /// # Errors
    /// When it does not close well.
    pub fn stop(self) -> Result<(), String> {
        self.0.stop().map_err(|error| format!("the store did not close well: {error}"))
    }
}

/// The store, opened for one client.
fn service(settings: &Settings) -> Result<Arc<Service>, String> {
    let engine = layout::open(settings)?;
    let file_limits = matches!(settings.layout, Layout::Files(_));
    let create = CreatePolicy { file_limits, make_directories: true, ..CreatePolicy::default() };
    let names = Names::new(&settings.base, &settings.base);
    Ok(Service::with_limits(engine, names, create, &settings.limits, Access::default()))
}

/// What a daemon answers over HTTP, for this process alone: nothing listens.
pub struct PrivateHttp {
    runtime: Runtime,
    service: Arc<Service>,
    routers: Routers,
}

impl PrivateHttp {
    /// Opens the store.
    ///
    /// # Errors
    /// Why it cannot, for people.
    pub fn open(settings: &Settings) -> Result<Self, String> {
        let runtime = daemon::runtime().map_err(|error| format!("cannot start: {error}"))?;
        let service = service(settings)?;
        let site = SiteSettings { metrics: settings.metrics.clone(), ..SiteSettings::default() };
        let status = Arc::new(StatusWatch::new(Arc::clone(&service), None));
        let routers = Routers::new(Arc::clone(&service), site, status);
        Ok(PrivateHttp { runtime, service, routers })
    }

    /// The status and body that a POST of a form (percent-encoded pairs) to this path is answered with.
    ///
    /// # Errors
    /// When the path is none, or the answer breaks off.
    pub fn post(&self, path: &str, form: String) -> Result<(u16, Vec<u8>), String> {
        let request = Request::post(path).body(Body::from(form)).map_err(|error| error.to_string())?;
        let router = TowerToHyperService::new(self.routers.of(&Principal::everyone()));
        let asked = async move {
            let Ok(answer) = router.call(request).await;
            let (head, body) = answer.into_parts();
            let body = axum::body::to_bytes(body, usize::MAX).await.map_err(|error| error.to_string())?;
            Ok((head.status.as_u16(), body.to_vec()))
        };
        // On one of the runtime's threads, because what takes long blocks it.
        let answered = self.runtime.block_on(self.runtime.spawn(asked));
        answered.map_err(|error| format!("the request ended by a bug: {error}"))?
    }

    /// Closes the store.
    ///
    /// # Errors
    /// When it does not close well.
    pub fn stop(self) -> Result<(), String> {
        self.service.engine.stop().map_err(|error| format!("the store did not close well: {error}"))
    }
}

/// The signals that end a command which runs until then: SIGTERM and SIGINT.
pub struct StopSignals {
    runtime: Runtime,
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// From now on they do not kill the process.
    ///
    /// # Errors
    /// What the system says.
    pub fn new() -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let guard = runtime.enter();
        let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        drop(guard);
        Ok(StopSignals { runtime, terminate, interrupt })
    }

    /// Waits for one of them.
    pub fn wait(self) {
        let StopSignals { runtime, mut terminate, mut interrupt } = self;
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        });
    }
}
