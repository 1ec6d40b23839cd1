//! How many RRDs may go with their placeholders at a stroke: a tree that is not mounted, or was removed by mistake, must not cost them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use crate::catalogue::RrdId;
use crate::engine::{StoreError, Trashed};
use crate::name::RrdName;
use crate::placeholder::{Found, RrdNumber};
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
    /// The id that the next RRD of each shard got when the stroke began.
    next_ids: Vec<RrdId>,
    /// Those that were let go last without being counted.
    uncounted: BTreeSet<RrdName>,
}

impl Removals {
    pub(super) fn new(max_share: f64) -> Self {
        Removals {
            max_share,
            recent: VecDeque::new(),
            missing: BTreeSet::new(),
            kept_at: None,
            next_ids: Vec::new(),
            uncounted: BTreeSet::new(),
        }
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
        if !self.uncounted.remove(&trashed.name) {
            self.recent.push_back((Instant::now(), trashed));
        }
    }

    /// Whether RRDs were kept just before: what goes now belongs to the same stroke.
    fn is_same_stroke(&self) -> bool {
        self.kept_at.is_some_and(|at| at.elapsed() <= STROKE) && !self.missing.is_empty()
    }

    /// Forgets the removals that do not belong to the stroke of one that comes now, or begins a new one.
    ///
    /// # Errors
    /// When the store stops.
    fn begin(&mut self, core: &Core) -> Result<(), StoreError> {
        while self.recent.front().is_some_and(|(at, _)| at.elapsed() > STROKE) {
            self.recent.pop_front();
        }
        // One that has been made again since is not missing; one that went twice counts once.
        let names: Vec<RrdName> = self.recent.iter().map(|(_, trashed)| trashed.name.clone()).collect();
        let is_back: Vec<bool> = core.numbers(&names)?.iter().map(Option::is_some).collect();
        let mut last: BTreeMap<RrdName, (Instant, Trashed)> = BTreeMap::new();
        for ((at, trashed), _) in self.recent.drain(..).zip(is_back).filter(|(_, is_back)| !is_back) {
            last.insert(trashed.name.clone(), (at, trashed));
        }
        self.recent.extend(last.into_values());
        self.recent.make_contiguous().sort_by_key(|(at, _)| *at);
        if self.recent.is_empty() && !self.is_same_stroke() {
            self.next_ids = core.next_ids()?;
        }
        Ok(())
    }

    /// Takes out those that were made since the stroke began: a program removes what it has just made, and no tree is lost by that.
    ///
    /// # Errors
    /// When the store stops.
    fn take_young(&self, core: &Core, names: &mut Vec<RrdName>) -> Result<Vec<RrdName>, StoreError> {
        let numbers = core.numbers(names)?;
        let is_young = |number: &Option<RrdNumber>| {
            number.is_some_and(|number| {
                self.next_ids.get(number.shard as usize).is_some_and(|&next| number.id >= next)
            })
        };
        let (young, old): (Vec<_>, Vec<_>) =
            names.drain(..).zip(numbers).partition(|(_, number)| is_young(number));
        *names = old.into_iter().map(|(name, _)| name).collect();
        Ok(young.into_iter().map(|(name, _)| name).collect())
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
        let young = self.take_young(core, &mut names)?;
        self.uncounted = young.iter().cloned().collect();
        let count = self.recent.len() + names.len();
        let is_same_stroke = self.is_same_stroke();
        let all = core.rrd_count()? + self.recent.len() as u64;
        let are_few = count <= COUNT_MIN || count as f64 <= self.max_share * all as f64;
        if names.is_empty() || (are_few && !is_same_stroke) {
            names.extend(young);
            return Ok(names);
        }
        self.kept_at = Some(Instant::now());
        if is_same_stroke {
            self.missing.extend(names);
            return Ok(young);
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
        departed.and(core.arrive(arrivals)).map(|()| young)
    }
}
