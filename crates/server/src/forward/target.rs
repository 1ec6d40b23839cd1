//! What every target can do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::batch::ForwardBatch;

/// Why a target does not take a reading. It is counted and not sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The target has a reading of that time or later, as after a resend.
    NotNewer,
    /// The target has no such RRD, and none could be made.
    NoSuchRrd,
    /// It may not be written there.
    Permission,
    /// Nothing tells what its values are called: the RRD was removed here meanwhile.
    Gone,
    /// Anything else, such as another number of values.
    Other,
}

impl RefusalReason {
    /// All of them, in the order of their numbers.
    pub const ALL: [RefusalReason; 5] = [
        RefusalReason::NotNewer,
        RefusalReason::NoSuchRrd,
        RefusalReason::Permission,
        RefusalReason::Gone,
        RefusalReason::Other,
    ];

    /// Its label in metrics.
    pub fn label(self) -> &'static str {
        match self {
            RefusalReason::NotNewer => "not_newer",
            RefusalReason::NoSuchRrd => "no_such_rrd",
            RefusalReason::Permission => "permission",
            RefusalReason::Gone => "gone",
            RefusalReason::Other => "other",
        }
    }
}

/// Readings of an RRD that a target does not take.
#[derive(Clone, Copy, Debug)]
pub struct ForwardRefusal<'a> {
    /// Why.
    pub reason: RefusalReason,
    /// Whose they are.
    pub name: &'a [u8],
    /// How many.
    pub count: u64,
    /// What the target says.
    pub text: &'a str,
}

/// Why nothing can be sent now; all of the batch is sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Away(pub String);

/// Between two requests of a batch: a slow target would else hold up the stop of this daemon for as long as all of them take.
///
/// # Errors
/// When this daemon is stopping.
pub fn check_stop(stop: &AtomicBool) -> Result<(), Away> {
    if stop.load(Ordering::Relaxed) { Err(Away("this daemon is stopping".to_owned())) } else { Ok(()) }
}

/// Somewhere to send readings.
pub trait ForwardTarget: Send {
    /// Makes sure that it can be reached.
    ///
    /// # Errors
    /// Why it cannot.
    fn reach(&mut self) -> Result<(), Away>;

    /// Sends a batch, and reports what the target refuses of it. Returns how many RRDs were created there.
    ///
    /// # Errors
    /// Why it must be sent again, whole.
    fn send(
        &mut self,
        batch: &ForwardBatch,
        refused: &mut dyn FnMut(ForwardRefusal<'_>),
    ) -> Result<u64, Away>;

    /// A part of the log was left out: what is known of RRDs may have changed in it.
    fn forget(&mut self) {}

    /// How long after it was sent something counts as arrived: zero where the target answers. What was sent later is sent
    /// again after a lost connection.
    fn settles_after(&self) -> Duration {
        Duration::ZERO
    }
}
