//! Which nodes have which partitions, and which of them should lead.
//!
//! A plan is kept in the log, because it follows from the one before: when a node comes or goes, only its share moves. A plan is not binding. Who
//! leads is decided in each partition alone, and a replica that has to go stays until the others are ready.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// A node that may have replicas.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// What it fails together with: a room, a rack, a site.
    pub zone: String,
}

/// Nodes by partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Counts the plans: of several with the same number the first counts.
    pub version: u64,
    /// All nodes that have something, by name.
    pub members: Vec<Member>,
    /// For each partition the places of its replicas in `members`, that of the preferred leader first.
    pub replicas: Vec<Vec<u16>>,
}

impl Plan {
    /// The nodes of a partition, that of the preferred leader first.
    pub fn nodes(&self, partition: u32) -> impl Iterator<Item = &str> {
        let places = self.replicas.get(partition as usize).into_iter().flatten();
        places.filter_map(|place| self.members.get(usize::from(*place))).map(|member| &*member.name)
    }

    /// The plan of a cluster with so many partitions, a multiple of those of this one: each has the nodes of the one that it comes from:
    /// names are divided by the remainder of their hash ([`crate::key`]).
    pub fn divided(&self, partitions: u32) -> Plan {
        let count = (self.replicas.len() as u32).max(1);
        let of = |partition| self.replicas.get((partition % count) as usize).cloned().unwrap_or_default();
        Plan { replicas: (0..partitions).map(of).collect(), ..self.clone() }
    }

    /// The plan for these members, with `count` replicas of each of `partitions`, as many of them as possible as they are now. `None` when
    /// this plan is good.
    pub fn next(&self, members: &BTreeSet<Member>, partitions: u32, count: usize) -> Option<Plan> {
        if members.is_empty() {
            return None;
        }
        let mut draft = Draft::new(self, members, partitions, count);
        draft.fill();
        draft.even_out();
        draft.share_leads();
        let plan = draft.plan(self.version + 1);
        let is_same = (&plan.members, &plan.replicas) == (&self.members, &self.replicas);
        (!is_same).then_some(plan)
    }
}

/// A plan in the making. Nodes are known by their places among the members.
struct Draft<'m> {
    members: Vec<&'m Member>,
    replicas: Vec<Vec<usize>>,
    loads: Vec<usize>,
    /// Replicas of each partition.
    count: usize,
    /// There are enough zones for all replicas of a partition.
    has_zones: bool,
}

impl<'m> Draft<'m> {
    /// What can stay of a plan.
    fn new(before: &Plan, members: &'m BTreeSet<Member>, partitions: u32, count: usize) -> Draft<'m> {
        let members: Vec<&Member> = members.iter().collect();
        let places: BTreeMap<&str, usize> =
            members.iter().enumerate().map(|(place, member)| (&*member.name, place)).collect();
        let zones: BTreeSet<&str> = members.iter().map(|member| &*member.zone).collect();
        let count = count.min(members.len());
        let mut draft = Draft {
            loads: vec![0; members.len()],
            members,
            replicas: vec![Vec::new(); partitions as usize],
            count,
            has_zones: zones.len() >= count,
        };
        for partition in 0..partitions {
            for name in before.nodes(partition) {
                if let Some(place) = places.get(name)
                    && draft.may_have(partition as usize, *place)
                {
                    draft.give(partition as usize, *place);
                }
            }
        }
        draft
    }

    fn give(&mut self, partition: usize, place: usize) {
        self.replicas[partition].push(place);
        self.loads[place] += 1;
    }

    /// Whether a partition may have one more replica on this node.
    fn may_have(&self, partition: usize, place: usize) -> bool {
        let has = &self.replicas[partition];
        has.len() < self.count && self.fits(partition, place, None)
    }

    /// Whether a replica on this node would stand well beside the others, but for one that goes.
    fn fits(&self, partition: usize, place: usize, but: Option<usize>) -> bool {
        let others = || self.replicas[partition].iter().filter(|other| Some(**other) != but);
        let zone = |place: usize| &self.members[place].zone;
        others().all(|other| *other != place && (!self.has_zones || zone(*other) != zone(place)))
    }

    /// A number by which equally loaded nodes are tried in another order for each partition.
    fn draw(&self, partition: usize, place: usize) -> u64 {
        xxh3_64(format!("{partition} {}", self.members[place].name).as_bytes())
    }

    /// Gives each partition the replicas that it lacks, on the nodes that have least.
    fn fill(&mut self) {
        for partition in 0..self.replicas.len() {
            while self.replicas[partition].len() < self.count {
                let free = (0..self.members.len()).filter(|place| self.may_have(partition, *place));
                let least = free.min_by_key(|place| (self.loads[*place], self.draw(partition, *place)));
                let Some(place) = least else { break };
                self.give(partition, place);
            }
        }
    }

    /// Moves replicas from nodes that have more to nodes that have fewer, one at a time, until no move makes it more even.
    fn even_out(&mut self) {
        while let Some((partition, from, to)) = self.best_move() {
            let place = self.replicas[partition].iter().position(|place| *place == from);
            let Some(index) = place else { return };
            self.replicas[partition][index] = to;
            self.loads[from] -= 1;
            self.loads[to] += 1;
        }
    }

    fn best_move(&self) -> Option<(usize, usize, usize)> {
        let mut by_load: Vec<usize> = (0..self.members.len()).collect();
        by_load.sort_by_key(|place| self.loads[*place]);
        for from in by_load.iter().rev().copied() {
            for to in by_load.iter().copied().take_while(|to| self.loads[*to] + 1 < self.loads[from]) {
                let can_go = |partition: &usize| {
                    self.replicas[*partition].contains(&from) && self.fits(*partition, to, Some(from))
                };
                let movable = (0..self.replicas.len()).filter(can_go);
                if let Some(partition) = movable.min_by_key(|partition| self.draw(*partition, to)) {
                    return Some((partition, from, to));
                }
            }
        }
        None
    }

    /// Has each node lead about as many partitions, by the order of replicas alone.
    fn share_leads(&mut self) {
        let mut leads = vec![0usize; self.members.len()];
        self.replicas.iter().filter_map(|places| places.first()).for_each(|place| leads[*place] += 1);
        loop {
            let mut has_changed = false;
            for places in &mut self.replicas {
                let Some(first) = places.first().copied() else { continue };
                let least = (1..places.len()).min_by_key(|index| leads[places[*index]]);
                if let Some(index) = least.filter(|index| leads[places[*index]] + 1 < leads[first]) {
                    leads[first] -= 1;
                    leads[places[index]] += 1;
                    places.swap(0, index);
                    has_changed = true;
                }
            }
            if !has_changed {
                return;
            }
        }
    }

    fn plan(self, version: u64) -> Plan {
        let places = |places: Vec<usize>| places.into_iter().map(|place| place as u16).collect();
        Plan {
            version,
            members: self.members.into_iter().cloned().collect(),
            replicas: self.replicas.into_iter().map(places).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(zones: usize, per_zone: usize) -> BTreeSet<Member> {
        let member = |number: usize| Member {
            name: format!("node-{number:02}"),
            zone: format!("zone-{}", number % zones),
        };
        (0..zones * per_zone).map(member).collect()
    }

    /// Most and fewest of something by node.
    fn spread(plan: &Plan, of: impl Fn(&[u16]) -> Vec<u16>) -> (usize, usize) {
        let mut counts = vec![0; plan.members.len()];
        plan.replicas.iter().flat_map(|places| of(places)).for_each(|place| counts[usize::from(place)] += 1);
        (*counts.iter().max().unwrap(), *counts.iter().min().unwrap())
    }

    fn check(plan: &Plan, count: usize) {
        for (partition, places) in plan.replicas.iter().enumerate() {
            assert_eq!(places.len(), count, "partition {partition}");
            let zones: BTreeSet<_> =
                places.iter().map(|place| &plan.members[usize::from(*place)].zone).collect();
            assert_eq!(zones.len(), count, "partition {partition} has two replicas in a zone");
        }
        let (most, least) = spread(plan, <[u16]>::to_vec);
        assert!(most - least <= 1, "{least} to {most} replicas");
        let (most, least) = spread(plan, |places| places[..1].to_vec());
        assert!(most - least <= 2, "{least} to {most} leads");
    }

    fn moved(before: &Plan, after: &Plan) -> usize {
        let names = |plan: &Plan, partition| plan.nodes(partition).map(String::from).collect::<BTreeSet<_>>();
        (0..before.replicas.len() as u32)
            .map(|partition| names(after, partition).difference(&names(before, partition)).count())
            .sum()
    }

    #[test]
    fn all_nodes_have_as_much_and_zones_are_apart() {
        for (zones, per_zone, partitions) in [(2, 1, 8), (2, 16, 512), (3, 4, 128), (2, 3, 32)] {
            let plan = Plan::default().next(&members(zones, per_zone), partitions, 2).unwrap();
            check(&plan, 2);
            assert_eq!(plan.next(&members(zones, per_zone), partitions, 2), None);
        }
        // With fewer nodes or zones than replicas, there are as many as can be.
        let alone = Plan::default().next(&members(1, 1), 8, 2).unwrap();
        assert!(alone.replicas.iter().all(|places| *places == [0]));
        let one_zone = Plan::default().next(&members(1, 3), 9, 2).unwrap();
        assert!(one_zone.replicas.iter().all(|places| places.len() == 2 && places[0] != places[1]));
    }

    #[test]
    fn only_the_share_of_a_node_moves_when_it_goes_or_comes() {
        let all = members(2, 16);
        let before = Plan::default().next(&all, 512, 2).unwrap();
        let mut fewer = all.clone();
        fewer.pop_first();
        let without = before.next(&fewer, 512, 2).unwrap();
        // 1,024 replicas on 32 nodes.
        assert_eq!(moved(&before, &without), 32);
        let again = without.next(&all, 512, 2).unwrap();
        check(&again, 2);
        assert_eq!(moved(&without, &again), 32);
        assert_eq!(again.version, 3);
    }

    #[test]
    fn what_is_divided_stays_on_its_nodes() {
        let all = members(2, 3);
        let before = Plan::default().next(&all, 8, 2).unwrap();
        let after = before.divided(24);
        for partition in 0..24 {
            assert!(after.nodes(partition).eq(before.nodes(partition % 8)), "{partition}");
        }
        assert_eq!((after.version, after.replicas.len()), (before.version, 24));
    }

    #[test]
    fn a_plan_is_its_json() {
        let plan = Plan::default().next(&members(2, 2), 4, 2).unwrap();
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    }
}
