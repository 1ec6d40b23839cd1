//! A server that was promoted tells the one that it followed before, until that one knows that it is no longer the primary.

use std::time::Duration;

use protocol::frames::replication::{Ending, FollowerHello, FromPrimary, SessionKind};
use store::replication::Replica;
use tokio::sync::watch;

use super::FollowSettings;
use super::follower::connect;
use crate::service::stopped;

/// How often the old primary is tried: it may be gone for good.
const TRY_EVERY: Duration = Duration::from_secs(5);
/// How long it may take to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// Tells it, until it knows or `stop` becomes true.
pub(super) async fn tell(settings: &FollowSettings, replica: &dyn Replica, mut stop: watch::Receiver<bool>) {
    let (epoch, store) = (replica.history().epoch(), replica.identity().id);
    let hello = FollowerHello {
        kind: SessionKind::Fence,
        epoch,
        store,
        name: settings.name.clone().into_bytes(),
        ends: Vec::new(),
    };
    loop {
        let told = tokio::select! {
            biased;
            () = stopped(&mut stop) => return,
            told = tokio::time::timeout(ANSWER_WAIT, tell_once(settings, &hello)) => told,
        };
        if let Ok(Ok(text)) = told {
            tracing::info!(
                primary = settings.primary,
                "the former primary takes no changes any more: {text}"
            );
            return;
        }
        tokio::select! {
            biased;
            () = stopped(&mut stop) => return,
            () = tokio::time::sleep(TRY_EVERY) => {}
        }
    }
}

/// What the old primary answers that it knows now, or knew before.
async fn tell_once(settings: &FollowSettings, hello: &FollowerHello) -> std::io::Result<String> {
    let mut connection = connect(settings, hello).await?;
    let answer = connection.next(|frame| match frame {
        FromPrimary::Ended(Ending::Fenced | Ending::NotPrimary | Ending::Other, text) => {
            Ok(String::from_utf8_lossy(text).into_owned())
        }
        FromPrimary::Ended(_, text) => Err(std::io::Error::other(String::from_utf8_lossy(text).into_owned())),
        _ => Err(std::io::Error::other("its answer is none to a later epoch")),
    });
    answer.await
}
