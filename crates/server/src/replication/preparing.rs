//! Before a follower opens its store: a copy where there is none, or where the one that is there is of no use.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use protocol::frames::replication::{Ending, FollowerHello, FromPrimary, SessionKind};
use store::assemble::parts_of_store;
use store::engine::Engine;
use store::filenames;
use tokio::runtime::Runtime;

use super::FollowSettings;
use super::copying::Copying;
use super::follower::{connect, hello_of};
use super::state::now_ms;

/// How long the primary may take to answer before the follower starts without it.
const LOOK_WAIT: Duration = Duration::from_secs(5);

/// Where a copy is made, in the directory of the store.
const COPY: &str = "copying";

/// What the primary says of a store that is to follow it.
#[derive(Debug, PartialEq, Eq)]
pub enum FollowerFit {
    /// It can follow, or the primary cannot be asked now.
    Follows,
    /// It has to be copied again; what is there, the primary has too.
    Outdated,
    /// The same; but what is there, the primary does not have.
    Diverged(String),
}

/// Makes a copy of the primary's store in `directory`, if there is no store.
///
/// # Errors
/// A text for the operator.
pub fn copy_if_missing(settings: &FollowSettings, directory: &Path) -> Result<(), String> {
    // What an earlier start did not complete.
    put_in_place(directory).map_err(|error| cannot_place(directory, &error))?;
    match store_file(directory).exists() {
        true => Ok(()),
        false => copy_anew(settings, directory).map(drop),
    }
}

/// Makes a copy of the primary's store in place of the one in `directory`, which nothing has open; that one is in the directory that is
/// returned.
///
/// # Errors
/// A text for the operator: then the old store is there as before.
pub fn copy_anew(settings: &FollowSettings, directory: &Path) -> Result<Option<PathBuf>, String> {
    let primary = &settings.primary;
    tracing::info!(%primary, directory = %directory.display(), "copying the primary's store");
    let runtime = runtime()?;
    let bytes = runtime
        .block_on(copy(settings, &directory.join(COPY)))
        .map_err(|error| format!("cannot copy the store of the primary at \"{primary}\": {error}"))?;
    tracing::info!(megabytes = bytes / 1_000_000, "the primary's store is copied");
    put_in_place(directory).map_err(|error| cannot_place(directory, &error))
}

fn store_file(directory: &Path) -> PathBuf {
    directory.join(filenames::identity(Path::new("")))
}

fn cannot_place(directory: &Path, error: &io::Error) -> String {
    format!("cannot put the copy of the primary's store in its place in \"{}\": {error}", directory.display())
}

/// Puts a copy in its place, if it is complete; what is not, goes. A store that is there moves to a directory beside, which is returned;
/// other files of the operator's, such as tokens, stay. The file STORE moves last in both directions, so that after a crash at any point this goes on where
/// it was.
fn put_in_place(directory: &Path) -> io::Result<Option<PathBuf>> {
    let copy = directory.join(COPY);
    if !store_file(&copy).exists() {
        return match std::fs::remove_dir_all(&copy) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(None),
        };
    }
    let aside = directory.join(format!("before-copy-{}", now_ms() / 1000));
    let has_old = store_file(directory).exists();
    if has_old {
        std::fs::create_dir_all(&aside)?;
        move_store(directory, &aside)?;
    }
    move_store(&copy, directory)?;
    std::fs::remove_dir_all(&copy)?;
    Ok(has_old.then_some(aside))
}

/// Moves the parts of a store to another directory of the same file system.
fn move_store(from: &Path, to: &Path) -> io::Result<()> {
    let mut parts = parts_of_store(from)?;
    parts.sort_by_key(|part| *part == store_file(from));
    for part in parts {
        std::fs::rename(&part, to.join(part.file_name().unwrap_or_default()))?;
    }
    std::fs::File::open(to)?.sync_all()
}

fn runtime() -> Result<Runtime, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("cannot start: {error}"))
}

async fn copy(settings: &FollowSettings, directory: &Path) -> io::Result<u64> {
    let (kind, name) = (SessionKind::Copy, settings.name.clone().into_bytes());
    let hello = FollowerHello { kind, epoch: 0, store: [0; 16], name, ends: Vec::new() };
    let mut connection = connect(settings, &hello).await?;
    let mut copying = connection
        .next(|frame| match frame {
            FromPrimary::Copy(identity) => Copying::begin(directory, identity),
            FromPrimary::Ended(_, text) => Err(io::Error::other(String::from_utf8_lossy(text).into_owned())),
            _ => Err(io::Error::other("its first frame is not COPY")),
        })
        .await?;
    loop {
        let taken = connection.next(|frame| match frame {
            FromPrimary::Ended(_, text) => Err(io::Error::other(String::from_utf8_lossy(text).into_owned())),
            frame => copying.take(&frame),
        });
        match taken.await {
            Ok(false) => {}
            Ok(true) => return copying.complete(),
            Err(error) => {
                copying.discard();
                return Err(error);
            }
        }
    }
}

/// Asks the primary whether the store of `engine` can follow it.
///
/// # Errors
/// A text for the operator: this cannot be mended by a copy.
pub fn look(settings: &FollowSettings, engine: &Arc<dyn Engine>) -> Result<FollowerFit, String> {
    let Some(replica) = engine.replica() else {
        return Err(
            "[follow]: only a store in stripes can follow another one; remove layout = \"files\"".to_string()
        );
    };
    let hello = hello_of(replica, settings).map_err(|error| error.to_string())?;
    let asked = async {
        let mut connection = connect(settings, &hello).await?;
        connection
            .next(|frame| match frame {
                FromPrimary::Ended(ending, text) => {
                    Ok(Some((ending, String::from_utf8_lossy(text).into_owned())))
                }
                _ => Ok(None),
            })
            .await
    };
    let answer = runtime()?.block_on(async { tokio::time::timeout(LOOK_WAIT, asked).await });
    match answer {
        Ok(Ok(Some((Ending::Gone, _)))) => Ok(FollowerFit::Outdated),
        Ok(Ok(Some((Ending::Diverged, text)))) => Ok(FollowerFit::Diverged(text)),
        Ok(Ok(Some((Ending::OtherStore, text)))) => Err(format!(
            "[follow] primary = \"{}\": {text}; give store = an empty directory for a copy of it",
            settings.primary
        )),
        // It is looked after while it runs.
        _ => Ok(FollowerFit::Follows),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with a store in it, of which each file says whose it is.
    fn make_store(directory: &Path, whose: &str) {
        std::fs::create_dir_all(directory.join("shard-000")).unwrap();
        for name in ["STORE", "HISTORY", "shard-000/manifest"] {
            std::fs::write(directory.join(name), whose).unwrap();
        }
    }

    fn whose(directory: &Path) -> Vec<String> {
        let read = |name| std::fs::read_to_string(directory.join(name)).unwrap_or_default();
        ["STORE", "HISTORY", "shard-000/manifest"].map(read).to_vec()
    }

    #[test]
    fn a_copy_takes_its_place_from_wherever_it_was_interrupted() {
        // Each order of the moves in which a crash can leave it, by how many parts of old and new have moved.
        for moved in 0..=6 {
            let place = tempfile::tempdir().unwrap();
            let (directory, copy) = (place.path(), place.path().join(COPY));
            let aside = directory.join("before-copy-1");
            make_store(directory, "old");
            make_store(&copy, "new");
            std::fs::write(directory.join("tokens"), "mine").unwrap();
            std::fs::create_dir(&aside).unwrap();
            let moves =
                ["HISTORY", "shard-000", "STORE"].map(|name| (directory.join(name), aside.join(name)));
            let back = ["HISTORY", "shard-000", "STORE"].map(|name| (copy.join(name), directory.join(name)));
            for (from, to) in moves.iter().chain(&back).take(moved) {
                std::fs::rename(from, to).unwrap();
            }
            put_in_place(directory).unwrap();
            assert_eq!(whose(directory), ["new"; 3], "{moved} moves");
            assert_eq!(std::fs::read_to_string(directory.join("tokens")).unwrap(), "mine");
            assert!(!copy.exists());
            // Nothing of the old one is gone.
            let kept = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
            let kept = kept.filter(|path| path.to_string_lossy().contains("before-copy-"));
            let kept = kept.flat_map(|path| whose(&path)).filter(|text| text == "old").count();
            assert_eq!(kept, 3, "{moved} moves");
        }
    }

    #[test]
    fn half_a_copy_goes_and_the_store_stays() {
        let place = tempfile::tempdir().unwrap();
        let copy = place.path().join(COPY);
        make_store(place.path(), "old");
        make_store(&copy, "new");
        std::fs::remove_file(copy.join("STORE")).unwrap();
        assert_eq!(put_in_place(place.path()).unwrap(), None);
        assert!(!copy.exists());
        assert_eq!(whose(place.path()), ["old"; 3]);
    }
}
