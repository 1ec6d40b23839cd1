//! MRTG's `MaxAge`: an RRD whose last reading is too old takes none, because more likely the clock is wrong than all that time has
//! passed, and the rows of that time would be lost.

use std::collections::HashMap;

use collect::inventory::{Inventory, RrdId, RrdSpec};
use collect::reading::Reading;
use store::engine::Engine;
use store::name::RrdName;

use super::WriteError;

/// The RRDs with a maximum.
#[derive(Debug, Default)]
pub(super) struct Ages(HashMap<RrdId, Age>);

#[derive(Debug)]
struct Age {
    max: i64,
    /// The time of the last reading that was admitted. What another one wrote since is looked at before a reading is refused.
    last: Option<i64>,
}

impl Ages {
    /// From now on, the readings of an RRD are watched, if its collector has a maximum.
    pub fn watch(&mut self, rrd: RrdId, spec: &RrdSpec) {
        if let Some(max) = spec.max_age() {
            self.0.insert(rrd, Age { max: i64::try_from(max).unwrap_or(i64::MAX), last: None });
        }
    }

    /// Whether a reading may be stored.
    ///
    /// # Errors
    /// [`WriteError::Other`] when the last one is too old.
    pub fn admit(
        &mut self,
        engine: &dyn Engine,
        inventory: &Inventory,
        reading: &Reading,
    ) -> Result<(), WriteError> {
        let Some(age) = self.0.get_mut(&reading.rrd) else { return Ok(()) };
        let time = reading.time.whole;
        let is_young = |last: i64| time.saturating_sub(last) <= age.max;
        if !age.last.is_some_and(is_young) {
            let stored = tokio::task::block_in_place(|| last_reading(engine, inventory.name(reading.rrd)));
            if let Some(last) = stored.max(age.last).filter(|last| !is_young(*last)) {
                let (old, max) = (time.saturating_sub(last), age.max);
                let text = format!("its last reading is {old} s older: more than MaxAge, {max} s");
                return Err(WriteError::Other(text));
            }
        }
        age.last = age.last.max(Some(time));
        Ok(())
    }
}

/// When an RRD had its last reading, if it had one.
fn last_reading(engine: &dyn Engine, name: &[u8]) -> Option<i64> {
    let status = engine.status_for_change(&RrdName::new(name).ok()?).ok()?;
    let unit = i64::from(status.definition.units_per_second.max(1));
    status.is_updated.then(|| status.last_update.whole.div_euclid(unit))
}
