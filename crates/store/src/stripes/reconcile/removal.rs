//! How many RRDs may go with their placeholders at a stroke: a tree that is not mounted, or was removed by mistake, must not cost them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use crate::engine::{StoreError, Trashed};
use crate::name::RrdName;
use crate::placeholder::Found;
use crate::stripes::names::Source;
use crate::stripes::shards::Core;

/// Removals within this time are one stroke.
const STROKE: Duration = Duration::from_secs(10);
/// So many may always go: a device is deleted, and added again.
const COUNT_MIN: usize = 20;

/// What was removed of late, and what is kept although its placeholder is missing.
pub(super) struct Removals {
    /// The share of all RRDs that may go at a stroke.
    max_share: f64,
    recent: VecDeque<(Instant, Trashed)>,
    missing: BTreeSet<RrdName>,
    /// When RRDs were last kept.
    kept_at: Option<Instant>,
    /// How many RRDs had been made, ever, when RRDs were last removed.
    made: u64,
}

impl Removals {
    pub(super) fn new(max_share: f64) -> Self {
        Removals { max_share, recent: VecDeque::new(), missing: BTreeSet::new(), kept_at: None, made: 0 }
    }

    /// RRDs that are kept although their placeholders are missing.
    pub(super) fn missing(&self) -> &BTreeSet<RrdName> {
        &self.missing
    }

    /// Notes what was found at a name.
    pub(super) fn note(&mut self, name: &RrdName, found: &Found) {
        if *found != Found::Nothing {
            self.missing.remove(name);
        }
    }

    /// Notes that RRDs are removed on request.
    pub(super) fn forget(&mut self, names: &[RrdName]) {
        self.missing.retain(|name| !names.contains(name));
    }

    /// Notes that an RRD was removed.
    pub(super) fn count(&mut self, trashed: Trashed) {
        self.recent.push_back((Instant::now(), trashed));
    }

    /// Forgets the removals that do not belong to the stroke of one that comes now.
    ///
    /// # Errors
    /// When the store stops.
    fn begin(&mut self, core: &Core) -> Result<(), StoreError> {
        while self.recent.front().is_some_and(|(at, _)| at.elapsed() > STROKE) {
            self.recent.pop_front();
        }
        // One that has been made again since is not missing; one that went twice counts once.
        let names_before: Vec<RrdName> =
            self.recent.iter().map(|(_, trashed)| trashed.name.clone()).collect();
        let is_back: Vec<bool> = core.numbers(&names_before)?.iter().map(Option::is_some).collect();
        let mut last: BTreeMap<RrdName, (Instant, Trashed)> = BTreeMap::new();
        for ((at, trashed), _) in self.recent.drain(..).zip(is_back).filter(|(_, is_back)| !is_back) {
            last.insert(trashed.name.clone(), (at, trashed));
        }
        // Each time but the last that a name went, it was made again.
        let made_again = (names_before.len() - last.len()) as u64;
        self.recent.extend(last.into_values());
        self.recent.make_contiguous().sort_by_key(|(at, _)| *at);
        // A program that makes others in between does not lose a tree: scripts remove what they have made.
        let made = core.next_ids()?.iter().map(|&id| u64::from(id)).sum();
        let others = made - self.made.min(made) > made_again;
        if std::mem::replace(&mut self.made, made) > 0 && others {
            self.recent.clear();
            self.kept_at = None;
        }
        Ok(())
    }

    /// Those of the RRDs that may go. When they are too many, none, and those that went just before come back.
    ///
    /// # Errors
    /// When the store stops.
    pub(super) fn allow(&mut self, core: &Core, mut names: Vec<RrdName>) -> Result<Vec<RrdName>, StoreError> {
        names.retain(|name| !self.missing.contains(name));
        if names.is_empty() {
            return Ok(names);
        }
        self.begin(core)?;
        let count = self.recent.len() + names.len();
        let is_same_stroke =
            self.kept_at.is_some_and(|at| at.elapsed() <= STROKE) && !self.missing.is_empty();
        let all = core.rrd_count()? + self.recent.len() as u64;
        let are_few = count <= COUNT_MIN || count as f64 <= self.max_share * all as f64;
        if are_few && !is_same_stroke {
            return Ok(names);
        }
        self.kept_at = Some(Instant::now());
        if is_same_stroke {
            self.missing.extend(names);
            return Ok(Vec::new());
        }
        let recent: Vec<Trashed> = self.recent.drain(..).map(|(_, trashed)| trashed).collect();
        tracing::error!(
            missing = count,
            all,
            "so many placeholders are missing at a stroke that no RRD is removed for it (max_removed): if they are meant to go, \
             run `roundel remove --missing`; to have the placeholders back, run `roundel restore --missing`"
        );
        names.extend(recent.iter().map(|trashed| trashed.name.clone()));
        let back = recent.into_iter().map(|trashed| {
            let name = trashed.name.clone();
            (Source::Trash(trashed), name)
        });
        let (arrivals, departed) = core.depart(back.collect());
        self.missing.extend(names);
        departed.and(core.arrive(arrivals)).map(|()| Vec::new())
    }
}
