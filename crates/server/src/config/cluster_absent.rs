//! In place of `cluster.rs` in a build without the feature `cluster`.

use super::absent::{Absent, Section};
use super::{ConfigError, Reader};
use crate::settings::Settings;

/// `[cluster]`.
#[derive(Debug)]
pub(super) struct ClusterSection;

impl Section for ClusterSection {
    const NAME: &'static str = "[cluster]";
    const FEATURE: &'static str = "cluster";
}

pub(super) type FileCluster = Absent<ClusterSection>;

impl Reader<'_> {
    /// Nothing.
    pub(super) fn add_cluster(
        &self,
        given: Option<FileCluster>,
        _settings: &mut Settings,
    ) -> Result<(), ConfigError> {
        given.map_or(Ok(()), |absent| absent.never())
    }
}
