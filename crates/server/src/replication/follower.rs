//! The follower's side: a session with the primary, whose log is applied as it comes.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use protocol::frames::replication::{
    Ending, FollowerHello, FromPrimary, PRIMARY_BODY_BYTES_MAX, SessionKind, VERSION, push_acknowledged,
    push_hello,
};
use protocol::frames::{self, Frame};
use store::engine::{Engine, StoreError};
use store::replication::{History, Position, Replica, Role, known_epoch};
use tokio::io::AsyncReadExt;
use tokio::sync::{mpsc, watch};

use super::chunks::{Chunk, Chunks, Misplaced};
use super::state::ReplicationState;
use super::{FollowSettings, store_position, wire_end, wire_position};
use crate::agent::wire::{self, ReadHalf, WriteHalf};
use crate::limits::READ_BYTES;
use crate::service::stopped;

/// How long to wait for a connection, and for its first answer.
const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// A primary that is silent for longer is gone; it tells ten times a second that nothing has happened.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// After so long without an answer of the other server, one that was promoted is the primary again.
const ALONE_AFTER: Duration = Duration::from_secs(10);
/// How often a follower says what it has when nothing happens.
const ALIVE_EVERY: Duration = Duration::from_secs(5);
/// The wait before a connection is tried again: first, and at most.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Why a session has ended.
#[derive(Debug)]
pub(super) enum End {
    /// The connection is lost.
    Lost(io::Error),
    /// The primary says so.
    Told(Ending, String),
    /// This store takes no more of it.
    Store(StoreError),
    /// The daemon stops, or this server follows no more.
    Stopped,
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        End::Lost(error)
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Lost(error) => write!(f, "{error}"),
            End::Told(_, text) => f.write_str(text),
            End::Store(error) => write!(f, "{error}"),
            End::Stopped => f.write_str("the server stops"),
        }
    }
}

/// What follows a primary.
pub struct Follower {
    /// Whom, and how.
    pub settings: FollowSettings,
    /// The store.
    pub engine: Arc<dyn Engine>,
    /// What is told of it.
    pub state: Arc<ReplicationState>,
}

impl Follower {
    /// Follows until this server is promoted or `stop` becomes true. The error is for the operator: what only a start can mend, because the
    /// store has to be copied again.
    ///
    /// # Errors
    /// None of the socket.
    pub async fn run(self, mut stop: watch::Receiver<bool>) -> io::Result<()> {
        let mut wait = RETRY_FIRST;
        let (mut complaint, started) = (String::new(), Instant::now());
        loop {
            let begun = Instant::now();
            let end = self.session(&mut stop).await;
            self.state.following.connected.store(false, Ordering::Relaxed);
            if matches!(end, End::Stopped) || self.state.role() != Role::Follower {
                return Ok(());
            }
            if begun.elapsed() > RETRY_MAX {
                (wait, complaint) = (RETRY_FIRST, String::new());
            }
            if self.resumes(&end, started) {
                return Ok(());
            }
            let mut text = end.to_string();
            if let End::Told(Ending::Gone | Ending::Diverged, _) = end {
                text += "; when this daemon is started the next time, it begins with a new copy";
                wait = RETRY_MAX;
            }
            self.state.following.failed(&text);
            if text != complaint {
                tracing::warn!(primary = self.settings.primary, "no session with the primary: {text}");
                complaint = text;
            }
            tokio::select! {
                biased;
                () = stopped(&mut stop) => return Ok(()),
                () = tokio::time::sleep(wait) => {}
            }
            wait = (wait * 2).min(RETRY_MAX);
        }
    }

    /// Whether this server, which was the primary when it last ran, is it again: because the other one is not, or because this one was
    /// promoted and the other one cannot be asked. A server that was never promoted has to ask, because the other one may have been.
    fn resumes(&self, end: &End, started: Instant) -> bool {
        let Some(replica) = self.engine.replica() else { return false };
        let history = replica.history();
        let is_alone = match end {
            End::Told(Ending::NotPrimary | Ending::Fenced, _) => true,
            End::Lost(_) => history.epoch() > 0 && started.elapsed() >= ALONE_AFTER,
            _ => false,
        };
        if history.role != Role::Primary || !is_alone {
            return false;
        }
        match tokio::task::block_in_place(|| self.state.resume()) {
            Ok(()) => true,
            Err(error) => {
                tracing::error!(%error, "cannot take changes again");
                false
            }
        }
    }

    async fn session(&self, stop: &mut watch::Receiver<bool>) -> End {
        let Some(replica) = self.engine.replica() else { return End::Stopped };
        // What the last session has given is in the log then.
        let hello = || self.engine.sync().and_then(|()| hello_of(replica, &self.settings));
        let hello = match tokio::task::block_in_place(hello) {
            Ok(hello) => hello,
            Err(error) => return End::Store(error),
        };
        let connected = tokio::select! {
            biased;
            () = stopped(stop) => return End::Stopped,
            connected = tokio::time::timeout(CONNECT_WAIT, connect(&self.settings, &hello)) => connected,
        };
        let connection = match connected {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return End::Lost(error),
            Err(_) => return End::Lost(io::ErrorKind::TimedOut.into()),
        };
        let mut session = Session::new(self, connection);
        let ended = tokio::select! {
            biased;
            () = stopped(stop) => return End::Stopped,
            ended = session.serve() => ended,
        };
        match ended {
            Ok(()) => End::Lost(io::ErrorKind::UnexpectedEof.into()),
            Err(end) => end,
        }
    }
}

/// What this server says first.
pub(super) fn hello_of(
    replica: &dyn Replica,
    settings: &FollowSettings,
) -> Result<FollowerHello, StoreError> {
    let ends = replica.ends()?;
    let (epoch, store) = (known_epoch(&replica.history(), &ends), replica.identity().id);
    let ends = ends.iter().map(wire_end).collect();
    Ok(FollowerHello {
        kind: SessionKind::Follow,
        epoch,
        store,
        name: settings.name.clone().into_bytes(),
        ends,
    })
}

/// A connection on which frames are agreed, and HELLO is sent.
pub(super) struct Connection {
    read: ReadHalf,
    write: WriteHalf,
    input: Vec<u8>,
}

/// Connects to the primary.
pub(super) async fn connect(settings: &FollowSettings, hello: &FollowerHello) -> io::Result<Connection> {
    let (read, mut write) = wire::connect(&settings.primary, &settings.identity).await?;
    let mut out = format!("{}\n", frames::negotiation(VERSION)).into_bytes();
    push_hello(&mut out, hello);
    wire::send(&mut write, &out).await?;
    let mut connection = Connection { read, write, input: Vec::new() };
    let line = loop {
        if let Some(end) = memchr::memchr(b'\n', &connection.input) {
            break connection.input.drain(..=end).collect::<Vec<u8>>();
        }
        connection.fill().await?;
    };
    let line = String::from_utf8_lossy(line.trim_ascii()).into_owned();
    match line == frames::agreement(VERSION) {
        true => Ok(connection),
        false => Err(io::Error::other(format!("it takes no followers: {line}"))),
    }
}

impl Connection {
    /// Reads more; fails at the end.
    async fn fill(&mut self) -> io::Result<()> {
        self.input.reserve(READ_BYTES);
        match tokio::time::timeout(SILENCE_MAX, self.read.read_buf(&mut self.input)).await?? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Waits for the next frame, and has it taken.
    pub(super) async fn next<T>(
        &mut self,
        take: impl FnOnce(FromPrimary<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            if let Some((frame, used)) = scan(&self.input)? {
                let taken = take(FromPrimary::decode(frame).map_err(io::Error::other)?);
                self.input.drain(..used);
                return taken;
            }
            self.fill().await?;
        }
    }
}

fn scan(input: &[u8]) -> io::Result<Option<(Frame<'_>, usize)>> {
    frames::scan(input, PRIMARY_BODY_BYTES_MAX).map_err(io::Error::other)
}

/// What became of some records: the shard, and where its log ends now.
type Applied = (usize, Result<Position, StoreError>);

/// One connection, and how far its records are applied.
struct Session<'a> {
    follower: &'a Follower,
    connection: Connection,
    chunks: Chunks,
    /// Where the log of each shard ends when all that it was given is applied, and where it ends now.
    given: Vec<Position>,
    applied: Vec<Position>,
    /// Times of the primary, with what was given up to then.
    moments: VecDeque<(i64, Vec<Position>)>,
    answers: mpsc::UnboundedReceiver<Applied>,
    answer: mpsc::UnboundedSender<Applied>,
    /// When the primary was last told what the log has.
    said: Instant,
}

impl<'a> Session<'a> {
    fn new(follower: &'a Follower, connection: Connection) -> Self {
        let (answer, answers) = mpsc::unbounded_channel();
        let (chunks, given, applied, moments) = Default::default();
        let said = Instant::now();
        Session { follower, connection, chunks, given, applied, moments, answers, answer, said }
    }

    fn replica(&self) -> Result<&'a dyn Replica, End> {
        self.follower.engine.replica().ok_or(End::Stopped)
    }

    async fn serve(&mut self) -> Result<(), End> {
        let history = self.connection.next(|frame| match frame {
            FromPrimary::Welcome(text) => Ok(Ok(String::from_utf8_lossy(text).into_owned())),
            FromPrimary::Ended(ending, text) => Ok(Err((ending, String::from_utf8_lossy(text).into_owned()))),
            _ => Err(io::Error::other("the primary's first frame is not WELCOME")),
        });
        let history = history.await?.map_err(|(ending, text)| End::Told(ending, text))?;
        let history = History::decode(&history).map_err(io::Error::other)?;
        let replica = self.replica()?;
        tokio::task::block_in_place(|| replica.follow(&history)).map_err(End::Store)?;
        self.given = replica.moment();
        self.applied = self.given.clone();
        self.chunks = Chunks::new(self.given.len());
        let following = &self.follower.state.following;
        following.connected.store(true, Ordering::Relaxed);
        following.sessions.fetch_add(1, Ordering::Relaxed);
        tracing::info!(
            primary = self.follower.settings.primary,
            epoch = history.epoch(),
            "following the primary"
        );
        self.acknowledge().await?;
        loop {
            self.take_frames().await?;
            if self.said.elapsed() >= ALIVE_EVERY {
                self.acknowledge().await?;
            }
            if replica.role() != Role::Follower {
                return Err(End::Stopped);
            }
            tokio::select! {
                biased;
                Some(answer) = self.answers.recv() => {
                    self.note_applied(answer)?;
                    while let Ok(answer) = self.answers.try_recv() {
                        self.note_applied(answer)?;
                    }
                    self.acknowledge().await?;
                }
                filled = self.connection.fill() => filled?,
            }
        }
    }

    /// Takes the frames that have come whole.
    async fn take_frames(&mut self) -> Result<(), End> {
        let input = std::mem::take(&mut self.connection.input);
        let mut at = 0;
        while let Some((frame, used)) = scan(&input[at..])? {
            at += used;
            match FromPrimary::decode(frame).map_err(io::Error::other)? {
                FromPrimary::Records { shard, from, bytes } => {
                    self.take_records(usize::from(shard), store_position(from), bytes)?;
                }
                FromPrimary::Moment(time) => self.take_moment(time).await?,
                FromPrimary::Ended(ending, text) => {
                    return Err(End::Told(ending, String::from_utf8_lossy(text).into_owned()));
                }
                _ => return Err(io::Error::other("the primary sent a frame out of place").into()),
            }
        }
        self.connection.input = input;
        self.connection.input.drain(..at);
        // A long record need not keep its memory for the short ones.
        if self.connection.input.is_empty() && self.connection.input.capacity() > 4 << 20 {
            self.connection.input = Vec::new();
        }
        Ok(())
    }

    fn take_records(&mut self, shard: usize, from: Position, bytes: &[u8]) -> Result<(), End> {
        let taken = self.chunks.take(shard, from, bytes);
        let misplaced = |Misplaced| io::Error::other("the primary sent records of an unknown shard or place");
        taken.map_err(misplaced)?.into_iter().try_for_each(|chunk| self.give(chunk))
    }

    /// Has the store apply records.
    fn give(&mut self, chunk: Chunk) -> Result<(), End> {
        let Chunk { shard, from, bytes } = chunk;
        self.given[shard] = from.plus(bytes.len() as u64);
        let following = &self.follower.state.following;
        following.applied_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let answer = self.answer.clone();
        // The session may have ended before the answer.
        let reply = Box::new(move |result| drop(answer.send((shard, result))));
        let replica = self.replica()?;
        tokio::task::block_in_place(|| replica.replicate(shard, from, bytes, reply));
        Ok(())
    }

    /// All of the primary's log up to its time `time_ms` has come.
    async fn take_moment(&mut self, time_ms: i64) -> Result<(), End> {
        let deferred = self.chunks.deferred();
        while !deferred.is_empty() && self.applied != self.given {
            let Some(answer) = self.answers.recv().await else { return Err(End::Stopped) };
            self.note_applied(answer)?;
        }
        deferred.into_iter().try_for_each(|chunk| self.give(chunk))?;
        self.moments.push_back((time_ms, self.given.clone()));
        self.pass_moments();
        Ok(())
    }

    fn note_applied(&mut self, (shard, result): Applied) -> Result<(), End> {
        self.applied[shard] = result.map_err(End::Store)?;
        self.pass_moments();
        Ok(())
    }

    fn pass_moments(&mut self) {
        let is_complete =
            |given: &[Position]| given.iter().zip(&self.applied).all(|(given, has)| has >= given);
        while self.moments.front().is_some_and(|(_, given)| is_complete(given)) {
            if let Some((time_ms, _)) = self.moments.pop_front() {
                self.follower.state.following.complete_ms.store(time_ms, Ordering::Relaxed);
            }
        }
    }

    /// Tells the primary what the log has.
    async fn acknowledge(&mut self) -> io::Result<()> {
        let mut out = Vec::new();
        let positions: Vec<_> = self.applied.iter().map(|position| wire_position(*position)).collect();
        push_acknowledged(&mut out, &positions);
        self.said = Instant::now();
        tokio::time::timeout(SILENCE_MAX, wire::send(&mut self.connection.write, &out)).await?
    }
}
