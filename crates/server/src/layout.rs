//! Opens the store that the settings describe.

use std::io;
use std::path::Path;
use std::sync::Arc;

use protocol::rrdcached::address::Address;
use store::awaited::{Awaited, AwaitedDisk};
use store::disk::Disk;
use store::disk::real::RealDisk;
use store::engine::Engine;
use store::files::{self, FilesEngine};
use store::memory::{Memory, MemoryLimits};
use store::placeholder::StoreIdentity;
use store::stripes::{self, Stripes};
use store::{daemon_address, filenames, identity};

use crate::cluster::{self, OpenedNode};
#[cfg(feature = "backup")]
use crate::cluster::{BackupPlace, backed::ReplicaBackups};
use crate::listener::Listen;
use crate::settings::{FilesSettings, Layout, Settings, StripesSettings, SyncPolicy};

/// Opens the store.
///
/// # Errors
/// A text for the operator.
pub fn open(settings: &Settings) -> Result<Arc<dyn Engine>, String> {
    open_awaiting(settings, None)
}

/// Opens the store, of which some files may come later.
///
/// # Errors
/// A text for the operator.
pub fn open_awaiting(settings: &Settings, awaited: Option<&Arc<Awaited>>) -> Result<Arc<dyn Engine>, String> {
    make_directory(&settings.base)?;
    match &settings.layout {
        Layout::Stripes(stripes) => {
            let engine = open_stripes(stripes, settings, awaited)?;
            if let Some(tree) = &stripes.placeholders {
                let said = std::fs::read_to_string(filenames::identity(&stripes.store))
                    .and_then(|text| {
                        identity::decode(&text).map_err(|error| io::Error::other(error.to_string()))
                    })
                    .and_then(|identity| {
                        write_daemon_address(tree, StoreIdentity(identity.id), &settings.listen)
                    });
                warn_unsaid(tree, said);
            }
            Ok(engine)
        }
        Layout::Files(files) => open_files(files, settings),
    }
}

/// Records beside the placeholders where this daemon listens, so that clients which meet one find it: its
/// UNIX socket, else its first address. Without that, clients must be given the address.
fn write_daemon_address(tree: &Path, store: StoreIdentity, listen: &[Listen]) -> io::Result<()> {
    let local = listen.iter().find(|listen| matches!(listen.address, Address::Unix(_)));
    let Some(listen) = local.or(listen.first()) else { return Ok(()) };
    let address = match &listen.address {
        Address::Unix(path) => Address::Unix(std::path::absolute(path)?).to_string(),
        Address::Tcp { host, port } if listen.tls.is_some() => {
            Address::Tls { host: host.clone(), port: *port }.to_string()
        }
        address => address.to_string(),
    };
    daemon_address::write(tree, store, &address)
}

fn warn_unsaid(tree: &Path, said: io::Result<()>) {
    if let Err(error) = said {
        tracing::warn!(%error, tree = %tree.display(), "cannot say beside the placeholders where this daemon listens");
    }
}

fn make_directory(path: &Path) -> Result<(), String> {
    std::fs::create_dir_all(path)
        .map_err(|error| format!("cannot make directory \"{}\": {error}", path.display()))
}

fn open_stripes(
    settings: &StripesSettings,
    all: &Settings,
    awaited: Option<&Arc<Awaited>>,
) -> Result<Arc<dyn Engine>, String> {
    if let Some(cluster) = &all.cluster {
        return Err(format!(
            "this is a node of the cluster \"{}\": its RRDs are in partitions on several nodes; start the daemon, and ask that",
            cluster.name
        ));
    }
    let path = settings.store.display();
    let disk = RealDisk::create(&settings.store)
        .map_err(|error| format!("cannot open store \"{path}\": {error}"))?;
    let options = stripes_options(settings, all);
    for tree in options.placeholder_tree.iter().chain(&options.adopt_tree) {
        make_directory(tree)?;
    }
    let disk: Arc<dyn Disk> = match awaited {
        Some(awaited) => Arc::new(AwaitedDisk(Arc::clone(awaited))),
        None => Arc::new(disk),
    };
    let store =
        Stripes::open(disk, &options).map_err(|error| format!("cannot open store \"{path}\": {error}"))?;
    Ok(Arc::new(store))
}

/// How a striped store is opened.
fn stripes_options(settings: &StripesSettings, all: &Settings) -> stripes::Options {
    let mut options = stripes::Options {
        directory: Some(settings.store.clone()),
        placeholder_tree: settings.placeholders.clone(),
        adopt_tree: settings.adopt.clone(),
        adopted: settings.adopted,
        adopt_unused: settings.adopt_unused,
        trash: settings.trash,
        max_removed: f64::from(settings.max_removed) / 100.0,
        follow: all.follow.is_some(),
        ..stripes::Options::default()
    };
    if let Some(shards) = settings.shards {
        options.shard_count = shards;
    }
    options.shard.memory =
        Memory::new(MemoryLimits { rrd_bytes: all.limits.rrd_memory, store_bytes: all.limits.store_memory });
    options.shard.replica_patience = all.replication.replica_patience;
    options.shard.hold_log = !all.forward.is_empty() || !all.replication.listen.is_empty();
    match all.sync {
        SyncPolicy::Always => options.shard.sync_always = true,
        SyncPolicy::Every(interval) => options.shard.sync_interval = interval,
    }
    if let Some(bytes) = settings.open_bytes {
        options.shard.open_bytes_min = bytes;
    }
    if let Some(bytes) = settings.log_bytes {
        options.shard.log_bytes_max = bytes;
    }
    options
}

/// Starts the node of a cluster that the settings describe.
///
/// # Errors
/// A text for the operator.
pub fn open_node(settings: &Settings) -> Result<OpenedNode, String> {
    make_directory(&settings.base)?;
    let (Some(cluster), Layout::Stripes(stripes)) = (&settings.cluster, &settings.layout) else {
        return Err("[cluster] needs layout = \"stripes\"".to_string());
    };
    #[cfg(feature = "backup")]
    let backup =
        settings.backup.clone().map(|backup| Arc::new(ReplicaBackups(backup)) as Arc<dyn BackupPlace>);
    #[cfg(not(feature = "backup"))]
    let backup = None;
    let options = stripes_options(stripes, settings);
    if let Some(tree) = &stripes.placeholders {
        make_directory(tree)?;
        warn_unsaid(tree, write_daemon_address(tree, cluster::tree_identity(cluster), &settings.listen));
    }
    cluster::open(cluster, (&stripes.store, stripes.placeholders.as_deref()), options, backup)
}

fn open_files(settings: &FilesSettings, all: &Settings) -> Result<Arc<dyn Engine>, String> {
    if let Some(journal) = &settings.journal {
        make_directory(journal)?;
    }
    let mut options = files::Options::new(all.base.clone(), Default::default());
    options.journal = settings.journal.clone();
    options.write_interval = settings.write_interval;
    options.write_jitter = settings.write_jitter;
    options.flush_interval = settings.flush_interval;
    options.flush_at_stop = settings.flush_at_stop;
    options.rrd_bytes_max = all.limits.rrd_memory;
    if let Some(threads) = settings.write_threads {
        options.write_threads = threads.clamp(1, 256);
    }
    options.sync = match all.sync {
        SyncPolicy::Always => files::SyncMode::Always,
        SyncPolicy::Every(interval) => files::SyncMode::Every(interval),
    };
    let engine = FilesEngine::open(options).map_err(|error| error.to_string())?;
    Ok(Arc::new(engine))
}
