//! Renames, copies and removals of RRDs in the shards, without regard to any tree.
//!
//! A rename is one record in the log of the RRD's shard: the RRD keeps its rows and its shard ([`super::homes`]). What stands in the way is put in
//! the trash first. Only one of these operations runs at a time; updates go on meanwhile.

use std::sync::mpsc;

use crate::engine::{StoreError, Trashed};
use crate::lock::lock;
use crate::name::RrdName;
use crate::shard::message::{Command, Rename, Renamed};
use crate::stripes::shards::Core;
use crate::stripes::trash;

/// Names asked for in one query: so few that updates do not wait for them.
const NAMES_AT_ONCE: usize = 1024;

/// Whether a change is still wanted; called by the shard when everything sent before is complete.
pub(super) type IsWanted = Option<Box<dyn FnOnce() -> bool + Send>>;

/// One RRD that gets another name.
pub(super) struct Move {
    pub(super) from: RrdName,
    pub(super) to: RrdName,
    pub(super) is_wanted: IsWanted,
}

impl Core {
    /// Finds out the names that are not in the shard that their hash says, and what is in the trash.
    pub(super) fn learn_names(&self) -> Result<(), StoreError> {
        let mut trash = lock(&self.trash);
        let mut unfinished = Vec::new();
        for (index, shard) in self.shards.iter().enumerate() {
            for name in self.query(shard, None, |view| view.hidden_names())? {
                if !trash.add(&name, index) {
                    unfinished.push(name);
                }
            }
        }
        drop(trash);
        if self.shards.len() > 1 {
            for (index, shard) in self.shards.iter().enumerate() {
                for name in self.query(shard, None, |view| view.names(b""))? {
                    if self.homes.of_hash(&name) != index {
                        self.homes.set(&name, index);
                    }
                }
            }
        }
        Ok(())
    }

    /// Which of these names RRDs have.
    pub(super) fn have(&self, names: &[RrdName]) -> Result<Vec<bool>, StoreError> {
        let mut of_shard: Vec<Vec<usize>> = vec![Vec::new(); self.shards.len()];
        for (index, name) in names.iter().enumerate() {
            of_shard[self.homes.of(name.as_bytes())].push(index);
        }
        let mut found = vec![false; names.len()];
        for (shard, indices) in self.shards.iter().zip(of_shard) {
            for some in indices.chunks(NAMES_AT_ONCE) {
                let asked: Vec<RrdName> = some.iter().map(|&index| names[index].clone()).collect();
                let look = move |view: &crate::shard::view::View<'_>| -> Vec<bool> {
                    asked.iter().map(|name| view.find(name).is_ok()).collect()
                };
                for (&index, is_there) in some.iter().zip(self.query(shard, None, look)?) {
                    found[index] = is_there;
                }
            }
        }
        Ok(found)
    }

    /// Puts RRDs in the trash. The answers say which were there and wanted gone.
    pub(super) fn discard_all(&self, names: Vec<(RrdName, IsWanted)>) -> Vec<Result<Option<Trashed>, StoreError>> {
        let at_home = names.into_iter().map(|(name, is_wanted)| (self.homes.of(name.as_bytes()), name, is_wanted));
        self.discard(at_home.collect())
    }

    /// The same for RRDs of certain shards.
    fn discard(&self, names: Vec<(usize, RrdName, IsWanted)>) -> Vec<Result<Option<Trashed>, StoreError>> {
        let now = (self.clock)();
        let now_ms = now.whole * 1000 + i64::from(now.micros / 1000);
        let (mut renames, mut trashed) = (Vec::new(), Vec::new());
        for (shard, from, is_wanted) in names {
            let entry = lock(&self.trash).assign(&from, now_ms);
            renames.push((shard, Rename { from, to: trash::hidden_name(&entry), is_wanted }));
            trashed.push((shard, entry));
        }
        let mut results = Vec::new();
        for (result, (shard, entry)) in self.run(renames).into_iter().zip(trashed) {
            results.push(match result {
                Ok(Renamed::Done) => {
                    lock(&self.trash).add(trash::hidden_name(&entry).as_bytes(), shard);
                    Ok(Some(entry))
                }
                Ok(Renamed::Unwanted) => Ok(None),
                Err(error) => Err(error),
            });
        }
        if self.trash_ms == 0 {
            for entry in results.iter().flatten().flatten() {
                if let Err(error) = self.erase(entry) {
                    tracing::warn!(%error, rrd = %entry.name, "cannot erase a removed RRD; that is tried again at the next start");
                }
            }
        }
        results
    }

    /// Gives RRDs other names; what has those names goes to the trash.
    pub(super) fn move_all(&self, moves: Vec<Move>) -> Vec<Result<Renamed, StoreError>> {
        let homes = moves.iter().map(|one| self.homes.of(one.from.as_bytes())).collect();
        self.move_from(homes, moves)
    }

    /// The same for RRDs that certain shards have.
    fn move_from(&self, homes: Vec<usize>, moves: Vec<Move>) -> Vec<Result<Renamed, StoreError>> {
        let mut displaced = Vec::new();
        for (one, &shard) in moves.iter().zip(&homes) {
            let to = one.to.as_bytes();
            let old = if RrdName::is_hidden(to) { shard } else { self.homes.of(to) };
            if old != shard {
                // From here on no RRD gets the name there, and one that is about to is there before it is displaced.
                self.homes.set(to, shard);
            }
            displaced.push((old, one.to.clone(), None));
        }
        for displaced in self.discard(displaced) {
            match displaced {
                Ok(_) | Err(StoreError::NoSuchRrd(_)) => {}
                // Then the name is not free, and the rename says so.
                Err(error) => tracing::debug!(%error, "an RRD is in the way"),
            }
        }
        let renames = moves.into_iter().map(|Move { from, to, is_wanted }| Rename { from, to, is_wanted });
        self.run(homes.into_iter().zip(renames).collect())
    }

    /// Has the shards rename RRDs, all at once.
    fn run(&self, renames: Vec<(usize, Rename)>) -> Vec<Result<Renamed, StoreError>> {
        let (sender, answers) = mpsc::channel();
        let mut results = vec![Err(StoreError::Stopping); renames.len()];
        for (index, (shard, rename)) in renames.into_iter().enumerate() {
            let sender = sender.clone();
            let reply = Box::new(move |result| {
                let _ = sender.send((index, result));
            });
            self.send(&self.shards[shard], Command::Rename(rename, reply));
        }
        drop(sender);
        for (index, result) in answers {
            results[index] = result;
        }
        results
    }

    /// Renames one RRD.
    pub(super) fn rename(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
        let _turn = lock(&self.renaming);
        self.ask(from, |view, name| view.find(name).map(|_| ()))?;
        if from == to {
            return Ok(());
        }
        let one = Move { from: from.clone(), to: to.clone(), is_wanted: None };
        self.move_all(vec![one]).pop().unwrap_or(Err(StoreError::Stopping)).map(|_| ())
    }

    /// Makes a copy of an RRD as it is now; what has the name goes to the trash.
    pub(super) fn copy(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
        let _turn = lock(&self.renaming);
        let rrd = self.ask(from, crate::shard::read::ReadTicket::take)?.complete()?;
        if from == to {
            return Ok(());
        }
        match self.discard_all(vec![(to.clone(), None)]).pop() {
            Some(Err(StoreError::NoSuchRrd(_)) | Ok(_)) | None => self.import(to, rrd, true),
            Some(Err(error)) => Err(error),
        }
    }

    /// Puts an RRD in the trash.
    pub(super) fn remove(&self, name: &RrdName) -> Result<(), StoreError> {
        let _turn = lock(&self.renaming);
        self.discard_all(vec![(name.clone(), None)]).pop().unwrap_or(Err(StoreError::Stopping)).map(|_| ())
    }

    /// Takes an RRD out of the trash, under a name that must be free.
    pub(super) fn restore(&self, trashed: &Trashed, to: &RrdName) -> Result<(), StoreError> {
        let _turn = lock(&self.renaming);
        if self.is_in_store(to) {
            return Err(StoreError::Exists(to.clone()));
        }
        self.take_from_trash(trashed, to)
    }

    /// The same while the turn is held already.
    pub(super) fn take_from_trash(&self, trashed: &Trashed, to: &RrdName) -> Result<(), StoreError> {
        let none = || StoreError::NoSuchRrd(trashed.name.clone());
        let (_, shard) = lock(&self.trash).find(trashed).ok_or_else(none)?;
        let one = Move { from: trash::hidden_name(trashed), to: to.clone(), is_wanted: None };
        self.move_from(vec![shard], vec![one]).pop().unwrap_or(Err(StoreError::Stopping))?;
        lock(&self.trash).remove(trashed);
        Ok(())
    }

    /// Deletes an RRD of the trash for good.
    pub(super) fn erase(&self, trashed: &Trashed) -> Result<(), StoreError> {
        let Some((_, shard)) = lock(&self.trash).find(trashed) else { return Ok(()) };
        let name = trash::hidden_name(trashed);
        self.wait_for(&self.shards[shard], |reply| Command::Delete(name, reply))?;
        lock(&self.trash).remove(trashed);
        Ok(())
    }
}
