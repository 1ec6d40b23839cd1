//! Which moments are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

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
    pub(crate) fn kept(&self, manifests: &[(u64, i64, u64)], now: i64) -> BTreeSet<u64> {
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
