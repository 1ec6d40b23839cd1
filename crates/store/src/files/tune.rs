//! `tune`: settings change the header in place; a new layout needs a new file.
//!
//! Both happen under RRDtool's lock and after all buffered updates were written, because an update belongs to
//! the definition under which it was accepted.

use std::sync::Arc;

use rrd::codec::file::{decode, encode_head};
use rrd::definition::text::Limits;
use rrd::tune::{TuneLimits, tune_content_within};
use rrd_file::file::{Access, Medium};

use crate::engine::StoreError;
use crate::files::buffer::Entry;
use crate::files::errors::{display_path, header_error, io_error};
use crate::files::make;
use crate::files::read::{READ_BYTES_MAX, Timeout, open};
use crate::files::shared::Shared;
use crate::files::write::write;
use crate::name::RrdName;
use rrd_file::apply::{Loaded, Workspace};
use rrd_file::rows::write_seasons;

/// Changes an RRD by the arguments of `rrdtune(1)`, after writing its buffered updates under the old
/// definition.
///
/// # Errors
/// When `tune` refuses, or the file cannot be read or written.
pub fn tune(
    shared: &Shared,
    name: &RrdName,
    args: &[String],
    work: &mut Workspace,
) -> Result<(), StoreError> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    shared.with_entry(name, |entry, buffer| {
        write(shared, entry, buffer, work)?;
        let tuned = match rrd::tune::is_structural(&args) {
            true => Ok(Place::Elsewhere),
            false => tune_in_place(shared, name, &args, work),
        }
        .and_then(|place| match place {
            Place::Here => Ok(()),
            Place::Elsewhere => tune_whole(shared, entry, &args),
        });
        // The next update reads the header again.
        buffer.geometry = None;
        if buffer.updates.is_empty() {
            shared.forget(entry, buffer);
        }
        tuned
    })
}

/// Where the changed RRD can be written.
enum Place {
    /// It was written in place.
    Here,
    /// It needs a new file; nothing has been changed yet.
    Elsewhere,
}

/// Writes a new file and replaces the old one with it, holding the old one's lock.
fn tune_whole(shared: &Shared, entry: &Entry, args: &[&str]) -> Result<(), StoreError> {
    let (tree, name) = (&shared.tree, &entry.name);
    let io = |error| io_error(tree, name, error);
    let old = open(shared, name, Access::Write, Timeout::Long)?;
    let bytes = old.bytes();
    if bytes > READ_BYTES_MAX {
        return Err(StoreError::TooLarge(format!("'{name}' has {bytes} bytes, too many to read at once")));
    }
    let mut content = vec![0; bytes as usize];
    old.read_at(&mut content, 0).map_err(io)?;
    let parts =
        decode(&content).map_err(|error| StoreError::Damaged { path: display_path(tree, name), error })?;
    let mut rrd = parts.rrd;
    let limits = TuneLimits { definition: Limits::FILE, live_bytes: shared.options.rrd_bytes_max };
    tune_content_within(&mut rrd, args, limits).map_err(StoreError::Tune)?;
    make::exchange(shared, entry, &rrd, &old)
}

fn tune_in_place(
    shared: &Shared,
    name: &RrdName,
    args: &[&str],
    work: &mut Workspace,
) -> Result<Place, StoreError> {
    let tree = &shared.tree;
    let io = |error| io_error(tree, name, error);
    let mut file = open(shared, name, Access::Write, Timeout::Long)?;
    let header = file
        .header(&shared.geometries, None, &mut work.bytes)
        .map_err(|error| header_error(tree, name, error))?;
    let geometry = Arc::clone(&header.geometry);
    let rings = header.current_rows.clone();
    let before = Loaded::new(header, &file).map_err(io)?.into_live();
    let (mut definition, mut live) = ((*geometry.definition).clone(), before.clone());
    rrd::tune::tune(&mut definition, &mut live, args).map_err(StoreError::Tune)?;
    let mut front = Vec::new();
    encode_head(&definition, &geometry.shape, geometry.shape.split(&live.words), &rings, &mut front)
        .map_err(|error| StoreError::Unfit { path: display_path(tree, name), error })?;
    if front.len() != geometry.layout.header_bytes {
        // A version 1 or 2 file that becomes version 4: the header grows, so everything moves.
        return Ok(Place::Elsewhere);
    }
    write_seasons(&before.seasons, &live.seasons, &geometry.layout, &mut file, &mut work.bytes)
        .map_err(io)?;
    file.write_at(&front, 0).map_err(io)?;
    Ok(Place::Here)
}
