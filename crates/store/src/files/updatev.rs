//! UPDATEV: an update that bypasses the buffer and lists the rows it writes.
//!
//! It runs after all buffered updates of the RRD, under RRDtool's lock. The journal need not record it: when
//! it is answered, it is in the file, which survives a crash of the process.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rrd::time::Timestamp;
use rrd::updatev::UpdateReport;
use rrd_file::file::Access;
use rrd_file::{Locking, UpdateOptions};

use crate::engine::{StoreError, UpdatevOutcome};
use crate::files::errors::{header_error, io_error};
use crate::files::read::{Timeout, open};
use crate::files::shared::Shared;
use crate::files::write::write;
use crate::name::RrdName;
use rrd_file::apply::{Loaded, Workspace};

/// Applies arguments `time:value...`, separated by single spaces, up to the first that is refused.
///
/// # Errors
/// When the file cannot be opened, read or written.
pub fn update(
    shared: &Shared,
    name: &RrdName,
    values: &[u8],
    work: &mut Workspace,
) -> Result<UpdatevOutcome, StoreError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let options = UpdateOptions {
        locking: Locking::None,
        now: Timestamp::new(now.as_secs() as i64, now.subsec_micros()),
        at_time: &|_| Err("AT times are not known to the daemon".to_string()),
        collect_rows: true,
        ..UpdateOptions::default()
    };
    let words: Vec<&[u8]> = values.split(|&byte| byte == b' ').collect();
    shared.with_entry(name, |entry, buffer| {
        write(shared, entry, buffer, work)?;
        let (tree, io) = (&shared.tree, |error| io_error(&shared.tree, name, error));
        let updated = open(shared, name, Access::Write, Timeout::Long).and_then(|mut file| {
            let header = file.header(&shared.geometries, None, &mut work.bytes);
            let header = header.map_err(|error| header_error(tree, name, error))?;
            let definition = Some(Arc::clone(&header.geometry.definition));
            let mut report = UpdateReport { definition, ..UpdateReport::default() };
            let mut loaded = Loaded::new(header, &file).map_err(io)?;
            let (changed, refused) =
                rrd_file::update::apply(&mut loaded, work, &words, None, &options, &mut report);
            if changed {
                loaded.write(work, &mut file).map_err(io)?;
            }
            Ok(UpdatevOutcome { report, refused: refused.err().map(StoreError::Update) })
        });
        // The next update reads the header again.
        buffer.geometry = None;
        if buffer.updates.is_empty() {
            shared.forget(entry, buffer);
        }
        updated
    })
}
