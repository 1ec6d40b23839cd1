//! Comparing whole replicas: all rows and heads of every RRD, on all nodes that have its partition.
//!
//! The leader writes a record with a number and a range of ids to its log ([`store::replication::LogCopy::begin_row_check`]); every replica hashes
//! these RRDs as they are at that record, whatever is written before and after it. Who compares ([`compare`]) then asks all of them for the
//! hashes, and begins the next range once it has them: so each replica hashes one range at a time, and nothing queues up.

mod comparing;
mod findings;
mod spans;
mod verification;

use std::ops::Range;

use store::replication::{BegunCheck, Position};

use crate::routes::NodeAddress;

pub use comparing::compare;
pub use findings::{Compared, Finding, NAMES_MAX, ReplicaFinding};
pub use verification::{Verification, VerifyOptions, VerifyReport};

/// What is asked of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckRequest {
    /// Write a check of these ids to the log, under a number; of the first of them at least.
    Begin {
        /// A number that no other check has.
        number: u64,
        /// The ids.
        ids: Range<u32>,
    },
    /// What was found at a check.
    Read {
        /// Its number.
        number: u64,
        /// Where its record ends.
        at: Position,
        /// Whether with the names of the RRDs.
        names: bool,
    },
    /// Put the store aside, and make it again: others have found that it is not what the log says.
    PutAside {
        /// Which it is ([`CheckFound::copy`]).
        copy: u64,
        /// Why.
        why: String,
    },
}

/// What a replica answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckAnswer {
    /// The check is in the log.
    Begun(BegunCheck),
    /// It has not come to the check yet, or hashes; up to where it has the log.
    Waits(Position),
    /// It has the log beyond the check, and has not hashed: it was copied from another node there, or had too much to hash.
    Lacks,
    /// The hashes.
    Found(CheckFound),
    /// The store is put aside.
    PutAside,
}

/// What a replica has found at a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckFound {
    /// The store, from when it was opened until it is closed.
    pub copy: u64,
    /// The hash of the RRD of each id; [`store::replication::NO_RRD`] if there is none.
    pub hashes: Vec<u64>,
    /// Their names, if they were asked for.
    pub names: Vec<Vec<u8>>,
    /// Rows that were hashed.
    pub rows: u64,
    /// What could not be read.
    pub unreadable: Vec<Unreadable>,
}

/// An RRD that a replica cannot read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Its id.
    pub id: u32,
    /// Why.
    pub why: String,
    /// It is damaged; otherwise the next attempt may know better.
    pub is_damage: bool,
}

/// A node that has, or should have, a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedReplica {
    /// The node.
    pub node: NodeAddress,
    /// It is this process.
    pub is_own: bool,
    /// How its replica is.
    pub state: PlacedState,
}

/// How a replica is, as far as the nodes' beats tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacedState {
    /// It has everything.
    Ready,
    /// It is being copied, or reads what it lacks.
    CatchingUp,
    /// The node is silent.
    Gone,
}

/// Who has a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The leader's name.
    pub leader: Option<String>,
    /// All that have it, or should.
    pub replicas: Vec<PlacedReplica>,
}

/// Those who are asked.
pub trait Replicas: Send + Sync {
    /// Partitions with RRDs.
    fn partition_count(&self) -> u32;
    /// About how many RRDs there are.
    fn rrd_count(&self) -> u64;
    /// Who has a partition now.
    fn placement(&self, partition: u32) -> Placement;
    /// Asks one of them, and waits.
    ///
    /// # Errors
    /// A text that names the node.
    fn ask(
        &self,
        replica: &PlacedReplica,
        partition: u32,
        request: CheckRequest,
    ) -> Result<CheckAnswer, String>;
}
