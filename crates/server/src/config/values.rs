//! Single values of `roundel.toml` and their bounds. An error names the file, the line, the key and the value, and says what to give.

use std::fmt::{Debug, Display};
use std::ops::RangeInclusive;
use std::time::Duration;

use toml::Spanned;

use store::stripes::Adopted;

use super::{Adopt, ConfigError, Reader, line_of};
use crate::settings::{
    ADOPT_UNUSED_DEFAULT, KEEP_ADOPTED_DEFAULT, SCRUB_DEFAULT, SyncPolicy, TRASH_DEFAULT, parse_bytes,
    parse_duration,
};

/// Memory for clients: with the least, some hundred connections and one answer of half a megabyte at a time fit.
pub const MEMORY: [&str; 2] = ["8 MB", "1 TB"];
/// What one RRD may take; an ordinary one takes less than 1 kB.
pub const RRD_MEMORY: [&str; 2] = ["64 kB", "1 TB"];
/// What all RRDs may take.
pub const STORE_MEMORY: [&str; 2] = ["1 MB", "64 TB"];
/// Patience with a client: in less than a second, a slow one is not yet silent.
pub const IDLE: [&str; 2] = ["1s", "7d"];
/// From sync to sync; what is not synced for longer is as good as not synced.
pub const SYNC: [&str; 2] = ["1ms", "1h"];
/// From verification to verification.
pub const SCRUB: [&str; 2] = ["1m", "520w"];
/// From one round of a backup to the next.
#[cfg(feature = "backup")]
pub const BACKUP: [&str; 2] = ["1s", "1d"];
/// The same, unless the configuration says otherwise.
#[cfg(feature = "backup")]
pub const BACKUP_DEFAULT: Duration = Duration::from_secs(10);
/// Bytes a second that a backup may send.
#[cfg(feature = "backup")]
pub const BANDWIDTH: [&str; 2] = ["10 kB", "100 GB"];
/// Intervals of the files layout, and times of programs.
pub const INTERVAL: [&str; 2] = ["1s", "4w"];
/// How much such an interval may vary.
pub const JITTER: [&str; 2] = ["0s", "4w"];
/// Bytes of open rows: less than 4 kB is written for nearly every update.
pub const OPEN_BYTES: RangeInclusive<usize> = 4 << 10..=1 << 40;
/// Bytes of log: with less, checkpoints are written all the time.
pub const LOG_BYTES: RangeInclusive<u64> = 32 << 10..=1 << 40;
/// Bytes of the spool of an agent, or of a cluster's node: with less, it has room for no day without the store.
pub const SPOOL_BYTES: [&str; 2] = ["1 MB", "64 TB"];
/// Bytes of log kept for a follower that is away.
pub const KEPT_LOG: [&str; 2] = ["1 MB", "1 TB"];
/// How long an answer waits for a follower.
pub const ACK_TIMEOUT: [&str; 2] = ["1s", "1h"];
/// How long an agent keeps what the store has.
pub const SPOOL_KEEP: [&str; 2] = ["0s", "52w"];
/// How long removed RRDs, and files that were taken in, are kept.
pub const KEPT: [&str; 2] = ["1s", "520w"];
/// How long a file must be unchanged before it is taken in without being named.
pub const QUIET: [&str; 2] = ["0s", "1w"];
/// Threads that write in the files layout.
pub const WRITE_THREADS: RangeInclusive<usize> = 1..=256;

/// Parses a duration with its unit: a bare number says nothing about what it counts.
pub fn parse_with_unit(text: &str) -> Option<Duration> {
    parse_duration(text).filter(|_| !text.ends_with(|last: char| last.is_ascii_digit()))
}

/// The value of `text` if it is within `bounds`, which are written in the same way.
fn within<T: PartialOrd>(text: &str, bounds: [&str; 2], parse: impl Fn(&str) -> Option<T>) -> Option<T> {
    let [least, most] = bounds.map(&parse);
    parse(text)
        .filter(|value| least.is_some_and(|least| least <= *value) && most.is_some_and(|most| *value <= most))
}

impl Reader<'_> {
    /// The value of `key` cannot be used.
    pub(super) fn error<T: Debug>(&self, key: &str, value: &Spanned<T>, cause: impl Display) -> ConfigError {
        let line = line_of(self.text, value.span().start);
        ConfigError(format!("{}:{line}: cannot use {key} = {:?}: {cause}", self.source, value.get_ref()))
    }

    /// A number within `bounds`.
    pub(super) fn number<T: Copy + PartialOrd + Debug>(
        &self,
        key: &str,
        value: Option<&Spanned<T>>,
        bounds: RangeInclusive<T>,
    ) -> Result<Option<T>, ConfigError> {
        let Some(value) = value else { return Ok(None) };
        match bounds.contains(value.get_ref()) {
            true => Ok(Some(*value.get_ref())),
            false => Err(self.error(
                key,
                value,
                format!("give a number from {:?} to {:?}", bounds.start(), bounds.end()),
            )),
        }
    }

    /// A duration within `bounds`.
    pub(super) fn duration(
        &self,
        key: &str,
        value: Option<&Spanned<String>>,
        default: Duration,
        bounds: [&str; 2],
    ) -> Result<Duration, ConfigError> {
        let Some(value) = value else { return Ok(default) };
        within(value.get_ref(), bounds, parse_with_unit).ok_or_else(|| {
            let [least, most] = bounds;
            self.error(key, value, format!("give a number with ms, s, m, h, d or w, from {least} to {most}"))
        })
    }

    /// A number of bytes within `bounds`.
    pub(super) fn bytes(
        &self,
        key: &str,
        value: Option<&Spanned<String>>,
        default: u64,
        bounds: [&str; 2],
    ) -> Result<u64, ConfigError> {
        let Some(value) = value else { return Ok(default) };
        within(value.get_ref(), bounds, parse_bytes).ok_or_else(|| {
            let [least, most] = bounds;
            self.error(
                key,
                value,
                format!("give a number of bytes, such as \"500 MB\" or \"2 GiB\", from {least} to {most}"),
            )
        })
    }

    /// When updates are durable.
    pub(super) fn sync(&self, value: &Spanned<String>) -> Result<SyncPolicy, ConfigError> {
        if value.get_ref() == "always" {
            return Ok(SyncPolicy::Always);
        }
        within(value.get_ref(), SYNC, parse_with_unit).map(SyncPolicy::Every).ok_or_else(|| {
            let [least, most] = SYNC;
            self.error(
                "sync",
                value,
                format!("give \"always\", or a duration such as \"1s\", from {least} to {most}"),
            )
        })
    }

    /// What becomes of files that were taken in.
    pub(super) fn adopted(
        &self,
        adopt: &Spanned<Adopt>,
        keep: Option<&Spanned<String>>,
    ) -> Result<Adopted, ConfigError> {
        match adopt.get_ref() {
            Adopt::Word(word) if word == "keep" => Ok(Adopted::Stays),
            Adopt::Word(_) => Err(self.error("adopt", adopt, "give true, false or \"keep\"")),
            Adopt::Whether(_) => {
                self.duration("keep_adopted", keep, KEEP_ADOPTED_DEFAULT, KEPT).map(Adopted::Archived)
            }
        }
    }

    /// How long a file must be unchanged before it is taken in without being named.
    pub(super) fn adopt_unused(
        &self,
        value: Option<&Spanned<String>>,
    ) -> Result<Option<Duration>, ConfigError> {
        match value {
            Some(value) if value.get_ref() == "off" => Ok(None),
            value => self.duration("adopt_unused", value, ADOPT_UNUSED_DEFAULT, QUIET).map(Some),
        }
    }

    /// How long removed RRDs are kept.
    pub(super) fn trash(&self, value: Option<&Spanned<String>>) -> Result<Duration, ConfigError> {
        match value {
            Some(value) if value.get_ref() == "off" => Ok(Duration::ZERO),
            value => self.duration("trash", value, TRASH_DEFAULT, KEPT),
        }
    }

    /// A whole number of percent, such as "10 %".
    pub(super) fn percent(
        &self,
        key: &str,
        value: Option<&Spanned<String>>,
        default: u32,
    ) -> Result<u32, ConfigError> {
        let Some(value) = value else { return Ok(default) };
        let number = value.get_ref().strip_suffix('%').and_then(|number| number.trim_end().parse().ok());
        number.filter(|percent| *percent <= 100).ok_or_else(|| {
            self.error(key, value, "give a whole number of percent, such as \"10 %\", from 0 % to 100 %")
        })
    }

    /// How often everything is verified; `None` = never.
    pub(super) fn scrub(&self, value: Option<&Spanned<String>>) -> Result<Option<Duration>, ConfigError> {
        let Some(value) = value else { return Ok(Some(SCRUB_DEFAULT)) };
        if value.get_ref() == "off" {
            return Ok(None);
        }
        within(value.get_ref(), SCRUB, parse_with_unit).map(Some).ok_or_else(|| {
            let [least, most] = SCRUB;
            self.error(
                "scrub",
                value,
                format!("give \"off\", or a duration such as \"30d\", from {least} to {most}"),
            )
        })
    }

    /// The number of a user or group.
    pub(super) fn id(
        &self,
        key: &str,
        value: Option<&Spanned<String>>,
        find: impl Fn(&str) -> Option<u32>,
    ) -> Result<Option<u32>, ConfigError> {
        let Some(value) = value else { return Ok(None) };
        let cause = "there is none of this name on this machine; give a name or a number";
        find(value.get_ref()).map(Some).ok_or_else(|| self.error(key, value, cause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_can_be_reached_and_not_exceeded() {
        for bounds in [MEMORY, RRD_MEMORY, STORE_MEMORY] {
            let [least, most] = bounds.map(|bound| parse_bytes(bound).unwrap());
            for (bytes, fits) in [(least - 1, false), (least, true), (most, true), (most + 1, false)] {
                assert_eq!(within(&bytes.to_string(), bounds, parse_bytes).is_some(), fits, "{bytes}");
            }
        }
        for bounds in [IDLE, SYNC, SCRUB, INTERVAL, JITTER] {
            let [least, most] = bounds.map(|bound| parse_with_unit(bound).unwrap().as_millis());
            for (ms, fits) in [(least, true), (most, true), (most + 1, false)] {
                assert_eq!(within(&format!("{ms}ms"), bounds, parse_with_unit).is_some(), fits, "{ms}");
            }
            assert!(least == 0 || within(&format!("{}ms", least - 1), bounds, parse_with_unit).is_none());
        }
    }

    #[test]
    fn a_duration_has_a_unit() {
        assert_eq!(parse_with_unit("5s"), Some(Duration::from_secs(5)));
        assert_eq!(parse_with_unit("5"), None);
        assert_eq!(parse_with_unit("0"), None);
    }
}
