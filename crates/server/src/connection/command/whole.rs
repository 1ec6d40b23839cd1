//! IMPORT: a whole RRD as the bytes of a standard `.rrd` file, or as a dump, for what no `.rrd` file can hold.
//!
//! The connection holds the parts of an IMPORT until the last has arrived; then the whole RRD goes through
//! the log. The total held by all connections is limited.

use protocol::rrdcached::request::Import;
use protocol::rrdcached::{reply, whole};
use rrd::codec::file;
use rrd::codec::xml::{RestoreOptions, restore};
use rrd::content::Rrd;
use std::fmt::Display;
use store::engine::VersionChange;
use store::name::RrdName;

use super::create;
use crate::budget::Share;
use crate::connection::refusal::Refusal;
use crate::limits::IMPORT_BYTES_MAX;
use crate::metrics::DropReason;
use crate::service::Service;

/// A file that has arrived in part.
#[derive(Debug)]
pub struct StagedImport {
    name: RrdName,
    bytes: u64,
    content: Vec<u8>,
    /// What the content takes of the memory for clients.
    share: Share,
}

/// Answers IMPORT: keeps the part, or imports the RRD with the last one.
///
/// # Errors
/// When the part does not fit the file, too much is being imported, or the store refuses; nothing is kept then.
pub fn import(
    service: &Service,
    staged: &mut Option<StagedImport>,
    import: &Import<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let before = staged.take();
    let named = create::place(service, &import.name)?;
    let mut file = match before {
        _ if import.offset == 0 => StagedImport {
            name: named.name,
            bytes: import.bytes,
            content: Vec::new(),
            share: service.memory.share(),
        },
        Some(file)
            if (&file.name, file.bytes, file.content.len() as u64)
                == (&named.name, import.bytes, import.offset) =>
        {
            file
        }
        _ => {
            return Err(Refusal::new(
                DropReason::Usage,
                "RRD Error: the piece does not follow the one before",
            ));
        }
    };
    file.push(&import.piece)?;
    if (file.content.len() as u64) < file.bytes {
        reply::push_status(out, 0, format!("{} bytes so far", file.content.len()).as_bytes());
        *staged = Some(file);
        return Ok(());
    }
    let rrd = decode(&file.content, &named.path)?;
    let no_overwrite = import.no_overwrite || service.create.no_overwrite;
    let refuse = |error| create::refusal(&named.path, &error);
    match import.version {
        Some(version) => {
            let change = VersionChange::Replace(Box::new(rrd));
            let version = service.engine.change(&file.name, version, change).map_err(refuse)?;
            reply::push_status(out, 0, version.to_string().as_bytes());
        }
        None => {
            service.engine.import(file.name.clone(), rrd, no_overwrite).map_err(refuse)?;
            reply::push_status(out, 0, b"RRD imported OK");
        }
    }
    Ok(())
}

/// The RRD of an import for `path`, from the bytes of a file or of a dump.
fn decode(content: &[u8], path: &[u8]) -> Result<Rrd, Refusal> {
    let refuse = |why: &dyn Display| Refusal::new(DropReason::Refused, format!("RRD Error: {why}"));
    if content.starts_with(b"<") {
        let options = RestoreOptions { range_check: false, long_names: true };
        return restore(content, options).map_err(|error| refuse(&error));
    }
    let path = String::from_utf8_lossy(path);
    file::decode(content).map(|parts| parts.rrd).map_err(|error| refuse(&error.named(&path)))
}

impl StagedImport {
    fn push(&mut self, piece: &[u8]) -> Result<(), Refusal> {
        let refuse = |why: &str| Err(Refusal::new(DropReason::Refused, format!("RRD Error: {why}")));
        // Four characters of base64 hold three bytes.
        let room = piece.len() as u64 / 4 * 3;
        if self.bytes > IMPORT_BYTES_MAX {
            return refuse(&format!("a file may have {IMPORT_BYTES_MAX} bytes"));
        }
        if self.bytes > self.share.budget_bytes() || !self.share.try_resize(self.share.bytes() + room) {
            return Err(Refusal::no_memory("this file", self.bytes, &self.share));
        }
        if whole::push_bytes(piece, &mut self.content).is_none() {
            return refuse("the piece is no base64");
        }
        if piece.is_empty() || self.content.len() as u64 > self.bytes {
            return refuse("the pieces are not as long as the file");
        }
        Ok(())
    }
}
