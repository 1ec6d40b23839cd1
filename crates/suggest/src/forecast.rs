//! Aberrant behaviour: what an RRD with Holt-Winters archives forecasts, as the arguments of a graph (`rrdtool(1)`, "Aberrant
//! Behavior Detection").

use rrd::definition::{Cf, Consolidation, Definition};

/// Deviations between a forecast and the edges of its band, where no archive of failures says how many: rrdcreate(1).
const DELTA: f64 = 2.0;

/// What the archives of an RRD forecast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// HWPREDICT or MHWPREDICT.
    pub predict: Cf,
    /// Deviations above and below the forecast that are still usual; `None`: no deviations are kept.
    pub band: Option<(f64, f64)>,
    /// Failures are kept.
    pub has_failures: bool,
}

impl Forecast {
    /// Of an RRD; `None` where it keeps no forecast.
    pub fn of(definition: &Definition) -> Option<Forecast> {
        let archives = || definition.rra.iter().map(|rra| &rra.cf);
        let predict =
            archives().map(Consolidation::cf).find(|cf| matches!(cf, Cf::HwPredict | Cf::MhwPredict))?;
        let failures = archives().find_map(|archive| match archive {
            Consolidation::Failures { delta_pos, delta_neg, .. } => Some((*delta_pos, *delta_neg)),
            _ => None,
        });
        let has_deviations = archives().any(|archive| archive.cf() == Cf::DevPredict);
        let band = has_deviations.then(|| failures.unwrap_or((DELTA, DELTA)));
        Some(Forecast { predict, band, has_failures: failures.is_some() })
    }
}
