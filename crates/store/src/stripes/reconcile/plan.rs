//! What follows from what stands at some names of the tree: which RRDs are renamed, copied, removed and restored.
//!
//! A placeholder says which RRD it was written for. Where that RRD has another name, it was moved or copied there, by any program and in any number
//! of steps: if a placeholder of it stands at its own name, it was copied; if not, it was moved.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::Trashed;
use crate::name::RrdName;
use crate::placeholder::{FileId, StoreIdentity};
use crate::stripes::names::Source;

/// Which RRD a placeholder was written for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The RRD that has this name now.
    Rrd(RrdName),
    /// One that is in the trash.
    Trash(Trashed),
    /// One that the store does not have.
    Unknown,
}

/// What stands at a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stands {
    /// No file.
    Nothing,
    /// A placeholder of this store.
    Placeholder {
        /// The RRD that it was written for.
        origin: Origin,
        /// The file.
        file: FileId,
        /// What is written there is what is to be written there for an RRD of this name.
        is_current: bool,
    },
    /// A placeholder of another store.
    Foreign(StoreIdentity),
    /// Something else.
    Other,
}

/// A name: what stands there, and whether the store has an RRD of this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) stands: Stands,
    pub(super) is_rrd: bool,
}

impl Seen {
    /// Whether the placeholder of the RRD of this name stands there.
    fn is_at_home(&self, name: &RrdName) -> bool {
        matches!(&self.stands, Stands::Placeholder { origin: Origin::Rrd(of), .. } if of == name)
    }
}

/// What is to be done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// RRDs without a placeholder.
    pub(super) removed: Vec<RrdName>,
    /// RRDs whose name was given to another one.
    pub(super) replaced: Vec<RrdName>,
    /// RRDs that get to a name.
    pub(super) arrivals: Vec<(Source, RrdName)>,
    /// Copies of an RRD that arrives at a name, to be made when it is there.
    pub(super) late: Vec<(RrdName, RrdName)>,
    /// Placeholders in whose text the name or the number of their RRD is outdated.
    pub(super) outdated: Vec<RrdName>,
    /// Placeholders of RRDs that the store does not have.
    pub(super) dangling: Vec<RrdName>,
    /// Placeholders of other stores.
    pub(super) foreign: Vec<(RrdName, StoreIdentity)>,
}

impl Plan {
    /// Whether no RRD gets or loses a name.
    pub(super) fn changes_nothing(&self) -> bool {
        self.removed.is_empty() && self.replaced.is_empty() && self.arrivals.is_empty()
    }
}

/// Names by the RRD whose placeholder was moved or copied to them.
#[derive(Default)]
struct Claims<'a> {
    of_rrds: BTreeMap<&'a RrdName, Vec<(&'a RrdName, FileId)>>,
    of_trash: BTreeMap<(&'a RrdName, i64), Vec<(&'a RrdName, FileId)>>,
}

/// The first of several names that are links to one file.
fn of_each_file(mut claimants: Vec<(&RrdName, FileId)>) -> impl Iterator<Item = &RrdName> {
    let mut files = BTreeSet::new();
    claimants.retain(|(_, file)| files.insert(*file));
    claimants.into_iter().map(|(name, _)| name)
}

/// Makes a plan for everything `seen`, which contains the name that each placeholder's RRD has.
pub(super) fn plan(seen: &BTreeMap<RrdName, Seen>) -> Plan {
    let mut plan = Plan::default();
    let mut claims = Claims::default();
    for (name, about) in seen {
        match &about.stands {
            Stands::Placeholder { origin: Origin::Rrd(of), is_current, .. } if of == name => {
                if !is_current {
                    plan.outdated.push(name.clone());
                }
            }
            Stands::Placeholder { origin: Origin::Rrd(of), file, .. } => {
                claims.of_rrds.entry(of).or_default().push((name, *file));
            }
            Stands::Placeholder { origin: Origin::Trash(trashed), file, .. } => {
                let key = (&trashed.name, trashed.removed_ms);
                claims.of_trash.entry(key).or_default().push((name, *file));
            }
            Stands::Placeholder { origin: Origin::Unknown, .. } => plan.dangling.push(name.clone()),
            Stands::Foreign(store) => plan.foreign.push((name.clone(), *store)),
            Stands::Nothing | Stands::Other => {}
        }
    }
    let mut moved: BTreeSet<&RrdName> = BTreeSet::new();
    for (origin, mut claimants) in claims.of_rrds {
        let Some(about) = seen.get(origin) else { continue };
        if let (Stands::Placeholder { file, .. }, true) = (&about.stands, about.is_at_home(origin)) {
            // Links to it.
            claimants.retain(|(_, other)| other != file);
        }
        let mut claimants = of_each_file(claimants);
        if !about.is_at_home(origin)
            && let Some(first) = claimants.next()
        {
            moved.insert(origin);
            plan.arrivals.push((Source::Moved(origin.clone()), first.clone()));
        }
        plan.arrivals.extend(claimants.map(|name| (Source::Copied(origin.clone()), name.clone())));
    }
    for ((name, removed_ms), claimants) in claims.of_trash {
        let mut claimants = of_each_file(claimants);
        if let Some(first) = claimants.next() {
            let trashed = Trashed { name: name.clone(), removed_ms };
            plan.arrivals.push((Source::Trash(trashed), first.clone()));
            plan.late.extend(claimants.map(|copy| (first.clone(), copy.clone())));
        }
    }
    let arriving = plan.arrivals.iter().map(|(_, name)| name);
    let targets: BTreeSet<RrdName> =
        arriving.chain(plan.late.iter().map(|(_, name)| name)).cloned().collect();
    for (name, about) in seen {
        if about.is_rrd && !about.is_at_home(name) && !moved.contains(name) {
            match targets.contains(name) || about.stands != Stands::Nothing {
                true => plan.replaced.push(name.clone()),
                false => plan.removed.push(name.clone()),
            }
        }
    }
    plan
}

#[cfg(test)]
mod tests;
