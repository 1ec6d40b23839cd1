//! One session of a follower, on the primary's side.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use protocol::frames;
use protocol::frames::replication::{
    Ending, FOLLOWER_BODY_BYTES_MAX, FollowerHello, FromFollower, FromPrimary, SessionKind, VERSION,
    push_from_primary,
};
use store::engine::StoreError;
use store::replication::{Comparison, LogEnd, Position, Replica, Role};
use store::tail::{LogTail, Reach};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};

use super::kept::KeptLogs;
use super::primary::FollowerServer;
use super::sending::{LogSender, Start};
use super::state::SeenFollower;
use super::{store_end, store_position};
use crate::access::Principal;
use crate::access::audit::Event;
use crate::frames_port::FramesServer;
use crate::frames_wire::FramesWire;
use crate::limits::{FOLLOWER_HELLO_WAIT, FOLLOWER_QUEUE, FOLLOWER_SILENCE_MAX};
use crate::peer::Peer;
use crate::service::stopped;

/// Why a session ends, for the follower.
pub(super) type Refused = (Ending, String);

/// Serves a follower until it leaves or `stop` becomes true.
///
/// # Errors
/// Errors of the socket.
pub(super) async fn run(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    peer: Peer,
    server: &FollowerServer,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut wire = FramesWire::new(stream, peer, FOLLOWER_SILENCE_MAX);
    let advice = "a follower must say who it is here: token_file in its [follow]";
    let greeted = async {
        let agreed = wire.agree(&server.service, &server.anonymous, &[VERSION], advice).await?;
        let Some((_, who)) = agreed else { return Ok(None) };
        let hello = wire.first_frame(FOLLOWER_BODY_BYTES_MAX, FromFollower::decode).await?;
        io::Result::Ok(hello.map(|hello| (hello, who)))
    };
    let greeted = server.places.greet(FollowerServer::CLIENTS, FOLLOWER_HELLO_WAIT, greeted).await?;
    let Some((_place, (Ok(FromFollower::Hello(hello)), who))) = greeted else { return Ok(()) };
    let name = String::from_utf8_lossy(&hello.name).into_owned();
    let begun = match who.rights.operate {
        true => tokio::task::block_in_place(|| begin(server, &hello, &name)),
        false => {
            server.service.access.refused(&who.name, "to follow this server");
            Err((Ending::Permission, format!("the token of \"{}\" may not operate this server", who.name)))
        }
    };
    let begun = match begun {
        Ok(begun) => begun,
        Err((ending, text)) => {
            tracing::warn!(follower = name, "no session with a follower: {text}");
            push_from_primary(&mut wire.output, &FromPrimary::Ended(ending, text.as_bytes()));
            return wire.flush().await;
        }
    };
    let event = Event { who: &who.name, what: "follow", name: None, detail: Some(&name) };
    server.service.access.audit.record(&event);
    tracing::info!(follower = name, copy = matches!(begun.start, Start::Copy), "a follower has connected");
    let ended = serve(wire, server, begun, (&name, &who), stop).await;
    tracing::info!(follower = name, "a follower has left");
    ended
}

/// A session that can begin.
struct Begun {
    tail: LogTail,
    start: Start,
    kept: Arc<KeptLogs>,
    session: u64,
}

/// Compares the logs, and decides from where on the follower gets them.
fn begin(server: &FollowerServer, hello: &FollowerHello, name: &str) -> Result<Begun, Refused> {
    let other = |error: &dyn std::fmt::Display| (Ending::Other, error.to_string());
    let engine = &server.service.engine;
    let replica = engine.replica().ok_or_else(|| other(&"the store of this server has no log"))?;
    if hello.kind != SessionKind::Copy && hello.store != replica.identity().id {
        return Err((Ending::OtherStore, "the store of this server is another one".to_string()));
    }
    let epoch = replica.history().epoch();
    if hello.kind != SessionKind::Copy && hello.epoch > epoch {
        replica.fence(hello.epoch).map_err(|error| other(&error))?;
        tracing::error!(
            by = name,
            epoch = hello.epoch,
            "another server was made the primary in place of this one, which takes no changes from now on"
        );
        let text = format!("this server knows now that epoch {} has begun", hello.epoch);
        return Err((Ending::Fenced, text));
    }
    if hello.kind == SessionKind::Fence {
        return Err(other(&format!("this server knows epoch {epoch} of the store")));
    }
    if replica.role() != Role::Primary {
        return Err((
            Ending::NotPrimary,
            "this server takes no changes itself, and is not to be followed".into(),
        ));
    }
    // Before the comparison: what is there then stays.
    let tail = engine.tail(Reach::Committed, server.log_bytes).map_err(|error| other(&error))?;
    let start = match hello.kind {
        SessionKind::Follow => Start::Log(compare(replica, hello)?),
        _ => Start::Copy,
    };
    let kept = server.kept.clone().ok_or_else(|| other(&"the store of this server has no log"))?;
    // From here on this tail keeps the log.
    let session = kept.begin(name, start.positions());
    Ok(Begun { tail, start, kept, session })
}

/// Where the follower's logs end, if this server's go on there.
fn compare(replica: &dyn Replica, hello: &FollowerHello) -> Result<Vec<Position>, Refused> {
    let ends: Vec<LogEnd> = hello.ends.iter().map(store_end).collect();
    if ends.len() != replica.identity().shard_count as usize {
        return Err((Ending::Other, "the follower's store has another number of shards".to_string()));
    }
    let failed = |error: StoreError| (Ending::Other, error.to_string());
    match replica.compare(hello.epoch, &ends).map_err(failed)? {
        Comparison::Beginning => Ok(ends.iter().map(|end| end.position).collect()),
        Comparison::Diverged { shard, at } => {
            let theirs = ends[shard].position;
            Err((
                Ending::Diverged,
                format!(
                    "the log of shard {shard} of \"{}\" ends at {theirs} and has, from {at} on at the latest, what this server does not have",
                    String::from_utf8_lossy(&hello.name)
                ),
            ))
        }
        Comparison::Gone => Err((
            Ending::Gone,
            "this server no longer has the log from where the follower's ends: it has to begin with a copy"
                .to_string(),
        )),
    }
}

async fn serve(
    wire: FramesWire<impl AsyncRead + AsyncWrite + Unpin>,
    server: &FollowerServer,
    begun: Begun,
    (name, who): (&str, &Principal),
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let FramesWire { stream, input, .. } = wire;
    let (mut read, mut write) = tokio::io::split(stream);
    let (frames, mut queue) = mpsc::channel::<Vec<u8>>(FOLLOWER_QUEUE);
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let sender = LogSender {
        engine: Arc::clone(&server.service.engine),
        tail: begun.tail,
        acknowledged: Arc::clone(&acknowledged),
        frames,
        name: name.to_string(),
    };
    let has = begun.start.positions().to_vec();
    let thread =
        std::thread::Builder::new().name("follower".into()).spawn(move || sender.run(begun.start))?;
    server.state.note_follower(name, SeenFollower { connected: true, has });
    let writing = async {
        while let Some(frame) = queue.recv().await {
            let sent = async {
                write.write_all(&frame).await?;
                write.flush().await
            };
            tokio::time::timeout(FOLLOWER_SILENCE_MAX, sent).await??;
            server.state.sent_bytes.fetch_add(frame.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    };
    let of = (name, begun.session);
    let reading = take_acknowledgements(&mut read, input, server, (of, &begun.kept), &acknowledged);
    let ended = tokio::select! {
        biased;
        () = stopped(&mut stop) => Ok(()),
        () = server.service.access.no_longer_knows(who) => {
            tracing::warn!(follower = name, token = who.name, "the token of a follower is not known any more, or has ended");
            Ok(())
        }
        ended = reading => ended,
        ended = writing => ended,
    };
    // The thread ends when it cannot send any more.
    drop(queue);
    if let Ok(Ok(tail)) = tokio::task::spawn_blocking(move || thread.join()).await {
        tokio::task::block_in_place(|| begun.kept.left(of, tail));
    }
    if let Some(seen) = server.state.followers().get_mut(name) {
        seen.connected = false;
    }
    ended
}

/// Reads what a follower has, until it leaves.
async fn take_acknowledgements(
    read: &mut (impl AsyncRead + Unpin),
    mut input: Vec<u8>,
    server: &FollowerServer,
    (of, kept): ((&str, u64), &Arc<KeptLogs>),
    acknowledged: &Mutex<Vec<Position>>,
) -> io::Result<()> {
    let Some(replica) = server.service.engine.replica() else { return Ok(()) };
    let begun_at = replica.moment();
    let mut has_acknowledged = false;
    loop {
        while let Some((frame, used)) =
            frames::scan(&input, FOLLOWER_BODY_BYTES_MAX).map_err(io::Error::other)?
        {
            let FromFollower::Acknowledged(positions) =
                FromFollower::decode(frame).map_err(io::Error::other)?
            else {
                return Err(io::Error::other("a second HELLO"));
            };
            let positions: Vec<Position> = positions.into_iter().map(store_position).collect();
            if positions.iter().zip(replica.moment()).any(|(has, end)| *has > end) {
                return Err(io::Error::other("it acknowledges what there is not"));
            }
            has_acknowledged = true;
            note_acknowledged(replica, &positions, &begun_at);
            server.state.note_follower(of.0, SeenFollower { connected: true, has: positions.clone() });
            if kept.acknowledged(of, &positions) {
                let kept = Arc::clone(kept);
                tokio::task::spawn_blocking(move || kept.save());
            }
            *acknowledged.lock().unwrap_or_else(PoisonError::into_inner) = positions;
            input.drain(..used);
        }
        let reading = read.read_buf(&mut input);
        // One that takes a copy has nothing to say until it has it; that it reads, the writing side sees.
        let count = match has_acknowledged {
            true => tokio::time::timeout(FOLLOWER_SILENCE_MAX, reading).await??,
            false => reading.await?,
        };
        if count == 0 {
            return Ok(());
        }
    }
}

/// Gives the answers that have waited for a follower to have this.
fn note_acknowledged(replica: &dyn Replica, positions: &[Position], begun_at: &[Position]) {
    for (shard, position) in positions.iter().enumerate() {
        replica.acknowledged(shard, *position);
    }
    let has_all =
        positions.len() == begun_at.len() && positions.iter().zip(begun_at).all(|(has, end)| has >= end);
    if has_all
        && replica.answers_alone()
        && let Err(error) = tokio::task::block_in_place(|| replica.has_follower())
    {
        tracing::warn!(%error, "cannot record that there is a follower again: changes are answered without it");
    }
}
