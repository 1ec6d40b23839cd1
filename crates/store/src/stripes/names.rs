//! Renames, copies and removals of RRDs in the shards, without regard to any tree.
//!
//! A rename is one record in the log of the RRD's shard: the RRD keeps its rows and its shard ([`super::homes`]). What stands in the way is put in
//! the trash first. Only one of these operations runs at a time; updates go on meanwhile.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, mpsc};

use rrd::definition::Definition;
use xxhash_rust::xxh3::xxh3_64;

use crate::catalogue::RrdId;
use crate::engine::{StoreError, Trashed};
use crate::lock::lock;
use crate::name::RrdName;
use crate::placeholder::RrdNumber;
use crate::shard::Shard;
use crate::shard::message::{Command, RenameCommand, Renamed};
use crate::shard::read::ReadTicket;
use crate::shard::view::View;
use crate::stripes::shards::Core;
use crate::stripes::trash;

/// Names asked for in one query: so few that updates do not wait for them.
const NAMES_AT_ONCE: usize = 1024;

/// Whether a change is still wanted; called by the shard when everything sent before is complete.
pub(super) type IsWanted = Option<Box<dyn FnOnce() -> bool + Send>>;

/// Purpose of the hidden name of an RRD that is about to get to its name.
const ARRIVING: &str = "arriving";

/// An RRD that waits for its name.
pub(super) struct Arrival {
    pub(super) name: RrdName,
    pub(super) shard: usize,
    /// The RRD's number, if it is known.
    pub(super) number: Option<RrdNumber>,
    /// The number of the RRD that it is a copy of.
    pub(super) copy_of: Option<RrdNumber>,
}

/// From where an RRD gets to a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// From another name, which it loses.
    Moved(RrdName),
    /// From another name, which it keeps.
    Copied(RrdName),
    /// From the trash.
    Trash(Trashed),
}

/// One RRD of a shard that gets another name.
struct Move {
    shard: usize,
    from: RrdName,
    to: RrdName,
}

/// The hash of a name by which the scan remembers it.
pub(super) fn name_hash(name: &[u8]) -> u64 {
    xxh3_64(name)
}

impl Core {
    /// Finds out the names that are not in the shard that their hash says, and what is in the trash. Returns the RRDs that were about
    /// to get to a name when the store was last stopped.
    pub(super) fn learn_names(&self) -> Result<Vec<Arrival>, StoreError> {
        let mut trash = lock(&self.trash);
        let mut arrivals = Vec::new();
        for (shard, held) in self.shards.iter().enumerate() {
            for hidden in self.query(held, None, |view| view.hidden_names())? {
                match RrdName::revealed(&hidden) {
                    Some((ARRIVING, name)) => {
                        arrivals.push(Arrival { name, shard, number: None, copy_of: None })
                    }
                    _ if trash.add(&hidden, shard) => {}
                    _ => {
                        tracing::warn!(name = %hidden.escape_ascii(), "an RRD has a name of an unknown kind; a newer release may know it")
                    }
                }
            }
        }
        drop(trash);
        if self.shards.len() == 1 {
            return Ok(arrivals);
        }
        let mut twice = Vec::new();
        for (shard, held) in self.shards.iter().enumerate() {
            let hashed = self.homes.by_hash();
            for name in self.names_where(held, move |name| hashed.of(name) != shard)? {
                self.homes.set(name.as_bytes(), shard);
                twice.push((hashed.of(name.as_bytes()), name, None));
            }
        }
        // The loss of power may have undone, in one of two shards, that an RRD made room for the one that is renamed.
        for result in self.discard(twice) {
            match result {
                Ok(_) | Err(StoreError::NoSuchRrd(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(arrivals)
    }

    /// Looks for a name in all shards, in a store that does not know what its primary has renamed.
    pub(super) fn find_home(&self, name: &RrdName) -> Result<bool, StoreError> {
        for (index, shard) in self.shards.iter().enumerate() {
            let asked = name.clone();
            let find = move |view: &View<'_>| view.state.catalogue.find(asked.as_bytes()).is_some();
            if self.query(shard, None, find)? {
                self.homes.set(name.as_bytes(), index);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The names of a shard's RRDs for which a condition holds.
    fn names_where(
        &self,
        shard: &Shard,
        condition: impl Fn(&[u8]) -> bool + Send + 'static,
    ) -> Result<Vec<RrdName>, StoreError> {
        let names = self.query(shard, None, move |view| view.names_where(condition))?;
        Ok(names.iter().filter_map(|name| RrdName::new(name).ok()).collect())
    }

    /// Names in or below directories.
    pub(super) fn names_below(&self, directories: HashSet<Vec<u8>>) -> Result<Vec<RrdName>, StoreError> {
        let directories = Arc::new(directories);
        let mut names = Vec::new();
        for shard in &self.shards {
            let directories = Arc::clone(&directories);
            let is_below = move |name: &[u8]| {
                memchr::memchr_iter(b'/', name).any(|slash| directories.contains(&name[..slash]))
            };
            names.extend(self.names_where(shard, is_below)?);
        }
        Ok(names)
    }

    /// Names whose hashes ([`name_hash`]) are not among these, which are sorted.
    pub(super) fn names_but(&self, hashes: Vec<u64>) -> Result<Vec<RrdName>, StoreError> {
        let hashes = Arc::new(hashes);
        let mut names = Vec::new();
        for shard in &self.shards {
            let hashes = Arc::clone(&hashes);
            names.extend(
                self.names_where(shard, move |name| hashes.binary_search(&name_hash(name)).is_err())?,
            );
        }
        Ok(names)
    }

    /// RRDs, without those in the trash.
    pub(super) fn rrd_count(&self) -> Result<u64, StoreError> {
        let counts =
            self.shards.iter().map(|shard| self.query(shard, None, |view| view.state.catalogue.count()));
        counts.sum()
    }

    /// The id that the next RRD of each shard gets.
    pub(super) fn next_ids(&self) -> Result<Vec<RrdId>, StoreError> {
        self.shards
            .iter()
            .map(|shard| self.query(shard, None, |view| view.state.catalogue.next_id()))
            .collect()
    }

    /// What was removed last of a name.
    pub(super) fn last_trashed(&self, name: &RrdName) -> Option<Trashed> {
        lock(&self.trash).last(name)
    }

    /// Takes RRDs to where they wait until they get a name. With the first failure, after which the others go on.
    pub(super) fn depart(&self, sources: Vec<(Source, RrdName)>) -> (Vec<Arrival>, Result<(), StoreError>) {
        let (mut moves, mut moved, mut done, mut outcome) = (Vec::new(), Vec::new(), Vec::new(), Ok(()));
        // Copies first: what is copied may be moved as well.
        for (source, name) in sources {
            let (shard, from) = match &source {
                Source::Copied(from) => {
                    match self.copy_to_wait(from, &name) {
                        Ok(arrival) => done.push(arrival),
                        Err(error) => outcome = outcome.and(Err(error)),
                    }
                    continue;
                }
                Source::Moved(from) => (self.homes.of(from.as_bytes()), from.clone()),
                Source::Trash(trashed) => match lock(&self.trash).shard_of(trashed) {
                    Some(shard) => (shard, trash::hidden_name(trashed)),
                    None => continue,
                },
            };
            moves.push(Move { shard, from, to: name.hidden(ARRIVING) });
            moved.push((Arrival { name, shard, number: None, copy_of: None }, source));
        }
        for (result, (arrival, source)) in self.move_all(moves).into_iter().zip(moved) {
            match result {
                Ok(_) => {
                    if let Source::Trash(trashed) = &source {
                        lock(&self.trash).remove(trashed);
                    }
                    done.push(arrival);
                }
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        for arrival in &mut done {
            let hidden = arrival.name.hidden(ARRIVING);
            let find = move |view: &View<'_>| view.state.catalogue.find(hidden.as_bytes());
            let id = self.query(&self.shards[arrival.shard], None, find).unwrap_or(None);
            arrival.number = id.map(|id| RrdNumber { shard: arrival.shard as u32, id });
        }
        (done, outcome)
    }

    fn copy_to_wait(&self, from: &RrdName, name: &RrdName) -> Result<Arrival, StoreError> {
        let copy_of = Some(self.number(from)?);
        let rrd = self.ask(from, ReadTicket::take)?.complete()?;
        let shard = self.homes.of(name.as_bytes());
        let hidden = name.hidden(ARRIVING);
        self.wait_for(&self.shards[shard], |reply| Command::Import(hidden, Box::new(rrd), false, reply))?;
        Ok(Arrival { name: name.clone(), shard, number: None, copy_of })
    }

    /// Gives RRDs that wait for it their names. One that does not get its name waits for the next start.
    ///
    /// # Errors
    /// The first failure, after which the others go on.
    pub(super) fn arrive(&self, arrivals: Vec<Arrival>) -> Result<(), StoreError> {
        let one = |Arrival { name, shard, .. }| Move { shard, from: name.hidden(ARRIVING), to: name };
        let results = self.move_all(arrivals.into_iter().map(one).collect());
        results.into_iter().find_map(Result::err).map_or(Ok(()), Err)
    }

    /// Deletes RRDs that wait for names that they are not to get.
    pub(super) fn abandon(&self, arrivals: Vec<Arrival>) {
        for Arrival { name, shard, .. } in arrivals {
            let hidden = name.hidden(ARRIVING);
            if let Err(error) = self.wait_for(&self.shards[shard], |reply| Command::Delete(hidden, reply)) {
                tracing::warn!(%error, rrd = %name, "cannot delete a superfluous copy; it gets to its name at the next start");
            }
        }
    }

    /// The numbers of the RRDs that have these names.
    pub(super) fn numbers(&self, names: &[RrdName]) -> Result<Vec<Option<RrdNumber>>, StoreError> {
        let mut of_shard: Vec<Vec<usize>> = vec![Vec::new(); self.shards.len()];
        for (index, name) in names.iter().enumerate() {
            of_shard[self.homes.of(name.as_bytes())].push(index);
        }
        let mut found = vec![None; names.len()];
        for (number, indices) in (0..).zip(of_shard) {
            let shard = &self.shards[number as usize];
            for some in indices.chunks(NAMES_AT_ONCE) {
                let asked: Vec<RrdName> = some.iter().map(|&index| names[index].clone()).collect();
                let look = move |view: &View<'_>| -> Vec<Option<RrdId>> {
                    asked.iter().map(|name| view.state.catalogue.find(name.as_bytes())).collect()
                };
                for (&index, id) in some.iter().zip(self.query(shard, None, look)?) {
                    found[index] = id.map(|id| RrdNumber { shard: number, id });
                }
            }
        }
        Ok(found)
    }

    /// The number of the RRD of a name.
    pub(super) fn number(&self, name: &RrdName) -> Result<RrdNumber, StoreError> {
        let shard = self.homes.of(name.as_bytes());
        let (id, _) = self.ask(name, |view, name| view.find(name))?;
        Ok(RrdNumber { shard: shard as u32, id })
    }

    /// The names, perhaps hidden ones, of the RRDs that have these numbers.
    pub(super) fn names_of(
        &self,
        numbers: &[RrdNumber],
    ) -> Result<HashMap<RrdNumber, Box<[u8]>>, StoreError> {
        let mut names = HashMap::new();
        for (number, shard) in (0..).zip(&self.shards) {
            let ids: Vec<RrdId> =
                numbers.iter().filter(|one| one.shard == number).map(|one| one.id).collect();
            for some in ids.chunks(NAMES_AT_ONCE) {
                let asked = some.to_vec();
                let look = move |view: &View<'_>| -> Vec<(RrdId, Box<[u8]>)> {
                    let catalogue = &view.state.catalogue;
                    let is_there = |id: &RrdId| catalogue.get(*id).is_some();
                    asked.into_iter().filter(is_there).map(|id| (id, catalogue.name(id).into())).collect()
                };
                let found = self.query(shard, None, look)?;
                names.extend(found.into_iter().map(|(id, name)| (RrdNumber { shard: number, id }, name)));
            }
        }
        Ok(names)
    }

    /// What a hidden name in the trash stands for.
    pub(super) fn trashed(&self, hidden: &[u8]) -> Option<Trashed> {
        let trashed = trash::parse(hidden)?;
        lock(&self.trash).shard_of(&trashed).map(|_| trashed)
    }

    /// Puts RRDs in the trash. The answers say which were there and wanted gone.
    pub(super) fn discard_all(
        &self,
        names: Vec<(RrdName, IsWanted)>,
    ) -> Vec<Result<Option<Trashed>, StoreError>> {
        let at_home =
            names.into_iter().map(|(name, is_wanted)| (self.homes.of(name.as_bytes()), name, is_wanted));
        self.discard(at_home.collect())
    }

    /// The same for RRDs of certain shards.
    fn discard(&self, names: Vec<(usize, RrdName, IsWanted)>) -> Vec<Result<Option<Trashed>, StoreError>> {
        let now = (self.clock)();
        let now_ms = now.whole * 1000 + i64::from(now.micros / 1000);
        let (mut renames, mut trashed) = (Vec::new(), Vec::new());
        for (shard, from, is_wanted) in names {
            let entry = lock(&self.trash).assign(&from, now_ms);
            renames.push((shard, RenameCommand { from, to: trash::hidden_name(&entry), is_wanted }));
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
    fn move_all(&self, moves: Vec<Move>) -> Vec<Result<Renamed, StoreError>> {
        let mut displaced = Vec::new();
        for Move { shard, to, .. } in &moves {
            let old = if RrdName::is_hidden(to.as_bytes()) { *shard } else { self.homes.of(to.as_bytes()) };
            if old != *shard {
                // From here on no RRD gets the name there, and one that is about to is there before it is displaced.
                self.homes.set(to.as_bytes(), *shard);
            }
            displaced.push((old, to.clone(), None));
        }
        for displaced in self.discard(displaced) {
            match displaced {
                Ok(_) | Err(StoreError::NoSuchRrd(_)) => {}
                // Then the name is not free, and the rename says so.
                Err(error) => tracing::debug!(%error, "an RRD is in the way"),
            }
        }
        let rename = |Move { shard, from, to }| (shard, RenameCommand { from, to, is_wanted: None });
        self.run(moves.into_iter().map(rename).collect())
    }

    fn move_one(&self, shard: usize, from: RrdName, to: &RrdName) -> Result<(), StoreError> {
        let moved = self.move_all(vec![Move { shard, from, to: to.clone() }]).pop();
        moved.unwrap_or(Err(StoreError::Stopping)).map(|_| ())
    }

    /// Has the shards rename RRDs, all at once.
    fn run(&self, renames: Vec<(usize, RenameCommand)>) -> Vec<Result<Renamed, StoreError>> {
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
        self.move_one(self.homes.of(from.as_bytes()), from.clone(), to)
    }

    /// Makes a copy of an RRD as it is now; what has the name goes to the trash.
    pub(super) fn copy(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
        let _turn = lock(&self.renaming);
        let rrd = self.ask(from, ReadTicket::take)?.complete()?;
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
        let none = || StoreError::NoSuchRrd(trashed.name.clone());
        let shard = lock(&self.trash).shard_of(trashed).ok_or_else(none)?;
        self.move_one(shard, trash::hidden_name(trashed), to)?;
        lock(&self.trash).remove(trashed);
        Ok(())
    }

    /// Deletes what has been in the trash longest, until an RRD of this definition has room in memory.
    pub(super) fn make_room(&self, definition: &Definition) {
        while self.memory.needs_room(definition) {
            let Some(oldest) = lock(&self.trash).oldest() else { return };
            tracing::warn!(rrd = %oldest.name, "a removed RRD is deleted from the trash early: a new one needs its memory");
            if self.erase(&oldest).is_err() {
                return;
            }
        }
    }

    /// Deletes what has been in the trash for as long as anything is kept.
    pub(super) fn empty_old_trash(&self) {
        let now_ms = (self.clock)().whole * 1000;
        let old = lock(&self.trash).until(now_ms.saturating_sub(self.trash_ms));
        for trashed in old {
            match self.erase(&trashed) {
                Ok(()) => {}
                Err(StoreError::Stopping) => return,
                Err(error) => {
                    tracing::warn!(%error, rrd = %trashed.name, "cannot delete an RRD of the trash; that is tried again")
                }
            }
        }
    }

    /// Deletes an RRD of the trash for good.
    pub(super) fn erase(&self, trashed: &Trashed) -> Result<(), StoreError> {
        let Some(shard) = lock(&self.trash).shard_of(trashed) else { return Ok(()) };
        let name = trash::hidden_name(trashed);
        self.wait_for(&self.shards[shard], |reply| Command::Delete(name, reply))?;
        lock(&self.trash).remove(trashed);
        Ok(())
    }
}
