//! Sends the spool to the store: one connection at a time, and another one when that is lost.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use protocol::frames::agent::labels::{GivenLabel, push_labels};
use protocol::frames::agent::session::{FromStore, Hello, Welcome, push_alive, push_hello};
use protocol::frames::agent::work::push_work_wanted;
use protocol::frames::agent::{STORE_BODY_BYTES_MAX, VERSION, VERSION_BEFORE};
use protocol::frames::code::ErrorCode;
use protocol::frames::{self, Frame};
use suggest::Label;
use tokio::io::AsyncReadExt;
use tokio::sync::watch;

use super::feed::{Lane, LaneFeed};
use super::spool::Cursor;
use super::wire::{self, AgentIdentity, ReadHalf, WriteHalf};
use super::work::{AgentWork, IncomingWork};
use crate::collectors::labels::{Labels, LabelsState};
use crate::service::stopped;

/// How long to wait for a connection, and for an answer.
const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// How often an agent says that it is there.
const ALIVE_EVERY: Duration = Duration::from_secs(10);
/// A store that is silent for longer is gone.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// The wait before a connection is tried again: first, and at most.
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(10);
/// The wait of an agent whose place has been taken.
const FENCED_WAIT: Duration = Duration::from_secs(60);
/// Clocks that differ by more are reported, and again when that has changed by as much. A store tells whole seconds.
const SKEW_REPORTED: Duration = Duration::from_secs(5);
/// Bytes of blocks sent at once.
const SEND_BYTES: usize = 256 << 10;

/// The sender's numbers.
#[derive(Debug, Default)]
pub struct SenderCounts {
    /// It is connected.
    pub connected: AtomicBool,
    /// Sessions begun.
    pub sessions: AtomicU64,
    /// Bytes of blocks sent.
    pub bytes: AtomicU64,
    /// Readings that the store refused.
    pub refused: AtomicU64,
    /// Blocks that a restored store no longer has, and the spool neither.
    pub gone: AtomicU64,
    /// How far this host's clock was ahead of the store's when the session began, in milliseconds.
    pub skew_ms: AtomicI64,
}

/// Sends what a feed has.
pub struct Sender {
    /// What its stream is called: the agent's name, in the second lane followed by `LIVE_STREAM`.
    pub name: String,
    /// Where the store listens, as HOST:PORT or tls:HOST:PORT.
    pub store: String,
    /// How it shows who it is.
    pub identity: AgentIdentity,
    /// How it takes work; `None` = it takes none.
    pub work: Option<WorkTaker>,
    /// How RRDs are shown, which it tells the store; `None` = it tells nothing.
    pub labels: Option<Arc<Labels>>,
    /// What it sends.
    pub feed: LaneFeed,
    /// Its numbers.
    pub counts: Arc<SenderCounts>,
}

/// Takes the work that the store gives.
pub struct WorkTaker {
    /// Where it goes.
    pub work: Arc<AgentWork>,
    /// By which the store may choose this agent, beside its name.
    pub tags: Vec<String>,
}

/// Why a session has ended.
#[derive(Debug)]
enum End {
    /// The connection is lost.
    Lost(io::Error),
    /// The store says so.
    Told(ErrorCode, String),
    /// Begin again at once.
    Again,
    /// The agent stops.
    Stopped,
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        End::Lost(error)
    }
}

impl Sender {
    /// Sends until `stop` becomes true.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        let mut wait = RETRY_FIRST;
        // What a process before this one may have sent.
        let mut sent = self.feed.identity().1;
        let mut complaint = String::new();
        loop {
            let begun = Instant::now();
            let end = self.session(&mut sent, &mut stop).await;
            self.counts.connected.store(false, Ordering::Relaxed);
            self.feed.disconnected();
            if begun.elapsed() > RETRY_MAX {
                (wait, complaint) = (RETRY_FIRST, String::new());
            }
            let text = match end {
                End::Stopped => return,
                End::Again => continue,
                End::Lost(error) => error.to_string(),
                End::Told(ErrorCode::Fenced, text) => {
                    wait = FENCED_WAIT;
                    text
                }
                End::Told(_, text) => text,
            };
            if text != complaint {
                tracing::warn!(
                    store = self.store,
                    stream = self.name,
                    "no session with the store: {text}; the spool keeps what comes"
                );
                complaint = text;
            }
            tokio::select! {
                biased;
                () = stopped(&mut stop) => return,
                () = tokio::time::sleep(wait) => {}
            }
            wait = (wait * 2).min(RETRY_MAX);
        }
    }

    async fn session(&self, sent: &mut u64, stop: &mut watch::Receiver<bool>) -> End {
        let greeted = tokio::select! {
            biased;
            () = stopped(stop) => return End::Stopped,
            greeted = tokio::time::timeout(CONNECT_WAIT, self.greet(*sent)) => greeted,
        };
        let (mut session, cursor) =
            match greeted.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into())) {
                Ok(greeted) => greeted,
                Err(end) => return end,
            };
        tracing::info!(
            store = self.store,
            stream = self.name,
            after = session.acknowledged,
            "connected to the store"
        );
        self.counts.connected.store(true, Ordering::Relaxed);
        self.counts.sessions.fetch_add(1, Ordering::Relaxed);
        let end = session.serve(self, cursor, sent, stop).await;
        end.unwrap_or_else(|end| end)
    }

    /// Connects, in the version of frames that the store knows.
    async fn connect(&self, sent: u64) -> Result<Session, End> {
        match self.connect_with(VERSION, sent).await? {
            Ok(session) => Ok(session),
            Err(_) => {
                let session = self.connect_with(VERSION_BEFORE, sent).await?;
                session.map_err(|text| io::Error::other(format!("it does not take agents: {text}")).into())
            }
        }
    }

    /// The session, or what the store answers that does not speak this version.
    async fn connect_with(&self, version: u32, sent: u64) -> Result<Result<Session, String>, End> {
        let (read, mut write) = wire::connect(&self.store, &self.identity).await?;
        let (epoch, _) = self.feed.identity();
        let mut out = format!("{}\n", frames::negotiation(version)).into_bytes();
        push_hello(&mut out, &Hello { epoch, sent, name: self.name.as_bytes() });
        if let Some(taker) = &self.work {
            push_work_wanted(&mut out, &taker.tags);
        }
        wire::send(&mut write, &out).await?;
        let mut session = Session {
            read,
            write,
            input: Vec::new(),
            acknowledged: 0,
            credit: 0,
            in_flight: VecDeque::new(),
            incoming: IncomingWork::default(),
            waits_for_work: self.work.is_some(),
            takes_labels: version > VERSION_BEFORE,
            labels_told: None,
            said_moved: false,
        };
        Ok(session.agree(version).await?.map(|()| session))
    }

    /// Connects, and finds out what the store has.
    async fn greet(&self, sent: u64) -> Result<(Session, Cursor), End> {
        let mut session = self.connect(sent).await?;
        let mut later = None;
        let welcome = loop {
            match session.greeting().await? {
                Greeting::Welcome(welcome) => break welcome,
                Greeting::LaterEpoch(epoch) => later = Some(epoch),
                Greeting::Ended(ErrorCode::Fenced, _) if self.overtakes(later)? => return Err(End::Again),
                Greeting::Ended(code, text) => return Err(End::Told(code, text)),
            }
        };
        (session.acknowledged, session.credit) = (welcome.sequence, welcome.credit as usize);
        if self.feed.lane() == Lane::Bulk {
            // Once is enough.
            self.compare_clocks(welcome.time);
        }
        match self.feed.resume(session.acknowledged)? {
            Some((cursor, gone)) => {
                if gone > 0 {
                    self.counts.gone.fetch_add(gone, Ordering::Relaxed);
                    tracing::error!(
                        blocks = gone,
                        "the store lacks blocks that the spool no longer has: was it restored from an old copy?"
                    );
                }
                Ok((session, cursor))
            }
            None => {
                tracing::warn!(
                    "the store has more blocks than the spool, which is an old copy: all of it is sent again"
                );
                Err(End::Again)
            }
        }
    }
}

impl Sender {
    /// Whether this spool has taken a higher number than the later one that the store knows.
    fn overtakes(&self, later: Option<u64>) -> io::Result<bool> {
        let Some(later) = later else { return Ok(false) };
        let overtakes = self.feed.overtake(later)?;
        if overtakes {
            tracing::warn!(
                "the store knows a spool of this agent with a later time than this new one: was this host's clock set back? \
                 It goes on as the newest"
            );
        }
        Ok(overtakes)
    }

    /// Reports clocks that differ: readings carry this host's time. `store_micros`: the store's time, in microseconds since 1970.
    fn compare_clocks(&self, store_micros: i64) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64);
        let skew = now.saturating_sub(store_micros) / 1_000;
        let before = self.counts.skew_ms.swap(skew, Ordering::Relaxed);
        let most = SKEW_REPORTED.as_millis() as u64;
        if skew.unsigned_abs() > most && skew.abs_diff(before) > most {
            tracing::warn!(
                seconds = skew / 1_000,
                store = self.store,
                "this host's clock is ahead of the store's by so much (behind, if negative): readings carry this host's time, \
                 so they stand at that time in graphs. Let both keep their time by NTP"
            );
        }
    }
}

/// What a store says before it takes blocks.
enum Greeting {
    Welcome(Welcome),
    LaterEpoch(u64),
    Ended(ErrorCode, String),
}

/// One connection.
struct Session {
    read: ReadHalf,
    write: WriteHalf,
    input: Vec<u8>,
    acknowledged: u64,
    credit: usize,
    /// Bytes sent up to a number, which the store does not have for good yet.
    in_flight: VecDeque<(u64, usize)>,
    incoming: IncomingWork,
    /// The store has not said yet which devices are this agent's: before that, nothing is sent.
    waits_for_work: bool,
    /// The store knows labels, and which it has been told.
    takes_labels: bool,
    labels_told: Option<LabelsState>,
    /// The log says already that another agent polls a device by now.
    said_moved: bool,
}

impl Session {
    /// Reads more; fails at the end.
    async fn fill(&mut self) -> io::Result<()> {
        self.input.reserve(4096);
        match self.read.read_buf(&mut self.input).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Reads the answer to the request for frames: another than the agreement is returned.
    async fn agree(&mut self, version: u32) -> io::Result<Result<(), String>> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.input) {
                let line: Vec<u8> = self.input.drain(..=end).collect();
                let is_agreed = line.trim_ascii_end() == frames::agreement(version).as_bytes();
                let text = || String::from_utf8_lossy(line.trim_ascii()).into_owned();
                return Ok(if is_agreed { Ok(()) } else { Err(text()) });
            }
            self.fill().await?;
        }
    }

    /// Reads the next frame of those that come first.
    async fn greeting(&mut self) -> Result<Greeting, End> {
        loop {
            if let Some((frame, used)) = self.frame()? {
                let greeting = match FromStore::decode(frame) {
                    Ok(FromStore::Welcome(welcome)) => Greeting::Welcome(welcome),
                    Ok(FromStore::LaterEpoch(epoch)) => Greeting::LaterEpoch(epoch),
                    Ok(FromStore::Ended(code, text)) => {
                        Greeting::Ended(code, String::from_utf8_lossy(text).into_owned())
                    }
                    _ => return Err(io::Error::other("the store's first frame is not WELCOME").into()),
                };
                self.input.drain(..used);
                return Ok(greeting);
            }
            self.fill().await?;
        }
    }

    fn frame(&self) -> io::Result<Option<(Frame<'_>, usize)>> {
        frames::scan(&self.input, STORE_BODY_BYTES_MAX).map_err(io::Error::other)
    }

    async fn serve(
        &mut self,
        sender: &Sender,
        mut cursor: Cursor,
        sent: &mut u64,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<End, End> {
        let mut heard = Instant::now();
        let mut said = Instant::now();
        let mut out = Vec::new();
        loop {
            self.take_frames(sender)?;
            self.tell_labels(sender, &mut out).await?;
            self.send(sender, &mut cursor, sent, &mut out).await?;
            if heard.elapsed() >= SILENCE_MAX {
                return Err(io::Error::from(io::ErrorKind::TimedOut).into());
            }
            if said.elapsed() >= ALIVE_EVERY || sender.feed.takes_question() {
                said = Instant::now();
                out.clear();
                push_alive(&mut out);
                wire::send(&mut self.write, &out).await?;
            }
            tokio::select! {
                biased;
                () = stopped(stop) => return Ok(End::Stopped),
                filled = self.fill() => {
                    filled?;
                    heard = Instant::now();
                }
                () = sender.feed.changed() => {}
                () = tokio::time::sleep(ALIVE_EVERY / 4) => {}
            }
        }
    }

    /// Tells the store how RRDs are shown, as far as it does not know.
    async fn tell_labels(&mut self, sender: &Sender, out: &mut Vec<u8>) -> io::Result<()> {
        let labels = sender.labels.as_ref().filter(|_| self.takes_labels);
        let Some(changes) = labels.and_then(|labels| labels.changes(self.labels_told)) else { return Ok(()) };
        let json = |label: &Label| serde_json::to_vec(label).map_err(io::Error::other);
        let encode = |(name, label): &(Box<[u8]>, Arc<Label>)| Ok((name.clone(), json(label)?));
        let labels = changes.labels.iter().map(encode).collect::<io::Result<Vec<_>>>()?;
        let given = labels.iter().map(|(name, label)| GivenLabel { name, label });
        // What is too long for a frame is too long to be read on a page.
        let given: Vec<_> = given.filter(|label| label.is_short()).collect();
        let (mut rest, mut begins_all) = (given.as_slice(), changes.is_all);
        while begins_all || !rest.is_empty() {
            out.clear();
            rest = &rest[push_labels(out, begins_all, rest)..];
            begins_all = false;
            tokio::time::timeout(SILENCE_MAX, wire::send(&mut self.write, out)).await??;
        }
        self.labels_told = Some(changes.at);
        Ok(())
    }

    /// Sends blocks as long as there are any and the store gives credit.
    async fn send(
        &mut self,
        sender: &Sender,
        cursor: &mut Cursor,
        sent: &mut u64,
        out: &mut Vec<u8>,
    ) -> Result<(), End> {
        while !self.waits_for_work
            && self.in_flight.iter().map(|(_, bytes)| bytes).sum::<usize>() < self.credit
        {
            out.clear();
            tokio::task::block_in_place(|| sender.feed.read(cursor, SEND_BYTES, out))?;
            if out.is_empty() {
                return Ok(());
            }
            *sent = (*sent).max(cursor.before());
            // Blocks that the store has already are sent for their context only.
            if cursor.before() > self.acknowledged {
                self.in_flight.push_back((cursor.before(), out.len()));
            }
            tokio::time::timeout(SILENCE_MAX, wire::send(&mut self.write, out))
                .await
                .map_err(io::Error::from)??;
            sender.counts.bytes.fetch_add(out.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    fn take_frames(&mut self, sender: &Sender) -> Result<(), End> {
        let input = std::mem::take(&mut self.input);
        let mut at = 0;
        while let Some((frame, used)) =
            frames::scan(&input[at..], STORE_BODY_BYTES_MAX).map_err(io::Error::other)?
        {
            at += used;
            match FromStore::decode(frame).map_err(io::Error::other)? {
                FromStore::Applied(applied) => {
                    self.credit = applied.credit as usize;
                    self.acknowledged = self.acknowledged.max(applied.sequence);
                    let acknowledged = self.acknowledged;
                    while self.in_flight.front().is_some_and(|(number, _)| *number <= acknowledged) {
                        self.in_flight.pop_front();
                    }
                    sender.feed.acknowledge(acknowledged);
                }
                FromStore::Refused { sequence, count, listed } => {
                    sender.counts.refused.fetch_add(count.into(), Ordering::Relaxed);
                    let first = listed.first().map_or(&b"?"[..], |refused| refused.text);
                    let first = String::from_utf8_lossy(first);
                    let is_moved = listed.first().is_some_and(|refused| refused.code == ErrorCode::Fenced);
                    // A spool may have thousands of blocks of a device that moved.
                    if !is_moved || !std::mem::replace(&mut self.said_moved, true) {
                        tracing::warn!(block = sequence, count, %first, "the store refused readings for good");
                    }
                }
                FromStore::Ended(code, text) => {
                    return Err(End::Told(code, String::from_utf8_lossy(text).into_owned()));
                }
                FromStore::Work(part) => {
                    let Some(taker) = &sender.work else {
                        return Err(io::Error::other("work that was not asked for").into());
                    };
                    self.waits_for_work &= part.has_more;
                    tokio::task::block_in_place(|| taker.work.take(&part, &mut self.incoming))?;
                }
                FromStore::Profile(profile) => self.incoming.take_profile(&profile)?,
                FromStore::LaterEpoch(_) => return Err(io::Error::other("an epoch after WELCOME").into()),
                FromStore::Welcome(_) => return Err(io::Error::other("a second WELCOME").into()),
            }
        }
        self.input = input;
        self.input.drain(..at);
        Ok(())
    }
}
