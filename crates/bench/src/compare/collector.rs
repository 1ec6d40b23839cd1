//! Collectors beside each other: Debian's program for one, the daemon with a section for it.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::Bench;
use crate::Outcome;
use crate::builds::Program;
use crate::daemon::{Daemon, Kind};

/// A collector that runs; killed when it is dropped.
pub enum Collector {
    /// Debian's.
    Peer(Child),
    /// A daemon of ours.
    Ours(Daemon),
}

/// The other build's daemon where there is one, in the peer's place; then ours.
pub fn sides(bench: &Bench) -> [Option<Program>; 2] {
    let programs = bench.builds(Kind::Roundel);
    [true, false].map(|is_before| programs.iter().find(|program| program.is_before == is_before).cloned())
}

impl Collector {
    /// Starts Debian's program, which logs into `directory`.
    pub fn start_peer(program: &str, arguments: &[&str], directory: &Path) -> Outcome<Self> {
        let log = File::create(directory.join("peer.log"))?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().map_err(|error| format!("cannot start {program}: {error}"))?;
        Ok(Collector::Peer(child))
    }

    /// Starts a daemon of ours with these sections.
    pub fn start_ours(mut daemon: Daemon, sections: &str) -> Outcome<Self> {
        daemon.configure(sections);
        daemon.start()?;
        Ok(Collector::Ours(daemon))
    }

    /// The process.
    pub fn pid(&self) -> Outcome<u32> {
        match self {
            Collector::Peer(child) => Ok(child.id()),
            Collector::Ours(daemon) => daemon.pid(),
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        if let Collector::Peer(child) = self {
            child.kill().ok();
            child.wait().ok();
        }
    }
}
