//! In place of `backup.rs` in a build without the feature `backup`.

use super::absent::{Absent, Section};

/// `[backup]`.
#[derive(Debug)]
pub(super) struct BackupSection;

impl Section for BackupSection {
    const NAME: &'static str = "[backup]";
    const FEATURE: &'static str = "backup";
}

pub(super) type FileBackup = Absent<BackupSection>;
