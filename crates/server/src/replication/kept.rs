//! From where on the log is kept for each follower, also while it is away and over a restart of this server.
//!
//! The file `followers` in the store's directory has what each follower acknowledged last (`docs/format/store.md`). It is a few seconds old at most:
//! then more log is kept than is needed. When it is lost, the log may be released, and a follower that was away copies the store again.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use protocol::frames::replication::NAME_BYTES_MAX;
use store::engine::Engine;
use store::identity::Identity;
use store::replication::Position;
use store::tail::{LogTail, Piece, Reach, ShardTail};

use crate::limits::FOLLOWERS_KEPT_MAX;

/// The first line of the file.
const HEAD: &str = "roundel followers 1";
/// How often the file is written while followers acknowledge.
const SAVE_EVERY: Duration = Duration::from_secs(5);
/// More than the file of the most followers of a store with the most shards has.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What is kept for whom.
pub(crate) struct KeptLogs {
    path: PathBuf,
    store: Identity,
    state: Mutex<KeptState>,
}

struct KeptState {
    followers: BTreeMap<String, Kept>,
    sessions: u64,
    saved: Instant,
    is_changed: bool,
    has_failed: bool,
}

/// Of one follower.
struct Kept {
    /// What it acknowledged last, per shard; empty while it takes its first copy.
    positions: Vec<Position>,
    /// Keeps the log while it is away; with a session, that one does.
    tail: Option<LogTail>,
    /// The newest session of this name; 0 = none since the start.
    session: u64,
    /// When it left.
    left: Instant,
}

impl fmt::Debug for KeptLogs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "what {} keeps", self.path.display())
    }
}

impl KeptLogs {
    /// Goes on keeping, of at most `log_bytes` of each shard, what `path` says. Call it before the log that was held at the start is released.
    /// A file that cannot be used is logged. `None`: the store has no log.
    pub(crate) fn open(engine: &dyn Engine, path: PathBuf, log_bytes: u64) -> Option<Arc<Self>> {
        let store = engine.replica()?.identity();
        let read = load(&path, store).unwrap_or_else(|error| {
            tracing::warn!(file = %path.display(), %error, "followers that are away may have to copy the store again");
            BTreeMap::new()
        });
        let (mut followers, mut is_changed) = (BTreeMap::new(), false);
        for (name, positions) in read {
            match tail_from(engine, &positions, log_bytes) {
                Ok(tail) => {
                    let kept = Kept { positions, tail: Some(tail), session: 0, left: Instant::now() };
                    followers.insert(name, kept);
                }
                Err(text) => {
                    is_changed = true;
                    tracing::info!(follower = name, "no log is kept for it any more: {text}");
                }
            }
        }
        let state =
            KeptState { followers, sessions: 0, saved: Instant::now(), is_changed, has_failed: false };
        Some(Arc::new(KeptLogs { path, store, state: Mutex::new(state) }))
    }

    /// Those that are away, and what they have.
    pub(super) fn away(&self) -> Vec<(String, Vec<Position>)> {
        let state = self.state();
        let away = state.followers.iter().filter(|(_, kept)| kept.tail.is_some());
        away.map(|(name, kept)| (name.clone(), kept.positions.clone())).collect()
    }

    fn state(&self) -> MutexGuard<'_, KeptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session begins, whose tail keeps the log; returns its number. `positions`: where the follower's logs end, none if it takes a copy.
    pub(super) fn begin(&self, name: &str, positions: &[Position]) -> u64 {
        let mut state = self.state();
        state.sessions += 1;
        let session = state.sessions;
        state.make_room(name);
        let kept = Kept { positions: positions.to_vec(), tail: None, session, left: Instant::now() };
        state.followers.insert(name.to_string(), kept);
        self.save(&mut state);
        session
    }

    /// What the follower of a session has now.
    pub(super) fn acknowledged(&self, (name, session): (&str, u64), positions: &[Position]) {
        if positions.len() != self.store.shard_count as usize {
            return;
        }
        let mut state = self.state();
        let Some(kept) = state.followers.get_mut(name).filter(|kept| kept.session == session) else { return };
        if kept.positions == positions {
            return;
        }
        kept.positions = positions.to_vec();
        state.is_changed = true;
        if state.saved.elapsed() >= SAVE_EVERY {
            self.save(&mut state);
        }
    }

    /// The follower of a session has left: `tail` keeps the log for it, unless it has come again meanwhile.
    pub(super) fn left(&self, (name, session): (&str, u64), tail: LogTail) {
        let mut state = self.state();
        let Some(kept) = state.followers.get_mut(name).filter(|kept| kept.session == session) else { return };
        if kept.positions.is_empty() {
            // It has no copy yet, and begins with a new one.
            state.followers.remove(name);
        } else {
            (kept.tail, kept.left) = (Some(tail), Instant::now());
        }
        self.save(&mut state);
    }

    fn save(&self, state: &mut KeptState) {
        (state.saved, state.is_changed) = (Instant::now(), false);
        let mut text = format!("{HEAD}\n{}\n", self.store.id_text());
        for (name, kept) in state.followers.iter().filter(|(_, kept)| !kept.positions.is_empty()) {
            text.push_str(name);
            kept.positions.iter().for_each(|position| text.push_str(&format!(" {position}")));
            text.push('\n');
        }
        match self.replace(&text) {
            Ok(()) => state.has_failed = false,
            Err(error) if !std::mem::replace(&mut state.has_failed, true) => {
                tracing::error!(file = %self.path.display(), %error, "cannot be written: followers that are away during a restart may have to copy the store again");
            }
            Err(_) => {}
        }
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        let new = self.path.with_extension("new");
        fs::write(&new, text)?;
        File::open(&new)?.sync_all()?;
        fs::rename(&new, &self.path)?;
        self.path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
    }
}

impl Drop for KeptLogs {
    fn drop(&mut self) {
        let mut state = self.state();
        if state.is_changed {
            self.save(&mut state);
        }
    }
}

impl KeptState {
    /// When there are too many others, the one that has been away the longest is forgotten.
    fn make_room(&mut self, name: &str) {
        if self.followers.len() < FOLLOWERS_KEPT_MAX || self.followers.contains_key(name) {
            return;
        }
        let away = self.followers.iter().filter(|(_, kept)| kept.tail.is_some());
        if let Some(longest) = away.min_by_key(|(_, kept)| kept.left).map(|(name, _)| name.clone()) {
            tracing::warn!(follower = longest, "no log is kept for it any more: too many others have come");
            self.followers.remove(&longest);
        }
    }
}

/// Keeps the log that a follower needs whose own ends at `position`: its last record, too, because that is compared.
pub(super) fn keep_for(shard: &ShardTail, position: Position) {
    shard.keep_from(Position { offset: position.offset.saturating_sub(1), ..position });
}

fn tail_from(engine: &dyn Engine, positions: &[Position], log_bytes: u64) -> Result<LogTail, String> {
    let mut tail = engine.tail(Reach::Committed, log_bytes).map_err(|error| error.to_string())?;
    for (shard, position) in tail.shards_mut().iter_mut().zip(positions) {
        shard.seek(*position).map_err(|error| error.to_string())?;
        keep_for(shard, *position);
        let end = shard.end();
        if let Ok(Some(Piece::Lost { .. })) = shard.read_before(end, 1) {
            return Err("what it lacks is there no longer".to_string());
        }
    }
    Ok(tail)
}

/// Reads the file; nothing if there is none, or it is another store's.
fn load(path: &PathBuf, store: Identity) -> io::Result<BTreeMap<String, Vec<Position>>> {
    let length = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        metadata => metadata?.len(),
    };
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "it does not hold positions of followers");
    let text = if length <= FILE_BYTES_MAX { fs::read_to_string(path)? } else { return Err(invalid()) };
    parse(&text, store).ok_or_else(invalid)
}

fn parse(text: &str, store: Identity) -> Option<BTreeMap<String, Vec<Position>>> {
    let mut lines = text.lines();
    if lines.next() != Some(HEAD) {
        return None;
    }
    if lines.next()? != store.id_text() {
        return Some(BTreeMap::new());
    }
    let mut followers = BTreeMap::new();
    for line in lines {
        let mut words = line.split(' ');
        let name = words.next().filter(|name| !name.is_empty() && name.len() <= NAME_BYTES_MAX)?;
        let positions: Vec<Position> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
        if positions.len() != store.shard_count as usize || followers.len() == FOLLOWERS_KEPT_MAX {
            return None;
        }
        followers.insert(name.to_string(), positions);
    }
    Some(followers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_for_its_store_alone() {
        let store = Identity { id: [7; 16], seed: 1, shard_count: 2 };
        let text = format!("{HEAD}\n{}\nfirst 1:20 0:9\nsecond 1:5 0:0\n", store.id_text());
        let read = parse(&text, store).unwrap();
        let second = [Position { generation: 1, offset: 5 }, Position::default()];
        assert_eq!((read.len(), &read["second"][..]), (2, &second[..]));
        assert_eq!(parse(&text, Identity { id: [8; 16], ..store }), Some(BTreeMap::new()));
        assert_eq!(parse(&text, Identity { shard_count: 3, ..store }), None);
        for line in ["first", "first 1:20", "first 1:20 x", " 1:20 0:9", "first 1:20 0:9 0:9", ""] {
            let text = format!("{HEAD}\n{}\n{line}\n", store.id_text());
            assert_eq!(parse(&text, store), None, "{line:?}");
        }
        assert_eq!(parse("", store), None);
        assert_eq!(parse(&format!("{HEAD}\n"), store), None);
    }
}
