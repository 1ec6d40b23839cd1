//! What stands in the tree where the placeholder of an RRD may be: programs move, copy and remove placeholders like files.

use std::io;
use std::sync::Arc;

use rustix::fs::{FileType, Gid, Mode, Stat, Uid, fchmod, fchown};
use rustix::io::Errno;

use super::{Placeholder, PlaceholderError, Placeholders, RrdNumber, StoreIdentity, decode, encode, is_torn};
use crate::file::Access;
use crate::handle::Handle;
use crate::name::{NAME_BYTES_MAX, RrdName};
use crate::tree::{Tree, split};

/// A file, whatever its name: two names with the same one are links to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// The file of a number on a device, as `stat` gives them.
    pub fn of(device: u64, inode: u64) -> Self {
        FileId { device, inode }
    }
}

/// What stands at a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// No file.
    Nothing,
    /// A placeholder of this store, with the RRD that it was written for, and the name of that then.
    Ours {
        /// The RRD, if it has a number there.
        rrd: Option<RrdNumber>,
        /// Its name when the placeholder was last written.
        name: RrdName,
        /// The file.
        file: FileId,
    },
    /// A placeholder of another store.
    Foreign(StoreIdentity),
    /// A standard `.rrd` file.
    RrdFile,
    /// A file that is empty, or a placeholder that is not complete.
    Unfinished,
    /// Something else.
    Other,
}

/// Bytes read first: enough for most names.
const FRONT_BYTES: usize = 256;

impl Placeholders {
    /// What stands at a name. Links that stay in the tree are followed.
    ///
    /// # Errors
    /// When that cannot be found out.
    pub fn look(&self, name: &RrdName) -> io::Result<Found> {
        match self.tree.open_afresh(name) {
            Ok(file) => self.look_into(&file),
            Err(error) => match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG) => Ok(Found::Nothing),
                // A link that leads out, or in a circle.
                Some(Errno::LOOP | Errno::XDEV | Errno::NXIO) => Ok(Found::Other),
                _ => Err(error),
            },
        }
    }

    fn look_into(&self, file: &Handle) -> io::Result<Found> {
        let Some(about) = file.stat()? else { return Ok(Found::Other) };
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
            return Ok(Found::Other);
        }
        let mut bytes = [0; FRONT_BYTES];
        let count = file.read_up_to(&mut bytes, 0)?;
        let mut decoded = decode(&bytes[..count]);
        if count == FRONT_BYTES && !matches!(decoded, Ok(None | Some(Placeholder { rrd: Some(_), .. }))) {
            let mut bytes = vec![0; FRONT_BYTES + NAME_BYTES_MAX];
            let count = file.read_up_to(&mut bytes, 0)?;
            decoded = decode(&bytes[..count]);
        }
        Ok(match decoded {
            Ok(Some(Placeholder { store, name, rrd })) if store == self.store => {
                Found::Ours { rrd, name, file: FileId::of(about.st_dev, about.st_ino) }
            }
            Ok(Some(Placeholder { store, .. })) => Found::Foreign(store),
            Ok(None) if bytes[..count].starts_with(b"RRD\0") => Found::RrdFile,
            Ok(None) if is_torn(&bytes[..count]) => Found::Unfinished,
            Err(PlaceholderError::Damaged { .. }) => Found::Unfinished,
            _ => Found::Other,
        })
    }

    /// The tree.
    pub fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    /// Whether what stands at a name is what this process wrote there of late, since [`Placeholders::forget_own`]: then the RRD that has the name is
    /// the one of the placeholder.
    pub fn is_own(&self, name: &RrdName) -> bool {
        let Some(own) = self.own.last(name) else { return false };
        matches!(self.look(name), Ok(Found::Ours { rrd: Some(rrd), name: written, .. }) if rrd == own && written == *name)
    }

    /// Forgets what was written: RRDs get other names.
    pub fn forget_own(&self) {
        self.own.clear();
    }

    /// The store.
    pub fn store(&self) -> StoreIdentity {
        self.store
    }

    /// Puts the placeholder of an RRD in the place of its `.rrd` file, with the file's mode and owner, and in one step. `is_unchanged` is asked for
    /// just before that; without its consent, the file stays.
    ///
    /// # Errors
    /// The system's; the file stays then.
    pub fn replace_file(
        &self,
        name: &RrdName,
        (rrd, rrd_bytes): (RrdNumber, u64),
        file: &Stat,
        is_unchanged: impl FnOnce() -> bool,
    ) -> Result<bool, PlaceholderError> {
        let io = |error| super::io_error(name, error);
        let leaf = format!(".roundel-{}-{}", std::process::id(), file.st_ino);
        let (directory, _) = split(name.as_bytes());
        let path = match directory {
            b"" => leaf.clone().into_bytes(),
            _ => [directory, b"/", leaf.as_bytes()].concat(),
        };
        let system = |errno: Errno| super::io_error(name, errno.into());
        let temporary =
            RrdName::new(&path).map_err(|_| super::io_error(name, io::ErrorKind::InvalidFilename.into()))?;
        // One that a kill has left.
        let _ = self.tree.remove(&temporary);
        let content = Placeholder { store: self.store, name: name.clone(), rrd: Some(rrd) };
        self.write_at(&temporary, &content, rrd_bytes)?;
        let replaced = self.tree.open_file(&temporary, Access::Write).map_err(io).and_then(|handle| {
            if let Handle::System(placeholder) = &handle {
                fchmod(placeholder, Mode::from_raw_mode(file.st_mode & 0o7777)).map_err(system)?;
                // Only root may give files away; others keep theirs.
                let _ =
                    fchown(placeholder, Some(Uid::from_raw(file.st_uid)), Some(Gid::from_raw(file.st_gid)));
            }
            match is_unchanged() {
                true => self.tree.rename_into_place(leaf.as_bytes(), name, true).map_err(io).map(|()| true),
                false => Ok(false),
            }
        });
        if !matches!(replaced, Ok(true)) {
            let _ = self.tree.remove(&temporary);
        }
        replaced
    }

    /// Writes an RRD's number and name into a placeholder that was moved or copied, if it says what is expected, by number and name. Another one has taken
    /// its place otherwise, and the answer is false. Its length stays, which is that of the RRD's file.
    ///
    /// # Errors
    /// When no placeholder of this store stands there, or the system fails.
    pub fn rewrite(
        &self,
        name: &RrdName,
        rrd: RrdNumber,
        expects: impl FnOnce(Option<RrdNumber>, &RrdName) -> bool,
    ) -> Result<bool, PlaceholderError> {
        let io = |error| super::io_error(name, error);
        let file = self.open_to_replace(name)?;
        // Not even an empty one is written to: another program may just be writing it.
        match self.look_into(&file).map_err(io)? {
            Found::Ours { rrd, name, .. } if expects(rrd, &name) => {}
            _ => return Ok(false),
        }
        let header = encode(&Placeholder { store: self.store, name: name.clone(), rrd: Some(rrd) });
        let length = file.length().map_err(io)?;
        file.write_at(&header, 0).map_err(io)?;
        if length < header.len() as u64 {
            file.truncate(header.len() as u64).map_err(io)?;
        }
        Ok(true)
    }
}
