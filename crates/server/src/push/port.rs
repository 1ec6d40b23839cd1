//! What the connections and datagrams of a port share, and how what they bring gets into the store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use ::ingest::fault::Fault;
use ::ingest::fill::Filling;
use ::ingest::refusal::Refusal;
use ::ingest::sample::Samples;
use ::ingest::statsd::aggregate::{Adding, StatsdAggregator};
use ::ingest::{graphite, influx, statsd};

use super::refusals::{RefusalLog, Refused};
use super::{PushPort, PushProtocol};
use crate::ingest::PushWay;
use crate::service::Service;

/// Points of a pickle: some two bytes are one, if it stands in it many times, and no relay sends a twentieth of this.
const POINTS_MAX: usize = 65_536;

/// A port.
pub(super) struct Port {
    /// The store as its clients may see it.
    pub(super) service: Arc<Service>,
    pub(super) settings: PushPort,
    address: String,
    statsd: Option<Arc<Mutex<StatsdAggregator>>>,
    log: RefusalLog,
}

/// What a connection or thread has read and not stored, with memory that serves again.
#[derive(Default)]
pub(super) struct Arrived {
    pub(super) samples: Samples,
    /// How much was refused, by reason.
    refused: BTreeMap<&'static str, u64>,
}

impl Arrived {
    /// True when nothing was read, and nothing refused.
    pub(super) fn is_empty(&self) -> bool {
        self.samples.samples().is_empty() && self.refused.is_empty()
    }
}

impl Port {
    pub(super) fn new(
        service: Arc<Service>,
        settings: PushPort,
        statsd: Option<Arc<Mutex<StatsdAggregator>>>,
    ) -> Self {
        let address = settings.address();
        let log = RefusalLog::new(address.clone());
        Port { service, settings, address, statsd, log }
    }

    /// The name of the protocol.
    pub(super) fn name(&self) -> &'static str {
        self.settings.protocol.name()
    }

    /// Reads whole lines.
    pub(super) fn read_lines(&self, text: &[u8], arrived: &mut Arrived) {
        let Arrived { samples, refused } = arrived;
        let mut refuse = |refusal: Refusal<'_>| {
            *refused.entry(refusal.fault.label()).or_default() += 1;
            // Nearly all senders have fields that are no numbers.
            if !matches!(refusal.fault, Fault::IsText | Fault::IsBoolean) {
                self.log.refused(Refused::One, refusal.text, &refusal.fault);
            }
        };
        match &self.settings.protocol {
            PushProtocol::Statsd => {
                let Some(statsd) = &self.statsd else { return };
                let aggregator = &mut *statsd.lock().unwrap_or_else(PoisonError::into_inner);
                statsd::read_lines(text, 1, &mut Adding { aggregator, sink: &mut refuse });
            }
            PushProtocol::Influx { precision, database } => {
                let mut filling = Filling::new(samples, &mut refuse);
                filling.extra = (!database.is_empty()).then_some(("db", database.as_str()));
                influx::read_lines(text, *precision, &mut filling);
            }
            PushProtocol::Graphite | PushProtocol::Pickle => {
                graphite::read_lines(text, 1, &mut Filling::new(samples, &mut refuse));
            }
        }
    }

    /// Reads a message of the pickle protocol.
    pub(super) fn read_pickle(&self, message: &[u8], arrived: &mut Arrived) {
        let Arrived { samples, refused } = arrived;
        let mut refuse = |refusal: Refusal<'_>| {
            *refused.entry(refusal.fault.label()).or_default() += 1;
            self.log.refused(Refused::One, refusal.text, &refusal.fault);
        };
        let samples_max = samples.samples().len() + POINTS_MAX;
        let mut filling = Filling::new(samples, &mut refuse);
        filling.samples_max = samples_max;
        if let Err(error) = graphite::read_pickle(message, &mut filling) {
            *refused.entry(error.label()).or_default() += 1;
            self.log.refused(Refused::Whole, b"a message", &error);
        }
    }

    /// Counts something that is refused as a whole.
    pub(super) fn refuse(&self, reason: &'static str, text: &[u8], cause: &str) {
        self.service.ingest.counts.refuse(self.name(), reason, 1);
        self.log.refused(Refused::Whole, text, &cause);
    }

    /// Stores what has arrived.
    pub(super) async fn store(&self, arrived: &mut Arrived) {
        let Service { ingest, .. } = &*self.service;
        for (reason, count) in std::mem::take(&mut arrived.refused) {
            ingest.counts.refuse(self.name(), reason, count);
        }
        if arrived.samples.samples().is_empty() {
            arrived.samples.clear();
            return;
        }
        let way = PushWay { protocol: self.name(), port: Some(&self.address) };
        let written = ingest.write(&self.service, way, &arrived.samples).await;
        if let Some(failure) = written.failures.first() {
            let sample = arrived.samples.samples()[failure.sample as usize];
            let series = arrived.samples.series(sample.series).to_string();
            self.log.refused(Refused::One, series.as_bytes(), &failure.error);
        }
        arrived.samples.clear();
    }
}
