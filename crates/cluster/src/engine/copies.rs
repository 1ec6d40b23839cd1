//! A replica's store, copied from another node.

use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::{Hub, shown};
use crate::partition::{Copier, assemble};
use crate::peer::NoAnswer;
use crate::routes::NodeAddress;
use crate::wire::{Answer, Ask, Request, Told};

/// Bytes asked for at once.
const PART_BYTES: usize = 1 << 20;
/// How long a part may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often progress is logged.
const TELL_EVERY: Duration = Duration::from_secs(5);

impl Hub {
    /// Asks one node, and waits.
    pub(super) fn ask_node(
        &self,
        node: &NodeAddress,
        partition: u32,
        request: Request,
    ) -> io::Result<Answer> {
        let failed = |why: String| io::Error::other(format!("node {}: {why}", shown(node)));
        let ask = Ask { partition, leader_only: false, round: 0, request };
        let (sender, answer) = mpsc::sync_channel(1);
        let on = Box::new(move |heard| drop(sender.send(heard)));
        self.peer(node)?.ask(partition, ask.letter(), Instant::now() + PATIENCE, on);
        let received = match answer.recv() {
            Ok(Ok(received)) => received,
            Ok(Err(NoAnswer::Older(version))) => return Err(failed(NoAnswer::older(version))),
            Ok(Err(NoAnswer::Unsent(why) | NoAnswer::Unknown(why))) => return Err(failed(why)),
            Err(_) => return Err(failed("no answer".into())),
        };
        match received.told() {
            Ok(Told::Answer(answer, _)) => Ok(answer),
            Ok(Told::Refused(error)) => Err(failed(error.to_string())),
            Ok(_) => Err(failed("it does not have the partition".into())),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    fn copy_from(&self, node: &NodeAddress, partition: u32, into: &Path) -> io::Result<()> {
        let strange =
            || io::Error::other(format!("node {} answers something else than it was asked", shown(node)));
        let Answer::Copy(copy, head) = self.ask_node(node, partition, Request::BeginCopy)? else {
            return Err(strange());
        };
        let all: u64 = head.files.iter().map(|file| file.bytes).sum();
        tracing::info!(partition, node = %node.name, megabytes = all / 1_000_000, "copying a replica from another node");
        let (mut done, mut told) = (0u64, Instant::now());
        assemble(&head, into, PART_BYTES, &mut |file, offset, count| {
            let request = Request::ReadCopy { copy, file: file as u32, offset, count: count as u32 };
            let Answer::Bytes(bytes) = self.ask_node(node, partition, request)? else {
                return Err(strange());
            };
            done += bytes.len() as u64;
            if told.elapsed() > TELL_EVERY {
                told = Instant::now();
                tracing::info!(
                    partition,
                    megabytes = done / 1_000_000,
                    of = all / 1_000_000,
                    "copying a replica"
                );
            }
            Ok(bytes)
        })
    }

    /// The nodes that a replica can be copied from: followers first, which have less to do.
    fn sources(&self, partition: u32) -> Vec<NodeAddress> {
        let route = self.routes.route(partition);
        route.followers.into_iter().chain(route.leader).collect()
    }
}

impl Copier for Hub {
    fn has_source(&self, partition: u32) -> bool {
        !self.sources(partition).is_empty()
    }

    fn copy(&self, partition: u32, into: &Path) -> io::Result<()> {
        let mut failure = io::Error::other("no other node has this partition ready");
        for node in self.sources(partition) {
            if into.exists() {
                std::fs::remove_dir_all(into)?;
            }
            match self.copy_from(&node, partition, into) {
                Ok(()) => return Ok(()),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }
}
