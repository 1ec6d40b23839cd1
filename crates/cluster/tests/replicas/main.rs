//! Replicas of partitions over a simulated log with faults, on simulated disks that lose power.
//!
//! Nothing that was acknowledged may be lost, whichever replica is killed, cut off or made the leader; and all replicas must be the same at the end, byte
//! for byte. `ROUNDEL_SEED=n` replays one run, `ROUNDEL_SEEDS=n` sets how many.

#![allow(clippy::unwrap_used, reason = "a test")]

mod node;
mod partition;
mod simulated;
