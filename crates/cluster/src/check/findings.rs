//! What a comparison has found.

use std::collections::BTreeMap;

/// What became of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compared {
    /// All of its RRDs are those of most replicas, or of the leader where there is no majority.
    Equal,
    /// It has others.
    Differs {
        /// How many RRDs differ.
        rrds: u64,
        /// Whether its store was put aside, to be made again; why not, if not.
        put_aside: Result<(), String>,
    },
    /// Not all of it was compared; says why.
    NotCompared(String),
}

/// A replica in a [`Finding`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaFinding {
    /// The node.
    pub node: String,
    /// What became of it.
    pub verdict: Compared,
}

/// What was found in a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// The partition.
    pub partition: u32,
    /// RRDs that were compared.
    pub rrds: u64,
    /// Rows of their archives, with those that are not known.
    pub rows: u64,
    /// Its replicas, by node.
    pub replicas: Vec<ReplicaFinding>,
    /// RRDs that differ, with the nodes that have another one than most, or cannot read it; the first [`NAMES_MAX`].
    pub differing: BTreeMap<Vec<u8>, Vec<String>>,
    /// Why it could not be compared, if it could not.
    pub failure: Option<String>,
}

/// The most names of a partition that are kept.
pub const NAMES_MAX: usize = 1000;

impl Finding {
    /// Whether all replicas were compared, and are the same.
    pub fn is_well(&self) -> bool {
        self.failure.is_none()
            && self.differing.is_empty()
            && self.replicas.iter().all(|replica| replica.verdict == Compared::Equal)
    }
}
