//! How far the background pass is, in a file. It is a hint: what cannot be read or written only makes a pass begin again.

use std::path::Path;
use std::time::Duration;

use store::verify::Place;

/// How far the background pass is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// When the pass began, in seconds since the epoch; 0 = never.
    pub began: u64,
    /// When the last complete pass ended; 0 = never.
    pub ended: u64,
    /// The part that is next; the first one between passes.
    pub place: Place,
}

impl Progress {
    /// How long until something is to be done.
    pub fn due_in(&self, interval: Duration, now: u64) -> Duration {
        let is_under_way = self.place != Place::default() || self.began > self.ended;
        if is_under_way || self.began == 0 || self.began > now {
            return Duration::ZERO;
        }
        interval.saturating_sub(Duration::from_secs(now - self.began))
    }

    fn to_text(self) -> String {
        let Progress { began, ended, place: Place { shard, segment } } = self;
        format!("roundel-scrub 1\nbegan {began}\nended {ended}\nat {shard} {segment}\n")
    }

    fn of_text(text: &str) -> Option<Progress> {
        let mut lines = text.lines();
        (lines.next()? == "roundel-scrub 1").then_some(())?;
        let began = lines.next()?.strip_prefix("began ")?.parse().ok()?;
        let ended = lines.next()?.strip_prefix("ended ")?.parse().ok()?;
        let (shard, segment) = lines.next()?.strip_prefix("at ")?.split_once(' ')?;
        let place = Place { shard: shard.parse().ok()?, segment: segment.parse().ok()? };
        Some(Progress { began, ended, place })
    }

    /// Reads the file, or starts from the beginning.
    pub fn load(path: &Path) -> Progress {
        std::fs::read_to_string(path).ok().and_then(|text| Progress::of_text(&text)).unwrap_or_default()
    }

    /// Writes the file.
    pub fn save(&self, path: &Path) {
        let new = path.with_extension("new");
        let written = std::fs::write(&new, self.to_text()).and_then(|()| std::fs::rename(&new, path));
        if let Err(error) = written {
            tracing::debug!(%error, "cannot write down how far the store was verified");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_kept_in_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("scrub");
        assert_eq!(Progress::load(&path), Progress::default());
        let progress = Progress { began: 5, ended: 3, place: Place { shard: 2, segment: 1 << 40 } };
        progress.save(&path);
        assert_eq!(Progress::load(&path), progress);
        std::fs::write(&path, "roundel-scrub 2\n").unwrap();
        assert_eq!(Progress::load(&path), Progress::default());
    }

    #[test]
    fn a_pass_is_due_an_interval_after_the_last_one_began() {
        let interval = Duration::from_secs(100);
        let due = |progress: Progress, now| progress.due_in(interval, now).as_secs();
        assert_eq!(due(Progress::default(), 50), 0);
        let done = Progress { began: 50, ended: 60, place: Place::default() };
        assert_eq!((due(done, 70), due(done, 149), due(done, 150), due(done, 1000)), (80, 1, 0, 0));
        // The clock was put back.
        assert_eq!(due(done, 10), 0);
        let under_way = Progress { place: Place { shard: 0, segment: 7 }, ..done };
        assert_eq!(due(under_way, 70), 0);
    }
}
