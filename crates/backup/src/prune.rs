//! The removal of what is not kept, so that no crash of it and no lie of the place takes what is.
//!
//! First `pruned` says which manifests go, then they go, then what only they named: after a crash in between, the moments are those
//! that are kept, and the next pruning removes the rest. An object is deleted only when no manifest that is kept names it, and when it
//! is older than a grace period: the round that sent it may not have come to its manifest yet. A manifest that nothing has removed
//! and that is not there, is not gone: the place may show it again. Only when it was missing for the grace period, it is.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::stream::{self, StreamExt, TryStreamExt};

use crate::keep::Keep;
use crate::manifest::{BackupManifest, PRUNED, look, pruned, runs};
use crate::moments::MomentError;
use crate::objects::{ObjectError, Objects};
use crate::own::OwnList;
use crate::parts;
use crate::restore::FETCHED_AT_ONCE;

/// How long an object is left alone that no manifest names: longer than a round takes after a long interruption.
pub const GRACE: Duration = Duration::from_hours(3 * 24);
/// With more, clocks are not the same: what a machine without a network has at its start, or a time zone that was mistaken for another.
const CLOCK_DIFFERS_MAX: Duration = Duration::from_hours(6);
/// The object that says which manifests were missing when it was last pruned, and since when.
const ABSENT: &str = "absent";
/// An object that is written for the server's clock.
const CLOCK: &str = "clock";

/// What pruning did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Manifests that are kept.
    pub kept: u64,
    /// Manifests deleted.
    pub manifests: u64,
    /// Objects deleted.
    pub objects: u64,
    /// Bytes of these.
    pub bytes: u64,
}

/// How pruning goes about it.
#[derive(Clone, Copy, Debug)]
pub struct Pruning {
    /// Objects that no manifest names stay for so long.
    pub grace: Duration,
    /// The time, in milliseconds since the epoch.
    pub now_ms: i64,
    /// Removes even when something that is kept cannot be read: what only that names, goes.
    pub is_forced: bool,
}

/// Whether this machine's clock is far from the server's: then ages are wrong, and pruning would remove what is kept.
///
/// # Errors
/// When the server fails.
pub async fn clock_differs(objects: &Objects, now: SystemTime) -> Result<Option<Duration>, ObjectError> {
    let Some(server) = server_now(objects).await? else { return Ok(None) };
    let differs = match now.duration_since(server) {
        Ok(server_is_late) => server_is_late,
        Err(server_is_early) => server_is_early.duration(),
    };
    Ok(Some(differs).filter(|differs| *differs > CLOCK_DIFFERS_MAX))
}

/// The server's clock, by an object that is written again; `None` when it does not say.
async fn server_now(objects: &Objects) -> Result<Option<SystemTime>, ObjectError> {
    objects.put(CLOCK, Vec::new()).await?;
    Ok(objects.look(CLOCK).await?.map(|seen| seen.written))
}

/// Removes what the rules do not keep.
///
/// # Errors
/// When the server fails, or a manifest or a list of parts of what is kept is missing or damaged. What was not removed is removed the
/// next time.
pub async fn prune(objects: &Objects, keep: &Keep, pruning: Pruning) -> Result<Pruned, MomentError> {
    let manifests = manifests(objects, &pruning).await?;
    let facts: Vec<_> =
        manifests.there.iter().map(|manifest| (manifest.number, manifest.time_ms, manifest.base)).collect();
    let kept = keep.kept(&facts, pruning.now_ms);
    let (kept, removed): (Vec<_>, Vec<_>) =
        manifests.there.into_iter().partition(|manifest| kept.contains(&manifest.number));
    let named = named(objects, &kept, pruning.is_forced).await?;
    let removed: BTreeSet<u64> = removed.iter().map(|manifest| manifest.number).collect();
    let all_gone: BTreeSet<u64> =
        removed.iter().chain(&manifests.removed).chain(&manifests.lost).copied().collect();
    let text = serde_json::to_vec(&runs(&all_gone)).unwrap_or_default();
    objects.put(PRUNED, text).await?;
    let mut report = Pruned { kept: kept.len() as u64, ..Pruned::default() };
    for number in removed.union(&manifests.left) {
        objects.delete(&BackupManifest::name(*number)).await?;
        report.manifests += 1;
    }
    // By the server's own clock: it also says when the others were written.
    let server_now = server_now(objects).await?.unwrap_or(UNIX_EPOCH);
    for seen in objects.list("objects").await? {
        let is_old = server_now.duration_since(seen.written).is_ok_and(|age| age >= pruning.grace);
        if is_old && !named.contains(&seen.name) {
            objects.delete(&seen.name).await?;
            report.objects += 1;
            report.bytes += seen.bytes;
        }
    }
    Ok(report)
}

/// The manifests of a place.
struct Manifests {
    there: Vec<BackupManifest>,
    /// Numbers of those that were removed before.
    removed: BTreeSet<u64>,
    /// Of these, what a crash has left.
    left: BTreeSet<u64>,
    /// Numbers of those that are missing for good.
    lost: BTreeSet<u64>,
}

/// # Errors
/// When the server fails, or one is damaged, or missing for less than the grace period.
async fn manifests(objects: &Objects, pruning: &Pruning) -> Result<Manifests, MomentError> {
    let known = look(objects).await?;
    let newest = known.newest.ok_or(MomentError::Nothing)?;
    let removed = pruned(objects).await?;
    let mut expected = newest.numbers();
    expected.extend(newest.number + 1..=known.highest);
    // Those that nothing leads to are kept by the same rules; what is damaged of them names nothing for anyone.
    let numbers: BTreeSet<u64> =
        expected.union(&known.listed).copied().filter(|number| !removed.contains(number)).collect();
    let expected = &expected;
    let fetched: Vec<(u64, Option<BackupManifest>)> = stream::iter(numbers)
        .map(|number| async move {
            match BackupManifest::fetch(objects, number).await {
                Ok(manifest) => Ok((number, Some(manifest))),
                Err(ObjectError::Missing(_)) => Ok((number, None)),
                Err(error) if error.is_loss() && (pruning.is_forced || !expected.contains(&number)) => {
                    tracing::warn!(%error, "a manifest cannot be read, and counts as missing");
                    Ok((number, None))
                }
                Err(error) => Err(error),
            }
        })
        .buffered(FETCHED_AT_ONCE)
        .try_collect()
        .await?;
    let missing: BTreeSet<u64> = fetched
        .iter()
        .filter(|(number, manifest)| manifest.is_none() && expected.contains(number))
        .map(|(number, _)| *number)
        .collect();
    let young = missing_lately(objects, &missing, pruning.grace).await?;
    if let Some(number) = young.first()
        && !pruning.is_forced
    {
        return Err(MomentError::Absent(BackupManifest::name(*number), young.len()));
    }
    let left = known.listed.intersection(&removed).copied().collect();
    let there = fetched.into_iter().filter_map(|(_, manifest)| manifest).collect();
    Ok(Manifests { there, removed, left, lost: missing })
}

/// Which manifests of those that are missing have been so for less than the grace period, as far as prunings have seen.
async fn missing_lately(
    objects: &Objects,
    missing: &BTreeSet<u64>,
    grace: Duration,
) -> Result<BTreeSet<u64>, ObjectError> {
    let text = match objects.get(ABSENT).await {
        Ok(text) => text,
        Err(error) if error.is_loss() => Vec::new(),
        Err(error) => return Err(error),
    };
    let before: BTreeMap<u64, u64> = serde_json::from_slice(&text).unwrap_or_default();
    if missing.is_empty() && before.is_empty() {
        return Ok(BTreeSet::new());
    }
    let now =
        server_now(objects).await?.and_then(|now| now.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    let since: BTreeMap<u64, u64> = missing
        .iter()
        .map(|number| (*number, before.get(number).map_or(now, |since| now.min(*since))))
        .collect();
    if since != before {
        objects.put(ABSENT, serde_json::to_vec(&since).unwrap_or_default()).await?;
    }
    let is_young = |since: &u64| u128::from(now - since) < grace.as_millis();
    Ok(since.iter().filter(|(_, since)| is_young(since)).map(|(number, _)| *number).collect())
}

/// All objects that manifests name, by themselves and by lists of parts.
async fn named(
    objects: &Objects,
    manifests: &[BackupManifest],
    is_forced: bool,
) -> Result<HashSet<String>, ObjectError> {
    let mut named: HashSet<String> = manifests
        .iter()
        .flat_map(|manifest| manifest.objects().map(str::to_string).collect::<Vec<_>>())
        .collect();
    let lists: BTreeMap<&str, u64> = manifests
        .iter()
        .flat_map(BackupManifest::files)
        .filter(|file| parts::count(file.bytes) > 1)
        .map(|file| (file.object.as_str(), file.bytes))
        .collect();
    let own: BTreeSet<&str> = manifests.iter().filter_map(|manifest| manifest.own.as_deref()).collect();
    for object in own {
        match OwnList::fetch(objects, Some(object)).await {
            Ok(list) => named.extend(list.files.into_iter().map(|file| file.object)),
            Err(error) if error.is_loss() && is_forced => {
                tracing::warn!(%error, "a list of the daemon's own files is lost, and they are removed with it");
            }
            Err(error) => return Err(error),
        }
    }
    for (object, bytes) in lists {
        match parts::names(objects, object, bytes).await {
            Ok(names) => named.extend(names),
            // Which objects it named is not known: they would go.
            Err(error) if error.is_loss() && is_forced => {
                tracing::warn!(%error, "a list of parts is lost, and its parts are removed with it");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(named)
}
