//! A running daemon: its runtime, its listeners, and its shutdown.

use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::agents::AgentSockets;
use crate::agents::work::Dispatcher;
use crate::collectors::mrtg::MrtgSettings;
use crate::collectors::snmp::config::SnmpSettings;
use crate::collectors::snmp::devices::{self, DeviceSender};
use crate::connection::SharedPermissions;
use crate::http::access::Door;
use crate::limits::{GIVE_BACK_INTERVAL, WORKERS_MIN};
use crate::listener::{self, Bound};
use crate::replication::primary::FollowerSockets;
use crate::service::{BlockingCalls, Service};
use crate::status::StatusWatch;
use crate::{collectors, http, idle_memory};

/// Bound sockets that are not served yet.
#[derive(Debug, Default)]
pub struct Sockets {
    /// Sockets for rrdcached's protocol, with the permissions of their clients.
    pub rrdcached: Vec<(Bound, SharedPermissions)>,
    /// Sockets for HTTP.
    pub http: Vec<TcpListener>,
    /// Who gets in there.
    pub door: Arc<Door>,
    /// Those for followers.
    pub followers: Option<FollowerSockets>,
    /// What the pages show besides the store.
    pub site: http::SiteSettings,
    /// The directory of the store, to say how much room there is.
    pub store: Option<PathBuf>,
}

/// Bound sockets of collectors.
#[derive(Debug, Default)]
pub struct CollectorSockets {
    /// Sockets and files of collectd's protocol.
    pub collectd: Option<collectors::collectd::CollectdReceiver>,
    /// Sockets of Ganglia's protocols.
    pub ganglia: Option<collectors::ganglia::GangliaSockets>,
}

/// A running daemon. Dropping it without [`Daemon::stop`] ends its connections at once and leaves the store
/// as after a crash.
pub struct Daemon {
    runtime: Runtime,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<io::Result<()>>>,
    service: Arc<Service>,
    status: Arc<StatusWatch>,
}

/// The threads of a daemon that serves nothing yet.
///
/// # Errors
/// When the system refuses threads or what they wait with.
pub fn runtime() -> io::Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(workers()).max_blocking_threads(BlockingCalls::threads_max());
    builder.thread_keep_alive(GIVE_BACK_INTERVAL).on_thread_park(idle_memory::before_sleep);
    builder.enable_all().build()
}

fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).max(WORKERS_MIN)
}

impl Daemon {
    /// Starts serving on a [`runtime`]; nothing is collected yet.
    ///
    /// # Errors
    /// When a listener cannot be started.
    pub fn start(runtime: Runtime, service: Arc<Service>, sockets: Sockets) -> io::Result<Self> {
        let (stop, stop_seen) = watch::channel(false);
        let mut tasks = Vec::new();
        let guard = runtime.enter();
        for (bound, permissions) in sockets.rrdcached {
            let serving = listener::serve(bound, Arc::clone(&service), permissions, stop_seen.clone());
            tasks.push(runtime.spawn(serving));
        }
        let status = Arc::new(StatusWatch::new(Arc::clone(&service), sockets.store));
        let routers = Arc::new(http::Routers::new(Arc::clone(&service), sockets.site, Arc::clone(&status)));
        for listener in sockets.http {
            listener.set_nonblocking(true)?;
            let serving = http::server::serve(
                listener,
                Arc::clone(&routers),
                Arc::clone(&service),
                Arc::clone(&sockets.door),
                stop_seen.clone(),
            );
            tasks.push(runtime.spawn(serving));
        }
        let (giving_back, stop_of_it) = (Arc::clone(&service), stop_seen.clone());
        runtime.spawn(idle_memory::run(giving_back, workers(), stop_of_it));
        drop(guard);
        Ok(Daemon { runtime, stop, tasks, service, status })
    }

    /// Collects what is sent to these sockets, and this host's own metrics, until the daemon stops.
    pub fn collect(&mut self, sockets: CollectorSockets, host: Option<String>) {
        let (context, stop) = (self.service.collecting(), self.stop.subscribe());
        if let Some(directory) = host {
            self.spawn(collectors::host::run(Arc::clone(&context), directory, stop.clone()));
            let status = Arc::clone(&self.status);
            self.spawn(collectors::daemon::run(Arc::clone(&context), status, stop.clone()));
        }
        if let Some(receiver) = sockets.collectd {
            let (context, stop) = (Arc::clone(&context), stop.clone());
            self.tasks.push(self.runtime.spawn_blocking(move || receiver.run(&context, &stop)));
        }
        if let Some(sockets) = sockets.ganglia {
            self.spawn(sockets.run(context, stop));
        }
    }

    /// Runs something until the daemon stops.
    pub fn spawn(&mut self, task: impl Future<Output = io::Result<()>> + Send + 'static) {
        self.tasks.push(self.runtime.spawn(task));
    }

    /// Runs something that blocks, on a thread of its own, until the daemon stops.
    pub fn spawn_blocking(&mut self, task: impl FnOnce() -> io::Result<()> + Send + 'static) {
        self.tasks.push(self.runtime.spawn_blocking(task));
    }

    /// Becomes true when the daemon stops.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// Polls what a file of MRTG says, until the daemon stops. Names of RRDs are relative to `base`.
    pub fn poll_mrtg(&mut self, settings: MrtgSettings, base: PathBuf) {
        let context = self.service.collecting();
        let fence = self.service.fence();
        self.spawn(collectors::mrtg::run(context, fence, settings, base, self.stop.subscribe()));
    }

    /// Polls these SNMP devices until the daemon stops, or those that are sent later.
    pub fn poll_snmp(&mut self, settings: SnmpSettings) -> DeviceSender {
        let (sender, receiver) = devices::channel(settings);
        let context = self.service.collecting();
        let fence = self.service.fence();
        self.spawn(collectors::snmp::run(context, fence, receiver, self.stop.subscribe()));
        sender
    }

    /// Receives agents until the daemon stops; `work` decides what they poll.
    pub fn receive_agents(&mut self, sockets: AgentSockets, work: Arc<Dispatcher>) {
        self.spawn(sockets.run(Arc::clone(&self.service), work, self.stop.subscribe()));
    }

    /// The state shared by all connections.
    pub fn service(&self) -> &Arc<Service> {
        &self.service
    }

    /// Runs a future on the daemon's runtime, such as the wait for a signal.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Stops accepting connections, completes the requests already read, and closes the store.
    ///
    /// # Errors
    /// When the store cannot be closed cleanly.
    pub fn stop(self) -> Result<(), store::engine::StoreError> {
        self.stop_after(|| ())
    }

    /// The same, with something that is done between the last request and the end of the store.
    ///
    /// # Errors
    /// When the store cannot be closed cleanly.
    pub fn stop_after(self, last: impl FnOnce()) -> Result<(), store::engine::StoreError> {
        // Nothing receives this only if every task has already ended.
        self.stop.send_replace(true);
        self.runtime.block_on(async {
            let patience = crate::limits::STOP_TIMEOUT + std::time::Duration::from_secs(1);
            let deadline = tokio::time::Instant::now() + patience;
            for task in self.tasks {
                match tokio::time::timeout_at(deadline, task).await {
                    Ok(Ok(Ok(()))) => {}
                    Ok(Ok(Err(error))) => tracing::error!(%error, "a listener failed"),
                    Ok(Err(error)) => tracing::error!(%error, "a listener ended by a bug"),
                    Err(_) => tracing::warn!("a listener did not end in time"),
                }
            }
        });
        last();
        self.service.engine.stop()
    }
}
