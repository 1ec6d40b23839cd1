//! A cluster larger than any machine for tests: 100 million data sources at 10 s on 32 nodes, by the placement that nodes use, and a simulation of what
//! waits where. The figures are in `docs/cluster.md`.
//!
//! `at_scale [SEED]`. The same seed prints the same. Devices have sizes like those of a network: most have some dozens of ports, a few have thousands.

mod flow;

use std::collections::BTreeSet;

use roundel_cluster::key;
use roundel_cluster::plan::{Member, Plan};
use testkit::random::Random;

use crate::flow::{Arrivals, Flow, Machines, STEPS_PER_POLL};

const DEVICES: usize = 100_000;
const PORTS_MAX: f64 = 5_000.0;
/// Data sources, each an RRD of its own: the most that a cluster has to do for a value.
const SOURCES: f64 = 100e6;
const NODES: usize = 32;
const ZONES: usize = 2;
const REPLICATION: usize = 2;
const PARTITIONS: u32 = 512;
/// A directory of 400 ports with 12 sources each.
const SLOT_SOURCES: f64 = 4_800.0;
/// Of a data source with 45,000 rows, packed 3:1: what a node that joins has to copy of it.
const ARCHIVE_BYTES: f64 = 120e3;

/// Data sources of each device: ports by a Pareto distribution between 16 and 5,000, with 83 on average, scaled to the whole.
fn sizes(random: &mut Random) -> Vec<f64> {
    const LEAST: f64 = 16.0;
    const SHAPE: f64 = 1.05;
    let bound = 1.0 - (LEAST / PORTS_MAX).powf(SHAPE);
    let mut port = || {
        let uniform = random.below(1 << 53) as f64 / (1u64 << 53) as f64;
        (LEAST / (1.0 - uniform * bound).powf(1.0 / SHAPE)).floor()
    };
    let ports: Vec<f64> = (0..DEVICES).map(|_| port()).collect();
    let scale = SOURCES / ports.iter().sum::<f64>();
    ports.into_iter().map(|ports| (ports * scale).round()).collect()
}

fn directory(device: usize) -> String {
    format!("site-{:03}/router-{device}", device % 500)
}

/// Data sources of each partition. A device of more than `most` sources has them in subdirectories, as by its slots.
fn weights(sizes: &[f64], partitions: u32, most: f64) -> Vec<f64> {
    let mut weights = vec![0.0; partitions as usize];
    for (device, size) in sizes.iter().enumerate() {
        let parts = (size / most).ceil().max(1.0) as usize;
        for part in 0..parts {
            let directory = match parts {
                1 => directory(device),
                _ => format!("{}/slot-{part}", directory(device)),
            };
            weights[key::of_directory(directory.as_bytes(), partitions) as usize] += size / parts as f64;
        }
    }
    weights
}

fn worst(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().copied().fold(0.0, f64::max) / mean
}

fn members(but: Option<usize>) -> BTreeSet<Member> {
    let member =
        |node: usize| Member { name: format!("node-{node:02}"), zone: format!("zone-{}", node % ZONES) };
    (0..NODES).filter(|node| Some(*node) != but).map(member).collect()
}

fn names(plan: &Plan, partition: usize) -> BTreeSet<String> {
    plan.nodes(partition as u32).map(str::to_owned).collect()
}

/// What each node has to do: with all replicas, or only with those that it leads.
fn loads(plan: &Plan, weights: &[f64], only_led: bool) -> Vec<f64> {
    let mut loads = vec![0.0; plan.members.len()];
    for (places, weight) in plan.replicas.iter().zip(weights) {
        let count = if only_led { 1 } else { places.len() };
        places[..count].iter().for_each(|place| loads[usize::from(*place)] += weight);
    }
    loads
}

/// Replicas that are elsewhere after a change of plan, and their data sources.
fn moved(before: &Plan, after: &Plan, weights: &[f64]) -> (usize, f64) {
    let new = |partition: usize| names(after, partition).difference(&names(before, partition)).count();
    let counts: Vec<usize> = (0..weights.len()).map(new).collect();
    (counts.iter().sum(), counts.iter().zip(weights).map(|(count, weight)| *count as f64 * weight).sum())
}

fn median(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    format!("{:.2} [{:.2}..{:.2}]", values[values.len() / 2], values[0], values[values.len() - 1])
}

fn print_placement(seed: u64) {
    println!(
        "| P | worst partition | with {SLOT_SOURCES} sources in a directory at most | worst node | what it leads |"
    );
    println!("|---|---|---|---|---|");
    for partitions in [64, 128, 256, 512, 1024] {
        let plan = Plan::default().next(&members(None), partitions, REPLICATION).expect("a first plan");
        let (mut of_partition, mut split) = (Vec::new(), Vec::new());
        let (mut of_node, mut of_leader) = (Vec::new(), Vec::new());
        for seed in seed..seed + 11 {
            let sizes = sizes(&mut Random::new(seed));
            split.push(worst(&weights(&sizes, partitions, SLOT_SOURCES)));
            let weights = weights(&sizes, partitions, f64::INFINITY);
            of_partition.push(worst(&weights));
            of_node.push(worst(&loads(&plan, &weights, false)));
            of_leader.push(worst(&loads(&plan, &weights, true)));
        }
        let columns = [of_partition, split, of_node, of_leader].map(median);
        println!("| {partitions} | {} |", columns.join(" | "));
    }
}

fn print_moves(weights: &[f64]) {
    let plan = Plan::default().next(&members(None), PARTITIONS, REPLICATION).expect("a first plan");
    let per_node = loads(&plan, weights, false);
    let (mut least, mut most) = (f64::MAX, 0.0f64);
    for gone in 0..NODES {
        let fewer = plan.next(&members(Some(gone)), PARTITIONS, REPLICATION).expect("another plan");
        let (count, sources) = moved(&plan, &fewer, weights);
        let again = fewer.next(&members(None), PARTITIONS, REPLICATION).expect("a third plan");
        let (count_back, back) = moved(&fewer, &again, weights);
        least = least.min(sources / per_node[gone]);
        most = most.max(sources / per_node[gone]);
        if gone == 0 {
            let gains = loads(&fewer, weights, false);
            let of = |plan: &Plan, name: &str| plan.members.iter().position(|member| member.name == name);
            let gain = |place: usize| {
                gains[place] - per_node[of(&plan, &fewer.members[place].name).expect("it was there")]
            };
            let most = (0..gains.len()).map(gain).fold(0.0, f64::max);
            let bytes = |sources: f64| sources * ARCHIVE_BYTES / 1e9;
            println!("node 0 has {:.2} M sources ({:.0} GB)", per_node[0] / 1e6, bytes(per_node[0]));
            println!(
                "it leaves: {count} replicas move, {:.2} M sources, {:.0} GB",
                sources / 1e6,
                bytes(sources)
            );
            println!("the node that gets most of it copies {:.0} GB", bytes(most));
            println!(
                "it comes: {count_back} replicas move, {:.2} M sources, {:.0} GB",
                back / 1e6,
                bytes(back)
            );
            println!("leads then, worst node: {:.2}", worst(&loads(&fewer, weights, true)));
        }
    }
    println!("each node in turn: what moves is {least:.3} to {most:.3} of what it had");
}

/// Who leads, who follows, and how much comes when.
fn flow(sizes: &[f64], random: &mut Random, machines: Machines, within: f64) -> Flow {
    let plan = Plan::default().next(&members(None), PARTITIONS, REPLICATION).expect("a first plan");
    let places: Vec<[usize; 2]> =
        plan.replicas.iter().map(|places| [usize::from(places[0]), usize::from(places[1])]).collect();
    let mut arrivals = Arrivals::new(PARTITIONS as usize);
    let steps = (within * STEPS_PER_POLL as f64).max(1.0) as u64;
    for (device, size) in sizes.iter().enumerate() {
        let partition = key::of_directory(directory(device).as_bytes(), PARTITIONS) as usize;
        arrivals.add(partition, random.below(steps) as usize, *size as f32);
    }
    Flow::new(places, NODES, arrivals, machines)
}

fn print_lags(seed: u64, sizes: &[f64]) {
    println!(
        "| cores: node, all brokers | polls within | answered after at most | lag at most | CPU of nodes, of brokers | appends a second |"
    );
    println!("|---|---|---|---|---|---|");
    for (node_cores, broker_cores) in [(2.0, 12.0), (4.0, 12.0), (4.0, 24.0), (8.0, 24.0), (8.0, 48.0)] {
        for (what, within) in [("10 s", 1.0), ("3 s", 0.3), ("1 s", 0.1), ("5 ms", 0.0)] {
            let machines = Machines { node_cores, broker_cores };
            let seen = flow(sizes, &mut Random::new(seed), machines, within).run(None);
            println!(
                "| {node_cores}, {broker_cores} | {what} | {:.2} s | {:.2} s | {:.0} %, {:.0} % | {:.0} |",
                seen.answer,
                seen.lag,
                seen.node_share * 100.0,
                seen.broker_share * 100.0,
                seen.appends
            );
        }
    }
}

fn print_loss(seed: u64, sizes: &[f64]) {
    let machines = Machines { node_cores: 4.0, broker_cores: 24.0 };
    println!(
        "| a node is lost, polls within | lag at most, its partitions | the others | under 2 s again |\n|---|---|---|---|"
    );
    for (what, within) in [("10 s", 1.0), ("1 s", 0.1)] {
        let seen = flow(sizes, &mut Random::new(seed), machines, within).run(Some(0));
        let (lost, others) = (seen.lag_of_lost, seen.lag);
        println!("| {what} | {lost:.2} s | {others:.2} s | {:.2} s after the loss |", seen.recovered);
    }
}

fn main() {
    let seed = std::env::args().nth(1).map_or(1, |seed| seed.parse().expect("a seed"));
    let sizes = sizes(&mut Random::new(seed));
    let largest = sizes.iter().copied().fold(0.0, f64::max);
    println!(
        "{DEVICES} devices, {:.0} sources, the largest device has {largest:.0}\n",
        sizes.iter().sum::<f64>()
    );
    print_placement(seed);
    println!();
    print_moves(&weights(&sizes, PARTITIONS, f64::INFINITY));
    println!();
    print_lags(seed, &sizes);
    println!();
    print_loss(seed, &sizes);
}
