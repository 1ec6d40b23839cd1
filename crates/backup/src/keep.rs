//! Which moments are kept, and the removal of what only the others need.
//!
//! An object is deleted only when no manifest that is kept names it, and when it is older than a grace period: the round that
//! sent it may not have come to its manifest yet. If any manifest that is to be kept cannot be read, nothing is deleted.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::{Duration, SystemTime};

use futures_util::stream::{self, StreamExt, TryStreamExt};

use crate::manifest::{BackupManifest, PRUNED, pruned, runs};
use crate::moments::{MomentError, numbers};
use crate::objects::{ObjectError, Objects};
use crate::own::OwnList;
use crate::parts;
use crate::restore::FETCHED_AT_ONCE;

/// How long an object is left alone that no manifest names: longer than a round takes after a long interruption.
pub const GRACE: Duration = Duration::from_hours(3 * 24);
/// With more, clocks are not the same: what a machine without a network has at its start, or a time zone that was mistaken for another.
const CLOCK_DIFFERS_MAX: Duration = Duration::from_hours(6);
/// A day in milliseconds.
const DAY_MS: i64 = 86_400_000;

/// A rule: for so long, one moment of each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepRule {
    age: Duration,
    /// Milliseconds; 0 = every moment.
    period_ms: i64,
}

/// What is kept: each moment that some rule keeps, and always the newest one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keep(Vec<KeepRule>);

impl Keep {
    /// Reads `7d all, 90d daily`: ages with `h`, `d`, `w` or `y`, and `all`, `hourly`, `daily`, `weekly` or `monthly`.
    ///
    /// # Errors
    /// When it is something else.
    pub fn parse(text: &str) -> Result<Keep, String> {
        let rule = |text: &str| {
            let mut words = text.split_whitespace();
            let (age, what) = (words.next()?, words.next()?);
            let unit_hours = match age.get(age.len().checked_sub(1)?..)? {
                "h" => 1,
                "d" => 24,
                "w" => 7 * 24,
                "y" => 365 * 24,
                _ => return None,
            };
            let count: u64 =
                age[..age.len() - 1].parse().ok().filter(|count| (1..=100_000).contains(count))?;
            let period_ms = match what {
                "all" => 0,
                "hourly" => DAY_MS / 24,
                "daily" => DAY_MS,
                "weekly" => 7 * DAY_MS,
                "monthly" => 30 * DAY_MS,
                _ => return None,
            };
            let is_end = words.next().is_none();
            is_end.then_some(KeepRule { age: Duration::from_hours(count * unit_hours), period_ms })
        };
        let rules: Option<Vec<_>> = text.split(',').map(rule).collect();
        rules.map(Keep).ok_or_else(|| format!("\"{text}\" is not like \"7d all, 90d daily\""))
    }

    /// Which manifests are kept, of those with these numbers, times (in milliseconds) and bases; `now` is in milliseconds.
    fn kept(&self, manifests: &[(u64, i64, u64)], now: i64) -> BTreeSet<u64> {
        let mut kept: BTreeSet<u64> = manifests.iter().map(|manifest| manifest.0).max().into_iter().collect();
        for rule in &self.0 {
            let oldest = now - i64::try_from(rule.age.as_millis()).unwrap_or(i64::MAX);
            let mut last: BTreeMap<i64, u64> = BTreeMap::new();
            for (number, time_ms, base) in manifests.iter().filter(|manifest| manifest.1 >= oldest) {
                // Of all with one base, the last has everything that the others have.
                let period =
                    if rule.period_ms == 0 { *base as i64 } else { time_ms.div_euclid(rule.period_ms) };
                let newest = last.entry(period).or_insert(*number);
                *newest = (*newest).max(*number);
            }
            kept.extend(last.into_values());
        }
        kept
    }
}

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
    let gone = pruned(objects).await?;
    objects.put(PRUNED, serde_json::to_vec(&runs(&gone)).unwrap_or_default()).await?;
    Ok(objects.look(PRUNED).await?.map(|seen| seen.written))
}

/// Removes what the rules do not keep.
///
/// # Errors
/// When the server fails, or a manifest or a list of parts of what is kept is damaged. What was not removed is removed the next time.
pub async fn prune(objects: &Objects, keep: &Keep, pruning: Pruning) -> Result<Pruned, MomentError> {
    let Pruning { grace, now_ms, is_forced } = pruning;
    let (numbers, newest) = numbers(objects).await?;
    let fetched: Vec<Option<BackupManifest>> = stream::iter(numbers)
        .map(|number| async move {
            match BackupManifest::fetch(objects, number).await {
                Ok(manifest) => Ok(Some(manifest)),
                Err(ObjectError::Missing(_)) => Ok(None),
                Err(error) if is_forced && error.is_loss() => Ok(None),
                Err(error) => Err(error),
            }
        })
        .buffered(FETCHED_AT_ONCE)
        .try_collect()
        .await?;
    let manifests: Vec<BackupManifest> = fetched.into_iter().flatten().collect();
    let facts: Vec<_> =
        manifests.iter().map(|manifest| (manifest.number, manifest.time_ms, manifest.base)).collect();
    let kept = keep.kept(&facts, now_ms);
    let (kept, gone): (Vec<_>, Vec<_>) =
        manifests.into_iter().partition(|manifest| kept.contains(&manifest.number));
    let named = named(objects, &kept, is_forced).await?;
    let mut report = Pruned { kept: kept.len() as u64, ..Pruned::default() };
    for manifest in &gone {
        objects.delete(&BackupManifest::name(manifest.number)).await?;
        report.manifests += 1;
    }
    let mut all_gone = pruned(objects).await?;
    all_gone
        .extend(newest.numbers().iter().filter(|number| !kept.iter().any(|kept| kept.number == **number)));
    let text = serde_json::to_vec(&runs(&all_gone)).unwrap_or_default();
    objects.put(PRUNED, text).await?;
    // By the server's own clock: it also says when the others were written.
    let server_now = objects.look(PRUNED).await?.map_or(SystemTime::UNIX_EPOCH, |seen| seen.written);
    for seen in objects.list("objects").await? {
        let is_old = server_now.duration_since(seen.written).is_ok_and(|age| age >= grace);
        if is_old && !named.contains(&seen.name) {
            objects.delete(&seen.name).await?;
            report.objects += 1;
            report.bytes += seen.bytes;
        }
    }
    Ok(report)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_ages_and_periods() {
        let keep = Keep::parse("7d all, 90d daily").unwrap();
        assert_eq!(keep.0.len(), 2);
        assert_eq!(keep.0[1], KeepRule { age: Duration::from_hours(90 * 24), period_ms: DAY_MS });
        for bad in
            ["", "7d", "all", "7 all", "7d all 90d daily", "0d all", "d all", "7d sometimes", "7d all,"]
        {
            assert!(Keep::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_last_of_each_period_or_base_is_kept() {
        let hour = DAY_MS / 24;
        // One an hour for ten days, of which six have the same base.
        let manifests: Vec<(u64, i64, u64)> =
            (0..240).map(|hours| (hours + 1, hours as i64 * hour, hours / 6 * 6)).collect();
        let now = 240 * hour;
        let kept = Keep::parse("2d all").unwrap().kept(&manifests, now);
        assert_eq!(kept, (193..=240).filter(|number| number % 6 == 0).collect());
        let kept = Keep::parse("1d all, 5d daily").unwrap().kept(&manifests, now);
        assert_eq!(kept, [144, 168, 192, 216, 222, 228, 234, 240].into());
        assert_eq!(Keep::default().kept(&manifests, now), [240].into());
    }
}
