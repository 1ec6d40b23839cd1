//! What a thread of a shard is waiting for, for the other threads to see.

use std::sync::atomic::{AtomicU8, Ordering};

use disk::Shortage;

/// The shortage that one thread waits out; usually none.
#[derive(Debug, Default)]
pub struct Waiting(AtomicU8);

impl Waiting {
    /// What is waited for.
    pub fn shortage(&self) -> Option<Shortage> {
        let index = self.0.load(Ordering::Relaxed).checked_sub(1)?;
        Shortage::ALL.get(usize::from(index)).copied()
    }

    /// Records what is waited for, and logs each change.
    pub fn report(&self, shortage: Option<Shortage>, detail: &str) {
        let is = |each: &Shortage| Some(*each) == shortage;
        let number = Shortage::ALL.iter().position(is).map_or(0, |index| index as u8 + 1);
        if self.0.swap(number, Ordering::Relaxed) != number {
            match shortage {
                Some(shortage) => {
                    tracing::error!(detail, "{shortage}: the store waits, and goes on by itself");
                }
                None => tracing::info!("the store goes on"),
            }
        }
    }
}
