//! From settings to a running daemon and back: sockets, background, privileges, store, signals.
//!
//! The order matters: sockets are bound before privileges are dropped and before the starting process reports
//! success; the store is opened by the user that owns it, after the last fork, because threads do not survive
//! a fork.

mod copies;
mod duties;
mod polling;
mod replicating;

use std::fs::File;
use std::io::{self, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::rrdcached::address::Address;
use rustix::io::Errno;
use rustix::process::{Pid, getpid, test_kill_process};
use store::awaited::Awaited;
use store::engine::Engine;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::copies::Copies;
use self::duties::Duties;
use crate::access::Access;
use crate::cluster::{ClusterCollector, OpenedNode, SpoolCollector};
use crate::daemon::{self, Daemon, Sockets};
use crate::http::{Saving, SiteSettings};
use crate::listener;
use crate::names::Names;
use crate::reload::{Program, Reloading};
use crate::replication::primary::FollowerSockets;
use crate::service::{CreatePolicy, Service};
use crate::settings::{Layout, Settings};
use crate::{confine, idle_memory, layout, logging, machine, privileges, scrub, start_check, takeover};

/// Why a daemon did not start or stop properly, as a text for the operator.
#[derive(Debug)]
pub struct LifecycleError(String);

impl std::fmt::Display for LifecycleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LifecycleError {}

fn fail(what: impl std::fmt::Display) -> LifecycleError {
    LifecycleError(what.to_string())
}

/// What a signal requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Stop(StopRequest),
    Reload,
}

/// How to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopRequest {
    Usual,
    Flushed,
}

/// Runs a daemon until it is told to stop.
///
/// # Errors
/// When it cannot start, or the store cannot be closed cleanly.
pub fn run(settings: Settings) -> Result<(), LifecycleError> {
    machine::raise_descriptor_limit().map_err(fail)?;
    start_check::check(&settings).map_err(fail)?;
    let foreign = settings.journal_to_take_over().map_or(Ok(None), takeover::check_unused).map_err(fail)?;
    let started = settings.clone();
    let sockets = bind(&settings)?;
    let duties = Duties::bind(&settings)?;
    let pid_file = settings.pid_file.as_deref().map(PidFile::create).transpose()?;
    if !settings.foreground {
        // The working directory stays: relative paths in the settings are absolute by now, and the operator's
        // core dumps and profiles go there.
        privileges::to_background().map_err(|error| fail(format!("cannot go to the background: {error}")))?;
    }
    if let Some(pid_file) = &pid_file {
        pid_file.write(&settings)?;
    }
    change_owners(&settings);
    if privileges::is_root() {
        privileges::drop_to(settings.user, settings.group)
            .map_err(|error| fail(format!("cannot drop privileges: {error}")))?;
    }
    machine::survive_file_size_limit().map_err(|error| fail(format!("cannot handle signals: {error}")))?;
    let log = logging::start(&settings).map_err(fail)?;
    confine_if_possible(&settings);
    for remark in foreign.iter().chain(&settings.remarks) {
        tracing::warn!("{remark}");
    }
    let permissions = sockets.rrdcached.iter().map(|(_, permissions)| Arc::clone(permissions)).collect();
    let reloading = Reloading { program: Program::Daemon, started, permissions, log };
    // In the background, only the log reaches the operator.
    serve(settings, sockets, duties, &reloading).inspect_err(|error| tracing::error!("{error}"))
}

/// Before threads are started and anything is read that others have written.
fn confine_if_possible(settings: &Settings) {
    // Those of an mrtg.cfg, and the one that finds the names of hosts that send to us as to gmond.
    let looks_up_hosts = settings.ganglia.as_ref().is_some_and(|ganglia| ganglia.listen.is_some());
    if looks_up_hosts || settings.mrtg.iter().any(|mrtg| mrtg.programs) {
        tracing::info!(
            "the process may run programs, so it is not confined ([gmond_listen], or [[mrtg]] without programs = false)"
        );
        return;
    }
    if let Err(error) = confine::confine() {
        tracing::warn!(%error, "the process is not confined");
    }
}

/// Opens the store and serves until a signal arrives.
fn serve(
    mut settings: Settings,
    mut sockets: Sockets,
    mut duties: Duties,
    reloading: &Reloading,
) -> Result<(), LifecycleError> {
    let access = Access::new(&settings.access).map_err(|error| fail(format!("[access]: {error}")))?;
    idle_memory::use_small_pages();
    let mut copies = Copies::find(&settings).map_err(fail)?;
    let service = open_service(&mut settings, access, copies.awaited())?;
    let kept = replicating::keep_log(&service, &settings, &mut sockets);
    duties.forward(&service, &mut settings, None)?;
    copies.start(&service, &mut settings).map_err(fail)?;
    // It waits for a restore, which is known now.
    let scrubber = scrub::start(&service, &settings)
        .map_err(|error| fail(format!("cannot start the thread that verifies the store: {error}")))?;
    let scheme = if sockets.door.is_encrypted() { "https" } else { "http" };
    let replication = replicating::state(&service);
    let followers = sockets.followers.take();
    let cannot_start = |error| fail(format!("cannot start: {error}"));
    let runtime = daemon::runtime().map_err(cannot_start)?;
    // Before the first client is answered, who may send a signal right then: it must stop the daemon cleanly.
    let signals = runtime.block_on(async { Signals::new() });
    let mut signals = signals.map_err(|error| fail(format!("cannot wait for signals: {error}")))?;
    let mut daemon = Daemon::start(runtime, service, sockets).map_err(cannot_start)?;
    replicating::start(&mut daemon, &settings, followers, &replication);
    duties.collect(&mut daemon, &mut settings)?;
    announce(&settings, scheme);
    let request = loop {
        let request = daemon.block_on(async {
            tokio::select! {
                request = signals.next() => Some(request),
                () = replication.promoted.notified() => None,
            }
        });
        match request {
            None => {
                replicating::promoted(&mut daemon, &settings, &replication);
                duties.begin(&mut daemon, &mut settings, replicating::epoch_began(&replication));
            }
            Some(Request::Stop(request)) => break request,
            Some(Request::Reload) => {
                daemon.block_on(reloading.reload(async |devices| duties.poll(devices, &mut settings).await));
            }
        }
    };
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
    tracing::info!("stopping");
    // First, because the others may be reading what has not come.
    copies.stop_completing();
    drop(scrubber);
    let unsent = duties.stop_forwarding();
    if request == StopRequest::Flushed {
        daemon.service().engine.flush(None).map_err(fail)?;
    }
    // A last round of the backup has everything that was answered.
    let stopped = daemon.stop_after(|| copies.stop());
    stopped.map_err(|error| fail(format!("the store did not close well: {error}")))?;
    drop((unsent, kept));
    tracing::info!("stopped");
    Ok(())
}

/// The state of all connections, with the store opened.
fn open_service(
    settings: &mut Settings,
    access: Access,
    awaited: Option<&Arc<Awaited>>,
) -> Result<Arc<Service>, LifecycleError> {
    let node = settings.cluster.as_ref().map(|_| layout::open_node(settings)).transpose().map_err(fail)?;
    let engine = match &node {
        Some(node) => Arc::clone(&node.engine) as Arc<dyn Engine>,
        None => replicating::open(settings, awaited).map_err(fail)?,
    };
    let real_base = std::fs::canonicalize(&settings.base).unwrap_or_else(|_| settings.base.clone());
    let create = CreatePolicy {
        no_overwrite: settings.no_overwrite,
        make_directories: settings.make_directories,
        file_limits: matches!(settings.layout, Layout::Files(_)),
    };
    let names = Names::new(&settings.base, &real_base);
    if let Some(journal) = settings.journal_to_take_over() {
        takeover::take_over(&*engine, &names, journal).map_err(fail)?;
    }
    let service = Service::with_limits(engine, names, create, &settings.limits, access);
    service.ingest.configure(settings.ingest.clone());
    if let Some(OpenedNode { node, spool, .. }) = node {
        if let Some(spool) = spool {
            let _ = service.metrics.spool.set(SpoolCollector(spool));
        }
        let _ = service.metrics.node.set(ClusterCollector(Arc::clone(&node)));
        let _ = service.node.set(node);
        settings.cluster.iter().for_each(|cluster| drop(service.cluster.set(cluster.clone())));
    }
    if let Some(directory) = settings.snapshots.take() {
        let _ = service.snapshots.set(directory);
    }
    Ok(service)
}

fn bind(settings: &Settings) -> Result<Sockets, LifecycleError> {
    let mut sockets = Sockets::default();
    for listen in &settings.listen {
        let anonymous = listen.anonymous.principal().map_err(fail)?;
        let permissions = listener::shared(listen.permissions, anonymous);
        for bound in listen.bind().map_err(fail)? {
            sockets.rrdcached.push((bound, Arc::clone(&permissions)));
        }
    }
    for address in &settings.http {
        let listener = TcpListener::bind(address.as_str())
            .map_err(|error| fail(format!("cannot listen on \"{address}\" for HTTP: {error}")))?;
        sockets.http.push(listener);
    }
    if !settings.replication.listen.is_empty() {
        sockets.followers = Some(FollowerSockets::bind(&settings.replication).map_err(fail)?);
    }
    // Before privileges are dropped: keys are often root's. When they change, the daemon's user must be able to read them.
    let door = settings.web_access.open().map_err(|error| fail(format!("[http] web_config: {error}")))?;
    let anonymous = settings.anonymous_of_http(&door).map(|anonymous| anonymous.principal());
    sockets.door = Arc::new(door.with_anonymous(anonymous.transpose().map_err(fail)?));
    let is_local =
        |listener: &TcpListener| listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
    let saving = match settings.save_views {
        Some(true) => Saving::On,
        None if sockets.http.iter().all(is_local) => Saving::Local,
        _ => Saving::Off,
    };
    sockets.site = SiteSettings {
        templates: settings.templates.clone(),
        saving,
        host: settings.collect_host.clone(),
        metrics: settings.metrics.clone(),
    };
    sockets.store = Some(settings.data_directory().to_path_buf());
    Ok(sockets)
}

/// Changes the owner of files created as root to the daemon's user, where possible. Otherwise opening the
/// store will fail with the reason.
fn change_owners(settings: &Settings) {
    if !privileges::is_root() || settings.user.is_none() {
        return;
    }
    for listen in &settings.listen {
        if let (Address::Unix(path), None) = (&listen.address, listen.group)
            && let Err(error) = std::os::unix::fs::chown(path, settings.user, settings.group)
        {
            tracing::warn!(%error, path = %path.display(), "cannot hand over a socket");
        }
    }
}

fn announce(settings: &Settings, scheme: &str) {
    for listen in &settings.listen {
        let tls = if listen.tls.is_some() { " with TLS" } else { "" };
        tracing::info!("listening on {}{tls}", listen.address);
    }
    for address in &settings.http {
        tracing::info!("HTTP on {scheme}://{address}/: the page, /graph, /api/v1/openapi.json, /metrics");
    }
    for address in &settings.replication.listen {
        tracing::info!("followers may connect to {address}");
    }
    for address in settings.agents.iter().flat_map(|agents| &agents.listen) {
        tracing::info!("receiving agents on {address}");
    }
    for (host, port) in settings.collectd.iter().flat_map(|collectd| &collectd.listen) {
        tracing::info!("receiving from collectd on udp://{host}:{port}");
    }
    for port in &settings.push.ports {
        tracing::info!("receiving {} on {}", port.protocol.name(), port.address());
    }
    match &settings.layout {
        Layout::Stripes(stripes) => tracing::info!("store in {}", stripes.store.display()),
        Layout::Files(_) => tracing::info!("standard .rrd files in {}", settings.base.display()),
    }
    // Fails without systemd, which does not matter.
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
}

/// The signals that are handled from here on.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    user_1: Signal,
    user_2: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            user_1: signal(SignalKind::user_defined1())?,
            user_2: signal(SignalKind::user_defined2())?,
        })
    }

    async fn next(&mut self) -> Request {
        tokio::select! {
            _ = self.terminate.recv() => Request::Stop(StopRequest::Usual),
            _ = self.interrupt.recv() => Request::Stop(StopRequest::Usual),
            // As in rrdcached: flush everything, then exit; or leave everything to the journal.
            _ = self.user_1.recv() => Request::Stop(StopRequest::Flushed),
            _ = self.user_2.recv() => Request::Stop(StopRequest::Usual),
            _ = self.hang_up.recv() => Request::Reload,
        }
    }
}

/// The file with the daemon's process id, removed when the daemon ends.
struct PidFile {
    file: File,
    path: PathBuf,
}

impl PidFile {
    /// Creates it, replacing that of a process that is gone.
    fn create(path: &Path) -> Result<Self, LifecycleError> {
        let cannot = |cause: &dyn std::fmt::Display| {
            fail(format!("cannot write pid file \"{}\": {cause}", path.display()))
        };
        if let Ok(text) = std::fs::read_to_string(path)
            && let Some(pid) = text.trim().parse().ok().and_then(Pid::from_raw)
            && pid != getpid()
            && test_kill_process(pid) != Err(Errno::SRCH)
        {
            return Err(cannot(&format!(
                "process {} of another daemon is still there; stop it first",
                pid.as_raw_nonzero()
            )));
        }
        let file = File::create(path).map_err(|error| cannot(&error))?;
        Ok(PidFile { file, path: path.to_path_buf() })
    }

    fn write(&self, settings: &Settings) -> Result<(), LifecycleError> {
        let text = format!("{}\n", std::process::id());
        let mut file = &self.file;
        file.write_all(text.as_bytes())
            .map_err(|error| fail(format!("cannot write pid file \"{}\": {error}", self.path.display())))?;
        if privileges::is_root() && settings.user.is_some() {
            // So that it can be removed at the end; where its directory does not allow that, it stays.
            std::os::unix::fs::chown(&self.path, settings.user, settings.group).ok();
        }
        Ok(())
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        std::fs::remove_file(&self.path).ok();
    }
}
