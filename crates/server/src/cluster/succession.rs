//! To another log: as `roundel cluster seal` and `split` have it done with a whole configuration, and the page with the name of a topic.

use std::path::Path;

use cluster::succession::Move;

use super::{ClusterSettings, KafkaSettings, LogSettings};

/// The longest name of a topic, of Kafka.
const TOPIC_BYTES_MAX: usize = 249;

/// Has the cluster of a configuration go on in the log of another one: with as many partitions, or, if it `splits`, with a multiple.
///
/// # Errors
/// A text for the operator; nothing is sealed then.
pub fn begin_move(present: &ClusterSettings, next: &ClusterSettings, splits: bool) -> Result<Move, String> {
    let log = present.open_log().map_err(|error| format!("the present log: {error}"))?;
    let next =
        next.open_log().map_err(|error| format!("the next log: {error}; roundel cluster topic makes it"))?;
    Move::begin(&*log, &*next, splits).map_err(|error| error.to_string())
}

impl ClusterSettings {
    /// The same with another log at the same place: a topic of the same brokers, or a directory beside that of a log in one.
    ///
    /// # Errors
    /// A text for the operator, when nothing there can have that name.
    pub fn with_log_named(&self, name: &str) -> Result<ClusterSettings, String> {
        let is_topic = !name.is_empty()
            && name.len() <= TOPIC_BYTES_MAX
            && !matches!(name, "." | "..")
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        if !is_topic {
            return Err(format!(
                "\"{}\" is no name of a log: give letters, digits, and . _ -, at most {TOPIC_BYTES_MAX}",
                name.escape_debug()
            ));
        }
        let log = match &self.log {
            LogSettings::Kafka(kafka) => {
                LogSettings::Kafka(KafkaSettings { topic: name.to_owned(), ..kafka.clone() })
            }
            LogSettings::Directory(path) => LogSettings::Directory(path.with_file_name(name)),
        };
        Ok(ClusterSettings { log, ..self.clone() })
    }
}

impl LogSettings {
    /// Its name among those at the same place.
    pub fn name(&self) -> String {
        match self {
            LogSettings::Kafka(kafka) => kafka.topic.clone(),
            LogSettings::Directory(path) => {
                path.file_name().unwrap_or_default().to_string_lossy().into_owned()
            }
        }
    }

    /// What it is, and where others are that the cluster may go on in without another configuration.
    pub fn place(&self) -> String {
        match self {
            LogSettings::Kafka(kafka) => format!("topic of {}", kafka.brokers),
            LogSettings::Directory(path) => {
                format!("directory of {}", path.parent().unwrap_or(Path::new("/")).display())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use super::*;
    use crate::cluster::{Ack, NodeSpool};

    fn settings(log: LogSettings) -> ClusterSettings {
        ClusterSettings {
            name: "test".into(),
            node: "a".into(),
            zone: "east".into(),
            listen: "127.0.0.1:0".into(),
            address: "127.0.0.1:0".into(),
            secret_file: "/secret".into(),
            files: None,
            replication: 2,
            patience: Duration::from_secs(1),
            log,
            ack: Ack::Log,
            spool: NodeSpool { directory: None, bytes_max: 1 },
        }
    }

    #[test]
    fn a_log_is_named_at_the_place_of_the_present_one() {
        let present = settings(LogSettings::Directory("/var/lib/roundel/log".into()));
        assert_eq!(
            (present.log.name(), present.log.place()),
            ("log".into(), "directory of /var/lib/roundel".into())
        );
        let next = present.with_log_named("log-2").unwrap();
        assert_eq!(next, settings(LogSettings::Directory(PathBuf::from("/var/lib/roundel/log-2"))));
        let long = "x".repeat(TOPIC_BYTES_MAX + 1);
        for name in ["", ".", "..", "../log-2", "a/b", "/tmp/log", "a b", "a\0", "ä", &long] {
            let error = present.with_log_named(name).unwrap_err();
            assert!(error.contains("is no name of a log"), "{error}");
        }
        let kafka = KafkaSettings {
            brokers: "a:1,b:2".into(),
            topic: "roundel".into(),
            tls: None,
            login: None,
            properties: vec![("linger.ms".into(), "1".into())],
        };
        let present = settings(LogSettings::Kafka(kafka.clone()));
        assert_eq!((present.log.name(), present.log.place()), ("roundel".into(), "topic of a:1,b:2".into()));
        let next = present.with_log_named("roundel.2").unwrap();
        assert_eq!(next.log, LogSettings::Kafka(KafkaSettings { topic: "roundel.2".into(), ..kafka }));
    }
}
