//! STAT: what `stat(2)` says of the file that an RRD would be.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use protocol::rrdcached::files::{Entry, FileStat, Rights};
use protocol::rrdcached::reply;
use rrd::codec::file::FileLayout;
use rrd::definition::Definition;
use rrd::time::Timestamp;
use store::engine::StoreError;

use crate::connection::refusal::Refusal;
use crate::names::{NameFailure, ResolvedName};
use crate::service::Service;

/// Answers STAT.
///
/// # Errors
/// When there is neither an RRD nor a directory of that name.
pub fn stat(service: &Service, word: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
    if word == b"/" {
        return push(out, &Entry::Directory);
    }
    let named = match service.names.resolve(word) {
        Ok(named) => named,
        Err(NameFailure::Denied(path)) => return Err(Refusal::denied(&path)),
        Err(NameFailure::Missing(path)) => return Err(Refusal::no_such_rrd(&path)),
    };
    let refuse = |error: &StoreError| Refusal::of_store("RRD Error: ", error);
    match service.engine.snapshot(&named.name) {
        Ok(snapshot) => {
            let last_update = snapshot.last_update();
            let file = of_rrd(service, &named, &snapshot.definition, last_update);
            push(out, &Entry::Rrd(file, Some(snapshot.version())))
        }
        Err(error) if matches!(error, StoreError::NoSuchRrd(_)) || is_directory_on_disk(service, &named) => {
            match is_directory(service, &named).map_err(|error| refuse(&error))? {
                true => push(out, &Entry::Directory),
                false => Err(Refusal::no_such_rrd(&named.path)),
            }
        }
        Err(error) => Err(refuse(&error)),
    }
}

/// Whether there is a directory in the tree of files or placeholders, which need not hold any RRD: it can be opened, but is
/// none.
fn is_directory_on_disk(service: &Service, named: &ResolvedName) -> bool {
    service.sees_all_below(named.name.as_bytes()) && place(service, named).is_dir()
}

/// Where the file or placeholder of an RRD lies.
fn place(service: &Service, named: &ResolvedName) -> PathBuf {
    let path = [service.names.base(), named.name.as_bytes()].concat();
    PathBuf::from(OsString::from_vec(path))
}

fn push(out: &mut Vec<u8>, entry: &Entry) -> Result<(), Refusal> {
    reply::push_status(out, 0, entry.to_string().as_bytes());
    Ok(())
}

/// The list of names is quick, but making it is not, so it is used only if it is there.
fn is_directory(service: &Service, named: &ResolvedName) -> Result<bool, StoreError> {
    match service.name_index.current_if_made() {
        Some(list) => Ok(!list.below(&[named.name.as_bytes(), b"/"].concat()).is_empty()),
        None => service.engine.has_directory(named.name.as_bytes()),
    }
}

/// What is known of the file that an RRD would be.
pub fn of_rrd(
    service: &Service,
    named: &ResolvedName,
    definition: &Definition,
    last_update: Timestamp,
) -> FileStat {
    let modified = last_update.in_seconds(definition.units_per_second);
    let bytes = FileLayout::of(definition).file_bytes;
    FileStat { bytes, modified: (modified.whole, modified.micros), rights: rights(service, named) }
}

/// Those of the placeholder, where the RRD has one.
fn rights(service: &Service, named: &ResolvedName) -> Option<Rights> {
    let about = place(service, named).metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some(Rights { mode: about.mode() & 0o7777, user: about.uid(), group: about.gid() })
}
