//! Our daemon within the test's process.
#![allow(dead_code, reason = "each test uses its part")]

pub mod cluster;
pub mod engine;
pub mod http;

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use protocol::rrdcached::address::Address;
use protocol::rrdcached::command::Permissions;
use roundel_server::access::{Access, Principal};
use roundel_server::daemon::{self, Daemon, Sockets};
use roundel_server::http::access::{Door, WebAccess};
use roundel_server::ingest::IngestSettings;
use roundel_server::listener::{self, Listen};
use roundel_server::names::Names;
use roundel_server::service::{CreatePolicy, Service};
use roundel_server::settings::{FilesSettings, Layout, LimitSettings, Settings, listen_plain};
use store::engine::Engine;

/// Our daemon within this process, in its own directory.
pub struct Roundel {
    daemon: Option<Daemon>,
    /// The other node, if this is one of a cluster.
    other: Option<Arc<dyn Engine>>,
    directory: tempfile::TempDir,
}

/// Who clients are, and what those may do that do not say it.
pub struct Clients {
    pub access: Access,
    pub anonymous: Arc<Principal>,
    pub door: Arc<Door>,
    pub ingest: IngestSettings,
}

impl Default for Clients {
    fn default() -> Self {
        Clients {
            access: Access::default(),
            anonymous: Principal::everyone(),
            door: Arc::default(),
            ingest: IngestSettings::default(),
        }
    }
}

impl Roundel {
    /// With a striped store.
    pub fn stripes(create: CreatePolicy, permissions: Permissions) -> Self {
        // All tests of this executable with a cluster: CONTRIBUTING.md.
        if std::env::var_os("ROUNDEL_TEST_CLUSTER").is_some() {
            return Self::in_a_cluster(create, permissions);
        }
        let directory = tempfile::tempdir().unwrap();
        let settings = Settings::new(directory.path().join("store"), directory.path().join("base"));
        let engine = roundel_server::layout::open(&settings).unwrap();
        Self::on(directory, engine, create, permissions)
    }

    /// As one of two nodes of a cluster.
    pub fn in_a_cluster(create: CreatePolicy, permissions: Permissions) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (engine, other) = cluster::front_end(directory.path());
        let mut roundel = Self::on(directory, engine, create, permissions);
        roundel.other = Some(other);
        roundel
    }

    /// With a striped store that has these limits.
    pub fn stripes_with(limits: LimitSettings) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let settings = Settings::new(directory.path().join("store"), directory.path().join("base"));
        let engine = roundel_server::layout::open(&Settings { limits, ..settings }).unwrap();
        Self::limited(directory, engine, CreatePolicy::default(), Permissions::ALL, &limits)
    }

    /// With standard files and these limits.
    pub fn files_with(limits: LimitSettings) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let settings = Settings::new(directory.path().join("store"), directory.path().join("base"));
        let layout = Layout::Files(FilesSettings::default());
        let engine = roundel_server::layout::open(&Settings { limits, layout, ..settings }).unwrap();
        Self::limited(directory, engine, CreatePolicy::default(), Permissions::ALL, &limits)
    }

    /// With standard files, which are written after an hour or on request.
    pub fn files(create: CreatePolicy) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options =
            store::files::Options::new(directory.path().join("base"), directory.path().join("journal"));
        options.write_interval = Duration::from_secs(3600);
        std::fs::create_dir_all(directory.path().join("base")).unwrap();
        let engine = store::files::FilesEngine::open(options).unwrap();
        Self::on(directory, Arc::new(engine), create, Permissions::ALL)
    }

    /// With any engine.
    pub fn with_engine(engine: Arc<dyn Engine>) -> Self {
        let create = CreatePolicy { make_directories: true, ..Default::default() };
        Self::on(tempfile::tempdir().unwrap(), engine, create, Permissions::ALL)
    }

    /// With a striped store; `access`, whose files may be in `directory`, guards HTTP.
    pub fn guarded(directory: tempfile::TempDir, access: &WebAccess) -> Self {
        let settings = Settings::new(directory.path().join("store"), directory.path().join("base"));
        let engine = roundel_server::layout::open(&settings).unwrap();
        let door = Arc::new(access.open().unwrap());
        let (create, limits) = (CreatePolicy::default(), LimitSettings::default());
        let clients = Clients { door, ..Clients::default() };
        Self::start(directory, engine, create, Permissions::ALL, &limits, clients)
    }

    /// With a striped store or standard files, for these clients.
    pub fn for_clients(directory: tempfile::TempDir, is_striped: bool, clients: Clients) -> Self {
        let mut settings = Settings::new(directory.path().join("store"), directory.path().join("base"));
        if !is_striped {
            settings.layout = Layout::Files(FilesSettings::default());
        }
        let engine = roundel_server::layout::open(&settings).unwrap();
        let create = CreatePolicy { make_directories: true, ..CreatePolicy::default() };
        Self::start(directory, engine, create, Permissions::ALL, &LimitSettings::default(), clients)
    }

    /// With a striped store, and so much memory for clients.
    pub fn with_memory(memory: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let settings = Settings::new(directory.path().join("store"), directory.path().join("base"));
        let engine = roundel_server::layout::open(&settings).unwrap();
        let create = CreatePolicy { make_directories: true, ..CreatePolicy::default() };
        let limits = LimitSettings { memory, ..LimitSettings::default() };
        Self::limited(directory, engine, create, Permissions::ALL, &limits)
    }

    fn on(
        directory: tempfile::TempDir,
        engine: Arc<dyn Engine>,
        create: CreatePolicy,
        permissions: Permissions,
    ) -> Self {
        Self::limited(directory, engine, create, permissions, &LimitSettings::default())
    }

    fn limited(
        directory: tempfile::TempDir,
        engine: Arc<dyn Engine>,
        create: CreatePolicy,
        permissions: Permissions,
        limits: &LimitSettings,
    ) -> Self {
        Self::start(directory, engine, create, permissions, limits, Clients::default())
    }

    fn start(
        directory: tempfile::TempDir,
        engine: Arc<dyn Engine>,
        create: CreatePolicy,
        permissions: Permissions,
        limits: &LimitSettings,
        clients: Clients,
    ) -> Self {
        let Clients { access, anonymous, door, ingest } = clients;
        let base = directory.path().join("base");
        std::fs::create_dir_all(&base).unwrap();
        let service = Service::with_limits(engine, Names::new(&base, &base), create, limits, access);
        service.ingest.configure(ingest);
        let mut sockets = Sockets { door, ..Sockets::default() };
        let address = Address::Unix(directory.path().join("sock"));
        let listen = Listen { permissions, ..listen_plain(address) };
        for bound in listen.bind().unwrap() {
            sockets.rrdcached.push((bound, listener::shared(permissions, Arc::clone(&anonymous))));
        }
        let http = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        std::fs::write(directory.path().join("http"), http.local_addr().unwrap().to_string()).unwrap();
        sockets.http.push(http);
        sockets.site.saving = roundel_server::http::Saving::Local;
        sockets.site.templates = Some(directory.path().join("graphs"));
        // As if it collected this host; tests write the readings.
        sockets.site.host = Some("hosts/here".into());
        let daemon = Daemon::start(daemon::runtime().unwrap(), service, sockets).unwrap();
        Roundel { daemon: Some(daemon), other: None, directory }
    }

    /// Its base directory.
    pub fn base(&self) -> PathBuf {
        self.directory.path().join("base")
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("sock")
    }

    /// A file beside the socket.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The state shared by its connections.
    pub fn service(&self) -> &Arc<Service> {
        self.daemon.as_ref().expect("running").service()
    }

    /// Stops it.
    pub fn stop(mut self) {
        self.daemon.take().expect("running").stop().unwrap();
    }

    /// Sends a GET over HTTP.
    pub fn get(&self, target: &str) -> String {
        let address = std::fs::read_to_string(self.path("http")).unwrap();
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        write!(stream, "GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Roundel {
    fn drop(&mut self) {
        if let Some(daemon) = self.daemon.take() {
            daemon.stop().ok();
        }
    }
}
