//! RRDs that get no readings.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rrd::definition::{Definition, DsKind};
use serde::Serialize;

use crate::http::percent;
use crate::http::rows;
use crate::service::Service;

/// RRDs that are answered.
const FIRST: usize = 50;
/// An RRD that was not updated for longer than this is not late but given up: its device is gone.
const GIVEN_UP_SECONDS: f64 = 7.0 * 86_400.0;
/// All RRDs are looked at again after so long ...
const AGE_MIN: Duration = Duration::from_secs(10);
/// ... or so many times the time that it took.
const REST_FACTOR: u32 = 49;

/// An RRD that gets no readings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LateRrd {
    /// Its name.
    pub name: String,
    /// Its name, percent-encoded.
    pub path: String,
    /// When it was last updated, in seconds since the epoch.
    pub last_update: f64,
    /// Its step in seconds.
    pub step: f64,
}

/// All that are late.
#[derive(Debug, Default)]
pub struct LateRrds {
    /// Those that were updated last, first.
    pub first: Vec<LateRrd>,
    /// How many there are.
    pub count: usize,
}

/// The RRDs that were late when it was last looked.
#[derive(Clone, Default)]
pub struct Late(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    late: Arc<LateRrds>,
    /// When it was looked, and how long that took; `None`: never.
    last: Option<(Instant, Duration)>,
    is_looking: bool,
}

impl Late {
    /// What was late not long ago; nothing at first. No request waits until all RRDs are looked at: a million take a second.
    pub fn of(&self, service: &Arc<Service>, now: i64) -> Arc<LateRrds> {
        let mut seen = self.lock();
        let is_fresh = seen.last.is_some_and(|(at, took)| at.elapsed() < AGE_MIN.max(took * REST_FACTOR));
        if !is_fresh && !seen.is_looking {
            seen.is_looking = true;
            let (this, service) = (self.clone(), Arc::clone(service));
            tokio::task::spawn_blocking(move || {
                let begun = Instant::now();
                let late = look(&service, now as f64);
                let mut seen = this.lock();
                *seen = Seen {
                    late: Arc::new(late),
                    last: Some((Instant::now(), begun.elapsed())),
                    is_looking: false,
                };
            });
        }
        Arc::clone(&seen.late)
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn look(service: &Service, now: f64) -> LateRrds {
    let mut late = LateRrds::default();
    // Without a list there is nothing to say; the log says why.
    let Ok(list) = service.name_index.list() else { return late };
    for index in 0..list.len() {
        let name = list.name(index);
        let Some(status) = rows::name(service, name).ok().and_then(|name| service.engine.status(&name).ok())
        else {
            continue;
        };
        let unit = f64::from(status.definition.units_per_second.max(1));
        let last_update = status.last_update.whole as f64 / unit;
        let age = now - last_update;
        if status.is_updated && age > heartbeat(&status.definition) / unit && age < GIVEN_UP_SECONDS {
            late.count += 1;
            late.first.push(LateRrd {
                name: String::from_utf8_lossy(name).into_owned(),
                path: percent::encode(name),
                last_update,
                step: status.definition.step as f64 / unit,
            });
            if late.first.len() == 2 * FIRST {
                keep_first(&mut late.first);
            }
        }
    }
    keep_first(&mut late.first);
    late
}

fn keep_first(late: &mut Vec<LateRrd>) {
    late.sort_by(|one, other| other.last_update.total_cmp(&one.last_update));
    late.truncate(FIRST);
}

/// The longest time without a reading that every source allows, in units; at least two steps.
fn heartbeat(definition: &Definition) -> f64 {
    let heartbeats = definition.ds.iter().filter_map(|ds| match ds.kind {
        DsKind::Fed { heartbeat, .. } => Some(heartbeat),
        _ => None,
    });
    heartbeats.min().unwrap_or(0).max(2 * definition.step) as f64
}
