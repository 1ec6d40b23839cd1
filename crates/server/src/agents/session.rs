//! One session of an agent: its blocks are applied in order, and their position is recorded while the next ones arrive.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use protocol::frames::agent::session::{
    Applied, FromAgent, Hello, NOT_INDEXED, REFUSALS_LISTED_MAX, RefusedReading, Welcome, push_applied,
    push_ended, push_later_epoch, push_refused, push_welcome,
};
use protocol::frames::agent::{AGENT_BODY_BYTES_MAX, VERSION, VERSION_BEFORE, block::BlockHead};
use protocol::frames::code::ErrorCode;
use protocol::frames::{self, HEADER_BYTES};
use store::engine::{StoreError, StreamPosition};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::AgentServer;
use super::counts::add;
use super::labels::AgentLabels;
use super::receiving::{Received, Receiving};
use super::registry::{Place, agent_of};
use super::seen::SeenSession;
use super::work::Seat;
use crate::access::Principal;
use crate::budget::Share;
use crate::collectors::store_writer::{StoreWriter, WriteError, WriteFailure, Written};
use crate::connection::refusal;
use crate::frames_port::FramesServer;
use crate::frames_wire::FramesWire;
use crate::limits::{
    AGENT_COMMIT_AFTER, AGENT_COMMIT_BYTES, AGENT_CREDIT, AGENT_HELLO_WAIT, AGENT_SILENCE_MAX, READ_BYTES,
};
use crate::peer::Peer;
use crate::service::stopped;

/// RRDs of which the log says how many readings were dropped, for one block.
const DROPPED_LOGGED: usize = 5;
/// The longest body of the first frame.
const HELLO_BYTES_MAX: usize = 1024;

/// Why a session ends, for the agent.
type Ending = (ErrorCode, String);

/// Serves an agent until it leaves, a newer session of it comes, or `stop` becomes true. A session is newer when its connection was
/// accepted later, and so has a higher `number`.
///
/// # Errors
/// Errors of the socket.
pub async fn run(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    (peer, number): (Peer, u64),
    server: &AgentServer,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut wire = FramesWire::new(stream, peer, AGENT_SILENCE_MAX);
    let greeted = server.places.greet(AgentServer::CLIENTS, AGENT_HELLO_WAIT, greet(&mut wire, server));
    let Some((_place, (hello, who))) = greeted.await? else { return Ok(()) };
    let name = String::from_utf8_lossy(&hello.name).into_owned();
    if !may_be(&who, &hello.name) {
        // Before it takes the place of the one whose name it says.
        server.service.access.refused(&who.name, "to be another agent");
        let text = format!("the token is that of \"{}\", and no other agent's", who.name);
        return end(&mut wire, &name, &(ErrorCode::Permission, text)).await;
    }
    let Some(mut place) = server.registry.take(&hello.name, number).await else {
        return end(&mut wire, &name, &replaced(server)).await;
    };
    let ended = match Session::begin(server, hello, &who, &mut wire.output).await {
        Ok(mut session) => {
            add(&server.counts.sessions, 1);
            tracing::info!(agent = name, after = session.durable, "an agent has connected");
            let welcome = Welcome {
                sequence: session.durable,
                credit: AGENT_CREDIT,
                time: server.service.now() * 1_000_000,
            };
            push_welcome(&mut wire.output, &welcome);
            let ended = session.serve(&mut wire, &mut place, &mut stop).await;
            session.commit_rest().await;
            ended
        }
        Err(ending) => Ok(Some(ending)),
    };
    match ended? {
        Some(ending) => end(&mut wire, &name, &ending).await,
        None => Ok(()),
    }
}

/// Tells an agent why its session ends.
async fn end<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut FramesWire<S>,
    agent: &str,
    (code, text): &Ending,
) -> io::Result<()> {
    tracing::warn!(agent, "the session of an agent ends: {text}");
    push_ended(&mut wire.output, *code, text.as_bytes());
    wire.flush().await
}

/// Counts a session that ends because a newer one has its place.
fn replaced(server: &AgentServer) -> Ending {
    add(&server.counts.fenced, 1);
    (ErrorCode::Fenced, "a newer session has taken the place of this one".to_string())
}

/// Whether a client may send what the agent of this name records: a token is that of one agent, unless it may do everything.
fn may_be(who: &Principal, stream: &[u8]) -> bool {
    who.rights.operate || who.name.as_bytes() == agent_of(stream)
}

/// The agent's first frame.
struct Greeting {
    /// The version of frames that it speaks.
    version: u32,
    name: Box<[u8]>,
    epoch: u64,
    sent: u64,
}

/// Agrees on frames, and reads the first one; `None` when there is none that an agent sends.
async fn greet<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut FramesWire<S>,
    server: &AgentServer,
) -> io::Result<Option<(Greeting, Arc<Principal>)>> {
    let advice = "an agent must say who it is here: token_file in its [agent]";
    let known = [VERSION, VERSION_BEFORE];
    let Some((version, who)) = wire.agree(&server.service, &server.anonymous, &known, advice).await? else {
        return Ok(None);
    };
    let greeting = wire.first_frame(HELLO_BYTES_MAX, |frame| match FromAgent::decode(frame) {
        Ok(FromAgent::Hello(Hello { epoch, sent, name })) => {
            Some(Greeting { version, name: name.into(), epoch, sent })
        }
        _ => None,
    });
    Ok(greeting.await?.flatten().map(|greeting| (greeting, who)))
}

/// A position that is being recorded.
type Commit = JoinHandle<(u64, Result<(), StoreError>)>;

struct Session<'a> {
    server: &'a AgentServer,
    /// The name of its stream, which has the position.
    stream: Box<[u8]>,
    /// The agent's own name: what precedes the stream's first slash.
    agent: Box<[u8]>,
    epoch: u64,
    /// Blocks up to this one may have been applied before, without their position.
    sent: u64,
    /// All blocks up to here are in the store, and what of them is recorded.
    applied: u64,
    durable: u64,
    receiving: Receiving,
    seen: SeenSession<'a>,
    /// The version of frames that it speaks.
    version: u32,
    /// Whose token it has.
    who: Arc<Principal>,
    /// Of an agent that takes work.
    seat: Option<Seat>,
    labels: AgentLabels,
    /// The log says already that readings are another agent's by now.
    said_fenced: bool,
    writer: StoreWriter,
    memory: Share,
    /// Bytes and time of the first block that no commit covers.
    uncommitted: Option<(usize, Instant)>,
    commit: Option<Commit>,
    heard: Instant,
}

impl<'a> Session<'a> {
    /// Finds out how far the agent's blocks are applied. An agent of an older epoch is told the later one.
    async fn begin(
        server: &'a AgentServer,
        hello: Greeting,
        who: &Arc<Principal>,
        output: &mut Vec<u8>,
    ) -> Result<Self, Ending> {
        let Greeting { version, name, epoch, sent } = hello;
        let engine = &server.service.engine;
        let known = tokio::task::block_in_place(|| engine.stream_position(&name)).map_err(ending)?;
        let known = known.unwrap_or_default();
        if epoch < known.epoch {
            add(&server.counts.fenced, 1);
            push_later_epoch(output, known.epoch);
            let text =
                format!("epoch {epoch} is over: a later spool of this agent has epoch {}", known.epoch);
            return Err((ErrorCode::Fenced, text));
        }
        let mut durable = known.sequence;
        if epoch > known.epoch {
            // From now on, older spools are refused.
            durable = 0;
            let position = StreamPosition { epoch, sequence: 0 };
            tokio::task::block_in_place(|| engine.set_stream_position(&name, position)).map_err(ending)?;
        }
        let agent: Box<[u8]> = agent_of(&name).into();
        Ok(Session {
            server,
            seen: server.service.agents.session(&agent, server.service.now()),
            receiving: Receiving::new(&agent),
            version,
            who: Arc::clone(who),
            seat: None,
            labels: AgentLabels::new(&server.service, &agent),
            said_fenced: false,
            stream: name,
            agent,
            epoch,
            sent,
            applied: durable,
            durable,
            writer: StoreWriter::new(Arc::clone(&server.service.seen_by(who).engine)),
            memory: server.service.memory.share(),
            uncommitted: None,
            commit: None,
            heard: Instant::now(),
        })
    }

    async fn serve(
        &mut self,
        wire: &mut FramesWire<impl AsyncRead + AsyncWrite + Unpin>,
        place: &mut Place<'_>,
        stop: &mut watch::Receiver<bool>,
    ) -> io::Result<Option<Ending>> {
        let who = Arc::clone(&self.who);
        let mut revoked = std::pin::pin!(self.server.service.access.no_longer_knows(&who));
        loop {
            if let Err(ending) = self.take_frames(wire).await {
                return Ok(Some(ending));
            }
            if let Some(seat) = &mut self.seat {
                seat.push_changes(&mut wire.output);
            }
            wire.flush().await?;
            self.begin_commit();
            let silent = self.heard + AGENT_SILENCE_MAX;
            let wake = match (&self.commit, self.uncommitted) {
                (None, Some((_, since))) => since + AGENT_COMMIT_AFTER,
                _ => silent,
            };
            tokio::select! {
                biased;
                () = stopped(stop) => return Ok(Some(ending(StoreError::Stopping))),
                () = &mut revoked => {
                    let text = format!("the token of \"{}\" is not known any more, or has ended", who.name);
                    return Ok(Some((ErrorCode::Permission, text)));
                }
                () = place.is_wanted() => return Ok(Some(replaced(self.server))),
                (upto, result) = committed(&mut self.commit) => {
                    self.commit = None;
                    if let Err(error) = result {
                        return Ok(Some(ending(error)));
                    }
                    self.durable = upto;
                    push_applied(&mut wire.output, &Applied { sequence: upto, credit: AGENT_CREDIT });
                }
                () = work_changed(&mut self.seat) => {}
                read = wire.read() => match read? {
                    0 => return Ok(None),
                    _ => self.heard = Instant::now(),
                },
                () = tokio::time::sleep_until(wake.into()) => if Instant::now() >= silent {
                    return Ok(Some((ErrorCode::Other, "nothing was heard for too long".to_string())));
                }
            }
        }
    }

    /// Does what the frames say that have arrived whole.
    async fn take_frames(
        &mut self,
        wire: &mut FramesWire<impl AsyncRead + AsyncWrite + Unpin>,
    ) -> Result<(), Ending> {
        let input = std::mem::take(&mut wire.input);
        let mut at = 0;
        loop {
            let scanned =
                frames::scan(&input[at..], AGENT_BODY_BYTES_MAX).map_err(|error| self.malformed(error))?;
            let Some((frame, used)) = scanned else { break };
            at += used;
            match FromAgent::decode(frame).map_err(|error| self.malformed(error))? {
                FromAgent::Block(body) => self.take_block(body, &mut wire.output).await?,
                FromAgent::Alive => {
                    push_applied(&mut wire.output, &Applied { sequence: self.durable, credit: AGENT_CREDIT });
                }
                FromAgent::WorkWanted(tags) => {
                    let tags = tags.iter().map(|tag| String::from_utf8_lossy(tag).into_owned()).collect();
                    let takes_profiles = self.version > VERSION_BEFORE;
                    let join = || self.server.work.join(&self.agent, tags, takes_profiles);
                    self.seat = Some(tokio::task::block_in_place(join));
                }
                FromAgent::Labels(part) => {
                    tokio::task::block_in_place(|| self.labels.take(&part));
                }
                FromAgent::Hello(_) => return Err(self.malformed("a second HELLO")),
            }
        }
        wire.input = input;
        wire.input.drain(..at);
        // A large block need not keep its memory for the small ones.
        if wire.input.is_empty() && wire.input.capacity() > 4 * READ_BYTES {
            wire.input = Vec::new();
        }
        let bytes = wire.input.capacity() + self.receiving.memory();
        if !self.memory.try_resize(bytes as u64) {
            return Err((
                ErrorCode::DiskFull,
                "clients hold too much memory now ([limits] memory)".to_string(),
            ));
        }
        Ok(())
    }

    fn malformed(&self, what: impl std::fmt::Display) -> Ending {
        add(&self.server.counts.malformed, 1);
        (ErrorCode::Syntax, what.to_string())
    }

    async fn take_block(&mut self, body: &[u8], output: &mut Vec<u8>) -> Result<(), Ending> {
        let head = BlockHead::parse(body).map_err(|error| self.malformed(error))?;
        add(&self.server.counts.bytes, (body.len() + HEADER_BYTES) as u64);
        let counts = &self.server.counts;
        let assignments = self.server.work.assignments();
        let read = tokio::task::block_in_place(|| self.receiving.read(body, assignments));
        let received = read.map_err(|error| {
            add(&counts.malformed, 1);
            (ErrorCode::Syntax, error.to_string())
        })?;
        if head.sequence <= self.applied {
            // For its context only.
            return Ok(());
        }
        let newest = received.readings.iter().map(|reading| reading.time.whole).max();
        self.seen.note(self.server.service.now(), newest);
        let written = self.writer.write(&received.inventory, &received.readings).await;
        let passing = written.failures.iter().find(|failure| failure.error.is_passing());
        if let Some(WriteFailure { error: WriteError::Store(error), .. }) = passing {
            return Err(ending(error.clone()));
        }
        let is_repeated = head.sequence <= self.sent;
        answer(head.sequence, received, written, is_repeated, self.server, output);
        log_dropped(&self.agent, received, self.server);
        if received.fenced > 0 && !std::mem::replace(&mut self.said_fenced, true) {
            let agent = String::from_utf8_lossy(&self.agent);
            tracing::warn!(%agent, "an agent sends readings of devices that were not its own to poll by then: they are refused");
        }
        add(&counts.blocks, 1);
        self.applied = head.sequence;
        let bytes = body.len() + HEADER_BYTES;
        let uncommitted = self.uncommitted.get_or_insert((0, Instant::now()));
        uncommitted.0 += bytes;
        Ok(())
    }

    /// Begins to record the position, if there is something to record and it is time.
    fn begin_commit(&mut self) {
        let is_due = self.uncommitted.is_some_and(|(bytes, since)| {
            bytes >= AGENT_COMMIT_BYTES || since.elapsed() >= AGENT_COMMIT_AFTER
        });
        if is_due && self.commit.is_none() {
            self.commit = Some(self.commit());
        }
    }

    /// Records the position of the last applied block, on another thread.
    fn commit(&mut self) -> Commit {
        self.uncommitted = None;
        let (engine, name) = (Arc::clone(&self.server.service.engine), self.stream.clone());
        let position = StreamPosition { epoch: self.epoch, sequence: self.applied };
        tokio::task::spawn_blocking(move || (position.sequence, engine.set_stream_position(&name, position)))
    }

    /// Records the position of the last applied block when the session ends. Without it, an agent whose connections are all cut
    /// within [`AGENT_COMMIT_AFTER`] would send the same blocks again and again.
    async fn commit_rest(&mut self) {
        if let Some(commit) = self.commit.take() {
            _ = commit.await;
        }
        if self.uncommitted.is_some() {
            // If it fails, the blocks are sent and applied again.
            _ = self.commit().await;
        }
    }
}

/// Waits for a commit; forever without one.
async fn committed(commit: &mut Option<Commit>) -> (u64, Result<(), StoreError>) {
    match commit {
        Some(commit) => commit.await.unwrap_or((0, Err(StoreError::Stopping))),
        None => std::future::pending().await,
    }
}

/// Waits until the agent's work may have changed; forever if it takes none.
async fn work_changed(seat: &mut Option<Seat>) {
    match seat {
        Some(seat) => seat.changed().await,
        None => std::future::pending().await,
    }
}

fn ending(error: StoreError) -> Ending {
    (refusal::code(&error), error.to_string())
}

/// Counts what became of a block's readings, and tells the agent which were refused.
fn answer(
    sequence: u64,
    received: &Received,
    written: Written,
    is_repeated: bool,
    server: &AgentServer,
    output: &mut Vec<u8>,
) {
    let code = |failure: &WriteFailure| match &failure.error {
        WriteError::Store(error) => refusal::code(error),
        WriteError::Definition(_) | WriteError::Other(_) => ErrorCode::Syntax,
        // Only pollers have a fence.
        WriteError::Elsewhere | WriteError::LeadLost => refusal::code(&StoreError::Stopping),
    };
    let all = written.failures.len();
    let mut refused = written.failures;
    if is_repeated {
        refused.retain(|failure| code(failure) != ErrorCode::IllegalTime);
    }
    let count = refused.len() as u64 + u64::from(received.nameless) + u64::from(received.fenced);
    add(&server.counts.repeated, (all - refused.len()) as u64);
    add(&server.counts.stored, (received.readings.len() - all) as u64);
    add(&server.counts.refused, count);
    add(&server.counts.refused_moved, received.fenced.into());
    if count == 0 {
        return;
    }
    let text = |failure: &WriteFailure| {
        let name = String::from_utf8_lossy(received.inventory.name(failure.rrd));
        format!("{name}: {}", failure.error)
    };
    let listed = refused.iter().take(REFUSALS_LISTED_MAX);
    let fenced = received.fenced_first.map(|rrd| {
        let name = String::from_utf8_lossy(received.inventory.name(rrd));
        (NOT_INDEXED, ErrorCode::Fenced, format!("{name}: its device was not this agent's to poll by then"))
    });
    let listed = listed.map(|failure| (failure.reading, code(failure), text(failure)));
    let listed: Vec<_> = fenced.into_iter().chain(listed).collect();
    let listed: Vec<RefusedReading<'_>> = listed
        .iter()
        .map(|(index, code, text)| RefusedReading { index: *index, code: *code, text: text.as_bytes() })
        .collect();
    push_refused(output, sequence, count as u32, &listed);
}

fn log_dropped(name: &[u8], received: &Received, server: &AgentServer) {
    let total: u64 = received.dropped.values().sum();
    if total == 0 {
        return;
    }
    add(&server.counts.dropped, total);
    let one = |(rrd, count): (&collect::inventory::RrdId, &u64)| {
        format!("{} ({count})", String::from_utf8_lossy(received.inventory.name(*rrd)))
    };
    let rrds: Vec<String> = received.dropped.iter().take(DROPPED_LOGGED).map(one).collect();
    tracing::warn!(
        agent = %String::from_utf8_lossy(name),
        readings = total,
        rrds = received.dropped.len(),
        first = rrds.join(", "),
        "an agent had to drop readings, because its spool was full: they are unknown"
    );
}
