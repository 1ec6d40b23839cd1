//! MRTG's `.log` files become RRDs, as MRTG makes them of those that it finds beside no `.rrd` file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use collect::complaints::Complaints;
use collect::inventory::RrdSpec;
use collect::mrtg::config::TargetSettings;
use collect::mrtg::log::MrtgLog;
use store::engine::{Engine, StoreError};
use store::name::RrdName;

use super::files::LoadedConfig;
use crate::collectors::store_writer::definition;

/// The largest file that is read. MRTG's have at most 200 kB: 2,535 lines of five numbers.
const BYTES_MAX: u64 = 10_000_000;

/// Takes over the past of targets that have a `.log` file and no RRD. The files stay. `now` is in seconds since the epoch.
pub fn take_over(engine: &dyn Engine, loaded: &LoadedConfig, now: i64, complaints: &mut Complaints) {
    let directory = Path::new(loaded.directory());
    let mut count = 0;
    for (target, settings) in loaded.plan.targets.iter().zip(&loaded.config.targets) {
        let name = loaded.plan.inventory.name(target.rrd);
        let file = log_file(directory, settings);
        let subject = file.display().to_string();
        match of_target(engine, name, loaded.plan.inventory.spec(target.rrd), &file, now) {
            Ok(true) => {
                complaints.resolve(&subject);
                count += 1;
            }
            Ok(false) => {}
            Err(error) => complaints.raise(
                &subject,
                format!(
                    "the target begins without this past: {error}; to try again, delete its RRD and reload"
                ),
            ),
        }
    }
    if count > 0 {
        tracing::info!(directory = %directory.display(), count, "took over the past of targets from their .log files");
    }
}

/// Where MRTG keeps what a target reads.
fn log_file(directory: &Path, settings: &TargetSettings) -> PathBuf {
    // As in MRTG, a directory of a target is below, also where it begins with a slash.
    let below = settings.get("directory").unwrap_or("").trim_start_matches('/');
    directory.join(below).join(format!("{}.log", settings.name))
}

/// Makes the RRD of one target; false when it has no file or is there.
fn of_target(
    engine: &dyn Engine,
    name: &[u8],
    spec: &RrdSpec,
    file: &Path,
    now: i64,
) -> Result<bool, String> {
    let metadata = match fs::metadata(file) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error.to_string()),
    };
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let rrd_name = RrdName::new(name).map_err(|error| text(&error))?;
    if !matches!(engine.status(&rrd_name), Err(StoreError::NoSuchRrd(_))) {
        return Ok(false);
    }
    if !metadata.is_file() || metadata.len() > BYTES_MAX {
        return Err(format!("it is no file of at most {BYTES_MAX} bytes"));
    }
    let log = fs::read(file).map_err(|error| text(&error))?;
    let log = MrtgLog::parse(&String::from_utf8_lossy(&log)).map_err(|error| text(&error))?;
    if log.last_round() > now {
        return Err("its last round is in the future, and no reading would be taken until then".to_string());
    }
    let definition = definition(name, spec).map_err(|error| text(&error))?;
    match engine.import(rrd_name, log.rrd(definition), true) {
        Ok(()) => Ok(true),
        Err(StoreError::Exists(_)) => Ok(false),
        Err(error) => Err(text(&error)),
    }
}
