//! What the RRDs of a log were called at a position of it: records name most RRDs by their ids only.
//!
//! An RRD is remembered once it was needed. The first time, it has the name that it has in the store now, unless the log
//! takes a name away from it in between: a record that does so has the name. So the log is looked through once up to
//! where the store's names are those of now, and what it takes away is noted.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::pieces::Piece;
use super::{ShardTail, TailError};
use crate::catalogue::RrdId;
use crate::engine::StoreError;
use crate::log::catalogue::{Delete, Rename};
use crate::log::{Kind, Position, Record};
use crate::shard::view::View;

/// Bytes of the log looked through at once.
const PIECE_BYTES: usize = 1 << 20;
/// RRDs asked for in one query: so few that updates do not wait for them.
const IDS_AT_ONCE: usize = 1024;
/// How often to look whether what the store's names follow from has been committed, and for how long: on a full disk it
/// is taken back instead, and the store's names are those of before.
const COMMIT_POLL: Duration = Duration::from_millis(1);
const COMMIT_WAIT: Duration = Duration::from_secs(1);

/// Asks a shard for names.
pub(crate) type AskNames = Box<dyn Fn(Vec<RrdId>) -> Result<NamesNow, StoreError> + Send>;

/// The names of some RRDs in the store.
pub(crate) struct NamesNow {
    /// By id; those that exist.
    names: Vec<(RrdId, Box<[u8]>)>,
    /// They follow from the log up to here.
    at: Position,
}

impl NamesNow {
    /// The names of these RRDs.
    pub(crate) fn of(view: &View<'_>, ids: Vec<RrdId>) -> Self {
        let catalogue = &view.state.catalogue;
        let alive = ids.into_iter().filter(|id| catalogue.get(*id).is_some());
        NamesNow { names: alive.map(|id| (id, catalogue.name(id).into())).collect(), at: view.log_end }
    }
}

/// A name that a record takes away, and where that record starts.
type Taken = (Position, Box<[u8]>);

/// The names at a position.
pub(super) struct Names {
    ask: AskNames,
    /// By id; `None` when it was not needed yet, empty when nothing tells it.
    known: HashMap<RrdId, Box<[u8]>, foldhash::fast::RandomState>,
    /// The names that records further on take away, in their order.
    ahead: HashMap<RrdId, VecDeque<Taken>>,
    /// The records before this are looked through.
    looked_to: Position,
}

impl Names {
    /// Nothing is known yet.
    pub(super) fn new(ask: AskNames) -> Self {
        let (known, ahead) = (HashMap::default(), HashMap::new());
        Names { ask, known, ahead, looked_to: Position::default() }
    }

    /// Forgets everything: it goes on at `position`.
    pub(super) fn restart(&mut self, position: Position) {
        self.known.clear();
        self.ahead.clear();
        self.looked_to = position;
    }

    /// The name of an RRD; `None` when nothing tells it.
    pub(super) fn get(&self, id: RrdId) -> Option<&[u8]> {
        self.known.get(&id).map(|name| &**name).filter(|name| !name.is_empty())
    }

    /// Whether the name of an RRD was found out.
    #[inline]
    pub(super) fn is_known(&self, id: RrdId) -> bool {
        self.known.contains_key(&id)
    }

    /// From here on an RRD has this name.
    pub(super) fn set(&mut self, id: RrdId, name: &[u8], position: Position) {
        self.known.insert(id, name.into());
        if let Some(later) = self.ahead.get_mut(&id) {
            later.retain(|(at, _)| *at > position);
            if later.is_empty() {
                self.ahead.remove(&id);
            }
        }
    }

    /// An RRD is gone, and no id is given twice.
    pub(super) fn remove(&mut self, id: RrdId) {
        self.known.remove(&id);
        self.ahead.remove(&id);
    }

    fn note(&mut self, record: &Record<'_>) {
        let taken = match record.kind {
            Kind::Delete => {
                Delete::decode(record.body).ok().and_then(|Delete { id, name }| Some((id, name?)))
            }
            Kind::Rename => {
                Rename::decode(record.body).ok().and_then(|Rename { id, from, .. }| Some((id, from?)))
            }
            _ => None,
        };
        if let Some((id, name)) = taken {
            self.ahead.entry(id).or_default().push_back((record.position, name.into()));
        }
    }
}

impl ShardTail {
    /// Finds out what the RRDs of `ids` are called at `position`, as far as that is not known.
    pub(super) fn learn(&mut self, ids: &mut Vec<RrdId>, position: Position) -> Result<(), TailError> {
        ids.sort_unstable();
        ids.dedup();
        for ids in ids.chunks(IDS_AT_ONCE) {
            let NamesNow { names, at } = (self.names.ask)(ids.to_vec()).map_err(TailError::Store)?;
            self.look_ahead(position, at)?;
            let mut now: HashMap<RrdId, Box<[u8]>> = names.into_iter().collect();
            for id in ids {
                let taken = self.names.ahead.get(id).and_then(|taken| taken.front());
                let name = taken.map(|(_, name)| name.clone()).or_else(|| now.remove(id));
                self.names.known.insert(*id, name.unwrap_or_default());
            }
        }
        Ok(())
    }

    /// Looks through the log from `position` to `to`, which is committed at once.
    fn look_ahead(&mut self, position: Position, to: Position) -> Result<(), TailError> {
        let mut at = self.names.looked_to.max(position);
        let begun = Instant::now();
        while at < to {
            let end = self.log.committed().min(to);
            match self.read_between(at, end, PIECE_BYTES)? {
                Some(Piece::Records(raw)) => {
                    raw.records().for_each(|record| self.names.note(&record));
                    at = raw.end();
                }
                Some(Piece::Lost { to, .. }) => at = to,
                None if begun.elapsed() > COMMIT_WAIT => return Ok(()),
                None => std::thread::sleep(COMMIT_POLL),
            }
            self.names.looked_to = at;
        }
        Ok(())
    }
}
