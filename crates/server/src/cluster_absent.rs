//! In place of `cluster.rs` in a build without the feature `cluster`: types without values, because the daemon accepts no
//! configuration with `[cluster]`.

use std::convert::Infallible;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use store::engine::Engine;
use store::placeholder::StoreIdentity;
use store::stripes;

/// A node of a cluster; never exists.
#[derive(Debug)]
pub struct Node(Infallible);

impl Node {
    /// Its name.
    pub fn name(&self) -> &str {
        match self.0 {}
    }

    /// Returns a value of any type, because no node exists.
    pub fn never<T>(&self) -> T {
        match self.0 {}
    }

    /// Has it give its replicas to others, or take some again.
    pub fn drain(&self, _drains: bool) {
        match self.0 {}
    }
}

/// Settings of a node of a cluster; never exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSettings {
    /// The cluster's name.
    pub name: String,
    never: Infallible,
}

impl ClusterSettings {
    /// Checks nothing.
    ///
    /// # Errors
    /// None.
    pub fn check_files(&self) -> Result<(), String> {
        match self.never {}
    }
}

/// A node that runs; never exists.
pub struct OpenedNode {
    /// All nodes as one store.
    pub engine: Arc<dyn Engine>,
    /// This one.
    pub node: Arc<Node>,
    /// Its spool.
    pub spool: Option<Arc<Infallible>>,
}

/// A place of backups, from which a lost replica is made again.
pub trait BackupPlace {}

/// The store that placeholders of no cluster name.
pub fn tree_identity(settings: &ClusterSettings) -> StoreIdentity {
    match settings.never {}
}

/// Is never called.
///
/// # Errors
/// None.
pub fn open(
    settings: &ClusterSettings,
    _places: (&Path, Option<&Path>),
    _store: stripes::Options,
    _backup: Option<Arc<dyn BackupPlace>>,
) -> Result<OpenedNode, String> {
    match settings.never {}
}

/// Figures of no node.
#[derive(Clone, Debug)]
pub struct ClusterCollector(pub Arc<Node>);

impl Collector for ClusterCollector {
    fn encode(&self, _encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        match self.0.0 {}
    }
}

/// Problems of a node; is never called.
pub fn problems(node: &Node) -> Vec<String> {
    match node.0 {}
}

/// Figures of no spool.
#[derive(Clone, Debug)]
pub struct SpoolCollector(pub Arc<Infallible>);

impl SpoolCollector {
    /// A problem of the spool; is never called.
    pub fn problem(&self) -> Option<String> {
        match *self.0 {}
    }
}

impl Collector for SpoolCollector {
    fn encode(&self, _encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        match *self.0 {}
    }
}

/// Backups of no replicas.
#[cfg(feature = "backup")]
pub mod backed {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use backup::replicas::Replicas;
    use backup::run::BackupSettings;
    use store::capture::Capture;

    use super::{BackupPlace, Node};

    /// The replicas of a node; never exists.
    pub struct NodeReplicas(pub Arc<Node>);

    impl Replicas for NodeReplicas {
        fn partitions(&self) -> u32 {
            match self.0.0 {}
        }

        fn led(&self) -> BTreeMap<u32, u32> {
            match self.0.0 {}
        }

        fn capture(&self, _partition: u32) -> Result<(Capture, String), String> {
            match self.0.0 {}
        }
    }

    /// The place of backups.
    pub struct ReplicaBackups(pub BackupSettings);

    impl BackupPlace for ReplicaBackups {}
}
