//! Comparing the replicas of one partition.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use store::replication::{BegunCheck, NO_RRD, RANGE_IDS};

use super::findings::NAMES_MAX;
use super::spans::Spans;
use super::{
    CheckAnswer, CheckFound, CheckRequest, Compared, Finding, PlacedReplica, PlacedState, Placement,
    ReplicaFinding, Replicas,
};

/// How long a partition may be without a leader that takes a check.
const LEADER_PATIENCE: Duration = Duration::from_secs(30);
/// How long a replica may take to come to a check, without having read on meanwhile, and to hash a range.
const STILL_PATIENCE: Duration = Duration::from_secs(60);
/// How long replicas are waited for that are being copied.
const JOIN_PATIENCE: Duration = Duration::from_secs(60);
/// A replica that so often in a row did not hash what it was asked for is left out: some more seconds than it takes to see that a node is lost.
const MISSES_MAX: u32 = 20;
/// The pauses between two questions, from the first to the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];
/// The pause after a replica refused.
const REFUSED: Duration = Duration::from_millis(300);

/// What is known of a replica.
#[derive(Default)]
struct Seen {
    /// The ids of which its hashes were compared.
    compared: Spans,
    /// RRDs of which it has another one.
    differing: u64,
    /// The store that has them.
    copy: Option<u64>,
    /// How often in a row it was not compared.
    misses: u32,
    /// Why, the last time.
    trouble: Option<String>,
}

struct Comparing<'r> {
    replicas: &'r dyn Replicas,
    /// Is told how many RRDs more were compared, and says whether to go on.
    step: &'r mut dyn FnMut(u64) -> bool,
    /// The number of the last check.
    number: u64,
    seen: BTreeMap<String, Seen>,
    finding: Finding,
    /// The ids of which any two replicas were compared.
    covered: Spans,
    /// The ids that there were when it began.
    ids: u32,
}

/// Compares the replicas of a partition. The checks get the numbers after `number`, which no others have. With `puts_aside`, those that
/// differ are made again. `step` is told how many RRDs more were compared, and says whether to go on.
pub fn compare(
    replicas: &dyn Replicas,
    partition: u32,
    number: u64,
    puts_aside: bool,
    step: &mut dyn FnMut(u64) -> bool,
) -> Finding {
    let finding = Finding { partition, ..Finding::default() };
    let mut comparing = Comparing {
        replicas,
        step,
        number,
        seen: BTreeMap::new(),
        finding,
        covered: Spans::default(),
        ids: u32::MAX,
    };
    if let Err(why) = comparing.compare_all() {
        comparing.finding.failure = Some(why);
    }
    comparing.conclude(puts_aside);
    comparing.finding
}

impl Comparing<'_> {
    fn placement(&self) -> Placement {
        self.replicas.placement(self.finding.partition)
    }

    fn go_on(&mut self, rrds: u64) -> Result<(), String> {
        if (self.step)(rrds) { Ok(()) } else { Err("it was ended".into()) }
    }

    /// Compares range after range, until all were compared of all replicas that are there.
    fn compare_all(&mut self) -> Result<(), String> {
        let mut waits_until = Instant::now() + JOIN_PATIENCE;
        loop {
            let placement = self.placement();
            let all = 0..self.ids;
            for placed in &placement.replicas {
                self.seen.entry(placed.node.name.clone()).or_default();
            }
            let gap = |placed: &&PlacedReplica| {
                let seen = self.seen.get(&placed.node.name).filter(|seen| seen.misses < MISSES_MAX)?;
                Some(seen.compared.gap(all.clone())).filter(|gap| !gap.is_empty())
            };
            let of_state =
                |state: PlacedState| placement.replicas.iter().filter(move |placed| placed.state == state);
            let first =
                of_state(PlacedState::Ready).filter_map(|placed| gap(&placed)).min_by_key(|gap| gap.start);
            let before = self.finding.rrds;
            match first {
                Some(gap) => {
                    self.compare_range(gap)?;
                    waits_until = Instant::now() + JOIN_PATIENCE;
                }
                None => {
                    let is_awaited = of_state(PlacedState::CatchingUp).any(|placed| gap(&placed).is_some());
                    if !is_awaited || Instant::now() > waits_until {
                        return Ok(());
                    }
                    std::thread::sleep(REFUSED);
                }
            }
            self.go_on(self.finding.rrds - before)?;
        }
    }

    /// Compares the first ids of a range, of all replicas that are ready.
    fn compare_range(&mut self, gap: Range<u32>) -> Result<(), String> {
        let mut ids = gap.start..gap.end.min(gap.start.saturating_add(RANGE_IDS));
        let new = self.covered.gap(ids.clone());
        if new.start > ids.start {
            // What was compared of others already ends where they have it.
            ids.end = ids.end.min(new.start);
        }
        let (placement, begun) = self.begin(ids.clone())?;
        self.ids = self.ids.min(begun.next_id);
        ids.end = ids.start + begun.count;
        let found = self.gather(&placement, &begun)?;
        if found.len() < 2 {
            // There is nothing to compare with now.
            for (placed, _) in &found {
                self.missed(placed, "no other node has it ready".into());
            }
            return Ok(());
        }
        let leader = placement.leader.as_deref().unwrap_or_default();
        self.judge(&ids, &found, leader, &begun);
        for (placed, _) in &found {
            if let Some(seen) = self.seen.get_mut(&placed.node.name) {
                seen.compared.add(ids.clone());
                (seen.misses, seen.trouble) = (0, None);
            }
        }
        if new.start == ids.start {
            let of_leader = found.iter().find(|(placed, _)| placed.node.name == leader);
            let (_, first) = of_leader.unwrap_or(&found[0]);
            self.finding.rrds += first.hashes.iter().filter(|hash| **hash != NO_RRD).count() as u64;
            self.finding.rows += first.rows;
            self.covered.add(ids);
        }
        Ok(())
    }

    /// What the replicas that are ready find at the last check.
    fn gather<'p>(
        &mut self,
        placement: &'p Placement,
        begun: &BegunCheck,
    ) -> Result<Vec<(&'p PlacedReplica, CheckFound)>, String> {
        let mut found = Vec::new();
        let ready = placement.replicas.iter().filter(|placed| placed.state == PlacedState::Ready);
        for placed in ready {
            if self.seen.get(&placed.node.name).is_some_and(|seen| seen.misses >= MISSES_MAX) {
                continue;
            }
            match self.read(placed, begun) {
                Ok(hashes) => {
                    let seen = self.seen.entry(placed.node.name.clone()).or_default();
                    if seen.copy.replace(hashes.copy).is_some_and(|copy| copy != hashes.copy) {
                        // It was opened again, or is another one by now: what was found says nothing of it.
                        *seen = Seen { copy: Some(hashes.copy), ..Seen::default() };
                    }
                    found.push((placed, hashes));
                }
                Err(why) => self.missed(placed, why),
            }
        }
        self.go_on(0)?;
        Ok(found)
    }

    /// Notes that a replica was not compared, and waits a little.
    fn missed(&mut self, placed: &PlacedReplica, why: String) {
        let seen = self.seen.entry(placed.node.name.clone()).or_default();
        seen.misses += 1;
        seen.trouble = Some(why);
        std::thread::sleep(REFUSED);
    }

    /// Has the leader write a check.
    fn begin(&mut self, ids: Range<u32>) -> Result<(Placement, BegunCheck), String> {
        let until = Instant::now() + LEADER_PATIENCE;
        loop {
            let placement = self.placement();
            let leader = placement.leader.as_ref();
            let leader = placement.replicas.iter().find(|placed| Some(&placed.node.name) == leader);
            // Another number each time: of one whose answer was lost, there may be a record.
            self.number = self.number.wrapping_add(1);
            let request = CheckRequest::Begin { number: self.number, ids: ids.clone() };
            let why = match leader.map(|leader| self.replicas.ask(leader, self.finding.partition, request)) {
                Some(Ok(CheckAnswer::Begun(begun))) => return Ok((placement, begun)),
                Some(Ok(other)) => format!("its leader answers something else than it was asked: {other:?}"),
                Some(Err(why)) => why,
                None => "it has no leader".into(),
            };
            if Instant::now() > until {
                return Err(why);
            }
            self.go_on(0)?;
            std::thread::sleep(REFUSED);
        }
    }

    /// Waits for what a replica finds at the last check.
    fn read(&mut self, placed: &PlacedReplica, begun: &BegunCheck) -> Result<CheckFound, String> {
        let (mut until, mut pause, mut last) = (Instant::now() + STILL_PATIENCE, PAUSES[0], None);
        loop {
            match self.ask_found(placed, begun, false)? {
                CheckAnswer::Found(found) => {
                    let passing = found.unreadable.iter().find(|unreadable| !unreadable.is_damage);
                    return match passing {
                        Some(unreadable) => Err(format!("an RRD of it cannot be read: {}", unreadable.why)),
                        None if found.hashes.len() == begun.count as usize => Ok(found),
                        None => Err("it has hashed other RRDs than it was to".into()),
                    };
                }
                CheckAnswer::Waits(end) => {
                    if last.replace(end) != Some(end) {
                        until = Instant::now() + STILL_PATIENCE;
                    }
                }
                CheckAnswer::Lacks => return Err("it was busy, or copied from another node".into()),
                other => return Err(format!("it answers something else than it was asked: {other:?}")),
            }
            if Instant::now() > until {
                return Err("it does not come to the check".into());
            }
            self.go_on(0)?;
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSES[1]);
        }
    }

    fn ask_found(
        &self,
        placed: &PlacedReplica,
        begun: &BegunCheck,
        names: bool,
    ) -> Result<CheckAnswer, String> {
        let request = CheckRequest::Read { number: self.number, at: begun.end, names };
        self.replicas.ask(placed, self.finding.partition, request)
    }

    /// Says which replicas have another RRD than most.
    fn judge(
        &mut self,
        ids: &Range<u32>,
        found: &[(&PlacedReplica, CheckFound)],
        leader: &str,
        begun: &BegunCheck,
    ) {
        let mut names: Option<Vec<Vec<u8>>> = None;
        for (index, id) in ids.clone().enumerate() {
            let hash = |found: &CheckFound| {
                let is_damaged = found.unreadable.iter().any(|unreadable| unreadable.id == id);
                (!is_damaged).then(|| found.hashes[index])
            };
            let hashes: Vec<Option<u64>> = found.iter().map(|(_, found)| hash(found)).collect();
            if hashes.iter().all(|hash| hash.is_some() && *hash == hashes[0]) {
                continue;
            }
            let right = right(&hashes, found.iter().position(|(placed, _)| placed.node.name == leader));
            let wrong = hashes.iter().zip(found).filter(|(hash, _)| hash.is_none() || **hash != right);
            let wrong: Vec<String> = wrong.map(|(_, (placed, _))| placed.node.name.clone()).collect();
            for node in &wrong {
                if let Some(seen) = self.seen.get_mut(node) {
                    seen.differing += u64::from(seen.compared.gap(id..id + 1) == (id..id + 1));
                }
            }
            if self.finding.differing.len() < NAMES_MAX {
                let names = names.get_or_insert_with(|| self.names(found, begun));
                let name = names.get(index).filter(|name| !name.is_empty());
                let name = name.cloned().unwrap_or_else(|| format!("number {id}").into_bytes());
                self.finding.differing.insert(name, wrong);
            }
        }
    }

    /// The names of the RRDs of the last check.
    fn names(&self, found: &[(&PlacedReplica, CheckFound)], begun: &BegunCheck) -> Vec<Vec<u8>> {
        let mut names: Vec<Vec<u8>> = Vec::new();
        for (placed, _) in found {
            if let Ok(CheckAnswer::Found(found)) = self.ask_found(placed, begun, true) {
                names.resize(names.len().max(found.names.len()), Vec::new());
                // Where one has no RRD, another one may.
                names.iter_mut().zip(found.names).filter(|(name, _)| name.is_empty()).for_each(
                    |(name, other)| {
                        *name = other;
                    },
                );
            }
        }
        names
    }

    /// Says what became of each replica, and has those made again that differ.
    fn conclude(&mut self, puts_aside: bool) {
        let (placement, all) = (self.placement(), 0..self.ids);
        let is_compared = |seen: &Seen| self.ids < u32::MAX && seen.compared.gap(all.clone()).is_empty();
        let has_right = self.seen.values().any(|seen| seen.differing == 0 && is_compared(seen));
        let mut replicas = Vec::new();
        for (node, seen) in &self.seen {
            let placed = placement.replicas.iter().find(|placed| placed.node.name == *node);
            let verdict = match placed {
                _ if seen.differing > 0 => Compared::Differs {
                    rrds: seen.differing,
                    put_aside: match (puts_aside, has_right, placed, seen.copy) {
                        (false, ..) => Err("it was not asked for".into()),
                        (true, false, ..) => Err("no replica is the right one for all RRDs".into()),
                        (true, true, Some(placed), Some(copy)) => {
                            self.put_aside(placed, copy, seen.differing)
                        }
                        (true, true, ..) => Err("the node has given it up".into()),
                    },
                },
                // It had to go before it was compared.
                None => continue,
                Some(placed) if placed.state == PlacedState::Gone => {
                    Compared::NotCompared("the node is silent".into())
                }
                Some(_) if is_compared(seen) => Compared::Equal,
                Some(_) => {
                    let catching_up = || "it is copied from another node, or reads what it lacks".to_owned();
                    Compared::NotCompared(seen.trouble.clone().unwrap_or_else(catching_up))
                }
            };
            replicas.push(ReplicaFinding { node: node.clone(), verdict });
        }
        if replicas.len() < 2 && self.finding.failure.is_none() {
            self.finding.failure = Some("it has no other replica to compare with".into());
        }
        self.finding.replicas = replicas;
    }

    fn put_aside(&self, placed: &PlacedReplica, copy: u64, rrds: u64) -> Result<(), String> {
        let why = format!(
            "{rrds} RRDs of this copy differ from those of other nodes, as a comparison of all rows has found"
        );
        match self.replicas.ask(placed, self.finding.partition, CheckRequest::PutAside { copy, why })? {
            CheckAnswer::PutAside => Ok(()),
            other => Err(format!("it answers something else than it was asked: {other:?}")),
        }
    }
}

/// The hash that most have; the leader's, if as many have that as any other. `None`: an RRD that is damaged everywhere.
fn right(hashes: &[Option<u64>], leader: Option<usize>) -> Option<u64> {
    let count = |hash: &u64| hashes.iter().filter(|other| **other == Some(*hash)).count();
    let is_leaders = |hash: &u64| leader.is_some_and(|leader| hashes[leader] == Some(*hash));
    let all = hashes.iter().flatten();
    all.copied().max_by_key(|hash| (count(hash), is_leaders(hash), *hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_are_right_and_else_the_leader() {
        let check = |hashes: &[u64], leader: usize, want: u64| {
            let hashes: Vec<_> = hashes.iter().map(|&hash| (hash != 99).then_some(hash)).collect();
            assert_eq!(right(&hashes, Some(leader)), (want != 99).then_some(want), "{hashes:?}");
        };
        check(&[1, 2], 0, 1);
        check(&[1, 2], 1, 2);
        check(&[1, 2, 2], 0, 2);
        check(&[1, 2, 3], 1, 2);
        // What cannot be read is never right.
        check(&[99, 2], 0, 2);
        check(&[99, 99], 0, 99);
        check(&[99, 99, 5], 1, 5);
        assert_eq!(right(&[Some(3), Some(4)], None), Some(4));
    }
}
