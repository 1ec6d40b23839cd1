//! ENTRIES: a part of a directory, in the order of names, at a cost that does not depend on the number of all RRDs.

use protocol::rrdcached::files::Entry;
use protocol::rrdcached::reply;
use protocol::rrdcached::request::Entries;
use store::engine::StoreError;
use store::name::RrdName;

use super::stat::of_rrd;
use crate::connection::refusal::Refusal;
use crate::limits::ENTRIES_MAX;
use crate::name_index::Child;
use crate::names::ResolvedName;
use crate::service::Service;

/// Answers ENTRIES.
///
/// # Errors
/// When the directory's name is none, or the store cannot list.
pub fn entries(service: &Service, part: &Entries<'_>, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let mut directory = Vec::new();
    if *part.directory != *b"/" {
        let named = service.names.resolve(&part.directory);
        let named = named.map_err(|failure| Refusal::of_name(failure, Refusal::no_such_rrd))?;
        directory = [named.name.as_bytes(), b"/"].concat();
    }
    let refuse = |error: StoreError| Refusal::of_store("RRD Error: ", &error);
    let names = match part.fresh {
        true => service.name_index.current(),
        false => service.name_index.list(),
    }
    .map_err(refuse)?;
    let after = part.after.as_deref().map_or(Vec::new(), |after| [&directory, after].concat());
    let page = names.page(&directory, &after, part.count.clamp(1, ENTRIES_MAX));
    let mut lines = Vec::new();
    let mut count = 0;
    for child in &page.children {
        let entry = match child {
            Child::Directory(..) => Entry::Directory,
            Child::Rrd(_) if !part.stat => Entry::Unread,
            Child::Rrd(name) => match read(service, name) {
                Some(entry) => entry,
                // It is gone since the list was made.
                None => continue,
            },
        };
        let inside = &child.name()[directory.len()..];
        // Such a name could not be asked for.
        if !inside.contains(&b'\n') {
            entry.push_line(&mut lines, inside.strip_suffix(b"/").unwrap_or(inside));
            count += 1;
        }
    }
    let status = match page.more {
        true => &b"entries, more follow"[..],
        false => b"entries",
    };
    reply::push_status(out, count, status);
    out.extend_from_slice(&lines);
    Ok(())
}

fn read(service: &Service, name: &[u8]) -> Option<Entry> {
    let name = RrdName::new(name).ok()?;
    let status = service.engine.status(&name).ok()?;
    let named = ResolvedName { path: Vec::new(), name };
    Some(Entry::Rrd(of_rrd(service, &named, &status.definition, status.last_update), None))
}
