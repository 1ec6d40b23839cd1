//! What librdkafka says without being asked: its log goes to ours, and whether any broker can be reached is remembered.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::ProducerContext;
use rdkafka::{ClientContext, Statistics};

use super::errors::Blame;

/// The listener of one client.
pub(super) struct Talk {
    /// Which of the clients it is.
    client: &'static str,
    /// Who is told why a broker refuses.
    blame: Blame,
    /// Set when no broker answers; it is for others to clear it.
    pub(super) all_down: AtomicBool,
}

impl Talk {
    pub(super) fn new(client: &'static str, blame: &Blame) -> Talk {
        Talk { client, blame: blame.clone(), all_down: AtomicBool::new(false) }
    }
}

impl ClientContext for Talk {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, text: &str) {
        let client = self.client;
        match level {
            RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
                tracing::error!("Kafka's client ({client}): {facility}: {text}");
            }
            // A broker that cannot be reached is an error to librdkafka, at each try; the log goes on without it.
            RDKafkaLogLevel::Error | RDKafkaLogLevel::Warning => {
                tracing::warn!("Kafka's client ({client}): {facility}: {text}");
            }
            RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info => {
                tracing::info!("Kafka's client ({client}): {facility}: {text}");
            }
            RDKafkaLogLevel::Debug => tracing::debug!("Kafka's client ({client}): {facility}: {text}"),
        }
    }

    fn stats(&self, _: Statistics) {}

    fn error(&self, error: KafkaError, reason: &str) {
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::AllBrokersDown) => self.all_down.store(true, Ordering::Relaxed),
            Some(code) => self.blame.hear(code, reason),
            None => {}
        }
        tracing::debug!("Kafka's client ({}): {error}: {reason}", self.client);
    }
}

impl ConsumerContext for Talk {}

impl ProducerContext for Talk {
    /// Who waits for the delivery.
    type DeliveryOpaque = Box<SyncSender<Result<(), KafkaError>>>;

    fn delivery(&self, result: &DeliveryResult<'_>, waiting: Self::DeliveryOpaque) {
        // One that has given up waiting is not there any more.
        let _ = waiting.send(result.as_ref().map(|_| ()).map_err(|(error, _)| error.clone()));
    }
}
