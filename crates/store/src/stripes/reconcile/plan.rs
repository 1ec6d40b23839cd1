//! What follows from what stands at some names of the tree: which RRDs are renamed, copied, removed and restored.
//!
//! A placeholder says which RRD it was written for. Where that is not the file's own name, the RRD was moved or copied there, by any
//! program and in any number of steps: if the place that the RRD is known at still has its placeholder, it was copied; if not, it was moved.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::Trashed;
use crate::name::RrdName;
use crate::placeholder::{FileId, Found, StoreIdentity};
use crate::stripes::names::Source;

/// A name: what stands there, and what the store has.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) found: Found,
    /// The store has an RRD of this name.
    pub(super) is_rrd: bool,
    /// The last one of this name in the trash.
    pub(super) trashed: Option<Trashed>,
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
    /// Placeholders whose RRD has arrived, but which still say where it was.
    pub(super) outdated: Vec<RrdName>,
    /// Placeholders of RRDs that the store does not have.
    pub(super) dangling: Vec<(RrdName, RrdName)>,
    /// Placeholders of other stores.
    pub(super) foreign: Vec<(RrdName, StoreIdentity)>,
}

/// Whether a placeholder was moved or copied there: the name that it was written for, and the file.
fn claim<'a>(name: &RrdName, seen: &'a Seen) -> Option<(&'a RrdName, FileId)> {
    match &seen.found {
        Found::Ours(origin, file) if origin != name => Some((origin, *file)),
        _ => None,
    }
}

fn is_at_home(name: &RrdName, seen: &Seen) -> bool {
    matches!(&seen.found, Found::Ours(origin, _) if origin == name)
}

/// Makes a plan for everything `seen`, which contains the origin of each placeholder that stands at another name. An RRD that was moved may
/// have got into the trash before its new place was seen, if not before `since_ms`.
pub(super) fn plan(seen: &BTreeMap<RrdName, Seen>, since_ms: i64) -> Plan {
    let mut plan = Plan::default();
    let mut claims: BTreeMap<&RrdName, Vec<(&RrdName, FileId)>> = BTreeMap::new();
    for (name, about) in seen {
        if let Some((origin, file)) = claim(name, about) {
            claims.entry(origin).or_default().push((name, file));
        } else if is_at_home(name, about) && !about.is_rrd {
            match &about.trashed {
                Some(trashed) => plan.arrivals.push((Source::Trash(trashed.clone()), name.clone())),
                None => plan.dangling.push((name.clone(), name.clone())),
            }
        } else if let Found::Foreign(store) = &about.found {
            plan.foreign.push((name.clone(), *store));
        }
    }
    let mut moved: BTreeSet<&RrdName> = BTreeSet::new();
    // A placeholder that is outdated stands for the RRD of its name.
    let mut at_home: BTreeSet<&RrdName> = BTreeSet::new();
    for (origin, mut claimants) in claims {
        let Some(about) = seen.get(origin) else { continue };
        // Links to one file are one placeholder.
        if let (Found::Ours(_, file), true) = (&about.found, is_at_home(origin, about)) {
            claimants.retain(|(_, other)| other != file);
        }
        let mut files = BTreeSet::new();
        claimants.retain(|(_, file)| files.insert(*file));
        let mut claimants = claimants.into_iter().map(|(name, _)| name);
        if about.is_rrd {
            if !is_at_home(origin, about)
                && let Some(first) = claimants.next()
            {
                moved.insert(origin);
                plan.arrivals.push((Source::Moved(origin.clone()), first.clone()));
            }
            plan.arrivals.extend(claimants.map(|name| (Source::Copied(origin.clone()), name.clone())));
            continue;
        }
        while let Some(name) = claimants.next() {
            match &about.trashed {
                Some(trashed) if trashed.removed_ms >= since_ms || !seen[name].is_rrd => {
                    plan.arrivals.push((Source::Trash(trashed.clone()), name.clone()));
                    plan.late.extend(claimants.by_ref().map(|copy| (name.clone(), copy.clone())));
                }
                _ if seen[name].is_rrd => {
                    at_home.insert(name);
                    plan.outdated.push(name.clone());
                }
                _ => plan.dangling.push((name.clone(), origin.clone())),
            }
        }
    }
    let arriving = plan.arrivals.iter().map(|(_, name)| name);
    let targets: BTreeSet<RrdName> = arriving.chain(plan.late.iter().map(|(_, name)| name)).cloned().collect();
    for (name, about) in seen {
        if about.is_rrd && !is_at_home(name, about) && !moved.contains(name) && !at_home.contains(name) {
            match targets.contains(name) || !matches!(about.found, Found::Nothing) {
                true => plan.replaced.push(name.clone()),
                false => plan.removed.push(name.clone()),
            }
        }
    }
    plan
}

#[cfg(test)]
mod tests;
