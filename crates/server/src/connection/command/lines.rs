//! Answers that are a status line and many others: they are made as their client reads, of what was collected before.

use protocol::rrdcached::reply;
use store::engine::{Engine, Hold, StoreError};

use super::rest::Rest;
use crate::budget::Share;
use crate::connection::refusal::Refusal;
use crate::service::Service;

/// Bytes of lines that are written at once.
const PIECE_BYTES: usize = 4 * 1024;

/// Lines with the status line before them, which says how many they are.
#[derive(Debug)]
pub struct Lines {
    status: &'static [u8],
    lines: Vec<Vec<u8>>,
    next: usize,
    /// What the lines take of the memory for clients.
    _share: Share,
}

impl Lines {
    /// `lines`, which hold `share`.
    pub fn new(status: &'static [u8], lines: Vec<Vec<u8>>, share: Share) -> Box<Self> {
        Box::new(Lines { status, lines, next: 0, _share: share })
    }
}

impl Rest for Lines {
    fn push_piece(&mut self, _: &dyn Engine, out: &mut Vec<u8>) -> Result<bool, StoreError> {
        if self.next == 0 {
            reply::push_status(out, self.lines.len() as i64, self.status);
        }
        let most = out.len() + PIECE_BYTES;
        while let Some(line) = self.lines.get(self.next)
            && out.len() < most
        {
            out.extend_from_slice(line);
            out.push(b'\n');
            self.next += 1;
        }
        Ok(self.next < self.lines.len())
    }

    fn restart(&mut self) {
        self.next = 0;
    }
}

/// Collects what `collect` returns, within the memory for clients.
///
/// # Errors
/// When there is not enough of it, in our words; else the error of `collect`, as the `other` refusal.
pub fn collect<T>(
    service: &Service,
    collect: impl FnOnce(Hold<'_>) -> Result<T, StoreError>,
    other: impl FnOnce(&StoreError) -> Result<T, Refusal>,
) -> Result<(T, Share), Refusal> {
    let (mut share, mut wanted) = (service.memory.share(), None);
    let collected = collect(&mut |bytes| {
        let held = share.try_grow(bytes);
        if !held {
            wanted = Some(share.bytes().saturating_add(bytes));
        }
        held
    });
    match (collected, wanted) {
        (Ok(found), _) => Ok((found, share)),
        (Err(_), Some(bytes)) => Err(Refusal::no_memory("this answer", bytes, &share)),
        (Err(error), None) => other(&error).map(|found| (found, share)),
    }
}
