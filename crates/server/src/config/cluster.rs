//! The section `[cluster]`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cluster::log::brokers::{BrokerTls, Mechanism};
use serde::Deserialize;
use toml::Spanned;

use super::{ConfigError, Reader, absolute, line_of, values};
use crate::agents::AgentsSettings;
use crate::cluster::{Ack, ClusterSettings, KafkaLogin, KafkaSettings, LogSettings, NodeFiles, NodeSpool};
use crate::settings::{Layout, Settings};

/// How long an answer waits for the log by default: the brokers need some seconds to replace one of them.
const ACK_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);
/// Bytes that wait in a spool: at 100 bytes an update, 10,000 of them a second for three hours.
const SPOOL_BYTES_DEFAULT: u64 = 10 << 30;
/// Replicas of a partition.
const REPLICATION_DEFAULT: u8 = 2;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a section [cluster]")]
pub(super) struct FileCluster {
    name: Spanned<String>,
    node: Option<Spanned<String>>,
    zone: Option<Spanned<String>>,
    listen: Spanned<String>,
    address: Option<Spanned<String>>,
    secret_file: PathBuf,
    replication: Option<Spanned<u8>>,
    ack_timeout: Option<Spanned<String>>,
    ack: Option<Spanned<String>>,
    spool: Option<PathBuf>,
    spool_bytes: Option<Spanned<String>>,
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    /// A log in a directory, for several nodes on one machine.
    directory: Option<PathBuf>,
    kafka: Option<Spanned<FileKafka>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a section [cluster.kafka]")]
struct FileKafka {
    brokers: Vec<String>,
    topic: String,
    tls: Option<bool>,
    ca_file: Option<PathBuf>,
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
    user: Option<String>,
    password_file: Option<PathBuf>,
    mechanism: Option<Spanned<String>>,
    #[serde(default)]
    properties: BTreeMap<String, String>,
}

impl Reader<'_> {
    /// How this server is a node of a cluster.
    fn cluster(&self, given: FileCluster) -> Result<ClusterSettings, ConfigError> {
        let name = self.cluster_word("name", &given.name)?;
        let node = match &given.node {
            Some(node) => self.cluster_word("node", node)?,
            None => crate::replication::host_name(),
        };
        let zone = given.zone.as_ref().map(|zone| self.cluster_word("zone", zone)).transpose()?;
        let addresses = [Some(&given.listen), given.address.as_ref()];
        for (key, address) in ["listen", "address"].into_iter().zip(addresses) {
            if let Some(address) =
                address.filter(|address| AgentsSettings::is_local(address.get_ref()).is_none())
            {
                return Err(self.error(key, address, "give HOST:PORT, such as 10.0.0.1:42222"));
            }
        }
        let listen = given.listen.get_ref().clone();
        let address = given.address.map_or_else(|| listen.clone(), Spanned::into_inner);
        let bytes = given.spool_bytes.as_ref();
        let spool = NodeSpool {
            directory: given.spool.map(|directory| absolute(&directory)).transpose()?,
            bytes_max: self.bytes("spool_bytes", bytes, SPOOL_BYTES_DEFAULT, values::SPOOL_BYTES)?,
        };
        let files = match (given.cert_file, given.key_file, given.ca_file) {
            (None, None, None) => None,
            (Some(certificate), Some(key), Some(authority)) => Some(NodeFiles {
                certificate: absolute(&certificate)?,
                key: absolute(&key)?,
                authority: absolute(&authority)?,
            }),
            _ => {
                let text = "[cluster]: TLS between nodes needs cert_file, key_file and ca_file together";
                return Err(ConfigError(format!("{}: {text}", self.source)));
            }
        };
        let log = match (given.kafka, given.directory) {
            (Some(kafka), None) => LogSettings::Kafka(self.kafka(kafka)?),
            (None, Some(directory)) => LogSettings::Directory(absolute(Path::new(&directory))?),
            _ => {
                let text = "[cluster] needs [cluster.kafka] with brokers and topic, or, for nodes of one machine, directory";
                return Err(ConfigError(format!("{}: {text}", self.source)));
            }
        };
        let replication = self.number("replication", given.replication.as_ref(), 1..=7)?;
        let patience = given.ack_timeout.as_ref();
        Ok(ClusterSettings {
            name,
            zone: zone.unwrap_or_else(|| node.clone()),
            node,
            listen,
            address,
            secret_file: absolute(&given.secret_file)?,
            files,
            replication: usize::from(replication.unwrap_or(REPLICATION_DEFAULT)),
            patience: self.duration("ack_timeout", patience, ACK_TIMEOUT_DEFAULT, values::ACK_TIMEOUT)?,
            log,
            ack: self.ack(given.ack.as_ref())?,
            spool,
        })
    }

    /// When updates are answered, and where they wait.
    fn ack(&self, ack: Option<&Spanned<String>>) -> Result<Ack, ConfigError> {
        match ack.map(|ack| (ack, ack.get_ref().as_str())) {
            None | Some((_, "log")) => Ok(Ack::Log),
            Some((_, "spool")) => Ok(Ack::Spool),
            Some((ack, _)) => Err(self.error("ack", ack, "give \"log\" or \"spool\"")),
        }
    }

    /// How the topic's brokers are reached.
    fn kafka(&self, given: Spanned<FileKafka>) -> Result<KafkaSettings, ConfigError> {
        let line = line_of(self.text, given.span().start);
        let lacks = |subject: &str, feature: &str| {
            let text = args::feature::missing(subject, feature);
            ConfigError(format!("{}:{line}: {text}", self.source))
        };
        if cfg!(not(feature = "kafka")) {
            return Err(lacks("[cluster.kafka]", "kafka"));
        }
        let given = given.into_inner();
        let wrong = |cause: &str| ConfigError(format!("{}: [cluster.kafka]: {cause}", self.source));
        let path = |file: Option<PathBuf>| file.as_deref().map(absolute).transpose();
        let authority = path(given.ca_file)?;
        let identity = match (path(given.cert_file)?, path(given.key_file)?) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => return Err(wrong("give both cert_file and key_file, or neither")),
        };
        let tls = BrokerTls { authority, identity };
        let tls = match given.tls.unwrap_or_default() {
            true => Some(tls),
            false if tls == BrokerTls::default() => None,
            false => return Err(wrong("ca_file, cert_file and key_file are for TLS: set tls = true")),
        };
        let mechanism = given
            .mechanism
            .as_ref()
            .map(|name| name.get_ref().parse().map_err(|cause: String| self.error("mechanism", name, cause)));
        let mechanism: Option<Mechanism> = mechanism.transpose()?;
        let login = match (given.user, path(given.password_file)?) {
            (Some(user), Some(password_file)) => {
                Some(KafkaLogin { mechanism: mechanism.unwrap_or_default(), user, password_file })
            }
            (None, None) if mechanism.is_none() => None,
            _ => return Err(wrong("a login needs user and password_file together")),
        };
        if cfg!(not(feature = "kafka-tls")) && (tls.is_some() || login.is_some()) {
            return Err(lacks("TLS and logins of [cluster.kafka]", "kafka-tls"));
        }
        Ok(KafkaSettings {
            brokers: given.brokers.join(","),
            topic: given.topic,
            tls,
            login,
            properties: given.properties.into_iter().collect(),
        })
    }

    /// Makes the settings those of a node, and refuses what a node cannot do beside.
    pub(super) fn add_cluster(
        &self,
        given: Option<FileCluster>,
        settings: &mut Settings,
    ) -> Result<(), ConfigError> {
        let Some(given) = given else { return Ok(()) };
        settings.cluster = Some(self.cluster(given)?);
        let refused = [
            (matches!(settings.layout, Layout::Files(_)), "layout = \"files\"", "its RRDs are in stripes"),
            (settings.follow.is_some(), "[follow]", "its nodes follow the log"),
            (!settings.replication.listen.is_empty(), "[replication]", "its nodes follow the log"),
            (
                !settings.forward.is_empty(),
                "[[forward]]",
                "it has no single log to read from; forward from what sends to it",
            ),
            (
                settings.rrdcached_journal.is_some(),
                "rrdcached_journal",
                "start once without [cluster] to take it over",
            ),
            (settings.snapshots.is_some(), "snapshots", "there is no single moment of all nodes"),
        ];
        match refused.into_iter().find(|(is_there, ..)| *is_there) {
            None => Ok(()),
            Some((_, what, why)) => {
                Err(ConfigError(format!("{}: {what} does not go with [cluster]: {why}", self.source)))
            }
        }
    }

    /// A name that stands in logs and tables.
    fn cluster_word(&self, key: &str, word: &Spanned<String>) -> Result<String, ConfigError> {
        let is_word =
            |word: &str| (1..=64).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_graphic());
        match is_word(word.get_ref()) {
            true => Ok(word.get_ref().clone()),
            false => Err(self.error(
                key,
                word,
                "give up to 64 printable ASCII characters without spaces, such as \"east-1\"",
            )),
        }
    }
}

#[cfg(test)]
#[cfg(feature = "kafka-tls")]
mod tests {
    use super::*;
    use crate::config::parse;

    const NODE: &str = "[cluster]\nname = 'c'\nlisten = '127.0.0.1:1'\nsecret_file = '/s'\n[cluster.kafka]\n\
                        brokers = ['k1:9093', 'k2:9093']\ntopic = 't'\n";

    fn kafka(keys: &str) -> Result<KafkaSettings, String> {
        let settings = parse(&format!("{NODE}{keys}"), "x.toml").map_err(|error| error.to_string())?;
        match settings.cluster.unwrap().log {
            LogSettings::Kafka(kafka) => Ok(kafka),
            LogSettings::Directory(_) => panic!("a directory"),
        }
    }

    #[test]
    fn brokers_are_reached_as_the_keys_say() {
        let plain = kafka("").unwrap();
        assert_eq!((plain.brokers.as_str(), plain.tls, plain.login), ("k1:9093,k2:9093", None, None));
        assert_eq!(kafka("tls = true").unwrap().tls, Some(BrokerTls::default()));
        let all = "tls = true\nca_file = '/ca'\ncert_file = '/c'\nkey_file = '/k'\nuser = 'me'\npassword_file = '/p'\n";
        let all = kafka(all).unwrap();
        let identity = Some((PathBuf::from("/c"), PathBuf::from("/k")));
        assert_eq!(all.tls, Some(BrokerTls { authority: Some("/ca".into()), identity }));
        let login = |mechanism| KafkaLogin { mechanism, user: "me".into(), password_file: "/p".into() };
        assert_eq!(all.login, Some(login(Mechanism::ScramSha512)));
        let plain = kafka("user = 'me'\npassword_file = '/p'\nmechanism = 'PLAIN'").unwrap();
        assert_eq!(plain.login, Some(login(Mechanism::Plain)));
    }

    #[test]
    fn keys_that_do_not_go_together_are_refused() {
        for (keys, advice) in [
            ("ca_file = '/ca'", "set tls = true"),
            ("tls = true\ncert_file = '/c'", "both cert_file and key_file"),
            ("user = 'me'", "user and password_file together"),
            ("mechanism = 'PLAIN'", "user and password_file together"),
            (
                "user = 'me'\npassword_file = '/p'\nmechanism = 'plain'",
                "x.toml:10: cannot use mechanism = \"plain\": give one of SCRAM-SHA-512",
            ),
        ] {
            let error = kafka(keys).unwrap_err();
            assert!(error.contains(advice), "{error}");
        }
    }
}
