//! CLUSTER: for `roundel cluster`.

use std::fmt::Write;

use cluster::check::{Compared, Finding, ReplicaFinding, VerifyOptions, VerifyReport};
use cluster::node::Node;
use protocol::rrdcached::reply;
use protocol::rrdcached::words::Words;

use crate::cluster::ClusterView;
use crate::connection::refusal::Refusal;
use crate::metrics::DropReason;
use crate::service::Service;

/// Answers CLUSTER: a line for each node and each partition. With DRAIN, this node first begins to give its replicas to others; with FILL, it takes some
/// again; with VERIFY, it compares all rows of the replicas, or says how far it is.
///
/// # Errors
/// When this server is no node of a cluster, or the words are others.
pub fn cluster(service: &Service, mut words: Words<'_>, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let refused = |text: &str| Refusal::new(DropReason::Refused, text);
    let node = service.node.get();
    let node = node.ok_or_else(|| refused("This server is no node of a cluster: it has no [cluster]."))?;
    let word = words.next().unwrap_or_default();
    match word.to_ascii_uppercase().as_slice() {
        b"" => {}
        b"VERIFY" => return verify(service, node, words, out),
        b"DRAIN" | b"FILL" => {
            service.drain(node, word.eq_ignore_ascii_case(b"DRAIN"));
        }
        _ => return Err(refused("CLUSTER knows DRAIN, FILL and VERIFY.")),
    }
    let lines = ClusterView::of(node).lines();
    reply::push_status(out, lines.len() as i64, b"Cluster");
    lines.iter().for_each(|line| out.extend_from_slice(format!("{line}\n").as_bytes()));
    Ok(())
}

/// VERIFY START begins to compare the replicas of all partitions, or of the one whose number follows; with KEEP, none is put aside. VERIFY and a number
/// says how far that is, and what it found in the partitions from that number of them on.
fn verify(service: &Service, node: &Node, mut words: Words<'_>, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let usage = || {
        let usage =
            "Usage: CLUSTER VERIFY START [<partition>] [KEEP], CLUSTER VERIFY <number of partitions known>";
        Refusal::new(DropReason::Usage, usage)
    };
    let number = |word: &[u8]| std::str::from_utf8(word).ok().and_then(|word| word.parse::<u32>().ok());
    let verb = words.next().ok_or_else(usage)?;
    if verb.eq_ignore_ascii_case(b"START") {
        let mut options = VerifyOptions::default();
        for word in words {
            match number(&word) {
                Some(partition) => options.partition = Some(partition),
                None if word.eq_ignore_ascii_case(b"KEEP") => options.keeps = true,
                None => return Err(usage()),
            }
        }
        node.verify(options).map_err(|why| Refusal::new(DropReason::Refused, why))?;
        service.operated("cluster verify", None);
        reply::push_status(out, 0, b"The comparison has begun");
        return Ok(());
    }
    let known = number(&verb).ok_or_else(usage)?;
    let report = node.verify_report(known as usize);
    let report = report.ok_or_else(|| Refusal::new(DropReason::Refused, "Nothing was compared yet."))?;
    let text = verify_lines(&report);
    reply::push_status(out, text.lines().count() as i64, b"Comparison");
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

/// `running DONE TOTAL` or `done ...`; for each partition `partition NUMBER RRDS ROWS [WHY NOT]`, then `replica NODE equal`, `replica NODE differs RRDS
/// put-aside`, `replica NODE differs RRDS kept WHY` or `replica NODE not-compared WHY`, and `rrd NODE[,NODE...] NAME`.
fn verify_lines(report: &VerifyReport) -> String {
    let state = if report.is_running { "running" } else { "done" };
    let mut text = format!("{state} {} {}\n", report.done, report.total);
    let line = |text: &str| text.replace(['\r', '\n'], " ");
    for Finding { partition, rrds, rows, replicas, differing, failure } in &report.findings {
        let failure = line(failure.as_deref().unwrap_or_default());
        let _ = writeln!(text, "partition {partition} {rrds} {rows} {failure}");
        for ReplicaFinding { node, verdict } in replicas {
            let said = match verdict {
                Compared::Equal => "equal".to_owned(),
                Compared::Differs { rrds, put_aside: Ok(()) } => format!("differs {rrds} put-aside"),
                Compared::Differs { rrds, put_aside: Err(why) } => {
                    format!("differs {rrds} kept {}", line(why))
                }
                Compared::NotCompared(why) => format!("not-compared {}", line(why)),
            };
            let _ = writeln!(text, "replica {node} {said}");
        }
        for (name, nodes) in differing {
            let _ = writeln!(text, "rrd {} {}", nodes.join(","), line(&String::from_utf8_lossy(name)));
        }
    }
    text
}
