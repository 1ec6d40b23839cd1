//! What changes names: new files and directories, removals, renames.

use std::sync::Arc;

use fuser::FileAttr;
use rustix::io::Errno;

use super::{Mounted, NAME_BYTES_MAX, Stands, lock};
use crate::directory::{all_below, is_empty};
use crate::open::OpenFile;
use crate::scratch::{directory_of, is_temporary};
use crate::store::Result;

/// A name in the directory of a number.
pub(super) type Place<'a> = (u64, &'a [u8]);

impl Mounted {
    /// What stands at a path; `None` = nothing.
    fn look(&self, path: &[u8]) -> Result<Option<Stands>> {
        match self.find(path) {
            Err(Errno::NOENT) => Ok(None),
            found => found.map(Some),
        }
    }

    /// The path of a name that is to be made.
    ///
    /// # Errors
    /// ENAMETOOLONG; EINVAL for a name that no RRD can have.
    fn new_path(&self, parent: u64, name: &[u8]) -> Result<Vec<u8>> {
        let path = self.path_in(parent, name)?;
        if name.len() > NAME_BYTES_MAX as usize {
            return Err(Errno::NAMETOOLONG);
        }
        if name.contains(&b'\n') && self.extra_for(&path).is_none() {
            return Err(Errno::INVAL);
        }
        Ok(path)
    }

    /// Makes a file and opens it: its attributes and the handle.
    pub(super) fn create(
        &self,
        (parent, name): Place<'_>,
        mode: u32,
        user: (u32, u32),
    ) -> Result<(FileAttr, u64)> {
        let path = self.new_path(parent, name)?;
        if let Some(extra) = self.extra_for(&path) {
            let file = extra.open(&path, true, Some(mode & 0o7777))?;
            extra.set_rights(&path, None, Some(user.0), Some(user.1)).ok();
            let stat = crate::extra::stat(&file.metadata().map_err(|error| crate::extra::errno(&error))?);
            let number = lock(&self.inodes).learn(parent, name);
            return Ok((self.owner.file(number, &stat), self.open.open_extra(file)));
        }
        let file = OpenFile::new_empty(mode & 0o7777, user);
        self.scratch.add(&path, Arc::clone(&file))?;
        let number = {
            let mut inodes = lock(&self.inodes);
            // Programs may have a file open that had this name, and that others have removed from the store.
            inodes.remove(parent, name);
            inodes.learn(parent, name)
        };
        let attributes = self.owner.file(number, &file.stat());
        Ok((attributes, self.open.open(number, file, true, || Ok(()))?.0))
    }

    /// Makes the file of a socket, which only the extra directory has.
    pub(super) fn make_socket(
        &self,
        (parent, name): Place<'_>,
        mode: u32,
        user: (u32, u32),
    ) -> Result<FileAttr> {
        let path = self.path_in(parent, name)?;
        let stat = self.extra_for(&path).ok_or(Errno::PERM)?.make_socket(&path, mode, user)?;
        let number = lock(&self.inodes).learn(parent, name);
        Ok(self.owner.socket(number, &stat))
    }

    pub(super) fn make_directory(&self, (parent, name): Place<'_>) -> Result<FileAttr> {
        let path = self.new_path(parent, name)?;
        if self.look(&path)?.is_some() {
            return Err(Errno::EXIST);
        }
        match &self.extra {
            Some(extra) => extra.make_directory(&path)?,
            None => self.scratch.keep_directory(&path)?,
        }
        let number = lock(&self.inodes).learn(parent, name);
        Ok(self.directory_attributes(number))
    }

    pub(super) fn remove_directory(&self, (parent, name): Place<'_>) -> Result {
        let path = self.path_in(parent, name)?;
        if !is_empty(&path, &self.store, &self.scratch, self.extra.as_ref())? {
            return Err(Errno::NOTEMPTY);
        }
        self.scratch.drop_directory(&path);
        if let Some(extra) = &self.extra {
            extra.remove_directory(&path)?;
        }
        lock(&self.inodes).remove(parent, name);
        self.names_have_changed();
        Ok(())
    }

    pub(super) fn remove(&self, (parent, name): Place<'_>) -> Result {
        let path = self.path_in(parent, name)?;
        match self.find(&path)? {
            Stands::Directory => return Err(Errno::ISDIR),
            Stands::Scratch(_) => drop(self.scratch.remove(&path)),
            Stands::Extra(_) | Stands::Socket(_) => {
                self.extra_for(&path).ok_or(Errno::NOENT)?.remove(&path)?;
            }
            Stands::Rrd(_) => {
                self.keep_parent(&path)?;
                self.keep_bytes(parent, name);
                self.store.remove(&path)?;
                self.names_have_changed();
            }
        }
        self.forget_name(parent, name);
        Ok(())
    }

    /// Asks for the bytes of an RRD that is about to go and that programs have open.
    fn keep_bytes(&self, parent: u64, name: &[u8]) {
        let number = lock(&self.inodes).number(parent, name);
        if let Some(file) = self.open.file(number) {
            // Without a daemon, it does not go.
            self.load(number, &file).ok();
        }
    }

    /// Who has a file open whose name is gone goes on with it alone.
    fn forget_name(&self, parent: u64, name: &[u8]) {
        let number = lock(&self.inodes).remove(parent, name);
        if let Some(file) = number.and_then(|number| self.open.file(number)) {
            file.removed();
        }
    }

    /// A directory stays when its last RRD goes.
    fn keep_parent(&self, path: &[u8]) -> Result {
        self.scratch.keep_directory(directory_of(path))
    }

    pub(super) fn rename(&self, from: Place<'_>, to: Place<'_>, no_replace: bool) -> Result {
        let (from_path, to_path) = (self.path_in(from.0, from.1)?, self.new_path(to.0, to.1)?);
        let (source, target) = (self.find(&from_path)?, self.look(&to_path)?);
        if target.is_some() && no_replace {
            return Err(Errno::EXIST);
        }
        if from_path == to_path {
            return Ok(());
        }
        match (&source, &target) {
            (Stands::Directory, Some(Stands::Directory)) => self.remove_directory(to)?,
            (Stands::Directory, Some(_)) => return Err(Errno::NOTDIR),
            (_, Some(Stands::Directory)) => return Err(Errno::ISDIR),
            _ => {}
        }
        if target.is_some() {
            self.keep_bytes(to.0, to.1);
        }
        match source {
            Stands::Directory => self.rename_directory(&from_path, &to_path)?,
            Stands::Scratch(file) => self.rename_scratch(&file, &from_path, &to_path, target.as_ref())?,
            Stands::Extra(_) | Stands::Socket(_) => {
                self.rename_extra(&from_path, &to_path, target.as_ref())?
            }
            Stands::Rrd(_) => {
                self.keep_parent(&from_path)?;
                self.store.rename(&from_path, &to_path)?;
                drop(self.scratch.remove(&to_path));
                if let (Some(extra), Some(Stands::Extra(_))) = (self.extra_for(&to_path), target) {
                    extra.remove(&to_path)?;
                }
            }
        }
        self.forget_name(to.0, to.1);
        lock(&self.inodes).rename(from, to);
        self.names_have_changed();
        Ok(())
    }

    /// A file that is complete becomes an RRD by its name.
    fn rename_scratch(
        &self,
        file: &Arc<OpenFile>,
        from: &[u8],
        to: &[u8],
        target: Option<&Stands>,
    ) -> Result {
        if file.bytes() > 0 && self.extra_for(to).is_none() && !is_temporary(to) {
            file.import(&self.store, to, false)?;
            self.scratch.remove_this(from, file);
            drop(self.scratch.remove(to));
            return Ok(());
        }
        if let Some(extra) = self.extra_for(to) {
            write_extra(extra, to, &file.content())?;
            self.scratch.remove_this(from, file);
            return Ok(());
        }
        // An RRD is not replaced by what is none.
        if matches!(target, Some(Stands::Rrd(_))) {
            return Err(Errno::INVAL);
        }
        self.scratch.rename(from, to);
        Ok(())
    }

    /// A file outside of the store stays there, unless its new name is that of an RRD.
    fn rename_extra(&self, from: &[u8], to: &[u8], target: Option<&Stands>) -> Result {
        let extra = self.extra_for(from).ok_or(Errno::NOENT)?;
        if extra.owns(to) {
            if matches!(target, Some(Stands::Rrd(_))) {
                return Err(Errno::INVAL);
            }
            return extra.rename(from, to);
        }
        let file = extra.open(from, false, None)?;
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut &file, &mut bytes).map_err(|error| crate::extra::errno(&error))?;
        if !crate::meaning::is_rrd(&bytes) {
            return Err(Errno::INVAL);
        }
        self.store.import(to, &bytes, false)?;
        extra.remove(from)
    }

    /// One RRD after the other: what is done when the daemon goes away stays done.
    fn rename_directory(&self, from: &[u8], to: &[u8]) -> Result {
        if to.strip_prefix(from).is_some_and(|rest| rest.starts_with(b"/")) {
            return Err(Errno::INVAL);
        }
        for path in all_below(from, &self.store)? {
            let target = [to, &path[from.len()..]].concat();
            self.store.rename(&path, &target)?;
        }
        self.scratch.rename(from, to);
        if let Some(extra) = &self.extra
            && extra.find(from).is_some()
        {
            extra.rename(from, to)?;
        }
        self.scratch.keep_directory(to)
    }
}

fn write_extra(extra: &crate::extra::Extra, path: &[u8], bytes: &[u8]) -> Result {
    let file = extra.open(path, true, Some(0o644))?;
    let written = file.set_len(0).and_then(|()| std::io::Write::write_all(&mut &file, bytes));
    written.map_err(|error| crate::extra::errno(&error))
}
