//! Errors about files, in RRDtool's words and with the path in the tree.

use std::io;

use disk::Shortage;
use rrd_file::file::{HeaderError, OpenError};
use rrd_file::name::RrdName;
use rrd_file::tree::Tree;
use rustix::io::Errno;

use crate::engine::StoreError;

/// Converts the error of a header that could not be read.
pub fn header_error(tree: &Tree, name: &RrdName, error: HeaderError) -> StoreError {
    match error {
        HeaderError::Io(error) => io_error(tree, name, error),
        HeaderError::File(error) => StoreError::Damaged { path: display_path(tree, name), error },
    }
}

/// Whether the file at the name cannot be used, and will not be by waiting.
pub fn is_unusable(error: &StoreError) -> bool {
    matches!(error, StoreError::Damaged { .. } | StoreError::LeadsOut { .. })
}

/// The path of an RRD's file, for messages.
pub fn display_path(tree: &Tree, name: &RrdName) -> String {
    format!("{}/{name}", tree.path().display())
}

/// Converts a failed read or write of an open file.
pub fn io_error(tree: &Tree, name: &RrdName, error: io::Error) -> StoreError {
    match Shortage::of(&error) {
        Some(shortage) => StoreError::Short(shortage),
        None => StoreError::io(format!("'{}'", display_path(tree, name)), error),
    }
}

/// Converts a failed open, in RRDtool's words.
pub fn open_error(tree: &Tree, name: &RrdName, error: OpenError) -> StoreError {
    let path = display_path(tree, name);
    let error = match error {
        OpenError::NotRegular => {
            return StoreError::io("", io::Error::other(format!("'{path}' is not a regular file")));
        }
        OpenError::Locked => return StoreError::Locked,
        OpenError::Io(error) => match Shortage::of(&error) {
            Some(shortage) => return StoreError::Short(shortage),
            None => error,
        },
    };
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        _ if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            StoreError::NoSuchRrd(name.clone())
        }
        Some(Errno::LOOP | Errno::XDEV) => StoreError::LeadsOut { path },
        _ => StoreError::io(format!("opening '{path}'"), error),
    }
}
