//! Which moments a backup has, and which manifests make one of them up.

use std::collections::BTreeSet;

use crate::manifest::{BackedShard, BackupManifest, newest, pruned};
use crate::objects::{ObjectError, Objects};
use crate::upload::{is_dense, store_position};

/// The moment that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The newest one.
    Newest,
    /// What was answered up to this time, in milliseconds since the epoch.
    Time(i64),
    /// What the shards' logs hold up to these positions: generation and offset, in the order of the shards.
    Positions(Vec<(u32, u64)>),
}

/// What a moment is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The manifest at or before it.
    pub base: BackupManifest,
    /// The next one, which has the log from there on; only where the moment is later than the base.
    pub after: Option<BackupManifest>,
    /// The moment is not kept whole: the log between the two is missing, so that this is the last one before it.
    pub is_earlier: bool,
    /// The latest epoch that the newest manifest knows: what is restored begins a later one.
    pub known_epoch: u32,
}

/// Why a moment is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MomentError {
    /// There is no backup.
    Nothing,
    /// It is before the first moment, given in milliseconds since the epoch.
    TooEarly(i64),
    /// The store has another number of shards than there are positions.
    Shards(usize),
    /// A manifest, and so many in all, that nothing has removed is missing.
    Absent(String, usize),
    /// An object cannot be fetched.
    Object(ObjectError),
}

impl std::fmt::Display for MomentError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MomentError::Nothing => f.write_str("there is no backup, or no manifest of it can be read"),
            MomentError::TooEarly(first) => {
                write!(f, "the first moment of the backup is at {} seconds since 1970", first / 1000)
            }
            MomentError::Shards(count) => write!(f, "the store has {count} shards: give as many positions"),
            MomentError::Absent(name, count) => {
                let others = match count.saturating_sub(1) {
                    0 => String::new(),
                    more => format!(" (and {more} more)"),
                };
                write!(
                    f,
                    "object {name}{others} is missing, and no pruning has removed it: what it names is left alone until it was missing for three days"
                )
            }
            MomentError::Object(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MomentError {}

impl From<ObjectError> for MomentError {
    fn from(error: ObjectError) -> Self {
        MomentError::Object(error)
    }
}

/// The numbers of all manifests, of which few may be gone.
///
/// # Errors
/// When there is none, or the server fails.
pub async fn numbers(objects: &Objects) -> Result<(BTreeSet<u64>, BackupManifest), MomentError> {
    let newest = newest(objects).await?.ok_or(MomentError::Nothing)?;
    let gone = pruned(objects).await?;
    let numbers = newest.numbers().into_iter().filter(|number| !gone.contains(number)).collect();
    Ok((numbers, newest))
}

/// Finds what makes up a moment.
///
/// # Errors
/// When it is not there, or the server fails.
pub async fn find(objects: &Objects, moment: &Moment) -> Result<Found, MomentError> {
    let (numbers, newest) = numbers(objects).await?;
    if let Moment::Positions(positions) = moment
        && positions.len() != newest.shards.len()
    {
        return Err(MomentError::Shards(newest.shards.len()));
    }
    let known_epoch = newest.history().next_epoch() - 1;
    if is_up_to(&newest, moment) {
        return Ok(Found { base: newest, after: None, is_earlier: false, known_epoch });
    }
    let mut numbers: Vec<u64> = numbers.into_iter().collect();
    let (mut base, mut after) = (None, newest);
    // The last that is not later, by halves; what is gone meanwhile or damaged is passed over.
    let (mut low, mut high) =
        (0, numbers.iter().position(|number| *number == after.number).unwrap_or(numbers.len()));
    while low < high {
        let middle = low + (high - low) / 2;
        match BackupManifest::fetch(objects, numbers[middle]).await {
            Ok(manifest) if is_up_to(&manifest, moment) => {
                base = Some(manifest);
                low = middle + 1;
            }
            Ok(manifest) => {
                after = manifest;
                high = middle;
            }
            Err(error) if error.is_loss() => {
                tracing::debug!(%error, "a manifest is passed over");
                numbers.remove(middle);
                high -= 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
    if let Some(base) = base.as_ref().filter(|base| goes_on(base, &after)) {
        return Ok(Found { base: base.clone(), after: Some(after), is_earlier: false, known_epoch });
    }
    if reaches_back_to(&after, moment) {
        return Ok(Found { base: after, after: None, is_earlier: false, known_epoch });
    }
    let base = base.ok_or_else(|| MomentError::TooEarly(after.base_ms.unwrap_or(after.time_ms)))?;
    Ok(Found { base, after: None, is_earlier: true, known_epoch })
}

/// Whether a manifest has the log from before a moment on, after its checkpoints: then it makes that moment up without those before it, which
/// pruning removes.
pub(crate) fn reaches_back_to(manifest: &BackupManifest, moment: &Moment) -> bool {
    let is_within = match moment {
        Moment::Newest => true,
        Moment::Time(ms) => manifest.base_ms.is_some_and(|base_ms| base_ms <= *ms),
        Moment::Positions(positions) => {
            manifest.shards.iter().zip(positions).all(|(shard, wanted)| shard.log_from <= *wanted)
        }
    };
    let has_log = |shard: &BackedShard| {
        let first = shard.log.first();
        shard.log_from == shard.log_end
            || is_dense(&shard.log) && first.is_some_and(|first| first.from <= shard.log_from)
    };
    is_within && manifest.shards.iter().all(has_log)
}

/// Whether all of a manifest is wanted.
pub(crate) fn is_up_to(manifest: &BackupManifest, moment: &Moment) -> bool {
    match moment {
        Moment::Newest => true,
        Moment::Time(ms) => manifest.time_ms <= *ms,
        Moment::Positions(positions) => {
            manifest.shards.iter().zip(positions).all(|(shard, wanted)| shard.log_end <= *wanted)
        }
    }
}

/// Whether the log of a later manifest begins where that of an earlier one ends, or before, and is the same up to there: after a
/// restore it is not, if the earlier one has more than was restored.
pub(crate) fn goes_on(base: &BackupManifest, after: &BackupManifest) -> bool {
    let ends: Vec<_> = base.shards.iter().map(|shard| store_position(shard.log_end)).collect();
    base.shards.len() == after.shards.len()
        && after.history().continues(&base.history(), &ends)
        && base.shards.iter().zip(&after.shards).all(|(base, after)| {
            let is_new = base.log_end == after.log_end;
            let first = after.log.first();
            is_new || is_dense(&after.log) && first.is_some_and(|first| first.from <= base.log_end)
        })
}
