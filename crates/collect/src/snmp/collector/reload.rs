//! Another configuration for a collector that runs: devices that it leaves as they are notice nothing.

use std::collections::HashMap;

use super::SnmpCollector;
use super::discovery::Discovery;
use crate::snmp::engine::DeviceId;
use crate::snmp::profile::Profiles;
use crate::snmp::source::SnmpSource;

/// What another configuration changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Devices that are polled no more, or by other rules: nothing is remembered of them.
    pub removed: Vec<DeviceId>,
    /// Devices that are new, or polled by other rules: they have no address yet.
    pub added: Vec<DeviceId>,
    /// How many are polled as before, with all that was learnt of them.
    pub unchanged: usize,
    /// Devices that cannot be polled, and why.
    pub refused: Vec<(String, String)>,
}

impl SnmpCollector {
    /// Polls these devices instead of those so far. A device is the one of its name; it is polled as before if nothing is said of it
    /// that was not said before, in the profiles neither.
    pub fn reload(&mut self, sources: Vec<SnmpSource>, profiles: Profiles) -> Reloaded {
        self.profiles = profiles;
        let polled = self.state.devices.iter().enumerate().filter(|(_, device)| !device.is_removed);
        let mut before: HashMap<String, DeviceId> =
            polled.map(|(number, device)| (device.name.clone(), DeviceId::new(number))).collect();
        let mut reloaded = Reloaded::default();
        let mut new = Vec::new();
        for source in sources {
            match before.get(source.name()) {
                Some(&id) if self.is_polled_so(id, &source) => {
                    before.remove(source.name());
                    reloaded.unchanged += 1;
                }
                _ => new.push(source),
            }
        }
        // Before the new ones take their places.
        reloaded.removed = before.into_values().collect();
        reloaded.removed.iter().for_each(|id| self.remove(*id));
        for source in new {
            let name = source.name().to_string();
            match self.add(source) {
                Ok(id) => reloaded.added.push(id),
                Err(error) => reloaded.refused.push((name, error)),
            }
        }
        reloaded
    }

    fn is_polled_so(&self, id: DeviceId, source: &SnmpSource) -> bool {
        let device = &self.state.devices[id.index()];
        let tables = source.tables(&self.profiles);
        device.source == *source && tables.is_ok_and(|tables| tables == device.discovery.tables())
    }

    fn remove(&mut self, id: DeviceId) {
        self.engine.remove(id);
        self.state.walked.retain(|(device, ..)| *device != id);
        let device = &mut self.state.devices[id.index()];
        self.state.complaints.forget(&device.name);
        device.is_removed = true;
        device.discovery = Discovery::new(Vec::new(), u64::MAX);
        device.rrds = Vec::new();
        self.free.push(id);
    }
}

#[cfg(test)]
mod tests;
