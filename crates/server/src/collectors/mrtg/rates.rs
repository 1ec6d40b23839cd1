//! The rates that thresholds look at: from the store, or computed from the readings on an agent.

use std::collections::HashSet;
use std::sync::Arc;

use collect::inventory::RrdId;
use collect::mrtg::plan::{MrtgPlan, PlannedTarget};
use collect::mrtg::rates::LocalRates;
use collect::mrtg::threshold::Rates;
use collect::reading::Readings;
use rrd::definition::Cf;
use rrd::fetch::FetchRequest;
use store::engine::Engine;
use store::name::RrdName;

use super::super::context::ReadingSink;

/// Where rates come from.
pub enum RateSource {
    /// The rows of the store of this process.
    Store(Arc<dyn Engine>),
    /// The readings themselves, of these RRDs: the store is on another machine.
    Readings { rates: Box<LocalRates>, judged: HashSet<RrdId> },
}

impl RateSource {
    /// The source for readings that go there.
    pub fn new(sink: &ReadingSink) -> Self {
        match sink {
            ReadingSink::Store(engine) => RateSource::Store(Arc::clone(engine)),
            ReadingSink::Spool(_) => RateSource::Readings { rates: Box::default(), judged: HashSet::new() },
        }
    }

    /// Begins with a plan. What is known of RRDs that it judges, too, is kept.
    pub fn keep(&mut self, plan: &MrtgPlan) {
        let RateSource::Readings { rates, judged } = self else { return };
        let has_thresholds = plan.targets.iter().filter(|target| target.thresholds.is_some());
        *judged = has_thresholds.map(|target| target.rrd).collect();
        let names: HashSet<&[u8]> = judged.iter().map(|rrd| plan.inventory.name(*rrd)).collect();
        rates.keep(|name| names.contains(name));
    }

    /// Takes the readings of RRDs that are judged.
    pub fn take(&mut self, plan: &MrtgPlan, readings: &Readings) {
        let RateSource::Readings { rates, judged } = self else { return };
        for reading in readings.iter().filter(|reading| judged.contains(&reading.rrd)) {
            rates.take(&plan.inventory, readings, reading);
        }
    }

    /// The rates of a target in the row before `now`, and the failures of their forecasts. What is not there is `None`.
    pub fn of(&self, plan: &MrtgPlan, target: &PlannedTarget, now: i64) -> Rates {
        match self {
            RateSource::Store(engine) => {
                let has_forecast = target.thresholds.as_ref().is_some_and(|all| all.has_forecast());
                let (name, step) = (plan.inventory.name(target.rrd), plan.interval.step());
                tokio::task::block_in_place(|| stored(&**engine, name, step, now, has_forecast))
            }
            RateSource::Readings { rates, .. } => {
                Rates { rates: rates.of(&plan.inventory, target.rrd, now), failures: [None; 2] }
            }
        }
    }
}

/// The rates that a store has.
fn stored(engine: &dyn Engine, name: &[u8], step: u64, now: i64, has_forecast: bool) -> Rates {
    let step = step.max(1) as i64;
    let end = now - now.rem_euclid(step);
    let read = |cf: Cf| -> [Option<f64>; 2] {
        let rows = RrdName::new(name).ok().and_then(|name| {
            engine.fetch(&name, FetchRequest::new(cf, end - step, end - 1, step as u64)).ok()
        });
        let value = |nth: usize| rows.as_ref()?.values.get(nth).copied().filter(|value| value.is_finite());
        [value(0), value(1)]
    };
    let failures = if has_forecast { read(Cf::Failures) } else { [None; 2] };
    Rates { rates: read(Cf::Average), failures }
}
