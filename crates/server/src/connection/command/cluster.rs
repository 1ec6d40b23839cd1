//! CLUSTER: for `roundel cluster`.

use cluster::node::Node;
use protocol::rrdcached::reply;

use crate::connection::refusal::Refusal;
use crate::metrics::DropReason;
use crate::service::Service;

/// Answers CLUSTER: a line for each node and each partition. With DRAIN, this node first begins to give its replicas to others; with FILL, it takes some
/// again.
///
/// # Errors
/// When this server is no node of a cluster, or the word is another one.
pub fn cluster(service: &Service, word: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
    let refused = |text: &str| Refusal::new(DropReason::Refused, text);
    let node = service.node.get();
    let node = node.ok_or_else(|| refused("This server is no node of a cluster: it has no [cluster]."))?;
    match word.to_ascii_uppercase().as_slice() {
        b"" => {}
        b"DRAIN" | b"FILL" => {
            let drains = word.eq_ignore_ascii_case(b"DRAIN");
            service.operated(if drains { "drain" } else { "fill" }, None);
            node.drain(drains);
        }
        _ => return Err(refused("CLUSTER knows DRAIN and FILL.")),
    }
    let lines = lines(node);
    reply::push_status(out, lines.len() as i64, b"Cluster");
    lines.iter().for_each(|line| out.extend_from_slice(format!("{line}\n").as_bytes()));
    Ok(())
}

/// `node NAME ZONE ADDRESS STATE leads COUNT of COUNT` for each node, `partition NUMBER epoch EPOCH leader NAME replicas NAME:STATE...` for each partition.
fn lines(node: &Node) -> Vec<String> {
    let members = node.members();
    let nodes = members.nodes().map(|known| {
        let beat = &known.beat;
        let state = match (known.is_alive(), beat.is_leaving, beat.is_draining) {
            (_, true, _) => "stopped",
            (false, ..) => "silent",
            (true, _, true) => "draining",
            (true, ..) => "alive",
        };
        let leads = beat.replicas.iter().filter(|replica| known.is_alive() && replica.leads).count();
        format!(
            "node {} {} {} {state} leads {leads} of {}",
            beat.name,
            beat.zone,
            beat.address,
            beat.replicas.len()
        )
    });
    let partitions = (0..node.partitions()).map(|partition| {
        let leader = members.leader(partition);
        let epoch = leader.and_then(|known| known.replica(partition)).map_or(0, |replica| replica.epoch);
        let leader = leader.map_or("-", |known| &known.beat.name);
        let replicas = members.nodes().filter_map(|known| {
            let replica = known.replica(partition)?;
            let state = match (known.is_alive(), replica.is_ready) {
                (false, _) => "gone",
                (true, false) => "catching-up",
                (true, true) => "ready",
            };
            Some(format!(" {}:{state}", known.beat.name))
        });
        format!(
            "partition {partition} epoch {epoch} leader {leader} replicas{}",
            replicas.collect::<String>()
        )
    });
    let lines: Vec<String> = nodes.chain(partitions).collect();
    lines
}
