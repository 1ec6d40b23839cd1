//! librdkafka's errors as those of the log, in texts that say which topic of which brokers, and what to do.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::KafkaOptions;
use super::probe::{Finding, Probe};
use crate::lock::lock;
use crate::log::LogError;

/// How long what was heard explains errors: librdkafka says the same again only after half a minute.
const HEARD: Duration = Duration::from_secs(40);

/// What to do when no broker answers.
const NO_ANSWER: &str = "check that they run and that their advertised.listeners can be reached from here";

/// What errors are about, and what explains them.
#[derive(Clone)]
pub(super) struct Blame {
    brokers: String,
    topic: String,
    probe: Arc<Probe>,
    heard: Arc<Mutex<Option<Heard>>>,
}

/// Why a broker last refused this program.
struct Heard {
    since: Instant,
    /// Whether it refused the login, and not a connection.
    is_login: bool,
    why: String,
}

impl Blame {
    pub(super) fn new(options: &KafkaOptions) -> Result<Blame, LogError> {
        let unfit = |why: String| LogError::Refused(format!("TLS to {}: {why}", options.brokers));
        Ok(Blame {
            brokers: options.brokers.clone(),
            topic: options.topic.clone(),
            probe: Arc::new(Probe::new(options).map_err(unfit)?),
            heard: Arc::default(),
        })
    }

    /// Takes notice of what librdkafka says of a connection.
    pub(super) fn hear(&self, code: RDKafkaErrorCode, reason: &str) {
        let is_login = match code {
            RDKafkaErrorCode::Authentication | RDKafkaErrorCode::SaslAuthenticationFailed => true,
            RDKafkaErrorCode::SSL => false,
            _ => return,
        };
        let advice = match is_login {
            true => {
                "check user, password_file and mechanism of [cluster.kafka], and that the brokers know this user"
            }
            false => "check tls, ca_file, cert_file and key_file of [cluster.kafka]",
        };
        let heard = Heard { since: Instant::now(), is_login, why: format!("{reason}; {advice}") };
        *lock(&self.heard) = Some(heard);
    }

    /// What was heard lately: why, and whether it is the login.
    fn heard(&self) -> Option<(String, bool)> {
        let heard = lock(&self.heard);
        let heard = heard.as_ref().filter(|heard| heard.since.elapsed() < HEARD)?;
        Some((heard.why.clone(), heard.is_login))
    }

    /// The error of a question, for which there is time to find out why.
    pub(super) fn question(&self, what: &str, error: &KafkaError) -> LogError {
        use RDKafkaErrorCode as Code;
        let told = self.error(what, error);
        let is_silence = matches!(
            error.rdkafka_error_code(),
            Some(
                Code::AllBrokersDown
                    | Code::BrokerTransportFailure
                    | Code::OperationTimedOut
                    | Code::Resolve
                    | Code::SSL
            )
        );
        // A connection that comes to a login has no other fault.
        if !is_silence || self.heard().is_some_and(|(_, is_login)| is_login) {
            return told;
        }
        match self.probe.look() {
            Some(Finding::Wrong(why)) => self.refused(what, &why),
            Some(Finding::Away(why)) => {
                self.unreachable(what, &format!("no broker answers ({why}); {NO_ANSWER}"))
            }
            None => told,
        }
    }

    fn refused(&self, what: &str, why: &str) -> LogError {
        LogError::Refused(format!("cannot {what} topic \"{}\" of {}: {why}", self.topic, self.brokers))
    }

    fn unreachable(&self, what: &str, why: &str) -> LogError {
        LogError::Unreachable(format!("cannot {what} topic \"{}\" of {}: {why}", self.topic, self.brokers))
    }

    /// The settings are wrong.
    pub(super) fn settings(&self, error: &KafkaError) -> LogError {
        let why = match error {
            // Not the value, which may be a secret.
            KafkaError::ClientConfig(_, why, name, _) => format!("{why} ({name})"),
            other => other.to_string(),
        };
        self.refused(
            "make a client for",
            &format!("{why}; see CONFIGURATION.md of librdkafka for its settings"),
        )
    }

    /// Nothing was heard in time.
    pub(super) fn no_answer(&self, what: &str) -> LogError {
        match self.heard() {
            Some((why, _)) => self.refused(what, &why),
            None => self.unreachable(what, &format!("no broker answers; {NO_ANSWER}")),
        }
    }

    /// There is no such topic.
    pub(super) fn no_topic(&self) -> LogError {
        let make = format!(
            "it does not exist; make it with \"kafka-topics.sh --bootstrap-server {} --create --topic {} --partitions 32 --replication-factor 3 \
             --config min.insync.replicas=2 --config cleanup.policy=delete --config max.message.bytes=4194304\" (docs/cluster.md has the other settings)",
            self.brokers, self.topic
        );
        self.refused("use", &make)
    }

    /// There is no such partition.
    pub(super) fn no_partition(&self, partition: u32, count: u32) -> LogError {
        self.refused("use", &format!("it has {count} partitions, and no number {partition}"))
    }

    /// Of a position that is not in the log.
    pub(super) fn beyond_the_end(&self, partition: i32, end: u64, offset: u64) -> LogError {
        self.refused(
            "read",
            &format!(
                "partition {partition} ends at offset {end}, before offset {offset}, up to which it had been read: it lost messages, or it is another topic of the same name"
            ),
        )
    }

    /// Of messages that are not there.
    pub(super) fn gap(&self, partition: i32, want: u64, got: u64) -> LogError {
        self.refused(
            "read",
            &format!(
                "partition {partition} has no message between offsets {want} and {got}: something else writes to the topic by transactions, it is compacted (cleanup.policy must be delete), or messages were lost"
            ),
        )
    }

    /// Another reader of the process has its place.
    pub(super) fn replaced(&self, partition: i32) -> LogError {
        self.refused("read", &format!("another reader of this process reads partition {partition} now"))
    }

    /// Any other error.
    pub(super) fn error(&self, what: &str, error: &KafkaError) -> LogError {
        match error.rdkafka_error_code() {
            Some(code) => self.code(what, code),
            None => self.refused(what, &error.to_string()),
        }
    }

    /// Any other error's code.
    pub(super) fn code(&self, what: &str, code: RDKafkaErrorCode) -> LogError {
        use RDKafkaErrorCode as Code;
        match code {
            Code::UnknownTopic | Code::UnknownTopicOrPartition => self.no_topic(),
            Code::UnknownPartition => self.refused(what, "there is no such partition"),
            Code::TopicAuthorizationFailed
            | Code::ClusterAuthorizationFailed
            | Code::GroupAuthorizationFailed
            | Code::TransactionalIdAuthorizationFailed => self.refused(
                what,
                &format!("{code}; this user needs READ, WRITE and DESCRIBE of the topic and DESCRIBE of the group \"roundel\""),
            ),
            Code::Authentication | Code::SaslAuthenticationFailed | Code::SSL => {
                let advice = || format!("{code}; check tls, ca_file, user and password_file of [cluster.kafka]");
                self.refused(what, &self.heard().map_or_else(advice, |(why, _)| why))
            }
            Code::MessageSizeTooLarge | Code::InvalidMessageSize => self.refused(
                what,
                "a message is too long for it; set max.message.bytes of the topic, and message.max.bytes and replica.fetch.max.bytes of the brokers, to 4194304",
            ),
            Code::BadMessage | Code::InvalidMessage => self.refused(
                what,
                "a message is damaged on the broker that leads its partition; delete that partition's directory on that broker, which then fetches it from the others",
            ),
            Code::InvalidReplicationFactor | Code::InvalidConfig | Code::PolicyViolation | Code::InvalidPartitions => {
                self.refused(what, &code.to_string())
            }
            Code::OperationTimedOut | Code::AllBrokersDown | Code::BrokerTransportFailure | Code::Resolve => {
                self.no_answer(what)
            }
            Code::MessageTimedOut | Code::NotEnoughReplicas | Code::NotEnoughReplicasAfterAppend => {
                let heard = self.heard().map(|(why, _)| format!(" ({why})")).unwrap_or_default();
                self.unreachable(
                    what,
                    &format!("{code}; fewer brokers than min.insync.replicas have the partition, or none of them can be reached{heard}"),
                )
            }
            code => self.unreachable(what, &code.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_which_topic_and_whether_waiting_helps() {
        let blame = Blame::new(&KafkaOptions::new("a:9092,b:9092", "rrds")).unwrap();
        let told = |code| blame.code("append to", code);
        for code in [
            RDKafkaErrorCode::AllBrokersDown,
            RDKafkaErrorCode::MessageTimedOut,
            RDKafkaErrorCode::NotEnoughReplicas,
            RDKafkaErrorCode::NotLeaderForPartition,
            RDKafkaErrorCode::OperationTimedOut,
        ] {
            assert!(
                matches!(told(code), LogError::Unreachable(why) if why.contains("\"rrds\" of a:9092,b:9092"))
            );
        }
        for (code, advice) in [
            (RDKafkaErrorCode::UnknownTopicOrPartition, "--create --topic rrds"),
            (RDKafkaErrorCode::TopicAuthorizationFailed, "needs READ, WRITE"),
            (RDKafkaErrorCode::MessageSizeTooLarge, "max.message.bytes"),
            (RDKafkaErrorCode::BadMessage, "delete that partition's directory"),
        ] {
            assert!(matches!(told(code), LogError::Refused(why) if why.contains(advice)), "{code}");
        }
    }

    #[test]
    fn what_a_broker_said_explains_why_none_answers() {
        let blame = Blame::new(&KafkaOptions::new("a:9092", "rrds")).unwrap();
        blame.hear(RDKafkaErrorCode::BrokerTransportFailure, "a: gone");
        assert!(
            matches!(blame.no_answer("read"), LogError::Unreachable(why) if why.contains("no broker answers"))
        );
        blame.hear(RDKafkaErrorCode::Authentication, "a: invalid credentials");
        for error in [blame.no_answer("read"), blame.code("read", RDKafkaErrorCode::Authentication)] {
            let text = error.to_string();
            assert!(matches!(error, LogError::Refused(_)), "{text}");
            assert!(text.contains("a: invalid credentials; check user, password_file"), "{text}");
        }
        let error = blame.code("append to", RDKafkaErrorCode::MessageTimedOut);
        assert!(
            matches!(&error, LogError::Unreachable(why) if why.contains("invalid credentials")),
            "{error}"
        );
    }
}
