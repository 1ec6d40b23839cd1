//! `tune`: a new header in place, under the lock; the rows stay where they are.

use std::sync::Arc;

use rrd::codec::file::encode_head;
use rrd::live::Live;

use crate::engine::StoreError;
use crate::files::apply::{Loaded, Workspace};
use crate::files::make;
use crate::files::medium::{Access, Medium, display_path, io_error};
use crate::files::read::{Patience, open, read};
use crate::files::rows::write_seasons;
use crate::files::shared::Shared;
use crate::files::write::write;
use crate::name::RrdName;

/// Changes an RRD by the words of `rrdtune(1)`. What waits for it is written first, by its old definition.
pub fn tune(
    shared: &Shared,
    name: &RrdName,
    words: &[String],
    work: &mut Workspace,
) -> Result<(), StoreError> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let longer = shared.with_entry(name, |entry, buffer| {
        write(shared, entry, buffer, work)?;
        let tuned = tune_in_place(shared, name, &words, work);
        // The next update looks at the file anew.
        buffer.geometry = None;
        if buffer.words.is_empty() {
            shared.forget(entry, buffer);
        }
        tuned
    })?;
    match longer {
        // Its header grows (a file of version 1 or 2 that becomes one of version 4): all of it moves.
        Some(tuned) => {
            let mut rrd = read(shared, name)?;
            (rrd.definition, rrd.live) = *tuned;
            make::import(shared, name, &rrd, false)
        }
        None => Ok(()),
    }
}

type Tuned = Box<(rrd::definition::Definition, Live)>;

/// The new definition and live state when the header has no room for them.
fn tune_in_place(
    shared: &Shared,
    name: &RrdName,
    words: &[&str],
    work: &mut Workspace,
) -> Result<Option<Tuned>, StoreError> {
    let tree = &shared.tree;
    let io = |error| io_error(tree, name, &error);
    let mut file = open(shared, name, Access::Write, Patience::Long)?;
    let header =
        file.header(&shared.geometries, None, &mut work.bytes).map_err(|error| error.named(tree, name))?;
    let geometry = Arc::clone(&header.geometry);
    let rings = header.current_rows.clone();
    let before = Loaded::new(header, &file).map_err(io)?.into_live();
    let (mut definition, mut live) = ((*geometry.definition).clone(), before.clone());
    rrd::tune::tune(&mut definition, &mut live, words)
        .map_err(|error| StoreError::Refused(error.to_string()))?;
    let mut front = Vec::new();
    encode_head(&definition, &geometry.shape, geometry.shape.split(&live.words), &rings, &mut front)
        .map_err(|error| StoreError::Refused(error.named(&display_path(tree, name)).to_string()))?;
    if front.len() != geometry.layout.header_bytes {
        return Ok(Some(Box::new((definition, live))));
    }
    write_seasons(&before.seasons, &live.seasons, &geometry.layout, &mut file, &mut work.bytes)
        .map_err(io)?;
    file.write_at(&front, 0).map_err(io)?;
    Ok(None)
}
