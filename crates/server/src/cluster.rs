//! The daemon as a node of a cluster: from the section `[cluster]` to an engine that is all nodes.

#[cfg(feature = "backup")]
pub mod backed;
mod comparison;
mod figures;
mod spooled;
mod succession;
mod view;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cluster::engine::{ClusterEngine, ClusterOptions};
use cluster::handshake::Membership;
use cluster::log::ReplicatedLog;
use cluster::log::brokers::{BrokerLogin, BrokerSecurity, BrokerTls, Mechanism, Password};
use cluster::log::directory::DirectoryLog;
use cluster::node::{BEAT, NodeOptions};
use cluster::routes::Routes;
use cluster::serve::Listener;
use cluster::spool::{self, Spool, SpoolOptions};
use cluster::tls::NodeTls;
use cluster::tree::NodeTree;
use store::placeholder::StoreIdentity;
use store::stripes;

pub use cluster::node::Node;
pub use cluster::partition::BackupPlace;
pub use cluster::succession::MoveStatus;
use figures::move_text;
pub use figures::{ClusterCollector, problems};
pub use spooled::SpoolCollector;
pub use succession::begin_move;
pub use view::ClusterView;

/// Partitions of a log that is made in a directory: those of a small cluster, and one for the nodes.
const DIRECTORY_PARTITIONS: u32 = 8 + 1;
/// The longest file with a secret.
const SECRET_BYTES_MAX: u64 = 4096;

/// Why there is no Kafka.
#[cfg(not(feature = "kafka"))]
fn no_kafka() -> String {
    args::feature::missing("[cluster.kafka]", "kafka")
}

/// Where the replicated log is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogSettings {
    /// Kafka, or what speaks its protocol.
    Kafka(KafkaSettings),
    /// A directory, for nodes of one machine.
    Directory(PathBuf),
}

/// A topic of Kafka, and how its brokers are reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaSettings {
    /// Some brokers, with commas between.
    pub brokers: String,
    /// The topic.
    pub topic: String,
    /// The files of TLS, absolute; `None` = no TLS.
    pub tls: Option<BrokerTls>,
    /// The login; `None` = none.
    pub login: Option<KafkaLogin>,
    /// Further settings of librdkafka.
    pub properties: Vec<(String, String)>,
}

/// Who a node says it is to the brokers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaLogin {
    /// How the password is shown.
    pub mechanism: Mechanism,
    /// The user's name.
    pub user: String,
    /// The file with the password; absolute.
    pub password_file: PathBuf,
}

impl KafkaSettings {
    /// What the connections are protected by, with the password as its file has it now.
    fn security(&self) -> Result<BrokerSecurity, String> {
        let login = self.login.as_ref().map(|login| {
            let password = read_secret("[cluster.kafka] password_file", &login.password_file)?;
            let cannot =
                |why| format!("[cluster.kafka] password_file \"{}\": {why}", login.password_file.display());
            let password = String::from_utf8(password).map_err(|_| cannot("it is not UTF-8"))?;
            match password.contains('\0') || password.is_empty() {
                true => Err(cannot("it has no password in its first line")),
                false => Ok(BrokerLogin {
                    mechanism: login.mechanism,
                    user: login.user.clone(),
                    password: Password::new(password),
                }),
            }
        });
        Ok(BrokerSecurity { tls: self.tls.clone(), login: login.transpose()? })
    }

    #[cfg(feature = "kafka")]
    fn options(&self) -> Result<cluster::log::kafka::KafkaOptions, String> {
        let mut options = cluster::log::kafka::KafkaOptions::new(&*self.brokers, &*self.topic);
        options.security = self.security()?;
        options.properties.clone_from(&self.properties);
        Ok(options)
    }
}

/// The files of TLS between nodes; absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFiles {
    /// This node's certificate chain.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The authority of all nodes' certificates.
    pub authority: PathBuf,
}

/// When updates are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ack {
    /// Once the replicated log has them.
    Log,
    /// Once this node's disk has them.
    Spool,
}

/// Where updates wait for the log, with [`Ack::Spool`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSpool {
    /// Where it is; `None` = in the store's directory. Absolute.
    pub directory: Option<PathBuf>,
    /// Bytes that may wait in it.
    pub bytes_max: u64,
}

/// The spool's directory in that of the store.
const SPOOL_DIRECTORY: &str = "spool";

/// A node that runs.
pub struct OpenedNode {
    /// All nodes as one store.
    pub engine: Arc<ClusterEngine>,
    /// This one.
    pub node: Arc<Node>,
    /// Its spool, if it has one.
    pub spool: Option<Arc<Spool>>,
}

/// How a server is a node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSettings {
    /// The cluster's name.
    pub name: String,
    /// This node's name.
    pub node: String,
    /// Its zone.
    pub zone: String,
    /// Where it listens for other nodes.
    pub listen: String,
    /// Where they reach it.
    pub address: String,
    /// The file with the secret that all nodes have; absolute.
    pub secret_file: PathBuf,
    /// TLS between the nodes.
    pub files: Option<NodeFiles>,
    /// Replicas of each partition.
    pub replication: usize,
    /// How long an answer waits for the log.
    pub patience: Duration,
    /// The log.
    pub log: LogSettings,
    /// When updates are answered.
    pub ack: Ack,
    /// Where they wait.
    pub spool: NodeSpool,
}

impl ClusterSettings {
    /// What other nodes recognise this one by.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn membership(&self) -> Result<Membership, String> {
        let secret = read_secret("[cluster] secret_file", &self.secret_file)?;
        let tls = match &self.files {
            Some(files) => Some(NodeTls::from_files(&files.certificate, &files.key, &files.authority)?),
            None => None,
        };
        Membership::new(&self.name, &self.node, &secret, tls)
    }

    /// Checks that the files with secrets and certificates can be read.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn check_files(&self) -> Result<(), String> {
        self.membership()?;
        match &self.log {
            LogSettings::Directory(_) => Ok(()),
            #[cfg(feature = "kafka")]
            LogSettings::Kafka(kafka) => {
                cluster::log::kafka::check(&kafka.options()?).map_err(|error| error.to_string())
            }
            #[cfg(not(feature = "kafka"))]
            LogSettings::Kafka(kafka) => kafka.security().and_then(|_| Err(no_kafka())),
        }
    }

    /// Makes the log: `partitions` for RRDs and one for the nodes; as a topic, with each message on `copies` brokers and kept for `retention`.
    ///
    /// # Errors
    /// A text for the operator: when it is there already, say.
    pub fn create_log(&self, partitions: u32, copies: u32, retention: Duration) -> Result<(), String> {
        match &self.log {
            LogSettings::Directory(path) => {
                let made = DirectoryLog::create(path, partitions + 1);
                made.map(drop).map_err(|error| format!("\"{}\": {error}", path.display()))
            }
            #[cfg(feature = "kafka")]
            LogSettings::Kafka(kafka) => {
                use cluster::log::kafka::{NewTopic, create_topic};
                let new = NewTopic { partitions: partitions + 1, replication: copies, retention };
                create_topic(&kafka.options()?, new).map_err(|error| error.to_string())
            }
            #[cfg(not(feature = "kafka"))]
            LogSettings::Kafka(_) => {
                let _ = (partitions, copies, retention);
                Err(no_kafka())
            }
        }
    }

    /// Opens the log, which is there.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn open_log(&self) -> Result<Arc<dyn ReplicatedLog>, String> {
        match &self.log {
            LogSettings::Directory(path) => {
                let log = DirectoryLog::open(path);
                Ok(Arc::new(log.map_err(|error| format!("\"{}\": {error}", path.display()))?))
            }
            #[cfg(feature = "kafka")]
            LogSettings::Kafka(kafka) => {
                let log = cluster::log::kafka::KafkaLog::new(kafka.options()?)
                    .map_err(|error| error.to_string())?;
                Ok(Arc::new(log))
            }
            #[cfg(not(feature = "kafka"))]
            LogSettings::Kafka(_) => Err(no_kafka()),
        }
    }
}

/// The store that placeholders of a cluster's RRDs name.
pub fn tree_identity(settings: &ClusterSettings) -> StoreIdentity {
    cluster::tree::identity(&settings.name)
}

/// The secret in a file, without the end of its line.
fn read_secret(key: &str, path: &Path) -> Result<Vec<u8>, String> {
    let cannot = |why: &dyn std::fmt::Display| format!("{key} \"{}\": {why}", path.display());
    let length = std::fs::metadata(path).map_err(|error| cannot(&error))?.len();
    if length > SECRET_BYTES_MAX {
        return Err(cannot(&format!("it has {length} bytes; give at most {SECRET_BYTES_MAX}")));
    }
    let mut secret = std::fs::read(path).map_err(|error| cannot(&error))?;
    while secret.last().is_some_and(u8::is_ascii_whitespace) {
        secret.pop();
    }
    Ok(secret)
}

/// Starts the node, of which the stores are opened as `store` says, in `directory`, and for whose RRDs placeholders stand in `tree`. What no other node
/// has is made of `backup`.
///
/// # Errors
/// A text for the operator.
pub fn open(
    settings: &ClusterSettings,
    (directory, tree): (&Path, Option<&Path>),
    store: stripes::Options,
    backup: Option<Arc<dyn BackupPlace>>,
) -> Result<OpenedNode, String> {
    let failed = |what: &str, error: &dyn std::fmt::Display| format!("[cluster] {what}: {error}");
    let max_removed = store.max_removed;
    let membership = settings.membership()?;
    let socket = TcpListener::bind(&*settings.listen)
        .map_err(|error| failed(&format!("cannot listen on \"{}\"", settings.listen), &error))?;
    // A directory needs no command before the first node. Another one may make it at the same time.
    let log = settings.open_log().or_else(|error| match &settings.log {
        LogSettings::Directory(path) => DirectoryLog::create(path, DIRECTORY_PARTITIONS)
            .map(|log| Arc::new(log) as Arc<dyn ReplicatedLog>)
            .map_err(|error| format!("\"{}\": {error}", path.display())),
        LogSettings::Kafka(_) => Err(error),
    });
    let log = log.map_err(|error| failed("log", &error))?;
    let options = NodeOptions {
        cluster: settings.name.clone(),
        name: settings.node.clone(),
        zone: settings.zone.clone(),
        address: settings.address.clone(),
        replication: settings.replication,
        directory: directory.to_owned(),
        store,
        patience: settings.patience,
        beat: BEAT,
        backup,
    };
    let node = Arc::new(Node::start(options, log).map_err(|error| failed("node", &error))?);
    let routes = Arc::clone(&node) as Arc<dyn Routes>;
    let listener = Listener::start(socket, membership.clone(), Arc::clone(&routes))
        .map_err(|error| failed("listen", &error))?;
    let engine = ClusterEngine::start(routes, membership, ClusterOptions::default())
        .map_err(|error| failed("node", &error))?;
    tracing::info!(
        name = %settings.name, node = %settings.node, zone = %settings.zone, address = %settings.address,
        partitions = node.partition_count(), "a node of a cluster"
    );
    let mut engine = with_spool(engine.with_node(Arc::clone(&node), listener), settings, directory)
        .map_err(|error| failed("ack", &error))?;
    if let Some(path) = tree {
        let placed =
            NodeTree::open(path, &settings.name, max_removed).and_then(|tree| engine.with_tree(tree));
        engine =
            placed.map_err(|error| failed(&format!("placeholders in \"{}\"", path.display()), &error))?;
    }
    let spool = engine.spool();
    Ok(OpenedNode { engine: Arc::new(engine), node, spool })
}

/// The engine with its spool, if updates are answered from one.
fn with_spool(
    engine: ClusterEngine,
    settings: &ClusterSettings,
    store: &Path,
) -> Result<ClusterEngine, String> {
    let NodeSpool { directory, bytes_max } = &settings.spool;
    let directory = directory.clone().unwrap_or_else(|| store.join(SPOOL_DIRECTORY));
    match settings.ack {
        Ack::Spool => engine.with_spool(SpoolOptions { directory, bytes_max: *bytes_max }),
        // Those that go by the log would overtake what waits there.
        Ack::Log if spool::has_updates(&directory)? => Err(format!(
            "updates wait in the spool \"{}\": start with ack = \"spool\" until they are drained, or remove it",
            directory.display()
        )),
        Ack::Log => Ok(engine),
    }
}
