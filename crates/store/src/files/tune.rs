//! `tune`: settings by a new header in place, a new layout by a new file in its place.
//!
//! Both under RRDtool's lock, behind everything that waited for the RRD: a reading belongs to the definition
//! it was accepted by.

use std::sync::Arc;

use rrd::codec::file::{decode, encode_head};
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

/// Changes an RRD by the words of `rrdtune(1)`. What waits for it is written first, by its old definition.
pub fn tune(
    shared: &Shared,
    name: &RrdName,
    words: &[String],
    work: &mut Workspace,
) -> Result<(), StoreError> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    shared.with_entry(name, |entry, buffer| {
        write(shared, entry, buffer, work)?;
        let tuned = match rrd::tune::is_structural(&words) {
            true => Ok(Place::Elsewhere),
            false => tune_in_place(shared, name, &words, work),
        }
        .and_then(|place| match place {
            Place::Here => Ok(()),
            Place::Elsewhere => tune_whole(shared, entry, &words),
        });
        // The next update looks at the file anew.
        buffer.geometry = None;
        if buffer.words.is_empty() {
            shared.forget(entry, buffer);
        }
        tuned
    })
}

/// Where the changed RRD goes.
enum Place {
    /// It is in its file.
    Here,
    /// It needs a new file; nothing has changed yet.
    Elsewhere,
}

/// Writes a new file and puts it in the place of the old one, whose lock is held meanwhile.
fn tune_whole(shared: &Shared, entry: &Entry, words: &[&str]) -> Result<(), StoreError> {
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
    rrd::tune::tune_content(&mut rrd, words).map_err(StoreError::Tune)?;
    make::exchange(shared, entry, &rrd, &old)
}

fn tune_in_place(
    shared: &Shared,
    name: &RrdName,
    words: &[&str],
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
    rrd::tune::tune(&mut definition, &mut live, words).map_err(StoreError::Tune)?;
    let mut front = Vec::new();
    encode_head(&definition, &geometry.shape, geometry.shape.split(&live.words), &rings, &mut front)
        .map_err(|error| StoreError::Unfit { path: display_path(tree, name), error })?;
    if front.len() != geometry.layout.header_bytes {
        // A file of version 1 or 2 that becomes one of version 4: the header grows, and all of it moves.
        return Ok(Place::Elsewhere);
    }
    write_seasons(&before.seasons, &live.seasons, &geometry.layout, &mut file, &mut work.bytes)
        .map_err(io)?;
    file.write_at(&front, 0).map_err(io)?;
    Ok(Place::Here)
}
