//! librdkafka's errors as those of the log, in texts that say which topic of which brokers, and what to do.

use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::KafkaOptions;
use crate::log::LogError;

/// What errors are about.
#[derive(Clone, Debug)]
pub(super) struct Blame {
    brokers: String,
    topic: String,
}

impl Blame {
    pub(super) fn new(options: &KafkaOptions) -> Blame {
        Blame { brokers: options.brokers.clone(), topic: options.topic.clone() }
    }

    fn refused(&self, what: &str, why: &str) -> LogError {
        LogError::Refused(format!("cannot {what} topic \"{}\" of {}: {why}", self.topic, self.brokers))
    }

    fn unreachable(&self, what: &str, why: &str) -> LogError {
        LogError::Unreachable(format!("cannot {what} topic \"{}\" of {}: {why}", self.topic, self.brokers))
    }

    /// The settings are wrong.
    pub(super) fn settings(&self, error: &KafkaError) -> LogError {
        self.refused(
            "make a client for",
            &format!("{error}; see CONFIGURATION.md of librdkafka for its settings"),
        )
    }

    /// Nothing was heard in time.
    pub(super) fn no_answer(&self, what: &str) -> LogError {
        self.unreachable(what, "no broker answers; check that they run and that their advertised.listeners can be reached from here")
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
                self.refused(what, &format!("{code}; check security.protocol, sasl.* and ssl.* among the properties of [cluster.kafka]"))
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
            Code::MessageTimedOut | Code::NotEnoughReplicas | Code::NotEnoughReplicasAfterAppend => self.unreachable(
                what,
                &format!("{code}; fewer brokers than min.insync.replicas have the partition, or none of them can be reached"),
            ),
            code => self.unreachable(what, &code.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_which_topic_and_whether_waiting_helps() {
        let blame = Blame::new(&KafkaOptions::new("a:9092,b:9092", "rrds"));
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
}
