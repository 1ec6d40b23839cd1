//! Before a follower opens its store: a copy where there is none, or where the one that is there is of no use.

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
    if directory.join(filenames::identity(Path::new(""))).exists() {
        return Ok(());
    }
    let primary = &settings.primary;
    tracing::info!(%primary, directory = %directory.display(), "there is no store yet: copying the primary's");
    let runtime = runtime()?;
    let bytes = runtime
        .block_on(copy(settings, directory))
        .map_err(|error| format!("cannot copy the store of the primary at \"{primary}\": {error}"))?;
    tracing::info!(megabytes = bytes / 1_000_000, "the primary's store is copied");
    Ok(())
}

fn runtime() -> Result<Runtime, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("cannot start: {error}"))
}

async fn copy(settings: &FollowSettings, directory: &Path) -> std::io::Result<u64> {
    let (kind, name) = (SessionKind::Copy, settings.name.clone().into_bytes());
    let hello = FollowerHello { kind, epoch: 0, store: [0; 16], name, ends: Vec::new() };
    let mut connection = connect(settings, &hello).await?;
    let mut copying = connection
        .next(|frame| match frame {
            FromPrimary::Copy(identity) => Copying::begin(directory, identity),
            FromPrimary::Ended(_, text) => {
                Err(std::io::Error::other(String::from_utf8_lossy(text).into_owned()))
            }
            _ => Err(std::io::Error::other("its first frame is not COPY")),
        })
        .await?;
    loop {
        let taken = connection.next(|frame| match frame {
            FromPrimary::Ended(_, text) => {
                Err(std::io::Error::other(String::from_utf8_lossy(text).into_owned()))
            }
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

/// Takes a store out of its directory that is to be copied again; one with what the primary does not have stays in a directory beside, which
/// is returned. Other files of the operator's, such as tokens, stay where they are.
///
/// # Errors
/// A text for the operator.
pub fn set_aside(directory: &Path, fit: &FollowerFit) -> Result<Option<PathBuf>, String> {
    let cannot = |error: std::io::Error| {
        format!("cannot set the old store in \"{}\" aside: {error}", directory.display())
    };
    let parts = parts_of_store(directory).map_err(cannot)?;
    let FollowerFit::Diverged(_) = fit else {
        for part in parts {
            let removed =
                if part.is_dir() { std::fs::remove_dir_all(part) } else { std::fs::remove_file(part) };
            removed.map_err(cannot)?;
        }
        return Ok(None);
    };
    let aside = directory.join(format!("diverged-{}", now_ms() / 1000));
    std::fs::create_dir(&aside).map_err(cannot)?;
    for part in parts {
        let name = part.file_name().unwrap_or_default();
        std::fs::rename(&part, aside.join(name)).map_err(cannot)?;
    }
    Ok(Some(aside))
}
