//! What the RRDs of `roundel capacity` are like: a preset, real files, or the words of `create`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use pagecache::geometry::Geometry;
use pagecache::incore;
use pagecache::names::Files;
use pagecache::parts::HeaderReader;
use pagecache::presets::Preset;

use super::Result;

/// Files of a tree that are looked at: a tree of a million has a handful of geometries.
const FILES_MAX: usize = 20_000;

/// Options that say what an RRD is like.
#[derive(Debug, Args)]
pub struct GeometryArguments {
    /// RRDs as this program makes them: mrtg, collectd, ganglia, cacti, librenms [default: mrtg]
    #[arg(long, value_name = "NAME", value_parser = super::preset, conflicts_with_all = ["like", "words"])]
    preset: Option<Preset>,
    /// RRDs like this file, or like most files below this directory
    #[arg(long, value_name = "PATH", conflicts_with = "words")]
    like: Option<PathBuf>,
    /// Time between updates of an RRD [default: its step]
    #[arg(long, value_name = "TIME", value_parser = super::seconds)]
    step: Option<u64>,
    /// Data sources and archives as for `rrdtool create`
    #[arg(value_name = "DS:...|RRA:...")]
    words: Vec<String>,
}

impl GeometryArguments {
    /// The preset's name, unless RRDs are given otherwise.
    pub fn preset_name(&self) -> Option<&'static str> {
        let is_other = self.like.is_some() || !self.words.is_empty();
        (!is_other).then(|| self.preset.unwrap_or(Preset::Mrtg).name())
    }

    /// The geometry, and what it is in words.
    pub fn geometry(&self) -> Result<(Geometry, String)> {
        let (mut geometry, described) = if let Some(path) = &self.like {
            like(path)?
        } else if self.words.is_empty() {
            let preset = self.preset.unwrap_or(Preset::Mrtg);
            (preset.geometry(), format!("as of {}", preset.name()))
        } else {
            (Geometry::parse(self.step.unwrap_or(300), &self.words)?, "as given".to_string())
        };
        if let Some(step) = self.step {
            // Rows that end every so many PDPs end as often if a PDP is an update.
            geometry.step = step as f64;
        }
        if geometry.archives.is_empty() {
            return Err("an RRD without archives: give RRA:... too".to_string());
        }
        Ok((geometry, described))
    }
}

/// The geometry that most files have.
fn like(path: &Path) -> Result<(Geometry, String)> {
    let mut headers = HeaderReader::default();
    let mut counts: HashMap<*const (), (usize, Arc<rrd_file::geometry::Geometry>)> = HashMap::new();
    let only = path.is_dir().then_some("rrd");
    let mut looked = 0;
    for found in Files::new(std::iter::once(path.to_path_buf()), only).take(FILES_MAX) {
        let found = found.map_err(|unreadable| cannot(&unreadable.path, &unreadable.error.to_string()))?;
        let Ok(file) = incore::open(&found) else { continue };
        let Ok(metadata) = file.metadata() else { continue };
        looked += 1;
        if let Some(parts) = headers.parts(&file, metadata.len(), false) {
            let geometry = Arc::clone(parts.geometry());
            let entry = counts.entry(Arc::as_ptr(&geometry).cast()).or_insert((0, geometry));
            entry.0 += 1;
        }
    }
    let kinds = counts.len();
    let Some((count, most)) = counts.into_values().max_by_key(|entry| entry.0) else {
        return Err(cannot(path, &format!("{looked} files, and none is a .rrd file")));
    };
    let described = format!("as {count} of {looked} files of {}, which has {kinds} kinds", path.display());
    Ok((Geometry::of(&most.definition), described))
}

fn cannot(path: &Path, why: &str) -> String {
    format!("cannot find out what RRDs in \"{}\" are like: {why}", path.display())
}
