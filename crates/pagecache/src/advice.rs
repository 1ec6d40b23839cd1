//! Advice to the kernel about files, and what became of their pages.

use std::io;
use std::path::Path;

use rustix::fs::Advice;

use crate::incore::{Question, Share, look_at, open};
use crate::parts::HeaderReader;

/// What the kernel is told about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAdvice {
    /// Its pages are not needed: they are dropped, once they are written.
    DontNeed,
    /// It is needed soon: it is read.
    WillNeed,
    /// For an open file: no readahead.
    Random,
    /// For an open file: twice the readahead.
    Sequential,
    /// For an open file: as without advice.
    Normal,
}

impl FileAdvice {
    /// Whether the advice ends with the descriptor it was given for, so that other programs never notice.
    pub fn ends_with_descriptor(self) -> bool {
        matches!(self, FileAdvice::Random | FileAdvice::Sequential | FileAdvice::Normal)
    }
}

/// What became of a file's pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advised {
    /// Whether the kernel told what is in the cache; if not, `before` and `after` are only how many pages there are.
    pub is_known: bool,
    /// Before.
    pub before: Share,
    /// Of them not yet written, which were synced first.
    pub synced: u64,
    /// After.
    pub after: Share,
}

/// Gives advice about a file. Changed pages cannot be dropped, so that for [`FileAdvice::DontNeed`] the file is synced first, unless
/// the kernel says that it has none.
///
/// # Errors
/// When the file cannot be opened, is no regular file, cannot be synced, or the kernel does not answer.
pub fn advise(path: &Path, advice: FileAdvice) -> io::Result<Advised> {
    let file = open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut headers = HeaderReader::default();
    let mut look = || look_at(&file, metadata.len(), Question::default(), &mut headers);
    let before = look()?;
    let mut advised = Advised { is_known: before.is_known, before: before.share, ..Advised::default() };
    let may_be_changed = !before.is_known || before.share.cached > 0 && before.dirty != Some(0);
    if advice == FileAdvice::DontNeed && may_be_changed {
        rustix::fs::fdatasync(&file)?;
        advised.synced = before.dirty.unwrap_or(before.share.cached);
    }
    let kernels = match advice {
        FileAdvice::DontNeed => Advice::DontNeed,
        FileAdvice::WillNeed => Advice::WillNeed,
        FileAdvice::Random => Advice::Random,
        FileAdvice::Sequential => Advice::Sequential,
        FileAdvice::Normal => Advice::Normal,
    };
    rustix::fs::fadvise(&file, 0, None, kernels)?;
    advised.after = look()?.share;
    Ok(advised)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dirty_pages_are_synced_and_dropped() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("x");
        std::fs::write(&path, vec![1; 20_000]).unwrap();
        let advised = advise(&path, FileAdvice::DontNeed).unwrap();
        assert_eq!(advised.before, Share { cached: 5, pages: 5 });
        if advised.after.cached > 0 {
            return testkit::skip("the file system of the sources keeps all pages (tmpfs)");
        }
        assert!(advised.synced > 0, "{advised:?}");
        assert_eq!(advise(&path, FileAdvice::Random).unwrap().after.cached, 0);
        advise(&path, FileAdvice::WillNeed).unwrap();
        // The kernel reads it in the background.
        testkit::wait_until("the file is read", || {
            advise(&path, FileAdvice::Normal).unwrap().after.cached == 5
        });
        assert_eq!(advise(&path, FileAdvice::DontNeed).unwrap().synced, 0);
        assert!(advise(directory.path(), FileAdvice::Normal).is_err());
    }
}
