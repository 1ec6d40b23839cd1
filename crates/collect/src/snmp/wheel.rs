//! Timers of devices: a wheel of slots of a few milliseconds, so that setting one costs the same for any number of devices.

/// Microseconds of a slot.
const SLOT_MICROS: u64 = 4096;
/// Slots; what is further away than all of them goes round.
const SLOTS: usize = 1024;

/// Numbers of devices by the time at which they want to be looked at.
#[derive(Debug)]
pub(crate) struct Wheel {
    slots: Vec<Vec<(u64, u32)>>,
    /// The slot up to which all has been taken.
    taken: u64,
    /// Entries taken from a slot, while they are looked at.
    spare: Vec<(u64, u32)>,
    len: usize,
}

impl Wheel {
    pub(crate) fn new(now: u64) -> Self {
        Wheel { slots: vec![Vec::new(); SLOTS], taken: now / SLOT_MICROS, spare: Vec::new(), len: 0 }
    }

    /// Whether a timer set for `time` may have woken its device by `now`.
    pub(crate) fn has_come(time: u64, now: u64) -> bool {
        time / SLOT_MICROS <= now / SLOT_MICROS
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Wakes `device` at `time`, or soon after.
    pub(crate) fn set(&mut self, time: u64, device: u32) {
        // The slot of now is being taken, or has been.
        let slot = (time / SLOT_MICROS).max(self.taken + 1);
        self.slots[slot as usize % SLOTS].push((slot, device));
        self.len += 1;
    }

    /// Calls `wake` for each device whose time has come. It may set timers.
    pub(crate) fn take(&mut self, now: u64, due: &mut Vec<u32>) {
        let until = now / SLOT_MICROS;
        let from = self.taken + 1;
        // After a long pause every slot is looked at once.
        let first = from.max(until.saturating_sub(SLOTS as u64 - 1));
        for slot in first..=until {
            let place = slot as usize % SLOTS;
            if self.slots[place].is_empty() {
                continue;
            }
            std::mem::swap(&mut self.spare, &mut self.slots[place]);
            for (at, device) in self.spare.drain(..) {
                if at <= until {
                    due.push(device);
                    self.len -= 1;
                } else {
                    self.slots[place].push((at, device));
                }
            }
            std::mem::swap(&mut self.spare, &mut self.slots[place]);
            self.slots[place].append(&mut self.spare);
        }
        self.taken = self.taken.max(until);
    }

    /// When the next timer may come, at the latest when all slots have passed.
    pub(crate) fn next(&self) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        let ahead =
            (1..=SLOTS as u64).find(|ahead| !self.slots[(self.taken + ahead) as usize % SLOTS].is_empty());
        ahead.map(|ahead| (self.taken + ahead + 1) * SLOT_MICROS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_come_in_their_slot_and_far_ones_go_round() {
        let mut wheel = Wheel::new(1_000_000);
        let far = 1_000_000 + 3 * SLOTS as u64 * SLOT_MICROS;
        for (time, device) in [(1_010_000, 1), (1_500_000, 2), (far, 3), (0, 4)] {
            wheel.set(time, device);
        }
        let mut woken = Vec::new();
        let mut now = 1_000_000;
        while let Some(next) = wheel.next() {
            assert!(next > now);
            now = next;
            let mut due = Vec::new();
            wheel.take(now, &mut due);
            woken.extend(due.into_iter().map(|device| (device, now)));
        }
        let devices: Vec<u32> = woken.iter().map(|(device, _)| *device).collect();
        assert_eq!(devices, [4, 1, 2, 3]);
        let late = |nth: usize, time: u64| woken[nth].1.abs_diff(time) <= 2 * SLOT_MICROS;
        assert!(late(1, 1_010_000) && late(2, 1_500_000) && late(3, far), "{woken:?}");
    }

    #[test]
    fn after_a_pause_all_come() {
        let mut wheel = Wheel::new(0);
        (0..5000).for_each(|device| wheel.set(u64::from(device) * 1000, device));
        let mut due = Vec::new();
        wheel.take(100 * SLOTS as u64 * SLOT_MICROS, &mut due);
        assert_eq!((due.len(), wheel.next()), (5000, None));
    }
}
